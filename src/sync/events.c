/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "sync/events_state.h"

#define API_VERSION "events.k8s.io/v1"
#define RESOURCE "events.events.k8s.io" /* as in messages of the server about permissions */
#define OBJECT_VERSION ROLL_API_GROUP "/" ROLL_API_VERSION
#define CONTROLLER ROLL_API_GROUP "/rollcall"
#define ACTION "Programming"
#define INSTANCE_MAX_BYTES 128
#define BODY_LIMIT_BYTES (16u << 10)
#define PATH_SIZE 512

#define GAP_MS 100 /* between two requests */
#define ANSWER_MS 10000
#define BACKOFF_BASE_MS 1000
#define BACKOFF_CAP_MS 60000
#define DENIED_MS 60000		    /* at least, until something is sent again */
#define RETRY_AFTER_MS (10 * 60000) /* at most; nothing waits longer */

enum verb { CREATE, PATCH, VERBS };
static const char *const verbs[VERBS] = {"create", "patch"};

/* What the answer to a request means for its event. */
enum answer {
	TOLD,
	EXPIRED, /* what was to be changed is not there any more */
	EXISTS,	 /* what was to be made is there already: the answer to an earlier attempt got lost
		  */
	GONE,	 /* the namespace is, or will be soon */
	REFUSED,
	DENIED,
	FAILED, /* to be tried again */
	ANSWERS
};
static const char *const results[ANSWERS] = {
	"ok", "expired", "exists", "gone", "refused", "denied", "failed",
};

struct roll_events {
	struct roll_api *api;
	const struct roll_clock *clock;
	char instance[INSTANCE_MAX_BYTES + 1];
	struct roll_events_table table;
	struct roll_timer *timer;
	int64_t not_before_ms;
	unsigned failures; /* in a row */
	uint64_t seed;
	bool is_troubled;
	bool is_denied[VERBS];
	/* The request on its way. */
	struct roll_api_call *call;
	struct roll_events_entry *sent;
	enum verb verb;
	uint32_t sent_count;
	struct roll_metric *queue;
};

static int64_t now_ms(const struct roll_events *events)
{
	return roll_clock_monotonic_ms(events->clock);
}

/* --- bodies --- */

static json_t *series_of(const struct roll_events_entry *entry)
{
	char last[ROLL_TIME_MICRO_SIZE];

	roll_time_print_micro(entry->last_wall_ms, last);
	return json_pack("{s:I, s:s}", "count", (json_int_t)entry->count, "lastObservedTime", last);
}

static const char *or_null(const char *text)
{
	return text[0] ? text : NULL;
}

static json_t *reference(const char *kind, const char *ns, const char *name, const char *uid)
{
	return json_pack("{s:s, s:s, s:s*, s:s, s:s*}", "apiVersion", OBJECT_VERSION, "kind", kind,
			 "namespace", or_null(ns), "name", name, "uid", or_null(uid));
}

/* Those about objects in no namespace are in this one: Kubernetes 1.20 takes them nowhere else. */
static const char *ns_of(const struct roll_events_entry *entry)
{
	return entry->object->ns[0] ? entry->object->ns : "kube-system";
}

/* NULL without memory. */
static json_t *new_event(const struct roll_events *events, const struct roll_events_entry *entry)
{
	const struct roll_events_object *object = entry->object;
	const char *zone = roll_kind_text(ROLL_KIND_ZONE);
	char name[ROLL_EVENTS_NAME_SIZE], first[ROLL_TIME_MICRO_SIZE];

	roll_events_print_name(entry, name);
	roll_time_print_micro(entry->first_wall_ms, first);
	return json_pack(
		"{s:s, s:s, s:{s:s, s:s}, s:s, s:o*, s:s, s:s, s:s, s:s, s:s, s:o, s:o*, s:s}",
		"apiVersion", API_VERSION, "kind", "Event", "metadata", "name", name, "namespace",
		ns_of(entry), "eventTime", first, "series",
		entry->count > 1 ? series_of(entry) : NULL, "reportingController", CONTROLLER,
		"reportingInstance", events->instance, "action", ACTION, "reason", entry->reason,
		"type", entry->is_warning ? "Warning" : "Normal", "regarding",
		reference(roll_kind_text(object->kind), object->ns, object->name, entry->uid),
		"related",
		entry->zone_name[0] ? reference(zone, object->ns, entry->zone_name, entry->zone_uid)
				    : NULL,
		"note", entry->note);
}

/* --- pace --- */

/* Nothing is sent before the longest pause is over. */
static void pause_for(struct roll_events *events, int64_t pause_ms)
{
	int64_t until_ms = now_ms(events) + pause_ms;

	if (until_ms > events->not_before_ms)
		events->not_before_ms = until_ms;
}

