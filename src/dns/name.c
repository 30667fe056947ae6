/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/name.h"

#include <assert.h>
#include <string.h>

#include "base/bin.h"

const struct roll_name roll_name_root = {1, {0}};

/*
 * The byte that text[*at] stands for; *at moves behind it. False if a backslash begins neither
 * \DDD up to 255 nor \X with X no digit (RFC 1035, 5.1).
 */
static bool take_escaped(struct roll_str text, size_t *at, uint8_t *out)
{
	const unsigned char *p = (const unsigned char *)text.p + *at;
	size_t n = text.n - *at;
	unsigned value;

	if (n < 2)
		return false;
	if (!roll_is_digit(p[1])) {
		*out = p[1];
		*at += 2;
		return true;
	}
	if (n < 4 || !roll_is_digit(p[2]) || !roll_is_digit(p[3]))
		return false;
	value = (p[1] - '0') * 100U + (p[2] - '0') * 10U + (p[3] - '0');
	if (value > 255)
		return false;
	*out = (uint8_t)value;
	*at += 4;
	return true;
}

enum roll_status roll_name_parse(struct roll_str text, struct roll_name *out, struct roll_err *err)
{
	uint8_t *wire = out->wire;
	size_t at = 0, length_at = 0, n = 1; /* n: bytes of wire in use */
	unsigned label = 1;

	if (text.n == 0)
		return roll_err_set(err, ROLL_EINVAL, NULL, "the name is empty");
	if (text.n == 1 && text.p[0] == '.') {
		*out = roll_name_root;
		return ROLL_OK;
	}
	while (at < text.n) {
		uint8_t c = (uint8_t)text.p[at];

		if (c == '.') {
			if (n == length_at + 1)
				return roll_err_set(err, ROLL_EINVAL, NULL, "label %u is empty",
						    label);
			wire[length_at] = (uint8_t)(n - length_at - 1);
			length_at = n++;
			label++;
			at++;
			/* The byte after the last label is the root's, and may be the 255th. */
			if (n == ROLL_NAME_MAX && at < text.n)
				return roll_err_set(err, ROLL_ELIMIT, NULL,
						    "the name is longer than 255 bytes");
			continue;
		}
		if (c != '\\') {
			at++;
		} else if (!take_escaped(text, &at, &c)) {
			return roll_err_set(err, ROLL_EINVAL, NULL,
					    "label %u has a broken escape; expected a backslash "
					    "and three digits up to 255, or one other character",
					    label);
		}
		if (n == length_at + 1 + ROLL_LABEL_MAX)
			return roll_err_set(err, ROLL_ELIMIT, NULL,
					    "label %u is longer than 63 bytes", label);
		if (n == ROLL_NAME_MAX - 1)
			return roll_err_set(err, ROLL_ELIMIT, NULL,
					    "the name is longer than 255 bytes");
		wire[n++] = roll_lower(c);
	}
	if (n > length_at + 1) { /* no final dot */
		wire[length_at] = (uint8_t)(n - length_at - 1);
		length_at = n++;
	}
	wire[length_at] = 0;
	out->len = (uint8_t)n;
	return ROLL_OK;
}

enum roll_status roll_name_from_wire(const void *wire, size_t n, struct roll_name *out)
{
	const uint8_t *p = wire;
	size_t at = 0;

	if (n > ROLL_NAME_MAX)
		return ROLL_ELIMIT;
	while (at < n && p[at] != 0) {
		size_t end = at + 1 + p[at];

		/* No compression pointers here (RFC 1035, 4.1.4), whose length byte is larger. */
		if (p[at] > ROLL_LABEL_MAX || end > n)
			return ROLL_EINVAL;
		out->wire[at] = p[at];
		for (at++; at < end; at++)
			out->wire[at] = roll_lower(p[at]);
	}
	if (at + 1 != n)
		return ROLL_EINVAL;
	out->wire[at] = 0;
	out->len = (uint8_t)n;
	return ROLL_OK;
}

enum roll_status roll_name_join(const struct roll_name *prefix, const struct roll_name *origin,
				struct roll_name *out)
{
	struct roll_name joined;
	size_t n = prefix->len - 1U;

	if (n + origin->len > ROLL_NAME_MAX)
		return ROLL_ELIMIT;
	memcpy(joined.wire, prefix->wire, n);
	memcpy(joined.wire + n, origin->wire, origin->len);
	joined.len = (uint8_t)(n + origin->len);
	*out = joined; /* which may be one of the two */
	return ROLL_OK;
}

static bool is_bare(uint8_t c)
{
	switch (c) {
	case '-':
	case '_':
	case '*':
	case '/':
	case '@':
	case '+':
	case '=':
		return true;
	default:
		return roll_is_alpha(c) || roll_is_digit(c);
	}
}

/* out has room for ROLL_NAME_TEXT_SIZE bytes; the length is returned. */
static size_t put_text(const struct roll_name *name, enum roll_dot dot, char *out)
{
	const uint8_t *p = name->wire;
	char *to = out;

	if (*p == 0)
		*to++ = '.';
	while (*p) {
		const uint8_t *end = p + 1 + *p;

		for (p++; p < end; p++) {
			if (is_bare(*p)) {
				*to++ = (char)*p;
			} else if (*p == '.' || *p == '\\') {
				*to++ = '\\';
				*to++ = (char)*p;
			} else {
				*to++ = '\\';
				*to++ = (char)('0' + *p / 100);
				*to++ = (char)('0' + *p / 10 % 10);
				*to++ = (char)('0' + *p % 10);
			}
		}
		if (*p || dot == ROLL_DOT_FINAL)
			*to++ = '.';
	}
	return (size_t)(to - out);
}

