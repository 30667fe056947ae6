/* SPDX-License-Identifier: Apache-2.0 */
#include "view/stat.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "view/view.h"

static enum roll_table find_table(const char *name)
{
	unsigned i;

	for (i = 0; i < ROLL_TABLE_COUNT && strcmp(roll_table_names[i], name) != 0; i++)
		;
	assert(i < ROLL_TABLE_COUNT);
	return (enum roll_table)i;
}

/*
 * mdb_reader_list speaks text only: a heading, then lines of pid, thread and transaction.
 * mdb_reader_check would tell the dead ones too, but frees their slots: a change that is the
 * writer's to make.
 */
static int on_reader(const char *line, void *ctx)
{
	struct roll_view_stat *stat = ctx;
	struct roll_str rest = roll_str_trim(roll_str_c(line));
	uint32_t pid;

	/* The longest lines hold no more than three numbers; a heading is no number. */
	while (rest.n) {
		struct roll_str first = roll_str_trim(roll_str_cut(&rest, '\n'));

		first = roll_str_cut(&first, ' ');
		if (roll_str_u32(first, INT32_MAX, &pid) != ROLL_OK || pid == 0)
			continue;
		stat->readers++;
		if (kill((pid_t)pid, 0) != 0 && errno == ESRCH)
			stat->stale_readers++;
	}
	return 0;
}

enum roll_status roll_snap_stat(struct roll_snap *snap, struct roll_view_stat *out)
{
	MDB_env *env = mdb_txn_env(snap->at.txn);
	MDB_envinfo info;
	MDB_stat stat;
	int rc;

	memset(out, 0, sizeof *out);
	rc = mdb_env_info(env, &info);
	if (rc == 0)
		rc = mdb_env_stat(env, &stat);
	if (rc != 0)
		return roll_mdb_status(rc);
	out->map_bytes = info.me_mapsize;
	out->used_bytes = ((uint64_t)info.me_last_pgno + 1) * stat.ms_psize;
	rc = mdb_stat(snap->at.txn, snap->at.dbi[ROLL_TABLE_GONE], &stat);
	if (rc != 0)
		return roll_mdb_status(rc);
	out->gone_numbers = stat.ms_entries;
	return mdb_reader_list(env, on_reader, out) < 0 ? ROLL_EIO : ROLL_OK;
}

enum roll_status roll_snap_raw_walk(struct roll_snap *snap, const char *table, roll_on_raw on_raw,
				    void *ctx)
{
	enum roll_status status, step;
	struct roll_walk walk;

	status = roll_walk_begin(&walk, &snap->at, find_table(table));
	if (status != ROLL_OK)
		return status;
	for (step = roll_walk_seek(&walk, NULL); step == ROLL_OK && status == ROLL_OK;) {
		status = on_raw(ctx, walk.key, walk.value);
		if (status == ROLL_OK)
			step = roll_walk_next(&walk);
	}
	roll_walk_end(&walk);
	return step == ROLL_OK || step == ROLL_ENOENT ? status : step;
}

enum roll_status roll_snap_raw_get(struct roll_snap *snap, const char *table, struct roll_str key,
				   struct roll_str *value)
{
	struct roll_key wanted = {0};

	roll_key_add(&wanted, key.p, key.n);
	return roll_at_get(&snap->at, find_table(table), &wanted, value);
}
