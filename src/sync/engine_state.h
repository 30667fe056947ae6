/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SYNC_ENGINE_STATE_H
#define ROLL_SYNC_ENGINE_STATE_H

#include <uthash.h>

#include "apply/apply.h"
#include "sync/engine.h"

/*
 * What the files of the engine share; nobody else includes it.
 *
 *	engine.c	life, transactions, counts
 *	engine_event.c	operations: what events and lists into a new view consist of
 *	engine_list.c	lists: begin, put, keep
 *	engine_end.c	lists: the end, where they count
 *	engine_stage.c	an object on its way through the stage, as bytes
 *	engine_report.c	findings for people
 */

#define ROLL_EXTRAS_MAX 20u /* extra findings of one object that are kept */

/* An object and what its decoding found. Strings are borrowed from its JSON and the arena. */
struct roll_decoded {
	struct roll_object object;
	struct roll_apply_extra extra[ROLL_EXTRAS_MAX + 1];
	size_t extra_count;
};

/* One object to be put or absent, kept until the commit worked. */
struct roll_op {
	json_t *json; /* a reference */
	char *scope;  /* heap, NULL if empty */
	size_t scope_n;
	bool is_absent;
	uint64_t revision; /* of the absence */
};

struct roll_ops {
	struct roll_op *items;
	size_t count, room;
	size_t cost; /* about the bytes of memory */
};

/* An object without a usable identity. */
struct roll_reject {
	char *scope, *where, *path, *text;
	enum roll_reason reason;
};

/* A set of strings, with a number each. */
struct roll_mark {
	UT_hash_handle hh;
	uint64_t value;
	char *text; /* the reason, for kept scopes; may be NULL */
	size_t key_n;
	char key[];
};

/* A list that may have been judged before: what is pending confirmation is per list. */
struct roll_guarded {
	uint64_t hash; /* of kind and namespace */
	bool is_done;  /* counted in this process */
	struct roll_guard guard;
	uint64_t held; /* removals that the latest list wanted and did not get */
};

struct roll_list {
	bool is_open;
	bool is_direct; /* into a new view */
	struct roll_list_head head;
	uint64_t high_water; /* when it began */
	struct roll_buf slice;
	size_t slice_count;
	size_t flushed; /* objects in the view's stage */
	struct roll_mark *kept;
	struct roll_mark *touched; /* by events meanwhile: kind and key; value is the revision */
	bool is_missing_scope;	   /* on_shared named one that is not in the list */
	uint64_t read;
};

struct roll_position {
	char *what;
	char *text;
	uint64_t revision; /* 0: not a number */
	bool is_stored;
};

struct roll_engine {
	struct roll_engine_conf conf;
	struct roll_guard_conf guard;
	struct roll_sink sink;
	struct roll_apply *apply;
	struct roll_arena decode;
	struct roll_buf bytes; /* an object, printed or encoded */
	struct roll_buf key;
	bool is_building;
	bool is_stopped;
	bool is_reachable;
	int64_t unreachable_ms;	     /* since when, wall clock */
	int64_t unreachable_mono_ms; /* the same, monotonic */
	char why_unreachable[256];
	bool is_writable;
	bool is_damaged; /* no use in trying again */

	/* What is to be stored with the next commit. */
	struct roll_buf identity;
	bool is_identity_new;
	uint64_t high_water, high_water_stored;
	struct roll_position *positions; /* of this process */
	size_t position_count;
	bool was_building;		 /* the view began in this process */
	bool is_publisher, is_published; /* serials: by us; by anybody */
	struct roll_mark *heeded;	 /* DNSZones; value is the serial */
	bool is_noted;			 /* positions and the mark are in the transaction at hand */
	uint64_t high_water_noted;

	struct roll_ops ops;
	bool in_event;
	struct roll_list list;
	bool is_stage_dirty;
	struct roll_guarded *guarded;
	size_t guarded_count;
	struct roll_reject *rejects;
	size_t reject_count;
	uint64_t rejects_dropped;

