/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "base/log.h"
#include "tests/lib/fake_view.h"
#include "server/method.h"
#include "server/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LINE_MAX_BYTES 65536

static void no_log(void *ctx, const char *line)
{
	(void)ctx;
	(void)line;
}

static struct roll_methods *methods(void)
{
	static struct roll_methods *made;
	struct roll_methods_conf conf = {.view = &fake_the_view, .clock = &roll_clock_system};

	if (!made) {
		fake_reset();
		roll_log_set_sink(no_log, NULL);
		made = roll_methods_new(&conf);
		assert(made);
	}
	return made;
}

/*
 * Whatever the scanner takes is JSON for others as well, but for bytes that are not UTF-8 and what
 * jansson cannot hold: a NUL in a key, a number larger than any double.
 */
static void check_scanner(const uint8_t *data, size_t size)
{
	static char line[LINE_MAX_BYTES];
	struct roll_request request;
	json_error_t error;
	json_t *value;

	if (size > sizeof line)
		return;
	memcpy(line, data, size);
	if (roll_request_parse(line, size, &request, NULL))
		return;
	if (!roll_str_is_utf8(roll_str_n((const char *)data, size)))
		return;
	value = json_loadb((const char *)data, size,
			   JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK | JSON_DECODE_INT_AS_REAL,
			   &error);
	assert(value ? json_is_object(value)
		     : json_error_code(&error) == json_error_null_byte_in_key ||
			       json_error_code(&error) == json_error_numeric_overflow);
	json_decref(value);
}

/* Any line gets one line of JSON, with a result or with an error, or is no request. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char line[LINE_MAX_BYTES];
	struct roll_buf reply;
	enum roll_status status;
	json_t *value;

	check_scanner(data, size);
	if (size > sizeof line)
		return 0;
	memcpy(line, data, size);
	roll_buf_init(&reply, 1 << 20);
	status = roll_methods_answer(methods(), line, size, &reply);
	assert(status == ROLL_OK || status == ROLL_EPROTO);
	assert(fake.begun == fake.ended);
	if (!status) {
		assert(memchr(reply.p, '\n', reply.n) == reply.p + reply.n - 1);
		value = json_loadb(reply.p, reply.n, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
		assert(json_object_get(value, "result") || json_object_get(value, "error"));
		json_decref(value);
	}
	roll_buf_fini(&reply);
	return 0;
}
