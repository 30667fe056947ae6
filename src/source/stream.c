/* SPDX-License-Identifier: Apache-2.0 */
#include "source/stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "source/watch.h"

/*
 *	start --position--> WATCH --ERROR, 400, 404, 410--> LIST --> WATCH ...
 *	      --none------> LIST  --complete------------> WATCH
 *
 * A watch that ends in any other way is begun again from the position. Besides, a list runs beside
 * the watch from time to time. So there are two independent halves: the list (wanted, queued,
 * running, or waiting to be tried again) and the watch (running, or waiting to be tried again); the
 * watch rests while must_list is set, since there is nothing to start it from.
 */

#define API_VERSION "dns.networking.miloapis.com/v1alpha1"
#define API_PATH "/apis/" API_VERSION
#define BATCH_MAX 512
#define BAD_LINES_MAX 3
#define WATCH_SLACK_MS 30000

static const struct {
	const char *plural;
	const char *kind;
	bool is_cluster_scoped;
} kinds[ROLL_STREAM_KINDS] = {
	{"dnszoneclasses", "DNSZoneClass", true},
	{"dnszones", "DNSZone", false},
	{"dnsrecordsets", "DNSRecordSet", false},
};

struct roll_stream {
	struct roll_stream_env *env;
	int kind;
	char ns[64];
	char what[128];
	char path[256];

	uint64_t position; /* stored by the sink; 0: none */
	bool must_list;

	/* The list. */
	struct roll_lister *list;
	const char *list_cause;	     /* NULL: none wanted */
	bool is_queued;		     /* asked for its turn */
	bool use_pages;		     /* the next one */
	uint64_t list_from_position; /* when the list began */
	enum roll_status list_sink_status;
	unsigned list_attempt;
	struct roll_timer *list_retry;
	struct roll_timer *relist;

	/* The watch. */
	struct roll_api_call *watch;
	struct roll_watch *reader;
	bool is_open;	   /* 200 was seen */
	bool is_check_due; /* nothing is known yet of what this watch sends */
	int64_t opened_ms;
	uint64_t lines;
	uint64_t from;	/* the position that it began at */
	bool has_proof; /* a good line came since the sink was told last */
	uint64_t seen;	/* the latest revision that was given to the sink or found there */
	unsigned batch_count;
	enum roll_status sink_status;
	int error_code; /* of an ERROR event; 0: none */
	struct roll_err error;
	unsigned bad_lines; /* watches that ended in one, in a row */
	unsigned watch_attempt;
	struct roll_timer *watch_retry;

	/* Is the watch what it seems? */
	struct roll_timer *silence;
	struct roll_timer *grace;
	struct roll_api_call *probe;
	struct roll_json_items *probe_items;
	uint64_t probe_lines;
	uint64_t probe_position;
	int64_t proven_ms;
	bool is_troubled;
};

static const struct roll_sink *sink_of(const struct roll_stream *stream)
{
	return stream->env->conf->sink;
}

static int64_t now_ms(const struct roll_stream *stream)
{
	return roll_clock_monotonic_ms(stream->env->conf->clock);
}

static void trouble(struct roll_stream *stream, const char *what, const char *why)
{
	char text[400];

	snprintf(text, sizeof text, "%s of %s: %s", what, stream->what, why);
	/* A state is told when it begins; that it goes on, is for those who look closer. */
	roll_log(stream->is_troubled ? ROLL_DEBUG : ROLL_WARN, "source-trouble",
		 "what=%s doing=%s reason=\"%s\"", stream->what, what, why);
	stream->is_troubled = true;
	stream->env->on_trouble(stream->env->ctx, text);
}

static void proven(struct roll_stream *stream)
{
	if (stream->is_troubled)
		roll_log(ROLL_INFO, "source-in-step", "what=%s revision=%llu", stream->what,
			 (unsigned long long)stream->position);
	stream->is_troubled = false;
	stream->proven_ms = now_ms(stream);
	stream->env->on_proven(stream->env->ctx);
}

