/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "view/view.h"

/*
 * Each row, filled in with something in every member, as bytes and back. A decoder takes these
 * bytes, none that are cut short, and none with a byte more.
 */

static struct roll_str s(const char *text)
{
	return roll_str_c(text);
}

typedef enum roll_status (*decode_fn)(struct roll_str bytes, struct roll_arena *arena,
				      struct roll_buf *again);

static enum roll_status head_again(struct roll_str bytes, struct roll_arena *arena,
				   struct roll_buf *again)
{
	struct roll_head head;
	enum roll_status status = roll_head_decode(bytes, &head);

	(void)arena;
	if (!status)
		roll_head_encode(&head, again);
	return status;
}

static enum roll_status object_again(struct roll_str bytes, struct roll_arena *arena,
				     struct roll_buf *again)
{
	struct roll_object_row row;
	enum roll_status status =
		roll_object_row_decode(ROLL_ROW_RECORDSET, s("ns/name"), bytes, &row);

	(void)arena;
	if (!status)
		roll_object_row_encode(&row, again);
	return status;
}

static enum roll_status class_again(struct roll_str bytes, struct roll_arena *arena,
				    struct roll_buf *again)
{
	struct roll_class_row row;
	enum roll_status status = roll_class_row_decode(bytes, &row);

	(void)arena;
	if (!status)
		roll_class_row_encode(&row, again);
	return status;
}

static enum roll_status domain_again(struct roll_str bytes, struct roll_arena *arena,
				     struct roll_buf *again)
{
	struct roll_domain_row row;
	enum roll_status status = roll_domain_row_decode(bytes, arena, &row);

	if (!status)
		roll_domain_row_encode(&row, again);
	return status;
}

static enum roll_status dzone_again(struct roll_str bytes, struct roll_arena *arena,
				    struct roll_buf *again)
{
	struct roll_dzone_row row;
	enum roll_status status = roll_dzone_row_decode(bytes, &row);

	(void)arena;
	if (!status)
		roll_dzone_row_encode(&row, again);
	return status;
}

static enum roll_status removal_again(struct roll_str bytes, struct roll_arena *arena,
				      struct roll_buf *again)
{
	struct roll_removal row;
	enum roll_status status = roll_removal_decode(7, bytes, &row);

	(void)arena;
	if (!status)
		roll_removal_encode(&row, again);
	return status;
}

/* The bytes in memory of just their size, so that the address sanitizer sees one too many. */
static enum roll_status again(decode_fn decode, const char *p, size_t n, struct roll_buf *out)
{
	struct roll_arena arena;
	char *copy = test_malloc(n ? n : 1);
	enum roll_status status;

	memcpy(copy, p, n);
	roll_arena_init(&arena, 1 << 20);
	roll_buf_reset(out);
	status = decode(roll_str_n(copy, n), &arena, out);
	roll_arena_fini(&arena);
	test_free(copy);
	return status;
}

static void check_row(decode_fn decode, struct roll_buf *bytes)
{
	struct roll_buf out;

	assert_int_equal(bytes->status, ROLL_OK);
	roll_buf_init(&out, 1 << 20);
	assert_int_equal(again(decode, bytes->p, bytes->n, &out), ROLL_OK);
	assert_int_equal(out.n, bytes->n);
	assert_memory_equal(out.p, bytes->p, out.n);
	for (size_t n = 0; n < bytes->n; n++)
		assert_int_equal(again(decode, bytes->p, n, &out), ROLL_ECORRUPT);
	roll_buf_add_char(bytes, '\0');
	assert_int_equal(again(decode, bytes->p, bytes->n, &out), ROLL_ECORRUPT);
	roll_buf_fini(&out);
	roll_buf_reset(bytes);
}

