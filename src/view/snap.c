/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "view/view.h"

/*
 * Readers. One read transaction is kept and renewed for every snapshot; nothing is allocated once
 * it is there. A view that is replaced, grows or appears is followed here.
 */

struct roll_view {
	char *dir;
	int guard_fd;
	struct roll_env *env;
	bool is_borrowed; /* env belongs to the writer */
	char folder[ROLL_FOLDER_SIZE];
	MDB_txn *txn; /* reset between snapshots */
	bool has_head;
	uint64_t txn_id; /* of head */
	struct roll_head head;
	bool is_reading;
	struct roll_snap snap;
	/* A view that cannot be read is not opened again until its file is another. */
	struct roll_err refused; /* code ROLL_OK: none */
	char refused_folder[ROLL_FOLDER_SIZE];
	struct stat refused_stat;
};

/* Far above what a zone's claims or one name's claims take. */
#define WORK_LIMIT ((size_t)256 << 20)
#define EXTRA_LIMIT ((size_t)64 << 20)
#define SOA_LIMIT 1024 /* two names and five numbers */

enum roll_status roll_snap_init(struct roll_snap *snap)
{
	memset(snap, 0, sizeof *snap);
	roll_arena_init(&snap->work, WORK_LIMIT);
	roll_arena_init(&snap->extra, EXTRA_LIMIT);
	roll_arena_init(&snap->shown, WORK_LIMIT);
	roll_buf_init(&snap->soa, SOA_LIMIT);
	snap->slots = calloc(ROLL_ZONE_SLOTS, sizeof *snap->slots);
	return snap->slots ? ROLL_OK : ROLL_ENOMEM;
}

void roll_snap_fini(struct roll_snap *snap)
{
	roll_arena_fini(&snap->work);
	roll_arena_fini(&snap->extra);
	roll_arena_fini(&snap->shown);
	roll_buf_fini(&snap->soa);
	free(snap->slots);
	snap->slots = NULL;
}

void roll_snap_turn(struct roll_snap *snap, bool is_same_content)
{
	snap->turn++;
	if (!is_same_content)
		snap->content++;
	roll_arena_reset(&snap->extra);
}

static enum roll_status new_view(struct roll_view **out)
{
	struct roll_view *view = calloc(1, sizeof *view);

	if (!view)
		return ROLL_ENOMEM;
	view->guard_fd = -1;
	view->snap.view = view;
	if (roll_snap_init(&view->snap)) {
		roll_view_free(view);
		return ROLL_ENOMEM;
	}
	view->snap.view = view;
	*out = view;
	return ROLL_OK;
}

enum roll_status roll_view_new(const char *dir, struct roll_view **out, struct roll_err *err)
{
	struct roll_view *view = NULL;
	enum roll_status status = new_view(&view);

	if (status)
		return roll_err_set(err, status, dir, "no memory");
	view->dir = strdup(dir);
	if (!view->dir) {
		roll_view_free(view);
		return roll_err_set(err, ROLL_ENOMEM, dir, "no memory");
	}
	status = roll_dir_guard(dir, &view->guard_fd, err);
	if (status && status != ROLL_ENOENT) {
		roll_view_free(view);
		return status;
	}
	*out = view;
	return ROLL_OK;
}

enum roll_status roll_view_new_borrowed(struct roll_view **out)
{
	enum roll_status status = new_view(out);

	if (!status)
		(*out)->is_borrowed = true;
	return status;
}

static void drop_env(struct roll_view *view)
{
	if (view->snap.names)
		mdb_cursor_close(view->snap.names);
	view->snap.names = NULL;
	if (view->txn)
		mdb_txn_abort(view->txn);
	view->txn = NULL;
	if (!view->is_borrowed)
		roll_env_close(view->env);
	view->env = NULL;
	view->has_head = false;
}

void roll_view_free(struct roll_view *view)
{
	if (!view)
		return;
	drop_env(view);
	roll_snap_fini(&view->snap);
	if (view->guard_fd >= 0)
		close(view->guard_fd);
	free(view->dir);
	free(view);
}

void roll_view_attach(struct roll_view *view, struct roll_env *env)
{
	drop_env(view);
	view->env = env;
}

bool roll_view_is_reading(const struct roll_view *view)
{
	return view->is_reading;
}

void roll_view_poll(struct roll_view *view)
{
	char folder[ROLL_FOLDER_SIZE];

	if (view->is_borrowed || view->is_reading || !view->env)
		return;
	if (!roll_dir_current(view->dir, folder, NULL) && strcmp(folder, view->folder) != 0)
		drop_env(view);
}

