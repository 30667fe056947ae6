/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "view/view.h"

/*
 * Claims of DNSZones to domains, domain ids, serials.
 *
 * A serial never falls (RFC 1982) and rises once with every commit that changes what the zone
 * answers, whatever the order of the changes within it, so that replicas fed by one cluster agree:
 *
 *	serial = the latest revision of the commit's changes, if that is later than the serial
 *		 before the commit, else the successor of that
 *
 * What may be later than the change itself (see roll_txn_set_revision) is not taken for it: the
 * successor is never later than the revision, and what the replica that tells the objects' owners
 * has published is heeded by all.
 *
 * serial_before keeps the effective serial, with classes, as it was before the commit. If another
 * DNSZone or class comes into force, anything may have been said about the domain under classes
 * that are gone since, so the serial before is then the latest ever given to anything. A rebuild
 * counts as one commit: nobody reads in between. It starts from what write.c carries over, which
 * says already what each domain's serial must be later than; one that was published is enough.
 */

/* Wall clock where there are no revisions (manifests). */
static uint32_t revision_serial(const struct roll_txn *txn)
{
	if (txn->revision.number)
		return (uint32_t)txn->revision.number;
	return (uint32_t)(roll_clock_wall_ms(txn->writer->clock) / 1000);
}

static bool is_rebuilding(const struct roll_txn *txn)
{
	return txn->writer->next != NULL;
}

/* What the change itself says; 0: nothing that is certain. */
static uint32_t change_serial(const struct roll_txn *txn, const struct roll_domain_row *row)
{
	if (!txn->revision.is_late)
		return revision_serial(txn);
	if (row->published)
		return row->published;
	return row->serial_before && !is_rebuilding(txn) ? 0 : revision_serial(txn);
}

static uint32_t pick(uint32_t before, uint32_t candidate)
{
	if (candidate && (before == 0 || roll_serial_gt(candidate, before)))
		return candidate;
	return roll_serial_next(before);
}

static void note_serial(struct roll_txn *txn, uint32_t serial)
{
	txn->head.max_serial = roll_serial_later_or(txn->head.max_serial, serial);
}

uint32_t roll_txn_class_serial(struct roll_txn *txn, uint32_t present)
{
	uint32_t serial =
		pick(txn->epoch_serial, roll_serial_later_or(present, revision_serial(txn)));

	note_serial(txn, serial);
	return serial;
}

enum roll_status roll_txn_domain(struct roll_txn *txn, const struct roll_name *name,
				 struct roll_domain_row *out)
{
	struct roll_key key = roll_key_domain(name);
	struct roll_str bytes;
	enum roll_status status = roll_txn_get(txn, ROLL_TABLE_DOMAINS, &key, &bytes);

	if (status)
		return status;
	roll_arena_reset(&txn->work);
	status = roll_domain_row_decode(bytes, &txn->work, out);
	if (status)
		roll_txn_fail(txn, status, "a domain");
	return status;
}

static void store_domain(struct roll_txn *txn, const struct roll_name *name,
			 const struct roll_domain_row *row)
{
	struct roll_key key = roll_key_domain(name);

	roll_buf_reset(&txn->value);
	roll_domain_row_encode(row, &txn->value);
	if (txn->value.status)
		roll_txn_fail(txn, txn->value.status, "a domain");
	roll_txn_store(txn, ROLL_TABLE_DOMAINS, &key, roll_buf_str(&txn->value));
	note_serial(txn, row->serial);
}

static enum roll_status settle(struct roll_txn *txn, const struct roll_domain_row *row,
			       struct roll_settled *out)
{
	enum roll_status status = roll_domain_settle(&txn->snap.at, &txn->head, row, out);

	if (status)
		roll_txn_fail(txn, status, "a domain's class");
	return status;
}

