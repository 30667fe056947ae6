/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/engine_state.h"

/* How far from the object's own revision a serial may be that was published for it. */
#define AHEAD_MAX ((uint32_t)1 << 24)
#define BEHIND_MAX ((uint32_t)1 << 30)

/*
 * Replicas that are fed by one cluster agree on the serials of their zones. What they see as it
 * happens gives them the same ones (view/domain.c). A list that is taken later does not: revisions
 * have risen meanwhile, above all by the status that one of the replicas writes, and what is gone
 * has none. So that one also writes down the serials that it gives out (status.serial of a
 * DNSZone), and the others heed them: once they have all that was known when it was given, since a
 * serial must not come before what it stands for.
 */

void roll_engine_publish(struct roll_engine *engine, bool is_publisher)
{
	engine->is_publisher = is_publisher;
}

/*
 * Where nobody says better, what is late has to do. Who publishes has nobody to heed, but for what
 * was said before its view began.
 */
static bool is_follower(const struct roll_engine *engine)
{
	return engine->conf.is_cluster && engine->is_published &&
	       (engine->is_building || !engine->is_publisher);
}

/*
 * Whoever may write the status of one DNSZone may write any number there, and serials half the
 * range apart have no order: one from nowhere could make the serials of all others fall. An honest
 * one was given before it was written, and so is not later than the object's revision, but for what
 * a cluster has lost when it was restored from a backup. A status in a manifest was copied from
 * somewhere.
 */
static uint32_t published(const struct roll_engine *engine, const struct roll_object *object)
{
	uint32_t revision = (uint32_t)object->revision, serial = object->serial;

	if (!engine->conf.is_cluster || object->kind != ROLL_KIND_ZONE)
		return 0;
	return serial - revision <= AHEAD_MAX || revision - serial <= BEHIND_MAX ? serial : 0;
}

void roll_engine_set_revision(struct roll_engine *engine, struct roll_txn *txn,
			      const struct roll_object *object, uint64_t otherwise)
{
	uint32_t serial = published(engine, object);

	engine->is_published = engine->is_published || serial;
	roll_txn_set_revision(txn,
			      &(struct roll_revision){
				      .number = object->revision ? object->revision : otherwise,
				      .is_late = object->is_reported && is_follower(engine),
				      .published = serial,
			      });
}

void roll_engine_set_list_revision(const struct roll_engine *engine, struct roll_txn *txn,
				   uint64_t revision)
{
	roll_txn_set_revision(
		txn, &(struct roll_revision){.number = revision, .is_late = is_follower(engine)});
}

void roll_engine_heed(struct roll_engine *engine, struct roll_txn *txn,
		      const struct roll_object *object)
{
	uint32_t serial = published(engine, object);
	struct roll_str key;

	if (object->kind != ROLL_KIND_ZONE)
		return;
	engine->is_published = engine->is_published || serial;
	key = roll_apply_key(engine->apply, object);
	if (roll_txn_is_later(txn, key, serial))
		roll_mark_set(&engine->heeded, key, serial, roll_str_n("", 0));
	else
		roll_mark_unset(&engine->heeded, key);
}

static bool is_reached(const struct roll_mark *mark, uint64_t reached)
{
	return !roll_serial_gt((uint32_t)mark->value, (uint32_t)reached);
}

static enum roll_status heed_all(struct roll_engine *engine, struct roll_txn *txn, void *ctx)
{
	const uint64_t *reached = ctx;
	const struct roll_mark *mark;

	for (mark = engine->heeded; mark; mark = mark->hh.next) {
		if (is_reached(mark, *reached))
			roll_txn_heed_serial(txn, roll_str_n(mark->key, mark->key_n),
					     (uint32_t)mark->value);
	}
	return roll_txn_status(txn);
}

void roll_engine_heed_due(struct roll_engine *engine)
{
	uint64_t reached = roll_engine_reached(engine);
	struct roll_mark *mark, *next;
	bool is_due = false;

	if (!engine->heeded || !reached || engine->is_building)
		return;
	HASH_ITER (hh, engine->heeded, mark, next)
		is_due = is_due || is_reached(mark, reached);
	/* After an error, which has been told, there is a next time. */
	if (!is_due || roll_engine_run(engine, heed_all, &reached))
		return;
	HASH_ITER (hh, engine->heeded, mark, next) {
		if (is_reached(mark, reached))
			roll_mark_drop(&engine->heeded, mark);
	}
}

static enum roll_status raise_one(struct roll_engine *engine, struct roll_txn *txn, void *ctx)
{
	const struct roll_str *zone_key = ctx;

	roll_txn_set_revision(txn, &(struct roll_revision){.number = engine->high_water});
	roll_txn_raise_serial(txn, *zone_key);
	return roll_txn_status(txn);
}

bool roll_engine_raise_serial(struct roll_engine *engine, struct roll_str zone_key)
{
	return engine->was_building && !engine->is_building &&
	       !roll_engine_run(engine, raise_one, &zone_key);
}
