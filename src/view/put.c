/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view/view.h"

/*
 * The two mutations of the view: put an object, and an object is absent. Everything that follows
 * from it is done here, in the same transaction.
 *
 * What a caller passes in may be borrowed from the transaction itself, and pages move with the
 * first change: so the new row is encoded, and the old one copied, before anything is written.
 */

/* Keep a row that was there in txn->old and decode it. ENOENT: none. */
static enum roll_status load_old(struct roll_txn *txn, enum roll_row_kind kind, struct roll_str key,
				 struct roll_object_row *out)
{
	struct roll_key full = roll_key_object(kind, key);
	struct roll_str bytes;
	enum roll_status status = roll_txn_get(txn, ROLL_TABLE_OBJECTS, &full, &bytes);

	if (status)
		return status;
	roll_buf_reset(&txn->old);
	roll_buf_add_str(&txn->old, bytes);
	status = txn->old.status;
	if (!status)
		status = roll_object_row_decode(kind, key, roll_buf_str(&txn->old), out);
	if (status)
		roll_txn_fail(txn, status, "an object");
	return status;
}

/* Encode row into txn->row, its key in front, and read it back from there. */
static bool keep_row(struct roll_txn *txn, const struct roll_object_row *row,
		     struct roll_object_row *out)
{
	struct roll_str all;
	enum roll_status status;

	*out = *row;
	roll_buf_reset(&txn->row);
	roll_buf_add_str(&txn->row, row->key);
	roll_object_row_encode(row, &txn->row);
	status = txn->row.status;
	all = roll_buf_str(&txn->row);
	if (!status)
		status = roll_object_row_decode(row->kind, roll_str_n(all.p, row->key.n),
						roll_str_n(all.p + row->key.n, all.n - row->key.n),
						out);
	return !roll_txn_fail(txn, status, "an object");
}

/* kept is what keep_row gave; old is NULL if there was none. */
static void store_row(struct roll_txn *txn, const struct roll_object_row *kept,
		      const struct roll_object_row *old)
{
	struct roll_str all = roll_buf_str(&txn->row), none = roll_str_n("", 0);
	struct roll_key key = roll_key_object(kept->kind, kept->key);

	roll_txn_store(txn, ROLL_TABLE_OBJECTS, &key,
		       roll_str_n(all.p + kept->key.n, all.n - kept->key.n));
	if (!old)
		txn->head.object_count[kept->kind]++;
	if (!old || !roll_str_eq(old->zone, kept->zone)) {
		if (old && old->zone.n) {
			key = roll_key_byzone(old->zone, old->key);
			roll_txn_erase(txn, ROLL_TABLE_BYZONE, &key);
		}
		if (kept->zone.n) {
			key = roll_key_byzone(kept->zone, kept->key);
			roll_txn_store(txn, ROLL_TABLE_BYZONE, &key, none);
		}
	}
	if (!old || !roll_str_eq(old->scope, kept->scope)) {
		if (old && old->scope.n) {
			key = roll_key_byscope(old->scope, old->kind, old->key);
			roll_txn_erase(txn, ROLL_TABLE_BYSCOPE, &key);
		}
		if (kept->scope.n) {
			key = roll_key_byscope(kept->scope, kept->kind, kept->key);
			roll_txn_store(txn, ROLL_TABLE_BYSCOPE, &key, none);
		}
	}
}

static void erase_row(struct roll_txn *txn, const struct roll_object_row *old)
{
	struct roll_key key = roll_key_object(old->kind, old->key);

	roll_txn_erase(txn, ROLL_TABLE_OBJECTS, &key);
	txn->head.object_count[old->kind]--;
	if (old->zone.n) {
		key = roll_key_byzone(old->zone, old->key);
		roll_txn_erase(txn, ROLL_TABLE_BYZONE, &key);
	}
	if (old->scope.n) {
		key = roll_key_byscope(old->scope, old->kind, old->key);
		roll_txn_erase(txn, ROLL_TABLE_BYSCOPE, &key);
	}
}

/* A history of the last ROLL_REMOVALS_KEPT: each new one takes the place of the oldest. */
static void record_removal(struct roll_txn *txn, const struct roll_object_row *old,
			   struct roll_str names, const char *evidence, uint64_t revision)
{
	const struct roll_removal removal = {
		.kind = old->kind,
		.key = old->key,
		.uid = old->uid,
		.zone = old->zone,
		.names = names,
		.evidence = roll_str_c(evidence),
		.revision = revision,
		.at_ms = roll_clock_wall_ms(txn->writer->clock),
	};
	struct roll_key key = roll_key_of("");

