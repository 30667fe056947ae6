/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/log.h"
#include "source/lease.h"
#include "tests/lib/fake_api.h"
#include "tests/lib/fake_lease.h"
#include "tests/lib/sample.h"
#include "tests/lib/turn.h"

#define REPLICAS 4
#define PATH "/apis/coordination.k8s.io/v1/namespaces/dns/leases/rollcall-test"
#define AT_ONCE 20
#define SECOND 1000
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define DURATION (15 * SECOND)

struct world;

/* Each has its own way to the cluster, with its own trouble, and its own clocks. */
struct replica {
	struct world *world;
	struct fake_api *way;
	struct roll_api *api;
	struct roll_metrics *metrics;
	struct roll_lease *lease;
	struct roll_clock clock;
	int64_t permille; /* how fast its clock runs */
	int64_t wall_offset_ms;
	int code;	  /* HTTP status that everything gets; 0: as it should be */
	const char *verb; /* nothing but this method gets the code; NULL: all */
	bool is_deaf;	  /* what is asked is lost, */
	bool is_mute;	  /* or what is answered */
	size_t asked;
	size_t told; /* calls of on_change */
	bool is_told;
	int64_t fence_ms; /* writes of this replica may run until then */
};

struct world {
	struct roll_loop *loop;
	struct fake_lease lease;
	struct replica replicas[REPLICAS];
	const struct replica *holder; /* the latest */
	int64_t held_ms;	      /* since when */
	size_t handovers;
	uint64_t seed;
	size_t warnings;
	char warning[512]; /* the latest */
};

/* --- replicas --- */

static int64_t monotonic_ms(void *ctx)
{
	const struct replica *replica = ctx;

	return 1000000 + turn_elapsed_ms() * replica->permille / 1000;
}

static int64_t wall_ms(void *ctx)
{
	const struct replica *replica = ctx;

	return INT64_C(1796189510123) + turn_elapsed_ms() + replica->wall_offset_ms;
}

static int on_ask(void *ctx, const char *method, const char *path, json_t *body, json_t **reply)
{
	struct replica *replica = ctx;
	int code;

	replica->asked++;
	if (replica->is_deaf)
		return 0;
	if (replica->code && (!replica->verb || strcmp(replica->verb, method) == 0)) {
		*reply = json_pack("{s:s, s:s, s:s}", "kind", "Status", "reason", "Test", "message",
				   "as told");
		return replica->code;
	}
	code = fake_lease_ask(&replica->world->lease, method, path, body, reply);
	return replica->is_mute ? 0 : code;
}

static void on_change(void *ctx, bool is_holder)
{
	struct replica *replica = ctx;

	assert_true(is_holder != replica->is_told);
	assert_int_equal(roll_lease_is_held(replica->lease), is_holder);
	replica->is_told = is_holder;
	replica->told++;
}

static void begin(struct replica *replica)
{
	char name[8];
	const struct roll_lease_conf conf = {
		.loop = replica->world->loop,
		.api = replica->api,
		.ns = "dns",
		.name = "rollcall-test",
		.identity = name,
		.clock = &replica->clock,
		.on_change = on_change,
		.ctx = replica,
		.metrics = replica->metrics,
	};

	snprintf(name, sizeof name, "pod-%d", (int)(replica - replica->world->replicas));
	replica->is_told = false;
	replica->told = 0;
	assert_int_equal(roll_lease_new(&conf, &replica->lease, NULL), ROLL_OK);
}

/* Gives it back if it is held: the way must be clear. */
static void end(struct replica *replica)
{
	roll_lease_free(replica->lease);
	replica->lease = NULL;
	replica->fence_ms = 0;
}

static bool is_held(const struct replica *replica)
{
	return replica->lease && roll_lease_is_held(replica->lease);
}

static const struct replica *holder(const struct world *world)
{
	for (const struct replica *r = world->replicas; r < world->replicas + REPLICAS; r++) {
		if (is_held(r))
			return r;
	}
	return NULL;
}

/* --- what must hold at each moment --- */

static bool keeps_its_promise(void *ctx)
{
	struct world *world = ctx;
	const struct replica *now = holder(world);

	if (now && now != world->holder) {
		world->holder = now;
		world->held_ms = turn_elapsed_ms();
		world->handovers++;
	}
	for (struct replica *r = world->replicas; r < world->replicas + REPLICAS; r++) {
		int64_t left_ms = r->lease ? roll_lease_left_ms(r->lease) : 0;

		/* Nobody else holds it, and no write of anybody else may still run. */
		assert_true(r == now || !is_held(r));
		assert_true(r == now || !now || r->fence_ms <= turn_elapsed_ms());
		/* Who is told is not told otherwise than it is. */
		assert_true(!is_held(r) || r->is_told);
		assert_true(is_held(r) ? left_ms >= 3500 && left_ms <= 13500 : left_ms == 0);
		if (left_ms && turn_elapsed_ms() + left_ms > r->fence_ms)
			r->fence_ms = turn_elapsed_ms() + left_ms;
	}
	return false;
}

