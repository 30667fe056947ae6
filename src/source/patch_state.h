/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_PATCH_STATE_H
#define ROLL_SOURCE_PATCH_STATE_H

#include <uthash.h>

#include "source/patch.h"

/*
 * What the files of writing status share; nobody else includes it.
 *
 *	patch.c		the queue, whose turn it is, the pace
 *	patch_call.c	requests and what becomes of their answers
 */

enum roll_patch_state {
	ROLL_PATCH_READY,   /* in the queue of its rank */
	ROLL_PATCH_WAITING, /* until due_ms, then READY */
	ROLL_PATCH_READING,
	ROLL_PATCH_WRITING,
	ROLL_PATCH_RESTING, /* was written, and is not written again before due_ms */
};

struct roll_patch_item {
	UT_hash_handle hh;
	struct roll_patch *patch;
	struct roll_patch_item *prev, *next; /* in the list of its state */
	enum roll_patch_state state;
	enum roll_patch_rank rank;
	bool is_wanted_again; /* while it was being read or written, or resting */
	int64_t due_ms;
	int64_t rest_ms;   /* after the last write */
	uint64_t written;  /* hash of it; 0: none yet */
	unsigned attempts; /* failures in a row, of this one */
	int64_t too_large; /* the generation whose patch was; 0: none */
	struct roll_api_call *call;
	struct roll_buf answer;
	json_t *sent;	/* the patch on its way */
	json_t *object; /* as far as known; NULL: it has to be read */
	bool in_view;
	json_t *later; /* the same, told while a request was on its way */
	bool later_in_view;
	/* Parts of the key: resource, namespace, name. */
	struct roll_str resource, ns, name;
	char key[];
};

struct roll_patch_list {
	struct roll_patch_item *first, *last;
};

struct roll_patch {
	struct roll_patch_conf conf;
	struct roll_patch_item *items;
	struct roll_patch_list ready[ROLL_PATCH_RANKS];
	struct roll_patch_list delayed; /* WAITING and RESTING */
	size_t in_flight, resting, known;
	double tokens;
	int64_t filled_ms;
	int64_t paused_until_ms;
	unsigned failures; /* in a row, for the back-off */
	unsigned turn;	   /* counts decisions */
	char refusal[300]; /* the latest; empty: none since a write went well */
	uint64_t seed;
	bool is_deciding;
	struct roll_timer *timer;
	struct roll_buf text;
	struct roll_metric *m_writes, *m_reads, *m_dropped, *m_queue;
};

/* --- patch.c --- */

int64_t roll_patch_left_ms(const struct roll_patch *patch);
struct roll_patch_object roll_patch_object_of(const struct roll_patch_item *item);
/* True if it is good for anything. */
bool roll_patch_learn(struct roll_patch_item *item, const json_t *object, bool in_view);
void roll_patch_forget(struct roll_patch_item *item);
/* Into another state, behind those that are in it; wait and rest say for how long. */
void roll_patch_move(struct roll_patch_item *item, enum roll_patch_state state);
/* It is its turn still: READY, before the others of its rank. */
void roll_patch_go_on(struct roll_patch_item *item);
void roll_patch_wait(struct roll_patch_item *item, int64_t delay_ms);
/* After a failure: the longer the more there were. */
void roll_patch_retry(struct roll_patch_item *item);
void roll_patch_rest(struct roll_patch_item *item);
void roll_patch_drop(struct roll_patch_item *item);
/* The server is in trouble, or does not want us: nobody's turn for a while. */
void roll_patch_pause(struct roll_patch *patch, int64_t retry_after_ms);
void roll_patch_wake(struct roll_patch *patch);

/* --- patch_call.c --- */

/* False: it could not be started, and nothing has changed. */
bool roll_patch_start_read(struct roll_patch_item *item);
bool roll_patch_start_write(struct roll_patch_item *item, json_t *status);

#endif
