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
#include "source/patch.h"
#include "tests/lib/fake_api.h"
#include "tests/lib/until.h"

#define PATIENCE_MS 10000
#define BASE "/apis/dns.networking.miloapis.com/v1alpha1"

static const struct roll_patch_pace fast = {
	.per_second = 100000,
	.burst = 1000,
	.in_flight = 2,
	.again_ms = 1,
	.rest_ms = 20,
	.rest_cap_ms = 2000,
	.backoff_base_ms = 1,
	.backoff_cap_ms = 20,
	.answer_ms = 5000,
};

/* A server that knows one status per object, and an owner of the queue that wants it to be "v". */
struct world {
	struct roll_loop *loop;
	struct fake_api *server;
	struct roll_api *api;
	struct roll_metrics *metrics;
	struct roll_patch *patch;
	int version;   /* of every object */
	int wanted;    /* value to be written; 0: nothing to do */
	int present;   /* as the server has it */
	int undecided; /* decisions that cannot be made yet */
	int64_t left_ms;
	size_t reads, writes, decisions, written, dropped, idle;
	size_t running, running_max;
	int answers[8]; /* HTTP status of the next writes */
	size_t answer_count, answered;
	char bodies[4][256];
	char paths[4][160];
	size_t want;
	bool is_absent;	     /* at the next read, */
	const json_t *known; /* and then an event tells of it before the answer comes */
};

static int on_other(void *ctx, const char *method, const char *path, json_t *body, json_t **reply)
{
	struct world *world = ctx;
	char version[16];
	int answer = 200;

	if (strcmp(method, "GET") == 0) {
		world->reads++;
		if (world->is_absent) {
			world->is_absent = false;
			roll_patch_want(world->patch, "dnszones", roll_str_c("default"),
					roll_str_c("x"), world->known, false, false);
			return 404;
		}
		snprintf(version, sizeof version, "%d", world->version);
		*reply = json_pack("{s:{s:s, s:s, s:s, s:s, s:i}, s:{}, s:{s:i}}", "metadata",
				   "name", "x", "namespace", "default", "uid", "u",
				   "resourceVersion", version, "generation", 1, "spec", "status",
				   "v", world->present);
		return 200;
	}
	if (world->writes < 4) {
		char *text = json_dumps(body, JSON_SORT_KEYS | JSON_COMPACT);

		snprintf(world->bodies[world->writes], sizeof world->bodies[0], "%s", text);
		snprintf(world->paths[world->writes], sizeof world->paths[0], "%s", path);
		free(text);
	}
	world->writes++;
	if (world->answered < world->answer_count)
		answer = world->answers[world->answered++];
	snprintf(version, sizeof version, "%d", world->version);
	if (answer == 200 &&
	    !roll_str_eq_c(roll_json_str(json_object_get(body, "metadata"), "resourceVersion"),
			   version))
		answer = 409;
	if (answer == 200) {
		world->version++;
		world->present = (int)json_integer_value(
			json_object_get(json_object_get(body, "status"), "v"));
	}
	*reply = json_pack("{s:s, s:s, s:i, s:s}", "kind", "Status", "message", "as told", "code",
			   answer, "reason", "Test");
	return answer;
}

static enum roll_status decide(void *ctx, const struct roll_patch_object *object, json_t **out)
{
	struct world *world = ctx;

	world->decisions++;
	if (world->undecided) {
		world->undecided--;
		return ROLL_EAGAIN;
	}
	if (!world->wanted ||
	    json_integer_value(json_object_get(object->status, "v")) == world->wanted)
		return ROLL_ENOENT;
	*out = json_pack("{s:i}", "v", world->wanted);
	return ROLL_OK;
}

static void on_written(void *ctx, const struct roll_patch_object *object, const json_t *status)
{
	struct world *world = ctx;

	assert_true(roll_str_eq_c(object->resource, "dnszones"));
	assert_int_equal(json_integer_value(json_object_get(status, "v")), world->wanted);
	world->written++;
}

