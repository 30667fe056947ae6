/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "sync/run.h"
#include "tests/lib/dial.h"
#include "tests/lib/fake_api.h"
#include "tests/lib/fake_lease.h"
#include "tests/lib/quiet.h"
#include "tests/lib/tempview.h"
#include "tests/lib/turn.h"

/*
 * What /readyz of rollcall-sync says, asked over HTTP, on a clock that is turned: each cause of 503
 * and each warning, with its words, and that it goes away again. The source is either the test
 * itself, or all of run_cluster.c with an API server.
 */

#define GRACE_MS 60000
#define SETTLE_MS 5000
#define MINUTE_MS 60000
#define LEASE "/apis/coordination.k8s.io/v1/namespaces/default/leases/rollcall-ours"
#define ZONES "/apis/dns.networking.miloapis.com/v1alpha1/namespaces/default/dnszones/"

struct world {
	struct roll_run run;
	struct tempview tv;
	struct roll_guard_conf guard;
	size_t unreadable;
	char reply[16384];
	/* With a cluster: */
	struct fake_api *server;
	struct fake_lease lease;
	char kubeconfig[128];
	bool denies_lease;
	bool denies_read, denies_write; /* of what status is written to */
};

/* --- a source that says what the test wants --- */

static size_t unreadable(void *state)
{
	return ((struct world *)state)->unreadable;
}

static const struct roll_run_source told = {.unreadable = unreadable};

static void list_nothing(struct world *world)
{
	const struct roll_sink *sink = roll_engine_sink(world->run.engine);
	const struct roll_list_head head = {
		.all_scopes = true, .kind = -1, .what = roll_str_c("manifests")};

	assert_int_equal(sink->list_begin(sink->ctx, &head), ROLL_OK);
	assert_int_equal(sink->list_end(sink->ctx, 0, roll_str_c("")), ROLL_OK);
}

static void unreachable(struct world *world, const char *why)
{
	const struct roll_sink *sink = roll_engine_sink(world->run.engine);

	sink->unreachable(sink->ctx, why);
}

static void confirmed(struct world *world)
{
	const struct roll_sink *sink = roll_engine_sink(world->run.engine);

	sink->confirmed(sink->ctx);
}

/* --- questions --- */

/* The body; the status is set. No time passes. */
static const char *ask(struct world *world, int *status)
{
	static const char request[] = "GET /readyz HTTP/1.1\r\nConnection: close\r\n\r\n";
	int fd = dial(roll_httpd_port(world->run.httpd));
	size_t used = 0;
	uint32_t code = 0;
	char *body;
	ssize_t n;

	assert_int_equal(send(fd, request, sizeof request - 1, 0), sizeof request - 1);
	while ((n = recv(fd, world->reply + used, sizeof world->reply - 1 - used, 0)) != 0) {
		if (n > 0)
			used += (size_t)n;
		else
			assert_int_equal(errno, EAGAIN);
		turn_once(world->run.loop);
	}
	close(fd);
	world->reply[used] = '\0';
	assert_true(roll_str_starts(roll_str_c(world->reply), "HTTP/1.1 "));
	assert_int_equal(roll_str_u32(roll_str_n(world->reply + 9, 3), 599, &code), ROLL_OK);
	*status = (int)code;
	body = strstr(world->reply, "\r\n\r\n");
	assert_non_null(body);
	return body + 4;
}

static void assert_ready(struct world *world, const char *body)
{
	int status;

	assert_string_equal(ask(world, &status), body);
	assert_int_equal(status, 200);
}

/* The first line of what is wrong, if it is the only one; the text up to its end or to `end`. */
static void assert_only(struct world *world, int status, const char *line)
{
	int got;
	const char *body = ask(world, &got), *first = strchr(body, '\n');

	assert_non_null(first);
	assert_int_equal(got, status);
	if (strncmp(body, status == 503 ? "not ready\n" : "ok\n", (size_t)(first - body) + 1) !=
		    0 ||
	    strncmp(first + 1, line, strlen(line)) != 0 || strchr(first + 1, '\n')[1] != '\0')
		fail_msg("want %d and a line that begins\n%s\ngot\n%s", status, line, body);
}

/* --- life --- */