static void pass(struct world *world, int64_t ms)
{
	assert_false(turn_until(world->loop, keeps_its_promise, world, ms));
}

static bool is_anybodys(void *ctx)
{
	keeps_its_promise(ctx);
	return holder(ctx) != NULL;
}

static bool is_nobodys(void *ctx)
{
	return !is_anybodys(ctx);
}

/* Milliseconds until somebody has it. */
static int64_t until_held(struct world *world, int64_t limit_ms)
{
	int64_t began_ms = turn_elapsed_ms();

	assert_true(turn_until(world->loop, is_anybodys, world, limit_ms));
	return turn_elapsed_ms() - began_ms;
}

static int64_t until_lost(struct world *world, int64_t limit_ms)
{
	int64_t began_ms = turn_elapsed_ms();

	assert_true(turn_until(world->loop, is_nobodys, world, limit_ms));
	return turn_elapsed_ms() - began_ms;
}

/* --- life --- */

static void on_log(void *ctx, const char *line)
{
	struct world *world = ctx;

	if (!strstr(line, "level=warn"))
		return;
	world->warnings++;
	snprintf(world->warning, sizeof world->warning, "%s", line);
}

static void open_replica(struct world *world, struct replica *replica)
{
	struct roll_cred_spec spec = {.server = NULL};
	struct roll_cred *cred;

	*replica = (struct replica){.world = world, .permille = 1000};
	replica->clock = (struct roll_clock){monotonic_ms, wall_ms, replica};
	replica->way = fake_api_new(roll_loop_base(world->loop));
	assert_non_null(replica->way);
	fake_api_set_other(replica->way, on_ask, replica);
	spec.server = strdup(fake_api_url(replica->way));
	assert_int_equal(roll_cred_new(world->loop, &roll_clock_system, &spec, &cred, NULL),
			 ROLL_OK);
	assert_int_equal(roll_api_new(world->loop, cred, &replica->api, NULL), ROLL_OK);
	replica->metrics = roll_metrics_new();
	assert_non_null(replica->metrics);
}

static int setup(void **state)
{
	struct world *world = calloc(1, sizeof *world);

	assert_non_null(world);
	roll_log_set_sink(on_log, world);
	turn_begin();
	assert_int_equal(roll_loop_new(NULL, &world->loop, NULL), ROLL_OK);
	world->lease = (struct fake_lease){.path = PATH, .revision = 100};
	world->seed = 1;
	for (size_t i = 0; i < REPLICAS; i++)
		open_replica(world, &world->replicas[i]);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	for (struct replica *r = world->replicas; r < world->replicas + REPLICAS; r++) {
		/* Nothing to give back any more. */
		if (is_held(r)) {
			fake_api_stop(r->way);
			pass(world, DURATION);
		}
		end(r);
		roll_api_free(r->api);
		fake_api_free(r->way);
		roll_metrics_free(r->metrics);
	}
	fake_lease_delete(&world->lease);
	roll_loop_free(world->loop);
	turn_end();
	roll_log_set_sink(NULL, NULL);
	free(world);
	return 0;
}

/* --- the record --- */

static const char *text_of(const struct world *world, const char *field)
{
	const char *text =
		json_string_value(json_object_get(fake_lease_spec(&world->lease), field));

	return text ? text : "";
}

static int64_t number_of(const struct world *world, const char *field)
{
	return json_integer_value(json_object_get(fake_lease_spec(&world->lease), field));
}

static uint32_t requests(const struct replica *replica, const char *verb, const char *result)
{
	char series[120];

	snprintf(series, sizeof series,
		 "rollcall_sync_lease_requests_total{verb=\"%s\",result=\"%s\"}", verb, result);
	return sample(replica->metrics, series);
}

static void the_first_replica_gets_it_at_once(void **state)
{
	struct world *world = *state;
	struct replica *a = &world->replicas[0];

	begin(a);
	assert_false(is_held(a));
	assert_int_equal(roll_lease_left_ms(a->lease), 0);
	until_held(world, AT_ONCE);
	assert_true(a->is_told);
	assert_int_equal(roll_lease_left_ms(a->lease), 13500);
	assert_int_equal(strlen(roll_lease_identity(a->lease)), strlen("pod-0_0123456789abcdef"));
	assert_string_equal(text_of(world, "holderIdentity"), roll_lease_identity(a->lease));
	assert_string_equal(text_of(world, "acquireTime"), "2026-12-02T05:31:50.123000Z");
	assert_string_equal(text_of(world, "renewTime"), "2026-12-02T05:31:50.123000Z");
	assert_int_equal(number_of(world, "leaseDurationSeconds"), 15);
	assert_true(json_is_integer(
		json_object_get(fake_lease_spec(&world->lease), "leaseTransitions")));
	assert_int_equal(number_of(world, "leaseTransitions"), 0);
}

