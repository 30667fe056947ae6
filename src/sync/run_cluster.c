/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bin.h"
#include "base/log.h"
#include "source/kube.h"
#include "source/kubeconfig.h"
#include "source/lease.h"
#include "sync/events.h"
#include "sync/publish.h"
#include "sync/run.h"

/* rollcall-sync --kubeconfig and --in-cluster. */

#define LEASE_HASH_BYTES 10 /* "-0123abcd" */

struct cluster {
	struct roll_run *run;
	struct roll_api *api;
	struct roll_kube *kube;
	char *ns; /* of the pod or the context; may be NULL */
	/* --status: all NULL if never. */
	struct roll_publish *publish;
	struct roll_events *events;
	struct roll_lease *lease; /* NULL as well if always */
	/* --once: how it ended. */
	enum roll_status status;
	char text[320];
	bool has_ended;
};

static enum roll_status open_cluster(struct roll_run *run, void **state, struct roll_err *err)
{
	const struct roll_sync_options *o = &run->options;
	/* Where kubectl looks; in the home directory only if a context of it is named. */
	struct roll_kubeconfig_place place = {.path = o->kubeconfig,
					      .environment = getenv("KUBECONFIG"),
					      .home = o->context ? getenv("HOME") : NULL};
	struct cluster *cluster = calloc(1, sizeof *cluster);
	struct roll_cred_spec spec = {.server = NULL};
	struct roll_cred *cred = NULL;
	enum roll_status status;

	*state = cluster;
	if (!cluster)
		return roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	cluster->run = run;
	if (o->is_in_cluster)
		status = roll_cred_in_cluster(&spec, NULL, getenv("KUBERNETES_SERVICE_HOST"),
					      getenv("KUBERNETES_SERVICE_PORT"), err);
	else
		status = roll_kubeconfig_read(&place, o->context, &spec, err);
	if (status)
		return status;
	cluster->ns = spec.ns;
	spec.ns = NULL;
	status = roll_cred_new(run->loop, &roll_clock_system, &spec, &cred, err);
	return status ? status : roll_api_new(run->loop, cred, &cluster->api, err);
}

static enum roll_status position(void *ctx, struct roll_str what, struct roll_buf *out)
{
	struct cluster *cluster = ctx;

	return roll_engine_position(cluster->run->engine, what, out);
}

static enum roll_status on_identity(void *ctx, struct roll_str uid)
{
	struct cluster *cluster = ctx;
	struct roll_err err = {.text = ""};
	enum roll_status status = roll_engine_identify(cluster->run->engine, uid, &err);

	if (status)
		snprintf(cluster->text, sizeof cluster->text, "%s", err.text);
	return status;
}

static void on_end(void *ctx, enum roll_status status, const char *text)
{
	struct cluster *cluster = ctx;

	cluster->has_ended = true;
	cluster->status = status;
	if (text && text[0] && !cluster->text[0])
		snprintf(cluster->text, sizeof cluster->text, "%s", text);
	roll_loop_stop(cluster->run->loop);
}

/* --- status --- */

static void on_lease(void *ctx, bool is_holder)
{
	struct cluster *cluster = ctx;

	roll_engine_publish(cluster->run->engine, is_holder);
	roll_publish_lead(cluster->publish, is_holder);
}

static bool raise_serial(void *ctx, struct roll_str zone_key)
{
	struct cluster *cluster = ctx;

	return roll_engine_raise_serial(cluster->run->engine, zone_key);
}

static int64_t left_ms(void *ctx)
{
	const struct cluster *cluster = ctx;

	return cluster->lease ? roll_lease_left_ms(cluster->lease) : INT64_MAX;
}

/*
 * Those that write the same statuses agree on who does: of the same controller, in the same
 * namespaces. A controller may be any text, the name of a Lease is a DNS subdomain (RFC 1123): what
 * it does not say is in a hash at its end.
 */
static void lease_name(const struct roll_sync_options *o, char *out, size_t size)
{
	static const char prefix[] = "rollcall-";
	const char *controller = o->controller;
	uint64_t hash = roll_hash64(controller, strlen(controller));
	size_t n;

	snprintf(out, size - LEASE_HASH_BYTES, "%s%s", prefix, controller);
	for (n = 0; out[n]; n++) {
		if (!roll_is_digit((unsigned char)out[n]) && !(out[n] >= 'a' && out[n] <= 'z'))
			out[n] = '-';
	}
	while (out[n - 1] == '-')
		out[--n] = '\0';
	/* In whatever order they are given. */
	for (size_t i = 0; i < o->namespaces.count; i++)
		hash ^= roll_hash64(o->namespaces.items[i], strlen(o->namespaces.items[i]) + 1);
	if (o->namespaces.count || n < sizeof prefix ||
	    strcmp(out + sizeof prefix - 1, controller) != 0)
		snprintf(out + n, LEASE_HASH_BYTES, "-%08x", (unsigned)(hash ^ hash >> 32));
}

static enum roll_status start_lease(struct cluster *cluster, const char *host, struct roll_err *err)
{
	const struct roll_sync_options *o = &cluster->run->options;
	const char *ns = o->lease_namespace ? o->lease_namespace : cluster->ns;
	char name[64];
	struct roll_lease_conf conf = {
		.loop = cluster->run->loop,
		.api = cluster->api,
		.ns = ns ? ns : "default",
		.name = name,
		.identity = host,
		.clock = &roll_clock_system,
		.on_change = on_lease,
		.ctx = cluster,
		.metrics = cluster->run->metrics,
	};

