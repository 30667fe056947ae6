/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "tests/lib/gzip.h"
#include "tests/lib/kube_world.h"

#define LIST_START "{\"apiVersion\":\"dns.networking.miloapis.com/v1alpha1\","
#define LIST_END ",\"kind\":\"DNSZoneClassList\",\"metadata\":{\"resourceVersion\":\"900\"}}"

/*
 * Everything that a server was seen to do, against source/kube as a whole. One long file: the cases
 * share one world, and are read beside one another.
 */

/* --- the good path --- */

static void lists_and_then_watches(void **state)
{
	struct world *world = *state;
	const struct fake_api_counts *counts = fake_api_counts(world->server);

	world_put_some(world, 10);
	world_open(world, NULL);
	world_settle(world);
	assert_true(fake_sink_counts(world->sink)->confirmed > 0);
	assert_true(roll_kube_is_live(world->kube));
	assert_int_equal(counts->lists, STREAMS);
	world_put(world, FAKE_RECORDSET, "rs-new", 1);
	world_put(world, FAKE_ZONE, "example-com", 2);
	fake_api_delete(world->server, FAKE_RECORDSET, "default", "rs-003");
	fake_api_terminate(world->server, FAKE_ZONE, "default", "example-org");
	fake_api_delete(world->server, FAKE_CLASS, NULL, "powerdns");
	world_settle(world);
	assert_int_equal(counts->lists, STREAMS);
	assert_int_equal(counts->watches, STREAMS);
	assert_int_equal(fake_sink_counts(world->sink)->unreachable, 0);
}

static void a_list_is_read_page_by_page(void **state)
{
	struct world *world = *state;

	fake_api_conf(world->server)->page_max = 3;
	world_put_some(world, 11);
	world_open(world, NULL);
	world_settle(world);
	assert_int_equal(fake_api_counts(world->server)->pages, 3);
}

static void a_streaming_list_is_the_first_choice(void **state)
{
	struct world *world = *state;

	fake_api_conf(world->server)->has_stream = true;
	world_put_some(world, 10);
	world_open(world, NULL);
	world_settle(world);
	assert_int_equal(fake_api_counts(world->server)->streams, STREAMS);
	assert_int_equal(fake_api_counts(world->server)->lists, 0);
	world_put(world, FAKE_RECORDSET, "rs-new", 1);
	world_settle(world);
}

static void bytes_may_come_one_at_a_time(void **state)
{
	for (int has_stream = 0; has_stream < 2; has_stream++) {
		struct world *world = *state;

		fake_api_conf(world->server)->slice_bytes = 1;
		fake_api_conf(world->server)->has_stream = has_stream;
		world_put_some(world, 2);
		world_open(world, NULL);
		world_settle(world);
		world_put(world, FAKE_RECORDSET, "rs-000", 7 + has_stream);
		world_settle(world);
		world_close(world);
		world_forget(world);
	}
}

static void what_arrives_together_is_one_batch(void **state)
{
	struct world *world = *state;
	size_t batches;
	char name[32];

	world_put_some(world, 1);
	world_open(world, NULL);
	world_settle(world);
	batches = fake_sink_counts(world->sink)->batches;
	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof name, "many-%d", i);
		world_put(world, FAKE_RECORDSET, name, i);
	}
	world_settle(world);
	assert_in_range(fake_sink_counts(world->sink)->batches - batches, 1, 2);
}

static void only_wanted_namespaces_are_asked_for(void **state)
{
	static const char *const wanted[] = {"default", "team-b"};
	static const char *const bad[] = {"../x"}, *const twice[] = {"a", "a"};
	struct world *world = *state;
	struct roll_kube *kube;
	struct roll_err err;

	world_put_some(world, 3);
	fake_api_put(world->server, FAKE_ZONE, "team-b", "z", json_pack("{s:i}", "n", 1));
	world->conf.namespaces = wanted;
	world->conf.namespace_count = 2;
	world_open(world, NULL);
	world->want = 5;
	assert_true(turn_until(world->loop, has_taken_lists, world, PATIENCE_MS));
	assert_true(fake_sink_equals(world->sink, world->server));
	assert_non_null(strstr(fake_api_last_request(world->server), "/namespaces/"));
	fake_api_put(world->server, FAKE_ZONE, "team-c", "z", json_pack("{s:i}", "n", 1));
	fake_api_put(world->server, FAKE_ZONE, "team-b", "z", json_pack("{s:i}", "n", 2));
	turn_settle(world->loop);
	assert_int_equal(fake_sink_object_count(world->sink), 7);

	world->conf.namespaces = bad;
	world->conf.namespace_count = 1;
	assert_int_equal(roll_kube_new(&world->conf, &kube, &err), ROLL_EINVAL);
	world->conf.namespaces = twice;
	world->conf.namespace_count = 2;
	assert_int_equal(roll_kube_new(&world->conf, &kube, &err), ROLL_EINVAL);
}

static void goes_on_from_the_stored_position(void **state)
{
	struct world *world = *state;
	size_t lists;

	world_put_some(world, 5);
	world_open(world, NULL);
	world_settle(world);
	world_put(world, FAKE_RECORDSET, "rs-002", 9);
	world_settle(world);
	world_close(world);
	lists = fake_api_counts(world->server)->lists;
	fake_api_delete(world->server, FAKE_RECORDSET, "default", "rs-001");
	world_put(world, FAKE_ZONE, "later", 1);
	world_open(world, NULL);
	world_settle(world);
	assert_int_equal(fake_api_counts(world->server)->lists, lists);
	assert_true(fake_sink_counts(world->sink)->confirmed > 0);
}

