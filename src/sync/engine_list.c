/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bin.h"
#include "base/json.h"
#include "base/log.h"
#include "sync/engine_state.h"

/* A slice of a list goes to the view when it has this many objects or bytes. */
#define SLICE_OBJECTS 2000u
#define SLICE_BYTES ((size_t)2 << 20)
#define DIRECT_BYTES ((size_t)12 << 20) /* as JSON values in memory, which are larger */
#define PROGRESS_EVERY 1000u

/* --- sets of strings --- */

const struct roll_mark *roll_mark_find(const struct roll_mark *marks, struct roll_str key)
{
	struct roll_mark *found = NULL;

	if (key.n)
		HASH_FIND(hh, marks, key.p, key.n, found);
	return found;
}

void roll_mark_set(struct roll_mark **marks, struct roll_str key, uint64_t value,
		   struct roll_str text)
{
	struct roll_mark *mark = (struct roll_mark *)roll_mark_find(*marks, key);

	if (!key.n)
		return;
	if (!mark) {
		mark = calloc(1, sizeof *mark + key.n);
		if (!mark)
			return;
		memcpy(mark->key, key.p, key.n);
		mark->key_n = key.n;
		HASH_ADD_KEYPTR(hh, *marks, mark->key, mark->key_n, mark);
	}
	mark->value = value;
	if (text.n && !mark->text)
		mark->text = strndup(text.p, text.n);
}

void roll_mark_drop(struct roll_mark **marks, struct roll_mark *mark)
{
	HASH_DEL(*marks, mark);
	free(mark->text);
	free(mark);
}

void roll_mark_unset(struct roll_mark **marks, struct roll_str key)
{
	struct roll_mark *mark = (struct roll_mark *)roll_mark_find(*marks, key);

	if (mark)
		roll_mark_drop(marks, mark);
}

void roll_marks_clear(struct roll_mark **marks)
{
	struct roll_mark *mark, *next;

	HASH_ITER (hh, *marks, mark, next)
		roll_mark_drop(marks, mark);
}

/* --- what the open list is about --- */

struct roll_str roll_engine_touched_key(struct roll_engine *engine, enum roll_kind kind,
					struct roll_str key)
{
	roll_buf_reset(&engine->key);
	roll_buf_put_u8(&engine->key, (uint8_t)kind);
	roll_buf_add_str(&engine->key, key);
	return roll_buf_str(&engine->key);
}

bool roll_engine_is_overtaken(struct roll_engine *engine, const struct roll_object *object)
{
	const struct roll_mark *mark;

	if (!engine->list.touched)
		return false;
	mark = roll_mark_find(engine->list.touched,
			      roll_engine_touched_key(engine, object->kind,
						      roll_apply_key(engine->apply, object)));
	return mark && mark->value > object->revision;
}

static int compare_scopes(const void *a, const void *b)
{
	return roll_str_cmp(*(const struct roll_str *)a, *(const struct roll_str *)b);
}

bool roll_list_has_scope(const struct roll_list *list, struct roll_str scope)
{
	const struct roll_scopes *scopes = &list->head.scopes;

	return scopes->count &&
	       bsearch(&scope, scopes->items, scopes->count, sizeof scope, compare_scopes);
}

bool roll_list_is_kept(const struct roll_list *list, struct roll_str scope)
{
	size_t n;

	if (!list->kept)
		return false;
	if (roll_mark_find(list->kept, scope))
		return true;
	/* Or a folder above it. */
	for (n = scope.n; n > 0; n--) {
		if (scope.p[n - 1] == '/' && roll_mark_find(list->kept, roll_str_n(scope.p, n)))
			return true;
	}
	return false;
}

struct roll_apply_extra roll_engine_duplicate(struct roll_engine *engine, struct roll_str other)
{
	char shown[200], text[300];

	snprintf(text, sizeof text, "the same object is in \"%s\" as well; that one is ignored",
		 roll_str_show(other, shown, sizeof shown));
	return (struct roll_apply_extra){ROLL_WARNING, ROLL_REASON_DUPLICATE_OBJECT,
					 roll_str_n("", 0),
					 roll_arena_str(&engine->decode, roll_str_c(text))};
}

void roll_list_tell_shared(struct roll_list *list, struct roll_str scope, struct roll_str other)
{
	if (list->head.on_shared)
		list->head.on_shared(list->head.ctx, scope, other);
}

