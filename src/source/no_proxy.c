/* SPDX-License-Identifier: Apache-2.0 */
#include "source/no_proxy.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

struct address {
	int family;
	unsigned bits;
	unsigned char bytes[16];
};

/* "192.0.2.1", "2001:db8::1", "[2001:db8::1]" */
static bool parse_address(struct roll_str text, struct address *out)
{
	char copy[INET6_ADDRSTRLEN];

	if (text.n >= 2 && text.p[0] == '[' && text.p[text.n - 1] == ']')
		text = roll_str_n(text.p + 1, text.n - 2);
	if (text.n >= sizeof copy)
		return false;
	snprintf(copy, sizeof copy, ROLL_STR_FMT, ROLL_STR_ARG(text));
	*out = (struct address){.family = AF_INET, .bits = 32};
	if (inet_pton(AF_INET, copy, out->bytes) == 1)
		return true;
	*out = (struct address){.family = AF_INET6, .bits = 128};
	return inet_pton(AF_INET6, copy, out->bytes) == 1;
}

static bool is_within(struct roll_str entry, const struct address *host)
{
	struct roll_str text = roll_str_cut(&entry, '/');
	struct address network;
	uint32_t bits;

	if (!parse_address(text, &network) || network.family != host->family)
		return false;
	bits = network.bits;
	if (entry.n && roll_str_u32(entry, network.bits, &bits))
		return false;
	for (uint32_t i = 0; i < bits; i++) {
		if ((network.bytes[i / 8] ^ host->bytes[i / 8]) & 0x80 >> i % 8)
			return false;
	}
	return true;
}

static bool is_below(struct roll_str domain, struct roll_str host)
{
	struct roll_str tail;

	if (domain.n && domain.p[0] == '.')
		domain = roll_str_n(domain.p + 1, domain.n - 1);
	if (domain.n == 0 || domain.n > host.n)
		return false;
	tail = roll_str_n(host.p + host.n - domain.n, domain.n);
	return roll_str_eq_nocase(tail, domain) && (tail.p == host.p || tail.p[-1] == '.');
}

bool roll_no_proxy_has(struct roll_str list, struct roll_str host)
{
	struct address address;
	bool is_address = parse_address(host, &address);

	for (size_t n; list.n; list = roll_str_n(list.p + n, list.n - n)) {
		struct roll_str entry;

		for (n = 0; n < list.n && !strchr(", \t", list.p[n]); n++)
			;
		entry = roll_str_n(list.p, n);
		n += n < list.n; /* what separates it from the next */
		if (roll_str_eq_c(entry, "*") ||
		    (is_address ? is_within(entry, &address) : is_below(entry, host)))
			return true;
	}
	return false;
}
