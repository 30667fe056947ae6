/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "explain/words.h"
#include "sync/page_state.h"
#include "sync/tour.h"

#define OTHERS_SHOWN 5	  /* DNSZones that want a domain in vain */
#define FINDINGS_SHOWN 10 /* of one object */

/* A table that begins with its first row, and knows whether it may have more. */
struct list {
	struct roll_page *page;
	const char *head; /* of the table, markup */
	size_t rows;	  /* at most */
	size_t shown;
	size_t looked_at;
	bool is_full;
	bool is_continued; /* there was a page before */
};

static enum roll_status look(struct list *list)
{
	if (++list->looked_at < ROLL_PAGE_SCAN)
		return ROLL_OK;
	list->is_full = true;
	return ROLL_ECANCELED;
}

static void begin_row(struct list *list)
{
	if (list->shown++ == 0) {
		roll_page_raw(list->page, "<div class=\"table\"><table><thead><tr>");
		roll_page_raw(list->page, list->head);
		roll_page_raw(list->page, "</tr></thead><tbody>");
	}
}

static enum roll_status end_row(struct list *list)
{
	if (list->shown < list->rows)
		return look(list);
	list->is_full = true;
	return ROLL_ECANCELED;
}

/*
 * On the overview a link to the list's own page, there the beginning of one to what follows: the
 * caller adds the place and calls end_link. False: no link is wanted.
 */
static bool end_list(struct list *list, enum roll_status status, const char *path, const char *none)
{
	struct roll_page *page = list->page;

	if (list->shown)
		roll_page_raw(page, "</tbody></table></div>");
	if (status && status != ROLL_ECANCELED) {
		roll_page_unreadable(page, status);
		return false;
	}
	if (!list->is_full) {
		if (!list->shown) {
			roll_page_raw(page, "<p class=\"note\">");
			roll_page_c(page, list->is_continued ? "That was all." : none);
			roll_page_raw(page, "</p>");
		}
		return false;
	}
	roll_page_raw(page, "<p>");
	if (list->shown < list->rows) {
		roll_page_raw(page, "<span class=\"note\">Looked at ");
		roll_page_u64(page, list->looked_at);
		roll_page_raw(page, " rows so far. </span>");
	}
	roll_page_raw(page, "<a href=\"");
	roll_page_raw(page, path);
	if (list->rows == ROLL_PAGE_ROWS)
		return true;
	roll_page_raw(page, "\">Show more</a></p>");
	return false;
}

static void end_link(struct roll_page *page)
{
	roll_page_raw(page, "\">Go on</a></p>");
}

/* --- zones --- */

struct zones {
	struct list list;
	struct roll_name last;
};

static void show_others(struct roll_page *page, const struct roll_domain *domain, uint32_t shown)
{
	uint32_t count = domain->row->claim_count, told = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (i == shown)
			continue;
		roll_page_raw(page, "<br><span class=\"note\">");
		if (++told > OTHERS_SHOWN) {
			roll_page_raw(page, "and ");
			roll_page_u64(page, count - 1 - OTHERS_SHOWN);
			roll_page_raw(page, " more</span>");
			return;
		}
		roll_page_raw(page, "in vain: ");
		roll_page_object(page, NULL, domain->row->claims[i].object);
		roll_page_raw(page, "</span>");
	}
}

static enum roll_status on_domain(void *ctx, const struct roll_domain *domain)
{
	uint32_t shown = domain->holder == ROLL_BY_NONE ? 0 : domain->holder;
	const struct roll_domain_claim *claim = &domain->row->claims[shown];
	struct zones *zones = ctx;
	struct roll_page *page = zones->list.page;

