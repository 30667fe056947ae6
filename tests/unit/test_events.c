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
#include "sync/events_state.h"
#include "tests/lib/fake_api.h"
#include "tests/lib/sample.h"
#include "tests/lib/turn.h"

#define BASE "/apis/events.k8s.io/v1/namespaces/"
#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define RECORDED 64

struct request {
	char method[8];
	char path[640];
	json_t *body;
	int64_t at_ms;
};

/* How the server answers. */
struct answer {
	int code;
	const char *reason, *cause;
	int retry_after_s;
};

struct world {
	struct roll_loop *loop;
	struct fake_api *server;
	struct roll_api *api;
	struct roll_metrics *metrics;
	struct roll_events *events;
	struct request requests[RECORDED]; /* the first ones */
	size_t count, patches;		   /* of all */
	struct answer answers[16];	   /* of the next requests; 201 when there is none left */
	size_t answer_count, answered;
	struct answer always;		    /* code 0: as above */
	const char *ailing;		    /* requests with this in their path get 500 */
	const struct roll_event *meanwhile; /* is noted before the first answer */
	char logged[1024];		    /* the last warning */
	size_t warnings;
};

static void on_log(void *ctx, const char *line)
{
	struct world *world = ctx;

	if (!strstr(line, "level=warn"))
		return;
	world->warnings++;
	snprintf(world->logged, sizeof world->logged, "%s", line);
}

static int on_other(void *ctx, const char *method, const char *path, json_t *body, json_t **reply)
{
	struct world *world = ctx;
	struct answer answer = {201, "", NULL, 0};
	json_t *details;

	if (world->count < RECORDED) {
		struct request *request = &world->requests[world->count];

		json_decref(request->body);
		snprintf(request->method, sizeof request->method, "%s", method);
		snprintf(request->path, sizeof request->path, "%s", path);
		request->body = json_incref(body);
		request->at_ms = turn_elapsed_ms();
	}
	world->count++;
	world->patches += strcmp(method, "PATCH") == 0;
	if (world->meanwhile)
		roll_events_note(world->events, world->meanwhile);
	world->meanwhile = NULL;
	if (world->always.code)
		answer = world->always;
	else if (world->answered < world->answer_count)
		answer = world->answers[world->answered++];
	if (world->ailing && strstr(path, world->ailing))
		answer.code = 500;
	if (answer.code < 300) {
		*reply = json_incref(body);
		return strcmp(method, "POST") == 0 ? answer.code : 200;
	}
	details = json_pack("{s:[{s:s*}]}", "causes", "reason", answer.cause);
	if (answer.retry_after_s)
		json_object_set_new(details, "retryAfterSeconds",
				    json_integer(answer.retry_after_s));
	*reply = json_pack("{s:s, s:s, s:s, s:i, s:s, s:o}", "kind", "Status", "status", "Failure",
			   "message", "as told", "code", answer.code, "reason",
			   answer.reason ? answer.reason : "", "details", details);
	return answer.code;
}

static enum roll_status open_events(struct world *world, const char *instance)
{
	struct roll_events_conf conf = {
		.loop = world->loop,
		.api = world->api,
		.instance = instance,
		.clock = &roll_clock_system,
		.metrics = world->metrics,
	};

	roll_events_free(world->events);
	world->events = NULL;
	return roll_events_new(&conf, &world->events, NULL);
}

static int setup(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct roll_cred_spec spec = {.server = NULL};
	struct roll_cred *cred;

	assert_non_null(world);
	turn_begin();
	roll_log_set_sink(on_log, world);
	assert_int_equal(roll_loop_new(NULL, &world->loop, NULL), ROLL_OK);
	world->server = fake_api_new(roll_loop_base(world->loop));
	assert_non_null(world->server);
	fake_api_set_other(world->server, on_other, world);
	spec.server = strdup(fake_api_url(world->server));
	assert_int_equal(roll_cred_new(world->loop, &roll_clock_system, &spec, &cred, NULL),
			 ROLL_OK);
	assert_int_equal(roll_api_new(world->loop, cred, &world->api, NULL), ROLL_OK);
	world->metrics = roll_metrics_new();
	assert_int_equal(open_events(world, "pod-1"), ROLL_OK);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	roll_events_free(world->events);
	roll_api_free(world->api);
	fake_api_free(world->server);
	roll_loop_free(world->loop);
	roll_metrics_free(world->metrics);
	roll_log_set_sink(NULL, NULL);
	for (size_t i = 0; i < RECORDED; i++)
		json_decref(world->requests[i].body);
	free(world);
	turn_end();
	return 0;
}

/* --- events to note --- */

static const struct roll_event plain = {
	.kind = ROLL_KIND_ZONE,
	.ns = {"team-a", 6},
	.name = {"web", 3},
	.uid = {"u-1", 3},
	.reason = ROLL_EVENT_ZONE_PROGRAMMED,
	.note = "Default records ensured",
};

static void note(struct world *world, const struct roll_event *event)
{
	roll_events_note(world->events, event);
}

static void note_name(struct world *world, const char *name)
{
	struct roll_event event = plain;

	event.name = roll_str_c(name);
	note(world, &event);
}

static void note_text(struct world *world, const char *text)
{
	struct roll_event event = plain;

	event.note = text;
	note(world, &event);
}

static void note_number(struct world *world, const char *fmt_name, size_t number)
{
	char name[64];

	snprintf(name, sizeof name, "%s-%zu", fmt_name, number);
	note_name(world, name);
}

