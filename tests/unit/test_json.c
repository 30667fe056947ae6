/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

static void bad_text_is_refused_with_its_place(void **state)
{
	static const struct {
		const char *text;
		enum roll_status status;
	} cases[] = {
		{"", ROLL_EINVAL},	   {"{", ROLL_EINVAL},
		{"{} x", ROLL_EINVAL},	   {"{\"a\":1,\"a\":2}", ROLL_EINVAL},
		{"\"\xff\"", ROLL_EINVAL}, {"\"\xed\xa0\x80\"", ROLL_EINVAL},
		{"[1,]", ROLL_EINVAL},	   {"99999999999999999999", ROLL_EINVAL},
		{"nan", ROLL_EINVAL},	   {"{\"a\":1}", ROLL_OK},
		{" [] \n", ROLL_OK},	   {"\"a\\u0000b\"", ROLL_OK},
		{"null", ROLL_OK},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct roll_err err = {ROLL_OK, "", ""};
		json_t *value = NULL;

		assert_int_equal(roll_json_parse(roll_str_c(cases[i].text), &value, &err),
				 cases[i].status);
		assert_true(!value == !!cases[i].status);
		assert_true(roll_str_is_utf8(roll_str_c(err.text)));
		if (cases[i].status)
			assert_memory_equal(err.where, "line ", 5);
		json_decref(value);
	}
}

static json_t *parse(const char *text)
{
	json_t *value = NULL;

	assert_int_equal(roll_json_parse(roll_str_c(text), &value, NULL), ROLL_OK);
	return value;
}

static void nesting_has_a_limit(void **state)
{
	static const size_t depths[] = {ROLL_JSON_DEPTH, ROLL_JSON_DEPTH + 1, 2000, 100000};
	json_t *value;

	(void)state;
	for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
		size_t n = depths[i];
		char *text = malloc(2 * n);
		enum roll_status status;

		assert_non_null(text);
		memset(text, '[', n);
		memset(text + n, ']', n);
		value = NULL;
		status = roll_json_parse(roll_str_n(text, 2 * n), &value, NULL);
		assert_int_equal(status, n > ROLL_JSON_DEPTH ? ROLL_ELIMIT : ROLL_OK);
		json_decref(value);
		free(text);
	}
	value = parse("{\"a\":[1,{\"b\":{}}],\"c\":2}");
	assert_int_equal(roll_json_depth(value), 4);
	assert_int_equal(roll_json_depth(json_object_get(value, "c")), 0);
	json_decref(value);
}

static void getters_accept_their_type_alone(void **state)
{
	json_t *value = parse("{\"s\":\"a\\u0000b\",\"o\":{},\"a\":[],\"n\":1}");

	(void)state;
	assert_true(roll_str_eq(roll_json_str(value, "s"), roll_str_n("a\0b", 3)));
	assert_int_equal(roll_json_str(value, "n").n, 0);
	assert_int_equal(roll_json_str(value, "absent").n, 0);
	assert_int_equal(roll_json_str(NULL, "s").n, 0);
	assert_non_null(roll_json_object(value, "o"));
	assert_null(roll_json_object(value, "a"));
	assert_non_null(roll_json_array(value, "a"));
	assert_null(roll_json_array(value, "o"));
	json_decref(value);
}

static void equal_values_print_as_equal_bytes(void **state)
{
	json_t *value = parse("{ \"b\" : [1, 2.5, null], \"a\" : \"x\\u0000\\n\" }");
	struct roll_buf buf;

	(void)state;
	roll_buf_init(&buf, 1024);
	assert_int_equal(roll_json_print(value, &buf), ROLL_OK);
	assert_string_equal(buf.p, "{\"a\":\"x\\u0000\\n\",\"b\":[1,2.5,null]}");
	roll_buf_fini(&buf);
	roll_buf_init(&buf, 10);
	assert_int_equal(roll_json_print(value, &buf), ROLL_ELIMIT);
	roll_buf_fini(&buf);
	json_decref(value);
}

/* Items joined by '|'. */
static enum roll_status collect(void *ctx, struct roll_str item)
{
	struct roll_buf *buf = ctx;

	roll_buf_add_str(buf, item);
	roll_buf_add_char(buf, '|');
	return buf->status;
}

