/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/explain.h"

#include <jansson.h>
#include <string.h>

#include "base/json.h"
#include "dns/type.h"
#include "explain/words.h"
#include "model/owner.h"

#define ARENA_LIMIT ((size_t)256 << 20)
#define TEXT_LIMIT ((size_t)1 << 20)
#define ROW_COST \
	200u /* of finding and decoding a row, in bytes of JSON that take as long to parse */
#define NAMES_COST 4u /* of a byte of names */

enum roll_status roll_explain_init(struct roll_explain *x, struct roll_snap *snap,
				   const struct roll_name *name, uint16_t type)
{
	memset(x, 0, sizeof *x);
	x->snap = snap;
	x->name = *name;
	x->source = *name;
	x->type = type;
	x->domains_end = &x->domains;
	x->records_end = &x->records;
	x->claims_end = &x->claims;
	x->wanting_end = &x->wanting;
	x->findings_end = &x->findings;
	x->removals_end = &x->removals;
	roll_arena_init(&x->arena, ARENA_LIMIT);
	roll_buf_init(&x->text, TEXT_LIMIT);
	return x->text.status;
}

void roll_explain_limit(struct roll_explain *x, uint64_t bytes)
{
	x->limit = bytes;
}

/* A part that is bounded begins. */
static void begin_part(struct roll_explain *x)
{
	x->left = x->limit;
}

static bool afford(struct roll_explain *x, uint64_t bytes)
{
	if (!x->limit)
		return true;
	if (x->left < bytes) {
		x->is_cut = true;
		return false;
	}
	x->left -= bytes;
	return true;
}

void roll_explain_fini(struct roll_explain *x)
{
	roll_buf_fini(&x->text);
	roll_arena_fini(&x->arena);
}

/* PowerDNS asks for a CNAME along with every type, and makes addresses from an ALIAS. */
bool roll_explain_answers(const struct roll_explain *x, uint16_t type)
{
	if (x->type == ROLL_TYPE_ANY || type == x->type || type == ROLL_TYPE_CNAME)
		return true;
	return type == ROLL_TYPE_ALIAS && !x->has_wildcard &&
	       (x->type == ROLL_TYPE_A || x->type == ROLL_TYPE_AAAA);
}

const char *roll_explain_result_text(enum roll_explain_result result)
{
	static const char *const words[] = {
		[ROLL_EXPLAIN_ANSWER] = "answer",     [ROLL_EXPLAIN_NODATA] = "nodata",
		[ROLL_EXPLAIN_NXDOMAIN] = "nxdomain", [ROLL_EXPLAIN_REFERRAL] = "referral",
		[ROLL_EXPLAIN_REFUSED] = "refused",
	};

	return words[result];
}

static bool has_type(const struct roll_explain *x, uint16_t type)
{
	const struct roll_explain_record *record;

	for (record = x->records; record; record = record->next) {
		if (record->type == type)
			return true;
	}
	return false;
}

const char *roll_explain_alias_note(const struct roll_explain *x)
{
	bool asks_addresses =
		x->type == ROLL_TYPE_ANY || x->type == ROLL_TYPE_A || x->type == ROLL_TYPE_AAAA;

	if (!asks_addresses || !has_type(x, ROLL_TYPE_ALIAS))
		return NULL;
	if (x->has_wildcard)
		return "PowerDNS never expands an ALIAS at a wildcard: no addresses come of it";
	if (has_type(x, ROLL_TYPE_A) || has_type(x, ROLL_TYPE_AAAA))
		return "PowerDNS uses an ALIAS only for the address type that the name lacks";
	return "PowerDNS looks the addresses of an ALIAS up itself: needs expand-alias=yes and "
	       "resolver=";
}

/* --- zones --- */

static enum roll_status gather_domain(struct roll_explain *x, const struct roll_name *name)
{
	struct roll_explain_domain *item;
	struct roll_domain domain;
	enum roll_status status;
	uint32_t i, count;

