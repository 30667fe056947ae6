/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "view/view.h"

/*
 * One write transaction: begin, commit, the head and the positions, and the sweep of rows that
 * belong to nobody any more. The first error sticks; from then on nothing is written.
 */

#define OP_LIMIT ((size_t)512 << 20)
#define ROW_LIMIT ((size_t)256 << 20)

enum roll_status roll_txn_init(struct roll_txn *txn, struct roll_writer *writer)
{
	memset(txn, 0, sizeof *txn);
	txn->writer = writer;
	roll_arena_init(&txn->op, OP_LIMIT);
	roll_arena_init(&txn->work, OP_LIMIT);
	roll_buf_init(&txn->head_bytes, ROW_LIMIT);
	roll_buf_init(&txn->source, ROW_LIMIT);
	roll_buf_init(&txn->row, ROW_LIMIT);
	roll_buf_init(&txn->old, ROW_LIMIT);
	roll_buf_init(&txn->names, ROW_LIMIT);
	roll_buf_init(&txn->value, ROW_LIMIT);
	roll_buf_init(&txn->copy, ROW_LIMIT);
	txn->changes.names_complete = true;
	return roll_snap_init(&txn->snap);
}

void roll_txn_fini(struct roll_txn *txn)
{
	roll_txn_abort(txn);
	roll_snap_fini(&txn->snap);
	roll_arena_fini(&txn->op);
	roll_arena_fini(&txn->work);
	roll_buf_fini(&txn->head_bytes);
	roll_buf_fini(&txn->source);
	roll_buf_fini(&txn->row);
	roll_buf_fini(&txn->old);
	roll_buf_fini(&txn->names);
	roll_buf_fini(&txn->value);
	roll_buf_fini(&txn->copy);
	roll_name_set_fini(&txn->changed_names);
	roll_name_set_fini(&txn->changed_domains);
	roll_name_set_fini(&txn->changed_zones);
}

enum roll_status roll_txn_fail(struct roll_txn *txn, enum roll_status status, const char *what)
{
	if (status && !txn->status) {
		txn->status = status;
		roll_err_set(&txn->err, status, txn->writer->dir, "%s: %s", what,
			     roll_status_text(status));
	}
	return txn->status;
}

static void fail_mdb(struct roll_txn *txn, int rc, enum roll_table table)
{
	if (!txn->status) {
		txn->status = roll_mdb_status(rc);
		roll_err_set(&txn->err, txn->status, txn->writer->dir,
			     "table %s cannot be changed: %s", roll_table_names[table],
			     mdb_strerror(rc));
	}
}

bool roll_txn_mutate(struct roll_txn *txn)
{
	if (txn->status)
		return false;
	if (!txn->is_open) {
		roll_txn_fail(txn, ROLL_EINVAL, "the transaction is over");
		return false;
	}
	txn->is_dirty = true;
	roll_snap_turn(&txn->snap, false);
	return true;
}

void roll_txn_store(struct roll_txn *txn, enum roll_table table, const struct roll_key *key,
		    struct roll_str value)
{
	MDB_val k = {key->n, (void *)(uintptr_t)key->p};
	MDB_val v = {value.n, (void *)(uintptr_t)value.p};
	int rc;

	if (txn->status)
		return;
	rc = mdb_put(txn->snap.at.txn, txn->snap.at.dbi[table], &k, &v, 0);
	if (rc)
		fail_mdb(txn, rc, table);
}

void roll_txn_erase(struct roll_txn *txn, enum roll_table table, const struct roll_key *key)
{
	MDB_val k = {key->n, (void *)(uintptr_t)key->p};
	int rc;

	if (txn->status || key->n == 0)
		return;
	rc = mdb_del(txn->snap.at.txn, txn->snap.at.dbi[table], &k, NULL);
	if (rc && rc != MDB_NOTFOUND)
		fail_mdb(txn, rc, table);
}

