/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_BASE_JSON_H
#define ROLL_BASE_JSON_H

#include <jansson.h>

#include "base/str.h"

/*
 * Reading JSON with limits.
 *
 * Whole values go through jansson with duplicate keys refused, NUL in strings allowed and nesting
 * bounded by jansson (2048 levels) and by ROLL_JSON_DEPTH. Large documents (a Kubernetes list page,
 * a manifest with a million objects) go through the item splitter, which holds one item at a time.
 */

#define ROLL_JSON_DEPTH 64

/* EINVAL: not JSON, err->text with line and column; ELIMIT: too deep. *out is a new reference. */
enum roll_status roll_json_parse(struct roll_str text, json_t **out,
				 struct roll_err *err) ROLL_MUST_CHECK;

/* The deepest nesting of a value; an atom is 0. */
size_t roll_json_depth(const json_t *value);

/* Borrowed views; the empty slice / NULL if absent or of another type. */
struct roll_str roll_json_str(const json_t *object, const char *key);
json_t *roll_json_object(const json_t *object, const char *key);
json_t *roll_json_array(const json_t *object, const char *key);

/* Compact dump into buf with sorted keys (so that equal values give equal bytes). */
enum roll_status roll_json_print(const json_t *value, struct roll_buf *buf) ROLL_MUST_CHECK;

/*
 * Item splitter: feed the text of `{..., "items":[ITEM,ITEM,...], ...}` in pieces of any size, at
 * any byte borders. on_item gets the text of each ITEM as soon as it is whole (borrowed for the
 * call). What remains (the object with "items":[]) is kept as the skeleton and can be read at the
 * end; only then is it known that the text was whole. Only the top-level key "items" counts.
 * Text whose top level has no "items" ends up in the skeleton as a whole, so a plain object works
 * too, within skeleton_limit_bytes.
 */
struct roll_json_items;

/* Return anything but ROLL_OK to stop; the splitter then returns the same from feed. */
typedef enum roll_status (*roll_json_on_item)(void *ctx, struct roll_str item);

struct roll_json_items *roll_json_items_new(size_t item_limit_bytes, size_t skeleton_limit_bytes,
					    roll_json_on_item on_item, void *ctx);
void roll_json_items_free(struct roll_json_items *items);
enum roll_status roll_json_items_feed(struct roll_json_items *items, struct roll_str piece,
				      struct roll_err *err) ROLL_MUST_CHECK;
/*
 * EINVAL if the text was not whole or anything but blanks followed its final brace. On success
 * *skeleton is the rest as a new reference, and *had_items tells whether a top-level "items" array
 * was there.
 */
enum roll_status roll_json_items_end(struct roll_json_items *items, json_t **skeleton,
				     bool *had_items, struct roll_err *err) ROLL_MUST_CHECK;

#endif