	roll_key_add_u64(&key, txn->head.next_removal);
	roll_buf_reset(&txn->value);
	roll_removal_encode(&removal, &txn->value);
	if (txn->value.status)
		roll_txn_fail(txn, txn->value.status, "the history of removals");
	roll_txn_store(txn, ROLL_TABLE_REMOVALS, &key, roll_buf_str(&txn->value));
	if (txn->head.next_removal >= ROLL_REMOVALS_KEPT) {
		key = roll_key_of("");
		roll_key_add_u64(&key, txn->head.next_removal - ROLL_REMOVALS_KEPT);
		roll_txn_erase(txn, ROLL_TABLE_REMOVALS, &key);
	}
	txn->head.next_removal++;
}

/* Names that an object had and has no more, because it is another one now. */
static void record_change(struct roll_txn *txn, const struct roll_object_row *old,
			  struct roll_str names, uint64_t revision)
{
	char evidence[64] = "changed";

	if (names.n == 0)
		return;
	if (revision)
		snprintf(evidence, sizeof evidence, "changed: revision %llu",
			 (unsigned long long)revision);
	record_removal(txn, old, names, evidence, revision);
}

static int cmp_owned(const void *a, const void *b)
{
	const struct roll_owned_key *x = a, *y = b;

	return roll_str_cmp(x->key, y->key);
}

