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
#include "tests/lib/sample.h"
#include "tests/lib/turn.h"

#define BASE "/apis/dns.networking.miloapis.com/v1alpha1"
/* More than anything takes but back-offs and quarrels. */
#define SOON_MS 2000

/* A server whose objects have a status of one value, and an owner of the queue that wants it. */
struct world {
	struct roll_loop *loop;
	struct fake_api *server;
	struct roll_api *api;
	struct roll_metrics *metrics;
	struct roll_patch *patch;
	json_t *objects; /* by name, as the server has them */
	int first;	 /* value of those that it is asked for the first time */
	int wanted;	 /* value to be written; 0: nothing to do */
	int undecided;	 /* decisions that cannot be made yet */
	int64_t left_ms;
	size_t reads, writes, decisions, written, dropped;
	int answers[8]; /* HTTP status of the next writes */
	size_t answer_count, answered;
	char bodies[4][256];
	char paths[4][160];
	int64_t at_ms[8];    /* of the writes */
	int spoilt;	     /* ... of each write to an object of that name; 0: as any */
	size_t want;	     /* writes */
	bool is_absent;	     /* at the next read, */
	const json_t *known; /* and then an event tells of it before the answer comes */
	bool forgets;	     /* takes a status and drops what is in it */
	bool tells;	     /* an event comes before each answer to a write */
	int undone;	     /* ... whose status is this, if not 0 */
	bool has_times;	     /* wanted is a condition, with the time */
	bool has_present;    /* the last write was told with what became of it */
	size_t room;	     /* no status longer than this gets in; 0: any */
	char complaint[512]; /* the last that was logged */
	bool is_long;	     /* what is wanted has more to it, which it can do without */
};

static void want(struct world *world, enum roll_patch_rank rank, const char *name,
		 const json_t *known);
static json_t *known_object(int version, int value);

static json_t *object_of(struct world *world, const char *name)
{
	if (!json_object_get(world->objects, name))
		assert_int_equal(
			json_object_set_new(world->objects, name, known_object(7, world->first)),
			0);
	return json_object_get(world->objects, name);
}

static const char *version_of(const json_t *object)
{
	return json_string_value(
		json_object_get(json_object_get(object, "metadata"), "resourceVersion"));
}

static int value_of(struct world *world, const char *name)
{
	const json_t *status = json_object_get(object_of(world, name), "status");

	return (int)json_integer_value(json_object_get(status, "v"));
}

static void change(struct world *world, const char *name, int value)
{
	uint32_t version;

	assert_int_equal(
		roll_str_u32(roll_str_c(version_of(object_of(world, name))), UINT32_MAX, &version),
		ROLL_OK);
	json_object_set_new(world->objects, name, known_object((int)version + 1, value));
}

static int answer_write(struct world *world, const char *name, const json_t *body, json_t **reply)
{
	const json_t *status = json_object_get(body, "status");
	int answer = 200;

	if (world->answered < world->answer_count)
		answer = world->answers[world->answered++];
	if (world->room && json_dumpb(status, NULL, 0, JSON_COMPACT) > world->room) {
		*reply = json_pack("{s:s, s:s, s:i}", "kind", "Status", "message",
				   "etcdserver: request is too large", "code", 500);
		return 500;
	}
	if (world->spoilt && roll_str_starts(roll_str_c(name), "spoilt"))
		answer = world->spoilt;
	if (answer == 200 && strcmp(version_of(body), version_of(object_of(world, name))) != 0)
		answer = 409;
	if (answer != 200) {
		*reply = json_pack("{s:s, s:s, s:i, s:s}", "kind", "Status", "message",
				   "as \"told\"", "code", answer, "reason", "Test");
		return answer;
	}
	change(world, name, (int)json_integer_value(json_object_get(status, "v")));
	*reply = json_deep_copy(object_of(world, name));
	if (world->forgets)
		json_object_clear(json_object_get(*reply, "status"));
	if (world->undone)
		change(world, name, world->undone);
	if (world->tells)
		want(world, ROLL_PATCH_NEWS, name, object_of(world, name));
	return 200;
}

