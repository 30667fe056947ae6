/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_BASE_BIN_H
#define ROLL_BASE_BIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/*
 * Stored and hashed bytes: little-endian integers, length-prefixed strings, with bounds checks on
 * every read, also of bytes that we wrote ourselves. A failed read sticks in .failed and gives
 * zero or the empty slice from then on; callers check once.
 */

struct roll_reader {
	const uint8_t *p;
	const uint8_t *end;
	bool failed;
};

/* p may be NULL if n is 0, as in the empty slice. */
static inline struct roll_reader roll_reader_of(const void *p, size_t n)
{
	const uint8_t *from = n ? p : (const void *)"";

	return (struct roll_reader){from, from + n, false};
}

uint8_t roll_reader_u8(struct roll_reader *r);
uint16_t roll_reader_u16(struct roll_reader *r);
uint32_t roll_reader_u32(struct roll_reader *r);
uint64_t roll_reader_u64(struct roll_reader *r);
struct roll_str roll_reader_bytes(struct roll_reader *r, size_t n); /* borrowed */
struct roll_str roll_reader_str16(struct roll_reader *r);	    /* u16 length, bytes */
struct roll_str roll_reader_str32(struct roll_reader *r);	    /* u32 length, bytes */
bool roll_reader_done(const struct roll_reader *r); /* all read and nothing failed */

void roll_buf_put_u8(struct roll_buf *buf, uint8_t v);
void roll_buf_put_u16(struct roll_buf *buf, uint16_t v);
void roll_buf_put_u32(struct roll_buf *buf, uint32_t v);
void roll_buf_put_u64(struct roll_buf *buf, uint64_t v);
void roll_buf_put_str16(struct roll_buf *buf, struct roll_str s); /* ELIMIT over 65535 */
void roll_buf_put_str32(struct roll_buf *buf, struct roll_str s);

/* FNV-1a, 64 bits: stable across programs and versions (stored data depends on it). */
uint64_t roll_hash64(const void *p, size_t n);

#endif
