/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "view/view.h"

/*
 * Claims of record sets at names. Each name's row is decided over all of its claims in the commit
 * that changes one of them: the cost is that of the name, not of the zone. (A name that thousands
 * of objects claim costs each of them the whole row.)
 */

/* The names of one number while an object's claims change. */
struct area {
	struct roll_txn *txn;
	uint32_t number;
	struct roll_dzone_row dzone;
	bool is_used; /* there is such a number, and its rows are not being swept */
	bool is_live; /* a DNSZone has it */
	bool is_known_holder;
	bool is_holder;
	bool is_counted; /* counts changed */
	bool is_changed; /* what is served changed */
};

enum roll_status roll_txn_dzone(struct roll_txn *txn, uint32_t number, struct roll_dzone_row *out,
				bool *is_gone)
{
	struct roll_key key = roll_key_number(number);
	struct roll_str bytes;
	enum roll_status status;

	if (number == 0)
		return ROLL_ENOENT;
	status = roll_txn_get(txn, ROLL_TABLE_DZONES, &key, &bytes);
	if (!status) {
		status = roll_dzone_row_decode(bytes, out);
		if (status)
			roll_txn_fail(txn, status, "a row in dzones");
	}
	if (status)
		return status;
	status = roll_txn_get(txn, ROLL_TABLE_GONE, &key, &bytes);
	*is_gone = status == ROLL_OK;
	return status == ROLL_ENOENT ? ROLL_OK : status;
}

void roll_txn_store_dzone(struct roll_txn *txn, uint32_t number, const struct roll_dzone_row *row)
{
	struct roll_key key = roll_key_number(number);

	roll_buf_reset(&txn->value);
	roll_dzone_row_encode(row, &txn->value);
	if (txn->value.status)
		roll_txn_fail(txn, txn->value.status, "a row in dzones");
	roll_txn_store(txn, ROLL_TABLE_DZONES, &key, roll_buf_str(&txn->value));
}

static void area_open(struct area *area, struct roll_txn *txn, uint32_t number)
{
	bool is_gone = false;

	memset(area, 0, sizeof *area);
	area->txn = txn;
	area->number = number;
	if (roll_txn_dzone(txn, number, &area->dzone, &is_gone))
		return;
	area->is_live = !is_gone;
	area->is_used = !is_gone || roll_writer_is_prepared(txn->writer, number);
	/* The object name points into a page that the next change may move. */
	area->dzone.object = roll_arena_str(&txn->op, area->dzone.object);
	if (txn->op.status)
		roll_txn_fail(txn, txn->op.status, "a row in dzones");
}

static void area_close(struct area *area)
{
	if (area->is_counted)
		roll_txn_store_dzone(area->txn, area->number, &area->dzone);
	if (area->is_changed && area->is_live)
		roll_txn_bump(area->txn, &area->dzone.domain, area->number);
}

static bool serves_ns(struct roll_str row)
{
	struct roll_rrset_head head;
	struct roll_reader rdata;

	return row.n && !roll_served_find(row, ROLL_TYPE_NS, &head, &rdata);
}

/* The served parts as bytes; a row that is not there serves nothing. */
static bool is_served_same(struct roll_str a, struct roll_str b)
{
	struct roll_reader x = roll_reader_of("", 0), y = x;
	uint16_t m = 0, n = 0;

	if ((a.n && roll_claims_served(a, &x, &m)) || (b.n && roll_claims_served(b, &y, &n)))
		return false;
	return m == n && roll_str_eq(roll_str_n((const char *)x.p, (size_t)(x.end - x.p)),
				     roll_str_n((const char *)y.p, (size_t)(y.end - y.p)));
}

static void note_change(struct area *area, struct roll_str name_key)
{
	struct roll_txn *txn = area->txn;
	struct roll_name name;

	area->is_changed = true;
	if (!area->is_live)
		return;
	if (!area->is_known_holder) {
		area->is_holder = roll_txn_holds(txn, &area->dzone.domain, area->number);
		area->is_known_holder = true;
		if (area->is_holder)
			roll_txn_note_zone(txn, &area->dzone.domain);
	}
	if (!area->is_holder || !txn->changes.names_complete)
		return;
	if (roll_name_from_key(name_key.p, name_key.n, &area->dzone.domain, &name))
		roll_txn_fail(txn, ROLL_ECORRUPT, "a name");
	else
		roll_txn_note_name(txn, &name);
}

/* The claims at a name with that of row's object replaced; count 0: none is left. */
static enum roll_status replace(struct roll_txn *txn, struct roll_str bytes,
				const struct roll_object_row *row, const struct roll_rrset *rrset,
				struct roll_claim **out, size_t *out_count)
{
	struct roll_claim *old = NULL, *claims;
	size_t old_count = 0, count = 0;
	enum roll_status status = ROLL_OK;

	if (bytes.n)
		status = roll_claims_decode(bytes, &txn->work, &old, &old_count);
	if (status)
		return status;
	claims = roll_arena_array(&txn->work, old_count + 1, sizeof *claims);
	if (!claims)
		return txn->work.status;
	for (size_t i = 0; i < old_count; i++)
		if (!roll_str_eq(old[i].object, row->key))
			claims[count++] = old[i];
	if (rrset)
		claims[count++] = (struct roll_claim){
			.object = row->key,
			.uid = row->uid,
			.created_s = row->created_s,
			.rrset = *rrset,
		};
	*out = claims;
	*out_count = count;
	return ROLL_OK;
}

