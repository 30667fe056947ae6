/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "dns/type.h"
#include "explain/explain.h"
#include "explain/words.h"
#include "sync/page_state.h"

/*
 * One name: what is answered, from which object, and who lost; the same that `rollcall explain`
 * tells, but looking for what does not answer only as long as the rest of the program can wait.
 */

#define LOOK_BYTES ((uint64_t)1 << 20)
#define ROWS 100 /* of one table */

static void begin_table(struct roll_page *page, const char *title, const char *head)
{
	roll_page_raw(page, "<h2>");
	roll_page_raw(page, title);
	roll_page_raw(page, "</h2><div class=\"table\"><table><thead><tr>");
	roll_page_raw(page, head);
	roll_page_raw(page, "</tr></thead><tbody>");
}

static void end_table(struct roll_page *page, bool is_cut)
{
	roll_page_raw(page, "</tbody></table></div>");
	if (is_cut)
		roll_page_raw(page, "<p class=\"note\">These are the first; "
				    "<code>rollcall explain</code> shows all.</p>");
}

/* --- the answer --- */

static void add_name(struct roll_page *page, const struct roll_name *name)
{
	char text[ROLL_NAME_TEXT_SIZE];

	roll_page_raw(page, "<code>");
	roll_page_c(page, roll_name_show(name, text));
	roll_page_raw(page, "</code>");
}

static void show_headline(struct roll_page *page, const struct roll_explain *x)
{
	const char *note = roll_explain_alias_note(x);
	char text[ROLL_NAME_TEXT_SIZE];

	roll_page_raw(page, "<h1>");
	roll_page_c(page, roll_name_show(&x->name, text));
	roll_page_raw(page, "</h1>");
	switch (x->result) {
	case ROLL_EXPLAIN_ANSWER:
		roll_page_raw(page, "<p class=\"say good\"><b>Answered.</b>");
		if (x->has_wildcard) {
			roll_page_raw(page, "By the wildcard ");
			add_name(page, &x->source);
			roll_page_raw(page, ".");
		}
		break;
	case ROLL_EXPLAIN_NODATA:
		roll_page_raw(page, "<p class=\"say plain\"><b>There is no record, but names below "
				    "it.</b>The answer is empty (NOERROR).");
		break;
	case ROLL_EXPLAIN_NXDOMAIN:
		roll_page_raw(page, "<p class=\"say bad\"><b>There is no such name.</b>The answer "
				    "is NXDOMAIN.");
		break;
	case ROLL_EXPLAIN_REFERRAL:
		roll_page_raw(page, "<p class=\"say plain\"><b>Delegated at ");
		add_name(page, &x->cut);
		roll_page_raw(page, ".</b>The answer refers to the name servers there.");
		break;
	case ROLL_EXPLAIN_REFUSED:
		roll_page_raw(page, "<p class=\"say bad\"><b>It is in no zone that is served."
				    "</b>The question is REFUSED.");
		break;
	}
	if (note) {
		roll_page_raw(page, "<br>");
		roll_page_c(page, note);
		roll_page_raw(page, ".");
	}
	roll_page_raw(page, "</p>");
}

static void show_zones(struct roll_page *page, const struct roll_explain *x)
{
	const struct roll_explain_domain *in;
	size_t rows = 0;

	if (!x->domains) {
		roll_page_raw(page, "<p>No DNSZone asks for this domain or one above it.</p>");
		return;
	}
	begin_table(page, "Zones it lies in",
		    "<th>Domain</th><th>State</th><th>DNSZone</th><th>Class</th><th>Since</th>");
	for (in = x->domains; in && rows < ROWS; in = in->next, rows++) {
		bool is_answering = x->has_zone && in->claim.number == x->zone.number;

		roll_page_raw(page, "<tr><td>");
		roll_page_zone(page, &in->name);
		roll_page_raw(page, "</td><td>");
		if (in->state == ROLL_ZONE_SERVED) {
			roll_page_pill(page, is_answering ? ROLL_TONE_GOOD : ROLL_TONE_PLAIN,
				       is_answering ? "answers" : "served, less deep");
			if (is_answering)
				roll_buf_printf(page->out, " serial %" PRIu32, x->zone.soa_serial);
		} else {
			roll_page_pill(page, ROLL_TONE_BAD, "not served");
			roll_page_raw(page, "<br><span class=\"note\">");
			roll_page_c(page, roll_words_why(in->state));
			roll_page_raw(page, "</span>");
		}
		roll_page_raw(page, "</td><td>");
		roll_page_object(page, NULL, in->claim.object);
		roll_page_raw(page, "</td><td>");
		roll_page_text(page, in->claim.class_name);
		roll_page_raw(page, "</td><td>");
		roll_page_when(page, in->claim.created_s);
		roll_page_raw(page, "</td></tr>");
	}
	end_table(page, in != NULL);
}