static void begin(struct world *world, bool is_cluster)
{
	struct roll_run *run = &world->run;
	struct roll_engine_conf engine = {
		.is_cluster = is_cluster, .guard = &world->guard, .clock = &roll_clock_system};

	turn_begin();
	quiet();
	assert_int_equal(roll_loop_new(NULL, &run->loop, NULL), ROLL_OK);
	run->metrics = roll_metrics_new();
	assert_non_null(run->metrics);
	tempview_init(&world->tv);
	assert_true(tempview_open(&world->tv));
	run->options.view = world->tv.dir;
	run->writer = engine.writer = world->tv.writer;
	assert_int_equal(roll_engine_new(&engine, &run->engine, NULL), ROLL_OK);
	assert_int_equal(roll_httpd_new(run->loop, "127.0.0.1:0", &run->httpd, NULL), ROLL_OK);
	run->source = &told;
	run->source_state = world;
	assert_int_equal(roll_run_attach_health(run), ROLL_OK);
}

static int setup(void **state)
{
	struct world *world = calloc(1, sizeof *world);

	assert_non_null(world);
	begin(world, false);
	*state = world;
	return 0;
}

static int setup_complete(void **state)
{
	setup(state);
	list_nothing(*state);
	assert_ready(*state, "ok\n");
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;
	struct roll_run *run = &world->run;

	if (run->source->close)
		run->source->close(run->source_state);
	roll_httpd_free(run->httpd);
	roll_run_detach_health(run);
	roll_engine_free(run->engine);
	tempview_fini(&world->tv);
	if (world->server)
		fake_api_free(world->server);
	fake_lease_delete(&world->lease);
	roll_metrics_free(run->metrics);
	roll_loop_free(run->loop);
	roll_log_set_sink(NULL, NULL);
	turn_end();
	free(world);
	return 0;
}

/* --- a cluster --- */

static json_t *refusal(int code, const char *message)
{
	return json_pack("{s:s, s:s, s:s, s:i}", "kind", "Status", "status", "Failure", "message",
			 message, "code", code);
}

static int on_status(struct world *world, const char *method, const char *path, json_t *body,
		     json_t **reply)
{
	bool is_write = strcmp(method, "PATCH") == 0;
	struct roll_str rest = roll_str_c(path);
	char name[64];

	if (!roll_str_starts(rest, ZONES))
		return 404;
	rest = roll_str_n(path + strlen(ZONES), strcspn(path + strlen(ZONES), "/?"));
	roll_str_show(rest, name, sizeof name);
	if (is_write ? world->denies_write : world->denies_read) {
		*reply = refusal(403, is_write ? "may not patch" : "may not get");
		return 403;
	}
	if (!fake_api_get(world->server, FAKE_ZONE, "default", name)) {
		*reply = refusal(404, "is not there");
		return 404;
	}
	if (is_write)
		fake_api_set_status(world->server, FAKE_ZONE, "default", name,
				    json_incref(json_object_get(body, "status")));
	*reply = json_deep_copy(fake_api_get(world->server, FAKE_ZONE, "default", name));
	return 200;
}

static int on_other(void *ctx, const char *method, const char *path, json_t *body, json_t **reply)
{
	struct world *world = ctx;

	if (strstr(path, "events.k8s.io")) {
		*reply = json_incref(body);
		return 201;
	}
	if (!strstr(path, "/leases"))
		return on_status(world, method, path, body, reply);
	if (world->denies_lease) {
		*reply = refusal(403, "may not have it");
		return 403;
	}
	return fake_lease_ask(&world->lease, method, path, body, reply);
}

static void write_kubeconfig(struct world *world)
{
	FILE *f;

	snprintf(world->kubeconfig, sizeof world->kubeconfig, "%s/kubeconfig", world->tv.dir);
	f = fopen(world->kubeconfig, "w");
	assert_non_null(f);
	fprintf(f,
		"{apiVersion: v1, kind: Config, current-context: t,"
		" clusters: [{name: t, cluster: {server: \"%s\"}}], users: [{name: t, user: {}}],"
		" contexts: [{name: t, context: {cluster: t, user: t}}]}\n",
		fake_api_url(world->server));
	assert_int_equal(fclose(f), 0);
}

static void put_zone(struct world *world, const char *name)
{
	fake_api_put(
		world->server, FAKE_ZONE, "default", name,
		json_pack("{s:s+,s:s}", "domainName", name, ".example", "dnsZoneClassName", "c"));
}

