/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_KUBE_WORLD_H
#define TESTS_LIB_KUBE_WORLD_H

#include "source/kube.h"
#include "tests/lib/fake_api.h"
#include "tests/lib/fake_sink.h"
#include "tests/lib/turn.h"

/*
 * What the tests of source/kube live in: a fake API server, a sink that keeps what it is told, and
 * source/kube between them. The clock is turned, so all intervals are those of real life.
 */

/* More than all is well again after, whatever went wrong. */
#define PATIENCE_MS (10 * 60 * 1000)
#define STREAMS 3

struct world {
	struct roll_loop *loop;
	struct fake_api *server;
	struct fake_sink *sink;
	struct roll_api *api;
	struct roll_kube *kube;
	struct roll_kube_conf conf;
	enum roll_status identity_status;
	char identity[64];
	size_t identities;
	bool has_ended;
	enum roll_status end_status;
	size_t want; /* of the conditions below */
};

/* Of cmocka. */
int world_setup(void **state);
int world_teardown(void **state);

/* Begin to follow the server; with the token that the file holds, if there is one. */
void world_open(struct world *world, const char *token_file);
void world_close(struct world *world);
/* As if the sink had never stored a position. */
void world_forget(struct world *world);

void world_put(struct world *world, enum fake_kind kind, const char *name, int n);
/* A class, two zones and some record sets. */
void world_put_some(struct world *world, int recordsets);

/* Until the sink has what the server has and all watches are open. */
void world_settle(struct world *world);

/* Conditions for turn_until. */
bool is_equal(void *ctx);
bool is_in_trouble(void *ctx);
bool has_taken_lists(void *ctx); /* `want` of them since the start, as all that follow */
bool has_counted_requests(void *ctx);
bool has_counted_watches(void *ctx);
bool has_counted_scripted(void *ctx);
bool has_probed(void *ctx);
bool has_ended(void *ctx);

#endif
