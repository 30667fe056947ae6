/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "sync/engine_state.h"

/*
 * The end of a list: what it lacks is looked for and judged, then what it changes is put, then what
 * it lacks is taken away. See engine.h on lists that change much.
 */

#define STALE_ROWS_MAX 1000u /* objects of one manifest that are marked as stale */

struct removal {
	enum roll_kind kind;
	struct roll_str key, scope;
};

struct end {
	struct roll_engine *engine;
	struct roll_txn *txn;
	uint64_t revision;
	struct roll_str position;
	struct roll_arena arena; /* keys of one transaction */

	bool is_judged;
	bool is_flushed; /* the slice is in a transaction that was committed */
	enum roll_status held;

	/* The stage, from the first entry that is not dealt with. */
	size_t done, at, next;
	bool is_put;	/* all of it is */
	size_t changed; /* in this transaction */
	uint64_t changed_total, removed_total;

	struct removal *removals; /* of this transaction */
	size_t removal_count, removal_max;

	/* For the guard. */
	struct roll_guard_list found;

	/* Rows of a manifest that is kept. */
	size_t stale_count;
	bool is_last; /* nothing remains after this transaction */
};

static bool is_cluster(const struct end *end)
{
	return end->engine->conf.is_cluster;
}

/* --- what the list lacks --- */

/* Does the list say that this object, which the view has and the list has not, is absent? */
static bool is_missing(struct end *end, enum roll_row_kind kind, struct roll_str key,
		       struct roll_str scope)
{
	struct roll_engine *engine = end->engine;
	const struct roll_mark *mark;

	if (!is_cluster(end))
		return !roll_list_is_kept(&engine->list, scope);
	if (!engine->list.touched)
		return true;
	mark = roll_mark_find(engine->list.touched,
			      roll_engine_touched_key(engine, (enum roll_kind)kind, key));
	return !mark || mark->value <= end->revision;
}

static enum roll_status row_scope(struct end *end, enum roll_row_kind kind, struct roll_str key,
				  struct roll_str *scope)
{
	struct roll_object_row row;
	enum roll_status status;

	*scope = roll_str_n("", 0);
	if (is_cluster(end))
		return ROLL_OK;
	status = roll_snap_object(roll_txn_snap(end->txn), kind, key, &row);
	if (!status)
		*scope = row.scope;
	return status;
}

static enum roll_status count_missing(void *ctx, enum roll_row_kind kind, struct roll_str key)
{
	struct end *end = ctx;
	struct roll_str scope;
	enum roll_status status = row_scope(end, kind, key, &scope);

	if (status || !is_missing(end, kind, key, scope))
		return status;
	end->found.missing++;
	if (kind == ROLL_ROW_ZONE)
		end->found.zones_missing++;
	/* A sum, so that order does not matter. */
	end->found.missing_hash += roll_hash64(key.p, key.n) * (2 * (uint64_t)kind + 1);
	return ROLL_OK;
}

static enum roll_status gather_missing(void *ctx, enum roll_row_kind kind, struct roll_str key)
{
	struct end *end = ctx;
	struct removal *removal;
	struct roll_str scope;
	enum roll_status status = row_scope(end, kind, key, &scope);

	if (status || !is_missing(end, kind, key, scope))
		return status;
	if (end->removal_count == end->removal_max)
		return ROLL_ECANCELED;
	removal = &end->removals[end->removal_count++];
	removal->kind = (enum roll_kind)kind;
	removal->key = roll_arena_str(&end->arena, key);
	removal->scope = roll_arena_str(&end->arena, scope);
	return end->arena.status;
}

static enum roll_status each_of_scope(struct end *end, struct roll_str scope, roll_on_key fn)
{
	enum roll_status status = ROLL_OK;
	int kind;

	for (kind = 0; kind < ROLL_ROW_KINDS && !status; kind++)
		status = roll_txn_unstaged(end->txn, (enum roll_row_kind)kind, scope,
					   roll_str_n("", 0), fn, end);
	return status;
}

/* Everything within the list's scopes that the view has and the list has not. */
static enum roll_status each_missing(struct end *end, roll_on_key fn)
{
	const struct roll_list_head *head = &end->engine->list.head;
	struct roll_buf *key = &end->engine->bytes;
	enum roll_status status = ROLL_OK;
	size_t i;

