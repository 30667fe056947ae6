/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "dns/type.h"
#include "model/owner.h"
#include "model/translate.h"
#include "sync/report_state.h"

/* What a DNSRecordSet is told, as a whole and for each of its names. */

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
	struct roll_report *report;
	struct entry *entries;
	size_t count;
	struct roll_str general; /* about no entry */
	enum roll_reason general_reason;
};

static struct roll_str name_of(struct roll_str key)
{
	roll_str_cut(&key, '/');
	return key;
}

static void add_type(struct roll_buf *buf, uint16_t type)
{
	const struct roll_type_info *info = roll_type_find(type);

	roll_buf_add_c(buf, info ? info->name : "a record");
}

/* Why a record set of the zone is not served, into the message. The reason. */
static const char *say_zone_to_recordset(struct roll_report *report)
{
	struct roll_buf *m = &report->message;
	struct roll_str class_name, zone = name_of(report->zone_key);

	if (!report->has_domain) {
		roll_report_add_quoted(m, "DNSZone", zone);
		roll_buf_add_c(m, " has no usable domainName");
		return "Pending";
	}
	class_name = report->domain.row->claims[report->claim].class_name;
	switch (report->state) {
	case ROLL_ZONE_NO_CLASS_NAME:
		roll_report_add_quoted(m, "DNSZone", zone);
		roll_buf_add_c(m, " has no class yet");
		break;
	case ROLL_ZONE_CLASS_MISSING:
		roll_report_add_quoted(m, "DNSZoneClass", class_name);
		roll_buf_add_c(m, " not found");
		break;
	case ROLL_ZONE_CLASS_FOREIGN:
		roll_report_say_foreign(report, class_name);
		return "Pending";
	case ROLL_ZONE_IN_USE:
		roll_report_add_quoted(m, "DNSZone", zone);
		roll_buf_add_c(m, " is not served, its domain is claimed by another resource: ");
		roll_report_say_holder(report);
		return "DNSZoneInUse";
	default:
		roll_report_add_quoted(m, "DNSZone", zone);
		roll_buf_add_c(m, " has no nameservers yet");
		break;
	}
	return "Pending";
}

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
	struct roll_report *report = faults->report;
	size_t i = entry_of(finding->path, faults->count);
	struct roll_str *to = i == SIZE_MAX ? &faults->general : &faults->entries[i].fault;

	if (finding->severity != ROLL_FAULT || to->n)
		return;
	roll_buf_reset(&report->message);
	roll_buf_add_str(&report->message, finding->path);
	roll_buf_add_c(&report->message, ": ");
	roll_buf_add_str(&report->message, finding->text);
	*to = roll_report_keep(report);
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
static enum roll_status read_entries(struct roll_report *report, const json_t *spec,
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
		entry->has_owner = domain && !roll_owner_parse(quiet, entry->spelling, &owner) &&
				   !roll_owner_qualify(quiet, &owner, domain, &entry->owner);
	}
	status = roll_translate_recordset(spec, domain, &report->arena, set, &findings);
	qsort(faults->entries, faults->count, sizeof *faults->entries, cmp_entries);
	return status == ROLL_EINVAL ? report->arena.status : status;
}

/* Another zone of ours lies deeper and answers for the name. A delegation to it is no such case. */
static enum roll_status find_shadow(struct roll_report *report, const struct roll_name *owner,
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

static void say_winner(struct roll_report *report, const struct roll_claim *claims, uint32_t by)
{
	struct roll_buf *m = &report->message;

	if (by == ROLL_BY_ZONE) {
		roll_buf_add_c(m, "SOA and NS of the zone itself");
		return;
	}
	add_type(m, claims[by].rrset.type);
	roll_buf_add_c(m, " of ");
	roll_report_add_object(m, "DNSRecordSet", claims[by].object, claims[by].created_s);
}

static void judge_fault(struct roll_report *report, const struct entry *entry, struct verdict *out)
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

static enum roll_status judge_claim(struct roll_report *report, const struct roll_name *owner,
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
		roll_report_add_object(m, "DNSRecordSet", claims[claim->by].object,
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
		roll_report_add_object(m, "DNSZone", shadow->object, INT64_MAX);
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
static enum roll_status judge(struct roll_report *report, const struct entry *entries, size_t count,
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
	out->message = roll_report_keep(report);
	return report->arena.status;
}

static json_t *record_item(const struct verdict *verdict)
{
	json_t *programmed = roll_report_make("Programmed", verdict->is_served, verdict->reason,
					      verdict->message);
	json_t *list = json_array(), *out = json_object();

	if (json_array_append_new(list, programmed) ||
	    json_object_set_new(out, "name", roll_report_text(verdict->spelling))) {
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
static json_t *whole(struct roll_report *report, const struct faults *faults,
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
		return roll_report_make("Programmed", true, "Programmed",
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
	return roll_report_make("Programmed", false,
				worst ? worst->reason
				: bad && bad->reason == ROLL_REASON_OUT_OF_ZONE
					? "OutOfZone"
					: "InvalidDNSRecordSet",
				roll_report_keep(report));
}

/* What hinders all of it: the zone, or the object's own references. NULL: nothing. */
static const char *hindrance(struct roll_report *report, bool has_zone, const struct faults *faults,
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
		roll_report_add_quoted(&report->message, "waiting for DNSZone", set->zone_ref);
	} else if (!report->has_domain || report->state != ROLL_ZONE_SERVED) {
		reason = say_zone_to_recordset(report);
	}
	*why = roll_report_keep(report);
	return reason;
}

static enum roll_status judge_all(struct roll_report *report, const struct faults *faults,
				  const char *reason, struct roll_str why, struct verdict *verdicts,
				  size_t *count)
{
	enum roll_status status = ROLL_OK;
	size_t i, n;

	*count = 0;
	for (i = 0; i < faults->count && !status; i += n) {
		const struct entry *first = &faults->entries[i];

		for (n = 1;
		     i + n < faults->count && roll_str_eq(first[n].spelling, first->spelling);)
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

static json_t *recordset_status(struct roll_report *report, const char *reason, struct roll_str why,
				const struct faults *faults, const struct verdict *verdicts,
				size_t count)
{
	json_t *accepted = roll_report_make(
		"Accepted", !reason, reason ? reason : "Accepted",
		reason ? why : roll_str_c("DNSRecordSet accepted for PowerDNS zone"));
	json_t *programmed = reason ? roll_report_make("Programmed", false, reason, why)
				    : whole(report, faults, verdicts, count);
	json_t *out = json_object();

	if (json_object_set_new(out, "conditions", roll_report_make_both(accepted, programmed)) |
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
	struct roll_report report;
	const char *reason;
	enum roll_status status;
	struct roll_str why;
	json_t *spec = NULL;
	size_t count = 0;
	bool has_zone;

	*out = NULL;
	roll_report_init(&report, snap, row);
	faults.report = &report;
	status = roll_json_parse(row->spec, &spec, NULL);
	if (status) {
		status = status == ROLL_ENOMEM ? status : ROLL_ECORRUPT;
		goto out;
	}
	status = row->zone.n ? roll_report_find_zone(&report, row->zone) : ROLL_ENOENT;
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
	roll_report_fini(&report);
	return status;
}
