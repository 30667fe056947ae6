/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SYNC_TOUR_H
#define ROLL_SYNC_TOUR_H

#include "view/read.h"

/*
 * A walk over all domains and, below each that is served, all names, which may be left at any row
 * and gone on with later, in another snapshot. What changed meanwhile behind it is missed, as in
 * any count of things that move.
 */
struct roll_tour {
	bool is_begun;
	bool is_in_zone; /* names of `domain` after `name` are next; else domains after `domain` */
	struct roll_name domain;
	bool has_name;
	struct roll_name name;
};

struct roll_tour_hooks {
	/* Either may be NULL. ROLL_ECANCELED leaves the tour after this row; it is passed on. */
	enum roll_status (*on_domain)(void *ctx, struct roll_snap *snap,
				      const struct roll_domain *domain);
	enum roll_status (*on_name)(void *ctx, const struct roll_name *domain,
				    const struct roll_name *owner, const struct roll_claim *claims,
				    size_t count);
	void *ctx;
};

/* ROLL_OK: that was the end, and the next one begins anew. */
enum roll_status roll_tour_go(struct roll_tour *tour, struct roll_snap *snap,
			      const struct roll_tour_hooks *hooks) ROLL_MUST_CHECK;

#endif
