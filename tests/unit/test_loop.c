/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "app/loop.h"
#include "tests/lib/turn.h"

struct seen {
	struct roll_loop *loop;
	struct roll_timer *timer;
	int stops, reloads, ticks, deferred;
	int limit;
};

static void on_stop(void *ctx)
{
	struct seen *seen = ctx;

	seen->stops++;
	roll_loop_stop(seen->loop);
}

static void on_reload(void *ctx)
{
	((struct seen *)ctx)->reloads++;
}

static void start(struct seen *seen, bool has_hooks)
{
	struct roll_loop_hooks hooks = {on_stop, on_reload, seen};

	*seen = (struct seen){.limit = 3};
	assert_int_equal(roll_loop_new(has_hooks ? &hooks : NULL, &seen->loop, NULL), ROLL_OK);
}

static void on_tick(void *ctx)
{
	struct seen *seen = ctx;

	if (++seen->ticks == seen->limit)
		roll_loop_stop(seen->loop);
	else
		roll_timer_set(seen->timer, 0);
}

static void a_timer_is_set_again_and_again(void **state)
{
	struct seen seen;

	(void)state;
	start(&seen, true);
	seen.timer = roll_timer_new(seen.loop, on_tick, &seen);
	assert_non_null(seen.timer);
	roll_timer_set(seen.timer, 60000);
	roll_timer_set(seen.timer, 1);
	assert_int_equal(roll_loop_run(seen.loop), ROLL_OK);
	assert_int_equal(seen.ticks, 3);
	roll_timer_free(seen.timer);
	roll_loop_free(seen.loop);
}

static void on_never(void *ctx)
{
	(void)ctx;
	fail();
}

static void a_stopped_timer_is_silent(void **state)
{
	struct seen seen;
	struct roll_timer *never;

	(void)state;
	start(&seen, true);
	never = roll_timer_new(seen.loop, on_never, NULL);
	seen.timer = roll_timer_new(seen.loop, on_tick, &seen);
	roll_timer_set(never, 0);
	roll_timer_stop(never);
	roll_timer_set(seen.timer, 1);
	assert_int_equal(roll_loop_run(seen.loop), ROLL_OK);
	roll_timer_free(never);
	roll_timer_free(seen.timer);
	roll_timer_free(NULL);
	roll_loop_free(seen.loop);
}

static void run_deferred(void *what)
{
	struct seen *seen = what;

	seen->deferred++;
	if (seen->deferred == 1) {
		/* Enough to make the list of them grow while it is run. */
		for (int i = 0; i < 200; i++)
			roll_loop_defer(seen->loop, run_deferred, seen);
	}
}

static void on_defer_tick(void *ctx)
{
	struct seen *seen = ctx;

	roll_loop_defer(seen->loop, run_deferred, seen);
	assert_int_equal(seen->deferred, 0);
}

static void deferred_calls_run_at_the_end_of_the_turn(void **state)
{
	struct seen seen;

	(void)state;
	start(&seen, true);
	seen.timer = roll_timer_new(seen.loop, on_defer_tick, &seen);
	roll_timer_set(seen.timer, 0);
	assert_int_equal(roll_loop_once(seen.loop), ROLL_OK);
	assert_int_equal(seen.deferred, 201);
	roll_timer_free(seen.timer);
	roll_loop_free(seen.loop);
}

static void on_free_own_timer(void *ctx)
{
	struct seen *seen = ctx;

	roll_timer_free(seen->timer);
	seen->timer = NULL;
	roll_loop_stop(seen->loop);
}

static void a_timer_may_be_freed_by_itself(void **state)
{
	struct seen seen;

	(void)state;
	start(&seen, true);
	seen.timer = roll_timer_new(seen.loop, on_free_own_timer, &seen);
	roll_timer_set(seen.timer, 0);
	assert_int_equal(roll_loop_run(seen.loop), ROLL_OK);
	assert_null(seen.timer);
	roll_loop_free(seen.loop);
}

static void signals_arrive_as_events(void **state)
{
	struct seen seen;

	(void)state;
	start(&seen, true);
	raise(SIGPIPE); /* ignored, or this is the end */
	raise(SIGHUP);
	assert_int_equal(roll_loop_once(seen.loop), ROLL_OK);
	assert_int_equal(seen.reloads, 1);
	raise(SIGTERM);
	assert_int_equal(roll_loop_run(seen.loop), ROLL_OK);
	assert_int_equal(seen.stops, 1);
	/* Once, however impatient the other side is. */
	raise(SIGINT);
	assert_int_equal(roll_loop_once(seen.loop), ROLL_OK);
	assert_int_equal(seen.stops, 1);
	roll_loop_free(seen.loop);
}

static void without_hooks_a_signal_ends_the_loop(void **state)
{
	struct seen seen;

	(void)state;
	start(&seen, false);
	raise(SIGHUP);
	raise(SIGINT);
	assert_int_equal(roll_loop_run(seen.loop), ROLL_OK);
	roll_loop_free(seen.loop);
	roll_loop_free(NULL);
}

