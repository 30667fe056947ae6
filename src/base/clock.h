/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_BASE_CLOCK_H
#define ROLL_BASE_CLOCK_H

#include <stdint.h>

#include "base/str.h"

/*
 * Two clocks, both injected so that tests can turn them: monotonic for intervals, wall for display
 * and for the serial of zones whose source has no revisions.
 */
struct roll_clock {
	int64_t (*monotonic_ms)(void *ctx);
	int64_t (*wall_ms)(void *ctx); /* since 1970-01-01T00:00:00Z */
	void *ctx;
};

extern const struct roll_clock roll_clock_system;

static inline int64_t roll_clock_monotonic_ms(const struct roll_clock *clock)
{
	return clock->monotonic_ms(clock->ctx);
}
static inline int64_t roll_clock_wall_ms(const struct roll_clock *clock)
{
	return clock->wall_ms(clock->ctx);
}

/*
 * RFC 3339 as Kubernetes writes it: "2026-12-02T05:31:50Z", optionally with a fraction (dropped) or
 * a numeric offset. Seconds since 1970. EINVAL for anything else, impossible dates included.
 */
enum roll_status roll_time_parse(struct roll_str text, int64_t *out_s) ROLL_MUST_CHECK;
/* "YYYY-MM-DDTHH:MM:SSZ", 21 bytes with NUL; years 0 to 9999, clamped. */
#define ROLL_TIME_SIZE 21
const char *roll_time_print(int64_t seconds, char out[ROLL_TIME_SIZE]);
/* The same with six digits of a fraction, as Kubernetes writes a MicroTime; 28 bytes with NUL. */
#define ROLL_TIME_MICRO_SIZE 28
const char *roll_time_print_micro(int64_t wall_ms, char out[ROLL_TIME_MICRO_SIZE]);

/* "90s", "5m", "1h30m", "2d", "250ms"; a bare number is refused. */
enum roll_status roll_duration_parse(struct roll_str text, int64_t *out_ms) ROLL_MUST_CHECK;

/* Exponential back-off with full jitter and a cap; *attempt counts up. seed is any changing state.
 */
int64_t roll_backoff_ms(unsigned *attempt, int64_t base_ms, int64_t cap_ms, uint64_t *seed);

#endif
