/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/rdata.h"

#include <string.h>

#include "base/bin.h"
#include "dns/rdata_build.h"
#include "dns/rrset.h"

/*
 * The builders, but for TXT (rdata_text.c) and SVCB, HTTPS (rdata_svcb.c). Letters with numbers in
 * comments are rows of the conformance table.
 */

#define SHOWN_SIZE 128

/* C1 to C4 */
enum roll_status roll_rdata_a(struct roll_check at, struct roll_str content, struct roll_buf *wire)
{
	struct roll_build build = roll_build_begin(at, wire);
	char shown[SHOWN_SIZE];
	uint8_t address[4];

	content = roll_str_trim(content);
	if (roll_ipv4_parse(content, address))
		roll_buf_add(wire, address, sizeof address);
	else
		roll_build_fault(&build, "content",
				 "is \"%s\"; expected an IPv4 address such as 192.0.2.1",
				 roll_str_show(content, shown, sizeof shown));
	return roll_build_end(&build);
}

/* C5: every form of RFC 4291 is one wire form. */
enum roll_status roll_rdata_aaaa(struct roll_check at, struct roll_str content,
				 struct roll_buf *wire)
{
	struct roll_build build = roll_build_begin(at, wire);
	char shown[SHOWN_SIZE];
	uint8_t address[16];

	content = roll_str_trim(content);
	if (roll_ipv6_parse(content, address))
		roll_buf_add(wire, address, sizeof address);
	else
		roll_build_fault(&build, "content",
				 "is \"%s\"; expected an IPv6 address such as 2001:db8::1",
				 roll_str_show(content, shown, sizeof shown));
	return roll_build_end(&build);
}

/* C6, C8, C32, C38; T1 to T7 */
enum roll_status roll_rdata_target(struct roll_check at, uint16_t type, struct roll_str content,
				   struct roll_buf *wire)
{
	struct roll_build build = roll_build_begin(at, wire);

	roll_build_name(&build, "content", content,
			type == ROLL_TYPE_NS ? ROLL_NAME_HOST : ROLL_NAME_ANY);
	return roll_build_end(&build);
}

/* C25, C26; the root is the null MX of RFC 7505 (T4) */
enum roll_status roll_rdata_mx(struct roll_check at, int64_t preference, struct roll_str exchange,
			       struct roll_buf *wire)
{
	struct roll_build build = roll_build_begin(at, wire);

	roll_build_number(&build, "preference", preference, 2);
	roll_build_name(&build, "exchange", exchange, ROLL_NAME_HOST | ROLL_NAME_OR_ROOT);
	return roll_build_end(&build);
}

/* C27; the root is "no such service" (RFC 2782) */
enum roll_status roll_rdata_srv(struct roll_check at, int64_t priority, int64_t weight,
				int64_t port, struct roll_str target, struct roll_buf *wire)
{
	struct roll_build build = roll_build_begin(at, wire);

	roll_build_number(&build, "priority", priority, 2);
	roll_build_number(&build, "weight", weight, 2);
	roll_build_number(&build, "port", port, 2);
	roll_build_name(&build, "target", target, ROLL_NAME_HOST | ROLL_NAME_OR_ROOT);
	return roll_build_end(&build);
}

/* RFC 8659, 4.1: letters and digits, whatever their case. Stored in lower case. */
static void put_caa_tag(struct roll_build *build, struct roll_str tag)
{
	static const char *const known[] = {"issue",	"issuewild",	"iodef",       "issuemail",
					    "issuevmc", "contactemail", "contactphone"};
	char shown[SHOWN_SIZE], bytes[255];
	bool is_known = false;

	tag = roll_str_trim(tag);
	roll_str_show(tag, shown, sizeof shown);
	for (size_t i = 0; i < tag.n && i < sizeof bytes; i++) {
		bytes[i] = (char)roll_lower((unsigned char)tag.p[i]);
		if (!roll_is_alpha((unsigned char)bytes[i]) &&
		    !roll_is_digit((unsigned char)bytes[i]))
			tag.n = 0;
	}
	if (tag.n == 0 || tag.n > sizeof bytes) {
		roll_build_fault(build, "tag",
				 "is \"%s\"; expected 1 to 255 letters and digits, as in \"issue\"",
				 shown);
		return;
	}
	roll_buf_put_u8(build->wire, (uint8_t)tag.n);
	roll_buf_add(build->wire, bytes, tag.n);
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		is_known = is_known || roll_str_eq_c(roll_str_n(bytes, tag.n), known[i]);
	if (!is_known)
		roll_build_doubt(build, "tag",
				 "is \"%s\", which is not registered; expected issue, issuewild, "
				 "iodef, issuemail, issuevmc, contactemail or contactphone",
				 shown);
}