static bool is_held_by(const struct roll_domain_row *row, const struct roll_settled *settled,
		       uint32_t number)
{
	return settled->holder != ROLL_BY_NONE && row->claims[settled->holder].number == number;
}

bool roll_txn_holds(struct roll_txn *txn, const struct roll_name *domain, uint32_t number)
{
	struct roll_domain_row row;
	struct roll_settled settled;

	return !roll_txn_domain(txn, domain, &row) && !settle(txn, &row, &settled) &&
	       is_held_by(&row, &settled, number);
}

/* effective: before the change. floor: what the serial must be later than besides; 0: nothing. */
static void raise_serial(struct roll_txn *txn, struct roll_domain_row *row, uint32_t effective,
			 uint32_t floor)
{
	uint32_t latest;

	if (row->changed_generation != txn->epoch) {
		row->changed_generation = txn->epoch;
		row->serial_before = effective;
	}
	row->serial_before = roll_serial_later_or(row->serial_before, floor);
	row->published = roll_serial_later_or(row->published, txn->revision.published);
	latest = roll_serial_later_or(row->serial, change_serial(txn, row));
	if (is_rebuilding(txn) && row->published)
		row->serial = roll_serial_later_or(row->serial_before,
						   roll_serial_later_or(latest, row->published));
	else
		row->serial = pick(row->serial_before, latest);
}

void roll_txn_bump(struct roll_txn *txn, const struct roll_name *domain, uint32_t number)
{
	struct roll_domain_row row;
	struct roll_settled settled;
	uint32_t serial;

	if (roll_txn_domain(txn, domain, &row) || settle(txn, &row, &settled) ||
	    !is_held_by(&row, &settled, number))
		return;
	serial = row.serial;
	if (row.changed_generation == txn->epoch) {
		raise_serial(txn, &row, settled.serial, 0);
		if (row.serial == serial)
			return;
	} else {
		raise_serial(txn, &row, settled.serial, 0);
	}
	store_domain(txn, domain, &row);
}

/* Positive, 31 bits; the next that is free if another domain has the one that the name gives. */
static uint32_t new_id(struct roll_txn *txn, const struct roll_name *name)
{
	uint32_t id = roll_name_id(name);
	struct roll_str ignored;

	for (;;) {
		struct roll_key key = roll_key_number(id);

		if (roll_txn_get(txn, ROLL_TABLE_IDS, &key, &ignored))
			return id; /* free, or an error that sticks */
		id = id == INT32_MAX ? 1 : id + 1;
	}
}

static void add_domain(struct roll_txn *txn, const struct roll_name *name,
		       struct roll_domain_row *row)
{
	struct roll_key domain = roll_key_domain(name), id;

	memset(row, 0, sizeof *row);
	row->id = new_id(txn, name);
	row->changed_generation = txn->epoch;
	id = roll_key_number(row->id);
	roll_txn_store(txn, ROLL_TABLE_IDS, &id, roll_str_n((const char *)domain.p, domain.n));
}

/* row's claims without those of object, and with claim, if any, in its place by age. */
static bool replace_claim(struct roll_txn *txn, struct roll_domain_row *row, struct roll_str object,
			  const struct roll_domain_claim *claim)
{
	struct roll_domain_claim *list;
	uint32_t n = 0;

	list = roll_arena_array(&txn->work, (size_t)row->claim_count + 1, sizeof *list);
	if (!list) {
		roll_txn_fail(txn, txn->work.status, "the claims to a domain");
		return false;
	}
	for (uint32_t i = 0; i < row->claim_count; i++) {
		if (roll_str_eq(row->claims[i].object, object))
			continue;
		if (claim && roll_domain_claim_cmp(claim, &row->claims[i]) < 0) {
			list[n++] = *claim;
			claim = NULL;
		}
		list[n++] = row->claims[i];
	}
	if (claim)
		list[n++] = *claim;
	row->claims = list;
	row->claim_count = n;
	return true;
}

