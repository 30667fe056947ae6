/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The builder of base/str.h. Without room for n more bytes and the NUL it fails, for good. */

static bool fail(struct roll_buf *buf, enum roll_status status)
{
	buf->status = status;
	return false;
}

static bool reserve(struct roll_buf *buf, size_t n)
{
	size_t room = buf->room ? buf->room : 32;
	size_t need;
	char *p;

	if (buf->status)
		return false;
	if (n > buf->limit_bytes - buf->n || __builtin_add_overflow(buf->n + 1, n, &need))
		return fail(buf, ROLL_ELIMIT);
	if (need <= buf->room)
		return true;
	while (room < need) {
		if (__builtin_mul_overflow(room, 2, &room))
			room = need;
	}
	if (room - 1 > buf->limit_bytes)
		room = buf->limit_bytes + 1;
	p = realloc(buf->p, room);
	if (!p)
		return fail(buf, ROLL_ENOMEM);
	buf->p = p;
	buf->room = room;
	buf->p[buf->n] = '\0';
	return true;
}

void roll_buf_init(struct roll_buf *buf, size_t limit_bytes)
{
	*buf = (struct roll_buf){.limit_bytes = limit_bytes};
}

void roll_buf_fini(struct roll_buf *buf)
{
	free(buf->p);
	roll_buf_init(buf, buf->limit_bytes);
}

void roll_buf_reset(struct roll_buf *buf)
{
	buf->status = ROLL_OK;
	roll_buf_truncate(buf, 0);
}

char *roll_buf_extend(struct roll_buf *buf, size_t n)
{
	char *added;

	if (!reserve(buf, n))
		return NULL;
	added = buf->p + buf->n;
	buf->n += n;
	buf->p[buf->n] = '\0';
	return added;
}

void roll_buf_truncate(struct roll_buf *buf, size_t n)
{
	assert(n <= buf->n);
	buf->n = n;
	if (buf->p)
		buf->p[n] = '\0';
}

void roll_buf_add(struct roll_buf *buf, const void *bytes, size_t n)
{
	char *added = roll_buf_extend(buf, n);

	if (added && n)
		memcpy(added, bytes, n);
}

void roll_buf_add_c(struct roll_buf *buf, const char *c_string)
{
	roll_buf_add(buf, c_string, strlen(c_string));
}

void roll_buf_add_str(struct roll_buf *buf, struct roll_str s)
{
	roll_buf_add(buf, s.p, s.n);
}

void roll_buf_add_char(struct roll_buf *buf, char c)
{
	roll_buf_add(buf, &c, 1);
}

void roll_buf_add_u64(struct roll_buf *buf, uint64_t value)
{
	char digits[20];
	size_t at = sizeof digits;

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	roll_buf_add(buf, digits + at, sizeof digits - at);
}

void roll_buf_printf(struct roll_buf *buf, const char *fmt, ...)
{
	va_list args;
	int n;

	if (!reserve(buf, 0))
		return;
	/* Most texts fit into the room at hand; the others are measured by the same call. */
	va_start(args, fmt);
	n = vsnprintf(buf->p + buf->n, buf->room - buf->n, fmt, args);
	va_end(args);
	if (n >= 0 && (size_t)n >= buf->room - buf->n) {
		if (reserve(buf, (size_t)n)) {
			va_start(args, fmt);
			n = vsnprintf(buf->p + buf->n, buf->room - buf->n, fmt, args);
			va_end(args);
		}
	} else if (n >= 0 && (size_t)n > buf->limit_bytes - buf->n) {
		fail(buf, ROLL_ELIMIT);
	}
	if (n < 0)
		fail(buf, ROLL_EINVAL);
	if (!buf->status)
		buf->n += (size_t)n;
	buf->p[buf->n] = '\0';
}

struct roll_str roll_buf_str(const struct roll_buf *buf)
{
	return roll_str_n(buf->p ? buf->p : "", buf->n);
}

static const char hex_digits[] = "0123456789abcdef";