static int on_other(void *ctx, const char *method, const char *path, json_t *body, json_t **reply)
{
	struct roll_str rest = roll_str_c(path + strlen(BASE "/namespaces/default/dnszones/"));
	struct roll_str name = roll_str_cut(&rest, '/');
	struct world *world = ctx;
	char shown[32];

	roll_str_show(name, shown, sizeof shown);
	if (strcmp(method, "GET") == 0) {
		world->reads++;
		if (world->is_absent) {
			world->is_absent = false;
			want(world, ROLL_PATCH_NEWS, shown, world->known);
			return 404;
		}
		*reply = json_incref(object_of(world, shown));
		return 200;
	}
	if (world->writes < 4) {
		char *text = json_dumps(body, JSON_SORT_KEYS | JSON_COMPACT);

		snprintf(world->bodies[world->writes], sizeof world->bodies[0], "%s", text);
		snprintf(world->paths[world->writes], sizeof world->paths[0], "%s", path);
		free(text);
	}
	if (world->writes < 8)
		world->at_ms[world->writes] = turn_elapsed_ms();
	world->writes++;
	return answer_write(world, shown, body, reply);
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
	if (world->is_long && !object->has_no_room)
		json_object_set_new(*out, "long", json_string("more than there is room for"));
	if (world->has_times)
		json_object_set_new(*out, "conditions",
				    json_pack("[{s:s, s:I}]", "type", "P", "lastTransitionTime",
					      (json_int_t)turn_elapsed_ms()));
	return ROLL_OK;
}

static void on_written(void *ctx, const struct roll_patch_object *object, const json_t *patch,
		       const json_t *present)
{
	struct world *world = ctx;

	assert_true(roll_str_eq_c(object->resource, "dnszones"));
	assert_int_equal(json_integer_value(json_object_get(patch, "v")), world->wanted);
	world->written++;
	world->has_present = json_integer_value(json_object_get(present, "v")) == world->wanted;
}

static void on_dropped(void *ctx)
{
	((struct world *)ctx)->dropped++;
}

static int64_t left_ms(void *ctx)
{
	return ((struct world *)ctx)->left_ms;
}

static void on_log(void *ctx, const char *line)
{
	struct world *world = ctx;

	if (strstr(line, "event=status-not-written"))
		snprintf(world->complaint, sizeof world->complaint, "%s", line);
}

static int setup(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct roll_cred_spec spec = {.server = NULL};
	struct roll_patch_conf conf = {
		.clock = &roll_clock_system,
		.base = BASE,
		.decide = decide,
		.left_ms = left_ms,
		.on_written = on_written,
		.on_dropped = on_dropped,
		.ctx = world,
	};
	struct roll_cred *cred;

	assert_non_null(world);
	turn_begin();
	roll_log_set_sink(on_log, world);
	world->objects = json_object();
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
	conf.loop = world->loop;
	conf.api = world->api;
	conf.metrics = world->metrics;
	assert_int_equal(roll_patch_new(&conf, &world->patch, NULL), ROLL_OK);
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
	turn_end();
	json_decref(world->objects);
	free(world);
	return 0;
}

static void want(struct world *world, enum roll_patch_rank rank, const char *name,
		 const json_t *known)
{
	roll_patch_want(world->patch, rank, "dnszones", roll_str_c("default"), roll_str_c(name),
			known, false);
}

static void want_many(struct world *world, enum roll_patch_rank rank, const char *start, int count)
{
	char name[32];

	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof name, "%s%d", start, i);
		want(world, rank, name, NULL);
	}
}

static uint32_t result(struct world *world, const char *what)
{
	char start[80];

	snprintf(start, sizeof start, "rollcall_sync_status_patches_total{result=\"%s\"}", what);
	return sample(world->metrics, start);
}

