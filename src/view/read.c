/* SPDX-License-Identifier: Apache-2.0 */
#include "view/read.h"

#include <string.h>

#include "view/view.h"

/*
 * Answers: the records at a name, and all of a zone.
 *
 * Keys of names below X start with X's key, and every 0x00 in a key ends a label (dns/name.h). So
 * the row at a name, and whether anything exists below it, is one seek; ancestors are prefixes.
 */

/* The cursor for lookups: opened once, renewed with the transaction. */
static enum roll_status use_cursor(struct roll_snap *snap)
{
	int rc = 0;

	if (snap->is_names_fresh)
		return ROLL_OK;
	if (snap->names && snap->view)
		rc = mdb_cursor_renew(snap->at.txn, snap->names);
	else
		rc = mdb_cursor_open(snap->at.txn, snap->at.dbi[ROLL_TABLE_NAMES], &snap->names);
	snap->is_names_fresh = rc == 0;
	return roll_mdb_status(rc);
}

static enum roll_status has_served(struct roll_str row)
{
	struct roll_reader r;
	uint16_t count;
	enum roll_status status = roll_claims_served(row, &r, &count);

	return status || count ? status : ROLL_ENOENT;
}

struct spot {
	struct roll_str row; /* empty: no row, or none of its claims serves */
	bool has_below;	     /* looked at only if there is no served row */
};

/*
 * The row at key; if it serves nothing, whether a row below does. A row without a served RRset can
 * only be that of an apex whose one claim is a CNAME, since elsewhere the oldest claim serves; so
 * the walk below ends at the first row, unless the view is damaged.
 */
static enum roll_status find_spot(struct roll_snap *snap, const struct roll_key *key,
				  struct spot *out)
{
	struct roll_walk walk;
	enum roll_status status = use_cursor(snap);

	*out = (struct spot){{NULL, 0}, false};
	if (status)
		return status;
	walk.cursor = snap->names;
	for (status = roll_walk_seek(&walk, key); !status; status = roll_walk_next(&walk)) {
		if (!roll_str_has_prefix(walk.key, key->p, key->n))
			return ROLL_OK;
		status = has_served(walk.value);
		if (status == ROLL_ENOENT)
			continue;
		if (status)
			return status;
		if (walk.key.n == key->n)
			out->row = walk.value;
		else
			out->has_below = true;
		return ROLL_OK;
	}
	return status == ROLL_ENOENT ? ROLL_OK : status;
}

/* A name below the apex that serves NS is a cut (RFC 1034, 4.2.1). */
static enum roll_status serves_ns(struct roll_str row, bool *out)
{
	struct roll_rrset_head head;
	struct roll_reader rdata;
	enum roll_status status = roll_served_find(row, ROLL_TYPE_NS, &head, &rdata);

	*out = status == ROLL_OK;
	return status == ROLL_ENOENT ? ROLL_OK : status;
}

/*
 * Not authoritative: what lies at or below a cut. At the cut itself only a DS would be (RFC 4035,
 * 2.4), a type that is not served.
 */
static enum roll_status find_auth(struct roll_snap *snap, const struct roll_zone *zone,
				  const struct roll_key *key, bool *auth)
{
	bool is_cut = false;

	if (zone->cut_count == 0) {
		*auth = true;
		return ROLL_OK;
	}
	for (size_t n = 5; n <= key->n && !is_cut; n++) {
		enum roll_status status;
		struct roll_key above;
		struct roll_str row;

		if (key->p[n - 1] != 0)
			continue;
		memset(&above, 0, offsetof(struct roll_key, p));
		roll_key_add(&above, key->p, n);
		status = roll_at_get(&snap->at, ROLL_TABLE_NAMES, &above, &row);
		if (!status)
			status = serves_ns(row, &is_cut);
		if (status && status != ROLL_ENOENT)
			return status;
	}
	*auth = !is_cut;
	return ROLL_OK;
}

/* What is the same for all rows of one name. */
struct emit {
	struct roll_snap *snap;
	const struct roll_zone *zone;
	struct roll_row row;
	roll_on_row on_row;
	void *ctx;
};

/* An SOA without a serial of its own gets the computed one. */
static enum roll_status emit_soa(struct emit *emit, struct roll_str rdata)
{
	struct roll_buf *buf = &emit->snap->soa;
	enum roll_status status;
	uint32_t serial;

