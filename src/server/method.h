/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SERVER_METHOD_H
#define ROLL_SERVER_METHOD_H

#include "base/clock.h"
#include "base/metric.h"
#include "base/str.h"
#include "view/read.h"

/*
 * Requests to replies: a table of the remote backend's methods. Meaning only, no sockets.
 */
struct roll_methods;

struct roll_methods_conf {
	struct roll_view *view;
	const struct roll_clock *clock;
	struct roll_metrics *metrics; /* may be NULL */
	int64_t max_stale_ms;	      /* 0: no limit */
	bool is_cacheable;
};

/* NULL without memory. */
struct roll_methods *roll_methods_new(const struct roll_methods_conf *conf);
void roll_methods_free(struct roll_methods *methods);

/*
 * Answer one line (overwritten). The reply, one line as well, is put into the empty buffer `out`,
 * whose ceiling is that of the reply. EPROTO: that was not a request, nobody knows what the peer
 * is doing; close the connection. ENOMEM, ELIMIT: there was no room even for a failure.
 */
enum roll_status roll_methods_answer(struct roll_methods *methods, char *line, size_t n,
				     struct roll_buf *out) ROLL_MUST_CHECK;

/* Bring the counters in metrics up to date, before they are printed. */
void roll_methods_tell(struct roll_methods *methods);

/* ROLL_OK if requests can be answered; else as roll_snap_begin, or ENOTREADY if too old. */
enum roll_status roll_methods_ready(struct roll_methods *methods,
				    struct roll_err *err) ROLL_MUST_CHECK;

/* One line about the view for people: generation, age, objects. */
void roll_methods_status(struct roll_methods *methods, struct roll_buf *out);

#endif
