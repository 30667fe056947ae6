/* SPDX-License-Identifier: Apache-2.0 */
#include "server/search.h"

#include "dns/rdata.h"
#include "server/answer.h"

#define PATTERN_MAX_BYTES 1024u
#define RESULTS_MAX 5000 /* PowerDNS could not parse many more before it gives up */
/*
 * A search reads everything there is, and nobody else is answered meanwhile: it ends after this
 * time, with what it has found. The clock is read once in so many rows.
 */
#define SEARCH_MS 100
#define ROWS_PER_LOOK 256u

bool roll_pattern_match(struct roll_str pattern, struct roll_str text)
{
	size_t p = 0, t = 0, star = SIZE_MAX, star_t = 0;

	/* Only the last star ever needs to take one more byte: what is before it has matched. */
	while (t < text.n) {
		if (p < pattern.n && pattern.p[p] == '*') {
			star = p++;
			star_t = t;
		} else if (p < pattern.n &&
			   (pattern.p[p] == '?' || roll_lower((unsigned char)pattern.p[p]) ==
							   roll_lower((unsigned char)text.p[t]))) {
			p++;
			t++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			t = ++star_t;
		} else {
			return false;
		}
	}
	while (p < pattern.n && pattern.p[p] == '*')
		p++;
	return p == pattern.n;
}

struct search {
	struct roll_answer *answer;
	struct roll_snap *snap;
	struct roll_str pattern;
	const struct roll_zone *zone;
	size_t max_results;
	size_t rows_seen;
	int64_t until_ms;
	bool is_cut; /* out of time */
};

static bool matches_name(const struct search *search, const struct roll_name *name)
{
	struct roll_buf *text = &search->answer->reply.text;

	roll_buf_reset(text);
	roll_name_print(name, ROLL_DOT_NONE, text);
	return roll_pattern_match(search->pattern, roll_buf_str(text));
}

static bool matches_content(const struct search *search, const struct roll_row *row,
			    enum roll_status *status)
{
	struct roll_buf *text = &search->answer->reply.text;

	roll_buf_reset(text);
	*status = roll_rdata_print(row->type, row->rdata, ROLL_RDATA_PDNS, text);
	return !*status && roll_pattern_match(search->pattern, roll_buf_str(text));
}

static enum roll_status on_row(void *ctx, const struct roll_row *row)
{
	enum roll_status status = ROLL_OK;
	struct search *search = ctx;

	if (++search->rows_seen % ROWS_PER_LOOK == 0 &&
	    roll_clock_monotonic_ms(search->answer->clock) > search->until_ms) {
		search->is_cut = true;
		return ROLL_ECANCELED;
	}
	if (!matches_name(search, row->owner) && !matches_content(search, row, &status))
		return status;
	status = roll_reply_row(&search->answer->reply, search->zone->id, row);
	if (status)
		return status;
	return search->answer->reply.count < search->max_results ? ROLL_OK : ROLL_ECANCELED;
}

static enum roll_status on_domain(void *ctx, const struct roll_domain *domain)
{
	struct search *search = ctx;

	if (!domain->zone)
		return ROLL_OK;
	search->zone = domain->zone;
	return roll_snap_list(search->snap, domain->zone, on_row, search);
}

/* The pattern as a name is printed, that is, without final dot. */
static struct roll_str without_dot(struct roll_str pattern)
{
	if (pattern.n > 1 && pattern.p[pattern.n - 1] == '.')
		pattern.n--;
	return pattern;
}

enum roll_status roll_answer_search(struct roll_answer *answer, const struct roll_request *request,
				    struct roll_err *err)
{
	const struct roll_param *max =
		roll_request_param(request, "maxResults", ROLL_PARAM_INTEGER);
	const struct roll_param *pattern =
		roll_request_param(request, "pattern", ROLL_PARAM_STRING);
	struct search search = {.answer = answer, .max_results = RESULTS_MAX};
	enum roll_status status;

	if (!pattern || pattern->text.n > PATTERN_MAX_BYTES)
		return roll_err_set(err, ROLL_EPROTO, NULL, "pattern is missing or too long");
	if (max && max->number >= 0 && max->number < RESULTS_MAX)
		search.max_results = (size_t)max->number;
	search.pattern = without_dot(pattern->text);
	status = roll_answer_snap(answer, &search.snap, err);
	if (status)
		return status;
	search.until_ms = roll_clock_monotonic_ms(answer->clock) + SEARCH_MS;
	roll_reply_begin(&answer->reply, false);
	if (search.max_results)
		status = roll_snap_domains(search.snap, on_domain, &search);
	roll_snap_end(search.snap);
	if (status && status != ROLL_ECANCELED)
		return status;
	answer->is_empty = answer->reply.count == 0;
	status = roll_reply_end(&answer->reply);
	if (!status && search.is_cut) {
		/* "log" goes to PowerDNS's own log, where whoever searched may look. */
		roll_buf_truncate(answer->reply.out, answer->reply.out->n - 2);
		roll_buf_add_c(
			answer->reply.out,
			",\"log\":[\"rollcall: search took too long, not all was seen\"]}\n");
		status = answer->reply.out->status;
	}
	return status;
}
