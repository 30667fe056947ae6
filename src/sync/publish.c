/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "sync/publish_state.h"
#include "sync/report.h"

#define API_BASE "/apis/" ROLL_API_GROUP "/" ROLL_API_VERSION
#define ARENA_LIMIT_BYTES ((size_t)64 << 20)
#define SPEC_LIMIT_BYTES (2 * ROLL_OBJECT_LIMIT_BYTES)
#define WORK_MS 250
#define PASS_RETRY_MS 30000
#define PASS_AT_MOST 1000 /* in the queue when a pass begins */
#define SUM_AT_ONCE 2000  /* record sets of a zone that are counted within one turn */
#define SUM_GOOD_MS 5000  /* ... and how long a count made in slices is good for */

static const enum roll_kind pass_kinds[] = {ROLL_KIND_ZONE, ROLL_KIND_RECORDSET};

/* --- records of a zone --- */

struct summing {
	uint64_t records;
	size_t left;
	char *after;
	bool has_failed;
};

static enum roll_status on_sum_row(void *ctx, const struct roll_object_row *row)
{
	struct summing *summing = ctx;

	summing->records += row->record_count;
	if (--summing->left)
		return ROLL_OK;
	free(summing->after);
	summing->after = malloc(row->key.n + 1);
	if (!summing->after)
		return ROLL_ENOMEM;
	memcpy(summing->after, row->key.p, row->key.n);
	summing->after[row->key.n] = '\0';
	return ROLL_EAGAIN;
}

static void forget_sum(struct roll_publish *publish)
{
	free(publish->sum.key);
	free(publish->sum.after);
	publish->sum = (struct roll_publish_sum){.key = NULL};
}

/*
 * Most zones are counted at once. A large one is counted a slice each time it is asked for, one
 * zone after the other; what changes meanwhile makes it be asked for again. EAGAIN: not yet.
 */
static enum roll_status sum_records(struct roll_publish *publish, struct roll_snap *snap,
				    struct roll_str key, uint64_t *out)
{
	int64_t now = roll_clock_monotonic_ms(publish->conf.clock);
	struct roll_publish_sum *sum = &publish->sum;
	struct summing summing = {.left = SUM_AT_ONCE};
	enum roll_status status;

	/* One that nobody asks for any more is in nobody's way. */
	if (sum->key && now - sum->touched_ms > SUM_GOOD_MS)
		forget_sum(publish);
	if (sum->key && !roll_str_eq_c(key, sum->key)) {
		status = roll_snap_recordsets_after(snap, key, roll_str_n(NULL, 0), on_sum_row,
						    &summing);
		*out = summing.records;
		free(summing.after);
		return status;
	}
	summing.records = sum->records;
	status =
		roll_snap_recordsets_after(snap, key, roll_str_c(sum->after), on_sum_row, &summing);
	*out = summing.records;
	if (status != ROLL_EAGAIN) {
		free(summing.after);
		forget_sum(publish);
		return status;
	}
	if (!sum->key) {
		sum->key = malloc(key.n + 1);
		if (sum->key) {
			memcpy(sum->key, key.p, key.n);
			sum->key[key.n] = '\0';
		}
	}
	free(sum->after);
	sum->after = summing.after;
	sum->records = summing.records;
	sum->touched_ms = now;
	if (!sum->key)
		forget_sum(publish);
	return ROLL_EAGAIN;
}

/* --- decisions --- */

static bool kind_of(struct roll_str resource, enum roll_kind *out)
{
	for (size_t i = 0; i < sizeof pass_kinds / sizeof *pass_kinds; i++) {
		*out = pass_kinds[i];
		if (roll_str_eq_c(resource, roll_kind_plural(*out)))
			return true;
	}
	return false;
}

#define KEY_SIZE 512 /* of "ns/name"; neither is longer than 253 bytes */

static struct roll_str key_of(const struct roll_patch_object *object, char out[KEY_SIZE])
{
	int n = snprintf(out, KEY_SIZE, ROLL_STR_FMT "/" ROLL_STR_FMT, ROLL_STR_ARG(object->ns),
			 ROLL_STR_ARG(object->name));

	return n > 0 && n < KEY_SIZE ? roll_str_n(out, (size_t)n) : roll_str_n("", 0);
}

/* Is the row about this spec? Generations count changes of it, also those that lists skip. */
static bool is_same_spec(const struct roll_object_row *row, const struct roll_patch_object *object)
{
	struct roll_buf text;
	bool is_same;

	if (!object->spec || row->generation == object->generation)
		return true;
	roll_buf_init(&text, SPEC_LIMIT_BYTES);
	is_same = !roll_json_print(object->spec, &text) &&
		  roll_str_eq(roll_buf_str(&text), row->spec);
	roll_buf_fini(&text);
	return is_same;
}

