/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/rdata_build.h"

#include <arpa/inet.h>
#include <string.h>

/* The C library's parser is strict (no octal, hex or zone index), but wants a NUL at the end. */
static bool parse(int family, struct roll_str text, void *out)
{
	char c_string[INET6_ADDRSTRLEN];

	if (text.n >= sizeof c_string || (text.n && memchr(text.p, '\0', text.n)))
		return false;
	memcpy(c_string, text.n ? text.p : "", text.n);
	c_string[text.n] = '\0';
	return inet_pton(family, c_string, out) == 1;
}

bool roll_ipv4_parse(struct roll_str text, uint8_t out[4])
{
	return parse(AF_INET, text, out);
}

bool roll_ipv6_parse(struct roll_str text, uint8_t out[16])
{
	return parse(AF_INET6, text, out);
}

static char *put_ipv4(char *to, const uint8_t address[4])
{
	for (size_t i = 0; i < 4; i++) {
		unsigned byte = address[i];

		if (i)
			*to++ = '.';
		if (byte >= 100)
			*to++ = (char)('0' + byte / 100);
		if (byte >= 10)
			*to++ = (char)('0' + byte / 10 % 10);
		*to++ = (char)('0' + byte % 10);
	}
	return to;
}

void roll_ipv4_print(const uint8_t address[4], struct roll_buf *buf)
{
	char text[INET_ADDRSTRLEN];

	roll_buf_add(buf, text, (size_t)(put_ipv4(text, address) - text));
}

static char *put_group(char *to, unsigned group)
{
	bool has_digit = false;

	for (int shift = 12; shift >= 0; shift -= 4) {
		unsigned digit = group >> shift & 15;

		has_digit = has_digit || digit || shift == 0;
		if (has_digit)
			*to++ = "0123456789abcdef"[digit];
	}
	return to;
}

/* RFC 5952, 4.2: `::` is for the longest run of two or more zero groups, the first of equals. */
static void find_zero_run(const unsigned groups[8], unsigned *start, unsigned *length)
{
	*start = 8;
	*length = 1;
	for (unsigned i = 0; i < 8; i++) {
		unsigned end = i;

		while (end < 8 && groups[end] == 0)
			end++;
		if (end - i > *length) {
			*start = i;
			*length = end - i;
		}
	}
}

void roll_ipv6_print(const uint8_t address[16], struct roll_buf *buf)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	char text[INET6_ADDRSTRLEN], *to = text;
	unsigned groups[8], run, run_length;

	/* RFC 5952, 5: the one prefix that says that an IPv4 address is inside. */
	if (memcmp(address, mapped, sizeof mapped) == 0) {
		memcpy(to, "::ffff:", 7);
		to = put_ipv4(to + 7, address + 12);
		roll_buf_add(buf, text, (size_t)(to - text));
		return;
	}
	for (size_t i = 0; i < 8; i++)
		groups[i] = (unsigned)address[2 * i] << 8 | address[2 * i + 1];
	find_zero_run(groups, &run, &run_length);
	for (unsigned i = 0; i < 8; i++) {
		if (i == run) {
			*to++ = ':';
			i += run_length - 1;
			if (i == 7)
				*to++ = ':';
			continue;
		}
		if (i)
			*to++ = ':';
		to = put_group(to, groups[i]);
	}
	roll_buf_add(buf, text, (size_t)(to - text));
}
