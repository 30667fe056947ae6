/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"

#define S(literal) roll_str_n("" literal, sizeof(literal) - 1)

static void equality_is_by_bytes_and_length(void **state)
{
	(void)state;
	assert_true(roll_str_eq(S("a\0b"), S("a\0b")));
	assert_false(roll_str_eq(S("a\0b"), S("a\0c")));
	assert_false(roll_str_eq(S("a"), S("ab")));
	assert_true(roll_str_eq(roll_str_n(NULL, 0), S("")));
	assert_true(roll_str_eq_c(roll_str_c(NULL), ""));
	assert_true(roll_str_eq_nocase(S("eXample.COM"), S("Example.com")));
	assert_false(roll_str_eq_nocase(S("["), S("{")));
	assert_false(roll_str_eq_nocase(S("\xc3\x84"), S("\xc3\xa4")));
}

static void order_is_by_bytes_shorter_first(void **state)
{
	(void)state;
	assert_true(roll_str_cmp(S("a"), S("b")) < 0);
	assert_true(roll_str_cmp(S("a"), S("ab")) < 0);
	assert_true(roll_str_cmp(S("\xff"), S("a")) > 0);
	assert_int_equal(roll_str_cmp(S("ab"), S("ab")), 0);
	assert_int_equal(roll_str_cmp(roll_str_n(NULL, 0), S("")), 0);
}

static void prefix_and_trim(void **state)
{
	(void)state;
	assert_true(roll_str_starts(S("abc"), "ab"));
	assert_true(roll_str_starts(S("abc"), ""));
	assert_false(roll_str_starts(S("a"), "ab"));
	assert_true(roll_str_eq_c(roll_str_trim(S(" \t\r\n a b \n")), "a b"));
	assert_true(roll_str_eq_c(roll_str_trim(S("  \n")), ""));
	assert_true(roll_str_eq_c(roll_str_trim(roll_str_n(NULL, 0)), ""));
}

static void cut_gives_every_part_once(void **state)
{
	struct roll_str rest = S("a,,b");

	(void)state;
	assert_true(roll_str_eq_c(roll_str_cut(&rest, ','), "a"));
	assert_true(roll_str_eq_c(roll_str_cut(&rest, ','), ""));
	assert_true(roll_str_eq_c(roll_str_cut(&rest, ','), "b"));
	assert_int_equal(rest.n, 0);
	assert_true(roll_str_eq_c(roll_str_cut(&rest, ','), ""));
}

