/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SYNC_CENSUS_H
#define ROLL_SYNC_CENSUS_H

#include "app/loop.h"
#include "view/read.h"

/*
 * Counts what no commit counts, because a change of a class or a zone changes it for all names at
 * once: which zones are served and why others are not, and how many claims lost. The view is walked
 * in slices of a millisecond or two, so that a million names hold nothing up; a small view is
 * counted at once, half a second after a change.
 */
struct roll_census;

#define ROLL_ZONE_STATES ((size_t)ROLL_ZONE_UNCLAIMED + 1)

struct roll_census_counts {
	bool is_there;			  /* counted to the end, once at least */
	uint64_t generation;		  /* of the view when counting began */
	uint64_t zones[ROLL_ZONE_STATES]; /* DNSZones with a domain, by what became of them */
	/* Of zones that are served: */
	uint64_t names;
	uint64_t contested;			     /* names that somebody claims in vain */
	uint64_t claims[ROLL_VERDICT_CONFLICT + 1u]; /* by verdict */
};

/* NULL without memory. view must live as long, and have no open snapshot when the loop turns. */
struct roll_census *roll_census_new(struct roll_loop *loop, struct roll_view *view,
				    const struct roll_clock *clock);
void roll_census_free(struct roll_census *census);
/* The latest complete count. */
const struct roll_census_counts *roll_census_counts(const struct roll_census *census);

#endif
