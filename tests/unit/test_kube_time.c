/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/kube_world.h"

/*
 * When source/kube does things: what must not have happened a millisecond before its time, and what
 * must have happened by then. The times stand here as promised, not as the code names them.
 */

#define SECOND_MS 1000
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS (60 * MINUTE_MS)

#define EMPTY "Content-Length: 0\r\n\r\n"
#define CLOSE "Connection: close\r\n\r\n"
#define FOREVER 1000000

/* Whoever asks a server for something waits by the same rules when it is refused. */
static const struct {
	const char *part; /* of the request */
	bool has_stream;
} askers[] = {
	{"namespaces/kube-system", false},
	{"dnszones?limit=500", false},
	{"dnszones?watch=1&sendInitialEvents", true},
	{"dnszones?watch=1&allow", false},
	{"dnszones?limit=1 ", false}, /* the probe */
};
#define ASKERS (sizeof askers / sizeof *askers)
#define WATCH 3

static void begin(struct world *world, size_t asker)
{
	fake_api_conf(world->server)->identity = "11111111-2222";
	fake_api_conf(world->server)->has_stream = askers[asker].has_stream;
	world_forget(world);
	world_open(world, NULL);
}

static void end(struct world *world)
{
	world_close(world);
	fake_api_unscript(world->server);
}

/* The condition holds for the first time when that much has passed from now. */
static int64_t happens(struct world *world, bool (*holds)(void *ctx), int64_t least_ms,
		       int64_t most_ms)
{
	int64_t began_ms = turn_elapsed_ms(), took_ms;

	if (!turn_until(world->loop, holds, world, most_ms))
		fail_msg("not within %lld ms", (long long)most_ms);
	took_ms = turn_elapsed_ms() - began_ms;
	if (took_ms < least_ms)
		fail_msg("after %lld ms, and not %lld", (long long)took_ms, (long long)least_ms);
	return took_ms;
}

static int64_t next_scripted(struct world *world, int64_t least_ms, int64_t most_ms)
{
	world->want = fake_api_counts(world->server)->scripted + 1;
	return happens(world, has_counted_scripted, least_ms, most_ms);
}

/* --- after a failure --- */

static void back_off_grows_to_five_seconds_and_is_spread(void **state)
{
	static const char *const answers[] = {
		"HTTP/1.1 503 Service Unavailable\r\n" EMPTY, "HTTP/1.1 401 Unauthorized\r\n" EMPTY,
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", /* and the connection ends */
	};
	struct world *world = *state;

	world_put_some(world, 3);
	for (size_t i = 0; i < ASKERS * 3; i++) {
		int64_t window_ms = 200, low_ms = 5000, high_ms = 0;

		fake_api_script(world->server, askers[i / 3].part, answers[i % 3], FOREVER);
		begin(world, i / 3);
		next_scripted(world, 0, 2 * MINUTE_MS);
		for (size_t n = 0; n < 60; n++) {
			int64_t took_ms = next_scripted(world, 1, window_ms);

			window_ms = window_ms * 2 < 5000 ? window_ms * 2 : 5000;
			if (n >= 10) {
				low_ms = took_ms < low_ms ? took_ms : low_ms;
				high_ms = took_ms > high_ms ? took_ms : high_ms;
			}
		}
		assert_true(low_ms < 2000 && high_ms > 3000);
		end(world);
	}
}

static void back_off_begins_anew_after_success(void **state)
{
	struct world *world = *state;

	world_put_some(world, 3);
	for (size_t i = 0; i < ASKERS; i++) {
		for (size_t n = 0; n < 8; n++) {
			/* The first time it takes a long run of failures. */
			fake_api_script(world->server, askers[i].part,
					"HTTP/1.1 503 Service Unavailable\r\n" EMPTY, n ? 2 : 20);
			if (n == 0)
				begin(world, i);
			else if (i == WATCH)
				fake_api_end_watches(world->server);
			else if (i < WATCH)
				roll_kube_relist(world->kube);
			if (n) {
				next_scripted(world, 0, 2 * MINUTE_MS);
				next_scripted(world, 1, 200);
			}
			/* A watch proves itself by its age. */
			turn_ms(world->loop, 2 * MINUTE_MS);
			world_settle(world);
		}
		end(world);
	}
}

