/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SYNC_ENGINE_H
#define ROLL_SYNC_ENGINE_H

#include "base/metric.h"
#include "dns/finding.h"
#include "model/object.h"
#include "source/source.h"
#include "sync/guard.h"
#include "view/write.h"

/*
 * The sink of every source: turns events and lists into commits of the view. One change, one commit
 * (design law 2). A list goes through the view's stage, or, when there is no complete view, into a
 * new one that is swapped in when every list was taken; the guard decides whether a list may remove
 * what it lacks.
 *
 * A list that changes more than ROLL_LIST_SLICE objects is applied in several commits, additions
 * first: every object still changes in one commit, each state in between is one that events could
 * have made as well, and the position is stored by the last. What is staged survives until then, so
 * memory does not grow with the list.
 *
 * A commit that fails (disk full, I/O) leaves the view as it is; the source is told, nothing is
 * confirmed, and the source tells its news again.
 */
struct roll_engine;

#define ROLL_LIST_SLICE 10000u

struct roll_engine_conf {
	struct roll_writer *writer;
	bool is_cluster;	/* lists per kind (and namespace) instead of one */
	size_t namespace_count; /* cluster: 0 or 1: one list a kind; more: a list a namespace */
	const struct roll_guard_conf *guard;
	const struct roll_clock *clock;
	struct roll_metrics *metrics; /* may be NULL */
	/*
	 * After a commit, once per commit; changes are valid for the call. NULL: anything may have
	 * changed (a new view was swapped in). May be NULL.
	 */
	void (*on_commit)(void *ctx, const struct roll_changes *changes);
	void (*on_progress)(void *ctx, uint64_t objects_read, uint64_t objects_committed);
	/* The operator wants what the brake holds; asked when it holds something. May be NULL. */
	bool (*is_approved)(void *ctx);
	void *ctx;
};

/* conf is copied. EDENIED: the view is of another kind of source. */
enum roll_status roll_engine_new(const struct roll_engine_conf *conf, struct roll_engine **out,
				 struct roll_err *err) ROLL_MUST_CHECK;
void roll_engine_free(struct roll_engine *engine);
const struct roll_sink *roll_engine_sink(struct roll_engine *engine);
/* Lists end with ROLL_ECANCELED from now on. May be called from on_progress. */
void roll_engine_stop(struct roll_engine *engine);

/*
 * Who the source is: the UID of kube-system, empty if it cannot be known. EDENIED: the view is of
 * another cluster, so nothing that this one says counts.
 */
enum roll_status roll_engine_identify(struct roll_engine *engine, struct roll_str identity,
				      struct roll_err *err) ROLL_MUST_CHECK;

/* Position stored for `what`; ENOENT if the view has none (then the source must list). */
enum roll_status roll_engine_position(struct roll_engine *engine, struct roll_str what,
				      struct roll_buf *out) ROLL_MUST_CHECK;
/* From now on the serials given out here are (or are not) what other replicas heed. */
void roll_engine_publish(struct roll_engine *engine, bool is_publisher);
/*
 * The DNSZone has changed since its serial was published, which nobody saw: raise it. False: the
 * view was not made in this process, so that it has seen everything; or it could not be done.
 */
bool roll_engine_raise_serial(struct roll_engine *engine, struct roll_str zone_key);
/* A slice of background work (sweep, reader check); true if there is more. */
bool roll_engine_work(struct roll_engine *engine);

struct roll_engine_counts {
	uint64_t objects[ROLL_KIND_COUNT];
	uint64_t faults, warnings;	      /* findings stored with the objects */
	uint64_t found[2][ROLL_REASON_COUNT]; /* of these, by severity and reason */
	uint64_t rejected; /* objects without a usable identity, of the latest lists */
	uint64_t removed_by_list, healed, held;
	uint64_t held_objects; /* removals that wait for a second list or an approval right now */
	uint64_t revision;     /* the highest seen; 0: the source has none */
	int64_t confirmed_ms;  /* wall clock; 0: never */
	bool is_complete;
	bool is_reachable;
	bool is_writable;	/* the last commit worked */
	bool is_damaged;	/* the view; only a new start makes a new one: end the program */
	int64_t unreachable_ms; /* wall clock: since when, 0 if reachable */
	int64_t unreachable_for_ms;  /* whatever was done to the wall clock meanwhile */
	const char *why_unreachable; /* escaped; valid until the source says another thing */
};
void roll_engine_counts(struct roll_engine *engine, struct roll_engine_counts *out);

/*
 * Every stored finding, object by object, then objects without an identity, then DNSZones that are
 * not served: for --once and its exit code.
 */
typedef void (*roll_engine_on_finding)(void *ctx, const char *object, const char *path,
				       const char *reason, const char *text);
enum roll_status roll_engine_findings(struct roll_engine *engine, roll_engine_on_finding on_finding,
				      void *ctx) ROLL_MUST_CHECK;

#endif
