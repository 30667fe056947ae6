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
#include "source/yaml.h"

#define NODES 10000

/* Documents as JSON lines, each after the line of the file on which it begins. */
struct got {
	struct roll_buf text;
	enum roll_status stop; /* what on_document returns */
};

static enum roll_status on_document(void *ctx, json_t *document, size_t line)
{
	struct got *got = ctx;

	roll_buf_add_u64(&got->text, line);
	roll_buf_add_char(&got->text, ' ');
	assert_int_equal(roll_json_print(document, &got->text), ROLL_OK);
	roll_buf_add_char(&got->text, '\n');
	return got->stop;
}

static enum roll_status read_text(struct roll_str text, size_t nodes, struct got *got,
				  struct roll_err *err)
{
	*err = (struct roll_err){ROLL_OK, "", ""};
	got->stop = ROLL_OK;
	roll_buf_init(&got->text, 1u << 24);
	return roll_yaml_read(text, nodes, on_document, got, err);
}

static void expect_documents(const char *yaml, const char *want)
{
	struct got got;
	struct roll_err err;
	enum roll_status status = read_text(roll_str_c(yaml), NODES, &got, &err);

	if (status != ROLL_OK)
		print_error("%s: %s: %s\n", yaml, err.where, err.text);
	assert_int_equal(status, ROLL_OK);
	assert_string_equal(got.text.n ? got.text.p : "", want);
	roll_buf_fini(&got.text);
}

/* One value after "a: ". */
static void expect_scalar(const char *scalar, const char *want)
{
	char yaml[256], line[256];

	snprintf(yaml, sizeof yaml, "a: %s\n", scalar);
	snprintf(line, sizeof line, "1 {\"a\":%s}\n", want);
	expect_documents(yaml, line);
}

static void expect_refused(const char *yaml, enum roll_status want, const char *where,
			   const char *text)
{
	struct got got;
	struct roll_err err;

	assert_int_equal(read_text(roll_str_c(yaml), NODES, &got, &err), want);
	assert_string_equal(err.where, where);
	if (!strstr(err.text, text))
		print_error("%s: \"%s\" lacks \"%s\"\n", yaml, err.text, text);
	assert_non_null(strstr(err.text, text));
	roll_buf_fini(&got.text);
}

static void scalars_become_what_kubernetes_tools_make_of_them(void **state)
{
	static const struct {
		const char *scalar;
		const char *want;
	} cases[] = {
		{"", "null"},
		{"~", "null"},
		{"null", "null"},
		{"NULL", "null"},
		{"nULL", "\"nULL\""},
		{"true", "true"},
		{"True", "true"},
		{"yes", "true"},
		{"on", "true"},
		{"y", "true"},
		{"false", "false"},
		{"No", "false"},
		{"OFF", "false"},
		{"n", "false"},
		{"tRUE", "\"tRUE\""},
		{"yEs", "\"yEs\""},
		{"0", "0"},
		{"12", "12"},
		{"-12", "-12"},
		{"+12", "12"},
		{"-0", "0"},
		{"010", "8"},
		{"0o10", "8"},
		{"0x1f", "31"},
		{"0X1F", "31"},
		{"-0x10", "-16"},
		{"0b101", "5"},
		{"089", "89"},
		{"00", "0"},
		{"1_000", "1000"},
		{"1__0", "10"},
		{"_1", "\"_1\""},
		{"0x_1", "1"},
		{"9223372036854775807", "9223372036854775807"},
		{"-9223372036854775807", "-9223372036854775807"},
		{"-9223372036854775808", "-9223372036854775808"},
		{"9223372036854775808", "9.2233720368547758e18"},
		{"0xffffffffffffffffff", "4.7223664828696452e21"},
		{"1e3", "1000"},
		{"1E+3", "1000"},
		{"1.0", "1"},
		{"1.", "1"},
		{"1.5", "1.5"},
		{".5", "0.5"},
		{"-.5", "-0.5"},
		{"+2.5e-1", "0.25"},
		{"1_0.5", "10.5"},
		{"1e18", "1000000000000000000"},
		{"1e-999", "0"},
		{".", "\".\""},
		{"..", "\"..\""},
		{"-", "null"},
		{"+", "\"+\""},
		{".5_0", "\".5_0\""},
		{"0x", "\"0x\""},
		{"0xg", "\"0xg\""},
		{"1e", "\"1e\""},
		{"e3", "\"e3\""},
		{"1.2.3.4", "\"1.2.3.4\""},
		{"192.0.2.1", "\"192.0.2.1\""},
		{"1:30", "\"1:30\""},
		{"::1", "\"::1\""},
		{"12 34", "\"12 34\""},
		{"2026-12-02", "\"2026-12-02\""},
		{"2026-12-02T05:31:50Z", "\"2026-12-02T05:31:50Z\""},
		{"'12'", "\"12\""},
		{"\"yes\"", "\"yes\""},
		{"'~'", "\"~\""},
		{"''", "\"\""},
		{"\"a\\0b\"", "\"a\\u0000b\""},
		{"\"\\u00e9\"", "\"\xc3\xa9\""},
		{"!!str 12", "\"12\""},
		{"! 'x'", "\"x\""},
		{"!!int '12'", "12"},
		{"!!float 3", "3"},
		{"!!bool yes", "true"},
		{"!!null ''", "null"},
		{"|\n  a\n  b", "\"a\\nb\\n\""},
		{">-\n  a\n  b", "\"a b\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (strcmp(cases[i].scalar, "-") == 0)
			continue; /* a list item, see below */
		expect_scalar(cases[i].scalar, cases[i].want);
	}
	expect_documents("a:\n-\n", "1 {\"a\":[null]}\n");
}

static void numbers_that_json_lacks_are_refused(void **state)
{
	static const char *const cases[] = {".inf", "-.INF", "+.Inf", ".NaN", "1e999", "-1e999"};
	char yaml[64];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(yaml, sizeof yaml, "a: %s", cases[i]);
		expect_refused(yaml, ROLL_EINVAL, "line 1, column 4", "JSON has no");
	}
}