static void note_numbered_text(struct world *world, size_t number)
{
	char text[32];

	snprintf(text, sizeof text, "text %zu", number);
	note_text(world, text);
}

/* --- what was asked for --- */

/* What is due now happens. */
static void settle(struct world *world)
{
	turn_ms(world->loop, 20);
}

static const struct request *request_at(const struct world *world, size_t i)
{
	assert_true(i < world->count && i < RECORDED);
	return &world->requests[i];
}

static const char *name_in(const struct request *request)
{
	return roll_json_str(roll_json_object(request->body, "metadata"), "name").p;
}

static const char *text_in(const struct request *request, const char *key)
{
	return roll_json_str(request->body, key).p;
}

static json_int_t series_count(const struct request *request)
{
	return json_integer_value(
		json_object_get(roll_json_object(request->body, "series"), "count"));
}

static void assert_body(const struct request *request, const char *want)
{
	struct roll_buf text;

	roll_buf_init(&text, 1u << 16);
	assert_int_equal(roll_json_print(request->body, &text), ROLL_OK);
	assert_string_equal(text.p, want);
	roll_buf_fini(&text);
}

static size_t count_of(const struct world *world, const char *method)
{
	size_t count = 0;

	for (size_t i = 0; i < world->count && i < RECORDED; i++)
		count += strcmp(world->requests[i].method, method) == 0;
	return count;
}

static uint32_t result(struct world *world, const char *what)
{
	char start[80];

	snprintf(start, sizeof start, "rollcall_sync_events_total{result=\"%s\"}", what);
	return sample(world->metrics, start);
}

static void print_now(char out[ROLL_TIME_MICRO_SIZE])
{
	roll_time_print_micro(roll_clock_wall_ms(&roll_clock_system), out);
}

/* --- what is sent --- */

static void an_event_says_all_that_the_server_wants(void **state)
{
	struct world *world = *state;
	char want[1024], now[ROLL_TIME_MICRO_SIZE];

	turn_ms(world->loop, 5 * SECOND);
	note(world, &plain);
	print_now(now);
	snprintf(want, sizeof want,
		 "{\"action\":\"Programming\",\"apiVersion\":\"events.k8s.io/v1\","
		 "\"eventTime\":\"%s\",\"kind\":\"Event\","
		 "\"metadata\":{\"name\":\"web.%016llx\",\"namespace\":\"team-a\"},"
		 "\"note\":\"Default records ensured\",\"reason\":\"ZoneProgrammed\","
		 "\"regarding\":{\"apiVersion\":\"dns.networking.miloapis.com/v1alpha1\","
		 "\"kind\":\"DNSZone\",\"name\":\"web\",\"namespace\":\"team-a\",\"uid\":\"u-1\"},"
		 "\"reportingController\":\"dns.networking.miloapis.com/rollcall\","
		 "\"reportingInstance\":\"pod-1\",\"type\":\"Normal\"}",
		 now, (unsigned long long)roll_clock_wall_ms(&roll_clock_system) * 1000000);
	settle(world);
	assert_int_equal(world->count, 1);
	assert_string_equal(request_at(world, 0)->method, "POST");
	assert_string_equal(request_at(world, 0)->path, BASE "team-a/events");
	assert_non_null(
		strstr(fake_api_last_request(world->server), "Content-Type: application/json\r\n"));
	assert_body(request_at(world, 0), want);
	assert_int_equal(roll_events_pending(world->events), 0);
	assert_int_equal(result(world, "ok"), 1);
}

static void a_warning_about_a_record_set_names_its_zone(void **state)
{
	struct world *world = *state;
	struct roll_event event = plain;

	event.kind = ROLL_KIND_RECORDSET;
	event.zone_name = roll_str_c("example-com");
	event.zone_uid = roll_str_c("u-zone");
	event.reason = ROLL_EVENT_CONFLICT;
	event.is_warning = true;
	note(world, &event);
	event.zone_uid = roll_str_c("");
	note(world, &event);
	turn_ms(world->loop, SECOND);
	assert_int_equal(world->count, 2);
	assert_string_equal(text_in(request_at(world, 0), "type"), "Warning");
	assert_string_equal(text_in(request_at(world, 0), "reason"), "Conflict");
	json_decref(world->requests[0].body);
	world->requests[0].body = json_incref(roll_json_object(world->requests[1].body, "related"));
	assert_body(request_at(world, 0),
		    "{\"apiVersion\":\"dns.networking.miloapis.com/v1alpha1\",\"kind\":\"DNSZone\","
		    "\"name\":\"example-com\",\"namespace\":\"team-a\"}");
}

static void an_object_in_no_namespace_has_its_events_in_kube_system(void **state)
{
	struct world *world = *state;
	struct roll_event event = plain;
	const json_t *regarding;

	event.kind = ROLL_KIND_CLASS;
	event.ns = roll_str_c("");
	note(world, &event);
	settle(world);
	assert_string_equal(request_at(world, 0)->path, BASE "kube-system/events");
	regarding = roll_json_object(request_at(world, 0)->body, "regarding");
	assert_string_equal(roll_json_str(regarding, "kind").p, "DNSZoneClass");
	assert_null(json_object_get(regarding, "namespace"));
	assert_string_equal(
		roll_json_str(roll_json_object(request_at(world, 0)->body, "metadata"), "namespace")
			.p,
		"kube-system");
}

