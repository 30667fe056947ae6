/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sync/run.h"
#include "view/stat.h"

/*
 * What --http tells programs. Gauges are set when somebody looks; nothing here takes longer with
 * more objects.
 */

/* An API server that restarts is back sooner: no reason to take a pod away meanwhile. */
#define GRACE_MS 60000

struct roll_health {
	struct roll_metric *objects, *findings, *rejected, *unreadable;
	struct roll_metric *zones, *names, *contested, *claims;
	struct roll_metric *is_complete, *is_reachable, *is_live, *is_writable;
	struct roll_metric *confirmed, *confirmed_age, *revision, *held;
	struct roll_metric *generation, *used_bytes, *map_bytes, *readers;
};

static struct roll_metric *gauge(struct roll_run *run, const char *name, const char *help,
				 const char *label1, const char *label2)
{
	return roll_metric_gauge(run->metrics, name, help, label1, label2);
}

static void register_gauges(struct roll_run *run)
{
	struct roll_health *h = run->health;
	struct roll_metric *info = gauge(run, "rollcall_sync_build_info",
					 "Always 1; the label tells the version.", "version", NULL);

	roll_metric_set(info, PACKAGE_VERSION, NULL, 1);
	h->is_complete =
		gauge(run, "rollcall_sync_complete",
		      "1 once a complete view exists; until then questions fail.", NULL, NULL);
	h->is_reachable = gauge(run, "rollcall_sync_source_reachable",
				"1 while the source can be read.", NULL, NULL);
	h->is_live =
		gauge(run, "rollcall_sync_source_live",
		      "1 while all of the source is watched and nothing is behind.", NULL, NULL);
	h->is_writable =
		gauge(run, "rollcall_sync_view_writable", "1 while commits work.", NULL, NULL);
	h->confirmed =
		gauge(run, "rollcall_sync_confirmed_timestamp_seconds",
		      "When the view was last known to be in step with the source, 0: never.", NULL,
		      NULL);
	h->confirmed_age = gauge(run, "rollcall_sync_confirmed_age_seconds",
				 "Time since then; since 1970 if never.", NULL, NULL);
	h->revision =
		gauge(run, "rollcall_sync_revision",
		      "resourceVersion up to which the view holds a resource.", "resource", NULL);
	h->objects = gauge(run, "rollcall_sync_objects", "Objects in the view.", "kind", NULL);
	h->rejected = gauge(run, "rollcall_sync_objects_rejected",
			    "Objects without a usable identity.", NULL, NULL);
	h->unreadable = gauge(run, "rollcall_sync_manifests_unreadable",
			      "Manifests that cannot be read; their last good content is served.",
			      NULL, NULL);
	h->findings = gauge(run, "rollcall_sync_findings",
			    "What is wrong (fault) or remarkable (warning) about objects; of one "
			    "object the first 100.",
			    "severity", "reason");
	h->zones = gauge(run, "rollcall_sync_zones",
			 "DNSZones by what became of them; counted again and again, not at once.",
			 "state", NULL);
	h->names = gauge(run, "rollcall_sync_names",
			 "Names in zones that are served; 0 until they were counted.", NULL, NULL);
	h->contested = gauge(run, "rollcall_sync_names_contested",
			     "Of these, names that some object claims in vain.", NULL, NULL);
	h->claims = gauge(run, "rollcall_sync_claims",
			  "Claims of record sets to names in served zones, by what became of them.",
			  "verdict", NULL);
	h->held = gauge(run, "rollcall_sync_removals_held",
			"Removals that wait for a second list, or with --brake for approval.", NULL,
			NULL);
	h->generation =
		gauge(run, "rollcall_view_generation", "Commit that is answered from.", NULL, NULL);
	h->used_bytes = gauge(run, "rollcall_view_used_bytes", "Size of the view.", NULL, NULL);
	h->map_bytes = gauge(run, "rollcall_view_map_bytes",
			     "Size that the view can take before its map is doubled.", NULL, NULL);
	h->readers = gauge(run, "rollcall_view_readers",
			   "Reader slots of the view in use, this program's included.", NULL, NULL);
}

static void set(struct roll_metric *metric, double value)
{
	roll_metric_set(metric, NULL, NULL, value);
}

