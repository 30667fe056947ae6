/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/scratch.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apply/apply.h"
#include "view/write.h"

#define BATCH 500
#define ARENA_LIMIT ((size_t)16 << 20)

struct item {
	struct roll_object object;
	json_t *json;
	struct roll_str scope;
	bool is_duplicate; /* known and told */
};

struct roll_scratch {
	struct roll_scratch_conf conf;
	char *dir; /* NULL until made */
	struct roll_writer *writer;
	struct roll_apply *apply;
	struct roll_arena arena; /* scopes of the batch */
	struct item items[BATCH];
	size_t count;
	struct roll_view *view;
	struct roll_snap *snap;
};

/* The signal flag; handlers do nothing else. */
static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

bool roll_scratch_is_interrupted(void)
{
	return interrupted != 0;
}

static void catch_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal};
	size_t i;

	sigemptyset(&action.sa_mask);
	action.sa_flags = SA_RESTART;
	for (i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaction(signals[i], &action, NULL);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static enum roll_status make_dir(struct roll_scratch *scratch, struct roll_err *err)
{
	const char *tmp = getenv("TMPDIR");
	static const char tail[] = "/rollcall-XXXXXX";
	size_t size;

	if (!tmp || !*tmp)
		tmp = "/tmp";
	size = strlen(tmp) + sizeof tail;
	scratch->dir = malloc(size);
	if (!scratch->dir)
		return roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	snprintf(scratch->dir, size, "%s%s", tmp, tail);
	if (mkdtemp(scratch->dir))
		return ROLL_OK;
	size = (size_t)errno;
	free(scratch->dir);
	scratch->dir = NULL;
	return roll_err_errno(err, ROLL_EIO, (int)size, tmp,
			      "no temporary directory can be made there (TMPDIR)");
}

enum roll_status roll_scratch_new(const struct roll_scratch_conf *conf, struct roll_scratch **out,
				  struct roll_err *err)
{
	struct roll_scratch *scratch = calloc(1, sizeof *scratch);
	struct roll_writer_conf writer = {.controller = conf->controller, .clock = conf->clock};
	enum roll_status status;
	bool is_fresh;

	if (!scratch)
		return roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	scratch->conf = *conf;
	roll_arena_init(&scratch->arena, ARENA_LIMIT);
	catch_signals();
	scratch->apply = roll_apply_new();
	status = scratch->apply ? ROLL_OK : roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	if (status == ROLL_OK)
		status = make_dir(scratch, err);
	writer.dir = scratch->dir;
	if (status == ROLL_OK)
		status = roll_writer_open(&writer, &scratch->writer, &is_fresh, err);
	if (status != ROLL_OK) {
		roll_scratch_free(scratch);
		return status;
	}
	*out = scratch;
	return ROLL_OK;
}

static void clear_batch(struct roll_scratch *scratch)
{
	size_t i;

	for (i = 0; i < scratch->count; i++)
		json_decref(scratch->items[i].json);
	scratch->count = 0;
	roll_arena_reset(&scratch->arena);
}

void roll_scratch_free(struct roll_scratch *scratch)
{
	if (!scratch)
		return;
	clear_batch(scratch);
	if (scratch->snap)
		roll_snap_end(scratch->snap);
	if (scratch->view)
		roll_view_free(scratch->view);
	if (scratch->writer)
		roll_writer_close(scratch->writer);
	roll_apply_free(scratch->apply);
	if (scratch->dir)
		nftw(scratch->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(scratch->dir);
	roll_arena_fini(&scratch->arena);
	free(scratch);
}

/* Put one item, unless it is there already. */
static enum roll_status put_item(struct roll_scratch *scratch, struct roll_txn *txn,
				 struct item *item, enum roll_apply_result *result)
{
	struct roll_object_row row;
	enum roll_status status;

	*result = ROLL_APPLY_UNCHANGED;
	if (item->is_duplicate)
		return ROLL_OK;
	status = roll_snap_object(roll_txn_snap(txn), (enum roll_row_kind)item->object.kind,
				  roll_apply_key(scratch->apply, &item->object), &row);
	if (status == ROLL_OK) {
		item->is_duplicate = true;
		if (scratch->conf.on_duplicate)
			scratch->conf.on_duplicate(scratch->conf.ctx, &item->object, item->scope,
						   row.scope);
		return ROLL_OK;
	}
	if (status != ROLL_ENOENT)
		return status;
	return roll_apply_put(scratch->apply, txn, &item->object, item->scope, NULL, 0, result);
}

/*
 * One transaction with the items from *done on; *done moves past those that are in. A zone for
 * which too many record sets wait ends it early and is prepared for the next round.
 */
static enum roll_status put_some(struct roll_scratch *scratch, size_t *done, struct roll_err *err)
{
	static const struct roll_str none = {NULL, 0};
	enum roll_apply_result result = ROLL_APPLY_UNCHANGED;
	enum roll_status status;
	struct roll_txn *txn;
	uint32_t number;
	size_t i;

	status = roll_txn_begin(scratch->writer, &txn, err);
	if (status != ROLL_OK)
		return status;
	for (i = *done; i < scratch->count && status == ROLL_OK; i++) {
		status = put_item(scratch, txn, &scratch->items[i], &result);
		if (result == ROLL_APPLY_SLICED)
			break;
	}
	if (status != ROLL_OK) {
		roll_txn_abort(txn);
		return status;
	}
	status = roll_txn_commit(txn, err);
	if (status != ROLL_OK)
		return status;
	*done = i;
	roll_apply_use_number(scratch->apply, none, 0);
	if (result != ROLL_APPLY_SLICED)
		return ROLL_OK;
	status = roll_apply_slices(scratch->apply, scratch->writer, &scratch->items[i].object,
				   &number, err);
	if (status == ROLL_OK)
		roll_apply_use_number(scratch->apply,
				      roll_apply_key(scratch->apply, &scratch->items[i].object),
				      number);
	return status;
}

enum roll_status roll_scratch_flush(struct roll_scratch *scratch, struct roll_err *err)
{
	enum roll_status status = ROLL_OK;
	size_t done = 0;

	while (done < scratch->count && status == ROLL_OK) {
		if (interrupted)
			status = roll_err_set(err, ROLL_ECANCELED, NULL, "interrupted");
		else
			status = put_some(scratch, &done, err);
		if (status == ROLL_EFULL)
			status = roll_writer_grow(scratch->writer, err);
	}
	clear_batch(scratch);
	return status;
}

enum roll_status roll_scratch_put(struct roll_scratch *scratch, const struct roll_object *object,
				  json_t *json, struct roll_str scope, struct roll_err *err)
{
	struct item *item = &scratch->items[scratch->count];

	item->object = *object;
	item->json = json_incref(json);
	item->scope = scope.n ? roll_arena_str(&scratch->arena, scope) : roll_str_n("", 0);
	item->is_duplicate = false;
	scratch->count++;
	if (scratch->arena.status != ROLL_OK)
		return roll_err_set(err, scratch->arena.status, NULL, "out of memory");
	return scratch->count == BATCH ? roll_scratch_flush(scratch, err) : ROLL_OK;
}

enum roll_status roll_scratch_finish(struct roll_scratch *scratch, struct roll_snap **out,
				     struct roll_err *err)
{
	enum roll_status status = roll_scratch_flush(scratch, err);
	struct roll_txn *txn;

	if (status == ROLL_OK)
		status = roll_txn_begin(scratch->writer, &txn, err);
	if (status == ROLL_OK) {
		roll_txn_set_complete(txn, roll_clock_wall_ms(scratch->conf.clock));
		status = roll_txn_commit(txn, err);
	}
	if (status == ROLL_OK && roll_writer_is_rebuilding(scratch->writer))
		status = roll_writer_finish(scratch->writer, err);
	if (status != ROLL_OK)
		return status;
	/* One process must not have one file open twice. */
	roll_writer_close(scratch->writer);
	scratch->writer = NULL;
	status = roll_view_new(scratch->dir, &scratch->view, err);
	if (status == ROLL_OK)
		status = roll_snap_begin(scratch->view, true, &scratch->snap, err);
	*out = scratch->snap;
	return status;
}