static bool is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* RFC 1123, as the API server checks it. */
static bool is_subdomain(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < n; i++) {
		bool is_edge = i == 0 || i == n - 1 || name[i - 1] == '.' || name[i + 1] == '.';

		if (!is_alphanumeric(name[i]) && name[i] != '.' && (name[i] != '-' || is_edge))
			return false;
		if (name[i] == '.' && is_edge && (i == 0 || i == n - 1 || name[i + 1] == '.'))
			return false;
	}
	return n > 0 && n <= 253;
}

static void the_name_of_an_event_is_valid_whatever_the_object_is_called(void **state)
{
	struct world *world = *state;
	static const struct {
		size_t n;  /* length of the object's name, of "a" */
		size_t at; /* with this there */
		const char *with;
		size_t want_n; /* what of it is in the event's name */
	} cases[] = {
		{1, 0, "a", 1},	      {236, 0, "a", 236},	{237, 0, "a", 236},
		{253, 0, "a", 236},   {253, 235, ".", 235},	{253, 235, "-", 235},
		{253, 236, ".", 236}, {253, 230, "-----", 236}, {253, 231, "-----", 231},
	};
	char name[254];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *sent;

		memset(name, 'a', cases[i].n);
		name[cases[i].n] = '\0';
		memcpy(name + cases[i].at, cases[i].with, strlen(cases[i].with));
		note_name(world, name);
		turn_ms(world->loop, SECOND);
		sent = name_in(request_at(world, i));
		assert_true(is_subdomain(sent));
		assert_int_equal(strlen(sent), cases[i].want_n + 17);
		assert_memory_equal(sent, name, cases[i].want_n);
		assert_int_equal(sent[cases[i].want_n], '.');
	}
}

static void no_two_events_have_the_same_name(void **state)
{
	struct world *world = *state;

	for (size_t i = 0; i < 5; i++)
		note_numbered_text(world, i);
	turn_ms(world->loop, SECOND);
	assert_int_equal(world->count, 5);
	for (size_t i = 1; i < 5; i++)
		assert_string_not_equal(name_in(request_at(world, i)),
					name_in(request_at(world, i - 1)));
}

static void a_note_is_cut_between_characters(void **state)
{
	struct world *world = *state;
	static const struct {
		size_t before; /* so many "x" */
		const char *rest;
		size_t want_n;
	} cases[] = {
		{0, "", 0},
		{1024, "", 1024},
		{1024, "x", 1024},
		{1023, "\xc3\xa4", 1023},
		{1022, "\xc3\xa4xxx", 1024},
		{1021, "\xf0\x9f\x90\x9fx", 1021},
		{1020, "\xf0\x9f\x90\x9fx", 1024},
		{10, "\xffxxx", 10}, /* what is no text ends it */
	};
	char text[1100];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *sent;

		memset(text, 'x', cases[i].before);
		snprintf(text + cases[i].before, sizeof text - cases[i].before, "%s",
			 cases[i].rest);
		note_text(world, text);
		turn_ms(world->loop, 2 * MINUTE);
		assert_int_equal(count_of(world, "POST"),
				 i + 1 - (i > 1) /* 1024 of x: a repeat */);
		if (i == 2)
			continue;
		sent = NULL;
		for (size_t k = 0; k < world->count; k++) {
			if (strcmp(world->requests[k].method, "POST") == 0)
				sent = text_in(&world->requests[k], "note");
		}
		assert_non_null(sent);
		assert_int_equal(strlen(sent), cases[i].want_n);
		assert_memory_equal(sent, text, cases[i].want_n);
	}
}

static void the_instance_is_cut_and_must_not_be_empty(void **state)
{
	struct world *world = *state;
	char instance[200];

	assert_int_equal(open_events(world, ""), ROLL_EINVAL);
	assert_int_equal(open_events(world, "\xff"), ROLL_EINVAL);
	memset(instance, 'i', sizeof instance);
	snprintf(instance + 127, sizeof instance - 127, "\xc3\xa4 and more");
	assert_int_equal(open_events(world, instance), ROLL_OK);
	note(world, &plain);
	settle(world);
	instance[127] = '\0';
	assert_string_equal(text_in(request_at(world, 0), "reportingInstance"), instance);
	assert_int_equal(open_events(world, NULL), ROLL_EINVAL);
}

static void what_is_no_text_is_not_sent(void **state)
{
	struct world *world = *state;
	struct roll_event event = plain;
	char name[1200];

	event.uid = roll_str_c("\xff");
	note(world, &event);
	event = plain;
	memset(name, 'a', sizeof name);
	event.name = roll_str_n(name, sizeof name);
	note(world, &event);
	turn_ms(world->loop, SECOND);
	assert_int_equal(world->count, 0);
	assert_int_equal(result(world, "refused"), 2);
}

/* --- series --- */

static void the_same_again_becomes_a_series(void **state)
{
	struct world *world = *state;
	char path[320], want[160], last[ROLL_TIME_MICRO_SIZE];

	note(world, &plain);
	turn_ms(world->loop, 7 * SECOND);
	note(world, &plain);
	print_now(last);
	turn_ms(world->loop, 30 * SECOND - 1);
	assert_int_equal(world->count, 1);
	turn_ms(world->loop, 1);
	assert_int_equal(world->count, 2);
	assert_string_equal(request_at(world, 1)->method, "PATCH");
	snprintf(path, sizeof path, BASE "team-a/events/%s", name_in(request_at(world, 0)));
	assert_string_equal(request_at(world, 1)->path, path);
	snprintf(want, sizeof want, "{\"series\":{\"count\":2,\"lastObservedTime\":\"%s\"}}", last);
	assert_body(request_at(world, 1), want);
	assert_non_null(strstr(fake_api_last_request(world->server),
			       "Content-Type: application/merge-patch+json\r\n"));
}