static void rows_decode_to_what_was_encoded(void **state)
{
	struct roll_domain_claim claims[] = {
		{s("a/z"), s("u1"), -5, 1, s("cls")},
		{s("b/z"), s("u2"), INT64_MAX, UINT32_MAX, s("")},
	};
	const struct roll_head head = {
		.format = ROLL_VIEW_FORMAT,
		.generation = UINT64_MAX,
		.complete_since_ms = -1,
		.confirmed_ms = 2,
		.is_superseded = true,
		.next_number = 3,
		.max_serial = 4,
		.next_removal = 5,
		.object_count = {6, 7, 8},
		.name_count = 9,
		.controller = s("ours"),
		.source = s("cluster"),
	};
	const struct roll_object_row object = {
		.uid = s("uid"),
		.revision = 1,
		.generation = -2,
		.created_s = INT64_MAX,
		.scope = s("dir/file.yaml"),
		.spec = s("{\"a\":1}"),
		.zone = s("ns/zone"),
		.fault_count = 3,
		.warning_count = 4,
		.findings = roll_str_n("\0\1\1\0p\2\0tt", 9),
		.number = 5,
		.names = roll_str_n("\2\0\0\0\0\0\2\0a\0", 10),
		.record_count = 6,
	};
	const struct roll_class_row cls = {s("ours"), true, 300,
					   17,	      2,    roll_str_n("\2ns\0\1a\1b\0", 9)};
	const struct roll_domain_row domain = {42, 43, 44, 45, 46, 2, claims};
	struct roll_dzone_row dzone = {s("a/z"), roll_name_root, 1, 2};
	const struct roll_removal removal = {
		.sequence = 7,
		.kind = ROLL_ROW_ZONE,
		.key = s("a/z"),
		.uid = s("uid"),
		.zone = s("a/y"),
		.names = s("x.test y.test"),
		.evidence = s("list"),
		.revision = 1 << 20,
		.at_ms = -3,
	};
	struct roll_buf buf;

	(void)state;
	roll_buf_init(&buf, 1 << 20);
	roll_head_encode(&head, &buf);
	check_row(head_again, &buf);
	roll_object_row_encode(&object, &buf);
	check_row(object_again, &buf);
	roll_class_row_encode(&cls, &buf);
	check_row(class_again, &buf);
	roll_domain_row_encode(&domain, &buf);
	check_row(domain_again, &buf);
	assert_int_equal(roll_name_parse(s("a.b"), &dzone.domain, NULL), ROLL_OK);
	roll_dzone_row_encode(&dzone, &buf);
	check_row(dzone_again, &buf);
	roll_removal_encode(&removal, &buf);
	check_row(removal_again, &buf);
	roll_buf_fini(&buf);
}

static void a_head_of_another_format_is_told_from_damage(void **state)
{
	struct roll_head head = {.format = ROLL_VIEW_FORMAT + 1};
	struct roll_buf buf;

	(void)state;
	roll_buf_init(&buf, 1 << 16);
	roll_head_encode(&head, &buf);
	assert_int_equal(roll_head_decode(roll_buf_str(&buf), &head), ROLL_EVERSION);
	assert_int_equal(head.format, ROLL_VIEW_FORMAT + 1);
	/* Also if what follows the first two members is none of ours. */
	assert_int_equal(roll_head_decode(roll_str_n(buf.p, 5), &head), ROLL_EVERSION);
	assert_int_equal(roll_head_decode(roll_str_n(buf.p, 4), &head), ROLL_ECORRUPT);
	roll_buf_fini(&buf);
}

struct bad_names {
	const char *bytes;
	size_t n;
	uint32_t count;
};

static void nameservers_are_canonical_names_and_as_many_as_told(void **state)
{
	static const struct bad_names cases[] = {
		{"\2NS\0", 4, 1}, /* upper case */
		{"\2ns\0", 4, 2}, {"\2ns\0", 4, 0},    {"\2ns", 3, 1},
		{"\5ns\0", 4, 1}, {"\300\14\0", 3, 1}, {"", 0, 1},
	};
	struct roll_buf buf;

	(void)state;
	roll_buf_init(&buf, 1 << 16);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct roll_class_row row = {
			.controller = s("c"),
			.nameservers = roll_str_n(cases[i].bytes, cases[i].n),
			.nameserver_count = cases[i].count,
		};

		roll_buf_reset(&buf);
		roll_class_row_encode(&row, &buf);
		assert_int_equal(roll_class_row_decode(roll_buf_str(&buf), &row), ROLL_ECORRUPT);
	}
	roll_buf_fini(&buf);
}

static void claims_to_a_domain_are_in_order_of_age(void **state)
{
	struct roll_domain_claim claims[] = {
		{s("b/z"), s("u"), 5, 1, s("cls")},
		{s("a/z"), s("u"), 5, 2, s("cls")},
	};
	struct roll_domain_row row = {.id = 1, .claim_count = 2, .claims = claims};
	struct roll_arena arena;
	struct roll_buf buf;

	(void)state;
	roll_arena_init(&arena, 1 << 16);
	roll_buf_init(&buf, 1 << 16);
	roll_domain_row_encode(&row, &buf);
	assert_int_equal(roll_domain_row_decode(roll_buf_str(&buf), &arena, &row), ROLL_ECORRUPT);
	row = (struct roll_domain_row){.id = 0};
	roll_buf_reset(&buf);
	roll_domain_row_encode(&row, &buf);
	assert_int_equal(roll_domain_row_decode(roll_buf_str(&buf), &arena, &row), ROLL_ECORRUPT);
	roll_arena_fini(&arena);
	roll_buf_fini(&buf);
}

static void a_count_is_checked_before_memory_is_taken_for_it(void **state)
{
	struct roll_domain_row row = {.id = 1};
	struct roll_arena arena;
	struct roll_buf buf;

	(void)state;
	roll_arena_init(&arena, 1 << 10);
	roll_buf_init(&buf, 1 << 16);
	roll_domain_row_encode(&row, &buf);
	memset(buf.p + buf.n - 4, 0xff, 4);
	assert_int_equal(roll_domain_row_decode(roll_buf_str(&buf), &arena, &row), ROLL_ECORRUPT);
	assert_int_equal(arena.status, ROLL_OK);
	roll_arena_fini(&arena);
	roll_buf_fini(&buf);
}