static enum roll_status wanted_status(struct roll_publish *publish, struct roll_snap *snap,
				      enum roll_kind kind, const struct roll_object_row *row,
				      json_t **out)
{
	enum roll_status status;
	uint64_t records = 0;

	if (kind == ROLL_KIND_RECORDSET)
		return roll_report_recordset(snap, row, out);
	status = sum_records(publish, snap, row->key, &records);
	return status ? status : roll_report_zone(snap, row, records, out);
}

/* ENOENT: nothing to say. What the view does not have (yet, or any more) is nobody's to report. */
static enum roll_status decide_in(struct roll_publish *publish, struct roll_snap *snap,
				  const struct roll_patch_object *object, json_t **out)
{
	struct roll_object_row row;
	enum roll_kind kind = ROLL_KIND_ZONE;
	enum roll_status status;
	json_t *wanted = NULL;
	char text[KEY_SIZE];

	if (!kind_of(object->resource, &kind))
		return ROLL_ENOENT;
	status = roll_snap_object(snap, (enum roll_row_kind)kind, key_of(object, text), &row);
	if (status)
		return status;
	if (!roll_str_eq(row.uid, object->uid) || !is_same_spec(&row, object))
		return ROLL_ENOENT;
	status = wanted_status(publish, snap, kind, &row, &wanted);
	if (publish->has_no_serial)
		json_object_del(wanted, "serial");
	if (object->has_no_room && json_object_get(wanted, "recordSets"))
		json_object_set_new(wanted, "recordSets", json_array());
	if (!status && roll_report_may_overwrite(wanted, object->status))
		status = roll_report_merge(wanted, object->status, object->generation,
					   roll_clock_wall_ms(publish->conf.clock) / 1000, out);
	json_decref(wanted);
	return !status && !*out ? ROLL_ENOENT : status;
}

/*
 * Who begins with a new view has not seen what became absent while nobody was there, and would give
 * out the serial that was published before: told by a record count that has changed without it.
 * What came instead has a revision of its own, and raises the serial by that.
 */
static bool is_unseen_change(const struct roll_publish *publish,
			     const struct roll_patch_object *object, const json_t *patch)
{
	return publish->conf.raise_serial && !publish->is_settled &&
	       json_object_get(object->status, "serial") && json_object_get(patch, "recordCount") &&
	       !json_object_get(patch, "serial");
}

static enum roll_status decide(void *ctx, const struct roll_patch_object *object, json_t **out)
{
	struct roll_publish *publish = ctx;
	char text[KEY_SIZE];
	struct roll_snap *snap;
	enum roll_status status;

	*out = NULL;
	status = roll_snap_begin(roll_writer_view(publish->conf.writer), true, &snap, NULL);
	if (status)
		return ROLL_ENOTREADY;
	status = decide_in(publish, snap, object, out);
	roll_snap_end(snap);
	if (!status && is_unseen_change(publish, object, *out) &&
	    publish->conf.raise_serial(publish->conf.ctx, key_of(object, text))) {
		json_decref(*out);
		*out = NULL;
		return ROLL_EAGAIN;
	}
	return status;
}

/* Nothing while the view lags behind: it would tell yesterday's news. */
static int64_t left_ms(void *ctx)
{
	struct roll_publish *publish = ctx;

	if (!publish->is_in_step)
		return 0;
	return publish->conf.left_ms ? publish->conf.left_ms(publish->conf.ctx) : INT64_MAX;
}

/* --- events --- */

/* The DNSZone of a record set, as long as the snapshot lasts. */
static void find_zone(struct roll_snap *snap, struct roll_str key, struct roll_event *event)
{
	struct roll_object_row row, zone;

	if (roll_snap_object(snap, ROLL_ROW_RECORDSET, key, &row) ||
	    roll_snap_object(snap, ROLL_ROW_ZONE, row.zone, &zone))
		return;
	event->zone_name = row.zone;
	roll_str_cut(&event->zone_name, '/');
	event->zone_uid = zone.uid;
}

