/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dns/rdata.h"
#include "dns/type.h"
#include "server/reply.h"

struct fixture {
	struct roll_reply reply;
	struct roll_buf out;
};

static int setup(void **state)
{
	static struct fixture f;

	roll_reply_init(&f.reply);
	roll_buf_init(&f.out, 1 << 20);
	f.reply.out = &f.out;
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	roll_reply_fini(&f->reply);
	roll_buf_fini(&f->out);
	return 0;
}

static struct roll_name name_of(const char *text)
{
	struct roll_name name;

	assert_int_equal(roll_name_parse(roll_str_c(text), &name, NULL), ROLL_OK);
	return name;
}

static void constant_replies_are_one_line(void **state)
{
	struct fixture *f = *state;

	roll_reply_result(&f->reply, "true");
	assert_string_equal(f->out.p, "{\"result\":true}\n");
	roll_buf_reset(&f->out);
	roll_reply_string(&f->reply, roll_str_n("a\"\\\n\x1b\xff\0z", 8));
	assert_string_equal(f->out.p, "{\"result\":\"a\\\"\\\\\\n\\u001b\\u00ff\\u0000z\"}\n");
}

static void a_failure_replaces_what_was_begun(void **state)
{
	const struct roll_name owner = name_of("www.example.org");
	struct roll_row row = {&owner, ROLL_TYPE_A, true, 300, {"\xc0\x00\x02\x01", 4}};
	struct fixture *f = *state;

	roll_reply_begin(&f->reply, true);
	assert_int_equal(roll_reply_row(&f->reply, 1, &row), ROLL_OK);
	roll_reply_failure(&f->reply, "the \"view\" is away");
	assert_string_equal(f->out.p, "{\"error\":\"the \\\"view\\\" is away\"}\n");
	/* Also after the ceiling was hit. */
	f->out.status = ROLL_ELIMIT;
	roll_reply_failure(&f->reply, "x");
	assert_int_equal(f->out.status, ROLL_OK);
	assert_string_equal(f->out.p, "{\"error\":\"x\"}\n");
}

static void rows_of_several_owners_and_zones_keep_apart(void **state)
{
	const struct roll_name a = name_of("a.org"), b = name_of("b.org"), root = name_of(".");
	struct roll_row row = {&a, ROLL_TYPE_A, true, 300, {"\xc0\x00\x02\x01", 4}};
	struct fixture *f = *state;

	roll_reply_begin(&f->reply, true);
	assert_int_equal(roll_reply_row(&f->reply, 1, &row), ROLL_OK);
	row.auth = false;
	assert_int_equal(roll_reply_row(&f->reply, 2147483647, &row), ROLL_OK);
	row.owner = &b;
	row.ttl = 2147483647;
	assert_int_equal(roll_reply_row(&f->reply, 1, &row), ROLL_OK);
	row.owner = &root;
	row.type = ROLL_TYPE_ENT;
	row.ttl = 0;
	assert_int_equal(roll_reply_row(&f->reply, 1, &row), ROLL_OK);
	assert_int_equal(roll_reply_end(&f->reply), ROLL_OK);
	assert_string_equal(
		f->out.p,
		"{\"result\":["
		"{\"qname\":\"a.org\",\"qtype\":\"A\",\"content\":\"192.0.2.1\",\"ttl\":300,"
		"\"domain_id\":1,\"scopeMask\":1,\"auth\":1},"
		"{\"qname\":\"a.org\",\"qtype\":\"A\",\"content\":\"192.0.2.1\",\"ttl\":300,"
		"\"domain_id\":2147483647,\"scopeMask\":1,\"auth\":0},"
		"{\"qname\":\"b.org\",\"qtype\":\"A\",\"content\":\"192.0.2.1\",\"ttl\":2147483647,"
		"\"domain_id\":1,\"scopeMask\":1,\"auth\":0},"
		"{\"qname\":\".\",\"qtype\":\"\",\"content\":\"\",\"ttl\":0,"
		"\"domain_id\":1,\"scopeMask\":1,\"auth\":0}]}\n");
	/* A scope does not outlive its reply. */
	roll_buf_reset(&f->out);
	roll_reply_begin(&f->reply, false);
	assert_int_equal(roll_reply_row(&f->reply, 1, &row), ROLL_OK);
	assert_int_equal(roll_reply_end(&f->reply), ROLL_OK);
	assert_string_equal(f->out.p, "{\"result\":[{\"qname\":\".\",\"qtype\":\"\",\"content\":"
				      "\"\",\"ttl\":0,\"domain_id\":1,\"auth\":0}]}\n");
}