static void on_dropped(void *ctx)
{
	((struct world *)ctx)->dropped++;
}

static void on_idle(void *ctx)
{
	((struct world *)ctx)->idle++;
}

static int64_t left_ms(void *ctx)
{
	return ((struct world *)ctx)->left_ms;
}

static void on_log(void *ctx, const char *line)
{
	(void)ctx;
	(void)line;
}

static void open_queue(struct world *world, const struct roll_patch_pace *pace, size_t items_max)
{
	struct roll_patch_conf conf = {
		.loop = world->loop,
		.api = world->api,
		.clock = &roll_clock_system,
		.base = BASE,
		.items_max = items_max,
		.pace = pace,
		.metrics = world->metrics,
		.decide = decide,
		.left_ms = left_ms,
		.on_written = on_written,
		.on_dropped = on_dropped,
		.on_idle = on_idle,
		.ctx = world,
	};

	roll_patch_free(world->patch);
	assert_int_equal(roll_patch_new(&conf, &world->patch, NULL), ROLL_OK);
}

static int setup(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct roll_cred_spec spec = {.server = NULL};
	struct roll_cred *cred;

	assert_non_null(world);
	roll_log_set_sink(on_log, world);
	world->version = 7;
	world->left_ms = 60000;
	assert_int_equal(roll_loop_new(NULL, &world->loop, NULL), ROLL_OK);
	world->server = fake_api_new(roll_loop_base(world->loop));
	assert_non_null(world->server);
	fake_api_set_other(world->server, on_other, world);
	spec.server = strdup(fake_api_url(world->server));
	assert_int_equal(roll_cred_new(world->loop, &roll_clock_system, &spec, &cred, NULL),
			 ROLL_OK);
	assert_int_equal(roll_api_new(world->loop, cred, &world->api, NULL), ROLL_OK);
	world->metrics = roll_metrics_new();
	open_queue(world, &fast, 0);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	roll_patch_free(world->patch);
	roll_api_free(world->api);
	fake_api_free(world->server);
	roll_loop_free(world->loop);
	roll_metrics_free(world->metrics);
	roll_log_set_sink(NULL, NULL);
	free(world);
	return 0;
}

static void want(struct world *world, const char *name, const json_t *known)
{
	roll_patch_want(world->patch, "dnszones", roll_str_c("default"), roll_str_c(name), known,
			false, false);
}

static bool is_idle(void *ctx)
{
	return roll_patch_count(((struct world *)ctx)->patch) == 0;
}

static void settle(struct world *world)
{
	assert_true(until(world->loop, is_idle, world, PATIENCE_MS));
}

static bool has_writes(void *ctx)
{
	struct world *world = ctx;

	return world->writes >= world->want;
}

static double result(struct world *world, const char *what)
{
	char start[80];
	struct roll_buf text;
	uint32_t value = 0;
	struct roll_str rest;
	const char *at;

	snprintf(start, sizeof start, "\nrollcall_sync_status_patches_total{result=\"%s\"} ", what);
	roll_buf_init(&text, 1u << 20);
	roll_metrics_print(world->metrics, &text);
	at = strstr(text.p, start);
	if (at) {
		rest = roll_str_c(at + strlen(start));
		assert_int_equal(roll_str_u32(roll_str_cut(&rest, '\n'), UINT32_MAX, &value),
				 ROLL_OK);
	}
	roll_buf_fini(&text);
	return value;
}

static json_t *known_object(int version, int value)
{
	char text[16];

	snprintf(text, sizeof text, "%d", version);
	return json_pack("{s:{s:s, s:s, s:i}, s:{s:i}}", "metadata", "uid", "u", "resourceVersion",
			 text, "generation", 1, "status", "v", value);
}

