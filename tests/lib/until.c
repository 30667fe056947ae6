/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/until.h"

#include <stdlib.h>

static void on_tick(evutil_socket_t fd, short what, void *ctx)
{
	(void)fd;
	(void)what;
	(void)ctx;
}

bool until(struct roll_loop *loop, bool (*holds)(void *ctx), void *ctx, int64_t deadline_ms)
{
	int64_t end_ms = roll_clock_monotonic_ms(&roll_clock_system) + deadline_ms;
	struct event *tick = event_new(roll_loop_base(loop), -1, EV_PERSIST, on_tick, NULL);
	struct timeval often = {0, 5000};
	bool held;

	if (!tick || event_add(tick, &often))
		abort();
	while (!(held = holds(ctx)) && roll_clock_monotonic_ms(&roll_clock_system) < end_ms) {
		if (roll_loop_once(loop))
			abort();
	}
	event_free(tick);
	return held;
}

static bool never(void *ctx)
{
	(void)ctx;
	return false;
}

void for_ms(struct roll_loop *loop, int64_t duration_ms)
{
	until(loop, never, NULL, duration_ms);
}