static void back_off(struct roll_events *events, int64_t retry_after_ms)
{
	int64_t pause_ms =
		roll_backoff_ms(&events->failures, BACKOFF_BASE_MS, BACKOFF_CAP_MS, &events->seed);

	if (retry_after_ms > 0)
		pause_ms += retry_after_ms < RETRY_AFTER_MS ? retry_after_ms : RETRY_AFTER_MS;
	pause_for(events, pause_ms);
}

static void pause_denied(struct roll_events *events)
{
	unsigned first = 0;

	pause_for(events, DENIED_MS + roll_backoff_ms(&first, DENIED_MS, DENIED_MS, &events->seed));
}

/* Set the timer to whatever comes next; the end of a request comes by itself. */
static void schedule(struct roll_events *events)
{
	const struct roll_events_entry *next = roll_events_next(&events->table);
	int64_t now = now_ms(events), at_ms = roll_events_table_prune_ms(&events->table);

	roll_metric_set(events->queue, NULL, NULL, (double)events->table.pending);
	if (next) {
		int64_t turn_ms =
			next->due_ms > events->not_before_ms ? next->due_ms : events->not_before_ms;

		at_ms = turn_ms < at_ms ? turn_ms : at_ms;
	}
	if (events->call || at_ms == INT64_MAX)
		roll_timer_stop(events->timer);
	else
		roll_timer_set(events->timer, at_ms > now ? at_ms - now : 0);
}

/* --- answers --- */

static enum answer judge(const struct roll_events *events, const struct roll_api_result *result)
{
	if (!result->status)
		return TOLD;
	switch (result->http_status) {
	case 400:
	case 413:
	case 422:
		return REFUSED;
	case 403:
		return roll_str_eq_c(result->cause, "NamespaceTerminating") ? GONE : DENIED;
	case 404:
		/* Without a Status object it is the API that is not there. */
		if (!roll_str_eq_c(result->reason, "NotFound"))
			return REFUSED;
		return events->verb == PATCH ? EXPIRED : GONE;
	case 409:
		return events->verb == CREATE && events->sent->may_be_created ? EXISTS : FAILED;
	default:
		return FAILED;
	}
}

/* Once, until it is well again; the rest is for those who look for it. */
static void complain(struct roll_events *events, enum answer answer,
		     const struct roll_api_result *result)
{
	const char *verb = verbs[events->verb];
	char ns[100], name[300];

	roll_str_show(roll_str_c(ns_of(events->sent)), ns, sizeof ns);
	roll_str_show(roll_str_c(events->sent->object->name), name, sizeof name);
	if (answer == DENIED) {
		roll_log(events->is_denied[events->verb] ? ROLL_DEBUG : ROLL_WARN,
			 "events-not-allowed",
			 "text=\"may not %s %s, so objects get no events\" namespace=%s "
			 "reason=\"%s\"",
			 verb, RESOURCE, ns, result->text);
		events->is_denied[events->verb] = true;
		return;
	}
	roll_log(events->is_troubled || answer == GONE ? ROLL_DEBUG : ROLL_WARN, "event-not-sent",
		 "verb=%s namespace=%s object=%s reason=\"%s\"", verb, ns, name, result->text);
	events->is_troubled |= answer != GONE;
}

/* All is known up to this count; later repeats wait their time. */
static void settle(struct roll_events *events, struct roll_events_entry *entry, uint32_t told)
{
	entry->is_created = true;
	roll_events_move(&events->table, entry,
			 entry->count > told ? ROLL_EVENTS_LATER : ROLL_EVENTS_IDLE);
}

static void give_up(struct roll_events *events, struct roll_events_entry *entry)
{
	entry->is_given_up = true;
	roll_events_move(&events->table, entry, ROLL_EVENTS_IDLE);
}

static void on_done(void *ctx, const struct roll_api_result *result)
{
	struct roll_events *events = ctx;
	struct roll_events_entry *entry = events->sent;
	enum answer answer = judge(events, result);

	events->call = NULL;
	roll_metric_add(events->table.results, results[answer], NULL, 1);
	if (answer != TOLD && answer != EXPIRED && answer != EXISTS)
		complain(events, answer, result);
	if (answer != FAILED)
		events->failures = 0;
	switch (answer) {
	case TOLD:
		events->is_troubled = events->is_denied[events->verb] = false;
		settle(events, entry, events->sent_count);
		break;
	case EXISTS:
		/* Perhaps with a series, perhaps not. */
		settle(events, entry, 1);
		break;
	case EXPIRED:
		entry->is_created = false;
		roll_events_move(&events->table, entry, ROLL_EVENTS_SOON);
		break;
	case DENIED:
		pause_denied(events);
		give_up(events, entry);
		break;
	case GONE:
	case REFUSED:
		give_up(events, entry);
		break;
	default:
		/* Somebody else's event has the name. */
		if (events->verb == CREATE && result->http_status == 409)
			roll_events_stamp(&events->table, entry);
		else
			entry->may_be_created |= events->verb == CREATE;
		back_off(events, result->retry_after_ms);
		roll_events_move(&events->table, entry, ROLL_EVENTS_SOON);
		break;
	}
	events->sent = NULL;
	schedule(events);
}