static void bookmarks_move_the_position(void **state)
{
	struct world *world = *state;
	struct roll_buf text;
	uint64_t revision = 0;
	size_t lists;

	world_put_some(world, 3);
	world_open(world, NULL);
	world_settle(world);
	for (int i = 0; i < 5; i++)
		fake_api_bump(world->server);
	fake_api_bookmark(world->server);
	fake_api_bookmark(world->server);
	turn_settle(world->loop);
	roll_buf_init(&text, 64);
	assert_int_equal(fake_sink_position(world->sink, roll_str_c("dnszones"), &text), ROLL_OK);
	assert_int_equal(roll_str_u64(roll_buf_str(&text), UINT64_MAX, &revision), ROLL_OK);
	assert_int_equal(revision, fake_api_revision(world->server));
	roll_buf_fini(&text);
	/* So what was before it may be forgotten. */
	lists = fake_api_counts(world->server)->lists;
	fake_api_compact(world->server);
	fake_api_end_watches(world->server);
	world_put(world, FAKE_RECORDSET, "rs-later", 1);
	world_settle(world);
	assert_int_equal(fake_api_counts(world->server)->lists, lists);
}

/* --- lists that do not count --- */

static void a_list_cut_at_any_byte_does_not_count(void **state)
{
	struct world *world = *state;
	const struct fake_sink_counts *counts = fake_sink_counts(world->sink);

	world->conf.no_stream = true;
	world_put_some(world, 2);
	for (int gzips = 0; gzips < 2; gzips++) {
		size_t n;

		fake_api_conf(world->server)->gzips = gzips;
		world_forget(world);
		world_open(world, NULL);
		world_settle(world);
		n = fake_api_last_answer_bytes(world->server);
		world_close(world);
		assert_in_range(n, 500, 1500);
		for (size_t at = 0; at < n; at++) {
			size_t aborted = counts->lists_aborted;

			fake_sink_set_position(world->sink, "dnsrecordsets", "");
			fake_api_truncate(world->server, "dnsrecordsets?limit", at, 1);
			world_open(world, NULL);
			world->want = counts->lists_taken + 1;
			assert_true(turn_until(world->loop, has_taken_lists, world, PATIENCE_MS));
			assert_true(is_equal(world));
			world_close(world);
			/* libcurl itself repeats a request that got no head at all. */
			assert_in_range(counts->lists_aborted - aborted, at > 20, 1);
		}
	}
}

static bool is_watch_asked_for(void *ctx)
{
	struct world *world = ctx;

	return strstr(fake_api_last_request(world->server), "watch=1") != NULL;
}

/* Large lists shrink to a tenth and less; a watch is to be read as it comes. */
static void lists_are_asked_for_compressed_and_watches_are_not(void **state)
{
	static const char gzip[] = "\r\nAccept-Encoding: gzip\r\n";
	struct world *world = *state;

	fake_api_conf(world->server)->gzips = true;
	world->conf.no_stream = true;
	world_put_some(world, 3);
	world->conf.is_once = true;
	world_open(world, NULL);
	assert_true(turn_until(world->loop, has_ended, world, PATIENCE_MS));
	assert_true(is_equal(world));
	assert_non_null(strstr(fake_api_last_request(world->server), "dnsrecordsets?limit=500"));
	assert_non_null(strstr(fake_api_last_request(world->server), gzip));
	world_close(world);
	world->conf.is_once = false;
	world_open(world, NULL);
	world_settle(world);
	turn_ms(world->loop, 10000);
	fake_api_end_watches(world->server);
	assert_true(turn_until(world->loop, is_watch_asked_for, world, PATIENCE_MS));
	assert_null(strstr(fake_api_last_request(world->server), gzip));
}

/* The answer is whole, but what it was packed from is not. */
static void a_compressed_list_that_ends_early_does_not_count(void **state)
{
	struct world *world = *state;
	struct roll_buf packed, answer;

	world->conf.no_stream = true;
	roll_buf_init(&packed, 4096);
	gzip_stored(&packed, roll_str_c(LIST_START "\"items\":[]" LIST_END));
	/* Its last eight bytes are a checksum and a length. */
	for (size_t n = 0; n < packed.n - 8; n++) {
		size_t aborted = fake_sink_counts(world->sink)->lists_aborted;

		fake_sink_set_position(world->sink, "dnszoneclasses", "");
		roll_buf_init(&answer, 4096);
		roll_buf_printf(&answer,
				"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
				"Content-Length: %zu\r\n\r\n",
				n);
		roll_buf_add(&answer, packed.p, n);
		fake_api_script_bytes(world->server, "dnszoneclasses?limit", answer.p, answer.n, 1);
		world_open(world, NULL);
		turn_settle(world->loop);
		assert_int_equal(fake_sink_counts(world->sink)->lists_aborted, aborted + 1);
		world_close(world);
		roll_buf_fini(&answer);
	}
	roll_buf_fini(&packed);
}

