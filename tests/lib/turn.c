/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/turn.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/*
 * While the clock stands, a timerfd is an eventfd: both are read as eight bytes that count, and the
 * count comes from turning. Those made before turn_begin, or still there after turn_end, never go
 * off.
 */

#define TIMERS_MAX 4096
/*
 * The kernel may hand what was written to a socket of this machine to its reader a little later.
 * This many turns of the loop with nothing to do mean that all is quiet, if in between it had the
 * processor for itself. More often would be costly: on a busy machine it is away for long.
 */
#define QUIET_TURNS 8
#define MS_NS INT64_C(1000000)
#define SECOND_NS INT64_C(1000000000)
#define NEVER INT64_MAX

static struct {
	bool is_stopped;
	int64_t began_ns[2]; /* CLOCK_REALTIME, CLOCK_MONOTONIC */
	int64_t elapsed_ns;
	int timers_end;		    /* no descriptor of a timer is as high */
	bool is_timer[TIMERS_MAX];  /* by descriptor */
	int64_t due_ns[TIMERS_MAX]; /* of elapsed_ns */
} turn;

static int64_t real_ns(clockid_t id)
{
	struct timespec now;

	if (syscall(SYS_clock_gettime, id, &now))
		abort();
	return now.tv_sec * SECOND_NS + now.tv_nsec;
}

static int64_t turned_ns(clockid_t id)
{
	if (!turn.is_stopped)
		return real_ns(id);
	switch (id) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
		return turn.began_ns[0] + turn.elapsed_ns;
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_COARSE:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_BOOTTIME:
		return turn.began_ns[1] + turn.elapsed_ns;
	default: /* processor time */
		return real_ns(id);
	}
}

/* --- in place of the C library's --- */

int clock_gettime(clockid_t id, struct timespec *out)
{
	int64_t ns = turned_ns(id);

	out->tv_sec = ns / SECOND_NS;
	out->tv_nsec = ns % SECOND_NS;
	return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
	int64_t ns = turned_ns(CLOCK_REALTIME);

	(void)zone;
	out->tv_sec = ns / SECOND_NS;
	out->tv_usec = ns % SECOND_NS / 1000;
	return 0;
}

time_t time(time_t *out)
{
	time_t now = turned_ns(CLOCK_REALTIME) / SECOND_NS;

	if (out)
		*out = now;
	return now;
}

int timerfd_create(clockid_t id, int flags)
{
	int fd;

	if (!turn.is_stopped)
		return (int)syscall(SYS_timerfd_create, id, flags);
	/* TFD_NONBLOCK and TFD_CLOEXEC have the values of EFD_NONBLOCK and EFD_CLOEXEC. */
	fd = eventfd(0, flags);
	if (fd >= TIMERS_MAX)
		abort();
	if (fd >= 0) {
		turn.is_timer[fd] = true;
		turn.due_ns[fd] = NEVER;
		turn.timers_end = fd >= turn.timers_end ? fd + 1 : turn.timers_end;
	}
	return fd;
}

static bool is_timer(int fd)
{
	return fd >= 0 && fd < TIMERS_MAX && turn.is_timer[fd];
}

int timerfd_settime(int fd, int flags, const struct itimerspec *to, struct itimerspec *from)
{
	int64_t delay_ns = to->it_value.tv_sec * SECOND_NS + to->it_value.tv_nsec;
	uint64_t expirations;

	if (!is_timer(fd))
		return (int)syscall(SYS_timerfd_settime, fd, flags, to, from);
	if (flags || from || to->it_interval.tv_sec || to->it_interval.tv_nsec)
		abort();
	/* As with a real one, what has not been read is forgotten. */
	if (read(fd, &expirations, sizeof expirations) < 0 && errno != EAGAIN)
		abort();
	/* The least delay there is, is how one says "at once". */
	turn.due_ns[fd] = delay_ns ? turn.elapsed_ns + delay_ns / 1000 * 1000 : NEVER;
	return 0;
}

int close(int fd)
{
	if (is_timer(fd))
		turn.is_timer[fd] = false;
	return (int)syscall(SYS_close, fd);
}

/* --- turning --- */

/* libevent counts microseconds and has two clocks: at whole ones they never differ. */
static int64_t real_whole_ns(clockid_t id)
{
	return (real_ns(id) / MS_NS + 1) * MS_NS;
}

