/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/bin.h"
#include "model/object.h"
#include "sync/engine.h"
#include "tests/lib/quiet.h"
#include "tests/lib/tempview.h"

/*
 * Replicas of one cluster agree on the serial of a zone, though one saw each change as it came, the
 * next lists now and then, and the third is new: what they see of an object is of different age,
 * and of those that are gone nothing at all. What the replica that reports to the objects' owners
 * has put into status.serial is what they agree by. Random histories, with fixed seeds.
 */

#define REPLICAS 4
#define SETS 5
#define LOG_MAX 20000
#define ROUNDS 60
#define STEPS_A_ROUND 40

/* An object as the server has it. */
struct thing {
	bool is_there;
	unsigned byte;
	uint64_t revision;
	int generation, observed; /* observed 0: no status */
	uint32_t serial;
	unsigned births;
};

static const char *const plurals[] = {"dnszoneclasses", "dnszones", "dnsrecordsets"};

struct happening {
	int kind;
	bool is_absent;
	uint64_t revision;
	json_t *object;
};

struct replica {
	struct tempview tv;
	struct roll_engine *engine;
	const struct roll_sink *sink;
	size_t at[ROLL_KIND_COUNT]; /* in the log: each kind has a watch of its own */
	uint64_t hash;
	uint32_t serial;
};

struct world {
	struct thing zone, sets[SETS];
	uint64_t revision;
	struct happening log[LOG_MAX];
	size_t log_count;
	struct replica replicas[REPLICAS];
	struct roll_guard_conf guard;
	size_t leader;
	bool is_leader_new; /* since the last settling */
	uint64_t published_hash;
	size_t published_count; /* of record sets, with the serial */
	uint64_t random;
};

static unsigned draw(struct world *w, unsigned below)
{
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return (unsigned)((w->random * UINT64_C(2685821657736338717) >> 33) % below);
}

/* --- the server --- */

static json_t *print_thing(const struct thing *thing, int kind, const char *name, json_t *spec)
{
	char uid[32], revision[24];
	json_t *object, *status;

	snprintf(uid, sizeof uid, "%s-%u", name, thing->births);
	snprintf(revision, sizeof revision, "%llu", (unsigned long long)thing->revision);
	object = json_pack("{s:s,s:s,s:{s:s,s:s,s:s,s:s,s:s,s:i},s:o}", "apiVersion",
			   ROLL_API_GROUP "/" ROLL_API_VERSION, "kind",
			   roll_kind_text((enum roll_kind)kind), "metadata", "namespace", "d",
			   "name", name, "uid", uid, "resourceVersion", revision,
			   "creationTimestamp", "2026-01-01T00:00:00Z", "generation",
			   thing->generation, "spec", spec);
	assert_non_null(object);
	if (!thing->observed)
		return object;
	status = json_pack("{s:[{s:s,s:s,s:i}]}", "conditions", "type", "Programmed", "status",
			   "True", "observedGeneration", thing->observed);
	if (thing->serial)
		json_object_set_new(status, "serial", json_integer(thing->serial));
	json_object_set_new(object, "status", status);
	return object;
}

static json_t *print_set(const struct world *w, unsigned i)
{
	char name[16], address[32];

	snprintf(name, sizeof name, "n%u", i);
	snprintf(address, sizeof address, "192.0.2.%u", w->sets[i].byte);
	return print_thing(&w->sets[i], ROLL_KIND_RECORDSET, name,
			   json_pack("{s:{s:s},s:s,s:[{s:s,s:{s:s}}]}", "dnsZoneRef", "name", "z",
				     "recordType", "A", "records", "name", name, "a", "content",
				     address));
}

static json_t *print_zone(const struct world *w)
{
	return print_thing(
		&w->zone, ROLL_KIND_ZONE, "z",
		json_pack("{s:s,s:s}", "domainName", "example.com", "dnsZoneClassName", "c"));
}

static void record(struct world *w, int kind, bool is_absent, json_t *object)
{
	assert_true(w->log_count < LOG_MAX);
	w->log[w->log_count++] = (struct happening){kind, is_absent, w->revision, object};
}

static void tell_set(struct world *w, unsigned i)
{
	w->sets[i].revision = ++w->revision;
	record(w, ROLL_KIND_RECORDSET, false, print_set(w, i));
}

static void tell_zone(struct world *w)
{
	w->zone.revision = ++w->revision;
	record(w, ROLL_KIND_ZONE, false, print_zone(w));
}

