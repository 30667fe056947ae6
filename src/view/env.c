/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "view/view.h"

/*
 * One LMDB environment: a generation folder with data.mdb and lock.mdb.
 *
 * Durability. The writer runs with MDB_NOMETASYNC: a commit syncs its pages, but not the root page
 * that points to them; that is synced by the next commit. After a power failure the last commit may
 * be missing. That is harmless here, because the position of the source is in the same commit: data
 * and position fall back together and the change is read again. What would not be harmless is a
 * file in which pages are missing that its root refers to, so MDB_NOSYNC is out of the question,
 * except for a view that nobody uses yet: a rebuild is synced as a whole before it becomes current.
 *
 * File size. LMDB's map is larger than the file, and touching a page behind the file's end is
 * SIGBUS. The writer therefore makes the file as long as the map (a hole: no blocks are used), and
 * whoever opens it checks that the file holds every page that the root knows of, before any page
 * is touched.
 */

/* Readers are a handful; slots of killed ones are freed, but perhaps late. */
#define READERS_MAX 512

#define FILE_MODE 0660

enum roll_status roll_mdb_status(int rc)
{
	switch (rc) {
	case MDB_SUCCESS:
		return ROLL_OK;
	case MDB_NOTFOUND:
		return ROLL_ENOENT;
	case MDB_KEYEXIST:
		return ROLL_EEXIST;
	case MDB_MAP_FULL:
		return ROLL_EFULL;
	case MDB_READERS_FULL:
		return ROLL_EBUSY;
	case MDB_BAD_VALSIZE:
	case MDB_TXN_FULL:
		return ROLL_ELIMIT;
	case MDB_PAGE_NOTFOUND:
	case MDB_CORRUPTED:
	case MDB_INVALID:
	case MDB_VERSION_MISMATCH:
	case MDB_INCOMPATIBLE:
	case MDB_CURSOR_FULL:
		return ROLL_ECORRUPT;
	case ENOMEM:
		return ROLL_ENOMEM;
	case ENOENT:
		return ROLL_ENOENT;
	case EACCES:
	case EPERM:
	case EROFS:
		return ROLL_EDENIED;
	default:
		return ROLL_EIO;
	}
}

enum roll_status roll_mdb_err(struct roll_err *err, int rc, const char *where, const char *what)
{
	return roll_err_set(err, roll_mdb_status(rc), where, "%s: %s", what, mdb_strerror(rc));
}

const char *const roll_table_names[ROLL_TABLE_COUNT] = {
	[ROLL_TABLE_META] = "meta",	    [ROLL_TABLE_OBJECTS] = "objects",
	[ROLL_TABLE_BYZONE] = "byzone",	    [ROLL_TABLE_BYSCOPE] = "byscope",
	[ROLL_TABLE_CLASSES] = "classes",   [ROLL_TABLE_DOMAINS] = "domains",
	[ROLL_TABLE_IDS] = "ids",	    [ROLL_TABLE_DZONES] = "dzones",
	[ROLL_TABLE_NAMES] = "names",	    [ROLL_TABLE_GONE] = "gone",
	[ROLL_TABLE_REMOVALS] = "removals", [ROLL_TABLE_STAGE] = "stage",
};

static enum roll_status file_bytes(MDB_env *mdb, uint64_t *out)
{
	struct stat st;
	int fd;

	if (mdb_env_get_fd(mdb, &fd) || fstat(fd, &st))
		return ROLL_EIO;
	*out = (uint64_t)st.st_size;
	return ROLL_OK;
}

static uint64_t page_bytes(MDB_env *mdb)
{
	MDB_stat stat;

	return mdb_env_stat(mdb, &stat) ? 0 : stat.ms_psize;
}

static enum roll_status check_length(MDB_env *mdb, const char *path, struct roll_err *err)
{
	MDB_envinfo info;
	uint64_t have, want;

