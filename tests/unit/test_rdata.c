/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dns/rdata.h"

/* Letters with numbers are rows of the conformance table. */

#define S(literal) roll_str_n("" literal, sizeof(literal) - 1)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What the findings of one build were; path and text are those of the last. */
struct seen {
	unsigned faults;
	unsigned doubts;
	char path[128];
	char text[2048];
};

static void on_finding(void *ctx, const struct roll_finding *finding)
{
	struct seen *seen = ctx;

	if (finding->severity == ROLL_FAULT)
		seen->faults++;
	else
		seen->doubts++;
	assert_int_equal(finding->reason, finding->severity == ROLL_FAULT ? ROLL_REASON_INVALID
									  : ROLL_REASON_SUSPICIOUS);
	assert_true(finding->path.n < sizeof seen->path && finding->text.n < sizeof seen->text);
	memcpy(seen->path, finding->path.p, finding->path.n);
	seen->path[finding->path.n] = '\0';
	memcpy(seen->text, finding->text.p, finding->text.n);
	seen->text[finding->text.n] = '\0';
}

/* The members of every type; which are used follows from the type. */
struct input {
	struct roll_str text[2];
	int64_t numbers[5];
	const struct roll_svc_param *params;
	size_t param_count;
};

static enum roll_status build(uint16_t type, const struct input *in, struct roll_check at,
			      struct roll_buf *wire)
{
	const int64_t *n = in->numbers;
	struct roll_soa_text soa = {in->text[0], in->text[1], n[0], n[1], n[2], n[3], n[4]};

	switch (type) {
	case ROLL_TYPE_A:
		return roll_rdata_a(at, in->text[0], wire);
	case ROLL_TYPE_AAAA:
		return roll_rdata_aaaa(at, in->text[0], wire);
	case ROLL_TYPE_TXT:
		return roll_rdata_txt(at, in->text[0], wire);
	case ROLL_TYPE_MX:
		return roll_rdata_mx(at, n[0], in->text[0], wire);
	case ROLL_TYPE_SRV:
		return roll_rdata_srv(at, n[0], n[1], n[2], in->text[0], wire);
	case ROLL_TYPE_CAA:
		return roll_rdata_caa(at, n[0], in->text[0], in->text[1], wire);
	case ROLL_TYPE_TLSA:
		return roll_rdata_tlsa(at, n[0], n[1], n[2], in->text[0], wire);
	case ROLL_TYPE_SVCB:
	case ROLL_TYPE_HTTPS:
		return roll_rdata_svcb(at, n[0], in->text[0], in->params, in->param_count, wire);
	case ROLL_TYPE_SOA:
		return roll_rdata_soa(at, &soa, wire);
	default:
		return roll_rdata_target(at, type, in->text[0], wire);
	}
}

/*
 * Build, with a byte before it that must stay. want is what PowerDNS gets to see; NULL: not served,
 * reported at path. zone may be NULL if it is the same. doubts is the number of warnings.
 */
static void expect(uint16_t type, struct input in, const char *want, const char *zone,
		   unsigned doubts, const char *path)
{
	struct seen seen = {0, 0, "", ""};
	struct roll_findings findings = {on_finding, &seen};
	struct roll_buf wire, text;
	enum roll_status status;
	struct roll_str rdata;

	roll_buf_init(&wire, 1 << 20);
	roll_buf_init(&text, 1 << 20);
	roll_buf_add_char(&wire, 'x');
	status = build(type, &in, (struct roll_check){&findings, "e"}, &wire);
	if (status != (want ? ROLL_OK : ROLL_EINVAL) || seen.doubts != doubts)
		fail_msg("type %u, want %s: status %d, %u doubts, %s: %s", type, want ? want : "-",
			 status, seen.doubts, seen.path, seen.text);
	if (path)
		assert_string_equal(seen.path, path);
	if (seen.faults + seen.doubts)
		assert_non_null(seen.text[0] ? seen.text : NULL);
	assert_int_equal(wire.p[0], 'x');
	if (!want) {
		assert_true(seen.faults > 0);
		assert_int_equal(wire.n, 1);
		goto out;
	}
	assert_int_equal(seen.faults, 0);
	rdata = roll_str_n(wire.p + 1, wire.n - 1);
	assert_int_equal(roll_rdata_check(type, rdata), ROLL_OK);
	assert_int_equal(roll_rdata_print(type, rdata, ROLL_RDATA_PDNS, &text), ROLL_OK);
	assert_string_equal(text.p, want);
	roll_buf_reset(&text);
	assert_int_equal(roll_rdata_print(type, rdata, ROLL_RDATA_ZONE, &text), ROLL_OK);
	assert_string_equal(text.p, zone ? zone : want);
	/* Every wire form cut short is refused, TXT, CAA and TLSA at their borders apart. */
	if (type != ROLL_TYPE_TXT && type != ROLL_TYPE_CAA && type != ROLL_TYPE_TLSA &&
	    type != ROLL_TYPE_SVCB && type != ROLL_TYPE_HTTPS)
		for (size_t n = 0; n < rdata.n; n++)
			assert_int_equal(roll_rdata_check(type, roll_str_n(rdata.p, n)),
					 ROLL_ECORRUPT);
out:
	roll_buf_fini(&wire);
	roll_buf_fini(&text);
}

#define TEXT(...) ((struct input){.text = {__VA_ARGS__}})
#define NUMBERS(text_, ...) ((struct input){.text = {text_}, .numbers = {__VA_ARGS__}})

