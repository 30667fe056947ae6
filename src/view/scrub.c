/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "view/view.h"

/*
 * Integrity below the rows: every value decodes, every index leads to its row and back, every count
 * is right, and claims are decided as they would be now. Whether the rows are what the objects mean
 * is not asked here; that needs the model.
 */

#define SCRUB_LIMIT ((size_t)256 << 20)
#define ROW_LIMIT ((size_t)256 << 20)

struct scrub {
	struct roll_snap *snap;
	roll_on_damage on_damage;
	void *ctx;
	struct roll_arena arena;
	struct roll_buf buf;
	struct roll_buf shown;
	enum roll_table table;
	struct roll_str key;
	/* While names are walked: */
	bool has_dzone;
	uint32_t number;
	struct roll_dzone_row dzone;
	uint32_t name_count;
	uint32_t cut_count;
};

static void damage(struct scrub *scrub, const char *what)
{
	roll_buf_reset(&scrub->shown);
	roll_buf_add_shown(&scrub->shown, scrub->key, 200);
	scrub->on_damage(scrub->ctx, roll_table_names[scrub->table], roll_buf_str(&scrub->shown),
			 what);
}

/* A row that must be there. */
static enum roll_status must_have(struct scrub *scrub, enum roll_table table,
				  const struct roll_key *key, const char *otherwise,
				  struct roll_str *out)
{
	enum roll_status status = roll_at_get(&scrub->snap->at, table, key, out);

	if (status == ROLL_ENOENT)
		damage(scrub, otherwise);
	return status;
}

/* What ENOMEM and EIO mean stays an error; anything else was told. */
static enum roll_status told(enum roll_status status)
{
	return status == ROLL_ENOENT || status == ROLL_ECORRUPT ? ROLL_OK : status;
}

static enum roll_status scrub_object(struct scrub *scrub, struct roll_str value)
{
	struct roll_object_row row;
	struct roll_str found;
	struct roll_key key;
	enum roll_status status;
	enum roll_row_kind kind;

	if (scrub->key.n < 2 || (uint8_t)scrub->key.p[0] >= ROLL_ROW_KINDS) {
		damage(scrub, "the key is not that of an object");
		return ROLL_OK;
	}
	kind = (enum roll_row_kind)scrub->key.p[0];
	if (roll_object_row_decode(kind, roll_str_n(scrub->key.p + 1, scrub->key.n - 1), value,
				   &row)) {
		damage(scrub, "the row does not decode");
		return ROLL_OK;
	}
	if (row.zone.n) {
		key = roll_key_byzone(row.zone, row.key);
		status = must_have(scrub, ROLL_TABLE_BYZONE, &key, "not listed by zone", &found);
		if (told(status))
			return status;
	}
	if (row.scope.n) {
		key = roll_key_byscope(row.scope, kind, row.key);
		status = must_have(scrub, ROLL_TABLE_BYSCOPE, &key, "not listed by scope", &found);
		if (told(status))
			return status;
	}
	if (kind == ROLL_ROW_CLASS) {
		key = roll_key_of("");
		roll_key_add(&key, row.key.p, row.key.n);
		return told(
			must_have(scrub, ROLL_TABLE_CLASSES, &key, "no row in classes", &found));
	}
	if (kind == ROLL_ROW_ZONE && row.number) {
		key = roll_key_number(row.number);
		return told(must_have(scrub, ROLL_TABLE_DZONES, &key, "no row in dzones", &found));
	}
	return ROLL_OK;
}

/* A row of byzone or byscope: skip is what stands before the object's key. */
static enum roll_status scrub_index(struct scrub *scrub, struct roll_str value)
{
	bool is_byzone = scrub->table == ROLL_TABLE_BYZONE;
	size_t skip = is_byzone ? 8 : 9;
	enum roll_row_kind kind = ROLL_ROW_RECORDSET;
	struct roll_object_row row;
	enum roll_status status;
	struct roll_str hashed;

