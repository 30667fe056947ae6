/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SYNC_REPORT_H
#define ROLL_SYNC_REPORT_H

#include <jansson.h>

#include "model/object.h"
#include "view/read.h"

/*
 * The status of one object, from the claims that decide the answers. Pure: a snapshot and a row in,
 * JSON out.
 *
 * What an object's status should say is made without times and generation, and then merged with the
 * status that the object has: conditions of others stay, lastTransitionTime moves only when a
 * condition's status does (Kubernetes API conventions, "Typical status properties").
 */

/* More names than this in one DNSRecordSet: those that are not served, then the first others. */
#define ROLL_REPORT_NAMES_MAX 1000u

/* *out is a new reference. */
enum roll_status roll_report_recordset(struct roll_snap *snap, const struct roll_object_row *row,
				       json_t **out) ROLL_MUST_CHECK;
/* record_count: records of all record sets that refer to the DNSZone. */
enum roll_status roll_report_zone(struct roll_snap *snap, const struct roll_object_row *row,
				  uint64_t record_count, json_t **out) ROLL_MUST_CHECK;

/*
 * A merge patch (RFC 7396) that makes `present` (NULL: no status yet) say `wanted` about that
 * generation; *out is NULL if it does already.
 */
enum roll_status roll_report_merge(const json_t *wanted, const json_t *present, int64_t generation,
				   int64_t now_s, json_t **out) ROLL_MUST_CHECK;

/* A member of a condition, as "status" or "message"; empty if there is no such condition. */
struct roll_str roll_report_condition(const json_t *status, const char *type, const char *member);

/* The reason of the event (sync/events.h) about this change of a status; NULL: it is no news. */
const char *roll_report_event(enum roll_kind kind, const json_t *before, const json_t *now);

/*
 * The zone is of another controller's class: its objects are that one's to report about. Our word
 * counts only as long as nobody else has spoken: while `present` is unset, Unknown, or this very
 * message, or one about another class controller. One like ours from another controller says as
 * much.
 */
bool roll_report_is_foreign(const json_t *wanted);
bool roll_report_may_overwrite(const json_t *wanted, const json_t *present);

#endif