static void an_hour_of_peace_costs_little(void **state)
{
	struct world *world = *state;
	struct replica *a = &world->replicas[0], *b = &world->replicas[1];

	begin(a);
	until_held(world, AT_ONCE);
	begin(b);
	/* Somebody labels it: the next renewal meets a version that it does not know. */
	json_object_set_new(world->lease.record, "foreign", json_true());
	fake_lease_edit(&world->lease, json_incref(fake_lease_spec(&world->lease)));
	pass(world, HOUR);
	assert_true(is_held(a) && a->told == 1 && b->told == 0);
	/* client-go asks as often: every two seconds and a little. */
	assert_in_range(a->asked, 3600 / 4, 3600 / 2);
	assert_in_range(b->asked, 3600 / 3, 3600 / 1.5);
	assert_int_equal(world->lease.conflicts, 1);
	/* Renewing says when; nothing else changes, and what is not ours stays. */
	assert_string_equal(text_of(world, "acquireTime"), "2026-12-02T05:31:50.123000Z");
	assert_int_equal(strncmp(text_of(world, "renewTime"), "2026-12-02T06:31:", 17), 0);
	assert_int_equal(number_of(world, "leaseTransitions"), 0);
	assert_true(json_is_true(json_object_get(world->lease.record, "foreign")));
	assert_int_equal(world->warnings, 0);
}

static void of_all_that_make_it_one_has_it(void **state)
{
	struct world *world = *state;

	for (size_t i = 0; i < REPLICAS; i++) {
		fake_api_conf(world->replicas[i].way)->request_ms = 100;
		begin(&world->replicas[i]);
	}
	until_held(world, 200 + AT_ONCE);
	pass(world, MINUTE);
	assert_int_equal(world->handovers, 1);
	assert_int_equal(world->lease.creates, REPLICAS);
	assert_int_equal(world->lease.conflicts, REPLICAS - 1);
	assert_int_equal(world->warnings, 0);
}

/* --- taking over --- */

/* The first two, of which the first holds it. */
static void begin_both(struct world *world)
{
	begin(&world->replicas[0]);
	until_held(world, AT_ONCE);
	begin(&world->replicas[1]);
	pass(world, 10 * SECOND + 17);
	assert_true(is_held(&world->replicas[0]));
}

static void after_a_crash_the_next_waits_the_duration(void **state)
{
	struct world *world = *state;
	struct replica *a = &world->replicas[0], *b = &world->replicas[1];

	begin_both(world);
	/* For the others a machine that is cut off is as dead as one that is off. */
	fake_api_stop(a->way);
	/* It renewed less than 3.75 s ago. */
	assert_in_range(until_lost(world, 10 * SECOND), 10 * SECOND - 3750, 10 * SECOND);
	pass(world, 1);
	assert_false(a->is_told);
	assert_int_equal(a->told, 2);
	/* The other one saw it at most 2.5 s after that, and looks within 0.5 s of the end. */
	assert_in_range(until_held(world, 8 * SECOND), 5 * SECOND, 8 * SECOND);
	assert_true(is_held(b));
	assert_int_equal(number_of(world, "leaseTransitions"), 1);
	assert_string_equal(text_of(world, "holderIdentity"), roll_lease_identity(b->lease));
	/* Who comes back sees that it is another's. */
	assert_true(fake_api_resume(a->way));
	pass(world, MINUTE);
	assert_true(is_held(b) && a->told == 2);
}

static void a_new_replica_waits_before_an_old_record(void **state)
{
	static const struct {
		int64_t seconds; /* as the record says */
		int64_t wait_ms;
	} cases[] = {{15, 15 * SECOND}, {1, 15 * SECOND},  {40, 40 * SECOND},
		     {0, 15 * SECOND},	{-7, 15 * SECOND}, {INT64_MAX, 15 * SECOND}};
	struct world *world = *state;
	int64_t waited_ms;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		fake_lease_edit(&world->lease,
				json_pack("{s:s, s:I, s:s, s:s, s:i}", "holderIdentity", "ghost",
					  "leaseDurationSeconds", (json_int_t)cases[i].seconds,
					  "acquireTime", "2001-01-01T00:00:00.000000Z", "renewTime",
					  "2001-01-01T00:00:00.000000Z", "leaseTransitions", 41));
		begin(&world->replicas[0]);
		waited_ms = until_held(world, MINUTE);
		assert_in_range(waited_ms, cases[i].wait_ms, cases[i].wait_ms + 501);
		assert_int_equal(number_of(world, "leaseTransitions"), 42);
		end(&world->replicas[0]);
		fake_lease_delete(&world->lease);
	}
}

