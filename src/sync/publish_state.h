/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SYNC_PUBLISH_STATE_H
#define ROLL_SYNC_PUBLISH_STATE_H

#include "model/object.h"
#include "source/lister.h"
#include "source/patch.h"
#include "sync/publish.h"

/*
 * What the files of publishing share; nobody else includes it.
 *
 *	publish.c	 life, decisions, events, the pass over all objects
 *	publish_sink.c	 changes on their way to the engine, with what was there before
 *	publish_follow.c from a change to the objects that it may concern
 */

/* One event, and the object's row as it was before. */
struct roll_publish_op {
	enum roll_kind kind;
	char *key;
	json_t *json;	   /* the object as the event brought it; NULL: it is absent */
	uint64_t revision; /* of the row before; 0: there was none */
	uint32_t number;
	uint16_t type;	       /* record sets, before */
	char *zone;	       /* ... the DNSZone; may be NULL */
	struct roll_buf names; /* as in the row */
	bool has_domain;       /* DNSZones, before */
	struct roll_name domain;
};

struct roll_publish_ops {
	struct roll_publish_op *items;
	size_t count, at; /* at: the next one to be handled */
	size_t room;
};

enum roll_publish_job_kind {
	ROLL_PUBLISH_RECORDSETS, /* of the DNSZone `key` */
	ROLL_PUBLISH_CLASS,	 /* DNSZones of the class, and theirs */
};

struct roll_publish_job {
	enum roll_publish_job_kind kind;
	char *key;
	char *after; /* NULL: from the beginning */
	struct roll_publish_job *next;
};

/* The records of a DNSZone with many record sets, counted in slices. */
struct roll_publish_sum {
	char *key; /* NULL: nothing is being counted */
	char *after;
	uint64_t records;
	bool is_done;
	int64_t touched_ms;
};

struct roll_publish {
	struct roll_publish_conf conf;
	struct roll_sink sink;
	struct roll_patch *patch;
	struct roll_arena arena;
	bool is_leader;
	bool has_passed;	       /* over all objects once, */
	bool is_settled;	       /* and all that was found is written */
	bool is_in_step;	       /* with the source, as far as known */
	bool has_no_serial;	       /* the cluster's DNSZones have no status.serial */
	struct roll_publish_ops batch; /* told, not committed yet */
	struct roll_publish_ops ops;   /* committed, to be followed */
	struct roll_publish_job *jobs;
	size_t job_count;
	struct roll_timer *work;
	struct roll_publish_sum sum;

	/* The pass over all objects. */
	bool is_pass_due;
	int64_t pass_at_ms;
	struct roll_lister *lister;
	char path[256];
	int pass_kind;
	size_t pass_ns;
	struct roll_metric *m_passes;
};

/* --- publish.c --- */

void roll_publish_pass(struct roll_publish *publish, int64_t delay_ms);
/* known: the object, as an event told it; may be NULL. */
void roll_publish_want(struct roll_publish *publish, enum roll_patch_rank rank, enum roll_kind kind,
		       struct roll_str key, const json_t *known);

/* --- publish_sink.c --- */

void roll_publish_sink_init(struct roll_publish *publish);
/* With a NUL behind it; NULL: no memory. */
char *roll_publish_copy(struct roll_str s);
uint16_t roll_publish_type_of(const struct roll_object_row *row); /* 0: not known */
void roll_publish_fini_op(struct roll_publish_op *op);
void roll_publish_clear_ops(struct roll_publish_ops *ops);

/* --- publish_follow.c --- */

void roll_publish_forget(struct roll_publish *publish); /* all that was to be followed */
bool roll_publish_is_following(const struct roll_publish *publish);
/* Some of it; true if there is more. */
bool roll_publish_follow(struct roll_publish *publish);
void roll_publish_add_job(struct roll_publish *publish, enum roll_publish_job_kind kind,
			  struct roll_str key);

#endif