static void the_server_says_when_to_come_again(void **state)
{
#define TOO_MANY "HTTP/1.1 429 Too Many Requests\r\n"
	static const struct {
		const char *answer;
		int64_t wait_ms;
	} cases[] = {
		{TOO_MANY "Retry-After: 7\r\n" EMPTY, 7 * SECOND_MS},
		{"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n" EMPTY, SECOND_MS},
		{TOO_MANY CLOSE "{\"kind\":\"Status\",\"details\":{\"retryAfterSeconds\":7}}",
		 7 * SECOND_MS},
		/* A minute is the longest that we stay away. */
		{TOO_MANY "Retry-After: 60\r\n" EMPTY, MINUTE_MS},
		{TOO_MANY "Retry-After: 3600\r\n" EMPTY, MINUTE_MS},
		{TOO_MANY "Retry-After: 0\r\n" EMPTY, 0},
		{TOO_MANY "Retry-After: soon\r\n" EMPTY, 0},
		{TOO_MANY EMPTY, 0},
	};
	struct world *world = *state;

	world_put_some(world, 3);
	for (size_t i = 0; i < ASKERS; i++) {
		for (size_t j = 0; j < sizeof cases / sizeof *cases; j++) {
			/* Used from the last to the first; one more to be seen by. */
			fake_api_script(world->server, askers[i].part,
					"HTTP/1.1 500 Oops\r\n" EMPTY, 1);
			fake_api_script(world->server, askers[i].part, cases[j].answer, 1);
			begin(world, i);
			next_scripted(world, 0, 2 * MINUTE_MS);
			/* Not all at the very moment that they were told. */
			next_scripted(world, cases[j].wait_ms + 1, cases[j].wait_ms + 200);
			world_settle(world);
			end(world);
		}
	}
}

/* With windows of 5 seconds, 2.5 on average, an hour has 1,440 attempts. */
static void an_hour_of_failure_is_no_busy_hour(void **state)
{
	static const struct {
		const char *answer;
		bool is_line; /* of a watch */
	} cases[] = {
		{"HTTP/1.1 200 OK\r\n" CLOSE, false}, /* as a watch: it ends at once, cleanly */
		{"HTTP/1.1 200 OK\r\n" CLOSE "not JSON\n", false},
		{"HTTP/1.1 410 Gone\r\n" EMPTY, false},
		{"HTTP/1.1 503 Service Unavailable\r\n" EMPTY, false},
		{"{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n", true},
		{"{\"type\":\"ERROR\",\"object\":{\"code\":500}}\n", true},
		{"{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"DNSZone\",\"metadata\":"
		 "{\"resourceVersion\":\"101\"}}}\n",
		 true},
	};
	char text[256];
	struct world *world = *state;

	world_put_some(world, 3);
	for (size_t i = 0; i < ASKERS; i++) {
		for (size_t j = 0; j < sizeof cases / sizeof *cases; j++) {
			struct fake_api_counts before = *fake_api_counts(world->server);
			const struct fake_api_counts *now = fake_api_counts(world->server);

			if (cases[j].is_line && i != WATCH)
				continue;
			snprintf(text, sizeof text, "%s%s",
				 cases[j].is_line ? "HTTP/1.1 200 OK\r\n" CLOSE : "",
				 cases[j].answer);
			fake_api_script(world->server, askers[i].part, text, FOREVER);
			begin(world, i);
			turn_ms(world->loop, HOUR_MS);
			assert_in_range(now->scripted - before.scripted, 1, 1600);
			/* Some attempts begin with the identity, or end with a list. */
			if (now->requests - before.requests > 2 * 2000)
				fail_msg("%s %zu: %zu requests", askers[i].part, j,
					 now->requests - before.requests);
			end(world);
		}
	}
}