/* --- the stage --- */

/* The object is staged already: of two manifests the first by path counts, and says so. */
static enum roll_status stage_again(struct roll_engine *engine, struct roll_txn *txn,
				    enum roll_kind kind, struct roll_str key,
				    struct roll_str before, struct roll_str bytes)
{
	struct roll_staged a, b, *wins = &a, *loses = &b;
	enum roll_status status;

	if (engine->conf.is_cluster) {
		roll_txn_stage_put(txn, (enum roll_row_kind)kind, key, bytes);
		return roll_txn_status(txn);
	}
	status = roll_staged_decode(kind, before, &a);
	if (!status)
		status = roll_staged_decode(kind, bytes, &b);
	if (status)
		return status;
	if (roll_str_cmp(b.scope, a.scope) < 0) {
		wins = &b;
		loses = &a;
	}
	roll_list_tell_shared(&engine->list, wins->scope, loses->scope);
	if (wins->decoded.extra_count <= ROLL_EXTRAS_MAX)
		wins->decoded.extra[wins->decoded.extra_count++] =
			roll_engine_duplicate(engine, loses->scope);
	roll_buf_reset(&engine->bytes);
	roll_staged_encode(wins, &engine->bytes);
	if (engine->bytes.status)
		return engine->bytes.status;
	roll_txn_stage_put(txn, (enum roll_row_kind)kind, key, roll_buf_str(&engine->bytes));
	return roll_txn_status(txn);
}

static enum roll_status stage_one(struct roll_engine *engine, struct roll_txn *txn,
				  enum roll_kind kind, struct roll_str key, struct roll_str bytes)
{
	struct roll_staged staged;
	struct roll_str before;
	enum roll_status status;
	bool is_unchanged;

	roll_arena_reset(&engine->decode);
	status = roll_staged_decode(kind, bytes, &staged);
	if (status)
		return status;
	if (!roll_engine_is_overtaken(engine, &staged.decoded.object))
		roll_engine_heed(engine, txn, &staged.decoded.object);
	status = roll_txn_stage_get(txn, (enum roll_row_kind)kind, key, &before);
	if (status == ROLL_OK)
		return stage_again(engine, txn, kind, key, before, bytes);
	if (status != ROLL_ENOENT)
		return status;
	status = roll_apply_is_unchanged(engine->apply, txn, &staged.decoded.object, staged.spec,
					 staged.scope, staged.decoded.extra,
					 staged.decoded.extra_count, &is_unchanged);
	if (status)
		return status;
	if (is_unchanged) {
		staged.is_seen = true;
		staged.has_spec = false;
		roll_buf_reset(&engine->bytes);
		roll_staged_encode(&staged, &engine->bytes);
		bytes = roll_buf_str(&engine->bytes);
		if (engine->bytes.status)
			return engine->bytes.status;
	}
	roll_txn_stage_put(txn, (enum roll_row_kind)kind, key, bytes);
	return roll_txn_status(txn);
}

enum roll_status roll_engine_flush(struct roll_engine *engine, struct roll_txn *txn)
{
	const struct roll_list *list = &engine->list;
	struct roll_reader r = roll_reader_of(list->slice.p, list->slice.n);
	enum roll_status status = ROLL_OK;

	if (engine->is_stage_dirty && !list->flushed)
		roll_txn_stage_clear(txn);
	while (!roll_reader_done(&r) && !status) {
		enum roll_kind kind = (enum roll_kind)roll_reader_u8(&r);
		struct roll_str key = roll_reader_str16(&r);
		struct roll_str bytes = roll_reader_str32(&r);

		assert(!r.failed);
		status = stage_one(engine, txn, kind, key, bytes);
	}
	return status ? status : roll_txn_status(txn);
}

static enum roll_status flush_slice(struct roll_engine *engine, struct roll_txn *txn, void *ctx)
{
	(void)ctx;
	return roll_engine_flush(engine, txn);
}

static enum roll_status flush(struct roll_engine *engine)
{
	struct roll_list *list = &engine->list;
	enum roll_status status = roll_engine_run(engine, flush_slice, NULL);

	if (status)
		return status;
	engine->is_stage_dirty = true;
	list->flushed += list->slice_count;
	list->slice_count = 0;
	roll_buf_reset(&list->slice);
	return ROLL_OK;
}

