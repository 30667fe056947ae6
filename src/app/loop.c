/* SPDX-License-Identifier: Apache-2.0 */
#include "app/loop.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>
#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#include "base/log.h"

enum { SIGNAL_TERM, SIGNAL_INT, SIGNAL_HUP, SIGNAL_COUNT };

struct deferred {
	void (*fn)(void *what);
	void *what;
};

struct roll_loop {
	struct event_base *base;
	struct event *signals[SIGNAL_COUNT];
	struct roll_loop_hooks hooks;
	bool is_stopping; /* told on_stop already */
	bool is_stopped;
	struct deferred *deferred;
	size_t deferred_count;
	size_t deferred_room;
};

/*
 * A timer is a descriptor. With libevent's own, every wait for events would have a timeout, and to
 * arm and disarm that for each request costs more than the request where the clock is virtual.
 */
struct roll_timer {
	int fd;
	struct event *event;
	void (*on_timer)(void *ctx);
	void *ctx;
};

static void on_stop_signal(evutil_socket_t number, short what, void *ctx)
{
	struct roll_loop *loop = ctx;

	(void)what;
	if (loop->is_stopping)
		return;
	loop->is_stopping = true;
	roll_log(ROLL_INFO, "stopping", "signal=%s", number == SIGTERM ? "TERM" : "INT");
	if (loop->hooks.on_stop)
		loop->hooks.on_stop(loop->hooks.ctx);
	else
		roll_loop_stop(loop);
}

static void on_reload_signal(evutil_socket_t number, short what, void *ctx)
{
	struct roll_loop *loop = ctx;

	(void)number;
	(void)what;
	if (loop->hooks.on_reload)
		loop->hooks.on_reload(loop->hooks.ctx);
}

enum roll_status roll_loop_new(const struct roll_loop_hooks *hooks, struct roll_loop **out,
			       struct roll_err *err)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
	struct roll_loop *loop = calloc(1, sizeof *loop);

	if (!loop)
		goto out;
	if (hooks)
		loop->hooks = *hooks;
	loop->base = event_base_new();
	if (!loop->base)
		goto out;
	for (size_t i = 0; i < SIGNAL_COUNT; i++) {
		loop->signals[i] =
			evsignal_new(loop->base, numbers[i],
				     i == SIGNAL_HUP ? on_reload_signal : on_stop_signal, loop);
		if (!loop->signals[i] || event_add(loop->signals[i], NULL))
			goto out;
	}
	/* A peer that is gone shows as EPIPE where it was written to. */
	signal(SIGPIPE, SIG_IGN);
	*out = loop;
	return ROLL_OK;
out:
	roll_loop_free(loop);
	return roll_err_set(err, ROLL_ENOMEM, NULL, "cannot make an event loop");
}

static void run_deferred(struct roll_loop *loop)
{
	/* One may defer another; the array may move meanwhile. */
	for (size_t i = 0; i < loop->deferred_count; i++) {
		struct deferred one = loop->deferred[i];

		one.fn(one.what);
	}
	loop->deferred_count = 0;
}

void roll_loop_free(struct roll_loop *loop)
{
	if (!loop)
		return;
	run_deferred(loop);
	for (size_t i = 0; i < SIGNAL_COUNT; i++) {
		if (loop->signals[i])
			event_free(loop->signals[i]);
	}
	if (loop->base)
		event_base_free(loop->base);
	free(loop->deferred);
	free(loop);
}

struct event_base *roll_loop_base(struct roll_loop *loop)
{
	return loop->base;
}

enum roll_status roll_loop_once(struct roll_loop *loop)
{
	/* The events of the signals are always there, so that it never ends for lack of events. */
	if (event_base_loop(loop->base, EVLOOP_ONCE) < 0)
		return ROLL_EIO;
	run_deferred(loop);
	return ROLL_OK;
}

enum roll_status roll_loop_run(struct roll_loop *loop)
{
	enum roll_status status = ROLL_OK;

	while (!loop->is_stopped && !status)
		status = roll_loop_once(loop);
	loop->is_stopped = false;
	return status;
}

void roll_loop_stop(struct roll_loop *loop)
{
	loop->is_stopped = true;
	event_base_loopbreak(loop->base);
}

void roll_loop_defer(struct roll_loop *loop, void (*fn)(void *what), void *what)
{
	size_t room = loop->deferred_room ? loop->deferred_room * 2 : 64;
	struct deferred *grown;

	if (loop->deferred_count == loop->deferred_room) {
		grown = reallocarray(loop->deferred, room, sizeof *grown);
		if (!grown) {
			/* What is never freed does less harm than what is freed too early. */
			roll_log(ROLL_ERROR, "out-of-memory", "what=deferred");
			return;
		}
		loop->deferred = grown;
		loop->deferred_room = room;
	}
	loop->deferred[loop->deferred_count++] = (struct deferred){fn, what};
}

static void on_timer_event(evutil_socket_t fd, short what, void *ctx)
{
	struct roll_timer *timer = ctx;
	uint64_t expirations;

	(void)what;
	/* Nothing to read: it was stopped or set again in this turn of the loop. */
	if (read(fd, &expirations, sizeof expirations) == sizeof expirations)
		timer->on_timer(timer->ctx);
}

struct roll_timer *roll_timer_new(struct roll_loop *loop, void (*on_timer)(void *ctx), void *ctx)
{
	struct roll_timer *timer = calloc(1, sizeof *timer);

	if (!timer)
		return NULL;
	timer->on_timer = on_timer;
	timer->ctx = ctx;
	timer->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (timer->fd >= 0)
		timer->event = event_new(loop->base, timer->fd, EV_READ | EV_PERSIST,
					 on_timer_event, timer);
	if (!timer->event || event_add(timer->event, NULL)) {
		roll_timer_free(timer);
		return NULL;
	}
	return timer;
}

void roll_timer_free(struct roll_timer *timer)
{
	if (!timer)
		return;
	if (timer->event)
		event_free(timer->event);
	if (timer->fd >= 0)
		close(timer->fd);
	free(timer);
}

static void set_delay(struct roll_timer *timer, const struct timespec *delay)
{
	struct itimerspec once = {.it_value = *delay};
	int rc = timerfd_settime(timer->fd, 0, &once, NULL);

	/* It fails only for what is no timer or no time. */
	assert(rc == 0);
	(void)rc;
}

void roll_timer_set(struct roll_timer *timer, int64_t delay_ms)
{
	struct timespec delay;

	assert(delay_ms >= 0);
	delay.tv_sec = delay_ms / 1000;
	delay.tv_nsec = delay_ms % 1000 * 1000000;
	/* Zero would stop it. */
	if (delay_ms == 0)
		delay.tv_nsec = 1;
	set_delay(timer, &delay);
}

void roll_timer_stop(struct roll_timer *timer)
{
	if (timer)
		set_delay(timer, &(struct timespec){0, 0});
}

void roll_notify(const char *state)
{
#ifdef HAVE_SYSTEMD
	/* Type=notify-reload wants to know when the reload began (systemd.service(5)). */
	if (strcmp(state, "RELOADING=1") == 0)
		sd_notifyf(0, "%s\nMONOTONIC_USEC=%lld", state,
			   1000LL * (long long)roll_clock_monotonic_ms(&roll_clock_system));
	else
		sd_notify(0, state);
#else
	(void)state;
#endif
}
