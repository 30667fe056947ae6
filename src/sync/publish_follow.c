/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "dns/type.h"
#include "sync/publish_state.h"

#define OPS_MAX 20000
#define JOBS_MAX 1000
#define OPS_A_TURN 32
#define ROWS_A_TURN 200
#define NAMES_MAX 2000	/* of one object, whose neighbours are looked up one by one */
#define CLAIMS_MAX 1000 /* at one name */
#define NAMES_LIMIT_BYTES (64u << 10)

static char *copy_of(struct roll_str s)
{
	char *out = malloc(s.n + 1);

	if (!out)
		return NULL;
	if (s.n)
		memcpy(out, s.p, s.n);
	out[s.n] = '\0';
	return out;
}

/* --- operations --- */

static void fini_op(struct roll_publish_op *op)
{
	free(op->key);
	free(op->zone);
	json_decref(op->json);
	roll_buf_fini(&op->names);
}

static void clear_ops(struct roll_publish_ops *ops)
{
	for (size_t i = ops->at; i < ops->count; i++)
		fini_op(&ops->items[i]);
	free(ops->items);
	*ops = (struct roll_publish_ops){.items = NULL};
}

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

static uint16_t type_of(const struct roll_object_row *row)
{
	const struct roll_type_info *info = NULL;
	json_t *spec = NULL;

	if (!roll_json_parse(row->spec, &spec, NULL))
		info = roll_type_find_name(roll_json_str(spec, "recordType"));
	json_decref(spec);
	return info ? info->type : 0;
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
			op->zone = copy_of(row.zone);
		if (row.names.n)
			op->type = type_of(&row);
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
		return copy_of(object->name);
	if (object->ns.n + object->name.n + 2 > sizeof text)
		return NULL;
	snprintf(text, sizeof text, ROLL_STR_FMT "/" ROLL_STR_FMT, ROLL_STR_ARG(object->ns),
		 ROLL_STR_ARG(object->name));
	return copy_of(roll_str_c(text));
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
		fini_op(op);
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
		clear_ops(to);
		*to = *from;
		*from = (struct roll_publish_ops){.items = NULL};
	}
	for (; from->at < from->count; from->at++) {
		struct roll_publish_op *op = add_op(to);

		if (op) {
			*op = from->items[from->at];
			to->count++;
		} else {
			fini_op(&from->items[from->at]);
			roll_publish_pass(publish, 0);
		}
	}
	clear_ops(from);
	if (to->at < to->count)
		roll_timer_set(publish->work, 0);
}

/* --- jobs --- */

static void free_job(struct roll_publish_job *job)
{
	free(job->key);
	free(job->after);
	free(job);
}

void roll_publish_add_job(struct roll_publish *publish, enum roll_publish_job_kind kind,
			  struct roll_str key)
{
	struct roll_publish_job **end = &publish->jobs, *job;

	/* One that has begun does not count: the change may be behind it. */
	for (; *end; end = &(*end)->next)
		if ((*end)->kind == kind && !(*end)->after && roll_str_eq_c(key, (*end)->key))
			return;
	job = publish->job_count < JOBS_MAX ? calloc(1, sizeof *job) : NULL;
	if (job)
		job->key = copy_of(key);
	if (!job || !job->key) {
		free(job);
		roll_publish_pass(publish, 0);
		return;
	}
	job->kind = kind;
	*end = job;
	publish->job_count++;
	roll_timer_set(publish->work, 0);
}

struct slice {
	struct roll_publish *publish;
	struct roll_publish_job *job;
	size_t left;
};

static enum roll_status on_job_row(void *ctx, const struct roll_object_row *row)
{
	struct slice *slice = ctx;
	struct roll_publish_job *job = slice->job;
	char *after;

	if (job->kind == ROLL_PUBLISH_RECORDSETS) {
		roll_publish_want(slice->publish, ROLL_PATCH_BULK, ROLL_KIND_RECORDSET, row->key,
				  NULL);
	} else {
		json_t *spec = NULL;

		if (!roll_json_parse(row->spec, &spec, NULL) &&
		    roll_str_eq_c(roll_json_str(spec, "dnsZoneClassName"), job->key)) {
			roll_publish_want(slice->publish, ROLL_PATCH_BULK, ROLL_KIND_ZONE, row->key,
					  NULL);
			roll_publish_add_job(slice->publish, ROLL_PUBLISH_RECORDSETS, row->key);
		}
		json_decref(spec);
	}
	if (--slice->left)
		return ROLL_OK;
	after = copy_of(row->key);
	if (!after)
		return ROLL_ENOMEM;
	free(job->after);
	job->after = after;
	return ROLL_EAGAIN;
}