static int setup_cluster(void **state)
{
	struct world *world = calloc(1, sizeof *world);

	assert_non_null(world);
	begin(world, true);
	world->server = fake_api_new(roll_loop_base(world->run.loop));
	assert_non_null(world->server);
	fake_api_set_other(world->server, on_other, world);
	world->lease = (struct fake_lease){.path = LEASE, .revision = 100};
	fake_api_put(world->server, FAKE_CLASS, NULL, "c",
		     json_pack("{s:s,s:{s:s,s:{s:[s]}}}", "controllerName", "ours",
			       "nameServerPolicy", "mode", "Static", "static", "servers",
			       "ns1.example.net"));
	put_zone(world, "z");
	write_kubeconfig(world);
	*state = world;
	return 0;
}

static void start_cluster(struct world *world, const char *status)
{
	struct roll_run *run = &world->run;

	run->options.kubeconfig = world->kubeconfig;
	run->options.controller = "ours";
	run->options.status = status;
	run->source = &roll_run_cluster;
	assert_int_equal(run->source->open(run, &run->source_state, NULL), ROLL_OK);
	assert_int_equal(run->source->start(run, run->source_state, NULL), ROLL_OK);
	turn_ms(run->loop, SETTLE_MS);
}

/* --- not ready --- */

static void without_a_complete_view(void **state)
{
	struct world *world = *state;

	assert_only(world, 503, "error: no complete view yet: the source was not read to its end");
	/* However long it takes. */
	turn_ms(world->run.loop, 60 * (int64_t)MINUTE_MS);
	assert_only(world, 503, "error: no complete view yet");
	list_nothing(world);
	assert_ready(world, "ok\n");
}

/* Nothing can be written to any file. */
static void fill_disk(bool is_full)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = is_full ? 0 : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	signal(SIGXFSZ, is_full ? SIG_IGN : SIG_DFL);
}

static void a_view_that_cannot_be_written(void **state)
{
	struct world *world = *state;
	const struct roll_sink *sink = roll_engine_sink(world->run.engine);
	json_t *zone = json_pack("{s:s,s:s,s:{s:s,s:s,s:s},s:{s:s,s:s}}", "apiVersion",
				 "dns.networking.miloapis.com/v1alpha1", "kind", "DNSZone",
				 "metadata", "name", "z", "namespace", "default", "uid", "u",
				 "spec", "domainName", "example.com", "dnsZoneClassName", "c");
	const struct roll_list_head head = {
		.all_scopes = true, .kind = -1, .what = roll_str_c("manifests")};

	assert_int_equal(sink->list_begin(sink->ctx, &head), ROLL_OK);
	assert_int_equal(sink->list_put(sink->ctx, zone, roll_str_c("a"), roll_str_c("a:1")),
			 ROLL_OK);
	fill_disk(true);
	assert_int_not_equal(sink->list_end(sink->ctx, 0, roll_str_c("")), ROLL_OK);
	fill_disk(false);
	assert_only(world, 503,
		    "error: the view cannot be written (see commit-failed in the log); it is "
		    "served as it was before\n");
	/* To be read again makes it no better. */
	confirmed(world);
	assert_only(world, 503, "error: the view cannot be written");
	list_nothing(world);
	assert_ready(world, "ok\n");
	json_decref(zone);
}

static void a_source_that_cannot_be_read_for_a_minute(void **state)
{
	struct world *world = *state;
	char since[ROLL_TIME_SIZE], line[200];

	roll_time_print(roll_clock_wall_ms(&roll_clock_system) / 1000, since);
	unreachable(world, "nobody \"there\"");
	snprintf(line, sizeof line,
		 "warning: the source cannot be read since %s (this counts as not ready after 60 "
		 "s): nobody ",
		 since);
	assert_only(world, 200, line);
	turn_ms(world->run.loop, GRACE_MS - 1);
	/* Said again it is no news: the time goes on. */
	unreachable(world, "still nobody");
	snprintf(line, sizeof line,
		 "warning: the source cannot be read since %s (this counts as not ready after 60 "
		 "s): still nobody; the view stays as it was then, and is served\n",
		 since);
	assert_only(world, 200, line);
	turn_ms(world->run.loop, 1);
	snprintf(line, sizeof line,
		 "error: the source cannot be read since %s: still nobody; the view stays as it "
		 "was then, and is served\n",
		 since);
	assert_only(world, 503, line);
	confirmed(world);
	assert_ready(world, "ok\n");
	/* A minute for each time. */
	unreachable(world, "gone again");
	assert_only(world, 200, "warning: the source cannot be read since ");
}

