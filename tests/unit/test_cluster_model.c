/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <uthash.h>

#include "base/json.h"
#include "base/log.h"
#include "ctl/ctl.h"
#include "source/kube.h"
#include "sync/engine.h"
#include "tests/lib/fake_api.h"
#include "tests/lib/tempview.h"
#include "tests/lib/turn.h"

/*
 * Thousands of random steps: objects come, change and go while connections are cut, histories are
 * compacted, servers and we ourselves restart, replicas lag, events are lost or told twice, tokens
 * rotate. The server's history is the model. After every commit: no object of the view is older
 * than what it was before, none is there that the view was proven to lack, none is gone that was
 * not absent at some time since. After every settling the view equals the server, and `rollcall
 * verify` finds nothing.
 *
 * The seeds are fixed; ROLL_MODEL_SEED and ROLL_MODEL_STEPS try others.
 */

#define STEPS 10000
#define SETTLE_EVERY 120
#define RESTART_EVERY 600
/* Of the clock that is turned, about a second a step. */
#define PATIENCE_MS (60 * 60 * 1000)
#define RELIST_MS 60000
#define ZONES 4
#define RECORDSETS 40

/* What is known of an object from earlier commits. */
struct known {
	UT_hash_handle hh;
	uint64_t revision; /* of the row; or, when it is not there, of its absence */
	bool is_there;
	uint64_t seen; /* commit in which it was met last */
	char key[];
};

struct world {
	struct tempview tv; /* the folder */
	struct roll_loop *loop;
	struct fake_api *server;
	char token_path[80];
	unsigned token;
	char token_text[32];

	struct roll_engine *engine;
	struct roll_api *api;
	struct roll_kube *kube;
	struct roll_guard_conf guard;

	struct known *known;
	uint64_t commits;
	size_t step;
	uint64_t random;
	bool is_stopped;
};

static uint64_t draw(struct world *world, uint64_t below)
{
	/* xorshift64*, which is more than random enough. */
	world->random ^= world->random >> 12;
	world->random ^= world->random << 25;
	world->random ^= world->random >> 27;
	return (world->random * UINT64_C(2685821657736338717) >> 33) % below;
}

/* --- the view after each commit --- */

static void split_key(struct roll_str key, enum roll_row_kind kind, char *ns, char *name)
{
	struct roll_str first =
		kind == ROLL_ROW_CLASS ? roll_str_n("", 0) : roll_str_cut(&key, '/');

	snprintf(ns, 64, ROLL_STR_FMT, ROLL_STR_ARG(first));
	snprintf(name, 64, ROLL_STR_FMT, ROLL_STR_ARG(key));
}

static struct known *known_of(struct world *world, enum roll_row_kind kind, struct roll_str key)
{
	struct known *known;
	char text[160];
	int n = snprintf(text, sizeof text, "%d" ROLL_STR_FMT, (int)kind, ROLL_STR_ARG(key));

	HASH_FIND(hh, world->known, text, (size_t)n, known);
	if (known)
		return known;
	known = calloc(1, sizeof *known + (size_t)n + 1);
	assert_non_null(known);
	memcpy(known->key, text, (size_t)n);
	HASH_ADD_KEYPTR(hh, world->known, known->key, (size_t)n, known);
	return known;
}

static enum roll_status check_row(void *ctx, const struct roll_object_row *row)
{
	struct world *world = ctx;
	struct known *known = known_of(world, row->kind, row->key);

	if (known->is_there ? row->revision < known->revision : row->revision <= known->revision)
		fail_msg("step %zu: %s at %llu after %llu (%s)", world->step, known->key,
			 (unsigned long long)row->revision, (unsigned long long)known->revision,
			 known->is_there ? "there" : "gone");
	known->is_there = true;
	known->revision = row->revision;
	known->seen = world->commits;
	return ROLL_OK;
}

static void check_gone(struct world *world)
{
	struct known *known, *next;
	char ns[64], name[64];

	HASH_ITER (hh, world->known, known, next) {
		enum roll_row_kind kind = (enum roll_row_kind)(known->key[0] - '0');
		uint64_t absent;

		if (!known->is_there || known->seen == world->commits)
			continue;
		split_key(roll_str_c(known->key + 1), kind, ns, name);
		absent = fake_api_absent_after(world->server, (enum fake_kind)kind, ns, name,
					       known->revision);
		if (!absent)
			fail_msg("step %zu: %s is gone, and never was absent after %llu",
				 world->step, known->key, (unsigned long long)known->revision);
		known->is_there = false;
		known->revision = absent;
	}
}

