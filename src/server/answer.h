/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SERVER_ANSWER_H
#define ROLL_SERVER_ANSWER_H

#include "base/clock.h"
#include "server/reply.h"
#include "server/request.h"
#include "view/read.h"

/*
 * The methods that are answered from the view: one snapshot each, from the first look to the last
 * row. They return ROLL_OK with a whole reply, or an error that the caller turns into a failure;
 * "nothing here" is said only when the view has proven it.
 */
enum roll_complaint {
	ROLL_COMPLAINT_REFUSED,
	ROLL_COMPLAINT_FAILED,
	ROLL_COMPLAINT_BAD,
	ROLL_COMPLAINTS
};

struct roll_answer {
	struct roll_view *view;
	const struct roll_clock *clock;
	int64_t max_stale_ms; /* 0: no limit */
	bool is_cacheable;    /* rows without scopeMask */
	struct roll_reply reply;
	/* Set by each answer. */
	bool is_empty;	  /* the reply says that there is nothing, or refuses */
	uint64_t content; /* of the snapshot, by roll_answer_snap */
	/* When the next line of each kind may be logged, and how many were not since the last. */
	int64_t quiet_until_ms[ROLL_COMPLAINTS];
	uint64_t unsaid[ROLL_COMPLAINTS];
};

/*
 * Log what went wrong, but each kind once in ten seconds: while the view is away every query fails.
 * reason is escaped here; method may be NULL.
 */
void roll_answer_complain(struct roll_answer *answer, enum roll_complaint kind, const char *method,
			  const char *reason);

/*
 * A snapshot that may be answered from. ROLL_ENOTREADY: none is complete yet, or the source was
 * last confirmed longer than max_stale_ms ago.
 */
enum roll_status roll_answer_snap(struct roll_answer *answer, struct roll_snap **out,
				  struct roll_err *err) ROLL_MUST_CHECK;

typedef enum roll_status (*roll_answer_fn)(struct roll_answer *answer,
					   const struct roll_request *request,
					   struct roll_err *err);
enum roll_status roll_answer_lookup(struct roll_answer *answer, const struct roll_request *request,
				    struct roll_err *err) ROLL_MUST_CHECK;
enum roll_status roll_answer_list(struct roll_answer *answer, const struct roll_request *request,
				  struct roll_err *err) ROLL_MUST_CHECK;
enum roll_status roll_answer_domain(struct roll_answer *answer, const struct roll_request *request,
				    struct roll_err *err) ROLL_MUST_CHECK;
enum roll_status roll_answer_domains(struct roll_answer *answer, const struct roll_request *request,
				     struct roll_err *err) ROLL_MUST_CHECK;
enum roll_status roll_answer_search(struct roll_answer *answer, const struct roll_request *request,
				    struct roll_err *err) ROLL_MUST_CHECK;

/* A name from a parameter. EPROTO if it is absent or no name. */
enum roll_status roll_answer_name(const struct roll_request *request, const char *param,
				  struct roll_name *out, struct roll_err *err) ROLL_MUST_CHECK;

#endif
