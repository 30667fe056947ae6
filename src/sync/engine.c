/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "sync/engine_state.h"

#define CONFIRM_EVERY_MS 5000
#define READERS_EVERY_MS 30000
#define SWEEP_ROWS 1000
#define SLICE_LIMIT_BYTES ((size_t)8 << 20) /* flushed long before */
#define GROW_MAX 40			    /* doublings: more than any address space */

int64_t roll_engine_now_ms(const struct roll_engine *engine)
{
	return roll_clock_wall_ms(engine->conf.clock);
}

/* --- transactions --- */

static void free_changes(struct roll_changes *changes)
{
	free((void *)changes->names);
	free((void *)changes->domains);
	free((void *)changes->zones_changed);
	*changes = (struct roll_changes){0};
}

static const struct roll_name *copy_names(const struct roll_name *names, size_t *count)
{
	struct roll_name *copy = *count ? calloc(*count, sizeof *copy) : NULL;

	if (copy)
		memcpy(copy, names, *count * sizeof *copy);
	else
		*count = 0;
	return copy;
}

/* They are for purging caches: without memory fewer of them do no harm to the view. */
static void copy_changes(struct roll_engine *engine, struct roll_txn *txn)
{
	struct roll_changes *to = &engine->changes;

	free_changes(to);
	if (!engine->conf.on_commit || engine->is_building)
		return;
	*to = *roll_txn_changes(txn);
	to->names = copy_names(to->names, &to->name_count);
	to->domains = copy_names(to->domains, &to->domain_count);
	to->zones_changed = copy_names(to->zones_changed, &to->zones_changed_count);
}

static void note_head(struct roll_engine *engine, struct roll_txn *txn)
{
	const struct roll_head *head = roll_snap_head(roll_txn_snap(txn));
	size_t i;

	for (i = 0; i < ROLL_KIND_COUNT; i++)
		engine->objects[i] = head->object_count[i];
}

static void add_delta(struct roll_apply_delta *to, const struct roll_apply_delta *delta)
{
	to->faults += delta->faults;
	to->warnings += delta->warnings;
	for (size_t i = 0; i < 2; i++) {
		for (size_t k = 0; k < ROLL_REASON_COUNT; k++)
			to->kept[i][k] += delta->kept[i][k];
	}
}

/* Finer than the clock that is injected: commits in memory take microseconds. */
static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static enum roll_status commit(struct roll_engine *engine, struct roll_txn *txn,
			       struct roll_err *err)
{
	double began = seconds_now();
	uint64_t before[ROLL_KIND_COUNT];
	struct roll_apply_delta delta;
	enum roll_status status;

	if (engine->is_identity_new)
		roll_txn_set_source(txn, roll_buf_str(&engine->identity));
	if (!roll_txn_is_changed(txn)) {
		roll_txn_abort(txn);
		return ROLL_OK;
	}
	copy_changes(engine, txn);
	memcpy(before, engine->objects, sizeof before);
	note_head(engine, txn);
	status = roll_txn_commit(txn, err);
	delta = roll_apply_take_delta(engine->apply);
	if (status) {
		memcpy(engine->objects, before, sizeof before);
		return status;
	}
	engine->is_identity_new = false;
	roll_engine_noted(engine);
	add_delta(&engine->found, &delta);
	roll_metric_add(engine->m_commits, NULL, NULL, 1);
	roll_metric_observe(engine->m_commit_seconds, NULL, seconds_now() - began);
	if (engine->conf.on_commit && !engine->is_building)
		engine->conf.on_commit(engine->conf.ctx, &engine->changes);
	return ROLL_OK;
}

/* After ROLL_ESTALE of roll_engine_put: prepare the zone that asked for it. */
static enum roll_status slice(struct roll_engine *engine, struct roll_err *err)
{
	struct roll_decoded decoded;
	enum roll_status status;
	uint32_t number = 0;

	status = roll_engine_decode(engine, engine->sliced, &decoded);
	if (!status)
		status = roll_apply_slices(engine->apply, engine->conf.writer, &decoded.object,
					   &number, err);
	if (!status)
		roll_apply_use_number(engine->apply, roll_apply_key(engine->apply, &decoded.object),
				      number);
	json_decref(engine->sliced);
	engine->sliced = NULL;
	return status;
}