/* What is small on the wire may be of any size. It is looked at piece by piece. */
static void a_compressed_list_is_bounded(void **state)
{
	static const struct {
		const char *head, *tail;
		char byte;
		bool is_list;
	} cases[] = {
		{LIST_START "\"items\":[{\"metadata\":{\"x\":\"", "\"}}]" LIST_END, 'x', false},
		{LIST_START "\"x\":\"", "\",\"items\":[]" LIST_END, 'x', false},
		{LIST_START "\"items\":[", "]" LIST_END, ' ', true},
	};
	static const char http[] = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
				   "Connection: close\r\n\r\n";
	struct world *world = *state;
	struct rusage before, after;
	struct roll_buf answer;

	world->conf.no_stream = true;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t taken = fake_sink_counts(world->sink)->lists_taken;

		world_forget(world);
		roll_buf_init(&answer, 1u << 20);
		roll_buf_add_c(&answer, http);
		gzip_run(&answer, roll_str_c(cases[i].head), (unsigned char)cases[i].byte,
			 64u << 20, roll_str_c(cases[i].tail));
		assert_int_equal(answer.status, ROLL_OK);
		fake_api_script_bytes(world->server, "dnszoneclasses?limit", answer.p, answer.n, 1);
		assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
		world_open(world, NULL);
		turn_settle(world->loop);
		assert_int_equal(fake_sink_counts(world->sink)->lists_taken - taken,
				 cases[i].is_list ? STREAMS : STREAMS - 1);
		assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
		/* An item of 16 MiB, and what it grew out of. */
		assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 48L << 10);
		world_close(world);
		roll_buf_fini(&answer);
	}
}

/* Without a length, the end of the stream looks like the end of the list. */
static void a_list_must_be_whole_json(void **state)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
				   "Connection: close\r\n\r\n";
	static const char list[] =
		"{\"apiVersion\":\"dns.networking.miloapis.com/v1alpha1\",\"items\":[],"
		"\"kind\":\"DNSRecordSetList\",\"metadata\":{\"continue\":\"\","
		"\"resourceVersion\":\"900\"}}";
	struct world *world = *state;
	char text[sizeof head + sizeof list];

	world_put_some(world, 3);
	world_open(world, NULL);
	world_settle(world);
	world_close(world);
	for (size_t n = 0; n < sizeof list - 1; n++) {
		size_t taken = fake_sink_counts(world->sink)->lists_taken;

		fake_sink_set_position(world->sink, "dnsrecordsets", "");
		snprintf(text, sizeof text, "%s%.*s", head, (int)n, list);
		fake_api_script(world->server, "dnsrecordsets?limit", text, 1);
		world_open(world, NULL);
		world->want = taken + 1;
		assert_true(turn_until(world->loop, has_taken_lists, world, PATIENCE_MS));
		assert_true(fake_sink_equals(world->sink, world->server));
		world_close(world);
	}
}

static void a_list_of_something_else_does_not_count(void **state)
{
#define LIST_HEAD "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
#define LIST_API "\"apiVersion\":\"dns.networking.miloapis.com/v1alpha1\""
	static const char *const lists[] = {
		LIST_HEAD "{}",
		LIST_HEAD "[]",
		LIST_HEAD "<html>sign in</html>",
		LIST_HEAD "{\"kind\":\"Status\",\"status\":\"Success\"}",
		LIST_HEAD "{" LIST_API ",\"items\":[],\"kind\":\"DNSZoneList\",\"metadata\":"
			  "{\"resourceVersion\":\"900\"}}",
		LIST_HEAD "{\"apiVersion\":\"v1\",\"items\":[],\"kind\":\"DNSRecordSetList\","
			  "\"metadata\":{\"resourceVersion\":\"900\"}}",
		LIST_HEAD "{" LIST_API ",\"kind\":\"DNSRecordSetList\",\"metadata\":"
			  "{\"resourceVersion\":\"900\"}}",
		LIST_HEAD "{" LIST_API ",\"items\":[],\"kind\":\"DNSRecordSetList\","
			  "\"metadata\":{}}",
		LIST_HEAD "{" LIST_API ",\"items\":[],\"kind\":\"DNSRecordSetList\","
			  "\"metadata\":{\"resourceVersion\":\"x\"}}",
		LIST_HEAD "{" LIST_API ",\"items\":[],\"kind\":\"DNSRecordSetList\","
			  "\"metadata\":{\"resourceVersion\":\"0\"}}",
		LIST_HEAD "{" LIST_API ",\"items\":[1],\"kind\":\"DNSRecordSetList\","
			  "\"metadata\":{\"resourceVersion\":\"900\"}}",
		LIST_HEAD "{" LIST_API ",\"items\":[{\"kind\":\"DNSZone\"}],"
			  "\"kind\":\"DNSRecordSetList\","
			  "\"metadata\":{\"resourceVersion\":\"900\"}}",
		/* A page that leads to one of another snapshot, and one that leads to itself. */
		LIST_HEAD "{" LIST_API ",\"items\":[],\"kind\":\"DNSRecordSetList\",\"metadata\":"
			  "{\"resourceVersion\":\"102\",\"continue\":\"r=103+a\"}}",
		/* Older than what is known. */
		LIST_HEAD "{" LIST_API ",\"items\":[],\"kind\":\"DNSRecordSetList\","
			  "\"metadata\":{\"resourceVersion\":\"50\"}}",
	};
	struct world *world = *state;

	world_put_some(world, 3);
	world_open(world, NULL);
	world_settle(world);
	world_close(world);
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		size_t taken = fake_sink_counts(world->sink)->lists_taken;

		/* Its watch has expired, so the position is known but of no use. */
		fake_api_script(world->server, "dnsrecordsets?watch=1&allow",
				"HTTP/1.1 410 Gone\r\nConnection: close\r\n\r\n", 1);
		fake_api_script(world->server, "dnsrecordsets?limit=500", lists[i], 1);
		world_open(world, NULL);
		world->want = taken + 1;
		assert_true(turn_until(world->loop, has_taken_lists, world, PATIENCE_MS));
		assert_true(fake_sink_equals(world->sink, world->server));
		world_close(world);
	}
	assert_true(fake_sink_counts(world->sink)->lists_aborted >= sizeof lists / sizeof *lists);
}