static enum roll_status apply_slice(struct roll_engine *engine, struct roll_txn *txn, void *ctx)
{
	(void)ctx;
	return roll_engine_apply_ops(engine, txn, true);
}

enum roll_status roll_engine_flush_direct(struct roll_engine *engine)
{
	enum roll_status status = roll_engine_run(engine, apply_slice, NULL);

	if (!status)
		engine->committed += engine->ops.count;
	roll_engine_clear_ops(engine);
	return status;
}

/* --- the list as the source tells it --- */

struct roll_guarded *roll_engine_guarded(struct roll_engine *engine,
					 const struct roll_list_head *head)
{
	uint64_t hash = roll_hash64(head->ns.p, head->ns.n) * 31 + (uint64_t)(head->kind + 2);
	struct roll_guarded *items;
	size_t i;

	for (i = 0; i < engine->guarded_count; i++) {
		if (engine->guarded[i].hash == hash)
			return &engine->guarded[i];
	}
	items = reallocarray(engine->guarded, engine->guarded_count + 1, sizeof *items);
	if (!items)
		return NULL;
	engine->guarded = items;
	items += engine->guarded_count++;
	*items = (struct roll_guarded){.hash = hash};
	roll_guard_init(&items->guard, engine->conf.guard);
	return items;
}

/*
 * A list of a folder that was given up has left some of it in the new view, and nothing of a
 * manifest that cannot be read may stay: begin the view anew.
 */
static enum roll_status begin_anew(struct roll_engine *engine)
{
	struct roll_err err = {0};
	char shown[256];
	enum roll_status status;

	status = roll_writer_rebuild(engine->conf.writer, &err);
	if (status) {
		roll_log(ROLL_ERROR, "rebuild-failed", "reason=\"%s\"",
			 roll_str_show(roll_str_c(err.text), shown, sizeof shown));
		return status;
	}
	memset(engine->objects, 0, sizeof engine->objects);
	engine->found = (struct roll_apply_delta){0};
	engine->is_identity_new = true;
	return ROLL_OK;
}

static bool is_anything_left(const struct roll_engine *engine)
{
	return engine->objects[0] || engine->objects[1] || engine->objects[2] ||
	       !roll_writer_is_rebuilding(engine->conf.writer);
}

/* A part of a new view that nothing has been put into. */
static bool is_direct(const struct roll_engine *engine, const struct roll_list_head *head)
{
	uint64_t present = 0;
	size_t i;

	if (!engine->is_building)
		return false;
	if (head->kind >= 0)
		return engine->objects[head->kind] == 0;
	for (i = 0; i < ROLL_KIND_COUNT; i++)
		present += engine->objects[i];
	return head->all_scopes && present == 0;
}

void roll_list_close(struct roll_engine *engine)
{
	struct roll_list *list = &engine->list;

	roll_engine_clear_ops(engine);
	roll_buf_reset(&list->slice);
	list->slice_count = list->flushed = 0;
	roll_marks_clear(&list->kept);
	roll_marks_clear(&list->touched);
	list->is_open = false;
}

void roll_engine_list_abort(void *ctx)
{
	roll_list_close(ctx);
}

enum roll_status roll_engine_list_begin(void *ctx, const struct roll_list_head *head)
{
	struct roll_engine *engine = ctx;
	struct roll_list *list = &engine->list;
	size_t i;

	assert(!engine->in_event);
	roll_list_close(engine);
	if (engine->is_stopped)
		return ROLL_ECANCELED;
	if (!roll_engine_guarded(engine, head))
		return ROLL_ENOMEM;
	if (engine->is_building && head->kind < 0 && is_anything_left(engine)) {
		enum roll_status status = begin_anew(engine);

		if (status)
			return status;
	}
	list->head = *head;
	list->is_open = true;
	list->is_direct = is_direct(engine, head);
	list->high_water = engine->high_water;
	list->is_missing_scope = false;
	list->read = 0;
	if (head->kind >= 0 || head->all_scopes)
		roll_engine_clear_rejects(engine, head->kind < 0, head->what);
	for (i = 0; i < head->scopes.count && !head->all_scopes; i++)
		roll_engine_clear_rejects(engine, false, head->scopes.items[i]);
	for (i = 0; i < head->gone.count && !head->all_scopes; i++)
		roll_engine_clear_rejects(engine, false, head->gone.items[i]);
	return ROLL_OK;
}