static bool stat_data(const char *path, struct stat *st)
{
	char *data = roll_dir_path(path, "data.mdb");
	bool ok;

	memset(st, 0, sizeof *st);
	ok = data && !stat(data, st);
	free(data);
	return ok;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static enum roll_status open_folder(struct roll_view *view, const char *folder,
				    struct roll_err *err)
{
	char *path = roll_dir_path(view->dir, folder);
	struct roll_err why = {.code = ROLL_OK};
	enum roll_status status;
	struct stat st;
	bool has_stat;

	if (!path)
		return roll_err_set(err, ROLL_ENOMEM, view->dir, "no memory");
	has_stat = stat_data(path, &st);
	if (view->refused.code && strcmp(view->refused_folder, folder) == 0 && has_stat &&
	    is_same_file(&st, &view->refused_stat)) {
		free(path);
		if (err)
			*err = view->refused;
		return view->refused.code;
	}
	view->refused.code = ROLL_OK;
	status = roll_env_open(path, ROLL_ENV_READ, 0, &view->env, &why);
	if ((status == ROLL_ECORRUPT || status == ROLL_EVERSION) && has_stat) {
		view->refused = why;
		view->refused_stat = st;
		memcpy(view->refused_folder, folder, strlen(folder) + 1);
	}
	if (!status)
		memcpy(view->folder, folder, strlen(folder) + 1);
	if (status && err)
		*err = why;
	free(path);
	return status;
}

/* A folder may go between reading the link and opening it: a newer one is there by then. */
#define ATTEMPTS 8

static enum roll_status open_view(struct roll_view *view, struct roll_err *err)
{
	enum roll_status status = ROLL_ENOTREADY;

	if (view->is_borrowed)
		return roll_err_set(err, ROLL_ENOTREADY, NULL, "there is no view yet");
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		char folder[ROLL_FOLDER_SIZE];

		status = roll_dir_current(view->dir, folder, err);
		if (status)
			return status;
		if (view->guard_fd < 0) {
			status = roll_dir_guard(view->dir, &view->guard_fd, err);
			if (status)
				return status == ROLL_ENOENT ? ROLL_ENOTREADY : status;
		}
		status = open_folder(view, folder, err);
		if (status != ROLL_ENOENT)
			return status;
	}
	return roll_err_set(err, ROLL_ECORRUPT, view->dir,
			    "the link current leads to a folder without a view");
}

static int renew(struct roll_view *view)
{
	if (view->txn)
		return mdb_txn_renew(view->txn);
	return mdb_txn_begin(view->env->mdb, NULL, MDB_RDONLY, &view->txn);
}

/* Begin reading what is newest; *is_same: it is the state that was read before. */
static enum roll_status begin(struct roll_view *view, bool *is_same, struct roll_err *err)
{
	struct roll_key key = roll_key_of("head");
	enum roll_status status;
	struct roll_str bytes;
	int dead, rc;

	assert(view->env);
	rc = renew(view);
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		if (rc == MDB_MAP_RESIZED) {
			/* The map may move: nothing that was borrowed is good any more. */
			view->has_head = false;
			rc = mdb_env_set_mapsize(view->env->mdb, 0);
		} else if (rc == MDB_READERS_FULL) {
			rc = mdb_reader_check(view->env->mdb, &dead);
		} else {
			break;
		}
		if (!rc)
			rc = renew(view);
	}
	/* Our slot was taken from us: whoever did that took us for dead. */
	if (rc == MDB_BAD_RSLOT)
		return roll_err_set(err, ROLL_ESTALE, view->dir, "%s", mdb_strerror(rc));
	if (rc)
		return roll_mdb_err(err, rc, view->dir, "the view cannot be read");
	view->snap.at = (struct roll_at){view->txn, view->env->dbi};
	view->snap.is_names_fresh = false;
	*is_same = view->has_head && mdb_txn_id(view->txn) == view->txn_id;
	if (*is_same)
		return ROLL_OK;
	view->has_head = false;
	status = roll_at_get(&view->snap.at, ROLL_TABLE_META, &key, &bytes);
	if (!status)
		status = roll_head_decode(bytes, &view->head);
	if (status) {
		mdb_txn_reset(view->txn);
		return roll_err_set(err, status == ROLL_ENOENT ? ROLL_ECORRUPT : status, view->dir,
				    "the head of the view is damaged");
	}
	view->has_head = true;
	view->txn_id = mdb_txn_id(view->txn);
	return ROLL_OK;
}

enum roll_status roll_snap_begin(struct roll_view *view, bool complete_only, struct roll_snap **out,
				 struct roll_err *err)
{
	enum roll_status status;
	bool is_same = false;

	if (view->is_reading)
		return roll_err_set(err, ROLL_EBUSY, view->dir, "a snapshot is open");
	for (int attempt = 0;; attempt++) {
		status = view->env ? ROLL_OK : open_view(view, err);
		if (!status)
			status = begin(view, &is_same, err);
		if (!status && view->head.is_superseded) {
			mdb_txn_reset(view->txn);
			status =
				roll_err_set(err, ROLL_ESTALE, view->dir,
					     "the view is superseded, but no newer one is current");
		}
		if (status != ROLL_ESTALE || view->is_borrowed || attempt == ATTEMPTS)
			break;
		drop_env(view);
	}
	if (status)
		return status;
	if (complete_only && view->head.complete_since_ms == 0) {
		mdb_txn_reset(view->txn);
		return roll_err_set(err, ROLL_ENOTREADY, view->dir, "the view was never complete");
	}
	view->snap.head = &view->head;
	roll_snap_turn(&view->snap, is_same);
	view->is_reading = true;
	*out = &view->snap;
	return ROLL_OK;
}

void roll_snap_end(struct roll_snap *snap)
{
	/* That of a write transaction ends with it. */
	if (!snap || !snap->view || !snap->view->is_reading)
		return;
	mdb_txn_reset(snap->view->txn);
	snap->view->is_reading = false;
}

const struct roll_head *roll_snap_head(const struct roll_snap *snap)
{
	return snap->head;
}

uint64_t roll_snap_content(const struct roll_snap *snap)
{
	return snap->content;
}