	if (mdb_env_info(mdb, &info) || file_bytes(mdb, &have))
		return roll_err_errno(err, ROLL_EIO, errno, path,
				      "the size of data.mdb is unknown");
	if (__builtin_mul_overflow((uint64_t)info.me_last_pgno + 1, page_bytes(mdb), &want) ||
	    have < want)
		return roll_err_set(err, ROLL_ECORRUPT, path,
				    "data.mdb is cut short: it has %llu bytes, %llu are in use",
				    (unsigned long long)have, (unsigned long long)want);
	return ROLL_OK;
}

static enum roll_status fill_map(MDB_env *mdb, const char *path, struct roll_err *err)
{
	MDB_envinfo info;
	uint64_t have;
	int fd;

	if (mdb_env_info(mdb, &info) || mdb_env_get_fd(mdb, &fd) || file_bytes(mdb, &have))
		return roll_err_errno(err, ROLL_EIO, errno, path,
				      "the size of data.mdb is unknown");
	if (have < info.me_mapsize && ftruncate(fd, (off_t)info.me_mapsize))
		return roll_err_errno(err, ROLL_EIO, errno, path,
				      "data.mdb cannot be made %llu bytes",
				      (unsigned long long)info.me_mapsize);
	return ROLL_OK;
}

/* Whether it is a view of our format; the other tables are looked at only if so. */
static enum roll_status check_head(MDB_txn *txn, MDB_dbi meta, const char *path,
				   struct roll_err *err)
{
	const struct roll_at at = {txn, &meta};
	struct roll_key key = roll_key_of("head");
	struct roll_head head;
	struct roll_str bytes;
	enum roll_status status = roll_at_get(&at, ROLL_TABLE_META, &key, &bytes);

	if (status == ROLL_ENOENT)
		return roll_err_set(err, ROLL_ECORRUPT, path, "there is no head: not a view");
	if (status)
		return roll_err_set(err, status, path, "the head cannot be read: %s",
				    roll_status_text(status));
	status = roll_head_decode(bytes, &head);
	if (status == ROLL_EVERSION)
		return roll_err_set(err, status, path,
				    "the view has format %u; this program reads "
				    "and writes format %u",
				    head.format, ROLL_VIEW_FORMAT);
	if (status)
		return roll_err_set(err, status, path, "the head is damaged");
	return ROLL_OK;
}

static enum roll_status open_tables(struct roll_env *env, enum roll_env_mode mode, const char *path,
				    struct roll_err *err)
{
	unsigned create = mode == ROLL_ENV_BUILD ? MDB_CREATE : 0;
	enum roll_status status = ROLL_OK;
	MDB_txn *txn = NULL;
	int rc;

	rc = mdb_txn_begin(env->mdb, NULL, mode == ROLL_ENV_READ ? MDB_RDONLY : 0, &txn);
	if (rc)
		return roll_mdb_err(err, rc, path, "no transaction");
	for (int table = 0; table < ROLL_TABLE_COUNT && !status; table++) {
		const char *name = roll_table_names[table];

		rc = mdb_dbi_open(txn, name, create, &env->dbi[table]);
		if (rc == MDB_NOTFOUND)
			status = roll_err_set(err, ROLL_ECORRUPT, path,
					      "there is no table %s: not a view, or a damaged one",
					      name);
		else if (rc)
			status = roll_mdb_err(err, rc, path, "a table cannot be opened");
		else if (table == ROLL_TABLE_META && !create)
			status = check_head(txn, env->dbi[table], path, err);
	}
	/* Table handles live on only if their transaction, even a reading one, is committed. */
	if (!status) {
		rc = mdb_txn_commit(txn);
		txn = NULL;
		if (rc)
			status = roll_mdb_err(err, rc, path, "the tables cannot be opened");
	}
	if (txn)
		mdb_txn_abort(txn);
	return status;
}

