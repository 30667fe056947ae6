/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "view/view.h"

/*
 * From a row in domains to the zone that is served. Everything that hangs on the zone or its class
 * is settled here, when read, so that a change of a class or a hand-over is a small commit however
 * large the zones are. Results are cached until the next commit, so that a lookup is one seek.
 */

const char *roll_zone_state_text(enum roll_zone_state state)
{
	switch (state) {
	case ROLL_ZONE_SERVED:
		return "served";
	case ROLL_ZONE_IN_USE:
		return "in use";
	case ROLL_ZONE_NO_CLASS_NAME:
		return "no class name";
	case ROLL_ZONE_CLASS_MISSING:
		return "class missing";
	case ROLL_ZONE_CLASS_FOREIGN:
		return "class of another controller";
	case ROLL_ZONE_NO_NAMESERVERS:
		return "no nameservers";
	case ROLL_ZONE_UNCLAIMED:
		return "unclaimed";
	}
	return "unknown";
}

uint32_t roll_serial_later_or(uint32_t a, uint32_t b)
{
	if (a == 0 || b == 0)
		return a ? a : b;
	return roll_serial_later(a, b);
}

static enum roll_status find_class(const struct roll_at *at, struct roll_str name,
				   struct roll_class_row *out)
{
	struct roll_key key;
	struct roll_str bytes;
	enum roll_status status;

	if (name.n == 0)
		return ROLL_ENOENT;
	memset(&key, 0, offsetof(struct roll_key, p));
	roll_key_add(&key, name.p, name.n);
	status = roll_at_get(at, ROLL_TABLE_CLASSES, &key, &bytes);
	return status ? status : roll_class_row_decode(bytes, out);
}

/*
 * The serial counts the classes of the holder and of the claims passed over on the way to it: when
 * a class turns foreign, the next claim holds the domain without any change to this row, and the
 * serial must not fall back to what that claim's own class says. A class that changes gets a serial
 * later than any before, so whichever class moved the domain last decides.
 */
enum roll_status roll_domain_settle(const struct roll_at *at, const struct roll_head *head,
				    const struct roll_domain_row *row, struct roll_settled *out)
{
	out->state = row->claim_count ? ROLL_ZONE_CLASS_FOREIGN : ROLL_ZONE_UNCLAIMED;
	out->holder = ROLL_BY_NONE;
	out->has_class = false;
	out->serial = row->serial;
	for (uint32_t i = 0; i < row->claim_count; i++) {
		enum roll_status status = find_class(at, row->claims[i].class_name, &out->cls);

		if (status && status != ROLL_ENOENT)
			return status;
		if (!status)
			out->serial = roll_serial_later_or(out->serial, out->cls.serial);
		if (!status && !roll_str_eq(out->cls.controller, head->controller))
			continue;
		out->holder = i;
		out->has_class = !status;
		if (!status)
			out->state = ROLL_ZONE_SERVED;
		else
			out->state = row->claims[i].class_name.n ? ROLL_ZONE_CLASS_MISSING
								 : ROLL_ZONE_NO_CLASS_NAME;
		break;
	}
	return ROLL_OK;
}

enum roll_status roll_served_find(struct roll_str row, uint16_t type, struct roll_rrset_head *head,
				  struct roll_reader *rdata)
{
	uint16_t count;
	enum roll_status status = roll_claims_served(row, rdata, &count);

	if (status)
		return status;
	for (; count; count--) {
		*head = roll_rrset_decode_head(rdata);
		if (rdata->failed)
			return ROLL_ECORRUPT;
		if (type == ROLL_TYPE_ANY || head->type == type)
			return ROLL_OK;
		for (uint32_t i = 0; i < head->count && !rdata->failed; i++)
			(void)roll_rrset_decode_rdata(rdata);
	}
	return rdata->failed ? ROLL_ECORRUPT : ROLL_ENOENT;
}

/* The serial of the SOA object at the apex. ENOENT: there is none. */
static enum roll_status find_apex_soa(const struct roll_at *at, uint32_t number, uint32_t *serial)
{
	struct roll_key key = roll_key_number(number);
	struct roll_rrset_head head;
	struct roll_reader rdata;
	struct roll_str row;
	enum roll_status status = roll_at_get(at, ROLL_TABLE_NAMES, &key, &row);

	if (!status)
		status = roll_served_find(row, ROLL_TYPE_SOA, &head, &rdata);
	if (status)
		return status;
	if (head.count == 0)
		return ROLL_ECORRUPT;
	return roll_rdata_soa_serial(roll_rrset_decode_rdata(&rdata), serial);
}