static void a_is_dotted_decimal(void **state)
{
	(void)state;
	expect(ROLL_TYPE_A, TEXT(S("1.2.3.4")), "1.2.3.4", NULL, 0, NULL);    /* C1 */
	expect(ROLL_TYPE_A, TEXT(S(" 1.2.3.4\n")), "1.2.3.4", NULL, 0, NULL); /* C2 */
	expect(ROLL_TYPE_A, TEXT(S("255.100.10.0")), "255.100.10.0", NULL, 0, NULL);
	expect(ROLL_TYPE_A, TEXT(S("")), NULL, NULL, 0, "e.content");	       /* C3 */
	expect(ROLL_TYPE_A, TEXT(S("1.2.3.004")), NULL, NULL, 0, "e.content"); /* C4 */
	expect(ROLL_TYPE_A, TEXT(S("0x1.2.3.4")), NULL, NULL, 0, "e.content");
	expect(ROLL_TYPE_A, TEXT(S("1.2.3")), NULL, NULL, 0, "e.content");
	expect(ROLL_TYPE_A, TEXT(S("1.2.3.256")), NULL, NULL, 0, "e.content");
	expect(ROLL_TYPE_A, TEXT(S("1.2.3.4\0")), NULL, NULL, 0, "e.content");
	expect(ROLL_TYPE_A, TEXT(S("2001:db8::1")), NULL, NULL, 0, "e.content");
}