/* --- requests --- */

static void print_path(const struct roll_events_entry *entry, enum verb verb, char out[PATH_SIZE])
{
	char name[ROLL_EVENTS_NAME_SIZE];

	roll_events_print_name(entry, name);
	snprintf(out, PATH_SIZE,
		 "/apis/" API_VERSION "/namespaces/%s/events%s%s?fieldManager=rollcall",
		 ns_of(entry), verb == PATCH ? "/" : "", verb == PATCH ? name : "");
}

static void start(struct roll_events *events, struct roll_events_entry *entry)
{
	enum verb verb = entry->is_created ? PATCH : CREATE;
	struct roll_api_spec spec = {
		.method = verb == PATCH ? "PATCH" : "POST",
		.content_type = verb == PATCH ? "application/merge-patch+json" : "application/json",
		.total_ms = ANSWER_MS,
		/* Perhaps it is the connection that is dead. */
		.is_alone = events->failures > 0,
		.on_done = on_done,
		.ctx = events,
	};
	json_t *body = verb == PATCH ? json_pack("{s:o}", "series", series_of(entry))
				     : new_event(events, entry);
	struct roll_buf text;
	char path[PATH_SIZE];

	print_path(entry, verb, path);
	spec.path = path;
	roll_buf_init(&text, BODY_LIMIT_BYTES);
	if (body && !roll_json_print(body, &text)) {
		spec.body = roll_buf_str(&text);
		events->call = roll_api_start(events->api, &spec);
	}
	roll_buf_fini(&text);
	json_decref(body);
	if (!events->call) {
		back_off(events, -1);
		roll_events_move(&events->table, entry, ROLL_EVENTS_SOON);
		return;
	}
	events->sent = entry;
	events->verb = verb;
	events->sent_count = entry->count;
	roll_events_move(&events->table, entry, ROLL_EVENTS_SENDING);
	pause_for(events, GAP_MS);
}

static void on_timer(void *ctx)
{
	struct roll_events *events = ctx;
	struct roll_events_entry *next;
	int64_t now = now_ms(events);

	roll_events_table_prune(&events->table);
	next = roll_events_next(&events->table);
	if (next && next->due_ms <= now && events->not_before_ms <= now)
		start(events, next);
	schedule(events);
}

/* --- from outside --- */

void roll_events_note(struct roll_events *events, const struct roll_event *event)
{
	roll_events_table_note(&events->table, event);
	schedule(events);
}

void roll_events_clear(struct roll_events *events)
{
	roll_api_cancel(events->call);
	events->call = NULL;
	events->sent = NULL;
	roll_events_table_clear(&events->table);
	schedule(events);
}

size_t roll_events_pending(const struct roll_events *events)
{
	return events->table.pending;
}

enum roll_status roll_events_new(const struct roll_events_conf *conf, struct roll_events **out,
				 struct roll_err *err)
{
	size_t instance_n = roll_events_cut(conf->instance, INSTANCE_MAX_BYTES);
	struct roll_events *events;

	if (!instance_n)
		return roll_err_set(err, ROLL_EINVAL, NULL, "events need the name of a replica");
	events = calloc(1, sizeof *events);
	if (!events)
		return roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	events->api = conf->api;
	events->clock = conf->clock;
	events->seed = (uint64_t)roll_clock_wall_ms(conf->clock);
	memcpy(events->instance, conf->instance, instance_n);
	roll_events_table_init(&events->table, conf->clock);
	events->timer = roll_timer_new(conf->loop, on_timer, events);
	if (!events->timer) {
		roll_events_free(events);
		return roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	}
	if (conf->metrics) {
		events->table.results = roll_metric_counter(
			conf->metrics, "rollcall_sync_events_total",
			"Events about objects: requests by their result, and what was not sent.",
			"result", NULL);
		events->queue = roll_metric_gauge(conf->metrics, "rollcall_sync_events_queue",
						  "Events that wait to be sent.", NULL, NULL);
		roll_metric_set(events->queue, NULL, NULL, 0);
	}
	*out = events;
	return ROLL_OK;
}

void roll_events_free(struct roll_events *events)
{
	if (!events)
		return;
	roll_api_cancel(events->call);
	roll_timer_free(events->timer);
	roll_events_table_fini(&events->table);
	free(events);
}
