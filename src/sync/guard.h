/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SYNC_GUARD_H
#define ROLL_SYNC_GUARD_H

#include <stdint.h>

#include "base/str.h"

/*
 * What a complete list may remove (design section 5). Pure: counts in, verdict out.
 *
 * A list that would drop every DNSZone, or more than half of the objects (and at least 10), must be
 * confirmed by a second complete list; with a brake, a list that would drop more than that
 * percentage is held until approved. A list older than the revision high-water mark never counts.
 */
struct roll_guard_conf {
	unsigned brake_percent; /* 0: off */
};

struct roll_guard_list {
	uint64_t revision;	/* 0: the source has none */
	uint64_t high_water;	/* of the view when the list was asked for */
	uint64_t present;	/* objects the view holds of the listed scopes */
	uint64_t missing;	/* of these, not in the list */
	uint64_t zones_present; /* DNSZones among them */
	uint64_t zones_missing;
	uint64_t missing_hash; /* of the missing keys: a second list confirms the same removals only
				*/
	bool is_approved;      /* by the operator, for a brake */
};

enum roll_guard_verdict {
	ROLL_GUARD_PASS,
	ROLL_GUARD_CONFIRM, /* hold; pass if the next list lacks the same objects */
	ROLL_GUARD_BRAKE,   /* hold until approved */
	ROLL_GUARD_OLD	    /* forget the list */
};

struct roll_guard {
	struct roll_guard_conf conf;
	bool is_pending; /* one list of those that may confirm each other was seen */
	uint64_t pending_missing;
	uint64_t pending_hash;
};

/* conf may be NULL: no brake. */
void roll_guard_init(struct roll_guard *guard, const struct roll_guard_conf *conf);
enum roll_guard_verdict roll_guard_judge(struct roll_guard *guard,
					 const struct roll_guard_list *list);
const char *roll_guard_text(enum roll_guard_verdict verdict);

#endif
