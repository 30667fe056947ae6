/* SPDX-License-Identifier: Apache-2.0 */
#include "server/health.h"

static const char *const kind_names[ROLL_ROW_KINDS] = {
	[ROLL_ROW_CLASS] = "DNSZoneClass",
	[ROLL_ROW_ZONE] = "DNSZone",
	[ROLL_ROW_RECORDSET] = "DNSRecordSet",
};

void roll_health_init(struct roll_health *health)
{
	health->ready = roll_metric_gauge(health->metrics, "rollcall_server_ready",
					  "1 if queries are answered, 0 if they fail.", NULL, NULL);
	health->generation = roll_metric_gauge(health->metrics, "rollcall_view_generation",
					       "Commit that is answered from.", NULL, NULL);
	health->age = roll_metric_gauge(health->metrics, "rollcall_view_confirmed_age_seconds",
					"Time since the source was last known to be in step.", NULL,
					NULL);
	health->confirmed = roll_metric_gauge(
		health->metrics, "rollcall_view_confirmed_timestamp_seconds",
		"When the source was last known to be in step, 0: never.", NULL, NULL);
	health->objects = roll_metric_gauge(health->metrics, "rollcall_view_objects",
					    "Objects in the view.", "kind", NULL);
	health->names = roll_metric_gauge(health->metrics, "rollcall_view_names",
					  "Names in the view, served or not.", NULL, NULL);
	health->pending = roll_metric_gauge(health->metrics, "rollcall_server_pending_bytes",
					    "Replies that PowerDNS has not taken yet.", NULL, NULL);
	roll_metric_set(roll_metric_gauge(health->metrics, "rollcall_server_build_info",
					  "Always 1; the label tells the version.", "version",
					  NULL),
			PACKAGE_VERSION, NULL, 1);
}

/* Gauges of the view are read when they are looked at: they cost nothing otherwise. */
static void refresh(struct roll_health *health)
{
	bool is_ready = roll_methods_ready(health->methods, NULL) == ROLL_OK;
	const struct roll_head *head;
	struct roll_snap *snap = NULL;
	int64_t age_ms;

	roll_methods_tell(health->methods);
	roll_conns_tell(health->conns);
	roll_metric_set(health->ready, NULL, NULL, is_ready);
	roll_metric_set(health->pending, NULL, NULL,
			(double)roll_conns_pending_bytes(health->conns));
	if (roll_snap_begin(health->view, true, &snap, NULL))
		return;
	head = roll_snap_head(snap);
	age_ms = roll_clock_wall_ms(health->clock) - head->confirmed_ms;
	roll_metric_set(health->generation, NULL, NULL, (double)head->generation);
	roll_metric_set(health->age, NULL, NULL, age_ms > 0 ? (double)age_ms / 1000 : 0);
	roll_metric_set(health->confirmed, NULL, NULL, (double)head->confirmed_ms / 1000);
	roll_metric_set(health->names, NULL, NULL, (double)head->name_count);
	for (size_t i = 0; i < ROLL_ROW_KINDS; i++)
		roll_metric_set(health->objects, kind_names[i], NULL,
				(double)head->object_count[i]);
	roll_snap_end(snap);
}

static void show_metrics(void *ctx, const struct roll_http_query *query,
			 struct roll_http_reply *reply)
{
	struct roll_health *health = ctx;

	(void)query;
	refresh(health);
	reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
	roll_metrics_print(health->metrics, &reply->body);
}

static void show_health(void *ctx, const struct roll_http_query *query,
			struct roll_http_reply *reply)
{
	(void)ctx;
	(void)query;
	roll_buf_add_c(&reply->body, "ok\n");
}

static void show_ready(void *ctx, const struct roll_http_query *query,
		       struct roll_http_reply *reply)
{
	struct roll_health *health = ctx;

	(void)query;
	if (roll_methods_ready(health->methods, NULL))
		reply->status = 503;
	roll_methods_status(health->methods, &reply->body);
	roll_buf_add_char(&reply->body, '\n');
}

enum roll_status roll_health_attach(struct roll_health *health, struct roll_httpd *httpd)
{
	enum roll_status status;

	status = roll_httpd_handle(httpd, "/metrics", show_metrics, health);
	if (!status)
		status = roll_httpd_handle(httpd, "/healthz", show_health, health);
	if (!status)
		status = roll_httpd_handle(httpd, "/readyz", show_ready, health);
	return status;
}