static void a_server_that_is_away_is_looked_for_in_reason(void **state)
{
	struct world *world = *state;
	size_t count;

	world_put_some(world, 3);
	world_open(world, NULL);
	world_settle(world);
	fake_api_stop(world->server);
	turn_ms(world->loop, MINUTE_MS);
	count = fake_sink_counts(world->sink)->unreachable;
	turn_ms(world->loop, HOUR_MS);
	count = fake_sink_counts(world->sink)->unreachable - count;
	assert_in_range(count, STREAMS * 1300, STREAMS * 1600);
	assert_int_equal(fake_sink_object_count(world->sink), 6);
	assert_true(fake_api_resume(world->server));
	/* And found again within the longest back-off. */
	world->want = fake_api_counts(world->server)->watches + STREAMS;
	happens(world, has_counted_watches, 0, 5 * SECOND_MS);
}

static void once_has_four_chances(void **state)
{
	struct world *world = *state;

	world->conf.is_once = true;
	fake_api_script(world->server, "dnszones", "HTTP/1.1 503 No\r\n" EMPTY, FOREVER);
	world_open(world, NULL);
	happens(world, has_ended, 4, 200 + 400 + 800 + 1600);
	/* In a row, that is: the next kind's list went well after the first. */
	assert_int_equal(fake_api_counts(world->server)->scripted, 5);
	assert_int_equal(world->end_status, ROLL_EAGAIN);
}

/* --- lists --- */

static bool has_begun_lists(void *ctx)
{
	struct world *world = ctx;

	return fake_sink_counts(world->sink)->lists_begun >= world->want;
}

static void a_list_is_confirmed_after_two_seconds(void **state)
{
	struct world *world = *state;

	world_put_some(world, 3);
	world->conf.no_stream = true;
	fake_sink_fail_lists(world->sink, ROLL_EAGAIN, 2);
	world_open(world, NULL);
	/* Each of the others has its turn meanwhile. */
	turn_settle(world->loop);
	assert_int_equal(fake_sink_counts(world->sink)->lists_begun, STREAMS);
	assert_int_equal(fake_sink_counts(world->sink)->lists_taken, STREAMS - 2);
	world->want = STREAMS + 1;
	happens(world, has_begun_lists, 2 * SECOND_MS, 2 * SECOND_MS);
	world_settle(world);
	assert_int_equal(fake_sink_counts(world->sink)->lists_begun, STREAMS + 2);
	assert_int_equal(turn_elapsed_ms(), 2 * SECOND_MS);
}

static void a_list_without_a_byte_is_given_up_after_20_s(void **state)
{
	struct world *world = *state;

	fake_api_conf(world->server)->hangs_lists = true;
	world->conf.no_stream = true;
	world_open(world, NULL);
	world->want = 1;
	turn_ms(world->loop, 20 * SECOND_MS - 1);
	assert_int_equal(fake_sink_counts(world->sink)->lists_aborted, 0);
	/* libcurl looks once a second. */
	turn_ms(world->loop, 2 * SECOND_MS);
	assert_int_equal(fake_sink_counts(world->sink)->lists_aborted, 1);
	assert_true(fake_sink_counts(world->sink)->unreachable > 0);
}

static bool has_aborted_a_list(void *ctx)
{
	return fake_sink_counts(((struct world *)ctx)->sink)->lists_aborted > 0;
}

static void a_page_takes_a_minute_at_most(void **state)
{
	struct world *world = *state;

	world->conf.on_identity = NULL;
	world->conf.no_stream = true;
	for (int i = 0; i < 10; i++)
		fake_api_put(world->server, FAKE_CLASS, NULL, (char[]){(char)('a' + i), '\0'},
			     json_object());
	fake_api_conf(world->server)->slice_bytes = 10;
	fake_api_conf(world->server)->slice_ms = 500;
	world_open(world, NULL);
	happens(world, has_aborted_a_list, MINUTE_MS, MINUTE_MS);
	fake_api_conf(world->server)->slice_ms = 10;
	world_settle(world);
}