static int64_t backoff(struct roll_stream *stream, unsigned *attempt, int64_t retry_after_ms)
{
	const struct roll_kube_pace *pace = stream->env->pace;
	int64_t delay = roll_backoff_ms(attempt, pace->backoff_base_ms, pace->backoff_cap_ms,
					&stream->env->seed);

	if (retry_after_ms > pace->retry_after_cap_ms)
		retry_after_ms = pace->retry_after_cap_ms;
	/* Those who were told the same number need not all come back together. */
	return retry_after_ms > 0 ? retry_after_ms + delay : delay;
}

/* --- the watch --- */

static void stop_checks(struct roll_stream *stream)
{
	roll_timer_stop(stream->silence);
	roll_timer_stop(stream->grace);
	roll_api_cancel(stream->probe);
	stream->probe = NULL;
	roll_json_items_free(stream->probe_items);
	stream->probe_items = NULL;
}

static void retry_watch(struct roll_stream *stream, int64_t delay_ms)
{
	roll_timer_set(stream->watch_retry, delay_ms);
}

/*
 * What arrives together is committed together. libcurl may hand over pieces for several streams
 * before it says that they have settled, while the sink takes one thing at a time.
 */
static void end_batch(struct roll_stream *stream)
{
	const struct roll_sink *sink = sink_of(stream);
	enum roll_status status, earlier = stream->sink_status;
	char position[24];

	if (stream->env->batching != stream)
		return;
	stream->env->batching = NULL;
	snprintf(position, sizeof position, "%llu", (unsigned long long)stream->seen);
	/* After a failure what was taken may stand, but the events are to be had again. */
	status = sink->event_end(sink->ctx, roll_str_c(stream->what),
				 earlier ? roll_str_n(NULL, 0) : roll_str_c(position));
	stream->sink_status = earlier ? earlier : status;
	if (!stream->sink_status)
		stream->position = stream->seen;
}

static void end_any_batch(struct roll_stream_env *env)
{
	if (env->batching)
		end_batch(env->batching);
}

/* The position is of no use any more: only a list helps. One on its way may be older than it. */
static void lose_position(struct roll_stream *stream, int64_t retry_after_ms)
{
	stream->must_list = true;
	stream->proven_ms = 0;
	if (stream->list) {
		roll_lister_cancel(stream->list);
		stream->list = NULL;
		end_any_batch(stream->env);
		sink_of(stream)->list_abort(sink_of(stream)->ctx);
		stream->env->on_list_end(stream->env->ctx, stream, ROLL_ESTALE, "begun again");
	}
	if (stream->is_queued)
		return;
	stream->list_cause = "expired";
	roll_timer_set(stream->list_retry, backoff(stream, &stream->watch_attempt, retry_after_ms));
}

static enum roll_status begin_batch(struct roll_stream *stream)
{
	const struct roll_sink *sink = sink_of(stream);

	if (stream->env->batching == stream || stream->sink_status)
		return stream->sink_status;
	end_any_batch(stream->env);
	stream->sink_status = sink->event_begin(sink->ctx);
	if (!stream->sink_status)
		stream->env->batching = stream;
	stream->batch_count = 0;
	return stream->sink_status;
}

static void drop_watch(struct roll_stream *stream)
{
	end_batch(stream);
	stop_checks(stream);
	roll_api_cancel(stream->watch);
	stream->watch = NULL;
	/* Not within its feed: what leads here comes after it, or from elsewhere. */
	roll_watch_free(stream->reader);
	stream->reader = NULL;
	stream->is_open = false;
}

static enum roll_status take_change(struct roll_stream *stream,
				    const struct roll_watch_event *event)
{
	const struct roll_sink *sink = sink_of(stream);
	enum roll_status status;

	if (!roll_str_eq_c(roll_json_str(event->object, "kind"), kinds[stream->kind].kind)) {
		/* Bookmarks too carry the kind. */
		roll_err_set(&stream->error, ROLL_EPROTO, stream->what,
			     "an object of another kind");
		return ROLL_EPROTO;
	}
	/* Sent before, or older than the list that we started from: known already. */
	if (event->revision <= stream->seen)
		return ROLL_OK;
	status = begin_batch(stream);
	if (status)
		return status;
	if (event->type == ROLL_WATCH_DELETED)
		status = sink->event_absent(sink->ctx, event->object, event->revision);
	else if (event->type != ROLL_WATCH_BOOKMARK)
		status = sink->event_put(sink->ctx, event->object, roll_str_n(NULL, 0),
					 roll_str_n(NULL, 0));
	stream->sink_status = status;
	if (status)
		return status;
	stream->seen = event->revision;
	if (++stream->batch_count >= BATCH_MAX)
		end_batch(stream);
	return stream->sink_status;
}

