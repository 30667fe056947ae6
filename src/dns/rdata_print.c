/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/bin.h"
#include "dns/rdata_build.h"

/*
 * Wire form to text. The layout of a type is a row of fields; one walk over them checks (no buf)
 * or prints. A check asks more: what a builder refuses is no sound row either, but a row that was
 * made otherwise (nameservers of a class) must not fail to print for it.
 */
enum field {
	END,
	IPV4,
	IPV6,
	NAME,	      /* rules of roll_build_name: any */
	HOST,	      /* hostname */
	HOST_OR_ROOT, /* hostname or root */
	NAME_OR_ROOT,
	U8,
	U16,
	U32,
	STRINGS, /* character-strings to the end, one at least */
	TAG,	 /* a length byte, letters and digits */
	VALUE,	 /* text to the end, as one quoted string */
	HEX,	 /* bytes to the end, one at least */
	PARAMS,	 /* SvcParams to the end */
};

#define FIELDS_MAX 8

static const struct layout {
	uint16_t type;
	uint8_t fields[FIELDS_MAX];
} layouts[ROLL_TYPE_COUNT] = {
	{ROLL_TYPE_A, {IPV4}},
	{ROLL_TYPE_NS, {HOST}},
	{ROLL_TYPE_CNAME, {NAME}},
	{ROLL_TYPE_SOA, {NAME, NAME, U32, U32, U32, U32, U32}},
	{ROLL_TYPE_PTR, {NAME}},
	{ROLL_TYPE_MX, {U16, HOST_OR_ROOT}},
	{ROLL_TYPE_TXT, {STRINGS}},
	{ROLL_TYPE_AAAA, {IPV6}},
	{ROLL_TYPE_SRV, {U16, U16, U16, HOST_OR_ROOT}},
	{ROLL_TYPE_TLSA, {U8, U8, U8, HEX}},
	{ROLL_TYPE_SVCB, {U16, NAME_OR_ROOT, PARAMS}},
	{ROLL_TYPE_HTTPS, {U16, NAME_OR_ROOT, PARAMS}},
	{ROLL_TYPE_CAA, {U8, TAG, VALUE}},
	{ROLL_TYPE_ALIAS, {NAME}},
};

/* What is left of the wire form. buf NULL: check only. */
struct walk {
	const uint8_t *p;
	const uint8_t *end;
	enum roll_rdata_style style;
	struct roll_buf *buf;
};

static size_t left(const struct walk *walk)
{
	return (size_t)(walk->end - walk->p);
}

/* The next n bytes, or NULL. */
static const uint8_t *take(struct walk *walk, size_t n)
{
	const uint8_t *p = walk->p;

	if (n > left(walk))
		return NULL;
	walk->p += n;
	return p;
}

static struct roll_str take_rest(struct walk *walk)
{
	size_t n = left(walk);

	return roll_str_n((const char *)take(walk, n), n);
}

static bool walk_number(struct walk *walk, size_t bytes)
{
	const uint8_t *p = take(walk, bytes);
	uint32_t value = 0;

	if (!p)
		return false;
	for (size_t i = 0; i < bytes; i++)
		value = value << 8 | p[i];
	if (walk->buf)
		roll_buf_add_u64(walk->buf, value);
	return true;
}

static bool walk_ipv4(struct walk *walk)
{
	const uint8_t *p = take(walk, 4);

	if (p && walk->buf)
		roll_ipv4_print(p, walk->buf);
	return p;
}

static bool walk_ipv6(struct walk *walk)
{
	const uint8_t *p = take(walk, 16);

	if (p && walk->buf)
		roll_ipv6_print(p, walk->buf);
	return p;
}

static bool walk_name(struct walk *walk, unsigned rules)
{
	struct roll_name name;
	size_t n = 0;

	while (n < left(walk) && walk->p[n])
		n += walk->p[n] + 1U;
	if (n >= left(walk) || roll_name_from_wire(walk->p, n + 1, &name))
		return false;
	/* The name was lower-cased, so a canonical one is unchanged. */
	if (memcmp(take(walk, n + 1), name.wire, n + 1) != 0)
		return false;
	if (!walk->buf)
		return roll_name_is_allowed(&name, rules);
	roll_name_print(&name, walk->style == ROLL_RDATA_ZONE ? ROLL_DOT_FINAL : ROLL_DOT_NONE,
			walk->buf);
	return true;
}

static void print_quoted(struct walk *walk, struct roll_str bytes)
{
	if (!walk->buf)
		return;
	roll_buf_add_char(walk->buf, '"');
	roll_text_print(bytes, walk->buf);
	roll_buf_add_char(walk->buf, '"');
}