static void a_full_list_comes_every_hour_give_or_take_six_minutes(void **state)
{
	struct world *world = *state;
	const struct fake_sink_counts *counts = fake_sink_counts(world->sink);
	size_t healed = 0;

	world_put_some(world, 3);
	world->conf.relist_ms = HOUR_MS;
	world_open(world, NULL);
	world_settle(world);
	for (size_t hour = 1; hour <= 10; hour++) {
		size_t lists = counts->lists_taken;

		/* The next ones may be 54 minutes after the first of the last ones. */
		fake_sink_lose(world->sink, FAKE_RECORDSET, "default/rs-002");
		world->want = lists + 1;
		if (hour == 1)
			happens(world, has_taken_lists, 54 * MINUTE_MS, 66 * MINUTE_MS);
		turn_ms(world->loop, 66 * MINUTE_MS);
		healed += is_equal(world);
		assert_in_range(counts->lists_taken - lists, STREAMS, 2 * STREAMS);
	}
	assert_int_equal(healed, 10);
	assert_in_range(counts->lists_taken, STREAMS * 10, STREAMS * 14);
}

static void a_cluster_is_identified_before_each_list(void **state)
{
	struct world *world = *state;

	fake_api_conf(world->server)->identity = "11111111-2222";
	world->conf.no_stream = true;
	world_put_some(world, 3);
	world_open(world, NULL);
	world_settle(world);
	assert_int_equal(world->identities, 1);
	turn_ms(world->loop, 10 * SECOND_MS - 1);
	roll_kube_relist(world->kube);
	turn_settle(world->loop);
	assert_int_equal(fake_sink_counts(world->sink)->lists_taken, 2 * STREAMS);
	assert_int_equal(world->identities, 1);
	turn_ms(world->loop, 1);
	roll_kube_relist(world->kube);
	turn_settle(world->loop);
	assert_int_equal(fake_sink_counts(world->sink)->lists_taken, 3 * STREAMS);
	assert_int_equal(world->identities, 2);
	/* Without an answer there is no list. */
	fake_api_script(world->server, "kube-system", NULL, FOREVER);
	turn_ms(world->loop, MINUTE_MS);
	roll_kube_relist(world->kube);
	next_scripted(world, 0, 0);
	next_scripted(world, 10 * SECOND_MS + 1, 10 * SECOND_MS + 200);
	assert_int_equal(fake_sink_counts(world->sink)->lists_begun, 3 * STREAMS);
}

/* --- streaming lists that do not end --- */

static void a_streaming_list_without_an_object_ends_after_20_s(void **state)
{
	struct world *world = *state;

	world_put_some(world, 3);
	fake_api_conf(world->server)->has_stream = true;
	fake_api_conf(world->server)->is_silent = true;
	world_open(world, NULL);
	for (int s = 1; s < 20; s++) {
		turn_ms(world->loop, SECOND_MS);
		fake_api_bookmark(world->server); /* no heartbeat */
	}
	turn_ms(world->loop, SECOND_MS - 1);
	assert_int_equal(fake_sink_counts(world->sink)->lists_aborted, 0);
	turn_ms(world->loop, 1);
	/* Pages at once, for all that follow. */
	assert_int_equal(fake_sink_counts(world->sink)->lists_aborted, 1);
	assert_int_equal(fake_sink_counts(world->sink)->lists_taken, STREAMS);
	assert_int_equal(fake_api_counts(world->server)->streams, 1);
}

static void a_streaming_list_ends_after_five_minutes_however_busy(void **state)
{
	struct world *world = *state;

	world_put_some(world, 3);
	fake_api_conf(world->server)->ignores_initial = true;
	world_open(world, NULL);
	for (int s = 0; s < 300; s++) {
		world_put(world, FAKE_CLASS, "powerdns", s);
		assert_int_equal(fake_sink_counts(world->sink)->lists_aborted, 0);
		turn_ms(world->loop, SECOND_MS - (s == 299));
	}
	assert_int_equal(fake_sink_counts(world->sink)->lists_aborted, 0);
	turn_ms(world->loop, 1);
	assert_int_equal(fake_sink_counts(world->sink)->lists_taken, STREAMS);
	assert_int_equal(fake_api_counts(world->server)->streams, 1);
	world_settle(world);
}

