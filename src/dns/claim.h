/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_DNS_CLAIM_H
#define ROLL_DNS_CLAIM_H

#include <stdint.h>

#include "dns/rrset.h"

/*
 * Claims at one owner name of one DNSZone: each is one object's RRset there (an object has one
 * type, so it claims a name at most once). Who serves is decided over all of them at once; nothing
 * else in the product decides it (design section 4).
 */
enum roll_verdict {
	ROLL_VERDICT_SERVED,
	ROLL_VERDICT_NOT_OWNER, /* an older object serves this name and type */
	ROLL_VERDICT_CONFLICT,	/* CNAME beside other data; `by` says which */
};
const char *roll_verdict_text(enum roll_verdict verdict); /* "Served", "NotOwner", "Conflict" */

#define ROLL_BY_NONE UINT32_MAX
#define ROLL_BY_ZONE (UINT32_MAX - 1) /* the zone's own apex SOA and NS */

struct roll_claim {
	struct roll_str object; /* namespace/name of the DNSRecordSet */
	struct roll_str uid;
	int64_t created_s; /* creationTimestamp; INT64_MAX if it has none: the youngest */
	struct roll_rrset rrset;
	/* Set by roll_claims_decide: */
	enum roll_verdict verdict;
	uint32_t by; /* index of the claim that serves instead, or ROLL_BY_... */
};

/* Age order: creationTimestamp, then namespace/name, then UID. */
int roll_claim_cmp(const struct roll_claim *a, const struct roll_claim *b);

/*
 * Sort claims (served ones first, each group by age) and set verdict and by. Going from the oldest
 * to the youngest, a claim serves unless a claim that serves already has its type (NotOwner), or
 * one of the two is a CNAME (Conflict; named is the oldest in the way). At the apex the zone itself
 * holds SOA and NS, so a CNAME there never serves.
 */
void roll_claims_decide(struct roll_claim *claims, size_t count, bool is_apex);

/*
 * Row value of a name in the view:
 *	u32 bytes of the served part (count and RRsets) | u16 served count | served RRsets
 *	u32 claim count | claims: u8 verdict | u32 by | i64 created | str16 object | str16 uid |
 *	                          RRset (only if not served; served ones are above, same order)
 * A lookup reads the first part and nothing else.
 */
void roll_claims_encode(const struct roll_claim *claims, size_t count, struct roll_buf *buf);
/* Array and rdata arrays in arena memory; strings borrowed from row. ECORRUPT on any oddity. */
enum roll_status roll_claims_decode(struct roll_str row, struct roll_arena *arena,
				    struct roll_claim **claims, size_t *count) ROLL_MUST_CHECK;
/* Reader over the served part only: *rrset_count RRsets follow in r. */
enum roll_status roll_claims_served(struct roll_str row, struct roll_reader *r,
				    uint16_t *rrset_count) ROLL_MUST_CHECK;

/* Serial arithmetic (RFC 1982): a is after b; the later of two; the successor (never 0). */
bool roll_serial_gt(uint32_t a, uint32_t b);
uint32_t roll_serial_later(uint32_t a, uint32_t b);
uint32_t roll_serial_next(uint32_t serial);

#endif
