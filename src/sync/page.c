/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "explain/words.h"
#include "sync/page_state.h"

/* --- small pieces --- */

void roll_page_raw(struct roll_page *page, const char *html)
{
	roll_buf_add_c(page->out, html);
}

void roll_page_text(struct roll_page *page, struct roll_str text)
{
	roll_html_add(page->out, text);
}

void roll_page_c(struct roll_page *page, const char *text)
{
	roll_html_add_c(page->out, text);
}

void roll_page_u64(struct roll_page *page, uint64_t n)
{
	char digits[24];
	size_t len = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, n);

	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			roll_buf_add_char(page->out, ',');
		roll_buf_add_char(page->out, digits[i]);
	}
}

void roll_page_object(struct roll_page *page, const char *kind, struct roll_str key)
{
	if (kind) {
		roll_page_c(page, kind);
		roll_page_raw(page, " ");
	}
	roll_page_raw(page, "<code>");
	roll_page_text(page, key);
	roll_page_raw(page, "</code>");
}

static void add_name_link(struct roll_page *page, const char *href, const struct roll_name *name)
{
	char text[ROLL_NAME_TEXT_SIZE];

	roll_name_show(name, text);
	roll_page_raw(page, "<a href=\"");
	roll_page_raw(page, href);
	roll_html_add_param(page->out, roll_str_c(text));
	roll_page_raw(page, "\">");
	roll_page_c(page, text);
	roll_page_raw(page, "</a>");
}

void roll_page_name(struct roll_page *page, const struct roll_name *name)
{
	add_name_link(page, "/?q=", name);
}

void roll_page_zone(struct roll_page *page, const struct roll_name *domain)
{
	add_name_link(page, "/zone?d=", domain);
}

void roll_page_when(struct roll_page *page, int64_t seconds)
{
	char at[ROLL_TIME_SIZE], age[ROLL_AGE_SIZE];

	if (seconds == 0 || seconds == INT64_MAX) {
		roll_page_raw(page, "<span class=\"dim\">no time</span>");
		return;
	}
	roll_time_print(seconds, at);
	roll_page_raw(page, "<time datetime=\"");
	roll_page_c(page, at);
	roll_page_raw(page, "\" title=\"");
	roll_page_c(page, at);
	roll_page_raw(page, "\">");
	roll_page_c(page, roll_words_age(page->now_s - seconds, age));
	roll_page_raw(page, " ago</time>");
}

static const char *tone_class(enum roll_tone tone)
{
	static const char *const classes[] = {"good", "mild", "bad", "plain"};

	return classes[tone];
}

void roll_page_pill(struct roll_page *page, enum roll_tone tone, const char *text)
{
	roll_page_raw(page, "<span class=\"pill ");
	roll_page_raw(page, tone_class(tone));
	roll_page_raw(page, "\">");
	roll_page_c(page, text);
	roll_page_raw(page, "</span>");
}

bool roll_page_param(const struct roll_page *page, const char *name, char *out, size_t out_size)
{
	return roll_http_param(page->query, name, out, out_size) == ROLL_OK;
}