	status = roll_snap_domain(x->snap, name, &domain);
	if (status == ROLL_ENOENT)
		return ROLL_OK;
	if (status != ROLL_OK)
		return status;
	count = domain.row->claim_count;
	for (i = 0; i < count; i++) {
		item = (struct roll_explain_domain *)roll_arena_alloc(&x->arena, sizeof *item);
		if (!item)
			return x->arena.status;
		item->name = *name;
		item->claim = domain.row->claims[i];
		status = roll_snap_claim_state(x->snap, &domain, i, &item->state);
		if (status != ROLL_OK)
			return status;
		*x->domains_end = item;
		x->domains_end = &item->next;
	}
	return ROLL_OK;
}

static enum roll_status gather_zones(struct roll_explain *x)
{
	unsigned labels = roll_name_labels(&x->name), i;
	const struct roll_zone *zone;
	enum roll_status status;

	status = roll_snap_zone_of(x->snap, &x->name, &zone);
	if (status == ROLL_OK) {
		x->has_zone = true;
		x->zone = *zone;
	} else if (status != ROLL_ENOENT) {
		return status;
	}
	for (i = 0; i <= labels; i++) {
		struct roll_name above = roll_name_parent(&x->name, i);

		status = gather_domain(x, &above);
		if (status != ROLL_OK)
			return status;
	}
	return ROLL_OK;
}

/* --- what answers --- */

static enum roll_status on_record(void *ctx, const struct roll_row *row)
{
	struct roll_explain_record *item;
	struct roll_explain *x = ctx;

	if (row->type == ROLL_TYPE_ENT) {
		x->is_ent = true;
		return ROLL_OK;
	}
	item = (struct roll_explain_record *)roll_arena_alloc(&x->arena, sizeof *item);
	if (!item)
		return x->arena.status;
	roll_buf_reset(&x->text);
	roll_words_rdata(row->type, row->rdata, &x->text);
	item->owner = *row->owner;
	item->type = row->type;
	item->auth = row->auth;
	item->ttl = row->ttl;
	item->content = roll_arena_str(&x->arena, roll_buf_str(&x->text));
	if (!item->content.p)
		return x->text.status != ROLL_OK ? x->text.status : x->arena.status;
	*x->records_end = item;
	x->records_end = &item->next;
	return ROLL_OK;
}

static enum roll_status on_any(void *ctx, const struct roll_row *row)
{
	(void)row;
	*(bool *)ctx = true;
	return ROLL_OK;
}

/* An empty non-terminal has its row whatever the type that was asked for. */
static enum roll_status on_ns(void *ctx, const struct roll_row *row)
{
	if (row->type == ROLL_TYPE_NS)
		*(bool *)ctx = true;
	return ROLL_OK;
}

/* The highest name below the apex, at the name or above it, that has NS. */
static enum roll_status find_cut(struct roll_explain *x)
{
	unsigned depth = roll_name_labels(&x->name) - roll_name_labels(&x->zone.domain);
	enum roll_status status;

	for (; x->zone.cut_count && depth > 0 && !x->has_cut; depth--) {
		x->cut = roll_name_parent(&x->name, depth - 1);
		status = roll_snap_lookup(x->snap, &x->zone, &x->cut, ROLL_TYPE_NS, on_ns,
					  &x->has_cut);
		if (status != ROLL_OK && status != ROLL_ENOENT)
			return status;
	}
	return ROLL_OK;
}

/*
 * As PowerDNS looks for one: at each name above, the wildcard there first, then the name itself,
 * which ends the search if it exists (RFC 4592, 3.3.1: the closest encloser).
 */
static enum roll_status find_wildcard(struct roll_explain *x)
{
	static const uint8_t star[] = {1, '*', 0};
	unsigned depth = roll_name_labels(&x->name) - roll_name_labels(&x->zone.domain), i;
	struct roll_name above, prefix, wildcard;
	enum roll_status status;
	bool is_there = false;

	status = roll_name_from_wire(star, sizeof star, &prefix);
	for (i = 1; status == ROLL_OK && i <= depth; i++) {
		above = roll_name_parent(&x->name, i);
		status = roll_name_join(&prefix, &above, &wildcard);
		if (status == ROLL_OK)
			status = roll_snap_lookup(x->snap, &x->zone, &wildcard, ROLL_TYPE_ANY,
						  on_record, x);
		if (status == ROLL_OK) {
			x->has_wildcard = true;
			x->source = wildcard;
			return ROLL_OK;
		}
		if (status != ROLL_ENOENT && status != ROLL_ELIMIT)
			return status;
		status = roll_snap_lookup(x->snap, &x->zone, &above, ROLL_TYPE_ANY, on_any,
					  &is_there);
		if (status == ROLL_OK)
			return ROLL_OK;
		if (status == ROLL_ENOENT)
			status = ROLL_OK;
	}
	return status;
}