static void change_something(struct world *w)
{
	unsigned i = draw(w, SETS);
	struct thing *set = &w->sets[i];

	if (set->is_there && draw(w, 3) == 0) {
		w->revision++;
		record(w, ROLL_KIND_RECORDSET, true, print_set(w, i));
		set->is_there = false;
		return;
	}
	if (!set->is_there)
		*set = (struct thing){.is_there = true, .births = set->births + 1};
	set->generation++;
	set->byte = 1 + (set->byte + draw(w, 249)) % 250; /* another one, or it is no change */
	tell_set(w, i);
}

/* A label, or somebody else's condition: the revision rises, nothing else. */
static void touch_something(struct world *w)
{
	unsigned i = draw(w, SETS);

	if (w->sets[i].is_there && w->sets[i].observed == w->sets[i].generation)
		tell_set(w, i);
	else if (w->zone.observed)
		tell_zone(w);
}

/* --- a replica --- */

static void open_replica(struct world *w, struct replica *r)
{
	struct roll_engine_conf conf = {
		.is_cluster = true,
		.guard = &w->guard,
		.clock = &r->tv.clock,
	};

	tempview_open(&r->tv);
	conf.writer = r->tv.writer;
	assert_int_equal(roll_engine_new(&conf, &r->engine, NULL), ROLL_OK);
	r->sink = roll_engine_sink(r->engine);
}

static void close_replica(struct replica *r)
{
	roll_engine_free(r->engine);
	r->engine = NULL;
	tempview_close(&r->tv);
}

static enum roll_status add_row(void *ctx, const struct roll_row *row)
{
	uint64_t *hash = ctx;

	if (row->type == ROLL_TYPE_A)
		*hash = *hash * 31 + roll_hash64(row->owner->wire, row->owner->len) +
			(uint8_t)row->rdata.p[3];
	return ROLL_OK;
}

/* After a commit: the serial has risen with the content, or not fallen. */
static void look(struct replica *r, bool is_new)
{
	struct roll_txn *txn = tempview_begin(&r->tv);
	struct roll_name apex = tempview_name("example.com");
	const struct roll_zone *zone;
	uint64_t hash = 7;

	assert_int_equal(roll_snap_zone_at(roll_txn_snap(txn), &apex, &zone), ROLL_OK);
	assert_int_equal(roll_snap_list(roll_txn_snap(txn), zone, add_row, &hash), ROLL_OK);
	if (!is_new && hash != r->hash)
		assert_true(roll_serial_gt(zone->serial, r->serial));
	if (!is_new)
		assert_false(roll_serial_gt(r->serial, zone->serial));
	r->serial = zone->serial;
	r->hash = hash;
	roll_txn_abort(txn);
}

static void follow(struct world *w, struct replica *r, int kind, size_t count)
{
	for (; r->at[kind] < w->log_count && count; r->at[kind]++) {
		const struct happening *one = &w->log[r->at[kind]];
		char position[24];

		if (one->kind != kind)
			continue;
		count--;
		snprintf(position, sizeof position, "%llu", (unsigned long long)one->revision);
		assert_int_equal(r->sink->event_begin(r->sink->ctx), ROLL_OK);
		if (one->is_absent)
			assert_int_equal(
				r->sink->event_absent(r->sink->ctx, one->object, one->revision),
				ROLL_OK);
		else
			assert_int_equal(r->sink->event_put(r->sink->ctx, one->object,
							    roll_str_n("", 0), roll_str_n("", 0)),
					 ROLL_OK);
		assert_int_equal(r->sink->event_end(r->sink->ctx, roll_str_c(plurals[one->kind]),
						    roll_str_c(position)),
				 ROLL_OK);
		look(r, false);
	}
}

/* Until now; bookmarks tell those watches that have nothing to tell. */
static void catch_up(struct world *w, struct replica *r)
{
	char position[24];

	snprintf(position, sizeof position, "%llu", (unsigned long long)w->revision);
	for (unsigned first = draw(w, ROLL_KIND_COUNT), i = 0; i < ROLL_KIND_COUNT; i++) {
		int kind = (int)((first + i) % ROLL_KIND_COUNT);

		follow(w, r, kind, LOG_MAX);
		assert_int_equal(r->sink->event_begin(r->sink->ctx), ROLL_OK);
		assert_int_equal(r->sink->event_end(r->sink->ctx, roll_str_c(plurals[kind]),
						    roll_str_c(position)),
				 ROLL_OK);
		look(r, false);
	}
}

