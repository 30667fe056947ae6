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
#include "source/kube.h"
#include "sync/engine.h"
#include "sync/publish.h"
#include "sync/report.h"
#include "tests/lib/fake_api.h"
#include "tests/lib/quiet.h"
#include "tests/lib/tempview.h"
#include "tests/lib/turn.h"

/*
 * All of rollcall-sync that stands between an API server and the status of its objects, on a clock
 * that is turned: what is written, when, and above all what is not.
 */

#define BASE "/apis/dns.networking.miloapis.com/v1alpha1/namespaces/default/"
#define SETTLE_MS 5000
#define HOUR_MS 3600000

struct world {
	struct roll_loop *loop;
	struct fake_api *server;
	size_t room; /* no request longer than this gets in; 0: any */
	size_t patches, events;
	struct tempview tv;
	struct roll_engine *engine;
	struct roll_api *api;
	struct roll_publish *publish;
	struct roll_events *told;
	struct roll_kube *kube;
	struct roll_guard_conf guard;
};

/* --- the server --- */

/* RFC 7396. */
static json_t *merged(const json_t *target, json_t *patch)
{
	json_t *out = json_is_object(target) ? json_deep_copy(target) : json_object();
	const char *key;
	json_t *value;

	if (!json_is_object(patch)) {
		json_decref(out);
		return json_incref(patch);
	}
	json_object_foreach (patch, key, value) {
		if (json_is_null(value))
			json_object_del(out, key);
		else
			json_object_set_new(out, key, merged(json_object_get(out, key), value));
	}
	return out;
}

static json_t *refusal(int code)
{
	return json_pack("{s:s,s:s,s:i}", "kind", "Status", "reason", "Test", "code", code);
}

static int on_other(void *ctx, const char *method, const char *path, json_t *body, json_t **reply)
{
	struct world *world = ctx;
	struct roll_str rest = roll_str_c(path), resource, name;
	enum fake_kind kind;
	const json_t *object;
	char text[100];

	if (strstr(path, "events.k8s.io")) {
		world->events++;
		*reply = json_incref(body);
		return strcmp(method, "POST") == 0 ? 201 : 200;
	}
	if (!roll_str_starts(rest, BASE)) {
		*reply = refusal(404);
		return 404;
	}
	rest = roll_str_n(rest.p + strlen(BASE), rest.n - strlen(BASE));
	resource = roll_str_cut(&rest, '/');
	name = roll_str_cut(&rest, '/');
	rest = name;
	name = roll_str_cut(&rest, '?');
	roll_str_show(name, text, sizeof text);
	kind = roll_str_eq_c(resource, "dnszones") ? FAKE_ZONE : FAKE_RECORDSET;
	object = fake_api_get(world->server, kind, "default", text);
	if (!object) {
		*reply = refusal(404);
		return 404;
	}
	if (strcmp(method, "PATCH") == 0) {
		const json_t *version =
			json_object_get(json_object_get(body, "metadata"), "resourceVersion");

		world->patches++;
		if (world->room && json_dumpb(body, NULL, 0, JSON_COMPACT) > world->room) {
			*reply = refusal(413);
			return 413;
		}
		if (version &&
		    !json_equal(version, json_object_get(json_object_get(object, "metadata"),
							 "resourceVersion"))) {
			*reply = refusal(409);
			return 409;
		}
		fake_api_set_status(
			world->server, kind, "default", text,
			merged(json_object_get(object, "status"), json_object_get(body, "status")));
		object = fake_api_get(world->server, kind, "default", text);
	}
	*reply = json_deep_copy(object);
	return 200;
}

static void put_set(struct world *world, const char *name, const char *owner, const char *address)
{
	fake_api_put(world->server, FAKE_RECORDSET, "default", name,
		     json_pack("{s:{s:s},s:s,s:[{s:s,s:{s:s}}]}", "dnsZoneRef", "name", "z",
			       "recordType", "A", "records", "name", owner, "a", "content",
			       address));
}