/* C28 to C31: quoted or not, one string without a length before it (RFC 8659, 4.1). */
static void put_caa_value(struct roll_build *build, struct roll_str value)
{
	struct roll_str rest = roll_str_trim(value), inside = rest;

	if (rest.n == 0) {
		roll_build_fault(build, "value",
				 "is missing or blank; expected text (\"\" in quotes for an empty "
				 "one)");
		return;
	}
	if (roll_text_is_quoted(rest) && (!roll_text_cut_quoted(&rest, &inside) || rest.n)) {
		roll_build_fault(build, "value",
				 "begins and ends with a quote, but is not one quoted string; "
				 "expected \"...\" with quotes inside written as \\\"");
		return;
	}
	(void)roll_text_unescape(inside, ROLL_TEXT_PLAIN, build->wire);
}

enum roll_status roll_rdata_caa(struct roll_check at, int64_t flag, struct roll_str tag,
				struct roll_str value, struct roll_buf *wire)
{
	struct roll_build build = roll_build_begin(at, wire);

	roll_build_number(&build, "flag", flag, 1);
	if (flag > 0 && flag <= 255 && flag != 128)
		roll_build_doubt(&build, "flag",
				 "is %lld; expected 0, or 128 (issuer critical): the other bits "
				 "are reserved",
				 (long long)flag);
	put_caa_tag(&build, tag);
	put_caa_value(&build, value);
	return roll_build_end(&build);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)roll_lower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Blanks anywhere between digits (C39); the number of bytes, 0 if it is not hex. */
static size_t put_hex(struct roll_build *build, struct roll_str text)
{
	size_t before = build->wire->n, digits = 0;
	int high = 0;

	for (size_t i = 0; i < text.n; i++) {
		int digit = hex_digit(text.p[i]);

		if (text.p[i] == ' ' || text.p[i] == '\t' || text.p[i] == '\r' || text.p[i] == '\n')
			continue;
		if (digit < 0)
			return 0;
		if (digits++ % 2)
			roll_buf_put_u8(build->wire, (uint8_t)(high << 4 | digit));
		else
			high = digit;
	}
	return digits % 2 ? 0 : build->wire->n - before;
}

/* RFC 6698, 7: the registries end there; 255 is for private use. */
static void doubt_registered(struct roll_build *build, const char *member, int64_t value,
			     int64_t max)
{
	if (value > max && value < 255)
		roll_build_doubt(build, member,
				 "is %lld, which is not registered; expected 0 to %lld",
				 (long long)value, (long long)max);
}

/* C39 */
enum roll_status roll_rdata_tlsa(struct roll_check at, int64_t usage, int64_t selector,
				 int64_t matching_type, struct roll_str cert_data,
				 struct roll_buf *wire)
{
	static const size_t digest_bytes[] = {0, 32, 64}; /* full data, SHA-256, SHA-512 */
	struct roll_build build = roll_build_begin(at, wire);
	char shown[SHOWN_SIZE];
	size_t n;

	roll_build_number(&build, "usage", usage, 1);
	doubt_registered(&build, "usage", usage, 3);
	roll_build_number(&build, "selector", selector, 1);
	doubt_registered(&build, "selector", selector, 1);
	roll_build_number(&build, "matchingType", matching_type, 1);
	doubt_registered(&build, "matchingType", matching_type, 2);
	n = put_hex(&build, cert_data);
	if (n == 0 && !wire->status)
		roll_build_fault(&build, "certData",
				 "is \"%s\"; expected an even number of hexadecimal digits",
				 roll_str_show(cert_data, shown, sizeof shown));
	else if ((matching_type == 1 || matching_type == 2) && n != digest_bytes[matching_type])
		roll_build_doubt(&build, "certData",
				 "has %zu bytes; expected the %zu of a digest of matching type %d",
				 n, digest_bytes[matching_type], (int)matching_type);
	return roll_build_end(&build);
}

/*
 * A mailbox as a name: the first label is the local part, dots and all (RFC 1035, 8). Written with
 * `@` (C35) the local part is escaped here; otherwise text is a name already.
 */
static struct roll_str mailbox_name(struct roll_str text, char out[2 * ROLL_NAME_TEXT_SIZE])
{
	const char *sign = text.n ? memchr(text.p, '@', text.n) : NULL;
	size_t n = 0;

