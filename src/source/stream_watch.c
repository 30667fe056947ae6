/* SPDX-License-Identifier: Apache-2.0 */
#include "source/stream_state.h"

#include <stdio.h>

#include "base/json.h"
#include "base/log.h"

#define BATCH_MAX 512
#define BAD_LINES_MAX 3
/* Asked of the server as the length of a watch: this to twice this. */
#define WATCH_MS 300000
/* More than that, and the server has forgotten to end it. */
#define WATCH_SLACK_MS 30000
/* Until it is answered. */
#define OPEN_MS 30000
/* Open this long, and it is worth no back-off when it ends. */
#define HEALTHY_MS 10000

void roll_stream_retry_watch(struct roll_stream *stream, int64_t delay_ms)
{
	roll_timer_set(stream->watch_retry, delay_ms);
}

/*
 * What arrives together is committed together. libcurl may hand over pieces for several streams
 * before it says that they have settled, while the sink takes one thing at a time.
 */
static void end_batch(struct roll_stream *stream)
{
	const struct roll_sink *sink = roll_stream_sink(stream);
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
		roll_stream_set_position(stream, stream->seen);
}

void roll_stream_end_batches(struct roll_stream_env *env)
{
	if (env->batching)
		end_batch(env->batching);
}

static enum roll_status begin_batch(struct roll_stream *stream)
{
	const struct roll_sink *sink = roll_stream_sink(stream);

	if (stream->env->batching == stream || stream->sink_status)
		return stream->sink_status;
	roll_stream_end_batches(stream->env);
	stream->sink_status = sink->event_begin(sink->ctx);
	if (!stream->sink_status)
		stream->env->batching = stream;
	stream->batch_count = 0;
	return stream->sink_status;
}

bool roll_stream_drop_watch(struct roll_stream *stream)
{
	bool was_healthy;

	end_batch(stream);
	/* Worth its while, if it brought news or lived; anything else must not become a habit. */
	was_healthy =
		stream->is_open && (stream->position > stream->from ||
				    roll_stream_now_ms(stream) - stream->opened_ms >= HEALTHY_MS);
	if (was_healthy)
		stream->watch_attempt = 0;
	roll_stream_stop_check(stream);
	roll_api_cancel(stream->watch);
	stream->watch = NULL;
	/* Not within its feed: what leads here comes after it, or from elsewhere. */
	roll_watch_free(stream->reader);
	stream->reader = NULL;
	stream->is_open = false;
	return was_healthy;
}

static enum roll_status take_change(struct roll_stream *stream,
				    const struct roll_watch_event *event)
{
	const struct roll_sink *sink = roll_stream_sink(stream);
	enum roll_status status;

	if (!roll_str_eq_c(roll_json_str(event->object, "kind"),
			   roll_stream_kinds[stream->kind].kind)) {
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
	roll_metric_add(stream->env->events, roll_stream_kinds[stream->kind].plural,
			names[event->type], 1);
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
	stream->opened_ms = roll_stream_now_ms(stream);
	/* That a watch was begun again proves nothing: ask at once, not after a silence. */
	roll_timer_set(stream->silence, stream->is_check_due ? 0 : ROLL_STREAM_SILENCE_MS);
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
		roll_timer_set(stream->silence, ROLL_STREAM_SILENCE_MS);
	return status;
}

static void retry_after_sink(struct roll_stream *stream)
{
	roll_stream_trouble(stream, "watch", roll_status_text(stream->sink_status));
	roll_stream_drop_watch(stream);
	roll_stream_retry_watch(stream, roll_stream_delay(stream->env, &stream->watch_attempt, -1));
	roll_metric_add(stream->env->ends, roll_stream_kinds[stream->kind].plural, "sink", 1);
}

static void on_watch_settled(void *ctx)
{
	struct roll_stream *stream = ctx;

	end_batch(stream);
	if (stream->sink_status)
		retry_after_sink(stream);
	else if (stream->has_proof)
		roll_stream_proven(stream);
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
	was_healthy = roll_stream_drop_watch(stream);
	/* The next one may lead to another server, or to this one with other data. */
	stream->is_check_due = true;
	if (stream->sink_status) {
		retry_after_sink(stream);
		return;
	} else if (stream->error_code) {
		cause = stream->error_code == 410 ? "expired" : "error";
		if (stream->error_code != 410)
			roll_stream_trouble(stream, "watch", stream->error.text);
		roll_stream_lose_position(stream, -1);
	} else if (stream->error.code) {
		cause = "malformed";
		roll_stream_trouble(stream, "watch", stream->error.text);
		/* The same line again and again is not a path to anywhere. */
		if (++stream->bad_lines >= BAD_LINES_MAX)
			roll_stream_lose_position(stream, -1);
		else
			roll_stream_retry_watch(
				stream, roll_stream_delay(stream->env, &stream->watch_attempt, -1));
	} else if (answer->http_status == 400 || answer->http_status == 404 ||
		   answer->http_status == 410) {
		cause = answer->http_status == 410 ? "expired" : "refused";
		if (answer->http_status != 410)
			roll_stream_trouble(stream, "watch", answer->text);
		roll_stream_lose_position(stream, answer->retry_after_ms);
	} else if (!was_open) {
		cause = answer->http_status ? "refused" : "unreachable";
		roll_stream_trouble(stream, "watch", answer->text);
		roll_stream_retry_watch(stream,
					roll_stream_delay(stream->env, &stream->watch_attempt,
							  answer->retry_after_ms));
	} else {
		/* Ends are part of a watch's life: its time was up, or the server went. */
		cause = answer->status ? "broken" : "ended";
		roll_stream_retry_watch(
			stream,
			was_healthy && !answer->status
				? 0
				: roll_stream_delay(stream->env, &stream->watch_attempt, -1));
	}
	roll_metric_add(stream->env->ends, roll_stream_kinds[stream->kind].plural, cause, 1);
	roll_log(ROLL_DEBUG, "watch-end", "what=%s cause=%s revision=%llu", stream->what, cause,
		 (unsigned long long)stream->position);
}

void roll_stream_watch(struct roll_stream *stream)
{
	int64_t length_ms = WATCH_MS;
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
	length_ms += roll_backoff_ms(&first, WATCH_MS, WATCH_MS, &stream->env->seed);
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
		roll_stream_drop_watch(stream);
		roll_stream_retry_watch(stream,
					roll_stream_delay(stream->env, &stream->watch_attempt, -1));
		return;
	}
	roll_timer_set(stream->silence, OPEN_MS);
}

static void on_watch_retry(void *ctx)
{
	struct roll_stream *stream = ctx;

	roll_stream_read_position(stream);
	roll_stream_watch(stream);
}

bool roll_stream_init_watch(struct roll_stream *stream)
{
	stream->watch_retry = roll_timer_new(stream->env->conf->loop, on_watch_retry, stream);
	return stream->watch_retry;
}

void roll_stream_fini_watch(struct roll_stream *stream)
{
	roll_stream_drop_watch(stream);
	roll_timer_free(stream->watch_retry);
}
