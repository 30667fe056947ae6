/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/json.h"
#include "dns/type.h"
#include "sync/publish_state.h"

#define JOBS_MAX 1000
#define OPS_A_TURN 32
#define ROWS_A_TURN 200
#define NAMES_MAX 2000	/* of one object, whose neighbours are looked up one by one */
#define CLAIMS_MAX 1000 /* at one name */

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
		job->key = roll_publish_copy(key);
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
	after = roll_publish_copy(row->key);
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
	after.type = row.names.n ? roll_publish_type_of(&row) : 0;
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
		roll_publish_fini_op(&ops->items[ops->at++]);
	}
	roll_snap_end(snap);
	if (ops->at == ops->count)
		roll_publish_clear_ops(ops);
	return roll_publish_is_following(publish);
}

void roll_publish_forget(struct roll_publish *publish)
{
	struct roll_publish_job *job;

	roll_publish_clear_ops(&publish->batch);
	roll_publish_clear_ops(&publish->ops);
	while ((job = publish->jobs)) {
		publish->jobs = job->next;
		free_job(job);
	}
	publish->job_count = 0;
}
