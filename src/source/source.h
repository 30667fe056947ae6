/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_SOURCE_H
#define ROLL_SOURCE_SOURCE_H

#include <jansson.h>

#include "base/str.h"

/*
 * Between where objects come from (manifest folder, API server) and the engine that keeps the view:
 * sources know nothing of DNS or the view. A source calls its sink from the event loop, never
 * within a sink call. Two kinds of news:
 *
 * Events are proven facts about one object. They are gathered between event_begin and event_end,
 * which makes them one commit with the position (which may be empty). Events that change nothing
 * are no commit: their position is stored with the next one, or some seconds later; after a crash
 * they are told once more. If event_end fails none of them counts, and the source asks again.
 *
 * Lists are claims about everything in some scopes. Between list_begin and list_end all objects
 * there are; whatever the view holds of these scopes beyond that is absent *if* the list counts
 * (the sink decides: guard). Nothing of a list is visible before list_end. list_abort forgets it: a
 * list that ended in any error proves nothing. One list is open at a time; events that come
 * meanwhile are newer than what the list says about the same object, by revision.
 */
struct roll_scopes {
	const struct roll_str *items; /* manifest paths relative to the folder, sorted */
	size_t count;
};

struct roll_list_head {
	/*
	 * Folder: kind is -1; scopes are the manifests that exist, gone those that do not any more.
	 * All of it stays until list_end or list_abort. Cluster: kind is an enum roll_kind, ns
	 * empty or the one namespace.
	 */
	struct roll_scopes scopes;
	struct roll_scopes gone;
	bool all_scopes; /* folder: what is in neither is gone as well */
	int kind;
	struct roll_str ns;
	struct roll_str what; /* for messages: "manifests", "dnszones" */
	/* Cluster: events have told everything already, so what this list changes was missed. */
	bool is_repeat;
	/*
	 * Folder: the same object is in both scopes (they may be equal). From now on, when one of
	 * them is listed, the other should be as well: either may have to take over. May be NULL.
	 * Called from list_put and list_end.
	 */
	void (*on_shared)(void *ctx, struct roll_str scope, struct roll_str other);
	void *ctx;
};

struct roll_sink {
	void *ctx;
	enum roll_status (*event_begin)(void *ctx);
	/* A JSON object as it came; scope: manifest path or empty; where: "file:line" or empty. */
	enum roll_status (*event_put)(void *ctx, json_t *object, struct roll_str scope,
				      struct roll_str where);
	/* object: last state (DELETED event). */
	enum roll_status (*event_absent)(void *ctx, json_t *object, uint64_t revision);
	enum roll_status (*event_end)(void *ctx, struct roll_str what, struct roll_str position);

	enum roll_status (*list_begin)(void *ctx, const struct roll_list_head *head);
	/* The same object again: the one with the lesser scope counts, the first of a scope. */
	enum roll_status (*list_put)(void *ctx, json_t *object, struct roll_str scope,
				     struct roll_str where);
	/*
	 * Folder: this scope could not be read and nothing was put of it; what the view holds of it
	 * stays, reported as stale. A scope that ends in '/' stands for everything below.
	 */
	enum roll_status (*list_keep)(void *ctx, struct roll_str scope, struct roll_str reason);
	/*
	 * All read. revision: of the snapshot, 0 for folders. ROLL_EAGAIN: held until a second list
	 * confirms it; the source lists again (after a moment). ROLL_ESTALE: older than what the
	 * view has, or on_shared named a scope that is not in the list; list again. Other errors:
	 * the view could not be written; list again later.
	 */
	enum roll_status (*list_end)(void *ctx, uint64_t revision, struct roll_str position);
	void (*list_abort)(void *ctx);

	/* Is the view in step with the source? Age, metrics and readiness come from this. */
	void (*confirmed)(void *ctx);
	void (*unreachable)(void *ctx, const char *why);
};

#endif