static bool is_idle(void *ctx)
{
	return roll_patch_count(((struct world *)ctx)->patch) == 0;
}

static void settle(struct world *world)
{
	assert_true(turn_until(world->loop, is_idle, world, SOON_MS));
	turn_ms(world->loop, 1);
	assert_int_equal(sample(world->metrics, "rollcall_sync_status_queue"), 0);
}

static bool has_writes(void *ctx)
{
	struct world *world = ctx;

	return world->writes >= world->want;
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
	want(world, ROLL_PATCH_BULK, "x", NULL);
	settle(world);
	assert_int_equal(world->reads, 1);
	assert_int_equal(world->writes, 1);
	assert_int_equal(world->written, 1);
	assert_true(world->has_present);
	assert_int_equal(value_of(world, "x"), 1);
	assert_string_equal(world->paths[0], BASE "/namespaces/default/dnszones/x/status");
	assert_string_equal(world->bodies[0],
			    "{\"metadata\":{\"resourceVersion\":\"7\",\"uid\":\"u\"},"
			    "\"status\":{\"v\":1}}");
	assert_non_null(
		strstr(fake_api_last_request(world->server), "application/merge-patch+json"));
	assert_int_equal(result(world, "ok"), 1);
}

static void a_known_object_is_not_read(void **state)
{
	struct world *world = *state;
	json_t *known = known_object(7, 0);

	world->wanted = 1;
	want(world, ROLL_PATCH_NEWS, "x", known);
	json_decref(known);
	settle(world);
	assert_int_equal(world->reads, 0);
	assert_int_equal(world->writes, 1);
}

/* No more than 2,000 are remembered until their turn. */
static void of_many_known_objects_the_last_are_read(void **state)
{
	struct world *world = *state;
	json_t *known = known_object(7, 1);
	char name[16];

	world->wanted = 1;
	for (int i = 0; i < 2010; i++) {
		snprintf(name, sizeof name, "n%d", i);
		want(world, ROLL_PATCH_NEWS, name, known);
	}
	json_decref(known);
	world->first = 1;
	settle(world);
	assert_int_equal(world->reads, 10);
	assert_int_equal(world->writes, 0);
}

static void nothing_is_written_that_is_there_already(void **state)
{
	struct world *world = *state;

	world->wanted = world->first = 3;
	want(world, ROLL_PATCH_BULK, "x", NULL);
	settle(world);
	assert_int_equal(world->reads, 1);
	assert_int_equal(world->writes, 0);
	assert_int_equal(result(world, "unchanged"), 1);
}

static void wishes_for_one_object_are_one(void **state)
{
	struct world *world = *state;

	world->wanted = 1;
	for (int i = 0; i < 100; i++)
		want(world, ROLL_PATCH_BULK, "x", NULL);
	assert_int_equal(roll_patch_count(world->patch), 1);
	settle(world);
	assert_int_equal(world->writes, 1);
}

static void what_the_server_drops_is_told(void **state)
{
	struct world *world = *state;

	world->wanted = 1;
	world->forgets = true;
	want(world, ROLL_PATCH_BULK, "x", NULL);
	settle(world);
	assert_int_equal(world->written, 1);
	assert_false(world->has_present);
}

/* The status code of a failed write, and whether it comes about in the end. */
static void failures_are_handled(void **state)
{
	static const struct {
		int answer;
		bool is_tried_again;
		const char *result;
	} cases[] = {
		{409, true, "conflict"}, {404, false, "gone"},	   {422, false, "refused"},
		{400, false, "refused"}, {413, true, "too_large"}, {403, true, "denied"},
		{401, true, "denied"},	 {429, true, "failed"},	   {500, true, "failed"},
		{503, true, "failed"},
	};
	struct world *world = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char name[16];
		uint32_t before = result(world, cases[i].result);

		snprintf(name, sizeof name, "n%zu", i);
		world->wanted = (int)i + 1;
		world->written = 0;
		world->answers[0] = cases[i].answer;
		world->answer_count = 1;
		world->answered = 0;
		want(world, ROLL_PATCH_BULK, name, NULL);
		settle(world);
		assert_int_equal(world->written, cases[i].is_tried_again);
		assert_int_equal(result(world, cases[i].result), before + 1);
	}
}

