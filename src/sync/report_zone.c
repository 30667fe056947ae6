/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "sync/report_state.h"

/* What a DNSZone is told. */

static enum roll_status on_row(void *ctx, const struct roll_row *row)
{
	if (row->type != ROLL_TYPE_ENT)
		*(bool *)ctx = true;
	return ROLL_OK;
}

static enum roll_status does_answer(struct roll_report *report, const struct roll_zone *zone,
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
		json_array_append_new(targets->list,
				      roll_report_text(roll_buf_str(targets->text))) != 0;
}

static enum roll_status on_ns(void *ctx, const struct roll_row *row)
{
	if (row->type == ROLL_TYPE_NS)
		add_target(ctx, row->rdata);
	return ROLL_OK;
}

static int cmp_texts(const void *a, const void *b)
{
	return strcmp(json_string_value(*(json_t *const *)a),
		      json_string_value(*(json_t *const *)b));
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
static enum roll_status nameservers(struct roll_report *report, const struct roll_zone *zone,
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
	struct roll_report *report;
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
	first->text = roll_report_keep(first->report);
}

static enum roll_status first_fault(struct roll_report *report, struct roll_str *out)
{
	struct first first = {report, {NULL, 0}};
	enum roll_status status = roll_row_findings(report->row, on_row_finding, &first);

	*out = first.text;
	return status;
}

/* Why the zone is not served, into the message. The reason; NULL: it is. */
static enum roll_status say_zone(struct roll_report *report, const char **reason)
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
		/* With a domain, a fault is about the class's name. */
		status = first_fault(report, &fault);
		roll_buf_add_str(m, fault);
		if (fault.n)
			*reason = "InvalidDNSZone";
		else
			roll_buf_add_c(m, "DNSZoneClassName not set");
		return status;
	case ROLL_ZONE_CLASS_MISSING:
		roll_report_add_quoted(m, "DNSZoneClass", class_name);
		roll_buf_add_c(m, " not found");
		break;
	case ROLL_ZONE_CLASS_FOREIGN:
		roll_report_say_foreign(report, class_name);
		break;
	case ROLL_ZONE_IN_USE:
		roll_buf_add_c(m, "DNSZone claimed by another resource: ");
		roll_report_say_holder(report);
		*reason = "DNSZoneInUse";
		break;
	default:
		roll_buf_add_c(m, "Waiting for downstream nameservers");
		break;
	}
	return ROLL_OK;
}

/* Programmed only if a resolver that asks for the zone's SOA and NS gets them. */
static enum roll_status served_zone(struct roll_report *report, json_t *made, json_t **programmed)
{
	const struct roll_zone *zone = report->domain.zone;
	bool has_soa = false, has_ns = false;
	json_t *servers = NULL;
	enum roll_status status;

	if (!zone)
		return ROLL_ECORRUPT;
	status = does_answer(report, zone, ROLL_TYPE_SOA, &has_soa);
	if (!status)
		status = does_answer(report, zone, ROLL_TYPE_NS, &has_ns);
	if (!status)
		status = nameservers(report, zone, &servers);
	if (status)
		return status;
	if (json_object_set_new(made, "nameservers", servers) |
	    json_object_set_new(made, "serial", json_integer(zone->serial)))
		return ROLL_ENOMEM;
	if (has_soa && has_ns) {
		*programmed = roll_report_make("Programmed", true, "Programmed",
					       roll_str_c("Default records ensured"));
		return ROLL_OK;
	}
	roll_buf_printf(&report->message, "Waiting for default records: there is no %s at the apex",
			has_soa	 ? "NS"
			: has_ns ? "SOA"
				 : "SOA or NS");
	*programmed = roll_report_make("Programmed", false, "Pending", roll_report_keep(report));
	return ROLL_OK;
}

enum roll_status roll_report_zone(struct roll_snap *snap, const struct roll_object_row *row,
				  uint64_t record_count, json_t **out)
{
	json_t *accepted = NULL, *programmed = NULL, *made = json_object();
	const char *reason = NULL;
	enum roll_status status;
	struct roll_report report;
	struct roll_str why;

	*out = NULL;
	roll_report_init(&report, snap, row);
	status = roll_report_find_zone(&report, row->key);
	if (!status)
		status = say_zone(&report, &reason);
	why = roll_report_keep(&report);
	if (!status)
		status = report.arena.status;
	if (!status && reason) {
		accepted = roll_report_make("Accepted", false, reason, why);
		programmed = roll_report_make("Programmed", false, reason, why);
	} else if (!status) {
		accepted = roll_report_make("Accepted", true, "Accepted",
					    roll_str_c("Nameservers retrieved from downstream"));
		status = served_zone(&report, made, &programmed);
	}
	if (json_object_set_new(made, "conditions", roll_report_make_both(accepted, programmed)) |
	    json_object_set_new(made, "recordCount", json_integer((json_int_t)record_count)))
		status = status ? status : ROLL_ENOMEM;
	if (status)
		json_decref(made);
	else
		*out = made;
	roll_report_fini(&report);
	return status;
}
