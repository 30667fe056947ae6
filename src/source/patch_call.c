/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/json.h"
#include "base/log.h"
#include "source/patch_state.h"

#define BODY_LIMIT_BYTES (4u << 20)
#define ANSWER_MS 30000
#define CONFLICTS_AT_ONCE 3
#define CONFLICT_BASE_MS 50
#define CONFLICT_CAP_MS 10000

/* --- answers --- */

static void complain(const struct roll_patch_item *item, const char *what,
		     const struct roll_api_result *result)
{
	roll_log(item->attempts ? ROLL_DEBUG : ROLL_WARN, "status-not-written",
		 "what=%s object=\"%s\" reason=\"%s\"", what, item->key, result->text);
}

/* What was told while the request was on its way. False: nothing. */
static bool take_later(struct roll_patch_item *item)
{
	json_t *later = item->later;
	bool is_good;

	if (!later)
		return false;
	item->later = NULL;
	is_good = roll_patch_learn(item, later, item->later_in_view);
	json_decref(later);
	return is_good;
}

/* Done with, unless it was asked for again meanwhile: a name may have come back. */
static void end(struct roll_patch_item *item)
{
	if (take_later(item) || item->is_wanted_again)
		roll_patch_go_on(item);
	else
		roll_patch_drop(item);
}

/* Nobody's fault: read again at once, and in a while if it goes on. */
static void again(struct roll_patch_item *item)
{
	struct roll_patch *patch = item->patch;
	unsigned beyond;

	take_later(item);
	if (++item->attempts <= CONFLICTS_AT_ONCE) {
		roll_patch_go_on(item);
		return;
	}
	beyond = item->attempts - CONFLICTS_AT_ONCE;
	roll_patch_wait(item,
			roll_backoff_ms(&beyond, CONFLICT_BASE_MS, CONFLICT_CAP_MS, &patch->seed));
}

static void note_refusal(const struct roll_patch_item *item, const struct roll_api_result *result)
{
	struct roll_patch *patch = item->patch;

	snprintf(patch->refusal, sizeof patch->refusal, "%s %s: %s",
		 item->state == ROLL_PATCH_READING ? "get" : "patch the status of", item->key,
		 result->text);
}

/* Others would fare no better. */
static bool is_about_server(const struct roll_api_result *result)
{
	switch (result->http_status) {
	case 0:
	case 401:
	case 429:
	case 503:
		return true;
	default:
		return result->retry_after_ms >= 0;
	}
}

/*
 * What the server finds wrong with the patch will be wrong the next time too. A webhook, a role or
 * the limits of etcd may have anything against one object, and it looks as if the server were ill:
 * so that is believed once of each.
 */
static void on_failure(struct roll_patch_item *item, const char *what,
		       const struct roll_api_result *result, struct roll_metric *metric)
{
	struct roll_patch *patch = item->patch;
	bool is_denied = result->http_status == 401 || result->http_status == 403;

	roll_patch_forget(item);
	switch (result->http_status) {
	case 404:
		roll_metric_add(metric, "gone", NULL, 1);
		patch->failures = 0;
		end(item);
		break;
	case 409:
		roll_metric_add(metric, "conflict", NULL, 1);
		patch->failures = 0;
		again(item);
		break;
	case 400:
	case 413:
	case 422:
		roll_metric_add(metric, "refused", NULL, 1);
		patch->failures = 0;
		complain(item, what, result);
		end(item);
		break;
	default:
		roll_metric_add(metric, is_denied ? "denied" : "failed", NULL, 1);
		complain(item, what, result);
		if (is_denied)
			note_refusal(item, result);
		if (item->attempts == 0 || is_about_server(result))
			roll_patch_pause(patch, result->retry_after_ms);
		take_later(item);
		roll_patch_retry(item);
		break;
	}
}

/*
 * An object has 1.5 MiB in etcd, as a rule (--max-request-bytes). The API server says so as if it
 * were ill: "500: etcdserver: request is too large", or what gRPC says of its own limit.
 */
static bool is_too_large(const struct roll_api_result *result)
{
	switch (result->http_status) {
	case 413:
		return true;
	case 400:
	case 422:
	case 500:
		return strstr(result->text, "too large") || strstr(result->text, "larger than max");
	default:
		return false;
	}
}

/* False: it has been made short already. */
static bool shorten(struct roll_patch_item *item, const struct roll_api_result *result)
{
	struct roll_patch_object object = roll_patch_object_of(item);

	if (!is_too_large(result) || object.has_no_room)
		return false;
	item->too_large = object.generation;
	roll_metric_add(item->patch->m_writes, "too_large", NULL, 1);
	roll_log(ROLL_WARN, "status-shortened", "object=\"%s\" reason=\"%s\"", item->key,
		 result->text);
	take_later(item);
	roll_patch_go_on(item);
	return true;
}

static void arrive(struct roll_patch_item *item)
{
	item->call = NULL;
	item->patch->in_flight--;
	roll_patch_wake(item->patch);
}

