/* SPDX-License-Identifier: Apache-2.0 */
#include "source/watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

struct roll_watch {
	struct roll_buf line; /* the part of a line that came with earlier pieces */
	size_t limit_bytes;
	bool is_skipping; /* the rest of a line that was too large */
	enum roll_status status;
	roll_watch_on_event on_event;
	void *ctx;
};

struct roll_watch *roll_watch_new(size_t line_limit_bytes, roll_watch_on_event on_event, void *ctx)
{
	struct roll_watch *watch = calloc(1, sizeof *watch);

	if (!watch)
		return NULL;
	roll_buf_init(&watch->line, line_limit_bytes);
	watch->limit_bytes = line_limit_bytes;
	watch->on_event = on_event;
	watch->ctx = ctx;
	return watch;
}

void roll_watch_free(struct roll_watch *watch)
{
	if (!watch)
		return;
	roll_buf_fini(&watch->line);
	free(watch);
}

enum roll_status roll_revision_parse(struct roll_str text, uint64_t *out)
{
	enum roll_status status = roll_str_u64(text, UINT64_MAX, out);

	return status || *out == 0 ? ROLL_EINVAL : ROLL_OK;
}

enum roll_status roll_revision_of(const json_t *object, uint64_t *out)
{
	return roll_revision_parse(
		roll_json_str(roll_json_object(object, "metadata"), "resourceVersion"), out);
}

/*
 * The name in a line that was cut short, to have something to say about it: the strings "namespace"
 * and "name" at the depth of {"object":{"metadata":{"name":...}}}. Good enough for a message; the
 * text is not known to be JSON.
 */
static struct roll_str find_name(struct roll_str line, char *out, size_t out_size)
{
	struct roll_str key = {NULL, 0}, ns = {NULL, 0}, name = {NULL, 0};
	size_t depth = 0;

	for (size_t i = 0; i < line.n; i++) {
		char c = line.p[i];
		size_t from = i + 1;

		if (c == '{' || c == '[')
			depth++;
		else if ((c == '}' || c == ']') && depth > 0)
			depth--;
		else if (c == ',')
			key.n = 0;
		if (c != '"')
			continue;
		for (i++; i < line.n && line.p[i] != '"'; i++)
			i += line.p[i] == '\\';
		if (i >= line.n || depth != 3)
			continue;
		if (key.n == 0)
			key = roll_str_n(line.p + from, i - from);
		else if (roll_str_eq_c(key, "namespace") && !ns.n)
			ns = roll_str_n(line.p + from, i - from);
		else if (roll_str_eq_c(key, "name") && !name.n)
			name = roll_str_n(line.p + from, i - from);
		if (name.n && ns.n)
			break;
	}
	/* Keys are sorted as API servers write them, so a namespace stands behind the name. */
	if (ns.n + name.n + 1 > out_size || name.n == 0)
		return roll_str_n(NULL, 0);
	if (ns.n) {
		memcpy(out, ns.p, ns.n);
		out[ns.n] = '/';
		ns.n++;
	}
	memcpy(out + ns.n, name.p, name.n);
	return roll_str_n(out, ns.n + name.n);
}

static enum roll_status too_large(struct roll_watch *watch)
{
	struct roll_watch_event event = {.type = ROLL_WATCH_TOO_LARGE};
	char name[512];

	event.name = find_name(roll_buf_str(&watch->line), name, sizeof name);
	watch->is_skipping = true;
	roll_buf_reset(&watch->line);
	return watch->on_event(watch->ctx, &event);
}

static enum roll_watch_type type_of(struct roll_str text)
{
	static const char *const names[] = {
		[ROLL_WATCH_ADDED] = "ADDED",	  [ROLL_WATCH_MODIFIED] = "MODIFIED",
		[ROLL_WATCH_DELETED] = "DELETED", [ROLL_WATCH_BOOKMARK] = "BOOKMARK",
		[ROLL_WATCH_ERROR] = "ERROR",
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (roll_str_eq_c(text, names[i]))
			return (enum roll_watch_type)i;
	}
	return ROLL_WATCH_UNKNOWN;
}

static enum roll_status take_line(struct roll_watch *watch, struct roll_str line,
				  struct roll_err *err)
{
	struct roll_watch_event event = {0};
	enum roll_status status = ROLL_EPROTO;
	struct roll_str text, initial;
	struct roll_err detail = {0};
	json_t *root = NULL;

	line = roll_str_trim(line);
	if (line.n == 0)
		return ROLL_OK;
	if (roll_json_parse(line, &root, &detail)) {
		roll_err_set(err, status, "watch", "a line is not JSON: %s", detail.text);
		goto out;
	}
	text = roll_json_str(root, "type");
	event.object = roll_json_object(root, "object");
	if (text.n == 0 || !event.object) {
		roll_err_set(err, status, "watch", "a line has no type or no object");
		goto out;
	}
	event.type = type_of(text);
	if (event.type == ROLL_WATCH_ERROR) {
		event.code = (int)json_integer_value(json_object_get(event.object, "code"));
		event.reason = roll_json_str(event.object, "reason");
		event.message = roll_json_str(event.object, "message");
	} else if (event.type == ROLL_WATCH_UNKNOWN) {
		event.name = text;
	} else if (roll_revision_of(event.object, &event.revision)) {
		roll_err_set(err, status, "watch", "an event has no usable resourceVersion");
		goto out;
	}
	initial = roll_json_str(
		roll_json_object(roll_json_object(event.object, "metadata"), "annotations"),
		"k8s.io/initial-events-end");
	event.ends_initial = event.type == ROLL_WATCH_BOOKMARK && roll_str_eq_c(initial, "true");
	status = watch->on_event(watch->ctx, &event);
out:
	json_decref(root);
	return status;
}

enum roll_status roll_watch_feed(struct roll_watch *watch, struct roll_str piece,
				 struct roll_err *err)
{
	if (watch->status)
		return roll_err_set(err, watch->status, "watch", "was given up earlier");
	while (piece.n && !watch->status) {
		const char *end = memchr(piece.p, '\n', piece.n);
		size_t n = end ? (size_t)(end - piece.p) : piece.n;
		struct roll_str part = roll_str_n(piece.p, n);

		piece = roll_str_n(piece.p + n + (end != NULL), piece.n - n - (end != NULL));
		if (!watch->is_skipping && part.n > watch->limit_bytes - watch->line.n) {
			roll_buf_add(&watch->line, part.p, watch->limit_bytes - watch->line.n);
			watch->status = too_large(watch);
		}
		if (watch->is_skipping) {
			watch->is_skipping = end == NULL;
		} else if (end && watch->line.n == 0) {
			watch->status = take_line(watch, part, err);
		} else {
			roll_buf_add_str(&watch->line, part);
			if (watch->line.status) {
				watch->status = roll_err_set(err, watch->line.status, "watch",
							     "no memory for a line");
			} else if (end) {
				watch->status = take_line(watch, roll_buf_str(&watch->line), err);
				roll_buf_reset(&watch->line);
			}
		}
	}
	return watch->status;
}
