/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_TESTS_FAKE_VIEW_H
#define ROLL_TESTS_FAKE_VIEW_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dns/rdata.h"
#include "dns/type.h"
#include "view/read.h"

/*
 * view/read.h without a view: a fixed set of zones, and errors wherever a test wants them. Include
 * it in one file of a program; its definitions are then linked instead of the real ones.
 *
 *	example.org (1)        apex, www, wildcard, txt, ALIAS, cut at sub with glue, ENT at
 *ent.deep child.example.org (2)  a zone below the other broken.org (3)         a record that is not
 *the wire form of its type big.org (4)            fake.big_rows records below it gone.org claimed,
 *not served
 */
struct fake_view {
	struct roll_head head;
	enum roll_status begin_status; /* of roll_snap_begin */
	enum roll_status read_status;  /* of everything that reads */
	bool is_empty;		       /* no zone at all */
	bool is_whole;		       /* broken.org is not among the domains */
	uint32_t big_rows;
	size_t begun, ended;
};
static struct fake_view fake;

struct roll_view {
	int unused;
};
struct roll_snap {
	struct roll_zone zone;
};
static struct roll_view fake_the_view;
static struct roll_snap fake_snap;

struct fake_row {
	uint32_t zone;
	const char *owner;
	uint16_t type;
	bool auth;
	uint32_t ttl;
	const char *text; /* an address, a target, or a TXT as its author writes it */
};

static const struct {
	uint32_t id;
	const char *domain;
} fake_zones[] = {
	{1, "example.org"},
	{2, "child.example.org"},
	{3, "broken.org"},
	{4, "big.org"},
};

static const struct fake_row fake_rows[] = {
	{1, "example.org", ROLL_TYPE_SOA, true, 3600, "ns1.example.org"},
	{1, "example.org", ROLL_TYPE_NS, true, 3600, "ns1.example.org"},
	{1, "*.wild.example.org", ROLL_TYPE_A, true, 300, "192.0.2.80"},
	{1, "a\\.b.example.org", ROLL_TYPE_A, true, 300, "192.0.2.81"},
	{1, "alias.example.org", ROLL_TYPE_ALIAS, true, 300, "www.example.org"},
	{1, "ent.deep.example.org", ROLL_TYPE_A, true, 300, "192.0.2.12"},
	{1, "ns1.example.org", ROLL_TYPE_A, true, 300, "192.0.2.1"},
	{1, "sub.example.org", ROLL_TYPE_NS, false, 300, "ns.sub.example.org"},
	{1, "ns.sub.example.org", ROLL_TYPE_A, false, 300, "192.0.2.90"},
	{1, "txt.example.org", ROLL_TYPE_TXT, true, 300, "say \"hi\"\\\\ \xc3\xa9"},
	{1, "www.example.org", ROLL_TYPE_A, true, 300, "192.0.2.10"},
	{1, "www.example.org", ROLL_TYPE_A, true, 300, "192.0.2.11"},
	{1, "www.example.org", ROLL_TYPE_AAAA, true, 60, "2001:db8::10"},
	{2, "child.example.org", ROLL_TYPE_SOA, true, 3600, "ns1.child.example.org"},
	{2, "www.child.example.org", ROLL_TYPE_A, true, 0, "192.0.2.20"},
	{3, "broken.org", ROLL_TYPE_SOA, true, 3600, "ns1.broken.org"},
	{3, "www.broken.org", ROLL_TYPE_AAAA, true, 300, NULL},
	{4, "big.org", ROLL_TYPE_SOA, true, 3600, "ns1.big.org"},
};

static inline struct roll_name fake_name(const char *text)
{
	struct roll_name name;
	enum roll_status status = roll_name_parse(roll_str_c(text), &name, NULL);

	assert(status == ROLL_OK);
	(void)status;
	return name;
}

static inline void fake_reset(void)
{
	fake = (struct fake_view){.head = {.generation = 7,
					   .complete_since_ms = 1,
					   .confirmed_ms = 1000000,
					   .object_count = {1, 2, 3},
					   .name_count = 12}};
}

enum roll_status roll_snap_begin(struct roll_view *view, bool complete_only, struct roll_snap **out,
				 struct roll_err *err)
{
	(void)view;
	assert(complete_only && fake.begun == fake.ended);
	if (fake.begin_status)
		return roll_err_set(err, fake.begin_status, NULL, "the view says \"%s\"",
				    roll_status_text(fake.begin_status));
	fake.begun++;
	*out = &fake_snap;
	return ROLL_OK;
}

void roll_snap_end(struct roll_snap *snap)
{
	if (snap)
		fake.ended++;
}

uint64_t roll_snap_content(const struct roll_snap *snap)
{
	(void)snap;
	return fake.head.generation;
}

const struct roll_head *roll_snap_head(const struct roll_snap *snap)
{
	(void)snap;
	return &fake.head;
}

static inline void fake_fill_zone(size_t i, struct roll_zone *zone)
{
	*zone = (struct roll_zone){.id = fake_zones[i].id,
				   .domain = fake_name(fake_zones[i].domain),
				   .soa_serial = 2026000000 + fake_zones[i].id};
}

enum roll_status roll_snap_zone_by_id(struct roll_snap *snap, uint32_t id,
				      const struct roll_zone **out)
{
	if (fake.read_status)
		return fake.read_status;
	for (size_t i = 0; !fake.is_empty && i < sizeof fake_zones / sizeof *fake_zones; i++) {
		if (fake_zones[i].id == id) {
			fake_fill_zone(i, &snap->zone);
			*out = &snap->zone;
			return ROLL_OK;
		}
	}
	return ROLL_ENOENT;
}