static void set_engine(struct roll_run *run, const struct roll_engine_counts *counts)
{
	struct roll_health *h = run->health;
	int64_t age_ms = roll_clock_wall_ms(&roll_clock_system) - counts->confirmed_ms;
	bool is_live = counts->is_reachable;

	if (run->source->is_live)
		is_live = is_live && run->source->is_live(run->source_state);
	set(h->is_complete, counts->is_complete);
	set(h->is_reachable, counts->is_reachable);
	set(h->is_live, is_live);
	set(h->is_writable, counts->is_writable);
	set(h->confirmed, (double)counts->confirmed_ms / 1000);
	set(h->confirmed_age, age_ms > 0 ? (double)age_ms / 1000 : 0);
	set(h->rejected, (double)counts->rejected);
	set(h->held, (double)counts->held_objects);
	set(h->unreadable,
	    run->source->unreadable ? (double)run->source->unreadable(run->source_state) : 0);
	for (int i = 0; i < ROLL_KIND_COUNT; i++)
		roll_metric_set(h->objects, roll_kind_text((enum roll_kind)i), NULL,
				(double)counts->objects[i]);
	for (int i = 0; i < ROLL_REASON_COUNT; i++) {
		const char *reason = roll_reason_text((enum roll_reason)i);

		roll_metric_set(h->findings, "fault", reason, (double)counts->found[ROLL_FAULT][i]);
		roll_metric_set(h->findings, "warning", reason,
				(double)counts->found[ROLL_WARNING][i]);
	}
}

static void set_census(struct roll_run *run)
{
	const struct roll_census_counts *counts = roll_census_counts(run->census);
	struct roll_health *h = run->health;

	if (!counts->is_there)
		return;
	for (int i = 0; i < ROLL_ZONE_UNCLAIMED; i++)
		roll_metric_set(h->zones, roll_zone_state_text((enum roll_zone_state)i), NULL,
				(double)counts->zones[i]);
	for (int i = 0; i <= ROLL_VERDICT_CONFLICT; i++)
		roll_metric_set(h->claims, roll_verdict_text((enum roll_verdict)i), NULL,
				(double)counts->claims[i]);
	set(h->names, (double)counts->names);
	set(h->contested, (double)counts->contested);
}

static void set_view(struct roll_run *run)
{
	struct roll_health *h = run->health;
	struct roll_view_stat stat;
	struct roll_snap *snap = NULL;

	if (roll_snap_begin(roll_writer_view(run->writer), false, &snap, NULL))
		return;
	set(h->generation, (double)roll_snap_head(snap)->generation);
	if (!roll_snap_stat(snap, &stat)) {
		set(h->used_bytes, (double)stat.used_bytes);
		set(h->map_bytes, (double)stat.map_bytes);
		set(h->readers, stat.readers);
	}
	roll_snap_end(snap);
}

static void on_what(void *ctx, const char *what)
{
	struct roll_run *run = ctx;
	struct roll_buf text;
	uint64_t revision;

	roll_buf_init(&text, 64);
	if (!roll_engine_position(run->engine, roll_str_c(what), &text) &&
	    !roll_str_u64(roll_buf_str(&text), UINT64_MAX, &revision))
		roll_metric_set(run->health->revision, what, NULL, (double)revision);
	roll_buf_fini(&text);
}

static void on_metrics(void *ctx, const struct roll_http_query *query,
		       struct roll_http_reply *reply)
{
	struct roll_engine_counts counts;
	struct roll_run *run = ctx;