static enum roll_status on_event(void *ctx, const struct roll_watch_event *event)
{
	static const char *const names[] = {"added", "modified", "deleted",  "bookmark",
					    "error", "unknown",	 "too-large"};
	struct roll_stream *stream = ctx;
	char shown[200];

	stream->lines++;
	roll_metric_add(stream->env->events, kinds[stream->kind].plural, names[event->type], 1);
	switch (event->type) {
	case ROLL_WATCH_ADDED:
	case ROLL_WATCH_MODIFIED:
	case ROLL_WATCH_DELETED:
	case ROLL_WATCH_BOOKMARK:
		stream->bad_lines = 0;
		stream->has_proof = true;
		return take_change(stream, event);
	case ROLL_WATCH_ERROR:
		stream->error_code = event->code ? event->code : 500;
		roll_str_show(event->message, shown, sizeof shown);
		return roll_err_set(&stream->error, ROLL_ECANCELED, stream->what, "%d: %s",
				    stream->error_code, shown);
	case ROLL_WATCH_UNKNOWN:
		roll_log(ROLL_WARN, "unknown-event", "what=%s type=\"%s\"", stream->what,
			 roll_str_show(event->name, shown, sizeof shown));
		return ROLL_OK;
	case ROLL_WATCH_TOO_LARGE:
		/* It keeps what was last known of it; the others need not suffer. */
		roll_str_show(event->name, shown, sizeof shown);
		roll_log(ROLL_ERROR, "object-too-large", "what=%s object=\"%s\"", stream->what,
			 shown[0] ? shown : "unknown");
		return ROLL_OK;
	}
	return ROLL_OK;
}

static void on_watch_open(void *ctx)
{
	struct roll_stream *stream = ctx;

	stream->is_open = true;
	stream->opened_ms = now_ms(stream);
	/* Without proof so far, ask soon instead of after the first long silence. */
	roll_timer_set(stream->silence, stream->is_check_due ? 0 : stream->env->pace->silence_ms);
}

static enum roll_status on_watch_body(void *ctx, struct roll_str piece)
{
	struct roll_stream *stream = ctx;
	struct roll_err detail = {0};
	uint64_t lines = stream->lines;
	enum roll_status status = roll_watch_feed(stream->reader, piece, &detail);

	if (status && !stream->error.code && !stream->sink_status)
		stream->error = detail;
	if (stream->lines != lines && !stream->is_check_due)
		roll_timer_set(stream->silence, stream->env->pace->silence_ms);
	return status;
}

static void retry_after_sink(struct roll_stream *stream)
{
	trouble(stream, "watch", roll_status_text(stream->sink_status));
	drop_watch(stream);
	retry_watch(stream, backoff(stream, &stream->watch_attempt, -1));
	roll_metric_add(stream->env->ends, kinds[stream->kind].plural, "sink", 1);
}

static void on_watch_settled(void *ctx)
{
	struct roll_stream *stream = ctx;

	end_batch(stream);
	if (stream->sink_status)
		retry_after_sink(stream);
	else if (stream->has_proof)
		proven(stream);
	stream->has_proof = false;
}

