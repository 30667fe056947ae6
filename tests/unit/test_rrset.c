/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "dns/rrset.h"

#define S(literal) roll_str_n("" literal, sizeof(literal) - 1)

static struct roll_str number(uint32_t n, char out[16])
{
	return roll_str_n(out, (size_t)snprintf(out, 16, "%u", n));
}

static void duplicates_are_found_and_order_is_kept(void **state)
{
	struct roll_arena arena;
	struct roll_rrset rrset;
	char text[16];

	(void)state;
	roll_arena_init(&arena, 1 << 20);
	roll_rrset_init(&rrset, ROLL_TYPE_TXT);
	/* Across the border between comparing and hashing. */
	for (uint32_t i = 0; i < 40; i++) {
		assert_int_equal(roll_rrset_add(&rrset, number(i, text), &arena), ROLL_OK);
		assert_int_equal(rrset.count, i + 1);
		for (uint32_t k = 0; k <= i; k++)
			assert_int_equal(roll_rrset_add(&rrset, number(k, text), &arena),
					 ROLL_EEXIST);
	}
	assert_int_equal(rrset.count, 40);
	for (uint32_t i = 0; i < 40; i++)
		assert_true(roll_str_eq(rrset.rdata[i], number(i, text)));
	roll_arena_fini(&arena);
}

static void limits_leave_the_set_as_it_was(void **state)
{
	static char large[65536];
	struct roll_arena arena;
	struct roll_rrset rrset;

	(void)state;
	roll_arena_init(&arena, 300);
	roll_rrset_init(&rrset, ROLL_TYPE_TXT);
	assert_int_equal(roll_rrset_add(&rrset, roll_str_n(large, 65536), &arena), ROLL_ELIMIT);
	assert_int_equal(roll_rrset_add(&rrset, S("a"), &arena), ROLL_OK);
	assert_int_equal(roll_rrset_add(&rrset, roll_str_n(large, 65535), &arena), ROLL_ELIMIT);
	assert_int_equal(rrset.count, 1);
	assert_true(roll_str_eq_c(rrset.rdata[0], "a"));
	roll_arena_fini(&arena);
}

/* Comparing each with each would take half a minute. */
static void many_records_cost_linear_time(void **state)
{
	const uint32_t count = 300000;
	struct timespec from, to;
	struct roll_arena arena;
	struct roll_rrset rrset;
	char text[16];

	(void)state;
	roll_arena_init(&arena, (size_t)1 << 30);
	roll_rrset_init(&rrset, ROLL_TYPE_TXT);
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (uint32_t i = 0; i < 2 * count; i++)
		assert_int_equal(roll_rrset_add(&rrset, number(i % count, text), &arena),
				 i < count ? ROLL_OK : ROLL_EEXIST);
	clock_gettime(CLOCK_MONOTONIC, &to);
	assert_int_equal(rrset.count, count);
	assert_true(to.tv_sec - from.tv_sec < 10);
	roll_arena_fini(&arena);
}

static void bytes_lead_back(void **state)
{
	struct roll_rrset rrset, again;
	struct roll_rrset_head head;
	struct roll_arena arena;
	struct roll_reader r;
	struct roll_buf buf;

	(void)state;
	roll_arena_init(&arena, 1 << 20);
	roll_buf_init(&buf, 4096);
	roll_rrset_init(&rrset, ROLL_TYPE_TXT);
	rrset.has_ttl = true;
	rrset.ttl = ROLL_TTL_MAX;
	assert_int_equal(roll_rrset_add(&rrset, S("\1a"), &arena), ROLL_OK);
	assert_int_equal(roll_rrset_add(&rrset, S(""), &arena), ROLL_OK);
	assert_int_equal(roll_rrset_add(&rrset, S("\0\0"), &arena), ROLL_OK);
	roll_rrset_encode(&rrset, &buf);
	assert_int_equal(buf.n, roll_rrset_encoded_size(&rrset));
	assert_memory_equal(buf.p, "\x10\0\1\xff\xff\xff\x7f\3\0\0\0\2\0\1a\0\0\2\0\0\0", 21);

	r = roll_reader_of(buf.p, buf.n);
	assert_int_equal(roll_rrset_decode(&r, &arena, &again), ROLL_OK);
	assert_true(roll_reader_done(&r));
	assert_int_equal(again.type, ROLL_TYPE_TXT);
	assert_true(again.has_ttl);
	assert_int_equal(again.ttl, ROLL_TTL_MAX);
	assert_int_equal(again.count, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(roll_str_eq(again.rdata[i], rrset.rdata[i]));

	r = roll_reader_of(buf.p, buf.n);
	head = roll_rrset_decode_head(&r);
	assert_int_equal(head.count, 3);
	assert_true(roll_str_eq_c(roll_rrset_decode_rdata(&r), "\1a"));

	/* A decoded set can grow, and still knows its own. */
	assert_int_equal(roll_rrset_add(&again, S("\1a"), &arena), ROLL_EEXIST);
	assert_int_equal(roll_rrset_add(&again, S("b"), &arena), ROLL_OK);
	assert_int_equal(again.count, 4);

	for (size_t n = 0; n < buf.n; n++) {
		r = roll_reader_of(buf.p, n);
		assert_int_equal(roll_rrset_decode(&r, &arena, &again), ROLL_ECORRUPT);
	}
	roll_buf_fini(&buf);
	roll_arena_fini(&arena);
}

static void odd_bytes_are_corrupt(void **state)
{
	static const struct roll_str cases[] = {
		{"\1\0\2\0\0\0\0\0\0\0\0", 11},			/* has_ttl is 2 */
		{"\1\0\0\1\0\0\0\0\0\0\0", 11},			/* a TTL that is not there */
		{"\1\0\1\0\0\0\x80\0\0\0\0", 11},		/* a TTL of 2^31 */
		{"\1\0\0\0\0\0\0\1\0\0\0\1", 12},		/* count beyond the bytes */
		{"\1\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\0", 15}, /* also a large one */
	};
	struct roll_arena arena;
	struct roll_rrset out;

	(void)state;
	roll_arena_init(&arena, 1 << 20);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct roll_reader r = roll_reader_of(cases[i].p, cases[i].n);

		assert_int_equal(roll_rrset_decode(&r, &arena, &out), ROLL_ECORRUPT);
	}
	assert_int_equal(arena.status, ROLL_OK);
	roll_arena_fini(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(duplicates_are_found_and_order_is_kept),
		cmocka_unit_test(limits_leave_the_set_as_it_was),
		cmocka_unit_test(many_records_cost_linear_time),
		cmocka_unit_test(bytes_lead_back),
		cmocka_unit_test(odd_bytes_are_corrupt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
