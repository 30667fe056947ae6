/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_UNTIL_H
#define TESTS_LIB_UNTIL_H

#include "app/loop.h"

/*
 * Run the loop until the condition holds: true. False after the deadline. The condition is looked
 * at after each turn and every few milliseconds.
 */
bool until(struct roll_loop *loop, bool (*holds)(void *ctx), void *ctx, int64_t deadline_ms);
/* The loop runs this long, whatever happens; for tests of what must not happen. */
void for_ms(struct roll_loop *loop, int64_t duration_ms);

#endif