	begin_row(&zones->list);
	zones->last = domain->name;
	roll_page_raw(page, "<tr><td>");
	roll_page_zone(page, &domain->name);
	roll_page_raw(page, "</td><td>");
	if (domain->zone) {
		roll_page_pill(page, ROLL_TONE_GOOD, "served");
	} else {
		roll_page_pill(page, ROLL_TONE_BAD, "not served");
		roll_page_raw(page, "<br><span class=\"note\">");
		roll_page_c(page, roll_words_why(domain->state));
		roll_page_raw(page, "</span>");
	}
	roll_page_raw(page, "</td><td>");
	roll_page_object(page, NULL, claim->object);
	show_others(page, domain, shown);
	roll_page_raw(page, "</td><td>");
	roll_page_text(page, claim->class_name);
	roll_page_raw(page, "</td><td class=\"n\">");
	if (domain->zone)
		roll_buf_printf(page->out, "%" PRIu32, domain->zone->soa_serial);
	roll_page_raw(page, "</td><td class=\"n\">");
	if (domain->zone)
		roll_page_u64(page, domain->zone->name_count);
	roll_page_raw(page, "</td></tr>");
	return end_row(&zones->list);
}

void roll_page_zones(struct roll_page *page, size_t rows)
{
	struct zones zones = {.list = {.page = page,
				       .rows = rows,
				       .head = "<th>Domain</th><th>State</th><th>DNSZone</th>"
					       "<th>Class</th><th class=\"n\">Serial</th>"
					       "<th class=\"n\">Names</th>"}};
	struct roll_name after;
	bool has_after = rows == ROLL_PAGE_ROWS && roll_page_name_param(page, "after", &after);
	enum roll_status status;

	zones.list.is_continued = has_after;
	status = roll_snap_domains_after(page->snap, has_after ? &after : NULL, on_domain, &zones);
	if (end_list(&zones.list, status, "/zones?p", "No DNSZone asks for a domain.")) {
		roll_page_add_name_param(page, "after", &zones.last);
		end_link(page);
	}
}

/* --- names --- */

static const char claims_head[] = "<th>Name</th><th>Type</th><th>Outcome</th><th>Record set</th>"
				  "<th>Since</th><th>Instead of it</th>";

struct names {
	struct list list;
	bool is_served; /* the zone */
	struct roll_name last;
};

static void show_winner(struct roll_page *page, const struct roll_claim *claims, size_t count,
			const struct roll_claim *claim)
{
	char type[ROLL_TYPE_TEXT_SIZE];

	if (claim->by >= count) {
		roll_page_raw(page, "the zone's own SOA and NS");
		return;
	}
	roll_page_object(page, NULL, claims[claim->by].object);
	roll_page_raw(page, " has ");
	roll_page_c(page, roll_words_type(claims[claim->by].rrset.type, type));
	roll_page_raw(page, " and ");
	roll_page_c(page, roll_words_older(claims[claim->by].created_s, claim->created_s));
}

static void show_outcome(struct roll_page *page, enum roll_verdict verdict, bool is_served)
{
	if (verdict != ROLL_VERDICT_SERVED)
		roll_page_pill(page, ROLL_TONE_MILD, roll_verdict_text(verdict));
	else if (is_served)
		roll_page_pill(page, ROLL_TONE_GOOD, "serves");
	else
		roll_page_pill(page, ROLL_TONE_PLAIN, "waits");
}

static void show_claims(struct roll_page *page, const struct roll_name *owner,
			const struct roll_claim *claims, size_t count, bool is_served)
{
	char type[ROLL_TYPE_TEXT_SIZE];
	size_t i;

	for (i = 0; i < count && i < ROLL_PAGE_CLAIMS; i++) {
		roll_page_raw(page, "<tr><td>");
		if (i == 0)
			roll_page_name(page, owner);
		roll_page_raw(page, "</td><td>");
		roll_page_c(page, roll_words_type(claims[i].rrset.type, type));
		roll_page_raw(page, "</td><td>");
		show_outcome(page, claims[i].verdict, is_served);
		roll_page_raw(page, "</td><td>");
		roll_page_object(page, NULL, claims[i].object);
		roll_page_raw(page, "</td><td>");
		roll_page_when(page, claims[i].created_s);
		roll_page_raw(page, "</td><td class=\"w\">");
		if (claims[i].verdict != ROLL_VERDICT_SERVED)
			show_winner(page, claims, count, &claims[i]);
		roll_page_raw(page, "</td></tr>");
	}
	if (i < count) {
		roll_page_raw(page, "<tr><td></td><td colspan=\"5\" class=\"note\">and ");
		roll_page_u64(page, count - i);
		roll_page_raw(page, " more at this name</td></tr>");
	}
}

