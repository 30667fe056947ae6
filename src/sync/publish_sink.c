/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "dns/type.h"
#include "sync/publish_state.h"

#define OPS_MAX 20000
#define NAMES_LIMIT_BYTES (64u << 10)

/* --- pieces that are shared --- */

char *roll_publish_copy(struct roll_str s)
{
	char *out = malloc(s.n + 1);

	if (!out)
		return NULL;
	if (s.n)
		memcpy(out, s.p, s.n);
	out[s.n] = '\0';
	return out;
}

uint16_t roll_publish_type_of(const struct roll_object_row *row)
{
	const struct roll_type_info *info = NULL;
	json_t *spec = NULL;

	if (!roll_json_parse(row->spec, &spec, NULL))
		info = roll_type_find_name(roll_json_str(spec, "recordType"));
	json_decref(spec);
	return info ? info->type : 0;
}

void roll_publish_fini_op(struct roll_publish_op *op)
{
	free(op->key);
	free(op->zone);
	json_decref(op->json);
	roll_buf_fini(&op->names);
}

void roll_publish_clear_ops(struct roll_publish_ops *ops)
{
	for (size_t i = ops->at; i < ops->count; i++)
		roll_publish_fini_op(&ops->items[i]);
	free(ops->items);
	*ops = (struct roll_publish_ops){.items = NULL};
}

/* --- operations --- */

static struct roll_publish_op *add_op(struct roll_publish_ops *ops)
{
	if (ops->count >= OPS_MAX)
		return NULL;
	if (ops->count == ops->room) {
		size_t room = ops->room ? ops->room * 2 : 64;
		struct roll_publish_op *items = reallocarray(ops->items, room, sizeof *items);

		if (!items)
			return NULL;
		ops->items = items;
		ops->room = room;
	}
	return &ops->items[ops->count];
}

/* The row before the change. */
static enum roll_status read_before(struct roll_publish *publish, struct roll_publish_op *op)
{
	struct roll_object_row row;
	struct roll_dzone_row dzone;
	struct roll_snap *snap;
	enum roll_status status;
	uint32_t number;

	status = roll_snap_begin(roll_writer_view(publish->conf.writer), true, &snap, NULL);
	if (status)
		return status;
	status = roll_snap_object(snap, (enum roll_row_kind)op->kind, roll_str_c(op->key), &row);
	if (!status) {
		op->revision = row.revision;
		op->number = row.number;
		roll_buf_add_str(&op->names, row.names);
		/* Too many: the whole zone is looked at. */
		if (op->names.status)
			roll_buf_reset(&op->names);
		if (row.zone.n)
			op->zone = roll_publish_copy(row.zone);
		if (row.names.n)
			op->type = roll_publish_type_of(&row);
	}
	if (!status && op->kind == ROLL_KIND_ZONE &&
	    !roll_snap_dzone(snap, roll_str_c(op->key), &number, &dzone)) {
		op->has_domain = true;
		op->domain = dzone.domain;
	}
	roll_snap_end(snap);
	return status == ROLL_ENOENT ? ROLL_OK : status;
}

static char *key_of(const struct roll_object *object)
{
	char text[512];

	if (object->kind == ROLL_KIND_CLASS)
		return roll_publish_copy(object->name);
	if (object->ns.n + object->name.n + 2 > sizeof text)
		return NULL;
	snprintf(text, sizeof text, ROLL_STR_FMT "/" ROLL_STR_FMT, ROLL_STR_ARG(object->ns),
		 ROLL_STR_ARG(object->name));
	return roll_publish_copy(roll_str_c(text));
}

/* Before the engine gets it. What cannot be kept is found by the pass. */
static void note(struct roll_publish *publish, json_t *json, bool is_absent)
{
	struct roll_publish_op *op;
	struct roll_object object;

	if (!publish->is_leader || roll_object_decode(json, &object, NULL))
		return;
	op = add_op(&publish->batch);
	if (!op) {
		roll_publish_pass(publish, 0);
		return;
	}
	*op = (struct roll_publish_op){.kind = object.kind, .key = key_of(&object)};
	roll_buf_init(&op->names, NAMES_LIMIT_BYTES);
	if (!op->key || read_before(publish, op)) {
		roll_publish_fini_op(op);
		roll_publish_pass(publish, 0);
		return;
	}
	if (!is_absent && !object.is_terminating)
		op->json = json_incref(json);
	publish->batch.count++;
}