/* --- watches --- */

/* For how long the watch was asked that was asked for last. */
static int64_t asked_ms(const struct world *world)
{
	static const char name[] = "&timeoutSeconds=";
	const char *at = strstr(fake_api_last_request(world->server), name);
	struct roll_str rest = roll_str_c(at ? at + sizeof name - 1 : NULL);
	uint32_t seconds;

	assert_int_equal(roll_str_u32(roll_str_cut(&rest, ' '), UINT32_MAX, &seconds), ROLL_OK);
	return (int64_t)seconds * SECOND_MS;
}

static void a_watch_is_asked_for_five_to_ten_minutes(void **state)
{
	struct world *world = *state;
	int64_t low_ms = HOUR_MS, high_ms = 0;

	world_put_some(world, 3);
	world_open(world, NULL);
	world_settle(world);
	for (world->want = STREAMS + 1; world->want < 150; world->want++) {
		happens(world, has_counted_watches, 0, 10 * MINUTE_MS);
		low_ms = asked_ms(world) < low_ms ? asked_ms(world) : low_ms;
		high_ms = asked_ms(world) > high_ms ? asked_ms(world) : high_ms;
	}
	assert_in_range(low_ms, 300 * SECOND_MS, 330 * SECOND_MS);
	assert_in_range(high_ms, 570 * SECOND_MS, 600 * SECOND_MS);
	/* The server ends them at their times, which is no trouble. */
	assert_in_range(turn_elapsed_ms(), 5 * HOUR_MS, 7 * HOUR_MS);
	assert_int_equal(fake_api_counts(world->server)->lists, STREAMS);
	assert_int_equal(fake_sink_counts(world->sink)->unreachable, 0);
}

static void hours_of_peace_leave_no_gap(void **state)
{
	struct world *world = *state;

	world_put_some(world, 3);
	world_open(world, NULL);
	world_settle(world);
	for (int minute = 0; minute < 6 * 60; minute++) {
		turn_ms(world->loop, MINUTE_MS);
		assert_true(roll_kube_is_live(world->kube));
		assert_int_equal(fake_api_open_watches(world->server), STREAMS);
	}
	assert_int_equal(fake_sink_counts(world->sink)->unreachable, 0);
}

static void a_watch_that_the_server_does_not_end_is_ended(void **state)
{
	struct world *world = *state;

	world_put_some(world, 3);
	fake_api_conf(world->server)->ignores_timeout = true;
	/* As the server would answer anyway; but they are counted. */
	fake_api_truncate(world->server, "dnsrecordsets?watch=1&allow", SIZE_MAX - 1, FOREVER);
	world_open(world, NULL);
	world_settle(world);
	for (size_t i = 0; i < 5; i++) {
		/* Half a minute later than asked for, in whole seconds; then a first back-off. */
		int64_t late_ms = asked_ms(world) + 30 * SECOND_MS;

		next_scripted(world, late_ms - SECOND_MS, late_ms + 200);
	}
	assert_int_equal(fake_api_counts(world->server)->lists, STREAMS);
}

static void a_watch_is_answered_within_half_a_minute(void **state)
{
	struct world *world = *state;

	world_put_some(world, 3);
	fake_api_script(world->server, "dnszones?watch=1&allow", NULL, 2);
	world_open(world, NULL);
	next_scripted(world, 0, 0);
	turn_ms(world->loop, 30 * SECOND_MS - 1);
	assert_int_equal(fake_sink_counts(world->sink)->unreachable, 0);
	next_scripted(world, 2, 201);
	assert_int_equal(fake_sink_counts(world->sink)->unreachable, 1);
	world_settle(world);
}

