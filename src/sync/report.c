/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "dns/type.h"
#include "model/owner.h"
#include "model/translate.h"

#define ARENA_LIMIT ((size_t)64 << 20)
#define MESSAGE_LIMIT (24u << 10) /* the API takes 32,768 characters */

static const char foreign_reason[] = "Pending";
static const char foreign_begin[] = "DNSZoneClass controller \"";

/* One report on its way. */
struct report {
	struct roll_snap *snap;
	const struct roll_object_row *row;
	struct roll_arena arena;
	struct roll_buf message;
	struct roll_str zone_key; /* the DNSZone that it is about */
	bool has_domain;
	struct roll_domain domain;
	uint32_t claim; /* of that DNSZone among those to the domain */
	uint32_t number;
	enum roll_zone_state state;
};

/* What one entry of spec.records turned out to be. */
struct entry {
	struct roll_str spelling;
	struct roll_str fault; /* the first; empty: none */
	enum roll_reason reason;
	size_t index;
	bool has_owner;
	struct roll_name owner;
};

/* One spelling: what its condition says. */
struct verdict {
	struct roll_str spelling;
	const char *reason;
	struct roll_str message;
	bool is_served;
};

struct faults {
	struct report *report;
	struct entry *entries;
	size_t count;
	struct roll_str general; /* about no entry */
	enum roll_reason general_reason;
};

static void init(struct report *report, struct roll_snap *snap, const struct roll_object_row *row)
{
	*report = (struct report){.snap = snap, .row = row};
	roll_arena_init(&report->arena, ARENA_LIMIT);
	roll_buf_init(&report->message, MESSAGE_LIMIT);
}

static void fini(struct report *report)
{
	roll_buf_fini(&report->message);
	roll_arena_fini(&report->arena);
}

/* --- pieces of text --- */

static struct roll_str name_of(struct roll_str key)
{
	roll_str_cut(&key, '/');
	return key;
}

static void add_quoted(struct roll_buf *buf, const char *what, struct roll_str name)
{
	roll_buf_add_c(buf, what);
	roll_buf_add_c(buf, " \"");
	roll_buf_add_shown(buf, name, 300);
	roll_buf_add_char(buf, '"');
}

/* "DNSZone ns/name, since 2026-01-01T00:00:00Z" */
static void add_object(struct roll_buf *buf, const char *kind, struct roll_str key,
		       int64_t created_s)
{
	char time[ROLL_TIME_SIZE];

	roll_buf_add_c(buf, kind);
	roll_buf_add_char(buf, ' ');
	roll_buf_add_shown(buf, key, 400);
	if (created_s == INT64_MAX)
		return;
	roll_buf_add_c(buf, ", since ");
	roll_buf_add_c(buf, roll_time_print(created_s, time));
}

static void add_type(struct roll_buf *buf, uint16_t type)
{
	const struct roll_type_info *info = roll_type_find(type);

	roll_buf_add_c(buf, info ? info->name : "a record");
}

/* The message so far, kept; the next one begins. */
static struct roll_str keep(struct report *report)
{
	struct roll_str kept = roll_arena_str(&report->arena, roll_buf_str(&report->message));

	roll_buf_reset(&report->message);
	return kept;
}

/* --- JSON --- */

static json_t *text(struct roll_str s)
{
	return json_stringn(s.p ? s.p : "", s.n);
}

static json_t *condition(const char *type, bool is_true, const char *reason,
			 struct roll_str message)
{
	json_t *out = json_object();

	if (!out || json_object_set_new(out, "type", json_string(type)) ||
	    json_object_set_new(out, "status", json_string(is_true ? "True" : "False")) ||
	    json_object_set_new(out, "reason", json_string(reason)) ||
	    json_object_set_new(out, "message", text(message))) {
		json_decref(out);
		return NULL;
	}
	return out;
}

static json_t *conditions(json_t *accepted, json_t *programmed)
{
	json_t *out = json_array();
	int failed = json_array_append_new(out, accepted);

	failed |= json_array_append_new(out, programmed);
	if (!failed)
		return out;
	json_decref(out);
	return NULL;
}

/* --- the DNSZone --- */

/* Where the DNSZone `key` stands. ENOENT: there is none; has_domain false: it claims nothing. */
static enum roll_status find_zone(struct report *report, struct roll_str key)
{
	struct roll_object_row zone;
	struct roll_dzone_row dzone;
	enum roll_status status;

