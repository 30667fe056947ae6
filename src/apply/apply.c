/* SPDX-License-Identifier: Apache-2.0 */
#include "apply/apply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "apply/apply_state.h"
#include "base/json.h"
#include "model/translate.h"

static_assert((int)ROLL_ROW_CLASS == (int)ROLL_KIND_CLASS &&
		      (int)ROLL_ROW_ZONE == (int)ROLL_KIND_ZONE &&
		      (int)ROLL_ROW_RECORDSET == (int)ROLL_KIND_RECORDSET &&
		      (int)ROLL_ROW_KINDS == (int)ROLL_KIND_COUNT,
	      "kinds of rows are kinds of objects");

/* The largest object has far fewer entries than would fill this. */
#define ARENA_LIMIT_BYTES ((size_t)64 << 20)

struct roll_apply *roll_apply_new(void)
{
	struct roll_apply *apply = calloc(1, sizeof *apply);

	if (!apply)
		return NULL;
	roll_arena_init(&apply->arena, ARENA_LIMIT_BYTES);
	roll_arena_init(&apply->row, ARENA_LIMIT_BYTES);
	roll_arena_init(&apply->object, ARENA_LIMIT_BYTES);
	roll_buf_init(&apply->key, ROLL_APPLY_KEY_BYTES);
	roll_buf_init(&apply->zone_key, ROLL_APPLY_KEY_BYTES);
	roll_buf_init(&apply->prepared_key, ROLL_APPLY_KEY_BYTES);
	roll_buf_init(&apply->spec, ROLL_OBJECT_LIMIT_BYTES);
	roll_buf_init(&apply->servers, ROLL_OBJECT_LIMIT_BYTES);
	roll_found_init(&apply->found);
	return apply;
}

void roll_apply_free(struct roll_apply *apply)
{
	if (!apply)
		return;
	roll_arena_fini(&apply->arena);
	roll_arena_fini(&apply->row);
	roll_arena_fini(&apply->object);
	roll_buf_fini(&apply->key);
	roll_buf_fini(&apply->zone_key);
	roll_buf_fini(&apply->prepared_key);
	roll_buf_fini(&apply->spec);
	roll_buf_fini(&apply->servers);
	roll_found_fini(&apply->found);
	free(apply);
}

static struct roll_str join_key(struct roll_buf *buf, struct roll_str ns, struct roll_str name)
{
	roll_buf_reset(buf);
	if (ns.n) {
		roll_buf_add_str(buf, ns);
		roll_buf_add_char(buf, '/');
	}
	roll_buf_add_str(buf, name);
	return roll_buf_str(buf);
}

struct roll_str roll_apply_key(struct roll_apply *apply, const struct roll_object *object)
{
	return join_key(&apply->key, object->ns, object->name);
}

struct roll_apply_delta roll_apply_take_delta(struct roll_apply *apply)
{
	struct roll_apply_delta delta = apply->delta;

	apply->delta = (struct roll_apply_delta){0};
	return delta;
}

struct tally {
	struct roll_apply_delta *delta;
	int64_t sign;
};

static void on_tally(void *ctx, unsigned severity, unsigned reason, struct roll_str path,
		     struct roll_str text)
{
	const struct tally *tally = ctx;

	(void)path;
	(void)text;
	if (severity <= ROLL_FAULT && reason < ROLL_REASON_COUNT)
		tally->delta->kept[severity][reason] += tally->sign;
}

void roll_apply_count(struct roll_apply_delta *delta, const struct roll_object_row *row,
		      int64_t sign)
{
	struct tally tally = {delta, sign};

	delta->faults += sign * (int64_t)row->fault_count;
	delta->warnings += sign * (int64_t)row->warning_count;
	/* Counts only; a row that is damaged is told where it matters. */
	if (roll_row_findings(row, on_tally, &tally))
		return;
}

void roll_apply_count_row(struct roll_apply *apply, const struct roll_object_row *row, int64_t sign)
{
	roll_apply_count(&apply->delta, row, sign);
}

enum roll_status roll_apply_keep_row(struct roll_arena *arena, struct roll_object_row *row)
{
	struct roll_str *const parts[] = {&row->key,  &row->uid,      &row->scope, &row->spec,
					  &row->zone, &row->findings, &row->names};
	size_t i;

	for (i = 0; i < sizeof parts / sizeof *parts; i++) {
		if (parts[i]->n)
			*parts[i] = roll_arena_str(arena, *parts[i]);
	}
	return arena->status;
}

enum roll_status roll_apply_stored_row(struct roll_txn *txn, enum roll_row_kind kind,
				       struct roll_str key, struct roll_object_row *out)
{
	enum roll_status status = roll_txn_status(txn);