/* Why the watch ended decides what comes next. */
static void on_watch_done(void *ctx, const struct roll_api_result *answer)
{
	struct roll_stream *stream = ctx;
	bool was_open = stream->is_open;
	bool was_healthy;
	const char *cause;

	stream->watch = NULL;
	drop_watch(stream);
	/* It was worth its while if it brought news or lived; anything else must not become a
	 * habit. */
	was_healthy =
		was_open && (stream->position > stream->from ||
			     now_ms(stream) - stream->opened_ms >= stream->env->pace->healthy_ms);
	if (was_healthy)
		stream->watch_attempt = 0;
	if (stream->sink_status) {
		retry_after_sink(stream);
		return;
	} else if (stream->error_code) {
		cause = stream->error_code == 410 ? "expired" : "error";
		if (stream->error_code != 410)
			trouble(stream, "watch", stream->error.text);
		lose_position(stream, -1);
	} else if (stream->error.code) {
		cause = "malformed";
		trouble(stream, "watch", stream->error.text);
		/* The same line again and again is not a path to anywhere. */
		if (++stream->bad_lines >= BAD_LINES_MAX)
			lose_position(stream, -1);
		else
			retry_watch(stream, backoff(stream, &stream->watch_attempt, -1));
	} else if (answer->http_status == 400 || answer->http_status == 404 ||
		   answer->http_status == 410) {
		cause = answer->http_status == 410 ? "expired" : "refused";
		if (answer->http_status != 410)
			trouble(stream, "watch", answer->text);
		lose_position(stream, answer->retry_after_ms);
	} else if (!was_open) {
		cause = answer->http_status ? "refused" : "unreachable";
		trouble(stream, "watch", answer->text);
		retry_watch(stream,
			    backoff(stream, &stream->watch_attempt, answer->retry_after_ms));
	} else {
		/* Ends are part of a watch's life: its time was up, or the server went. */
		cause = answer->status ? "broken" : "ended";
		retry_watch(stream, was_healthy && !answer->status
					    ? 0
					    : backoff(stream, &stream->watch_attempt, -1));
	}
	roll_metric_add(stream->env->ends, kinds[stream->kind].plural, cause, 1);
	roll_log(ROLL_DEBUG, "watch-end", "what=%s cause=%s revision=%llu", stream->what, cause,
		 (unsigned long long)stream->position);
}

static void begin_watch(struct roll_stream *stream)
{
	const struct roll_kube_pace *pace = stream->env->pace;
	int64_t length_ms = pace->watch_ms;
	struct roll_api_spec spec = {
		.method = "GET",
		.on_open = on_watch_open,
		.on_body = on_watch_body,
		.on_settled = on_watch_settled,
		.on_done = on_watch_done,
		.ctx = stream,
	};
	unsigned first = 0;
	char path[512];

	if (stream->watch || stream->must_list)
		return;
	/* Spread, so that not all watches of all clients end together. */
	length_ms += roll_backoff_ms(&first, pace->watch_ms, pace->watch_ms, &stream->env->seed);
	snprintf(path, sizeof path,
		 "%s?watch=1&allowWatchBookmarks=true&resourceVersion=%llu&timeoutSeconds=%lld",
		 stream->path, (unsigned long long)stream->position,
		 (long long)(length_ms + 999) / 1000);
	spec.path = path;
	spec.total_ms = length_ms + WATCH_SLACK_MS;
	stream->seen = stream->position;
	stream->from = stream->position;
	stream->has_proof = false;
	stream->sink_status = ROLL_OK;
	stream->error_code = 0;
	stream->error = (struct roll_err){0};
	stream->reader = roll_watch_new(ROLL_WATCH_LINE_LIMIT_BYTES, on_event, stream);
	stream->watch = stream->reader ? roll_api_start(stream->env->conf->api, &spec) : NULL;
	if (!stream->watch) {
		drop_watch(stream);
		retry_watch(stream, backoff(stream, &stream->watch_attempt, -1));
		return;
	}
	roll_timer_set(stream->silence, pace->open_ms);
}

/* What the sink has is the truth: it may have stored a batch after all that we took for failed. */
static void read_position(struct roll_stream *stream)
{
	const struct roll_kube_conf *conf = stream->env->conf;
	struct roll_buf text;
	uint64_t revision;

	roll_buf_init(&text, 64);
	if (conf->position && !conf->position(conf->ctx, roll_str_c(stream->what), &text) &&
	    !roll_revision_parse(roll_buf_str(&text), &revision) && revision > stream->position)
		stream->position = revision;
	roll_buf_fini(&text);
}

static void on_watch_retry(void *ctx)
{
	struct roll_stream *stream = ctx;

	read_position(stream);
	begin_watch(stream);
}

/* --- silence --- */