enum roll_status roll_txn_get(struct roll_txn *txn, enum roll_table table,
			      const struct roll_key *key, struct roll_str *out)
{
	enum roll_status status = txn->status;

	if (!status)
		status = roll_at_get(&txn->snap.at, table, key, out);
	if (status && status != ROLL_ENOENT)
		roll_txn_fail(txn, status, roll_table_names[table]);
	return status;
}

/* The head's strings live in buffers of the transaction, not in pages that come and go. */
static enum roll_status load_head(struct roll_txn *txn)
{
	struct roll_key key = roll_key_of("head");
	struct roll_str bytes;
	enum roll_status status = roll_at_get(&txn->snap.at, ROLL_TABLE_META, &key, &bytes);

	if (status)
		return status == ROLL_ENOENT ? ROLL_ECORRUPT : status;
	roll_buf_reset(&txn->head_bytes);
	roll_buf_add_str(&txn->head_bytes, bytes);
	if (txn->head_bytes.status)
		return txn->head_bytes.status;
	return roll_head_decode(roll_buf_str(&txn->head_bytes), &txn->head);
}

/* LMDB's transaction on the view that is written, opened again or grown if that is needed. */
static enum roll_status begin_mdb(struct roll_writer *writer, struct roll_env **env, MDB_txn **out,
				  struct roll_err *err)
{
	enum roll_status status = ROLL_OK;
	int rc;

	/* There is none only after one could not be opened again. */
	if (!writer->next && !writer->current)
		status = roll_writer_reopen(writer, err);
	if (status)
		return status;
	*env = writer->next ? writer->next : writer->current;
	/* Ahead of need, so that EFULL is left to transactions of half the map. */
	if (roll_env_is_crowded(*env) && !roll_view_is_reading(writer->view))
		status = roll_writer_grow(writer, err);
	if (status)
		return status;
	rc = mdb_txn_begin((*env)->mdb, NULL, 0, out);
	if (rc == MDB_PANIC) {
		status = roll_writer_reopen(writer, err);
		if (status)
			return status;
		*env = writer->current;
		rc = mdb_txn_begin((*env)->mdb, NULL, 0, out);
	}
	return rc ? roll_mdb_err(err, rc, writer->dir, "no transaction") : ROLL_OK;
}

enum roll_status roll_txn_begin(struct roll_writer *writer, struct roll_txn **out,
				struct roll_err *err)
{
	struct roll_txn *txn = &writer->txn;
	struct roll_env *env;
	enum roll_status status;

	if (txn->is_open)
		return roll_err_set(err, ROLL_EBUSY, writer->dir, "a transaction is open");
	status = begin_mdb(writer, &env, &txn->snap.at.txn, err);
	if (status)
		return status;
	txn->snap.at.dbi = env->dbi;
	txn->snap.head = &txn->head;
	txn->snap.names = NULL;
	txn->snap.is_names_fresh = false;
	roll_snap_turn(&txn->snap, false);
	txn->status = ROLL_OK;
	txn->err.code = ROLL_OK;
	txn->is_dirty = false;
	txn->revision = (struct roll_revision){.number = 0};
	txn->prepared_before = writer->prepared_count;
	roll_txn_clear_changes(txn);
	status = load_head(txn);
	if (status) {
		mdb_txn_abort(txn->snap.at.txn);
		return roll_err_set(err, status, writer->dir, "the head of the view is damaged");
	}
	txn->epoch = writer->next ? writer->rebuild_epoch : txn->head.generation + 1;
	txn->epoch_serial = writer->next ? 0 : txn->head.max_serial;
	txn->is_open = true;
	*out = txn;
	return ROLL_OK;
}

static void end(struct roll_txn *txn)
{
	txn->is_open = false;
	txn->snap.at.txn = NULL;
	txn->snap.names = NULL;
	txn->snap.is_names_fresh = false;
	roll_arena_reset(&txn->op);
	roll_arena_reset(&txn->work);
}

enum roll_status roll_txn_commit(struct roll_txn *txn, struct roll_err *err)
{
	struct roll_key key = roll_key_of("head");
	enum roll_status status;
	int rc;

