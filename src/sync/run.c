/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/run.h"

#include <stdio.h>

void roll_run_tell(const char *object, const char *field, const char *reason, const char *text)
{
	fprintf(stderr, "%s%s%s: %s: %s\n", object, object[0] && field[0] ? " " : "", field, reason,
		text);
}

void roll_run_pump(struct roll_run *run)
{
	/* Nothing to do is no error. */
	(void)event_base_loop(roll_loop_base(run->loop), EVLOOP_NONBLOCK);
}