	return status ? status : roll_snap_object(roll_txn_snap(txn), kind, key, out);
}

static void set_findings(const struct roll_found *found, struct roll_object_row *row)
{
	row->findings = roll_buf_str(&found->bytes);
	row->fault_count = found->faults;
	row->warning_count = found->warnings;
}

/* --- record sets --- */

enum roll_status roll_apply_put_recordset(struct roll_apply *apply, struct roll_txn *txn,
					  struct roll_object_row *row, const json_t *spec,
					  uint32_t number, const struct roll_name *domain)
{
	struct roll_findings findings = roll_found_sink(&apply->found);
	struct roll_recordset_spec read;
	struct roll_name_rrset *owned = NULL;
	enum roll_status status;
	size_t i;

	roll_arena_reset(&apply->object);
	status = roll_translate_recordset(spec, domain, &apply->object, &read, &findings);
	if (status == ROLL_OK && read.owned_count) {
		owned = roll_arena_array(&apply->object, read.owned_count, sizeof *owned);
		status = apply->object.status;
	}
	if (status == ROLL_ELIMIT) {
		roll_find(&findings, ROLL_FAULT, ROLL_REASON_INVALID, "spec",
			  "is too large to be read; nothing of it is served");
		read.owned_count = 0;
	} else if (status && status != ROLL_EINVAL) {
		return status;
	}
	for (i = 0; owned && i < read.owned_count; i++) {
		owned[i].owner = read.owned[i].owner;
		owned[i].rrset = &read.owned[i].rrset;
	}
	row->record_count =
		read.record_count > UINT32_MAX ? UINT32_MAX : (uint32_t)read.record_count;
	set_findings(&apply->found, row);
	roll_apply_count_row(apply, row, 1);
	roll_txn_put_recordset(txn, row, domain ? number : 0, owned, owned ? read.owned_count : 0);
	return roll_txn_status(txn);
}

static enum roll_status put_new_recordset(struct roll_apply *apply, struct roll_txn *txn,
					  struct roll_object_row *row,
					  const struct roll_object *object)
{
	struct roll_str ref = roll_recordset_zone_ref(object->spec);
	enum roll_status status = ROLL_ENOENT;
	struct roll_name domain;
	uint32_t number = 0;

	if (ref.n) {
		row->zone = join_key(&apply->zone_key, object->ns, ref);
		/* No DNSZone can have a name that long. */
		if (apply->zone_key.status)
			row->zone = roll_str_n("", 0);
		else
			status = roll_txn_zone_number(txn, row->zone, &number, &domain);
	}
	if (status && status != ROLL_ENOENT)
		return status;
	return roll_apply_put_recordset(apply, txn, row, object->spec, number,
					status ? NULL : &domain);
}

/* --- zones --- */

static enum roll_status put_zone(struct roll_apply *apply, struct roll_txn *txn,
				 struct roll_object_row *row, const struct roll_object *object,
				 enum roll_apply_result *result)
{
	struct roll_findings findings = roll_found_sink(&apply->found);
	struct roll_str extras_kept;
	struct roll_zone_spec read;
	struct roll_name domain;
	uint32_t number = 0, faults, warnings;
	bool has_domain;
	enum roll_status status;

	/* Claiming for others uses apply->found and the arena of objects, so that comes first. */
	roll_arena_reset(&apply->object);
	status = roll_translate_zone(object->spec, &apply->object, &read, NULL);
	if (status && status != ROLL_EINVAL)
		return status;
	has_domain = !status;
	extras_kept = roll_arena_str(&apply->arena, roll_buf_str(&apply->found.bytes));
	faults = apply->found.faults;
	warnings = apply->found.warnings;
	if (apply->arena.status)
		return apply->arena.status;

	if (has_domain) {
		status = roll_txn_zone_number(txn, row->key, &number, &domain);
		if (status && status != ROLL_ENOENT)
			return status;
		if (status || !roll_name_eq(&domain, &read.domain)) {
			domain = read.domain;
			status = roll_apply_new_number(apply, txn, row->key, &domain, &number);
			if (status)
				return status;
			if (!number) {
				*result = ROLL_APPLY_SLICED;
				return ROLL_OK;
			}
		}
	}
	roll_found_reset(&apply->found);
	roll_found_restore(&apply->found, extras_kept, faults, warnings);
	roll_arena_reset(&apply->object);
	status = roll_translate_zone(object->spec, &apply->object, &read, &findings);
	if (status && status != ROLL_EINVAL)
		return status;
	set_findings(&apply->found, row);
	roll_apply_count_row(apply, row, 1);
	roll_txn_put_zone(txn, row, has_domain ? &domain : NULL, read.class_name, number);
	return roll_txn_status(txn);
}