static bool has_answer(const struct roll_explain *x)
{
	const struct roll_explain_record *record;

	for (record = x->records; record; record = record->next) {
		if (roll_explain_answers(x, record->type))
			return true;
	}
	return false;
}

static enum roll_status gather_records(struct roll_explain *x)
{
	enum roll_status status;

	x->result = ROLL_EXPLAIN_REFUSED;
	if (!x->has_zone)
		return ROLL_OK;
	status = find_cut(x);
	if (status != ROLL_OK)
		return status;
	status = roll_snap_lookup(x->snap, &x->zone, &x->name, ROLL_TYPE_ANY, on_record, x);
	if (x->has_cut) {
		x->result = ROLL_EXPLAIN_REFERRAL;
		return status == ROLL_ENOENT ? ROLL_OK : status;
	}
	if (status == ROLL_ENOENT) {
		x->result = ROLL_EXPLAIN_NXDOMAIN;
		status = find_wildcard(x);
		if (status != ROLL_OK || !x->has_wildcard)
			return status;
	}
	if (status == ROLL_OK)
		x->result = has_answer(x) ? ROLL_EXPLAIN_ANSWER : ROLL_EXPLAIN_NODATA;
	return status;
}

/* --- who claims it --- */

static enum roll_status add_claims(struct roll_explain *x, const struct roll_explain_domain *in,
				   const struct roll_name *name, bool is_in_zone)
{
	struct roll_explain_claim *item;
	struct roll_claim *claims;
	enum roll_status status;
	size_t count, i;

	status = roll_snap_claims(x->snap, in->claim.number, &in->name, name, &x->arena, &claims,
				  &count);
	if (status != ROLL_OK)
		return status == ROLL_ENOENT ? ROLL_OK : status;
	for (i = 0; i < count; i++) {
		item = (struct roll_explain_claim *)roll_arena_alloc(&x->arena, sizeof *item);
		if (!item)
			return x->arena.status;
		item->object = claims[i].object;
		item->created_s = claims[i].created_s;
		item->type = claims[i].rrset.type;
		item->verdict = claims[i].verdict;
		if (claims[i].verdict != ROLL_VERDICT_SERVED && claims[i].by < count) {
			item->by = claims[claims[i].by].object;
			item->by_type = claims[claims[i].by].rrset.type;
			item->by_created_s = claims[claims[i].by].created_s;
		}
		item->is_in_zone = is_in_zone;
		item->zone = in->claim.object;
		item->domain = in->name;
		item->state = in->state;
		*x->claims_end = item;
		x->claims_end = &item->next;
	}
	return ROLL_OK;
}

static enum roll_status gather_claims(struct roll_explain *x)
{
	const struct roll_explain_domain *in;
	struct roll_explain_record *record;
	struct roll_explain_claim *claim;
	enum roll_status status;

	for (in = x->domains; in; in = in->next) {
		bool is_in_zone = x->has_zone && in->claim.number == x->zone.number;

		status = add_claims(x, in, is_in_zone ? &x->source : &x->name, is_in_zone);
		if (status != ROLL_OK)
			return status;
	}
	for (record = x->records; record; record = record->next) {
		for (claim = x->claims; claim; claim = claim->next) {
			if (claim->is_in_zone && claim->verdict == ROLL_VERDICT_SERVED &&
			    claim->type == record->type)
				record->object = claim->object;
		}
	}
	return ROLL_OK;
}

/* --- who wants it, and what is wrong --- */

