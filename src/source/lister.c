/* SPDX-License-Identifier: Apache-2.0 */
#include "source/lister.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "source/watch.h"

#define PAGE_OBJECTS 500
#define SKELETON_LIMIT_BYTES (1u << 20)
#define TOKEN_LIMIT_BYTES (16u << 10)
#define PAGE_MS 60000
/* Some millions of objects come in that time; pages have no limit together. */
#define STREAM_MS 300000
/* Without a byte of a page; without an object of a streaming list. */
#define SILENCE_MS 20000

struct roll_lister {
	struct roll_api *api;
	struct roll_lister_spec spec;
	struct roll_api_call *call;
	struct roll_json_items *items; /* of the page at hand */
	struct roll_watch *events;     /* of a streaming list */
	struct roll_timer *silence;    /* of a streaming list, */
	struct roll_timer *limit;      /* and of the whole of it */
	struct roll_buf token;	       /* for the next page */
	uint64_t revision;
	size_t count;
	bool is_complete;
	bool has_no_stream;
	struct roll_err err; /* of our own making; code 0: none */
};

static void free_list(struct roll_lister *list)
{
	roll_api_cancel(list->call);
	roll_json_items_free(list->items);
	roll_watch_free(list->events);
	roll_timer_free(list->silence);
	roll_timer_free(list->limit);
	roll_buf_fini(&list->token);
	free(list);
}

/* Tell the end. The callback may start another list, but this one is gone. */
static void finish(struct roll_lister *list, const struct roll_api_result *answer)
{
	struct roll_lister_result result = {
		.status = list->err.code,
		.revision = list->revision,
		.count = list->count,
		.retry_after_ms = -1,
		.text = list->err.text,
		.has_no_stream = list->has_no_stream,
	};

	if (answer) {
		result.http_status = answer->http_status;
		result.retry_after_ms = answer->retry_after_ms;
		if (!list->err.code) {
			result.status = answer->status;
			result.text = answer->text;
		}
	}
	list->spec.on_done(list->spec.ctx, &result);
	free_list(list);
}

static enum roll_status broken(struct roll_lister *list, enum roll_status status, const char *text)
{
	return roll_err_set(&list->err, status, list->spec.kind, "%s", text);
}

static enum roll_status take_object(struct roll_lister *list, json_t *object)
{
	struct roll_str kind = roll_json_str(object, "kind");

	/* Items of typed lists come without what the list says for all of them. */
	if (kind.n == 0 &&
	    (json_object_set_new(object, "kind", json_string(list->spec.kind)) ||
	     json_object_set_new(object, "apiVersion", json_string(list->spec.api_version))))
		return broken(list, ROLL_ENOMEM, "no memory for an object");
	if (kind.n && !roll_str_eq_c(kind, list->spec.kind))
		return broken(list, ROLL_EPROTO, "the list holds an object of another kind");
	list->count++;
	if (list->spec.on_item(list->spec.ctx, object))
		return broken(list, ROLL_ECANCELED, "given up");
	return ROLL_OK;
}

/* --- pages --- */

static enum roll_status on_item(void *ctx, struct roll_str item)
{
	struct roll_lister *list = ctx;
	struct roll_err detail = {0};
	enum roll_status status;
	json_t *object = NULL;

	status = roll_json_parse(item, &object, &detail);
	if (status || !json_is_object(object))
		status = roll_err_set(&list->err, ROLL_EPROTO, list->spec.kind,
				      "an item is no object: %s", detail.text);
	else
		status = take_object(list, object);
	json_decref(object);
	return status;
}

static enum roll_status on_page_body(void *ctx, struct roll_str piece)
{
	struct roll_lister *list = ctx;
	struct roll_err detail = {0};
	enum roll_status status = roll_json_items_feed(list->items, piece, &detail);

	if (status && !list->err.code)
		roll_err_set(&list->err, ROLL_EPROTO, list->spec.kind, "%s: %s", detail.where,
			     detail.text);
	return status;
}

/* What stands after the items decides whether they count (metadata is the last member). */
static enum roll_status read_skeleton(struct roll_lister *list)
{
	struct roll_str kind, token;
	enum roll_status status;
	struct roll_err detail = {0};
	json_t *skeleton = NULL, *metadata;
	uint64_t revision = 0;
	bool had_items = false;

