/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/run.h"

/* What --http shows. Gauges are set when somebody looks. */

static void set_gauge(struct roll_run *run, const char *name, const char *help, double value)
{
	roll_metric_set(roll_metric_gauge(run->metrics, name, help, NULL, NULL), NULL, NULL, value);
}

static void set_gauges(struct roll_run *run)
{
	struct roll_engine_counts counts;
	struct roll_metric *objects, *findings;
	int i;

	roll_engine_counts(run->engine, &counts);
	objects = roll_metric_gauge(run->metrics, "rollcall_sync_objects", "Objects in the view.",
				    "kind", NULL);
	for (i = 0; i < ROLL_KIND_COUNT; i++)
		roll_metric_set(objects, roll_kind_text((enum roll_kind)i), NULL,
				(double)counts.objects[i]);
	findings = roll_metric_gauge(run->metrics, "rollcall_sync_findings",
				     "Findings about objects.", "severity", NULL);
	roll_metric_set(findings, "fault", NULL, (double)counts.faults);
	roll_metric_set(findings, "warning", NULL, (double)counts.warnings);
	set_gauge(run, "rollcall_sync_objects_rejected", "Objects without a usable identity.",
		  (double)counts.rejected);
	set_gauge(run, "rollcall_sync_complete", "1 once a complete view exists.",
		  counts.is_complete);
	set_gauge(run, "rollcall_sync_source_reachable", "1 while the source can be read.",
		  counts.is_reachable);
	set_gauge(run, "rollcall_sync_view_writable", "1 while commits work.", counts.is_writable);
	set_gauge(run, "rollcall_sync_confirmed_timestamp_seconds",
		  "When the view was last known to be in step with the source.",
		  (double)counts.confirmed_ms / 1000);
	if (run->source->findings)
		set_gauge(run, "rollcall_sync_manifests_unreadable",
			  "Manifests that cannot be read; their last good content is served.",
			  run->options.manifests
				  ? (double)roll_folder_errors(run->source_state, NULL, NULL)
				  : 0);
}

static void on_metrics(void *ctx, const struct roll_http_query *query,
		       struct roll_http_reply *reply)
{
	struct roll_run *run = ctx;

	(void)query;
	set_gauges(run);
	reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
	roll_metrics_print(run->metrics, &reply->body);
}

static void on_healthz(void *ctx, const struct roll_http_query *query,
		       struct roll_http_reply *reply)
{
	(void)ctx;
	(void)query;
	roll_buf_add_c(&reply->body, "ok\n");
}

static void on_readyz(void *ctx, const struct roll_http_query *query, struct roll_http_reply *reply)
{
	struct roll_run *run = ctx;
	struct roll_engine_counts counts;
	const char *why = NULL;

	(void)query;
	roll_engine_counts(run->engine, &counts);
	if (!counts.is_complete)
		why = "no complete view yet\n";
	else if (!counts.is_writable)
		why = "the view cannot be written\n";
	else if (!counts.is_reachable)
		why = "the source cannot be read\n";
	if (why)
		reply->status = 503;
	roll_buf_add_c(&reply->body, why ? why : "ok\n");
}

enum roll_status roll_run_attach_health(struct roll_run *run)
{
	enum roll_status status;

	status = roll_httpd_handle(run->httpd, "/metrics", on_metrics, run);
	if (!status)
		status = roll_httpd_handle(run->httpd, "/healthz", on_healthz, run);
	if (!status)
		status = roll_httpd_handle(run->httpd, "/readyz", on_readyz, run);
	return status;
}