/* Does an entry of spec.records mean the name? possible: it may, its domain is not known. */
static bool entry_matches(const struct roll_explain *x, const json_t *entry,
			  const struct roll_name *domain, bool *is_possible)
{
	struct roll_check quiet = {NULL, ""};
	struct roll_owner owner;
	struct roll_name name;

	*is_possible = false;
	if (roll_owner_parse(quiet, roll_json_str(entry, "name"), &owner) != ROLL_OK)
		return false;
	if (domain) {
		return roll_owner_qualify(quiet, &owner, domain, &name) == ROLL_OK &&
		       (roll_name_eq(&name, &x->name) || roll_name_eq(&name, &x->source));
	}
	if (owner.form == ROLL_OWNER_ABSOLUTE)
		return roll_name_eq(&owner.name, &x->name);
	/* The root byte of the entry's name is where the domain would go on. */
	*is_possible = owner.form == ROLL_OWNER_RELATIVE && owner.name.len < x->name.len &&
		       memcmp(owner.name.wire, x->name.wire, (size_t)owner.name.len - 1) == 0;
	return *is_possible;
}

/* The index in "spec.records[12].a.content"; false for findings on the object as a whole. */
static bool entry_of_path(struct roll_str path, size_t *index)
{
	static const char prefix[] = "spec.records[";
	struct roll_str digits;
	uint32_t number;

	if (!roll_str_starts(path, prefix))
		return false;
	digits = roll_str_n(path.p + sizeof prefix - 1, path.n - (sizeof prefix - 1));
	digits = roll_str_cut(&digits, ']');
	if (roll_str_u32(digits, UINT32_MAX, &number) != ROLL_OK)
		return false;
	*index = number;
	return true;
}

struct finding_walk {
	struct roll_explain *x;
	struct roll_str object;
	json_t *records;
	const struct roll_name *domain;
	enum roll_status status;
};

/* Findings on entries for other names are of no interest here. */
static void on_finding(void *ctx, unsigned severity, unsigned reason, struct roll_str path,
		       struct roll_str text)
{
	struct finding_walk *walk = ctx;
	struct roll_explain *x = walk->x;
	struct roll_explain_finding *item;
	bool is_possible;
	size_t index;

	if (walk->records && entry_of_path(path, &index) &&
	    !entry_matches(x, json_array_get(walk->records, index), walk->domain, &is_possible))
		return;
	item = (struct roll_explain_finding *)roll_arena_alloc(&x->arena, sizeof *item);
	if (!item) {
		walk->status = x->arena.status;
		return;
	}
	item->object = walk->object;
	item->severity = (enum roll_severity)severity;
	item->reason = (enum roll_reason)reason;
	item->path = path;
	item->text = text;
	*x->findings_end = item;
	x->findings_end = &item->next;
}

static enum roll_status add_findings(struct roll_explain *x, const struct roll_object_row *row,
				     json_t *spec, const struct roll_name *domain)
{
	struct finding_walk walk = {.x = x, .object = row->key, .domain = domain};
	enum roll_status status;

	walk.records = roll_json_array(spec, "records");
	status = roll_row_findings(row, on_finding, &walk);
	return status != ROLL_OK ? status : walk.status;
}

static bool has_findings(const struct roll_explain *x, struct roll_str object)
{
	const struct roll_explain_finding *finding;

	for (finding = x->findings; finding; finding = finding->next) {
		if (roll_str_eq(finding->object, object))
			return true;
	}
	return false;
}

static enum roll_status gather_findings(struct roll_explain *x)
{
	const struct roll_explain_claim *claim;
	struct roll_object_row row;
	enum roll_status status;

	begin_part(x);
	for (claim = x->claims; claim; claim = claim->next) {
		json_t *spec = NULL;

		if (has_findings(x, claim->object))
			continue;
		status = roll_snap_object(x->snap, ROLL_ROW_RECORDSET, claim->object, &row);
		if (status == ROLL_ENOENT)
			continue;
		if (status == ROLL_OK && (row.fault_count || row.warning_count) &&
		    afford(x, ROW_COST + row.spec.n)) {
			if (roll_json_parse(row.spec, &spec, NULL) != ROLL_OK)
				spec = NULL;
			status = add_findings(x, &row, spec, &claim->domain);
		}
		json_decref(spec);
		if (status != ROLL_OK)
			return status;
	}
	return ROLL_OK;
}

static bool has_claim(const struct roll_explain *x, struct roll_str object)
{
	const struct roll_explain_claim *claim;

	for (claim = x->claims; claim; claim = claim->next) {
		if (roll_str_eq(claim->object, object))
			return true;
	}
	return false;
}

