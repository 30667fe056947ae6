/* SPDX-License-Identifier: Apache-2.0 */
#include "source/kube.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "source/stream.h"

#define IDENTITY_PATH "/api/v1/namespaces/kube-system"
#define IDENTITY_LIMIT_BYTES (1u << 20)
#define IDENTITY_MS 10000
#define IDENTITY_FRESH_MS 10000
#define CONFIRM_EVERY_MS 1000
/* --once: a server that is starting up is given this many chances in a row. */
#define ONCE_FAILURES_MAX 4

struct roll_kube {
	struct roll_kube_conf conf;
	struct roll_stream_env env;
	struct roll_stream **streams;
	size_t stream_count;
	bool has_started; /* the streams, that is: the identity is known to be right or unknown */

	/* One list at a time. */
	struct roll_stream **queue;
	size_t queue_count;
	struct roll_stream *listing;

	struct roll_api_call *identity;
	struct roll_buf identity_text;
	int64_t identity_ms; /* when it was asked last with success */
	unsigned attempt;
	struct roll_timer *retry;

	int64_t confirmed_ms;
	size_t once_left;
	unsigned once_failures;
	bool has_ended;
};

static int64_t now_ms(const struct roll_kube *kube)
{
	return roll_clock_monotonic_ms(kube->conf.clock);
}

static void end_once(struct roll_kube *kube, enum roll_status status, const char *text)
{
	if (!kube->conf.is_once || kube->has_ended)
		return;
	kube->has_ended = true;
	if (kube->conf.on_end)
		kube->conf.on_end(kube->conf.ctx, status, text);
}

static void on_trouble(void *ctx, const char *why)
{
	struct roll_kube *kube = ctx;

	kube->confirmed_ms = 0; /* the next proof is news */
	kube->conf.sink->unreachable(kube->conf.sink->ctx, why);
}

bool roll_kube_is_live(const struct roll_kube *kube)
{
	for (size_t i = 0; i < kube->stream_count; i++) {
		if (!roll_stream_is_live(kube->streams[i]))
			return false;
	}
	return kube->stream_count > 0;
}

static void on_proven(void *ctx)
{
	struct roll_kube *kube = ctx;

	if (!roll_kube_is_live(kube) ||
	    (kube->confirmed_ms && now_ms(kube) - kube->confirmed_ms < CONFIRM_EVERY_MS))
		return;
	kube->confirmed_ms = now_ms(kube);
	kube->conf.sink->confirmed(kube->conf.sink->ctx);
}

/* --- which cluster is it? --- */

/* Before anything is believed: at the start, and before each list, since a list removes. */
static bool knows_identity(const struct roll_kube *kube)
{
	return !kube->conf.on_identity ||
	       (kube->identity_ms && now_ms(kube) - kube->identity_ms < IDENTITY_FRESH_MS);
}

static void ask_identity(struct roll_kube *kube);
static void next_list(struct roll_kube *kube);

static void identity_failed(struct roll_kube *kube, enum roll_status status, const char *text,
			    int64_t retry_after_ms)
{
	roll_timer_set(kube->retry, roll_stream_delay(&kube->env, &kube->attempt, retry_after_ms));
	roll_log(kube->attempt > 1 ? ROLL_DEBUG : ROLL_WARN, "source-trouble",
		 "what=cluster reason=\"%s\"", text);
	on_trouble(kube, text);
	if (++kube->once_failures >= ONCE_FAILURES_MAX)
		end_once(kube, status, text);
}

static enum roll_status on_identity_body(void *ctx, struct roll_str piece)
{
	struct roll_kube *kube = ctx;

	roll_buf_add_str(&kube->identity_text, piece);
	return kube->identity_text.status;
}

static void go_on(struct roll_kube *kube)
{
	kube->attempt = 0;
	if (!kube->has_started) {
		kube->has_started = true;
		for (size_t i = 0; i < kube->stream_count; i++)
			roll_stream_start(kube->streams[i]);
	}
	next_list(kube);
}