static void collections_nest_in_every_style(void **state)
{
	(void)state;
	expect_documents("a: {b: [1, two], c: {}}\nd:\n- e: 1\n  f: 2\n-\n  - 3\n",
			 "1 {\"a\":{\"b\":[1,\"two\"],\"c\":{}},\"d\":[{\"e\":1,\"f\":2},[3]]}\n");
	expect_documents("? a\n: 1\n? 'b'\n", "1 {\"a\":1,\"b\":null}\n");
	expect_documents("!!map {a: !!seq [1]}", "1 {\"a\":[1]}\n");
	expect_documents("# only a comment\n", "");
	expect_documents("", "");
	expect_documents("just text", "1 \"just text\"\n");
	expect_documents("%YAML 1.1\n---\na: 1\n", "3 {\"a\":1}\n");
}

static void json_text_is_yaml(void **state)
{
	(void)state;
	expect_documents("{\n\t\"a\": [1, -2.5, true, null, \"x\\/\\u00e9\\n\"],\n\t\"b\":{}\n}\n",
			 "1 {\"a\":[1,-2.5,true,null,\"x/\xc3\xa9\\n\"],\"b\":{}}\n");
	expect_documents("{\"a\":\"1\",\"b\":\"\"}", "1 {\"a\":\"1\",\"b\":\"\"}\n");
}

static void tabs_cannot_indent(void **state)
{
	(void)state;
	expect_refused("a:\n\tb: 1\n", ROLL_EINVAL, "line 2, column 1", "");
	expect_documents("a: x\ty\nb:\t1\n", "1 {\"a\":\"x\\ty\",\"b\":1}\n");
}

static void documents_come_one_by_one_with_their_first_line(void **state)
{
	(void)state;
	expect_documents("a: 1\n---\n\n# two\nb: 2\n...\n---\n---\n~\n--- {c: 3}\n---\n- d\n...\n",
			 "1 {\"a\":1}\n5 {\"b\":2}\n10 {\"c\":3}\n12 [\"d\"]\n");
	expect_documents("---\n---\n---\n", "");
	expect_documents("\xef\xbb\xbf"
			 "a: 1\n",
			 "1 {\"a\":1}\n");
	expect_documents("a: 1\r\nb: 2\r\n", "1 {\"a\":1,\"b\":2}\n");
}

static void documents_before_a_fault_are_handed_out(void **state)
{
	struct got got;
	struct roll_err err;

	(void)state;
	assert_int_equal(read_text(roll_str_c("a: 1\n---\nb: [\n"), NODES, &got, &err),
			 ROLL_EINVAL);
	assert_string_equal(got.text.p, "1 {\"a\":1}\n");
	roll_buf_fini(&got.text);
}

static void the_callback_can_stop(void **state)
{
	struct got got = {.stop = ROLL_ECANCELED};
	struct roll_err err;

	(void)state;
	roll_buf_init(&got.text, 100);
	assert_int_equal(roll_yaml_read(roll_str_c("a\n---\nb\n"), NODES, on_document, &got, &err),
			 ROLL_ECANCELED);
	assert_string_equal(got.text.p, "1 \"a\"\n");
	roll_buf_fini(&got.text);
}

