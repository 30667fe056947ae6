/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/progress.h"

#include <inttypes.h>

#include "base/log.h"

#define QUIET_MS 1000
#define TERMINAL_MS 200
#define LOG_MS 10000
#define PAUSE_MS 5000 /* without a call: what comes then is another build */

void roll_progress_init(struct roll_progress *progress, const struct roll_clock *clock, FILE *out,
			bool is_terminal)
{
	*progress = (struct roll_progress){.clock = clock, .out = out, .is_terminal = is_terminal};
}

void roll_progress_tell(struct roll_progress *progress, uint64_t read, uint64_t committed)
{
	int64_t now = roll_clock_monotonic_ms(progress->clock), took;
	uint64_t rate;

	if (!progress->is_running || now - progress->called_ms > PAUSE_MS) {
		roll_progress_end(progress);
		progress->is_running = true;
		progress->began_ms = progress->told_ms = now;
		progress->read_before = read;
		progress->committed_before = committed;
	}
	progress->called_ms = now;
	took = now - progress->began_ms;
	if (took < QUIET_MS ||
	    now - progress->told_ms < (progress->is_terminal ? TERMINAL_MS : LOG_MS))
		return;
	progress->told_ms = now;
	read -= progress->read_before;
	committed -= progress->committed_before;
	rate = read * 1000 / (uint64_t)took;
	if (!progress->is_terminal) {
		roll_log(ROLL_INFO, "progress",
			 "objects-read=%" PRIu64 " objects-committed=%" PRIu64
			 " objects-per-second=%" PRIu64,
			 read, committed, rate);
		return;
	}
	fprintf(progress->out,
		"\r%" PRIu64 " objects read, %" PRIu64 " committed, %" PRIu64 " a second\033[K",
		read, committed, rate);
	fflush(progress->out);
	progress->is_shown = true;
}

void roll_progress_end(struct roll_progress *progress)
{
	if (progress->is_shown)
		fputs("\r\033[K", progress->out);
	fflush(progress->out);
	progress->is_shown = progress->is_running = false;
}