static void on_commit(void *ctx, const struct roll_changes *changes)
{
	struct world *world = ctx;
	struct roll_txn *txn = tempview_begin(&world->tv);

	(void)changes;
	world->commits++;
	for (int kind = 0; kind < ROLL_ROW_KINDS; kind++)
		assert_int_equal(roll_snap_objects(roll_txn_snap(txn), (enum roll_row_kind)kind,
						   roll_str_n("", 0), check_row, world),
				 ROLL_OK);
	roll_txn_abort(txn);
	check_gone(world);
}

/* --- us --- */

static enum roll_status position(void *ctx, struct roll_str what, struct roll_buf *out)
{
	return roll_engine_position(((struct world *)ctx)->engine, what, out);
}

static enum roll_status on_identity(void *ctx, struct roll_str uid)
{
	return roll_engine_identify(((struct world *)ctx)->engine, uid, NULL);
}

static void start(struct world *world)
{
	struct roll_engine_conf engine = {
		.is_cluster = true,
		.guard = &world->guard,
		.clock = &roll_clock_system,
		.on_commit = on_commit,
		.ctx = world,
	};
	struct roll_kube_conf kube = {
		.loop = world->loop,
		.clock = &roll_clock_system,
		.position = position,
		.on_identity = on_identity,
		.ctx = world,
		.relist_ms = RELIST_MS,
	};
	struct roll_cred_spec spec = {0};
	struct roll_cred *cred;

	tempview_open(&world->tv);
	engine.writer = world->tv.writer;
	assert_int_equal(roll_engine_new(&engine, &world->engine, NULL), ROLL_OK);
	spec.server = strdup(fake_api_url(world->server));
	spec.token_file = strdup(world->token_path);
	assert_int_equal(roll_cred_new(world->loop, &roll_clock_system, &spec, &cred, NULL),
			 ROLL_OK);
	assert_int_equal(roll_api_new(world->loop, cred, &world->api, NULL), ROLL_OK);
	kube.api = world->api;
	kube.sink = roll_engine_sink(world->engine);
	assert_int_equal(roll_kube_new(&kube, &world->kube, NULL), ROLL_OK);
	roll_kube_start(world->kube);
}

static void stop(struct world *world)
{
	roll_kube_free(world->kube);
	roll_api_free(world->api);
	roll_engine_free(world->engine);
	tempview_close(&world->tv);
	world->kube = NULL;
	world->api = NULL;
	world->engine = NULL;
}

static void verify(struct world *world)
{
	struct roll_ctl ctl = {
		.clock = &roll_clock_system, .view_dir = world->tv.dir, .verb = "verify"};
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	int code;

	assert_non_null(file);
	assert_int_equal(roll_out_init(&ctl.out, file), ROLL_OK);
	code = roll_cmd_verify(&ctl);
	assert_int_equal(roll_out_fini(&ctl.out), ROLL_OK);
	fclose(file);
	if (code != ROLL_EXIT_OK)
		fail_msg("step %zu: verify: %s", world->step, text);
	free(text);
}

/* --- the world --- */

static void write_token(struct world *world)
{
	FILE *file = fopen(world->token_path, "w");

	assert_non_null(file);
	fprintf(file, "%s\n", world->token_text);
	fclose(file);
}

static void rotate_token(struct world *world)
{
	snprintf(world->token_text, sizeof world->token_text, "token-%u", ++world->token);
	fake_api_conf(world->server)->token = world->token_text;
}

static void put_class(struct world *world)
{
	char server[32];

	snprintf(server, sizeof server, "ns%d.example.net", (int)draw(world, 3));
	fake_api_put(world->server, FAKE_CLASS, NULL, "powerdns",
		     json_pack("{s:s, s:{s:s, s:{s:[s]}}}", "controllerName", "ours",
			       "nameServerPolicy", "mode", "Static", "static", "servers", server));
}

static void put_zone(struct world *world, int n)
{
	char name[16], domain[32];

	snprintf(name, sizeof name, "z%d", n);
	/* Now and then two of them want the same domain. */
	snprintf(domain, sizeof domain, "d%d.example",
		 draw(world, 8) ? n : (int)draw(world, ZONES));
	fake_api_put(world->server, FAKE_ZONE, "default", name,
		     json_pack("{s:s, s:s}", "domainName", domain, "dnsZoneClassName", "powerdns"));
}

static void put_recordset(struct world *world, int n)
{
	char name[16], zone[16], owner[16], address[32];

	snprintf(name, sizeof name, "r%d", n);
	snprintf(zone, sizeof zone, "z%d", (int)draw(world, ZONES));
	snprintf(owner, sizeof owner, "n%d", (int)draw(world, RECORDSETS / 2));
	snprintf(address, sizeof address, "192.0.2.%d", (int)draw(world, 256));
	fake_api_put(world->server, FAKE_RECORDSET, "default", name,
		     json_pack("{s:{s:s}, s:s, s:[{s:s, s:{s:s}}]}", "dnsZoneRef", "name", zone,
			       "recordType", "A", "records", "name", owner, "a", "content",
			       address));
}

