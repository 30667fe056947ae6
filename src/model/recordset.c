/* SPDX-License-Identifier: Apache-2.0 */
#include "model/translate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/entry.h"
#include "model/field.h"
#include "model/owner.h"

/*
 * DNSRecordSet.spec to RRsets: every entry is checked by itself, then the good ones are sorted by
 * owner (sorting, because a hash over names that users choose can be made to collide) and each
 * owner's run becomes one RRset.
 */

/* One record in a message: a compressed owner, type, class, TTL and length (RFC 1035, 4.1.3). */
#define RR_OVERHEAD 12
/* Rdata beyond this is refused before it is copied; the largest TXT fits. */
#define WIRE_LIMIT (128u << 10)
/* What a message holds besides: header, the longest question, OPT (RFC 6891). */
#define RRSET_LIMIT (65535 - 12 - (ROLL_NAME_MAX + 4) - 11)

enum { ENTRY_NAME, ENTRY_TTL, ENTRY_TYPED };
#define ENTRY_MEMBERS (ENTRY_TYPED + ROLL_TYPE_COUNT)

/* A good entry. Bytes in scratch memory. */
struct item {
	struct roll_str key; /* owner: roll_name_key */
	struct roll_str rdata;
	size_t index; /* in spec.records */
	bool has_ttl;
	uint32_t ttl;
};

struct work {
	const struct roll_findings *findings;
	const struct roll_name *domain;	   /* NULL: not known */
	const struct roll_type_info *info; /* NULL: type unusable */
	const char *names[ENTRY_MEMBERS];
	struct roll_arena *arena;
	struct roll_arena scratch;
	struct roll_buf wire;
	struct item *items;
	size_t item_count;
};

static const char *entry_path(char path[ROLL_PATH_SIZE], size_t index, const char *member)
{
	snprintf(path, ROLL_PATH_SIZE, "spec.records[%zu]%s%s", index, member[0] ? "." : "",
		 member);
	return path;
}

static bool check_owner(const struct work *work, size_t index, const json_t *json,
			struct roll_name *out)
{
	char path[ROLL_PATH_SIZE];
	struct roll_check at = {work->findings, entry_path(path, index, "")};
	struct roll_check name_at = {work->findings, NULL};
	struct roll_owner owner;
	struct roll_str text;
	char name_path[ROLL_PATH_SIZE];
	bool is_apex;

	name_at.path = entry_path(name_path, index, "name");
	if (!json) {
		roll_find(name_at.findings, ROLL_FAULT, ROLL_REASON_INVALID, name_at.path,
			  "is missing; expected a name, or \"@\" for the zone's own");
		return false;
	}
	if (!roll_field_text(at, "name", json, &text) ||
	    roll_owner_parse(name_at, text, &owner) != ROLL_OK)
		return false;
	*out = owner.name;
	if (work->domain && roll_owner_qualify(name_at, &owner, work->domain, out) != ROLL_OK)
		return false;
	/* A relative name is below the apex whatever the zone is. */
	is_apex = owner.form == ROLL_OWNER_APEX ||
		  (owner.form == ROLL_OWNER_ABSOLUTE &&
		   (!work->domain || roll_name_eq(out, work->domain)));
	if (work->info && work->info->is_apex_only && !is_apex) {
		roll_find(name_at.findings, ROLL_FAULT, ROLL_REASON_INVALID, name_at.path,
			  "%s can only be at the zone's own name, \"@\"", work->info->name);
		return false;
	}
	return true;
}

/* Warn about typed members that are not of the object's type (row C45). */
static void check_others(const struct work *work, struct roll_check at, json_t *const *members)
{
	size_t i;

	for (i = 0; i < ROLL_TYPE_COUNT; i++)
		if (members[ENTRY_TYPED + i] && &roll_types[i] != work->info)
			roll_field_find(at, ROLL_WARNING, ROLL_REASON_INVALID, roll_types[i].field,
					"does not belong to an object of type %s; ignored",
					work->info->name);
}

static bool check_typed(struct work *work, struct roll_check at, json_t *const *members,
			json_t **out)
{
	size_t own = (size_t)(work->info - roll_types), i;
	json_t *typed = members[ENTRY_TYPED + own];
	const char *field = work->info->field;

	if (typed) {
		check_others(work, at, members);
		return roll_field_object(at, field, typed, out);
	}
	for (i = 0; i < ROLL_TYPE_COUNT && !members[ENTRY_TYPED + i]; i++)
		;
	if (i < ROLL_TYPE_COUNT)
		roll_field_find(at, ROLL_FAULT, ROLL_REASON_INVALID, field,
				"is missing: the object's type is %s, but the entry has \"%s\"",
				work->info->name, roll_types[i].field);
	else
		roll_field_find(at, ROLL_FAULT, ROLL_REASON_INVALID, field,
				"is missing: an entry of type %s needs it", work->info->name);
	return false;
}