/*
 * Damage inside of the file shows only when its page is met: as an error, or as an assertion of
 * LMDB's, behind which it aborts. Whoever writes the view then leaves a mark, or would meet the
 * same page after every restart.
 */
void roll_env_mark_damaged(const struct roll_env *env)
{
	int fd = env->mark ? open(env->mark, O_WRONLY | O_CREAT | O_CLOEXEC, FILE_MODE) : -1;

	if (fd >= 0)
		close(fd);
}

static void on_assertion(MDB_env *mdb, const char *what)
{
	(void)what; /* LMDB prints it */
	roll_env_mark_damaged(mdb_env_get_userctx(mdb));
}

/* LMDB makes an environment of a file that is not there, or empty. */
static enum roll_status check_file(const char *path, struct roll_err *err)
{
	char *data = roll_dir_path(path, "data.mdb");
	char *mark = roll_dir_path(path, ROLL_DAMAGE_MARK);
	enum roll_status status = ROLL_OK;
	struct stat st;

	if (!data || !mark)
		status = roll_err_set(err, ROLL_ENOMEM, path, "no memory");
	else if (stat(data, &st))
		status = roll_err_errno(err,
					errno == ENOENT || errno == ENOTDIR ? ROLL_ENOENT
					: errno == EACCES		    ? ROLL_EDENIED
									    : ROLL_EIO,
					errno, data, "the view cannot be opened");
	else if (st.st_size == 0)
		status = roll_err_set(err, ROLL_ECORRUPT, path, "data.mdb is empty");
	else if (access(mark, F_OK) == 0)
		status = roll_err_set(err, ROLL_ECORRUPT, path,
				      "data.mdb was found damaged; rollcall-sync makes a new one");
	free(data);
	free(mark);
	return status;
}

enum roll_status roll_env_open(const char *path, enum roll_env_mode mode, size_t map_bytes,
			       struct roll_env **out, struct roll_err *err)
{
	/* Without MDB_NOTLS a slot belongs to a thread; ours belong to transactions. */
	static const unsigned flags[] = {
		[ROLL_ENV_READ] = MDB_RDONLY | MDB_NOTLS,
		[ROLL_ENV_WRITE] = MDB_NOMETASYNC | MDB_NOTLS,
		[ROLL_ENV_BUILD] = MDB_NOSYNC | MDB_NOTLS,
	};
	struct roll_env *env;
	enum roll_status status = mode == ROLL_ENV_BUILD ? ROLL_OK : check_file(path, err);
	int rc;

	if (status)
		return status;
	env = calloc(1, sizeof *env);
	if (!env)
		return roll_err_set(err, ROLL_ENOMEM, path, "no memory");
	rc = mdb_env_create(&env->mdb);
	if (!rc && mode == ROLL_ENV_WRITE) {
		env->mark = roll_dir_path(path, ROLL_DAMAGE_MARK);
		rc = env->mark ? mdb_env_set_userctx(env->mdb, env) : ENOMEM;
		if (!rc)
			rc = mdb_env_set_assert(env->mdb, on_assertion);
	}
	if (!rc)
		rc = mdb_env_set_maxdbs(env->mdb, ROLL_TABLE_COUNT);
	if (!rc)
		rc = mdb_env_set_maxreaders(env->mdb, READERS_MAX);
	if (!rc && mode != ROLL_ENV_READ && map_bytes)
		rc = mdb_env_set_mapsize(env->mdb, map_bytes);
	if (!rc)
		rc = mdb_env_open(env->mdb, path, flags[mode], FILE_MODE);
	if (rc == MDB_INVALID || rc == MDB_VERSION_MISMATCH)
		status = roll_err_set(err, ROLL_ECORRUPT, path,
				      "data.mdb is not a view, or a damaged one: %s",
				      mdb_strerror(rc));
	else if (rc)
		status = roll_mdb_err(err, rc, path, "the view cannot be opened");
	else
		status = check_length(env->mdb, path, err);
	if (!status && mode != ROLL_ENV_READ)
		status = fill_map(env->mdb, path, err);
	if (!status)
		status = open_tables(env, mode, path, err);
	if (status) {
		roll_env_close(env);
		return status;
	}
	*out = env;
	return ROLL_OK;
}