static void a_watch_of_ten_seconds_is_begun_again_at_once(void **state)
{
	struct world *world = *state;

	world_put_some(world, 3);
	world_open(world, NULL);
	world_settle(world);
	for (size_t i = 1; i <= 4; i++) {
		turn_ms(world->loop, 10 * SECOND_MS);
		fake_api_end_watches(world->server);
		world->want = STREAMS + i * STREAMS;
		happens(world, has_counted_watches, 0, 0);
	}
	turn_ms(world->loop, 10 * SECOND_MS - 1);
	fake_api_end_watches(world->server);
	turn_settle(world->loop);
	assert_int_equal(fake_api_counts(world->server)->watches, 5 * STREAMS);
	world->want = 6 * STREAMS;
	happens(world, has_counted_watches, 1, 200);
	/* A watch that brought something has served its purpose, too. */
	turn_settle(world->loop);
	world_put(world, FAKE_CLASS, "powerdns", 2);
	world_put(world, FAKE_ZONE, "example-com", 2);
	world_put(world, FAKE_RECORDSET, "rs-000", 2);
	turn_settle(world->loop);
	fake_api_end_watches(world->server);
	world->want = 7 * STREAMS;
	happens(world, has_counted_watches, 0, 0);
}

/* --- silence --- */

static void a_watch_is_probed_after_65_s_without_a_line(void **state)
{
	struct world *world = *state;
	const struct fake_api_counts *counts = fake_api_counts(world->server);

	world_put_some(world, 3);
	world_open(world, NULL);
	world_settle(world);
	turn_ms(world->loop, 65 * SECOND_MS - 1);
	assert_int_equal(counts->probes, 0);
	turn_ms(world->loop, 1);
	assert_int_equal(counts->probes, STREAMS);
	/* A line, even one that says nothing new, is as good. */
	turn_ms(world->loop, 64 * SECOND_MS);
	fake_api_bookmark(world->server);
	turn_ms(world->loop, 65 * SECOND_MS - 1);
	assert_int_equal(counts->probes, STREAMS);
	turn_ms(world->loop, 1);
	assert_int_equal(counts->probes, 2 * STREAMS);
	assert_int_equal(counts->watches, STREAMS);
	assert_true(roll_kube_is_live(world->kube));
}

static void a_probe_has_ten_seconds(void **state)
{
	struct world *world = *state;

	world_put_some(world, 3);
	world_open(world, NULL);
	world_settle(world);
	fake_api_conf(world->server)->hangs_lists = true;
	turn_ms(world->loop, 75 * SECOND_MS - 1);
	assert_true(roll_kube_is_live(world->kube));
	assert_int_equal(fake_sink_counts(world->sink)->unreachable, 0);
	turn_ms(world->loop, 1);
	assert_false(roll_kube_is_live(world->kube));
	assert_int_equal(fake_sink_counts(world->sink)->unreachable, STREAMS);
	assert_int_equal(fake_api_counts(world->server)->watches, STREAMS);
	/* By another connection, perhaps to another server; asked about at once. */
	turn_ms(world->loop, 200);
	assert_int_equal(fake_api_counts(world->server)->watches, 2 * STREAMS);
	assert_int_equal(fake_api_counts(world->server)->probes, 2 * STREAMS);
	assert_int_equal(fake_sink_object_count(world->sink), 6);
	fake_api_conf(world->server)->hangs_lists = false;
	turn_ms(world->loop, 15 * SECOND_MS);
	assert_true(roll_kube_is_live(world->kube));
	assert_int_equal(fake_api_counts(world->server)->lists, STREAMS);
}

