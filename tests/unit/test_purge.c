/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>

#include "base/log.h"
#include "sync/purge.h"
#include "tests/lib/until.h"

#define PATIENCE_MS 10000
#define COMMANDS_MAX 256

/* A server's control socket: one command a connection, answered and closed. */
struct world {
	struct roll_loop *loop;
	char path[64];
	struct evconnlistener *listener;
	char *commands[COMMANDS_MAX];
	size_t count;
	size_t want;
	bool is_mute;	    /* commands are read, answers never come */
	const char *config; /* answer to CURRENT-CONFIG */
	struct bufferevent *open[COMMANDS_MAX];
	size_t open_count;
	size_t warnings;
	bool leaks_secret;
	struct roll_purge *purge;
};

static void on_drained(struct bufferevent *bev, void *ctx)
{
	(void)ctx;
	shutdown(bufferevent_getfd(bev), SHUT_RDWR);
}

static void on_command(struct bufferevent *bev, void *ctx)
{
	struct world *world = ctx;
	char *line = evbuffer_readln(bufferevent_get_input(bev), NULL, EVBUFFER_EOL_LF);
	const char *answer = "1";

	if (!line)
		return;
	assert_true(world->count < COMMANDS_MAX);
	world->commands[world->count++] = line;
	if (world->is_mute)
		return;
	if (strcmp(line, "CURRENT-CONFIG") == 0)
		answer = world->config;
	else if (strcmp(line, "REDISCOVER") == 0)
		answer = "Ok";
	bufferevent_setcb(bev, NULL, on_drained, NULL, world);
	bufferevent_write(bev, answer, strlen(answer));
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *peer,
		      int peer_n, void *ctx)
{
	struct world *world = ctx;
	struct bufferevent *bev;

	(void)listener;
	(void)peer;
	(void)peer_n;
	bev = bufferevent_socket_new(roll_loop_base(world->loop), fd, BEV_OPT_CLOSE_ON_FREE);
	assert_non_null(bev);
	assert_true(world->open_count < COMMANDS_MAX);
	world->open[world->open_count++] = bev;
	bufferevent_setcb(bev, on_command, NULL, NULL, world);
	bufferevent_enable(bev, EV_READ | EV_WRITE);
}

static void listen_there(struct world *world)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof address.sun_path, "%s", world->path);
	unlink(world->path);
	world->listener = evconnlistener_new_bind(roll_loop_base(world->loop), on_accept, world,
						  LEV_OPT_CLOSE_ON_FREE, 16,
						  (struct sockaddr *)&address, sizeof address);
	assert_non_null(world->listener);
}

static void on_log(void *ctx, const char *line)
{
	struct world *world = ctx;

	world->warnings += strstr(line, "level=warn") != NULL;
	world->leaks_secret |= strstr(line, "SECRET") != NULL;
}

static int setup(void **state)
{
	struct world *world = calloc(1, sizeof *world);

	assert_non_null(world);
	snprintf(world->path, sizeof world->path, "control-%d", (int)getpid());
	world->config = "cache-ttl=20\nquery-cache-ttl=0\nnegquery-cache-ttl=0\n";
	assert_int_equal(roll_loop_new(NULL, &world->loop, NULL), ROLL_OK);
	roll_log_set_sink(on_log, world);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	roll_log_set_sink(NULL, NULL);
	roll_purge_free(world->purge);
	for (size_t i = 0; i < world->open_count; i++)
		bufferevent_free(world->open[i]);
	if (world->listener)
		evconnlistener_free(world->listener);
	for (size_t i = 0; i < world->count; i++)
		free(world->commands[i]);
	roll_loop_free(world->loop);
	unlink(world->path);
	free(world);
	return 0;
}

static void make(struct world *world, enum roll_purge_mode mode)
{
	struct roll_purge_conf conf = {
		.loop = world->loop,
		.clock = &roll_clock_system,
		.socket = world->path,
		.mode = mode,
		.timeout_ms = 100,
		.again_ms = 60,
		.retry_ms = 5,
	};

	assert_int_equal(roll_purge_new(&conf, &world->purge, NULL), ROLL_OK);
}

static struct roll_name name_of(const char *text)
{
	struct roll_name name;

	assert_int_equal(roll_name_parse(roll_str_c(text), &name, NULL), ROLL_OK);
	return name;
}

