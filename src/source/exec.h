/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_EXEC_H
#define ROLL_SOURCE_EXEC_H

#include "app/loop.h"
#include "base/str.h"

/*
 * Run another program, without a shell and without holding up the loop, and take what it prints.
 * Its input is empty, its stderr is ours. After the deadline it and what it started are killed.
 */
struct roll_exec;

#define ROLL_EXEC_OUTPUT_LIMIT_BYTES (1u << 20)

struct roll_exec_spec {
	const char *const *argv; /* argv[0] is looked for in PATH unless it has a slash */
	const char *const *env;	 /* whole environment, NULL at the end */
	int64_t deadline_ms;
	/* status: ROLL_OK only if it exited with 0; output is borrowed for the call. */
	void (*on_done)(void *ctx, enum roll_status status, struct roll_str output,
			const struct roll_err *err);
	void *ctx;
};

/* on_done comes later, from the loop, if and only if this returns ROLL_OK. */
enum roll_status roll_exec_start(struct roll_loop *loop, const struct roll_exec_spec *spec,
				 struct roll_exec **out, struct roll_err *err) ROLL_MUST_CHECK;
/* Kills it; on_done does not come any more. Accepts NULL. After on_done: not to be called. */
void roll_exec_cancel(struct roll_exec *exec);

#endif
