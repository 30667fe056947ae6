/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dns/claim.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SERVED ROLL_VERDICT_SERVED
#define NOT_OWNER ROLL_VERDICT_NOT_OWNER
#define CONFLICT ROLL_VERDICT_CONFLICT

static struct roll_claim claim_of(const char *object, int64_t created_s, uint16_t type)
{
	struct roll_claim claim = {.object = roll_str_c(object), .created_s = created_s};

	claim.uid = roll_str_c("uid");
	roll_rrset_init(&claim.rrset, type);
	return claim;
}

struct want {
	const char *object;
	enum roll_verdict verdict;
	uint32_t by;
};

static void expect(struct roll_claim *claims, const struct want *want, size_t count, bool is_apex)
{
	roll_claims_decide(claims, count, is_apex);
	for (size_t i = 0; i < count; i++) {
		assert_true(roll_str_eq_c(claims[i].object, want[i].object));
		assert_int_equal(claims[i].verdict, want[i].verdict);
		assert_int_equal(claims[i].by, want[i].by);
	}
}

static void age_is_creation_then_name_then_uid(void **state)
{
	struct roll_claim a = claim_of("ns/a", 5, ROLL_TYPE_A),
			  b = claim_of("ns/b", 4, ROLL_TYPE_A);

	(void)state;
	assert_true(roll_claim_cmp(&a, &b) > 0);
	b.created_s = 5;
	assert_true(roll_claim_cmp(&a, &b) < 0);
	b.object = a.object;
	assert_int_equal(roll_claim_cmp(&a, &b), 0);
	b.uid = roll_str_c("tid");
	assert_true(roll_claim_cmp(&a, &b) > 0);
	/* Without a creation time: the youngest. */
	a.created_s = INT64_MAX;
	assert_true(roll_claim_cmp(&a, &b) > 0);
}

/* W1, W2 */
static void the_oldest_of_a_type_serves(void **state)
{
	struct roll_claim claims[] = {
		claim_of("ns/zzz", 7, ROLL_TYPE_A), claim_of("ns/txt", 9, ROLL_TYPE_TXT),
		claim_of("ns/new", 8, ROLL_TYPE_A), claim_of("ns/aaa", 7, ROLL_TYPE_A)};
	static const struct want want[] = {{"ns/aaa", SERVED, ROLL_BY_NONE},
					   {"ns/txt", SERVED, ROLL_BY_NONE},
					   {"ns/zzz", NOT_OWNER, 0},
					   {"ns/new", NOT_OWNER, 0}};

	(void)state;
	expect(claims, want, COUNT(claims), false);
}

static void an_older_cname_keeps_others_away(void **state)
{
	struct roll_claim claims[] = {
		claim_of("ns/a", 2, ROLL_TYPE_A), claim_of("ns/cname", 1, ROLL_TYPE_CNAME),
		claim_of("ns/alias", 3, ROLL_TYPE_ALIAS), claim_of("ns/late", 4, ROLL_TYPE_CNAME)};
	static const struct want want[] = {{"ns/cname", SERVED, ROLL_BY_NONE},
					   {"ns/a", CONFLICT, 0},
					   {"ns/alias", CONFLICT, 0},
					   {"ns/late", NOT_OWNER, 0}};

	(void)state;
	expect(claims, want, COUNT(claims), false);
}

static void a_younger_cname_names_the_oldest_in_the_way(void **state)
{
	struct roll_claim claims[] = {
		claim_of("ns/cname", 3, ROLL_TYPE_CNAME), claim_of("ns/txt", 2, ROLL_TYPE_TXT),
		claim_of("ns/a", 1, ROLL_TYPE_A), claim_of("ns/cname2", 4, ROLL_TYPE_CNAME)};
	/* The second CNAME does not lose to the first, which serves nothing. */
	static const struct want want[] = {{"ns/a", SERVED, ROLL_BY_NONE},
					   {"ns/txt", SERVED, ROLL_BY_NONE},
					   {"ns/cname", CONFLICT, 0},
					   {"ns/cname2", CONFLICT, 0}};

	(void)state;
	expect(claims, want, COUNT(claims), false);
}