static void an_expired_continue_token_means_to_start_over(void **state)
{
	struct world *world = *state;
	struct fake_api_conf *conf = fake_api_conf(world->server);

	conf->page_max = 2;
	world_put_some(world, 9);
	/* The server forgets the snapshot between the second and the third page. */
	fake_api_script(world->server, "continue=r%3D112%2Bdefault%2Frs-003",
			"HTTP/1.1 410 Gone\r\nContent-Type: application/json\r\n"
			"Connection: close\r\n\r\n"
			"{\"kind\":\"Status\",\"metadata\":{\"continue\":\"r=0++fresh\"},"
			"\"reason\":\"Expired\",\"code\":410}",
			1);
	world_open(world, NULL);
	world_settle(world);
	assert_int_equal(fake_sink_counts(world->sink)->lists_taken, STREAMS);
	assert_true(fake_sink_counts(world->sink)->lists_aborted > 0);
}

/* --- answers that mean nothing about objects --- */

static const char *const refusals[] = {
	"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 19\r\n\r\n"
	"404 page not found\n",
	"HTTP/1.1 406 Not Acceptable\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\n\r\n"
	"{\"kind\":\"Status\",\"reason\":\"TooManyRequests\",\"code\":429,"
	"\"details\":{\"retryAfterSeconds\":1}}",
	"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 3\r\n\r\n\xff\xfe\x01",
	"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 301 Moved Permanently\r\nLocation: http://127.0.0.1:1/\r\n"
	"Content-Length: 0\r\n\r\n",
	"HTTP/1.1 204 No Content\r\n\r\n",
	"SSH-2.0-OpenSSH_9.2\r\n",
	"",
};

static void refused_lists_are_tried_again(void **state)
{
	struct world *world = *state;

	world_put_some(world, 3);
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		size_t taken = fake_sink_counts(world->sink)->lists_taken;

		fake_sink_set_position(world->sink, "dnsrecordsets", "");
		fake_api_script(world->server, "dnsrecordsets?limit", refusals[i], 2);
		world_open(world, NULL);
		world->want = taken + 1;
		assert_true(turn_until(world->loop, has_taken_lists, world, PATIENCE_MS));
		world_settle(world);
		world_close(world);
	}
}

static void refused_watches_are_tried_again(void **state)
{
	struct world *world = *state;

	world_put_some(world, 3);
	world_open(world, NULL);
	world_settle(world);
	world_close(world);
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		fake_api_script(world->server, "dnsrecordsets?watch=1&allow", refusals[i], 2);
		world_open(world, NULL);
		world_put(world, FAKE_RECORDSET, "rs-001", (int)i);
		world_settle(world);
		world_close(world);
	}
}

static void error_events_end_the_watch_and_nothing_else(void **state)
{
	static const char *const lines[] = {
		"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
		"\"reason\":\"Expired\"}}\n",
		"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":500,"
		"\"reason\":\"InternalError\",\"message\":\"etcd\"}}\n",
		"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":429}}\n",
		"{\"type\":\"ERROR\",\"object\":{}}\n",
		"{\"type\":\"ERROR\"}\n",
		"{\"type\":\"ADDED\",\"object\":{\"kind\":\"DNSZoneClass\"}}\n",
		"{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\",\"metadata\":"
		"{\"resourceVersion\":\"99999\",\"name\":\"x\"}}}\n",
		"not json\n",
		"null\n",
		"{}\n",
	};
	struct world *world = *state;

	world_put_some(world, 3);
	world_open(world, NULL);
	world_settle(world);
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		fake_api_say(world->server, lines[i], strlen(lines[i]));
		turn_settle(world->loop);
		world_put(world, FAKE_RECORDSET, "rs-001", (int)i);
		world_settle(world);
		assert_int_equal(fake_sink_object_count(world->sink), 6);
	}
}

static void a_streaming_list_that_fails_leads_to_pages(void **state)
{
#define STREAM_HEAD "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
	static const char *const answers[] = {
		STREAM_HEAD "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":500,"
			    "\"message\":\"RequestWatchProgress is disabled\"}}\n",
		"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 422 Unprocessable Entity\r\nContent-Length: 0\r\n\r\n",
		STREAM_HEAD "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"DNSZone\",\"metadata\":"
			    "{\"resourceVersion\":\"900\"}}}\n",
		STREAM_HEAD,
	};
	struct world *world = *state;

	world_put_some(world, 3);
	fake_api_conf(world->server)->has_stream = true;
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		size_t streams = fake_api_counts(world->server)->streams;

		world_forget(world);
		fake_api_script(world->server, "sendInitialEvents", answers[i], 1);
		world_open(world, NULL);
		world_settle(world);
		/* And what was learned is remembered. */
		assert_int_equal(fake_api_counts(world->server)->streams, streams);
		world_close(world);
	}
}

static void a_streaming_list_cut_at_any_byte_does_not_count(void **state)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
				   "Transfer-Encoding: chunked\r\n\r\n";
	struct world *world = *state;
	const struct fake_sink_counts *counts = fake_sink_counts(world->sink);
	size_t lists, aborted, at = 0;

	fake_api_conf(world->server)->has_stream = true;
	world_put_some(world, 2);
	world_open(world, NULL);
	world_settle(world);
	world_close(world);
	do {
		lists = fake_api_counts(world->server)->lists;
		aborted = counts->lists_aborted;
		world->want = counts->lists_taken + 1;
		fake_sink_set_position(world->sink, "dnsrecordsets", "");
		fake_api_truncate(world->server, "dnsrecordsets?watch=1&send", at++, 1);
		world_open(world, NULL);
		assert_true(turn_until(world->loop, has_taken_lists, world, PATIENCE_MS));
		assert_true(is_equal(world));
		world_close(world);
		/* One that had begun is followed by one in pages. */
		if (at >= sizeof head && counts->lists_aborted > aborted)
			assert_int_equal(fake_api_counts(world->server)->lists, lists + 1);
	} while (counts->lists_aborted > aborted);
	/* The line break after the bookmark is what makes it whole. */
	assert_in_range(at, 800, 1200);
}