/* Up to four of each, ended by NULL. */
static void change(struct world *world, const char *const *names, const char *const *zones,
		   const char *const *domains)
{
	struct roll_name lists[3][4];
	size_t counts[3] = {0, 0, 0};
	const char *const *const texts[3] = {names, zones, domains};

	for (size_t i = 0; i < 3; i++) {
		for (; texts[i] && texts[i][counts[i]]; counts[i]++)
			lists[i][counts[i]] = name_of(texts[i][counts[i]]);
	}
	roll_purge_changed(world->purge, &(struct roll_changes){
						 .names = lists[0],
						 .name_count = counts[0],
						 .names_complete = true,
						 .zones_changed = lists[1],
						 .zones_changed_count = counts[1],
						 .domains = lists[2],
						 .domain_count = counts[2],
					 });
}

static bool is_idle(void *ctx)
{
	return roll_purge_is_idle(((struct world *)ctx)->purge);
}

static bool has_commands(void *ctx)
{
	struct world *world = ctx;

	return world->count >= world->want;
}

static void finish(struct world *world)
{
	assert_true(until(world->loop, is_idle, world, PATIENCE_MS));
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void a_new_zone_is_told_and_purged_twice(void **state)
{
	struct world *world = *state;

	listen_there(world);
	make(world, ROLL_PURGE_ZONES);
	change(world, LIST("www.example.com"), LIST("example.com"), LIST("example.com"));
	finish(world);
	assert_int_equal(world->count, 3);
	assert_string_equal(world->commands[0], "REDISCOVER");
	assert_string_equal(world->commands[1], "PURGE example.com$");
	assert_string_equal(world->commands[2], "PURGE example.com$");
	/* Names alone are no news to a server that caches no answers. */
	change(world, LIST("www.example.com"), LIST("example.com"), NULL);
	for_ms(world->loop, 20);
	assert_int_equal(world->count, 3);
}

static void names_are_purged_with_what_hangs_on_them(void **state)
{
	static const struct {
		const char *name, *command;
	} cases[] = {
		{"www.example.com", "PURGE www.example.com$"},
		{"a.b.example.com", "PURGE b.example.com$"},
		{"*.b.example.com", "PURGE b.example.com$"},
		{"*.example.com", "PURGE example.com$"},
		{"a.*.example.com", "PURGE example.com$"},
		{"example.com", "PURGE example.com$"},
		{"x.sub.example.com", "PURGE x.sub.example.com$"}, /* a zone of its own */
		{"elsewhere.example", "PURGE elsewhere.example$"},
	};
	struct world *world = *state;

	listen_there(world);
	make(world, ROLL_PURGE_NAMES);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		change(world, LIST(cases[i].name), LIST("example.com", "sub.example.com"), NULL);
		world->want = i + 1;
		assert_true(until(world->loop, has_commands, world, PATIENCE_MS));
		assert_string_equal(world->commands[i], cases[i].command);
		finish(world);
		/* And once more: taken off the list again, for the next case. */
		assert_int_equal(world->count, i + 2);
		assert_string_equal(world->commands[i + 1], cases[i].command);
		free(world->commands[--world->count]);
	}
}

static void what_waits_is_merged(void **state)
{
	struct world *world = *state;

	listen_there(world);
	make(world, ROLL_PURGE_NAMES);
	for (int i = 0; i < 1000; i++)
		change(world, LIST("a.example.com", "b.example.com"), LIST("example.com"), NULL);
	finish(world);
	assert_int_equal(world->count, 2);
	assert_string_equal(world->commands[0], "PURGE a.example.com$ b.example.com$");
}

static void too_much_becomes_everything(void **state)
{
	struct world *world = *state;
	char name[64];

	listen_there(world);
	make(world, ROLL_PURGE_NAMES);
	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof name, "n%d.example.com", i);
		change(world, LIST(name), LIST("example.com"), NULL);
	}
	finish(world);
	assert_int_equal(world->count, 2);
	assert_string_equal(world->commands[0], "PURGE");
	assert_string_equal(world->commands[1], "PURGE");
	roll_purge_changed(world->purge, NULL);
	finish(world);
	assert_int_equal(world->count, 5);
	assert_string_equal(world->commands[2], "REDISCOVER");
	assert_string_equal(world->commands[3], "PURGE");
}

static void many_names_take_several_commands(void **state)
{
	struct world *world = *state;
	size_t names = 0;
	char name[128];

	listen_there(world);
	make(world, ROLL_PURGE_NAMES);
	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof name, "a-name-that-takes-some-room-%d.example.com", i);
		change(world, LIST(name), LIST("example.com"), NULL);
	}
	finish(world);
	assert_true(world->count > 4);
	for (size_t i = 0; i < world->count; i++) {
		assert_true(strlen(world->commands[i]) < 4096);
		for (const char *p = world->commands[i]; (p = strchr(p, ' ')); p++)
			names++;
	}
	assert_int_equal(names, 1000);
}