	/* A DNSZone that has to be prepared in slices before its transaction can go on. */
	json_t *sliced;

	uint64_t objects[ROLL_KIND_COUNT];
	struct roll_apply_delta found; /* findings that the view stores */
	uint64_t committed, read;
	uint64_t removed_by_list, healed, held;
	int64_t confirmed_ms, confirmed_stored_ms;
	int64_t readers_checked_ms;
	bool is_sweep_due;
	bool has_zone_op;

	/* Copied before a commit, because they end with it. */
	struct roll_changes changes;

	struct roll_metric *m_commits, *m_commit_seconds, *m_events, *m_lists, *m_removed,
		*m_healed, *m_errors;
};

/* --- engine.c --- */

/* Work of one transaction; may be run again, on a fresh one. */
typedef enum roll_status (*roll_engine_fn)(struct roll_engine *engine, struct roll_txn *txn,
					   void *ctx);
/* Begin, fn, commit; the map grows and zones are sliced as needed. */
enum roll_status roll_engine_run(struct roll_engine *engine, roll_engine_fn fn,
				 void *ctx) ROLL_MUST_CHECK;
int64_t roll_engine_now_ms(const struct roll_engine *engine); /* wall clock */

/* --- engine_position.c --- */

/*
 * In the transaction at hand: the high-water mark, all positions that are not stored yet, and this
 * one, which may be empty.
 */
enum roll_status roll_engine_note(struct roll_engine *engine, struct roll_txn *txn,
				  struct roll_str what, struct roll_str position,
				  uint64_t revision);
void roll_engine_noted(struct roll_engine *engine); /* it is committed */
/* Until there all is in the view. Empty: as it was. */
void roll_engine_set_position(struct roll_engine *engine, struct roll_str what,
			      struct roll_str text, bool is_stored);
void roll_engine_clear_positions(struct roll_engine *engine);
/* All kinds and namespaces are in the view until this revision; 0: not known. */
uint64_t roll_engine_reached(const struct roll_engine *engine);
enum roll_status roll_engine_load_high_water(struct roll_engine *engine, struct roll_txn *txn);

/* --- engine_serial.c --- */

/* What the serials of zones changed by this object are taken from; otherwise: if it has none. */
void roll_engine_set_revision(struct roll_engine *engine, struct roll_txn *txn,
			      const struct roll_object *object, uint64_t otherwise);
/* ... by what a list does not have any more. */
void roll_engine_set_list_revision(const struct roll_engine *engine, struct roll_txn *txn,
				   uint64_t revision);
/* Keep in mind what a replica has given out for this object, if it is a DNSZone, at the latest. */
void roll_engine_heed(struct roll_engine *engine, struct roll_txn *txn,
		      const struct roll_object *object);
/* Positions have advanced: give out what may be given out now. */
void roll_engine_heed_due(struct roll_engine *engine);

/* --- engine_event.c --- */

/* Findings go to out->extra. ENOENT: not ours; EINVAL: rejected. */
enum roll_status roll_engine_decode(struct roll_engine *engine, const json_t *json,
				    struct roll_decoded *out) ROLL_MUST_CHECK;
enum roll_status roll_engine_add_op(struct roll_engine *engine, json_t *json, struct roll_str scope,
				    bool is_absent, uint64_t revision) ROLL_MUST_CHECK;
void roll_engine_clear_ops(struct roll_engine *engine);
/* All operations within txn, as events or (is_direct) as a part of a list into a new view. */
enum roll_status roll_engine_apply_ops(struct roll_engine *engine, struct roll_txn *txn,
				       bool is_direct) ROLL_MUST_CHECK;
/* Put one decoded object. json: what it was decoded from. */
enum roll_status roll_engine_put(struct roll_engine *engine, struct roll_txn *txn, json_t *json,
				 const struct roll_decoded *decoded, struct roll_str scope,
				 enum roll_apply_result *result) ROLL_MUST_CHECK;