	if (scrub->key.n <= skip || value.n ||
	    (!is_byzone && (uint8_t)scrub->key.p[8] >= ROLL_ROW_KINDS)) {
		damage(scrub, "not a row of this index");
		return ROLL_OK;
	}
	if (!is_byzone)
		kind = (enum roll_row_kind)scrub->key.p[8];
	status = roll_snap_object(scrub->snap, kind,
				  roll_str_n(scrub->key.p + skip, scrub->key.n - skip), &row);
	if (status == ROLL_ENOENT)
		damage(scrub, "the object is not there");
	if (status)
		return told(status);
	hashed = is_byzone ? row.zone : row.scope;
	if (hashed.n == 0 || roll_hash64(hashed.p, hashed.n) != roll_key_u64(scrub->key))
		damage(scrub, "the object belongs elsewhere");
	return ROLL_OK;
}

static enum roll_status scrub_class(struct scrub *scrub, struct roll_str value)
{
	struct roll_key key = roll_key_object(ROLL_ROW_CLASS, scrub->key);
	struct roll_class_row row;
	struct roll_str found;

	if (roll_class_row_decode(value, &row))
		damage(scrub, "the row does not decode");
	return told(must_have(scrub, ROLL_TABLE_OBJECTS, &key, "the object is not there", &found));
}

static enum roll_status scrub_domain(struct scrub *scrub, struct roll_str value)
{
	struct roll_domain_row row;
	struct roll_name name;
	struct roll_str found;
	struct roll_key key;
	enum roll_status status;

	if (roll_key_to_domain(scrub->key, &name) ||
	    roll_domain_row_decode(value, &scrub->arena, &row)) {
		damage(scrub, "the row does not decode");
		return ROLL_OK;
	}
	key = roll_key_number(row.id);
	status = must_have(scrub, ROLL_TABLE_IDS, &key, "its id is not listed", &found);
	if (!status && !roll_str_eq(found, scrub->key))
		damage(scrub, "its id is another domain's");
	for (uint32_t i = 0; i < row.claim_count && !told(status); i++) {
		struct roll_dzone_row dzone;
		struct roll_object_row object;

		key = roll_key_number(row.claims[i].number);
		status = must_have(scrub, ROLL_TABLE_DZONES, &key, "a claim has no row in dzones",
				   &found);
		if (!status &&
		    (roll_dzone_row_decode(found, &dzone) || !roll_name_eq(&dzone.domain, &name) ||
		     !roll_str_eq(dzone.object, row.claims[i].object)))
			damage(scrub, "a claim and its row in dzones differ");
		if (told(status))
			break;
		status =
			roll_snap_object(scrub->snap, ROLL_ROW_ZONE, row.claims[i].object, &object);
		if (status == ROLL_ENOENT)
			damage(scrub, "a claim is left of a DNSZone that is not there");
		else if (!status && object.number != row.claims[i].number)
			damage(scrub, "a claim has another number than its DNSZone");
	}
	return told(status);
}

static enum roll_status scrub_id(struct scrub *scrub, struct roll_str value)
{
	struct roll_domain_row row;
	struct roll_name name;
	struct roll_str found;
	struct roll_key key;
	enum roll_status status;

	if (scrub->key.n != 4 || roll_key_to_domain(value, &name)) {
		damage(scrub, "the row does not decode");
		return ROLL_OK;
	}
	key = roll_key_domain(&name);
	status = must_have(scrub, ROLL_TABLE_DOMAINS, &key, "the domain is not there", &found);
	if (!status && !roll_domain_row_decode(found, &scrub->arena, &row) &&
	    row.id != roll_key_u32(scrub->key))
		damage(scrub, "the domain has another id");
	return told(status);
}

static enum roll_status scrub_dzone(struct scrub *scrub, struct roll_str value)
{
	struct roll_key key = roll_key_number(roll_key_u32(scrub->key));
	struct roll_object_row object;
	struct roll_dzone_row row;
	struct roll_str ignored;
	struct roll_walk walk;
	enum roll_status status;

	if (scrub->key.n != 4 || roll_dzone_row_decode(value, &row)) {
		damage(scrub, "the row does not decode");
		return ROLL_OK;
	}
	status = roll_at_get(&scrub->snap->at, ROLL_TABLE_GONE, &key, &ignored);
	if (status != ROLL_ENOENT)
		return status;
	status = roll_snap_object(scrub->snap, ROLL_ROW_ZONE, row.object, &object);
	if (status == ROLL_ENOENT || (!status && object.number != roll_key_u32(scrub->key)))
		damage(scrub, "no DNSZone has this number, and it is not gone");
	if (told(status) || row.name_count == 0)
		return told(status);
	/* Where there are some, they are counted when names are walked. */
	status = roll_walk_begin(&walk, &scrub->snap->at, ROLL_TABLE_NAMES);
	if (status)
		return status;
	status = roll_walk_seek(&walk, &key);
	if (status == ROLL_ENOENT || (!status && !roll_str_has_prefix(walk.key, key.p, key.n)))
		damage(scrub, "names are counted where there are none");
	roll_walk_end(&walk);
	return told(status);
}

