/* SPDX-License-Identifier: Apache-2.0 */
#include "apply/apply_state.h"

#include "base/json.h"
#include "model/translate.h"

/*
 * Record sets that wait for their DNSZone: when it comes, or goes to another domain, all their
 * names are claimed under a new number. As many as one transaction should take are done in that of
 * the zone; more are done before, in slices, and the zone is put when they are ready.
 */

/* Keys of record sets, gathered before anything is changed. */
struct keys {
	struct roll_apply *apply;
	struct roll_str *items;
	size_t count, limit;
	uint32_t skip_number; /* rows under this number are claimed already; 0: take all */
	bool is_over;
	/* For walks over all record sets: */
	struct roll_str zone_key;
	struct roll_str last;
};

/* Put a stored record set again, now that its zone has this number and domain. */
static enum roll_status reclaim(struct roll_apply *apply, struct roll_txn *txn, struct roll_str key,
				uint32_t number, const struct roll_name *domain)
{
	struct roll_object_row row;
	json_t *spec = NULL;
	enum roll_status status;

	status = roll_apply_stored_row(txn, ROLL_ROW_RECORDSET, key, &row);
	if (status)
		return status;
	roll_found_reset(&apply->found);
	status = roll_found_add_extras_of(&apply->found, &row);
	/* An object without a spec is stored with an empty one. */
	if (!status && row.spec.n)
		status = roll_json_parse(row.spec, &spec, NULL);
	if (status)
		return status == ROLL_EINVAL || status == ROLL_ELIMIT ? ROLL_ECORRUPT : status;
	roll_apply_count_row(apply, &row, -1);
	row.key = key;
	roll_arena_reset(&apply->row);
	status = roll_apply_keep_row(&apply->row, &row);
	if (!status)
		status = roll_apply_put_recordset(apply, txn, &row, spec, number, domain);
	json_decref(spec);
	return status;
}

static enum roll_status on_waiting(void *ctx, const struct roll_object_row *row)
{
	struct keys *keys = ctx;

	if (keys->skip_number && row->number == keys->skip_number)
		return ROLL_OK;
	if (keys->count == keys->limit) {
		keys->is_over = true;
		return ROLL_ECANCELED;
	}
	keys->items[keys->count] = roll_arena_str(&keys->apply->arena, row->key);
	if (!keys->items[keys->count].p)
		return keys->apply->arena.status;
	keys->count++;
	return ROLL_OK;
}

static enum roll_status init_keys(struct keys *keys, struct roll_apply *apply, size_t limit)
{
	*keys = (struct keys){.apply = apply, .limit = limit};
	keys->items = roll_arena_array(&apply->arena, limit, sizeof *keys->items);
	return keys->items ? ROLL_OK : apply->arena.status;
}

/* The record sets that wait for the zone, at most a slice. */
static enum roll_status find_waiting(struct roll_txn *txn, struct roll_str zone_key,
				     struct keys *keys)
{
	enum roll_status status;

	status = roll_snap_recordsets_of(roll_txn_snap(txn), zone_key, on_waiting, keys);
	return status == ROLL_ECANCELED || status == ROLL_ENOENT ? ROLL_OK : status;
}

static enum roll_status reclaim_all(struct roll_apply *apply, struct roll_txn *txn,
				    const struct keys *keys, uint32_t number,
				    const struct roll_name *domain)
{
	enum roll_status status = ROLL_OK;
	size_t i;

	for (i = 0; i < keys->count && !status; i++)
		status = reclaim(apply, txn, keys->items[i], number, domain);
	return status;
}

enum roll_status roll_apply_new_number(struct roll_apply *apply, struct roll_txn *txn,
				       struct roll_str key, const struct roll_name *domain,
				       uint32_t *number)
{
	bool is_prepared = apply->prepared && roll_str_eq(roll_buf_str(&apply->prepared_key), key);
	struct keys keys;
	enum roll_status status;

	status = init_keys(&keys, apply, ROLL_APPLY_SLICE);
	if (is_prepared)
		keys.skip_number = apply->prepared;
	if (!status)
		status = find_waiting(txn, key, &keys);
	if (status)
		return status;
	*number = 0;
	if (keys.is_over)
		return ROLL_OK;
	*number = is_prepared ? apply->prepared : roll_txn_new_number(txn, domain);
	status = roll_txn_status(txn);
	return status ? status : reclaim_all(apply, txn, &keys, *number, domain);
}

void roll_apply_use_number(struct roll_apply *apply, struct roll_str zone_key, uint32_t number)
{
	roll_buf_reset(&apply->prepared_key);
	roll_buf_add_str(&apply->prepared_key, zone_key);
	apply->prepared = apply->prepared_key.status ? 0 : number;
}