/* A zone with two records, and one that comes too late for one of the names. */
static void put_all(struct world *world)
{
	fake_api_put(world->server, FAKE_CLASS, NULL, "c",
		     json_pack("{s:s,s:{s:s,s:{s:[s]}}}", "controllerName", "ours",
			       "nameServerPolicy", "mode", "Static", "static", "servers",
			       "ns1.example.net"));
	fake_api_put(world->server, FAKE_ZONE, "default", "z",
		     json_pack("{s:s,s:s}", "domainName", "example.com", "dnsZoneClassName", "c"));
	put_set(world, "www", "www", "192.0.2.1");
	put_set(world, "api", "api", "192.0.2.2");
	put_set(world, "www-too", "www", "192.0.2.3");
}

static const json_t *status_of(struct world *world, enum fake_kind kind, const char *name)
{
	return json_object_get(fake_api_get(world->server, kind, "default", name), "status");
}

/* "STATUS/REASON" of Programmed. */
static void assert_programmed(struct world *world, enum fake_kind kind, const char *name,
			      const char *expected)
{
	const json_t *status = status_of(world, kind, name);
	struct roll_str value = roll_report_condition(status, "Programmed", "status");
	struct roll_str reason = roll_report_condition(status, "Programmed", "reason");
	char text[100];

	snprintf(text, sizeof text, ROLL_STR_FMT "/" ROLL_STR_FMT, ROLL_STR_ARG(value),
		 ROLL_STR_ARG(reason));
	assert_string_equal(text, expected);
}

static json_int_t serial_of(struct world *world)
{
	return json_integer_value(json_object_get(status_of(world, FAKE_ZONE, "z"), "serial"));
}

/* --- the program --- */

static enum roll_status position(void *ctx, struct roll_str what, struct roll_buf *out)
{
	return roll_engine_position(((struct world *)ctx)->engine, what, out);
}

static bool raise_serial(void *ctx, struct roll_str zone_key)
{
	return roll_engine_raise_serial(((struct world *)ctx)->engine, zone_key);
}

static void lead(struct world *world, bool is_leader)
{
	roll_engine_publish(world->engine, is_leader);
	roll_publish_lead(world->publish, is_leader);
}

static void begin(struct world *world)
{
	struct roll_cred_spec spec = {.server = strdup(fake_api_url(world->server))};
	struct roll_engine_conf engine = {
		.is_cluster = true, .guard = &world->guard, .clock = &roll_clock_system};
	struct roll_events_conf events = {
		.loop = world->loop, .instance = "pod", .clock = &roll_clock_system};
	struct roll_publish_conf publish = {.loop = world->loop,
					    .clock = &roll_clock_system,
					    .raise_serial = raise_serial,
					    .ctx = world};
	struct roll_kube_conf kube = {.loop = world->loop,
				      .clock = &roll_clock_system,
				      .position = position,
				      .ctx = world};
	struct roll_cred *cred;

	tempview_open(&world->tv);
	engine.writer = publish.writer = world->tv.writer;
	assert_int_equal(roll_engine_new(&engine, &world->engine, NULL), ROLL_OK);
	assert_int_equal(roll_cred_new(world->loop, &roll_clock_system, &spec, &cred, NULL),
			 ROLL_OK);
	assert_int_equal(roll_api_new(world->loop, cred, &world->api, NULL), ROLL_OK);
	events.api = publish.api = kube.api = world->api;
	assert_int_equal(roll_events_new(&events, &world->told, NULL), ROLL_OK);
	publish.events = world->told;
	publish.sink = roll_engine_sink(world->engine);
	assert_int_equal(roll_publish_new(&publish, &world->publish, NULL), ROLL_OK);
	kube.sink = roll_publish_sink(world->publish);
	assert_int_equal(roll_kube_new(&kube, &world->kube, NULL), ROLL_OK);
	roll_kube_start(world->kube);
}

static void end(struct world *world)
{
	roll_kube_free(world->kube);
	roll_publish_free(world->publish);
	roll_events_free(world->told);
	roll_api_free(world->api);
	roll_engine_free(world->engine);
	tempview_close(&world->tv);
}