static void the_longest_name_fits(void **state)
{
	struct fixture *f = *state;
	struct roll_name longest = {.len = 255};
	struct roll_row row = {&longest, ROLL_TYPE_A, true, 300, {"\xc0\x00\x02\x01", 4}};

	/* Four labels, 63 + 63 + 63 + 61 bytes that all print as \\DDD. */
	for (size_t i = 0; i < 254; i++)
		longest.wire[i] = 0xff;
	longest.wire[0] = longest.wire[64] = longest.wire[128] = 63;
	longest.wire[192] = 61;
	longest.wire[254] = 0;
	roll_reply_begin(&f->reply, true);
	assert_int_equal(roll_reply_row(&f->reply, 1, &row), ROLL_OK);
	assert_int_equal(roll_reply_end(&f->reply), ROLL_OK);
	assert_non_null(strstr(f->out.p, "\\\\255\",\"qtype\":\"A\""));
}

static void the_largest_record_fits(void **state)
{
	const struct roll_name owner = name_of("txt.example.org");
	static char rdata[65535];
	struct roll_row row = {&owner, ROLL_TYPE_TXT, true, 300, {rdata, sizeof rdata}};
	struct fixture *f = *state;

	/* 255 strings of 255 bytes and one of 254, all bytes to be escaped. */
	memset(rdata, 0xff, sizeof rdata);
	rdata[(size_t)255 * 256] = (char)254;
	roll_reply_begin(&f->reply, true);
	assert_int_equal(roll_reply_row(&f->reply, 1, &row), ROLL_OK);
	assert_int_equal(roll_reply_end(&f->reply), ROLL_OK);
	assert_true(f->out.n > (size_t)5 * 65000);
}

static void rows_that_cannot_be_are_refused(void **state)
{
	const struct roll_name owner = name_of("www.example.org");
	struct roll_row foreign = {&owner, 43, true, 300, {"x", 1}};
	struct roll_row broken = {&owner, ROLL_TYPE_A, true, 300, {"x", 1}};
	struct fixture *f = *state;

	roll_reply_begin(&f->reply, true);
	assert_int_equal(roll_reply_row(&f->reply, 1, &foreign), ROLL_ECORRUPT);
	assert_int_equal(roll_reply_row(&f->reply, 1, &broken), ROLL_ECORRUPT);
}

static void the_ceiling_is_told(void **state)
{
	const struct roll_name owner = name_of("www.example.org");
	struct roll_row row = {&owner, ROLL_TYPE_A, true, 300, {"\xc0\x00\x02\x01", 4}};
	struct fixture *f = *state;
	enum roll_status status = ROLL_OK;
	size_t rows = 0;

	roll_reply_begin(&f->reply, true);
	while (!status && rows++ < 100000)
		status = roll_reply_row(&f->reply, 1, &row);
	assert_int_equal(status, ROLL_ELIMIT);
	assert_int_equal(roll_reply_end(&f->reply), ROLL_ELIMIT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(constant_replies_are_one_line),
		TEST(a_failure_replaces_what_was_begun),
		TEST(rows_of_several_owners_and_zones_keep_apart),
		TEST(the_longest_name_fits),
		TEST(the_largest_record_fits),
		TEST(rows_that_cannot_be_are_refused),
		TEST(the_ceiling_is_told),
	};

	return cmocka_run_group_tests_name("reply", tests, NULL, NULL);
}
