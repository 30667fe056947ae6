/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "sync/engine_state.h"

#define OPS_MAX 100000 /* of one batch of events; sources send far smaller ones */

/* --- decoding --- */

struct collect {
	struct roll_engine *engine;
	struct roll_decoded *out;
};

static void on_finding(void *ctx, const struct roll_finding *finding)
{
	struct collect *collect = ctx;
	struct roll_decoded *out = collect->out;
	struct roll_arena *arena = &collect->engine->decode;

	if (out->extra_count >= ROLL_EXTRAS_MAX)
		return;
	out->extra[out->extra_count++] = (struct roll_apply_extra){
		finding->severity, finding->reason, roll_arena_str(arena, finding->path),
		roll_arena_str(arena, finding->text)};
}

enum roll_status roll_engine_decode(struct roll_engine *engine, const json_t *json,
				    struct roll_decoded *out)
{
	struct collect collect = {engine, out};
	struct roll_findings findings = {on_finding, &collect};
	enum roll_status status;

	roll_arena_reset(&engine->decode);
	out->extra_count = 0;
	status = roll_object_decode(json, &out->object, &findings);
	return engine->decode.status ? engine->decode.status : status;
}

/* --- operations --- */

/* About the memory a value takes: what bounds a slice. */
static size_t cost_of(json_t *value)
{
	size_t cost = 64, i;
	const char *key;
	json_t *child;

	switch (json_typeof(value)) {
	case JSON_OBJECT:
		json_object_foreach (value, key, child)
			cost += 96 + cost_of(child);
		return cost;
	case JSON_ARRAY:
		json_array_foreach (value, i, child)
			cost += sizeof child + cost_of(child);
		return cost;
	case JSON_STRING:
		return cost + json_string_length(value);
	default:
		return cost;
	}
}

enum roll_status roll_engine_add_op(struct roll_engine *engine, json_t *json, struct roll_str scope,
				    bool is_absent, uint64_t revision)
{
	struct roll_ops *ops = &engine->ops;
	struct roll_op op = {.is_absent = is_absent, .revision = revision, .scope_n = scope.n};

	if (ops->count == ops->room) {
		size_t room = ops->room ? ops->room * 2 : 64;
		struct roll_op *items = reallocarray(ops->items, room, sizeof *items);

		if (!items)
			return ROLL_ENOMEM;
		ops->items = items;
		ops->room = room;
	}
	if (scope.n) {
		op.scope = malloc(scope.n);
		if (!op.scope)
			return ROLL_ENOMEM;
		memcpy(op.scope, scope.p, scope.n);
	}
	op.json = json_incref(json);
	ops->items[ops->count++] = op;
	ops->cost += cost_of(json) + scope.n;
	return ROLL_OK;
}

void roll_engine_clear_ops(struct roll_engine *engine)
{
	struct roll_ops *ops = &engine->ops;
	size_t i;

	for (i = 0; i < ops->count; i++) {
		json_decref(ops->items[i].json);
		free(ops->items[i].scope);
	}
	ops->count = 0;
	ops->cost = 0;
}

enum roll_status roll_engine_put(struct roll_engine *engine, struct roll_txn *txn, json_t *json,
				 const struct roll_decoded *decoded, struct roll_str scope,
				 enum roll_apply_result *result)
{
	enum roll_status status;

	status = roll_apply_put(engine->apply, txn, &decoded->object, scope, decoded->extra,
				decoded->extra_count, result);
	if (decoded->object.kind == ROLL_KIND_ZONE)
		engine->has_zone_op = true;
	if (status || *result != ROLL_APPLY_SLICED)
		return status;
	json_decref(engine->sliced);
	engine->sliced = json_incref(json);
	return ROLL_ESTALE;
}

/*
 * A part of a list into a new view: what is there already came from this very list, from a manifest
 * that is before this one.
 */
static enum roll_status put_direct(struct roll_engine *engine, struct roll_txn *txn, json_t *json,
				   const struct roll_decoded *decoded, struct roll_str scope)
{
	struct roll_str key = roll_apply_key(engine->apply, &decoded->object);
	enum roll_row_kind kind = (enum roll_row_kind)decoded->object.kind;
	struct roll_apply_extra extra;
	enum roll_apply_result result;
	struct roll_object_row row;
	enum roll_status status;

	status = roll_snap_object(roll_txn_snap(txn), kind, key, &row);
	if (status == ROLL_ENOENT)
		return roll_engine_put(engine, txn, json, decoded, scope, &result);
	if (status)
		return status;
	roll_buf_reset(&engine->key);
	roll_buf_add_str(&engine->key, key);
	extra = roll_engine_duplicate(engine, scope);
	roll_list_tell_shared(&engine->list, row.scope, scope);
	return roll_apply_add_extra(engine->apply, txn, decoded->object.kind,
				    roll_buf_str(&engine->key), &extra, false);
}