static void run_job(struct roll_publish *publish, struct roll_snap *snap)
{
	struct roll_publish_job *job = publish->jobs;
	struct slice slice = {publish, job, ROWS_A_TURN};
	struct roll_str after = roll_str_c(job->after);
	enum roll_status status;

	if (job->kind == ROLL_PUBLISH_RECORDSETS)
		status = roll_snap_recordsets_after(snap, roll_str_c(job->key), after, on_job_row,
						    &slice);
	else
		status = roll_snap_objects(snap, ROLL_ROW_ZONE, after, on_job_row, &slice);
	if (status == ROLL_EAGAIN)
		return;
	if (status)
		roll_publish_pass(publish, 1000);
	publish->jobs = job->next;
	publish->job_count--;
	free_job(job);
}

/* --- from a change to what it concerns --- */

static void want_zone(struct roll_publish *publish, enum roll_patch_rank rank, struct roll_str key)
{
	if (key.n)
		roll_publish_want(publish, rank, ROLL_KIND_ZONE, key, NULL);
}

/* As dns/claim.h decides: a type is served once at a name, a CNAME alone. */
static bool may_clash(uint16_t a, uint16_t b)
{
	return a == b || a == ROLL_TYPE_CNAME || b == ROLL_TYPE_CNAME;
}

struct claimant {
	struct roll_str key, zone;
	uint32_t number;
	uint16_t type;
	struct roll_str names;
};

/* The others that may have won or lost one of these names. */
static enum roll_status want_neighbours(struct roll_publish *publish, struct roll_snap *snap,
					const struct claimant *own)
{
	struct roll_reader r = roll_reader_of(own->names.p ? own->names.p : "", own->names.n);
	struct roll_dzone_row dzone;
	enum roll_status status;
	uint32_t present, count;

	if (!own->number)
		return ROLL_OK;
	status = roll_snap_dzone(snap, own->zone, &present, &dzone);
	/* Another number: the zone changed as well, and all of it is looked at for that. */
	if (status || present != own->number)
		return status == ROLL_ENOENT ? ROLL_OK : status;
	count = own->names.n ? roll_reader_u32(&r) : 0;
	if (count > NAMES_MAX || !own->names.n) {
		roll_publish_add_job(publish, ROLL_PUBLISH_RECORDSETS, own->zone);
		return ROLL_OK;
	}
	for (; count && !status; count--) {
		struct roll_str key = roll_reader_str16(&r);
		struct roll_claim *claims = NULL;
		size_t claim_count = 0;
		struct roll_name name;

		if (r.failed || roll_name_from_key(key.p, key.n, &dzone.domain, &name))
			return ROLL_ECORRUPT;
		roll_arena_reset(&publish->arena);
		status = roll_snap_claims(snap, own->number, &dzone.domain, &name, &publish->arena,
					  &claims, &claim_count);
		if (status == ROLL_ENOENT)
			status = ROLL_OK;
		for (size_t i = 0; i < claim_count && i < CLAIMS_MAX; i++) {
			if (roll_str_eq(claims[i].object, own->key) ||
			    !may_clash(own->type, claims[i].rrset.type))
				continue;
			want_zone(publish, ROLL_PATCH_HAND_OVER, own->zone);
			roll_publish_want(publish, ROLL_PATCH_HAND_OVER, ROLL_KIND_RECORDSET,
					  claims[i].object, NULL);
		}
	}
	return status;
}

static enum roll_status follow_recordset(struct roll_publish *publish, struct roll_snap *snap,
					 const struct roll_publish_op *op)
{
	const struct claimant before = {roll_str_c(op->key), roll_str_c(op->zone), op->number,
					op->type, roll_buf_str(&op->names)};
	struct claimant after = before;
	struct roll_object_row row;
	enum roll_status status;
	bool is_there;

	status = roll_snap_object(snap, ROLL_ROW_RECORDSET, before.key, &row);
	is_there = status == ROLL_OK;
	if (status && status != ROLL_ENOENT)
		return status;
	/* Nothing but status or labels changed, as after our own writes. */
	if (is_there && row.revision == op->revision)
		return ROLL_OK;
	want_zone(publish, ROLL_PATCH_NEWS, before.zone);
	status = want_neighbours(publish, snap, &before);
	if (status || !is_there)
		return status;
	after.zone = row.zone;
	after.number = row.number;
	after.names = row.names;
	after.type = row.names.n ? type_of(&row) : 0;
	want_zone(publish, ROLL_PATCH_NEWS, after.zone);
	return row.names.n ? want_neighbours(publish, snap, &after) : ROLL_OK;
}