/* A minute is a minute, whatever the wall clock shows. */
static void a_wall_clock_that_is_set_moves_no_minute(void **state)
{
	static const int64_t by_ms[] = {-3600000, 3600000};
	struct world *world = *state;

	for (size_t i = 0; i < sizeof by_ms / sizeof *by_ms; i++) {
		unreachable(world, "nobody there");
		turn_set_wall_by(by_ms[i]);
		turn_ms(world->run.loop, GRACE_MS - 1);
		assert_only(world, 200, "warning: the source cannot be read since ");
		turn_ms(world->run.loop, 1);
		assert_only(world, 503, "error: the source cannot be read since ");
		confirmed(world);
		assert_ready(world, "ok\n");
	}
}

/* Not asked over HTTP: time passes only when all is quiet. */
static bool is_behind(void *ctx)
{
	struct roll_trouble troubles[ROLL_TROUBLES_MAX];

	return roll_run_troubles(&((struct world *)ctx)->run, troubles) &&
	       strstr(troubles[0].text, "the server is behind what ");
}

static bool is_well(void *ctx)
{
	struct roll_trouble troubles[ROLL_TROUBLES_MAX];

	return roll_run_troubles(&((struct world *)ctx)->run, troubles) == 0;
}

static bool is_refused(void *ctx)
{
	struct roll_trouble troubles[ROLL_TROUBLES_MAX];
	size_t count = roll_run_troubles(&((struct world *)ctx)->run, troubles);

	return count && strstr(troubles[count - 1].text, "status cannot be written");
}

static void becomes_well(struct world *world)
{
	assert_true(turn_until(world->run.loop, is_well, world, 10 * (int64_t)MINUTE_MS));
	assert_ready(world, "ok\n");
}

/* etcd was restored from a backup: its revisions are lower than those that were seen. */
static void a_server_that_is_behind(void **state)
{
	struct world *world = *state;
	uint64_t backup = fake_api_revision(world->server);
	int status;

	start_cluster(world, "never");
	assert_ready(world, "ok\n");
	for (int i = 0; i < 100; i++)
		fake_api_bump(world->server);
	put_zone(world, "later");
	turn_ms(world->run.loop, SETTLE_MS);
	fake_api_restore(world->server, backup);
	assert_true(turn_until(world->run.loop, is_behind, world, 5 * (int64_t)MINUTE_MS));
	/* It does not get better by itself. */
	turn_ms(world->run.loop, GRACE_MS);
	assert_only(world, 503, "error: the source cannot be read since ");
	assert_non_null(strstr(ask(world, &status), "the server is behind what "));
	/* Once it has caught up, it is. */
	while (fake_api_revision(world->server) < backup + 200)
		fake_api_bump(world->server);
	becomes_well(world);
}

/* --- warnings --- */

static void manifests_that_cannot_be_read(void **state)
{
	struct world *world = *state;

	world->unreadable = 3;
	assert_only(world, 200,
		    "warning: manifests that cannot be read: 3; what they last held is served\n");
	world->unreadable = 0;
	assert_ready(world, "ok\n");
}

static void all_that_is_wrong_at_once(void **state)
{
	struct world *world = *state;
	int status;
	const char *body;

	unreachable(world, "nobody");
	world->unreadable = 1;
	body = ask(world, &status);
	assert_int_equal(status, 503);
	assert_ptr_equal(strstr(body, "not ready\nerror: no complete view yet: "), body);
	assert_non_null(strstr(body, "\nwarning: the source cannot be read since "));
	assert_non_null(strstr(body, "\nwarning: manifests that cannot be read: 1; "));
}

static void a_lease_that_is_denied(void **state)
{
	struct world *world = *state;

	world->denies_lease = true;
	start_cluster(world, "leader");
	assert_only(world, 200,
		    "warning: the Lease cannot be had: get leases.coordination.k8s.io "
		    "default/rollcall-ours: 403: may not have it; answers are right, but a replica "
		    "without it writes no status");
	/* What cannot be read at all is not written either. */
	unreachable(world, "nobody");
	assert_only(world, 200, "warning: the source cannot be read since ");
	confirmed(world);
	world->denies_lease = false;
	becomes_well(world);
	assert_non_null(world->lease.record);
}