static void on_identity_done(void *ctx, const struct roll_api_result *answer)
{
	struct roll_kube *kube = ctx;
	enum roll_status status = ROLL_OK;
	struct roll_str uid = {NULL, 0};
	json_t *object = NULL;

	kube->identity = NULL;
	/* We may not be allowed to look, or it is no such cluster: then it stays unknown. */
	if (answer->http_status == 403 || answer->http_status == 404) {
		kube->identity_ms = now_ms(kube);
		go_on(kube);
		return;
	}
	if (answer->status) {
		identity_failed(kube, answer->status, answer->text, answer->retry_after_ms);
		return;
	}
	if (!roll_json_parse(roll_buf_str(&kube->identity_text), &object, NULL))
		uid = roll_json_str(roll_json_object(object, "metadata"), "uid");
	if (uid.n == 0)
		identity_failed(kube, ROLL_EPROTO, "the namespace kube-system has no uid", -1);
	else
		status = kube->conf.on_identity(kube->conf.ctx, uid);
	if (status) {
		identity_failed(kube, status, "this is another cluster than the view was made from",
				-1);
	} else if (uid.n) {
		kube->identity_ms = now_ms(kube);
		go_on(kube);
	}
	json_decref(object);
}

static void ask_identity(struct roll_kube *kube)
{
	struct roll_api_spec spec = {
		.method = "GET",
		.path = IDENTITY_PATH,
		.total_ms = IDENTITY_MS,
		.on_body = on_identity_body,
		.on_done = on_identity_done,
		.ctx = kube,
	};

	if (kube->identity)
		return;
	roll_buf_reset(&kube->identity_text);
	kube->identity = roll_api_start(kube->conf.api, &spec);
	if (!kube->identity)
		identity_failed(kube, ROLL_ENOMEM, "out of memory", -1);
}

static void on_retry(void *ctx)
{
	struct roll_kube *kube = ctx;

	if (knows_identity(kube))
		go_on(kube);
	else
		ask_identity(kube);
}

/* --- whose list is next? --- */

static void next_list(struct roll_kube *kube)
{
	if (kube->listing || kube->queue_count == 0)
		return;
	if (!knows_identity(kube)) {
		ask_identity(kube);
		return;
	}
	kube->listing = kube->queue[0];
	kube->queue_count--;
	memmove(kube->queue, kube->queue + 1, kube->queue_count * sizeof *kube->queue);
	roll_stream_list(kube->listing);
}

static void on_want_list(void *ctx, struct roll_stream *stream)
{
	struct roll_kube *kube = ctx;

	/* A stream asks again only after its turn, so there is room for all. */
	kube->queue[kube->queue_count++] = stream;
	/* From the loop: whoever asks is in the middle of something. */
	if (!kube->listing && !kube->identity)
		roll_timer_set(kube->retry, 0);
}

static void on_list_end(void *ctx, struct roll_stream *stream, enum roll_status status,
			const char *text)
{
	struct roll_kube *kube = ctx;

	if (kube->listing == stream)
		kube->listing = NULL;
	if (kube->queue_count)
		roll_timer_set(kube->retry, 0);
	if (!kube->conf.is_once)
		return;
	if (status) {
		if (++kube->once_failures >= ONCE_FAILURES_MAX)
			end_once(kube, status, text);
		return;
	}
	kube->once_failures = 0;
	if (--kube->once_left == 0)
		end_once(kube, ROLL_OK, "");
}

/* --- life --- */

/* RFC 1123 labels, which goes into paths as it is. */
static bool is_namespace(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)name[i];

		if (!(c >= 'a' && c <= 'z') && !roll_is_digit(c) &&
		    (c != '-' || i == 0 || i == n - 1))
			return false;
	}
	return n > 0 && n <= 63;
}

static enum roll_status make_streams(struct roll_kube *kube, struct roll_err *err)
{
	size_t places = kube->conf.namespace_count ? kube->conf.namespace_count : 1;

