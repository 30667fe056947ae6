/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "sync/run.h"

#define RELIST_MS (INT64_C(3600) * 1000)
#define MAX_RELIST_MS (INT64_C(24) * 3600 * 1000)

/* Is there anything to find where kubectl would look? */
static bool has_environment(const struct roll_sync_options *o)
{
	const char *files = getenv("KUBECONFIG");

	return o->context || (files && *files);
}

/* The first thing that is wrong with the options as a whole; NULL: nothing. */
static const char *wrong(const struct roll_sync_options *o, int rest)
{
	int sources = (o->manifests != NULL) + (o->kubeconfig != NULL) + o->is_in_cluster;

	if (rest)
		return "takes options only; expected a source and --view";
	if (!o->view)
		return "--view=DIR is missing";
	if (sources == 0 && !has_environment(o))
		return "the source is missing: expected --manifests=DIR, --kubeconfig=FILE or "
		       "--in-cluster";
	if (sources > 1)
		return "more than one source; expected one of --manifests, --kubeconfig and "
		       "--in-cluster";
	if (o->context && (o->manifests || o->is_in_cluster))
		return "--context belongs to a kubeconfig";
	if (o->namespaces.count && o->manifests)
		return "--namespace belongs to a cluster";
	if (o->lease_namespace && o->manifests)
		return "--lease-namespace belongs to a cluster";
	return NULL;
}

enum roll_status roll_sync_options_parse(int argc, char **argv, struct roll_sync_options *o)
{
	const struct roll_option table[] = {
		{"manifests", ROLL_OPT_STRING, &o->manifests, "DIR", NULL, 0, 0, NULL,
		 "read a folder of manifests"},
		{"kubeconfig", ROLL_OPT_STRING, &o->kubeconfig, "FILE", NULL, 0, 0, NULL,
		 "read a cluster, as this file says"},
		{"context", ROLL_OPT_STRING, &o->context, "NAME", NULL, 0, 0, NULL,
		 "context of the kubeconfig to use"},
		{"in-cluster", ROLL_OPT_FLAG, &o->is_in_cluster, NULL, NULL, 0, 0, NULL,
		 "read the cluster that this pod runs in"},
		{"namespace", ROLL_OPT_LIST, &o->namespaces, "NS", NULL, 0, 0, NULL,
		 "only objects of this namespace; may be repeated"},
		{"relist", ROLL_OPT_DURATION, &o->relist_ms, "TIME", "1h", 0, MAX_RELIST_MS, NULL,
		 "list a cluster again this often, to heal; 0s is never"},
		{"view", ROLL_OPT_STRING, &o->view, "DIR", NULL, 0, 0, NULL,
		 "directory of the view; made if it is not there"},
		{"once", ROLL_OPT_FLAG, &o->is_once, NULL, NULL, 0, 0, NULL,
		 "make the view equal to the source, then exit"},
		{"controller-name", ROLL_OPT_STRING, &o->controller, "NAME", "powerdns", 0, 0, NULL,
		 "serve zones whose class names this controller"},
		{"pdns-control", ROLL_OPT_STRING, &o->pdns_control, "SOCKET", NULL, 0, 0, NULL,
		 "control socket of pdns_server, told of changes"},
		{"status", ROLL_OPT_WORD, &o->status, "WHO", "leader", 0, 0, "leader|always|never",
		 "who writes status back to a cluster's objects"},
		{"lease-namespace", ROLL_OPT_STRING, &o->lease_namespace, "NS", NULL, 0, 0, NULL,
		 "where replicas agree on the leader; else the pod's"},
		{"brake", ROLL_OPT_NUMBER, &o->brake_percent, "PERCENT", "0", 0, 100, NULL,
		 "hold lists that remove more than this share; 0 is off"},
		{"http", ROLL_OPT_ENDPOINT, &o->http, "ADDR:PORT", NULL, 0, 0, NULL,
		 "serve a page, /metrics, /healthz and /readyz there"},
		{"log-level", ROLL_OPT_WORD, &o->log_level, "LEVEL", "info", 0, 0,
		 "error|warn|info|debug", "what to log"},
		{"log-format", ROLL_OPT_WORD, &o->log_format, "FORMAT", "kv", 0, 0, "kv|json",
		 "how to log"},
		{.name = NULL},
	};
	const struct roll_program program = {
		"rollcall-sync",
		"rollcall-sync (--manifests DIR | --kubeconfig FILE | --in-cluster) --view DIR "
		"[OPTION]...",
		"Keep the view equal to the objects of a cluster or of a folder.", table};
	enum roll_status status;
	const char *why;
	int rest = 0;

	*o = (struct roll_sync_options){.controller = "powerdns",
					.status = "leader",
					.relist_ms = RELIST_MS,
					.log_level = "info",
					.log_format = "kv"};
	status = roll_options_parse(&program, argc, argv, &rest);
	if (status)
		return status;
	why = wrong(o, rest);
	if (!why)
		return ROLL_OK;
	fprintf(stderr, "rollcall-sync: %s\nTry 'rollcall-sync --help'.\n", why);
	return ROLL_EINVAL;
}