static void repeats_are_gathered(void **state)
{
	struct world *world = *state;

	note(world, &plain);
	for (size_t i = 0; i < 29; i++) {
		turn_ms(world->loop, SECOND);
		note(world, &plain);
	}
	turn_ms(world->loop, 10 * MINUTE - 1);
	assert_int_equal(world->count, 2);
	assert_int_equal(series_count(request_at(world, 1)), 30);
}

static void repeats_before_it_is_sent_are_told_with_it(void **state)
{
	struct world *world = *state;
	char first[ROLL_TIME_MICRO_SIZE], last[ROLL_TIME_MICRO_SIZE];

	fake_api_stop(world->server);
	note(world, &plain);
	print_now(first);
	turn_ms(world->loop, 2 * MINUTE);
	note(world, &plain);
	print_now(last);
	assert_true(fake_api_resume(world->server));
	turn_ms(world->loop, 2 * MINUTE);
	assert_int_equal(world->count, 1);
	assert_int_equal(series_count(request_at(world, 0)), 2);
	assert_string_equal(text_in(request_at(world, 0), "eventTime"), first);
	assert_string_equal(roll_json_str(roll_json_object(request_at(world, 0)->body, "series"),
					  "lastObservedTime")
				    .p,
			    last);
}

static void a_repeat_while_it_is_on_its_way_is_told_later(void **state)
{
	struct world *world = *state;

	world->meanwhile = &plain;
	note(world, &plain);
	turn_ms(world->loop, 29 * SECOND);
	assert_int_equal(world->count, 1);
	assert_null(json_object_get(request_at(world, 0)->body, "series"));
	turn_ms(world->loop, 2 * SECOND);
	assert_int_equal(world->count, 2);
	assert_int_equal(series_count(request_at(world, 1)), 2);
}

static void whatever_differs_makes_another_event(void **state)
{
	struct world *world = *state;
	struct roll_event events[9];

	for (size_t i = 0; i < 9; i++)
		events[i] = plain;
	events[1].kind = ROLL_KIND_RECORDSET;
	events[2].ns = roll_str_c("team-b");
	events[3].uid = roll_str_c("u-2");
	events[4].zone_name = roll_str_c("z");
	events[5].zone_uid = roll_str_c("z");
	events[6].reason = ROLL_EVENT_ZONE_FAILED;
	events[7].is_warning = true;
	events[8].note = "else";
	for (size_t i = 0; i < 9; i++)
		note(world, &events[i]);
	turn_ms(world->loop, 10 * SECOND);
	assert_int_equal(count_of(world, "POST"), 9);
	for (size_t i = 0; i < 9; i++)
		note(world, &events[i]);
	turn_ms(world->loop, MINUTE);
	assert_int_equal(count_of(world, "POST"), 9);
	assert_int_equal(count_of(world, "PATCH"), 9);
}

static void a_series_goes_on_for_ten_minutes_after_its_last_event(void **state)
{
	struct world *world = *state;

	note(world, &plain);
	turn_ms(world->loop, 10 * MINUTE - 1);
	note(world, &plain);
	turn_ms(world->loop, 10 * MINUTE - 1);
	note(world, &plain);
	turn_ms(world->loop, 10 * MINUTE);
	assert_int_equal(count_of(world, "POST"), 1);
	assert_int_equal(count_of(world, "PATCH"), 2);
	assert_int_equal(series_count(request_at(world, 2)), 3);
	note(world, &plain);
	settle(world);
	assert_int_equal(count_of(world, "POST"), 2);
	assert_null(json_object_get(request_at(world, 3)->body, "series"));
}

static void an_expired_event_is_made_anew(void **state)
{
	struct world *world = *state;

	world->answers[1] = (struct answer){404, "NotFound", NULL, 0};
	world->answers[0] = (struct answer){201, NULL, NULL, 0};
	world->answer_count = 2;
	note(world, &plain);
	settle(world);
	note(world, &plain);
	turn_ms(world->loop, 31 * SECOND);
	assert_int_equal(world->count, 3);
	assert_string_equal(request_at(world, 1)->method, "PATCH");
	assert_string_equal(request_at(world, 2)->method, "POST");
	assert_int_equal(series_count(request_at(world, 2)), 2);
	assert_string_equal(text_in(request_at(world, 2), "eventTime"),
			    text_in(request_at(world, 0), "eventTime"));
	assert_int_equal(world->warnings, 0);
	/* The new one is what the series goes on with. */
	note(world, &plain);
	turn_ms(world->loop, 31 * SECOND);
	assert_string_equal(request_at(world, 3)->method, "PATCH");
	assert_non_null(strstr(request_at(world, 3)->path, name_in(request_at(world, 2))));
	assert_int_equal(series_count(request_at(world, 3)), 3);
}

/* --- no floods --- */