	report->zone_key = key;
	status = roll_snap_object(report->snap, ROLL_ROW_ZONE, key, &zone);
	if (status)
		return status;
	status = roll_snap_dzone(report->snap, key, &report->number, &dzone);
	if (status)
		return status == ROLL_ENOENT ? ROLL_OK : status;
	status = roll_snap_domain(report->snap, &dzone.domain, &report->domain);
	if (status)
		return status == ROLL_ENOENT ? ROLL_OK : status;
	for (uint32_t i = 0; i < report->domain.row->claim_count; i++) {
		if (!roll_str_eq(report->domain.row->claims[i].object, key))
			continue;
		report->has_domain = true;
		report->claim = i;
		return roll_snap_claim_state(report->snap, &report->domain, i, &report->state);
	}
	return ROLL_OK;
}

static void say_foreign(struct report *report, struct roll_str class_name)
{
	struct roll_class_row cls = {.controller = {NULL, 0}};
	struct roll_buf *m = &report->message;

	/* Gone or damaged: the state has said so already. */
	if (roll_snap_class(report->snap, class_name, &cls))
		cls.controller = roll_str_n("", 0);
	roll_buf_add_c(m, foreign_begin);
	roll_buf_add_shown(m, cls.controller, 300);
	roll_buf_add_c(m, "\" is not \"");
	roll_buf_add_shown(m, roll_snap_head(report->snap)->controller, 300);
	roll_buf_add_char(m, '"');
}

static void say_holder(struct report *report)
{
	const struct roll_domain *domain = &report->domain;

	if (domain->holder < domain->row->claim_count)
		add_object(&report->message, "DNSZone", domain->row->claims[domain->holder].object,
			   domain->row->claims[domain->holder].created_s);
}

/* Why a record set of the zone is not served, into the message. The reason. */
static const char *say_zone_to_recordset(struct report *report)
{
	struct roll_buf *m = &report->message;
	struct roll_str class_name, zone = name_of(report->zone_key);

	if (!report->has_domain) {
		add_quoted(m, "DNSZone", zone);
		roll_buf_add_c(m, " has no usable domainName");
		return "Pending";
	}
	class_name = report->domain.row->claims[report->claim].class_name;
	switch (report->state) {
	case ROLL_ZONE_NO_CLASS_NAME:
		add_quoted(m, "DNSZone", zone);
		roll_buf_add_c(m, " has no class yet");
		break;
	case ROLL_ZONE_CLASS_MISSING:
		add_quoted(m, "DNSZoneClass", class_name);
		roll_buf_add_c(m, " not found");
		break;
	case ROLL_ZONE_CLASS_FOREIGN:
		say_foreign(report, class_name);
		return foreign_reason;
	case ROLL_ZONE_IN_USE:
		add_quoted(m, "DNSZone", zone);
		roll_buf_add_c(m, " is not served, its domain is claimed by another resource: ");
		say_holder(report);
		return "DNSZoneInUse";
	default:
		add_quoted(m, "DNSZone", zone);
		roll_buf_add_c(m, " has no nameservers yet");
		break;
	}
	return "Pending";
}

/* --- record sets --- */

/* The entry that spec.records[N]... is about; SIZE_MAX: none. */
static size_t entry_of(struct roll_str path, size_t count)
{
	struct roll_str rest = path, number;
	uint32_t index;

	if (!roll_str_starts(path, "spec.records["))
		return SIZE_MAX;
	roll_str_cut(&rest, '[');
	number = roll_str_cut(&rest, ']');
	return roll_str_u32(number, UINT32_MAX, &index) || index >= count ? SIZE_MAX : index;
}

static void on_finding(void *ctx, const struct roll_finding *finding)
{
	struct faults *faults = ctx;
	struct report *report = faults->report;
	size_t i = entry_of(finding->path, faults->count);
	struct roll_str *to = i == SIZE_MAX ? &faults->general : &faults->entries[i].fault;

	if (finding->severity != ROLL_FAULT || to->n)
		return;
	roll_buf_reset(&report->message);
	roll_buf_add_str(&report->message, finding->path);
	roll_buf_add_c(&report->message, ": ");
	roll_buf_add_str(&report->message, finding->text);
	*to = keep(report);
	if (i == SIZE_MAX)
		faults->general_reason = finding->reason;
	else
		faults->entries[i].reason = finding->reason;
}

static int cmp_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = roll_str_cmp(x->spelling, y->spelling);

	return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* Every entry with its name and its first fault, sorted by spelling. */
