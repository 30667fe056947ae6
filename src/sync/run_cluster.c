/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "source/kube.h"
#include "source/kubeconfig.h"
#include "sync/run.h"

/* rollcall-sync --kubeconfig and --in-cluster. */

struct cluster {
	struct roll_run *run;
	struct roll_api *api;
	struct roll_kube *kube;
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
	enum roll_status status = roll_kube_new(&conf, &cluster->kube, err);

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

static void close_cluster(void *state)
{
	struct cluster *cluster = state;

	if (!cluster)
		return;
	roll_kube_free(cluster->kube);
	roll_api_free(cluster->api);
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
};