/* A new connection may lead to another server; what was missed comes at once. */
static void renew_watch(struct roll_stream *stream, int64_t delay_ms)
{
	drop_watch(stream);
	stream->is_check_due = true;
	roll_metric_add(stream->env->ends, kinds[stream->kind].plural, "silent", 1);
	retry_watch(stream, delay_ms);
}

static void checked(struct roll_stream *stream)
{
	stream->is_check_due = false;
	roll_timer_set(stream->silence, stream->env->pace->silence_ms);
	proven(stream);
}

/*
 * The probe has shown a revision that this watch had not reached. Usually it is that of some other
 * object. If the watch was just begun it has nothing more to send, or it would have by now.
 */
static void on_grace(void *ctx)
{
	struct roll_stream *stream = ctx;

	if (stream->lines != stream->probe_lines || stream->is_check_due)
		checked(stream);
	else
		renew_watch(stream, 0);
}

static enum roll_status on_probe_item(void *ctx, struct roll_str item)
{
	(void)ctx;
	(void)item;
	return ROLL_OK;
}

static enum roll_status on_probe_body(void *ctx, struct roll_str piece)
{
	struct roll_stream *stream = ctx;

	return roll_json_items_feed(stream->probe_items, piece, NULL);
}

static void on_probe_done(void *ctx, const struct roll_api_result *answer)
{
	struct roll_stream *stream = ctx;
	json_t *skeleton = NULL;
	uint64_t revision = 0;
	bool had_items;

	stream->probe = NULL;
	if (answer->status) {
		trouble(stream, "probe", answer->text);
		stream->proven_ms = 0;
		renew_watch(stream,
			    backoff(stream, &stream->watch_attempt, answer->retry_after_ms));
	} else if (roll_json_items_end(stream->probe_items, &skeleton, &had_items, NULL) ||
		   roll_revision_of(skeleton, &revision) || revision < stream->probe_position) {
		/* Older than what we were told before: restored from a backup, or another cluster.
		 */
		trouble(stream, "probe",
			revision ? "the server is behind what it said before"
				 : "the answer makes no sense");
		stream->proven_ms = 0;
		renew_watch(stream, backoff(stream, &stream->watch_attempt, -1));
	} else if (revision <= stream->position || stream->lines != stream->probe_lines) {
		checked(stream);
	} else {
		roll_timer_set(stream->grace, stream->env->pace->grace_ms);
	}
	json_decref(skeleton);
}

/*
 * Silence proves nothing, in either direction: a quiet kind has nothing to say for minutes, and a
 * dead path for ever. So ask for one object, consistently (no resourceVersion), by another path.
 */
static void on_silence(void *ctx)
{
	struct roll_stream *stream = ctx;
	struct roll_api_spec spec = {
		.method = "GET",
		.total_ms = stream->env->pace->probe_ms,
		.is_alone = true,
		.on_body = on_probe_body,
		.on_done = on_probe_done,
		.ctx = stream,
	};
	char path[300];

	if (!stream->is_open) {
		trouble(stream, "watch", "no answer");
		drop_watch(stream);
		retry_watch(stream, backoff(stream, &stream->watch_attempt, -1));
		return;
	}
	stop_checks(stream);
	snprintf(path, sizeof path, "%s?limit=1", stream->path);
	spec.path = path;
	stream->probe_lines = stream->lines;
	stream->probe_position = stream->position;
	stream->probe_items =
		roll_json_items_new(ROLL_WATCH_LINE_LIMIT_BYTES, 1u << 20, on_probe_item, stream);
	stream->probe = stream->probe_items ? roll_api_start(stream->env->conf->api, &spec) : NULL;
	if (!stream->probe)
		roll_timer_set(stream->silence, stream->env->pace->silence_ms);
}

/* --- the list --- */

static void want_list(struct roll_stream *stream, const char *cause)
{
	if (stream->list || stream->is_queued)
		return;
	roll_timer_stop(stream->list_retry);
	stream->list_cause = cause;
	stream->is_queued = true;
	stream->env->on_want_list(stream->env->ctx, stream);
}

static void on_list_retry(void *ctx)
{
	struct roll_stream *stream = ctx;

	want_list(stream, stream->list_cause);
}

static void on_relist(void *ctx)
{
	want_list(ctx, "periodic");
}