static void an_object_is_read_then_written_with_its_version(void **state)
{
	struct world *world = *state;

	world->wanted = 1;
	want(world, "x", NULL);
	settle(world);
	assert_int_equal(world->reads, 1);
	assert_int_equal(world->writes, 1);
	assert_int_equal(world->written, 1);
	assert_int_equal(world->present, 1);
	assert_string_equal(world->paths[0], BASE "/namespaces/default/dnszones/x/status");
	assert_string_equal(world->bodies[0],
			    "{\"metadata\":{\"resourceVersion\":\"7\",\"uid\":\"u\"},"
			    "\"status\":{\"v\":1}}");
	assert_non_null(
		strstr(fake_api_last_request(world->server), "application/merge-patch+json"));
	assert_true(result(world, "ok") == 1);
}

static void a_known_object_is_not_read(void **state)
{
	struct world *world = *state;
	json_t *known = known_object(7, 0);

	world->wanted = 1;
	want(world, "x", known);
	json_decref(known);
	settle(world);
	assert_int_equal(world->reads, 0);
	assert_int_equal(world->writes, 1);
}

static void nothing_is_written_that_is_there_already(void **state)
{
	struct world *world = *state;

	world->wanted = world->present = 3;
	want(world, "x", NULL);
	settle(world);
	assert_int_equal(world->reads, 1);
	assert_int_equal(world->writes, 0);
	assert_true(result(world, "unchanged") == 1);
	assert_true(until(world->loop, is_idle, world, PATIENCE_MS));
	assert_int_equal(world->idle, 1);
}

static void wishes_for_one_object_are_one(void **state)
{
	struct world *world = *state;

	world->wanted = 1;
	for (int i = 0; i < 100; i++)
		want(world, "x", NULL);
	settle(world);
	assert_int_equal(world->writes, 1);
}

/* The status code of a failed write, and whether it comes about in the end. */
static void failures_are_handled(void **state)
{
	static const struct {
		int answer;
		bool is_tried_again;
		const char *result;
	} cases[] = {
		{409, true, "conflict"}, {404, false, "gone"},	{422, false, "refused"},
		{400, false, "refused"}, {403, true, "denied"}, {401, true, "denied"},
		{429, true, "failed"},	 {500, true, "failed"}, {503, true, "failed"},
	};
	struct world *world = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char name[16];
		double before = result(world, cases[i].result);

		snprintf(name, sizeof name, "n%zu", i);
		world->wanted = (int)i + 1;
		world->written = 0;
		world->answers[0] = cases[i].answer;
		world->answer_count = 1;
		world->answered = 0;
		want(world, name, NULL);
		settle(world);
		assert_int_equal(world->written, cases[i].is_tried_again);
		assert_true(result(world, cases[i].result) == before + 1);
	}
}

static void a_stale_version_is_read_anew(void **state)
{
	struct world *world = *state;
	json_t *known = known_object(6, 0);

	world->wanted = 1;
	want(world, "x", known);
	json_decref(known);
	settle(world);
	assert_int_equal(world->writes, 2);
	assert_int_equal(world->reads, 1);
	assert_int_equal(world->present, 1);
}

static bool is_reading(void *ctx)
{
	return ((struct world *)ctx)->reads > 0;
}

/* It was not there when it was asked for, but came before the answer did. */
static void a_name_that_comes_while_it_is_read_is_not_lost(void **state)
{
	struct world *world = *state;
	json_t *known = known_object(7, 0);

	world->wanted = 1;
	world->is_absent = true;
	world->known = known;
	want(world, "x", NULL);
	assert_true(until(world->loop, is_reading, world, PATIENCE_MS));
	settle(world);
	assert_int_equal(world->written, 1);
	json_decref(known);
}

static void a_server_that_is_away_is_waited_for(void **state)
{
	struct world *world = *state;

	world->wanted = 1;
	fake_api_stop(world->server);
	want(world, "x", NULL);
	for_ms(world->loop, 100);
	assert_int_equal(world->written, 0);
	assert_true(fake_api_resume(world->server));
	settle(world);
	assert_int_equal(world->written, 1);
}

