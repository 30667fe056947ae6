/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_TURN_H
#define TESTS_LIB_TURN_H

#include "app/loop.h"

/*
 * A clock that a test turns. Between turn_begin and turn_end no time passes by itself, for nobody
 * in the process: not for us, for libevent or for libcurl. An hour of back-off takes a moment, and
 * what must not happen before a minute is over is seen not to happen in 59,999 ms.
 *
 * It stands in for clock_gettime and timerfd of the C library, so a test that wants it names turn.c
 * among its own sources. Real work must be in the process: whoever waits for another one, or for a
 * thread, is not waited for. The loop is made after turn_begin, since libevent remembers the time.
 */
void turn_begin(void);
void turn_end(void);

/* One turn of the loop, for what is ready; without waiting, and without any time passing. */
void turn_once(struct roll_loop *loop);
/* Handle all that is ready, without any time passing. */
void turn_settle(struct roll_loop *loop);
/* Let this much time pass; timers go off one after the other, each at its time. */
void turn_ms(struct roll_loop *loop, int64_t ms);
/*
 * Let time pass until the condition holds: true. False when that much time is over. The condition
 * is looked at after each turn of the loop.
 */
bool turn_until(struct roll_loop *loop, bool (*holds)(void *ctx), void *ctx, int64_t ms);
/* Somebody sets the wall clock, as by settimeofday; no time passes. */
void turn_set_wall_by(int64_t ms);
/* Milliseconds that have been turned since turn_begin. */
int64_t turn_elapsed_ms(void);

#endif
