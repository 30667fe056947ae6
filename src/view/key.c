/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "view/view.h"

/*
 * Keys of every table, point reads and walks. Integers in keys are big-endian, so that the byte
 * order of LMDB is their order.
 */

void roll_key_add(struct roll_key *key, const void *bytes, size_t n)
{
	if (key->is_too_long || n > sizeof key->p - key->n) {
		key->is_too_long = true;
		key->n = 0;
		return;
	}
	if (n)
		memcpy(key->p + key->n, bytes, n);
	key->n += n;
}

void roll_key_add_u8(struct roll_key *key, uint8_t v)
{
	roll_key_add(key, &v, 1);
}

void roll_key_add_u32(struct roll_key *key, uint32_t v)
{
	uint8_t bytes[4];

	for (int i = 3; i >= 0; i--, v >>= 8)
		bytes[i] = (uint8_t)v;
	roll_key_add(key, bytes, sizeof bytes);
}

void roll_key_add_u64(struct roll_key *key, uint64_t v)
{
	roll_key_add_u32(key, (uint32_t)(v >> 32));
	roll_key_add_u32(key, (uint32_t)v);
}

static uint64_t read_big_endian(struct roll_str key, size_t n)
{
	uint64_t v = 0;

	if (key.n < n)
		return 0;
	for (size_t i = 0; i < n; i++)
		v = v << 8 | (uint8_t)key.p[i];
	return v;
}

uint32_t roll_key_u32(struct roll_str key)
{
	return (uint32_t)read_big_endian(key, 4);
}

uint64_t roll_key_u64(struct roll_str key)
{
	return read_big_endian(key, 8);
}

static struct roll_key new_key(void)
{
	struct roll_key key;

	key.n = 0;
	key.is_too_long = false;
	return key;
}

struct roll_key roll_key_of(const char *text)
{
	struct roll_key key = new_key();

	roll_key_add(&key, text, strlen(text));
	return key;
}

struct roll_key roll_key_number(uint32_t number)
{
	struct roll_key key = new_key();

	roll_key_add_u32(&key, number);
	return key;
}

struct roll_key roll_key_object(enum roll_row_kind kind, struct roll_str object)
{
	struct roll_key key = new_key();

	roll_key_add_u8(&key, (uint8_t)kind);
	roll_key_add(&key, object.p, object.n);
	return key;
}

/* The byte in front gives the root a key too: LMDB has no empty ones. */
struct roll_key roll_key_domain(const struct roll_name *name)
{
	struct roll_key key = new_key();
	uint8_t labels[ROLL_NAME_KEY_MAX];
	size_t n = roll_name_key(name, &roll_name_root, labels);

	roll_key_add_u8(&key, 0);
	roll_key_add(&key, labels, n);
	return key;
}

struct roll_key roll_key_name(uint32_t number, const struct roll_name *domain,
			      const struct roll_name *name)
{
	struct roll_key key = new_key();
	uint8_t labels[ROLL_NAME_KEY_MAX];
	size_t n = roll_name_key(name, domain, labels);

	roll_key_add_u32(&key, number);
	roll_key_add(&key, labels, n);
	return key;
}

struct roll_key roll_key_byzone(struct roll_str zone_key, struct roll_str recordset)
{
	struct roll_key key = new_key();

	roll_key_add_u64(&key, roll_hash64(zone_key.p, zone_key.n));
	roll_key_add(&key, recordset.p, recordset.n);
	return key;
}

struct roll_key roll_key_byscope(struct roll_str scope, enum roll_row_kind kind,
				 struct roll_str object)
{
	struct roll_key key = new_key();

	roll_key_add_u64(&key, roll_hash64(scope.p, scope.n));
	roll_key_add_u8(&key, (uint8_t)kind);
	roll_key_add(&key, object.p, object.n);
	return key;
}

enum roll_status roll_key_to_domain(struct roll_str key, struct roll_name *out)
{
	if (key.n < 1 || key.p[0] != 0)
		return ROLL_ECORRUPT;
	return roll_name_from_key(key.p + 1, key.n - 1, &roll_name_root, out);
}

enum roll_status roll_key_to_name(struct roll_str key, const struct roll_name *domain,
				  struct roll_name *out)
{
	if (key.n < 4)
		return ROLL_ECORRUPT;
	return roll_name_from_key(key.p + 4, key.n - 4, domain, out);
}

bool roll_str_has_prefix(struct roll_str s, const void *prefix, size_t n)
{
	return s.n >= n && (n == 0 || memcmp(s.p, prefix, n) == 0);
}

static MDB_val val_of(const struct roll_key *key)
{
	return (MDB_val){key->n, (void *)(uintptr_t)key->p};
}

enum roll_status roll_at_get(const struct roll_at *at, enum roll_table table,
			     const struct roll_key *key, struct roll_str *out)
{
	MDB_val k = val_of(key), v;
	int rc;

	/* What cannot be a key cannot be there. */
	if (key->n == 0)
		return ROLL_ENOENT;
	rc = mdb_get(at->txn, at->dbi[table], &k, &v);
	if (rc)
		return roll_mdb_status(rc);
	*out = roll_str_n(v.mv_data, v.mv_size);
	return ROLL_OK;
}

enum roll_status roll_walk_begin(struct roll_walk *walk, const struct roll_at *at,
				 enum roll_table table)
{
	*walk = (struct roll_walk){NULL, {NULL, 0}, {NULL, 0}};
	return roll_mdb_status(mdb_cursor_open(at->txn, at->dbi[table], &walk->cursor));
}

static enum roll_status move(struct roll_walk *walk, MDB_val *k, MDB_cursor_op op)
{
	MDB_val v;
	int rc = mdb_cursor_get(walk->cursor, k, &v, op);

	if (rc)
		return roll_mdb_status(rc);
	walk->key = roll_str_n(k->mv_data, k->mv_size);
	walk->value = roll_str_n(v.mv_data, v.mv_size);
	return ROLL_OK;
}

enum roll_status roll_walk_seek(struct roll_walk *walk, const struct roll_key *key)
{
	MDB_val k;

	if (!key)
		return move(walk, &k, MDB_FIRST);
	if (key->n == 0)
		return ROLL_ENOENT;
	k = val_of(key);
	return move(walk, &k, MDB_SET_RANGE);
}

enum roll_status roll_walk_next(struct roll_walk *walk)
{
	MDB_val k;

	return move(walk, &k, MDB_NEXT);
}

enum roll_status roll_walk_last(struct roll_walk *walk)
{
	MDB_val k;

	return move(walk, &k, MDB_LAST);
}

enum roll_status roll_walk_prev(struct roll_walk *walk)
{
	MDB_val k;

	return move(walk, &k, MDB_PREV);
}

void roll_walk_end(struct roll_walk *walk)
{
	if (walk->cursor)
		mdb_cursor_close(walk->cursor);
	walk->cursor = NULL;
}