static void a_stale_version_is_read_anew(void **state)
{
	struct world *world = *state;
	json_t *known = known_object(6, 0);

	world->wanted = 1;
	want(world, ROLL_PATCH_NEWS, "x", known);
	json_decref(known);
	settle(world);
	assert_int_equal(world->writes, 2);
	assert_int_equal(world->reads, 1);
	assert_int_equal(value_of(world, "x"), 1);
}

/* An object that somebody else keeps writing is no reason to ask without a pause. */
static void conflict_after_conflict_slows_down(void **state)
{
	struct world *world = *state;

	world->wanted = 1;
	for (size_t i = 0; i < 8; i++)
		world->answers[i] = 409;
	world->answer_count = 8;
	want(world, ROLL_PATCH_BULK, "x", NULL);
	world->want = 4;
	assert_true(turn_until(world->loop, has_writes, world, 50));
	world->want = 9;
	assert_true(turn_until(world->loop, has_writes, world, 20000));
	assert_true(turn_elapsed_ms() > 100);
	settle(world);
	assert_int_equal(world->written, 1);
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
	want(world, ROLL_PATCH_NEWS, "x", NULL);
	assert_true(turn_until(world->loop, is_reading, world, SOON_MS));
	settle(world);
	assert_int_equal(world->written, 1);
	json_decref(known);
}

/* Our own write comes back as an event, as often before its answer as behind it. */
static void our_own_write_is_no_news(void **state)
{
	struct world *world = *state;

	world->wanted = 1;
	world->tells = true;
	want(world, ROLL_PATCH_NEWS, "x", NULL);
	turn_ms(world->loop, 60000);
	assert_int_equal(world->reads, 1);
	assert_int_equal(world->writes, 1);
	assert_int_equal(world->decisions, 2);
}

/* Somebody undoes it before the answer to it comes. */
static void what_is_undone_at_once_is_done_again(void **state)
{
	struct world *world = *state;

	world->wanted = 1;
	world->tells = true;
	world->undone = 9;
	want(world, ROLL_PATCH_NEWS, "x", NULL);
	world->want = 1;
	assert_true(turn_until(world->loop, has_writes, world, SOON_MS));
	world->undone = 0;
	settle(world);
	turn_ms(world->loop, 1000);
	assert_int_equal(value_of(world, "x"), 1);
}

static void a_server_that_is_away_is_waited_for(void **state)
{
	struct world *world = *state;

	world->wanted = 1;
	fake_api_stop(world->server);
	want(world, ROLL_PATCH_BULK, "x", NULL);
	turn_ms(world->loop, 3600000);
	assert_int_equal(world->written, 0);
	/* Once a minute at least half of the time. */
	assert_in_range(result(world, "failed"), 0, 299);
	assert_true(fake_api_resume(world->server));
	assert_true(turn_until(world->loop, is_idle, world, 61000));
	assert_int_equal(world->written, 1);
}

/* A webhook that denies, a role that lacks in one namespace: the others get theirs. */
static void what_cannot_be_written_is_in_nobodys_way(void **state)
{
	static const int answers[] = {403, 500};
	struct world *world = *state;

	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		json_t *known = known_object(7, 0);

		world->wanted = (int)i + 1;
		world->spoilt = answers[i];
		world->written = 0;
		want(world, ROLL_PATCH_HAND_OVER, "spoilt0", known);
		want(world, ROLL_PATCH_HAND_OVER, "spoilt1", known);
		want(world, ROLL_PATCH_HAND_OVER, "spoilt2", known);
		want(world, ROLL_PATCH_HAND_OVER, "spoilt3", known);
		json_decref(known);
		turn_ms(world->loop, 30000);
		want_many(world, ROLL_PATCH_BULK, "n", 100);
		turn_ms(world->loop, 3000);
		assert_int_equal(world->written, 100);
	}
	/* These are tried again, ever less often. */
	turn_ms(world->loop, 600000);
	world->writes = 0;
	turn_ms(world->loop, 3600000);
	assert_in_range(world->writes, 4 * 55, 4 * 150);
	world->spoilt = 0;
	assert_true(turn_until(world->loop, is_idle, world, 121000));
	assert_int_equal(value_of(world, "spoilt0"), 2);
}