static void an_object_causes_ten_in_a_row_and_one_a_minute(void **state)
{
	struct world *world = *state;
	size_t i = 0;

	for (; i < 12; i++)
		note_numbered_text(world, i);
	turn_ms(world->loop, MINUTE - 1);
	assert_int_equal(world->count, 10);
	assert_int_equal(result(world, "limited"), 2);
	note_numbered_text(world, i++);
	turn_ms(world->loop, 1);
	assert_int_equal(world->count, 10);
	note_numbered_text(world, i++);
	note_numbered_text(world, i++);
	turn_ms(world->loop, SECOND);
	assert_int_equal(world->count, 11);
	/* Another object is not concerned. */
	note_name(world, "other");
	turn_ms(world->loop, SECOND);
	assert_int_equal(world->count, 12);
	turn_ms(world->loop, 10 * MINUTE);
	for (size_t k = 0; k < 12; k++)
		note_numbered_text(world, i++);
	turn_ms(world->loop, 5 * SECOND);
	assert_int_equal(world->count, 22);
}

static void one_that_is_made_anew_is_still_the_same_object(void **state)
{
	struct world *world = *state;
	struct roll_event event = plain;
	char uid[16];

	for (size_t i = 0; i < 100; i++) {
		snprintf(uid, sizeof uid, "u-%zu", i);
		event.uid = roll_str_c(uid);
		note(world, &event);
	}
	turn_ms(world->loop, 20 * SECOND);
	assert_int_equal(world->count, 10);
}

static void a_flood_costs_a_few_requests(void **state)
{
	struct world *world = *state;

	for (size_t i = 0; i < 10000; i++) {
		note_text(world, i % 2 ? "up" : "down");
		if (i % 100 == 99)
			turn_ms(world->loop, SECOND);
	}
	turn_ms(world->loop, MINUTE);
	assert_int_equal(count_of(world, "POST"), 2);
	assert_in_range(count_of(world, "PATCH"), 6, 10);
	assert_int_equal(series_count(request_at(world, world->count - 1)), 5000);
	assert_int_equal(roll_events_pending(world->events), 0);
}

static void series_are_told_however_much_is_new(void **state)
{
	struct world *world = *state;

	note(world, &plain);
	settle(world);
	note(world, &plain);
	/* Twice as many as can be sent. */
	for (size_t i = 0; i < 70; i++) {
		for (size_t k = 0; k < 20; k++)
			note_number(world, "zone", i * 20 + k);
		turn_ms(world->loop, SECOND);
	}
	assert_int_equal(world->patches, 1);
}

static void requests_keep_their_distance(void **state)
{
	struct world *world = *state;

	for (size_t i = 0; i < 30; i++)
		note_number(world, "zone", i);
	assert_int_equal(sample(world->metrics, "rollcall_sync_events_queue"), 30);
	turn_ms(world->loop, 10 * SECOND);
	assert_int_equal(world->count, 30);
	for (size_t i = 1; i < 30; i++)
		assert_true(request_at(world, i)->at_ms - request_at(world, i - 1)->at_ms >= 100);
	assert_int_equal(sample(world->metrics, "rollcall_sync_events_queue"), 0);
}

static void the_queue_is_bounded_in_number(void **state)
{
	struct world *world = *state;

	fake_api_stop(world->server);
	for (size_t i = 0; i < 10500; i++)
		note_number(world, "zone", i);
	assert_int_equal(roll_events_pending(world->events), 10000);
	assert_int_equal(result(world, "full"), 500);
	turn_ms(world->loop, 10 * MINUTE + 10 * SECOND);
	assert_int_equal(roll_events_pending(world->events), 0);
	assert_int_equal(result(world, "late"), 10000);
	/* And then there is room again. */
	assert_true(fake_api_resume(world->server));
	note_name(world, "late-comer");
	turn_ms(world->loop, 3 * MINUTE);
	assert_int_equal(world->count, 1);
}

static void the_queue_is_bounded_in_bytes(void **state)
{
	struct world *world = *state;
	struct roll_event event = plain;
	char name[254], text[1025];
	size_t pending;

	fake_api_stop(world->server);
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	memset(name, 'a', sizeof name - 1);
	event.note = text;
	event.zone_name = roll_str_n(text, 253);
	event.name = roll_str_n(name, sizeof name - 1);
	for (size_t i = 0; i < 9900; i++) {
		snprintf(name, sizeof name, "%zu", i);
		name[strlen(name)] = 'a';
		note(world, &event);
	}
	pending = roll_events_pending(world->events);
	assert_in_range(pending, 7000, 9500);
	assert_int_equal(result(world, "full"), 9900 - pending);
}

static void nothing_is_remembered_after_ten_minutes(void **state)
{
	struct world *world = *state;
	struct roll_events_table table;
	struct roll_event event = plain;
	char name[32];

	roll_events_table_init(&table, &roll_clock_system);
	for (size_t i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "zone-%zu", i / 20);
		event.name = roll_str_c(name);
		event.note = i % 20 < 3 ? "a" : name + i % 3;
		roll_events_table_note(&table, &event);
	}
	assert_int_equal(HASH_COUNT(table.objects), 50);
	turn_ms(world->loop, 10 * MINUTE - 1);
	roll_events_table_prune(&table);
	assert_int_equal(HASH_COUNT(table.objects), 50);
	turn_ms(world->loop, 1);
	roll_events_table_prune(&table);
	assert_int_equal(table.count, 0);
	assert_int_equal(table.bytes, 0);
	assert_int_equal(table.pending, 0);
	assert_null(table.objects);
	assert_null(roll_events_next(&table));
	roll_events_table_fini(&table);
}

/* --- a server in trouble --- */