static void show_records(struct roll_page *page, const struct roll_explain *x)
{
	const struct roll_explain_record *record;
	char type[ROLL_TYPE_TEXT_SIZE], owner[ROLL_NAME_TEXT_SIZE];
	size_t rows = 0;

	if (!x->records)
		return;
	begin_table(page, "Records",
		    "<th>Name</th><th class=\"n\">TTL</th><th>Type</th><th>Data</th><th>From</th>");
	for (record = x->records; record && rows < ROWS; record = record->next, rows++) {
		roll_page_raw(page, "<tr><td>");
		roll_page_c(page, roll_name_show(&record->owner, owner));
		roll_page_raw(page, "</td><td class=\"n\">");
		roll_buf_add_u64(page->out, record->ttl);
		roll_page_raw(page, "</td><td>");
		roll_page_c(page, roll_words_type(record->type, type));
		roll_page_raw(page, "</td><td class=\"w\"><code>");
		roll_page_text(page, record->content);
		roll_page_raw(page, "</code></td><td>");
		if (record->object.n)
			roll_page_object(page, NULL, record->object);
		else
			roll_page_raw(page, "the zone's class");
		if (!record->auth)
			roll_page_raw(page, "<br><span class=\"note\">not authoritative</span>");
		roll_page_raw(page, "</td></tr>");
	}
	end_table(page, record != NULL);
}

/* --- the objects --- */

static void show_fate(struct roll_page *page, const struct roll_explain *x,
		      const struct roll_explain_claim *claim)
{
	char type[ROLL_TYPE_TEXT_SIZE];

	if (!claim->is_in_zone && claim->state == ROLL_ZONE_SERVED) {
		roll_page_pill(page, ROLL_TONE_MILD, "Shadowed");
		roll_page_raw(page, "</td><td class=\"w\">the deeper zone ");
		add_name(page, &x->zone.domain);
		roll_page_raw(page, " answers");
	} else if (!claim->is_in_zone) {
		roll_page_pill(page, ROLL_TONE_MILD, "not served");
		roll_page_raw(page, "</td><td class=\"w\">its DNSZone ");
		roll_page_object(page, NULL, claim->zone);
		roll_page_raw(page, " is not: ");
		roll_page_c(page, roll_words_why(claim->state));
	} else if (claim->verdict == ROLL_VERDICT_SERVED) {
		roll_page_pill(page, ROLL_TONE_GOOD, "serves");
		roll_page_raw(page, "</td><td>");
	} else {
		roll_page_pill(page, ROLL_TONE_MILD, roll_verdict_text(claim->verdict));
		roll_page_raw(page, "</td><td class=\"w\">");
		if (claim->by.n) {
			roll_page_object(page, NULL, claim->by);
			roll_page_raw(page, " has ");
			roll_page_c(page, roll_words_type(claim->by_type, type));
			roll_page_raw(page, " here and ");
			roll_page_c(page, roll_words_older(claim->by_created_s, claim->created_s));
		} else {
			roll_page_raw(page, "the zone's own SOA and NS stand at its apex");
		}
	}
}

static void show_claims(struct roll_page *page, const struct roll_explain *x)
{
	const struct roll_explain_claim *claim;
	char type[ROLL_TYPE_TEXT_SIZE];
	size_t rows = 0;

	if (!x->claims)
		return;
	begin_table(page, "Record sets that claim it",
		    "<th>Record set</th><th>Type</th><th>Since</th><th>Outcome</th><th>Why</th>");
	for (claim = x->claims; claim && rows < ROWS; claim = claim->next, rows++) {
		roll_page_raw(page, "<tr><td>");
		roll_page_object(page, NULL, claim->object);
		roll_page_raw(page, "</td><td>");
		roll_page_c(page, roll_words_type(claim->type, type));
		roll_page_raw(page, "</td><td>");
		roll_page_when(page, claim->created_s);
		roll_page_raw(page, "</td><td>");
		show_fate(page, x, claim);
		roll_page_raw(page, "</td></tr>");
	}
	end_table(page, claim != NULL);
}