	if (!txn->is_open)
		return roll_err_set(err, ROLL_EINVAL, NULL, "the transaction is over");
	if (txn->is_dirty) {
		txn->head.generation++;
		roll_buf_reset(&txn->value);
		roll_head_encode(&txn->head, &txn->value);
		if (txn->value.status)
			roll_txn_fail(txn, txn->value.status, "the head");
		roll_txn_store(txn, ROLL_TABLE_META, &key, roll_buf_str(&txn->value));
	}
	status = txn->status;
	if (status || !txn->is_dirty) {
		if (status && err)
			*err = txn->err;
		roll_txn_abort(txn);
		return status;
	}
	rc = mdb_txn_commit(txn->snap.at.txn);
	end(txn);
	if (rc) {
		txn->writer->prepared_count = txn->prepared_before;
		return roll_mdb_err(err, rc, txn->writer->dir, "the view cannot be written");
	}
	return ROLL_OK;
}

void roll_txn_abort(struct roll_txn *txn)
{
	if (!txn || !txn->is_open)
		return;
	mdb_txn_abort(txn->snap.at.txn);
	/* Numbers that were taken in it were not. */
	if (txn->writer->prepared_count > txn->prepared_before)
		txn->writer->prepared_count = txn->prepared_before;
	end(txn);
}

enum roll_status roll_txn_status(const struct roll_txn *txn)
{
	return txn->status;
}

bool roll_txn_is_changed(const struct roll_txn *txn)
{
	return txn->is_dirty;
}

struct roll_snap *roll_txn_snap(struct roll_txn *txn)
{
	return &txn->snap;
}

void roll_txn_set_revision(struct roll_txn *txn, const struct roll_revision *revision)
{
	txn->revision = *revision;
}

/* --- bookkeeping --- */

void roll_txn_set_source(struct roll_txn *txn, struct roll_str identity)
{
	if (!roll_txn_mutate(txn))
		return;
	/* identity may be the present one. */
	roll_buf_reset(&txn->copy);
	roll_buf_add_str(&txn->copy, identity);
	roll_buf_reset(&txn->source);
	roll_buf_add_str(&txn->source, roll_buf_str(&txn->copy));
	if (txn->copy.status || txn->source.status)
		roll_txn_fail(txn, txn->source.status, "the source");
	else
		txn->head.source = roll_buf_str(&txn->source);
}

static struct roll_key position_key(struct roll_str what)
{
	struct roll_key key = roll_key_of("position/");

	roll_key_add(&key, what.p, what.n);
	return key;
}

void roll_txn_set_position(struct roll_txn *txn, struct roll_str what, struct roll_str position)
{
	struct roll_key key = position_key(what);

	if (!roll_txn_mutate(txn))
		return;
	if (position.n)
		roll_txn_store(txn, ROLL_TABLE_META, &key, position);
	else
		roll_txn_erase(txn, ROLL_TABLE_META, &key);
}

enum roll_status roll_txn_position(struct roll_txn *txn, struct roll_str what, struct roll_buf *out)
{
	struct roll_key key = position_key(what);
	struct roll_str bytes;
	enum roll_status status = roll_txn_get(txn, ROLL_TABLE_META, &key, &bytes);

	if (status)
		return status;
	roll_buf_add_str(out, bytes);
	return out->status;
}

void roll_txn_set_confirmed(struct roll_txn *txn, int64_t wall_ms)
{
	if (roll_txn_mutate(txn))
		txn->head.confirmed_ms = wall_ms;
}

void roll_txn_set_complete(struct roll_txn *txn, int64_t wall_ms)
{
	if (roll_txn_mutate(txn))
		txn->head.complete_since_ms = wall_ms;
}

/* --- numbers and the sweep --- */

bool roll_writer_is_prepared(const struct roll_writer *writer, uint32_t number)
{
	for (size_t i = 0; i < writer->prepared_count; i++)
		if (writer->prepared[i] == number)
			return true;
	return false;
}

void roll_writer_unprepare(struct roll_writer *writer, uint32_t number)
{
	size_t kept = 0;

	for (size_t i = 0; i < writer->prepared_count; i++)
		if (writer->prepared[i] != number)
			writer->prepared[kept++] = writer->prepared[i];
	writer->prepared_count = kept;
}