static enum roll_status put_staged(struct roll_engine *engine, const struct roll_decoded *decoded,
				   struct roll_str scope)
{
	struct roll_list *list = &engine->list;
	struct roll_staged staged = {.decoded = *decoded, .scope = scope};
	enum roll_status status = ROLL_OK;

	roll_buf_reset(&engine->bytes);
	if (decoded->object.spec)
		status = roll_json_print(decoded->object.spec, &engine->bytes);
	if (!status && engine->bytes.n > ROLL_OBJECT_LIMIT_BYTES)
		status = ROLL_ELIMIT;
	if (status)
		return status;
	staged.has_spec = decoded->object.spec != NULL;
	staged.spec = roll_buf_str(&engine->bytes);
	roll_buf_put_u8(&list->slice, (uint8_t)decoded->object.kind);
	roll_buf_put_str16(&list->slice, roll_apply_key(engine->apply, &decoded->object));
	/* The length is known afterwards only. */
	{
		size_t at = list->slice.n, n;

		roll_buf_put_u32(&list->slice, 0);
		roll_staged_encode(&staged, &list->slice);
		if (list->slice.status)
			return list->slice.status;
		n = list->slice.n - at - sizeof(uint32_t);
		for (size_t i = 0; i < sizeof(uint32_t); i++)
			list->slice.p[at + i] = (char)(uint8_t)(n >> (8 * i));
	}
	list->slice_count++;
	if (list->slice_count < SLICE_OBJECTS && list->slice.n < SLICE_BYTES)
		return ROLL_OK;
	return flush(engine);
}

static enum roll_status put_direct(struct roll_engine *engine, json_t *json,
				   const struct roll_decoded *decoded, struct roll_str scope)
{
	enum roll_status status;

	/* The first of its kind in this view, so there is nothing to take away. */
	if (decoded->object.is_terminating)
		return ROLL_OK;
	status = roll_engine_add_op(engine, json, scope, false, 0);
	if (!status && (engine->ops.count >= SLICE_OBJECTS || engine->ops.cost >= DIRECT_BYTES))
		status = roll_engine_flush_direct(engine);
	return status;
}

enum roll_status roll_engine_list_put(void *ctx, json_t *object, struct roll_str scope,
				      struct roll_str where)
{
	struct roll_engine *engine = ctx;
	struct roll_list *list = &engine->list;
	struct roll_decoded decoded;
	enum roll_status status;

	if (engine->is_stopped)
		return ROLL_ECANCELED;
	assert(list->is_open);
	status = roll_engine_decode(engine, object, &decoded);
	/* Objects of other kinds may stand beside ours, but a manifest has to say what it holds. */
	if (status == ROLL_ENOENT && (engine->conf.is_cluster || roll_json_str(object, "kind").n))
		return ROLL_OK;
	if (status == ROLL_ENOENT) {
		decoded.extra[0] = (struct roll_apply_extra){
			ROLL_FAULT, ROLL_REASON_INVALID, roll_str_c("kind"),
			roll_str_c("is missing; expected a Kubernetes object")};
		decoded.extra_count = 1;
		goto reject;
	}
	list->read++;
	engine->read++;
	if (!status)
		status = list->is_direct ? put_direct(engine, object, &decoded, scope)
					 : put_staged(engine, &decoded, scope);
	else if (status == ROLL_EINVAL)
		goto reject;
	if (status == ROLL_ELIMIT) {
		decoded.extra_count = 0;
		goto reject;
	}
	if (engine->conf.on_progress && list->read % PROGRESS_EVERY == 0)
		engine->conf.on_progress(engine->conf.ctx, engine->read, engine->committed);
	return status;
reject:
	roll_engine_reject(engine, list->head.kind >= 0 ? list->head.what : scope, where, &decoded);
	return ROLL_OK;
}

enum roll_status roll_engine_list_keep(void *ctx, struct roll_str scope, struct roll_str reason)
{
	struct roll_engine *engine = ctx;

	roll_mark_set(&engine->list.kept, scope, 0, reason);
	return roll_mark_find(engine->list.kept, scope) ? ROLL_OK : ROLL_ENOMEM;
}