	if (head->kind >= 0) {
		roll_buf_reset(key);
		roll_buf_add_str(key, head->ns);
		if (head->ns.n)
			roll_buf_add_char(key, '/');
		return roll_txn_unstaged(end->txn, (enum roll_row_kind)head->kind,
					 roll_str_n("", 0), roll_buf_str(key), fn, end);
	}
	if (head->all_scopes)
		return each_of_scope(end, roll_str_n("", 0), fn);
	for (i = 0; i < head->scopes.count && !status; i++)
		status = each_of_scope(end, head->scopes.items[i], fn);
	for (i = 0; i < head->gone.count && !status; i++)
		status = each_of_scope(end, head->gone.items[i], fn);
	return status;
}

/* --- the verdict --- */

struct count {
	struct roll_str ns;
	uint64_t objects;
};

static enum roll_status count_ns(void *ctx, const struct roll_object_row *row)
{
	struct count *count = ctx;
	struct roll_str key = row->key;

	if (!roll_str_eq(roll_str_cut(&key, '/'), count->ns))
		return ROLL_ECANCELED;
	count->objects++;
	return ROLL_OK;
}

static enum roll_status count_present(struct end *end)
{
	const struct roll_list_head *head = &end->engine->list.head;
	struct roll_guard_list *found = &end->found;
	const struct roll_head *view = roll_snap_head(roll_txn_snap(end->txn));
	struct roll_buf *key = &end->engine->bytes;
	struct count count = {head->ns, 0};
	enum roll_status status;
	int i;

	if (head->kind < 0) {
		for (i = 0; i < ROLL_ROW_KINDS; i++)
			found->present += view->object_count[i];
		found->zones_present = view->object_count[ROLL_ROW_ZONE];
		return ROLL_OK;
	}
	found->present = view->object_count[head->kind];
	if (head->ns.n && found->missing) {
		roll_buf_reset(key);
		roll_buf_add_str(key, head->ns);
		roll_buf_add_char(key, '/');
		status = roll_snap_objects(roll_txn_snap(end->txn), (enum roll_row_kind)head->kind,
					   roll_buf_str(key), count_ns, &count);
		if (status && status != ROLL_ECANCELED && status != ROLL_ENOENT)
			return status;
		found->present = count.objects;
	}
	if (head->kind == ROLL_KIND_ZONE)
		found->zones_present = found->present;
	return ROLL_OK;
}

static void tell_held(struct end *end, enum roll_guard_verdict verdict)
{
	struct roll_engine *engine = end->engine;
	char what[64];

	roll_str_show(engine->list.head.what, what, sizeof what);
	roll_metric_add(engine->m_lists, what, verdict == ROLL_GUARD_OLD ? "old" : "held", 1);
	if (verdict == ROLL_GUARD_OLD) {
		roll_log(ROLL_WARN, "list-refused",
			 "what=%s revision=%" PRIu64 " known=%" PRIu64 " reason=\"%s\"", what,
			 end->revision, engine->list.high_water, roll_guard_text(verdict));
		return;
	}
	engine->held++;
	roll_log(ROLL_WARN, "list-held",
		 "what=%s present=%" PRIu64 " missing=%" PRIu64 " zones-missing=%" PRIu64
		 " reason=\"%s\"",
		 what, end->found.present, end->found.missing, end->found.zones_missing,
		 roll_guard_text(verdict));
}

/* ROLL_OK: the list counts; end->held: it does not, and why. */
static enum roll_status judge(struct end *end)
{
	struct roll_engine *engine = end->engine;
	struct roll_guarded *guarded = roll_engine_guarded(engine, &engine->list.head);
	enum roll_guard_verdict verdict;
	enum roll_status status;
	uint64_t held_before = guarded->guard.is_pending ? guarded->guard.pending_missing : 0;