void roll_env_close(struct roll_env *env)
{
	if (!env)
		return;
	if (env->mdb)
		mdb_env_close(env->mdb);
	free(env->mark);
	free(env);
}

enum roll_status roll_env_grow(struct roll_env *env, struct roll_err *err)
{
	MDB_envinfo info;
	size_t bytes;
	int rc = mdb_env_info(env->mdb, &info);

	if (!rc && __builtin_mul_overflow(info.me_mapsize, (size_t)2, &bytes))
		rc = ENOMEM;
	if (!rc)
		rc = mdb_env_set_mapsize(env->mdb, bytes);
	if (rc)
		return roll_mdb_err(err, rc, NULL, "the map cannot grow");
	return fill_map(env->mdb, NULL, err);
}

bool roll_env_is_crowded(const struct roll_env *env)
{
	MDB_envinfo info;

	return !mdb_env_info(env->mdb, &info) &&
	       (uint64_t)info.me_last_pgno * page_bytes(env->mdb) > info.me_mapsize / 2;
}

enum roll_status roll_env_settle(struct roll_env *env, struct roll_err *err)
{
	int rc = mdb_env_sync(env->mdb, 1);

	if (!rc)
		rc = mdb_env_set_flags(env->mdb, MDB_NOMETASYNC, 1);
	if (!rc)
		rc = mdb_env_set_flags(env->mdb, MDB_NOSYNC, 0);
	return rc ? roll_mdb_err(err, rc, NULL, "the new view cannot be synced") : ROLL_OK;
}

/* The mark is the byte behind the format number, in every format. */
#define MARK_AT 4

static int set_mark(MDB_txn *txn, MDB_dbi meta)
{
	char head[2048];
	MDB_val key = {4, (void *)(uintptr_t) "head"}, value;
	int rc;

	rc = mdb_get(txn, meta, &key, &value);
	if (rc)
		return rc;
	if (value.mv_size <= MARK_AT)
		return MDB_CORRUPTED;
	if (value.mv_size > sizeof head)
		return MDB_BAD_VALSIZE;
	memcpy(head, value.mv_data, value.mv_size);
	head[MARK_AT] = 1;
	value.mv_data = head;
	return mdb_put(txn, meta, &key, &value, 0);
}

void roll_env_supersede(struct roll_env *env)
{
	MDB_txn *txn;

	if (mdb_txn_begin(env->mdb, NULL, 0, &txn))
		return;
	if (set_mark(txn, env->dbi[ROLL_TABLE_META]))
		mdb_txn_abort(txn);
	else
		(void)mdb_txn_commit(txn);
}

void roll_env_supersede_path(const char *path)
{
	MDB_env *mdb = NULL;
	MDB_txn *txn = NULL;
	MDB_dbi meta;

	if (check_file(path, NULL))
		return;
	if (mdb_env_create(&mdb))
		return;
	if (mdb_env_set_maxdbs(mdb, ROLL_TABLE_COUNT) || mdb_env_set_maxreaders(mdb, READERS_MAX) ||
	    mdb_env_open(mdb, path, MDB_NOMETASYNC | MDB_NOTLS, FILE_MODE) ||
	    check_length(mdb, path, NULL) || mdb_txn_begin(mdb, NULL, 0, &txn))
		goto out;
	if (!mdb_dbi_open(txn, "meta", 0, &meta) && !set_mark(txn, meta)) {
		(void)mdb_txn_commit(txn);
		txn = NULL;
	}
out:
	if (txn)
		mdb_txn_abort(txn);
	mdb_env_close(mdb);
}
