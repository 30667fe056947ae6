/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sync/guard.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof *(a))

/* One list, judged by a guard that has seen nothing before. */
static const struct {
	const char *rule;
	unsigned brake;
	struct roll_guard_list list;
	enum roll_guard_verdict want;
} first_lists[] = {
	{"nothing missing passes", 0, {.present = 100}, ROLL_GUARD_PASS},
	{"an empty view has nothing to lose", 0, {0}, ROLL_GUARD_PASS},
	{"half is not more than half", 0, {.present = 100, .missing = 50}, ROLL_GUARD_PASS},
	{"more than half is held", 0, {.present = 100, .missing = 51}, ROLL_GUARD_CONFIRM},
	{"nine objects are never a mass", 0, {.present = 9, .missing = 9}, ROLL_GUARD_PASS},
	{"ten objects are", 0, {.present = 10, .missing = 10}, ROLL_GUARD_CONFIRM},
	{"every zone is held, even the only one",
	 0,
	 {.present = 100, .missing = 1, .zones_present = 1, .zones_missing = 1},
	 ROLL_GUARD_CONFIRM},
	{"all zones but one pass",
	 0,
	 {.present = 100, .missing = 9, .zones_present = 10, .zones_missing = 9},
	 ROLL_GUARD_PASS},
	{"an older revision never counts", 0, {.revision = 9, .high_water = 10}, ROLL_GUARD_OLD},
	{"the same revision counts", 0, {.revision = 10, .high_water = 10}, ROLL_GUARD_PASS},
	{"a source without revisions is not old",
	 0,
	 {.revision = 0, .high_water = 10},
	 ROLL_GUARD_PASS},
	{"up to the brake passes", 5, {.present = 100, .missing = 5}, ROLL_GUARD_PASS},
	{"above the brake is held", 5, {.present = 100, .missing = 6}, ROLL_GUARD_BRAKE},
	{"approval releases the brake",
	 5,
	 {.present = 100, .missing = 6, .is_approved = true},
	 ROLL_GUARD_PASS},
	{"approval does not replace the second list",
	 5,
	 {.present = 100, .missing = 60, .is_approved = true},
	 ROLL_GUARD_CONFIRM},
	{"a brake of 100 percent never holds",
	 100,
	 {.present = 100, .missing = 100},
	 ROLL_GUARD_CONFIRM},
	{"huge counts do not overflow",
	 0,
	 {.present = UINT64_MAX, .missing = UINT64_MAX},
	 ROLL_GUARD_CONFIRM},
	{"huge views do not overflow", 0, {.present = UINT64_MAX, .missing = 10}, ROLL_GUARD_PASS},
};

static void judges_a_first_list(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(first_lists); i++) {
		struct roll_guard_conf conf = {.brake_percent = first_lists[i].brake};
		struct roll_guard guard;
		enum roll_guard_verdict got;

		roll_guard_init(&guard, &conf);
		got = roll_guard_judge(&guard, &first_lists[i].list);
		if (got != first_lists[i].want)
			print_error("%s: %s\n", first_lists[i].rule, roll_guard_text(got));
		assert_int_equal(got, first_lists[i].want);
	}
}

static const struct roll_guard_list mass = {.present = 100, .missing = 80, .missing_hash = 1};

static void second_list_with_the_same_removals_confirms(void **state)
{
	struct roll_guard guard;

	(void)state;
	roll_guard_init(&guard, NULL);
	assert_int_equal(roll_guard_judge(&guard, &mass), ROLL_GUARD_CONFIRM);
	assert_int_equal(roll_guard_judge(&guard, &mass), ROLL_GUARD_PASS);
	/* The confirmation is used up. */
	assert_int_equal(roll_guard_judge(&guard, &mass), ROLL_GUARD_CONFIRM);
}

static void second_list_with_other_removals_is_a_first_one(void **state)
{
	struct roll_guard_list other = mass;
	struct roll_guard guard;

	(void)state;
	roll_guard_init(&guard, NULL);
	other.missing_hash = 2;
	assert_int_equal(roll_guard_judge(&guard, &mass), ROLL_GUARD_CONFIRM);
	assert_int_equal(roll_guard_judge(&guard, &other), ROLL_GUARD_CONFIRM);
	assert_int_equal(roll_guard_judge(&guard, &other), ROLL_GUARD_PASS);
}

static void harmless_list_in_between_starts_over(void **state)
{
	struct roll_guard_list harmless = {.present = 100, .missing = 1};
	struct roll_guard guard;

	(void)state;
	roll_guard_init(&guard, NULL);
	assert_int_equal(roll_guard_judge(&guard, &mass), ROLL_GUARD_CONFIRM);
	assert_int_equal(roll_guard_judge(&guard, &harmless), ROLL_GUARD_PASS);
	assert_int_equal(roll_guard_judge(&guard, &mass), ROLL_GUARD_CONFIRM);
}

static void old_list_neither_confirms_nor_forgets(void **state)
{
	struct roll_guard_list old = mass;
	struct roll_guard guard;

	(void)state;
	old.revision = 1;
	old.high_water = 2;
	roll_guard_init(&guard, NULL);
	assert_int_equal(roll_guard_judge(&guard, &mass), ROLL_GUARD_CONFIRM);
	assert_int_equal(roll_guard_judge(&guard, &old), ROLL_GUARD_OLD);
	assert_int_equal(roll_guard_judge(&guard, &mass), ROLL_GUARD_PASS);
}

static void every_verdict_has_a_text(void **state)
{
	int i;

	(void)state;
	for (i = ROLL_GUARD_PASS; i <= ROLL_GUARD_OLD; i++)
		assert_true(strcmp(roll_guard_text((enum roll_guard_verdict)i), "unknown") != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judges_a_first_list),
		cmocka_unit_test(second_list_with_the_same_removals_confirms),
		cmocka_unit_test(second_list_with_other_removals_is_a_first_one),
		cmocka_unit_test(harmless_list_in_between_starts_over),
		cmocka_unit_test(old_list_neither_confirms_nor_forgets),
		cmocka_unit_test(every_verdict_has_a_text),
	};

	return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