static void close_number(struct scrub *scrub)
{
	if (scrub->has_dzone && scrub->dzone.name_count != scrub->name_count)
		damage(scrub, "dzones counts other names than there are under the number before");
	if (scrub->has_dzone && scrub->dzone.cut_count != scrub->cut_count)
		damage(scrub, "dzones counts other delegations than there are under the number "
			      "before");
	scrub->has_dzone = false;
	scrub->name_count = 0;
	scrub->cut_count = 0;
}

static enum roll_status open_number(struct scrub *scrub, uint32_t number)
{
	struct roll_key key = roll_key_number(number);
	struct roll_str bytes, ignored;
	enum roll_status status;

	scrub->number = number;
	status = must_have(scrub, ROLL_TABLE_DZONES, &key, "names under an unknown number", &bytes);
	if (status)
		return told(status);
	if (roll_dzone_row_decode(bytes, &scrub->dzone))
		return ROLL_OK; /* told when dzones was walked */
	/* While a number is swept its counts are of no use. */
	status = roll_at_get(&scrub->snap->at, ROLL_TABLE_GONE, &key, &ignored);
	scrub->has_dzone = status == ROLL_ENOENT;
	return told(status);
}

static const char *check_claims(struct scrub *scrub, struct roll_claim *claims, size_t count,
				struct roll_str value, bool is_apex)
{
	for (size_t i = 0; i < count; i++) {
		const struct roll_rrset *rrset = &claims[i].rrset;

		for (uint32_t j = 0; j < rrset->count; j++)
			if (roll_rdata_check(rrset->type, rrset->rdata[j]))
				return "a record is not in wire form";
	}
	roll_claims_decide(claims, count, is_apex);
	roll_buf_reset(&scrub->buf);
	roll_claims_encode(claims, count, &scrub->buf);
	if (scrub->buf.status)
		return NULL;
	return roll_str_eq(roll_buf_str(&scrub->buf), value) ? NULL
							     : "claims are decided otherwise now";
}

static enum roll_status scrub_names(struct scrub *scrub, struct roll_str value)
{
	uint32_t number = roll_key_u32(scrub->key);
	struct roll_rrset_head head;
	struct roll_reader rdata;
	struct roll_claim *claims;
	struct roll_name name;
	enum roll_status status = ROLL_OK;
	const char *what;
	size_t count;

	if (number != scrub->number || scrub->key.n < 4) {
		close_number(scrub);
		status = open_number(scrub, number);
		if (status)
			return status;
	}
	scrub->name_count++;
	if (roll_key_to_name(scrub->key, scrub->has_dzone ? &scrub->dzone.domain : &roll_name_root,
			     &name))
		damage(scrub, "the key is not a name");
	status = roll_claims_decode(value, &scrub->arena, &claims, &count);
	if (status == ROLL_ECORRUPT || (!status && count == 0)) {
		damage(scrub, "the row does not decode");
		return ROLL_OK;
	}
	if (status)
		return status;
	if (scrub->key.n > 4 && !roll_served_find(value, ROLL_TYPE_NS, &head, &rdata))
		scrub->cut_count++;
	what = check_claims(scrub, claims, count, value, scrub->key.n == 4);
	if (what)
		damage(scrub, what);
	return scrub->buf.status;
}

static enum roll_status scrub_row(struct scrub *scrub, struct roll_str value)
{
	struct roll_removal removal;
	struct roll_str found;
	struct roll_key key;