	end->found.revision = end->revision;
	end->found.high_water = engine->list.high_water;
	/* Manifests that are named are proof of what is in them; so is a new view nobody asks yet.
	 */
	if (engine->list.head.kind >= 0 || engine->list.head.all_scopes) {
		status = each_missing(end, count_missing);
		if (!status)
			status = count_present(end);
		if (status)
			return status;
	}
	if (engine->is_building) {
		end->found.missing = end->found.zones_missing = 0;
		end->found.missing_hash = 0;
	}
	verdict = roll_guard_judge(&guarded->guard, &end->found);
	if (verdict == ROLL_GUARD_BRAKE && engine->conf.is_approved &&
	    engine->conf.is_approved(engine->conf.ctx)) {
		end->found.is_approved = true;
		verdict = roll_guard_judge(&guarded->guard, &end->found);
		/* Whoever approves the removal has looked at it: nothing else to wait for. */
		if (verdict == ROLL_GUARD_CONFIRM)
			verdict = roll_guard_judge(&guarded->guard, &end->found);
	}
	end->is_judged = true;
	if (verdict != ROLL_GUARD_OLD)
		guarded->held = verdict == ROLL_GUARD_PASS ? 0 : end->found.missing;
	if (verdict == ROLL_GUARD_PASS) {
		if (held_before)
			roll_log(ROLL_INFO, "list-released", "missing=%" PRIu64 " held=%" PRIu64,
				 end->found.missing, held_before);
		return ROLL_OK;
	}
	tell_held(end, verdict);
	end->held = verdict == ROLL_GUARD_OLD ? ROLL_ESTALE : ROLL_EAGAIN;
	return ROLL_ECANCELED;
}

/* --- what the list has --- */

/*
 * The view has the object from another manifest. One that could not be read keeps what it has if it
 * comes first; one that is not in this list should have been.
 */
static enum roll_status settle_scopes(struct end *end, enum roll_row_kind kind, struct roll_str key,
				      const struct roll_staged *staged, bool *is_ignored)
{
	struct roll_list *list = &end->engine->list;
	struct roll_apply_extra extra;
	struct roll_object_row row;
	enum roll_status status;

	*is_ignored = false;
	status = roll_snap_object(roll_txn_snap(end->txn), kind, key, &row);
	if (status == ROLL_ENOENT || (!status && roll_str_eq(row.scope, staged->scope)))
		return ROLL_OK;
	if (status)
		return status;
	if (roll_list_is_kept(list, row.scope)) {
		roll_list_tell_shared(list, row.scope, staged->scope);
		if (roll_str_cmp(row.scope, staged->scope) > 0)
			return ROLL_OK;
		*is_ignored = true;
		extra = roll_engine_duplicate(end->engine, staged->scope);
		return roll_apply_add_extra(end->engine->apply, end->txn, (enum roll_kind)kind, key,
					    &extra, false);
	}
	if (!list->head.all_scopes && !roll_list_has_scope(list, row.scope)) {
		size_t i;

		for (i = 0; i < list->head.gone.count; i++) {
			if (roll_str_eq(list->head.gone.items[i], row.scope))
				return ROLL_OK;
		}
		roll_list_tell_shared(list, row.scope, staged->scope);
		end->held = ROLL_ESTALE;
		return ROLL_ECANCELED;
	}
	return ROLL_OK;
}

static enum roll_status put_full(struct end *end, struct roll_staged *staged, bool *is_changed)
{
	enum roll_apply_result result;
	struct roll_object *object = &staged->decoded.object;
	enum roll_status status = ROLL_OK;
	json_t *root = NULL, *spec = NULL;

	if (staged->has_spec)
		status = roll_json_parse(staged->spec, &spec, NULL);
	if (status)
		return ROLL_ECORRUPT;
	object->spec = spec;
	roll_engine_set_revision(end->engine, end->txn, object, end->revision);
	status = roll_apply_put(end->engine->apply, end->txn, object, staged->scope,
				staged->decoded.extra, staged->decoded.extra_count, &result);
	*is_changed = !status && result != ROLL_APPLY_UNCHANGED;
	if (!status)
		roll_engine_heed(end->engine, end->txn, object);
	if (object->kind == ROLL_KIND_ZONE)
		end->engine->has_zone_op = true;
	if (!status && result == ROLL_APPLY_SLICED) {
		/* As the source gave it, as far as it matters. */
		root = json_pack("{s:s,s:s,s:{s:s%,s:s%},s:O?}", "kind",
				 roll_kind_text(object->kind), "apiVersion",
				 ROLL_API_GROUP "/" ROLL_API_VERSION, "metadata", "namespace",
				 object->ns.p, object->ns.n, "name", object->name.p, object->name.n,
				 "spec", spec);
		end->engine->sliced = root;
		status = root ? ROLL_ESTALE : ROLL_ENOMEM;
	}
	json_decref(spec);
	return status;
}

