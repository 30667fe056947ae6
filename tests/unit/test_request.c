/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "server/request.h"

static char line[1 << 16];

static enum roll_status parse(const char *text, struct roll_request *request, struct roll_err *err)
{
	size_t n = strlen(text);

	assert_true(n < sizeof line);
	memcpy(line, text, n);
	return roll_request_parse(line, n, request, err);
}

static void what_powerdns_sends_is_read(void **state)
{
	struct roll_request r;
	const struct roll_param *p;

	(void)state;
	assert_int_equal(parse("{\"method\": \"lookup\", \"parameters\": {\"local\": \"0.0.0.0\", "
			       "\"qname\": \"a\\\\.b.example.org.\", \"qtype\": \"SOA\", "
			       "\"real-remote\": \"0.0.0.0/0\", \"remote\": \"0.0.0.0\", "
			       "\"zone-id\": -1}}",
			       &r, NULL),
			 ROLL_OK);
	assert_true(roll_str_eq_c(r.method, "lookup"));
	assert_int_equal(r.param_count, 6);
	p = roll_request_param(&r, "qname", ROLL_PARAM_STRING);
	assert_non_null(p);
	assert_true(roll_str_eq_c(p->text, "a\\.b.example.org."));
	p = roll_request_param(&r, "zone-id", ROLL_PARAM_INTEGER);
	assert_non_null(p);
	assert_int_equal(p->number, -1);
	assert_null(roll_request_param(&r, "zone-id", ROLL_PARAM_STRING));
	assert_null(roll_request_param(&r, "nothing", ROLL_PARAM_STRING));
}

static void strings_are_decoded(void **state)
{
	static const struct {
		const char *json, *bytes;
		size_t n;
	} cases[] = {
		{"", "", 0},
		{"\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t", 8},
		{"\\u0041\\u00e9\\u20AC\\ud83d\\ude00", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
		 10},
		{"a\\u0000b", "a\0b", 3},
		{"\xff\xfe", "\xff\xfe", 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct roll_param *p;
		struct roll_request r;
		char text[256];

		snprintf(text, sizeof text, "{\"method\":\"m\",\"parameters\":{\"x\":\"%s\"}}",
			 cases[i].json);
		assert_int_equal(parse(text, &r, NULL), ROLL_OK);
		p = roll_request_param(&r, "x", ROLL_PARAM_STRING);
		assert_non_null(p);
		assert_true(roll_str_eq(p->text, roll_str_n(cases[i].bytes, cases[i].n)));
	}
}

static void numbers_are_integers_or_other(void **state)
{
	static const struct {
		const char *json;
		bool is_integer;
		int64_t number;
	} cases[] = {
		{"0", true, 0},
		{"-0", true, 0},
		{"2147483647", true, 2147483647},
		{"9223372036854775807", true, INT64_MAX},
		{"-9223372036854775807", true, -INT64_MAX},
		{"9223372036854775808", false, 0},
		{"1.0", false, 0},
		{"1e3", false, 0},
		{"-1.5E-7", false, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct roll_param *p;
		struct roll_request r;
		char text[256];

		snprintf(text, sizeof text, "{\"parameters\":{\"x\":%s},\"method\":\"m\"}",
			 cases[i].json);
		assert_int_equal(parse(text, &r, NULL), ROLL_OK);
		p = roll_request_param(&r, "x", ROLL_PARAM_INTEGER);
		assert_true(!!p == cases[i].is_integer);
		if (p)
			assert_true(p->number == cases[i].number);
	}
}

static void the_last_of_equal_keys_counts(void **state)
{
	const struct roll_param *p;
	struct roll_request r;

	(void)state;
	assert_int_equal(parse("{\"method\":\"a\",\"parameters\":{\"y\":1},\"method\":\"b\","
			       "\"parameters\":{\"x\":1,\"x\":2}}",
			       &r, NULL),
			 ROLL_OK);
	assert_true(roll_str_eq_c(r.method, "b"));
	assert_null(roll_request_param(&r, "y", ROLL_PARAM_INTEGER));
	p = roll_request_param(&r, "x", ROLL_PARAM_INTEGER);
	assert_non_null(p);
	assert_int_equal(p->number, 2);
}

static void what_is_not_a_request_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"null",
		"[]",
		"\"x\"",
		"{",
		"}",
		"{\"method\"}",
		"{\"method\":}",
		"{\"method\":1}",
		"{\"method\":null}",
		"{\"method\":\"x\"",
		"{\"method\":\"x\",}",
		"{\"method\":\"x\"}}",
		"{\"method\":\"x\"}{\"method\":\"x\"}",
		"{\"method\":\"x\"} x",
		"{\"method\":\"x\" \"parameters\":{}}",
		"{method:\"x\"}",
		"{'method':'x'}",
		"{\"method\":\"x\",\"parameters\":[]}",
		"{\"method\":\"x\",\"parameters\":null}",
		"{\"method\":\"x\",\"parameters\":{\"a\"}}",
		"{\"method\":\"x\",\"parameters\":{\"a\":}}",
		"{\"method\":\"x\",\"parameters\":{\"a\":01}}",
		"{\"method\":\"x\",\"parameters\":{\"a\":+1}}",
		"{\"method\":\"x\",\"parameters\":{\"a\":-}}",
		"{\"method\":\"x\",\"parameters\":{\"a\":1.}}",
		"{\"method\":\"x\",\"parameters\":{\"a\":.5}}",
		"{\"method\":\"x\",\"parameters\":{\"a\":1e}}",
		"{\"method\":\"x\",\"parameters\":{\"a\":NaN}}",
		"{\"method\":\"x\",\"parameters\":{\"a\":tru}}",
		"{\"method\":\"x\",\"parameters\":{\"a\":[1,]}}",
		"{\"method\":\"x\",\"parameters\":{\"a\":[1}}",
		"{\"method\":\"x\",\"parameters\":{\"a\":{\"b\"}}}",
		"{\"method\":\"x\",\"parameters\":{\"a\":\"\\x\"}}",
		"{\"method\":\"x\",\"parameters\":{\"a\":\"\\u12\"}}",
		"{\"method\":\"x\",\"parameters\":{\"a\":\"\\u12g4\"}}",
		"{\"method\":\"x\",\"parameters\":{\"a\":\"\\ud800\"}}",
		"{\"method\":\"x\",\"parameters\":{\"a\":\"\\ud800\\u0041\"}}",
		"{\"method\":\"x\",\"parameters\":{\"a\":\"\\udc00\\ud800\"}}",
		"{\"method\":\"x\",\"parameters\":{\"a\":\"\t\"}}",
		"{\"method\":\"x\",\"parameters\":{\"a\":\"",
		"{\"method\":\"x\",\"parameters\":{\"a\":\"\\",
		"{\"method\":\"x\",\"parameters\":{\"a\":1 2}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct roll_request r;
		struct roll_err err;

		if (parse(bad[i], &r, &err) != ROLL_EINVAL)
			fail_msg("taken: %s", bad[i]);
		assert_non_null(strstr(err.text, "at byte "));
	}
}

