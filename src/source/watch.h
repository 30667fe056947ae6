/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_WATCH_H
#define ROLL_SOURCE_WATCH_H

#include <jansson.h>

#include "base/str.h"

/*
 * The body of a watch: one JSON object a line, as {"type":"ADDED","object":{...}}. Bytes in pieces
 * of any size, events out. Only a line whose end was seen counts: a truncated body ends within one.
 */
struct roll_watch;

/* An object of 1.5 MiB in etcd is six times that if it is all "<", which is sent as \u003c. */
#define ROLL_WATCH_LINE_LIMIT_BYTES (16u << 20)

enum roll_watch_type {
	ROLL_WATCH_ADDED,
	ROLL_WATCH_MODIFIED,
	ROLL_WATCH_DELETED,
	ROLL_WATCH_BOOKMARK,
	ROLL_WATCH_ERROR,
	ROLL_WATCH_UNKNOWN,  /* a type that we have no name for */
	ROLL_WATCH_TOO_LARGE /* the line went on beyond the limit: only name is known, if that */
};

struct roll_watch_event {
	enum roll_watch_type type;
	json_t *object; /* borrowed; NULL if too large */
	/* All but ERROR, UNKNOWN and TOO_LARGE have one: of a deletion, it is the deletion's. */
	uint64_t revision;
	bool ends_initial; /* a bookmark: everything there was at `revision` has been sent */
	/* ERROR: what the server's Status object says. */
	int code;
	struct roll_str reason;
	struct roll_str message;
	struct roll_str name; /* TOO_LARGE: "ns/name" or as much as was found; UNKNOWN: the type */
};

/* Anything but ROLL_OK ends the reading: feed returns it. */
typedef enum roll_status (*roll_watch_on_event)(void *ctx, const struct roll_watch_event *event);

struct roll_watch *roll_watch_new(size_t line_limit_bytes, roll_watch_on_event on_event, void *ctx);
void roll_watch_free(struct roll_watch *watch);
/*
 * EPROTO: a line that is not an event; err->text says why. Sticks. The callback may free the
 * reader only after feed has returned.
 */
enum roll_status roll_watch_feed(struct roll_watch *watch, struct roll_str piece,
				 struct roll_err *err) ROLL_MUST_CHECK;

/* A resourceVersion as the number it is in practice (etcd's revision). EINVAL, also for 0. */
enum roll_status roll_revision_parse(struct roll_str text, uint64_t *out) ROLL_MUST_CHECK;
/* metadata.resourceVersion of an object or list. */
enum roll_status roll_revision_of(const json_t *object, uint64_t *out) ROLL_MUST_CHECK;

#endif