/* --- classes --- */

static enum roll_status put_class(struct roll_apply *apply, struct roll_txn *txn,
				  struct roll_object_row *row, const struct roll_object *object)
{
	struct roll_findings findings = roll_found_sink(&apply->found);
	struct roll_class_row cls = {0};
	struct roll_class_spec read;
	enum roll_status status;
	size_t i;

	roll_arena_reset(&apply->object);
	status = roll_translate_class(object->spec, &apply->object, &read, &findings);
	if (status && status != ROLL_EINVAL)
		return status;
	roll_buf_reset(&apply->servers);
	for (i = 0; i < read.nameserver_count; i++)
		roll_buf_add(&apply->servers, read.nameservers[i].wire, read.nameservers[i].len);
	if (apply->servers.status)
		return apply->servers.status;
	cls.controller = read.controller;
	cls.has_default_ttl = read.has_default_ttl;
	cls.default_ttl = read.default_ttl;
	cls.nameserver_count = (uint32_t)read.nameserver_count;
	cls.nameservers = roll_buf_str(&apply->servers);
	set_findings(&apply->found, row);
	roll_apply_count_row(apply, row, 1);
	roll_txn_put_class(txn, row, &cls);
	return roll_txn_status(txn);
}

/* --- what they have in common --- */

/* Extra findings to apply->found, the key to its buffer. */
static void begin_object(struct roll_apply *apply, const struct roll_object *object,
			 const struct roll_apply_extra *extra, size_t extra_count)
{
	roll_arena_reset(&apply->arena);
	roll_found_reset(&apply->found);
	roll_found_add_extras(&apply->found, extra, extra_count);
	roll_apply_key(apply, object);
}

static void fill_row(struct roll_apply *apply, const struct roll_object *object,
		     struct roll_str scope, struct roll_object_row *row)
{
	*row = (struct roll_object_row){
		.kind = (enum roll_row_kind)object->kind,
		.key = roll_buf_str(&apply->key),
		.uid = object->uid,
		.revision = object->revision,
		.generation = object->generation,
		.created_s = object->created_s,
		.scope = scope,
	};
}

/* Everything that claims follow from is as stored. */
static bool has_same_content(const struct roll_object *object, struct roll_str spec,
			     const struct roll_object_row *row)
{
	return roll_str_eq(row->uid, object->uid) && row->created_s == object->created_s &&
	       roll_str_eq(row->spec, spec);
}

/*
 * A DNSZone with a good domain that claims nothing was left so by a change of domain that did not
 * come to its end.
 */
static enum roll_status is_half_done(struct roll_txn *txn, const struct roll_object_row *row,
				     bool *is_half)
{
	struct roll_name domain;
	enum roll_status status;
	uint32_t number;

	*is_half = false;
	if (row->kind != ROLL_ROW_ZONE || row->fault_count)
		return ROLL_OK;
	status = roll_txn_zone_number(txn, row->key, &number, &domain);
	*is_half = status == ROLL_ENOENT;
	return *is_half ? ROLL_OK : status;
}

/* After begin_object: how the stored row, if there is one, compares. Terminating objects differ. */
static enum roll_status compare(struct roll_apply *apply, struct roll_txn *txn,
				const struct roll_object *object, struct roll_str spec,
				struct roll_str scope, struct roll_object_row *old, bool *is_same,
				bool *is_touched)
{
	enum roll_status status;
	bool is_half;

	*is_same = *is_touched = false;
	status = roll_apply_stored_row(txn, (enum roll_row_kind)object->kind,
				       roll_buf_str(&apply->key), old);
	if (status)
		return status;
	if (object->is_terminating || !has_same_content(object, spec, old))
		return ROLL_OK;
	status = is_half_done(txn, old, &is_half);
	if (status || is_half)
		return status;
	*is_same = true;
	*is_touched =
		!roll_str_eq(old->scope, scope) || !roll_found_has_same_extras(&apply->found, old);
	return ROLL_OK;
}

/* The row with other extra findings and scope; claims and the findings of the spec stay. */
static enum roll_status touch(struct roll_apply *apply, struct roll_txn *txn,
			      struct roll_object_row *row, struct roll_str scope)
{
	enum roll_status status;

	roll_apply_count_row(apply, row, -1);
	scope = roll_arena_str(&apply->arena, scope);
	status = roll_apply_keep_row(&apply->arena, row);
	if (!status)
		status = roll_found_add_others_of(&apply->found, row);
	if (status)
		return status;
	row->scope = scope;
	set_findings(&apply->found, row);
	roll_apply_count_row(apply, row, 1);
	roll_txn_touch(txn, row);
	return roll_txn_status(txn);
}