	status = roll_rdata_soa_serial(rdata, &serial);
	if (status)
		return status;
	if (serial == 0) {
		if (rdata.p != buf->p) {
			roll_buf_reset(buf);
			roll_buf_add_str(buf, rdata);
		}
		if (buf->status)
			return buf->status;
		status = roll_rdata_soa_set_serial(buf->p, buf->n, emit->zone->soa_serial);
		if (status)
			return status;
		rdata = roll_buf_str(buf);
	}
	emit->row.rdata = rdata;
	return emit->on_row(emit->ctx, &emit->row);
}

static enum roll_status emit_rrset(struct emit *emit, const struct roll_rrset_head *head,
				   struct roll_reader *r)
{
	emit->row.type = head->type;
	emit->row.ttl = head->has_ttl ? head->ttl : emit->zone->default_ttl;
	for (uint32_t i = 0; i < head->count; i++) {
		struct roll_str rdata = roll_rrset_decode_rdata(r);
		enum roll_status status;

		if (r->failed)
			return ROLL_ECORRUPT;
		if (head->type == ROLL_TYPE_SOA) {
			status = emit_soa(emit, rdata);
		} else {
			emit->row.rdata = rdata;
			status = emit->on_row(emit->ctx, &emit->row);
		}
		if (status)
			return status;
	}
	return ROLL_OK;
}

/* The served RRsets of a row; except: a type that was emitted before (ENT: none). */
static enum roll_status emit_served(struct emit *emit, struct roll_str row, uint16_t type,
				    uint16_t except)
{
	struct roll_reader r;
	uint16_t count;
	enum roll_status status = roll_claims_served(row, &r, &count);

	for (; count && !status; count--) {
		struct roll_rrset_head head = roll_rrset_decode_head(&r);

		if (r.failed)
			return ROLL_ECORRUPT;
		if (head.type != except && (type == ROLL_TYPE_ANY || type == head.type)) {
			status = emit_rrset(emit, &head, &r);
			continue;
		}
		for (uint32_t i = 0; i < head.count && !r.failed; i++)
			(void)roll_rrset_decode_rdata(&r);
	}
	return status ? status : r.failed ? ROLL_ECORRUPT : ROLL_OK;
}

/* The next of the names in wire form one after another. */
static enum roll_status take_name(struct roll_reader *r, struct roll_name *out)
{
	const uint8_t *p = r->p;

	while (p < r->end && *p != 0 && *p < r->end - p)
		p += 1 + *p;
	if (p >= r->end)
		return ROLL_ECORRUPT;
	p++;
	if (roll_name_from_wire(r->p, (size_t)(p - r->p), out))
		return ROLL_ECORRUPT;
	r->p = p;
	return ROLL_OK;
}

static enum roll_status emit_default_soa(struct emit *emit)
{
	const struct roll_zone *zone = emit->zone;
	struct roll_buf *buf = &emit->snap->soa;
	struct roll_reader r = roll_reader_of(zone->nameservers.p, zone->nameservers.n);
	struct roll_name mname;
	enum roll_status status = take_name(&r, &mname);

	roll_buf_reset(buf);
	if (!status)
		status = roll_rdata_soa_default(&mname, &zone->domain, buf);
	if (status)
		return status;
	emit->row.type = ROLL_TYPE_SOA;
	emit->row.ttl = zone->default_ttl;
	return emit_soa(emit, roll_buf_str(buf));
}

static enum roll_status emit_default_ns(struct emit *emit)
{
	struct roll_reader r = roll_reader_of(emit->zone->nameservers.p, emit->zone->nameservers.n);

	for (uint32_t i = 0; i < emit->zone->nameserver_count; i++) {
		struct roll_name name;
		enum roll_status status = take_name(&r, &name);

		if (status)
			return status;
		emit->row.type = ROLL_TYPE_NS;
		emit->row.ttl = emit->zone->default_ttl;
		emit->row.rdata = roll_str_n((const char *)name.wire, name.len);
		status = emit->on_row(emit->ctx, &emit->row);
		if (status)
			return status;
	}
	return ROLL_OK;
}

/*
 * The apex, SOA first. The zone's own SOA and NS are claims that every object's claim beats, per
 * type. row is empty if no object serves anything here.
 */
static enum roll_status emit_apex(struct emit *emit, struct roll_str row, uint16_t type)
{
	const struct {
		uint16_t type;
		enum roll_status (*emit)(struct emit *);
	} own[] = {
		{ROLL_TYPE_SOA, emit_default_soa},
		{ROLL_TYPE_NS, emit_default_ns},
	};

	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
		struct roll_rrset_head head;
		struct roll_reader r;
		enum roll_status status = ROLL_ENOENT;