static void alias_stands_beside_anything_but_cname(void **state)
{
	struct roll_claim claims[] = {claim_of("ns/alias", 2, ROLL_TYPE_ALIAS),
				      claim_of("ns/a", 1, ROLL_TYPE_A),
				      claim_of("ns/soa", 3, ROLL_TYPE_SOA)};
	static const struct want want[] = {{"ns/a", SERVED, ROLL_BY_NONE},
					   {"ns/alias", SERVED, ROLL_BY_NONE},
					   {"ns/soa", SERVED, ROLL_BY_NONE}};

	(void)state;
	expect(claims, want, COUNT(claims), true);
}

static void the_zone_itself_beats_a_cname_at_the_apex(void **state)
{
	struct roll_claim claims[] = {claim_of("ns/a", 2, ROLL_TYPE_A),
				      claim_of("ns/cname", 1, ROLL_TYPE_CNAME)};
	static const struct want want[] = {{"ns/a", SERVED, ROLL_BY_NONE},
					   {"ns/cname", CONFLICT, ROLL_BY_ZONE}};

	(void)state;
	expect(claims, want, COUNT(claims), true);
	roll_claims_decide(NULL, 0, true);
}

/* Whatever the order of arrival, the outcome is the same (W5, W6 in both orders). */
static void arrival_order_does_not_matter(void **state)
{
	static const uint16_t types[] = {ROLL_TYPE_CNAME, ROLL_TYPE_A, ROLL_TYPE_TXT, ROLL_TYPE_A,
					 ROLL_TYPE_CNAME};
	static const char *const names[] = {"n/a", "n/b", "n/c", "n/d", "n/e"};
	struct roll_claim first[COUNT(types)], other[COUNT(types)];

	(void)state;
	for (size_t turn = 0; turn < COUNT(types); turn++) {
		for (size_t i = 0; i < COUNT(types); i++) {
			size_t k = (i * 3 + turn) % COUNT(types);

			first[i] = claim_of(names[i], (int64_t)(i + turn) % 3, types[i]);
			other[i] = claim_of(names[k], (int64_t)(k + turn) % 3, types[k]);
		}
		roll_claims_decide(first, COUNT(types), false);
		roll_claims_decide(other, COUNT(types), false);
		for (size_t i = 0; i < COUNT(types); i++) {
			assert_true(roll_str_eq(first[i].object, other[i].object));
			assert_int_equal(first[i].verdict, other[i].verdict);
			assert_int_equal(first[i].by, other[i].by);
		}
	}
}

static void add(struct roll_claim *claim, const char *rdata, struct roll_arena *arena)
{
	assert_int_equal(roll_rrset_add(&claim->rrset, roll_str_c(rdata), arena), ROLL_OK);
}

