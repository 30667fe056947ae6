/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"

static void memory_is_zeroed_and_aligned(void **state)
{
	struct roll_arena arena;

	(void)state;
	roll_arena_init(&arena, 1 << 20);
	for (int round = 0; round < 3; round++) {
		for (size_t n = 0; n < 200; n++) {
			unsigned char *p = roll_arena_alloc(&arena, n);

			assert_non_null(p);
			assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
			for (size_t i = 0; i < n; i++)
				assert_int_equal(p[i], 0);
			memset(p, 0xaa, n);
		}
		roll_arena_reset(&arena);
		assert_int_equal(arena.used_bytes, 0);
	}
	roll_arena_fini(&arena);
}

static void the_ceiling_is_an_error_that_sticks_until_reset(void **state)
{
	struct roll_arena arena;

	(void)state;
	roll_arena_init(&arena, 100);
	assert_non_null(roll_arena_alloc(&arena, 64));
	assert_null(roll_arena_alloc(&arena, 64));
	assert_int_equal(arena.status, ROLL_ELIMIT);
	assert_null(roll_arena_alloc(&arena, 1));
	roll_arena_reset(&arena);
	assert_int_equal(arena.status, ROLL_OK);
	assert_non_null(roll_arena_alloc(&arena, 64));
	roll_arena_fini(&arena);
}

static void sizes_that_overflow_are_refused(void **state)
{
	struct roll_arena arena;

	(void)state;
	roll_arena_init(&arena, SIZE_MAX);
	assert_null(roll_arena_array(&arena, SIZE_MAX / 2, 3));
	assert_int_equal(arena.status, ROLL_ELIMIT);
	roll_arena_reset(&arena);
	assert_null(roll_arena_alloc(&arena, SIZE_MAX));
	assert_int_equal(arena.status, ROLL_ELIMIT);
	roll_arena_fini(&arena);
}

static void large_and_small_ones_mix(void **state)
{
	struct roll_arena arena;
	char *small[64], *large[64];

	(void)state;
	roll_arena_init(&arena, 64 << 20);
	for (int i = 0; i < 64; i++) {
		small[i] = roll_arena_alloc(&arena, 10);
		large[i] = roll_arena_alloc(&arena, 300000);
		assert_non_null(small[i]);
		assert_non_null(large[i]);
		memset(small[i], i, 10);
		memset(large[i], i, 300000);
	}
	for (int i = 0; i < 64; i++) {
		assert_int_equal(small[i][9], i);
		assert_int_equal(large[i][299999], i);
	}
	roll_arena_reset(&arena);
	assert_non_null(roll_arena_alloc(&arena, 1));
	roll_arena_fini(&arena);
}

static void copies_are_terminated(void **state)
{
	struct roll_arena arena;
	struct roll_str s;

	(void)state;
	roll_arena_init(&arena, 64);
	s = roll_arena_str(&arena, roll_str_n("abcdef", 3));
	assert_int_equal(s.n, 3);
	assert_string_equal(s.p, "abc");
	s = roll_arena_str(&arena, roll_str_n(NULL, 0));
	assert_string_equal(s.p, "");
	assert_memory_equal(roll_arena_copy(&arena, "xyz", 3), "xyz", 3);
	s = roll_arena_str(&arena, roll_str_c("this one is longer than what is left of the room"));
	assert_null(s.p);
	assert_int_equal(s.n, 0);
	roll_arena_fini(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_zeroed_and_aligned),
		cmocka_unit_test(the_ceiling_is_an_error_that_sticks_until_reset),
		cmocka_unit_test(sizes_that_overflow_are_refused),
		cmocka_unit_test(large_and_small_ones_mix),
		cmocka_unit_test(copies_are_terminated),
	};

	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