		if (type != ROLL_TYPE_ANY && type != own[i].type)
			continue;
		if (row.n)
			status = roll_served_find(row, own[i].type, &head, &r);
		if (status == ROLL_ENOENT)
			status = emit->zone->nameserver_count ? own[i].emit(emit) : ROLL_OK;
		else if (!status && own[i].type == ROLL_TYPE_SOA)
			status = emit_rrset(emit, &head, &r);
		if (status)
			return status;
	}
	if (row.n == 0 || type == ROLL_TYPE_SOA)
		return ROLL_OK;
	return emit_served(emit, row, type, ROLL_TYPE_SOA);
}

enum roll_status roll_snap_lookup(struct roll_snap *snap, const struct roll_zone *zone,
				  const struct roll_name *name, uint16_t type, roll_on_row on_row,
				  void *ctx)
{
	struct emit emit = {.snap = snap, .zone = zone, .on_row = on_row, .ctx = ctx};
	enum roll_status status;
	struct roll_key key;
	struct spot spot;
	bool is_apex;

	if (!roll_name_is_within(name, &zone->domain))
		return ROLL_ENOENT;
	key = roll_key_name(zone->number, &zone->domain, name);
	is_apex = key.n == 4;
	emit.row.owner = name;
	status = find_spot(snap, &key, &spot);
	if (status)
		return status;
	if (is_apex) {
		emit.row.auth = true;
		return emit_apex(&emit, spot.row, type);
	}
	if (spot.row.n == 0 && !spot.has_below)
		return ROLL_ENOENT;
	status = find_auth(snap, zone, &key, &emit.row.auth);
	if (status)
		return status;
	if (spot.row.n)
		return emit_served(&emit, spot.row, type, ROLL_TYPE_ENT);
	emit.row.type = ROLL_TYPE_ENT;
	emit.row.rdata = roll_str_n("", 0);
	return on_row(ctx, &emit.row);
}

/* In canonical order everything below a cut follows it, so one cut at a time is enough. */
static enum roll_status emit_below_apex(struct emit *emit, struct roll_walk *walk)
{
	struct roll_key start = roll_key_number(emit->zone->number);
	struct roll_key cut;
	enum roll_status status;

	cut.n = 0;
	for (status = roll_walk_seek(walk, &start); !status; status = roll_walk_next(walk)) {
		struct roll_name owner;
		bool is_cut = false;

		if (!roll_str_has_prefix(walk->key, start.p, start.n))
			return ROLL_OK;
		if (walk->key.n == start.n)
			continue;
		status = roll_key_to_name(walk->key, &emit->zone->domain, &owner);
		if (!status)
			status = serves_ns(walk->value, &is_cut);
		if (status)
			return status;
		if (cut.n && !roll_str_has_prefix(walk->key, cut.p, cut.n))
			cut.n = 0;
		if (cut.n == 0 && is_cut) {
			memcpy(cut.p, walk->key.p, walk->key.n);
			cut.n = walk->key.n;
		}
		emit->row.owner = &owner;
		emit->row.auth = cut.n == 0;
		status = emit_served(emit, walk->value, ROLL_TYPE_ANY, ROLL_TYPE_ENT);
		if (status)
			return status;
	}
	return status == ROLL_ENOENT ? ROLL_OK : status;
}

enum roll_status roll_snap_list(struct roll_snap *snap, const struct roll_zone *zone,
				roll_on_row on_row, void *ctx)
{
	struct emit emit = {.snap = snap, .zone = zone, .on_row = on_row, .ctx = ctx};
	struct roll_key apex = roll_key_number(zone->number);
	struct roll_walk walk;
	struct roll_str row = {NULL, 0};
	enum roll_status status;

	status = roll_at_get(&snap->at, ROLL_TABLE_NAMES, &apex, &row);
	if (status && status != ROLL_ENOENT)
		return status;
	emit.row.owner = &zone->domain;
	emit.row.auth = true;
	status = emit_apex(&emit, row, ROLL_TYPE_ANY);
	if (!status)
		status = roll_walk_begin(&walk, &snap->at, ROLL_TABLE_NAMES);
	if (status)
		return status;
	status = emit_below_apex(&emit, &walk);
	roll_walk_end(&walk);
	return status;
}