	status = roll_json_items_end(list->items, &skeleton, &had_items, &detail);
	if (status) {
		roll_err_set(&list->err, ROLL_EPROTO, list->spec.kind, "%s", detail.text);
		goto out;
	}
	kind = roll_json_str(skeleton, "kind");
	metadata = roll_json_object(skeleton, "metadata");
	if (!roll_str_starts(kind, list->spec.kind) ||
	    !roll_str_eq_c(
		    roll_str_n(kind.p + strlen(list->spec.kind), kind.n - strlen(list->spec.kind)),
		    "List") ||
	    !roll_str_eq_c(roll_json_str(skeleton, "apiVersion"), list->spec.api_version) ||
	    (!had_items && !json_is_null(json_object_get(skeleton, "items")))) {
		status = broken(list, ROLL_EPROTO, "the answer is not the list that was asked for");
		goto out;
	}
	if (roll_revision_of(skeleton, &revision)) {
		status = broken(list, ROLL_EPROTO, "the list has no usable resourceVersion");
		goto out;
	}
	if (list->revision && list->revision != revision) {
		status = broken(list, ROLL_ESTALE, "the pages are not of one snapshot");
		goto out;
	}
	list->revision = revision;
	token = roll_json_str(metadata, "continue");
	if (token.n && roll_str_eq(token, roll_buf_str(&list->token))) {
		status = broken(list, ROLL_EPROTO, "the list does not go on");
		goto out;
	}
	roll_buf_reset(&list->token);
	roll_buf_add_str(&list->token, token);
	if (list->token.status)
		status = broken(list, list->token.status, "the continue token is too large");
out:
	json_decref(skeleton);
	return status;
}

static bool start_page(struct roll_lister *list);

static void on_page_done(void *ctx, const struct roll_api_result *answer)
{
	struct roll_lister *list = ctx;

	list->call = NULL;
	if (answer->http_status == 410) {
		/* The body offers a token for the rest of another snapshot: half of each is none.
		 */
		broken(list, ROLL_ESTALE, "the snapshot expired");
	} else if (!answer->status && !read_skeleton(list) && list->token.n) {
		if (start_page(list))
			return;
		broken(list, ROLL_ENOMEM, "no memory for the next page");
	}
	finish(list, answer);
}

static void add_encoded(struct roll_buf *buf, struct roll_str text)
{
	static const char digits[] = "0123456789ABCDEF";

	/* RFC 3986, 2.3 */
	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (roll_is_alpha(c) || roll_is_digit(c) || (c && strchr("-._~", c))) {
			roll_buf_add_char(buf, (char)c);
		} else {
			roll_buf_add_char(buf, '%');
			roll_buf_add_char(buf, digits[c >> 4]);
			roll_buf_add_char(buf, digits[c & 15]);
		}
	}
}

static bool start_page(struct roll_lister *list)
{
	struct roll_api_spec spec = {
		.method = "GET",
		.total_ms = PAGE_MS,
		.silence_ms = SILENCE_MS,
		.accepts_gzip = true,
		.on_body = on_page_body,
		.on_done = on_page_done,
		.ctx = list,
	};
	struct roll_buf path;

	roll_json_items_free(list->items);
	list->items = roll_json_items_new(ROLL_WATCH_LINE_LIMIT_BYTES, SKELETON_LIMIT_BYTES,
					  on_item, list);
	if (!list->items)
		return false;
	roll_buf_init(&path, TOKEN_LIMIT_BYTES * 4);
	roll_buf_printf(&path, "%s?limit=%d", list->spec.path, PAGE_OBJECTS);
	if (list->token.n) {
		roll_buf_add_c(&path, "&continue=");
		add_encoded(&path, roll_buf_str(&list->token));
	}
	spec.path = path.p;
	list->call = path.status ? NULL : roll_api_start(list->api, &spec);
	roll_buf_fini(&path);
	return list->call != NULL;
}

/* --- streaming --- */

static enum roll_status on_event(void *ctx, const struct roll_watch_event *event)
{
	struct roll_lister *list = ctx;
	char shown[200];

