/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_APPLY_APPLY_STATE_H
#define ROLL_APPLY_APPLY_STATE_H

#include "apply/apply.h"
#include "apply/found.h"

/*
 * What the files of applying share; nobody else includes it.
 *
 *	apply.c	  one object: put it, touch it, it is absent
 *	waiting.c record sets that wait for their DNSZone, and get their claims with it
 *	found.c	  findings of one object
 */

#define ROLL_APPLY_KEY_BYTES 1024

struct roll_apply {
	struct roll_arena arena;  /* of one call: what is kept of rows about to be replaced */
	struct roll_arena row;	  /* of one stored record set, put again */
	struct roll_arena object; /* of one object's translation */
	struct roll_buf key;
	struct roll_buf zone_key;
	struct roll_buf spec;
	struct roll_buf servers;
	struct roll_found found;
	struct roll_apply_delta delta;
	/* See roll_apply_use_number. */
	struct roll_buf prepared_key;
	uint32_t prepared;
};

/* --- apply.c --- */

/* The stored row, borrowed. ENOENT if there is none. */
enum roll_status roll_apply_stored_row(struct roll_txn *txn, enum roll_row_kind kind,
				       struct roll_str key,
				       struct roll_object_row *out) ROLL_MUST_CHECK;
/* What the row borrows moves to the arena, because the map may change under it. */
enum roll_status roll_apply_keep_row(struct roll_arena *arena,
				     struct roll_object_row *row) ROLL_MUST_CHECK;
void roll_apply_count_row(struct roll_apply *apply, const struct roll_object_row *row,
			  int64_t sign);
/*
 * Translate spec for the zone it is in (domain NULL: not there) and put row with what that gives;
 * apply->found holds the extra findings already.
 */
enum roll_status roll_apply_put_recordset(struct roll_apply *apply, struct roll_txn *txn,
					  struct roll_object_row *row, const json_t *spec,
					  uint32_t number,
					  const struct roll_name *domain) ROLL_MUST_CHECK;

/* --- waiting.c --- */

/* The number for a zone whose domain it does not have yet. 0: too many wait for it. */
enum roll_status roll_apply_new_number(struct roll_apply *apply, struct roll_txn *txn,
				       struct roll_str key, const struct roll_name *domain,
				       uint32_t *number) ROLL_MUST_CHECK;

#endif
