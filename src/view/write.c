/* SPDX-License-Identifier: Apache-2.0 */
#include "view/write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "view/view.h"

/*
 * The writer: one per view directory. It writes the current view, or, while rebuilding, a new one
 * beside it that nobody reads until it is finished.
 */

#define DIR_MODE 0750

static enum roll_status write_first_head(struct roll_writer *writer, struct roll_env *env,
					 const struct roll_head *before, struct roll_err *err)
{
	struct roll_head head = {
		.format = ROLL_VIEW_FORMAT,
		.generation = before->generation,
		.next_number = 1,
		.max_serial = before->max_serial,
		.controller = roll_str_c(writer->controller),
	};
	MDB_val key = {4, (void *)(uintptr_t) "head"}, value;
	struct roll_buf buf;
	MDB_txn *txn = NULL;
	enum roll_status status;
	int rc;

	roll_buf_init(&buf, (size_t)1 << 20);
	roll_head_encode(&head, &buf);
	status = buf.status;
	if (status) {
		roll_err_set(err, status, writer->dir, "the head of the new view");
		goto out;
	}
	value = (MDB_val){buf.n, buf.p};
	rc = mdb_txn_begin(env->mdb, NULL, 0, &txn);
	if (!rc)
		rc = mdb_put(txn, env->dbi[ROLL_TABLE_META], &key, &value, 0);
	if (!rc) {
		rc = mdb_txn_commit(txn);
		txn = NULL;
	}
	if (rc)
		status = roll_mdb_err(err, rc, writer->dir, "the head of the new view");
out:
	if (txn)
		mdb_txn_abort(txn);
	roll_buf_fini(&buf);
	return status;
}

/* --- what outlives a rebuild: ids and serials --- */

struct carry {
	struct roll_writer *writer;
	struct roll_snap *from;
	MDB_txn *txn;
	struct roll_arena arena;
	struct roll_buf buf;
};

/*
 * What the domain's serial must be later than. While a zone is served that is its effective serial;
 * of any other it is not known what was said last, but it was not later than the latest of all.
 */
static enum roll_status carry_serial(struct carry *carry, const struct roll_domain_row *row,
				     uint32_t *out)
{
	struct roll_settled settled;
	enum roll_status status =
		roll_domain_settle(&carry->from->at, carry->from->head, row, &settled);

	*out = settled.serial;
	if (!status && settled.state != ROLL_ZONE_SERVED)
		*out = roll_serial_later_or(settled.serial, carry->from->head->max_serial);
	return status;
}

static int carry_row(struct carry *carry, const struct roll_walk *walk)
{
	struct roll_env *env = carry->writer->next;
	MDB_val key = {walk->key.n, (void *)(uintptr_t)walk->key.p}, value;
	struct roll_domain_row row, bare = {0};
	struct roll_key id;

	roll_arena_reset(&carry->arena);
	if (roll_domain_row_decode(walk->value, &carry->arena, &row) ||
	    carry_serial(carry, &row, &bare.serial))
		return 0; /* damaged: its id follows from its name, its serial is lost */
	bare.id = row.id;
	bare.serial_before = bare.serial;
	bare.changed_generation = carry->writer->rebuild_epoch;
	roll_buf_reset(&carry->buf);
	roll_domain_row_encode(&bare, &carry->buf);
	if (carry->buf.status)
		return ENOMEM;
	value = (MDB_val){carry->buf.n, carry->buf.p};
	if (mdb_put(carry->txn, env->dbi[ROLL_TABLE_DOMAINS], &key, &value, 0))
		return MDB_MAP_FULL;
	id = roll_key_number(bare.id);
	value = key;
	key = (MDB_val){id.n, id.p};
	return mdb_put(carry->txn, env->dbi[ROLL_TABLE_IDS], &key, &value, 0) ? MDB_MAP_FULL : 0;
}

static int carry_rows(struct carry *carry)
{
	struct roll_walk walk;
	int rc = mdb_txn_begin(carry->writer->next->mdb, NULL, 0, &carry->txn);
	enum roll_status status;

	if (rc)
		return rc;
	status = roll_walk_begin(&walk, &carry->from->at, ROLL_TABLE_DOMAINS);
	if (!status)
		status = roll_walk_seek(&walk, NULL);
	for (; !status && !rc; status = roll_walk_next(&walk))
		rc = carry_row(carry, &walk);
	roll_walk_end(&walk);
	/* An old view that cannot be read to its end has given what it could. */
	if (rc)
		mdb_txn_abort(carry->txn);
	else
		rc = mdb_txn_commit(carry->txn);
	return rc;
}

/* Copy the domains of the view that is read now, without claims, into the new one. */
static enum roll_status carry_domains(struct roll_writer *writer, struct roll_snap *from,
				      struct roll_err *err)
{
	struct carry carry = {.writer = writer, .from = from};
	enum roll_status status = ROLL_OK;
	int rc;

