/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_PATCH_H
#define ROLL_SOURCE_PATCH_H

#include "base/metric.h"
#include "source/api.h"

/*
 * Writing the status of objects: a bounded queue of objects to look at, each once however often it
 * was asked for. What its status should be is decided when its turn comes, against the object as it
 * is then, so that nothing is written that says nothing new. A write names the resourceVersion that
 * it was decided from: the server refuses it if anybody has changed the object since (409), and it
 * is read and decided again.
 *
 * Nothing here is needed for any answer: what does not fit is dropped and told.
 */
struct roll_patch;

/* Borrowed for the call. */
struct roll_patch_object {
	struct roll_str resource; /* "dnszones" */
	struct roll_str ns;
	struct roll_str name;
	struct roll_str uid;
	struct roll_str version; /* resourceVersion */
	int64_t generation;
	const json_t *spec;   /* NULL if it need not be looked at: the view has it */
	const json_t *status; /* NULL: none */
};

struct roll_patch_pace {
	unsigned per_second, burst; /* requests */
	unsigned in_flight;
	int64_t again_ms;    /* after a decision that was not possible yet */
	int64_t rest_ms;     /* between two writes to one object */
	int64_t rest_cap_ms; /* ... when somebody undoes them */
	int64_t backoff_base_ms, backoff_cap_ms;
	int64_t answer_ms; /* until a request is answered */
};
extern const struct roll_patch_pace roll_patch_pace_default;

struct roll_patch_conf {
	struct roll_loop *loop;
	struct roll_api *api;
	const struct roll_clock *clock;
	const char *base;		    /* "/apis/GROUP/VERSION" */
	size_t items_max;		    /* 0: 20,000 */
	const struct roll_patch_pace *pace; /* NULL: the default */
	struct roll_metrics *metrics;	    /* may be NULL */
	/*
	 * ROLL_OK: *status (a new reference) is the merge patch of the status. ENOENT: nothing to
	 * do. EAGAIN: not possible yet; ask again. Others: ask again later.
	 */
	enum roll_status (*decide)(void *ctx, const struct roll_patch_object *object,
				   json_t **status);
	/* How long a write may take at most; 0: nothing is done now. May be NULL. */
	int64_t (*left_ms)(void *ctx);
	/* It was written. object is as it was before. May be NULL. */
	void (*on_written)(void *ctx, const struct roll_patch_object *object, const json_t *status);
	/* No room: at least one object was not taken. May be NULL. */
	void (*on_dropped)(void *ctx);
	/* All was done. May be NULL. */
	void (*on_idle)(void *ctx);
	void *ctx;
};

/* conf is copied, strings must live as long. */
enum roll_status roll_patch_new(const struct roll_patch_conf *conf, struct roll_patch **out,
				struct roll_err *err) ROLL_MUST_CHECK;
/* Not to be called from a callback. */
void roll_patch_free(struct roll_patch *patch);

/*
 * Look at this object. known: the object as it is, from an event or a list (only metadata, status
 * and, with has_spec, spec are used), or NULL: it is read when its turn comes. is_urgent: before
 * those that are not. Not to be called from decide or on_written.
 */
void roll_patch_want(struct roll_patch *patch, const char *resource, struct roll_str ns,
		     struct roll_str name, const json_t *known, bool has_spec, bool is_urgent);
/* Forget everything; what is on its way is cancelled. Not to be called from decide. */
void roll_patch_clear(struct roll_patch *patch);
/* Objects that wait to be looked at or are being written. */
size_t roll_patch_count(const struct roll_patch *patch);

#endif
