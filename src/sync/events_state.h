/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SYNC_EVENTS_STATE_H
#define ROLL_SYNC_EVENTS_STATE_H

#include <uthash.h>

#include "sync/events.h"

/*
 * What the files of events share; nobody else includes it.
 *
 *	events_table.c	what is remembered: which events are the same, how many an object may cause
 *	events.c	requests, and what their answers mean
 */

enum roll_events_state {
	ROLL_EVENTS_IDLE,  /* the server knows all of it, or is not to be asked again */
	ROLL_EVENTS_SOON,  /* waits for its turn */
	ROLL_EVENTS_LATER, /* a series that gathers repeats */
	ROLL_EVENTS_SENDING,
};

/* One event and its repeats. It is forgotten ten minutes after the last one. */
struct roll_events_entry {
	struct roll_events_object *object;
	struct roll_events_entry *prev, *next;		   /* of the same object */
	struct roll_events_entry *older, *newer;	   /* by last_ms */
	struct roll_events_entry *queue_prev, *queue_next; /* SOON and LATER */
	enum roll_events_state state;
	int64_t due_ms;
	uint64_t stamp;	     /* makes the name unique */
	bool is_created;     /* as far as known, the server has it */
	bool may_be_created; /* it was sent, but the answer got lost */
	bool is_given_up;    /* the server does not want it */
	uint32_t count;
	int64_t last_ms;
	int64_t first_wall_ms, last_wall_ms;
	const char *uid, *zone_name, *zone_uid, *reason, *note;
	bool is_warning;
	size_t identity_n;
	char identity[]; /* all that makes it different from others of the object */
};

struct roll_events_object {
	UT_hash_handle hh;
	struct roll_events_entry *entries;
	int64_t full_ms; /* when it may cause ten in a row again */
	enum roll_kind kind;
	const char *ns, *name;
	size_t key_n;
	char key[]; /* kind, namespace and name, each with a NUL */
};

struct roll_events_table {
	const struct roll_clock *clock;
	struct roll_events_object *objects;
	struct roll_events_entry *by_age;
	struct roll_events_entry *soon, *later; /* by due_ms, the first one first */
	size_t count, bytes, pending;
	uint64_t last_stamp;
	struct roll_buf key, identity; /* of the event that is noted */
	struct roll_metric *results;
};

void roll_events_table_init(struct roll_events_table *table, const struct roll_clock *clock);
void roll_events_table_fini(struct roll_events_table *table);
void roll_events_table_clear(struct roll_events_table *table);
void roll_events_table_note(struct roll_events_table *table, const struct roll_event *event);
/* Forget what is too old. */
void roll_events_table_prune(struct roll_events_table *table);
/* When there is something to forget, INT64_MAX if never. */
int64_t roll_events_table_prune_ms(const struct roll_events_table *table);

/* What is sent next, at its due_ms; NULL if nothing waits. */
struct roll_events_entry *roll_events_next(const struct roll_events_table *table);
void roll_events_move(struct roll_events_table *table, struct roll_events_entry *entry,
		      enum roll_events_state state);
/* A name of its own for the event. */
void roll_events_stamp(struct roll_events_table *table, struct roll_events_entry *entry);

/* "NAME.0123456789abcdef", at most 253 bytes. */
#define ROLL_EVENTS_NAME_SIZE 254
void roll_events_print_name(const struct roll_events_entry *entry, char out[ROLL_EVENTS_NAME_SIZE]);
/* The longest beginning of the text that is UTF-8 and no longer than that. */
size_t roll_events_cut(const char *text, size_t limit_bytes);

#endif