	roll_arena_init(&carry.arena, (size_t)256 << 20);
	roll_buf_init(&carry.buf, (size_t)1 << 20);
	while ((rc = carry_rows(&carry)) == MDB_MAP_FULL && !status)
		status = roll_env_grow(writer->next, err);
	if (rc && !status)
		status = roll_mdb_err(err, rc, writer->dir, "ids and serials cannot be kept");
	roll_arena_fini(&carry.arena);
	roll_buf_fini(&carry.buf);
	return status;
}

/* --- rebuild --- */

static void drop_rebuild(struct roll_writer *writer)
{
	if (!writer->next)
		return;
	roll_env_close(writer->next);
	writer->next = NULL;
	writer->prepared_count = 0;
	roll_dir_remove_folder(writer->dir, writer->next_folder);
}

enum roll_status roll_writer_rebuild(struct roll_writer *writer, struct roll_err *err)
{
	struct roll_head before = {.generation = 0};
	struct roll_snap *snap = NULL;
	enum roll_status status;
	char *path = NULL;

	if (writer->txn.is_open || roll_view_is_reading(writer->view))
		return roll_err_set(err, ROLL_EBUSY, writer->dir, "a transaction is open");
	drop_rebuild(writer);
	writer->prepared_count = 0;
	/* Of a view that is to be rebuilt because it is damaged, nothing may be readable. */
	if (writer->current && !roll_snap_begin(writer->view, false, &snap, NULL))
		before = *roll_snap_head(snap);
	status = roll_dir_make_folder(writer->dir, writer->next_folder, err);
	if (status)
		goto out;
	path = roll_dir_path(writer->dir, writer->next_folder);
	if (!path) {
		status = roll_err_set(err, ROLL_ENOMEM, writer->dir, "no memory");
		goto out;
	}
	status = roll_env_open(path, ROLL_ENV_BUILD, writer->map_bytes, &writer->next, err);
	if (!status)
		status = write_first_head(writer, writer->next, &before, err);
	writer->rebuild_epoch = before.generation + 1;
	if (!status && snap)
		status = carry_domains(writer, snap, err);
out:
	roll_snap_end(snap);
	if (status) {
		if (path && !writer->next)
			roll_dir_remove_folder(writer->dir, writer->next_folder);
		drop_rebuild(writer);
	}
	free(path);
	return status;
}

bool roll_writer_is_rebuilding(const struct roll_writer *writer)
{
	return writer->next != NULL;
}

static enum roll_status check_complete(struct roll_writer *writer, struct roll_err *err)
{
	struct roll_txn *txn;
	enum roll_status status = roll_txn_begin(writer, &txn, err);

	if (status)
		return status;
	if (txn->head.complete_since_ms == 0)
		status =
			roll_err_set(err, ROLL_EINVAL, writer->dir, "the new view is not complete");
	roll_txn_abort(txn);
	return status;
}

/*
 * In this order: a reader that sees the mark finds the new view in `current`. If we die after the
 * swap, roll_dir_clean sets the mark when the next writer comes.
 */
enum roll_status roll_writer_finish(struct roll_writer *writer, struct roll_err *err)
{
	char old_folder[ROLL_FOLDER_SIZE];
	enum roll_status status;

	if (!writer->next || writer->txn.is_open || roll_view_is_reading(writer->view))
		return roll_err_set(err, ROLL_EBUSY, writer->dir, "%s",
				    writer->next ? "a transaction is open"
						 : "no rebuild is going on");
	status = check_complete(writer, err);
	if (!status)
		status = roll_env_settle(writer->next, err);
	if (!status)
		status = roll_dir_swap(writer->dir, writer->next_folder, err);
	if (status)
		return status;
	memcpy(old_folder, writer->current_folder, sizeof old_folder);
	roll_view_attach(writer->view, NULL);
	if (writer->current) {
		roll_env_supersede(writer->current);
		roll_env_close(writer->current);
	} else if (old_folder[0]) {
		char *path = roll_dir_path(writer->dir, old_folder);

		if (path)
			roll_env_supersede_path(path);
		free(path);
	}
	if (old_folder[0])
		roll_dir_remove_folder(writer->dir, old_folder);
	writer->current = writer->next;
	writer->next = NULL;
	memcpy(writer->current_folder, writer->next_folder, sizeof writer->current_folder);
	roll_view_attach(writer->view, writer->current);
	return ROLL_OK;
}

/* --- open and close --- */

/*
 * Open what is current. *is_usable false: there is nothing, or nothing that can be gone on with;
 * writer->current is then set only if it can at least be read.
 */
static enum roll_status open_current(struct roll_writer *writer, bool *is_usable,
				     struct roll_err *err)
{
	struct roll_snap *snap;
	enum roll_status status;
	char *path;

	*is_usable = false;
	status = roll_dir_current(writer->dir, writer->current_folder, err);
	if (status) {
		writer->current_folder[0] = '\0';
		return status == ROLL_ENOTREADY || status == ROLL_ECORRUPT ? ROLL_OK : status;
	}
	path = roll_dir_path(writer->dir, writer->current_folder);
	if (!path)
		return roll_err_set(err, ROLL_ENOMEM, writer->dir, "no memory");
	status = roll_env_open(path, ROLL_ENV_WRITE, 0, &writer->current, err);
	free(path);
	if (status)
		return status == ROLL_ECORRUPT || status == ROLL_EVERSION || status == ROLL_ENOENT
			       ? ROLL_OK
			       : status;
	roll_view_attach(writer->view, writer->current);
	if (roll_snap_begin(writer->view, true, &snap, NULL))
		return ROLL_OK;
	*is_usable = roll_str_eq_c(roll_snap_head(snap)->controller, writer->controller);
	roll_snap_end(snap);
	return ROLL_OK;
}