static void ten_years_are_ten_years_until_the_lease_is_deleted(void **state)
{
	struct world *world = *state;

	fake_lease_edit(&world->lease, json_pack("{s:s, s:i}", "holderIdentity", "ghost",
						 "leaseDurationSeconds", 10 * 365 * 86400));
	begin(&world->replicas[0]);
	pass(world, 10 * MINUTE);
	assert_null(holder(world));
	fake_lease_delete(&world->lease);
	assert_in_range(until_held(world, MINUTE), DURATION, DURATION + 3 * SECOND);
}

static void who_leaves_is_followed_within_seconds(void **state)
{
	struct world *world = *state;
	struct replica *a = &world->replicas[0], *b = &world->replicas[1];

	for (int i = 0; i < 20; i++) {
		begin_both(world);
		pass(world, 100 * i);
		end(a);
		assert_string_equal(text_of(world, "holderIdentity"), "");
		assert_int_equal(number_of(world, "leaseDurationSeconds"), 1);
		assert_int_equal(number_of(world, "leaseTransitions"), 2 * i);
		assert_in_range(until_held(world, 3 * SECOND), 0, 2500);
		assert_true(is_held(b));
		assert_int_equal(number_of(world, "leaseTransitions"), 2 * i + 1);
		assert_string_equal(text_of(world, "acquireTime"), text_of(world, "renewTime"));
		end(b);
	}
}

static bool is_renewing(void *ctx)
{
	struct world *world = ctx;

	return world->lease.updates > 0;
}

static void a_renewal_on_its_way_does_not_keep_it(void **state)
{
	struct world *world = *state;
	struct replica *a = &world->replicas[0];

	begin(a);
	until_held(world, AT_ONCE);
	/* The server has it, and we do not know yet. */
	assert_true(turn_until(world->loop, is_renewing, world, MINUTE));
	assert_int_equal(world->lease.updates, 1);
	end(a);
	assert_int_equal(world->lease.updates, 2);
	assert_int_equal(world->lease.conflicts, 0);
	assert_string_equal(text_of(world, "holderIdentity"), "");
}

static bool is_failing(void *ctx)
{
	struct world *world = ctx;

	return requests(&world->replicas[0], "update", "failed") > 0;
}

static void what_an_unknown_renewal_left_is_given_back_too(void **state)
{
	struct world *world = *state;
	struct replica *a = &world->replicas[0];

	begin(a);
	until_held(world, AT_ONCE);
	a->is_mute = true;
	assert_true(turn_until(world->loop, is_failing, world, MINUTE));
	assert_true(is_held(a));
	a->is_mute = false;
	end(a);
	assert_string_equal(text_of(world, "holderIdentity"), "");
}

/* By the real clock. */
static void leaving_takes_a_second_at_most(void **state)
{
	struct world *world = *state;
	struct replica *a = &world->replicas[0];
	int64_t began_ms, took_ms;

	turn_end();
	begin(a);
	while (!is_held(a))
		assert_int_equal(roll_loop_once(world->loop), ROLL_OK);
	a->is_deaf = true;
	began_ms = roll_clock_monotonic_ms(&roll_clock_system);
	end(a);
	took_ms = roll_clock_monotonic_ms(&roll_clock_system) - began_ms;
	assert_in_range(took_ms, 999, 3000);
	turn_begin();
}

/* --- clocks --- */

static void clocks_of_the_wall_do_not_count(void **state)
{
	struct world *world = *state;
	struct replica *a = &world->replicas[0], *b = &world->replicas[1];

	a->wall_offset_ms = -3 * (int64_t)HOUR;
	b->wall_offset_ms = 5 * (int64_t)HOUR;
	begin_both(world);
	pass(world, 5 * MINUTE);
	assert_true(is_held(a) && a->told == 1);
	fake_api_stop(a->way);
	assert_in_range(until_lost(world, MINUTE), 6250, 10 * SECOND);
	assert_in_range(until_held(world, MINUTE), 5 * SECOND, 8 * SECOND);
	assert_true(fake_api_resume(a->way));
	pass(world, 5 * MINUTE);
	assert_true(is_held(b) && b->told == 1);
}

/* It may be that the machine was suspended; to be sure costs a moment. */
static void a_clock_that_is_set_costs_a_moment(void **state)
{
	struct world *world = *state;
	struct replica *a = &world->replicas[0];

	begin_both(world);
	a->wall_offset_ms = HOUR;
	assert_false(is_held(a));
	assert_int_equal(roll_lease_left_ms(a->lease), 0);
	until_held(world, 4 * SECOND);
	assert_true(is_held(a) && a->told == 3);
	a->wall_offset_ms = -DAY;
	pass(world, MINUTE);
	assert_true(is_held(a) && a->told == 3);
}

/* --- trouble --- */

