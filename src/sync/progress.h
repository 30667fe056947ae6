/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SYNC_PROGRESS_H
#define ROLL_SYNC_PROGRESS_H

#include <stdio.h>

#include "base/clock.h"

/*
 * What a long build has done so far: on a terminal a line that is written over, elsewhere a log
 * line every 10 s. Work that takes less than a second is not worth a word.
 */
struct roll_progress {
	const struct roll_clock *clock;
	FILE *out;
	bool is_terminal;
	bool is_shown; /* the line on the terminal */
	bool is_running;
	int64_t began_ms;
	int64_t told_ms;
	int64_t called_ms;
	uint64_t read_before, committed_before;
};

void roll_progress_init(struct roll_progress *progress, const struct roll_clock *clock, FILE *out,
			bool is_terminal);
/* Objects read and committed since the program started. */
void roll_progress_tell(struct roll_progress *progress, uint64_t read, uint64_t committed);
/* Take the line away; what comes next begins anew. */
void roll_progress_end(struct roll_progress *progress);

#endif