static void note_event(struct roll_publish *publish, enum roll_kind kind,
		       const struct roll_patch_object *object, const json_t *status)
{
	struct roll_str note = roll_report_condition(status, "Programmed", "message");
	struct roll_snap *snap = NULL;
	char text[KEY_SIZE];
	struct roll_event event = {
		.kind = kind,
		.ns = object->ns,
		.name = object->name,
		.uid = object->uid,
		.reason = roll_report_event(kind, object->status, status),
		.is_warning = !roll_str_eq_c(roll_report_condition(status, "Programmed", "status"),
					     "True"),
		.note = note.n ? note.p : "", /* of a JSON string, so that a NUL is behind it */
	};

	if (!publish->conf.events || !event.reason)
		return;
	if (kind == ROLL_KIND_RECORDSET &&
	    !roll_snap_begin(roll_writer_view(publish->conf.writer), true, &snap, NULL))
		find_zone(snap, key_of(object, text), &event);
	roll_events_note(publish->conf.events, &event);
	roll_snap_end(snap);
}

/*
 * Servers drop members that the CRD does not know, without a word. To write one again and again
 * would be a storm of writes that change nothing.
 */
static void look_for_serial(struct roll_publish *publish, const json_t *status,
			    const json_t *present)
{
	if (publish->has_no_serial || !present || !json_object_get(status, "serial") ||
	    json_object_get(present, "serial"))
		return;
	publish->has_no_serial = true;
	roll_log(ROLL_WARN, "status-has-no-serial",
		 "reason=\"the CRD of DNSZone has no status.serial; replicas that start at "
		 "different "
		 "times may answer with different serials\"");
}

static void on_written(void *ctx, const struct roll_patch_object *object, const json_t *status,
		       const json_t *present)
{
	struct roll_publish *publish = ctx;
	enum roll_kind kind = ROLL_KIND_ZONE;

	if (!kind_of(object->resource, &kind))
		return;
	look_for_serial(publish, status, present);
	note_event(publish, kind, object, status);
}

/* --- the pass over all objects --- */

void roll_publish_pass(struct roll_publish *publish, int64_t delay_ms)
{
	int64_t at = roll_clock_monotonic_ms(publish->conf.clock) + delay_ms;

	if (!publish->is_leader)
		return;
	if (!publish->is_pass_due || at > publish->pass_at_ms)
		publish->pass_at_ms = at;
	publish->is_pass_due = true;
}

static void on_dropped(void *ctx)
{
	roll_publish_pass(ctx, 1000);
}

/* What says already what it should is not queued; so a pass over a settled cluster writes nothing.
 */
static enum roll_status on_pass_object(void *ctx, json_t *object)
{
	struct roll_publish *publish = ctx;
	const json_t *metadata = json_object_get(object, "metadata");
	enum roll_kind kind = pass_kinds[publish->pass_kind];
	struct roll_patch_object seen = {
		.resource = roll_str_c(roll_kind_plural(kind)),
		.ns = roll_json_str(metadata, "namespace"),
		.name = roll_json_str(metadata, "name"),
		.uid = roll_json_str(metadata, "uid"),
		.generation = json_integer_value(json_object_get(metadata, "generation")),
		.spec = json_object_get(object, "spec"),
		.status = json_object_get(object, "status"),
	};
	json_t *patch = NULL;

	/* Zones are few, and to count their records takes time. */
	if (kind == ROLL_KIND_ZONE || decide(publish, &seen, &patch) != ROLL_ENOENT)
		roll_patch_want(publish->patch, ROLL_PATCH_BULK, roll_kind_plural(kind), seen.ns,
				seen.name, object, false);
	json_decref(patch);
	return ROLL_OK;
}

static void start_list(struct roll_publish *publish);

static void on_pass_done(void *ctx, const struct roll_lister_result *result)
{
	struct roll_publish *publish = ctx;
	char shown[200];

	publish->lister = NULL;
	if (result->status) {
		roll_metric_add(publish->m_passes, "failed", NULL, 1);
		roll_log(ROLL_WARN, "status-pass-failed", "reason=\"%s\"",
			 roll_str_show(roll_str_c(result->text), shown, sizeof shown));
		roll_publish_pass(publish, PASS_RETRY_MS);
		return;
	}
	publish->pass_ns++;
	if (publish->pass_ns >= publish->conf.namespace_count) {
		publish->pass_ns = 0;
		publish->pass_kind++;
	}
	if ((size_t)publish->pass_kind < sizeof pass_kinds / sizeof *pass_kinds) {
		start_list(publish);
		return;
	}
	publish->has_passed = true;
	roll_metric_add(publish->m_passes, "complete", NULL, 1);
}