void turn_begin(void)
{
	if (turn.is_stopped)
		abort();
	turn.began_ns[0] = real_whole_ns(CLOCK_REALTIME);
	turn.began_ns[1] = real_whole_ns(CLOCK_MONOTONIC);
	turn.elapsed_ns = 0;
	turn.is_stopped = true;
}

void turn_set_wall_by(int64_t ms)
{
	turn.began_ns[0] += ms * MS_NS;
}

void turn_end(void)
{
	turn.is_stopped = false;
}

int64_t turn_elapsed_ms(void)
{
	return turn.elapsed_ns / MS_NS;
}

static void on_nudge(evutil_socket_t fd, short what, void *ctx)
{
	(void)fd;
	(void)what;
	(void)ctx;
}

static struct event *new_nudge(struct roll_loop *loop)
{
	struct event *nudge = event_new(roll_loop_base(loop), -1, 0, on_nudge, NULL);

	if (!nudge || !turn.is_stopped)
		abort();
	return nudge;
}

/* One turn of the loop that does not wait; true if there was anything to do. */
static bool turn_loop(struct roll_loop *loop, struct event *nudge)
{
	struct event_base *base = roll_loop_base(loop);

	event_base_get_max_events(base, EVENT_BASE_COUNT_ACTIVE, 1);
	event_active(nudge, EV_TIMEOUT, 0);
	if (roll_loop_once(loop))
		abort();
	return event_base_get_max_events(base, EVENT_BASE_COUNT_ACTIVE, 1) > 1;
}

/* libevent's own timers, which are libcurl's too. */
static int find_due(const struct event_base *base, const struct event *event, void *ctx)
{
	int64_t *first_ns = ctx, due_ns;
	struct timeval at;

	(void)base;
	if (!event_pending(event, EV_TIMEOUT, &at))
		return 0;
	due_ns = at.tv_sec * SECOND_NS + at.tv_usec * 1000 - turn.began_ns[0];
	*first_ns = due_ns < *first_ns ? due_ns : *first_ns;
	return 0;
}

/* To the first timer within the limit, which goes off: true. To the limit if there is none. */
static bool advance(struct event_base *base, int64_t limit_ns)
{
	const uint64_t once = 1;
	int64_t to_ns = NEVER;
	int first = -1;

	event_base_foreach_event(base, find_due, &to_ns);
	for (int fd = 0; fd < turn.timers_end; fd++) {
		if (!turn.is_timer[fd] || turn.due_ns[fd] == NEVER || turn.due_ns[fd] > to_ns)
			continue;
		to_ns = turn.due_ns[fd];
		first = fd;
	}
	if (to_ns > limit_ns) {
		turn.elapsed_ns = limit_ns;
		return false;
	}
	turn.elapsed_ns = to_ns > turn.elapsed_ns ? to_ns : turn.elapsed_ns;
	if (first >= 0) {
		turn.due_ns[first] = NEVER;
		if (write(first, &once, sizeof once) != sizeof once)
			abort();
	}
	return true;
}

void turn_once(struct roll_loop *loop)
{
	struct event *nudge = new_nudge(loop);

	advance(roll_loop_base(loop), turn.elapsed_ns);
	turn_loop(loop, nudge);
	event_free(nudge);
}

bool turn_until(struct roll_loop *loop, bool (*holds)(void *ctx), void *ctx, int64_t ms)
{
	struct event *nudge = new_nudge(loop);
	int64_t end_ns = turn.elapsed_ns + ms * MS_NS;
	int quiet = 0;
	bool held;

	while (!(held = holds && holds(ctx))) {
		if (turn_loop(loop, nudge)) {
			quiet = 0;
			continue;
		}
		if (++quiet == QUIET_TURNS / 2)
			sched_yield();
		if (quiet < QUIET_TURNS)
			continue;
		if (!advance(roll_loop_base(loop), end_ns))
			break;
		quiet = 0;
	}
	event_free(nudge);
	return held;
}

void turn_ms(struct roll_loop *loop, int64_t ms)
{
	turn_until(loop, NULL, NULL, ms);
}

void turn_settle(struct roll_loop *loop)
{
	turn_until(loop, NULL, NULL, 0);
}
