/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bin.h"

static const uint8_t *take(struct roll_reader *r, size_t n)
{
	const uint8_t *p = r->p;

	if (r->failed || n > (size_t)(r->end - r->p)) {
		r->failed = true;
		return NULL;
	}
	r->p += n;
	return p;
}

static uint64_t take_int(struct roll_reader *r, size_t n)
{
	const uint8_t *p = take(r, n);
	uint64_t v = 0;

	for (size_t i = p ? n : 0; i > 0; i--)
		v = v << 8 | p[i - 1];
	return v;
}

uint8_t roll_reader_u8(struct roll_reader *r)
{
	return (uint8_t)take_int(r, 1);
}

uint16_t roll_reader_u16(struct roll_reader *r)
{
	return (uint16_t)take_int(r, 2);
}

uint32_t roll_reader_u32(struct roll_reader *r)
{
	return (uint32_t)take_int(r, 4);
}

uint64_t roll_reader_u64(struct roll_reader *r)
{
	return take_int(r, 8);
}

struct roll_str roll_reader_bytes(struct roll_reader *r, size_t n)
{
	const uint8_t *p = n ? take(r, n) : NULL;

	return p ? roll_str_n((const char *)p, n) : roll_str_n("", 0);
}

struct roll_str roll_reader_str16(struct roll_reader *r)
{
	return roll_reader_bytes(r, roll_reader_u16(r));
}

struct roll_str roll_reader_str32(struct roll_reader *r)
{
	return roll_reader_bytes(r, roll_reader_u32(r));
}

bool roll_reader_done(const struct roll_reader *r)
{
	return !r->failed && r->p == r->end;
}

static void put_int(struct roll_buf *buf, uint64_t v, size_t n)
{
	char *p = roll_buf_extend(buf, n);

	for (size_t i = 0; p && i < n; i++)
		p[i] = (char)(v >> (8 * i) & 0xff);
}

void roll_buf_put_u8(struct roll_buf *buf, uint8_t v)
{
	put_int(buf, v, 1);
}

void roll_buf_put_u16(struct roll_buf *buf, uint16_t v)
{
	put_int(buf, v, 2);
}

void roll_buf_put_u32(struct roll_buf *buf, uint32_t v)
{
	put_int(buf, v, 4);
}

void roll_buf_put_u64(struct roll_buf *buf, uint64_t v)
{
	put_int(buf, v, 8);
}

static void put_str(struct roll_buf *buf, struct roll_str s, uint64_t max, size_t length_bytes)
{
	if (s.n > max) {
		if (!buf->status)
			buf->status = ROLL_ELIMIT;
		return;
	}
	put_int(buf, s.n, length_bytes);
	roll_buf_add_str(buf, s);
}

void roll_buf_put_str16(struct roll_buf *buf, struct roll_str s)
{
	put_str(buf, s, UINT16_MAX, 2);
}

void roll_buf_put_str32(struct roll_buf *buf, struct roll_str s)
{
	put_str(buf, s, UINT32_MAX, 4);
}

uint64_t roll_hash64(const void *p, size_t n)
{
	const uint8_t *bytes = p;
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3;
	return hash;
}