/* All that claims the domain, and what lies in zones above it, which it may shadow. */
static enum roll_status follow_domain(struct roll_publish *publish, struct roll_snap *snap,
				      const struct roll_name *domain)
{
	unsigned labels = roll_name_labels(domain), i;
	struct roll_domain found;
	enum roll_status status;

	for (i = 0; i <= labels; i++) {
		struct roll_name above = roll_name_parent(domain, i);

		status = roll_snap_domain(snap, &above, &found);
		if (status == ROLL_ENOENT)
			continue;
		if (status)
			return status;
		for (uint32_t c = 0; c < found.row->claim_count; c++) {
			struct roll_str object = found.row->claims[c].object;

			if (i == 0)
				want_zone(publish, ROLL_PATCH_HAND_OVER, object);
			roll_publish_add_job(publish, ROLL_PUBLISH_RECORDSETS, object);
		}
	}
	return ROLL_OK;
}

static enum roll_status follow_zone(struct roll_publish *publish, struct roll_snap *snap,
				    const struct roll_publish_op *op)
{
	struct roll_object_row row;
	struct roll_dzone_row dzone;
	enum roll_status status;
	uint32_t number;

	status = roll_snap_object(snap, ROLL_ROW_ZONE, roll_str_c(op->key), &row);
	if (status && status != ROLL_ENOENT)
		return status;
	if (!status && row.revision == op->revision)
		return ROLL_OK;
	roll_publish_add_job(publish, ROLL_PUBLISH_RECORDSETS, roll_str_c(op->key));
	status = op->has_domain ? follow_domain(publish, snap, &op->domain) : ROLL_OK;
	if (!status)
		status = roll_snap_dzone(snap, roll_str_c(op->key), &number, &dzone);
	if (!status && !(op->has_domain && roll_name_eq(&dzone.domain, &op->domain)))
		status = follow_domain(publish, snap, &dzone.domain);
	return status == ROLL_ENOENT ? ROLL_OK : status;
}

/* A DNSZone before its record sets: what is told of these stands on its serial. */
static enum roll_status follow_op(struct roll_publish *publish, struct roll_snap *snap,
				  const struct roll_publish_op *op)
{
	enum roll_status status;

	if (op->kind == ROLL_KIND_CLASS) {
		roll_publish_add_job(publish, ROLL_PUBLISH_CLASS, roll_str_c(op->key));
		return ROLL_OK;
	}
	status = op->kind == ROLL_KIND_ZONE ? follow_zone(publish, snap, op)
					    : follow_recordset(publish, snap, op);
	if (op->json)
		roll_publish_want(publish, ROLL_PATCH_NEWS, op->kind, roll_str_c(op->key),
				  op->json);
	return status;
}

bool roll_publish_is_following(const struct roll_publish *publish)
{
	return publish->ops.at < publish->ops.count || publish->jobs;
}

bool roll_publish_follow(struct roll_publish *publish)
{
	struct roll_publish_ops *ops = &publish->ops;
	enum roll_status status;
	struct roll_snap *snap;
	unsigned left = OPS_A_TURN;

	if (!roll_publish_is_following(publish))
		return false;
	status = roll_snap_begin(roll_writer_view(publish->conf.writer), true, &snap, NULL);
	if (status) {
		roll_publish_forget(publish);
		roll_publish_pass(publish, 1000);
		return false;
	}
	if (ops->at == ops->count)
		run_job(publish, snap);
	for (; ops->at < ops->count && left; left--) {
		if (follow_op(publish, snap, &ops->items[ops->at]))
			roll_publish_pass(publish, 1000);
		fini_op(&ops->items[ops->at++]);
	}
	roll_snap_end(snap);
	if (ops->at == ops->count)
		clear_ops(ops);
	return roll_publish_is_following(publish);
}

void roll_publish_forget(struct roll_publish *publish)
{
	struct roll_publish_job *job;

	clear_ops(&publish->batch);
	clear_ops(&publish->ops);
	while ((job = publish->jobs)) {
		publish->jobs = job->next;
		free_job(job);
	}
	publish->job_count = 0;
}

/* --- the sink --- */

static enum roll_status on_event_begin(void *ctx)
{
	struct roll_publish *publish = ctx;

	clear_ops(&publish->batch);
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
		clear_ops(&publish->batch);
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

void roll_publish_follow_init(struct roll_publish *publish)
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
