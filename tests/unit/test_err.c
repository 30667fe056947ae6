/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/str.h"

static void every_code_has_a_text_of_its_own(void **state)
{
	(void)state;
	for (int code = ROLL_STATUS_LAST; code <= ROLL_OK; code++) {
		const char *text = roll_status_text((enum roll_status)code);

		assert_non_null(text);
		assert_string_not_equal(text, "");
		for (int other = ROLL_STATUS_LAST; other < code; other++)
			assert_string_not_equal(text, roll_status_text((enum roll_status)other));
	}
	assert_string_equal(roll_status_text((enum roll_status)1), "unknown status");
	assert_string_equal(roll_status_text((enum roll_status)(ROLL_STATUS_LAST - 1)),
			    "unknown status");
}

static void set_fills_and_returns_the_code(void **state)
{
	struct roll_err err;

	(void)state;
	assert_int_equal(roll_err_set(&err, ROLL_EINVAL, "a.yaml:3", "bad %d", 7), ROLL_EINVAL);
	assert_int_equal(err.code, ROLL_EINVAL);
	assert_string_equal(err.where, "a.yaml:3");
	assert_string_equal(err.text, "bad 7");
	assert_int_equal(roll_err_set(&err, ROLL_EIO, NULL, "x"), ROLL_EIO);
	assert_string_equal(err.where, "");
	assert_int_equal(roll_err_set(NULL, ROLL_EBUSY, "a", "b"), ROLL_EBUSY);
}

static void errno_text_is_appended(void **state)
{
	struct roll_err err;

	(void)state;
	assert_int_equal(roll_err_errno(&err, ROLL_EIO, ENOSPC, "/v", "write"), ROLL_EIO);
	assert_string_equal(err.text, "write: No space left on device");
	assert_int_equal(roll_err_errno(NULL, ROLL_EIO, ENOSPC, "/v", "write"), ROLL_EIO);
}

static void long_text_is_cut_at_a_character_border(void **state)
{
	struct roll_err err;
	char text[1024];

	(void)state;
	/* Two bytes a character, at an even and at an odd start. */
	for (size_t lead = 0; lead < 2; lead++) {
		memset(text, 'x', lead);
		for (size_t i = lead; i + 2 < sizeof text; i += 2)
			memcpy(text + i, "\xc3\xa4", 3);
		roll_err_set(&err, ROLL_EINVAL, text, "%s", text);
		assert_true(roll_str_is_utf8(roll_str_c(err.text)));
		assert_true(roll_str_is_utf8(roll_str_c(err.where)));
		assert_string_equal(err.text + strlen(err.text) - 3, "...");
		assert_string_equal(err.where + strlen(err.where) - 3, "...");
		assert_true(strlen(err.text) >= sizeof err.text - 2);
	}
}

static void text_may_quote_the_earlier_text(void **state)
{
	struct roll_err err;

	(void)state;
	roll_err_set(&err, ROLL_EINVAL, "here", "inner");
	roll_err_set(&err, ROLL_EIO, err.where, "outer: %s", err.text);
	assert_string_equal(err.where, "here");
	assert_string_equal(err.text, "outer: inner");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_has_a_text_of_its_own),
		cmocka_unit_test(set_fills_and_returns_the_code),
		cmocka_unit_test(errno_text_is_appended),
		cmocka_unit_test(long_text_is_cut_at_a_character_border),
		cmocka_unit_test(text_may_quote_the_earlier_text),
	};

	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