	lease_name(o, name, sizeof name);
	return roll_lease_new(&conf, &cluster->lease, err);
}

static enum roll_status start_status(struct cluster *cluster, struct roll_err *err)
{
	struct roll_run *run = cluster->run;
	const struct roll_sync_options *o = &run->options;
	char host[65] = "";
	struct roll_events_conf events = {
		.loop = run->loop,
		.api = cluster->api,
		.instance = host,
		.clock = &roll_clock_system,
		.metrics = run->metrics,
	};
	struct roll_publish_conf publish = {
		.loop = run->loop,
		.writer = run->writer,
		.api = cluster->api,
		.sink = roll_engine_sink(run->engine),
		.clock = &roll_clock_system,
		.metrics = run->metrics,
		.namespaces = o->namespaces.items,
		.namespace_count = o->namespaces.count,
		.raise_serial = raise_serial,
		.left_ms = left_ms,
		.ctx = cluster,
	};
	enum roll_status status;

	if (o->is_once || strcmp(o->status, "never") == 0)
		return ROLL_OK;
	if (gethostname(host, sizeof host - 1) || !host[0])
		snprintf(host, sizeof host, "rollcall-sync");
	status = roll_events_new(&events, &cluster->events, err);
	publish.events = cluster->events;
	if (!status)
		status = roll_publish_new(&publish, &cluster->publish, err);
	if (status)
		return status;
	if (strcmp(o->status, "leader") == 0)
		return start_lease(cluster, host, err);
	on_lease(cluster, true);
	return ROLL_OK;
}

/* --- life --- */

static enum roll_status start_cluster(struct roll_run *run, void *state, struct roll_err *err)
{
	struct cluster *cluster = state;
	struct roll_kube_conf conf = {
		.loop = run->loop,
		.api = cluster->api,
		.clock = &roll_clock_system,
		.sink = roll_engine_sink(run->engine),
		.position = position,
		.on_identity = on_identity,
		.on_end = on_end,
		.ctx = cluster,
		.is_once = run->options.is_once,
		.namespaces = run->options.namespaces.items,
		.namespace_count = run->options.namespaces.count,
		.relist_ms = run->options.relist_ms,
		.metrics = run->metrics,
	};
	enum roll_status status = start_status(cluster, err);

	if (status)
		return status;
	if (cluster->publish)
		conf.sink = roll_publish_sink(cluster->publish);
	status = roll_kube_new(&conf, &cluster->kube, err);
	if (!status)
		roll_kube_start(cluster->kube);
	return status;
}

static enum roll_status list_cluster(struct roll_run *run, void *state, struct roll_err *err)
{
	struct cluster *cluster = state;
	enum roll_status status = start_cluster(run, state, err);

	if (!status)
		status = roll_loop_run(run->loop);
	if (!status)
		status = cluster->has_ended ? cluster->status : ROLL_ECANCELED;
	return status ? roll_err_set(err, status, NULL, "%s",
				     cluster->text[0] ? cluster->text : roll_status_text(status))
		      : ROLL_OK;
}

static void read_again(struct roll_run *run, void *state)
{
	struct cluster *cluster = state;

	(void)run;
	roll_kube_relist(cluster->kube);
}

static bool is_live(void *state)
{
	const struct cluster *cluster = state;

	return cluster->kube && roll_kube_is_live(cluster->kube);
}

/* As source/kube.h names positions. */
static void each_what(struct roll_run *run, void (*on_what)(void *ctx, const char *what), void *ctx)
{
	static const char *const namespaced[] = {"dnszones", "dnsrecordsets"};
	const struct roll_option_list *namespaces = &run->options.namespaces;
	char what[128];

	on_what(ctx, "dnszoneclasses");
	for (size_t i = 0; i < sizeof namespaced / sizeof *namespaced; i++) {
		if (namespaces->count == 0)
			on_what(ctx, namespaced[i]);
		for (size_t k = 0; k < namespaces->count; k++) {
			snprintf(what, sizeof what, "%s/%s", namespaced[i], namespaces->items[k]);
			on_what(ctx, what);
		}
	}
}

static void status_troubles(void *state, const char **lease, const char **write)
{
	const struct cluster *cluster = state;

	if (cluster->lease)
		*lease = roll_lease_trouble(cluster->lease);
	if (cluster->publish)
		*write = roll_publish_refusal(cluster->publish);
}

static void close_cluster(void *state)
{
	struct cluster *cluster = state;

	if (!cluster)
		return;
	roll_kube_free(cluster->kube);
	/* Nothing is written any more when the lease is given back. */
	roll_publish_free(cluster->publish);
	cluster->publish = NULL;
	roll_lease_free(cluster->lease);
	roll_events_free(cluster->events);
	roll_api_free(cluster->api);
	free(cluster->ns);
	free(cluster);
}

const struct roll_run_source roll_run_cluster = {
	.open = open_cluster,
	.start = start_cluster,
	.once = list_cluster,
	.again = read_again,
	.close = close_cluster,
	.each_what = each_what,
	.is_live = is_live,
	.status_troubles = status_troubles,
};