static enum roll_status read_entries(struct report *report, const json_t *spec,
				     struct faults *faults, struct roll_recordset_spec *set)
{
	const struct roll_findings findings = {on_finding, faults};
	const struct roll_name *domain = report->has_domain ? &report->domain.name : NULL;
	const struct roll_check quiet = {NULL, ""};
	json_t *records = roll_json_array(spec, "records");
	enum roll_status status;

	faults->count = json_array_size(records);
	faults->entries =
		roll_arena_array(&report->arena, faults->count + 1, sizeof *faults->entries);
	if (!faults->entries)
		return report->arena.status;
	for (size_t i = 0; i < faults->count; i++) {
		struct entry *entry = &faults->entries[i];
		struct roll_owner owner;

		entry->index = i;
		entry->spelling = roll_json_str(json_array_get(records, i), "name");
		entry->has_owner =
			domain && !roll_owner_parse(quiet, entry->spelling, &owner) &&
			!roll_owner_qualify(quiet, &owner, domain, &entry->owner);
	}
	status = roll_translate_recordset(spec, domain, &report->arena, set, &findings);
	qsort(faults->entries, faults->count, sizeof *faults->entries, cmp_entries);
	return status == ROLL_EINVAL ? report->arena.status : status;
}

/* Another zone of ours lies deeper and answers for the name. A delegation to it is no such case. */
static enum roll_status find_shadow(struct report *report, const struct roll_name *owner,
				    uint16_t type, const struct roll_zone **shadow)
{
	const struct roll_zone *zone;
	enum roll_status status = roll_snap_zone_of(report->snap, owner, &zone);

	*shadow = NULL;
	if (status)
		return status == ROLL_ENOENT ? ROLL_OK : status;
	if (zone->number != report->number &&
	    !(type == ROLL_TYPE_NS && roll_name_eq(&zone->domain, owner)))
		*shadow = zone;
	return ROLL_OK;
}

static void say_winner(struct report *report, const struct roll_claim *claims, uint32_t by)
{
	struct roll_buf *m = &report->message;

	if (by == ROLL_BY_ZONE) {
		roll_buf_add_c(m, "SOA and NS of the zone itself");
		return;
	}
	add_type(m, claims[by].rrset.type);
	roll_buf_add_c(m, " of ");
	add_object(m, "DNSRecordSet", claims[by].object, claims[by].created_s);
}

static void judge_fault(struct report *report, const struct entry *entry, struct verdict *out)
{
	struct roll_buf *m = &report->message;

	if (entry->reason == ROLL_REASON_OUT_OF_ZONE) {
		out->reason = "OutOfZone";
		roll_buf_add_c(m, "The record name is outside the zone. Check that the name "
				  "belongs to this DNS zone. ");
	} else {
		out->reason = "InvalidDNSRecordSet";
		roll_buf_add_c(m, "The DNS record was rejected as invalid. Check the record type "
				  "and value. ");
	}
	roll_buf_add_str(m, entry->fault);
}

static enum roll_status judge_claim(struct report *report, const struct roll_name *owner,
				    const struct roll_claim *claims, uint32_t own,
				    struct verdict *out)
{
	const struct roll_claim *claim = &claims[own];
	struct roll_buf *m = &report->message;
	const struct roll_zone *shadow;
	enum roll_status status;

	switch (claim->verdict) {
	case ROLL_VERDICT_NOT_OWNER:
		out->reason = "NotOwner";
		roll_buf_add_c(m, "Another DNSRecordSet owns this record: ");
		add_object(m, "DNSRecordSet", claims[claim->by].object,
			   claims[claim->by].created_s);
		return ROLL_OK;
	case ROLL_VERDICT_CONFLICT:
		out->reason = "Conflict";
		roll_buf_add_c(m, "A conflicting record already exists for this name. Remove the "
				  "existing record and try again. In the way: ");
		say_winner(report, claims, claim->by);
		return ROLL_OK;
	default:
		break;
	}
	status = find_shadow(report, owner, claim->rrset.type, &shadow);
	if (status)
		return status;
	if (shadow) {
		char domain[ROLL_NAME_TEXT_SIZE];

		out->reason = "Conflict";
		roll_buf_add_c(m, "Another zone answers for this name: ");
		roll_buf_add_c(m, roll_name_show(&shadow->domain, domain));
		roll_buf_add_c(m, " of ");
		add_object(m, "DNSZone", shadow->object, INT64_MAX);
		return ROLL_OK;
	}
	out->is_served = true;
	out->reason = "Programmed";
	roll_buf_add_c(m, "Record successfully applied to PDNS");
	return ROLL_OK;
}