static void change_objects(struct world *world)
{
	char name[16];
	int n = (int)draw(world, RECORDSETS);

	switch (draw(world, 12)) {
	case 0:
		put_class(world);
		break;
	case 1:
		put_zone(world, (int)draw(world, ZONES));
		break;
	case 2:
		snprintf(name, sizeof name, "z%d", (int)draw(world, ZONES));
		fake_api_delete(world->server, FAKE_ZONE, "default", name);
		break;
	case 3:
	case 4:
	case 5:
		snprintf(name, sizeof name, "r%d", n);
		fake_api_delete(world->server, FAKE_RECORDSET, "default", name);
		break;
	case 6:
		snprintf(name, sizeof name, "r%d", n);
		fake_api_terminate(world->server, FAKE_RECORDSET, "default", name);
		break;
	default:
		put_recordset(world, n);
		break;
	}
}

static void disturb(struct world *world)
{
	static const char *const refusals[] = {
		"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 429 Slow\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 404 Not Found\r\nContent-Length: 19\r\n\r\n404 page not found\n",
		("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
		 "{\"type\":\"ERROR\",\"object\":{\"code\":500}}\n"),
		"",
	};
	static const char *const parts[] = {"limit=500", "watch=1", "continue=", "limit=1 ",
					    "sendInitialEvents"};
	static const char old[] =
		"{\"type\":\"ADDED\",\"object\":{\"kind\":\"DNSRecordSet\",\"apiVersion\":"
		"\"dns.networking.miloapis.com/v1alpha1\",\"metadata\":"
		"{\"namespace\":\"default\",\"name\":\"r0\",\"uid\":\"u\",\"resourceVersion\":"
		"\"101\"},\"spec\":{}}}\n";
	struct fake_api_conf *conf = fake_api_conf(world->server);
	const char *part = parts[draw(world, 5)];

	switch (draw(world, 18)) {
	case 0:
		fake_api_cut(world->server);
		break;
	case 1:
		fake_api_end_watches(world->server);
		break;
	case 2:
		fake_api_compact(world->server);
		break;
	case 3:
		fake_api_bump(world->server);
		break;
	case 4:
		fake_api_bookmark(world->server);
		break;
	case 5:
		conf->stale_at = fake_api_revision(world->server) - draw(world, 30);
		break;
	case 6:
		conf->stale_at = 0;
		break;
	case 7:
		conf->is_silent = !conf->is_silent;
		break;
	case 8:
		conf->hangs_lists = !conf->hangs_lists;
		break;
	case 9:
		fake_api_lose(world->server);
		break;
	case 10:
		fake_api_say(world->server, old, sizeof old - 1);
		break;
	case 11:
		rotate_token(world);
		break;
	case 12:
		write_token(world);
		break;
	case 13:
		if (!world->is_stopped)
			fake_api_stop(world->server);
		else
			assert_true(fake_api_resume(world->server));
		world->is_stopped = !world->is_stopped;
		break;
	case 14:
		fake_api_script(world->server, part, refusals[draw(world, 7)], 1 + draw(world, 3));
		break;
	case 15:
		fake_api_truncate(world->server, part, draw(world, 3000), 1);
		break;
	case 16:
		conf->has_stream = draw(world, 2);
		conf->ignores_initial = draw(world, 4) == 0;
		conf->ignores_timeout = draw(world, 4) == 0;
		conf->gzips = draw(world, 2);
		conf->page_max = 1 + draw(world, 20);
		break;
	case 17:
		conf->slice_bytes = draw(world, 2) ? 0 : 1 + draw(world, 500);
		conf->slice_ms = draw(world, 2) ? 0 : 1 + (int64_t)draw(world, 1000);
		break;
	}
}

struct equal {
	struct world *world;
	size_t count;
	bool differs;
};

static enum roll_status compare_row(void *ctx, const struct roll_object_row *row)
{
	struct equal *equal = ctx;
	char ns[64], name[64];
	const json_t *object;
	struct roll_buf spec;

	split_key(row->key, row->kind, ns, name);
	object = fake_api_get(equal->world->server, (enum fake_kind)row->kind, ns, name);
	if (!object || json_object_get(json_object_get(object, "metadata"), "deletionTimestamp")) {
		equal->differs = true;
		return ROLL_OK;
	}
	roll_buf_init(&spec, 1u << 16);
	assert_int_equal(roll_json_print(json_object_get(object, "spec"), &spec), ROLL_OK);
	equal->differs |= !roll_str_eq(roll_buf_str(&spec), row->spec);
	equal->count++;
	roll_buf_fini(&spec);
	return ROLL_OK;
}