static void keys_become_strings(void **state)
{
	(void)state;
	expect_documents("yes: 1\n010: 2\n1.50: 3\n'yes': 4\n",
			 "1 {\"1.50\":3,\"8\":2,\"true\":1,\"yes\":4}\n");
	expect_documents("&k a: 1\nb: {*k : 2}\n", "1 {\"a\":1,\"b\":{\"a\":2}}\n");
}

static void keys_that_json_cannot_have_are_refused(void **state)
{
	static const struct {
		const char *yaml;
		const char *where;
		const char *text;
	} cases[] = {
		{"a: 1\nb: 2\na: 3\n", "line 3, column 1", "duplicate key \"a\""},
		{"x:\n  - {a: 1, \"a\": 2}\n", "line 2, column 12", "duplicate key \"a\""},
		{"1: a\n0x1: b\n", "line 2, column 1", "duplicate key \"1\""},
		{"? [a]\n: 1\n", "line 1, column 3", "key must be a scalar"},
		{"? {a: 1}\n: 1\n", "line 1, column 3", "key must be a scalar"},
		{"~: 1\n", "line 1, column 1", "key must be a scalar"},
		{"x: &m {a: 1}\ny: {*m : 1}\n", "line 2, column 5", "key must be a scalar"},
		{"x: &m 1.5\ny: {*m : 1}\n", "line 2, column 5", "key must be a scalar"},
		{"\"a\\0b\": 1\n", "line 1, column 1", "NUL"},
		{"\"\\n\": 1\n\"\\n\": 1\n", "line 2, column 1", "duplicate key \"\\x0a\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		expect_refused(cases[i].yaml, ROLL_EINVAL, cases[i].where, cases[i].text);
}

static void aliases_stand_for_their_anchor(void **state)
{
	(void)state;
	expect_documents(
		"a: &x {b: [1]}\nc: *x\nd: [*x, &y s, *y]\n",
		"1 {\"a\":{\"b\":[1]},\"c\":{\"b\":[1]},\"d\":[{\"b\":[1]},\"s\",\"s\"]}\n");
	expect_documents("- &x 1\n- *x\n- &x 2\n- *x\n", "1 [1,1,2,2]\n");
	expect_refused("a: *x\n", ROLL_EINVAL, "line 1, column 4", "not defined");
	expect_refused("a: &x 1\n---\nb: *x\n", ROLL_EINVAL, "line 3, column 4", "not defined");
	expect_refused("a: &x [*x]\n", ROLL_EINVAL, "line 1, column 8", "contains itself");
	expect_refused("&x a: {b: &x {c: *x}}\n", ROLL_EINVAL, "line 1, column 18",
		       "contains itself");
}

static void merge_keys_fill_in_what_is_missing(void **state)
{
	(void)state;
	expect_documents("- &x {a: 1, b: 2}\n- {b: 3, <<: *x}\n- {<<: *x, b: 4}\n",
			 "1 [{\"a\":1,\"b\":2},{\"a\":1,\"b\":3},{\"a\":1,\"b\":4}]\n");
	expect_documents("- &x {a: 1}\n- &y {a: 2, b: 2}\n- {<<: [*x, *y]}\n- {<<: {c: 5}}\n",
			 "1 [{\"a\":1},{\"a\":2,\"b\":2},{\"a\":1,\"b\":2},{\"c\":5}]\n");
	expect_documents("'<<': 1\n", "1 {\"<<\":1}\n");
	expect_documents("a: <<\n", "1 {\"a\":\"<<\"}\n");
	expect_refused("<<: 1\n", ROLL_EINVAL, "line 1, column 5", "merge key takes");
	expect_refused("<<: [{}, 1]\n", ROLL_EINVAL, "line 1, column 11", "merge key takes maps");
	expect_refused("<<: {}\n<<: {}\n", ROLL_EINVAL, "line 2, column 1", "duplicate key");
}

static void tags_other_than_the_core_ones_are_refused(void **state)
{
	(void)state;
	expect_refused("a: !!binary aGVsbG8=\n", ROLL_EINVAL, "line 1, column 4", "binary");
	expect_refused("a: !mine x\n", ROLL_EINVAL, "line 1, column 4", "!mine");
	expect_refused("a: !!set {b}\n", ROLL_EINVAL, "line 1, column 4", "set");
	expect_refused("a: !!seq {b: 1}\n", ROLL_EINVAL, "line 1, column 4", "seq");
	expect_refused("a: !!int x\n", ROLL_EINVAL, "line 1, column 4", "does not fit");
	expect_refused("a: !!bool 1\n", ROLL_EINVAL, "line 1, column 4", "does not fit");
}

static void text_that_is_not_utf8_is_refused_with_its_place(void **state)
{
	static const char utf16[] = "\xff\xfe"
				    "a\0:\0 \0"
				    "1\0";
	struct got got;
	struct roll_err err;

	(void)state;
	expect_refused("a: 1\nb: x\xff\n", ROLL_EINVAL, "line 2, column 5", "UTF-8");
	expect_refused("a: \xed\xa0\x80\n", ROLL_EINVAL, "line 1, column 4", "Unicode");
	expect_refused("a: x\x01\n", ROLL_EINVAL, "line 1, column 5", "control");
	expect_refused("a: \"\\ud800\"\n", ROLL_EINVAL, "line 1, column 7", "Unicode");
	assert_int_equal(read_text(roll_str_n(utf16, sizeof utf16 - 1), NODES, &got, &err),
			 ROLL_EINVAL);
	roll_buf_fini(&got.text);
	assert_int_equal(read_text(roll_str_n("a: \0", 4), NODES, &got, &err), ROLL_EINVAL);
	roll_buf_fini(&got.text);
}

/* `count` times `text`, then "1", then `count` times `close`. */
static char *repeat(const char *text, size_t count, const char *close)
{
	size_t n = strlen(text), m = strlen(close), i;
	char *out = malloc(count * (n + m) + 2), *p = out;

	assert_non_null(out);
	for (i = 0; i < count; i++, p += n)
		memcpy(p, text, n);
	*p++ = '1';
	for (i = 0; i < count; i++, p += m)
		memcpy(p, close, m);
	*p = 0;
	return out;
}

static void nesting_has_a_limit(void **state)
{
	static const struct {
		const char *open;
		const char *close;
	} cases[] = {{"[", "]"}, {"{a: ", "}"}, {"- ", ""}};
	struct got got;
	struct roll_err err;
	char *text;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		text = repeat(cases[i].open, ROLL_JSON_DEPTH, cases[i].close);
		assert_int_equal(read_text(roll_str_c(text), NODES, &got, &err), ROLL_OK);
		roll_buf_fini(&got.text);
		free(text);
		text = repeat(cases[i].open, ROLL_JSON_DEPTH + 1, cases[i].close);
		assert_int_equal(read_text(roll_str_c(text), NODES, &got, &err), ROLL_ELIMIT);
		assert_string_equal(err.text, "nested too deep");
		roll_buf_fini(&got.text);
		free(text);
		/* A million levels cost no more than those that are read. */
		text = repeat(cases[i].open, 1000000, "");
		assert_int_not_equal(read_text(roll_str_c(text), NODES, &got, &err), ROLL_OK);
		roll_buf_fini(&got.text);
		free(text);
	}
}

static void nesting_is_counted_through_aliases(void **state)
{
	struct roll_buf text;
	struct got got;
	struct roll_err err;

	(void)state;
	roll_buf_init(&text, 1u << 16);
	roll_buf_add_c(&text, "- &a0 x\n");
	for (int i = 1; i <= ROLL_JSON_DEPTH; i++)
		roll_buf_printf(&text, "- &a%d [*a%d]\n", i, i - 1);
	assert_int_equal(read_text(roll_buf_str(&text), NODES, &got, &err), ROLL_ELIMIT);
	assert_string_equal(err.where, "line 65, column 9");
	roll_buf_fini(&got.text);
	roll_buf_fini(&text);
}

static void alias_bombs_hit_the_node_limit(void **state)
{
	struct roll_buf text;
	struct got got;
	struct roll_err err;

	(void)state;
	/* Nine to the power of nine strings. */
	roll_buf_init(&text, 1u << 16);
	roll_buf_add_c(&text, "a0: &a0 lol\n");
	for (int i = 1; i < 10; i++) {
		roll_buf_printf(&text, "a%d: &a%d [", i, i);
		for (int j = 0; j < 9; j++)
			roll_buf_printf(&text, "*a%d,", i - 1);
		roll_buf_add_c(&text, "]\n");
	}
	assert_int_equal(read_text(roll_buf_str(&text), 100000, &got, &err), ROLL_ELIMIT);
	assert_string_equal(err.text, "too many nodes, aliases counted as what they mean");
	roll_buf_fini(&got.text);

	/* The same with merge keys. */
	roll_buf_reset(&text);
	roll_buf_add_c(&text, "a0: &a0 {x: 1}\n");
	for (int i = 1; i < 20; i++)
		roll_buf_printf(&text, "a%d: &a%d {<<: [*a%d, *a%d, *a%d]}\n", i, i, i - 1, i - 1,
				i - 1);
	assert_int_equal(read_text(roll_buf_str(&text), 100000, &got, &err), ROLL_ELIMIT);
	roll_buf_fini(&got.text);

	/* Few aliases of one long string: counted by their length. */
	roll_buf_reset(&text);
	roll_buf_add_c(&text, "- &s ");
	for (int i = 0; i < 4096; i++)
		roll_buf_add_char(&text, 'x');
	for (int i = 0; i < 100; i++)
		roll_buf_add_c(&text, "\n- *s");
	assert_int_equal(read_text(roll_buf_str(&text), 405, &got, &err), ROLL_OK);
	roll_buf_fini(&got.text);
	assert_int_equal(read_text(roll_buf_str(&text), 404, &got, &err), ROLL_ELIMIT);
	roll_buf_fini(&got.text);
	roll_buf_fini(&text);
}

static void the_node_limit_is_per_document(void **state)
{
	struct got got;
	struct roll_err err;

	(void)state;
	assert_int_equal(read_text(roll_str_c("[1, 2]\n---\n[3, 4]\n"), 3, &got, &err), ROLL_OK);
	roll_buf_fini(&got.text);
	assert_int_equal(read_text(roll_str_c("[1, 2, 3]\n"), 3, &got, &err), ROLL_ELIMIT);
	assert_string_equal(err.where, "line 1, column 8");
	roll_buf_fini(&got.text);
}

static void directives_have_a_limit(void **state)
{
	struct roll_buf text;
	struct got got;
	struct roll_err err;

	(void)state;
	roll_buf_init(&text, 1u << 20);
	for (int i = 0; i < 1000; i++)
		roll_buf_printf(&text, "%%TAG !t%d! x\n", i);
	roll_buf_add_c(&text, "---\na: 1\n");
	assert_int_equal(read_text(roll_buf_str(&text), NODES, &got, &err), ROLL_OK);
	assert_string_equal(got.text.p, "1002 {\"a\":1}\n");
	roll_buf_fini(&got.text);
	roll_buf_add_c(&text, "---\n%TAG !more! x\n");
	assert_int_equal(read_text(roll_buf_str(&text), NODES, &got, &err), ROLL_ELIMIT);
	roll_buf_fini(&got.text);
	roll_buf_fini(&text);
}

static void broken_text_is_refused_with_its_place(void **state)
{
	(void)state;
	expect_refused("a: [1\n", ROLL_EINVAL, "line 2, column 1", "");
	expect_refused("a: b: c\n", ROLL_EINVAL, "line 1, column 5", "");
	expect_refused("a: 'x\n", ROLL_EINVAL, "line 2, column 1", "");
	expect_refused("a: 1\n b: 2\n", ROLL_EINVAL, "line 2, column 3", "");
	expect_refused("a: @x\n", ROLL_EINVAL, "line 1, column 4", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scalars_become_what_kubernetes_tools_make_of_them),
		cmocka_unit_test(numbers_that_json_lacks_are_refused),
		cmocka_unit_test(collections_nest_in_every_style),
		cmocka_unit_test(json_text_is_yaml),
		cmocka_unit_test(tabs_cannot_indent),
		cmocka_unit_test(documents_come_one_by_one_with_their_first_line),
		cmocka_unit_test(documents_before_a_fault_are_handed_out),
		cmocka_unit_test(the_callback_can_stop),
		cmocka_unit_test(keys_become_strings),
		cmocka_unit_test(keys_that_json_cannot_have_are_refused),
		cmocka_unit_test(aliases_stand_for_their_anchor),
		cmocka_unit_test(merge_keys_fill_in_what_is_missing),
		cmocka_unit_test(tags_other_than_the_core_ones_are_refused),
		cmocka_unit_test(text_that_is_not_utf8_is_refused_with_its_place),
		cmocka_unit_test(nesting_has_a_limit),
		cmocka_unit_test(nesting_is_counted_through_aliases),
		cmocka_unit_test(alias_bombs_hit_the_node_limit),
		cmocka_unit_test(the_node_limit_is_per_document),
		cmocka_unit_test(directives_have_a_limit),
		cmocka_unit_test(broken_text_is_refused_with_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