/*
 * One spelling: the claim at its name says whether it is served; without a claim, its first fault
 * says why not.
 */
static enum roll_status judge(struct report *report, const struct entry *entries, size_t count,
			      struct verdict *out)
{
	const struct entry *bad = NULL;
	struct roll_claim *claims;
	enum roll_status status = ROLL_ENOENT;
	size_t claim_count = 0, bad_count = 0;
	uint32_t own = 0;

	*out = (struct verdict){.spelling = entries->spelling};
	for (size_t i = 0; i < count; i++) {
		if (!entries[i].fault.n)
			continue;
		bad = bad ? bad : &entries[i];
		bad_count++;
	}
	if (entries->has_owner)
		status = roll_snap_claims(report->snap, report->number, &report->domain.name,
					  &entries->owner, &report->arena, &claims, &claim_count);
	if (status && status != ROLL_ENOENT)
		return status;
	while (own < claim_count && !roll_str_eq(claims[own].object, report->row->key))
		own++;
	if (own < claim_count && bad_count < count) {
		status = judge_claim(report, &entries->owner, claims, own, out);
		if (status)
			return status;
		/* The good entries are served; the bad ones are told about all the same. */
		if (bad && out->is_served) {
			roll_buf_add_c(&report->message, ", but for ");
			roll_buf_add_str(&report->message, bad->fault);
		}
	} else if (bad) {
		judge_fault(report, bad, out);
	} else {
		out->reason = "Pending";
		roll_buf_add_c(&report->message, "Waiting for the zone");
	}
	out->message = keep(report);
	return report->arena.status;
}

static json_t *record_item(const struct verdict *verdict)
{
	json_t *programmed = condition("Programmed", verdict->is_served, verdict->reason,
				       verdict->message);
	json_t *list = json_array(), *out = json_object();

	if (json_array_append_new(list, programmed) ||
	    json_object_set_new(out, "name", text(verdict->spelling))) {
		json_decref(list);
		json_decref(out);
		return NULL;
	}
	if (json_object_set_new(out, "conditions", list)) {
		json_decref(out);
		return NULL;
	}
	return out;
}

/* In the order given; of too many those that are not served come first. */
static json_t *record_items(const struct verdict *verdicts, size_t count)
{
	json_t *out = json_array();
	size_t bad = 0, good_room, i;

	for (i = 0; i < count; i++)
		bad += !verdicts[i].is_served;
	good_room = bad < ROLL_REPORT_NAMES_MAX ? ROLL_REPORT_NAMES_MAX - bad : 0;
	for (i = 0; i < count && json_array_size(out) < ROLL_REPORT_NAMES_MAX; i++) {
		if (verdicts[i].is_served && good_room == 0)
			continue;
		good_room -= verdicts[i].is_served;
		if (json_array_append_new(out, record_item(&verdicts[i]))) {
			json_decref(out);
			return NULL;
		}
	}
	return out;
}

/* The object as a whole: served if every entry is. */
static json_t *whole(struct report *report, const struct faults *faults,
		     const struct verdict *verdicts, size_t count)
{
	const struct verdict *worst = NULL;
	const struct entry *bad = NULL;
	struct roll_buf *m = &report->message;
	size_t bad_count = 0, i;

	for (i = 0; i < count && !worst; i++)
		worst = verdicts[i].is_served ? NULL : &verdicts[i];
	for (i = 0; i < faults->count; i++) {
		bad_count += faults->entries[i].fault.n > 0;
		if (faults->entries[i].fault.n && (!bad || faults->entries[i].index < bad->index))
			bad = &faults->entries[i];
	}
	if (!worst && !bad && count)
		return condition("Programmed", true, "Programmed",
				 roll_str_c("All records programmed"));
	roll_buf_add_c(m, "One or more records not yet programmed");
	if (worst) {
		roll_buf_add_c(m, ": ");
		roll_buf_add_shown(m, worst->spelling, 300);
		roll_buf_add_c(m, ": ");
		roll_buf_add_str(m, worst->message);
	} else if (bad) {
		roll_buf_printf(m, ": %zu of %zu entries not served: ", bad_count, faults->count);
		roll_buf_add_str(m, bad->fault);
	} else {
		roll_buf_add_c(m, ": the object has no records");
	}
	return condition("Programmed", false,
			 worst ? worst->reason
			 : bad && bad->reason == ROLL_REASON_OUT_OF_ZONE ? "OutOfZone"
									 : "InvalidDNSRecordSet",
			 keep(report));
}