static bool has_all(const struct world *w, const struct replica *r)
{
	for (int kind = 0; kind < ROLL_KIND_COUNT; kind++) {
		if (r->at[kind] < w->log_count)
			return false;
	}
	return true;
}

static void list_put(struct replica *r, json_t *object)
{
	assert_int_equal(
		r->sink->list_put(r->sink->ctx, object, roll_str_n("", 0), roll_str_n("", 0)),
		ROLL_OK);
	json_decref(object);
}

static void list(struct world *w, struct replica *r, bool is_new)
{
	char position[24];

	snprintf(position, sizeof position, "%llu", (unsigned long long)w->revision);
	for (int kind = 0; kind < ROLL_KIND_COUNT; kind++) {
		struct roll_list_head head = {
			.kind = kind, .ns = roll_str_c(""), .what = roll_str_c(plurals[kind])};
		enum roll_status status = ROLL_EAGAIN;

		/* A mass removal is confirmed by a second list. */
		for (int i = 0; i < 2 && status == ROLL_EAGAIN; i++) {
			assert_int_equal(r->sink->list_begin(r->sink->ctx, &head), ROLL_OK);
			if (kind == ROLL_KIND_CLASS)
				list_put(r, json_pack("{s:s,s:s,s:{s:s,s:s,s:s},s:{s:s,s:{s:s,s:{"
						      "s:[s]}}}}",
						      "apiVersion",
						      ROLL_API_GROUP "/" ROLL_API_VERSION, "kind",
						      "DNSZoneClass", "metadata", "name", "c",
						      "uid", "c", "resourceVersion", "1", "spec",
						      "controllerName", "ours", "nameServerPolicy",
						      "mode", "Static", "static", "servers",
						      "ns1.example.net"));
			else if (kind == ROLL_KIND_ZONE)
				list_put(r, print_zone(w));
			for (unsigned k = 0; k < SETS && kind == ROLL_KIND_RECORDSET; k++) {
				if (w->sets[k].is_there)
					list_put(r, print_set(w, k));
			}
			status = r->sink->list_end(r->sink->ctx, w->revision, roll_str_c(position));
		}
		assert_int_equal(status, ROLL_OK);
		r->at[kind] = w->log_count;
		if (!is_new)
			look(r, false);
	}
	if (is_new)
		look(r, true);
}

/* With nothing but what the server has. */
static void renew(struct world *w, struct replica *r)
{
	close_replica(r);
	tempview_fini(&r->tv);
	tempview_init(&r->tv);
	open_replica(w, r);
	/* It may lead before it has read anything. */
	roll_engine_publish(r->engine, r == &w->replicas[w->leader]);
	list(w, r, true);
}

/* --- who reports --- */

static size_t count_sets(const struct world *w)
{
	size_t count = 0;

	for (unsigned i = 0; i < SETS; i++)
		count += w->sets[i].is_there;
	return count;
}

/* One status is written, if there is anything to say; as soon as the leader has seen what is. */
static bool report(struct world *w)
{
	struct replica *leader = &w->replicas[w->leader];

	if (!has_all(w, leader))
		return false;
	/* As sync/publish.c does. */
	if (w->zone.serial && w->zone.serial == leader->serial &&
	    w->published_count != count_sets(w)) {
		roll_engine_raise_serial(leader->engine, roll_str_c("d/z"));
		look(leader, false);
	}
	/* No serial is given out twice for different content. */
	if (w->zone.serial == leader->serial)
		assert_int_equal(leader->hash, w->published_hash);
	else
		w->published_hash = leader->hash;
	w->published_count = count_sets(w);
	if (w->zone.serial != leader->serial || w->zone.observed != w->zone.generation) {
		w->zone.serial = leader->serial;
		w->zone.observed = w->zone.generation;
		tell_zone(w);
		return true;
	}
	for (unsigned i = 0; i < SETS; i++) {
		struct thing *set = &w->sets[i];

		if (set->is_there && set->observed != set->generation) {
			set->observed = set->generation;
			tell_set(w, i);
			return true;
		}
	}
	return false;
}

