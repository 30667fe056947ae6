/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "sync/page.h"
#include "sync/run.h"

/* rollcall-sync: keeps the view equal to a source. Only wiring here. */

#define WORK_MS 500
#define PURGE_WAIT_MS 10000 /* --once: until the control socket has been told */
#define APPROVAL "approve"  /* in the view's directory: lets a list pass the brake, once */

/* --- callbacks of the engine --- */

static void on_commit(void *ctx, const struct roll_changes *changes)
{
	struct roll_run *run = ctx;

	if (run->purge)
		roll_purge_changed(run->purge, changes);
}

static void on_progress(void *ctx, uint64_t objects_read, uint64_t objects_committed)
{
	struct roll_run *run = ctx;

	roll_progress_tell(&run->progress, objects_read, objects_committed);
	if (run->options.is_once && run->options.manifests)
		roll_run_pump(run);
}

static bool is_approved(void *ctx)
{
	const struct roll_run *run = ctx;
	size_t size = strlen(run->options.view) + sizeof "/" APPROVAL;
	char *path = malloc(size);
	bool is_there;

	if (!path)
		return false;
	snprintf(path, size, "%s/%s", run->options.view, APPROVAL);
	is_there = unlink(path) == 0;
	if (!is_there)
		roll_log(ROLL_WARN, "brake", "remedy=\"to let it pass: touch %s\"", path);
	free(path);
	return is_there;
}

/* --- the loop --- */

static void on_work(void *ctx)
{
	struct roll_run *run = ctx;
	struct roll_engine_counts counts;
	bool more = roll_engine_work(run->engine);

	roll_engine_counts(run->engine, &counts);
	if (counts.is_complete) {
		roll_progress_end(&run->progress);
		if (!run->is_ready)
			roll_notify("READY=1");
		run->is_ready = true;
	}
	/* Whoever watches over this program starts it again, and then a new view is built. */
	if (counts.is_damaged) {
		run->is_damaged = true;
		roll_loop_stop(run->loop);
	}
	roll_timer_set(run->work, more ? 0 : WORK_MS);
}

static void on_stop(void *ctx)
{
	struct roll_run *run = ctx;

	run->is_stopping = true;
	roll_notify("STOPPING=1");
	if (run->engine)
		roll_engine_stop(run->engine);
	roll_loop_stop(run->loop);
}

static void on_reload(void *ctx)
{
	struct roll_run *run = ctx;

	roll_log(ROLL_INFO, "reload", "reason=\"everything is read again\"");
	if (run->engine && !run->options.is_once)
		run->source->again(run, run->source_state);
}

/* --- start and stop --- */

static enum roll_status open_view(struct roll_run *run, struct roll_err *err)
{
	const struct roll_sync_options *o = &run->options;
	struct roll_writer_conf writer = {
		.dir = o->view, .controller = o->controller, .clock = &roll_clock_system};
	struct roll_guard_conf guard = {.brake_percent = (unsigned)o->brake_percent};
	struct roll_engine_conf engine = {
		.is_cluster = !o->manifests,
		.namespace_count = o->namespaces.count,
		.guard = &guard,
		.clock = &roll_clock_system,
		.metrics = run->metrics,
		.on_commit = on_commit,
		.on_progress = on_progress,
		.is_approved = is_approved,
		.ctx = run,
	};
	enum roll_status status;
	bool is_fresh = false;
	char shown[256];

	status = roll_writer_open(&writer, &run->writer, &is_fresh, err);
	if (status)
		return status;
	roll_log(ROLL_INFO, is_fresh ? "view-new" : "view-opened", "dir=\"%s\"",
		 roll_str_show(roll_str_c(o->view), shown, sizeof shown));
	engine.writer = run->writer;
	return roll_engine_new(&engine, &run->engine, err);
}

static enum roll_status start(struct roll_run *run, struct roll_err *err)
{
	struct roll_loop_hooks hooks = {on_stop, on_reload, run};
	struct roll_purge_conf purge = {.clock = &roll_clock_system,
					.socket = run->options.pdns_control};
	enum roll_status status;