static void report(struct roll_engine *engine, enum roll_status status, const struct roll_err *err)
{
	char shown[256];

	if (status == ROLL_OK) {
		if (!engine->is_writable)
			roll_log(ROLL_INFO, "view-writable", "reason=\"commits work again\"");
		engine->is_writable = true;
		return;
	}
	engine->is_writable = false;
	roll_metric_add(engine->m_errors, NULL, NULL, 1);
	roll_log(ROLL_ERROR, "commit-failed", "status=\"%s\" reason=\"%s\"",
		 roll_status_text(status),
		 roll_str_show(roll_str_c(err->text), shown, sizeof shown));
}

static void damaged(struct roll_engine *engine)
{
	engine->is_damaged = true;
	roll_writer_mark_damaged(engine->conf.writer);
	roll_log(ROLL_ERROR, "view-damaged", "remedy=\"restart: a new view is then built\"");
}

enum roll_status roll_engine_run(struct roll_engine *engine, roll_engine_fn fn, void *ctx)
{
	struct roll_err err = {0};
	enum roll_status status;
	struct roll_txn *txn;
	unsigned grown = 0;
	bool is_ours; /* fn itself gave up; nothing is wrong with the view */

	/* What stands behind a new view that could not be begun is not to be written to. */
	if (engine->is_building && !roll_writer_is_rebuilding(engine->conf.writer))
		return ROLL_EIO;
	for (;;) {
		is_ours = false;
		status = roll_txn_begin(engine->conf.writer, &txn, &err);
		if (!status) {
			roll_apply_take_delta(engine->apply);
			engine->is_noted = false;
			status = fn(engine, txn, ctx);
			is_ours = status && !roll_txn_status(txn);
			if (status)
				roll_txn_abort(txn);
			else
				status = commit(engine, txn, &err);
		}
		if (status == ROLL_EFULL && grown++ < GROW_MAX) {
			status = roll_writer_grow(engine->conf.writer, &err);
			if (!status)
				continue;
			is_ours = false;
		}
		if (status == ROLL_ESTALE && engine->sliced) {
			status = slice(engine, &err);
			if (!status)
				continue;
			is_ours = false;
		}
		break;
	}
	json_decref(engine->sliced);
	engine->sliced = NULL;
	if (status == ROLL_ECORRUPT)
		damaged(engine);
	if (!status)
		roll_apply_use_number(engine->apply, roll_str_n("", 0), 0);
	if (!is_ours)
		report(engine, status, &err);
	return status;
}

/* --- confirmed and not --- */

static enum roll_status store_confirmed(struct roll_engine *engine, struct roll_txn *txn, void *ctx)
{
	(void)ctx;
	roll_txn_set_confirmed(txn, engine->confirmed_ms);
	return roll_engine_note(engine, txn, roll_str_n("", 0), roll_str_n("", 0), 0);
}

static void on_confirmed(void *ctx)
{
	struct roll_engine *engine = ctx;
	int64_t now = roll_engine_now_ms(engine);

	if (!engine->is_reachable)
		roll_log(ROLL_INFO, "source-reachable", "reason=\"in step again\"");
	engine->is_reachable = true;
	engine->unreachable_ms = 0;
	engine->why_unreachable[0] = '\0';
	/* What was told is not in the view, so it is not in step. */
	if (!engine->is_writable || engine->is_building)
		return;
	engine->confirmed_ms = now;
	/* A clock that was set back is as good a reason as one that has gone on. */
	if (now >= engine->confirmed_stored_ms &&
	    now - engine->confirmed_stored_ms < CONFIRM_EVERY_MS)
		return;
	if (!roll_engine_run(engine, store_confirmed, NULL))
		engine->confirmed_stored_ms = now;
}

static void on_unreachable(void *ctx, const char *why)
{
	struct roll_engine *engine = ctx;

	roll_str_show(roll_str_c(why), engine->why_unreachable, sizeof engine->why_unreachable);
	if (engine->is_reachable) {
		roll_log(ROLL_WARN, "source-unreachable", "reason=\"%s\"", engine->why_unreachable);
		engine->unreachable_ms = roll_engine_now_ms(engine);
		engine->unreachable_mono_ms = roll_clock_monotonic_ms(engine->conf.clock);
	}
	engine->is_reachable = false;
}

/* --- background --- */

static enum roll_status sweep(struct roll_engine *engine, struct roll_txn *txn, void *ctx)
{
	(void)engine;
	roll_txn_sweep(txn, SWEEP_ROWS, ctx);
	return roll_txn_status(txn);
}