static enum roll_status fill_zone(const struct roll_at *at, const struct roll_name *name,
				  const struct roll_domain_row *row,
				  const struct roll_settled *settled, struct roll_zone *out)
{
	const struct roll_domain_claim *claim = &row->claims[settled->holder];
	struct roll_key key = roll_key_number(claim->number);
	struct roll_dzone_row dzone;
	struct roll_str bytes;
	uint32_t own_serial = 0;
	enum roll_status status = roll_at_get(at, ROLL_TABLE_DZONES, &key, &bytes);

	if (!status)
		status = roll_dzone_row_decode(bytes, &dzone);
	if (status)
		return status == ROLL_ENOENT ? ROLL_ECORRUPT : status;
	status = find_apex_soa(at, claim->number, &own_serial);
	if (status && status != ROLL_ENOENT)
		return status;
	if (status && settled->cls.nameserver_count == 0)
		return ROLL_ENOENT;
	*out = (struct roll_zone){
		.id = row->id,
		.number = claim->number,
		.domain = *name,
		.object = claim->object,
		.class_name = claim->class_name,
		.serial = settled->serial,
		.soa_serial = own_serial ? own_serial : settled->serial,
		.default_ttl =
			settled->cls.has_default_ttl ? settled->cls.default_ttl : ROLL_TTL_DEFAULT,
		.cut_count = dzone.cut_count,
		.name_count = dzone.name_count,
		.nameserver_count = settled->cls.nameserver_count,
		.nameservers = settled->cls.nameservers,
	};
	return ROLL_OK;
}

enum roll_status roll_zone_resolve(const struct roll_snap *snap, const struct roll_name *name,
				   const struct roll_domain_row *row, enum roll_zone_state *state,
				   uint32_t *holder, struct roll_zone *out)
{
	struct roll_settled settled;
	enum roll_status status = roll_domain_settle(&snap->at, snap->head, row, &settled);

	if (status)
		return status;
	*state = settled.state;
	*holder = settled.holder;
	if (settled.state != ROLL_ZONE_SERVED)
		return ROLL_OK;
	status = fill_zone(&snap->at, name, row, &settled, out);
	if (status == ROLL_ENOENT) {
		*state = ROLL_ZONE_NO_NAMESERVERS;
		return ROLL_OK;
	}
	return status;
}

/*
 * A domain's slot follows from its name, and, unless its id had to give way to another's, from its
 * id as well, so that one table serves both.
 */
static struct roll_zone_slot *slot_of(const struct roll_snap *snap, uint32_t id)
{
	return &snap->slots[id % ROLL_ZONE_SLOTS];
}

static enum roll_status load_zone(struct roll_snap *snap, const struct roll_name *apex,
				  struct roll_zone *out)
{
	struct roll_key key = roll_key_domain(apex);
	struct roll_domain_row row;
	enum roll_zone_state state;
	struct roll_str bytes;
	uint32_t holder;
	enum roll_status status = roll_at_get(&snap->at, ROLL_TABLE_DOMAINS, &key, &bytes);

	if (status)
		return status;
	roll_arena_reset(&snap->work);
	status = roll_domain_row_decode(bytes, &snap->work, &row);
	if (!status)
		status = roll_zone_resolve(snap, apex, &row, &state, &holder, out);
	if (status)
		return status;
	return state == ROLL_ZONE_SERVED ? ROLL_OK : ROLL_ENOENT;
}

enum roll_status roll_snap_zone_at(struct roll_snap *snap, const struct roll_name *apex,
				   const struct roll_zone **out)
{
	struct roll_zone_slot *slot = slot_of(snap, roll_name_id(apex));
	struct roll_zone *zone;
	enum roll_status status;

	if (slot->content == snap->content && roll_name_eq(&slot->zone.domain, apex)) {
		slot->turn = snap->turn;
		*out = &slot->zone;
		return ROLL_OK;
	}
	if (slot->content != snap->content || slot->turn != snap->turn) {
		slot->content = 0;
		status = load_zone(snap, apex, &slot->zone);
		if (status)
			return status;
		slot->content = snap->content;
		slot->turn = snap->turn;
		*out = &slot->zone;
		return ROLL_OK;
	}
	zone = roll_arena_alloc(&snap->extra, sizeof *zone);
	if (!zone)
		return snap->extra.status;
	status = load_zone(snap, apex, zone);
	if (!status)
		*out = zone;
	return status;
}

enum roll_status roll_snap_zone_by_id(struct roll_snap *snap, uint32_t id,
				      const struct roll_zone **out)
{
	struct roll_zone_slot *slot = slot_of(snap, id);
	struct roll_key key = roll_key_number(id);
	struct roll_name name;
	struct roll_str bytes;
	enum roll_status status;

	if (slot->content == snap->content && slot->zone.id == id) {
		slot->turn = snap->turn;
		*out = &slot->zone;
		return ROLL_OK;
	}
	status = roll_at_get(&snap->at, ROLL_TABLE_IDS, &key, &bytes);
	if (!status)
		status = roll_key_to_domain(bytes, &name);
	return status ? status : roll_snap_zone_at(snap, &name, out);
}

enum roll_status roll_snap_zone_of(struct roll_snap *snap, const struct roll_name *name,
				   const struct roll_zone **out)
{
	struct roll_name at = *name;

	for (;;) {
		enum roll_status status = roll_snap_zone_at(snap, &at, out);

		if (status != ROLL_ENOENT || at.len <= 1)
			return status;
		at = roll_name_parent(&at, 1);
	}
}