static void a_lost_answer_is_no_loss(void **state)
{
	struct world *world = *state;
	struct replica *a = &world->replicas[0];

	begin_both(world);
	for (int i = 0; i < 20; i++) {
		size_t updates = world->lease.updates;

		/* One renewal, or one look of the other. */
		a->is_mute = i % 2 == 0;
		a->is_deaf = !a->is_mute;
		while (world->lease.updates == updates && a->is_mute)
			pass(world, 20);
		pass(world, a->is_deaf ? 3750 : 20);
		a->is_mute = a->is_deaf = false;
		pass(world, 7 * SECOND);
	}
	assert_true(is_held(a) && a->told == 1);
}

static void a_slow_server_is_no_loss(void **state)
{
	struct world *world = *state;
	struct replica *a = &world->replicas[0];

	begin_both(world);
	fake_api_conf(a->way)->request_ms = 2000;
	fake_api_conf(a->way)->answer_ms = 2500;
	pass(world, 5 * MINUTE);
	assert_true(is_held(a) && a->told == 1);
}

/* The others saw the record when it was written, however long the answer took. */
static void the_time_counts_from_when_a_renewal_was_sent(void **state)
{
	struct world *world = *state;
	struct replica *a = &world->replicas[0];
	size_t written;

	begin_both(world);
	fake_api_conf(a->way)->answer_ms = 4500;
	written = world->lease.written;
	while (world->lease.written == written)
		pass(world, 20);
	pass(world, 4500);
	fake_api_stop(a->way);
	assert_in_range(roll_lease_left_ms(a->lease), 8900, 9000);
	assert_in_range(until_lost(world, MINUTE), 5400, 5500);
	/* Perhaps one more that was not answered. */
	assert_in_range(until_held(world, MINUTE), 5 * SECOND, 13 * SECOND);
}

/* It arrives after its client has given it up, and after another has taken over. */
static void a_late_renewal_is_refused(void **state)
{
	struct world *world = *state;
	struct replica *a = &world->replicas[0], *b = &world->replicas[1];

	begin_both(world);
	fake_api_conf(a->way)->request_ms = 25 * SECOND;
	until_lost(world, MINUTE);
	until_held(world, MINUTE);
	assert_true(is_held(b));
	pass(world, MINUTE);
	assert_true(is_held(b));
	assert_true(world->lease.conflicts > 0);
}

static void lay_hands_on(struct world *world, const char *spec)
{
	if (*spec)
		fake_lease_edit(&world->lease, json_loads(spec, 0, NULL));
	else
		fake_lease_delete(&world->lease);
}

static void hands_that_change_it_cost_one_duration(void **state)
{
	static const char *const specs[] = {
		"{\"holderIdentity\":\"\"}",
		"{\"holderIdentity\":\"\",\"leaseDurationSeconds\":15}",
		"{\"holderIdentity\":\"bob\",\"leaseDurationSeconds\":1}",
		"{\"leaseDurationSeconds\":1000000}",
		"{}",
		"[]",
		"", /* no Lease */
	};
	struct world *world = *state;
	struct replica *a;

	begin_both(world);
	begin(&world->replicas[2]);
	pass(world, 10 * SECOND);
	for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
		lay_hands_on(world, specs[i]);
		assert_in_range(until_lost(world, MINUTE), 0, 3750);
		assert_in_range(until_held(world, MINUTE), 11 * SECOND, 18 * SECOND);
		pass(world, 20 * SECOND);
		assert_non_null(holder(world));
	}
	/* The same while its holder cannot see it. */
	for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
		a = &world->replicas[holder(world) - world->replicas];
		fake_api_stop(a->way);
		lay_hands_on(world, specs[i]);
		until_lost(world, MINUTE);
		until_held(world, MINUTE);
		assert_true(fake_api_resume(a->way));
		pass(world, 20 * SECOND);
	}
}

/* The holder puts right what does not name another. */
static void a_hand_that_changes_the_times_is_corrected(void **state)
{
	struct world *world = *state;
	struct replica *a = &world->replicas[0];
	json_t *spec;

	begin_both(world);
	spec = json_deep_copy(fake_lease_spec(&world->lease));
	json_object_set_new(spec, "leaseDurationSeconds", json_integer(1000000));
	fake_lease_edit(&world->lease, spec);
	pass(world, MINUTE);
	assert_true(is_held(a) && a->told == 1);
	assert_int_equal(number_of(world, "leaseDurationSeconds"), 15);
	fake_api_stop(a->way);
	until_lost(world, MINUTE);
	assert_in_range(until_held(world, MINUTE), 5 * SECOND, 8 * SECOND);
}