static void what_is_too_large_is_written_in_short(void **state)
{
	struct world *world = *state;
	uint32_t failed;

	world->wanted = 1;
	world->is_long = true;
	world->room = 20;
	want_many(world, ROLL_PATCH_BULK, "n", 3);
	settle(world);
	assert_int_equal(value_of(world, "n2"), 1);
	assert_int_equal(result(world, "too_large"), 3);
	assert_int_equal(result(world, "ok"), 3);
	/* Nobody else had to wait for it, and there is no next try as long as it does not change.
	 */
	assert_in_range(turn_elapsed_ms(), 0, 100);
	turn_ms(world->loop, 3600000);
	assert_int_equal(world->writes, 6);
	/* Short is not short enough: as anything that fails. */
	world->room = 1;
	world->wanted = 2;
	want(world, ROLL_PATCH_BULK, "n0", NULL);
	turn_ms(world->loop, 600000);
	failed = result(world, "failed");
	assert_in_range(failed, 10, 60);
	/* Twice a minute in the end, as the jitter has it. */
	turn_ms(world->loop, 3600000);
	assert_in_range(result(world, "failed") - failed, 75, 180);
	assert_int_equal(result(world, "too_large"), 4);
}

static void what_has_no_room_is_dropped_and_told(void **state)
{
	struct world *world = *state;

	world->wanted = world->first = 1;
	want_many(world, ROLL_PATCH_BULK, "n", 20015);
	assert_int_equal(roll_patch_count(world->patch), 20000);
	assert_int_equal(world->dropped, 15);
	turn_ms(world->loop, 1000);
	want(world, ROLL_PATCH_BULK, "later", NULL);
	assert_int_equal(world->dropped, 15);
}

/* What the server says has been made fit for a log once, and is not a second time. */
static void what_the_server_says_is_logged(void **state)
{
	struct world *world = *state;

	world->wanted = 1;
	world->answers[0] = 422;
	world->answer_count = 1;
	want(world, ROLL_PATCH_BULK, "x", NULL);
	settle(world);
	assert_non_null(strstr(world->complaint, "event=status-not-written what=write "
						 "object=\"dnszones/default/x\" "
						 "reason=\"422: as \\x22told\\x22\""));
}

/* Not all are read first, to be written from what has long become stale. */
static void what_is_read_is_written_before_the_next_is_read(void **state)
{
	struct world *world = *state;

	world->wanted = 1;
	want_many(world, ROLL_PATCH_BULK, "n", 1000);
	turn_ms(world->loop, 1000);
	assert_in_range(world->reads - world->writes, 0, 8);
}

static void the_rate_is_limited(void **state)
{
	struct world *world = *state;

	world->wanted = 1;
	want_many(world, ROLL_PATCH_BULK, "n", 1000);
	turn_ms(world->loop, 10);
	assert_in_range(world->reads + world->writes, 95, 105);
	turn_ms(world->loop, 3000);
	assert_in_range(world->reads + world->writes, 370, 405);
}

static void a_few_requests_at_a_time_are_on_their_way(void **state)
{
	struct world *world = *state;

	fake_api_script(world->server, "GET", NULL, 1000);
	want_many(world, ROLL_PATCH_BULK, "n", 100);
	turn_ms(world->loop, 10000);
	assert_int_equal(fake_api_counts(world->server)->requests, 4);
}