/* To wait for one that somebody else holds is as it should be. */
static void a_lease_of_another_one(void **state)
{
	struct world *world = *state;

	fake_lease_edit(&world->lease, json_pack("{s:s, s:i}", "holderIdentity", "other",
						 "leaseDurationSeconds", 3600));
	start_cluster(world, "leader");
	turn_ms(world->run.loop, MINUTE_MS);
	assert_ready(world, "ok\n");
}

/* As long as we hold it, a renewal that failed is no trouble. */
static void a_lease_that_is_denied_later(void **state)
{
	struct world *world = *state;

	start_cluster(world, "leader");
	assert_non_null(world->lease.record);
	assert_ready(world, "ok\n");
	world->denies_lease = true;
	turn_ms(world->run.loop, 5000);
	assert_ready(world, "ok\n");
	turn_ms(world->run.loop, 10000);
	assert_only(world, 200, "warning: the Lease cannot be had: ");
}

static void status_that_may_not_be_written(void **state)
{
	struct world *world = *state;

	world->denies_write = true;
	start_cluster(world, "always");
	assert_only(world, 200,
		    "warning: status cannot be written: patch the status of dnszones/default/z: "
		    "403: may not patch; answers are right, but objects do not tell");
	/* To be read is not enough. */
	turn_ms(world->run.loop, 5 * (int64_t)MINUTE_MS);
	assert_only(world, 200, "warning: status cannot be written: ");
	world->denies_write = false;
	becomes_well(world);
	/* What was is not told of the next one. */
	put_zone(world, "y");
	assert_false(turn_until(world->run.loop, is_refused, world, 10 * (int64_t)MINUTE_MS));
	assert_ready(world, "ok\n");
}

/* Who does not write is not refused, and begins anew. */
static void a_lease_that_is_lost_while_writes_are_denied(void **state)
{
	struct world *world = *state;

	world->denies_write = true;
	start_cluster(world, "leader");
	assert_only(world, 200, "warning: status cannot be written: ");
	world->denies_lease = true;
	turn_ms(world->run.loop, MINUTE_MS);
	assert_only(world, 200, "warning: the Lease cannot be had: ");
	world->denies_lease = world->denies_write = false;
	assert_false(turn_until(world->run.loop, is_refused, world, 10 * (int64_t)MINUTE_MS));
	assert_ready(world, "ok\n");
}

/* What comes of an event is known, and read again when its write was denied. */
static void objects_that_may_not_be_read(void **state)
{
	struct world *world = *state;

	world->denies_read = world->denies_write = true;
	start_cluster(world, "always");
	turn_ms(world->run.loop, 2 * (int64_t)MINUTE_MS);
	assert_only(world, 200,
		    "warning: status cannot be written: get dnszones/default/z: 403: may not get");
	world->denies_read = world->denies_write = false;
	becomes_well(world);
}

/* With the object goes what was to be told to it. */
static void a_denied_status_of_an_object_that_goes(void **state)
{
	struct world *world = *state;

	world->denies_write = true;
	start_cluster(world, "always");
	assert_only(world, 200, "warning: status cannot be written: ");
	fake_api_delete(world->server, FAKE_ZONE, "default", "z");
	becomes_well(world);
}

int main(void)
{
#define TEST(begin, name) cmocka_unit_test_setup_teardown(name, begin, teardown)
	const struct CMUnitTest tests[] = {
		TEST(setup, without_a_complete_view),
		TEST(setup_complete, a_view_that_cannot_be_written),
		TEST(setup_complete, a_source_that_cannot_be_read_for_a_minute),
		TEST(setup_complete, a_wall_clock_that_is_set_moves_no_minute),
		TEST(setup_cluster, a_server_that_is_behind),
		TEST(setup_complete, manifests_that_cannot_be_read),
		TEST(setup, all_that_is_wrong_at_once),
		TEST(setup_cluster, a_lease_that_is_denied),
		TEST(setup_cluster, a_lease_of_another_one),
		TEST(setup_cluster, a_lease_that_is_denied_later),
		TEST(setup_cluster, status_that_may_not_be_written),
		TEST(setup_cluster, a_lease_that_is_lost_while_writes_are_denied),
		TEST(setup_cluster, objects_that_may_not_be_read),
		TEST(setup_cluster, a_denied_status_of_an_object_that_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
