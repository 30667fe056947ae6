/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The item splitter of base/json.h.
 *
 * It knows just enough of JSON to find borders: strings with their escapes, and nesting as a plain
 * count. Whether brackets match in kind, and everything else within an item, is found by the parser
 * that the item's text goes to; the skeleton is parsed at the end, here.
 */

enum place {
	BEFORE,	    /* nothing but blanks yet */
	SKELETON,   /* in the outer object */
	ITEM_FIRST, /* after the '[' of the items: an item or ']' */
	ITEM_NEXT,  /* after a comma: an item */
	IN_ITEM,    /* in an object, array or string */
	IN_ATOM,    /* in a number, true, false or null; ends before what cannot be part of it */
	ITEM_AFTER, /* after an item: ',' or ']' */
	AFTER	    /* after the final brace */
};

struct roll_json_items {
	roll_json_on_item on_item;
	void *ctx;
	struct roll_buf skeleton;
	struct roll_buf item; /* what earlier pieces held of the item at hand */
	uint64_t offset;      /* of the piece at hand in the whole text */
	enum roll_status status;
	enum place place;
	size_t depth;  /* of the skeleton, or within the item */
	size_t key_at; /* where in the skeleton the string at hand began */
	bool in_string;
	bool in_escape;
	bool want_key;	    /* at depth 1: the next string is a key */
	bool is_items_key;  /* the last key was "items" */
	bool is_items_next; /* and its colon was there: the next byte tells what it is */
	bool had_items;
};

struct roll_json_items *roll_json_items_new(size_t item_limit_bytes, size_t skeleton_limit_bytes,
					    roll_json_on_item on_item, void *ctx)
{
	struct roll_json_items *items = calloc(1, sizeof *items);

	if (!items)
		return NULL;
	items->on_item = on_item;
	items->ctx = ctx;
	roll_buf_init(&items->item, item_limit_bytes);
	roll_buf_init(&items->skeleton, skeleton_limit_bytes);
	return items;
}