	/* What is longer than any name is refused later, as it is. */
	if (!sign || text.n >= ROLL_NAME_TEXT_SIZE)
		return text;
	for (const char *p = text.p; p < sign; p++) {
		if (*p == '.')
			out[n++] = '\\';
		else if (*p == '\\' && p + 1 < sign)
			out[n++] = *p++;
		out[n++] = *p;
	}
	out[n++] = '.';
	memcpy(out + n, sign + 1, (size_t)(text.p + text.n - sign - 1));
	return roll_str_n(out, n + (size_t)(text.p + text.n - sign - 1));
}

static void put_soa_number(struct roll_build *build, const char *member, int64_t value,
			   int64_t default_value)
{
	roll_build_number(build, member, value ? value : default_value, 4);
}

#define REFRESH_DEFAULT 10800
#define RETRY_DEFAULT 3600
#define EXPIRE_DEFAULT 604800
#define MINIMUM_DEFAULT 3600

/* C34, C35, Z4 */
enum roll_status roll_rdata_soa(struct roll_check at, const struct roll_soa_text *soa,
				struct roll_buf *wire)
{
	struct roll_build build = roll_build_begin(at, wire);
	char mailbox[2 * ROLL_NAME_TEXT_SIZE];
	struct roll_str rname = mailbox_name(roll_str_trim(soa->rname), mailbox);

	roll_build_name(&build, "mname", soa->mname, ROLL_NAME_ANY);
	if (rname.n && memchr(rname.p, '@', rname.n))
		roll_build_fault(&build, "rname",
				 "has more than one @; expected a mailbox, as user@example.com or "
				 "user.example.com");
	else
		roll_build_name(&build, "rname", rname, ROLL_NAME_ANY);
	put_soa_number(&build, "serial", soa->serial, 0);
	put_soa_number(&build, "refresh", soa->refresh, REFRESH_DEFAULT);
	put_soa_number(&build, "retry", soa->retry, RETRY_DEFAULT);
	put_soa_number(&build, "expire", soa->expire, EXPIRE_DEFAULT);
	/* It is a TTL (RFC 2308, 4), and those have 31 bits. */
	if (soa->minimum > (int64_t)ROLL_TTL_MAX)
		roll_build_fault(&build, "ttl", "is %lld; expected at most %u seconds",
				 (long long)soa->minimum, ROLL_TTL_MAX);
	put_soa_number(&build, "ttl", soa->minimum, MINIMUM_DEFAULT);
	return roll_build_end(&build);
}

enum roll_status roll_rdata_soa_default(const struct roll_name *mname, const struct roll_name *apex,
					struct roll_buf *wire)
{
	static const struct roll_name hostmaster = {12, "\12hostmaster"};
	struct roll_build build = roll_build_begin((struct roll_check){NULL, ""}, wire);
	struct roll_name rname;

	/* Under an apex too long for it the mailbox is the apex: the zone must have an SOA. */
	if (roll_name_join(&hostmaster, apex, &rname))
		rname = *apex;
	roll_buf_add(wire, mname->wire, mname->len);
	roll_buf_add(wire, rname.wire, rname.len);
	put_soa_number(&build, "serial", 0, 0);
	put_soa_number(&build, "refresh", 0, REFRESH_DEFAULT);
	put_soa_number(&build, "retry", 0, RETRY_DEFAULT);
	put_soa_number(&build, "expire", 0, EXPIRE_DEFAULT);
	put_soa_number(&build, "ttl", 0, MINIMUM_DEFAULT);
	return roll_build_end(&build);
}

#define SOA_NUMBERS 20u /* bytes: serial, refresh, retry, expire, minimum */

/* Where the serial is, or 0 if this is not SOA rdata: two names and five numbers. */
static size_t find_serial(const uint8_t *wire, size_t n)
{
	size_t at = 0;

	for (int names = 0; names < 2; names++) {
		while (at < n && wire[at] != 0) {
			if (wire[at] > ROLL_LABEL_MAX)
				return 0;
			at += wire[at] + 1U;
		}
		at++;
	}
	return at < n && n - at == SOA_NUMBERS ? at : 0;
}

enum roll_status roll_rdata_soa_serial(struct roll_str wire, uint32_t *serial)
{
	const uint8_t *p = (const uint8_t *)wire.p;
	size_t at = find_serial(p, wire.n);

	if (!at)
		return ROLL_ECORRUPT;
	p += at;
	*serial = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
	return ROLL_OK;
}

enum roll_status roll_rdata_soa_set_serial(char *wire, size_t n, uint32_t serial)
{
	size_t at = find_serial((const uint8_t *)wire, n);

	if (!at)
		return ROLL_ECORRUPT;
	for (size_t i = 0; i < 4; i++)
		wire[at + i] = (char)(serial >> (24 - 8 * i) & 0xff);
	return ROLL_OK;
}