static void news_of_an_hour_ago_is_no_news(void **state)
{
	struct world *world = *state;

	fake_api_stop(world->server);
	for (size_t i = 0; i < 12; i++) {
		note_name(world, "restless");
		if (i == 0)
			note_name(world, "quiet");
		turn_ms(world->loop, 5 * MINUTE);
	}
	/* A few a minute, not more; told once. */
	assert_in_range(result(world, "failed"), 30, 200);
	assert_int_equal(world->warnings, 1);
	assert_int_equal(result(world, "late"), 1);
	assert_int_equal(roll_events_pending(world->events), 1);
	assert_true(fake_api_resume(world->server));
	turn_ms(world->loop, 2 * MINUTE);
	assert_int_equal(world->count, 1);
	assert_int_equal(series_count(request_at(world, 0)), 12);
	assert_memory_equal(name_in(request_at(world, 0)), "restless.", 9);
}

static void a_server_in_trouble_is_asked_less_and_less(void **state)
{
	struct world *world = *state;

	world->always = (struct answer){500, "InternalError", NULL, 0};
	note(world, &plain);
	turn_ms(world->loop, 9 * MINUTE);
	assert_in_range(world->count, 8, 60);
	assert_int_equal(world->warnings, 1);
	/* Well again: at full speed. */
	world->always.code = 0;
	turn_ms(world->loop, MINUTE - 1);
	assert_int_equal(roll_events_pending(world->events), 0);
	world->count = 0;
	for (size_t i = 0; i < 10; i++)
		note_number(world, "zone", i);
	turn_ms(world->loop, 2 * SECOND);
	assert_int_equal(world->count, 10);
	/* Trouble of another day is told again, and begins with short pauses. */
	world->always.code = 500;
	note_name(world, "last");
	settle(world);
	assert_int_equal(world->warnings, 2);
	world->always.code = 0;
	turn_ms(world->loop, SECOND);
	assert_int_equal(roll_events_pending(world->events), 0);
}

static bool has_one(void *ctx)
{
	return ((struct world *)ctx)->count == 1;
}

static void pauses_differ(void **state)
{
	struct world *world = *state;
	int64_t pauses[3];

	/* Two replicas that fail at the same moment do not come back at the same moment. */
	for (size_t i = 0; i < 3; i++) {
		turn_ms(world->loop, MINUTE + 1);
		assert_int_equal(open_events(world, "pod"), ROLL_OK);
		fake_api_stop(world->server);
		note(world, &plain);
		turn_ms(world->loop, MINUTE);
		assert_true(fake_api_resume(world->server));
		world->count = 0;
		pauses[i] = turn_elapsed_ms();
		assert_true(turn_until(world->loop, has_one, world, 2 * MINUTE));
		pauses[i] = turn_elapsed_ms() - pauses[i];
	}
	assert_true(pauses[0] != pauses[1] || pauses[1] != pauses[2]);
}

static void one_that_always_fails_does_not_stop_the_others(void **state)
{
	struct world *world = *state;
	struct roll_event event = plain;

	world->ailing = "/sick/";
	event.ns = roll_str_c("sick");
	note(world, &event);
	for (size_t i = 0; i < 20; i++)
		note_number(world, "zone", i);
	turn_ms(world->loop, MINUTE);
	assert_int_equal(result(world, "ok"), 20);
	turn_ms(world->loop, 10 * MINUTE);
	assert_int_equal(roll_events_pending(world->events), 0);
	assert_int_equal(result(world, "late"), 1);
}

static void the_server_says_when_to_come_back(void **state)
{
	struct world *world = *state;
	int64_t began;

	world->answers[0] = (struct answer){429, "TooManyRequests", NULL, 120};
	world->answer_count = 1;
	began = turn_elapsed_ms();
	note_name(world, "one");
	settle(world);
	note_name(world, "two");
	/* It was answered no earlier than it was noted. */
	turn_ms(world->loop, 2 * MINUTE - (turn_elapsed_ms() - began));
	assert_int_equal(world->count, 1);
	turn_ms(world->loop, 2 * SECOND);
	assert_int_equal(world->count, 3);
	assert_int_equal(result(world, "ok"), 2);
}

static void nobody_waits_for_a_day(void **state)
{
	struct world *world = *state;

	world->answers[0] = (struct answer){429, "TooManyRequests", NULL, 86400};
	world->answer_count = 1;
	note_name(world, "one");
	turn_ms(world->loop, 10 * MINUTE);
	note_name(world, "two");
	turn_ms(world->loop, 2 * SECOND);
	assert_int_equal(result(world, "ok"), 1);
	assert_int_equal(result(world, "late"), 1);
}

static void to_forget_one_does_not_send_another(void **state)
{
	struct world *world = *state;

	world->answers[0] = (struct answer){201, "", NULL, 0};
	world->answers[1] = (struct answer){429, "TooManyRequests", NULL, 60};
	world->answer_count = 2;
	note_name(world, "old");
	turn_ms(world->loop, 9 * MINUTE + 50 * SECOND);
	note_name(world, "new");
	turn_ms(world->loop, 59 * SECOND);
	assert_int_equal(world->count, 2);
	turn_ms(world->loop, 3 * SECOND);
	assert_int_equal(world->count, 3);
}

static void what_is_on_its_way_is_not_forgotten(void **state)
{
	struct world *world = *state;

	world->answers[0] = (struct answer){429, "TooManyRequests", NULL, 595};
	world->answer_count = 1;
	note_name(world, "old");
	settle(world);
	fake_api_script(world->server, "POST", NULL, 1);
	turn_ms(world->loop, 10 * MINUTE + SECOND);
	note_name(world, "new");
	assert_int_equal(roll_events_pending(world->events), 2);
	turn_ms(world->loop, 20 * SECOND);
	assert_int_equal(roll_events_pending(world->events), 0);
	assert_int_equal(result(world, "late"), 1);
	assert_int_equal(result(world, "ok"), 1);
}