static void numbers_are_digits_within_the_maximum(void **state)
{
	static const struct {
		struct roll_str text;
		uint64_t max;
		enum roll_status status;
		uint64_t value;
	} cases[] = {
		{{"0", 1}, 9, ROLL_OK, 0},
		{{"007", 3}, 9, ROLL_OK, 7},
		{{"65535", 5}, 65535, ROLL_OK, 65535},
		{{"65536", 5}, 65535, ROLL_ELIMIT, 0},
		{{"18446744073709551615", 20}, UINT64_MAX, ROLL_OK, UINT64_MAX},
		{{"18446744073709551616", 20}, UINT64_MAX, ROLL_ELIMIT, 0},
		{{"99999999999999999999999", 23}, UINT64_MAX, ROLL_ELIMIT, 0},
		{{"99999999999999999999999x", 24}, UINT64_MAX, ROLL_EINVAL, 0},
		{{"", 0}, 9, ROLL_EINVAL, 0},
		{{"-1", 2}, 9, ROLL_EINVAL, 0},
		{{"+1", 2}, 9, ROLL_EINVAL, 0},
		{{" 1", 2}, 9, ROLL_EINVAL, 0},
		{{"1 ", 2}, 9, ROLL_EINVAL, 0},
		{{"0x1", 3}, 9, ROLL_EINVAL, 0},
		{{"1\0", 2}, 9, ROLL_EINVAL, 0},
		{{"\xb2", 1}, 9, ROLL_EINVAL, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t value = 4711;

		assert_int_equal(roll_str_u64(cases[i].text, cases[i].max, &value),
				 cases[i].status);
		assert_int_equal(value, cases[i].status ? 4711 : cases[i].value);
	}
}

static void narrow_numbers_leave_the_output_on_error(void **state)
{
	uint16_t small = 5;
	uint32_t medium = 5;

	(void)state;
	assert_int_equal(roll_str_u16(S("65536"), UINT16_MAX, &small), ROLL_ELIMIT);
	assert_int_equal(small, 5);
	assert_int_equal(roll_str_u16(S("65535"), UINT16_MAX, &small), ROLL_OK);
	assert_int_equal(small, 65535);
	assert_int_equal(roll_str_u32(S("4294967296"), UINT32_MAX, &medium), ROLL_ELIMIT);
	assert_int_equal(medium, 5);
	assert_int_equal(roll_str_u32(S("4294967295"), UINT32_MAX, &medium), ROLL_OK);
	assert_int_equal(medium, UINT32_MAX);
}

static void utf8_is_well_formed_by_rfc_3629(void **state)
{
	static const struct {
		const char *text;
		bool ok;
	} cases[] = {
		{"", true},
		{"abc", true},
		{"\xc3\xa4", true},
		{"\xe2\x82\xac", true},
		{"\xf0\x9f\x98\x80", true},
		{"\xf4\x8f\xbf\xbf", true},
		{"\xed\x9f\xbf", true},
		{"\xee\x80\x80", true},
		{"\x80", false},
		{"\xc3", false},
		{"\xc0\xaf", false},
		{"\xc1\xbf", false},
		{"\xe0\x9f\xbf", false},
		{"\xed\xa0\x80", false},
		{"\xf0\x8f\xbf\xbf", false},
		{"\xf4\x90\x80\x80", false},
		{"\xf5\x80\x80\x80", false},
		{"\xe2\x82", false},
		{"\xe2\x28\xa1", false},
		{"\xff", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(roll_str_is_utf8(roll_str_c(cases[i].text)), cases[i].ok);
}

static void builder_grows_and_ends_in_nul(void **state)
{
	struct roll_buf buf;

	(void)state;
	roll_buf_init(&buf, 1000);
	assert_true(roll_str_eq_c(roll_buf_str(&buf), ""));
	for (int i = 0; i < 100; i++)
		roll_buf_add_c(&buf, "0123456789");
	assert_int_equal(buf.status, ROLL_OK);
	assert_int_equal(buf.n, 1000);
	assert_int_equal(strlen(buf.p), 1000);
	roll_buf_fini(&buf);
}

static void builder_failure_sticks_until_reset(void **state)
{
	struct roll_buf buf;

	(void)state;
	roll_buf_init(&buf, 4);
	roll_buf_add_c(&buf, "abc");
	roll_buf_add_c(&buf, "de");
	assert_int_equal(buf.status, ROLL_ELIMIT);
	roll_buf_add_c(&buf, "f");
	assert_null(roll_buf_extend(&buf, 1));
	roll_buf_printf(&buf, "%d", 1);
	assert_string_equal(buf.p, "abc");
	roll_buf_reset(&buf);
	assert_int_equal(buf.status, ROLL_OK);
	assert_string_equal(buf.p, "");
	roll_buf_add_c(&buf, "wxyz");
	assert_int_equal(buf.status, ROLL_OK);
	roll_buf_add(&buf, "", 0);
	assert_int_equal(buf.status, ROLL_OK);
	roll_buf_fini(&buf);
}

static void builder_refuses_sizes_that_overflow(void **state)
{
	struct roll_buf buf;

	(void)state;
	roll_buf_init(&buf, SIZE_MAX);
	roll_buf_add_c(&buf, "a");
	assert_null(roll_buf_extend(&buf, SIZE_MAX - 1));
	assert_int_equal(buf.status, ROLL_ELIMIT);
	roll_buf_fini(&buf);
}

static void builder_prints_numbers_and_formats(void **state)
{
	struct roll_buf buf;

	(void)state;
	roll_buf_init(&buf, 4096);
	roll_buf_add_u64(&buf, 0);
	roll_buf_add_char(&buf, ' ');
	roll_buf_add_u64(&buf, UINT64_MAX);
	roll_buf_printf(&buf, " %s %0200d", "x", 7);
	assert_int_equal(buf.status, ROLL_OK);
	assert_int_equal(buf.n, 1 + 1 + 20 + 3 + 200);
	roll_buf_truncate(&buf, 22);
	assert_string_equal(buf.p, "0 18446744073709551615");
	roll_buf_fini(&buf);

	/* The ceiling holds for formats as well, whatever room happens to be there. */
	for (size_t limit = 0; limit < 300; limit++) {
		roll_buf_init(&buf, limit);
		roll_buf_printf(&buf, "%0150d", 7);
		assert_int_equal(buf.status, limit < 150 ? ROLL_ELIMIT : ROLL_OK);
		assert_int_equal(buf.n, limit < 150 ? 0 : 150);
		roll_buf_fini(&buf);
	}
}

static void json_escapes_make_valid_strings(void **state)
{
	struct roll_buf buf;

	(void)state;
	roll_buf_init(&buf, 4096);
	roll_buf_add_json_str(&buf, S("a\"\\/\n\r\t\b\0\x1f\x7f \xc3\xa4\xff\xed\xa0\x80"));
	assert_string_equal(buf.p, "\"a\\\"\\\\/\\n\\r\\t\\u0008\\u0000\\u001f\x7f "
				   "\xc3\xa4\\u00ff\\u00ed\\u00a0\\u0080\"");
	roll_buf_fini(&buf);
}

static void shown_text_has_no_controls_and_a_maximum(void **state)
{
	struct roll_buf buf;

	(void)state;
	roll_buf_init(&buf, 4096);
	roll_buf_add_shown(&buf, S("a\n\"\\\x7f\xff\xc3\xa4\xc2\x85\xe2\x80\xae."), 100);
	assert_string_equal(buf.p, "a\\x0a\\x22\\x5c\\x7f\\xff\xc3\xa4\\xc2\\x85\\xe2\\x80\\xae.");
	roll_buf_reset(&buf);
	roll_buf_add_shown(&buf, S("abcdef"), 6);
	roll_buf_add_char(&buf, '|');
	roll_buf_add_shown(&buf, S("abcdef"), 5);
	roll_buf_add_char(&buf, '|');
	roll_buf_add_shown(&buf, S("\xc3\xa4\xc3\xa4"), 3);
	assert_string_equal(buf.p, "abcdef|abcde...|\xc3\xa4...");
	roll_buf_fini(&buf);
}

static void shown_text_fits_any_array(void **state)
{
	const struct roll_str text = S("a\xc3\xa4\n\xe2\x82\xac and so on");
	char whole[64];

	(void)state;
	assert_string_equal(roll_str_show(text, whole, sizeof whole),
			    "a\xc3\xa4\\x0a\xe2\x82\xac and so on");
	for (size_t size = 1; size < 40; size++) {
		char *out = malloc(size); /* of just this size, for the address sanitizer */

		assert_non_null(out);
		assert_ptr_equal(roll_str_show(text, out, size), out);
		assert_true(strlen(out) < size);
		assert_true(roll_str_is_utf8(roll_str_c(out)));
		if (size <= strlen(whole) && size > 3)
			assert_string_equal(out + strlen(out) - 3, "...");
		free(out);
	}
	assert_string_equal(roll_str_show(S("abc"), whole, 4), "abc");
	assert_string_equal(roll_str_show(S("abcd"), whole, 4), "...");
	assert_string_equal(roll_str_show(S("abcdefgh"), whole, 8), "abcd...");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equality_is_by_bytes_and_length),
		cmocka_unit_test(order_is_by_bytes_shorter_first),
		cmocka_unit_test(prefix_and_trim),
		cmocka_unit_test(cut_gives_every_part_once),
		cmocka_unit_test(numbers_are_digits_within_the_maximum),
		cmocka_unit_test(narrow_numbers_leave_the_output_on_error),
		cmocka_unit_test(utf8_is_well_formed_by_rfc_3629),
		cmocka_unit_test(builder_grows_and_ends_in_nul),
		cmocka_unit_test(builder_failure_sticks_until_reset),
		cmocka_unit_test(builder_refuses_sizes_that_overflow),
		cmocka_unit_test(builder_prints_numbers_and_formats),
		cmocka_unit_test(json_escapes_make_valid_strings),
		cmocka_unit_test(shown_text_has_no_controls_and_a_maximum),
		cmocka_unit_test(shown_text_fits_any_array),
	};

	return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
