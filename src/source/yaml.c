/* SPDX-License-Identifier: Apache-2.0 */
#include "source/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/json.h"
#include "source/yaml_scalar.h"

/*
 * libyaml turns the text into events, one at a time; here they become values, with a stack of open
 * collections instead of recursion. Anchored values are kept for the document, with what they cost,
 * so that an alias is charged as if it had been written out.
 */

#define CORE_TAG "tag:yaml.org,2002:"
#define NO_ANCHOR SIZE_MAX
#define SCALAR_UNIT 1024 /* a scalar counts once for each KiB begun */
#define DIRECTIVES_MAX 1000

struct anchor {
	json_t *value; /* NULL while its collection is open */
	size_t nodes;
	size_t height; /* levels of collections in it */
};

enum key_state { KEY_WANTED, KEY_PLAIN, KEY_MERGE };

struct frame {
	json_t *value;		  /* an object or an array */
	enum key_state key_state; /* of objects */
	json_t *key;		  /* a string, with KEY_PLAIN */
	json_t *merges;		  /* what `<<` gave, an object or an array of them; or NULL */
	size_t anchor;
	size_t nodes_before;
	size_t height;
};

struct reader {
	yaml_parser_t parser;
	struct roll_str text;
	struct roll_err *err;
	yaml_mark_t mark; /* where the present event begins */
	size_t node_limit;
	/* of one document: */
	struct frame frames[ROLL_JSON_DEPTH];
	size_t depth;
	size_t nodes;
	json_t *root;
	size_t root_line;
	json_t *anchor_index; /* name -> index of its latest definition */
	struct anchor *anchors;
	size_t anchor_count, anchor_room;
};

static enum roll_status refuse(struct reader *r, enum roll_status code, const char *text)
{
	char where[64];

	snprintf(where, sizeof where, "line %zu, column %zu", r->mark.line + 1, r->mark.column + 1);
	return roll_err_set(r->err, code, where, "%s", text);
}

static enum roll_status no_memory(struct reader *r)
{
	return roll_err_set(r->err, ROLL_ENOMEM, NULL, "out of memory");
}

/* libyaml compares every %TAG directive with those before it: time grows with their square. */
static size_t count_directives(struct roll_str text)
{
	size_t count = 0;

	while (text.n)
		count += roll_str_starts(roll_str_cut(&text, '\n'), "%TAG");
	return count;
}

/* Reader errors come with a byte offset only. */
static yaml_mark_t mark_of_offset(struct roll_str text, size_t offset)
{
	yaml_mark_t mark = {0};
	size_t i;

	for (i = 0; i < offset && i < text.n; i++) {
		if (text.p[i] == '\n') {
			mark.line++;
			mark.column = 0;
		} else if (((unsigned char)text.p[i] & 0xc0) != 0x80) {
			mark.column++;
		}
	}
	return mark;
}

static enum roll_status parser_failed(struct reader *r)
{
	const yaml_parser_t *parser = &r->parser;
	const char *problem = parser->problem ? parser->problem : "not valid YAML";

	if (parser->error == YAML_MEMORY_ERROR)
		return no_memory(r);
	if (parser->error == YAML_READER_ERROR)
		r->mark = mark_of_offset(r->text, parser->problem_offset);
	else
		r->mark = parser->problem_mark;
	return refuse(r, ROLL_EINVAL, problem);
}

static enum roll_status charge(struct reader *r, size_t nodes)
{
	if (nodes > r->node_limit - r->nodes)
		return refuse(r, ROLL_ELIMIT, "too many nodes, aliases counted as what they mean");
	r->nodes += nodes;
	return ROLL_OK;
}

static void document_reset(struct reader *r)
{
	size_t i;

	for (i = 0; i < r->depth; i++) {
		json_decref(r->frames[i].value);
		json_decref(r->frames[i].key);
		json_decref(r->frames[i].merges);
	}
	for (i = 0; i < r->anchor_count; i++)
		json_decref(r->anchors[i].value);
	json_decref(r->root);
	json_decref(r->anchor_index);
	r->depth = r->nodes = r->root_line = r->anchor_count = 0;
	r->root = r->anchor_index = NULL;
}