bool roll_engine_work(struct roll_engine *engine)
{
	int64_t now = roll_clock_monotonic_ms(engine->conf.clock);
	bool more = false;

	if (now - engine->readers_checked_ms >= READERS_EVERY_MS) {
		roll_writer_check_readers(engine->conf.writer);
		engine->readers_checked_ms = now;
	}
	if (!engine->is_sweep_due || engine->is_building)
		return false;
	/* After an error there is a next time. */
	if (roll_engine_run(engine, sweep, &more))
		return false;
	engine->is_sweep_due = more;
	return more;
}

/* --- life --- */

static enum roll_status count_row(void *ctx, const struct roll_object_row *row)
{
	struct roll_engine *engine = ctx;

	roll_apply_count(&engine->found, row, 1);
	return ROLL_OK;
}

/* A view of a folder is no view of a cluster. */
static enum roll_status check_source(const struct roll_engine *engine, struct roll_str source,
				     struct roll_err *err)
{
	bool is_folder = roll_str_eq_c(source, "folder");

	if (source.n && is_folder == engine->conf.is_cluster)
		return roll_err_set(err, ROLL_EDENIED, NULL,
				    "the view was made from %s; give another --view, or remove it",
				    is_folder ? "a folder of manifests" : "a cluster");
	return ROLL_OK;
}

static enum roll_status load(struct roll_engine *engine, struct roll_err *err)
{
	const struct roll_head *head;
	struct roll_txn *txn = NULL;
	enum roll_status status;
	int i;

	status = roll_txn_begin(engine->conf.writer, &txn, err);
	if (status)
		return status;
	head = roll_snap_head(roll_txn_snap(txn));
	status = check_source(engine, head->source, err);
	if (status)
		goto out;
	roll_buf_add_str(&engine->identity, head->source);
	engine->confirmed_ms = engine->confirmed_stored_ms = head->confirmed_ms;
	note_head(engine, txn);
	for (i = 0; i < ROLL_ROW_KINDS && !status; i++)
		status = roll_snap_objects(roll_txn_snap(txn), (enum roll_row_kind)i,
					   roll_str_n("", 0), count_row, engine);
	if (!status)
		status = roll_engine_load_high_water(engine, txn);
	if (status == ROLL_ECORRUPT)
		damaged(engine);
	if (status)
		roll_err_set(err, status, NULL, "the view cannot be read: %s",
			     roll_status_text(status));
out:
	roll_txn_abort(txn);
	return status;
}

static void make_metrics(struct roll_engine *engine)
{
	static const double bounds[] = {1e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.05, 0.1, 0.5, 1, 5, 30};
	struct roll_metrics *metrics = engine->conf.metrics;

	if (!metrics)
		return;
	engine->m_commits = roll_metric_counter(metrics, "rollcall_sync_commits_total",
						"Transactions committed to the view.", NULL, NULL);
	engine->m_commit_seconds = roll_metric_histogram(metrics, "rollcall_sync_commit_seconds",
							 "Time to make a commit durable.", NULL,
							 bounds, sizeof bounds / sizeof *bounds);
	engine->m_errors = roll_metric_counter(metrics, "rollcall_sync_commit_errors_total",
					       "Commits that failed.", NULL, NULL);
	engine->m_events = roll_metric_counter(metrics, "rollcall_sync_news_total",
					       "Objects taken from the source.", "news", NULL);
	engine->m_lists =
		roll_metric_counter(metrics, "rollcall_sync_lists_total",
				    "Complete lists, by what became of them.", "what", "result");
	engine->m_removed = roll_metric_counter(metrics, "rollcall_sync_removed_total",
						"Objects removed from the view.", "by", NULL);
	engine->m_healed =
		roll_metric_counter(metrics, "rollcall_sync_healed_total",
				    "Differences that a repeated list found.", NULL, NULL);
}

enum roll_status roll_engine_new(const struct roll_engine_conf *conf, struct roll_engine **out,
				 struct roll_err *err)
{
	struct roll_engine *engine = calloc(1, sizeof *engine);
	enum roll_status status;

