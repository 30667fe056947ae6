/* SPDX-License-Identifier: Apache-2.0 */
#include "view/view.h"

/*
 * A list on its way: what has been read so far waits in the stage, in small commits, until the list
 * is complete and can be applied in one.
 */

void roll_txn_stage_clear(struct roll_txn *txn)
{
	int rc;

	if (!roll_txn_mutate(txn))
		return;
	rc = mdb_drop(txn->snap.at.txn, txn->snap.at.dbi[ROLL_TABLE_STAGE], 0);
	if (rc)
		roll_txn_fail(txn, roll_mdb_status(rc), "the stage");
}

void roll_txn_stage_put(struct roll_txn *txn, enum roll_row_kind kind, struct roll_str key,
			struct roll_str bytes)
{
	struct roll_key full = roll_key_object(kind, key);

	if (roll_txn_mutate(txn))
		roll_txn_store(txn, ROLL_TABLE_STAGE, &full, bytes);
}

enum roll_status roll_txn_stage_get(struct roll_txn *txn, enum roll_row_kind kind,
				    struct roll_str key, struct roll_str *bytes)
{
	struct roll_key full = roll_key_object(kind, key);

	return roll_txn_get(txn, ROLL_TABLE_STAGE, &full, bytes);
}

static enum roll_status hand_out(struct roll_txn *txn, const struct roll_walk *walk,
				 roll_on_staged on_staged, void *ctx)
{
	size_t n = walk->key.n;
	struct roll_buf copy;
	struct roll_str all;
	enum roll_status status;

	if (n < 1 || (uint8_t)walk->key.p[0] >= ROLL_ROW_KINDS)
		return ROLL_ECORRUPT;
	/* on_staged changes other tables, and pages move then. */
	copy = txn->copy;
	roll_buf_reset(&copy);
	roll_buf_add_str(&copy, walk->key);
	roll_buf_add_str(&copy, walk->value);
	all = roll_buf_str(&copy);
	roll_buf_init(&txn->copy, copy.limit_bytes);
	status = copy.status;
	if (!status)
		status = on_staged(ctx, (enum roll_row_kind)all.p[0], roll_str_n(all.p + 1, n - 1),
				   roll_str_n(all.p + n, all.n - n));
	roll_buf_fini(&txn->copy);
	txn->copy = copy;
	return status;
}

enum roll_status roll_txn_stage_walk(struct roll_txn *txn, roll_on_staged on_staged, void *ctx)
{
	struct roll_walk walk;
	enum roll_status status = txn->status;

	if (!status)
		status = roll_walk_begin(&walk, &txn->snap.at, ROLL_TABLE_STAGE);
	if (status)
		return status;
	for (status = roll_walk_seek(&walk, NULL); !status; status = roll_walk_next(&walk)) {
		status = hand_out(txn, &walk, on_staged, ctx);
		if (!status)
			status = txn->status;
		if (status)
			break;
	}
	/* ENOENT is the end of the table only where no callback said it. */
	if (status == ROLL_ENOENT && !txn->status)
		status = ROLL_OK;
	roll_walk_end(&walk);
	return status;
}

static enum roll_status show_unstaged(struct roll_txn *txn, enum roll_row_kind kind,
				      struct roll_str key, roll_on_key on_key, void *ctx)
{
	struct roll_str ignored;
	enum roll_status status = roll_txn_stage_get(txn, kind, key, &ignored);

	return status == ROLL_ENOENT ? on_key(ctx, kind, key) : status;
}

/* By the index: rows that have this scope. */
static enum roll_status unstaged_of_scope(struct roll_txn *txn, enum roll_row_kind kind,
					  struct roll_str scope, roll_on_key on_key, void *ctx)
{
	struct roll_key start = roll_key_byscope(scope, kind, roll_str_n(NULL, 0));
	struct roll_walk walk;
	enum roll_status status = roll_walk_begin(&walk, &txn->snap.at, ROLL_TABLE_BYSCOPE);