static void records_that_make_no_sense_are_waited_for_and_replaced(void **state)
{
	static const char *const specs[] = {
		"[]",
		"17",
		"\"text\"",
		"{\"holderIdentity\":17,\"leaseDurationSeconds\":\"15\",\"leaseTransitions\":{}}",
		"{\"holderIdentity\":\"x\",\"leaseDurationSeconds\":-1,\"leaseTransitions\":-9}",
		"{\"holderIdentity\":\"x\",\"leaseDurationSeconds\":9223372036854775807}",
		"{\"holderIdentity\":\"x\",\"leaseTransitions\":9223372036854775807}",
		"{\"holderIdentity\":\"x\",\"leaseTransitions\":2147483647}",
		"{\"holderIdentity\":\"x\",\"leaseDurationSeconds\":15.5,\"acquireTime\":[]}",
		"{\"holderIdentity\":\"a\\u0000b\\n\\\"\",\"renewTime\":false}",
		"{\"leaseDurationSeconds\":1}x", /* released, in fact */
	};
	struct world *world = *state;

	for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
		bool is_free = specs[i][strlen(specs[i]) - 1] == 'x';
		json_t *spec = json_loads(
			specs[i], JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK, NULL);

		assert_non_null(spec);
		fake_lease_edit(&world->lease, spec);
		begin(&world->replicas[0]);
		begin(&world->replicas[1]);
		assert_in_range(until_held(world, MINUTE), is_free ? 0 : DURATION,
				is_free ? 0 : DURATION + 501);
		pass(world, 20 * SECOND);
		assert_non_null(holder(world));
		end(&world->replicas[0]);
		end(&world->replicas[1]);
		fake_lease_delete(&world->lease);
	}
}

static void answers_that_are_no_lease_are_failures(void **state)
{
	static const char *const bodies[] = {
		"",
		"{",
		"null",
		"[]",
		"\"text\"",
		"{}",
		"{\"metadata\":{}}",
		"{\"metadata\":{\"resourceVersion\":7},\"spec\":{}}",
		"{\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{\"renewTime\":1e999}}",
		"<html>",
	};
	struct world *world = *state;
	struct replica *a = &world->replicas[0];
	char answer[512];

	begin_both(world);
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		uint32_t before = requests(a, "update", "failed");

		snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
			 strlen(bodies[i]), bodies[i]);
		fake_api_script(a->way, "PUT /apis/coordination", answer, 1);
		pass(world, 10 * SECOND);
		assert_true(is_held(a) && a->told == 1);
		assert_int_equal(requests(a, "update", "failed"), before + 1);
	}
	/* Too large to be one. */
	snprintf(answer, sizeof answer,
		 "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n{\"x\":\"%0*d", 300u << 10, 300, 0);
	fake_api_script(a->way, "PUT /apis/coordination", answer, 1);
	pass(world, 10 * SECOND);
	assert_true(is_held(a) && a->told == 1);
}

static void who_may_not_says_so_once(void **state)
{
	static const struct {
		const char *method, *verb;
	} cases[] = {{"GET", "verb=get "}, {"POST", "verb=create "}, {"PUT", "verb=update "}};
	struct world *world = *state;
	struct replica *a = &world->replicas[0];
	size_t before;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		fake_lease_delete(&world->lease);
		if (i == 2)
			fake_lease_edit(&world->lease,
					json_pack("{s:i}", "leaseDurationSeconds", 1));
		world->warnings = 0;
		a->verb = cases[i].method;
		a->code = 403;
		before = a->asked;
		begin(a);
		pass(world, 20 * MINUTE);
		assert_false(is_held(a));
		assert_int_equal(world->warnings, 1);
		assert_non_null(
			strstr(world->warning, "event=lease-denied lease=dns/rollcall-test"));
		assert_non_null(strstr(world->warning, cases[i].verb));
		assert_non_null(strstr(world->warning, "resource=leases.coordination.k8s.io "));
		assert_non_null(strstr(world->warning, "reason=\"403: as told\""));
		/* Half a minute in the mean, and a look before each write. */
		assert_in_range(a->asked - before, 20, i == 0 ? 80 : 160);
		a->code = 0;
		until_held(world, MINUTE);
		assert_true(is_held(a));
		end(a);
	}
	assert_true(requests(a, "update", "denied") > 0);
}

static void a_failing_server_is_not_stormed(void **state)
{
	static const int codes[] = {500, 429, 503, 400, 409, 404, 418};
	struct world *world = *state;
	struct replica *a = &world->replicas[0], *b = &world->replicas[1];
	size_t before, rounds = sizeof codes / sizeof *codes;

	begin_both(world);
	for (size_t i = 0; i < rounds; i++) {
		before = a->asked + b->asked;
		world->warnings = 0;
		a->code = b->code = codes[i];
		pass(world, 5 * MINUTE);
		assert_null(holder(world));
		/* Each of the two tries every 2.5 s; who finds no Lease asks twice. */
		assert_in_range(a->asked + b->asked - before, 100, 700);
		assert_in_range(world->warnings, codes[i] == 404 ? 0 : 2, 2);
		a->code = b->code = 0;
		until_held(world, 20 * SECOND);
		pass(world, MINUTE);
	}
}

