/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/report_state.h"

#include "base/clock.h"

#define ARENA_LIMIT ((size_t)64 << 20)
#define MESSAGE_LIMIT (24u << 10) /* the API takes 32,768 characters */

void roll_report_init(struct roll_report *report, struct roll_snap *snap,
		      const struct roll_object_row *row)
{
	*report = (struct roll_report){.snap = snap, .row = row};
	roll_arena_init(&report->arena, ARENA_LIMIT);
	roll_buf_init(&report->message, MESSAGE_LIMIT);
}

void roll_report_fini(struct roll_report *report)
{
	roll_buf_fini(&report->message);
	roll_arena_fini(&report->arena);
}

/* --- pieces of text --- */

void roll_report_add_quoted(struct roll_buf *buf, const char *what, struct roll_str name)
{
	roll_buf_add_c(buf, what);
	roll_buf_add_c(buf, " \"");
	roll_buf_add_shown(buf, name, 300);
	roll_buf_add_char(buf, '"');
}

/* "DNSZone ns/name, since 2026-01-01T00:00:00Z" */
void roll_report_add_object(struct roll_buf *buf, const char *kind, struct roll_str key,
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

/* The message so far, kept; the next one begins. */
struct roll_str roll_report_keep(struct roll_report *report)
{
	struct roll_str kept = roll_arena_str(&report->arena, roll_buf_str(&report->message));

	roll_buf_reset(&report->message);
	return kept;
}

/* --- JSON --- */

json_t *roll_report_text(struct roll_str s)
{
	return json_stringn(s.p ? s.p : "", s.n);
}

json_t *roll_report_make(const char *type, bool is_true, const char *reason,
			 struct roll_str message)
{
	json_t *out = json_object();

	if (!out || json_object_set_new(out, "type", json_string(type)) ||
	    json_object_set_new(out, "status", json_string(is_true ? "True" : "False")) ||
	    json_object_set_new(out, "reason", json_string(reason)) ||
	    json_object_set_new(out, "message", roll_report_text(message))) {
		json_decref(out);
		return NULL;
	}
	return out;
}

json_t *roll_report_make_both(json_t *accepted, json_t *programmed)
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
enum roll_status roll_report_find_zone(struct roll_report *report, struct roll_str key)
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

void roll_report_say_foreign(struct roll_report *report, struct roll_str class_name)
{
	struct roll_class_row cls = {.controller = {NULL, 0}};
	struct roll_buf *m = &report->message;

	/* Gone or damaged: the state has said so already. */
	if (roll_snap_class(report->snap, class_name, &cls))
		cls.controller = roll_str_n("", 0);
	roll_buf_add_c(m, ROLL_REPORT_FOREIGN);
	roll_buf_add_shown(m, cls.controller, 300);
	roll_buf_add_c(m, "\" is not \"");
	roll_buf_add_shown(m, roll_snap_head(report->snap)->controller, 300);
	roll_buf_add_char(m, '"');
}

void roll_report_say_holder(struct roll_report *report)
{
	const struct roll_domain *domain = &report->domain;

	if (domain->holder < domain->row->claim_count)
		roll_report_add_object(&report->message, "DNSZone",
				       domain->row->claims[domain->holder].object,
				       domain->row->claims[domain->holder].created_s);
}
