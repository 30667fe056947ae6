/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/kube_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static enum roll_status on_identity(void *ctx, struct roll_str uid)
{
	struct world *world = ctx;

	snprintf(world->identity, sizeof world->identity, ROLL_STR_FMT, ROLL_STR_ARG(uid));
	world->identities++;
	return world->identity_status;
}

static void on_end(void *ctx, enum roll_status status, const char *text)
{
	struct world *world = ctx;

	assert_non_null(text);
	assert_false(world->has_ended);
	world->has_ended = true;
	world->end_status = status;
}

static enum roll_status position(void *ctx, struct roll_str what, struct roll_buf *out)
{
	return fake_sink_position(((struct world *)ctx)->sink, what, out);
}

int world_setup(void **state)
{
	struct world *world = calloc(1, sizeof *world);

	assert_non_null(world);
	turn_begin();
	assert_int_equal(roll_loop_new(NULL, &world->loop, NULL), ROLL_OK);
	world->server = fake_api_new(roll_loop_base(world->loop));
	assert_non_null(world->server);
	world->sink = fake_sink_new();
	world->conf = (struct roll_kube_conf){
		.loop = world->loop,
		.clock = &roll_clock_system,
		.sink = fake_sink_calls(world->sink),
		.position = position,
		.on_identity = on_identity,
		.on_end = on_end,
		.ctx = world,
	};
	*state = world;
	return 0;
}

int world_teardown(void **state)
{
	struct world *world = *state;

	assert_int_equal(fake_sink_counts(world->sink)->flickers, 0);
	world_close(world);
	fake_api_free(world->server);
	fake_sink_free(world->sink);
	roll_loop_free(world->loop);
	turn_end();
	free(world);
	return 0;
}

void world_open(struct world *world, const char *token_file)
{
	struct roll_cred_spec spec = {0};
	struct roll_cred *cred;

	spec.server = strdup(fake_api_url(world->server));
	if (token_file)
		spec.token_file = strdup(token_file);
	assert_int_equal(roll_cred_new(world->loop, &roll_clock_system, &spec, &cred, NULL),
			 ROLL_OK);
	assert_int_equal(roll_api_new(world->loop, cred, &world->api, NULL), ROLL_OK);
	world->conf.api = world->api;
	assert_int_equal(roll_kube_new(&world->conf, &world->kube, NULL), ROLL_OK);
	roll_kube_start(world->kube);
}

void world_close(struct world *world)
{
	roll_kube_free(world->kube);
	roll_api_free(world->api);
	world->kube = NULL;
	world->api = NULL;
}

void world_forget(struct world *world)
{
	static const char *const what[] = {"dnszoneclasses", "dnszones", "dnsrecordsets"};

	for (size_t i = 0; i < STREAMS; i++)
		fake_sink_set_position(world->sink, what[i], "");
}

void world_put(struct world *world, enum fake_kind kind, const char *name, int n)
{
	fake_api_put(world->server, kind, kind == FAKE_CLASS ? NULL : "default", name,
		     json_pack("{s:i}", "n", n));
}

void world_put_some(struct world *world, int recordsets)
{
	char name[32];

	world_put(world, FAKE_CLASS, "powerdns", 0);
	world_put(world, FAKE_ZONE, "example-com", 0);
	world_put(world, FAKE_ZONE, "example-org", 0);
	for (int i = 0; i < recordsets; i++) {
		snprintf(name, sizeof name, "rs-%03d", i);
		world_put(world, FAKE_RECORDSET, name, i);
	}
}

static bool is_settled(void *ctx)
{
	return is_equal(ctx) && fake_api_open_watches(((struct world *)ctx)->server) == STREAMS;
}

void world_settle(struct world *world)
{
	if (!turn_until(world->loop, is_settled, world, PATIENCE_MS))
		fail_msg("not settled: %zu objects of %zu, %zu watches, trouble: %s",
			 fake_sink_object_count(world->sink), fake_api_object_count(world->server),
			 fake_api_open_watches(world->server), fake_sink_trouble(world->sink));
	turn_settle(world->loop);
}

bool is_equal(void *ctx)
{
	struct world *world = ctx;

	return fake_sink_equals(world->sink, world->server);
}

bool is_in_trouble(void *ctx)
{
	return !roll_kube_is_live(((struct world *)ctx)->kube);
}

bool has_taken_lists(void *ctx)
{
	struct world *world = ctx;

	return fake_sink_counts(world->sink)->lists_taken >= world->want;
}

bool has_counted_requests(void *ctx)
{
	struct world *world = ctx;

	return fake_api_counts(world->server)->requests >= world->want;
}

bool has_counted_watches(void *ctx)
{
	struct world *world = ctx;

	return fake_api_counts(world->server)->watches >= world->want;
}

bool has_counted_scripted(void *ctx)
{
	struct world *world = ctx;

	return fake_api_counts(world->server)->scripted >= world->want;
}

bool has_probed(void *ctx)
{
	struct world *world = ctx;

	return fake_api_counts(world->server)->probes >= world->want;
}

bool has_ended(void *ctx)
{
	return ((struct world *)ctx)->has_ended;
}