static void a_server_that_is_gone_is_not_missed_for_long(void **state)
{
	struct world *world = *state;
	struct replica *a = &world->replicas[0], *b = &world->replicas[1];

	begin_both(world);
	fake_api_stop(a->way);
	fake_api_stop(b->way);
	world->warnings = 0;
	pass(world, 10 * MINUTE);
	assert_null(holder(world));
	assert_int_equal(world->warnings, 2);
	assert_non_null(strstr(world->warning, "event=lease-trouble "));
	assert_in_range(requests(a, "get", "failed"), 100, 500);
	assert_true(fake_api_resume(a->way));
	assert_true(fake_api_resume(b->way));
	/* The record may be that of somebody who lives on another side of the cut. */
	until_held(world, DURATION + 6 * SECOND);
}

/* --- everything at once --- */

static int64_t pick(struct world *world, int64_t n)
{
	unsigned first = 0;

	return roll_backoff_ms(&first, n, n, &world->seed) - 1;
}

static void clear(struct replica *replica)
{
	fake_api_conf(replica->way)->request_ms = fake_api_conf(replica->way)->answer_ms = 0;
	replica->code = 0;
	replica->verb = NULL;
	replica->is_deaf = replica->is_mute = false;
	fake_api_stop(replica->way);
	assert_true(fake_api_resume(replica->way));
}

static void trouble(struct world *world, struct replica *replica)
{
	static const int codes[] = {400, 403, 404, 409, 409, 429, 500, 503};
	static const char *const verbs[] = {NULL, "GET", "PUT", "POST"};

	clear(replica);
	switch (pick(world, 12)) {
	case 0:
	case 1:
		fake_api_conf(replica->way)->request_ms = pick(world, 12000);
		fake_api_conf(replica->way)->answer_ms = pick(world, 6000);
		break;
	case 2:
		fake_api_conf(replica->way)->request_ms = pick(world, 3000);
		break;
	case 3:
		replica->is_deaf = true;
		break;
	case 4:
		replica->is_mute = true;
		break;
	case 5:
	case 6:
		replica->code = codes[pick(world, sizeof codes / sizeof *codes)];
		replica->verb = verbs[pick(world, 4)];
		break;
	case 7:
		fake_api_stop(replica->way);
		break;
	case 8:
		fake_api_truncate(replica->way, "coordination", (size_t)pick(world, 600), 2);
		break;
	default:
		break;
	}
}

static void hand(struct world *world)
{
	static const char *const specs[] = {
		"{\"holderIdentity\":\"\",\"leaseDurationSeconds\":15}",
		"{\"holderIdentity\":\"bob\",\"leaseDurationSeconds\":3}",
		"{\"holderIdentity\":\"bob\",\"leaseDurationSeconds\":30}",
		"[]",
		"{}",
	};

	if (pick(world, 2)) {
		fake_lease_edit(&world->lease, json_loads(specs[pick(world, 5)], 0, NULL));
		return;
	}
	/* Who has not seen it cannot see that it is gone; the slowest looks once a minute. */
	for (size_t i = 0; i < REPLICAS; i++)
		clear(&world->replicas[i]);
	pass(world, MINUTE + 10 * SECOND);
	fake_lease_delete(&world->lease);
}

static void restart(struct world *world, struct replica *replica)
{
	/* A crash: it cannot say good-bye. */
	if (pick(world, 2)) {
		fake_api_stop(replica->way);
		pass(world, 12 * SECOND);
	} else {
		clear(replica);
		pass(world, 12 * SECOND);
	}
	end(replica);
	clear(replica);
	pass(world, pick(world, 3000));
	begin(replica);
}

static void run(struct world *world, int rounds, bool has_hands)
{
	static const int permilles[] = {1000, 970, 1030, 1000};

	for (size_t i = 0; i < REPLICAS; i++) {
		world->replicas[i].permille = permilles[i];
		world->replicas[i].wall_offset_ms = pick(world, 2 * DAY) - DAY;
		begin(&world->replicas[i]);
	}
	pass(world, MINUTE);
	for (int i = 0; i < rounds; i++) {
		struct replica *replica = &world->replicas[pick(world, REPLICAS)];

		/* Mostly where it hurts. */
		if (holder(world) && pick(world, 2))
			replica = &world->replicas[holder(world) - world->replicas];
		trouble(world, replica);
		if (pick(world, 20) == 0)
			replica->wall_offset_ms = pick(world, 2 * DAY) - DAY;
		if (has_hands && pick(world, 10) == 0)
			hand(world);
		if (!has_hands && pick(world, 15) == 0)
			restart(world, replica);
		pass(world, pick(world, 8000));
		if (i % 50 != 49)
			continue;
		for (size_t k = 0; k < REPLICAS; k++)
			clear(&world->replicas[k]);
		pass(world, 2 * MINUTE);
		assert_non_null(holder(world));
	}
	assert_true(world->handovers > (size_t)rounds / 20);
}

static void in_a_long_run_of_trouble_never_two_hold_it(void **state)
{
	run(*state, 300, false);
}