static enum roll_status on_staged(void *ctx, enum roll_row_kind kind, struct roll_str key,
				  struct roll_str bytes)
{
	struct end *end = ctx;
	struct roll_engine *engine = end->engine;
	struct roll_staged staged;
	enum roll_status status;
	bool is_ignored = false, is_changed = false;

	if (end->at++ < end->done)
		return ROLL_OK;
	if (end->changed >= ROLL_LIST_SLICE) {
		end->next = end->at - 1;
		return ROLL_ECANCELED;
	}
	roll_arena_reset(&engine->decode);
	status = roll_staged_decode((enum roll_kind)kind, bytes, &staged);
	if (status)
		return status;
	if (staged.is_seen) {
		/* Extra findings are those of the row, unless a duplicate was met since. */
		if (!staged.decoded.extra_count)
			return ROLL_OK;
		status = roll_apply_extras(engine->apply, end->txn, (enum roll_kind)kind, key,
					   staged.decoded.extra, staged.decoded.extra_count);
		return status == ROLL_ENOENT ? ROLL_OK : status;
	}
	if (is_cluster(end)) {
		staged.decoded.object.kind = (enum roll_kind)kind;
		is_ignored = roll_engine_is_overtaken(engine, &staged.decoded.object);
	} else {
		status = settle_scopes(end, kind, key, &staged, &is_ignored);
	}
	if (!status && !is_ignored)
		status = put_full(end, &staged, &is_changed);
	end->changed += is_changed;
	return status;
}

static enum roll_status put_all(struct end *end)
{
	enum roll_status status;

	end->at = 0;
	status = roll_txn_stage_walk(end->txn, on_staged, end);
	if (status == ROLL_ECANCELED && !end->held)
		return ROLL_OK;
	if (!status)
		end->is_put = true;
	return status;
}

/* --- removals --- */

static void evidence_of(const struct end *end, const struct removal *removal, char *out,
			size_t size)
{
	const struct roll_list *list = &end->engine->list;
	char shown[200];

	if (is_cluster(end))
		snprintf(out, size, "list at revision %" PRIu64, end->revision);
	else if (roll_list_has_scope(list, removal->scope))
		snprintf(out, size, "no longer in manifest %s",
			 roll_str_show(removal->scope, shown, sizeof shown));
	else
		snprintf(out, size, "manifest %s gone",
			 roll_str_show(removal->scope, shown, sizeof shown));
}

static enum roll_status remove_missing(struct end *end, bool *more)
{
	struct roll_engine *engine = end->engine;
	char evidence[256];
	enum roll_status status;
	size_t i;

	*more = false;
	end->removal_count = 0;
	end->removal_max =
		ROLL_LIST_SLICE - (end->changed < ROLL_LIST_SLICE ? end->changed : ROLL_LIST_SLICE);
	end->removals = roll_arena_array(&end->arena, end->removal_max + 1, sizeof *end->removals);
	if (!end->removals)
		return end->arena.status;
	status = each_missing(end, gather_missing);
	*more = status == ROLL_ECANCELED;
	if (status && !*more)
		return status;
	status = ROLL_OK;
	roll_engine_set_list_revision(engine, end->txn, end->revision);
	for (i = 0; i < end->removal_count && !status; i++) {
		const struct removal *removal = &end->removals[i];

		evidence_of(end, removal, evidence, sizeof evidence);
		if (removal->kind == ROLL_KIND_ZONE)
			engine->has_zone_op = true;
		status = roll_apply_absent(engine->apply, end->txn, removal->kind, removal->key,
					   evidence, end->revision);
	}
	return status;
}

/* --- manifests that could not be read --- */

static enum roll_status gather_stale(void *ctx, enum roll_row_kind kind, struct roll_str key)
{
	struct end *end = ctx;
	struct removal *stale;