static void aaaa_is_printed_as_rfc_5952_says(void **state)
{
	static const char *const cases[][2] = {
		/* C5 */
		{"2001:db8::1", "2001:db8::1"},
		{"2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
		{"2001:0db8:0000:0001::", "2001:db8:0:1::"},
		{"::", "::"},
		{"::1", "::1"},
		{"1::", "1::"},
		{"1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"},
		{"1:0:0:2:0:0:3:4", "1::2:0:0:3:4"},
		{"1:0:0:2:0:0:0:3", "1:0:0:2::3"},
		{"0:0:1:2:3:4:5:6", "::1:2:3:4:5:6"},
		{"1:2:3:4:5:6:0:0", "1:2:3:4:5:6::"},
		{"::ffff:1.2.3.4", "::ffff:1.2.3.4"},
		{"::ffff:102:304", "::ffff:1.2.3.4"},
		{"64:ff9b::192.0.2.1", "64:ff9b::c000:201"},
		{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		 "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		expect(ROLL_TYPE_AAAA, TEXT(roll_str_c(cases[i][0])), cases[i][1], NULL, 0, NULL);
	expect(ROLL_TYPE_AAAA, TEXT(S("fe80::1%eth0")), NULL, NULL, 0, "e.content");
	expect(ROLL_TYPE_AAAA, TEXT(S("1.2.3.4")), NULL, NULL, 0, "e.content");
	expect(ROLL_TYPE_AAAA, TEXT(S("1:2:3:4:5:6:7:8:9")), NULL, NULL, 0, "e.content");
}

static void targets_are_absolute_with_or_without_a_dot(void **state)
{
	static const uint16_t types[] = {ROLL_TYPE_CNAME, ROLL_TYPE_ALIAS, ROLL_TYPE_PTR,
					 ROLL_TYPE_NS};

	(void)state;
	for (size_t i = 0; i < COUNT(types); i++) {
		uint16_t type = types[i];

		expect(type, TEXT(S("t.example.net")), "t.example.net", "t.example.net.", 0,
		       NULL); /* T1 C6 C8 C38 */
		expect(type, TEXT(S("T.Example.Net.")), "t.example.net", "t.example.net.", 0,
		       NULL); /* T2 */
		expect(type, TEXT(S(" t.example.net ")), "t.example.net", "t.example.net.", 0,
		       NULL);							  /* T5 */
		expect(type, TEXT(S("mail")), "mail", "mail.", 1, "e.content");	  /* T3 */
		expect(type, TEXT(S("a b.example")), NULL, NULL, 0, "e.content"); /* T6 */
		expect(type, TEXT(S("a;b.example")), NULL, NULL, 0, "e.content");
		expect(type, TEXT(S("\xc3\xa4.example")), NULL, NULL, 0, "e.content");
		expect(type, TEXT(S("a..b")), NULL, NULL, 0, "e.content");
		expect(type, TEXT(S("@")), NULL, NULL, 0, "e.content");
		expect(type, TEXT(S(".")), NULL, NULL, 0, "e.content");
		expect(type, TEXT(S("")), NULL, NULL, 0, "e.content");
	}
	expect(ROLL_TYPE_CNAME, TEXT(S("_a.b\\.c\\032d.example")), "_a.b\\.c\\032d.example",
	       "_a.b\\.c\\032d.example.", 0, NULL);
	expect(ROLL_TYPE_NS, TEXT(S("_a.example")), NULL, NULL, 0, "e.content"); /* T7 */
}

static void txt_is_text_with_or_without_quotes(void **state)
{
	static const char *const cases[][2] = {
		{"hello", "\"hello\""}, /* C10 */
		{"v=DMARC1; p=none; rua=mailto:user@example.com",
		 "\"v=DMARC1; p=none; rua=mailto:user@example.com\""},		/* C11 */
		{"v=DKIM1\\; k=rsa\\; p=abc", "\"v=DKIM1; k=rsa; p=abc\""},	/* C12 */
		{"\"already quoted; content\"", "\"already quoted; content\""}, /* C13 */
		{"\"a\" \"b\"", "\"a\" \"b\""},					/* C14 */
		{"\"a\"\t\n\"b\"\"c\"", "\"a\" \"b\" \"c\""},
		{"say \"hi\"", "\"say \\\"hi\\\"\""}, /* C15 */
		{"c:\\path", "\"c:\\\\path\""},	      /* C18 */
		{"\"c:\\path\\\\\"", "\"c:\\\\path\\\\\""},
		{"\\065\\;\\\"\\\\", "\"A;\\\"\\\\\""},
		{"\\256\\1", "\"\\\\256\\\\1\""},
		{"a\\", "\"a\\\\\""},
		{" a b  ", "\"a b\""}, /* C21 */
		{"\" a b  \"", "\" a b  \""},
		{"\"\"", "\"\""}, /* C22 */
		{"\"\" \"\"", "\"\" \"\""},
		{"\xc3\xa4\x01\x7f", "\"\\195\\164\\001\\127\""}, /* C23 */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		expect(ROLL_TYPE_TXT, TEXT(roll_str_c(cases[i][0])), cases[i][1], NULL, 0, NULL);
	expect(ROLL_TYPE_TXT, TEXT(S("a\0b")), "\"a\\000b\"", NULL, 0, NULL);
	expect(ROLL_TYPE_TXT, TEXT(S("\"")), "\"\\\"\"", NULL, 1, "e.content"); /* C16 */
	expect(ROLL_TYPE_TXT, TEXT(S("\"a\" b")), "\"\\\"a\\\" b\"", NULL, 1, "e.content");
	expect(ROLL_TYPE_TXT, TEXT(S("\"abc\\\"")), NULL, NULL, 0, "e.content"); /* C17 */
	expect(ROLL_TYPE_TXT, TEXT(S("\"a\"b\"")), NULL, NULL, 0, "e.content");
	expect(ROLL_TYPE_TXT, TEXT(S("")), NULL, NULL, 0, "e.content"); /* C22 */
	expect(ROLL_TYPE_TXT, TEXT(S(" \t")), NULL, NULL, 0, "e.content");
}

/* C19, C20, C24 */
static void txt_is_split_at_255_bytes_and_limited(void **state)
{
	struct roll_check at = {NULL, "e"};
	static char text[70002];
	struct roll_buf wire;

	(void)state;
	memset(text, 'a', sizeof text);
	roll_buf_init(&wire, 1 << 20);
	assert_int_equal(roll_rdata_txt(at, roll_str_n(text, 255), &wire), ROLL_OK);
	assert_int_equal(wire.n, 256);
	roll_buf_reset(&wire);
	assert_int_equal(roll_rdata_txt(at, roll_str_n(text, 300), &wire), ROLL_OK);
	assert_int_equal(wire.n, 302);
	assert_int_equal((uint8_t)wire.p[0], 255);
	assert_int_equal((uint8_t)wire.p[256], 45);
	roll_buf_reset(&wire);
	text[0] = text[301] = '"';
	assert_int_equal(roll_rdata_txt(at, roll_str_n(text, 302), &wire), ROLL_OK);
	assert_int_equal(wire.n, 302);
	text[0] = text[301] = 'a';
	roll_buf_reset(&wire);
	/* 256 * 255 bytes of text have 256 length bytes: 65536. */
	assert_int_equal(roll_rdata_txt(at, roll_str_n(text, 65279), &wire), ROLL_OK);
	assert_int_equal(wire.n, 65535);
	roll_buf_reset(&wire);
	assert_int_equal(roll_rdata_txt(at, roll_str_n(text, 65280), &wire), ROLL_EINVAL);
	assert_int_equal(wire.n, 0);
	assert_int_equal(roll_rdata_txt(at, roll_str_n(text, sizeof text), &wire), ROLL_EINVAL);
	assert_int_equal(wire.n, 0);
	roll_buf_fini(&wire);
}

static void mx_and_srv_take_hostnames_or_the_root(void **state)
{
	(void)state;
	expect(ROLL_TYPE_MX, NUMBERS(S("mail.example.com."), 10), "10 mail.example.com",
	       "10 mail.example.com.", 0, NULL);			/* C25 */
	expect(ROLL_TYPE_MX, NUMBERS(S("."), 0), "0 .", NULL, 0, NULL); /* C26 T4 */
	expect(ROLL_TYPE_MX, NUMBERS(S("a_b.example"), 0), NULL, NULL, 0, "e.exchange"); /* T7 */
	expect(ROLL_TYPE_MX, NUMBERS(S("mail"), 65535), "65535 mail", "65535 mail.", 1,
	       "e.exchange");
	expect(ROLL_TYPE_MX, NUMBERS(S("m.example"), 65536), NULL, NULL, 0, "e.preference");
	expect(ROLL_TYPE_MX, NUMBERS(S("m.example"), -1), NULL, NULL, 0, "e.preference");
	expect(ROLL_TYPE_SRV, NUMBERS(S("svc.example.com."), 0, 5, 443), "0 5 443 svc.example.com",
	       "0 5 443 svc.example.com.", 0, NULL); /* C27 */
	expect(ROLL_TYPE_SRV, NUMBERS(S("."), 0, 0, 0), "0 0 0 .", NULL, 0, NULL);
	expect(ROLL_TYPE_SRV, NUMBERS(S("s.example"), 65536, 0, 0), NULL, NULL, 0, "e.priority");
	expect(ROLL_TYPE_SRV, NUMBERS(S("s.example"), 0, 65536, 0), NULL, NULL, 0, "e.weight");
	expect(ROLL_TYPE_SRV, NUMBERS(S("s.example"), 0, 0, 65536), NULL, NULL, 0, "e.port");
	expect(ROLL_TYPE_SRV, NUMBERS(S(""), 0, 0, 0), NULL, NULL, 0, "e.target");
}

static void caa_values_are_quoted_and_escaped(void **state)
{
	static const char *const cases[][2] = {
		{"letsencrypt.org", "0 issue \"letsencrypt.org\""}, /* C28 */
		{";", "0 issue \";\""},				    /* C29 */
		{"\\;", "0 issue \";\""},
		{"\"ca.example; a=b\"", "0 issue \"ca.example; a=b\""}, /* C30 */
		{"a\"b\\c", "0 issue \"a\\\"b\\\\c\""},			/* C31 */
		{" a ", "0 issue \"a\""},				/* T5 */
		{"\"\"", "0 issue \"\""},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		expect(ROLL_TYPE_CAA, TEXT(S("issue"), roll_str_c(cases[i][0])), cases[i][1], NULL,
		       0, NULL);
	expect(ROLL_TYPE_CAA, TEXT(S("ISSUEwild"), S("x")), "0 issuewild \"x\"", NULL, 0, NULL);
	expect(ROLL_TYPE_CAA, TEXT(S("isue"), S("x")), "0 isue \"x\"", NULL, 1, "e.tag");
	expect(ROLL_TYPE_CAA, TEXT(S("is-sue"), S("x")), NULL, NULL, 0, "e.tag");
	expect(ROLL_TYPE_CAA, TEXT(S(""), S("x")), NULL, NULL, 0, "e.tag");
	expect(ROLL_TYPE_CAA, TEXT(S("issue"), S(" ")), NULL, NULL, 0, "e.value");
	expect(ROLL_TYPE_CAA, TEXT(S("issue"), S("\"a\" \"b\"")), NULL, NULL, 0, "e.value");
	expect(ROLL_TYPE_CAA, TEXT(S("issue"), S("\"a\\\"")), NULL, NULL, 0, "e.value");
	expect(ROLL_TYPE_CAA, ((struct input){{S("issue"), S("x")}, {128}, NULL, 0}),
	       "128 issue \"x\"", NULL, 0, NULL);
	expect(ROLL_TYPE_CAA, ((struct input){{S("issue"), S("x")}, {1}, NULL, 0}), "1 issue \"x\"",
	       NULL, 1, "e.flag");
	expect(ROLL_TYPE_CAA, ((struct input){{S("issue"), S("x")}, {256}, NULL, 0}), NULL, NULL, 0,
	       "e.flag");
}

/* C39 */
static void tlsa_data_is_hex_of_the_digest_size(void **state)
{
	static const char sha256[] =
		"00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";

	(void)state;
	expect(ROLL_TYPE_TLSA, NUMBERS(S("ABCD"), 3, 1, 1), "3 1 1 abcd", NULL, 1, "e.certData");
	expect(ROLL_TYPE_TLSA, NUMBERS(roll_str_c(sha256), 3, 1, 1),
	       "3 1 1 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", NULL, 0,
	       NULL);
	expect(ROLL_TYPE_TLSA, NUMBERS(S(" ab cd\n0 1 "), 0, 0, 0), "0 0 0 abcd01", NULL, 0, NULL);
	expect(ROLL_TYPE_TLSA, NUMBERS(S("ab"), 3, 1, 2), "3 1 2 ab", NULL, 1, "e.certData");
	expect(ROLL_TYPE_TLSA, NUMBERS(S("ab"), 255, 255, 255), "255 255 255 ab", NULL, 0, NULL);
	expect(ROLL_TYPE_TLSA, NUMBERS(S("ab"), 4, 2, 3), "4 2 3 ab", NULL, 3, "e.matchingType");
	expect(ROLL_TYPE_TLSA, NUMBERS(S("abc"), 3, 1, 0), NULL, NULL, 0, "e.certData");
	expect(ROLL_TYPE_TLSA, NUMBERS(S("xy"), 3, 1, 0), NULL, NULL, 0, "e.certData");
	expect(ROLL_TYPE_TLSA, NUMBERS(S(""), 3, 1, 0), NULL, NULL, 0, "e.certData");
	expect(ROLL_TYPE_TLSA, NUMBERS(S("ab"), 256, 1, 0), NULL, NULL, 0, "e.usage");
}

#define SOA(mname, rname, ...) \
	((struct input){.text = {S(mname), S(rname)}, .numbers = {__VA_ARGS__}})

static void soa_has_defaults_and_a_mailbox(void **state)
{
	(void)state;
	expect(ROLL_TYPE_SOA, SOA("ns1.example.com", "hostmaster.example.com", 0),
	       "ns1.example.com hostmaster.example.com 0 10800 3600 604800 3600",
	       "ns1.example.com. hostmaster.example.com. 0 10800 3600 604800 3600", 0,
	       NULL); /* C34 Z4 */
	expect(ROLL_TYPE_SOA,
	       SOA("ns.example", "a.example", 4294967295, 1, 2, 4294967295, 2147483647),
	       "ns.example a.example 4294967295 1 2 4294967295 2147483647",
	       "ns.example. a.example. 4294967295 1 2 4294967295 2147483647", 0, NULL);
	/* C35 */
	expect(ROLL_TYPE_SOA, SOA("ns.example", "admin@example.com", 1),
	       "ns.example admin.example.com 1 10800 3600 604800 3600",
	       "ns.example. admin.example.com. 1 10800 3600 604800 3600", 0, NULL);
	expect(ROLL_TYPE_SOA, SOA("ns.example", "first.last@example.com.", 1),
	       "ns.example first\\.last.example.com 1 10800 3600 604800 3600",
	       "ns.example. first\\.last.example.com. 1 10800 3600 604800 3600", 0, NULL);
	expect(ROLL_TYPE_SOA, SOA("ns.example", "first\\.last@example.com", 1),
	       "ns.example first\\.last.example.com 1 10800 3600 604800 3600",
	       "ns.example. first\\.last.example.com. 1 10800 3600 604800 3600", 0, NULL);
	expect(ROLL_TYPE_SOA, SOA("ns.example", "a@b@c.example", 1), NULL, NULL, 0, "e.rname");
	expect(ROLL_TYPE_SOA, SOA("ns.example", "@example.com", 1), NULL, NULL, 0, "e.rname");
	expect(ROLL_TYPE_SOA, SOA("ns.example", "a b@example.com", 1), NULL, NULL, 0, "e.rname");
	expect(ROLL_TYPE_SOA, SOA("", "a.example", 1), NULL, NULL, 0, "e.mname");
	expect(ROLL_TYPE_SOA, SOA("ns.example", "a.example", 4294967296), NULL, NULL, 0,
	       "e.serial");
	expect(ROLL_TYPE_SOA, SOA("ns.example", "a.example", 1, -1), NULL, NULL, 0, "e.refresh");
	expect(ROLL_TYPE_SOA, SOA("ns.example", "a.example", 1, 1, 1, 1, 2147483648), NULL, NULL, 0,
	       "e.ttl");
}

static void soa_serial_can_be_read_and_set(void **state)
{
	struct roll_name mname, apex, long_apex;
	char wire_long[ROLL_NAME_MAX];
	struct roll_buf wire, text;
	uint32_t serial = 1;

	(void)state;
	roll_buf_init(&wire, 4096);
	roll_buf_init(&text, 4096);
	assert_int_equal(roll_name_parse(S("ns.example.net"), &mname, NULL), ROLL_OK);
	assert_int_equal(roll_name_parse(S("example.com"), &apex, NULL), ROLL_OK);
	assert_int_equal(roll_rdata_soa_default(&mname, &apex, &wire), ROLL_OK);
	assert_int_equal(roll_rdata_soa_serial(roll_buf_str(&wire), &serial), ROLL_OK);
	assert_int_equal(serial, 0);
	assert_int_equal(roll_rdata_soa_set_serial(wire.p, wire.n, 4026531841), ROLL_OK);
	assert_int_equal(roll_rdata_soa_serial(roll_buf_str(&wire), &serial), ROLL_OK);
	assert_int_equal(serial, 4026531841);
	assert_int_equal(
		roll_rdata_print(ROLL_TYPE_SOA, roll_buf_str(&wire), ROLL_RDATA_PDNS, &text),
		ROLL_OK);
	assert_string_equal(text.p, "ns.example.net hostmaster.example.com 4026531841 10800 3600 "
				    "604800 3600");
	for (size_t n = 0; n < wire.n; n++) {
		assert_int_equal(roll_rdata_soa_serial(roll_str_n(wire.p, n), &serial),
				 ROLL_ECORRUPT);
		assert_int_equal(roll_rdata_soa_set_serial(wire.p, n, 1), ROLL_ECORRUPT);
	}

	/* No room for a label before the apex: the zone must have an SOA all the same. */
	for (size_t i = 0; i < sizeof wire_long - 1; i += 2)
		memcpy(wire_long + i, "\1a", 2);
	wire_long[254] = '\0';
	assert_int_equal(roll_name_from_wire(wire_long, sizeof wire_long, &long_apex), ROLL_OK);
	roll_buf_reset(&wire);
	assert_int_equal(roll_rdata_soa_default(&mname, &long_apex, &wire), ROLL_OK);
	assert_int_equal(roll_rdata_check(ROLL_TYPE_SOA, roll_buf_str(&wire)), ROLL_OK);
	roll_buf_fini(&wire);
	roll_buf_fini(&text);
}

#define PARAMS_MAX 4

/* Of HTTPS records with priority 1 and target "."; want and zone are what follows that. */
struct svc_case {
	const char *params[PARAMS_MAX][2];
	const char *want; /* NULL: a fault at path */
	const char *zone; /* NULL: the same */
	unsigned doubts;
	const char *path;
};

static const struct svc_case svc_cases[] = {
	{{{NULL, NULL}}, "", NULL, 0, NULL},
	{{{"no-default-alpn", ""}, {"alpn", "h2"}},
	 " alpn=h2 no-default-alpn",
	 NULL,
	 0,
	 NULL}, /* S1 */
	{{{"no-default-alpn", "\"\""}, {"alpn", "h2"}}, " alpn=h2 no-default-alpn", NULL, 0, NULL},
	{{{"no-default-alpn", ""}}, " no-default-alpn", NULL, 1, "e.params.no-default-alpn"},
	{{{"alpn", "h2"}, {"no-default-alpn", "x"}},
	 " alpn=h2 no-default-alpn",
	 NULL,
	 1,
	 "e.params.no-default-alpn"},			     /* S2 */
	{{{"alpn", "h2,h3"}}, " alpn=h2,h3", NULL, 0, NULL}, /* S3 */
	{{{"alpn", "\"h2,h3\""}}, " alpn=h2,h3", NULL, 0, NULL},
	{{{"alpn", " h2 , http/1.1 "}}, " alpn=h2,http/1.1", NULL, 0, NULL}, /* S14 */
	/* RFC 9460, D.2: a comma and a backslash inside identifiers */
	{{{"alpn", "f\\\\\\\\oo\\\\,bar,h2"}}, " alpn=\"f\\\\\\\\oo\\\\,bar,h2\"", NULL, 0, NULL},
	{{{"alpn", "a b\\\"\\001"}}, " alpn=\"a b\\\"\\001\"", NULL, 0, NULL},
	{{{"alpn", "h2,"}}, NULL, NULL, 0, "e.params.alpn"},
	{{{"alpn", ",h2"}}, NULL, NULL, 0, "e.params.alpn"},
	{{{"alpn", "h2, ,h3"}}, NULL, NULL, 0, "e.params.alpn"},
	{{{"alpn", "a\\\\b"}}, NULL, NULL, 0, "e.params.alpn"},
	{{{"alpn", "\"h2"}}, " alpn=\"\\\"h2\"", NULL, 0, NULL},
	{{{"alpn", "\"h2\" \"h3\""}}, NULL, NULL, 0, "e.params.alpn"},
	{{{"alpn", "h2\\"}}, NULL, NULL, 0, "e.params.alpn"},
	{{{"alpn", ""}}, "", NULL, 1, "e.params.alpn"}, /* S10 */
	{{{"alpn", "\"\""}}, "", NULL, 1, "e.params.alpn"},
	{{{"port", "443"}}, " port=443", NULL, 0, NULL}, /* S4 */
	{{{"port", "\"8443\""}}, " port=8443", NULL, 0, NULL},
	{{{"port", "65536"}}, NULL, NULL, 0, "e.params.port"},
	{{{"port", "+1"}}, NULL, NULL, 0, "e.params.port"},
	{{{"ipv4hint", "1.2.3.4,5.6.7.8"}}, " ipv4hint=1.2.3.4,5.6.7.8", NULL, 0, NULL}, /* S5 */
	{{{"ipv4hint", " 1.2.3.4 , 5.6.7.8"}},
	 " ipv4hint=1.2.3.4,5.6.7.8",
	 NULL,
	 0,
	 NULL}, /* S14 */
	{{{"ipv4hint", "1.2.3.4,"}}, NULL, NULL, 0, "e.params.ipv4hint"},
	{{{"ipv4hint", "::1"}}, NULL, NULL, 0, "e.params.ipv4hint"},
	{{{"ipv6hint", "2001:DB8::0,::1"}}, " ipv6hint=2001:db8::,::1", NULL, 0, NULL},
	{{{"ipv6hint", "1.2.3.4"}}, NULL, NULL, 0, "e.params.ipv6hint"},
	{{{"ipv4hint", "auto"}, {"port", "1"}},
	 " port=1 ipv4hint=auto",
	 " port=1",
	 1,
	 "e.params.ipv4hint"}, /* S13 */
	{{{"ipv6hint", "auto"}}, " ipv6hint=auto", "", 1, "e.params.ipv6hint"},
	{{{"ipv4hint", "auto,1.2.3.4"}}, NULL, NULL, 0, "e.params.ipv4hint"},
	{{{"esnikeys", "abc"}}, NULL, NULL, 0, "e.params.esnikeys"}, /* S6 */
	{{{"unknown", "v"}}, NULL, NULL, 0, "e.params.unknown"},     /* S7 */
	{{{"ALPN", "h2"}}, NULL, NULL, 0, "e.params.ALPN"},
	{{{"key65280", "v w"}}, " key65280=\"v w\"", NULL, 0, NULL},
	{{{"key65280", "\"\""}}, " key65280=\"\"", NULL, 0, NULL},
	/* PowerDNS would end the parameter at one of these, were it bare. */
	{{{"key65280", "a;(b)"}}, " key65280=\"a\\059\\040b\\041\"", NULL, 0, NULL},
	{{{"alpn", "a;b"}}, " alpn=\"a\\059b\"", NULL, 0, NULL},
	{{{"key65280", ""}}, "", NULL, 1, "e.params.key65280"},
	{{{"key65534", "\\255\xc3"}, {"key10", "a"}},
	 " key10=\"a\" key65534=\"\\255\\195\"",
	 NULL,
	 0,
	 NULL},
	{{{"key3", "443"}}, NULL, NULL, 0, "e.params.key3"},
	{{{"key03", "443"}}, NULL, NULL, 0, "e.params.key03"},
	{{{"key9", "a"}}, NULL, NULL, 0, "e.params.key9"},
	{{{"key65535", "a"}}, NULL, NULL, 0, "e.params.key65535"},
	{{{"key65536", "a"}}, NULL, NULL, 0, "e.params.key65536"},
	{{{"key", "a"}}, NULL, NULL, 0, "e.params.key"},
	{{{"key10", "a"}, {"key10", "b"}}, NULL, NULL, 0, "e.params"},
	{{{"ech", "AAAA"}}, " ech=AAAA", NULL, 0, NULL}, /* S8 */
	{{{"ech", "AAA="}}, " ech=AAA=", NULL, 0, NULL},
	{{{"ech", "\"+/==\""}}, NULL, NULL, 0, "e.params.ech"},
	{{{"ech", "AAA"}}, NULL, NULL, 0, "e.params.ech"},
	{{{"ech", "AAAA===="}}, NULL, NULL, 0, "e.params.ech"},
	{{{"ech", "A=AA"}}, NULL, NULL, 0, "e.params.ech"},
	{{{"ech", "===="}}, NULL, NULL, 0, "e.params.ech"},
	{{{"mandatory", "port, alpn"}, {"port", "1"}, {"alpn", "h2"}},
	 " mandatory=alpn,port alpn=h2 port=1",
	 NULL,
	 0,
	 NULL}, /* S9 */
	{{{"mandatory", "\"key65280,dohpath\""}, {"dohpath", "/{?dns}"}, {"key65280", "a"}},
	 " mandatory=key7,key65280 key7=\"/{?dns}\" key65280=\"a\"",
	 NULL,
	 0,
	 NULL},
	{{{"mandatory", "alpn"}}, NULL, NULL, 0, "e.params.mandatory"},
	{{{"mandatory", "mandatory"}}, NULL, NULL, 0, "e.params.mandatory"},
	{{{"mandatory", "port,port"}, {"port", "1"}}, NULL, NULL, 0, "e.params.mandatory"},
	{{{"mandatory", "port,"}, {"port", "1"}}, NULL, NULL, 0, "e.params.mandatory"},
	{{{"mandatory", "nope"}, {"port", "1"}}, NULL, NULL, 0, "e.params.mandatory"},
	{{{"mandatory", "ohttp"}, {"ohttp", ""}}, NULL, NULL, 1, "e.params.mandatory"},
	{{{"mandatory", "ipv4hint"}, {"ipv4hint", "auto"}}, NULL, NULL, 1, "e.params.mandatory"},
	{{{"dohpath", "/dns-query{?dns}"}}, " key7=\"/dns-query{?dns}\"", NULL, 0, NULL}, /* S11 */
	{{{"dohpath", "/dns-query"}}, " key7=\"/dns-query\"", NULL, 1, "e.params.dohpath"},
	{{{"ohttp", ""}, {"port", "1"}}, " port=1", " port=1 key8", 1, "e.params.ohttp"}, /* S12 */
};

static void svc_params_are_checked_sorted_and_printed(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(svc_cases); i++) {
		const struct svc_case *c = &svc_cases[i];
		struct roll_svc_param params[PARAMS_MAX];
		struct input in = NUMBERS(S("."), 1);
		const char *zone = c->zone ? c->zone : c->want;
		char pdns_line[128] = "1 .", zone_line[128] = "1 .";

		in.params = params;
		while (in.param_count < PARAMS_MAX && c->params[in.param_count][0]) {
			const char *const *given = c->params[in.param_count];

			params[in.param_count].key = roll_str_c(given[0]);
			params[in.param_count++].value = roll_str_c(given[1]);
		}
		if (c->want) {
			memcpy(pdns_line + 3, c->want, strlen(c->want) + 1);
			memcpy(zone_line + 3, zone, strlen(zone) + 1);
		}
		expect(ROLL_TYPE_HTTPS, in, c->want ? pdns_line : NULL, zone_line, c->doubts,
		       c->path);
	}
}

static void svcb_targets_and_alias_mode(void **state)
{
	static const struct roll_svc_param port = {{"port", 4}, {"1", 1}};
	struct input in = {.text = {S("name.example")}, .numbers = {0}};

	(void)state;
	expect(ROLL_TYPE_SVCB, in, "0 name.example", "0 name.example.", 0, NULL);
	in.params = &port;
	in.param_count = 1;
	expect(ROLL_TYPE_SVCB, in, "0 name.example", "0 name.example.", 1, "e.params"); /* C40 */
	in.numbers[0] = 16;
	expect(ROLL_TYPE_SVCB, in, "16 name.example port=1", "16 name.example. port=1", 0,
	       NULL); /* C43 */
	in.text[0] = S("");
	expect(ROLL_TYPE_SVCB, in, "16 . port=1", NULL, 0, NULL); /* C42 */
	in.text[0] = S(".");
	expect(ROLL_TYPE_SVCB, in, "16 . port=1", NULL, 0, NULL); /* C41 */
	in.text[0] = S("_a.b.example");
	expect(ROLL_TYPE_HTTPS, in, "16 _a.b.example port=1", "16 _a.b.example. port=1", 0, NULL);
	in.text[0] = S("a b");
	expect(ROLL_TYPE_HTTPS, in, NULL, NULL, 0, "e.target"); /* T6 */
	in.text[0] = S(".");
	in.numbers[0] = 65536;
	expect(ROLL_TYPE_HTTPS, in, NULL, NULL, 0, "e.priority");
}

static void every_fault_of_an_entry_is_reported(void **state)
{
	struct seen seen = {0, 0, "", ""};
	struct roll_findings findings = {on_finding, &seen};
	struct roll_buf wire;

	(void)state;
	roll_buf_init(&wire, 4096);
	assert_int_equal(
		roll_rdata_srv((struct roll_check){&findings, "e"}, -1, 65536, -1, S(""), &wire),
		ROLL_EINVAL);
	assert_int_equal(seen.faults, 4);
	roll_buf_fini(&wire);
}

/* Foreign bytes come escaped, and the sentence says what was expected. */
static void findings_show_the_value_and_what_is_expected(void **state)
{
	struct seen seen = {0, 0, "", ""};
	struct roll_findings findings = {on_finding, &seen};
	struct roll_buf wire;

	(void)state;
	roll_buf_init(&wire, 4096);
	assert_int_equal(roll_rdata_a((struct roll_check){&findings, "spec.records[2].a"},
				      S("1.2\x1b.3"), &wire),
			 ROLL_EINVAL);
	assert_string_equal(seen.path, "spec.records[2].a.content");
	assert_string_equal(seen.text,
			    "is \"1.2\\x1b.3\"; expected an IPv4 address such as 192.0.2.1");
	roll_buf_fini(&wire);
}

static void a_full_builder_is_no_fault_of_the_entry(void **state)
{
	struct seen seen = {0, 0, "", ""};
	struct roll_findings findings = {on_finding, &seen};
	struct roll_buf wire;

	(void)state;
	roll_buf_init(&wire, 3);
	assert_int_equal(roll_rdata_a((struct roll_check){&findings, "e"}, S("1.2.3.4"), &wire),
			 ROLL_ELIMIT);
	assert_int_equal(seen.faults, 0);
	assert_int_equal(wire.n, 0);
	roll_buf_fini(&wire);
}

static void wire_forms_we_would_not_have_written_are_corrupt(void **state)
{
	static const struct {
		uint16_t type;
		struct roll_str wire;
		bool prints; /* structure is sound; only the check refuses */
	} cases[] = {
		{ROLL_TYPE_A, {"\1\2\3\4\5", 5}, false},
		{ROLL_TYPE_CNAME, {"\1A\0", 3}, false}, /* not canonical */
		{ROLL_TYPE_CNAME, {"\1a\0x", 4}, false},
		{ROLL_TYPE_CNAME, {"", 1}, true}, /* the root */
		{ROLL_TYPE_CNAME, {"\1@", 3}, true},
		{ROLL_TYPE_CNAME, {"\xc0\x0c", 2}, false},
		{ROLL_TYPE_NS, {"\1_", 3}, true}, /* no hostname */
		{ROLL_TYPE_TXT, {"", 0}, false},
		{ROLL_TYPE_TXT, {"\2a", 2}, false},
		{ROLL_TYPE_CAA, {"\0\0", 2}, false},
		{ROLL_TYPE_CAA, {"\0\1A", 3}, false},
		{ROLL_TYPE_TLSA, {"\3\1\1", 3}, false},
		{ROLL_TYPE_HTTPS, {"\0\1\0\0\3\0\2\0", 8}, false},
		{ROLL_TYPE_HTTPS, {"\0\1\0\0\3\0\1\0", 8}, false},
		{ROLL_TYPE_HTTPS, {"\0\1\0\0\4\0\0\0\3\0\2\0\0", 13}, false}, /* order */
		{ROLL_TYPE_HTTPS, {"\0\1\0\0\2\0\0\0\2\0\0", 11}, false},     /* twice */
		{ROLL_TYPE_HTTPS, {"\0\1\0\0\0\0\2\0\3", 9}, false}, /* mandatory, missing */
		{ROLL_TYPE_HTTPS, {"\0\1\0\0\1\0\0", 7}, false},
		{ROLL_TYPE_HTTPS, {"\0\1\0\0\1\0\2\0\0", 9}, false},
		{ROLL_TYPE_HTTPS, {"\0\1\0\xff\xff\0\0", 7}, false},
		{ROLL_TYPE_HTTPS, {"\0\0\0\0\2\0\0", 7}, true}, /* parameters in AliasMode */
		{ROLL_TYPE_ENT, {"", 0}, false},
		{ROLL_TYPE_ANY, {"", 0}, false},
	};
	struct roll_buf text;

	(void)state;
	roll_buf_init(&text, 4096);
	roll_buf_add_c(&text, "kept ");
	for (size_t i = 0; i < COUNT(cases); i++) {
		enum roll_status status =
			roll_rdata_print(cases[i].type, cases[i].wire, ROLL_RDATA_PDNS, &text);

		if (roll_rdata_check(cases[i].type, cases[i].wire) != ROLL_ECORRUPT ||
		    status != (cases[i].prints ? ROLL_OK : ROLL_ECORRUPT))
			fail_msg("case %zu: %d, \"%s\"", i, status, text.p);
		if (status)
			assert_string_equal(text.p, "kept ");
		roll_buf_truncate(&text, 5);
	}
	roll_buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_is_dotted_decimal),
		cmocka_unit_test(aaaa_is_printed_as_rfc_5952_says),
		cmocka_unit_test(targets_are_absolute_with_or_without_a_dot),
		cmocka_unit_test(txt_is_text_with_or_without_quotes),
		cmocka_unit_test(txt_is_split_at_255_bytes_and_limited),
		cmocka_unit_test(mx_and_srv_take_hostnames_or_the_root),
		cmocka_unit_test(caa_values_are_quoted_and_escaped),
		cmocka_unit_test(tlsa_data_is_hex_of_the_digest_size),
		cmocka_unit_test(soa_has_defaults_and_a_mailbox),
		cmocka_unit_test(soa_serial_can_be_read_and_set),
		cmocka_unit_test(svc_params_are_checked_sorted_and_printed),
		cmocka_unit_test(svcb_targets_and_alias_mode),
		cmocka_unit_test(every_fault_of_an_entry_is_reported),
		cmocka_unit_test(findings_show_the_value_and_what_is_expected),
		cmocka_unit_test(a_full_builder_is_no_fault_of_the_entry),
		cmocka_unit_test(wire_forms_we_would_not_have_written_are_corrupt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
