/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_STREAM_STATE_H
#define ROLL_SOURCE_STREAM_STATE_H

#include "source/stream.h"
#include "source/watch.h"

/*
 * What the files of a stream share; nobody else includes it.
 *
 *	stream.c	life, position, trouble and proof
 *	stream_list.c	the list
 *	stream_watch.c	the watch and what it brings
 *	stream_check.c	is a silent watch what it seems?
 *
 *	start --position--> WATCH --ERROR, 400, 404, 410--> LIST --> WATCH ...
 *	      --none------> LIST  --complete------------> WATCH
 *
 * A watch that ends in any other way is begun again from the position. Besides, a list runs beside
 * the watch from time to time. So there are two independent halves: the list (wanted, queued,
 * running, or waiting to be tried again) and the watch (running, or waiting to be tried again); the
 * watch rests while must_list is set, since there is nothing to start it from.
 */

#define ROLL_STREAM_API_VERSION "dns.networking.miloapis.com/v1alpha1"
/*
 * A watch without a line, then it is checked. A server sends a bookmark every minute, if it sends
 * any; one that is due is waited for.
 */
#define ROLL_STREAM_SILENCE_MS 65000

struct roll_stream_kind {
	const char *plural;
	const char *kind;
	bool is_cluster_scoped;
};
extern const struct roll_stream_kind roll_stream_kinds[ROLL_STREAM_KINDS];

struct roll_stream {
	struct roll_stream_env *env;
	int kind;
	char ns[64];
	char what[128];
	char path[256];

	uint64_t position; /* stored by the sink; 0: none */
	bool must_list;

	/* The list. */
	struct roll_lister *list;
	const char *list_cause;	     /* NULL: none wanted */
	bool is_queued;		     /* asked for its turn */
	bool use_pages;		     /* the next one */
	uint64_t list_from_position; /* when the list began */
	enum roll_status list_sink_status;
	unsigned list_attempt;
	struct roll_timer *list_retry;
	struct roll_timer *relist;

	/* The watch. */
	struct roll_api_call *watch;
	struct roll_watch *reader;
	bool is_open;	   /* 200 was seen */
	bool is_check_due; /* nothing is known yet of what this watch sends */
	int64_t opened_ms;
	uint64_t lines;
	uint64_t from;	/* the position that it began at */
	bool has_proof; /* a good line came since the sink was told last */
	uint64_t seen;	/* the latest revision that was given to the sink or found there */
	unsigned batch_count;
	enum roll_status sink_status;
	int error_code; /* of an ERROR event; 0: none */
	struct roll_err error;
	unsigned bad_lines; /* watches that ended in one, in a row */
	unsigned watch_attempt;
	struct roll_timer *watch_retry;

	/* Is the watch what it seems? */
	struct roll_timer *silence;
	struct roll_timer *grace;
	struct roll_api_call *probe;
	struct roll_json_items *probe_items;
	uint64_t probe_lines;
	uint64_t probe_known;
	uint64_t setbacks; /* of env's, those that a list has made good */
	int64_t proven_ms;
	bool is_troubled;
};

/* --- stream.c --- */

const struct roll_sink *roll_stream_sink(const struct roll_stream *stream);
int64_t roll_stream_now_ms(const struct roll_stream *stream);
void roll_stream_trouble(struct roll_stream *stream, const char *what, const char *why);
void roll_stream_proven(struct roll_stream *stream);
void roll_stream_read_position(struct roll_stream *stream);
void roll_stream_set_position(struct roll_stream *stream, uint64_t position);

/* --- stream_list.c --- */

bool roll_stream_init_list(struct roll_stream *stream);
void roll_stream_fini_list(struct roll_stream *stream);
void roll_stream_want_list(struct roll_stream *stream, const char *cause);
void roll_stream_schedule_relist(struct roll_stream *stream);
void roll_stream_lose_position(struct roll_stream *stream, int64_t retry_after_ms);

/* --- stream_watch.c --- */

bool roll_stream_init_watch(struct roll_stream *stream);
void roll_stream_fini_watch(struct roll_stream *stream);
void roll_stream_watch(struct roll_stream *stream);
void roll_stream_retry_watch(struct roll_stream *stream, int64_t delay_ms);
/* True: it was of use, and its end is no failure. */
bool roll_stream_drop_watch(struct roll_stream *stream);
/* The sink is about to be told something else. */
void roll_stream_end_batches(struct roll_stream_env *env);

/* --- stream_check.c --- */

bool roll_stream_init_check(struct roll_stream *stream);
void roll_stream_fini_check(struct roll_stream *stream);
void roll_stream_stop_check(struct roll_stream *stream);

#endif