static void a_server_that_says_when_is_heeded(void **state)
{
	static const char busy[] = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 20\r\n"
				   "Content-Length: 0\r\n\r\n";
	struct world *world = *state;

	world->wanted = 1;
	fake_api_script(world->server, "GET", busy, 1);
	want(world, ROLL_PATCH_BULK, "x", NULL);
	turn_ms(world->loop, 19900);
	assert_int_equal(world->reads, 0);
	settle(world);
	assert_int_equal(world->written, 1);
}

/* However much there is to do, who wins or loses a name by another's change learns it at once. */
static void hand_overs_come_before_news_and_news_before_the_rest(void **state)
{
	static const struct {
		enum roll_patch_rank rank;
		const char *name;
	} cases[] = {{ROLL_PATCH_HAND_OVER, "/hand-over/"}, {ROLL_PATCH_NEWS, "/news/"}};
	struct world *world = *state;

	world->wanted = 1;
	want_many(world, ROLL_PATCH_BULK, "n", 10000);
	turn_ms(world->loop, 5000);
	for (size_t i = 0; i < 2; i++) {
		/* In the order of the ranks, whatever the order of the wishes. */
		want(world, ROLL_PATCH_NEWS, "news", NULL);
		want(world, ROLL_PATCH_HAND_OVER, "hand-over", NULL);
	}
	/* One that waits already moves up. */
	want(world, ROLL_PATCH_HAND_OVER, "n9999", NULL);
	world->writes = 0;
	world->want = 3;
	assert_true(turn_until(world->loop, has_writes, world, 200));
	for (size_t i = 0; i < 2; i++) {
		char end[32];
		size_t found = 0;

		snprintf(end, sizeof end, "%sstatus", cases[i].name);
		while (found < 4 && !strstr(world->paths[found], end))
			found++;
		assert_in_range(found, 0, 3);
	}
}

/* Somebody makes and deletes objects as fast as they can, so that names change hands for ever. */
static void hand_overs_without_end_keep_nobody_waiting(void **state)
{
	struct world *world = *state;

	world->wanted = 1;
	want_many(world, ROLL_PATCH_HAND_OVER, "n", 5000);
	turn_ms(world->loop, 2000);
	want(world, ROLL_PATCH_NEWS, "news", NULL);
	want(world, ROLL_PATCH_BULK, "bulk", NULL);
	turn_ms(world->loop, 1000);
	assert_in_range(roll_patch_count(world->patch), 4000, 5000);
	assert_int_equal(value_of(world, "news"), 1);
	assert_int_equal(value_of(world, "bulk"), 1);
}

static void a_decision_may_take_several_turns(void **state)
{
	struct world *world = *state;

	world->wanted = 1;
	world->undecided = 5;
	want(world, ROLL_PATCH_BULK, "x", NULL);
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
	want(world, ROLL_PATCH_BULK, "x", NULL);
	turn_ms(world->loop, 60000);
	assert_int_equal(world->reads + world->writes, 0);
	world->left_ms = 60000;
	settle(world);
	assert_int_equal(world->written, 1);
}

static bool is_writing(void *ctx)
{
	const struct world *world = ctx;

	return world->decisions > 0;
}

/* A write that is not answered is given up before another replica may write. */
static void a_write_ends_with_the_time_that_is_left(void **state)
{
	struct world *world = *state;
	json_t *known = known_object(7, 0);

	world->wanted = 1;
	world->left_ms = 5000;
	fake_api_script(world->server, "PATCH", NULL, 1);
	want(world, ROLL_PATCH_NEWS, "x", known);
	json_decref(known);
	assert_true(turn_until(world->loop, is_writing, world, SOON_MS));
	turn_ms(world->loop, 4900);
	assert_int_equal(result(world, "failed"), 0);
	turn_ms(world->loop, 200);
	assert_int_equal(result(world, "failed"), 1);
}

static void what_is_cleared_is_not_written(void **state)
{
	struct world *world = *state;

	world->wanted = 1;
	want(world, ROLL_PATCH_BULK, "x", NULL);
	roll_patch_clear(world->patch);
	turn_ms(world->loop, 60000);
	assert_int_equal(world->writes, 0);
	assert_int_equal(roll_patch_count(world->patch), 0);
}