static void the_service_manager_is_told(void **state)
{
#ifdef HAVE_SYSTEMD
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	/* Abstract, so that nothing stays behind: the first byte of the path is NUL. */
	int n = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "roll-test-%d",
			 (int)getpid());
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char env[64], got[256] = "";

	(void)state;
	snprintf(env, sizeof env, "@roll-test-%d", (int)getpid());
	assert_int_equal(bind(fd, (struct sockaddr *)&name,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)),
			 0);
	setenv("NOTIFY_SOCKET", env, 1);
	roll_notify("READY=1");
	assert_true(recv(fd, got, sizeof got - 1, MSG_DONTWAIT) > 0);
	assert_string_equal(got, "READY=1");
	memset(got, 0, sizeof got);
	roll_notify("RELOADING=1");
	assert_true(recv(fd, got, sizeof got - 1, MSG_DONTWAIT) > 0);
	assert_non_null(strstr(got, "RELOADING=1\nMONOTONIC_USEC="));
	unsetenv("NOTIFY_SOCKET");
	roll_notify("READY=1");
	assert_true(recv(fd, got, sizeof got - 1, MSG_DONTWAIT) < 0);
	close(fd);
#else
	(void)state;
	skip();
#endif
}

struct turned {
	struct roll_loop *loop;
	struct roll_timer *often, *late;
	int ticks, lates, others;
	int64_t late_ms, other_ms;
};

static void on_often(void *ctx)
{
	struct turned *turned = ctx;

	turned->ticks++;
	roll_timer_set(turned->often, 1000);
}

static void on_late(void *ctx)
{
	struct turned *turned = ctx;

	turned->lates++;
	turned->late_ms = turn_elapsed_ms();
}

static void on_other(evutil_socket_t fd, short what, void *ctx)
{
	struct turned *turned = ctx;

	(void)fd;
	(void)what;
	turned->others++;
	turned->other_ms = turn_elapsed_ms();
}

static bool is_late(void *ctx)
{
	return ((struct turned *)ctx)->lates > 0;
}

/* The tests that turn the clock stand on this. */
static void a_turned_hour_takes_a_moment(void **state)
{
	struct timeval other_delay = {1000, 500};
	struct turned turned = {0};
	int64_t began_ms, wall_ms;
	struct event *other;

	(void)state;
	turn_begin();
	assert_int_equal(roll_loop_new(NULL, &turned.loop, NULL), ROLL_OK);
	began_ms = roll_clock_monotonic_ms(&roll_clock_system);
	wall_ms = roll_clock_wall_ms(&roll_clock_system);
	turned.often = roll_timer_new(turned.loop, on_often, &turned);
	turned.late = roll_timer_new(turned.loop, on_late, &turned);
	roll_timer_set(turned.often, 1000);
	roll_timer_set(turned.late, 59999);
	turn_ms(turned.loop, 59998);
	assert_int_equal(turned.ticks, 59);
	assert_int_equal(turned.lates, 0);
	turn_ms(turned.loop, 1);
	assert_int_equal(turned.lates, 1);
	roll_timer_set(turned.late, 7);
	roll_timer_stop(turned.late);
	turn_ms(turned.loop, 3600000 - 59999);
	assert_int_equal(turned.ticks, 3600);
	assert_int_equal(turned.lates, 1);
	assert_int_equal(roll_clock_monotonic_ms(&roll_clock_system) - began_ms, 3600000);
	assert_int_equal(roll_clock_wall_ms(&roll_clock_system) - wall_ms, 3600000);

	/* One of libevent's own: libcurl has those. */
	other = evtimer_new(roll_loop_base(turned.loop), on_other, &turned);
	assert_int_equal(evtimer_add(other, &other_delay), 0);
	turn_ms(turned.loop, 1000000);
	assert_int_equal(turned.others, 0);
	turn_ms(turned.loop, 1);
	assert_int_equal(turned.others, 1);
	assert_int_equal(turned.other_ms, 3600000 + 1000000);
	event_free(other);

	turned.lates = 0;
	roll_timer_set(turned.late, 1234);
	assert_false(turn_until(turned.loop, is_late, &turned, 1233));
	assert_true(turn_until(turned.loop, is_late, &turned, 60000));
	assert_int_equal(turned.late_ms, 3600000 + 1000001 + 1234);
	roll_timer_free(turned.late);
	roll_timer_free(turned.often);
	roll_loop_free(turned.loop);
	turn_end();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_timer_is_set_again_and_again),
		cmocka_unit_test(a_stopped_timer_is_silent),
		cmocka_unit_test(deferred_calls_run_at_the_end_of_the_turn),
		cmocka_unit_test(a_timer_may_be_freed_by_itself),
		cmocka_unit_test(signals_arrive_as_events),
		cmocka_unit_test(without_hooks_a_signal_ends_the_loop),
		cmocka_unit_test(the_service_manager_is_told),
		cmocka_unit_test(a_turned_hour_takes_a_moment),
	};

	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
