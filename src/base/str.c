/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <string.h>

struct roll_str roll_str_c(const char *c_string)
{
	return c_string ? roll_str_n(c_string, strlen(c_string)) : roll_str_n("", 0);
}

bool roll_str_eq(struct roll_str a, struct roll_str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool roll_str_eq_c(struct roll_str a, const char *b)
{
	return roll_str_eq(a, roll_str_c(b));
}

bool roll_str_eq_nocase(struct roll_str a, struct roll_str b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++) {
		if (roll_lower((unsigned char)a.p[i]) != roll_lower((unsigned char)b.p[i]))
			return false;
	}
	return true;
}

bool roll_str_starts(struct roll_str s, const char *prefix)
{
	size_t n = strlen(prefix);

	return s.n >= n && roll_str_eq(roll_str_n(s.p, n), roll_str_n(prefix, n));
}

int roll_str_cmp(struct roll_str a, struct roll_str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int order = n ? memcmp(a.p, b.p, n) : 0;

	return order ? order : (a.n > b.n) - (a.n < b.n);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct roll_str roll_str_trim(struct roll_str s)
{
	while (s.n && is_blank(s.p[s.n - 1]))
		s.n--;
	while (s.n && is_blank(s.p[0])) {
		s.p++;
		s.n--;
	}
	return s;
}

struct roll_str roll_str_cut(struct roll_str *rest, char sep)
{
	const char *found = rest->n ? memchr(rest->p, sep, rest->n) : NULL;
	struct roll_str head = *rest;

	if (!found) {
		*rest = roll_str_n(rest->n ? rest->p + rest->n : "", 0);
		return head;
	}
	head.n = (size_t)(found - rest->p);
	*rest = roll_str_n(found + 1, rest->n - head.n - 1);
	return head;
}

enum roll_status roll_str_u64(struct roll_str s, uint64_t max, uint64_t *out)
{
	enum roll_status status = ROLL_OK;
	uint64_t value = 0;

	if (s.n == 0)
		return ROLL_EINVAL;
	/* Read to the end even when too big: "99999x" is no number rather than a large one. */
	for (size_t i = 0; i < s.n; i++) {
		unsigned digit = (unsigned char)s.p[i] - (unsigned)'0';

		if (digit > 9)
			return ROLL_EINVAL;
		if (value > (UINT64_MAX - digit) / 10)
			status = ROLL_ELIMIT;
		else
			value = value * 10 + digit;
	}
	if (status || value > max)
		return ROLL_ELIMIT;
	*out = value;
	return ROLL_OK;
}

enum roll_status roll_str_u32(struct roll_str s, uint32_t max, uint32_t *out)
{
	uint64_t value;
	enum roll_status status = roll_str_u64(s, max, &value);

	if (!status)
		*out = (uint32_t)value;
	return status;
}

enum roll_status roll_str_u16(struct roll_str s, uint16_t max, uint16_t *out)
{
	uint64_t value;
	enum roll_status status = roll_str_u64(s, max, &value);

	if (!status)
		*out = (uint16_t)value;
	return status;
}

/*
 * RFC 3629, section 4. Only the second byte has a range that depends on the first: it excludes
 * overlong forms (E0, F0), surrogates (ED) and what lies above U+10FFFF (F4).
 */
size_t roll_str_utf8_len(struct roll_str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	unsigned char low = 0x80, high = 0xbf;
	size_t n;

	if (s.n == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (s.n < n || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	return n;
}

bool roll_str_is_utf8(struct roll_str s)
{
	while (s.n) {
		size_t n = roll_str_utf8_len(s);

		if (n == 0)
			return false;
		s = roll_str_n(s.p + n, s.n - n);
	}
	return true;
}