/* What hinders all of it: the zone, or the object's own references. NULL: nothing. */
static const char *hindrance(struct report *report, bool has_zone, const struct faults *faults,
			     const struct roll_recordset_spec *set, struct roll_str *why)
{
	const char *reason = NULL;

	roll_buf_reset(&report->message);
	if (set->type == 0 || !set->zone_ref.n) {
		reason = "InvalidDNSRecordSet";
		roll_buf_add_str(&report->message, faults->general);
		if (!faults->general.n)
			roll_buf_add_c(&report->message, "the spec cannot be read");
	} else if (!has_zone) {
		reason = "Pending";
		add_quoted(&report->message, "waiting for DNSZone", set->zone_ref);
	} else if (!report->has_domain || report->state != ROLL_ZONE_SERVED) {
		reason = say_zone_to_recordset(report);
	}
	*why = keep(report);
	return reason;
}

static enum roll_status judge_all(struct report *report, const struct faults *faults,
				  const char *reason, struct roll_str why,
				  struct verdict *verdicts, size_t *count)
{
	enum roll_status status = ROLL_OK;
	size_t i, n;

	*count = 0;
	for (i = 0; i < faults->count && !status; i += n) {
		const struct entry *first = &faults->entries[i];

		for (n = 1; i + n < faults->count &&
			    roll_str_eq(first[n].spelling, first->spelling);)
			n++;
		if (!first->spelling.n) /* the API requires a name; the whole object tells it */
			continue;
		if (reason)
			verdicts[*count] = (struct verdict){first->spelling, reason, why, false};
		else
			status = judge(report, first, n, &verdicts[*count]);
		++*count;
	}
	return status;
}

static json_t *recordset_status(struct report *report, const char *reason, struct roll_str why,
				const struct faults *faults, const struct verdict *verdicts,
				size_t count)
{
	json_t *accepted = condition("Accepted", !reason, reason ? reason : "Accepted",
				     reason ? why
					    : roll_str_c("DNSRecordSet accepted for PowerDNS zone"));
	json_t *programmed = reason ? condition("Programmed", false, reason, why)
				    : whole(report, faults, verdicts, count);
	json_t *out = json_object();

	if (json_object_set_new(out, "conditions", conditions(accepted, programmed)) |
	    json_object_set_new(out, "recordSets", record_items(verdicts, count))) {
		json_decref(out);
		return NULL;
	}
	return out;
}

enum roll_status roll_report_recordset(struct roll_snap *snap, const struct roll_object_row *row,
				       json_t **out)
{
	struct roll_recordset_spec set = {.type = 0};
	struct verdict *verdicts;
	struct faults faults = {.count = 0};
	struct report report;
	const char *reason;
	enum roll_status status;
	struct roll_str why;
	json_t *spec = NULL;
	size_t count = 0;
	bool has_zone;

	*out = NULL;
	init(&report, snap, row);
	faults.report = &report;
	status = roll_json_parse(row->spec, &spec, NULL);
	if (status) {
		status = status == ROLL_ENOMEM ? status : ROLL_ECORRUPT;
		goto out;
	}
	status = row->zone.n ? find_zone(&report, row->zone) : ROLL_ENOENT;
	has_zone = status == ROLL_OK;
	if (status && status != ROLL_ENOENT)
		goto out;
	status = read_entries(&report, spec, &faults, &set);
	if (status)
		goto out;
	verdicts = roll_arena_array(&report.arena, faults.count + 1, sizeof *verdicts);
	if (!verdicts) {
		status = report.arena.status;
		goto out;
	}
	reason = hindrance(&report, has_zone, &faults, &set, &why);
	status = judge_all(&report, &faults, reason, why, verdicts, &count);
	if (!status)
		*out = recordset_status(&report, reason, why, &faults, verdicts, count);
	if (!status && !*out)
		status = ROLL_ENOMEM;
out:
	json_decref(spec);
	fini(&report);
	return status;
}

/* --- zones --- */

static enum roll_status on_row(void *ctx, const struct roll_row *row)
{
	if (row->type != ROLL_TYPE_ENT)
		*(bool *)ctx = true;
	return ROLL_OK;
}

