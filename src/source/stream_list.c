/* SPDX-License-Identifier: Apache-2.0 */
#include "source/stream_state.h"

#include <stdio.h>

#include "base/log.h"

/* Until the second list, if the sink wants one. */
#define CONFIRM_MS 2000

void roll_stream_want_list(struct roll_stream *stream, const char *cause)
{
	if (stream->list || stream->is_queued)
		return;
	roll_timer_stop(stream->list_retry);
	stream->list_cause = cause;
	stream->is_queued = true;
	stream->env->on_want_list(stream->env->ctx, stream);
}

/* The position is of no use any more: only a list helps. One on its way may be older than it. */
void roll_stream_lose_position(struct roll_stream *stream, int64_t retry_after_ms)
{
	stream->must_list = true;
	stream->proven_ms = 0;
	if (stream->list) {
		roll_lister_cancel(stream->list);
		stream->list = NULL;
		roll_stream_end_batches(stream->env);
		roll_stream_sink(stream)->list_abort(roll_stream_sink(stream)->ctx);
		stream->env->on_list_end(stream->env->ctx, stream, ROLL_ESTALE, "begun again");
	}
	if (stream->is_queued)
		return;
	stream->list_cause = "expired";
	roll_timer_set(stream->list_retry,
		       roll_stream_delay(stream->env, &stream->watch_attempt, retry_after_ms));
}

static void on_list_retry(void *ctx)
{
	struct roll_stream *stream = ctx;

	roll_stream_want_list(stream, stream->list_cause);
}

static void on_relist(void *ctx)
{
	roll_stream_want_list(ctx, "periodic");
}

void roll_stream_schedule_relist(struct roll_stream *stream)
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
	const struct roll_sink *sink = roll_stream_sink(stream);

	roll_stream_end_batches(stream->env);
	stream->list_sink_status =
		sink->list_put(sink->ctx, object, roll_str_n(NULL, 0), roll_str_n(NULL, 0));
	return stream->list_sink_status;
}

/* A complete list is offered to the sink, which may have reasons not to take it. */
static enum roll_status offer_list(struct roll_stream *stream,
				   const struct roll_lister_result *result)
{
	const struct roll_sink *sink = roll_stream_sink(stream);
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
	roll_stream_set_position(stream, position);
	/* What a watch beside it has still to tell up to there would be a step back. */
	if (stream->seen < position)
		stream->seen = position;
	stream->must_list = false;
	stream->setbacks = stream->env->setbacks;
	stream->list_cause = NULL;
	stream->list_attempt = 0;
	roll_stream_schedule_relist(stream);
	return ROLL_OK;
}

static void on_list_done(void *ctx, const struct roll_lister_result *result)
{
	struct roll_stream *stream = ctx;
	const struct roll_sink *sink = roll_stream_sink(stream);
	enum roll_status status = result->status;
	const char *text = result->text;
	int64_t delay_ms = 0;

	stream->list = NULL;
	roll_stream_end_batches(stream->env);
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
		roll_log(ROLL_INFO, "no-streaming-list",
			 "text=\"the server has none; lists come in pages\"");
		roll_log(ROLL_DEBUG, "no-streaming-list", "reason=\"%s\"", result->text);
		stream->env->way = ROLL_LIST_PAGES;
		roll_stream_list(stream); /* it is still its turn */
		return;
	}
	if (status && !result->status && status == ROLL_EAGAIN) {
		roll_log(ROLL_WARN, "list-held", "what=%s objects=%zu", stream->what,
			 result->count);
		delay_ms = CONFIRM_MS;
	} else if (status) {
		/* A list that broke once begun has better chances in pieces. */
		stream->use_pages = status == ROLL_ESTALE || result->http_status == 200;
		roll_stream_trouble(stream, "list", text);
		delay_ms = roll_stream_delay(stream->env, &stream->list_attempt,
					     result->retry_after_ms);
	}
	if (status)
		roll_timer_set(stream->list_retry, delay_ms);
	else
		roll_stream_proven(stream);
	if (!status && !stream->env->conf->is_once && !stream->watch) {
		/* Everything up to the list is known, so there is nothing left to check. */
		stream->is_check_due = false;
		roll_stream_retry_watch(stream, 0);
	}
	stream->env->on_list_end(stream->env->ctx, stream, status, text);
}

void roll_stream_list(struct roll_stream *stream)
{
	const struct roll_sink *sink = roll_stream_sink(stream);
	struct roll_list_head head = {
		.kind = stream->kind,
		.ns = roll_str_c(stream->ns),
		.what = roll_str_c(stream->what),
		.is_repeat = stream->is_open && !stream->must_list,
	};
	struct roll_lister_spec spec = {
		.path = stream->path,
		.kind = roll_stream_kinds[stream->kind].kind,
		.api_version = ROLL_STREAM_API_VERSION,
		.way = stream->use_pages ? ROLL_LIST_PAGES : stream->env->way,
		.on_item = on_list_item,
		.on_done = on_list_done,
		.ctx = stream,
	};
	enum roll_status status;

	stream->is_queued = false;
	stream->use_pages = false;
	stream->list_sink_status = ROLL_OK;
	roll_stream_read_position(stream);
	stream->list_from_position = stream->position;
	roll_stream_end_batches(stream->env);
	status = sink->list_begin(sink->ctx, &head);
	if (!status) {
		stream->list =
			roll_lister_start(stream->env->conf->loop, stream->env->conf->api, &spec);
		if (stream->list) {
			roll_metric_add(stream->env->lists, roll_stream_kinds[stream->kind].plural,
					stream->list_cause, 1);
			return;
		}
		sink->list_abort(sink->ctx);
		status = ROLL_ENOMEM;
	}
	roll_stream_trouble(stream, "list", roll_status_text(status));
	roll_timer_set(stream->list_retry,
		       roll_stream_delay(stream->env, &stream->list_attempt, -1));
	stream->env->on_list_end(stream->env->ctx, stream, status, roll_status_text(status));
}

bool roll_stream_init_list(struct roll_stream *stream)
{
	struct roll_loop *loop = stream->env->conf->loop;

	stream->list_retry = roll_timer_new(loop, on_list_retry, stream);
	stream->relist = roll_timer_new(loop, on_relist, stream);
	return stream->list_retry && stream->relist;
}

void roll_stream_fini_list(struct roll_stream *stream)
{
	if (stream->list)
		roll_stream_sink(stream)->list_abort(roll_stream_sink(stream)->ctx);
	roll_lister_cancel(stream->list);
	roll_timer_free(stream->list_retry);
	roll_timer_free(stream->relist);
}