static void a_streaming_list_counts_from_its_own_bookmark_only(void **state)
{
#define OBJECT(type, name, more)                                                               \
	"{\"type\":\"" type "\",\"object\":{\"kind\":\"DNSZone\",\"metadata\":{\"namespace\":" \
	"\"default\",\"name\":\"" name "\",\"uid\":\"u-" name "\"," more "}}}\n"
#define MARK(more) \
	"{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"DNSZone\",\"metadata\":{" more "}}}\n"
#define FALSE_ZONE OBJECT("ADDED", "false", "\"resourceVersion\":\"90\"")
#define END "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}"
	static const char *const answers[] = {
		/* Trouble in the middle, */
		FALSE_ZONE "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n",
		FALSE_ZONE "{\"type\":\"ERROR\",\"object\":{\"code\":429}}\n",
		FALSE_ZONE "{\"type\":\"ERROR\",\"object\":{\"code\":500}}\n",
		FALSE_ZONE "{\"type\":\"ERROR\",\"object\":{}}\n",
		FALSE_ZONE "<html>\n",
		FALSE_ZONE "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\",\"metadata\":"
			   "{\"resourceVersion\":\"91\"}}}\n",
		FALSE_ZONE OBJECT("ADDED", "another", "\"resourceVersion\":\"\""),
		/* and bookmarks that do not close. */
		FALSE_ZONE MARK("\"resourceVersion\":\"900\""),
		FALSE_ZONE MARK("\"annotations\":{\"k8s.io/initial-events-end\":\"false\"},"
				"\"resourceVersion\":\"900\""),
		FALSE_ZONE MARK("\"annotations\":{\"k8s.io/initial-events-end\":true},"
				"\"resourceVersion\":\"900\""),
		FALSE_ZONE MARK("\"labels\":{\"k8s.io/initial-events-end\":\"true\"},"
				"\"resourceVersion\":\"900\""),
		FALSE_ZONE OBJECT("ADDED", "another", END ",\"resourceVersion\":\"91\""),
		FALSE_ZONE MARK(END),
		FALSE_ZONE MARK(END ",\"resourceVersion\":\"0\""),
		/* A server that is behind: its list is complete, and too old. */
		FALSE_ZONE MARK(END ",\"resourceVersion\":\"99\""),
	};
	struct world *world = *state;
	char text[2048];

	world_put_some(world, 3);
	fake_api_conf(world->server)->has_stream = true;
	world_open(world, NULL);
	world_settle(world);
	world_close(world);
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		size_t taken = fake_sink_counts(world->sink)->lists_taken;

		snprintf(text, sizeof text, STREAM_HEAD "%s", answers[i]);
		/* The position is known, but of no use. */
		fake_api_script(world->server, "dnszones?watch=1&allow",
				"HTTP/1.1 410 Gone\r\nConnection: close\r\n\r\n", 1);
		fake_api_script(world->server, "dnszones?watch=1&send", text, 1);
		world_open(world, NULL);
		world->want = taken + 1;
		assert_true(turn_until(world->loop, has_taken_lists, world, PATIENCE_MS));
		assert_true(is_equal(world));
		assert_int_equal(fake_sink_counts(world->sink)->lists_aborted, i + 1);
		world_close(world);
	}
}

/* What changes while the list is sent comes within it, like any other event. */
static void a_streaming_list_may_hold_an_object_twice(void **state)
{
	static const char answer[] = STREAM_HEAD OBJECT("ADDED", "z", "\"resourceVersion\":\"90\"")
		MARK("\"resourceVersion\":\"95\"")
			OBJECT("MODIFIED", "z", "\"resourceVersion\":\"100\"")
				OBJECT("ADDED", "y", "\"resourceVersion\":\"80\"")
					MARK(END ",\"resourceVersion\":\"100\"");
	struct world *world = *state;

	fake_api_conf(world->server)->has_stream = true;
	fake_api_script(world->server, "dnszones?watch=1&send", answer, 1);
	world_open(world, NULL);
	world->want = STREAMS;
	assert_true(turn_until(world->loop, has_taken_lists, world, 0));
	assert_int_equal(fake_sink_object_count(world->sink), 2);
	/* And the watch goes on from the bookmark. */
	fake_api_put(world->server, FAKE_ZONE, "default", "z", json_object());
	fake_api_delete(world->server, FAKE_ZONE, "default", "z");
	turn_settle(world->loop);
	assert_int_equal(fake_sink_object_count(world->sink), 1);
	assert_int_equal(fake_api_counts(world->server)->lists, 0);
}

static void a_silent_streaming_list_leads_to_pages(void **state)
{
	struct world *world = *state;

	world_put_some(world, 3);
	fake_api_conf(world->server)->has_stream = true;
	fake_api_script(world->server, "sendInitialEvents", NULL, 1);
	world_open(world, NULL);
	world_settle(world);
	assert_int_equal(fake_api_counts(world->server)->streams, 0);
}