static void schedule_relist(struct roll_stream *stream)
{
	int64_t relist_ms = stream->env->conf->relist_ms;
	unsigned first = 0;

	if (relist_ms <= 0 || stream->env->conf->is_once)
		return;
	/* 90 to 110 %: replicas started together drift apart. */
	roll_timer_set(stream->relist,
		       relist_ms / 10 * 9 + roll_backoff_ms(&first, relist_ms / 5 + 1,
							    relist_ms / 5 + 1, &stream->env->seed));
}

static enum roll_status on_list_item(void *ctx, json_t *object)
{
	struct roll_stream *stream = ctx;
	const struct roll_sink *sink = sink_of(stream);

	end_any_batch(stream->env);
	stream->list_sink_status =
		sink->list_put(sink->ctx, object, roll_str_n(NULL, 0), roll_str_n(NULL, 0));
	return stream->list_sink_status;
}

/* A complete list is offered to the sink, which may have reasons not to take it. */
static enum roll_status offer_list(struct roll_stream *stream,
				   const struct roll_lister_result *result)
{
	const struct roll_sink *sink = sink_of(stream);
	uint64_t position = result->revision;
	enum roll_status status;
	char text[24];

	/* Events that came beside the list are not to be had again. */
	if (stream->position > position)
		position = stream->position;
	snprintf(text, sizeof text, "%llu", (unsigned long long)position);
	status = sink->list_end(sink->ctx, result->revision, roll_str_c(text));
	if (status)
		return status;
	roll_log(ROLL_INFO, "listed", "what=%s objects=%zu revision=%llu cause=%s", stream->what,
		 result->count, (unsigned long long)result->revision, stream->list_cause);
	stream->position = position;
	/* What a watch beside it has still to tell up to there would be a step back. */
	if (stream->seen < position)
		stream->seen = position;
	stream->must_list = false;
	stream->list_cause = NULL;
	stream->list_attempt = 0;
	schedule_relist(stream);
	return ROLL_OK;
}

static void on_list_done(void *ctx, const struct roll_lister_result *result)
{
	struct roll_stream *stream = ctx;
	const struct roll_sink *sink = sink_of(stream);
	enum roll_status status = result->status;
	const char *text = result->text;
	int64_t delay_ms = 0;

	stream->list = NULL;
	end_any_batch(stream->env);
	if (!status && result->revision < stream->list_from_position) {
		status = ROLL_ESTALE;
		text = "the server is behind what was known before";
	}
	if (status) {
		sink->list_abort(sink->ctx);
	} else {
		status = offer_list(stream, result);
		text = status == ROLL_EAGAIN ? "to be confirmed by another list"
					     : roll_status_text(status);
	}
	if (stream->list_sink_status) {
		status = stream->list_sink_status;
		text = roll_status_text(status);
	}
	if (result->has_no_stream && stream->env->way == ROLL_LIST_STREAM) {
		roll_log(ROLL_INFO, "no-streaming-list", "reason=\"%s\"", result->text);
		stream->env->way = ROLL_LIST_PAGES;
		roll_stream_list(stream); /* it is still its turn */
		return;
	}
	if (status && !result->status && status == ROLL_EAGAIN) {
		roll_log(ROLL_WARN, "list-held", "what=%s objects=%zu", stream->what,
			 result->count);
		delay_ms = stream->env->pace->confirm_ms;
	} else if (status) {
		stream->use_pages = status == ROLL_ESTALE;
		trouble(stream, "list", text);
		delay_ms = backoff(stream, &stream->list_attempt, result->retry_after_ms);
	}
	if (status)
		roll_timer_set(stream->list_retry, delay_ms);
	else
		proven(stream);
	if (!status && !stream->env->conf->is_once && !stream->watch) {
		/* Everything up to the list is known, so there is nothing left to check. */
		stream->is_check_due = false;
		retry_watch(stream, 0);
	}
	stream->env->on_list_end(stream->env->ctx, stream, status, text);
}