static void start_list(struct roll_publish *publish)
{
	enum roll_kind kind = pass_kinds[publish->pass_kind];
	struct roll_lister_spec spec = {
		.path = publish->path,
		.kind = roll_kind_text(kind),
		.api_version = ROLL_API_GROUP "/" ROLL_API_VERSION,
		.way = ROLL_LIST_PAGES,
		.on_item = on_pass_object,
		.on_done = on_pass_done,
		.ctx = publish,
	};

	if (publish->conf.namespace_count)
		snprintf(publish->path, sizeof publish->path, API_BASE "/namespaces/%s/%s",
			 publish->conf.namespaces[publish->pass_ns], roll_kind_plural(kind));
	else
		snprintf(publish->path, sizeof publish->path, API_BASE "/%s",
			 roll_kind_plural(kind));
	publish->lister = roll_lister_start(publish->conf.loop, publish->conf.api, &spec);
	if (!publish->lister)
		roll_publish_pass(publish, PASS_RETRY_MS);
}

/* Only when little else is to be done: what is new comes first. */
static void begin_pass(struct roll_publish *publish)
{
	if (!publish->is_pass_due || publish->lister || !publish->is_in_step ||
	    roll_patch_count(publish->patch) > PASS_AT_MOST ||
	    roll_clock_monotonic_ms(publish->conf.clock) < publish->pass_at_ms)
		return;
	publish->is_pass_due = false;
	publish->pass_kind = 0;
	publish->pass_ns = 0;
	start_list(publish);
}

/* --- life --- */

void roll_publish_want(struct roll_publish *publish, enum roll_patch_rank rank, enum roll_kind kind,
		       struct roll_str key, const json_t *known)
{
	struct roll_str name = key, ns = roll_str_cut(&name, '/');

	roll_patch_want(publish->patch, rank, roll_kind_plural(kind), ns, name, known, true);
}

static void on_work(void *ctx)
{
	struct roll_publish *publish = ctx;

	if (!publish->is_leader)
		return;
	if (roll_publish_follow(publish)) {
		roll_timer_set(publish->work, 0);
		return;
	}
	begin_pass(publish);
	publish->is_settled = publish->is_settled ||
			      (publish->has_passed && roll_patch_count(publish->patch) == 0);
	roll_timer_set(publish->work, WORK_MS);
}

void roll_publish_lead(struct roll_publish *publish, bool is_leader)
{
	if (publish->is_leader == is_leader)
		return;
	publish->is_leader = is_leader;
	roll_log(ROLL_INFO, "status-writing", "state=%s", is_leader ? "begins" : "ended");
	if (is_leader) {
		roll_publish_pass(publish, 0);
		roll_timer_set(publish->work, 0);
		return;
	}
	roll_timer_stop(publish->work);
	roll_lister_cancel(publish->lister);
	publish->lister = NULL;
	publish->is_pass_due = false;
	roll_publish_forget(publish);
	forget_sum(publish);
	roll_patch_clear(publish->patch);
	if (publish->conf.events)
		roll_events_clear(publish->conf.events);
}

const char *roll_publish_refusal(const struct roll_publish *publish)
{
	return roll_patch_refusal(publish->patch);
}

const struct roll_sink *roll_publish_sink(struct roll_publish *publish)
{
	return &publish->sink;
}

enum roll_status roll_publish_new(const struct roll_publish_conf *conf, struct roll_publish **out,
				  struct roll_err *err)
{
	struct roll_patch_conf patch = {
		.loop = conf->loop,
		.api = conf->api,
		.clock = conf->clock,
		.base = API_BASE,
		.metrics = conf->metrics,
		.decide = decide,
		.left_ms = left_ms,
		.on_written = on_written,
		.on_dropped = on_dropped,
	};
	struct roll_publish *publish = calloc(1, sizeof *publish);
	enum roll_status status;

	if (!publish)
		return roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	publish->conf = *conf;
	roll_arena_init(&publish->arena, ARENA_LIMIT_BYTES);
	roll_publish_sink_init(publish);
	patch.ctx = publish;
	status = roll_patch_new(&patch, &publish->patch, err);
	if (!status) {
		publish->work = roll_timer_new(conf->loop, on_work, publish);
		if (!publish->work)
			status = roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	}
	if (status) {
		roll_publish_free(publish);
		return status;
	}
	if (conf->metrics)
		publish->m_passes = roll_metric_counter(
			conf->metrics, "rollcall_sync_status_passes_total",
			"Passes over the status of all objects.", "result", NULL);
	*out = publish;
	return ROLL_OK;
}

void roll_publish_free(struct roll_publish *publish)
{
	if (!publish)
		return;
	roll_lister_cancel(publish->lister);
	roll_publish_forget(publish);
	forget_sum(publish);
	roll_timer_free(publish->work);
	roll_patch_free(publish->patch);
	roll_arena_fini(&publish->arena);
	free(publish);
}