static void beyond_a_thousand_names_the_zone_is_purged(void **state)
{
	struct world *world = *state;
	struct roll_name zone = name_of("example.com");

	listen_there(world);
	make(world, ROLL_PURGE_NAMES);
	roll_purge_changed(world->purge, &(struct roll_changes){
						 .names_complete = false,
						 .zones_changed = &zone,
						 .zones_changed_count = 1,
					 });
	finish(world);
	assert_string_equal(world->commands[0], "PURGE example.com$");
}

static void the_server_says_whether_it_caches(void **state)
{
	static const struct {
		const char *config;
		size_t purges;
	} cases[] = {
		{"api-key=SECRET\ncache-ttl=0\nquery-cache-ttl=0\nnegquery-cache-ttl=0\n", 0},
		{"# cache-ttl\tSeconds to store\n# cache-ttl=0\nquery-cache-ttl=0\n"
		 "# negquery-cache-ttl=0\n",
		 0},
		{"cache-ttl=0\nquery-cache-ttl=0\n# negquery-cache-ttl=60\n", 2},
		{"cache-ttl=20\nquery-cache-ttl=0\nnegquery-cache-ttl=0\n", 2},
		{"cache-ttl=0\nquery-cache-ttl=0\nnegquery-cache-ttl=60\n", 2},
		{"Unknown command: 'CURRENT-CONFIG'", 2},
	};
	struct world *world = *state;

	listen_there(world);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t before = world->count;

		world->config = cases[i].config;
		make(world, ROLL_PURGE_AUTO);
		world->want = before + 1;
		assert_true(until(world->loop, has_commands, world, PATIENCE_MS));
		assert_string_equal(world->commands[before], "CURRENT-CONFIG");
		for_ms(world->loop, 20);
		change(world, LIST("www.example.com"), LIST("example.com"), NULL);
		finish(world);
		assert_int_equal(world->count - before, 1 + cases[i].purges);
		roll_purge_free(world->purge);
		world->purge = NULL;
	}
	assert_false(world->leaks_secret);
}

static void nobody_there_is_said_once(void **state)
{
	struct world *world = *state;

	make(world, ROLL_PURGE_NAMES);
	for (int i = 0; i < 20; i++) {
		change(world, LIST("www.example.com"), LIST("example.com"), LIST("example.com"));
		for_ms(world->loop, 10);
	}
	assert_int_equal(world->warnings, 1);
	listen_there(world);
	finish(world);
	assert_int_equal(world->count, 3);
	assert_string_equal(world->commands[0], "REDISCOVER");
	assert_non_null(strstr(world->commands[1], "example.com$"));
}

static void an_answer_that_never_comes_holds_nothing_up(void **state)
{
	struct world *world = *state;

	listen_there(world);
	world->is_mute = true;
	make(world, ROLL_PURGE_ZONES);
	change(world, NULL, NULL, LIST("example.com"));
	world->want = 2;
	assert_true(until(world->loop, has_commands, world, PATIENCE_MS));
	assert_string_equal(world->commands[0], "REDISCOVER");
	assert_string_equal(world->commands[1], "PURGE example.com$");
	world->is_mute = false;
	finish(world);
	assert_int_equal(world->warnings, 1);
}

static void it_can_be_freed_at_any_moment(void **state)
{
	struct world *world = *state;

	listen_there(world);
	for (int i = 0; i < 12; i++) {
		make(world, ROLL_PURGE_AUTO);
		change(world, LIST("a.example.com"), LIST("example.com"), LIST("example.com"));
		for (int turn = 0; turn < i; turn++)
			assert_int_equal(roll_loop_once(world->loop), ROLL_OK);
		roll_purge_free(world->purge);
		world->purge = NULL;
	}
}

static void a_path_must_fit(void **state)
{
	struct world *world = *state;
	char path[200];
	struct roll_purge_conf conf = {
		.loop = world->loop, .clock = &roll_clock_system, .socket = path};
	struct roll_err err;

	memset(path, 'x', sizeof path);
	path[sizeof path - 1] = '\0';
	assert_int_equal(roll_purge_new(&conf, &world->purge, &err), ROLL_EINVAL);
	path[0] = '\0';
	assert_int_equal(roll_purge_new(&conf, &world->purge, &err), ROLL_EINVAL);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_new_zone_is_told_and_purged_twice),
		TEST(names_are_purged_with_what_hangs_on_them),
		TEST(what_waits_is_merged),
		TEST(too_much_becomes_everything),
		TEST(many_names_take_several_commands),
		TEST(beyond_a_thousand_names_the_zone_is_purged),
		TEST(the_server_says_whether_it_caches),
		TEST(nobody_there_is_said_once),
		TEST(an_answer_that_never_comes_holds_nothing_up),
		TEST(it_can_be_freed_at_any_moment),
		TEST(a_path_must_fit),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