static enum roll_status check_wanting(struct roll_explain *x, const struct roll_object_row *row,
				      json_t *spec)
{
	struct roll_explain_wanting *item;
	const struct roll_name *known = NULL;
	bool is_possible = false, is_match = false;
	struct roll_dzone_row dzone;
	enum roll_status status;
	json_t *entry;
	uint32_t number;
	size_t i;

	status = roll_snap_dzone(x->snap, row->zone, &number, &dzone);
	if (status == ROLL_OK)
		known = &dzone.domain;
	else if (status != ROLL_ENOENT)
		return status;
	json_array_foreach (roll_json_array(spec, "records"), i, entry) {
		is_match = entry_matches(x, entry, known, &is_possible);
		if (is_match)
			break;
	}
	if (!is_match)
		return ROLL_OK;
	item = (struct roll_explain_wanting *)roll_arena_alloc(&x->arena, sizeof *item);
	if (!item)
		return x->arena.status;
	item->object = row->key;
	item->zone = row->zone;
	item->is_waiting = row->number == 0;
	item->is_possible = is_possible;
	*x->wanting_end = item;
	x->wanting_end = &item->next;
	x->wanting_count++;
	return add_findings(x, row, spec, known);
}

/* Record sets that serve what they can are skipped by their row alone. */
static enum roll_status on_recordset(void *ctx, const struct roll_object_row *row)
{
	struct roll_explain *x = ctx;
	enum roll_status status = ROLL_OK;
	json_t *spec = NULL;

	if (!afford(x, ROW_COST))
		return ROLL_ECANCELED;
	if ((row->number && !row->fault_count) || has_claim(x, row->key))
		return ROLL_OK;
	if (x->wanting_count == ROLL_EXPLAIN_WANTING || !afford(x, row->spec.n))
		return ROLL_ECANCELED;
	if (roll_json_parse(row->spec, &spec, NULL) == ROLL_OK)
		status = check_wanting(x, row, spec);
	json_decref(spec);
	return status;
}

/* --- what was there --- */

bool roll_removal_names(const struct roll_removal *removal, const struct roll_name *name)
{
	struct roll_str rest = removal->names;
	struct roll_name other;

	while (rest.n) {
		struct roll_str word = roll_str_cut(&rest, ' ');

		if (!word.n || roll_name_parse(word, &other, NULL) != ROLL_OK)
			continue;
		/* A zone takes all names below its domain along. */
		if (removal->kind == ROLL_ROW_ZONE ? roll_name_is_within(name, &other)
						   : roll_name_eq(name, &other))
			return true;
	}
	return false;
}

static enum roll_status on_removal(void *ctx, const struct roll_removal *removal)
{
	struct roll_explain_removal *item;
	struct roll_explain *x = ctx;

	if (!afford(x, ROW_COST + NAMES_COST * removal->names.n))
		return ROLL_ECANCELED;
	if (!roll_removal_names(removal, &x->name))
		return ROLL_OK;
	item = (struct roll_explain_removal *)roll_arena_alloc(&x->arena, sizeof *item);
	if (!item)
		return x->arena.status;
	item->removal = *removal;
	*x->removals_end = item;
	x->removals_end = &item->next;
	return ++x->removal_count == ROLL_EXPLAIN_REMOVALS ? ROLL_ECANCELED : ROLL_OK;
}

enum roll_status roll_explain_gather(struct roll_explain *x)
{
	enum roll_status status;

	status = gather_zones(x);
	if (status == ROLL_OK)
		status = gather_records(x);
	if (status == ROLL_OK)
		status = gather_claims(x);
	if (status == ROLL_OK)
		status = gather_findings(x);
	if (status != ROLL_OK || x->result == ROLL_EXPLAIN_ANSWER)
		return status;
	begin_part(x);
	status = roll_snap_objects(x->snap, ROLL_ROW_RECORDSET, roll_str_n(NULL, 0), on_recordset,
				   x);
	begin_part(x);
	if (status == ROLL_OK || status == ROLL_ECANCELED)
		status = roll_snap_removals(x->snap, on_removal, x);
	return status == ROLL_ECANCELED ? ROLL_OK : status;
}