/* Two changes of one object in a row: the second write waits a moment, and says the latest. */
static void writes_to_one_object_are_spaced(void **state)
{
	struct world *world = *state;

	world->wanted = 1;
	want(world, ROLL_PATCH_NEWS, "x", NULL);
	settle(world);
	for (int i = 2; i < 6; i++) {
		world->wanted = i;
		want(world, ROLL_PATCH_NEWS, "x", NULL);
		turn_ms(world->loop, 20);
	}
	world->want = 2;
	assert_true(turn_until(world->loop, has_writes, world, SOON_MS));
	settle(world);
	assert_int_equal(world->writes, 2);
	assert_in_range(world->at_ms[1] - world->at_ms[0], 200, 300);
	assert_int_equal(value_of(world, "x"), 5);
}

/* Somebody else keeps undoing what we write: each round waits twice as long, five minutes at most.
 */
static void a_quarrel_slows_down(void **state)
{
	struct world *world = *state;

	world->wanted = 1;
	world->tells = true;
	world->has_times = true;
	world->undone = 9;
	want(world, ROLL_PATCH_NEWS, "x", NULL);
	world->want = 5;
	assert_true(turn_until(world->loop, has_writes, world, 10000));
	for (size_t i = 0; i < 4; i++)
		assert_in_range(world->at_ms[i + 1] - world->at_ms[i], 200 << i, (200 << i) + 100);
	turn_ms(world->loop, 3600000);
	assert_in_range(world->writes, 15, 25);
}

/* One that takes its time to undo it is slowed down as well. */
static void a_quarrel_with_a_slow_one_slows_down_too(void **state)
{
	struct world *world = *state;
	size_t writes = 0;

	world->wanted = 1;
	want(world, ROLL_PATCH_NEWS, "x", NULL);
	for (int i = 0; i < 3600; i++) {
		turn_ms(world->loop, 1000);
		if (world->writes == writes)
			continue;
		writes = world->writes;
		change(world, "x", 9);
		want(world, ROLL_PATCH_NEWS, "x", object_of(world, "x"));
	}
	assert_in_range(world->writes, 15, 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(an_object_is_read_then_written_with_its_version),
		TEST(a_known_object_is_not_read),
		TEST(of_many_known_objects_the_last_are_read),
		TEST(nothing_is_written_that_is_there_already),
		TEST(wishes_for_one_object_are_one),
		TEST(what_the_server_drops_is_told),
		TEST(failures_are_handled),
		TEST(a_stale_version_is_read_anew),
		TEST(conflict_after_conflict_slows_down),
		TEST(a_name_that_comes_while_it_is_read_is_not_lost),
		TEST(our_own_write_is_no_news),
		TEST(what_is_undone_at_once_is_done_again),
		TEST(a_server_that_is_away_is_waited_for),
		TEST(what_cannot_be_written_is_in_nobodys_way),
		TEST(what_is_too_large_is_written_in_short),
		TEST(what_the_server_says_is_logged),
		TEST(what_has_no_room_is_dropped_and_told),
		TEST(what_is_read_is_written_before_the_next_is_read),
		TEST(the_rate_is_limited),
		TEST(a_few_requests_at_a_time_are_on_their_way),
		TEST(a_server_that_says_when_is_heeded),
		TEST(hand_overs_come_before_news_and_news_before_the_rest),
		TEST(hand_overs_without_end_keep_nobody_waiting),
		TEST(a_decision_may_take_several_turns),
		TEST(nothing_begins_without_time_left),
		TEST(a_write_ends_with_the_time_that_is_left),
		TEST(what_is_cleared_is_not_written),
		TEST(writes_to_one_object_are_spaced),
		TEST(a_quarrel_slows_down),
		TEST(a_quarrel_with_a_slow_one_slows_down_too),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