static bool is_plain_json(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

static void add_json_escape(struct roll_buf *buf, unsigned char c)
{
	char escape[] = {'\\', 'u', '0', '0', hex_digits[c >> 4], hex_digits[c & 15]};

	switch (c) {
	case '"':
		roll_buf_add(buf, "\\\"", 2);
		break;
	case '\\':
		roll_buf_add(buf, "\\\\", 2);
		break;
	case '\n':
		roll_buf_add(buf, "\\n", 2);
		break;
	case '\r':
		roll_buf_add(buf, "\\r", 2);
		break;
	case '\t':
		roll_buf_add(buf, "\\t", 2);
		break;
	default:
		roll_buf_add(buf, escape, sizeof escape);
	}
}

void roll_buf_add_json(struct roll_buf *buf, struct roll_str s)
{
	size_t i = 0;

	while (i < s.n) {
		size_t from = i, n;

		while (i < s.n && is_plain_json((unsigned char)s.p[i]))
			i++;
		if (i > from)
			roll_buf_add(buf, s.p + from, i - from);
		if (i == s.n)
			break;
		n = roll_str_utf8_len(roll_str_n(s.p + i, s.n - i));
		if (n > 1)
			roll_buf_add(buf, s.p + i, n);
		else
			add_json_escape(buf, (unsigned char)s.p[i]);
		i += n ? n : 1;
	}
}

void roll_buf_add_json_str(struct roll_buf *buf, struct roll_str s)
{
	roll_buf_add_char(buf, '"');
	roll_buf_add_json(buf, s);
	roll_buf_add_char(buf, '"');
}

/*
 * Characters that a terminal or an editor obeys instead of showing them: C0, DEL and C1 controls,
 * line separators, and the invisible and direction marks that can make a line read as another.
 */
static bool is_shown(const unsigned char *p, size_t n)
{
	unsigned code;

	if (n == 1)
		return p[0] >= 0x20 && p[0] != 0x7f && p[0] != '"' && p[0] != '\\';
	if (n == 2)
		return !(p[0] == 0xc2 && p[1] < 0xa0);
	if (n == 3) {
		code = (p[0] & 0x0fU) << 12 | (p[1] & 0x3fU) << 6 | (p[2] & 0x3fU);
		return !(code >= 0x200b && code <= 0x200f) && !(code >= 0x2028 && code <= 0x202e) &&
		       !(code >= 0x2060 && code <= 0x206f) && code != 0xfeff;
	}
	return n == 4;
}

#define SHOWN_MAX 12 /* three bytes of one character, each as \xNN */

/* Print the first character of s; *taken bytes of s were used. */
static size_t show_one(struct roll_str s, char out[SHOWN_MAX], size_t *taken)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t n = roll_str_utf8_len(s), used = 0;

	*taken = n ? n : 1;
	if (is_shown(p, n)) {
		memcpy(out, p, n);
		return n;
	}
	for (size_t i = 0; i < *taken; i++) {
		out[used++] = '\\';
		out[used++] = 'x';
		out[used++] = hex_digits[p[i] >> 4];
		out[used++] = hex_digits[p[i] & 15];
	}
	return used;
}

void roll_buf_add_shown(struct roll_buf *buf, struct roll_str s, size_t max_bytes)
{
	char one[SHOWN_MAX];
	size_t i = 0, taken;

	while (i < s.n) {
		size_t used = show_one(roll_str_n(s.p + i, s.n - i), one, &taken);

		if (taken > max_bytes - i) {
			roll_buf_add(buf, "...", 3);
			return;
		}
		roll_buf_add(buf, one, used);
		i += taken;
	}
}

const char *roll_str_show(struct roll_str s, char *out, size_t out_size)
{
	char one[SHOWN_MAX];
	size_t used = 0, cut = 0, taken;

	if (out_size == 0)
		return "";
	for (size_t i = 0; i < s.n; i += taken) {
		size_t n = show_one(roll_str_n(s.p + i, s.n - i), one, &taken);

		if (n >= out_size - used) {
			/* The last border after which the dots and the NUL still fit. */
			used = out_size > 3 ? cut : 0;
			for (size_t dots = 3; dots && used < out_size - 1; dots--)
				out[used++] = '.';
			break;
		}
		memcpy(out + used, one, n);
		used += n;
		if (used + 3 < out_size)
			cut = used;
	}
	out[used] = '\0';
	return out;
}