void roll_json_items_free(struct roll_json_items *items)
{
	if (!items)
		return;
	roll_buf_fini(&items->item);
	roll_buf_fini(&items->skeleton);
	free(items);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Report what is wrong with the byte at offset `at` of the piece. */
static enum roll_status fail(struct roll_json_items *items, enum roll_status status, size_t at,
			     struct roll_err *err, const char *text)
{
	char where[32];

	snprintf(where, sizeof where, "byte %" PRIu64, items->offset + at);
	items->status = roll_err_set(err, status, where, "%s", text);
	return status;
}

static enum roll_status skeleton_string(struct roll_json_items *items, char c)
{
	if (items->in_escape) {
		items->in_escape = false;
	} else if (c == '\\') {
		items->in_escape = true;
	} else if (c == '"') {
		struct roll_buf *text = &items->skeleton;

		items->in_string = false;
		if (items->depth == 1 && items->want_key && !text->status) {
			struct roll_str key =
				roll_str_n(text->p + items->key_at, text->n - items->key_at);

			items->is_items_key = roll_str_eq_c(key, "\"items");
			items->want_key = false;
		}
	}
	roll_buf_add_char(&items->skeleton, c);
	return items->skeleton.status;
}

static enum roll_status skeleton_byte(struct roll_json_items *items, char c)
{
	bool is_items = items->is_items_next;

	if (items->in_string)
		return skeleton_string(items, c);
	if (!is_blank(c))
		items->is_items_next = false;
	switch (c) {
	case '"':
		items->in_string = true;
		items->key_at = items->skeleton.n;
		break;
	case ':':
		items->is_items_next = items->depth == 1 && items->is_items_key;
		items->is_items_key = false;
		break;
	case ',':
		items->want_key = items->depth == 1;
		break;
	case '[':
		if (is_items) {
			items->place = ITEM_FIRST;
			items->had_items = true;
			break;
		}
		items->depth++;
		break;
	case '{':
		items->want_key = ++items->depth == 1;
		break;
	case '}':
	case ']':
		if (--items->depth == 0)
			items->place = AFTER;
		break;
	default:
		break;
	}
	roll_buf_add_char(&items->skeleton, c);
	return items->skeleton.status;
}

/* The bytes that end the quick scan: outside of strings, and inside of them. */
static const bool stops_plain[256] = {
	['"'] = true, ['{'] = true, ['}'] = true, ['['] = true, [']'] = true};
static const bool stops_string[256] = {['"'] = true, ['\\'] = true};

/* Scan from `at` on; true if the item ends within the piece, *end is then behind it. */
static bool scan_item(struct roll_json_items *items, struct roll_str piece, size_t at, size_t *end)
{
	const unsigned char *p = (const unsigned char *)piece.p;

	while (at < piece.n) {
		if (items->in_escape) {
			items->in_escape = false;
			at++;
			continue;
		}
		if (items->in_string) {
			while (at < piece.n && !stops_string[p[at]])
				at++;
			if (at == piece.n)
				break;
			items->in_escape = p[at] == '\\';
			items->in_string = p[at] != '"';
			at++;
			if (!items->in_string && items->depth == 0)
				goto whole;
			continue;
		}
		while (at < piece.n && !stops_plain[p[at]])
			at++;
		if (at == piece.n)
			break;
		switch (p[at++]) {
		case '"':
			items->in_string = true;
			break;
		case '{':
		case '[':
			items->depth++;
			break;
		default:
			if (--items->depth == 0)
				goto whole;
		}
	}
	*end = piece.n;
	return false;
whole:
	*end = at;
	return true;
}

static bool scan_atom(struct roll_str piece, size_t at, size_t *end)
{
	while (at < piece.n && !is_blank(piece.p[at]) && !strchr(",]}", piece.p[at]))
		at++;
	*end = at;
	return at < piece.n;
}

/* Hand over the item that ends with `tail`; without earlier bytes nothing is copied. */
static enum roll_status deliver(struct roll_json_items *items, struct roll_str tail)
{
	enum roll_status status;

	if (items->item.n == 0) {
		if (tail.n > items->item.limit_bytes)
			return ROLL_ELIMIT;
		return items->on_item(items->ctx, tail);
	}
	roll_buf_add_str(&items->item, tail);
	if (items->item.status)
		return items->item.status;
	status = items->on_item(items->ctx, roll_buf_str(&items->item));
	roll_buf_reset(&items->item);
	return status;
}

/* Take what the piece holds of the item at hand, from *at on. */
static enum roll_status take_item(struct roll_json_items *items, struct roll_str piece, size_t *at,
				  struct roll_err *err)
{
	size_t from = *at;
	bool whole = items->place == IN_ITEM ? scan_item(items, piece, from, at)
					     : scan_atom(piece, from, at);
	struct roll_str text = roll_str_n(piece.p + from, *at - from);

	if (text.n > items->item.limit_bytes - items->item.n)
		return fail(items, ROLL_ELIMIT, from, err, "an item is too large");
	if (!whole) {
		roll_buf_add_str(&items->item, text);
		if (items->item.status)
			return fail(items, items->item.status, from, err, "no memory for an item");
		return ROLL_OK;
	}
	items->place = ITEM_AFTER;
	/* An error of the callback's own is passed on as it is, details are with its context. */
	items->status = deliver(items, text);
	return items->status;
}

/* A byte between items. */
static enum roll_status between_items(struct roll_json_items *items, char c)
{
	if (is_blank(c))
		return ROLL_OK;
	if (c == ']' && items->place != ITEM_NEXT) {
		items->place = SKELETON;
		items->depth = 1; /* it counted within the items meanwhile */
		roll_buf_add_char(&items->skeleton, c);
		return items->skeleton.status;
	}
	if (items->place == ITEM_AFTER) {
		items->place = ITEM_NEXT;
		return c == ',' ? ROLL_OK : ROLL_EINVAL;
	}
	items->depth = 0;
	items->place = c == '{' || c == '[' || c == '"' ? IN_ITEM : IN_ATOM;
	return c == ',' || c == '}' || c == ':' || c == ']' ? ROLL_EINVAL : ROLL_OK;
}

enum roll_status roll_json_items_feed(struct roll_json_items *items, struct roll_str piece,
				      struct roll_err *err)
{
	enum roll_status status = items->status;
	size_t at = 0;

	if (status)
		return roll_err_set(err, status, NULL, "the text was given up earlier");
	while (at < piece.n && !status) {
		char c = piece.p[at];

		switch (items->place) {
		case BEFORE:
			if (c == '{')
				items->place = SKELETON;
			else if (!is_blank(c))
				return fail(items, ROLL_EINVAL, at, err, "expected an object");
			else
				at++;
			break;
		case SKELETON:
			if (skeleton_byte(items, c))
				return fail(items, items->skeleton.status, at, err,
					    "the part outside of the items is too large");
			at++;
			break;
		case ITEM_FIRST:
		case ITEM_NEXT:
		case ITEM_AFTER:
			status = between_items(items, c);
			if (status)
				return fail(items, status, at, err,
					    "expected an item, ',' or ']' in the items");
			at += items->place != IN_ITEM && items->place != IN_ATOM;
			break;
		case IN_ITEM:
		case IN_ATOM:
			status = take_item(items, piece, &at, err);
			break;
		case AFTER:
			if (!is_blank(c))
				return fail(items, ROLL_EINVAL, at, err,
					    "more text after the final brace");
			at++;
			break;
		}
	}
	items->offset += piece.n;
	return status;
}

enum roll_status roll_json_items_end(struct roll_json_items *items, json_t **skeleton,
				     bool *had_items, struct roll_err *err)
{
	enum roll_status status;
	json_t *value = NULL;

	if (items->status)
		return roll_err_set(err, items->status, NULL, "the text was given up earlier");
	if (items->place != AFTER)
		return fail(items, ROLL_EINVAL, 0, err, "the text ends early");
	status = roll_json_parse(roll_buf_str(&items->skeleton), &value, err);
	/* The key can also be spelled with \u escapes; its items were then not seen as such. */
	if (!status && json_array_size(json_object_get(value, "items")) > 0)
		status = roll_err_set(err, ROLL_EINVAL, "items", "the key has escapes in it");
	if (status) {
		json_decref(value);
		items->status = status;
		return status;
	}
	*skeleton = value;
	*had_items = items->had_items;
	return ROLL_OK;
}
