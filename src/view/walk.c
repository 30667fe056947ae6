/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "view/view.h"

/*
 * Everything that is read but answers: domains and their claims, claims at names, objects, what is
 * gone.
 */

#define WALK_LIMIT ((size_t)256 << 20)

/* At the end of a table, or of the part that was asked for, a walk is complete. */
static enum roll_status ended(enum roll_status status)
{
	return status == ROLL_ENOENT ? ROLL_OK : status;
}

static enum roll_status fill_domain(struct roll_snap *snap, struct roll_domain *domain,
				    const struct roll_domain_row *row, struct roll_zone *zone)
{
	enum roll_status status =
		roll_zone_resolve(snap, &domain->name, row, &domain->state, &domain->holder, zone);

	domain->row = row;
	domain->zone = !status && domain->state == ROLL_ZONE_SERVED ? zone : NULL;
	return status;
}

/* To the first row after the key. */
static enum roll_status seek_after(struct roll_walk *walk, const struct roll_key *key)
{
	enum roll_status status = roll_walk_seek(walk, key);

	if (!status && walk->key.n == key->n && roll_str_has_prefix(walk->key, key->p, key->n))
		status = roll_walk_next(walk);
	return status;
}

static enum roll_status show_domains(struct roll_snap *snap, struct roll_walk *walk,
				     const struct roll_name *after, struct roll_arena *arena,
				     roll_on_domain on_domain, void *ctx)
{
	enum roll_status status;

	if (after) {
		struct roll_key key = roll_key_domain(after);

		status = seek_after(walk, &key);
	} else {
		status = roll_walk_seek(walk, NULL);
	}
	for (; !status; status = roll_walk_next(walk)) {
		struct roll_domain_row row;
		struct roll_domain domain;
		struct roll_zone zone;

		roll_arena_reset(arena);
		status = roll_domain_row_decode(walk->value, arena, &row);
		if (status)
			return status;
		if (row.claim_count == 0)
			continue;
		status = roll_key_to_domain(walk->key, &domain.name);
		if (!status)
			status = fill_domain(snap, &domain, &row, &zone);
		if (status)
			return status;
		status = on_domain(ctx, &domain);
		if (status)
			return status;
	}
	return ended(status);
}

enum roll_status roll_snap_domains(struct roll_snap *snap, roll_on_domain on_domain, void *ctx)
{
	return roll_snap_domains_after(snap, NULL, on_domain, ctx);
}

enum roll_status roll_snap_domains_after(struct roll_snap *snap, const struct roll_name *after,
					 roll_on_domain on_domain, void *ctx)
{
	struct roll_arena arena;
	struct roll_walk walk;
	enum roll_status status = roll_walk_begin(&walk, &snap->at, ROLL_TABLE_DOMAINS);

	if (status)
		return status;
	roll_arena_init(&arena, WALK_LIMIT);
	status = show_domains(snap, &walk, after, &arena, on_domain, ctx);
	roll_arena_fini(&arena);
	roll_walk_end(&walk);
	return status;
}

enum roll_status roll_snap_domain(struct roll_snap *snap, const struct roll_name *name,
				  struct roll_domain *out)
{
	struct roll_key key = roll_key_domain(name);
	struct roll_str bytes;
	enum roll_status status = roll_at_get(&snap->at, ROLL_TABLE_DOMAINS, &key, &bytes);

	if (status)
		return status;
	roll_arena_reset(&snap->shown);
	status = roll_domain_row_decode(bytes, &snap->shown, &snap->shown_row);
	if (status)
		return status;
	if (snap->shown_row.claim_count == 0)
		return ROLL_ENOENT;
	out->name = *name;
	return fill_domain(snap, out, &snap->shown_row, &snap->shown_zone);
}

enum roll_status roll_snap_claim_state(struct roll_snap *snap, const struct roll_domain *domain,
				       uint32_t index, enum roll_zone_state *out)
{
	struct roll_domain_claim *claim = &domain->row->claims[index];
	struct roll_domain_row alone = {.claim_count = 1, .claims = claim};
	struct roll_settled settled;
	enum roll_status status;

	if (index == domain->holder) {
		*out = domain->state;
		return ROLL_OK;
	}
	status = roll_domain_settle(&snap->at, snap->head, &alone, &settled);
	if (!status)
		*out = settled.state == ROLL_ZONE_CLASS_FOREIGN ? settled.state : ROLL_ZONE_IN_USE;
	return status;
}

