/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/tour.h"

#include <string.h>

struct walk {
	struct roll_tour *tour;
	struct roll_snap *snap;
	const struct roll_tour_hooks *hooks;
};

static enum roll_status on_name(void *ctx, const struct roll_name *owner,
				const struct roll_claim *claims, size_t count)
{
	struct walk *walk = ctx;
	const struct roll_tour_hooks *hooks = walk->hooks;

	walk->tour->has_name = true;
	walk->tour->name = *owner;
	return hooks->on_name(hooks->ctx, &walk->tour->domain, owner, claims, count);
}

static enum roll_status walk_zone(struct walk *walk, const struct roll_zone *zone)
{
	struct roll_tour *tour = walk->tour;
	enum roll_status status = ROLL_OK;

	if (walk->hooks->on_name)
		status = roll_snap_claims_after(walk->snap, zone->number, &tour->domain,
						tour->has_name ? &tour->name : NULL, on_name, walk);
	if (!status)
		tour->is_in_zone = tour->has_name = false;
	return status;
}

static enum roll_status on_domain(void *ctx, const struct roll_domain *domain)
{
	struct walk *walk = ctx;
	struct roll_tour *tour = walk->tour;
	const struct roll_tour_hooks *hooks = walk->hooks;
	enum roll_status status = ROLL_OK;

	tour->is_begun = true;
	tour->domain = domain->name;
	tour->is_in_zone = domain->zone != NULL;
	tour->has_name = false;
	if (hooks->on_domain)
		status = hooks->on_domain(hooks->ctx, walk->snap, domain);
	if (!status && domain->zone)
		status = walk_zone(walk, domain->zone);
	return status;
}

/* The zone in which the tour was left may be gone, or not served any more. */
static enum roll_status resume_zone(struct walk *walk)
{
	struct roll_tour *tour = walk->tour;
	const struct roll_zone *zone = NULL;
	enum roll_status status = roll_snap_zone_at(walk->snap, &tour->domain, &zone);

	if (status == ROLL_ENOENT) {
		tour->is_in_zone = tour->has_name = false;
		return ROLL_OK;
	}
	return status ? status : walk_zone(walk, zone);
}

enum roll_status roll_tour_go(struct roll_tour *tour, struct roll_snap *snap,
			      const struct roll_tour_hooks *hooks)
{
	struct walk walk = {tour, snap, hooks};
	enum roll_status status = ROLL_OK;

	if (tour->is_begun && tour->is_in_zone)
		status = resume_zone(&walk);
	if (!status)
		status = roll_snap_domains_after(snap, tour->is_begun ? &tour->domain : NULL,
						 on_domain, &walk);
	if (!status)
		memset(tour, 0, sizeof *tour);
	return status;
}