enum roll_status roll_engine_event_begin(void *ctx);
enum roll_status roll_engine_event_put(void *ctx, json_t *object, struct roll_str scope,
				       struct roll_str where);
enum roll_status roll_engine_event_absent(void *ctx, json_t *object, uint64_t revision);
enum roll_status roll_engine_event_end(void *ctx, struct roll_str what, struct roll_str position);

/* --- engine_list.c --- */

void roll_mark_set(struct roll_mark **marks, struct roll_str key, uint64_t value,
		   struct roll_str text);
const struct roll_mark *roll_mark_find(const struct roll_mark *marks, struct roll_str key);
void roll_mark_drop(struct roll_mark **marks, struct roll_mark *mark);
void roll_mark_unset(struct roll_mark **marks, struct roll_str key);
void roll_marks_clear(struct roll_mark **marks);

struct roll_str roll_engine_touched_key(struct roll_engine *engine, enum roll_kind kind,
					struct roll_str key);
/* An event that came while the list is open tells something newer about the object. */
bool roll_engine_is_overtaken(struct roll_engine *engine, const struct roll_object *object);
bool roll_list_has_scope(const struct roll_list *list, struct roll_str scope);
bool roll_list_is_kept(const struct roll_list *list, struct roll_str scope);
/* The same object is in two manifests: the extra finding for the one that counts. */
struct roll_apply_extra roll_engine_duplicate(struct roll_engine *engine, struct roll_str other);
void roll_list_tell_shared(struct roll_list *list, struct roll_str scope, struct roll_str other);
enum roll_status roll_engine_list_begin(void *ctx, const struct roll_list_head *head);
enum roll_status roll_engine_list_put(void *ctx, json_t *object, struct roll_str scope,
				      struct roll_str where);
enum roll_status roll_engine_list_keep(void *ctx, struct roll_str scope, struct roll_str reason);
void roll_engine_list_abort(void *ctx);
void roll_list_close(struct roll_engine *engine);
/* Put what a list into a new view has told so far. */
enum roll_status roll_engine_flush_direct(struct roll_engine *engine) ROLL_MUST_CHECK;
struct roll_guarded *roll_engine_guarded(struct roll_engine *engine,
					 const struct roll_list_head *head);
/* What is in the slice goes to the stage of txn. The slice itself stays until the commit. */
enum roll_status roll_engine_flush(struct roll_engine *engine,
				   struct roll_txn *txn) ROLL_MUST_CHECK;

/* --- engine_end.c --- */

enum roll_status roll_engine_list_end(void *ctx, uint64_t revision, struct roll_str position);

/* --- engine_stage.c --- */

/*
 * u8 flags | str16 scope | u8 count, count x (u8 severity, u8 reason, str16 path, str16 text)
 * and, unless the object is as the view has it already,
 * str16 ns | str16 name | str16 uid | u64 revision | u64 generation | u64 created |
 * u32 serial | str32 spec
 */
struct roll_staged {
	bool is_seen; /* as in the view: only extra findings count */
	bool has_spec;
	struct roll_decoded decoded; /* object.spec is NULL; not set if is_seen */
	struct roll_str scope;
	struct roll_str spec; /* printed */
};
void roll_staged_encode(const struct roll_staged *staged, struct roll_buf *buf);
enum roll_status roll_staged_decode(enum roll_kind kind, struct roll_str bytes,
				    struct roll_staged *out) ROLL_MUST_CHECK;

/* --- engine_report.c --- */

void roll_engine_reject(struct roll_engine *engine, struct roll_str scope, struct roll_str where,
			const struct roll_decoded *decoded);
/* Forget those of a scope (all: of every scope). */
void roll_engine_clear_rejects(struct roll_engine *engine, bool all, struct roll_str scope);

#endif