	kube->streams = calloc(places * ROLL_STREAM_KINDS, sizeof(struct roll_stream *));
	kube->queue = calloc(places * ROLL_STREAM_KINDS, sizeof(struct roll_stream *));
	if (!kube->streams || !kube->queue)
		return roll_err_set(err, ROLL_ENOMEM, NULL, "no memory for the source");
	/* Classes first, then zones: what later lists refer to is there already. */
	for (int kind = 0; kind < ROLL_STREAM_KINDS; kind++) {
		bool is_limited =
			kube->conf.namespace_count && !roll_stream_is_cluster_scoped(kind);

		for (size_t i = 0; i < (is_limited ? places : 1); i++) {
			struct roll_stream *stream;

			stream = roll_stream_new(&kube->env, kind,
						 is_limited ? kube->conf.namespaces[i] : NULL);
			if (!stream)
				return roll_err_set(err, ROLL_ENOMEM, NULL,
						    "no memory for the source");
			kube->streams[kube->stream_count++] = stream;
		}
	}
	kube->once_left = kube->stream_count;
	return ROLL_OK;
}

enum roll_status roll_kube_new(const struct roll_kube_conf *conf, struct roll_kube **out,
			       struct roll_err *err)
{
	enum roll_status status = ROLL_ENOMEM;
	struct roll_kube *kube;

	for (size_t i = 0; i < conf->namespace_count; i++) {
		char shown[80];

		if (!is_namespace(conf->namespaces[i]))
			return roll_err_set(err, ROLL_EINVAL, "namespace",
					    "\"%s\" is no name of one",
					    roll_str_show(roll_str_c(conf->namespaces[i]), shown,
							  sizeof shown));
		for (size_t j = 0; j < i; j++) {
			if (strcmp(conf->namespaces[i], conf->namespaces[j]) == 0)
				return roll_err_set(err, ROLL_EINVAL, "namespace",
						    "\"%s\" is given twice", conf->namespaces[i]);
		}
	}
	kube = calloc(1, sizeof *kube);
	if (!kube)
		goto out;
	kube->conf = *conf;
	kube->env.conf = &kube->conf;
	kube->env.way = conf->no_stream ? ROLL_LIST_PAGES : ROLL_LIST_STREAM;
	kube->env.seed = (uint64_t)roll_clock_wall_ms(conf->clock) ^ (uint64_t)(uintptr_t)kube;
	kube->env.on_want_list = on_want_list;
	kube->env.on_list_end = on_list_end;
	kube->env.on_proven = on_proven;
	kube->env.on_trouble = on_trouble;
	kube->env.ctx = kube;
	if (conf->metrics) {
		kube->env.lists = roll_metric_counter(conf->metrics, "rollcall_lists_total",
						      "Full lists begun, by kind and cause.",
						      "kind", "cause");
		kube->env.ends = roll_metric_counter(conf->metrics, "rollcall_watch_ends_total",
						     "Watches that ended, by kind and cause.",
						     "kind", "cause");
		kube->env.events =
			roll_metric_counter(conf->metrics, "rollcall_watch_events_total",
					    "Watch events read, by kind and type.", "kind", "type");
	}
	roll_buf_init(&kube->identity_text, IDENTITY_LIMIT_BYTES);
	kube->retry = roll_timer_new(conf->loop, on_retry, kube);
	if (!kube->retry)
		goto out;
	status = make_streams(kube, err);
	if (status)
		goto out;
	*out = kube;
	return ROLL_OK;
out:
	roll_kube_free(kube);
	return status == ROLL_ENOMEM
		       ? roll_err_set(err, ROLL_ENOMEM, NULL, "no memory for the source")
		       : status;
}

void roll_kube_free(struct roll_kube *kube)
{
	if (!kube)
		return;
	for (size_t i = 0; i < kube->stream_count; i++)
		roll_stream_free(kube->streams[i]);
	free(kube->streams);
	free(kube->queue);
	roll_api_cancel(kube->identity);
	roll_buf_fini(&kube->identity_text);
	roll_timer_free(kube->retry);
	free(kube);
}

void roll_kube_start(struct roll_kube *kube)
{
	roll_timer_set(kube->retry, 0);
}

void roll_kube_relist(struct roll_kube *kube)
{
	for (size_t i = 0; kube->has_started && i < kube->stream_count; i++)
		roll_stream_relist(kube->streams[i]);
}
