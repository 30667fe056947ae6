/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SYNC_PURGE_H
#define ROLL_SYNC_PURGE_H

#include "app/loop.h"
#include "base/metric.h"
#include "view/write.h"

/*
 * Tells pdns_server over its control socket what has changed (--pdns-control): REDISCOVER when
 * zones come or go, so that its list of zones is new, then PURGE of the names whose cached answers
 * may be old, and the same PURGE again after the longest time that a question can be under way,
 * because such a one may have put an old answer back. A server without caches for answers needs
 * only what concerns zones.
 *
 * Nobody waits for it: commands go out one after the other from the loop, what is not sent yet is
 * bounded and merged, and a server that is not there is only a warning.
 */
struct roll_purge;

enum roll_purge_mode {
	ROLL_PURGE_AUTO,  /* names only if the server says that it caches answers */
	ROLL_PURGE_NAMES, /* always */
	ROLL_PURGE_ZONES  /* never: zones alone */
};

struct roll_purge_conf {
	struct roll_loop *loop;
	const struct roll_clock *clock;
	const char *socket; /* path */
	enum roll_purge_mode mode;
	struct roll_metrics *metrics; /* may be NULL */
	/* 0: the default in brackets. */
	int64_t timeout_ms; /* for one command (5000) */
	int64_t again_ms;   /* until the second PURGE (2000) */
	int64_t retry_ms;   /* between attempts to reach the server, growing twenty-fold (1000) */
};

/* conf is copied, its strings are not. EINVAL: the path is too long for a socket. */
enum roll_status roll_purge_new(const struct roll_purge_conf *conf, struct roll_purge **out,
				struct roll_err *err) ROLL_MUST_CHECK;
void roll_purge_free(struct roll_purge *purge);
/* After a commit; NULL: anything may have changed. */
void roll_purge_changed(struct roll_purge *purge, const struct roll_changes *changes);
/* The last attempt failed: nobody is there, or does not answer. */
bool roll_purge_is_missing(const struct roll_purge *purge);
/* Nothing is to be sent, now or later. */
bool roll_purge_is_idle(const struct roll_purge *purge);

#endif
