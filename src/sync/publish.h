/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SYNC_PUBLISH_H
#define ROLL_SYNC_PUBLISH_H

#include "base/metric.h"
#include "source/api.h"
#include "source/source.h"
#include "sync/events.h"
#include "view/write.h"

/*
 * Telling the owners of objects: which objects to look at after a change, and what is written to
 * them (sync/report says what, source/patch writes it). It stands between the source and the engine
 * as a sink: an event goes through to the engine, and when its commit is done
 *
 *	the object itself is looked at, as the event brought it;
 *	so are the others at the names that it had and has, since one of them may have won or lost;
 *	so is its DNSZone (recordCount, and whether SOA and NS answer);
 *	of a DNSZone or class also all that hangs on it, in slices.
 *
 * All objects are looked at after a list, after becoming the leader, and whenever more changed than
 * could be kept in mind: by a paged list of their present status. Whatever is forgotten on the way
 * costs such a pass and nothing else.
 */
struct roll_publish;

struct roll_publish_conf {
	struct roll_loop *loop;
	struct roll_writer *writer;
	struct roll_api *api;
	const struct roll_sink *sink; /* the engine's */
	const struct roll_clock *clock;
	struct roll_metrics *metrics;  /* may be NULL */
	const char *const *namespaces; /* count 0: all */
	size_t namespace_count;
	struct roll_events *events; /* may be NULL */
	/*
	 * What was published of the DNSZone is of another content than what the view has, and yet
	 * with the same serial. True: it has a later one now. May be NULL.
	 */
	bool (*raise_serial)(void *ctx, struct roll_str zone_key);
	/* How long a write may take, 0 if none may begin. NULL: no limit. */
	int64_t (*left_ms)(void *ctx);
	void *ctx;
};

/* conf is copied, what it points to must live as long. Nothing is written before it leads. */
enum roll_status roll_publish_new(const struct roll_publish_conf *conf, struct roll_publish **out,
				  struct roll_err *err) ROLL_MUST_CHECK;
/* Not to be called from a callback. Accepts NULL. */
void roll_publish_free(struct roll_publish *publish);
/* For the source, instead of the engine's. */
const struct roll_sink *roll_publish_sink(struct roll_publish *publish);
/* Begin or cease to write; on its way or waiting is nothing any more when it has ceased. */
void roll_publish_lead(struct roll_publish *publish, bool is_leader);
/* Why the server denies it to us, printable; NULL: it does not, or nothing is to be written. */
const char *roll_publish_refusal(const struct roll_publish *publish);

#endif
