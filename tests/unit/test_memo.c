/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "server/memo.h"

static void replies_are_found_by_the_whole_question(void **state)
{
	struct roll_memo *memo = roll_memo_new();
	size_t known = 0;
	char question[64], reply[64];
	bool is_known;

	(void)state;
	assert_non_null(memo);
	/* More than there are places: the older give way, and none is mistaken for another. */
	for (unsigned pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < 2000; i++) {
			int n = snprintf(question, sizeof question, "question %u %0*u", i,
					 (int)(i % 20), 7);
			struct roll_str text = roll_str_n(question, (size_t)n);
			struct roll_memo_place *place = roll_memo_find(memo, text, &is_known);

			assert_non_null(place);
			snprintf(reply, sizeof reply, "reply %u", i);
			if (is_known) {
				known++;
				assert_true(roll_str_eq_c(roll_memo_reply(place), reply));
				assert_int_equal(roll_memo_content(place), i);
			}
			roll_memo_put(place, text, roll_str_c(reply), i);
			assert_ptr_equal(roll_memo_find(memo, text, &is_known), place);
			assert_true(is_known);
		}
	}
	assert_in_range(known, 0, 256);
	roll_memo_free(memo);
}

static void what_is_long_or_escaped_is_not_kept(void **state)
{
	struct roll_memo *memo = roll_memo_new();
	struct roll_memo_place *place;
	char long_text[2000];
	bool is_known = true;

	(void)state;
	memset(long_text, 'x', sizeof long_text);
	assert_null(roll_memo_find(memo, roll_str_n(long_text, 513), &is_known));
	assert_false(is_known);
	assert_null(roll_memo_find(memo, roll_str_c("a\\\\.b"), &is_known));
	assert_null(roll_memo_find(memo, roll_str_c(""), &is_known));
	place = roll_memo_find(memo, roll_str_n(long_text, 512), &is_known);
	assert_non_null(place);
	roll_memo_put(place, roll_str_n(long_text, 512), roll_str_n(long_text, 1000), 1);
	roll_memo_find(memo, roll_str_n(long_text, 512), &is_known);
	assert_true(is_known);
	/* And a reply that does not fit leaves nothing of the old one. */
	roll_memo_put(place, roll_str_n(long_text, 512), roll_str_n(long_text, 1001), 2);
	roll_memo_find(memo, roll_str_n(long_text, 512), &is_known);
	assert_false(is_known);
	roll_memo_free(memo);
}

static void without_memory_nothing_is_known(void **state)
{
	bool is_known = true;

	(void)state;
	assert_null(roll_memo_find(NULL, roll_str_c("question"), &is_known));
	assert_false(is_known);
	roll_memo_free(NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(replies_are_found_by_the_whole_question),
		cmocka_unit_test(what_is_long_or_escaped_is_not_kept),
		cmocka_unit_test(without_memory_nothing_is_known),
	};

	return cmocka_run_group_tests_name("memo", tests, NULL, NULL);
}