static void strings_that_do_not_fit_a_row_are_an_error_of_the_builder(void **state)
{
	static char big[65536];
	struct roll_object_row row = {.uid = roll_str_n(big, sizeof big)};
	struct roll_buf buf;

	(void)state;
	roll_buf_init(&buf, 1 << 20);
	roll_object_row_encode(&row, &buf);
	assert_int_equal(buf.status, ROLL_ELIMIT);
	roll_buf_fini(&buf);
}

static struct roll_name name_of(const char *text)
{
	struct roll_name name;

	assert_int_equal(roll_name_parse(s(text), &name, NULL), ROLL_OK);
	return name;
}

static void keys_sort_as_names_and_fit_lmdb(void **state)
{
	struct roll_name domain = name_of("example.com"), www = name_of("www.example.com"), back;
	struct roll_key key = roll_key_name(0x01020304, &domain, &www);
	struct roll_key apex = roll_key_name(0x01020304, &domain, &domain);
	struct roll_key root = roll_key_domain(&roll_name_root);
	char longest[256] = "";

	(void)state;
	assert_int_equal(key.n, 8);
	assert_memory_equal(key.p, "\1\2\3\4www\0", 8);
	assert_int_equal(apex.n, 4);
	assert_int_equal(roll_key_u32(roll_str_n((const char *)key.p, key.n)), 0x01020304);
	assert_int_equal(roll_key_to_name(roll_str_n((const char *)key.p, key.n), &domain, &back),
			 ROLL_OK);
	assert_true(roll_name_eq(&back, &www));
	/* LMDB has no empty keys. */
	assert_int_equal(root.n, 1);
	assert_int_equal(roll_key_to_domain(roll_str_n((const char *)root.p, 1), &back), ROLL_OK);
	assert_int_equal(back.len, 1);
	assert_int_equal(roll_key_to_domain(s("x"), &back), ROLL_ECORRUPT);
	assert_int_equal(roll_key_to_name(s("abc"), &domain, &back), ROLL_ECORRUPT);
	/* The longest name of bytes that keys write as two. */
	memset(longest, 1, sizeof longest);
	for (size_t at = 0; at < 254; at += 2)
		longest[at] = 1;
	longest[254] = 0;
	assert_int_equal(roll_name_from_wire(longest, 255, &back), ROLL_OK);
	key = roll_key_name(1, &roll_name_root, &back);
	assert_false(key.is_too_long);
	assert_true(key.n <= ROLL_KEY_MAX);
}

static void a_key_that_is_too_long_is_none(void **state)
{
	static char big[600];
	struct roll_key key = roll_key_object(ROLL_ROW_ZONE, roll_str_n(big, sizeof big));

	(void)state;
	assert_true(key.is_too_long);
	assert_int_equal(key.n, 0);
	roll_key_add_u8(&key, 1);
	assert_int_equal(key.n, 0);
}

static void count_finding(void *ctx, unsigned severity, unsigned reason, struct roll_str path,
			  struct roll_str text)
{
	assert_int_equal(severity, 1);
	assert_int_equal(reason, 2);
	assert_true(roll_str_eq_c(path, "spec"));
	assert_true(roll_str_eq_c(text, "why"));
	++*(int *)ctx;
}

static void findings_are_walked_in_order_and_checked(void **state)
{
	struct roll_object_row row = {
		.findings = roll_str_n("\1\2\4\0spec\3\0why\1\2\4\0spec\3\0why", 26)};
	int count = 0;

	(void)state;
	assert_int_equal(roll_row_findings(&row, count_finding, &count), ROLL_OK);
	assert_int_equal(count, 2);
	row.findings.n--;
	assert_int_equal(roll_row_findings(&row, count_finding, &count), ROLL_ECORRUPT);
	row.findings = roll_str_n(NULL, 0);
	assert_int_equal(roll_row_findings(&row, count_finding, &count), ROLL_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_decode_to_what_was_encoded),
		cmocka_unit_test(a_head_of_another_format_is_told_from_damage),
		cmocka_unit_test(nameservers_are_canonical_names_and_as_many_as_told),
		cmocka_unit_test(claims_to_a_domain_are_in_order_of_age),
		cmocka_unit_test(a_count_is_checked_before_memory_is_taken_for_it),
		cmocka_unit_test(strings_that_do_not_fit_a_row_are_an_error_of_the_builder),
		cmocka_unit_test(keys_sort_as_names_and_fit_lmdb),
		cmocka_unit_test(a_key_that_is_too_long_is_none),
		cmocka_unit_test(findings_are_walked_in_order_and_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
