/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/census.h"

#include <stdlib.h>

#include "sync/tour.h"

#define LOOK_MS 500	  /* is there anything new? */
#define SLICE_MS 2	  /* of work, */
#define PAUSE_MS 40	  /* and then of none */
#define REST_FACTOR 4	  /* after a count that took its time */
#define ROWS_PER_LOOK 64u /* at the clock */

struct roll_census {
	struct roll_view *view;
	const struct roll_clock *clock;
	struct roll_timer *timer;
	struct roll_census_counts latest;
	struct roll_census_counts running;
	struct roll_tour tour;
	bool is_running;
	int64_t began_ms;
	int64_t slice_ends_ms;
	unsigned rows;
};

static enum roll_status spend(struct roll_census *census)
{
	if (++census->rows % ROWS_PER_LOOK)
		return ROLL_OK;
	return roll_clock_monotonic_ms(census->clock) < census->slice_ends_ms ? ROLL_OK
									      : ROLL_ECANCELED;
}

static enum roll_status on_domain(void *ctx, struct roll_snap *snap,
				  const struct roll_domain *domain)
{
	struct roll_census *census = ctx;
	enum roll_zone_state state;
	enum roll_status status;

	for (uint32_t i = 0; i < domain->row->claim_count; i++) {
		status = roll_snap_claim_state(snap, domain, i, &state);
		if (status)
			return status;
		census->running.zones[state]++;
	}
	return spend(census);
}

static enum roll_status on_name(void *ctx, const struct roll_name *domain,
				const struct roll_name *owner, const struct roll_claim *claims,
				size_t count)
{
	struct roll_census *census = ctx;
	bool is_contested = false;

	(void)domain;
	(void)owner;
	for (size_t i = 0; i < count; i++) {
		census->running.claims[claims[i].verdict]++;
		is_contested = is_contested || claims[i].verdict != ROLL_VERDICT_SERVED;
	}
	census->running.names++;
	census->running.contested += is_contested;
	return spend(census);
}

/* Milliseconds until the next turn. */
static int64_t go_on(struct roll_census *census, struct roll_snap *snap)
{
	struct roll_tour_hooks hooks = {on_domain, on_name, census};
	int64_t now_ms = roll_clock_monotonic_ms(census->clock);
	uint64_t generation = roll_snap_head(snap)->generation;
	enum roll_status status;
	int64_t rest_ms;

	if (!census->is_running) {
		if (census->latest.is_there && census->latest.generation == generation)
			return LOOK_MS;
		census->is_running = true;
		census->running = (struct roll_census_counts){.generation = generation};
		census->tour = (struct roll_tour){.is_begun = false};
		census->began_ms = now_ms;
	}
	census->slice_ends_ms = now_ms + SLICE_MS;
	status = roll_tour_go(&census->tour, snap, &hooks);
	if (status == ROLL_ECANCELED)
		return PAUSE_MS;
	census->is_running = false;
	/* A view that cannot be read is told by those who live from it. */
	if (status)
		return LOOK_MS;
	census->running.is_there = true;
	census->latest = census->running;
	rest_ms = REST_FACTOR * (roll_clock_monotonic_ms(census->clock) - census->began_ms);
	return rest_ms > LOOK_MS ? rest_ms : LOOK_MS;
}

static void on_timer(void *ctx)
{
	struct roll_census *census = ctx;
	struct roll_snap *snap = NULL;
	int64_t next_ms = LOOK_MS;

	if (!roll_snap_begin(census->view, true, &snap, NULL))
		next_ms = go_on(census, snap);
	roll_snap_end(snap);
	roll_timer_set(census->timer, next_ms);
}

struct roll_census *roll_census_new(struct roll_loop *loop, struct roll_view *view,
				    const struct roll_clock *clock)
{
	struct roll_census *census = calloc(1, sizeof *census);

	if (!census)
		return NULL;
	census->view = view;
	census->clock = clock;
	census->timer = roll_timer_new(loop, on_timer, census);
	if (!census->timer) {
		roll_census_free(census);
		return NULL;
	}
	roll_timer_set(census->timer, 0);
	return census;
}

void roll_census_free(struct roll_census *census)
{
	if (!census)
		return;
	roll_timer_free(census->timer);
	free(census);
}

const struct roll_census_counts *roll_census_counts(const struct roll_census *census)
{
	return &census->latest;
}