/* Replace (rrset NULL: take away) what row's object claims at one name. */
static void claim_at(struct area *area, struct roll_str name_key, const struct roll_object_row *row,
		     const struct roll_rrset *rrset)
{
	struct roll_txn *txn = area->txn;
	struct roll_key key = roll_key_number(area->number);
	struct roll_str old = {NULL, 0}, new = {NULL, 0};
	bool is_cut, was_cut;
	struct roll_claim *claims = NULL;
	enum roll_status status;
	size_t count = 0;

	roll_key_add(&key, name_key.p, name_key.n);
	status = roll_txn_get(txn, ROLL_TABLE_NAMES, &key, &old);
	if (status && status != ROLL_ENOENT)
		return;
	roll_arena_reset(&txn->work);
	status = replace(txn, old, row, rrset, &claims, &count);
	if (status) {
		roll_txn_fail(txn, status, "the claims at a name");
		return;
	}
	roll_buf_reset(&txn->value);
	if (count) {
		roll_claims_decide(claims, count, name_key.n == 0);
		roll_claims_encode(claims, count, &txn->value);
		if (txn->value.status) {
			roll_txn_fail(txn, txn->value.status, "the claims at a name");
			return;
		}
		new = roll_buf_str(&txn->value);
	}
	if (roll_str_eq(old, new))
		return;
	if ((old.n == 0) != (new.n == 0)) {
		uint32_t step = new.n ? 1 : UINT32_MAX; /* up or down by one */

		area->dzone.name_count += step;
		txn->head.name_count += new.n ? 1 : UINT64_MAX;
		area->is_counted = true;
	}
	was_cut = name_key.n && serves_ns(old);
	is_cut = name_key.n && serves_ns(new);
	if (was_cut != is_cut) {
		area->dzone.cut_count += is_cut ? 1 : UINT32_MAX;
		area->is_counted = true;
	}
	/* Not looked at after the row has changed: old is in a page. */
	if (!is_served_same(old, new))
		note_change(area, name_key);
	/* note_change reads the domain into work; what is to be stored is in value. */
	if (new.n)
		roll_txn_store(txn, ROLL_TABLE_NAMES, &key, new);
	else
		roll_txn_erase(txn, ROLL_TABLE_NAMES, &key);
}

#define DROPPED_BYTES 1000u

/* One more name, whole or not at all. */
static void note_dropped(const struct area *area, struct roll_str name_key,
			 struct roll_buf *dropped)
{
	char text[ROLL_NAME_TEXT_SIZE];
	struct roll_name name;
	size_t n;

	if (!dropped || !area->is_live || dropped->n > DROPPED_BYTES ||
	    roll_name_from_key(name_key.p, name_key.n, &area->dzone.domain, &name))
		return;
	n = strlen(roll_name_show(&name, text));
	if (dropped->n + n + 1 > DROPPED_BYTES)
		return;
	if (dropped->n)
		roll_buf_add_char(dropped, ' ');
	roll_buf_add(dropped, text, n);
}

/* A names blob, one key at a time. */
struct blob {
	struct roll_reader r;
	uint32_t left;
	struct roll_str key;
};

static bool next_key(struct blob *blob)
{
	if (blob->left == 0)
		return false;
	blob->left--;
	blob->key = roll_reader_str16(&blob->r);
	return !blob->r.failed;
}

void roll_txn_claim_names(struct roll_txn *txn, const struct roll_object_row *row,
			  uint32_t old_number, struct roll_str old_names, uint32_t number,
			  const struct roll_owned_key *owned, size_t count,
			  struct roll_buf *dropped)
{
	struct blob blob = {
		roll_reader_of(old_names.p ? old_names.p : "", old_names.n), 0, {NULL, 0}};
	struct area from, to, *target;
	bool is_moved, is_same_domain, has_old;
	size_t i = 0;

	if (old_names.n)
		blob.left = roll_reader_u32(&blob.r);
	area_open(&from, txn, old_number);
	is_moved = number != old_number;
	target = &from;
	if (is_moved) {
		area_open(&to, txn, number);
		target = &to;
	}
	if (number && !target->is_used) {
		roll_txn_fail(txn, ROLL_EINVAL, "claims under a number that is not in use");
		return;
	}
	is_same_domain =
		number && from.is_used && roll_name_eq(&from.dzone.domain, &target->dzone.domain);
	/* Both lists are in the order of their keys. */
	has_old = next_key(&blob);
	while (!txn->status && (has_old || i < count)) {
		int order = !has_old ? 1 : i >= count ? -1 : roll_str_cmp(blob.key, owned[i].key);

		if (order <= 0 && from.is_used && (order < 0 || is_moved))
			claim_at(&from, blob.key, row, NULL);
		if (order < 0 || (order == 0 && !is_same_domain))
			note_dropped(&from, blob.key, dropped);
		if (order >= 0) {
			claim_at(target, owned[i].key, row, owned[i].rrset);
			i++;
		}
		if (order <= 0)
			has_old = next_key(&blob);
	}
	area_close(&from);
	if (is_moved)
		area_close(&to);
}
