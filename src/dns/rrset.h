/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_DNS_RRSET_H
#define ROLL_DNS_RRSET_H

#include <stdint.h>

#include "base/arena.h"
#include "base/bin.h"
#include "dns/rdata.h"

/*
 * An RRset without its owner: type, TTL and rdata in wire form, duplicates removed (RFC 2181, 5),
 * order as first seen.
 *
 * As bytes (stored in the view, compared to tell a change):
 *	u16 type | u8 has_ttl | u32 ttl | u32 count | count x (u16 length, rdata)
 */
#define ROLL_TTL_MAX 2147483647u /* RFC 2181, 8 */
#define ROLL_TTL_DEFAULT 300u

struct roll_rrset {
	uint16_t type;
	bool has_ttl; /* false: the zone's default, settled when read */
	uint32_t ttl; /* seconds; 0 unless has_ttl */
	uint32_t count;
	uint32_t room;
	struct roll_str *rdata; /* arena memory */
	uint32_t *index;	/* arena memory: roll_rrset_add's own */
};

void roll_rrset_init(struct roll_rrset *rrset, uint16_t type);
/*
 * EEXIST if the same wire form is there already (a duplicate: not added). Memory from arena; the
 * rdata is copied. Sets above a few records are hashed, so that a million entries stay linear;
 * pass the same arena every time.
 */
enum roll_status roll_rrset_add(struct roll_rrset *rrset, struct roll_str rdata,
				struct roll_arena *arena) ROLL_MUST_CHECK;

void roll_rrset_encode(const struct roll_rrset *rrset, struct roll_buf *buf);
/* How many bytes that appends. */
size_t roll_rrset_encoded_size(const struct roll_rrset *rrset);

/* Walking encoded RRsets without allocating: one header, then `count` rdata slices (borrowed). */
struct roll_rrset_head {
	uint16_t type;
	bool has_ttl;
	uint32_t ttl;
	uint32_t count;
};
struct roll_rrset_head roll_rrset_decode_head(struct roll_reader *r);
struct roll_str roll_rrset_decode_rdata(struct roll_reader *r);
/* A whole one with its rdata array in arena memory, the bytes borrowed from the reader's. */
enum roll_status roll_rrset_decode(struct roll_reader *r, struct roll_arena *arena,
				   struct roll_rrset *out) ROLL_MUST_CHECK;

#endif