static void show_wanting(struct roll_page *page, const struct roll_explain *x)
{
	const struct roll_explain_wanting *item;

	if (!x->wanting)
		return;
	begin_table(page, "Record sets that want it",
		    "<th>Record set</th><th>What is missing</th>");
	for (item = x->wanting; item; item = item->next) {
		roll_page_raw(page, "<tr><td>");
		roll_page_object(page, NULL, item->object);
		roll_page_raw(page, "</td><td class=\"w\">");
		if (item->is_waiting) {
			roll_page_raw(page, item->is_possible ? "perhaps; waits for its DNSZone "
							      : "waits for its DNSZone ");
			roll_page_object(page, NULL,
					 item->zone.n ? item->zone : roll_str_c("(none named)"));
		} else {
			roll_page_raw(page, "its entry cannot be served, see findings");
		}
		roll_page_raw(page, "</td></tr>");
	}
	end_table(page, x->wanting_count == ROLL_EXPLAIN_WANTING);
}

static void show_findings(struct roll_page *page, const struct roll_explain *x)
{
	const struct roll_explain_finding *finding;
	size_t rows = 0;

	if (!x->findings)
		return;
	begin_table(page, "Findings",
		    "<th>Record set</th><th>Severity</th><th>Reason</th><th>Field</th>"
		    "<th>What is wrong</th>");
	for (finding = x->findings; finding && rows < ROWS; finding = finding->next, rows++) {
		bool is_fault = finding->severity == ROLL_FAULT;

		roll_page_raw(page, "<tr><td>");
		roll_page_object(page, NULL, finding->object);
		roll_page_raw(page, "</td><td>");
		roll_page_pill(page, is_fault ? ROLL_TONE_BAD : ROLL_TONE_MILD,
			       is_fault ? "error" : "warning");
		roll_page_raw(page, "</td><td>");
		roll_page_c(page, roll_reason_text(finding->reason));
		roll_page_raw(page, "</td><td class=\"f\"><code>");
		roll_page_text(page, finding->path);
		roll_page_raw(page, "</code></td><td class=\"w\">");
		roll_page_text(page, finding->text);
		roll_page_raw(page, "</td></tr>");
	}
	end_table(page, finding != NULL);
}

static void show_removals(struct roll_page *page, const struct roll_explain *x)
{
	const struct roll_explain_removal *item;

	if (!x->removals)
		return;
	begin_table(page, "Removed", "<th>When</th><th>Object</th><th>Evidence</th>");
	for (item = x->removals; item; item = item->next) {
		roll_page_raw(page, "<tr><td>");
		roll_page_when(page, item->removal.at_ms / 1000);
		roll_page_raw(page, "</td><td>");
		roll_page_object(page, roll_kind_text((enum roll_kind)item->removal.kind),
				 item->removal.key);
		roll_page_raw(page, "</td><td class=\"w\">");
		roll_page_text(page, item->removal.evidence);
		roll_page_raw(page, "</td></tr>");
	}
	end_table(page, false);
}

static void show_all(struct roll_page *page, const struct roll_explain *x)
{
	show_headline(page, x);
	show_zones(page, x);
	show_records(page, x);
	show_claims(page, x);
	show_wanting(page, x);
	show_findings(page, x);
	show_removals(page, x);
	if (x->is_cut)
		roll_page_raw(page, "<p class=\"note\">Not all objects were looked at for who else "
				    "wants this name; <code>rollcall explain</code> does.</p>");
}

void roll_page_explain(struct roll_page *page, const char *text)
{
	struct roll_err err = {.text = ""};
	struct roll_explain x;
	enum roll_status status;
	struct roll_name name;

	if (roll_name_parse(roll_str_trim(roll_str_c(text)), &name, &err)) {
		page->reply->status = 400;
		roll_page_raw(page, "<h1>");
		roll_page_c(page, text);
		roll_page_raw(page,
			      "</h1><p class=\"say plain\"><b>That is not a domain name.</b>");
		roll_page_c(page, err.text);
		roll_page_raw(page, "</p>");
		return;
	}
	status = roll_explain_init(&x, page->snap, &name, ROLL_TYPE_ANY);
	roll_explain_limit(&x, LOOK_BYTES);
	if (!status)
		status = roll_explain_gather(&x);
	if (status)
		roll_page_unreadable(page, status);
	else
		show_all(page, &x);
	roll_explain_fini(&x);
}