static enum roll_status on_claims(void *ctx, const struct roll_name *owner,
				  const struct roll_claim *claims, size_t count)
{
	struct names *names = ctx;

	begin_row(&names->list);
	names->last = *owner;
	show_claims(names->list.page, owner, claims, count, names->is_served);
	return end_row(&names->list);
}

static void show_zone_head(struct roll_page *page, const struct roll_domain *domain,
			   const struct roll_domain_claim *claim)
{
	roll_page_raw(page, "</h1><p>");
	if (domain->zone) {
		roll_page_pill(page, ROLL_TONE_GOOD, "served");
		roll_buf_printf(page->out, " serial %" PRIu32 ", ", domain->zone->soa_serial);
		roll_page_u64(page, domain->zone->name_count);
		roll_page_raw(page, " names, ");
	} else {
		roll_page_pill(page, ROLL_TONE_BAD, "not served");
		roll_page_raw(page, " ");
		roll_page_c(page, roll_words_why(domain->state));
		roll_page_raw(page, "; ");
	}
	roll_page_object(page, "DNSZone", claim->object);
	roll_page_raw(page, " (");
	roll_page_when(page, claim->created_s);
	roll_page_raw(page, "), class ");
	roll_page_text(page, claim->class_name.n ? claim->class_name : roll_str_c("(none)"));
	roll_page_raw(page, "</p>");
}

void roll_page_names(struct roll_page *page, const struct roll_name *domain)
{
	struct names names = {.list = {.page = page, .rows = ROLL_PAGE_ROWS, .head = claims_head}};
	const struct roll_domain_claim *claim;
	char text[ROLL_NAME_TEXT_SIZE];
	enum roll_status status;
	struct roll_domain found;
	struct roll_name after;
	uint32_t number;
	bool has_after = roll_page_name_param(page, "after", &after);

	roll_page_raw(page, "<h1>");
	roll_page_c(page, roll_name_show(domain, text));
	status = roll_snap_domain(page->snap, domain, &found);
	if (status) {
		roll_page_raw(page, "</h1>");
		if (status == ROLL_ENOENT)
			roll_page_raw(page, "<p class=\"say plain\">No DNSZone asks for this "
					    "domain.</p>");
		else
			roll_page_unreadable(page, status);
		return;
	}
	claim = &found.row->claims[found.holder == ROLL_BY_NONE ? 0 : found.holder];
	number = claim->number;
	names.is_served = found.zone != NULL;
	names.list.is_continued = has_after;
	show_zone_head(page, &found, claim);
	status = roll_snap_claims_after(page->snap, number, domain, has_after ? &after : NULL,
					on_claims, &names);
	if (end_list(&names.list, status, "/zone?d=", "No record set claims a name here.")) {
		roll_html_add_param(page->out, roll_str_c(text));
		roll_page_add_name_param(page, "after", &names.last);
		end_link(page);
	}
}

/* --- who lost --- */

static enum roll_status on_toured_domain(void *ctx, struct roll_snap *snap,
					 const struct roll_domain *domain)
{
	struct names *names = ctx;

	(void)snap;
	(void)domain;
	return look(&names->list);
}

static enum roll_status on_toured_name(void *ctx, const struct roll_name *domain,
				       const struct roll_name *owner,
				       const struct roll_claim *claims, size_t count)
{
	struct names *names = ctx;

	(void)domain;
	/* Served claims come first, so a loser is the last of them. */
	if (!count || claims[count - 1].verdict == ROLL_VERDICT_SERVED)
		return look(&names->list);
	return on_claims(ctx, owner, claims, count);
}