enum roll_status roll_snap_zone_at(struct roll_snap *snap, const struct roll_name *apex,
				   const struct roll_zone **out)
{
	if (fake.read_status)
		return fake.read_status;
	for (size_t i = 0; !fake.is_empty && i < sizeof fake_zones / sizeof *fake_zones; i++) {
		fake_fill_zone(i, &snap->zone);
		*out = &snap->zone;
		if (roll_name_eq(&snap->zone.domain, apex))
			return ROLL_OK;
	}
	return ROLL_ENOENT;
}

enum roll_status roll_snap_zone_of(struct roll_snap *snap, const struct roll_name *name,
				   const struct roll_zone **out)
{
	struct roll_name at = *name;

	for (;;) {
		enum roll_status status = roll_snap_zone_at(snap, &at, out);

		if (status != ROLL_ENOENT || at.len == 1)
			return status;
		at = roll_name_parent(&at, 1);
	}
}

static inline void fake_rdata(const struct fake_row *row, struct roll_buf *wire)
{
	const struct roll_check at = {NULL, "fake"};
	struct roll_str text = roll_str_c(row->text);
	struct roll_name mname, apex;
	enum roll_status status;

	if (!row->text) {
		roll_buf_add(wire, "bad", 3);
		return;
	}
	switch (row->type) {
	case ROLL_TYPE_SOA:
		mname = fake_name(row->text);
		apex = fake_name(row->owner);
		status = roll_rdata_soa_default(&mname, &apex, wire);
		break;
	case ROLL_TYPE_A:
		status = roll_rdata_a(at, text, wire);
		break;
	case ROLL_TYPE_AAAA:
		status = roll_rdata_aaaa(at, text, wire);
		break;
	case ROLL_TYPE_TXT:
		status = roll_rdata_txt(at, text, wire);
		break;
	default:
		status = roll_rdata_target(at, row->type, text, wire);
	}
	assert(status == ROLL_OK);
	(void)status;
}

static inline enum roll_status fake_send(const struct fake_row *from, const struct roll_name *owner,
					 roll_on_row on_row, void *ctx)
{
	struct roll_row row = {
		.owner = owner, .type = from->type, .auth = from->auth, .ttl = from->ttl};
	struct roll_buf wire;
	enum roll_status status;

	roll_buf_init(&wire, 1 << 17);
	fake_rdata(from, &wire);
	row.rdata = roll_buf_str(&wire);
	status = on_row(ctx, &row);
	roll_buf_fini(&wire);
	return status;
}

enum roll_status roll_snap_lookup(struct roll_snap *snap, const struct roll_zone *zone,
				  const struct roll_name *name, uint16_t type, roll_on_row on_row,
				  void *ctx)
{
	bool has_data = false, has_below = false;
	enum roll_status status;

	(void)snap;
	if (fake.read_status)
		return fake.read_status;
	for (size_t i = 0; i < sizeof fake_rows / sizeof *fake_rows; i++) {
		const struct fake_row *row = &fake_rows[i];
		struct roll_name owner = fake_name(row->owner);

		if (row->zone != zone->id || !roll_name_is_within(&owner, name))
			continue;
		if (!roll_name_eq(&owner, name)) {
			has_below = true;
			continue;
		}
		has_data = true;
		if (type != ROLL_TYPE_ANY && type != row->type)
			continue;
		status = fake_send(row, &owner, on_row, ctx);
		if (status)
			return status;
	}
	if (!has_data && has_below) {
		struct roll_row ent = {.owner = name, .type = ROLL_TYPE_ENT, .auth = true};

		return on_row(ctx, &ent);
	}
	return has_data ? ROLL_OK : ROLL_ENOENT;
}

enum roll_status roll_snap_list(struct roll_snap *snap, const struct roll_zone *zone,
				roll_on_row on_row, void *ctx)
{
	static const struct fake_row big = {4, "", ROLL_TYPE_A, true, 300, "192.0.2.4"};
	enum roll_status status = fake.read_status;
	struct roll_name owner;
	char text[64];
	uint32_t id = zone->id;

	(void)snap;
	for (size_t i = 0; !status && i < sizeof fake_rows / sizeof *fake_rows; i++) {
		if (fake_rows[i].zone != id)
			continue;
		owner = fake_name(fake_rows[i].owner);
		status = fake_send(&fake_rows[i], &owner, on_row, ctx);
	}
	for (uint32_t i = 0; !status && id == 4 && i < fake.big_rows; i++) {
		snprintf(text, sizeof text, "name-%08u.big.org", i);
		owner = fake_name(text);
		status = fake_send(&big, &owner, on_row, ctx);
	}
	return status;
}

enum roll_status roll_snap_domains(struct roll_snap *snap, roll_on_domain on_domain, void *ctx)
{
	struct roll_domain domain = {.holder = ROLL_BY_NONE, .state = ROLL_ZONE_UNCLAIMED};
	enum roll_status status = fake.read_status;

	if (status)
		return status;
	domain.name = fake_name("gone.org");
	status = on_domain(ctx, &domain);
	for (size_t i = 0; !fake.is_empty && !status && i < sizeof fake_zones / sizeof *fake_zones;
	     i++) {
		if (fake.is_whole && fake_zones[i].id == 3)
			continue;
		fake_fill_zone(i, &snap->zone);
		domain = (struct roll_domain){
			.name = snap->zone.domain, .state = ROLL_ZONE_SERVED, .zone = &snap->zone};
		status = on_domain(ctx, &domain);
	}
	return status;
}

#endif