/* The commit is done. */
static void take_batch(struct roll_publish *publish)
{
	struct roll_publish_ops *from = &publish->batch, *to = &publish->ops;

	if (to->at == to->count) {
		roll_publish_clear_ops(to);
		*to = *from;
		*from = (struct roll_publish_ops){.items = NULL};
	}
	for (; from->at < from->count; from->at++) {
		struct roll_publish_op *op = add_op(to);

		if (op) {
			*op = from->items[from->at];
			to->count++;
		} else {
			roll_publish_fini_op(&from->items[from->at]);
			roll_publish_pass(publish, 0);
		}
	}
	roll_publish_clear_ops(from);
	if (to->at < to->count)
		roll_timer_set(publish->work, 0);
}

/* --- the sink --- */

static enum roll_status on_event_begin(void *ctx)
{
	struct roll_publish *publish = ctx;

	roll_publish_clear_ops(&publish->batch);
	return publish->conf.sink->event_begin(publish->conf.sink->ctx);
}

static enum roll_status on_event_put(void *ctx, json_t *object, struct roll_str scope,
				     struct roll_str where)
{
	struct roll_publish *publish = ctx;

	note(publish, object, false);
	return publish->conf.sink->event_put(publish->conf.sink->ctx, object, scope, where);
}

static enum roll_status on_event_absent(void *ctx, json_t *object, uint64_t revision)
{
	struct roll_publish *publish = ctx;

	note(publish, object, true);
	return publish->conf.sink->event_absent(publish->conf.sink->ctx, object, revision);
}

static enum roll_status on_event_end(void *ctx, struct roll_str what, struct roll_str position)
{
	struct roll_publish *publish = ctx;
	enum roll_status status;

	status = publish->conf.sink->event_end(publish->conf.sink->ctx, what, position);
	if (!status && publish->is_leader)
		take_batch(publish);
	else
		roll_publish_clear_ops(&publish->batch);
	return status;
}

static enum roll_status on_list_begin(void *ctx, const struct roll_list_head *head)
{
	struct roll_publish *publish = ctx;

	return publish->conf.sink->list_begin(publish->conf.sink->ctx, head);
}

static enum roll_status on_list_put(void *ctx, json_t *object, struct roll_str scope,
				    struct roll_str where)
{
	struct roll_publish *publish = ctx;

	return publish->conf.sink->list_put(publish->conf.sink->ctx, object, scope, where);
}

static enum roll_status on_list_keep(void *ctx, struct roll_str scope, struct roll_str reason)
{
	struct roll_publish *publish = ctx;

	return publish->conf.sink->list_keep(publish->conf.sink->ctx, scope, reason);
}

static enum roll_status on_list_end(void *ctx, uint64_t revision, struct roll_str position)
{
	struct roll_publish *publish = ctx;
	enum roll_status status;

	status = publish->conf.sink->list_end(publish->conf.sink->ctx, revision, position);
	if (!status)
		roll_publish_pass(publish, 0);
	return status;
}

static void on_list_abort(void *ctx)
{
	struct roll_publish *publish = ctx;

	publish->conf.sink->list_abort(publish->conf.sink->ctx);
}

static void on_confirmed(void *ctx)
{
	struct roll_publish *publish = ctx;

	publish->is_in_step = true;
	publish->conf.sink->confirmed(publish->conf.sink->ctx);
}

static void on_unreachable(void *ctx, const char *why)
{
	struct roll_publish *publish = ctx;

	publish->is_in_step = false;
	publish->conf.sink->unreachable(publish->conf.sink->ctx, why);
}

void roll_publish_sink_init(struct roll_publish *publish)
{
	publish->sink = (struct roll_sink){
		.ctx = publish,
		.event_begin = on_event_begin,
		.event_put = on_event_put,
		.event_absent = on_event_absent,
		.event_end = on_event_end,
		.list_begin = on_list_begin,
		.list_put = on_list_put,
		.list_keep = on_list_keep,
		.list_end = on_list_end,
		.list_abort = on_list_abort,
		.confirmed = on_confirmed,
		.unreachable = on_unreachable,
	};
}
