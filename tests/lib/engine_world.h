/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_ENGINE_WORLD_H
#define TESTS_LIB_ENGINE_WORLD_H

#include <jansson.h>

#include "sync/engine.h"
#include "tests/lib/tempview.h"

/*
 * What the tests of sync/engine live in: an engine with a view of its own, and the test in place of
 * its source.
 */

/* Made by start_engine; all of them end in stop_engine, which takes the view away. */
struct fixture {
	struct tempview tv;
	struct roll_engine *engine;
	const struct roll_sink *sink;
	struct roll_guard_conf guard;
	bool is_cluster;
	size_t namespace_count;
	bool is_approved;
	bool is_repeat; /* lists are told to be */
	size_t commits, swaps;
	char shared[8][128];
	size_t shared_count;
};

enum roll_status open_engine(struct fixture *f, struct roll_err *err);
void close_engine(struct fixture *f);
void start_engine(struct fixture *f, bool is_cluster);
void restart_engine(struct fixture *f);
void stop_engine(struct fixture *f);

/* --- objects --- */

json_t *make_object(const char *kind, const char *ns, const char *name, unsigned revision,
		    const char *spec);
json_t *class_object(void);
json_t *zone_object(unsigned revision);
json_t *set_object(const char *ns, const char *name, unsigned revision, unsigned byte);

/* --- what the view says --- */

/* Last byte of the address at owner.example.com; -1: no such name. */
int served(struct fixture *f, const char *owner);
uint64_t generation(struct fixture *f);
const char *last_evidence(struct fixture *f, char out[256]);
struct roll_engine_counts engine_counts(struct fixture *f);

/* --- what the source tells --- */

extern const char *const engine_kinds[3]; /* "dnszoneclasses", ... by roll_kind */
void begin_list(struct fixture *f, int kind, const char *ns);
/* Takes the reference. */
void list_put(struct fixture *f, json_t *value);
enum roll_status end_list(struct fixture *f, uint64_t revision);
void begin_events(struct fixture *f);
void event_put(struct fixture *f, json_t *value);
void event_absent(struct fixture *f, json_t *value, uint64_t revision);
enum roll_status end_events(struct fixture *f, const char *position);
/* A complete view: a class, a zone, and `count` record sets n0, n1, ... */
void fill_view(struct fixture *f, unsigned count);

#endif