struct split {
	enum roll_status status;
	bool had_items;
	struct roll_buf items;
	struct roll_buf skeleton;
};

static void split_text(struct roll_str text, size_t step, size_t limit, struct split *out)
{
	struct roll_json_items *items;
	struct roll_err err;
	json_t *skeleton = NULL;

	roll_buf_init(&out->items, 1 << 20);
	roll_buf_init(&out->skeleton, 1 << 20);
	out->status = ROLL_OK;
	out->had_items = false;
	items = roll_json_items_new(limit, limit, collect, &out->items);
	assert_non_null(items);
	for (size_t at = 0; at < text.n && !out->status; at += step) {
		size_t n = text.n - at < step ? text.n - at : step;
		/* A copy, so that nothing can lean on bytes of an earlier piece. */
		char *piece = malloc(n);

		assert_non_null(piece);
		memcpy(piece, text.p + at, n);
		out->status = roll_json_items_feed(items, roll_str_n(piece, n), &err);
		free(piece);
	}
	if (!out->status)
		out->status = roll_json_items_end(items, &skeleton, &out->had_items, &err);
	if (!out->status)
		assert_int_equal(roll_json_print(skeleton, &out->skeleton), ROLL_OK);
	json_decref(skeleton);
	roll_json_items_free(items);
}

static void split_fini(struct split *split)
{
	roll_buf_fini(&split->items);
	roll_buf_fini(&split->skeleton);
}

static void items_are_split_at_every_border(void **state)
{
	static const struct {
		const char *text;
		const char *items;
		const char *skeleton;
		bool had_items;
	} cases[] = {
		{"{\"items\":[]}", "", "{\"items\":[]}", true},
		{" {\n \"items\" : [ ] , \"a\" : 1 } \n", "", "{\"a\":1,\"items\":[]}", true},
		{"{\"items\":[{\"a\":1},{\"b\":[{}]}]}", "{\"a\":1}|{\"b\":[{}]}|",
		 "{\"items\":[]}", true},
		{"{\"k\":\"v\",\"items\":[ {} , {} ],\"z\":2}", "{}|{}|",
		 "{\"items\":[],\"k\":\"v\",\"z\":2}", true},
		{"{\"items\":[\"a]\\\"}\",12 ,true,[\"\\\\\",[]]]}",
		 "\"a]\\\"}\"|12|true|[\"\\\\\",[]]|", "{\"items\":[]}", true},
		{"{\"items\":null}", "", "{\"items\":null}", false},
		{"{\"items\":{\"items\":[1]}}", "", "{\"items\":{\"items\":[1]}}", false},
		{"{\"m\":{\"items\":[1]},\"a\":[\"items\",[2]]}", "",
		 "{\"a\":[\"items\",[2]],\"m\":{\"items\":[1]}}", false},
		{"{\"a\":\"items\",\"items\":[{\"items\":[1]}]}", "{\"items\":[1]}|",
		 "{\"a\":\"items\",\"items\":[]}", true},
		{"{\"items2\":[1],\"item\":[2]}", "", "{\"item\":[2],\"items2\":[1]}", false},
		{"{}", "", "{}", false},
		{"{\"items\":[{\"a\":\"\xc3\xa4\\u00e4\"}]}", "{\"a\":\"\xc3\xa4\\u00e4\"}|",
		 "{\"items\":[]}", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t n = strlen(cases[i].text);

		for (size_t step = 1; step <= n; step++) {
			struct split split;

			split_text(roll_str_n(cases[i].text, n), step, 1024, &split);
			assert_int_equal(split.status, ROLL_OK);
			assert_true(roll_str_eq_c(roll_buf_str(&split.items), cases[i].items));
			assert_string_equal(split.skeleton.p, cases[i].skeleton);
			assert_int_equal(split.had_items, cases[i].had_items);
			split_fini(&split);
		}
	}
}

static void text_that_is_not_whole_is_refused(void **state)
{
	static const char text[] = "{\"a\":[1],\"items\":[{\"b\":\"x\"},2],\"c\":\"\\\\\"}";

	(void)state;
	for (size_t n = 0; n < sizeof text - 1; n++) {
		struct split split;

		split_text(roll_str_n(text, n), n ? n : 1, 1024, &split);
		assert_int_equal(split.status, ROLL_EINVAL);
		split_fini(&split);
	}
}

static void bad_lists_are_refused(void **state)
{
	static const char *const cases[] = {
		"[]",
		"x",
		"\xef\xbb\xbf{}",
		"{} {}",
		"{}x",
		"{\"items\":[,]}",
		"{\"items\":[1,]}",
		"{\"items\":[1 2]}",
		"{\"items\":[{}{}]}",
		"{\"items\":[{}}",
		"{\"items\":[}]}",
		"{\"items\":[1],\"items\":[2]}",
		"{\"\\u0069tems\":[1]}",
		"{\"items\":[1] \"a\":2}",
		"{\"a\":]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (size_t step = 1; step < 40; step += 13) {
			struct split split;

			split_text(roll_str_c(cases[i]), step, 1024, &split);
			assert_int_equal(split.status, ROLL_EINVAL);
			split_fini(&split);
		}
	}
}

