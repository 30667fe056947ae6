/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SYNC_REPORT_STATE_H
#define ROLL_SYNC_REPORT_STATE_H

#include "sync/report.h"

/*
 * What the files of reporting share; nobody else includes it.
 *
 *	report.c	    where a DNSZone stands, pieces of text and JSON
 *	report_recordset.c  DNSRecordSets
 *	report_zone.c	    DNSZones
 *	report_merge.c	    into the status that an object has
 *	report_event.c	    which of it is news
 */

#define ROLL_REPORT_FOREIGN "DNSZoneClass controller \"" /* such a message begins */

/* One report on its way. */
struct roll_report {
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

void roll_report_init(struct roll_report *report, struct roll_snap *snap,
		      const struct roll_object_row *row);
void roll_report_fini(struct roll_report *report);
void roll_report_add_quoted(struct roll_buf *buf, const char *what, struct roll_str name);
void roll_report_add_object(struct roll_buf *buf, const char *kind, struct roll_str key,
			    int64_t created_s);
/* The message so far, kept; the next one begins. */
struct roll_str roll_report_keep(struct roll_report *report);
json_t *roll_report_text(struct roll_str s);
/* NULL without memory; the functions of jansson that take it fail then. */
json_t *roll_report_make(const char *type, bool is_true, const char *reason,
			 struct roll_str message);
json_t *roll_report_make_both(json_t *accepted, json_t *programmed);
/* Where the DNSZone `key` stands. ENOENT: there is none; has_domain false: it claims nothing. */
enum roll_status roll_report_find_zone(struct roll_report *report,
				       struct roll_str key) ROLL_MUST_CHECK;
void roll_report_say_foreign(struct roll_report *report, struct roll_str class_name);
void roll_report_say_holder(struct roll_report *report);

#endif