	if (!engine)
		return roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	engine->conf = *conf;
	if (conf->guard)
		engine->guard = *conf->guard;
	engine->conf.guard = &engine->guard;
	engine->sink = (struct roll_sink){
		.ctx = engine,
		.event_begin = roll_engine_event_begin,
		.event_put = roll_engine_event_put,
		.event_absent = roll_engine_event_absent,
		.event_end = roll_engine_event_end,
		.list_begin = roll_engine_list_begin,
		.list_put = roll_engine_list_put,
		.list_keep = roll_engine_list_keep,
		.list_end = roll_engine_list_end,
		.list_abort = roll_engine_list_abort,
		.confirmed = on_confirmed,
		.unreachable = on_unreachable,
	};
	engine->is_reachable = engine->is_writable = true;
	engine->is_stage_dirty = engine->is_sweep_due = true;
	engine->is_building = engine->was_building = roll_writer_is_rebuilding(conf->writer);
	roll_arena_init(&engine->decode, 1u << 20);
	roll_buf_init(&engine->bytes, 2 * ROLL_OBJECT_LIMIT_BYTES);
	roll_buf_init(&engine->key, 1024);
	roll_buf_init(&engine->identity, 1024);
	roll_buf_init(&engine->list.slice, SLICE_LIMIT_BYTES);
	engine->apply = roll_apply_new();
	status = engine->apply ? load(engine, err)
			       : roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	if (!status && !engine->identity.n) {
		roll_buf_add_c(&engine->identity, conf->is_cluster ? "cluster" : "folder");
		engine->is_identity_new = true;
	}
	if (status) {
		roll_engine_free(engine);
		return status;
	}
	make_metrics(engine);
	*out = engine;
	return ROLL_OK;
}

void roll_engine_free(struct roll_engine *engine)
{
	if (!engine)
		return;
	roll_list_close(engine);
	roll_engine_clear_ops(engine);
	free(engine->ops.items);
	roll_engine_clear_rejects(engine, true, roll_str_n("", 0));
	free(engine->rejects);
	free(engine->guarded);
	roll_engine_clear_positions(engine);
	roll_marks_clear(&engine->heeded);
	free_changes(&engine->changes);
	json_decref(engine->sliced);
	roll_buf_fini(&engine->list.slice);
	roll_buf_fini(&engine->identity);
	roll_buf_fini(&engine->key);
	roll_buf_fini(&engine->bytes);
	roll_arena_fini(&engine->decode);
	roll_apply_free(engine->apply);
	free(engine);
}

const struct roll_sink *roll_engine_sink(struct roll_engine *engine)
{
	return &engine->sink;
}

void roll_engine_stop(struct roll_engine *engine)
{
	engine->is_stopped = true;
}

enum roll_status roll_engine_identify(struct roll_engine *engine, struct roll_str identity,
				      struct roll_err *err)
{
	struct roll_str known = roll_buf_str(&engine->identity);
	char a[80], b[80];

	if (!identity.n || roll_str_eq(identity, known))
		return ROLL_OK;
	if (roll_str_eq_c(known, "cluster")) {
		roll_buf_reset(&engine->identity);
		roll_buf_add_str(&engine->identity, identity);
		engine->is_identity_new = true;
		return engine->identity.status;
	}
	return roll_err_set(err, ROLL_EDENIED, NULL,
			    "the view is of cluster %s, and this is cluster %s; give another "
			    "--view, or remove it",
			    roll_str_show(known, a, sizeof a),
			    roll_str_show(identity, b, sizeof b));
}

static uint64_t natural(int64_t n)
{
	return n > 0 ? (uint64_t)n : 0;
}

void roll_engine_counts(struct roll_engine *engine, struct roll_engine_counts *out)
{
	*out = (struct roll_engine_counts){
		.faults = natural(engine->found.faults),
		.warnings = natural(engine->found.warnings),
		.rejected = engine->reject_count + engine->rejects_dropped,
		.removed_by_list = engine->removed_by_list,
		.healed = engine->healed,
		.held = engine->held,
		.confirmed_ms = engine->confirmed_ms,
		.is_complete = !engine->is_building,
		.is_reachable = engine->is_reachable,
		.is_writable = engine->is_writable,
		.is_damaged = engine->is_damaged,
		.revision = engine->high_water,
		.unreachable_ms = engine->unreachable_ms,
		.why_unreachable = engine->why_unreachable,
	};
	if (!engine->is_reachable)
		out->unreachable_for_ms =
			roll_clock_monotonic_ms(engine->conf.clock) - engine->unreachable_mono_ms;
	memcpy(out->objects, engine->objects, sizeof out->objects);
	for (size_t i = 0; i < engine->guarded_count; i++)
		out->held_objects += engine->guarded[i].held;
	for (size_t i = 0; i < 2; i++) {
		for (size_t k = 0; k < ROLL_REASON_COUNT; k++)
			out->found[i][k] = natural(engine->found.kept[i][k]);
	}
}
