/* SPDX-License-Identifier: Apache-2.0 */
#include "source/stream_state.h"

#include <stdio.h>

#include "base/json.h"
#include "base/log.h"

/* Until the probe is answered, */
#define PROBE_MS 10000
/* and until the watch has what the probe has shown. */
#define GRACE_MS 5000
/* The longest that can pass between two proofs when all is well, and a little more. */
#define PROOF_MS (ROLL_STREAM_SILENCE_MS + PROBE_MS + 2 * GRACE_MS + 2000)

void roll_stream_stop_check(struct roll_stream *stream)
{
	roll_timer_stop(stream->silence);
	roll_timer_stop(stream->grace);
	roll_api_cancel(stream->probe);
	stream->probe = NULL;
	roll_json_items_free(stream->probe_items);
	stream->probe_items = NULL;
}

/* A new connection may lead to another server; what was missed comes at once. */
static void drop_watch(struct roll_stream *stream)
{
	roll_stream_drop_watch(stream);
	stream->is_check_due = true;
	roll_metric_add(stream->env->ends, roll_stream_kinds[stream->kind].plural, "silent", 1);
}

static void probe_failed(struct roll_stream *stream, const char *why, int64_t retry_after_ms)
{
	roll_stream_trouble(stream, "probe", why);
	stream->proven_ms = 0;
	drop_watch(stream);
	roll_stream_retry_watch(
		stream, roll_stream_delay(stream->env, &stream->watch_attempt, retry_after_ms));
}

static void checked(struct roll_stream *stream)
{
	stream->is_check_due = false;
	roll_timer_set(stream->silence, ROLL_STREAM_SILENCE_MS);
	roll_stream_proven(stream);
}

/*
 * The probe has shown a revision that this watch had not reached. Usually it is that of some other
 * object. If the watch was just begun it has nothing more to send, or it would have by now.
 */
static void on_grace(void *ctx)
{
	struct roll_stream *stream = ctx;

	if (stream->lines != stream->probe_lines || stream->is_check_due) {
		checked(stream);
		return;
	}
	drop_watch(stream);
	roll_stream_retry_watch(stream, 0);
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

/*
 * Older than what was told before: restored from a backup. Once it has caught up, its revisions
 * mean something else than those that we know, and no watch tells what became of the objects in
 * between: every stream must list.
 */
static void set_back(struct roll_stream *stream, uint64_t revision)
{
	if (stream->setbacks == stream->env->setbacks)
		roll_log(ROLL_WARN, "source-behind", "revision=%llu known=%llu",
			 (unsigned long long)revision, (unsigned long long)stream->probe_known);
	stream->env->setbacks++;
}

static void on_probe_done(void *ctx, const struct roll_api_result *answer)
{
	struct roll_stream *stream = ctx;
	json_t *skeleton = NULL;
	uint64_t revision = 0;
	bool had_items;

	stream->probe = NULL;
	if (answer->status) {
		probe_failed(stream, answer->text, answer->retry_after_ms);
	} else if (roll_json_items_end(stream->probe_items, &skeleton, &had_items, NULL) ||
		   roll_revision_of(skeleton, &revision)) {
		probe_failed(stream, "the answer makes no sense", -1);
	} else if (revision < stream->probe_known) {
		set_back(stream, revision);
		probe_failed(stream, "the server is behind what it said before", -1);
	} else if (stream->setbacks != stream->env->setbacks) {
		roll_stream_drop_watch(stream);
		roll_stream_lose_position(stream, -1);
	} else if (revision <= stream->position || stream->lines != stream->probe_lines) {
		checked(stream);
	} else {
		roll_timer_set(stream->grace, GRACE_MS);
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
		.total_ms = PROBE_MS,
		.is_alone = true,
		.on_body = on_probe_body,
		.on_done = on_probe_done,
		.ctx = stream,
	};
	char path[300];

	if (!stream->is_open) {
		roll_stream_trouble(stream, "watch", "no answer");
		roll_stream_drop_watch(stream);
		roll_stream_retry_watch(stream,
					roll_stream_delay(stream->env, &stream->watch_attempt, -1));
		return;
	}
	roll_stream_stop_check(stream);
	snprintf(path, sizeof path, "%s?limit=1", stream->path);
	spec.path = path;
	stream->probe_lines = stream->lines;
	stream->probe_known = stream->env->known;
	stream->probe_items =
		roll_json_items_new(ROLL_WATCH_LINE_LIMIT_BYTES, 1u << 20, on_probe_item, stream);
	stream->probe = stream->probe_items ? roll_api_start(stream->env->conf->api, &spec) : NULL;
	if (!stream->probe)
		roll_timer_set(stream->silence, ROLL_STREAM_SILENCE_MS);
}

bool roll_stream_is_live(const struct roll_stream *stream)
{
	return stream->proven_ms && roll_stream_now_ms(stream) - stream->proven_ms <= PROOF_MS;
}

bool roll_stream_init_check(struct roll_stream *stream)
{
	struct roll_loop *loop = stream->env->conf->loop;

	stream->silence = roll_timer_new(loop, on_silence, stream);
	stream->grace = roll_timer_new(loop, on_grace, stream);
	return stream->silence && stream->grace;
}

void roll_stream_fini_check(struct roll_stream *stream)
{
	roll_timer_free(stream->silence);
	roll_timer_free(stream->grace);
}