static void rows_lead_back_and_show_the_served_part_alone(void **state)
{
	struct roll_claim claims[] = {claim_of("ns/a", 1, ROLL_TYPE_A),
				      claim_of("ns/b", INT64_MIN, ROLL_TYPE_TXT),
				      claim_of("ns/c", INT64_MAX, ROLL_TYPE_CNAME)};
	struct roll_claim *out;
	struct roll_arena arena;
	struct roll_buf buf, again;
	struct roll_reader r;
	uint16_t served;
	size_t count;

	(void)state;
	roll_arena_init(&arena, 1 << 20);
	roll_buf_init(&buf, 4096);
	roll_buf_init(&again, 4096);
	add(&claims[0], "1234", &arena);
	add(&claims[1], "\1x", &arena);
	add(&claims[2], "\1y", &arena);
	roll_claims_decide(claims, 3, false);
	roll_claims_encode(claims, 3, &buf);
	assert_int_equal(buf.status, ROLL_OK);

	assert_int_equal(roll_claims_served(roll_buf_str(&buf), &r, &served), ROLL_OK);
	assert_int_equal(served, 2);
	assert_int_equal(roll_rrset_decode_head(&r).type, ROLL_TYPE_TXT);
	assert_true(roll_str_eq_c(roll_rrset_decode_rdata(&r), "\1x"));
	assert_int_equal(roll_rrset_decode_head(&r).type, ROLL_TYPE_A);
	assert_true(roll_str_eq_c(roll_rrset_decode_rdata(&r), "1234"));
	assert_true(roll_reader_done(&r));

	assert_int_equal(roll_claims_decode(roll_buf_str(&buf), &arena, &out, &count), ROLL_OK);
	assert_int_equal(count, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(roll_claim_cmp(&out[i], &claims[i]), 0);
		assert_int_equal(out[i].verdict, claims[i].verdict);
		assert_int_equal(out[i].by, claims[i].by);
	}
	roll_claims_encode(out, count, &again);
	assert_true(roll_str_eq(roll_buf_str(&buf), roll_buf_str(&again)));

	for (size_t n = 0; n < buf.n; n++)
		assert_int_equal(roll_claims_decode(roll_str_n(buf.p, n), &arena, &out, &count),
				 ROLL_ECORRUPT);
	roll_buf_add_char(&buf, 'x');
	assert_int_equal(roll_claims_decode(roll_buf_str(&buf), &arena, &out, &count),
			 ROLL_ECORRUPT);
	roll_buf_fini(&again);
	roll_buf_fini(&buf);
	roll_arena_fini(&arena);
}

static void a_row_without_claims_is_a_row(void **state)
{
	struct roll_claim *out;
	struct roll_arena arena;
	struct roll_buf buf;
	size_t count = 1;

	(void)state;
	roll_arena_init(&arena, 1 << 20);
	roll_buf_init(&buf, 4096);
	roll_claims_encode(NULL, 0, &buf);
	assert_int_equal(buf.n, 10);
	assert_int_equal(roll_claims_decode(roll_buf_str(&buf), &arena, &out, &count), ROLL_OK);
	assert_int_equal(count, 0);
	roll_buf_fini(&buf);
	roll_arena_fini(&arena);
}

static void serials_go_round(void **state)
{
	(void)state;
	assert_true(roll_serial_gt(2, 1));
	assert_false(roll_serial_gt(1, 2));
	assert_false(roll_serial_gt(1, 1));
	assert_true(roll_serial_gt(0, UINT32_MAX));
	assert_true(roll_serial_gt(0x7fffffff, 0));
	assert_false(roll_serial_gt(0x80000000, 0)); /* RFC 1982, 3.2: undefined */
	assert_false(roll_serial_gt(0, 0x80000000));
	assert_int_equal(roll_serial_later(5, UINT32_MAX), 5);
	assert_int_equal(roll_serial_later(UINT32_MAX, 5), 5);
	assert_int_equal(roll_serial_next(1), 2);
	assert_int_equal(roll_serial_next(UINT32_MAX), 1);
	assert_true(roll_serial_gt(roll_serial_next(UINT32_MAX), UINT32_MAX));
}

static void verdicts_have_the_texts_consumers_match(void **state)
{
	(void)state;
	assert_string_equal(roll_verdict_text(SERVED), "Served");
	assert_string_equal(roll_verdict_text(NOT_OWNER), "NotOwner");
	assert_string_equal(roll_verdict_text(CONFLICT), "Conflict");
	assert_string_equal(roll_verdict_text((enum roll_verdict)9), "Unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(age_is_creation_then_name_then_uid),
		cmocka_unit_test(the_oldest_of_a_type_serves),
		cmocka_unit_test(an_older_cname_keeps_others_away),
		cmocka_unit_test(a_younger_cname_names_the_oldest_in_the_way),
		cmocka_unit_test(alias_stands_beside_anything_but_cname),
		cmocka_unit_test(the_zone_itself_beats_a_cname_at_the_apex),
		cmocka_unit_test(arrival_order_does_not_matter),
		cmocka_unit_test(rows_lead_back_and_show_the_served_part_alone),
		cmocka_unit_test(a_row_without_claims_is_a_row),
		cmocka_unit_test(serials_go_round),
		cmocka_unit_test(verdicts_have_the_texts_consumers_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
