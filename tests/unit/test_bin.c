/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bin.h"

static void what_was_put_is_read_again(void **state)
{
	struct roll_buf buf;
	struct roll_reader r;

	(void)state;
	roll_buf_init(&buf, 4096);
	roll_buf_put_u8(&buf, 0xfe);
	roll_buf_put_u16(&buf, 0x1234);
	roll_buf_put_u32(&buf, 0x12345678);
	roll_buf_put_u64(&buf, 0x123456789abcdef0);
	roll_buf_put_str16(&buf, roll_str_c("hello"));
	roll_buf_put_str32(&buf, roll_str_n("a\0b", 3));
	roll_buf_put_str16(&buf, roll_str_c(""));
	assert_int_equal(buf.status, ROLL_OK);
	/* Little-endian on every machine: stored data depends on it. */
	assert_memory_equal(buf.p, "\xfe\x34\x12\x78\x56\x34\x12\xf0\xde", 9);

	r = roll_reader_of(buf.p, buf.n);
	assert_int_equal(roll_reader_u8(&r), 0xfe);
	assert_int_equal(roll_reader_u16(&r), 0x1234);
	assert_int_equal(roll_reader_u32(&r), 0x12345678);
	assert_true(roll_reader_u64(&r) == 0x123456789abcdef0);
	assert_true(roll_str_eq_c(roll_reader_str16(&r), "hello"));
	assert_false(roll_reader_done(&r));
	assert_true(roll_str_eq(roll_reader_str32(&r), roll_str_n("a\0b", 3)));
	assert_true(roll_str_eq_c(roll_reader_str16(&r), ""));
	assert_true(roll_reader_done(&r));
	roll_buf_fini(&buf);
}

static void a_short_read_fails_for_good(void **state)
{
	const uint8_t bytes[] = {5, 0, 'a', 'b', 'c'};

	(void)state;
	for (size_t n = 0; n < sizeof bytes; n++) {
		struct roll_reader r = roll_reader_of(bytes, n);

		assert_int_equal(roll_reader_str16(&r).n, 0);
		assert_int_equal(r.failed, true);
		assert_int_equal(roll_reader_u8(&r), 0);
		assert_int_equal(roll_reader_bytes(&r, 1).n, 0);
		assert_false(roll_reader_done(&r));
	}
}

static void a_length_beyond_the_end_is_refused(void **state)
{
	const uint8_t bytes[] = {0xff, 0xff, 0xff, 0xff, 'a'};
	struct roll_reader r = roll_reader_of(bytes, sizeof bytes);

	(void)state;
	assert_int_equal(roll_reader_str32(&r).n, 0);
	assert_true(r.failed);
	r = roll_reader_of(bytes, sizeof bytes);
	assert_int_equal(roll_reader_bytes(&r, SIZE_MAX).n, 0);
	assert_true(r.failed);
}

static void an_empty_reader_is_done(void **state)
{
	struct roll_reader r = roll_reader_of("", 0);

	(void)state;
	assert_int_equal(roll_reader_bytes(&r, 0).n, 0);
	assert_true(roll_reader_done(&r));
	/* The empty slice has no bytes to point at. */
	r = roll_reader_of(NULL, 0);
	assert_true(roll_reader_done(&r));
	assert_int_equal(roll_reader_u8(&r), 0);
	assert_true(r.failed);
}

static void a_string_beyond_16_bits_is_refused(void **state)
{
	static char text[65536];
	struct roll_buf buf;

	(void)state;
	memset(text, 'x', sizeof text);
	roll_buf_init(&buf, 1 << 20);
	roll_buf_put_str16(&buf, roll_str_n(text, 65535));
	assert_int_equal(buf.status, ROLL_OK);
	assert_int_equal(buf.n, 2 + 65535);
	roll_buf_put_str16(&buf, roll_str_n(text, 65536));
	assert_int_equal(buf.status, ROLL_ELIMIT);
	roll_buf_fini(&buf);
}

static void the_hash_never_changes(void **state)
{
	(void)state;
	/* Test vectors of FNV-1a. */
	assert_true(roll_hash64("", 0) == 0xcbf29ce484222325);
	assert_true(roll_hash64("a", 1) == 0xaf63dc4c8601ec8c);
	assert_true(roll_hash64("foobar", 6) == 0x85944171f73967e8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_put_is_read_again),
		cmocka_unit_test(a_short_read_fails_for_good),
		cmocka_unit_test(a_length_beyond_the_end_is_refused),
		cmocka_unit_test(an_empty_reader_is_done),
		cmocka_unit_test(a_string_beyond_16_bits_is_refused),
		cmocka_unit_test(the_hash_never_changes),
	};

	return cmocka_run_group_tests_name("bin", tests, NULL, NULL);
}
