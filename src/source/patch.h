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
 * is read and decided again. One that is too large for the server is decided again too, to be
 * shorter.
 *
 * Nothing here is needed for any answer: what does not fit is dropped and told.
 */
struct roll_patch;

/*
 * Those of one rank are served in the order they came. Higher ranks come first, but for one turn in
 * four: whoever keeps hand-overs coming must not keep all others from being told.
 */
enum roll_patch_rank {
	ROLL_PATCH_HAND_OVER, /* another object's change gave it a name or took it away */
	ROLL_PATCH_NEWS,      /* it has changed itself */
	ROLL_PATCH_BULK,      /* one of many: all of a zone, all there are */
	ROLL_PATCH_RANKS
};

/* Borrowed for the call. */
struct roll_patch_object {
	struct roll_str resource; /* "dnszones" */
	struct roll_str ns;
	struct roll_str name;
	struct roll_str uid;
	int64_t generation;
	const json_t *spec;   /* NULL if it need not be looked at: the view has it */
	const json_t *status; /* NULL: none */
	bool has_no_room;     /* the server found the last patch too large: do with less */
};

struct roll_patch_conf {
	struct roll_loop *loop;
	struct roll_api *api;
	const struct roll_clock *clock;
	const char *base;	      /* "/apis/GROUP/VERSION"; must live as long */
	struct roll_metrics *metrics; /* may be NULL */
	/*
	 * ROLL_OK: *status (a new reference) is the merge patch of the status. ENOENT: nothing to
	 * do. EAGAIN: not possible yet; ask again soon. Others: ask again later.
	 */
	enum roll_status (*decide)(void *ctx, const struct roll_patch_object *object,
				   json_t **status);
	/* How long a write may take at most; 0: nothing is done now. May be NULL. */
	int64_t (*left_ms)(void *ctx);
	/*
	 * `patch` was written. object is as it was before, `present` is its status as the server
	 * has it now; NULL if it does not tell. May be NULL.
	 */
	void (*on_written)(void *ctx, const struct roll_patch_object *object, const json_t *patch,
			   const json_t *present);
	/* No room: an object was not taken. May be NULL. */
	void (*on_dropped)(void *ctx);
	void *ctx;
};

enum roll_status roll_patch_new(const struct roll_patch_conf *conf, struct roll_patch **out,
				struct roll_err *err) ROLL_MUST_CHECK;
/* Not to be called from a callback. Accepts NULL. */
void roll_patch_free(struct roll_patch *patch);

/*
 * Look at this object. known: as it is, from an event or a list, or NULL: it is read when its turn
 * comes. in_view: the view had it before it was told here. Not to be called from decide or
 * on_written.
 */
void roll_patch_want(struct roll_patch *patch, enum roll_patch_rank rank, const char *resource,
		     struct roll_str ns, struct roll_str name, const json_t *known, bool in_view);
/* Forget everything; what is on its way is cancelled. Not to be called from decide. */
void roll_patch_clear(struct roll_patch *patch);
/* Why reads or writes are denied (401, 403), printable; NULL: they are not, as far as known. */
const char *roll_patch_refusal(const struct roll_patch *patch);
/* Objects that wait to be looked at or are being written. */
size_t roll_patch_count(const struct roll_patch *patch);

#endif