static enum roll_status fill_writer(struct roll_writer *writer, const struct roll_writer_conf *conf,
				    struct roll_err *err)
{
	writer->guard_fd = -1;
	writer->lock_fd = -1;
	writer->clock = conf->clock;
	writer->map_bytes = conf->map_bytes ? conf->map_bytes : ROLL_MAP_BYTES;
	writer->dir = strdup(conf->dir);
	writer->controller = strdup(conf->controller);
	if (!writer->dir || !writer->controller || roll_view_new_borrowed(&writer->view) ||
	    roll_txn_init(&writer->txn, writer))
		return roll_err_set(err, ROLL_ENOMEM, conf->dir, "no memory");
	return ROLL_OK;
}

enum roll_status roll_writer_open(const struct roll_writer_conf *conf, struct roll_writer **out,
				  bool *is_fresh, struct roll_err *err)
{
	struct roll_writer *writer = calloc(1, sizeof *writer);
	bool is_usable = false;
	enum roll_status status;

	if (!writer)
		return roll_err_set(err, ROLL_ENOMEM, conf->dir, "no memory");
	status = fill_writer(writer, conf, err);
	if (!status && mkdir(conf->dir, DIR_MODE) && errno != EEXIST)
		status = roll_err_errno(err, errno == EACCES ? ROLL_EDENIED : ROLL_EIO, errno,
					conf->dir, "the directory cannot be made");
	if (!status)
		status = roll_dir_guard(conf->dir, &writer->guard_fd, err);
	if (!status)
		status = roll_dir_lock(conf->dir, &writer->lock_fd, err);
	if (!status)
		status = open_current(writer, &is_usable, err);
	if (!status)
		roll_dir_clean(writer->dir, writer->current_folder);
	if (!status && !is_usable)
		status = roll_writer_rebuild(writer, err);
	if (status) {
		roll_writer_close(writer);
		return status == ROLL_ENOENT ? ROLL_EIO : status;
	}
	*is_fresh = !is_usable;
	*out = writer;
	return ROLL_OK;
}

void roll_writer_close(struct roll_writer *writer)
{
	if (!writer)
		return;
	roll_txn_fini(&writer->txn);
	drop_rebuild(writer);
	roll_view_free(writer->view);
	roll_env_close(writer->current);
	if (writer->lock_fd >= 0)
		close(writer->lock_fd);
	if (writer->guard_fd >= 0)
		close(writer->guard_fd);
	free(writer->prepared);
	free(writer->dir);
	free(writer->controller);
	free(writer);
}

struct roll_view *roll_writer_view(struct roll_writer *writer)
{
	return writer->view;
}

enum roll_status roll_writer_grow(struct roll_writer *writer, struct roll_err *err)
{
	enum roll_status status;

	if (writer->txn.is_open || roll_view_is_reading(writer->view))
		return roll_err_set(err, ROLL_EBUSY, writer->dir, "a transaction is open");
	if (writer->next)
		return roll_env_grow(writer->next, err);
	if (!writer->current)
		return roll_writer_reopen(writer, err);
	/* The map moves, and nothing may be left that points into it. */
	roll_view_attach(writer->view, NULL);
	status = roll_env_grow(writer->current, err);
	roll_view_attach(writer->view, writer->current);
	return status;
}

/*
 * After a root page could not be written LMDB trusts the environment no more (MDB_PANIC), though
 * the file is sound: opened again, it has the state before.
 */
enum roll_status roll_writer_reopen(struct roll_writer *writer, struct roll_err *err)
{
	char *path;
	enum roll_status status;

	if (writer->next || roll_view_is_reading(writer->view))
		return roll_err_set(err, ROLL_EIO, writer->dir, "the view must be opened again");
	path = roll_dir_path(writer->dir, writer->current_folder);
	if (!path)
		return roll_err_set(err, ROLL_ENOMEM, writer->dir, "no memory");
	roll_view_attach(writer->view, NULL);
	roll_env_close(writer->current);
	writer->current = NULL;
	status = roll_env_open(path, ROLL_ENV_WRITE, 0, &writer->current, err);
	free(path);
	if (status)
		return status == ROLL_ENOENT ? ROLL_ECORRUPT : status;
	roll_view_attach(writer->view, writer->current);
	return ROLL_OK;
}

void roll_writer_mark_damaged(const struct roll_writer *writer)
{
	if (writer->current && !writer->next)
		roll_env_mark_damaged(writer->current);
}

void roll_writer_check_readers(struct roll_writer *writer)
{
	int dead;

	if (writer->current)
		(void)mdb_reader_check(writer->current->mdb, &dead);
}