/* value NULL: an open collection. */
static enum roll_status anchor_add(struct reader *r, const yaml_char_t *name, json_t *value,
				   size_t nodes, size_t *index)
{
	struct anchor *grown;
	size_t room;

	*index = NO_ANCHOR;
	if (!name)
		return ROLL_OK;
	if (r->anchor_count == r->anchor_room) {
		room = r->anchor_room ? r->anchor_room * 2 : 16;
		grown = (struct anchor *)reallocarray(r->anchors, room, sizeof *grown);
		if (!grown)
			return no_memory(r);
		r->anchors = grown;
		r->anchor_room = room;
	}
	if (!r->anchor_index)
		r->anchor_index = json_object();
	if (!r->anchor_index || json_object_set_new(r->anchor_index, (const char *)name,
						    json_integer((json_int_t)r->anchor_count)) != 0)
		return no_memory(r);
	*index = r->anchor_count++;
	r->anchors[*index] = (struct anchor){json_incref(value), nodes, 0};
	return ROLL_OK;
}

static struct frame *top(struct reader *r)
{
	return r->depth ? &r->frames[r->depth - 1] : NULL;
}

static bool wants_key(struct reader *r)
{
	struct frame *frame = top(r);

	return frame && json_is_object(frame->value) && frame->key_state == KEY_WANTED;
}

static enum roll_status set_merge(struct reader *r, struct frame *frame, json_t *value)
{
	size_t i;

	if (json_is_array(value)) {
		for (i = 0; i < json_array_size(value); i++)
			if (!json_is_object(json_array_get(value, i)))
				return refuse(r, ROLL_EINVAL, "a merge key takes maps only");
	} else if (!json_is_object(value)) {
		return refuse(r, ROLL_EINVAL, "a merge key takes a map or a list of maps");
	}
	frame->merges = json_incref(value);
	frame->key_state = KEY_WANTED;
	return ROLL_OK;
}

/* Put a whole value, of which the caller keeps its reference, where it belongs. */
static enum roll_status put(struct reader *r, json_t *value, size_t height)
{
	struct frame *frame = top(r);
	int failed;

	if (!frame) {
		r->root = json_incref(value);
		return ROLL_OK;
	}
	if (height > frame->height)
		frame->height = height;
	if (json_is_array(frame->value))
		return json_array_append(frame->value, value) == 0 ? ROLL_OK : no_memory(r);
	if (frame->key_state == KEY_MERGE)
		return set_merge(r, frame, value);
	failed = json_object_set(frame->value, json_string_value(frame->key), value);
	json_decref(frame->key);
	frame->key = NULL;
	frame->key_state = KEY_WANTED;
	return failed ? no_memory(r) : ROLL_OK;
}

/*
 * JSON keys are strings: other scalars become what sigs.k8s.io/yaml makes of them, floats what was
 * written (empty for an alias: then they are refused).
 */
static enum roll_status put_key(struct reader *r, const json_t *value, struct roll_str written)
{
	struct frame *frame = top(r);
	struct roll_str text = written;
	char shown[80], message[160];
	struct roll_buf digits;
	json_t *key = NULL;
	enum roll_status status = ROLL_EINVAL;

	roll_buf_init(&digits, 32);
	if (json_is_string(value)) {
		text = roll_str_n(json_string_value(value), json_string_length(value));
	} else if (json_is_boolean(value)) {
		text = roll_str_c(json_is_true(value) ? "true" : "false");
	} else if (json_is_integer(value)) {
		roll_buf_printf(&digits, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		text = roll_buf_str(&digits);
	} else if (!json_is_real(value) || !written.n) {
		refuse(r, ROLL_EINVAL, "a key must be a scalar, and not null");
		goto out;
	}
	if (text.n && memchr(text.p, 0, text.n)) {
		refuse(r, ROLL_EINVAL, "a key must not contain NUL");
		goto out;
	}
	key = json_stringn(text.n ? text.p : "", text.n);
	if (!key) {
		status = no_memory(r);
		goto out;
	}
	if (json_object_get(frame->value, json_string_value(key))) {
		snprintf(message, sizeof message, "duplicate key \"%s\"",
			 roll_str_show(text, shown, sizeof shown));
		refuse(r, ROLL_EINVAL, message);
		json_decref(key);
		goto out;
	}
	frame->key = key;
	frame->key_state = KEY_PLAIN;
	status = ROLL_OK;
out:
	roll_buf_fini(&digits);
	return status;
}

static enum roll_status on_merge_key(struct reader *r)
{
	struct frame *frame = top(r);

	if (frame->merges)
		return refuse(r, ROLL_EINVAL, "duplicate key \"<<\"");
	frame->key_state = KEY_MERGE;
	return ROLL_OK;
}

/* "int" for !!int; NULL if the tag is not a core one. */
static const char *core_tag(const yaml_char_t *tag)
{
	const char *text = (const char *)tag;

	return strncmp(text, CORE_TAG, strlen(CORE_TAG)) == 0 ? text + strlen(CORE_TAG) : NULL;
}

static enum roll_status bad_tag(struct reader *r, const yaml_char_t *tag)
{
	char shown[80], message[160];