static int hex_value(char c)
{
	if (roll_is_digit((unsigned char)c))
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool roll_page_name_param(const struct roll_page *page, const char *key, struct roll_name *out)
{
	char text[2 * ROLL_NAME_MAX + 1];
	uint8_t wire[ROLL_NAME_MAX];
	size_t n;

	if (!roll_page_param(page, key, text, sizeof text))
		return false;
	n = strlen(text) / 2;
	for (size_t i = 0; i < n; i++) {
		int high = hex_value(text[2 * i]), low = hex_value(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		wire[i] = (uint8_t)(high << 4 | low);
	}
	return roll_name_from_wire(wire, n, out) == ROLL_OK;
}

void roll_page_add_name_param(struct roll_page *page, const char *key, const struct roll_name *name)
{
	roll_buf_printf(page->out, "&amp;%s=", key);
	for (size_t i = 0; i < name->len; i++)
		roll_buf_printf(page->out, "%02x", name->wire[i]);
}

void roll_page_unreadable(struct roll_page *page, enum roll_status status)
{
	roll_page_raw(page, "<p class=\"say bad\"><b>The view could not be read further.</b>");
	roll_page_c(page, roll_status_text(status));
	roll_page_raw(page, "</p>");
}

/* --- the frame --- */

static const struct {
	const char *path, *title;
} places[] = {{"/", "Overview"},
	      {"/zones", "Zones"},
	      {"/lost", "Who lost"},
	      {"/findings", "Findings"},
	      {"/removals", "Removals"}};

static void begin(struct roll_page *page, const char *title, const char *here, const char *asked)
{
	page->reply->content_type = "text/html; charset=utf-8";
	page->reply->content_policy = roll_page_policy;
	roll_page_raw(page, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
			    "<meta name=\"viewport\" content=\"width=device-width\"><title>");
	roll_page_c(page, title);
	roll_page_raw(page, " - rollcall</title><style>");
	roll_page_raw(page, roll_page_style);
	roll_page_raw(page, "</style></head>\n<body><header><div class=\"in\">"
			    "<a class=\"brand\" href=\"/\">rollcall</a><nav>");
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		roll_page_raw(page, "<a href=\"");
		roll_page_raw(page, places[i].path);
		roll_page_raw(page, strcmp(places[i].path, here) == 0 ? "\" aria-current=\"page\">"
								      : "\">");
		roll_page_c(page, places[i].title);
		roll_page_raw(page, "</a>");
	}
	roll_page_raw(page, "</nav><form action=\"/\" method=\"get\" role=\"search\">"
			    "<input name=\"q\" aria-label=\"Domain name\" "
			    "placeholder=\"A name, as www.example.com\" value=\"");
	roll_page_c(page, asked);
	roll_page_raw(page, "\" autocomplete=\"off\" spellcheck=\"false\">"
			    "<button>Explain</button></form></div></header>\n"
			    "<main class=\"in\">");
}

static void end(struct roll_page *page)
{
	char now[ROLL_TIME_SIZE];

	roll_page_raw(page, "</main>\n<footer><div class=\"in\">rollcall-sync " PACKAGE_VERSION
			    ", as of ");
	roll_page_c(page, roll_time_print(page->now_s, now));
	roll_page_raw(page, ". This page only shows; reload it to see what is new. "
			    "For programs: <a href=\"/metrics\">metrics</a>, "
			    "<a href=\"/readyz\">readiness</a>, or the command "
			    "<code>rollcall</code>.</div></footer></body></html>\n");
}

/* Between begin and end: what a page shows of a view. */
typedef void (*show_fn)(struct roll_page *page);

static void show(struct roll_run *run, const struct roll_http_query *query,
		 struct roll_http_reply *reply, const char *title, const char *here,
		 const char *asked, show_fn fn)
{
	struct roll_page page = {.run = run,
				 .query = query->query,
				 .reply = reply,
				 .out = &reply->body,
				 .now_s = roll_clock_wall_ms(&roll_clock_system) / 1000};
	enum roll_status status;

	begin(&page, title, here, asked);
	status = roll_snap_begin(roll_writer_view(run->writer), true, &page.snap, NULL);
	if (!status) {
		fn(&page);
	} else {
		roll_page_raw(&page, "<h1>");
		roll_page_c(&page, title);
		roll_page_raw(&page, "</h1><p class=\"say bad\"><b>There is no complete view yet."
				     "</b>The source has not been read to its end, so nothing is "
				     "known well enough to be answered or shown (");
		roll_page_c(&page, roll_status_text(status));
		roll_page_raw(&page, "). Reload in a moment; <a href=\"/readyz\">readiness</a> "
				     "says what is missing.</p>");
	}
	roll_snap_end(page.snap);
	end(&page);
}

/* --- the overview --- */

static void show_state(struct roll_page *page)
{
	struct roll_trouble troubles[ROLL_TROUBLES_MAX];
	size_t count = roll_run_troubles(page->run, troubles);
	struct roll_engine_counts counts;

	roll_engine_counts(page->run->engine, &counts);
	if (!count)
		roll_page_raw(page, "<p class=\"say good\"><b>In step with the source.</b>");
	for (size_t i = 0; i < count; i++) {
		roll_page_raw(page, troubles[i].is_unready ? "<p class=\"say bad\"><b>Attention: "
							   : "<p class=\"say mild\"><b>Note: ");
		roll_page_c(page, troubles[i].text);
		roll_page_raw(page, "</b>");
		if (i + 1 < count)
			roll_page_raw(page, "</p>");
	}
	if (counts.confirmed_ms) {
		roll_page_raw(page, "Last known to be in step ");
		roll_page_when(page, counts.confirmed_ms / 1000);
		roll_page_raw(page, ".");
	} else {
		roll_page_raw(page, "Not known to have been in step with its source yet.");
	}
	roll_page_raw(page, "</p>");
}

/* is_bad: anything but 0 is. */
static void add_card(struct roll_page *page, const char *href, uint64_t n, const char *what,
		     bool is_bad)
{
	if (href) {
		roll_page_raw(page, is_bad && n ? "<a class=\"off\" href=\"" : "<a href=\"");
		roll_page_raw(page, href);
		roll_page_raw(page, "\"><b>");
	} else {
		roll_page_raw(page, "<div><b>");
	}
	roll_page_u64(page, n);
	roll_page_raw(page, "</b><span>");
	roll_page_c(page, what);
	roll_page_raw(page, href ? "</span></a>" : "</span></div>");
}

static void show_cards(struct roll_page *page)
{
	const struct roll_census_counts *census = roll_census_counts(page->run->census);
	const struct roll_head *head = roll_snap_head(page->snap);
	struct roll_engine_counts counts;
	uint64_t unserved = 0;

	roll_engine_counts(page->run->engine, &counts);
	for (size_t i = 0; i < ROLL_ZONE_STATES; i++)
		unserved += i == ROLL_ZONE_SERVED ? 0 : census->zones[i];
	roll_page_raw(page, "<div class=\"cards\">");
	if (census->is_there) {
		add_card(page, "/zones", census->zones[ROLL_ZONE_SERVED], "zones served", false);
		add_card(page, "/zones", unserved, "zones not served", true);
		add_card(page, NULL, census->names, "names served", false);
		add_card(page, "/lost", census->contested, "names with a loser", false);
	} else {
		add_card(page, "/zones", head->object_count[ROLL_ROW_ZONE], "zones", false);
		add_card(page, NULL, head->name_count, "names", false);
	}
	add_card(page, NULL, head->object_count[ROLL_ROW_RECORDSET], "record sets", false);
	add_card(page, "/findings", counts.faults, "errors in objects", true);
	add_card(page, "/findings", counts.warnings, "warnings", false);
	roll_page_raw(page, "</div>");
}

static void show_legend(struct roll_page *page)
{
	roll_page_raw(
		page,
		"<details><summary>How to read this page</summary><dl>"
		"<dt>zone</dt><dd>A domain that a DNSZone object asks for. It is served if its "
		"class is ours and has name servers, and no older DNSZone has the domain.</dd>"
		"<dt>serves</dt><dd>The record set whose data is answered for a name and type: the "
		"oldest that claims it. When it goes, the next one serves in the same moment.</dd>"
		"<dt>NotOwner</dt><dd>An older record set has the same name and type.</dd>"
		"<dt>Conflict</dt><dd>A CNAME cannot stand beside other data; the older of the two "
		"serves.</dd>"
		"<dt>finding</dt><dd>Something in an object that cannot be served (error), or is "
		"served but perhaps not as meant (warning). The rest of the object is served.</dd>"
		"<dt>removal</dt><dd>An object is removed only on proof that it is gone; the "
		"evidence is what proved it.</dd>"
		"</dl></details>");
}

static void show_overview(struct roll_page *page)
{
	char asked[ROLL_NAME_TEXT_SIZE + 2];

	if (roll_page_param(page, "q", asked, sizeof asked) && asked[0]) {
		roll_page_explain(page, asked);
		return;
	}
	roll_page_raw(page, "<h1>Is what the objects say being answered?</h1>");
	show_state(page);
	show_cards(page);
	show_legend(page);
	roll_page_raw(page, "<h2>Zones</h2>");
	roll_page_zones(page, ROLL_PAGE_FEW);
	roll_page_raw(page, "<h2>Who lost</h2>");
	roll_page_lost(page, ROLL_PAGE_FEW);
	roll_page_raw(page, "<h2>Findings</h2>");
	roll_page_findings(page, ROLL_PAGE_FEW);
	roll_page_raw(page, "<h2>Recently removed</h2>");
	roll_page_removals(page, ROLL_PAGE_FEW);
}

static void on_overview(void *ctx, const struct roll_http_query *query,
			struct roll_http_reply *reply)
{
	char asked[ROLL_NAME_TEXT_SIZE + 2];

	if (roll_http_param(query->query, "q", asked, sizeof asked))
		asked[0] = '\0';
	show(ctx, query, reply, asked[0] ? asked : "Overview", asked[0] ? "" : "/", asked,
	     show_overview);
}

/* --- the other pages --- */

static void show_zones(struct roll_page *page)
{
	roll_page_raw(page, "<h1>Zones</h1><p class=\"note\">Every domain that a DNSZone asks for, "
			    "and what became of that.</p>");
	roll_page_zones(page, ROLL_PAGE_ROWS);
}

static void show_zone(struct roll_page *page)
{
	char text[ROLL_NAME_TEXT_SIZE];
	struct roll_name domain;

	if (!roll_page_param(page, "d", text, sizeof text) ||
	    roll_name_parse(roll_str_c(text), &domain, NULL)) {
		page->reply->status = 400;
		roll_page_raw(page, "<h1>Zone</h1><p class=\"say bad\">That is not a domain "
				    "name.</p>");
		return;
	}
	roll_page_names(page, &domain);
}

static void show_lost(struct roll_page *page)
{
	roll_page_raw(page, "<h1>Who lost</h1><p class=\"note\">Names that a record set claims in "
			    "vain, because another serves them.</p>");
	roll_page_lost(page, ROLL_PAGE_ROWS);
}

static void show_findings(struct roll_page *page)
{
	roll_page_raw(page, "<h1>Findings</h1><p class=\"note\">What is wrong with objects, or "
			    "remarkable about them.</p>");
	roll_page_findings(page, ROLL_PAGE_ROWS);
}

static void show_removals(struct roll_page *page)
{
	roll_page_raw(page,
		      "<h1>Removals</h1><p class=\"note\">What was there and is not any more, "
		      "newest first, and what proved it.</p>");
	roll_page_removals(page, ROLL_PAGE_ROWS);
}

static void on_zones(void *ctx, const struct roll_http_query *query, struct roll_http_reply *reply)
{
	show(ctx, query, reply, "Zones", "/zones", "", show_zones);
}

static void on_zone(void *ctx, const struct roll_http_query *query, struct roll_http_reply *reply)
{
	show(ctx, query, reply, "Zone", "", "", show_zone);
}

static void on_lost(void *ctx, const struct roll_http_query *query, struct roll_http_reply *reply)
{
	show(ctx, query, reply, "Who lost", "/lost", "", show_lost);
}

static void on_findings(void *ctx, const struct roll_http_query *query,
			struct roll_http_reply *reply)
{
	show(ctx, query, reply, "Findings", "/findings", "", show_findings);
}

static void on_removals(void *ctx, const struct roll_http_query *query,
			struct roll_http_reply *reply)
{
	show(ctx, query, reply, "Removals", "/removals", "", show_removals);
}

enum roll_status roll_page_attach(struct roll_run *run)
{
	static const struct {
		const char *path;
		roll_http_handler handler;
	} table[] = {{"/", on_overview}, {"/zones", on_zones},	     {"/zone", on_zone},
		     {"/lost", on_lost}, {"/findings", on_findings}, {"/removals", on_removals}};
	enum roll_status status = ROLL_OK;

	for (size_t i = 0; i < sizeof table / sizeof *table && !status; i++)
		status = roll_httpd_handle(run->httpd, table[i].path, table[i].handler, run);
	return status;
}