enum roll_status roll_snap_claims(struct roll_snap *snap, uint32_t number,
				  const struct roll_name *domain, const struct roll_name *name,
				  struct roll_arena *arena, struct roll_claim **claims,
				  size_t *count)
{
	struct roll_key key;
	struct roll_str bytes;
	enum roll_status status;

	if (!roll_name_is_within(name, domain))
		return ROLL_ENOENT;
	key = roll_key_name(number, domain, name);
	status = roll_at_get(&snap->at, ROLL_TABLE_NAMES, &key, &bytes);
	return status ? status : roll_claims_decode(bytes, arena, claims, count);
}

static enum roll_status show_claims(struct roll_walk *walk, uint32_t number,
				    const struct roll_name *domain, const struct roll_name *after,
				    struct roll_arena *arena, roll_on_claims on_claims, void *ctx)
{
	struct roll_key start = roll_key_number(number);
	enum roll_status status;

	if (after) {
		struct roll_key key = roll_key_name(number, domain, after);

		status = seek_after(walk, &key);
	} else {
		status = roll_walk_seek(walk, &start);
	}
	for (; !status; status = roll_walk_next(walk)) {
		struct roll_name owner;
		struct roll_claim *claims;
		size_t count;

		if (!roll_str_has_prefix(walk->key, start.p, start.n))
			return ROLL_OK;
		roll_arena_reset(arena);
		status = roll_key_to_name(walk->key, domain, &owner);
		if (!status)
			status = roll_claims_decode(walk->value, arena, &claims, &count);
		if (status)
			return status;
		status = on_claims(ctx, &owner, claims, count);
		if (status)
			return status;
	}
	return ended(status);
}

enum roll_status roll_snap_all_claims(struct roll_snap *snap, uint32_t number,
				      const struct roll_name *domain, roll_on_claims on_claims,
				      void *ctx)
{
	return roll_snap_claims_after(snap, number, domain, NULL, on_claims, ctx);
}

enum roll_status roll_snap_claims_after(struct roll_snap *snap, uint32_t number,
					const struct roll_name *domain,
					const struct roll_name *after, roll_on_claims on_claims,
					void *ctx)
{
	struct roll_arena arena;
	struct roll_walk walk;
	enum roll_status status = roll_walk_begin(&walk, &snap->at, ROLL_TABLE_NAMES);

	if (status)
		return status;
	roll_arena_init(&arena, WALK_LIMIT);
	/* That cannot be a name to go on from. */
	if (after && !roll_name_is_within(after, domain))
		after = NULL;
	status = show_claims(&walk, number, domain, after, &arena, on_claims, ctx);
	roll_arena_fini(&arena);
	roll_walk_end(&walk);
	return status;
}

enum roll_status roll_snap_object(struct roll_snap *snap, enum roll_row_kind kind,
				  struct roll_str key, struct roll_object_row *out)
{
	struct roll_key full = roll_key_object(kind, key);
	struct roll_str bytes;
	enum roll_status status = roll_at_get(&snap->at, ROLL_TABLE_OBJECTS, &full, &bytes);

	return status ? status : roll_object_row_decode(kind, key, bytes, out);
}

static enum roll_status show_objects(struct roll_walk *walk, enum roll_row_kind kind,
				     struct roll_str after, roll_on_object on_object, void *ctx)
{
	struct roll_key start = roll_key_object(kind, after);
	enum roll_status status = after.n ? seek_after(walk, &start) : roll_walk_seek(walk, &start);

	for (; !status; status = roll_walk_next(walk)) {
		struct roll_object_row row;

		if (walk->key.n < 1 || walk->key.p[0] != (char)kind)
			return ROLL_OK;
		status = roll_object_row_decode(kind, roll_str_n(walk->key.p + 1, walk->key.n - 1),
						walk->value, &row);
		if (status)
			return status;
		status = on_object(ctx, &row);
		if (status)
			return status;
	}
	return ended(status);
}

enum roll_status roll_snap_objects(struct roll_snap *snap, enum roll_row_kind kind,
				   struct roll_str after, roll_on_object on_object, void *ctx)
{
	struct roll_walk walk;
	enum roll_status status = roll_walk_begin(&walk, &snap->at, ROLL_TABLE_OBJECTS);

	if (status)
		return status;
	status = show_objects(&walk, kind, after, on_object, ctx);
	roll_walk_end(&walk);
	return status;
}