void roll_page_lost(struct roll_page *page, size_t rows)
{
	struct names names = {.list = {.page = page, .rows = rows, .head = claims_head},
			      .is_served = true};
	struct roll_tour_hooks hooks = {on_toured_domain, on_toured_name, &names};
	struct roll_tour tour = {.is_begun = false};
	enum roll_status status;

	if (rows == ROLL_PAGE_ROWS && roll_page_name_param(page, "d", &tour.domain)) {
		tour.is_begun = names.list.is_continued = true;
		tour.has_name = roll_page_name_param(page, "n", &tour.name);
		tour.is_in_zone = tour.has_name;
	}
	status = roll_tour_go(&tour, page->snap, &hooks);
	if (end_list(&names.list, status, "/lost?p", "Nobody: every claim to a name is served.")) {
		roll_page_add_name_param(page, "d", &tour.domain);
		if (tour.is_in_zone && tour.has_name)
			roll_page_add_name_param(page, "n", &tour.name);
		end_link(page);
	}
}

/* --- findings --- */

struct findings {
	struct list list;
	struct roll_buf last; /* key of the object */
	const struct roll_object_row *row;
	size_t told; /* of the row */
};

static void on_finding(void *ctx, unsigned severity, unsigned reason, struct roll_str path,
		       struct roll_str text)
{
	struct findings *findings = ctx;
	struct roll_page *page = findings->list.page;

	if (findings->told++ >= FINDINGS_SHOWN)
		return;
	roll_page_raw(page, "<tr><td>");
	if (findings->told == 1)
		roll_page_object(page, roll_kind_text((enum roll_kind)findings->row->kind),
				 findings->row->key);
	roll_page_raw(page, "</td><td>");
	roll_page_pill(page, severity == ROLL_FAULT ? ROLL_TONE_BAD : ROLL_TONE_MILD,
		       severity == ROLL_FAULT ? "error" : "warning");
	roll_page_raw(page, "</td><td>");
	roll_page_c(page,
		    reason < ROLL_REASON_COUNT ? roll_reason_text((enum roll_reason)reason) : "?");
	roll_page_raw(page, "</td><td class=\"f\"><code>");
	roll_page_text(page, path);
	roll_page_raw(page, "</code></td><td class=\"w\">");
	roll_page_text(page, text);
	roll_page_raw(page, "</td></tr>");
}

static enum roll_status on_object(void *ctx, const struct roll_object_row *row)
{
	struct findings *findings = ctx;
	struct roll_page *page = findings->list.page;
	uint64_t total = (uint64_t)row->fault_count + row->warning_count;
	enum roll_status status;

	roll_buf_reset(&findings->last);
	roll_buf_add_str(&findings->last, row->key);
	if (!total)
		return look(&findings->list);
	begin_row(&findings->list);
	findings->row = row;
	findings->told = 0;
	status = roll_row_findings(row, on_finding, findings);
	if (status)
		return status;
	if (total > FINDINGS_SHOWN) {
		roll_page_raw(page, "<tr><td></td><td colspan=\"4\" class=\"note\">and ");
		roll_page_u64(page, total - FINDINGS_SHOWN);
		roll_page_raw(page, " more of this object</td></tr>");
	}
	return end_row(&findings->list);
}

/* The kind to begin with, and after which of its objects. */
static unsigned findings_place(struct roll_page *page, char *key, size_t size)
{
	char text[4];
	uint32_t kind;

	key[0] = '\0';
	if (!roll_page_param(page, "k", text, sizeof text) ||
	    roll_str_u32(roll_str_c(text), ROLL_ROW_KINDS - 1, &kind))
		return 0;
	if (!roll_page_param(page, "after", key, size))
		key[0] = '\0';
	return kind;
}