static void what_goes_during_a_streaming_list_is_not_listed(void **state)
{
	static const char answer[] =
		STREAM_HEAD "{\"type\":\"ADDED\",\"object\":{\"kind\":\"DNSZone\",\"metadata\":{"
			    "\"namespace\":\"default\",\"name\":\"gone\",\"uid\":\"u\","
			    "\"resourceVersion\":\"90\"}}}\n"
			    "{\"type\":\"DELETED\",\"object\":{\"kind\":\"DNSZone\",\"metadata\":{"
			    "\"namespace\":\"default\",\"name\":\"gone\",\"uid\":\"u\","
			    "\"resourceVersion\":\"91\"}}}\n"
			    "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"DNSZone\",\"metadata\":{"
			    "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"},"
			    "\"resourceVersion\":\"91\"}}}\n";
	struct world *world = *state;

	world_put_some(world, 1);
	fake_api_conf(world->server)->has_stream = true;
	fake_api_script(world->server, "dnszones?watch=1&sendInitialEvents", answer, 1);
	world_open(world, NULL);
	world_settle(world);
	assert_int_equal(fake_api_counts(world->server)->streams, 2);
	assert_int_equal(fake_api_counts(world->server)->lists, 1);
}

static void a_rotated_token_is_read_again(void **state)
{
	struct world *world = *state;
	char path[] = "token-XXXXXX";
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");

	assert_non_null(file);
	fputs("first\n", file);
	fflush(file);
	fake_api_conf(world->server)->token = "first";
	world_put_some(world, 3);
	world_open(world, path);
	world_settle(world);
	fake_api_conf(world->server)->token = "second";
	fake_api_cut(world->server);
	world_put(world, FAKE_RECORDSET, "rs-002", 7);
	turn_ms(world->loop, 60000);
	assert_true(fake_api_counts(world->server)->denied > 0);
	assert_false(fake_sink_equals(world->sink, world->server));
	assert_int_equal(fake_sink_object_count(world->sink), 6);
	rewind(file);
	fputs("second\n", file);
	fflush(file);
	world_settle(world);
	fclose(file);
	remove(path);
}

/* --- ends of watches --- */

static void a_watch_that_ends_is_begun_again(void **state)
{
	struct world *world = *state;
	size_t lists;

	world_put_some(world, 3);
	world_open(world, NULL);
	world_settle(world);
	lists = fake_api_counts(world->server)->lists;
	for (int i = 0; i < 5; i++) {
		world_put(world, FAKE_RECORDSET, "rs-000", 10 + i);
		fake_api_end_watches(world->server);
		world_put(world, FAKE_RECORDSET, "rs-001", 10 + i);
		world_settle(world);
		fake_api_cut(world->server);
		fake_api_delete(world->server, FAKE_RECORDSET, "default", "rs-002");
		world_put(world, FAKE_RECORDSET, "rs-002", 10 + i);
		world_settle(world);
	}
	fake_api_stop(world->server);
	fake_api_delete(world->server, FAKE_RECORDSET, "default", "rs-001");
	turn_ms(world->loop, 60000);
	assert_false(fake_sink_equals(world->sink, world->server));
	assert_true(fake_sink_counts(world->sink)->unreachable > 0);
	assert_true(fake_api_resume(world->server));
	world_settle(world);
	assert_int_equal(fake_api_counts(world->server)->lists, lists);
}

static void a_watch_cut_at_any_byte_is_begun_again(void **state)
{
	struct world *world = *state;

	world_put_some(world, 1);
	world_open(world, NULL);
	world_settle(world);
	world_close(world);
	for (size_t at = 0; at < 620; at++) {
		fake_api_truncate(world->server, "dnsrecordsets?watch=1", at, 1);
		world_put(world, FAKE_RECORDSET, "rs-000", (int)at);
		if (at % 2)
			fake_api_delete(world->server, FAKE_RECORDSET, "default", "rs-000");
		world_open(world, NULL);
		world_settle(world);
		world_close(world);
	}
	assert_int_equal(fake_api_counts(world->server)->lists, STREAMS);
}

static void an_expired_position_means_to_list(void **state)
{
	struct world *world = *state;

	world_put_some(world, 5);
	world_open(world, NULL);
	world_settle(world);
	for (int i = 0; i < 3; i++) {
		fake_api_stop(world->server);
		fake_api_delete(world->server, FAKE_RECORDSET, "default", "rs-003");
		world_put(world, FAKE_RECORDSET, "rs-004", 20 + i);
		fake_api_bump(world->server);
		fake_api_compact(world->server);
		world_put(world, FAKE_RECORDSET, "rs-003", 20 + i);
		assert_true(fake_api_resume(world->server));
		world_settle(world);
	}
	assert_true(fake_api_counts(world->server)->lists > STREAMS);
}

/* --- lines --- */

static void odd_lines_do_no_harm(void **state)
{
	static const char lines[] = "\n\r\n   \n"
				    "{\"type\":\"REWOUND\",\"object\":{\"kind\":\"DNSZone\"}}\n"
				    "{\"type\":\"\\u001b[2J\",\"object\":{}}\n";
	struct world *world = *state;

	world_put_some(world, 3);
	world_open(world, NULL);
	world_settle(world);
	fake_api_say(world->server, lines, sizeof lines - 1);
	world_put(world, FAKE_RECORDSET, "rs-000", 5);
	world_settle(world);
	assert_int_equal(fake_api_counts(world->server)->watches, STREAMS);
}

static void events_that_are_known_are_passed_over(void **state)
{
	static const char again[] =
		"{\"type\":\"ADDED\",\"object\":{\"kind\":\"DNSZoneClass\",\"metadata\":"
		"{\"name\":\"powerdns\",\"resourceVersion\":\"101\"}}}\n";
	struct world *world = *state;
	size_t events;

	world_put_some(world, 1);
	world_open(world, NULL);
	world_settle(world);
	fake_api_delete(world->server, FAKE_CLASS, NULL, "powerdns");
	world_settle(world);
	events = fake_sink_counts(world->sink)->events;
	/* Other watches end over the wrong kind; the right one must not bring the class back. */
	fake_api_say(world->server, again, sizeof again - 1);
	turn_settle(world->loop);
	world_settle(world);
	assert_int_equal(fake_sink_counts(world->sink)->events, events);
}