	if (status)
		return status;
	for (status = roll_walk_seek(&walk, &start); !status; status = roll_walk_next(&walk)) {
		struct roll_object_row row;
		struct roll_str key;

		if (!roll_str_has_prefix(walk.key, start.p, start.n))
			break;
		key = roll_str_n(walk.key.p + start.n, walk.key.n - start.n);
		status = roll_snap_object(&txn->snap, kind, key, &row);
		if (status == ROLL_ENOENT)
			status = ROLL_ECORRUPT;
		/* Two scopes may share a hash. */
		if (!status && roll_str_eq(row.scope, scope))
			status = show_unstaged(txn, kind, key, on_key, ctx);
		if (status)
			goto out;
	}
	status = status == ROLL_ENOENT ? ROLL_OK : status;
out:
	roll_walk_end(&walk);
	return status;
}

static enum roll_status unstaged_of_prefix(struct roll_txn *txn, enum roll_row_kind kind,
					   struct roll_str prefix, roll_on_key on_key, void *ctx)
{
	struct roll_key start = roll_key_object(kind, prefix);
	struct roll_walk walk;
	enum roll_status status = roll_walk_begin(&walk, &txn->snap.at, ROLL_TABLE_OBJECTS);

	if (status)
		return status;
	for (status = roll_walk_seek(&walk, &start); !status; status = roll_walk_next(&walk)) {
		if (!roll_str_has_prefix(walk.key, start.p, start.n))
			break;
		status = show_unstaged(txn, kind, roll_str_n(walk.key.p + 1, walk.key.n - 1),
				       on_key, ctx);
		if (status)
			goto out;
	}
	status = status == ROLL_ENOENT ? ROLL_OK : status;
out:
	roll_walk_end(&walk);
	return status;
}

enum roll_status roll_txn_unstaged(struct roll_txn *txn, enum roll_row_kind kind,
				   struct roll_str scope, struct roll_str key_prefix,
				   roll_on_key on_key, void *ctx)
{
	if (txn->status)
		return txn->status;
	return scope.n ? unstaged_of_scope(txn, kind, scope, on_key, ctx)
		       : unstaged_of_prefix(txn, kind, key_prefix, on_key, ctx);
}

/* Scopes of one hash: nearly always one. */
struct tally {
	struct roll_str scope;
	uint64_t objects;
};

#define TALLIES_MAX 64u

static void tell(struct tally *tallies, size_t *count,
		 void (*on_scope)(void *, struct roll_str, uint64_t), void *ctx)
{
	for (size_t i = 0; i < *count; i++)
		on_scope(ctx, tallies[i].scope, tallies[i].objects);
	*count = 0;
}

static enum roll_status tally(struct tally *tallies, size_t *count, struct roll_str scope)
{
	size_t i = 0;

	while (i < *count && !roll_str_eq(tallies[i].scope, scope))
		i++;
	if (i == TALLIES_MAX)
		return ROLL_ELIMIT;
	if (i == *count)
		tallies[(*count)++] = (struct tally){scope, 0};
	tallies[i].objects++;
	return ROLL_OK;
}

enum roll_status
roll_txn_scopes(struct roll_txn *txn,
		void (*on_scope)(void *ctx, struct roll_str scope, uint64_t objects), void *ctx)
{
	struct tally tallies[TALLIES_MAX];
	struct roll_walk walk;
	uint64_t hash = 0;
	size_t count = 0;
	enum roll_status status = txn->status;

	if (!status)
		status = roll_walk_begin(&walk, &txn->snap.at, ROLL_TABLE_BYSCOPE);
	if (status)
		return status;
	for (status = roll_walk_seek(&walk, NULL); !status; status = roll_walk_next(&walk)) {
		struct roll_object_row row;

		if (walk.key.n < 10 || (uint8_t)walk.key.p[8] >= ROLL_ROW_KINDS) {
			status = ROLL_ECORRUPT;
			break;
		}
		if (roll_key_u64(walk.key) != hash)
			tell(tallies, &count, on_scope, ctx);
		hash = roll_key_u64(walk.key);
		status = roll_snap_object(&txn->snap, (enum roll_row_kind)walk.key.p[8],
					  roll_str_n(walk.key.p + 9, walk.key.n - 9), &row);
		if (status == ROLL_ENOENT)
			status = ROLL_ECORRUPT;
		if (!status)
			status = tally(tallies, &count, row.scope);
		if (status)
			break;
	}
	roll_walk_end(&walk);
	if (status != ROLL_ENOENT)
		return status;
	tell(tallies, &count, on_scope, ctx);
	return ROLL_OK;
}