static bool walk_strings(struct walk *walk)
{
	if (!left(walk))
		return false;
	for (bool is_first = true; left(walk); is_first = false) {
		size_t n = *take(walk, 1);
		const uint8_t *p = take(walk, n);

		if (!p)
			return false;
		if (!is_first && walk->buf)
			roll_buf_add_char(walk->buf, ' ');
		print_quoted(walk, roll_str_n((const char *)p, n));
	}
	return true;
}

static bool walk_tag(struct walk *walk)
{
	const uint8_t *length = take(walk, 1);
	const uint8_t *p = length ? take(walk, *length) : NULL;

	if (!p || *length == 0)
		return false;
	for (size_t i = 0; i < *length; i++)
		if (!roll_is_digit(p[i]) && (!roll_is_alpha(p[i]) || roll_lower(p[i]) != p[i]))
			return false;
	if (walk->buf)
		roll_buf_add(walk->buf, p, *length);
	return true;
}

static bool walk_hex(struct walk *walk)
{
	static const char digits[] = "0123456789abcdef";
	struct roll_str bytes = take_rest(walk);
	char *out = walk->buf ? roll_buf_extend(walk->buf, bytes.n * 2) : NULL;

	for (size_t i = 0; out && i < bytes.n; i++) {
		out[2 * i] = digits[(unsigned char)bytes.p[i] >> 4];
		out[2 * i + 1] = digits[(unsigned char)bytes.p[i] & 15];
	}
	return bytes.n > 0;
}

static bool walk_field(struct walk *walk, enum field field)
{
	switch (field) {
	case IPV4:
		return walk_ipv4(walk);
	case IPV6:
		return walk_ipv6(walk);
	case NAME:
		return walk_name(walk, ROLL_NAME_ANY);
	case HOST:
		return walk_name(walk, ROLL_NAME_HOST);
	case HOST_OR_ROOT:
		return walk_name(walk, ROLL_NAME_HOST | ROLL_NAME_OR_ROOT);
	case NAME_OR_ROOT:
		return walk_name(walk, ROLL_NAME_OR_ROOT);
	case U8:
		return walk_number(walk, 1);
	case U16:
		return walk_number(walk, 2);
	case U32:
		return walk_number(walk, 4);
	case STRINGS:
		return walk_strings(walk);
	case TAG:
		return walk_tag(walk);
	case VALUE:
		print_quoted(walk, take_rest(walk));
		return true;
	case HEX:
		return walk_hex(walk);
	case PARAMS:
		return roll_svc_print(take_rest(walk), walk->style, walk->buf);
	case END:
		break;
	}
	return false;
}

static bool walk_layout(struct walk *walk, const uint8_t *fields)
{
	for (size_t i = 0; i < FIELDS_MAX && fields[i] != END; i++) {
		/* SvcParams bring the blanks before each of them. */
		if (i && walk->buf && fields[i] != PARAMS)
			roll_buf_add_char(walk->buf, ' ');
		if (!walk_field(walk, fields[i]))
			return false;
	}
	return left(walk) == 0;
}

static const uint8_t *find_fields(uint16_t type)
{
	for (size_t i = 0; i < ROLL_TYPE_COUNT; i++)
		if (layouts[i].type == type)
			return layouts[i].fields;
	return NULL;
}

static struct walk walk_of(struct roll_str wire, enum roll_rdata_style style, struct roll_buf *buf)
{
	const uint8_t *p = (const uint8_t *)(wire.n ? wire.p : "");

	return (struct walk){p, p + wire.n, style, buf};
}

enum roll_status roll_rdata_print(uint16_t type, struct roll_str wire, enum roll_rdata_style style,
				  struct roll_buf *buf)
{
	const uint8_t *fields = find_fields(type);
	struct walk walk = walk_of(wire, style, buf);
	size_t start = buf->n;

	if (fields && walk_layout(&walk, fields))
		return buf->status;
	roll_buf_truncate(buf, start);
	return ROLL_ECORRUPT;
}

/* RFC 9460, 2.4.2: no parameters in AliasMode; C40 drops them. */
static bool is_alias_mode_bare(uint16_t type, struct roll_str wire)
{
	bool is_svcb = type == ROLL_TYPE_SVCB || type == ROLL_TYPE_HTTPS;
	size_t at = 2;

	if (!is_svcb || wire.p[0] || wire.p[1])
		return true;
	while (wire.p[at])
		at += (uint8_t)wire.p[at] + 1U;
	return at + 1 == wire.n;
}

enum roll_status roll_rdata_check(uint16_t type, struct roll_str wire)
{
	const uint8_t *fields = find_fields(type);
	struct walk walk = walk_of(wire, ROLL_RDATA_ZONE, NULL);

	if (!fields || wire.n > ROLL_RDATA_MAX || !walk_layout(&walk, fields) ||
	    !is_alias_mode_bare(type, wire))
		return ROLL_ECORRUPT;
	return ROLL_OK;
}
