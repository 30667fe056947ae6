/* SPDX-License-Identifier: Apache-2.0 */
#include "source/stream_state.h"

#include <stdlib.h>
#include <stdio.h>

#include "base/log.h"

#define BACKOFF_BASE_MS 200
#define BACKOFF_CAP_MS 5000
/* Whatever the server asks for: it may have changed its mind long before. */
#define RETRY_AFTER_CAP_MS 60000

const struct roll_stream_kind roll_stream_kinds[ROLL_STREAM_KINDS] = {
	{"dnszoneclasses", "DNSZoneClass", true},
	{"dnszones", "DNSZone", false},
	{"dnsrecordsets", "DNSRecordSet", false},
};

const struct roll_sink *roll_stream_sink(const struct roll_stream *stream)
{
	return stream->env->conf->sink;
}

int64_t roll_stream_now_ms(const struct roll_stream *stream)
{
	return roll_clock_monotonic_ms(stream->env->conf->clock);
}

void roll_stream_trouble(struct roll_stream *stream, const char *what, const char *why)
{
	char text[400];

	snprintf(text, sizeof text, "%s of %s: %s", what, stream->what, why);
	/* A state is told when it begins; that it goes on, is for those who look closer. */
	roll_log(stream->is_troubled ? ROLL_DEBUG : ROLL_WARN, "source-trouble",
		 "what=%s doing=%s reason=\"%s\"", stream->what, what, why);
	stream->is_troubled = true;
	stream->env->on_trouble(stream->env->ctx, text);
}

void roll_stream_proven(struct roll_stream *stream)
{
	if (stream->is_troubled)
		roll_log(ROLL_INFO, "source-in-step", "what=%s revision=%llu", stream->what,
			 (unsigned long long)stream->position);
	stream->is_troubled = false;
	stream->proven_ms = roll_stream_now_ms(stream);
	stream->env->on_proven(stream->env->ctx);
}

int64_t roll_stream_delay(struct roll_stream_env *env, unsigned *attempt, int64_t retry_after_ms)
{
	int64_t delay_ms = roll_backoff_ms(attempt, BACKOFF_BASE_MS, BACKOFF_CAP_MS, &env->seed);

	if (retry_after_ms > RETRY_AFTER_CAP_MS)
		retry_after_ms = RETRY_AFTER_CAP_MS;
	/* Those who were told the same number need not all come back together. */
	return retry_after_ms > 0 ? retry_after_ms + delay_ms : delay_ms;
}

void roll_stream_set_position(struct roll_stream *stream, uint64_t position)
{
	stream->position = position;
	if (position > stream->env->known)
		stream->env->known = position;
}

/* What the sink has is the truth: it may have stored a batch after all that we took for failed. */
void roll_stream_read_position(struct roll_stream *stream)
{
	const struct roll_kube_conf *conf = stream->env->conf;
	struct roll_buf text;
	uint64_t revision;

	roll_buf_init(&text, 64);
	if (conf->position && !conf->position(conf->ctx, roll_str_c(stream->what), &text) &&
	    !roll_revision_parse(roll_buf_str(&text), &revision) && revision > stream->position)
		roll_stream_set_position(stream, revision);
	roll_buf_fini(&text);
}

struct roll_stream *roll_stream_new(struct roll_stream_env *env, int kind, const char *ns)
{
	struct roll_stream *stream = calloc(1, sizeof *stream);

	if (!stream)
		return NULL;
	stream->env = env;
	stream->kind = kind;
	snprintf(stream->ns, sizeof stream->ns, "%s", ns ? ns : "");
	snprintf(stream->what, sizeof stream->what, "%s%s%s", roll_stream_kinds[kind].plural,
		 ns ? "/" : "", stream->ns);
	snprintf(stream->path, sizeof stream->path, "%s%s%s/%s", "/apis/" ROLL_STREAM_API_VERSION,
		 ns ? "/namespaces/" : "", stream->ns, roll_stream_kinds[kind].plural);
	if (!roll_stream_init_list(stream) || !roll_stream_init_watch(stream) ||
	    !roll_stream_init_check(stream)) {
		roll_stream_free(stream);
		return NULL;
	}
	return stream;
}

void roll_stream_free(struct roll_stream *stream)
{
	if (!stream)
		return;
	roll_stream_fini_list(stream);
	roll_stream_fini_watch(stream);
	roll_stream_fini_check(stream);
	free(stream);
}

void roll_stream_start(struct roll_stream *stream)
{
	roll_stream_read_position(stream);
	if (stream->position == 0 || stream->env->conf->is_once) {
		stream->must_list = true;
		roll_stream_want_list(stream, "start");
		return;
	}
	roll_log(ROLL_INFO, "resumed", "what=%s revision=%llu", stream->what,
		 (unsigned long long)stream->position);
	/* The server may be behind what we know, and would be silent then. */
	stream->is_check_due = true;
	roll_stream_schedule_relist(stream);
	roll_stream_watch(stream);
}

void roll_stream_relist(struct roll_stream *stream)
{
	roll_stream_want_list(stream, stream->must_list ? stream->list_cause : "asked");
}

bool roll_stream_is_cluster_scoped(int kind)
{
	return roll_stream_kinds[kind].is_cluster_scoped;
}
