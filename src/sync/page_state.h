/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SYNC_PAGE_STATE_H
#define ROLL_SYNC_PAGE_STATE_H

#include "sync/html.h"
#include "sync/page.h"

/*
 * What the files of the page share; nobody else includes it.
 *
 *	page.c		frame, overview, small pieces
 *	page_lists.c	zones, names, lost, findings, removals
 *	page_explain.c	one name
 *	page_style.c	looks
 */

#define ROLL_PAGE_ROWS 50   /* shown on a list's page */
#define ROLL_PAGE_FEW 8	    /* shown of each on the overview */
#define ROLL_PAGE_SCAN 5000 /* rows looked at to find them */
#define ROLL_PAGE_CLAIMS 10 /* shown of one name */

struct roll_page {
	struct roll_run *run;
	struct roll_str query; /* raw */
	struct roll_http_reply *reply;
	struct roll_buf *out; /* of the reply */
	struct roll_snap *snap;
	int64_t now_s;
};

/* --- page.c --- */

void roll_page_raw(struct roll_page *page, const char *html); /* markup of ours */
void roll_page_text(struct roll_page *page, struct roll_str text);
void roll_page_c(struct roll_page *page, const char *text);
void roll_page_u64(struct roll_page *page, uint64_t n); /* 1,234,567 */
/* "namespace/name", perhaps with its kind before it. */
void roll_page_object(struct roll_page *page, const char *kind, struct roll_str key);
/* A link to what is answered for it. */
void roll_page_name(struct roll_page *page, const struct roll_name *name);
/* A link to its names. */
void roll_page_zone(struct roll_page *page, const struct roll_name *domain);
/* "3m 20s ago", the time itself for whoever points at it; INT64_MAX and 0 are "no time". */
void roll_page_when(struct roll_page *page, int64_t seconds);
enum roll_tone { ROLL_TONE_GOOD, ROLL_TONE_MILD, ROLL_TONE_BAD, ROLL_TONE_PLAIN };
void roll_page_pill(struct roll_page *page, enum roll_tone tone, const char *text);
/* "NAME" of a form or link, decoded; false if it is not there, or is too long or broken. */
bool roll_page_param(const struct roll_page *page, const char *name, char *out, size_t out_size);
/* The name that a list's page goes on after, as hexadecimal wire form. */
bool roll_page_name_param(const struct roll_page *page, const char *key, struct roll_name *out);
void roll_page_add_name_param(struct roll_page *page, const char *key,
			      const struct roll_name *name);
/* The view could not be read further. */
void roll_page_unreadable(struct roll_page *page, enum roll_status status);

/* --- page_lists.c --- */

/* Tables of at most `rows` rows; with_more: a link to what follows them. */
void roll_page_zones(struct roll_page *page, size_t rows);
void roll_page_names(struct roll_page *page, const struct roll_name *domain);
void roll_page_lost(struct roll_page *page, size_t rows);
void roll_page_findings(struct roll_page *page, size_t rows);
void roll_page_removals(struct roll_page *page, size_t rows);

/* --- page_explain.c --- */

/* text: what was typed. */
void roll_page_explain(struct roll_page *page, const char *text);

/* --- page_style.c --- */

extern const char roll_page_style[];
/* Allows that style and links back to here, nothing else. */
extern const char roll_page_policy[];

#endif
