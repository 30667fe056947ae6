/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <stdio.h>
#include <string.h>

/* Jansson quotes the text at fault, which is foreign. */
static enum roll_status parse_failed(const json_error_t *error, struct roll_err *err)
{
	char text[sizeof error->text * 2], where[64];
	struct roll_str said = roll_str_n(error->text, strnlen(error->text, sizeof error->text));

	roll_str_show(said, text, sizeof text);
	switch (json_error_code(error)) {
	case json_error_out_of_memory:
		return roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	case json_error_stack_overflow:
		return roll_err_set(err, ROLL_ELIMIT, NULL, "nested deeper than %d levels",
				    ROLL_JSON_DEPTH);
	default:
		snprintf(where, sizeof where, "line %d, column %d", error->line, error->column);
		return roll_err_set(err, ROLL_EINVAL, where, "not valid JSON: %s", text);
	}
}

enum roll_status roll_json_parse(struct roll_str text, json_t **out, struct roll_err *err)
{
	const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY;
	json_error_t error;
	json_t *value = json_loadb(text.n ? text.p : "", text.n, flags, &error);

	if (!value)
		return parse_failed(&error, err);
	if (roll_json_depth(value) > ROLL_JSON_DEPTH) {
		json_decref(value);
		return roll_err_set(err, ROLL_ELIMIT, NULL, "nested deeper than %d levels",
				    ROLL_JSON_DEPTH);
	}
	*out = value;
	return ROLL_OK;
}

/* Recursion is bounded: the parser above makes at most 2048 levels. */
size_t roll_json_depth(const json_t *value)
{
	json_t *root = (json_t *)value; /* jansson's iterators are not const-correct */
	size_t deepest = 0, depth, i;
	const char *key;
	json_t *child;

	if (json_is_object(root)) {
		json_object_foreach (root, key, child) {
			depth = roll_json_depth(child);
			deepest = depth > deepest ? depth : deepest;
		}
		return deepest + 1;
	}
	if (json_is_array(root)) {
		json_array_foreach (root, i, child) {
			depth = roll_json_depth(child);
			deepest = depth > deepest ? depth : deepest;
		}
		return deepest + 1;
	}
	return 0;
}

struct roll_str roll_json_str(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_string(value))
		return roll_str_n("", 0);
	return roll_str_n(json_string_value(value), json_string_length(value));
}

json_t *roll_json_object(const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	return json_is_object(value) ? value : NULL;
}

json_t *roll_json_array(const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	return json_is_array(value) ? value : NULL;
}

static int dump_piece(const char *bytes, size_t n, void *ctx)
{
	struct roll_buf *buf = ctx;

	roll_buf_add(buf, bytes, n);
	return buf->status ? -1 : 0;
}

enum roll_status roll_json_print(const json_t *value, struct roll_buf *buf)
{
	const size_t flags = JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY;

	if (!buf->status && json_dump_callback(value, dump_piece, buf, flags) && !buf->status)
		buf->status = ROLL_ENOMEM;
	return buf->status;
}