enum roll_status roll_apply_is_unchanged(struct roll_apply *apply, struct roll_txn *txn,
					 const struct roll_object *object, struct roll_str spec,
					 struct roll_str scope,
					 const struct roll_apply_extra *extra, size_t extra_count,
					 bool *is_unchanged)
{
	struct roll_object_row old;
	enum roll_status status;
	bool is_same = false, is_touched = false;

	begin_object(apply, object, extra, extra_count);
	status = compare(apply, txn, object, spec, scope, &old, &is_same, &is_touched);
	*is_unchanged = !status && is_same && !is_touched;
	return status == ROLL_ENOENT ? ROLL_OK : status;
}

enum roll_status roll_apply_put(struct roll_apply *apply, struct roll_txn *txn,
				const struct roll_object *object, struct roll_str scope,
				const struct roll_apply_extra *extra, size_t extra_count,
				enum roll_apply_result *result)
{
	struct roll_object_row old, row;
	struct roll_apply_delta before;
	enum roll_status status;
	bool is_same, is_touched;

	*result = ROLL_APPLY_CHANGED;
	begin_object(apply, object, extra, extra_count);
	if (object->is_terminating) {
		*result = ROLL_APPLY_ABSENT;
		status = roll_apply_absent(apply, txn, object->kind, roll_buf_str(&apply->key),
					   "deletionTimestamp", object->revision);
		return status == ROLL_ENOENT ? ROLL_OK : status;
	}
	before = apply->delta;
	roll_buf_reset(&apply->spec);
	status = object->spec ? roll_json_print(object->spec, &apply->spec) : ROLL_OK;
	if (status)
		return status;
	status = compare(apply, txn, object, roll_buf_str(&apply->spec), scope, &old, &is_same,
			 &is_touched);
	if (status && status != ROLL_ENOENT)
		return status;
	if (is_same && !is_touched) {
		*result = ROLL_APPLY_UNCHANGED;
		return ROLL_OK;
	}
	if (is_same)
		return touch(apply, txn, &old, scope);
	if (!status)
		roll_apply_count_row(apply, &old, -1);
	fill_row(apply, object, scope, &row);
	row.spec = roll_arena_str(&apply->arena, roll_buf_str(&apply->spec));
	if (!row.spec.p)
		return apply->arena.status;
	switch (object->kind) {
	case ROLL_KIND_CLASS:
		status = put_class(apply, txn, &row, object);
		break;
	case ROLL_KIND_ZONE:
		status = put_zone(apply, txn, &row, object, result);
		break;
	default:
		status = put_new_recordset(apply, txn, &row, object);
	}
	if (status || *result == ROLL_APPLY_SLICED)
		apply->delta = before;
	return status;
}

enum roll_status roll_apply_extras(struct roll_apply *apply, struct roll_txn *txn,
				   enum roll_kind kind, struct roll_str key,
				   const struct roll_apply_extra *extra, size_t extra_count)
{
	struct roll_object_row row;
	enum roll_status status;

	roll_arena_reset(&apply->arena);
	roll_found_reset(&apply->found);
	roll_found_add_extras(&apply->found, extra, extra_count);
	status = roll_apply_stored_row(txn, (enum roll_row_kind)kind, key, &row);
	if (status || roll_found_has_same_extras(&apply->found, &row))
		return status;
	row.key = key;
	return touch(apply, txn, &row, row.scope);
}

enum roll_status roll_apply_add_extra(struct roll_apply *apply, struct roll_txn *txn,
				      enum roll_kind kind, struct roll_str key,
				      const struct roll_apply_extra *extra, bool is_only)
{
	struct roll_object_row row;
	enum roll_status status;

	roll_arena_reset(&apply->arena);
	roll_found_reset(&apply->found);
	status = roll_apply_stored_row(txn, (enum roll_row_kind)kind, key, &row);
	if (!status)
		status = roll_found_merge_extra(&apply->found, &row, extra, is_only);
	if (status || roll_found_has_same_extras(&apply->found, &row))
		return status;
	row.key = key;
	return touch(apply, txn, &row, row.scope);
}

enum roll_status roll_apply_absent(struct roll_apply *apply, struct roll_txn *txn,
				   enum roll_kind kind, struct roll_str key, const char *evidence,
				   uint64_t revision)
{
	struct roll_object_row row;
	enum roll_status status;

	status = roll_apply_stored_row(txn, (enum roll_row_kind)kind, key, &row);
	if (status)
		return status;
	roll_apply_count_row(apply, &row, -1);
	return roll_txn_absent(txn, (enum roll_row_kind)kind, key, evidence, revision);
}