static enum roll_status apply_op(struct roll_engine *engine, struct roll_txn *txn,
				 const struct roll_op *op, bool is_direct)
{
	struct roll_str scope = roll_str_n(op->scope, op->scope_n);
	enum roll_apply_result result;
	struct roll_decoded decoded;
	enum roll_status status;

	status = roll_engine_decode(engine, op->json, &decoded);
	if (status)
		return status;
	if (op->is_absent) {
		struct roll_str key = roll_apply_key(engine->apply, &decoded.object);

		if (decoded.object.kind == ROLL_KIND_ZONE) {
			engine->has_zone_op = true;
			roll_mark_unset(&engine->heeded, key);
		}
		roll_txn_set_revision(txn, &(struct roll_revision){.number = op->revision});
		status = roll_apply_absent(engine->apply, txn, decoded.object.kind, key,
					   "event DELETED", op->revision);
		return status == ROLL_ENOENT ? ROLL_OK : status;
	}
	if (is_direct && roll_engine_is_overtaken(engine, &decoded.object))
		return ROLL_OK;
	roll_engine_set_revision(engine, txn, &decoded.object, 0);
	if (is_direct && !engine->conf.is_cluster)
		status = put_direct(engine, txn, op->json, &decoded, scope);
	else
		status = roll_engine_put(engine, txn, op->json, &decoded, scope, &result);
	if (!status)
		roll_engine_heed(engine, txn, &decoded.object);
	/* Found before anything was written: the spec alone is larger than any object can be. */
	if (status == ROLL_ELIMIT && !roll_txn_status(txn)) {
		decoded.extra_count = 0;
		roll_engine_reject(engine, scope, roll_str_n("", 0), &decoded);
		status = ROLL_OK;
	}
	return status;
}

enum roll_status roll_engine_apply_ops(struct roll_engine *engine, struct roll_txn *txn,
				       bool is_direct)
{
	enum roll_status status = ROLL_OK;
	size_t i;

	for (i = 0; i < engine->ops.count && !status; i++)
		status = apply_op(engine, txn, &engine->ops.items[i], is_direct);
	return status;
}

/* --- events --- */

enum roll_status roll_engine_event_begin(void *ctx)
{
	struct roll_engine *engine = ctx;

	assert(!engine->in_event);
	/* What a list into a new view has told so far is older than the events. */
	if (engine->ops.count) {
		enum roll_status status = roll_engine_flush_direct(engine);

		if (status)
			return status;
	}
	engine->in_event = true;
	return ROLL_OK;
}

static enum roll_status add_event(struct roll_engine *engine, json_t *json, struct roll_str scope,
				  struct roll_str where, bool is_absent, uint64_t revision)
{
	struct roll_decoded decoded;
	enum roll_status status;

	if (engine->ops.count >= OPS_MAX)
		return ROLL_ELIMIT;
	status = roll_engine_decode(engine, json, &decoded);
	if (status == ROLL_EINVAL)
		roll_engine_reject(engine, scope, where, &decoded);
	if (status == ROLL_EINVAL || status == ROLL_ENOENT)
		return ROLL_OK;
	if (status)
		return status;
	roll_metric_add(engine->m_events, is_absent ? "absent" : "put", NULL, 1);
	return roll_engine_add_op(engine, json, scope, is_absent, revision);
}

enum roll_status roll_engine_event_put(void *ctx, json_t *object, struct roll_str scope,
				       struct roll_str where)
{
	return add_event(ctx, object, scope, where, false, 0);
}

enum roll_status roll_engine_event_absent(void *ctx, json_t *object, uint64_t revision)
{
	return add_event(ctx, object, roll_str_n("", 0), roll_str_n("", 0), true, revision);
}

struct event_end {
	struct roll_str what, position;
	uint64_t revision; /* the highest of the batch */
	bool is_changed;
};

static enum roll_status end_event(struct roll_engine *engine, struct roll_txn *txn, void *ctx)
{
	struct event_end *end = ctx;
	enum roll_status status = roll_engine_apply_ops(engine, txn, false);

	end->is_changed = !status && roll_txn_is_changed(txn);
	return end->is_changed
		       ? roll_engine_note(engine, txn, end->what, end->position, end->revision)
		       : status;
}

/* Revisions of what the events were about, for a list that is older. */
static void touch_all(struct roll_engine *engine, struct event_end *end)
{
	struct roll_decoded decoded;
	size_t i;

	for (i = 0; i < engine->ops.count; i++) {
		const struct roll_op *op = &engine->ops.items[i];
		uint64_t revision;

		if (roll_engine_decode(engine, op->json, &decoded))
			continue;
		revision = op->is_absent ? op->revision : decoded.object.revision;
		if (revision > end->revision)
			end->revision = revision;
		if (engine->list.is_open)
			roll_mark_set(&engine->list.touched,
				      roll_engine_touched_key(
					      engine, decoded.object.kind,
					      roll_apply_key(engine->apply, &decoded.object)),
				      revision, roll_str_n(NULL, 0));
		if (op->is_absent)
			roll_metric_add(engine->m_removed, "event", NULL, 1);
	}
}

enum roll_status roll_engine_event_end(void *ctx, struct roll_str what, struct roll_str position)
{
	struct roll_engine *engine = ctx;
	struct event_end end = {.what = what, .position = position};
	enum roll_status status;
	uint64_t revision;

	assert(engine->in_event);
	engine->in_event = false;
	touch_all(engine, &end);
	if (position.n && !roll_str_u64(position, UINT64_MAX, &revision) && revision > end.revision)
		end.revision = revision;
	engine->has_zone_op = false;
	status = roll_engine_run(engine, end_event, &end);
	if (!status) {
		if (end.revision > engine->high_water)
			engine->high_water = end.revision;
		roll_engine_set_position(engine, what, position, end.is_changed);
		engine->committed += engine->ops.count;
		engine->is_sweep_due = engine->is_sweep_due || engine->has_zone_op;
	}
	roll_engine_clear_ops(engine);
	if (!status)
		roll_engine_heed_due(engine);
	return status;
}