	(void)query;
	roll_engine_counts(run->engine, &counts);
	set_engine(run, &counts);
	set_census(run);
	set_view(run);
	if (run->source->each_what)
		run->source->each_what(run, on_what, run);
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

/* --- what is wrong --- */

struct troubles {
	struct roll_trouble *items;
	size_t count;
};

static void add(struct troubles *list, bool is_unready, const char *fmt, ...) ROLL_PRINTF(3, 4);

static void add(struct troubles *list, bool is_unready, const char *fmt, ...)
{
	struct roll_trouble *trouble;
	va_list args;

	if (list->count == ROLL_TROUBLES_MAX)
		return;
	trouble = &list->items[list->count++];
	trouble->is_unready = is_unready;
	va_start(args, fmt);
	vsnprintf(trouble->text, sizeof trouble->text, fmt, args);
	va_end(args);
}

static void add_unreachable(struct troubles *list, const struct roll_engine_counts *counts)
{
	bool is_over = counts->unreachable_for_ms >= GRACE_MS;
	char since[ROLL_TIME_SIZE];

	add(list, is_over,
	    "the source cannot be read since %s%s: %s; the view stays as it was then, and is "
	    "served",
	    roll_time_print(counts->unreachable_ms / 1000, since),
	    is_over ? "" : " (this counts as not ready after 60 s)", counts->why_unreachable);
}

/* Replicas that cannot be asked here may do better: a warning, even if it goes for all of them. */
static void add_status(struct troubles *list, const struct roll_run *run)
{
	const char *lease = NULL, *write = NULL;

	if (!run->source->status_troubles)
		return;
	run->source->status_troubles(run->source_state, &lease, &write);
	if (lease)
		add(list, false,
		    "the Lease cannot be had: %s; answers are right, but a replica without it "
		    "writes no status and no events (the rights: pdns-conf/kubernetes/rbac.yaml)",
		    lease);
	if (write)
		add(list, false,
		    "status cannot be written: %s; answers are right, but objects do not tell what "
		    "became of them (the rights: pdns-conf/kubernetes/rbac.yaml)",
		    write);
}

size_t roll_run_troubles(struct roll_run *run, struct roll_trouble troubles[ROLL_TROUBLES_MAX])
{
	struct troubles list = {troubles, 0};
	struct roll_engine_counts counts;
	size_t unreadable = 0;
	char dir[300];

	roll_engine_counts(run->engine, &counts);
	if (run->source->unreadable)
		unreadable = run->source->unreadable(run->source_state);
	if (!counts.is_complete)
		add(&list, true,
		    "no complete view yet: the source was not read to its end; rollcalld answers "
		    "from the view before, if there is one, and fails otherwise");
	if (!counts.is_writable)
		add(&list, true,
		    "the view cannot be written (see commit-failed in the log); it is served as "
		    "it was before");
	if (!counts.is_reachable)
		add_unreachable(&list, &counts);
	if (counts.held_objects)
		add(&list, false,
		    "removals that are held: %" PRIu64 "; a list that lacks so many objects must "
		    "be confirmed by a second one, with --brake by you: touch %s/approve",
		    counts.held_objects,
		    roll_str_show(roll_str_c(run->options.view), dir, sizeof dir));
	if (unreadable)
		add(&list, false,
		    "manifests that cannot be read: %zu; what they last held is served",
		    unreadable);
	if (counts.rejected)
		add(&list, false,
		    "objects without a usable name or namespace: %" PRIu64 "; they are left out "
		    "(see object-rejected in the log)",
		    counts.rejected);
	/* A server that cannot be read takes no status either, which goes without saying. */
	if (counts.is_reachable)
		add_status(&list, run);
	return list.count;
}

static void on_readyz(void *ctx, const struct roll_http_query *query, struct roll_http_reply *reply)
{
	struct roll_trouble troubles[ROLL_TROUBLES_MAX];
	size_t count = roll_run_troubles(ctx, troubles);

	(void)query;
	for (size_t i = 0; i < count; i++) {
		if (troubles[i].is_unready)
			reply->status = 503;
	}
	roll_buf_add_c(&reply->body, reply->status == 503 ? "not ready\n" : "ok\n");
	for (size_t i = 0; i < count; i++)
		roll_buf_printf(&reply->body, "%s: %s\n",
				troubles[i].is_unready ? "error" : "warning", troubles[i].text);
}

enum roll_status roll_run_attach_health(struct roll_run *run)
{
	enum roll_status status;

	run->health = calloc(1, sizeof *run->health);
	if (!run->health)
		return ROLL_ENOMEM;
	register_gauges(run);
	status = roll_httpd_handle(run->httpd, "/metrics", on_metrics, run);
	if (!status)
		status = roll_httpd_handle(run->httpd, "/healthz", on_healthz, run);
	if (!status)
		status = roll_httpd_handle(run->httpd, "/readyz", on_readyz, run);
	return status;
}

void roll_run_detach_health(struct roll_run *run)
{
	free(run->health);
	run->health = NULL;
}