static enum roll_status build_rdata(struct work *work, struct roll_check at, const json_t *typed)
{
	char path[ROLL_PATH_SIZE + 8]; /* the longest field has 5 bytes */
	struct roll_check in = {at.findings, path};
	enum roll_status status;

	snprintf(path, sizeof path, "%s.%s", at.path, work->info->field);
	roll_buf_reset(&work->wire);
	status = roll_entry_rdata(in, work->info->type, typed, &work->wire);
	if (status == ROLL_OK)
		status = work->wire.status;
	if (status == ROLL_ELIMIT) {
		roll_find(in.findings, ROLL_FAULT, ROLL_REASON_INVALID, in.path,
			  "is too large; a record holds at most 65535 bytes");
		status = ROLL_EINVAL;
	}
	return status;
}

static enum roll_status keep(struct work *work, struct item item, const struct roll_name *owner)
{
	uint8_t key[ROLL_NAME_KEY_MAX];

	item.key.n = roll_name_key(owner, work->domain, key);
	item.key.p = (const char *)roll_arena_copy(&work->scratch, key, item.key.n);
	item.rdata.n = work->wire.n;
	item.rdata.p = (const char *)roll_arena_copy(&work->scratch, work->wire.p, work->wire.n);
	if (work->scratch.status != ROLL_OK)
		return work->scratch.status;
	work->items[work->item_count++] = item;
	return ROLL_OK;
}

/* EINVAL never leaves here: what is wrong with an entry is reported and costs only the entry. */
static enum roll_status check_entry(struct work *work, size_t index, const json_t *entry)
{
	char path[ROLL_PATH_SIZE];
	struct roll_check at = {work->findings, entry_path(path, index, "")};
	struct item item = {.index = index};
	json_t *members[ENTRY_MEMBERS], *typed = NULL;
	struct roll_name owner;
	enum roll_status status;
	int64_t ttl = 0;
	bool is_good;

	if (!json_is_object(entry)) {
		roll_find(at.findings, ROLL_FAULT, ROLL_REASON_INVALID, at.path,
			  "is %s; expected a map", roll_field_kind(entry));
		return ROLL_OK;
	}
	roll_field_split(at, entry, work->names, ENTRY_MEMBERS, members);
	is_good = check_owner(work, index, members[ENTRY_NAME], &owner);
	is_good &= roll_field_number(at, "ttl", members[ENTRY_TTL], ROLL_TTL_MAX, &ttl);
	item.has_ttl = members[ENTRY_TTL] != NULL;
	item.ttl = (uint32_t)ttl;
	if (!work->info || !check_typed(work, at, members, &typed))
		return ROLL_OK;
	status = build_rdata(work, at, typed);
	if (status == ROLL_EINVAL || (status == ROLL_OK && (!is_good || !work->domain)))
		return ROLL_OK;
	return status != ROLL_OK ? status : keep(work, item, &owner);
}