static void what_has_no_room_is_dropped_and_told(void **state)
{
	struct world *world = *state;
	char name[16];

	open_queue(world, &fast, 10);
	world->wanted = 1;
	for (int i = 0; i < 25; i++) {
		snprintf(name, sizeof name, "n%d", i);
		want(world, name, NULL);
	}
	assert_int_equal(roll_patch_count(world->patch), 10);
	assert_int_equal(world->dropped, 15);
	settle(world);
	want(world, "later", NULL);
	assert_int_equal(world->dropped, 15);
}

static void the_rate_is_limited(void **state)
{
	struct roll_patch_pace slow = fast;
	struct world *world = *state;
	char name[16];

	slow.per_second = 10;
	slow.burst = 4;
	open_queue(world, &slow, 0);
	world->wanted = 1;
	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof name, "n%d", i);
		want(world, name, NULL);
	}
	for_ms(world->loop, 400);
	assert_in_range(world->reads + world->writes, 4, 12);
}

static void urgent_ones_come_first(void **state)
{
	struct roll_patch_pace slow = fast;
	struct world *world = *state;
	char name[16];

	slow.in_flight = 1;
	open_queue(world, &slow, 0);
	world->wanted = 1;
	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof name, "n%d", i);
		want(world, name, NULL);
	}
	roll_patch_want(world->patch, "dnszones", roll_str_c("default"), roll_str_c("urgent"), NULL,
			false, true);
	world->want = 1;
	assert_true(until(world->loop, has_writes, world, PATIENCE_MS));
	assert_non_null(strstr(world->paths[0], "/urgent/"));
}

static void a_decision_may_take_several_turns(void **state)
{
	struct world *world = *state;

	world->wanted = 1;
	world->undecided = 5;
	want(world, "x", NULL);
	settle(world);
	assert_int_equal(world->reads, 1);
	assert_int_equal(world->decisions, 6);
	assert_int_equal(world->written, 1);
}

static void nothing_begins_without_time_left(void **state)
{
	struct world *world = *state;

	world->wanted = 1;
	world->left_ms = 0;
	want(world, "x", NULL);
	for_ms(world->loop, 150);
	assert_int_equal(world->reads + world->writes, 0);
	world->left_ms = 60000;
	settle(world);
	assert_int_equal(world->written, 1);
}

static void what_is_cleared_is_not_written(void **state)
{
	struct world *world = *state;

	world->wanted = 1;
	want(world, "x", NULL);
	roll_patch_clear(world->patch);
	for_ms(world->loop, 100);
	assert_int_equal(world->writes, 0);
	assert_int_equal(roll_patch_count(world->patch), 0);
}

/* Somebody else keeps undoing what we write: each round waits twice as long. */
static void a_quarrel_slows_down(void **state)
{
	struct world *world = *state;
	int64_t began = roll_clock_monotonic_ms(&roll_clock_system);

	world->wanted = 1;
	for (world->want = 1; world->want <= 5; world->want++) {
		json_t *known = known_object(world->version, 0);

		want(world, "x", known);
		json_decref(known);
		assert_true(until(world->loop, has_writes, world, PATIENCE_MS));
		settle(world);
	}
	assert_true(roll_clock_monotonic_ms(&roll_clock_system) - began >= 20 + 40 + 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(an_object_is_read_then_written_with_its_version),
		TEST(a_known_object_is_not_read),
		TEST(nothing_is_written_that_is_there_already),
		TEST(wishes_for_one_object_are_one),
		TEST(failures_are_handled),
		TEST(a_stale_version_is_read_anew),
		TEST(a_name_that_comes_while_it_is_read_is_not_lost),
		TEST(a_server_that_is_away_is_waited_for),
		TEST(what_has_no_room_is_dropped_and_told),
		TEST(the_rate_is_limited),
		TEST(urgent_ones_come_first),
		TEST(a_decision_may_take_several_turns),
		TEST(nothing_begins_without_time_left),
		TEST(what_is_cleared_is_not_written),
		TEST(a_quarrel_slows_down),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