static enum roll_status does_answer(struct report *report, const struct roll_zone *zone,
				    uint16_t type, bool *out)
{
	enum roll_status status;

	*out = false;
	status = roll_snap_lookup(report->snap, zone, &zone->domain, type, on_row, out);
	return status == ROLL_ENOENT ? ROLL_OK : status;
}

struct targets {
	json_t *list;
	struct roll_buf *text;
	bool has_failed;
};

static void add_target(struct targets *targets, struct roll_str wire)
{
	struct roll_name name;

	roll_buf_reset(targets->text);
	if (roll_name_from_wire(wire.p, wire.n, &name)) {
		targets->has_failed = true;
		return;
	}
	roll_name_print(&name, ROLL_DOT_NONE, targets->text);
	targets->has_failed |=
		json_array_append_new(targets->list, text(roll_buf_str(targets->text))) != 0;
}

static enum roll_status on_ns(void *ctx, const struct roll_row *row)
{
	if (row->type == ROLL_TYPE_NS)
		add_target(ctx, row->rdata);
	return ROLL_OK;
}

static int cmp_texts(const void *a, const void *b)
{
	return strcmp(json_string_value(*(json_t *const *)a), json_string_value(*(json_t *const *)b));
}

/* A new array with the same strings, sorted as text. */
static json_t *sorted(json_t *list)
{
	size_t count = json_array_size(list), i;
	json_t **items = calloc(count + 1, sizeof *items);
	json_t *out = json_array();

	for (i = 0; items && i < count; i++)
		items[i] = json_array_get(list, i);
	if (items)
		qsort(items, count, sizeof *items, cmp_texts);
	for (i = 0; items && i < count; i++) {
		if (json_array_append(out, items[i]))
			break;
	}
	if (!items || i < count) {
		json_decref(out);
		out = NULL;
	}
	free(items);
	return out;
}

/*
 * The class's nameservers, which is what a registrar is to be told; without any, what NS answers.
 * NULL: no memory.
 */
static enum roll_status nameservers(struct report *report, const struct roll_zone *zone,
				    json_t **out)
{
	struct targets targets = {json_array(), &report->message, false};
	struct roll_str rest = zone->nameservers;
	enum roll_status status = ROLL_OK;

	for (uint32_t i = 0; i < zone->nameserver_count; i++) {
		size_t n = 0;

		while (n < rest.n && rest.p[n])
			n += (size_t)(uint8_t)rest.p[n] + 1;
		if (n >= rest.n) {
			status = ROLL_ECORRUPT;
			break;
		}
		add_target(&targets, roll_str_n(rest.p, n + 1));
		rest = roll_str_n(rest.p + n + 1, rest.n - n - 1);
	}
	if (!zone->nameserver_count)
		status = roll_snap_lookup(report->snap, zone, &zone->domain, ROLL_TYPE_NS, on_ns,
					  &targets);
	if (status == ROLL_ENOENT)
		status = ROLL_OK;
	if (!status)
		*out = targets.has_failed ? NULL : sorted(targets.list);
	if (!status && !*out)
		status = ROLL_ENOMEM;
	json_decref(targets.list);
	roll_buf_reset(&report->message);
	return status;
}

struct first {
	struct report *report;
	struct roll_str text;
};

static void on_row_finding(void *ctx, unsigned severity, unsigned reason, struct roll_str path,
			   struct roll_str found)
{
	struct first *first = ctx;

	(void)reason;
	if (severity != ROLL_FAULT || first->text.n)
		return;
	roll_buf_add_str(&first->report->message, path);
	roll_buf_add_c(&first->report->message, ": ");
	roll_buf_add_str(&first->report->message, found);
	first->text = keep(first->report);
}

static enum roll_status first_fault(struct report *report, struct roll_str *out)
{
	struct first first = {report, {NULL, 0}};
	enum roll_status status = roll_row_findings(report->row, on_row_finding, &first);

	*out = first.text;
	return status;
}

/* Why the zone is not served, into the message. The reason; NULL: it is. */
static enum roll_status say_zone(struct report *report, const char **reason)
{
	struct roll_buf *m = &report->message;
	struct roll_str class_name, fault;
	enum roll_status status;