void roll_page_findings(struct roll_page *page, size_t rows)
{
	struct findings findings = {
		.list = {.page = page,
			 .rows = rows,
			 .head = "<th>Object</th><th>Severity</th><th>Reason</th><th>Field</th>"
				 "<th>What is wrong</th>"}};
	struct roll_engine_counts counts;
	enum roll_status status = ROLL_OK;
	char after[520] = "";
	unsigned kind = rows == ROLL_PAGE_ROWS ? findings_place(page, after, sizeof after) : 0;

	findings.list.is_continued = kind || after[0];
	roll_buf_init(&findings.last, sizeof after);
	roll_engine_counts(page->run->engine, &counts);
	/* Nothing to look for: no need to look at a million objects. */
	if (!counts.faults && !counts.warnings)
		kind = ROLL_ROW_KINDS;
	for (; kind < ROLL_ROW_KINDS; kind++) {
		status = roll_snap_objects(page->snap, (enum roll_row_kind)kind, roll_str_c(after),
					   on_object, &findings);
		if (status)
			break;
		after[0] = '\0';
	}
	if (end_list(&findings.list, status,
		     "/findings?k=", "None: all that the objects say can be served.")) {
		roll_buf_printf(page->out, "%u&amp;after=", kind);
		roll_html_add_param(page->out, roll_buf_str(&findings.last));
		end_link(page);
	}
	roll_buf_fini(&findings.last);
}

/* --- removals --- */

struct removals {
	struct list list;
	uint64_t before; /* sequence; 0: the newest */
	uint64_t last;
};

static void show_names(struct roll_page *page, struct roll_str names)
{
	const size_t most = 160;
	struct roll_str shown = names;

	/* Cut between two names. */
	if (shown.n > most) {
		shown.n = most;
		while (shown.n && shown.p[shown.n - 1] != ' ')
			shown.n--;
	}
	roll_page_text(page, shown);
	if (shown.n < names.n)
		roll_page_raw(page, "...");
}

static enum roll_status on_removal(void *ctx, const struct roll_removal *removal)
{
	struct removals *removals = ctx;
	struct roll_page *page = removals->list.page;

	/* The history is bounded (ROLL_REMOVALS_KEPT), so what is newer is passed over. */
	if (removals->before && removal->sequence >= removals->before)
		return ROLL_OK;
	begin_row(&removals->list);
	removals->last = removal->sequence;
	roll_page_raw(page, "<tr><td>");
	roll_page_when(page, removal->at_ms / 1000);
	roll_page_raw(page, "</td><td>");
	roll_page_object(page, roll_kind_text((enum roll_kind)removal->kind), removal->key);
	roll_page_raw(page, "</td><td class=\"w\">");
	show_names(page, removal->names);
	roll_page_raw(page, "</td><td class=\"w\">");
	roll_page_text(page, removal->evidence);
	if (removal->revision) {
		roll_page_raw(page, ", resourceVersion ");
		roll_buf_add_u64(page->out, removal->revision);
	}
	roll_page_raw(page, "</td></tr>");
	return end_row(&removals->list);
}

void roll_page_removals(struct roll_page *page, size_t rows)
{
	struct removals removals = {
		.list = {.page = page,
			 .rows = rows,
			 .head = "<th>When</th><th>Object</th><th>Names</th><th>Evidence</th>"}};
	enum roll_status status;
	char text[24];

	if (rows == ROLL_PAGE_ROWS && roll_page_param(page, "before", text, sizeof text) &&
	    roll_str_u64(roll_str_c(text), UINT64_MAX, &removals.before))
		removals.before = 0;
	removals.list.is_continued = removals.before != 0;
	status = roll_snap_removals(page->snap, on_removal, &removals);
	if (end_list(&removals.list, status,
		     "/removals?before=", "Nothing was removed since this view began.")) {
		roll_buf_add_u64(page->out, removals.last);
		end_link(page);
	}
}