/* With a new view, as a pod has whose view is in memory. */
static void begin_anew(struct world *world)
{
	tempview_fini(&world->tv);
	tempview_init(&world->tv);
	begin(world);
}

static uint64_t generation(struct world *world)
{
	struct roll_txn *txn = tempview_begin(&world->tv);
	uint64_t n = roll_snap_head(roll_txn_snap(txn))->generation;

	roll_txn_abort(txn);
	return n;
}

static int setup(void **state)
{
	struct world *world = calloc(1, sizeof *world);

	assert_non_null(world);
	turn_begin();
	assert_int_equal(roll_loop_new(NULL, &world->loop, NULL), ROLL_OK);
	world->server = fake_api_new(roll_loop_base(world->loop));
	assert_non_null(world->server);
	fake_api_set_other(world->server, on_other, world);
	tempview_init(&world->tv);
	put_all(world);
	begin(world);
	lead(world, true);
	turn_ms(world->loop, SETTLE_MS);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	end(world);
	tempview_fini(&world->tv);
	fake_api_free(world->server);
	roll_loop_free(world->loop);
	turn_end();
	free(world);
	return 0;
}

static bool is_handed_over(void *ctx)
{
	return roll_str_eq_c(roll_report_condition(status_of(ctx, FAKE_RECORDSET, "www-too"),
						   "Programmed", "status"),
			     "True");
}

/* --- tests --- */

static void every_object_is_told_once(void **state)
{
	struct world *world = *state;

	assert_programmed(world, FAKE_ZONE, "z", "True/Programmed");
	assert_programmed(world, FAKE_RECORDSET, "www", "True/Programmed");
	assert_programmed(world, FAKE_RECORDSET, "api", "True/Programmed");
	assert_programmed(world, FAKE_RECORDSET, "www-too", "False/NotOwner");
	assert_int_equal(world->patches, 4);
	assert_int_equal(world->events, 4);
	assert_true(serial_of(world) > 0);
}

static void an_hour_of_restarts_writes_nothing(void **state)
{
	struct world *world = *state;
	size_t patches = world->patches, events = world->events;
	json_int_t serial = serial_of(world);

	for (int i = 0; i < 12; i++) {
		end(world);
		if (i % 2)
			begin_anew(world);
		else
			begin(world);
		/* Sooner or later than it has read everything. */
		turn_ms(world->loop, i * 40);
		lead(world, true);
		turn_ms(world->loop, HOUR_MS / 12);
		assert_int_equal(world->patches, patches);
	}
	assert_int_equal(world->events, events);
	assert_int_equal(serial_of(world), serial);
}

static void what_is_written_commits_nothing(void **state)
{
	struct world *world = *state;
	uint64_t before;

	put_set(world, "new", "new", "192.0.2.4");
	turn_ms(world->loop, 60000);
	before = generation(world);
	/* Somebody writes a condition of his own to each; we have nothing to say to that. */
	for (int i = 0; i < 5; i++) {
		static const char *const names[] = {"www", "api", "www-too", "new"};
		size_t patches = world->patches;

		for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
			json_t *status = json_deep_copy(status_of(world, FAKE_RECORDSET, names[k]));

			json_array_append_new(json_object_get(status, "conditions"),
					      json_pack("{s:s,s:s,s:i}", "type", "Theirs", "status",
							"True", "n", i));
			fake_api_set_status(world->server, FAKE_RECORDSET, "default", names[k],
					    status);
		}
		turn_ms(world->loop, 300);
		assert_int_equal(world->patches, patches);
	}
	/* But for the time of confirmation, and positions with it. */
	assert_true(generation(world) <= before + 1);
}