	*reason = "Pending";
	if (!report->has_domain) {
		status = first_fault(report, &fault);
		roll_buf_add_str(m, fault);
		if (!fault.n)
			roll_buf_add_c(m, "spec.domainName: cannot be read");
		*reason = "InvalidDNSZone";
		return status;
	}
	class_name = report->domain.row->claims[report->claim].class_name;
	switch (report->state) {
	case ROLL_ZONE_SERVED:
		*reason = NULL;
		break;
	case ROLL_ZONE_NO_CLASS_NAME:
		roll_buf_add_c(m, "DNSZoneClassName not set");
		break;
	case ROLL_ZONE_CLASS_MISSING:
		add_quoted(m, "DNSZoneClass", class_name);
		roll_buf_add_c(m, " not found");
		break;
	case ROLL_ZONE_CLASS_FOREIGN:
		say_foreign(report, class_name);
		break;
	case ROLL_ZONE_IN_USE:
		roll_buf_add_c(m, "DNSZone claimed by another resource: ");
		say_holder(report);
		*reason = "DNSZoneInUse";
		break;
	default:
		roll_buf_add_c(m, "Waiting for downstream nameservers");
		break;
	}
	return ROLL_OK;
}

/* Programmed only if a resolver that asks for the zone's SOA and NS gets them. */
static enum roll_status served_zone(struct report *report, json_t **programmed, json_t **servers)
{
	const struct roll_zone *zone = report->domain.zone;
	bool has_soa = false, has_ns = false;
	enum roll_status status;

	if (!zone)
		return ROLL_ECORRUPT;
	status = does_answer(report, zone, ROLL_TYPE_SOA, &has_soa);
	if (!status)
		status = does_answer(report, zone, ROLL_TYPE_NS, &has_ns);
	if (!status)
		status = nameservers(report, zone, servers);
	if (status)
		return status;
	if (has_soa && has_ns) {
		*programmed = condition("Programmed", true, "Programmed",
					roll_str_c("Default records ensured"));
		return ROLL_OK;
	}
	roll_buf_printf(&report->message, "Waiting for default records: there is no %s at the apex",
			has_soa ? "NS" : has_ns ? "SOA" : "SOA or NS");
	*programmed = condition("Programmed", false, "Pending", keep(report));
	return ROLL_OK;
}

enum roll_status roll_report_zone(struct roll_snap *snap, const struct roll_object_row *row,
				  uint64_t record_count, json_t **out)
{
	json_t *accepted = NULL, *programmed = NULL, *servers = NULL, *made;
	const char *reason = NULL;
	enum roll_status status;
	struct report report;
	struct roll_str why;

	*out = NULL;
	init(&report, snap, row);
	status = find_zone(&report, row->key);
	if (!status)
		status = say_zone(&report, &reason);
	why = keep(&report);
	if (!status)
		status = report.arena.status;
	if (!status && reason) {
		accepted = condition("Accepted", false, reason, why);
		programmed = condition("Programmed", false, reason, why);
	} else if (!status) {
		accepted = condition("Accepted", true, "Accepted",
				     roll_str_c("Nameservers retrieved from downstream"));
		status = served_zone(&report, &programmed, &servers);
	}
	made = json_object();
	if (json_object_set_new(made, "conditions", conditions(accepted, programmed)) |
	    json_object_set_new(made, "recordCount", json_integer((json_int_t)record_count)) |
	    (servers ? json_object_set_new(made, "nameservers", servers) : 0))
		status = status ? status : ROLL_ENOMEM;
	if (status)
		json_decref(made);
	else
		*out = made;
	fini(&report);
	return status;
}

/* --- merging --- */

static const json_t *find_condition(const json_t *list, struct roll_str type)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *item = json_array_get(list, i);

		if (roll_str_eq(roll_json_str(item, "type"), type))
			return item;
	}
	return NULL;
}

static json_t *merge_condition(const json_t *wanted, const json_t *present, int64_t generation,
			       int64_t now_s)
{
	struct roll_str since = roll_json_str(present, "lastTransitionTime");
	char now[ROLL_TIME_SIZE];
	json_t *out = json_copy((json_t *)(uintptr_t)wanted);
	int64_t at;

	if (!present || roll_time_parse(since, &at) ||
	    !roll_str_eq(roll_json_str(present, "status"), roll_json_str(wanted, "status")))
		since = roll_str_c(roll_time_print(now_s, now));
	if (json_object_set_new(out, "observedGeneration", json_integer(generation)) ||
	    json_object_set_new(out, "lastTransitionTime", text(since))) {
		json_decref(out);
		return NULL;
	}
	return out;
}

