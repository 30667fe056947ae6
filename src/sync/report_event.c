/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/events.h"
#include "sync/report_state.h"

/* Which changes of a status are news to whoever looks at the events of the object. */

static struct roll_str programmed(const json_t *status, const char *member)
{
	return roll_report_condition(status, "Programmed", member);
}

const char *roll_report_event(enum roll_kind kind, const json_t *before, const json_t *now)
{
	bool is_zone = kind == ROLL_KIND_ZONE;
	bool is_programmed = roll_str_eq_c(programmed(now, "status"), "True");
	struct roll_str reason = programmed(now, "reason");

	if (!programmed(now, "status").n)
		return NULL;
	/* A new message alone is no news, */
	if (roll_str_eq(programmed(now, "status"), programmed(before, "status")) &&
	    (is_programmed || roll_str_eq(reason, programmed(before, "reason"))))
		return NULL;
	/* nor is one that was not served, and waits. */
	if (!is_programmed && !roll_str_eq_c(programmed(before, "status"), "True") &&
	    roll_str_eq_c(reason, "Pending"))
		return NULL;
	if (is_programmed)
		return is_zone ? ROLL_EVENT_ZONE_PROGRAMMED : ROLL_EVENT_RECORDSET_PROGRAMMED;
	if (roll_str_eq_c(reason, "Conflict") || roll_str_eq_c(reason, "NotOwner"))
		return ROLL_EVENT_CONFLICT;
	if (roll_str_eq_c(reason, "DNSZoneInUse"))
		return ROLL_EVENT_ZONE_IN_USE;
	return is_zone ? ROLL_EVENT_ZONE_FAILED : ROLL_EVENT_RECORDSET_FAILED;
}
