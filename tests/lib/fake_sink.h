/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_FAKE_SINK_H
#define TESTS_LIB_FAKE_SINK_H

#include "source/source.h"
#include "tests/lib/fake_api.h"

/*
 * A sink for sources of API objects: keeps what it was told, and fails the test when it is called
 * in an order that the contract does not allow. Events are newer than a list that is open
 * meanwhile.
 */
struct fake_sink;

struct fake_sink_counts {
	size_t batches, events, lists_begun, lists_taken, lists_aborted, confirmed, unreachable;
	size_t flickers; /* an object that was absent by an event came back older */
};

struct fake_sink *fake_sink_new(void);
void fake_sink_free(struct fake_sink *sink);
const struct roll_sink *fake_sink_calls(struct fake_sink *sink);
const struct fake_sink_counts *fake_sink_counts(const struct fake_sink *sink);
const char *fake_sink_trouble(const struct fake_sink *sink); /* the latest; "" if none */
size_t fake_sink_object_count(const struct fake_sink *sink);
/* Holds exactly what the server has (terminating objects are absent). */
bool fake_sink_equals(const struct fake_sink *sink, const struct fake_api *api);
/* As if an event had been lost. */
void fake_sink_lose(struct fake_sink *sink, enum fake_kind kind, const char *key);

/* The next `count` calls return this. */
void fake_sink_fail_events(struct fake_sink *sink, enum roll_status status, size_t count);
void fake_sink_fail_puts(struct fake_sink *sink, enum roll_status status, size_t count);
void fake_sink_fail_lists(struct fake_sink *sink, enum roll_status status, size_t count);

/* Stored position; ENOENT. Shaped as struct roll_kube_conf wants it, ctx is the sink. */
enum roll_status fake_sink_position(void *ctx, struct roll_str what, struct roll_buf *out);
void fake_sink_set_position(struct fake_sink *sink, const char *what, const char *position);

#endif
