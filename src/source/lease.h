/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_LEASE_H
#define ROLL_SOURCE_LEASE_H

#include "base/metric.h"
#include "source/api.h"

/*
 * A coordination.k8s.io/v1 Lease: at most one of the replicas holds it.
 *
 * The times in it are for people. What counts is our own clock: a record of another holder is good
 * for the duration it names (never for less than ours, which is 15 s) from when we first saw it, so
 * a new replica waits even before a record that looks old. Our own is good for less, 10 s from when
 * we *sent* the last renewal that was answered; a write that began before may still run then, but
 * not into the last tenth of the duration, which is for clocks that do not run alike. Each write
 * names the resourceVersion it was made from, so of two that try only one succeeds.
 *
 * A holder that leaves says so in the record, and who waits looks every two seconds: within 2.5 s
 * another one has it. After a crash it takes the whole duration.
 *
 * Who edits or deletes the Lease by hand takes it away. Its holder may not know yet, so nobody has
 * it for one duration. Two things look as if nobody had held it, and are not to be made by hand: a
 * record as a holder leaves it behind, and no Lease at all for a replica that has just started, or
 * that last saw none.
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
	/*
	 * From the loop, never from roll_lease_new or roll_lease_free. When it is told that the
	 * lease is lost, writes that are on their way are to be cancelled.
	 */
	void (*on_change)(void *ctx, bool is_holder);
	void *ctx;
	struct roll_metrics *metrics; /* may be NULL */
};

/* conf is copied, strings included. Begins at once. EINVAL: names that cannot be. */
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
/* How long a write that begins now may take at most; 0 if it is not held, else at least 3.5 s. */
int64_t roll_lease_left_ms(const struct roll_lease *lease);
/* Why it cannot be had, printable; NULL: it is held, by us or as far as known by another one. */
const char *roll_lease_trouble(const struct roll_lease *lease);
/* As the record names us. */
const char *roll_lease_identity(const struct roll_lease *lease);

#endif
