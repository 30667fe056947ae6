/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/bin.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * The first byte is the size of the pieces. However the text is cut, the same items come out, and
 * what the splitter accepts is made of what the whole-text parser accepts, item by item.
 */

struct seen {
	size_t count;
	size_t bad;
	uint64_t hash;
};

static enum roll_status on_item(void *ctx, struct roll_str item)
{
	struct seen *seen = ctx;
	json_t *value = NULL;

	seen->count++;
	seen->hash = seen->hash * 31 + roll_hash64(item.p, item.n);
	if (roll_json_parse(item, &value, NULL))
		seen->bad++;
	json_decref(value);
	return ROLL_OK;
}

static enum roll_status split(struct roll_str text, size_t step, struct seen *seen,
			      json_t **skeleton, bool *had_items)
{
	struct roll_json_items *items = roll_json_items_new(4096, 4096, on_item, seen);
	enum roll_status status = ROLL_OK;
	struct roll_err err;

	assert(items);
	for (size_t at = 0; at < text.n && !status; at += step) {
		size_t n = text.n - at < step ? text.n - at : step;

		status = roll_json_items_feed(items, roll_str_n(text.p + at, n), &err);
	}
	if (!status)
		status = roll_json_items_end(items, skeleton, had_items, &err);
	roll_json_items_free(items);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole = {0, 0, 0}, cut = {0, 0, 0};
	json_t *skeleton = NULL, *other = NULL, *value = NULL;
	bool had_items = false, had_other = false;
	enum roll_status status, cut_status;
	struct roll_str text;

	if (size < 1)
		return 0;
	text = roll_str_n((const char *)data + 1, size - 1);
	status = split(text, text.n ? text.n : 1, &whole, &skeleton, &had_items);
	cut_status = split(text, data[0] % 16 + 1U, &cut, &other, &had_other);
	assert(status == cut_status && whole.count == cut.count && whole.hash == cut.hash);
	assert(had_items == had_other);

	/* Text that is JSON throughout is split into as many items as it has. */
	if (!status && whole.bad == 0 && !roll_json_parse(text, &value, NULL))
		assert(!had_items ||
		       json_array_size(json_object_get(value, "items")) == whole.count);
	json_decref(value);
	json_decref(skeleton);
	json_decref(other);
	return 0;
}