static void the_next_is_told_within_a_second(void **state)
{
	struct world *world = *state;
	int64_t began;

	turn_ms(world->loop, 60000);
	began = turn_elapsed_ms();
	fake_api_delete(world->server, FAKE_RECORDSET, "default", "www");
	assert_true(turn_until(world->loop, is_handed_over, world, 1000));
	assert_true(turn_elapsed_ms() - began < 1000);
	turn_ms(world->loop, SETTLE_MS);
	assert_programmed(world, FAKE_RECORDSET, "www-too", "True/Programmed");
}

static void who_does_not_lead_writes_nothing(void **state)
{
	struct world *world = *state;
	size_t patches;

	/* In the middle of it. */
	for (int i = 0; i < 300; i++) {
		char name[16];

		snprintf(name, sizeof name, "n%d", i);
		put_set(world, name, name, "192.0.2.9");
	}
	turn_ms(world->loop, 500);
	lead(world, false);
	patches = world->patches;
	assert_true(patches > 4 && patches < 300);
	world->events = 0;
	turn_ms(world->loop, HOUR_MS);
	assert_int_equal(world->patches, patches);
	assert_int_equal(world->events, 0);
	/* What was left out is found, and nothing is written twice. */
	lead(world, true);
	turn_ms(world->loop, 120000);
	assert_programmed(world, FAKE_RECORDSET, "n299", "True/Programmed");
	assert_true(world->patches > 300);
	patches = world->patches;
	turn_ms(world->loop, HOUR_MS);
	assert_int_equal(world->patches, patches);
}

/* recordCount and serial are those of what is served. */
static void a_new_view_without_what_went_meanwhile_has_a_later_serial(void **state)
{
	struct world *world = *state;
	json_int_t serial = serial_of(world);

	end(world);
	fake_api_delete(world->server, FAKE_RECORDSET, "default", "api");
	begin_anew(world);
	lead(world, true);
	turn_ms(world->loop, SETTLE_MS);
	assert_true(serial_of(world) > serial);
	assert_int_equal(json_integer_value(
				 json_object_get(status_of(world, FAKE_ZONE, "z"), "recordCount")),
			 2);
	/* From then on it is the serial of that. */
	serial = serial_of(world);
	end(world);
	begin_anew(world);
	lead(world, true);
	turn_ms(world->loop, SETTLE_MS);
	assert_int_equal(serial_of(world), serial);
}

/* A record set that fills what an object may have: its names are told as soon as there is room. */
static void conditions_are_told_where_there_is_no_room_for_names(void **state)
{
	struct world *world = *state;
	const json_t *status;

	world->room = 800;
	fake_api_put(world->server, FAKE_RECORDSET, "default", "many",
		     json_pack("{s:{s:s},s:s,s:[{s:s,s:{s:s}},{s:s,s:{s:s}},{s:s,s:{s:s}}]}",
			       "dnsZoneRef", "name", "z", "recordType", "A", "records", "name",
			       "m1", "a", "content", "192.0.2.9", "name", "m2", "a", "content",
			       "192.0.2.9", "name", "m3", "a", "content", "192.0.2.9"));
	turn_ms(world->loop, SETTLE_MS);
	assert_programmed(world, FAKE_RECORDSET, "many", "True/Programmed");
	status = status_of(world, FAKE_RECORDSET, "many");
	assert_int_equal(json_array_size(json_object_get(status, "recordSets")), 0);
	world->room = 0;
	put_set(world, "many", "m1", "192.0.2.8");
	turn_ms(world->loop, SETTLE_MS);
	status = status_of(world, FAKE_RECORDSET, "many");
	assert_int_equal(json_array_size(json_object_get(status, "recordSets")), 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(every_object_is_told_once),
		TEST(an_hour_of_restarts_writes_nothing),
		TEST(what_is_written_commits_nothing),
		TEST(the_next_is_told_within_a_second),
		TEST(who_does_not_lead_writes_nothing),
		TEST(a_new_view_without_what_went_meanwhile_has_a_later_serial),
		TEST(conditions_are_told_where_there_is_no_room_for_names),
#undef TEST
	};

	quiet();
	return cmocka_run_group_tests_name("publish", tests, NULL, NULL);
}