static void large_objects_come_through(void **state)
{
	struct world *world = *state;
	size_t n = 3u << 20;
	char *text = malloc(n + 1);

	assert_non_null(text);
	memset(text, 'x', n);
	text[n] = '\0';
	world_put_some(world, 1);
	world_open(world, NULL);
	world_settle(world);
	fake_api_put(world->server, FAKE_RECORDSET, "default", "large",
		     json_pack("{s:s}", "text", text));
	world_put(world, FAKE_RECORDSET, "after", 1);
	world_settle(world);
	free(text);
}

/* --- a server that is behind --- */

static void a_server_behind_what_is_known_removes_nothing(void **state)
{
	struct world *world = *state;

	world_put_some(world, 5);
	world_open(world, NULL);
	world_settle(world);
	fake_api_delete(world->server, FAKE_RECORDSET, "default", "rs-001");
	world_settle(world);
	world_close(world);
	/* The next server is a replica that has seen none of the record sets. */
	fake_api_conf(world->server)->stale_at = 103;
	world_open(world, NULL);
	assert_true(turn_until(world->loop, is_in_trouble, world, PATIENCE_MS));
	turn_ms(world->loop, 600000);
	assert_int_equal(fake_sink_object_count(world->sink), 7);
	assert_true(fake_sink_counts(world->sink)->unreachable > 0);
	/* Nor does its list, if the position has expired besides. */
	fake_api_end_watches(world->server);
	fake_api_script(world->server, "watch=1&allow",
			"HTTP/1.1 410 Gone\r\nConnection: close\r\n\r\n", 3);
	turn_ms(world->loop, 600000);
	assert_int_equal(fake_sink_object_count(world->sink), 7);
	fake_api_conf(world->server)->stale_at = 0;
	world_settle(world);
}

static void a_server_restored_from_a_backup_is_listed_when_it_has_caught_up(void **state)
{
	struct world *world = *state;
	uint64_t backup, seen;

	world_put_some(world, 5);
	world_open(world, NULL);
	world_settle(world);
	backup = fake_api_revision(world->server);
	/* Of zones nothing newer is known than what the server has after two changes. */
	world_put(world, FAKE_ZONE, "late", 1);
	world_put(world, FAKE_RECORDSET, "rs-late", 1);
	fake_api_delete(world->server, FAKE_RECORDSET, "default", "rs-001");
	fake_api_delete(world->server, FAKE_RECORDSET, "default", "rs-002");
	world_settle(world);
	seen = fake_api_revision(world->server);
	fake_api_restore(world->server, backup);
	/* When a watch is opened, that is: not only after a silence. */
	assert_true(turn_until(world->loop, is_in_trouble, world, 20000));
	/* By its revision this is no news. */
	world_put(world, FAKE_RECORDSET, "rs-000", 7);
	fake_api_bump(world->server);
	turn_ms(world->loop, 600000);
	assert_int_equal(fake_sink_object_count(world->sink), 8);
	assert_false(fake_sink_equals(world->sink, world->server));
	while (fake_api_revision(world->server) <= seen)
		fake_api_bump(world->server);
	world_settle(world);
	world_put(world, FAKE_RECORDSET, "rs-000", 8);
	world_settle(world);
	assert_true(roll_kube_is_live(world->kube));
}

/* --- the sink has its own mind --- */

static void events_that_were_not_stored_come_again(void **state)
{
	struct world *world = *state;

	world_put_some(world, 3);
	world_open(world, NULL);
	world_settle(world);
	fake_sink_fail_events(world->sink, ROLL_EAGAIN, 3);
	world_put(world, FAKE_RECORDSET, "rs-000", 4);
	fake_api_delete(world->server, FAKE_RECORDSET, "default", "rs-001");
	world_settle(world);
	fake_sink_fail_puts(world->sink, ROLL_ENOMEM, 2);
	world_put(world, FAKE_RECORDSET, "rs-000", 5);
	world_put(world, FAKE_RECORDSET, "rs-002", 5);
	world_settle(world);
	assert_int_equal(fake_api_counts(world->server)->lists, STREAMS);
}

static void a_list_to_be_confirmed_is_followed_by_another(void **state)
{
	static const enum roll_status answers[] = {ROLL_EAGAIN, ROLL_ESTALE, ROLL_EIO};
	struct world *world = *state;

	world_put_some(world, 3);
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		size_t begun = fake_sink_counts(world->sink)->lists_begun;

		world_forget(world);
		world->conf.no_stream = true;
		fake_sink_fail_lists(world->sink, answers[i], 2);
		world_open(world, NULL);
		world->want = fake_sink_counts(world->sink)->lists_taken + STREAMS;
		assert_true(turn_until(world->loop, has_taken_lists, world, PATIENCE_MS));
		world_settle(world);
		assert_int_equal(fake_sink_counts(world->sink)->lists_begun, begun + STREAMS + 2);
		world_close(world);
	}
}

static void a_full_list_from_time_to_time_heals(void **state)
{
	struct world *world = *state;
	size_t watches;

	world_put_some(world, 30);
	fake_api_conf(world->server)->page_max = 4;
	world->conf.relist_ms = 150;
	world_open(world, NULL);
	world_settle(world);
	watches = fake_api_counts(world->server)->watches;
	fake_sink_lose(world->sink, FAKE_RECORDSET, "default/rs-002");
	fake_sink_lose(world->sink, FAKE_ZONE, "default/example-org");
	assert_true(turn_until(world->loop, is_equal, world, PATIENCE_MS));
	/* The watches run on meanwhile, and what they bring is newer than the list. */
	world->want = fake_sink_counts(world->sink)->lists_taken + 12;
	for (int i = 0; !has_taken_lists(world) && i < 2000; i++) {
		char name[32];

		snprintf(name, sizeof name, "rs-%03d", i % 30);
		if (i % 3 == 0)
			fake_api_delete(world->server, FAKE_RECORDSET, "default", name);
		else
			world_put(world, FAKE_RECORDSET, name, i);
		turn_ms(world->loop, 2);
	}
	assert_true(has_taken_lists(world));
	world_settle(world);
	assert_int_equal(fake_api_counts(world->server)->watches, watches);
}

