/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dns/name.h"

#define S(literal) roll_str_n("" literal, sizeof(literal) - 1)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct roll_name name_of(const char *text)
{
	struct roll_name name;
	struct roll_err err;

	if (roll_name_parse(roll_str_c(text), &name, &err))
		fail_msg("\"%s\": %s", text, err.text);
	return name;
}

/* count labels of n bytes each. */
static struct roll_str labels(char *out, unsigned count, unsigned n)
{
	size_t at = 0;

	for (unsigned i = 0; i < count; i++) {
		memset(out + at, 'a', n);
		at += n;
		out[at++] = '.';
	}
	return roll_str_n(out, at);
}

static void text_is_read_and_printed_in_one_form(void **state)
{
	static const struct {
		const char *text;
		const char *plain;
		const char *dotted;
	} cases[] = {
		{".", ".", "."},
		{"example.com", "example.com", "example.com."},
		{"example.com.", "example.com", "example.com."},
		{"WWW.Example.COM", "www.example.com", "www.example.com."},
		{"_443._tcp", "_443._tcp", "_443._tcp."},
		{"*.a", "*.a", "*.a."},
		{"0/25.2.0.192.in-addr.arpa", "0/25.2.0.192.in-addr.arpa",
		 "0/25.2.0.192.in-addr.arpa."},
		{"a\\.b.c", "a\\.b.c", "a\\.b.c."},
		{"a\\046b.c", "a\\.b.c", "a\\.b.c."},
		{"a\\\\b", "a\\\\b", "a\\\\b."},
		{"\\065\\B", "ab", "ab."},
		{"a b", "a\\032b", "a\\032b."},
		{"\\000\\255", "\\000\\255", "\\000\\255."},
		{"\xc3\xa4", "\\195\\164", "\\195\\164."},
		{"a\\;b\"", "a\\059b\\034", "a\\059b\\034."},
		{"@+=", "@+=", "@+=."},
	};
	char shown[ROLL_NAME_TEXT_SIZE];
	struct roll_buf buf;

	(void)state;
	roll_buf_init(&buf, 4096);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct roll_name name = name_of(cases[i].text);

		assert_string_equal(roll_name_show(&name, shown), cases[i].plain);
		roll_buf_reset(&buf);
		roll_name_print(&name, ROLL_DOT_FINAL, &buf);
		assert_string_equal(buf.p, cases[i].dotted);
	}
	roll_buf_fini(&buf);
}

static void refused(struct roll_str text, enum roll_status want, const char *part)
{
	struct roll_err err = {.text = ""};
	struct roll_name name;

	assert_int_equal(roll_name_parse(text, &name, &err), want);
	if (!strstr(err.text, part))
		fail_msg("\"%s\" does not say \"%s\"", err.text, part);
	assert_int_equal(roll_name_parse(text, &name, NULL), want);
}

static void broken_text_is_refused_and_the_label_named(void **state)
{
	(void)state;
	refused(S(""), ROLL_EINVAL, "empty");
	refused(S(".."), ROLL_EINVAL, "label 1");
	refused(S(".a"), ROLL_EINVAL, "label 1");
	refused(S("a..b"), ROLL_EINVAL, "label 2");
	refused(S("a.."), ROLL_EINVAL, "label 2");
	refused(S("a.b\\"), ROLL_EINVAL, "label 2");
	refused(S("a\\25"), ROLL_EINVAL, "label 1");
	refused(S("a\\256"), ROLL_EINVAL, "label 1");
	refused(S("a\\2x5"), ROLL_EINVAL, "label 1");
}

static void a_label_has_63_bytes_at_most(void **state)
{
	struct roll_name name;
	char text[64 * 5 + 1];

	(void)state;
	assert_int_equal(roll_name_parse(labels(text, 1, 63), &name, NULL), ROLL_OK);
	assert_int_equal(name.len, 65);
	refused(labels(text, 1, 64), ROLL_ELIMIT, "label 1");
}