	switch (event->type) {
	case ROLL_WATCH_ADDED:
	case ROLL_WATCH_MODIFIED:
		roll_timer_set(list->silence, SILENCE_MS);
		return take_object(list, event->object);
	case ROLL_WATCH_DELETED:
		/* Sent already, perhaps, from a cache that was behind; a list cannot take it back.
		 */
		return broken(list, ROLL_ESTALE, "an object went while it was listed");
	case ROLL_WATCH_BOOKMARK:
		if (!event->ends_initial)
			return ROLL_OK;
		list->revision = event->revision;
		list->is_complete = true;
		return ROLL_ECANCELED;
	case ROLL_WATCH_ERROR:
		/* "Expired" and "too many requests" are no word on streaming as such. */
		list->has_no_stream = event->code != 410 && event->code != 429;
		roll_str_show(event->message, shown, sizeof shown);
		return roll_err_set(&list->err, event->code == 410 ? ROLL_ESTALE : ROLL_EAGAIN,
				    list->spec.kind, "the server ended the list: %d %s",
				    event->code, shown);
	case ROLL_WATCH_TOO_LARGE:
		roll_str_show(event->name, shown, sizeof shown);
		return roll_err_set(&list->err, ROLL_ELIMIT, list->spec.kind,
				    "object %s is too large", shown[0] ? shown : "(unknown)");
	case ROLL_WATCH_UNKNOWN:
		break;
	}
	return ROLL_OK;
}

static enum roll_status on_stream_body(void *ctx, struct roll_str piece)
{
	struct roll_lister *list = ctx;
	struct roll_err detail = {0};
	enum roll_status status = roll_watch_feed(list->events, piece, &detail);

	if (status && !list->is_complete && !list->err.code)
		list->err = detail;
	return status;
}

static void on_stream_done(void *ctx, const struct roll_api_result *answer)
{
	struct roll_lister *list = ctx;

	list->call = NULL;
	if (list->is_complete) {
		finish(list, NULL);
		return;
	}
	if (answer->http_status == 400 || answer->http_status == 422) {
		list->has_no_stream = true;
	} else if (!answer->status && !list->err.code) {
		list->has_no_stream = true;
		broken(list, ROLL_EAGAIN, "the list ended before its closing bookmark");
	}
	finish(list, answer);
}

/* A server that does not know the parameter sends a plain watch, which may go on for ever. */
static void give_up(struct roll_lister *list, const char *text)
{
	list->has_no_stream = true;
	broken(list, ROLL_EAGAIN, text);
	finish(list, NULL);
}

static void on_silence(void *ctx)
{
	give_up(ctx, "the list went silent before its closing bookmark");
}

static void on_limit(void *ctx)
{
	give_up(ctx, "the list had no closing bookmark for too long");
}

static bool start_stream(struct roll_loop *loop, struct roll_lister *list)
{
	struct roll_api_spec spec = {
		.method = "GET",
		.on_body = on_stream_body,
		.on_done = on_stream_done,
		.ctx = list,
	};
	struct roll_buf path;

	list->events = roll_watch_new(ROLL_WATCH_LINE_LIMIT_BYTES, on_event, list);
	list->silence = roll_timer_new(loop, on_silence, list);
	list->limit = roll_timer_new(loop, on_limit, list);
	if (!list->events || !list->silence || !list->limit)
		return false;
	roll_timer_set(list->silence, SILENCE_MS);
	roll_timer_set(list->limit, STREAM_MS);
	roll_buf_init(&path, TOKEN_LIMIT_BYTES);
	roll_buf_printf(&path,
			"%s?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
			"&allowWatchBookmarks=true&resourceVersion=",
			list->spec.path);
	spec.path = path.p;
	list->call = path.status ? NULL : roll_api_start(list->api, &spec);
	roll_buf_fini(&path);
	return list->call != NULL;
}

struct roll_lister *roll_lister_start(struct roll_loop *loop, struct roll_api *api,
				      const struct roll_lister_spec *spec)
{
	struct roll_lister *list = calloc(1, sizeof *list);

	if (!list)
		return NULL;
	list->api = api;
	list->spec = *spec;
	roll_buf_init(&list->token, TOKEN_LIMIT_BYTES);
	if (!(spec->way == ROLL_LIST_STREAM ? start_stream(loop, list) : start_page(list))) {
		free_list(list);
		return NULL;
	}
	return list;
}

void roll_lister_cancel(struct roll_lister *list)
{
	if (list)
		free_list(list);
}