	snprintf(message, sizeof message, "tag \"%s\" is not supported",
		 roll_str_show(roll_str_c((const char *)tag), shown, sizeof shown));
	return refuse(r, ROLL_EINVAL, message);
}

static enum roll_status as_string(struct reader *r, struct roll_str text, json_t **out)
{
	enum roll_status status = roll_yaml_string(text, out);

	return status == ROLL_EINVAL ? refuse(r, status, "not UTF-8") : status;
}

static enum roll_status resolve_tagged(struct reader *r, const yaml_char_t *tag,
				       struct roll_str text, json_t **out)
{
	static const struct {
		const char *tag;
		enum roll_yaml_kind kind;
	} kinds[] = {
		{"null", ROLL_YAML_NULL},
		{"bool", ROLL_YAML_BOOL},
		{"int", ROLL_YAML_INT},
		{"float", ROLL_YAML_FLOAT},
	};
	const char *core = core_tag(tag);
	enum roll_yaml_kind kind;
	size_t i;

	/* YAML 1.1, 3.3.2: "!" alone says that it is text. */
	if ((core && strcmp(core, "str") == 0) || strcmp((const char *)tag, "!") == 0)
		return as_string(r, text, out);
	for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (core && strcmp(core, kinds[i].tag) == 0)
			break;
	if (i == sizeof kinds / sizeof kinds[0])
		return bad_tag(r, tag);
	if (roll_yaml_resolve(text, &kind, out) != ROLL_OK)
		return ROLL_ENOMEM;
	if (kind == ROLL_YAML_INT && kinds[i].kind == ROLL_YAML_FLOAT)
		kind = ROLL_YAML_FLOAT;
	if (kind == kinds[i].kind)
		return ROLL_OK;
	json_decref(*out);
	*out = NULL;
	return refuse(r, ROLL_EINVAL, "the value does not fit its tag");
}

static enum roll_status resolve(struct reader *r, const yaml_event_t *event, struct roll_str text,
				json_t **out)
{
	enum roll_yaml_kind kind;
	enum roll_status status;

	*out = NULL;
	if (event->data.scalar.tag)
		return resolve_tagged(r, event->data.scalar.tag, text, out);
	if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return as_string(r, text, out);
	status = roll_yaml_resolve(text, &kind, out);
	if (status == ROLL_OK && kind == ROLL_YAML_NOT_JSON)
		return refuse(r, ROLL_EINVAL, "JSON has no infinite numbers and no not-a-number");
	return status;
}

static bool is_merge_key(const yaml_event_t *event, struct roll_str text)
{
	const yaml_char_t *tag = event->data.scalar.tag;

	if (tag)
		return core_tag(tag) && strcmp(core_tag(tag), "merge") == 0;
	return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && roll_str_eq_c(text, "<<");
}

static enum roll_status on_scalar(struct reader *r, const yaml_event_t *event)
{
	struct roll_str text =
		roll_str_n((const char *)event->data.scalar.value, event->data.scalar.length);
	size_t cost = text.n ? (text.n - 1) / SCALAR_UNIT + 1 : 1, index;
	json_t *value = NULL;
	enum roll_status status = charge(r, cost);

	if (status == ROLL_OK && wants_key(r) && is_merge_key(event, text))
		return on_merge_key(r);
	if (status == ROLL_OK) {
		status = resolve(r, event, text, &value);
		if (status == ROLL_ENOMEM)
			no_memory(r);
	}
	if (status == ROLL_OK)
		status = anchor_add(r, event->data.scalar.anchor, value, cost, &index);
	if (status == ROLL_OK)
		status = wants_key(r) ? put_key(r, value, text) : put(r, value, 0);
	json_decref(value);
	return status;
}

static enum roll_status on_alias(struct reader *r, const yaml_event_t *event)
{
	const json_t *index =
		json_object_get(r->anchor_index, (const char *)event->data.alias.anchor);
	const struct anchor *anchor;
	enum roll_status status;

