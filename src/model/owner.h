/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_MODEL_OWNER_H
#define ROLL_MODEL_OWNER_H

#include "dns/name.h"
#include "dns/rdata.h"

/*
 * Owner names as users write them in spec.records[].name, and domains of zones (rows O1 to O12 of
 * the conformance table).
 *
 * Only letters, digits and '-' '_' '/' may stand in a label, besides '*' as the whole leftmost one.
 * PowerDNS answers SERVFAIL for most other bytes without asking its backend (8bit-dns=no), so that
 * a record under such a name could never be had.
 */
enum roll_owner_form {
	ROLL_OWNER_APEX,     /* "@" or empty */
	ROLL_OWNER_RELATIVE, /* no final dot: below the zone's domain */
	ROLL_OWNER_ABSOLUTE, /* final dot */
};

struct roll_owner {
	enum roll_owner_form form;
	struct roll_name name; /* as written; the root for the apex */
};

/* What can be told without the zone. EINVAL: reported at at.path. */
enum roll_status roll_owner_parse(struct roll_check at, struct roll_str text,
				  struct roll_owner *out) ROLL_MUST_CHECK;

/* The whole name. EINVAL: outside the domain or too long, reported at at.path. */
enum roll_status roll_owner_qualify(struct roll_check at, const struct roll_owner *owner,
				    const struct roll_name *domain,
				    struct roll_name *out) ROLL_MUST_CHECK;

/* spec.domainName of a DNSZone: not the root, no wildcard; a final dot changes nothing. */
enum roll_status roll_owner_parse_domain(struct roll_check at, struct roll_str text,
					 struct roll_name *out) ROLL_MUST_CHECK;

#endif
