/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_LEASE_H
#define ROLL_SOURCE_LEASE_H

#include "base/metric.h"
#include "source/api.h"

/*
 * A coordination.k8s.io/v1 Lease: at most one of the replicas holds it.
 *
 * Nobody's clock but our own counts. Another holder's record is good for the duration it names from
 * the moment we first saw it unchanged, so that a new replica waits that long even before a record
 * that looks old. Our own is good for less: two thirds of the duration from when we *sent* the last
 * renewal that was answered. The rest is there for writes that are still on their way. Every write
 * names the resourceVersion it was made from, so of two that try only one succeeds.
 *
 * Anybody who deletes or edits the Lease by hand takes it away: the holder learns of that with the
 * next renewal.
 */
struct roll_lease;

struct roll_lease_conf {
	struct roll_loop *loop;
	struct roll_api *api;
	const char *ns;
	const char *name;
	/* Who we are, for people; holderIdentity is this, "_" and a random number. At most 128. */
	const char *identity;
	const struct roll_clock *clock;
	int64_t duration_ms; /* whole seconds; 0: 15 s */
	int64_t renew_ms;    /* at most a third of the duration; 0: 5 s */
	/*
	 * From the loop, never from roll_lease_new or roll_lease_free. When it is told that the lease
	 * is lost, writes that are on their way are to be cancelled.
	 */
	void (*on_change)(void *ctx, bool is_holder);
	void *ctx;
	struct roll_metrics *metrics; /* may be NULL */
};

/* conf is copied, strings included. Begins at once. EINVAL: names or times that cannot be. */
enum roll_status roll_lease_new(const struct roll_lease_conf *conf, struct roll_lease **out,
				struct roll_err *err) ROLL_MUST_CHECK;
/*
 * Gives it back if it is held, so that another replica need not wait: the loop turns until the
 * server has answered, for a second at most. Stop what writes before. Not to be called from a
 * callback. Accepts NULL.
 */
void roll_lease_free(struct roll_lease *lease);

/* Looks at the clock: false as soon as our time is over, even before on_change has told it. */
bool roll_lease_is_held(const struct roll_lease *lease);
/*
 * How long a write that begins now may take at most: then another may hold the lease. 0 if it is not
 * held, never less than a third of the duration if it is.
 */
int64_t roll_lease_left_ms(const struct roll_lease *lease);
/* As the record names us. */
const char *roll_lease_identity(const struct roll_lease *lease);

#endif
