/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_DNS_TYPE_H
#define ROLL_DNS_TYPE_H

#include <stdint.h>

#include "base/str.h"

/* The record types we serve, one table row each. Numbers: IANA; ALIAS is PowerDNS's private 65401.
 */
enum roll_type {
	ROLL_TYPE_ENT = 0, /* no type: marks an empty non-terminal, never stored */
	ROLL_TYPE_A = 1,
	ROLL_TYPE_NS = 2,
	ROLL_TYPE_CNAME = 5,
	ROLL_TYPE_SOA = 6,
	ROLL_TYPE_PTR = 12,
	ROLL_TYPE_MX = 15,
	ROLL_TYPE_TXT = 16,
	ROLL_TYPE_AAAA = 28,
	ROLL_TYPE_SRV = 33,
	ROLL_TYPE_TLSA = 52,
	ROLL_TYPE_SVCB = 64,
	ROLL_TYPE_HTTPS = 65,
	ROLL_TYPE_ANY = 255, /* in questions only */
	ROLL_TYPE_CAA = 257,
	ROLL_TYPE_ALIAS = 65401,
};

struct roll_type_info {
	uint16_t type;
	const char *name;  /* "HTTPS" */
	const char *field; /* member of an entry in a DNSRecordSet: "https" */
	bool is_singleton; /* one record per RRset: CNAME, ALIAS, SOA */
	bool is_apex_only; /* SOA */
};

#define ROLL_TYPE_COUNT 14
extern const struct roll_type_info roll_types[ROLL_TYPE_COUNT];

/* NULL if it is not one of the 14. Names are matched without regard to case. */
const struct roll_type_info *roll_type_find(uint16_t type);
const struct roll_type_info *roll_type_find_name(struct roll_str name);

#endif