static void a_lost_answer_does_not_make_two(void **state)
{
	struct world *world = *state;

	fake_api_script(world->server, "POST", NULL, 1);
	note(world, &plain);
	turn_ms(world->loop, 5 * SECOND);
	note(world, &plain);
	turn_ms(world->loop, 4 * SECOND);
	assert_int_equal(world->count, 0);
	/* The server did make it. */
	world->answers[0] = (struct answer){409, "AlreadyExists", NULL, 0};
	world->answer_count = 1;
	turn_ms(world->loop, 5 * SECOND);
	assert_int_equal(count_of(world, "POST"), 1);
	assert_int_equal(result(world, "exists"), 1);
	assert_int_equal(world->warnings, 1);
	/* Whether it heard of the repeat is not known, so it is told. */
	turn_ms(world->loop, 31 * SECOND);
	assert_int_equal(world->count, 2);
	assert_string_equal(request_at(world, 1)->method, "PATCH");
	assert_non_null(strstr(request_at(world, 1)->path, name_in(request_at(world, 0))));
	assert_int_equal(series_count(request_at(world, 1)), 2);
}

static void a_name_that_is_taken_is_given_up(void **state)
{
	struct world *world = *state;

	world->answers[0] = (struct answer){409, "AlreadyExists", NULL, 0};
	world->answers[1] = world->answers[0];
	world->answer_count = 2;
	note(world, &plain);
	turn_ms(world->loop, 20 * SECOND);
	assert_int_equal(count_of(world, "POST"), 3);
	assert_string_not_equal(name_in(request_at(world, 0)), name_in(request_at(world, 1)));
	assert_string_not_equal(name_in(request_at(world, 1)), name_in(request_at(world, 2)));
	assert_int_equal(result(world, "ok"), 1);
}

static void a_series_that_cannot_be_told_now_is_told_later(void **state)
{
	static const int codes[] = {409, 500, 429, 401};

	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		struct world *world = *state;
		size_t count = world->count;

		world->answers[1] = (struct answer){codes[i], "", NULL, 0};
		world->answers[0] = (struct answer){201, "", NULL, 0};
		world->answer_count = 2;
		world->answered = 0;
		note_number(world, "zone", i);
		settle(world);
		note_number(world, "zone", i);
		turn_ms(world->loop, 2 * MINUTE);
		assert_int_equal(world->count, count + 3);
		assert_string_equal(request_at(world, count + 2)->method, "PATCH");
		assert_int_equal(series_count(request_at(world, count + 2)), 2);
	}
}

/* --- a server that does not want it --- */

static void what_the_server_does_not_want_is_dropped(void **state)
{
	struct world *world = *state;
	static const struct {
		struct answer answer;
		const char *result;
		bool is_told;
	} cases[] = {
		{{400, "BadRequest", NULL, 0}, "refused", true},
		{{413, "RequestEntityTooLarge", NULL, 0}, "refused", true},
		{{422, "Invalid", NULL, 0}, "refused", true},
		{{404, "", NULL, 0}, "refused", true}, /* no such API */
		{{404, "NotFound", NULL, 0}, "gone", false},
		{{403, "Forbidden", "NamespaceTerminating", 0}, "gone", false},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t count = world->count, warnings = world->warnings;
		uint32_t before = result(world, cases[i].result);

		world->answers[0] = cases[i].answer;
		world->answer_count = 1;
		world->answered = 0;
		note_number(world, "refused", i);
		note_number(world, "good", i);
		turn_ms(world->loop, SECOND);
		/* The next one does not wait for it, and it is not tried again. */
		note_number(world, "refused", i);
		turn_ms(world->loop, MINUTE);
		assert_int_equal(world->count, count + 2);
		assert_int_equal(result(world, cases[i].result), before + 1);
		assert_int_equal(world->warnings, warnings + cases[i].is_told);
		assert_int_equal(roll_events_pending(world->events), 0);
	}
}

static void what_is_refused_is_tried_again_one_day(void **state)
{
	struct world *world = *state;

	world->answers[0] = (struct answer){422, "Invalid", NULL, 0};
	world->answer_count = 1;
	/* However often it is noted: ten minutes later the server is asked again. */
	for (size_t i = 0; i < 10; i++) {
		note(world, &plain);
		turn_ms(world->loop, MINUTE);
	}
	assert_int_equal(world->count, 1);
	note(world, &plain);
	settle(world);
	assert_int_equal(world->count, 2);
	assert_int_equal(result(world, "ok"), 1);
}

static void without_permission_one_is_tried_now_and_then(void **state)
{
	struct world *world = *state;

	world->always = (struct answer){403, "Forbidden", NULL, 0};
	for (size_t i = 0; i < 100; i++)
		note_number(world, "zone", i);
	settle(world);
	assert_int_equal(world->count, 1);
	assert_int_equal(world->warnings, 1);
	assert_non_null(strstr(world->logged, "may not create events.events.k8s.io"));
	assert_non_null(strstr(world->logged, "namespace=team-a "));
	turn_ms(world->loop, MINUTE - 1);
	assert_int_equal(world->count, 1);
	turn_ms(world->loop, 9 * MINUTE);
	assert_in_range(world->count, 5, 10);
	assert_int_equal(world->warnings, 1);
	turn_ms(world->loop, MINUTE);
	assert_int_equal(roll_events_pending(world->events), 0);
	/* Allowed, and denied once more: that is news. */
	world->always.code = 0;
	note_name(world, "good");
	turn_ms(world->loop, 2 * MINUTE);
	assert_int_equal(result(world, "ok"), 1);
	world->always.code = 403;
	note_name(world, "bad");
	turn_ms(world->loop, SECOND);
	assert_int_equal(world->warnings, 2);
}