	if (end->removal_count == STALE_ROWS_MAX)
		return ROLL_ECANCELED;
	stale = &end->removals[end->removal_count++];
	stale->kind = (enum roll_kind)kind;
	stale->key = roll_arena_str(&end->arena, key);
	return end->arena.status;
}

static enum roll_status mark_stale(struct end *end, const struct roll_mark *kept)
{
	struct roll_engine *engine = end->engine;
	struct roll_str scope = roll_str_n(kept->key, kept->key_n);
	struct roll_apply_extra extra = {ROLL_WARNING, ROLL_REASON_STALE_FILE, roll_str_n("", 0),
					 roll_str_n("", 0)};
	char file[200], reason[200], text[480];
	enum roll_status status;
	size_t i;

	/* Objects are found by their manifest; those of a folder are not worth a walk over all. */
	if (scope.p[scope.n - 1] == '/')
		return ROLL_OK;
	end->removal_count = 0;
	end->removals = roll_arena_array(&end->arena, STALE_ROWS_MAX, sizeof *end->removals);
	if (!end->removals)
		return end->arena.status;
	status = each_of_scope(end, scope, gather_stale);
	if (status && status != ROLL_ECANCELED)
		return status;
	status = ROLL_OK;
	snprintf(text, sizeof text, "\"%s\" cannot be read (%s); its last good content is served",
		 roll_str_show(scope, file, sizeof file),
		 roll_str_show(roll_str_c(kept->text), reason, sizeof reason));
	extra.text = roll_str_c(text);
	for (i = 0; i < end->removal_count && !status; i++)
		status = roll_apply_add_extra(engine->apply, end->txn, end->removals[i].kind,
					      end->removals[i].key, &extra, true);
	return status;
}

/* --- all together --- */

static bool all_lists_done(const struct roll_engine *engine, const struct roll_guarded *now)
{
	size_t spaces = engine->conf.namespace_count > 1 ? engine->conf.namespace_count : 1;
	size_t wanted = engine->conf.is_cluster ? 1 + 2 * spaces : 1, done = 0, i;

	for (i = 0; i < engine->guarded_count; i++)
		done += engine->guarded[i].is_done || &engine->guarded[i] == now;
	return done >= wanted;
}

/* Position, completeness, and an empty stage. */
static enum roll_status finish_txn(struct end *end)
{
	struct roll_engine *engine = end->engine;
	const struct roll_mark *mark;
	enum roll_status status = ROLL_OK;

	for (mark = engine->list.kept; mark && !status; mark = mark->hh.next)
		status = mark_stale(end, mark);
	if (status)
		return status;
	if (engine->is_stage_dirty || engine->list.slice_count)
		roll_txn_stage_clear(end->txn);
	engine->confirmed_ms = roll_engine_now_ms(engine);
	roll_txn_set_confirmed(end->txn, engine->confirmed_ms);
	if (engine->is_building &&
	    all_lists_done(engine, roll_engine_guarded(engine, &engine->list.head)))
		roll_txn_set_complete(end->txn, engine->confirmed_ms);
	end->is_last = true;
	return roll_engine_note(engine, end->txn, engine->list.head.what, end->position,
				end->revision);
}

static enum roll_status run_direct(struct roll_engine *engine, struct roll_txn *txn, void *ctx)
{
	struct end *end = ctx;
	enum roll_status status;

	end->txn = txn;
	roll_arena_reset(&end->arena);
	if (end->revision && end->revision < engine->list.high_water) {
		end->held = ROLL_ESTALE;
		return ROLL_ECANCELED;
	}
	status = roll_engine_apply_ops(engine, txn, true);
	return status ? status : finish_txn(end);
}

static enum roll_status run_staged(struct roll_engine *engine, struct roll_txn *txn, void *ctx)
{
	struct end *end = ctx;
	enum roll_status status = ROLL_OK;
	bool more = false;

	end->txn = txn;
	end->changed = 0;
	end->is_put = end->is_last = false;
	roll_arena_reset(&end->arena);
	if (!end->is_flushed)
		status = roll_engine_flush(engine, txn);
	if (!status && !end->is_judged)
		status = judge(end);
	if (!status)
		status = put_all(end);
	if (!status && end->is_put) {
		status = remove_missing(end, &more);
		if (!status && !more)
			status = finish_txn(end);
	}
	return status;
}