/* What answers depend on: which number, under which class. */
static bool is_same_holder(const struct roll_domain_row *a, const struct roll_settled *sa,
			   const struct roll_domain_row *b, const struct roll_settled *sb)
{
	const struct roll_domain_claim *x, *y;

	if (sa->holder == ROLL_BY_NONE || sb->holder == ROLL_BY_NONE)
		return sa->holder == sb->holder;
	x = &a->claims[sa->holder];
	y = &b->claims[sb->holder];
	return x->number == y->number && roll_str_eq(x->class_name, y->class_name);
}

void roll_txn_claim_domain(struct roll_txn *txn, const struct roll_name *domain,
			   struct roll_str object, const struct roll_domain_claim *claim)
{
	struct roll_domain_row before = {0}, row;
	struct roll_settled old = {.holder = ROLL_BY_NONE}, new;
	enum roll_status status = roll_txn_domain(txn, domain, &before);
	bool is_known = !status;

	if (status && status != ROLL_ENOENT)
		return;
	if (is_known && settle(txn, &before, &old))
		return;
	if (is_known)
		row = before;
	else
		add_domain(txn, domain, &row);
	if (!replace_claim(txn, &row, object, claim) || settle(txn, &row, &new))
		return;
	if (!is_same_holder(&before, &old, &row, &new)) {
		raise_serial(txn, &row, old.serial, is_known ? txn->epoch_serial : 0);
		roll_txn_note_domain(txn, domain);
	} else if (is_known) {
		/* A claim that was passed over may take its class's serial with it. */
		row.serial = roll_serial_later_or(row.serial, old.serial);
	}
	if ((before.claim_count == 0) != (row.claim_count == 0))
		roll_txn_note_domain(txn, domain);
	store_domain(txn, domain, &row);
}

/* ROLL_OK: the DNSZone holds its domain, and its serial is earlier. */
static enum roll_status find_earlier(struct roll_txn *txn, struct roll_str zone_key,
				     uint32_t published, struct roll_name *domain,
				     struct roll_domain_row *row, struct roll_settled *settled)
{
	uint32_t number;
	enum roll_status status = roll_txn_zone_number(txn, zone_key, &number, domain);

	if (!status)
		status = roll_txn_domain(txn, domain, row);
	if (!status)
		status = settle(txn, row, settled);
	if (status)
		return status;
	return is_held_by(row, settled, number) && roll_serial_gt(published, settled->serial)
		       ? ROLL_OK
		       : ROLL_ENOENT;
}

bool roll_txn_is_later(struct roll_txn *txn, struct roll_str zone_key, uint32_t published)
{
	struct roll_name domain;
	struct roll_domain_row row;
	struct roll_settled settled;

	return published && !find_earlier(txn, zone_key, published, &domain, &row, &settled);
}

void roll_txn_heed_serial(struct roll_txn *txn, struct roll_str zone_key, uint32_t published)
{
	struct roll_name domain;
	struct roll_domain_row row;
	struct roll_settled settled;

	if (!roll_txn_mutate(txn) ||
	    find_earlier(txn, zone_key, published, &domain, &row, &settled))
		return;
	if (row.changed_generation != txn->epoch) {
		row.changed_generation = txn->epoch;
		row.serial_before = settled.serial;
	}
	row.serial = row.published = published;
	/* It is the answer to a question for the SOA. */
	roll_txn_note_name(txn, &domain);
	roll_txn_note_zone(txn, &domain);
	store_domain(txn, &domain, &row);
}

void roll_txn_raise_serial(struct roll_txn *txn, struct roll_str zone_key)
{
	struct roll_name domain;
	uint32_t number;

	if (!roll_txn_mutate(txn) || roll_txn_zone_number(txn, zone_key, &number, &domain))
		return;
	roll_txn_note_name(txn, &domain);
	roll_txn_note_zone(txn, &domain);
	roll_txn_bump(txn, &domain, number);
}