/* Keys of the owned names, sorted, and the same as a names blob in txn->names. */
static struct roll_owned_key *list_owned(struct roll_txn *txn, const struct roll_name *domain,
					 const struct roll_name_rrset *owned, size_t count)
{
	struct roll_owned_key *list = roll_arena_array(&txn->op, count, sizeof *list);

	roll_buf_reset(&txn->names);
	for (size_t i = 0; i < count && list; i++) {
		uint8_t key[ROLL_NAME_KEY_MAX];

		if (!roll_name_is_within(&owned[i].owner, domain)) {
			roll_txn_fail(txn, ROLL_EINVAL, "an owner outside of the zone");
			return NULL;
		}
		list[i].key = roll_arena_str(
			&txn->op,
			roll_str_n((const char *)key, roll_name_key(&owned[i].owner, domain, key)));
		list[i].rrset = owned[i].rrset;
	}
	if (!list || txn->op.status) {
		roll_txn_fail(txn, txn->op.status, "the names of an object");
		return NULL;
	}
	qsort(list, count, sizeof *list, cmp_owned);
	if (count)
		roll_buf_put_u32(&txn->names, (uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		roll_buf_put_str16(&txn->names, list[i].key);
		if (i && roll_str_eq(list[i].key, list[i - 1].key)) {
			roll_txn_fail(txn, ROLL_EINVAL, "an owner is given twice");
			return NULL;
		}
	}
	if (txn->names.status) {
		roll_txn_fail(txn, txn->names.status, "the names of an object");
		return NULL;
	}
	return list;
}

void roll_txn_put_recordset(struct roll_txn *txn, const struct roll_object_row *row,
			    uint32_t number, const struct roll_name_rrset *owned, size_t count)
{
	struct roll_object_row old = {0}, kept, filled = *row;
	struct roll_owned_key *list = NULL;
	struct roll_dzone_row dzone;
	enum roll_status status;
	bool is_gone, is_new;

	if (!roll_txn_mutate(txn))
		return;
	roll_arena_reset(&txn->op);
	if (number == 0)
		count = 0;
	if (number && roll_txn_dzone(txn, number, &dzone, &is_gone)) {
		roll_txn_fail(txn, ROLL_EINVAL, "a record set under an unknown number");
		return;
	}
	roll_buf_reset(&txn->names);
	if (count) {
		list = list_owned(txn, &dzone.domain, owned, count);
		if (!list)
			return;
	}
	filled.kind = ROLL_ROW_RECORDSET;
	filled.number = number;
	filled.names = roll_buf_str(&txn->names);
	if (!keep_row(txn, &filled, &kept))
		return;
	status = load_old(txn, ROLL_ROW_RECORDSET, kept.key, &old);
	if (status && status != ROLL_ENOENT)
		return;
	is_new = status == ROLL_ENOENT;
	roll_buf_reset(&txn->copy);
	roll_txn_claim_names(txn, &kept, old.number, old.names, number, list, count, &txn->copy);
	store_row(txn, &kept, is_new ? NULL : &old);
	if (!is_new)
		record_change(txn, &old, roll_buf_str(&txn->copy), kept.revision);
}

/* The number belongs to no DNSZone any more: its rows are left to the sweep. */
static void release_number(struct roll_txn *txn, uint32_t number)
{
	struct roll_key key = roll_key_number(number);

	roll_writer_unprepare(txn->writer, number);
	roll_txn_store(txn, ROLL_TABLE_GONE, &key, roll_str_n("", 0));
}

/* The claim of a DNSZone to its domain goes, and its number with it. */
static void leave_domain(struct roll_txn *txn, const struct roll_object_row *old,
			 const struct roll_name *domain, const char *evidence, uint64_t revision)
{
	char text[ROLL_NAME_TEXT_SIZE];

	roll_txn_claim_domain(txn, domain, old->key, NULL);
	roll_name_show(domain, text);
	record_removal(txn, old, roll_str_c(text), evidence, revision);
}

static void take_domain(struct roll_txn *txn, const struct roll_object_row *kept,
			const struct roll_name *domain, struct roll_str class_name, uint32_t number)
{
	struct roll_key key = roll_key_number(number);
	const struct roll_domain_claim claim = {
		.object = kept->key,
		.uid = kept->uid,
		.created_s = kept->created_s,
		.number = number,
		.class_name = class_name,
	};
	struct roll_dzone_row dzone;
	bool is_gone;

	if (roll_txn_dzone(txn, number, &dzone, &is_gone) || !roll_name_eq(&dzone.domain, domain)) {
		roll_txn_fail(txn, ROLL_EINVAL, "a DNSZone with a number of another domain");
		return;
	}
	dzone.object = kept->key;
	roll_txn_store_dzone(txn, number, &dzone);
	roll_txn_erase(txn, ROLL_TABLE_GONE, &key);
	roll_txn_claim_domain(txn, domain, kept->key, &claim);
}

void roll_txn_put_zone(struct roll_txn *txn, const struct roll_object_row *row,
		       const struct roll_name *domain, struct roll_str class_name, uint32_t number)
{
	struct roll_object_row old = {0}, kept, filled = *row;
	struct roll_dzone_row dzone;
	struct roll_str class_copy;
	enum roll_status status;
	bool is_gone, is_new, had_domain;

	if (!roll_txn_mutate(txn))
		return;
	roll_arena_reset(&txn->op);
	class_copy = roll_arena_str(&txn->op, class_name);
	if (txn->op.status) {
		roll_txn_fail(txn, txn->op.status, "a DNSZone");
		return;
	}
	filled.kind = ROLL_ROW_ZONE;
	filled.number = domain ? number : 0;
	filled.names = roll_str_n(NULL, 0);
	if (!keep_row(txn, &filled, &kept))
		return;
	status = load_old(txn, ROLL_ROW_ZONE, kept.key, &old);
	if (status && status != ROLL_ENOENT)
		return;
	is_new = status == ROLL_ENOENT;
	status = roll_txn_dzone(txn, old.number, &dzone, &is_gone);
	if (status && status != ROLL_ENOENT)
		return;
	had_domain = !status;
	if (had_domain && !(domain && roll_name_eq(domain, &dzone.domain))) {
		char evidence[64] = "changed";

		if (kept.revision)
			snprintf(evidence, sizeof evidence, "changed: revision %llu",
				 (unsigned long long)kept.revision);
		leave_domain(txn, &old, &dzone.domain, evidence, kept.revision);
	}
	if (had_domain && kept.number != old.number)
		release_number(txn, old.number);
	if (domain)
		take_domain(txn, &kept, domain, class_copy, number);
	store_row(txn, &kept, is_new ? NULL : &old);
}

enum roll_status roll_txn_zone_number(struct roll_txn *txn, struct roll_str zone_key,
				      uint32_t *number, struct roll_name *domain)
{
	struct roll_dzone_row dzone;
	enum roll_status status = txn->status;

	if (!status)
		status = roll_snap_dzone(&txn->snap, zone_key, number, &dzone);
	if (status && status != ROLL_ENOENT)
		roll_txn_fail(txn, status, "a DNSZone");
	if (!status)
		*domain = dzone.domain;
	return status;
}

static bool is_same_class(const struct roll_class_row *a, const struct roll_class_row *b)
{
	return roll_str_eq(a->controller, b->controller) &&
	       a->has_default_ttl == b->has_default_ttl &&
	       (!a->has_default_ttl || a->default_ttl == b->default_ttl) &&
	       a->nameserver_count == b->nameserver_count &&
	       roll_str_eq(a->nameservers, b->nameservers);
}

void roll_txn_put_class(struct roll_txn *txn, const struct roll_object_row *row,
			const struct roll_class_row *cls)
{
	struct roll_object_row old = {0}, kept, filled = *row;
	struct roll_class_row before, fresh = *cls;
	struct roll_key key = roll_key_of("");
	struct roll_str bytes;
	enum roll_status status;
	bool is_new;

	if (!roll_txn_mutate(txn))
		return;
	filled.kind = ROLL_ROW_CLASS;
	filled.number = 0;
	filled.names = roll_str_n(NULL, 0);
	if (!keep_row(txn, &filled, &kept))
		return;
	status = load_old(txn, ROLL_ROW_CLASS, kept.key, &old);
	if (status && status != ROLL_ENOENT)
		return;
	is_new = status == ROLL_ENOENT;
	roll_key_add(&key, kept.key.p, kept.key.n);
	status = roll_txn_get(txn, ROLL_TABLE_CLASSES, &key, &bytes);
	if (!status)
		status = roll_class_row_decode(bytes, &before);
	if (status && status != ROLL_ENOENT) {
		roll_txn_fail(txn, status, "a class");
		return;
	}
	if (status || !is_same_class(&before, cls)) {
		fresh.serial = roll_txn_class_serial(txn, status ? 0 : before.serial);
		roll_buf_reset(&txn->value);
		roll_class_row_encode(&fresh, &txn->value);
		if (txn->value.status)
			roll_txn_fail(txn, txn->value.status, "a class");
		roll_txn_store(txn, ROLL_TABLE_CLASSES, &key, roll_buf_str(&txn->value));
	}
	store_row(txn, &kept, is_new ? NULL : &old);
}

/* A key given by the caller may be borrowed from the row that goes. */
static bool keep_key(struct roll_txn *txn, struct roll_str *key)
{
	roll_arena_reset(&txn->op);
	*key = roll_arena_str(&txn->op, *key);
	return !roll_txn_fail(txn, txn->op.status, "a key");
}

enum roll_status roll_txn_absent(struct roll_txn *txn, enum roll_row_kind kind, struct roll_str key,
				 const char *evidence, uint64_t revision)
{
	struct roll_object_row old;
	struct roll_dzone_row dzone;
	struct roll_key class_key = roll_key_of("");
	enum roll_status status;
	bool is_gone;

	if (txn->status || !keep_key(txn, &key))
		return txn->status;
	status = load_old(txn, kind, key, &old);
	if (status)
		return status;
	if (!roll_txn_mutate(txn))
		return txn->status;
	switch (kind) {
	case ROLL_ROW_CLASS:
		roll_key_add(&class_key, key.p, key.n);
		roll_txn_erase(txn, ROLL_TABLE_CLASSES, &class_key);
		record_removal(txn, &old, roll_str_n(NULL, 0), evidence, revision);
		break;
	case ROLL_ROW_ZONE:
		status = roll_txn_dzone(txn, old.number, &dzone, &is_gone);
		if (!status) {
			leave_domain(txn, &old, &dzone.domain, evidence, revision);
			release_number(txn, old.number);
		} else if (status == ROLL_ENOENT) {
			record_removal(txn, &old, roll_str_n(NULL, 0), evidence, revision);
		}
		break;
	case ROLL_ROW_RECORDSET:
		roll_buf_reset(&txn->copy);
		roll_txn_claim_names(txn, &old, old.number, old.names, 0, NULL, 0, &txn->copy);
		record_removal(txn, &old, roll_buf_str(&txn->copy), evidence, revision);
		break;
	case ROLL_ROW_KINDS:
		return roll_txn_fail(txn, ROLL_EINVAL, "no such kind");
	}
	erase_row(txn, &old);
	return txn->status;
}

void roll_txn_touch(struct roll_txn *txn, const struct roll_object_row *row)
{
	struct roll_object_row old, kept, filled = *row;
	enum roll_status status;

	if (txn->status || !keep_row(txn, &filled, &kept))
		return;
	status = load_old(txn, row->kind, kept.key, &old);
	if (!status && (old.created_s != kept.created_s || !roll_str_eq(old.uid, kept.uid) ||
			!roll_str_eq(old.zone, kept.zone)))
		status = ROLL_EINVAL;
	if (status) {
		roll_txn_fail(txn, status == ROLL_ENOENT ? ROLL_EINVAL : status,
			      "an object that is another one");
		return;
	}
	filled.number = old.number;
	filled.names = old.names;
	if (keep_row(txn, &filled, &kept) && roll_txn_mutate(txn))
		store_row(txn, &kept, &old);
}