/* NULL: none that can be read. A new reference. */
static json_t *read_answer(struct roll_patch_item *item)
{
	json_t *out = NULL;

	if (item->answer.status || roll_json_parse(roll_buf_str(&item->answer), &out, NULL))
		out = NULL;
	roll_buf_fini(&item->answer);
	return out;
}

static void on_read(void *ctx, const struct roll_api_result *result)
{
	static const struct roll_api_result unreadable = {
		.http_status = 200, .retry_after_ms = -1, .text = "the answer is no object"};
	struct roll_patch_item *item = ctx;
	struct roll_patch *patch = item->patch;
	json_t *object = read_answer(item);

	arrive(item);
	/* What an event told is in the view already; what was read need not be. */
	if (result->status) {
		on_failure(item, "read", result, patch->m_reads);
	} else if (take_later(item) || roll_patch_learn(item, object, false)) {
		roll_metric_add(patch->m_reads, "ok", NULL, 1);
		patch->failures = 0;
		roll_patch_go_on(item);
	} else {
		on_failure(item, "read", &unreadable, patch->m_reads);
	}
	json_decref(object);
}

static void on_written(void *ctx, const struct roll_api_result *result)
{
	struct roll_patch_item *item = ctx;
	struct roll_patch *patch = item->patch;
	json_t *answer = read_answer(item), *sent = item->sent;

	arrive(item);
	if (result->status) {
		item->sent = NULL;
		if (!shorten(item, result))
			on_failure(item, "write", result, patch->m_writes);
	} else {
		struct roll_patch_object before = roll_patch_object_of(item);

		patch->failures = 0;
		patch->refusal[0] = '\0';
		item->attempts = 0;
		if (patch->conf.on_written)
			patch->conf.on_written(patch->conf.ctx, &before, sent,
					       roll_json_object(answer, "status"));
		roll_patch_rest(item);
		item->sent = NULL;
		roll_patch_forget(item);
		/* As a rule this is our own write, come back as an event. */
		take_later(item);
		roll_metric_add(patch->m_writes, "ok", NULL, 1);
	}
	json_decref(answer);
	json_decref(sent);
}

/* --- requests --- */

static enum roll_status on_body(void *ctx, struct roll_str piece)
{
	struct roll_patch_item *item = ctx;

	roll_buf_add_str(&item->answer, piece);
	return item->answer.status;
}

static bool start(struct roll_patch_item *item, enum roll_patch_state state, const char *end,
		  struct roll_api_spec *spec)
{
	struct roll_patch *patch = item->patch;
	struct roll_buf *path = &patch->text;

	roll_buf_reset(path);
	roll_buf_add_c(path, patch->conf.base);
	if (item->ns.n) {
		roll_buf_add_c(path, "/namespaces/");
		roll_buf_add_str(path, item->ns);
	}
	roll_buf_add_char(path, '/');
	roll_buf_add_str(path, item->resource);
	roll_buf_add_char(path, '/');
	roll_buf_add_str(path, item->name);
	roll_buf_add_c(path, end);
	spec->path = path->p;
	spec->on_body = on_body;
	spec->ctx = item;
	item->call = path->status ? NULL : roll_api_start(patch->conf.api, spec);
	if (!item->call)
		return false;
	roll_patch_move(item, state);
	patch->in_flight++;
	return true;
}

bool roll_patch_start_read(struct roll_patch_item *item)
{
	struct roll_api_spec spec = {.method = "GET", .total_ms = ANSWER_MS, .on_done = on_read};

	item->is_wanted_again = false;
	return start(item, ROLL_PATCH_READING, "", &spec);
}

/* The uid does not stop the server, but the version does: a new object never has an old one. */
bool roll_patch_start_write(struct roll_patch_item *item, json_t *status)
{
	const json_t *metadata = roll_json_object(item->object, "metadata");
	struct roll_api_spec spec = {
		.method = "PATCH",
		.content_type = "application/merge-patch+json",
		.total_ms = ANSWER_MS,
		.on_done = on_written,
	};
	int64_t left = roll_patch_left_ms(item->patch);
	json_t *body = json_pack("{s:{s:O, s:O}, s:O}", "metadata", "resourceVersion",
				 json_object_get(metadata, "resourceVersion"), "uid",
				 json_object_get(metadata, "uid"), "status", status);
	struct roll_buf text;
	bool is_started;

	if (left < spec.total_ms)
		spec.total_ms = left > 0 ? left : 1;
	roll_buf_init(&text, BODY_LIMIT_BYTES);
	is_started = body && !roll_json_print(body, &text);
	spec.body = roll_buf_str(&text);
	is_started = is_started &&
		     start(item, ROLL_PATCH_WRITING, "/status?fieldManager=rollcall", &spec);
	if (is_started)
		item->sent = json_incref(status);
	json_decref(body);
	roll_buf_fini(&text);
	return is_started;
}