void roll_stream_list(struct roll_stream *stream)
{
	const struct roll_sink *sink = sink_of(stream);
	struct roll_list_head head = {
		.kind = stream->kind,
		.ns = roll_str_c(stream->ns),
		.what = roll_str_c(stream->what),
		.is_repeat = stream->is_open && !stream->must_list,
	};
	struct roll_lister_spec spec = {
		.path = stream->path,
		.kind = kinds[stream->kind].kind,
		.api_version = API_VERSION,
		.way = stream->use_pages ? ROLL_LIST_PAGES : stream->env->way,
		.page_ms = stream->env->pace->page_ms,
		.silence_ms = stream->env->pace->list_silence_ms,
		.on_item = on_list_item,
		.on_done = on_list_done,
		.ctx = stream,
	};
	enum roll_status status;

	stream->is_queued = false;
	stream->use_pages = false;
	stream->list_sink_status = ROLL_OK;
	read_position(stream);
	stream->list_from_position = stream->position;
	end_any_batch(stream->env);
	status = sink->list_begin(sink->ctx, &head);
	if (!status) {
		stream->list =
			roll_lister_start(stream->env->conf->loop, stream->env->conf->api, &spec);
		if (stream->list) {
			roll_metric_add(stream->env->lists, kinds[stream->kind].plural,
					stream->list_cause, 1);
			return;
		}
		sink->list_abort(sink->ctx);
		status = ROLL_ENOMEM;
	}
	trouble(stream, "list", roll_status_text(status));
	roll_timer_set(stream->list_retry, backoff(stream, &stream->list_attempt, -1));
	stream->env->on_list_end(stream->env->ctx, stream, status, roll_status_text(status));
}

/* --- life --- */

struct roll_stream *roll_stream_new(struct roll_stream_env *env, int kind, const char *ns)
{
	struct roll_stream *stream = calloc(1, sizeof *stream);
	struct roll_loop *loop = env->conf->loop;

	if (!stream)
		return NULL;
	stream->env = env;
	stream->kind = kind;
	snprintf(stream->ns, sizeof stream->ns, "%s", ns ? ns : "");
	snprintf(stream->what, sizeof stream->what, "%s%s%s", kinds[kind].plural, ns ? "/" : "",
		 stream->ns);
	snprintf(stream->path, sizeof stream->path, "%s%s%s/%s", API_PATH, ns ? "/namespaces/" : "",
		 stream->ns, kinds[kind].plural);
	stream->list_retry = roll_timer_new(loop, on_list_retry, stream);
	stream->relist = roll_timer_new(loop, on_relist, stream);
	stream->watch_retry = roll_timer_new(loop, on_watch_retry, stream);
	stream->silence = roll_timer_new(loop, on_silence, stream);
	stream->grace = roll_timer_new(loop, on_grace, stream);
	if (!stream->list_retry || !stream->relist || !stream->watch_retry || !stream->silence ||
	    !stream->grace) {
		roll_stream_free(stream);
		return NULL;
	}
	return stream;
}

void roll_stream_free(struct roll_stream *stream)
{
	if (!stream)
		return;
	if (stream->list)
		sink_of(stream)->list_abort(sink_of(stream)->ctx);
	roll_lister_cancel(stream->list);
	drop_watch(stream);
	roll_timer_free(stream->list_retry);
	roll_timer_free(stream->relist);
	roll_timer_free(stream->watch_retry);
	roll_timer_free(stream->silence);
	roll_timer_free(stream->grace);
	free(stream);
}

void roll_stream_start(struct roll_stream *stream)
{
	read_position(stream);
	if (stream->position == 0 || stream->env->conf->is_once) {
		stream->must_list = true;
		want_list(stream, "start");
		return;
	}
	roll_log(ROLL_INFO, "resumed", "what=%s revision=%llu", stream->what,
		 (unsigned long long)stream->position);
	/* The server may be behind what we know, and would be silent then. */
	stream->is_check_due = true;
	schedule_relist(stream);
	begin_watch(stream);
}

void roll_stream_relist(struct roll_stream *stream)
{
	want_list(stream, stream->must_list ? stream->list_cause : "asked");
}

int64_t roll_stream_proven_ms(const struct roll_stream *stream)
{
	return stream->proven_ms;
}

bool roll_stream_is_cluster_scoped(int kind)
{
	return kinds[kind].is_cluster_scoped;
}
