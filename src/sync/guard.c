/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/guard.h"

#define MASS_MIN \
	10 /* fewer objects than this are never a mass removal, unless they are all zones */

void roll_guard_init(struct roll_guard *guard, const struct roll_guard_conf *conf)
{
	*guard = (struct roll_guard){.conf = {0}};
	if (conf)
		guard->conf = *conf;
}

/* part / whole > percent / 100, without overflow for any counts. */
static bool is_above(uint64_t part, uint64_t whole, unsigned percent)
{
	if (part > UINT64_MAX / 100)
		return true;
	/* whole * percent may overflow only where part could not be above it. */
	if (whole > UINT64_MAX / 100)
		return false;
	return part * 100 > whole * percent;
}

static bool is_mass(const struct roll_guard_list *list)
{
	if (list->zones_present && list->zones_missing >= list->zones_present)
		return true;
	return list->missing >= MASS_MIN && is_above(list->missing, list->present, 50);
}

static void forget(struct roll_guard *guard)
{
	guard->is_pending = false;
}

enum roll_guard_verdict roll_guard_judge(struct roll_guard *guard,
					 const struct roll_guard_list *list)
{
	unsigned brake = guard->conf.brake_percent;

	/* Of another time, so it says nothing about a list that waits for confirmation either. */
	if (list->revision && list->revision < list->high_water)
		return ROLL_GUARD_OLD;
	if (brake && !list->is_approved && is_above(list->missing, list->present, brake)) {
		forget(guard);
		return ROLL_GUARD_BRAKE;
	}
	if (!is_mass(list)) {
		forget(guard);
		return ROLL_GUARD_PASS;
	}
	if (guard->is_pending && guard->pending_missing == list->missing &&
	    guard->pending_hash == list->missing_hash) {
		forget(guard);
		return ROLL_GUARD_PASS;
	}
	guard->is_pending = true;
	guard->pending_missing = list->missing;
	guard->pending_hash = list->missing_hash;
	return ROLL_GUARD_CONFIRM;
}

const char *roll_guard_text(enum roll_guard_verdict verdict)
{
	switch (verdict) {
	case ROLL_GUARD_PASS:
		return "passed";
	case ROLL_GUARD_CONFIRM:
		return "held until a second list confirms it";
	case ROLL_GUARD_BRAKE:
		return "held by the brake until approved";
	case ROLL_GUARD_OLD:
		return "older than what is known";
	}
	return "unknown";
}