/* --- more than one transaction can take --- */

/* Over all record sets of the namespace; those of other zones are passed over. */
static enum roll_status on_any(void *ctx, const struct roll_object_row *row)
{
	struct keys *keys = ctx;
	struct roll_str rest = keys->zone_key, own = row->key;
	struct roll_str ns = roll_str_cut(&rest, '/');

	if (!roll_str_eq(roll_str_cut(&own, '/'), ns))
		return ROLL_ECANCELED;
	if (!roll_str_eq(row->zone, keys->zone_key))
		return ROLL_OK;
	return on_waiting(keys, row);
}

/*
 * One transaction of roll_apply_slices: record sets after `after` (a key, or "ns/" at first) get
 * claimed. after ends up as the last one, empty when there are no more.
 */
static enum roll_status run_slice(struct roll_apply *apply, struct roll_txn *txn,
				  struct roll_str zone_key, const struct roll_name *domain,
				  uint32_t number, struct roll_buf *after)
{
	struct keys keys;
	enum roll_status status;

	status = init_keys(&keys, apply, ROLL_APPLY_SLICE);
	if (status)
		return status;
	keys.zone_key = zone_key;
	status = roll_snap_objects(roll_txn_snap(txn), ROLL_ROW_RECORDSET, roll_buf_str(after),
				   on_any, &keys);
	if (status && status != ROLL_ECANCELED && status != ROLL_ENOENT)
		return status;
	status = reclaim_all(apply, txn, &keys, number, domain);
	roll_buf_reset(after);
	if (keys.is_over)
		roll_buf_add_str(after, keys.items[keys.count - 1]);
	return status ? status : after->status;
}

/* A zone that is served under another domain stops being so: its object says so. */
static enum roll_status leave_domain(struct roll_apply *apply, struct roll_txn *txn,
				     struct roll_str key, const struct roll_name *domain)
{
	struct roll_object_row row;
	struct roll_name old;
	enum roll_status status;
	uint32_t number;

	status = roll_txn_zone_number(txn, key, &number, &old);
	if (status || roll_name_eq(&old, domain))
		return status == ROLL_ENOENT ? ROLL_OK : status;
	status = roll_apply_stored_row(txn, ROLL_ROW_ZONE, key, &row);
	if (!status)
		status = roll_apply_keep_row(&apply->arena, &row);
	if (status)
		return status;
	row.key = key;
	roll_txn_put_zone(txn, &row, NULL, roll_str_n("", 0), 0);
	return roll_txn_status(txn);
}

enum roll_status roll_apply_slices(struct roll_apply *apply, struct roll_writer *writer,
				   const struct roll_object *zone, uint32_t *number,
				   struct roll_err *err)
{
	struct roll_zone_spec read;
	struct roll_buf after, next;
	struct roll_apply_delta before;
	struct roll_txn *txn = NULL;
	enum roll_status status;
	struct roll_str key;

	roll_buf_init(&after, ROLL_APPLY_KEY_BYTES);
	roll_buf_init(&next, ROLL_APPLY_KEY_BYTES);
	*number = 0;
	roll_arena_reset(&apply->object);
	status = roll_translate_zone(zone->spec, &apply->object, &read, NULL);
	if (status)
		goto out;
	roll_buf_add_str(&after, zone->ns);
	roll_buf_add_char(&after, '/');
	while (after.n && !status) {
		uint32_t given = *number;

		roll_arena_reset(&apply->arena);
		before = apply->delta;
		key = roll_apply_key(apply, zone);
		roll_buf_reset(&next);
		roll_buf_add_str(&next, roll_buf_str(&after));
		status = roll_txn_begin(writer, &txn, err);
		if (status)
			break;
		if (!given) {
			status = leave_domain(apply, txn, key, &read.domain);
			given = status ? 0 : roll_txn_new_number(txn, &read.domain);
		}
		if (!status)
			status = run_slice(apply, txn, key, &read.domain, given, &next);
		if (status) {
			roll_txn_abort(txn);
			roll_err_set(err, status, NULL, "%s", roll_status_text(status));
		} else {
			status = roll_txn_commit(txn, err);
		}
		if (status)
			apply->delta = before;
		if (status == ROLL_EFULL) {
			status = roll_writer_grow(writer, err);
			continue;
		}
		if (!status) {
			*number = given;
			roll_buf_reset(&after);
			roll_buf_add_str(&after, roll_buf_str(&next));
		}
	}
out:
	roll_buf_fini(&after);
	roll_buf_fini(&next);
	return status;
}