static void every_kind_of_value_is_stepped_over(void **state)
{
	struct roll_request r;

	(void)state;
	assert_int_equal(
		parse(" {\"x\" : [ ] , \"y\":{ },\"z\":[1,\"a\",true,false,null,{\"b\":[{}]}]"
		      ",\"method\":\"m\",\"parameters\":{\"rrset\":[{\"a\":{\"b\":-1.5}}],"
		      "\"t\":true,\"n\":null} }\r\n ",
		      &r, NULL),
		ROLL_OK);
	assert_int_equal(r.param_count, 3);
	assert_int_equal(r.params[0].kind, ROLL_PARAM_OTHER);
}

static void depth_and_number_of_parameters_have_a_bound(void **state)
{
	struct roll_request r;
	char text[4096];
	size_t n;

	(void)state;
	for (unsigned depth = 28; depth < 36; depth++) {
		n = (size_t)snprintf(text, sizeof text, "{\"x\":");
		memset(text + n, '[', depth);
		memset(text + n + depth, ']', depth);
		memcpy(text + n + (size_t)2 * depth, "}", 2);
		assert_int_equal(parse(text, &r, NULL), depth < 32 ? ROLL_OK : ROLL_ELIMIT);
	}
	for (unsigned count = 30; count < 35; count++) {
		n = (size_t)snprintf(text, sizeof text, "{\"parameters\":{");
		for (unsigned i = 0; i < count; i++)
			n += (size_t)snprintf(text + n, sizeof text - n, "%s\"p%u\":%u",
					      i ? "," : "", i, i);
		snprintf(text + n, sizeof text - n, "}}");
		assert_int_equal(parse(text, &r, NULL), count <= 32 ? ROLL_OK : ROLL_ELIMIT);
	}
}

/* Strings are read several bytes at a time: every byte is seen at every place. */
static void every_byte_is_seen_wherever_it_stands(void **state)
{
	(void)state;
	for (size_t n = 1; n <= 20; n++) {
		for (unsigned byte = 0; byte < 256; byte++) {
			for (size_t at = 0; at < n; at++) {
				const struct roll_param *p;
				struct roll_request r;
				enum roll_status status;
				size_t head;

				head = (size_t)snprintf(line, sizeof line,
							"{\"parameters\":{\"x\":\"");
				memset(line + head, 0x80, n);
				line[head + at] = (char)byte;
				memcpy(line + head + n, "\"}}", 3);
				status = roll_request_parse(line, head + n + 3, &r, NULL);
				if (byte < 0x20 || byte == '"' || byte == '\\') {
					assert_int_equal(status, ROLL_EINVAL);
					continue;
				}
				assert_int_equal(status, ROLL_OK);
				p = roll_request_param(&r, "x", ROLL_PARAM_STRING);
				assert_non_null(p);
				assert_int_equal(p->text.n, n);
			}
		}
	}
}

static void every_prefix_is_refused(void **state)
{
	static const char whole[] = "{\"method\":\"m\\u0041\",\"parameters\":{\"a\":[1,-2.5e1,"
				    "true],\"b\":\"\\\"\\ud83d\\ude00\"}}";

	(void)state;
	for (size_t n = 0; n < sizeof whole - 1; n++) {
		struct roll_request r;

		memcpy(line, whole, n);
		assert_int_equal(roll_request_parse(line, n, &r, NULL), ROLL_EINVAL);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_powerdns_sends_is_read),
		cmocka_unit_test(strings_are_decoded),
		cmocka_unit_test(numbers_are_integers_or_other),
		cmocka_unit_test(the_last_of_equal_keys_counts),
		cmocka_unit_test(what_is_not_a_request_is_refused),
		cmocka_unit_test(every_kind_of_value_is_stepped_over),
		cmocka_unit_test(depth_and_number_of_parameters_have_a_bound),
		cmocka_unit_test(every_byte_is_seen_wherever_it_stands),
		cmocka_unit_test(every_prefix_is_refused),
	};

	return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