static void items_and_skeleton_have_ceilings(void **state)
{
	static const struct {
		const char *text;
		enum roll_status status;
	} cases[] = {
		{"{\"items\":[\"345678901234567890\"]}", ROLL_OK},
		{"{\"items\":[\"3456789012345678901\"]}", ROLL_ELIMIT},
		{"{\"items\":[123456789012345678901]}", ROLL_ELIMIT},
		{"{\"items\":[{\"a\":\"345678901234567890\"}]}", ROLL_ELIMIT},
		{"{\"items\":[{\"a\":[[[[[[[[[[[[[[[[", ROLL_ELIMIT},
		{"{\"a\":\"45678901234567890\"}", ROLL_ELIMIT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (size_t step = 1; step < 50; step++) {
			struct split split;

			split_text(roll_str_c(cases[i].text), step, 20, &split);
			assert_int_equal(split.status, cases[i].status);
			split_fini(&split);
		}
	}
}

static enum roll_status refuse(void *ctx, struct roll_str item)
{
	(void)item;
	return ++*(int *)ctx == 2 ? ROLL_ECANCELED : ROLL_OK;
}

static void the_callback_can_stop_it(void **state)
{
	int calls = 0;
	struct roll_json_items *items = roll_json_items_new(100, 100, refuse, &calls);
	struct roll_str text = roll_str_c("{\"items\":[1,2,3,4]}");
	struct roll_err err;
	json_t *skeleton = NULL;
	bool had_items;

	(void)state;
	assert_non_null(items);
	assert_int_equal(roll_json_items_feed(items, text, &err), ROLL_ECANCELED);
	assert_int_equal(calls, 2);
	assert_int_equal(roll_json_items_feed(items, text, &err), ROLL_ECANCELED);
	assert_int_equal(calls, 2);
	assert_int_equal(roll_json_items_end(items, &skeleton, &had_items, &err), ROLL_ECANCELED);
	roll_json_items_free(items);
	roll_json_items_free(NULL);
}

static void errors_name_the_byte(void **state)
{
	struct roll_json_items *items;
	struct roll_buf buf;
	struct roll_err err;

	(void)state;
	roll_buf_init(&buf, 100);
	items = roll_json_items_new(100, 100, collect, &buf);
	assert_non_null(items);
	assert_int_equal(roll_json_items_feed(items, roll_str_c("{\"items\":["), &err), ROLL_OK);
	assert_int_equal(roll_json_items_feed(items, roll_str_c("1,,2]}"), &err), ROLL_EINVAL);
	assert_string_equal(err.where, "byte 12");
	roll_json_items_free(items);
	roll_buf_fini(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_text_is_refused_with_its_place),
		cmocka_unit_test(nesting_has_a_limit),
		cmocka_unit_test(getters_accept_their_type_alone),
		cmocka_unit_test(equal_values_print_as_equal_bytes),
		cmocka_unit_test(items_are_split_at_every_border),
		cmocka_unit_test(text_that_is_not_whole_is_refused),
		cmocka_unit_test(bad_lists_are_refused),
		cmocka_unit_test(items_and_skeleton_have_ceilings),
		cmocka_unit_test(the_callback_can_stop_it),
		cmocka_unit_test(errors_name_the_byte),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
