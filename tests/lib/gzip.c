/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/gzip.h"

#define STORED_MAX 65535
/* The longest match there is, which goes into 13 bits with the fixed codes (RFC 1951, 3.2.6). */
#define MATCH_BYTES 258

struct packer {
	struct roll_buf *out;
	uint64_t bits;
	unsigned count;
	uint32_t crc;
	uint32_t size;
};

static void sum(struct packer *packer, unsigned char byte, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		packer->crc ^= byte;
		for (int bit = 0; bit < 8; bit++)
			packer->crc = packer->crc >> 1 ^ (packer->crc & 1 ? 0xedb88320 : 0);
	}
	packer->size += (uint32_t)count;
}

/* Lowest bit first. */
static void add_bits(struct packer *packer, uint64_t value, unsigned n)
{
	packer->bits |= value << packer->count;
	for (packer->count += n; packer->count >= 8; packer->count -= 8) {
		roll_buf_add_char(packer->out, (char)(packer->bits & 0xff));
		packer->bits >>= 8;
	}
}

/* Huffman codes go the other way round. */
static void add_code(struct packer *packer, unsigned code, unsigned n)
{
	while (n-- > 0)
		add_bits(packer, code >> n & 1, 1);
}

static void add_literal(struct packer *packer, unsigned char byte)
{
	if (byte < 144)
		add_code(packer, 0x30u + byte, 8);
	else
		add_code(packer, 0x190u + byte - 144, 9);
	sum(packer, byte, 1);
}

static void begin(struct packer *packer, struct roll_buf *out)
{
	static const char head[] = "\x1f\x8b\x08\0\0\0\0\0\0\xff";

	*packer = (struct packer){.out = out, .crc = 0xffffffff};
	roll_buf_add(out, head, sizeof head - 1);
}

static void end(struct packer *packer)
{
	if (packer->count)
		add_bits(packer, 0, 8 - packer->count);
	add_bits(packer, packer->crc ^ 0xffffffff, 32);
	add_bits(packer, packer->size, 32);
}

void gzip_stored(struct roll_buf *out, struct roll_str text)
{
	struct packer packer;
	size_t n;

	begin(&packer, out);
	for (size_t i = 0; i < text.n; i++)
		sum(&packer, (unsigned char)text.p[i], 1);
	do {
		n = text.n < STORED_MAX ? text.n : STORED_MAX;
		add_bits(&packer, n == text.n, 8); /* the last one? stored; padding */
		add_bits(&packer, n, 16);
		add_bits(&packer, n ^ 0xffff, 16);
		roll_buf_add(out, text.p, n);
		text = roll_str_n(text.p + n, text.n - n);
	} while (text.n);
	end(&packer);
}

void gzip_run(struct roll_buf *out, struct roll_str head, unsigned char byte, size_t count,
	      struct roll_str tail)
{
	struct packer packer;

	begin(&packer, out);
	add_bits(&packer, 3, 3); /* the last one; fixed codes */
	for (size_t i = 0; i < head.n; i++)
		add_literal(&packer, (unsigned char)head.p[i]);
	add_literal(&packer, byte);
	for (count--; count >= MATCH_BYTES; count -= MATCH_BYTES) {
		add_code(&packer, 0xc5, 8); /* 258 bytes, */
		add_code(&packer, 0, 5);    /* each as the one before it */
		sum(&packer, byte, MATCH_BYTES);
	}
	while (count-- > 0)
		add_literal(&packer, byte);
	for (size_t i = 0; i < tail.n; i++)
		add_literal(&packer, (unsigned char)tail.p[i]);
	add_code(&packer, 0, 7); /* the end */
	end(&packer);
}