	run->source = run->options.manifests ? &roll_run_folder : &roll_run_cluster;
	status = roll_loop_new(&hooks, &run->loop, err);
	if (status)
		return status;
	run->metrics = roll_metrics_new();
	run->work = roll_timer_new(run->loop, on_work, run);
	if (!run->metrics || !run->work)
		return roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	/* A source that cannot be read leaves the view untouched. */
	status = run->source->open(run, &run->source_state, err);
	if (!status)
		status = open_view(run, err);
	if (!status && purge.socket) {
		purge.loop = run->loop;
		purge.metrics = run->metrics;
		status = roll_purge_new(&purge, &run->purge, err);
	}
	if (!status && run->options.http) {
		status = roll_httpd_new(run->loop, run->options.http, &run->httpd, err);
		run->census = roll_census_new(run->loop, roll_writer_view(run->writer),
					      &roll_clock_system);
		if (!status && !run->census)
			status = roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
		if (!status)
			status = roll_run_attach_health(run);
		if (!status)
			status = roll_page_attach(run);
	}
	return status;
}

static void stop(struct roll_run *run)
{
	roll_progress_end(&run->progress);
	if (run->source)
		run->source->close(run->source_state);
	roll_httpd_free(run->httpd);
	roll_run_detach_health(run);
	roll_census_free(run->census);
	roll_purge_free(run->purge);
	roll_engine_free(run->engine);
	roll_writer_close(run->writer);
	roll_timer_free(run->work);
	roll_loop_free(run->loop);
	roll_metrics_free(run->metrics);
}

/* --- once --- */

static void on_finding(void *ctx, const char *object, const char *path, const char *reason,
		       const char *text)
{
	size_t *count = ctx;

	++*count;
	roll_run_tell(object, path, reason, text);
}

static void wait_for_purge(struct roll_run *run)
{
	int64_t until = roll_clock_monotonic_ms(&roll_clock_system) + PURGE_WAIT_MS;

	/* Where no pdns_server runs there is no cache to purge. */
	while (run->purge && !roll_purge_is_idle(run->purge) &&
	       !roll_purge_is_missing(run->purge) && !run->is_stopping &&
	       roll_clock_monotonic_ms(&roll_clock_system) < until) {
		roll_timer_set(run->work, WORK_MS);
		if (event_base_loop(roll_loop_base(run->loop), EVLOOP_ONCE))
			break;
	}
}

static enum roll_exit once(struct roll_run *run, struct roll_err *err)
{
	enum roll_status status = run->source->once(run, run->source_state, err);
	size_t count = 0;

	roll_progress_end(&run->progress);
	if (status)
		return ROLL_EXIT_SOURCE;
	while (!run->is_stopping && roll_engine_work(run->engine))
		roll_run_pump(run);
	if (run->source->findings)
		count += run->source->findings(run, run->source_state);
	if (roll_engine_findings(run->engine, on_finding, &count))
		return ROLL_EXIT_SOURCE;
	wait_for_purge(run);
	return count ? ROLL_EXIT_FINDINGS : ROLL_EXIT_OK;
}

int main(int argc, char **argv)
{
	struct roll_run run = {.loop = NULL};
	struct roll_err err = {.text = ""};
	enum roll_level level = ROLL_INFO;
	enum roll_exit exit_code = ROLL_EXIT_OK;
	enum roll_status status;
	char where[256], text[400];

	status = roll_sync_options_parse(argc, argv, &run.options);
	if (status)
		return status == ROLL_ECANCELED ? ROLL_EXIT_OK : ROLL_EXIT_USAGE;
	if (roll_level_parse(run.options.log_level, &level))
		return ROLL_EXIT_USAGE;
	roll_log_init("rollcall-sync", level,
		      strcmp(run.options.log_format, "json") == 0 ? ROLL_LOG_JSON : ROLL_LOG_KV);
	roll_progress_init(&run.progress, &roll_clock_system, stderr, isatty(STDERR_FILENO));
	status = start(&run, &err);
	if (!status && run.options.is_once) {
		exit_code = once(&run, &err);
	} else if (!status) {
		status = run.source->start(&run, run.source_state, &err);
		if (!status) {
			on_work(&run);
			status = roll_loop_run(run.loop);
			if (!status && run.is_damaged)
				status = roll_err_set(&err, ROLL_ECORRUPT, run.options.view,
						      "the view is damaged");
		}
	}
	if (status)
		exit_code = ROLL_EXIT_SOURCE;
	if (exit_code == ROLL_EXIT_SOURCE)
		roll_log(
			ROLL_ERROR, run.is_stopping ? "stopped" : "failed",
			"where=\"%s\" reason=\"%s\"",
			roll_str_show(roll_str_c(err.where), where, sizeof where),
			roll_str_show(roll_str_c(err.text[0] ? err.text : roll_status_text(status)),
				      text, sizeof text));
	stop(&run);
	return (int)exit_code;
}
