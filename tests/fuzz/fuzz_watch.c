/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdint.h>

#include "base/bin.h"
#include "base/json.h"
#include "source/watch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * The first byte is the size of the pieces. However the body is cut, the same events come out, up
 * to the same mistake; and an event is only told once its line has ended.
 */

#define LINE_LIMIT 300

struct seen {
	size_t count;
	uint64_t hash;
};

static enum roll_status on_event(void *ctx, const struct roll_watch_event *event)
{
	struct seen *seen = ctx;
	struct roll_buf text;

	assert(!event->object == (event->type == ROLL_WATCH_TOO_LARGE));
	assert(event->type >= ROLL_WATCH_ERROR || event->revision > 0);
	assert(!event->ends_initial || event->type == ROLL_WATCH_BOOKMARK);
	assert(event->name.n <= LINE_LIMIT);
	roll_buf_init(&text, 16u * LINE_LIMIT);
	roll_buf_add_u64(&text, event->revision);
	roll_buf_add_str(&text, event->name);
	if (event->object)
		assert(roll_json_print(event->object, &text) == ROLL_OK);
	seen->count++;
	seen->hash = seen->hash * 31 + roll_hash64(text.p, text.n) + (uint64_t)event->type;
	roll_buf_fini(&text);
	return ROLL_OK;
}

static enum roll_status read_all(struct roll_str body, size_t step, struct seen *seen)
{
	struct roll_watch *watch = roll_watch_new(LINE_LIMIT, on_event, seen);
	enum roll_status status = ROLL_OK;
	struct roll_err err = {0};

	assert(watch);
	for (size_t at = 0; at < body.n && !status; at += step) {
		size_t n = body.n - at < step ? body.n - at : step;

		status = roll_watch_feed(watch, roll_str_n(body.p + at, n), &err);
	}
	assert(!status || roll_str_is_utf8(roll_str_c(err.text)));
	roll_watch_free(watch);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole = {0, 0}, cut = {0, 0};
	size_t lines = 0;
	struct roll_str body;

	if (size < 1)
		return 0;
	body = roll_str_n((const char *)data + 1, size - 1);
	for (size_t i = 0; i < body.n; i++)
		lines += body.p[i] == '\n';
	assert(read_all(body, body.n ? body.n : 1, &whole) ==
	       read_all(body, data[0] % 16 + 1U, &cut));
	assert(whole.count == cut.count && whole.hash == cut.hash);
	/* One that is too large is told as soon as that is known. */
	assert(whole.count <= lines + 1);
	return 0;
}