static int compare_items(const void *a, const void *b)
{
	const struct item *x = (const struct item *)a, *y = (const struct item *)b;
	int order = roll_str_cmp(x->key, y->key);

	return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

static void check_ttl(const struct work *work, const struct item *item,
		      const struct roll_rrset *rrset)
{
	char path[ROLL_PATH_SIZE];

	if (!item->has_ttl || (rrset->has_ttl && rrset->ttl == item->ttl))
		return;
	entry_path(path, item->index, "ttl");
	if (rrset->has_ttl)
		roll_find(work->findings, ROLL_WARNING, ROLL_REASON_TTL_MISMATCH, path,
			  "%" PRIu32 " is not used: the first entry of this name sets %" PRIu32
			  " for all",
			  item->ttl, rrset->ttl);
	else
		roll_find(work->findings, ROLL_WARNING, ROLL_REASON_TTL_MISMATCH, path,
			  "%" PRIu32 " is not used: the first entry of this name has none, "
			  "so the default is used for all",
			  item->ttl);
}

/* Warnings that concern an owner once, not each of its entries. */
static void check_wildcard(const struct work *work, const struct item *first,
			   const struct roll_name *owner)
{
	char path[ROLL_PATH_SIZE];

	if (!roll_name_is_wildcard(owner))
		return;
	entry_path(path, first->index, "name");
	if (work->info->type == ROLL_TYPE_ALIAS)
		roll_find(work->findings, ROLL_WARNING, ROLL_REASON_SUSPICIOUS, path,
			  "an ALIAS at a wildcard has no effect: PowerDNS does not expand it");
	if (work->info->type == ROLL_TYPE_NS)
		roll_find(work->findings, ROLL_WARNING, ROLL_REASON_SUSPICIOUS, path,
			  "NS at a wildcard has no defined meaning (RFC 4592, 4.2)");
}

/* items: the entries of one owner, in their order. */
static enum roll_status make_rrset(struct work *work, const struct item *items, size_t count,
				   struct roll_rrset *rrset)
{
	char path[ROLL_PATH_SIZE];
	enum roll_status status;
	size_t used = 0, i;

	roll_rrset_init(rrset, work->info->type);
	for (i = 0; i < count; i++) {
		entry_path(path, items[i].index, "");
		if (work->info->is_singleton && rrset->count > 0) {
			roll_find(work->findings, ROLL_WARNING, ROLL_REASON_DROPPED, path,
				  "is not served: a name has one %s, that of spec.records[%zu]",
				  work->info->name, items[0].index);
			continue;
		}
		if (items[i].rdata.n + RR_OVERHEAD > RRSET_LIMIT - used) {
			roll_find(work->findings, ROLL_FAULT, ROLL_REASON_INVALID, path,
				  "is not served: with it the records of this name and type would "
				  "not fit a DNS message of 65535 bytes");
			continue;
		}
		status = roll_rrset_add(rrset, items[i].rdata, work->arena);
		if (status == ROLL_EEXIST) {
			roll_find(work->findings, ROLL_WARNING, ROLL_REASON_DROPPED, path,
				  "is the same record as an earlier entry");
			continue;
		}
		if (status != ROLL_OK)
			return status;
		used += items[i].rdata.n + RR_OVERHEAD;
		if (rrset->count == 1) {
			rrset->has_ttl = items[i].has_ttl;
			rrset->ttl = items[i].ttl;
		}
		check_ttl(work, &items[i], rrset);
	}
	return ROLL_OK;
}

static size_t run_length(const struct item *items, size_t count)
{
	size_t n = 1;

	while (n < count && roll_str_eq(items[n].key, items[0].key))
		n++;
	return n;
}

static enum roll_status group(struct work *work, const json_t *records,
			      struct roll_recordset_spec *out)
{
	const struct item *items = work->items;
	size_t owners = 0, i, n;
	enum roll_status status;
	const json_t *name;
	struct roll_owned *owned;

	if (work->item_count > 1)
		qsort(work->items, work->item_count, sizeof *work->items, compare_items);
	for (i = 0; i < work->item_count; i += run_length(items + i, work->item_count - i))
		owners++;
	if (owners == 0)
		return ROLL_OK;
	out->owned = (struct roll_owned *)roll_arena_array(work->arena, owners, sizeof *owned);
	if (!out->owned)
		return work->arena->status;
	for (i = 0; i < work->item_count; i += n) {
		n = run_length(items + i, work->item_count - i);
		owned = &out->owned[out->owned_count];
		status = roll_name_from_key(items[i].key.p, items[i].key.n, work->domain,
					    &owned->owner);
		if (status == ROLL_OK)
			status = make_rrset(work, items + i, n, &owned->rrset);
		if (status != ROLL_OK)
			return status;
		/* Nothing is left if not even one record fits a message. */
		if (owned->rrset.count == 0)
			continue;
		check_wildcard(work, &items[i], &owned->owner);
		name = json_object_get(json_array_get(records, items[i].index), "name");
		owned->spelling = roll_arena_str(
			work->arena, roll_str_n(json_string_value(name), json_string_length(name)));
		out->owned_count++;
	}
	return work->arena->status;
}

static enum roll_status check_records(struct work *work, const json_t *records,
				      struct roll_recordset_spec *out)
{
	size_t n = json_array_size(records), i;
	enum roll_status status;

	out->record_count = n;
	if (n == 0) {
		roll_find(work->findings, ROLL_FAULT, ROLL_REASON_INVALID, "spec.records",
			  "is empty or missing; expected at least one entry");
		return ROLL_OK;
	}
	work->items = (struct item *)roll_arena_array(&work->scratch, n, sizeof *work->items);
	if (!work->items)
		return work->scratch.status;
	for (i = 0; i < n; i++) {
		status = check_entry(work, i, json_array_get(records, i));
		if (status != ROLL_OK)
			return status;
	}
	return group(work, records, out);
}

/* The name that dnsZoneRef gives, or the empty slice. at.findings may be NULL. */
static struct roll_str read_zone_ref(struct roll_check at, const json_t *value)
{
	static const char *const names[] = {"name"};
	struct roll_check ref_at = {at.findings, "spec.dnsZoneRef"};
	json_t *ref, *name;
	struct roll_str text;

	if (!roll_field_object(at, "dnsZoneRef", value, &ref))
		return roll_str_n(NULL, 0);
	if (!ref) {
		roll_field_find(at, ROLL_FAULT, ROLL_REASON_INVALID, "dnsZoneRef",
				"is missing; expected the DNSZone as {name: ...}");
		return roll_str_n(NULL, 0);
	}
	roll_field_split(ref_at, ref, names, 1, &name);
	if (!roll_field_text(ref_at, names[0], name, &text))
		return roll_str_n(NULL, 0);
	if (!roll_field_is_subdomain(text)) {
		roll_field_find(ref_at, ROLL_FAULT, ROLL_REASON_INVALID, names[0],
				"is %s; expected the name of a DNSZone in the same namespace",
				text.n ? "not the name of an object" : "missing");
		return roll_str_n(NULL, 0);
	}
	return text;
}

static const struct roll_type_info *read_type(struct roll_check at, const json_t *value)
{
	const struct roll_type_info *info;
	struct roll_str text;
	char shown[40];

	if (!roll_field_text(at, "recordType", value, &text))
		return NULL;
	info = roll_type_find_name(text);
	/* The API server knows the upper-case spelling only. */
	if (info && roll_str_eq_c(text, info->name))
		return info;
	if (!text.n)
		roll_field_find(at, ROLL_FAULT, ROLL_REASON_INVALID, "recordType",
				"is missing; expected a type such as \"A\"");
	else
		roll_field_find(at, ROLL_FAULT, ROLL_REASON_INVALID, "recordType",
				"\"%s\" is not known; expected A AAAA ALIAS CAA CNAME HTTPS MX NS "
				"PTR SOA SRV SVCB TLSA or TXT",
				roll_str_show(text, shown, sizeof shown));
	return NULL;
}

struct roll_str roll_recordset_zone_ref(const json_t *spec)
{
	struct roll_check silent = {NULL, "spec"};
	json_t *ref = json_object_get(spec, "dnsZoneRef");

	return read_zone_ref(silent, json_is_null(ref) ? NULL : ref);
}

enum roll_status roll_translate_recordset(const json_t *spec, const struct roll_name *domain,
					  struct roll_arena *arena, struct roll_recordset_spec *out,
					  const struct roll_findings *findings)
{
	static const char *const names[] = {"dnsZoneRef", "recordType", "records"};
	struct roll_check at = {findings, "spec"};
	struct work work = {.findings = findings, .domain = domain, .arena = arena};
	enum roll_status status = ROLL_OK;
	json_t *members[3], *records;
	size_t i;

	*out = (struct roll_recordset_spec){0};
	if (!json_is_object(spec)) {
		roll_find(findings, ROLL_FAULT, ROLL_REASON_INVALID, at.path,
			  "is missing or no map");
		return ROLL_EINVAL;
	}
	roll_arena_init(&work.scratch, arena->limit_bytes);
	roll_buf_init(&work.wire, WIRE_LIMIT);
	work.names[ENTRY_NAME] = "name";
	work.names[ENTRY_TTL] = "ttl";
	for (i = 0; i < ROLL_TYPE_COUNT; i++)
		work.names[ENTRY_TYPED + i] = roll_types[i].field;

	roll_field_split(at, spec, names, 3, members);
	out->zone_ref = read_zone_ref(at, members[0]);
	if (out->zone_ref.n)
		out->zone_ref = roll_arena_str(arena, out->zone_ref);
	work.info = read_type(at, members[1]);
	out->type = work.info ? work.info->type : ROLL_TYPE_ENT;
	if (roll_field_array(at, names[2], members[2], &records))
		status = check_records(&work, records, out);
	if (status == ROLL_OK)
		status = arena->status;
	if (status == ROLL_OK && (!out->zone_ref.n || !work.info))
		status = ROLL_EINVAL;

	roll_buf_fini(&work.wire);
	roll_arena_fini(&work.scratch);
	return status;
}