static void in_a_long_run_of_hands_never_two_hold_it(void **state)
{
	run(*state, 300, true);
}

/* --- the rest --- */

static void metrics_tell_who_holds_it(void **state)
{
	static const char wanted[] =
		"# HELP rollcall_sync_lease_held 1 while this replica holds the Lease, by which it "
		"writes status.\n"
		"# TYPE rollcall_sync_lease_held gauge\n"
		"rollcall_sync_lease_held 1\n"
		"# HELP rollcall_sync_lease_acquired_total Times this replica got the Lease.\n"
		"# TYPE rollcall_sync_lease_acquired_total counter\n"
		"rollcall_sync_lease_acquired_total 1\n"
		"# HELP rollcall_sync_lease_requests_total Requests for the Lease by verb and "
		"result: ok, absent, conflict, denied, failed.\n"
		"# TYPE rollcall_sync_lease_requests_total counter\n"
		"rollcall_sync_lease_requests_total{verb=\"get\",result=\"absent\"} 1\n"
		"rollcall_sync_lease_requests_total{verb=\"create\",result=\"ok\"} 1\n";
	struct world *world = *state;
	struct replica *a = &world->replicas[0], *b = &world->replicas[1];
	struct roll_buf text;

	roll_buf_init(&text, 1u << 16);
	begin(a);
	until_held(world, AT_ONCE);
	roll_metrics_print(a->metrics, &text);
	assert_string_equal(text.p, wanted);
	begin(b);
	pass(world, 0);
	roll_buf_reset(&text);
	roll_metrics_print(b->metrics, &text);
	assert_non_null(strstr(text.p, "\nrollcall_sync_lease_held 0\n"));
	assert_non_null(strstr(text.p, "\nrollcall_sync_lease_acquired_total 0\n"));
	end(a);
	roll_buf_reset(&text);
	roll_metrics_print(a->metrics, &text);
	assert_non_null(strstr(text.p, "\nrollcall_sync_lease_held 0\n"));
	assert_non_null(strstr(text.p, "{verb=\"update\",result=\"ok\"} 1\n"));
	roll_buf_fini(&text);
}

static void names_that_cannot_be_are_refused(void **state)
{
	char many[130] = "";
	const struct {
		const char *ns, *name, *identity;
	} cases[] = {
		{"", "n", "i"},	      {"a/b", "n", "i"},	 {"dns", "", "i"},
		{"dns", "N", "i"},    {"dns", "-n", "i"},	 {"dns", "n-", "i"},
		{"dns", "../x", "i"}, {"dns", "n", ""},		 {"dns", "n", "a b"},
		{"dns", "n", "a\"b"}, {"dns", "n", "a\xc3\xa4"}, {"dns", "n", many},
		{many, "n", "i"},
	};
	struct world *world = *state;

	memset(many, 'a', sizeof many - 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct roll_lease_conf conf = {
			.loop = world->loop,
			.api = world->replicas[0].api,
			.ns = cases[i].ns,
			.name = cases[i].name,
			.identity = cases[i].identity,
			.clock = &roll_clock_system,
		};
		struct roll_lease *lease = NULL;
		struct roll_err err;

		assert_int_equal(roll_lease_new(&conf, &lease, &err), ROLL_EINVAL);
		assert_null(lease);
	}
	roll_lease_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_replica_gets_it_at_once),
		TEST(an_hour_of_peace_costs_little),
		TEST(of_all_that_make_it_one_has_it),
		TEST(after_a_crash_the_next_waits_the_duration),
		TEST(a_new_replica_waits_before_an_old_record),
		TEST(ten_years_are_ten_years_until_the_lease_is_deleted),
		TEST(who_leaves_is_followed_within_seconds),
		TEST(a_renewal_on_its_way_does_not_keep_it),
		TEST(what_an_unknown_renewal_left_is_given_back_too),
		TEST(leaving_takes_a_second_at_most),
		TEST(clocks_of_the_wall_do_not_count),
		TEST(a_clock_that_is_set_costs_a_moment),
		TEST(a_lost_answer_is_no_loss),
		TEST(a_slow_server_is_no_loss),
		TEST(the_time_counts_from_when_a_renewal_was_sent),
		TEST(a_late_renewal_is_refused),
		TEST(hands_that_change_it_cost_one_duration),
		TEST(a_hand_that_changes_the_times_is_corrected),
		TEST(records_that_make_no_sense_are_waited_for_and_replaced),
		TEST(answers_that_are_no_lease_are_failures),
		TEST(who_may_not_says_so_once),
		TEST(a_failing_server_is_not_stormed),
		TEST(a_server_that_is_gone_is_not_missed_for_long),
		TEST(in_a_long_run_of_trouble_never_two_hold_it),
		TEST(in_a_long_run_of_hands_never_two_hold_it),
		TEST(metrics_tell_who_holds_it),
		TEST(names_that_cannot_be_are_refused),
	};

	return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