static void a_name_has_255_bytes_at_most(void **state)
{
	struct roll_name name;
	struct roll_str text;
	char space[512];

	(void)state;
	text = labels(space, 127, 1);
	assert_int_equal(roll_name_parse(text, &name, NULL), ROLL_OK);
	assert_int_equal(name.len, 255);
	assert_int_equal(roll_name_labels(&name), 127);
	assert_int_equal(roll_name_parse(roll_str_n(space, text.n - 1), &name, NULL), ROLL_OK);
	assert_int_equal(name.len, 255);
	refused(labels(space, 128, 1), ROLL_ELIMIT, "255");
	/* 3 * 64 + 62 + root = 255; one more is too long, with and without the final dot. */
	text = labels(space, 3, 63);
	text.n += labels(space + text.n, 1, 61).n;
	assert_int_equal(roll_name_parse(text, &name, NULL), ROLL_OK);
	assert_int_equal(name.len, 255);
	text = labels(space, 3, 63);
	text.n += labels(space + text.n, 1, 62).n;
	refused(text, ROLL_ELIMIT, "255");
	refused(roll_str_n(text.p, text.n - 1), ROLL_ELIMIT, "255");
}

static void the_longest_name_can_be_shown(void **state)
{
	char text[ROLL_NAME_TEXT_SIZE], shown[ROLL_NAME_TEXT_SIZE];
	uint8_t wire[ROLL_NAME_MAX];
	struct roll_name name, again;

	(void)state;
	memset(wire, 0xff, sizeof wire);
	wire[0] = wire[64] = wire[128] = 63;
	wire[192] = 61;
	wire[254] = 0;
	assert_int_equal(roll_name_from_wire(wire, sizeof wire, &name), ROLL_OK);
	roll_name_show(&name, shown);
	assert_int_equal(strlen(shown), 250 * 4 + 3);
	memcpy(text, shown, sizeof text);
	again = name_of(text);
	assert_true(roll_name_eq(&name, &again));
}

static void wire_form_is_one_uncompressed_name(void **state)
{
	struct roll_name name, want = name_of("a.bc");

	(void)state;
	assert_int_equal(roll_name_from_wire("\1A\2bC", 6, &name), ROLL_OK);
	assert_true(roll_name_eq(&name, &want));
	assert_int_equal(roll_name_from_wire("", 1, &name), ROLL_OK);
	assert_true(roll_name_eq(&name, &roll_name_root));
	assert_int_equal(roll_name_from_wire("", 0, &name), ROLL_EINVAL);
	assert_int_equal(roll_name_from_wire("\1a", 2, &name), ROLL_EINVAL);
	assert_int_equal(roll_name_from_wire("\3ab", 4, &name), ROLL_EINVAL);
	assert_int_equal(roll_name_from_wire("\1a\0x", 4, &name), ROLL_EINVAL);
	assert_int_equal(roll_name_from_wire("\xc0\0", 3, &name), ROLL_EINVAL);
	assert_int_equal(roll_name_from_wire("\100aaaa", 6, &name), ROLL_EINVAL);
	assert_int_equal(roll_name_from_wire("", 256, &name), ROLL_ELIMIT);
}

static void join_puts_a_prefix_before_an_origin(void **state)
{
	struct roll_name prefix = name_of("a.b"), origin = name_of("example.com"), name;
	struct roll_name want = name_of("a.b.example.com");
	char space[512];

	(void)state;
	assert_int_equal(roll_name_join(&prefix, &origin, &name), ROLL_OK);
	assert_true(roll_name_eq(&name, &want));
	assert_int_equal(roll_name_join(&prefix, &origin, &prefix), ROLL_OK);
	assert_true(roll_name_eq(&prefix, &want));
	assert_int_equal(roll_name_join(&roll_name_root, &origin, &name), ROLL_OK);
	assert_true(roll_name_eq(&name, &origin));
	assert_int_equal(roll_name_parse(labels(space, 121, 1), &prefix, NULL), ROLL_OK);
	assert_int_equal(roll_name_join(&prefix, &origin, &name), ROLL_OK);
	assert_int_equal(name.len, 255);
	assert_int_equal(roll_name_parse(labels(space, 122, 1), &prefix, NULL), ROLL_OK);
	assert_int_equal(roll_name_join(&prefix, &origin, &name), ROLL_ELIMIT);
}