static void creating_may_be_allowed_and_patching_not(void **state)
{
	struct world *world = *state;

	world->answers[0] = (struct answer){201, "", NULL, 0};
	world->answers[1] = (struct answer){403, "Forbidden", NULL, 0};
	world->answers[2] = world->answers[0];
	world->answers[3] = world->answers[1];
	world->answer_count = 4;
	for (size_t i = 0; i < 2; i++) {
		note_number(world, "zone", i);
		turn_ms(world->loop, 2 * MINUTE);
		note_number(world, "zone", i);
		turn_ms(world->loop, 2 * MINUTE);
	}
	assert_int_equal(world->count, 4);
	assert_int_equal(world->warnings, 1);
	assert_non_null(strstr(world->logged, "may not patch events.events.k8s.io"));
}

/* --- the end --- */

static void it_may_end_at_any_time(void **state)
{
	struct world *world = *state;

	/* With a request on its way that is never answered, and others behind it. */
	fake_api_script(world->server, "POST", NULL, 1);
	for (size_t i = 0; i < 10; i++)
		note_number(world, "zone", i);
	turn_ms(world->loop, SECOND);
	assert_int_equal(world->count, 0);
	assert_int_equal(roll_events_pending(world->events), 10);
	roll_events_free(world->events);
	world->events = NULL;
	turn_ms(world->loop, MINUTE);
	assert_int_equal(world->count, 0);
	/* While it waits for better times. */
	assert_int_equal(open_events(world, "pod"), ROLL_OK);
	fake_api_stop(world->server);
	note(world, &plain);
	turn_ms(world->loop, SECOND);
	roll_events_free(world->events);
	world->events = NULL;
	roll_events_free(NULL);
	turn_ms(world->loop, MINUTE);
}

static void it_goes_without_metrics(void **state)
{
	struct world *world = *state;

	roll_metrics_free(world->metrics);
	world->metrics = NULL;
	assert_int_equal(open_events(world, "pod"), ROLL_OK);
	note(world, &plain);
	settle(world);
	assert_int_equal(world->count, 1);
}

/* Whoever is no leader any more says nothing more. */
static void what_is_cleared_is_not_sent(void **state)
{
	struct world *world = *state;

	note_name(world, "first");
	settle(world);
	assert_int_equal(world->count, 1);
	/* A series, one that waits, and one whose answer may still come. */
	note_name(world, "first");
	note_name(world, "second");
	note_name(world, "third");
	roll_events_clear(world->events);
	assert_int_equal(roll_events_pending(world->events), 0);
	turn_ms(world->loop, 3600000);
	assert_int_equal(world->count, 1);
	note_name(world, "fourth");
	settle(world);
	assert_int_equal(world->count, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_event_says_all_that_the_server_wants),
		TEST(a_warning_about_a_record_set_names_its_zone),
		TEST(an_object_in_no_namespace_has_its_events_in_kube_system),
		TEST(the_name_of_an_event_is_valid_whatever_the_object_is_called),
		TEST(no_two_events_have_the_same_name),
		TEST(a_note_is_cut_between_characters),
		TEST(the_instance_is_cut_and_must_not_be_empty),
		TEST(what_is_no_text_is_not_sent),
		TEST(the_same_again_becomes_a_series),
		TEST(repeats_are_gathered),
		TEST(repeats_before_it_is_sent_are_told_with_it),
		TEST(a_repeat_while_it_is_on_its_way_is_told_later),
		TEST(whatever_differs_makes_another_event),
		TEST(a_series_goes_on_for_ten_minutes_after_its_last_event),
		TEST(an_expired_event_is_made_anew),
		TEST(an_object_causes_ten_in_a_row_and_one_a_minute),
		TEST(one_that_is_made_anew_is_still_the_same_object),
		TEST(a_flood_costs_a_few_requests),
		TEST(series_are_told_however_much_is_new),
		TEST(requests_keep_their_distance),
		TEST(the_queue_is_bounded_in_number),
		TEST(the_queue_is_bounded_in_bytes),
		TEST(nothing_is_remembered_after_ten_minutes),
		TEST(news_of_an_hour_ago_is_no_news),
		TEST(a_server_in_trouble_is_asked_less_and_less),
		TEST(pauses_differ),
		TEST(one_that_always_fails_does_not_stop_the_others),
		TEST(the_server_says_when_to_come_back),
		TEST(nobody_waits_for_a_day),
		TEST(to_forget_one_does_not_send_another),
		TEST(what_is_on_its_way_is_not_forgotten),
		TEST(what_is_cleared_is_not_sent),
		TEST(a_lost_answer_does_not_make_two),
		TEST(a_name_that_is_taken_is_given_up),
		TEST(a_series_that_cannot_be_told_now_is_told_later),
		TEST(what_the_server_does_not_want_is_dropped),
		TEST(what_is_refused_is_tried_again_one_day),
		TEST(without_permission_one_is_tried_now_and_then),
		TEST(creating_may_be_allowed_and_patching_not),
		TEST(it_may_end_at_any_time),
		TEST(it_goes_without_metrics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