/* --- identity, once --- */

static void another_cluster_is_not_believed(void **state)
{
	struct world *world = *state;

	fake_api_conf(world->server)->identity = "11111111-2222";
	world->identity_status = ROLL_EDENIED;
	world_put_some(world, 3);
	world_open(world, NULL);
	turn_ms(world->loop, 60000);
	assert_string_equal(world->identity, "11111111-2222");
	assert_int_equal(fake_api_counts(world->server)->lists, 0);
	assert_true(fake_sink_counts(world->sink)->unreachable > 0);
	world->identity_status = ROLL_OK;
	world_settle(world);
}

static void an_unreadable_identity_is_unknown(void **state)
{
	struct world *world = *state;

	fake_api_script(world->server, "kube-system",
			"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", 100);
	world_put_some(world, 3);
	world_open(world, NULL);
	world_settle(world);
	assert_int_equal(world->identities, 0);
}

static void once_lists_and_ends(void **state)
{
	struct world *world = *state;

	world_put_some(world, 3);
	world->conf.is_once = true;
	world_open(world, NULL);
	assert_true(turn_until(world->loop, has_ended, world, PATIENCE_MS));
	assert_int_equal(world->end_status, ROLL_OK);
	assert_true(fake_sink_equals(world->sink, world->server));
	assert_int_equal(fake_api_counts(world->server)->watches, 0);
}

static void once_gives_up(void **state)
{
	struct world *world = *state;

	fake_api_stop(world->server);
	world->conf.is_once = true;
	world_open(world, NULL);
	assert_true(turn_until(world->loop, has_ended, world, PATIENCE_MS));
	assert_int_equal(world->end_status, ROLL_EIO);
	world_close(world);

	assert_true(fake_api_resume(world->server));
	world->has_ended = false;
	world->conf.on_identity = NULL;
	fake_api_script(world->server, "dnszones",
			"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", 100);
	world_open(world, NULL);
	assert_true(turn_until(world->loop, has_ended, world, PATIENCE_MS));
	assert_int_equal(world->end_status, ROLL_EDENIED);
}

static void it_can_be_freed_at_any_moment(void **state)
{
	struct world *world = *state;

	fake_api_conf(world->server)->page_max = 2;
	fake_api_conf(world->server)->slice_bytes = 100;
	world_put_some(world, 6);
	for (size_t i = 1; i < 40; i++) {
		world_forget(world);
		world_open(world, NULL);
		for (size_t turn = 0; turn < i * 3; turn++)
			turn_once(world->loop);
		world_close(world);
	}
	world->want = 1;
	assert_true(has_counted_requests(world));
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
	const struct CMUnitTest tests[] = {
		TEST(lists_and_then_watches),
		TEST(a_list_is_read_page_by_page),
		TEST(a_streaming_list_is_the_first_choice),
		TEST(bytes_may_come_one_at_a_time),
		TEST(what_arrives_together_is_one_batch),
		TEST(only_wanted_namespaces_are_asked_for),
		TEST(goes_on_from_the_stored_position),
		TEST(bookmarks_move_the_position),
		TEST(a_list_cut_at_any_byte_does_not_count),
		TEST(lists_are_asked_for_compressed_and_watches_are_not),
		TEST(a_compressed_list_that_ends_early_does_not_count),
		TEST(a_compressed_list_is_bounded),
		TEST(a_list_must_be_whole_json),
		TEST(a_list_of_something_else_does_not_count),
		TEST(an_expired_continue_token_means_to_start_over),
		TEST(refused_lists_are_tried_again),
		TEST(refused_watches_are_tried_again),
		TEST(error_events_end_the_watch_and_nothing_else),
		TEST(a_streaming_list_that_fails_leads_to_pages),
		TEST(a_streaming_list_cut_at_any_byte_does_not_count),
		TEST(a_streaming_list_counts_from_its_own_bookmark_only),
		TEST(a_streaming_list_may_hold_an_object_twice),
		TEST(a_silent_streaming_list_leads_to_pages),
		TEST(what_goes_during_a_streaming_list_is_not_listed),
		TEST(a_rotated_token_is_read_again),
		TEST(a_watch_that_ends_is_begun_again),
		TEST(a_watch_cut_at_any_byte_is_begun_again),
		TEST(an_expired_position_means_to_list),
		TEST(odd_lines_do_no_harm),
		TEST(events_that_are_known_are_passed_over),
		TEST(large_objects_come_through),
		TEST(a_server_behind_what_is_known_removes_nothing),
		TEST(a_server_restored_from_a_backup_is_listed_when_it_has_caught_up),
		TEST(events_that_were_not_stored_come_again),
		TEST(a_list_to_be_confirmed_is_followed_by_another),
		TEST(a_full_list_from_time_to_time_heals),
		TEST(another_cluster_is_not_believed),
		TEST(an_unreadable_identity_is_unknown),
		TEST(once_lists_and_ends),
		TEST(once_gives_up),
		TEST(it_can_be_freed_at_any_moment),
	};

	/* One test alone, by name, for those who look for a mistake. */
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