static bool prepare(struct roll_writer *writer, uint32_t number)
{
	if (writer->prepared_count == writer->prepared_room) {
		size_t room = writer->prepared_room ? writer->prepared_room * 2 : 16;
		uint32_t *more = reallocarray(writer->prepared, room, sizeof *more);

		if (!more)
			return false;
		writer->prepared = more;
		writer->prepared_room = room;
	}
	writer->prepared[writer->prepared_count++] = number;
	return true;
}

uint32_t roll_txn_new_number(struct roll_txn *txn, const struct roll_name *domain)
{
	struct roll_dzone_row row = {.domain = *domain};
	uint32_t number = txn->head.next_number;
	struct roll_key key = roll_key_number(number);

	if (!roll_txn_mutate(txn))
		return 0;
	/* Numbers are not used again: 2^32 zones made, one a second, are 136 years. */
	if (number == UINT32_MAX) {
		roll_txn_fail(txn, ROLL_ELIMIT, "no number is left, the view must be rebuilt");
		return 0;
	}
	if (!prepare(txn->writer, number)) {
		roll_txn_fail(txn, ROLL_ENOMEM, "a new number");
		return 0;
	}
	txn->head.next_number++;
	roll_txn_store_dzone(txn, number, &row);
	roll_txn_store(txn, ROLL_TABLE_GONE, &key, roll_str_n("", 0));
	return txn->status ? 0 : number;
}

/* Up to *left names of one number; true if none is left. */
static bool sweep_names(struct roll_txn *txn, uint32_t number, size_t *left)
{
	struct roll_key start = roll_key_number(number);
	struct roll_walk walk;
	enum roll_status status = roll_walk_begin(&walk, &txn->snap.at, ROLL_TABLE_NAMES);
	bool is_empty = false;

	while (!status && *left) {
		int rc;

		status = roll_walk_seek(&walk, &start);
		is_empty = status == ROLL_ENOENT ||
			   (!status && !roll_str_has_prefix(walk.key, start.p, start.n));
		if (status || is_empty)
			break;
		rc = mdb_cursor_del(walk.cursor, 0);
		status = roll_mdb_status(rc);
		if (!status) {
			txn->head.name_count--;
			(*left)--;
		}
	}
	roll_walk_end(&walk);
	if (status && status != ROLL_ENOENT)
		roll_txn_fail(txn, status, "the sweep");
	return is_empty;
}

/* The first number in `gone` after `after` that nobody prepares; ENOENT if there is none. */
static enum roll_status next_gone(struct roll_txn *txn, uint32_t after, uint32_t *out)
{
	struct roll_key start = roll_key_number(after);
	struct roll_walk walk;
	enum roll_status status = roll_walk_begin(&walk, &txn->snap.at, ROLL_TABLE_GONE);

	if (!status)
		status = roll_walk_seek(&walk, &start);
	for (; !status; status = roll_walk_next(&walk)) {
		*out = roll_key_u32(walk.key);
		if (!roll_writer_is_prepared(txn->writer, *out))
			break;
	}
	roll_walk_end(&walk);
	return status;
}

void roll_txn_sweep(struct roll_txn *txn, size_t limit, bool *more)
{
	size_t left = limit;
	uint32_t number = 0;
	enum roll_status status;

	*more = false;
	if (txn->status)
		return;
	while (!(status = next_gone(txn, number, &number))) {
		struct roll_key key = roll_key_number(number);

		*more = true;
		if (left == 0 || !roll_txn_mutate(txn))
			return;
		if (sweep_names(txn, number, &left)) {
			roll_txn_erase(txn, ROLL_TABLE_DZONES, &key);
			roll_txn_erase(txn, ROLL_TABLE_GONE, &key);
			/* A zone without names costs something too. */
			left -= left > 0;
		}
		if (txn->status)
			return;
	}
	*more = false;
	if (status != ROLL_ENOENT)
		roll_txn_fail(txn, status, "the sweep");
}