/* The example of RFC 4034, 6.1, and what it leaves out: NUL, 0x01 and label borders. */
static const char *const canonical[] = {
	".",
	"example",
	"a.example",
	"yljkjljk.a.example",
	"z.a.example",
	"\\000.a\\000.example",
	"\\000a.a\\000.example",
	"a\\000\\000.example",
	"x.a\\001.example",
	"a\\001\\000.example",
	"a\\001\\001.example",
	"a\\002.example",
	"a-.example",
	"aa.example",
	"zabc.a.exampleb",
	"z.exampleb",
	"\\001.z.exampleb",
	"*.z.exampleb",
	"\\200.z.exampleb",
};

static void order_is_canonical(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(canonical); i++) {
		for (size_t k = 0; k < COUNT(canonical); k++) {
			struct roll_name a = name_of(canonical[i]), b = name_of(canonical[k]);
			int order = roll_name_cmp(&a, &b);

			if ((order > 0) - (order < 0) != (i > k) - (i < k))
				fail_msg("%s %s: %d", canonical[i], canonical[k], order);
			assert_int_equal(roll_name_eq(&a, &b), i == k);
		}
	}
}

static void keys_sort_as_names_do_and_lead_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(canonical); i++) {
		struct roll_name a = name_of(canonical[i]), back;
		uint8_t a_key[ROLL_NAME_KEY_MAX], b_key[ROLL_NAME_KEY_MAX];
		size_t a_n = roll_name_key(&a, &roll_name_root, a_key);

		assert_int_equal(roll_name_from_key(a_key, a_n, &roll_name_root, &back), ROLL_OK);
		assert_true(roll_name_eq(&a, &back));
		for (size_t k = 0; k < COUNT(canonical); k++) {
			struct roll_name b = name_of(canonical[k]);
			size_t b_n = roll_name_key(&b, &roll_name_root, b_key);
			bool starts = b_n >= a_n && memcmp(a_key, b_key, a_n) == 0;
			int order = roll_str_cmp(roll_str_n((char *)a_key, a_n),
						 roll_str_n((char *)b_key, b_n));

			assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
			assert_int_equal(starts, roll_name_is_within(&b, &a));
		}
	}
}

static void keys_are_relative_to_an_origin(void **state)
{
	struct roll_name origin = name_of("example.com"), name = name_of("a.b.example.com"), back;
	uint8_t key[ROLL_NAME_KEY_MAX];

	(void)state;
	assert_int_equal(roll_name_key(&name, &origin, key), 4);
	assert_memory_equal(key, "b\0a", 4);
	assert_int_equal(roll_name_from_key(key, 4, &origin, &back), ROLL_OK);
	assert_true(roll_name_eq(&name, &back));
	assert_int_equal(roll_name_key(&origin, &origin, key), 0);
	assert_int_equal(roll_name_from_key(key, 0, &origin, &back), ROLL_OK);
	assert_true(roll_name_eq(&origin, &back));
}

static void the_longest_key_fits(void **state)
{
	uint8_t key[ROLL_NAME_KEY_MAX], wire[ROLL_NAME_MAX] = {0};
	struct roll_name name, back;
	size_t n;

	(void)state;
	wire[0] = wire[64] = wire[128] = 63;
	wire[192] = 61;
	assert_int_equal(roll_name_from_wire(wire, sizeof wire, &name), ROLL_OK);
	n = roll_name_key(&name, &roll_name_root, key);
	assert_int_equal(n, 2 * 250 + 4);
	assert_int_equal(roll_name_from_key(key, n, &roll_name_root, &back), ROLL_OK);
	assert_true(roll_name_eq(&name, &back));
}

static void bytes_that_are_no_key_are_corrupt(void **state)
{
	static const struct {
		const char *key;
		size_t n;
	} cases[] = {{"a", 1},	  {"", 1},     {"a\0", 3}, {"\1", 1},
		     {"\1\0", 2}, {"\1\3", 3}, {"A", 2},   {"\0a", 3}};
	struct roll_name origin = name_of("example.com"), name;
	char key[512];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(roll_name_from_key(cases[i].key, cases[i].n, &origin, &name),
				 ROLL_ECORRUPT);
	memset(key, 'a', sizeof key);
	key[64] = '\0';
	assert_int_equal(roll_name_from_key(key, 65, &origin, &name), ROLL_ECORRUPT);
	key[64] = 'a';
	for (size_t i = 1; i < sizeof key; i += 2)
		key[i] = '\0';
	assert_int_equal(roll_name_from_key(key, 242, &origin, &name), ROLL_OK);
	assert_int_equal(name.len, 255);
	assert_int_equal(roll_name_from_key(key, 244, &origin, &name), ROLL_ECORRUPT);
}