void roll_name_print(const struct roll_name *name, enum roll_dot dot, struct roll_buf *buf)
{
	char text[ROLL_NAME_TEXT_SIZE];

	roll_buf_add(buf, text, put_text(name, dot, text));
}

const char *roll_name_show(const struct roll_name *name, char out[ROLL_NAME_TEXT_SIZE])
{
	out[put_text(name, ROLL_DOT_NONE, out)] = '\0';
	return out;
}

bool roll_name_eq(const struct roll_name *a, const struct roll_name *b)
{
	return a->len == b->len && memcmp(a->wire, b->wire, a->len) == 0;
}

/* Where each label begins, leftmost first; their number is returned. */
static unsigned find_labels(const struct roll_name *name, uint8_t at[ROLL_LABELS_MAX])
{
	unsigned count = 0;

	for (size_t i = 0; name->wire[i]; i += name->wire[i] + 1U)
		at[count++] = (uint8_t)i;
	return count;
}

int roll_name_cmp(const struct roll_name *a, const struct roll_name *b)
{
	uint8_t a_at[ROLL_LABELS_MAX], b_at[ROLL_LABELS_MAX];
	unsigned a_count = find_labels(a, a_at), b_count = find_labels(b, b_at);

	while (a_count && b_count) {
		const uint8_t *x = a->wire + a_at[--a_count], *y = b->wire + b_at[--b_count];
		int order = roll_str_cmp(roll_str_n((const char *)x + 1, *x),
					 roll_str_n((const char *)y + 1, *y));

		if (order)
			return order;
	}
	return (a_count > 0) - (b_count > 0);
}

unsigned roll_name_labels(const struct roll_name *name)
{
	unsigned count = 0;

	for (const uint8_t *p = name->wire; *p; p += *p + 1)
		count++;
	return count;
}

bool roll_name_is_within(const struct roll_name *name, const struct roll_name *origin)
{
	size_t at = 0;

	if (name->len < origin->len)
		return false;
	/* The same bytes at the end are a suffix only if a label begins there. */
	while (name->len - at > origin->len)
		at += name->wire[at] + 1U;
	return name->len - at == origin->len &&
	       memcmp(name->wire + at, origin->wire, origin->len) == 0;
}

bool roll_name_is_wildcard(const struct roll_name *name)
{
	return name->wire[0] == 1 && name->wire[1] == '*';
}

struct roll_name roll_name_parent(const struct roll_name *name, unsigned count)
{
	struct roll_name parent;
	size_t at = 0;

	for (; count && name->wire[at]; count--)
		at += name->wire[at] + 1U;
	parent.len = (uint8_t)(name->len - at);
	memcpy(parent.wire, name->wire + at, parent.len);
	return parent;
}

struct roll_str roll_name_first_label(const struct roll_name *name)
{
	return roll_str_n((const char *)name->wire + 1, name->wire[0]);
}

bool roll_name_is_hostname(const struct roll_name *name)
{
	const uint8_t *p = name->wire;

	if (*p == 0)
		return false;
	while (*p) {
		const uint8_t *first = p + 1, *last = p + *p;

		if (*first == '-' || *last == '-')
			return false;
		for (p++; p <= last; p++)
			if (!roll_is_alpha(*p) && !roll_is_digit(*p) && *p != '-')
				return false;
	}
	return true;
}

size_t roll_name_key(const struct roll_name *name, const struct roll_name *origin, uint8_t *out)
{
	uint8_t at[ROLL_LABELS_MAX];
	uint8_t *to = out;
	unsigned count = 0;

	assert(roll_name_is_within(name, origin));
	for (size_t i = 0; name->len - i > origin->len; i += name->wire[i] + 1U)
		at[count++] = (uint8_t)i;
	while (count) {
		const uint8_t *p = name->wire + at[--count];
		const uint8_t *end = p + 1 + *p;

		for (p++; p < end; p++) {
			if (*p > 1) {
				*to++ = *p;
			} else {
				*to++ = 1;
				*to++ = (uint8_t)(*p + 1);
			}
		}
		*to++ = 0;
	}
	return (size_t)(to - out);
}

enum roll_status roll_name_from_key(const void *key, size_t n, const struct roll_name *origin,
				    struct roll_name *out)
{
	const uint8_t *p = key, *end = p + n;
	uint8_t wire[ROLL_NAME_MAX], label[ROLL_LABEL_MAX];
	size_t at = ROLL_NAME_MAX - origin->len; /* labels come root first: fill backwards */

	memcpy(wire + at, origin->wire, origin->len);
	while (p < end) {
		size_t count = 0;

		for (; p < end && *p; p++) {
			uint8_t c = *p;

			if (c == 1) {
				if (++p == end || *p < 1 || *p > 2)
					return ROLL_ECORRUPT;
				c = (uint8_t)(*p - 1);
			}
			if (count == ROLL_LABEL_MAX || roll_lower(c) != c)
				return ROLL_ECORRUPT;
			label[count++] = c;
		}
		if (p++ == end || count == 0 || count + 1 > at)
			return ROLL_ECORRUPT;
		at -= count + 1;
		wire[at] = (uint8_t)count;
		memcpy(wire + at + 1, label, count);
	}
	out->len = (uint8_t)(ROLL_NAME_MAX - at);
	memcpy(out->wire, wire + at, out->len);
	return ROLL_OK;
}

uint32_t roll_name_id(const struct roll_name *name)
{
	uint64_t hash = roll_hash64(name->wire, name->len);
	uint32_t id = (uint32_t)(hash ^ hash >> 32) & INT32_MAX;

	return id ? id : 1;
}