static size_t present(struct world *world)
{
	size_t count = 0;
	char name[16];

	for (int i = 0; i < RECORDSETS + ZONES + 1; i++) {
		enum fake_kind kind = i < RECORDSETS	       ? FAKE_RECORDSET
				      : i < RECORDSETS + ZONES ? FAKE_ZONE
							       : FAKE_CLASS;
		const json_t *object;

		snprintf(name, sizeof name, kind == FAKE_RECORDSET ? "r%d" : "z%d",
			 kind == FAKE_RECORDSET ? i : i - RECORDSETS);
		object = fake_api_get(world->server, kind, kind == FAKE_CLASS ? NULL : "default",
				      kind == FAKE_CLASS ? "powerdns" : name);
		count += object &&
			 !json_object_get(json_object_get(object, "metadata"), "deletionTimestamp");
	}
	return count;
}

static bool is_equal(void *ctx)
{
	struct equal equal = {ctx, 0, false};
	struct roll_engine_counts counts;
	struct roll_txn *txn;

	roll_engine_counts(equal.world->engine, &counts);
	if (!counts.is_complete)
		return false;
	txn = tempview_begin(&equal.world->tv);
	for (int kind = 0; kind < ROLL_ROW_KINDS; kind++)
		assert_int_equal(roll_snap_objects(roll_txn_snap(txn), (enum roll_row_kind)kind,
						   roll_str_n("", 0), compare_row, &equal),
				 ROLL_OK);
	roll_txn_abort(txn);
	return !equal.differs && equal.count == present(equal.world);
}

/* Whatever was wrong with the server is not any more. */
static void calm(struct world *world)
{
	struct fake_api_conf *conf = fake_api_conf(world->server);

	conf->stale_at = 0;
	conf->is_silent = conf->hangs_lists = false;
	write_token(world);
	if (world->is_stopped)
		assert_true(fake_api_resume(world->server));
	world->is_stopped = false;
}

static void settle(struct world *world)
{
	calm(world);
	fake_api_conf(world->server)->slice_bytes = 0;
	fake_api_conf(world->server)->slice_ms = 0;
	if (!turn_until(world->loop, is_equal, world, PATIENCE_MS))
		fail_msg("step %zu: not settled; %zu objects, %zu watches", world->step,
			 present(world), fake_api_open_watches(world->server));
}

static void pass_time(struct world *world)
{
	turn_once(world->loop);
	if (draw(world, 8) == 0)
		turn_ms(world->loop, (int64_t)draw(world, 16000));
}

static void quiet(void *ctx, const char *line)
{
	(void)ctx;
	(void)line;
}

static void run_model(uint64_t seed, size_t steps)
{
	struct world world = {.random = seed};
	struct known *known, *next;

	tempview_init(&world.tv);
	turn_begin();
	assert_int_equal(roll_loop_new(NULL, &world.loop, NULL), ROLL_OK);
	world.server = fake_api_new(roll_loop_base(world.loop));
	assert_non_null(world.server);
	fake_api_conf(world.server)->identity = "11111111-2222-4333-8444-555555555555";
	snprintf(world.token_path, sizeof world.token_path, "%s.token", world.tv.dir);
	rotate_token(&world);
	write_token(&world);
	put_class(&world);
	for (int i = 0; i < ZONES; i++)
		put_zone(&world, i);
	start(&world);
	for (world.step = 1; world.step <= steps; world.step++) {
		/* Mostly all is well, or there would be nothing to disturb. */
		if (draw(&world, 12))
			change_objects(&world);
		else if (draw(&world, 2))
			disturb(&world);
		else
			calm(&world);
		pass_time(&world);
		if (world.step % SETTLE_EVERY == 0)
			settle(&world);
		if (world.step % RESTART_EVERY == 0 || draw(&world, 300) == 0) {
			/* As after a crash: what was not committed is not there. */
			stop(&world);
			if (world.step % RESTART_EVERY == 0)
				verify(&world);
			start(&world);
		}
	}
	settle(&world);
	stop(&world);
	verify(&world);
	HASH_ITER (hh, world.known, known, next) {
		HASH_DEL(world.known, known);
		free(known);
	}
	fake_api_free(world.server);
	roll_loop_free(world.loop);
	turn_end();
	unlink(world.token_path);
	tempview_fini(&world.tv);
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	uint64_t value;

	return text && !roll_str_u64(roll_str_c(text), UINT64_MAX, &value) && value ? value
										    : otherwise;
}

static void the_view_follows_the_cluster_whatever_happens(void **state)
{
	static const uint64_t seeds[] = {20261202, 4711, 815};

	(void)state;
	if (!getenv("ROLL_MODEL_LOG"))
		roll_log_set_sink(quiet, NULL);
	for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
		run_model(from_environment("ROLL_MODEL_SEED", seeds[i]),
			  (size_t)from_environment("ROLL_MODEL_STEPS", STEPS));
	roll_log_set_sink(NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_view_follows_the_cluster_whatever_happens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