/* As long as it takes; each turn is one commit. */
static enum roll_status run_all(struct end *end)
{
	struct roll_engine *engine = end->engine;
	enum roll_status status;

	do {
		status = roll_engine_run(engine, engine->list.is_direct ? run_direct : run_staged,
					 end);
		if (status)
			return status;
		end->is_flushed = true;
		end->changed_total += end->changed;
		if (end->is_put && !engine->list.is_direct)
			end->removed_total += end->removal_count;
		end->done = end->is_put ? SIZE_MAX : end->next;
		engine->committed += end->changed;
		if (!end->is_last)
			engine->is_stage_dirty = true;
		if (engine->conf.on_progress)
			engine->conf.on_progress(engine->conf.ctx, engine->read, engine->committed);
	} while (!end->is_last && !engine->is_stopped);
	return end->is_last ? ROLL_OK : ROLL_ECANCELED;
}

static enum roll_status swap_in(struct roll_engine *engine)
{
	struct roll_err err = {0};
	char shown[256];
	enum roll_status status;

	status = roll_writer_finish(engine->conf.writer, &err);
	if (status) {
		engine->is_writable = false;
		roll_log(ROLL_ERROR, "swap-failed", "status=\"%s\" reason=\"%s\"",
			 roll_status_text(status),
			 roll_str_show(roll_str_c(err.text), shown, sizeof shown));
		return status;
	}
	engine->is_building = false;
	engine->is_sweep_due = true;
	roll_log(ROLL_INFO, "view-complete", "objects=%" PRIu64,
		 engine->objects[0] + engine->objects[1] + engine->objects[2]);
	if (engine->conf.on_commit)
		engine->conf.on_commit(engine->conf.ctx, NULL);
	return ROLL_OK;
}

static void account(struct end *end)
{
	struct roll_engine *engine = end->engine;
	struct roll_guarded *guarded = roll_engine_guarded(engine, &engine->list.head);
	uint64_t healed = end->changed_total + end->removed_total;
	char what[64];

	roll_str_show(engine->list.head.what, what, sizeof what);
	roll_metric_add(engine->m_lists, what, "taken", 1);
	if (end->removed_total) {
		engine->removed_by_list += end->removed_total;
		roll_metric_add(engine->m_removed, "list", NULL, (double)end->removed_total);
	}
	/* What a watch should have told before. */
	if (guarded->is_done && engine->list.head.is_repeat && healed) {
		engine->healed += healed;
		roll_metric_add(engine->m_healed, NULL, NULL, (double)healed);
		roll_log(ROLL_WARN, "list-healed", "what=%s objects=%" PRIu64, what, healed);
	}
	guarded->is_done = true;
	if (end->revision > engine->high_water)
		engine->high_water = end->revision;
	roll_engine_set_position(engine, engine->list.head.what, end->position, true);
	engine->confirmed_stored_ms = engine->confirmed_ms;
	if (engine->has_zone_op)
		engine->is_sweep_due = true;
}

enum roll_status roll_engine_list_end(void *ctx, uint64_t revision, struct roll_str position)
{
	struct roll_engine *engine = ctx;
	struct end end = {.engine = engine, .revision = revision, .position = position};
	int64_t confirmed_ms = engine->confirmed_ms;
	enum roll_status status;

	/* Keys of the largest transaction, several times over. */
	roll_arena_init(&end.arena, (size_t)64 << 20);
	engine->has_zone_op = false;
	end.is_flushed = engine->list.is_direct;
	status = engine->is_stopped ? ROLL_ECANCELED : run_all(&end);
	if (!status) {
		engine->committed += engine->ops.count;
		engine->is_stage_dirty = false;
		account(&end);
		if (engine->is_building && all_lists_done(engine, NULL))
			status = swap_in(engine);
		if (!status)
			roll_engine_heed_due(engine);
	}
	if (status)
		engine->confirmed_ms = confirmed_ms;
	if (end.held)
		status = end.held;
	roll_arena_fini(&end.arena);
	roll_list_close(engine);
	return status;
}