static void within_goes_by_labels(void **state)
{
	struct roll_name origin = name_of("example.com");
	struct roll_name inside = name_of("a.example.com"), other = name_of("notexample.com");
	/* Ends in the bytes of the origin, but not at a label's border. */
	struct roll_name trap = name_of("x\\007example.com");

	(void)state;
	assert_true(roll_name_is_within(&origin, &origin));
	assert_true(roll_name_is_within(&inside, &origin));
	assert_false(roll_name_is_within(&origin, &inside));
	assert_false(roll_name_is_within(&other, &origin));
	assert_false(roll_name_is_within(&trap, &origin));
	assert_true(roll_name_is_within(&trap, &roll_name_root));
}

static void labels_parents_and_wildcards(void **state)
{
	struct roll_name name = name_of("*.b.c"), parent = roll_name_parent(&name, 1);
	struct roll_name want = name_of("b.c"), inner = name_of("a.*.b"), star = name_of("*foo");

	(void)state;
	assert_int_equal(roll_name_labels(&roll_name_root), 0);
	assert_int_equal(roll_name_labels(&name), 3);
	assert_true(roll_name_eq(&parent, &want));
	parent = roll_name_parent(&name, 3);
	assert_true(roll_name_eq(&parent, &roll_name_root));
	parent = roll_name_parent(&name, 9);
	assert_true(roll_name_eq(&parent, &roll_name_root));
	assert_true(roll_str_eq_c(roll_name_first_label(&name), "*"));
	assert_int_equal(roll_name_first_label(&roll_name_root).n, 0);
	assert_true(roll_name_is_wildcard(&name));
	assert_false(roll_name_is_wildcard(&inner));
	assert_false(roll_name_is_wildcard(&star));
	assert_false(roll_name_is_wildcard(&roll_name_root));
}

static void hostnames_have_letters_digits_and_inner_hyphens(void **state)
{
	static const char *const good[] = {"a", "a-b.c9", "1.2", "xn--bcher-kva.example"};
	static const char *const bad[] = {".", "-a", "a-", "a.b-", "_a.b", "*.a", "a\\032b"};
	struct roll_name name;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		name = name_of(good[i]);
		assert_true(roll_name_is_hostname(&name));
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		name = name_of(bad[i]);
		assert_false(roll_name_is_hostname(&name));
	}
}

/* Ids are kept by PowerDNS and secondaries: the function must never change. */
static void ids_follow_from_the_name_alone(void **state)
{
	struct roll_name a = name_of("example.com"), b = name_of("EXAMPLE.com.");

	(void)state;
	assert_int_equal(roll_name_id(&a), roll_name_id(&b));
	assert_int_equal(roll_name_id(&a), 231271350);
	assert_in_range(roll_name_id(&roll_name_root), 1, INT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_read_and_printed_in_one_form),
		cmocka_unit_test(broken_text_is_refused_and_the_label_named),
		cmocka_unit_test(a_label_has_63_bytes_at_most),
		cmocka_unit_test(a_name_has_255_bytes_at_most),
		cmocka_unit_test(the_longest_name_can_be_shown),
		cmocka_unit_test(wire_form_is_one_uncompressed_name),
		cmocka_unit_test(join_puts_a_prefix_before_an_origin),
		cmocka_unit_test(order_is_canonical),
		cmocka_unit_test(keys_sort_as_names_do_and_lead_back),
		cmocka_unit_test(keys_are_relative_to_an_origin),
		cmocka_unit_test(the_longest_key_fits),
		cmocka_unit_test(bytes_that_are_no_key_are_corrupt),
		cmocka_unit_test(within_goes_by_labels),
		cmocka_unit_test(labels_parents_and_wildcards),
		cmocka_unit_test(hostnames_have_letters_digits_and_inner_hyphens),
		cmocka_unit_test(ids_follow_from_the_name_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
