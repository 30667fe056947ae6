/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_APP_LOOP_H
#define ROLL_APP_LOOP_H

#include <event2/event.h>

#include "base/clock.h"

/*
 * The event loop of a program: one libevent base, signals as events, SIGPIPE ignored, deferred
 * freeing, service-manager notification.
 */
struct roll_loop;

struct roll_loop_hooks {
	void (*on_stop)(void *ctx);   /* SIGTERM or SIGINT, once; NULL: just end the loop */
	void (*on_reload)(void *ctx); /* SIGHUP; may be NULL (then ignored) */
	void *ctx;
};

enum roll_status roll_loop_new(const struct roll_loop_hooks *hooks, struct roll_loop **out,
			       struct roll_err *err) ROLL_MUST_CHECK;
void roll_loop_free(struct roll_loop *loop);
struct event_base *roll_loop_base(struct roll_loop *loop);
/* Until roll_loop_stop. */
enum roll_status roll_loop_run(struct roll_loop *loop) ROLL_MUST_CHECK;
void roll_loop_stop(struct roll_loop *loop);
/* One turn: wait for events, handle them, free what was deferred. */
enum roll_status roll_loop_once(struct roll_loop *loop) ROLL_MUST_CHECK;

/*
 * Run fn(what) at the end of this turn of the loop: the way to free an object from within its own
 * callback.
 */
void roll_loop_defer(struct roll_loop *loop, void (*fn)(void *what), void *what);

/* Timers: a non-NULL timer can be set again and again; callbacks run from the loop. */
struct roll_timer;
struct roll_timer *roll_timer_new(struct roll_loop *loop, void (*on_timer)(void *ctx), void *ctx);
void roll_timer_free(struct roll_timer *timer);
void roll_timer_set(struct roll_timer *timer, int64_t delay_ms);
void roll_timer_stop(struct roll_timer *timer);

/*
 * systemd notification (sd_notify protocol) when NOTIFY_SOCKET is set; otherwise nothing. state as
 * "READY=1", "STATUS=...", "STOPPING=1", "RELOADING=1".
 */
void roll_notify(const char *state);

#endif