	if (!index)
		return refuse(r, ROLL_EINVAL, "alias of an anchor that is not defined before it");
	anchor = &r->anchors[json_integer_value(index)];
	if (!anchor->value)
		return refuse(r, ROLL_EINVAL, "anchor contains itself");
	status = charge(r, anchor->nodes);
	if (status != ROLL_OK)
		return status;
	if (r->depth + anchor->height > ROLL_JSON_DEPTH)
		return refuse(r, ROLL_ELIMIT, "nested too deep, aliases counted");
	return wants_key(r) ? put_key(r, anchor->value, roll_str_c(""))
			    : put(r, anchor->value, anchor->height);
}

static enum roll_status on_start(struct reader *r, const yaml_char_t *anchor,
				 const yaml_char_t *tag, const char *own_tag, json_t *value)
{
	struct frame frame = {.value = value, .nodes_before = r->nodes};
	const char *core = tag ? core_tag(tag) : own_tag;
	enum roll_status status;

	if (!value)
		return no_memory(r);
	status = charge(r, 1);
	if (status == ROLL_OK && wants_key(r))
		status = refuse(r, ROLL_EINVAL, "a key must be a scalar");
	if (status == ROLL_OK && (!core || strcmp(core, own_tag) != 0))
		status = bad_tag(r, tag);
	if (status == ROLL_OK && r->depth == ROLL_JSON_DEPTH)
		status = refuse(r, ROLL_ELIMIT, "nested too deep");
	if (status == ROLL_OK)
		status = anchor_add(r, anchor, NULL, 0, &frame.anchor);
	if (status != ROLL_OK) {
		json_decref(value);
		return status;
	}
	r->frames[r->depth++] = frame;
	return ROLL_OK;
}

/* Own keys win over merged ones, and an earlier merged map over a later one. */
static enum roll_status apply_merges(struct reader *r, const struct frame *frame)
{
	size_t i;

	if (json_is_object(frame->merges) &&
	    json_object_update_missing(frame->value, frame->merges) != 0)
		return no_memory(r);
	for (i = 0; i < json_array_size(frame->merges); i++)
		if (json_object_update_missing(frame->value, json_array_get(frame->merges, i)) != 0)
			return no_memory(r);
	return ROLL_OK;
}

static enum roll_status on_end(struct reader *r)
{
	struct frame frame = r->frames[--r->depth];
	enum roll_status status = apply_merges(r, &frame);

	if (frame.anchor != NO_ANCHOR)
		r->anchors[frame.anchor] = (struct anchor){
			json_incref(frame.value), r->nodes - frame.nodes_before, frame.height + 1};
	if (status == ROLL_OK)
		status = put(r, frame.value, frame.height + 1);
	json_decref(frame.value);
	json_decref(frame.merges);
	return status;
}

static enum roll_status on_event(struct reader *r, const yaml_event_t *event)
{
	r->mark = event->start_mark;
	if (r->depth == 0 && r->root_line == 0 && event->type >= YAML_ALIAS_EVENT)
		r->root_line = r->mark.line + 1;
	switch (event->type) {
	case YAML_ALIAS_EVENT:
		return on_alias(r, event);
	case YAML_SCALAR_EVENT:
		return on_scalar(r, event);
	case YAML_SEQUENCE_START_EVENT:
		return on_start(r, event->data.sequence_start.anchor,
				event->data.sequence_start.tag, "seq", json_array());
	case YAML_MAPPING_START_EVENT:
		return on_start(r, event->data.mapping_start.anchor, event->data.mapping_start.tag,
				"map", json_object());
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return on_end(r);
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_START_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		break;
	}
	return ROLL_OK;
}

enum roll_status roll_yaml_read(struct roll_str text, size_t node_limit,
				roll_yaml_on_document on_document, void *ctx, struct roll_err *err)
{
	struct reader r = {.text = text, .err = err, .node_limit = node_limit};
	enum roll_status status = ROLL_OK;
	yaml_event_type_t type = YAML_NO_EVENT;
	yaml_event_t event;

	if (count_directives(text) > DIRECTIVES_MAX)
		return roll_err_set(err, ROLL_ELIMIT, NULL, "more than %d %%TAG directives",
				    DIRECTIVES_MAX);
	if (!yaml_parser_initialize(&r.parser))
		return no_memory(&r);
	/* Set, not guessed: text in UTF-16 is refused as not being UTF-8. */
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text.n ? text.p : ""),
				     text.n);
	while (status == ROLL_OK && type != YAML_STREAM_END_EVENT) {
		if (!yaml_parser_parse(&r.parser, &event)) {
			status = parser_failed(&r);
			break;
		}
		type = event.type;
		status = on_event(&r, &event);
		if (status == ROLL_OK && type == YAML_DOCUMENT_END_EVENT) {
			if (!json_is_null(r.root))
				status = on_document(ctx, r.root, r.root_line);
			document_reset(&r);
		}
		yaml_event_delete(&event);
	}
	document_reset(&r);
	free(r.anchors);
	yaml_parser_delete(&r.parser);
	return status;
}