	roll_arena_reset(&scrub->arena);
	switch (scrub->table) {
	case ROLL_TABLE_OBJECTS:
		return scrub_object(scrub, value);
	case ROLL_TABLE_BYZONE:
	case ROLL_TABLE_BYSCOPE:
		return scrub_index(scrub, value);
	case ROLL_TABLE_CLASSES:
		return scrub_class(scrub, value);
	case ROLL_TABLE_DOMAINS:
		return scrub_domain(scrub, value);
	case ROLL_TABLE_IDS:
		return scrub_id(scrub, value);
	case ROLL_TABLE_DZONES:
		return scrub_dzone(scrub, value);
	case ROLL_TABLE_NAMES:
		return scrub_names(scrub, value);
	case ROLL_TABLE_GONE:
		key = roll_key_number(roll_key_u32(scrub->key));
		return told(must_have(scrub, ROLL_TABLE_DZONES, &key, "no row in dzones", &found));
	case ROLL_TABLE_REMOVALS:
		if (scrub->key.n != 8 ||
		    roll_removal_decode(roll_key_u64(scrub->key), value, &removal))
			damage(scrub, "the row does not decode");
		return ROLL_OK;
	case ROLL_TABLE_META:  /* the head was read; positions are the source's own */
	case ROLL_TABLE_STAGE: /* what a list brought, judged when it is applied */
	case ROLL_TABLE_COUNT:
		break;
	}
	return ROLL_OK;
}

static enum roll_status scrub_table(struct scrub *scrub, uint64_t *rows, uint64_t *objects)
{
	struct roll_walk walk;
	enum roll_status status = roll_walk_begin(&walk, &scrub->snap->at, scrub->table);

	if (status)
		return status;
	for (status = roll_walk_seek(&walk, NULL); !status; status = roll_walk_next(&walk)) {
		scrub->key = walk.key;
		if (scrub->table == ROLL_TABLE_OBJECTS && walk.key.n &&
		    (uint8_t)walk.key.p[0] < ROLL_ROW_KINDS)
			objects[(uint8_t)walk.key.p[0]]++;
		(*rows)++;
		status = scrub_row(scrub, walk.value);
		if (status)
			break;
	}
	roll_walk_end(&walk);
	if (status == ROLL_ENOENT)
		status = ROLL_OK;
	if (scrub->table == ROLL_TABLE_NAMES && !status)
		close_number(scrub);
	return status;
}

static void compare_count(struct scrub *scrub, enum roll_table table, const char *what,
			  uint64_t counted, uint64_t found)
{
	char text[120];

	if (counted == found)
		return;
	scrub->table = table;
	scrub->key = roll_str_c("head");
	snprintf(text, sizeof text, "head counts %" PRIu64 " %s, there are %" PRIu64, counted, what,
		 found);
	damage(scrub, text);
}

enum roll_status roll_snap_scrub(struct roll_snap *snap, roll_on_damage on_damage, void *ctx)
{
	struct scrub scrub = {.snap = snap, .on_damage = on_damage, .ctx = ctx};
	uint64_t objects[ROLL_ROW_KINDS] = {0}, names = 0;
	enum roll_status status = ROLL_OK;

	roll_arena_init(&scrub.arena, SCRUB_LIMIT);
	roll_buf_init(&scrub.buf, ROW_LIMIT);
	roll_buf_init(&scrub.shown, 2048);
	for (int table = 0; table < ROLL_TABLE_COUNT && !status; table++) {
		uint64_t rows = 0;

		scrub.table = (enum roll_table)table;
		status = scrub_table(&scrub, &rows, objects);
		if (table == ROLL_TABLE_NAMES)
			names = rows;
	}
	if (!status) {
		compare_count(&scrub, ROLL_TABLE_OBJECTS, "classes",
			      snap->head->object_count[ROLL_ROW_CLASS], objects[ROLL_ROW_CLASS]);
		compare_count(&scrub, ROLL_TABLE_OBJECTS, "zones",
			      snap->head->object_count[ROLL_ROW_ZONE], objects[ROLL_ROW_ZONE]);
		compare_count(&scrub, ROLL_TABLE_OBJECTS, "record sets",
			      snap->head->object_count[ROLL_ROW_RECORDSET],
			      objects[ROLL_ROW_RECORDSET]);
		compare_count(&scrub, ROLL_TABLE_NAMES, "names", snap->head->name_count, names);
	}
	roll_arena_fini(&scrub.arena);
	roll_buf_fini(&scrub.buf);
	roll_buf_fini(&scrub.shown);
	return status;
}