static enum roll_status show_recordsets(struct roll_snap *snap, struct roll_walk *walk,
					struct roll_str zone_key, struct roll_str after,
					roll_on_object on_object, void *ctx)
{
	struct roll_key start = roll_key_byzone(zone_key, roll_str_n(NULL, 0));
	struct roll_key first = roll_key_byzone(zone_key, after);
	enum roll_status status;

	for (status = roll_walk_seek(walk, &first); !status; status = roll_walk_next(walk)) {
		struct roll_object_row row;

		if (!roll_str_has_prefix(walk->key, start.p, start.n))
			return ROLL_OK;
		if (after.n && roll_str_eq(walk->key, roll_str_n((const char *)first.p, first.n)))
			continue;
		status = roll_snap_object(snap, ROLL_ROW_RECORDSET,
					  roll_str_n(walk->key.p + 8, walk->key.n - 8), &row);
		/* The index has a row only where there is an object. */
		if (status)
			return status == ROLL_ENOENT ? ROLL_ECORRUPT : status;
		/* Two zones may share a hash. */
		if (!roll_str_eq(row.zone, zone_key))
			continue;
		status = on_object(ctx, &row);
		if (status)
			return status;
	}
	return ended(status);
}

enum roll_status roll_snap_recordsets_of(struct roll_snap *snap, struct roll_str zone_key,
					 roll_on_object on_object, void *ctx)
{
	return roll_snap_recordsets_after(snap, zone_key, roll_str_n(NULL, 0), on_object, ctx);
}

enum roll_status roll_snap_recordsets_after(struct roll_snap *snap, struct roll_str zone_key,
					    struct roll_str after, roll_on_object on_object,
					    void *ctx)
{
	struct roll_walk walk;
	enum roll_status status = roll_walk_begin(&walk, &snap->at, ROLL_TABLE_BYZONE);

	if (status)
		return status;
	status = show_recordsets(snap, &walk, zone_key, after, on_object, ctx);
	roll_walk_end(&walk);
	return status;
}

enum roll_status roll_snap_class(struct roll_snap *snap, struct roll_str name,
				 struct roll_class_row *out)
{
	struct roll_key key = roll_key_of("");
	struct roll_str bytes;
	enum roll_status status;

	roll_key_add(&key, name.p, name.n);
	status = roll_at_get(&snap->at, ROLL_TABLE_CLASSES, &key, &bytes);
	return status ? status : roll_class_row_decode(bytes, out);
}

enum roll_status roll_snap_dzone(struct roll_snap *snap, struct roll_str zone_key, uint32_t *number,
				 struct roll_dzone_row *out)
{
	struct roll_object_row row;
	struct roll_key key;
	struct roll_str bytes;
	enum roll_status status = roll_snap_object(snap, ROLL_ROW_ZONE, zone_key, &row);

	if (status)
		return status;
	if (row.number == 0)
		return ROLL_ENOENT;
	key = roll_key_number(row.number);
	status = roll_at_get(&snap->at, ROLL_TABLE_DZONES, &key, &bytes);
	if (!status)
		status = roll_dzone_row_decode(bytes, out);
	else if (status == ROLL_ENOENT)
		status = ROLL_ECORRUPT;
	if (!status)
		*number = row.number;
	return status;
}

enum roll_status roll_snap_removals(struct roll_snap *snap, roll_on_removal on_removal, void *ctx)
{
	struct roll_walk walk;
	enum roll_status status = roll_walk_begin(&walk, &snap->at, ROLL_TABLE_REMOVALS);

	if (status)
		return status;
	for (status = roll_walk_last(&walk); !status; status = roll_walk_prev(&walk)) {
		struct roll_removal removal;

		if (walk.key.n != 8)
			status = ROLL_ECORRUPT;
		else
			status = roll_removal_decode(roll_key_u64(walk.key), walk.value, &removal);
		if (status)
			break;
		status = on_removal(ctx, &removal);
		if (status) {
			roll_walk_end(&walk);
			return status;
		}
	}
	roll_walk_end(&walk);
	return ended(status);
}

enum roll_status roll_row_findings(const struct roll_object_row *row,
				   roll_on_row_finding on_finding, void *ctx)
{
	struct roll_reader r =
		roll_reader_of(row->findings.p ? row->findings.p : "", row->findings.n);

	while (r.p < r.end) {
		uint8_t severity = roll_reader_u8(&r);
		uint8_t reason = roll_reader_u8(&r);
		struct roll_str path = roll_reader_str16(&r);
		struct roll_str text = roll_reader_str16(&r);

		if (r.failed)
			return ROLL_ECORRUPT;
		on_finding(ctx, severity, reason, path, text);
	}
	return ROLL_OK;
}
