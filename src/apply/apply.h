/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_APPLY_APPLY_H
#define ROLL_APPLY_APPLY_H

#include <jansson.h>

#include "base/arena.h"
#include "model/object.h"
#include "view/write.h"

/*
 * Objects into the view: where model and view meet. Decides nothing about what proves what; it
 * makes the view hold exactly what an object means. Used by rollcall-sync for every change and by
 * `rollcall verify` to build what the view must hold.
 */
struct roll_apply; /* scratch memory, reused from call to call */

struct roll_apply *roll_apply_new(void);
void roll_apply_free(struct roll_apply *apply);

enum roll_apply_result {
	ROLL_APPLY_UNCHANGED, /* same identity, origin and spec as stored: nothing was written */
	ROLL_APPLY_CHANGED,
	ROLL_APPLY_ABSENT, /* terminating, so taken as absent */
	ROLL_APPLY_SLICED  /* a DNSZone with many waiting record sets: see roll_apply_slices */
};

/*
 * Findings from elsewhere (decoding, duplicate object) to be stored with the row. Their paths do
 * not begin with "spec": that is how they are told from those of the translation later.
 */
struct roll_apply_extra {
	enum roll_severity severity;
	enum roll_reason reason;
	struct roll_str path;
	struct roll_str text;
};

/*
 * Put one decoded object within txn. scope: where it comes from (manifest path), empty in cluster
 * mode. Errors of the transaction stick there as well.
 */
enum roll_status roll_apply_put(struct roll_apply *apply, struct roll_txn *txn,
				const struct roll_object *object, struct roll_str scope,
				const struct roll_apply_extra *extra, size_t extra_count,
				enum roll_apply_result *result) ROLL_MUST_CHECK;

/*
 * Would roll_apply_put find nothing to do? spec is that of the object, printed; object->spec is not
 * looked at. Nothing is written.
 */
enum roll_status roll_apply_is_unchanged(struct roll_apply *apply, struct roll_txn *txn,
					 const struct roll_object *object, struct roll_str spec,
					 struct roll_str scope,
					 const struct roll_apply_extra *extra, size_t extra_count,
					 bool *is_unchanged) ROLL_MUST_CHECK;

/*
 * Replace the extra findings of a stored object; its claims stay as they are. ENOENT: no such
 * object.
 */
enum roll_status roll_apply_extras(struct roll_apply *apply, struct roll_txn *txn,
				   enum roll_kind kind, struct roll_str key,
				   const struct roll_apply_extra *extra,
				   size_t extra_count) ROLL_MUST_CHECK;

/*
 * One more extra finding on a stored object; with is_only, it takes the place of those with the
 * same reason. ENOENT: no such object.
 */
enum roll_status roll_apply_add_extra(struct roll_apply *apply, struct roll_txn *txn,
				      enum roll_kind kind, struct roll_str key,
				      const struct roll_apply_extra *extra,
				      bool is_only) ROLL_MUST_CHECK;

/* The object is absent, by this evidence. ENOENT: it was not there. */
enum roll_status roll_apply_absent(struct roll_apply *apply, struct roll_txn *txn,
				   enum roll_kind kind, struct roll_str key, const char *evidence,
				   uint64_t revision) ROLL_MUST_CHECK;

/*
 * ROLL_APPLY_SLICED: the DNSZone was not put because more than ROLL_APPLY_SLICE record sets wait
 * for it. Call this with a writer that has no open transaction: it claims their names under a new
 * number in transactions of their own (no answer changes; growing the map as needed), and returns
 * the number, to be given to the next put of that zone through roll_apply_use_number. A DNSZone
 * that changes its domain ceases to be served under the old one in the first of these
 * transactions.
 */
#define ROLL_APPLY_SLICE 2000u
enum roll_status roll_apply_slices(struct roll_apply *apply, struct roll_writer *writer,
				   const struct roll_object *zone, uint32_t *number,
				   struct roll_err *err) ROLL_MUST_CHECK;
/* Until told otherwise; the empty key forgets it: to be done once the zone is committed. */
void roll_apply_use_number(struct roll_apply *apply, struct roll_str zone_key, uint32_t number);

/* Key as the view has it: "ns/name", classes "name". Valid until the next call with this apply. */
struct roll_str roll_apply_key(struct roll_apply *apply, const struct roll_object *object);

/*
 * By how much the calls since the last reset changed the numbers of stored findings, to be counted
 * once the transaction is committed.
 */
struct roll_apply_delta {
	int64_t faults;
	int64_t warnings;
	/* Of these, those that rows keep (ROLL_FINDINGS_KEPT of each), by severity and reason. */
	int64_t kept[2][ROLL_REASON_COUNT];
};
/* Count the findings of a row, sign times. */
void roll_apply_count(struct roll_apply_delta *delta, const struct roll_object_row *row,
		      int64_t sign);
struct roll_apply_delta roll_apply_take_delta(struct roll_apply *apply);

#endif