/* Those of others where they are, ours in their places or behind. NULL: no memory. */
static json_t *merge_conditions(const json_t *wanted, const json_t *present, int64_t generation,
				int64_t now_s)
{
	json_t *out = json_array();
	int failed = 0;
	size_t i;

	for (i = 0; i < json_array_size(present); i++) {
		json_t *item = json_array_get(present, i);
		const json_t *ours = find_condition(wanted, roll_json_str(item, "type"));

		failed |= ours ? json_array_append_new(
					 out, merge_condition(ours, item, generation, now_s))
			       : json_array_append(out, item);
	}
	for (i = 0; i < json_array_size(wanted); i++) {
		const json_t *item = json_array_get(wanted, i);

		if (!find_condition(present, roll_json_str(item, "type")))
			failed |= json_array_append_new(
				out, merge_condition(item, NULL, generation, now_s));
	}
	if (!failed && out)
		return out;
	json_decref(out);
	return NULL;
}

/* Both lists are sorted as a rule, so the next name is where the last one was, or behind it. */
static const json_t *find_record(const json_t *list, struct roll_str name, size_t *at)
{
	size_t count = json_array_size(list), i;

	for (i = 0; i < count; i++) {
		size_t index = (*at + i) % count;
		const json_t *item = json_array_get(list, index);

		if (!roll_str_eq(roll_json_str(item, "name"), name))
			continue;
		*at = index + 1;
		return item;
	}
	return NULL;
}

static json_t *merge_records(const json_t *wanted, const json_t *present, int64_t generation,
			     int64_t now_s)
{
	json_t *out = json_array();
	size_t at = 0;

	for (size_t i = 0; i < json_array_size(wanted); i++) {
		const json_t *item = json_array_get(wanted, i);
		const json_t *old = find_record(present, roll_json_str(item, "name"), &at);
		json_t *made = json_copy((json_t *)(uintptr_t)item);

		if (json_object_set_new(made, "conditions",
					merge_conditions(roll_json_array(item, "conditions"),
							 roll_json_array(old, "conditions"),
							 generation, now_s))) {
			json_decref(made);
			made = NULL;
		}
		if (json_array_append_new(out, made)) {
			json_decref(out);
			return NULL;
		}
	}
	return out;
}

/* The patch has the member only if it would change something. False: no memory. */
static bool put(json_t *patch, const json_t *present, const char *key, json_t *value)
{
	const json_t *old = json_object_get(present, key);
	bool is_good = value != NULL;

	if (is_good && (json_is_null(value) ? old != NULL : !json_equal(value, (json_t *)(uintptr_t)old)))
		return json_object_set_new(patch, key, value) == 0;
	json_decref(value);
	return is_good;
}

enum roll_status roll_report_merge(const json_t *wanted, const json_t *present, int64_t generation,
				   int64_t now_s, json_t **out)
{
	json_t *patch = json_object(), *list;
	bool is_good;

	*out = NULL;
	is_good = patch && put(patch, present, "conditions",
			       merge_conditions(roll_json_array(wanted, "conditions"),
						roll_json_array(present, "conditions"), generation,
						now_s));
	list = roll_json_array(wanted, "recordSets");
	if (is_good && list)
		is_good = put(patch, present, "recordSets",
			      merge_records(list, roll_json_array(present, "recordSets"), generation,
					    now_s));
	if (is_good && json_object_get(wanted, "recordCount")) {
		list = json_object_get(wanted, "nameservers");
		is_good = put(patch, present, "recordCount",
			      json_incref(json_object_get(wanted, "recordCount"))) &&
			  put(patch, present, "nameservers", list ? json_incref(list) : json_null());
	}
	if (!is_good || json_object_size(patch) == 0) {
		json_decref(patch);
		return is_good ? ROLL_OK : ROLL_ENOMEM;
	}
	*out = patch;
	return ROLL_OK;
}

struct roll_str roll_report_condition(const json_t *status, const char *type, const char *member)
{
	return roll_json_str(find_condition(roll_json_array(status, "conditions"), roll_str_c(type)),
			     member);
}

bool roll_report_is_foreign(const json_t *wanted)
{
	return roll_str_starts(roll_report_condition(wanted, "Accepted", "message"), foreign_begin);
}

bool roll_report_may_overwrite(const json_t *wanted, const json_t *present)
{
	struct roll_str status = roll_report_condition(present, "Accepted", "status");

	return !roll_report_is_foreign(wanted) || !status.n || roll_str_eq_c(status, "Unknown") ||
	       roll_str_starts(roll_report_condition(present, "Accepted", "message"),
			       foreign_begin);
}