static void step(struct world *w)
{
	size_t n = draw(w, REPLICAS);
	struct replica *r = &w->replicas[n];

	switch (draw(w, 10)) {
	case 0:
	case 1:
	case 2:
		change_something(w);
		break;
	case 3:
		touch_something(w);
		break;
	case 4:
		/*
		 * A change and its reversal between two lists are seen by nobody who lists, which
		 * must not be the one that reports: the others would be later until the next
		 * change.
		 */
		if (n != w->leader || has_all(w, r))
			list(w, r, false);
		break;
	case 5:
		renew(w, r);
		w->is_leader_new = w->is_leader_new || n == w->leader;
		break;
	case 6:
	case 7:
		catch_up(w, &w->replicas[w->leader]);
		report(w);
		break;
	default:
		follow(w, r, (int)draw(w, ROLL_KIND_COUNT), 1 + draw(w, 4));
	}
}

static void settle(struct world *w)
{
	struct replica *leader = &w->replicas[w->leader];

	/* Nor does a new one see such a change and its reversal. */
	if (w->is_leader_new)
		change_something(w);
	w->is_leader_new = false;
	do
		catch_up(w, leader);
	while (report(w));
	for (size_t i = 0; i < REPLICAS; i++) {
		if (i != w->leader && draw(w, 3) == 0)
			list(w, &w->replicas[i], false);
		catch_up(w, &w->replicas[i]);
		assert_int_equal(w->replicas[i].hash, leader->hash);
		assert_int_equal(w->replicas[i].serial, leader->serial);
	}
	/* What is said now is as good for one that begins now. */
	renew(w, &w->replicas[(w->leader + 1) % REPLICAS]);
	assert_int_equal(w->replicas[(w->leader + 1) % REPLICAS].serial, leader->serial);
}

static void elect(struct world *w, size_t leader)
{
	roll_engine_publish(w->replicas[w->leader].engine, false);
	w->leader = leader;
	roll_engine_publish(w->replicas[leader].engine, true);
}

static void replicas_agree_on_serials(void **state)
{
	const uint64_t seeds[] = {1, 42, 20261202};

	(void)state;
	for (size_t s = 0; s < sizeof seeds / sizeof *seeds; s++) {
		struct world *w = calloc(1, sizeof *w);

		assert_non_null(w);
		w->random = seeds[s];
		w->revision = 1000;
		w->zone = (struct thing){.is_there = true, .births = 1, .generation = 1};
		tell_zone(w);
		for (size_t i = 0; i < REPLICAS; i++) {
			tempview_init(&w->replicas[i].tv);
			open_replica(w, &w->replicas[i]);
			list(w, &w->replicas[i], true);
		}
		elect(w, 0);
		for (int round = 0; round < ROUNDS; round++) {
			for (int i = 0; i < STEPS_A_ROUND; i++)
				step(w);
			settle(w);
			elect(w, draw(w, REPLICAS));
		}
		for (size_t i = 0; i < REPLICAS; i++) {
			close_replica(&w->replicas[i]);
			tempview_fini(&w->replicas[i].tv);
		}
		for (size_t i = 0; i < w->log_count; i++)
			json_decref(w->log[i].object);
		free(w);
	}
}

/* Whoever leads has given it out already, or what it says is not new to it. */
static void an_own_report_is_no_commit(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	struct replica *leader;
	uint64_t before;
	struct roll_txn *txn;

	(void)state;
	assert_non_null(w);
	w->random = 5;
	w->revision = 1000;
	w->zone = (struct thing){.is_there = true, .births = 1, .generation = 1};
	tell_zone(w);
	leader = &w->replicas[0];
	tempview_init(&leader->tv);
	open_replica(w, leader);
	list(w, leader, true);
	for (int i = 0; i < 10; i++)
		change_something(w);
	catch_up(w, leader);
	txn = tempview_begin(&leader->tv);
	before = roll_snap_head(roll_txn_snap(txn))->generation;
	roll_txn_abort(txn);
	while (report(w))
		catch_up(w, leader);
	txn = tempview_begin(&leader->tv);
	assert_int_equal(roll_snap_head(roll_txn_snap(txn))->generation, before);
	roll_txn_abort(txn);
	assert_int_equal(w->zone.serial, leader->serial);
	close_replica(leader);
	tempview_fini(&leader->tv);
	for (size_t i = 0; i < w->log_count; i++)
		json_decref(w->log[i].object);
	free(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(replicas_agree_on_serials),
		cmocka_unit_test(an_own_report_is_no_commit),
	};

	quiet();
	return cmocka_run_group_tests_name("replicas", tests, NULL, NULL);
}