/* The connection is there, but the server on it hears of nothing any more. */
static void a_watch_has_five_seconds_to_show_what_the_probe_saw(void **state)
{
	struct world *world = *state;

	world_put_some(world, 3);
	world_open(world, NULL);
	world_settle(world);
	fake_api_conf(world->server)->is_silent = true;
	fake_api_delete(world->server, FAKE_RECORDSET, "default", "rs-001");
	turn_ms(world->loop, 70 * SECOND_MS - 1);
	assert_int_equal(fake_api_counts(world->server)->probes, STREAMS);
	assert_int_equal(fake_api_counts(world->server)->watches, STREAMS);
	assert_false(is_equal(world));
	fake_api_conf(world->server)->is_silent = false;
	turn_ms(world->loop, 1);
	assert_int_equal(fake_api_counts(world->server)->watches, 2 * STREAMS);
	assert_true(is_equal(world));
	assert_int_equal(fake_api_counts(world->server)->lists, STREAMS);
	assert_int_equal(fake_sink_counts(world->sink)->unreachable, 0);
	assert_true(roll_kube_is_live(world->kube));
}

static void a_line_in_those_five_seconds_is_enough(void **state)
{
	struct world *world = *state;

	world_put_some(world, 3);
	world_open(world, NULL);
	world_settle(world);
	fake_api_bump(world->server);
	turn_ms(world->loop, 65 * SECOND_MS + 4999);
	fake_api_bookmark(world->server);
	turn_ms(world->loop, MINUTE_MS);
	assert_int_equal(fake_api_counts(world->server)->watches, STREAMS);
	assert_true(roll_kube_is_live(world->kube));
}

static void without_proof_it_is_live_for_87_s(void **state)
{
	struct world *world = *state;

	world_put_some(world, 3);
	world_open(world, NULL);
	world_settle(world);
	fake_api_stop(world->server);
	turn_ms(world->loop, 87 * SECOND_MS);
	assert_true(roll_kube_is_live(world->kube));
	/* It is known all the while that something is wrong. */
	assert_true(fake_sink_counts(world->sink)->unreachable > STREAMS);
	turn_ms(world->loop, 1);
	assert_false(roll_kube_is_live(world->kube));
}

static void the_sink_is_reassured_once_a_second(void **state)
{
	struct world *world = *state;
	size_t confirmed;

	world_put_some(world, 3);
	world_open(world, NULL);
	world_settle(world);
	confirmed = fake_sink_counts(world->sink)->confirmed;
	for (int i = 0; i < 600; i++) {
		world_put(world, FAKE_RECORDSET, "rs-000", i);
		turn_ms(world->loop, 100);
	}
	assert_in_range(fake_sink_counts(world->sink)->confirmed - confirmed, 59, 60);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
	const struct CMUnitTest tests[] = {
		TEST(back_off_grows_to_five_seconds_and_is_spread),
		TEST(back_off_begins_anew_after_success),
		TEST(the_server_says_when_to_come_again),
		TEST(an_hour_of_failure_is_no_busy_hour),
		TEST(a_server_that_is_away_is_looked_for_in_reason),
		TEST(once_has_four_chances),
		TEST(a_list_is_confirmed_after_two_seconds),
		TEST(a_list_without_a_byte_is_given_up_after_20_s),
		TEST(a_page_takes_a_minute_at_most),
		TEST(a_full_list_comes_every_hour_give_or_take_six_minutes),
		TEST(a_cluster_is_identified_before_each_list),
		TEST(a_streaming_list_without_an_object_ends_after_20_s),
		TEST(a_streaming_list_ends_after_five_minutes_however_busy),
		TEST(a_watch_is_asked_for_five_to_ten_minutes),
		TEST(hours_of_peace_leave_no_gap),
		TEST(a_watch_that_the_server_does_not_end_is_ended),
		TEST(a_watch_is_answered_within_half_a_minute),
		TEST(a_watch_of_ten_seconds_is_begun_again_at_once),
		TEST(a_watch_is_probed_after_65_s_without_a_line),
		TEST(a_probe_has_ten_seconds),
		TEST(a_watch_has_five_seconds_to_show_what_the_probe_saw),
		TEST(a_line_in_those_five_seconds_is_enough),
		TEST(without_proof_it_is_live_for_87_s),
		TEST(the_sink_is_reassured_once_a_second),
	};

	/* One test alone, by name, for those who look for a mistake. */
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
