/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/tempview.h"

/*
 * The view as files: what is not one, what becomes of it, and several processes at it. Processes
 * are made before anybody opens a view, since LMDB must not be carried across a fork.
 */

static int setup(void **state)
{
	struct tempview *tv = test_calloc(1, sizeof *tv);

	tempview_init(tv);
	*state = tv;
	return 0;
}

static int teardown(void **state)
{
	struct tempview *tv = *state;

	tempview_fini(tv);
	test_free(tv);
	return 0;
}

static struct roll_view *new_view(const struct tempview *tv)
{
	struct roll_view *view;

	assert_int_equal(roll_view_new(tv->dir, &view, NULL), ROLL_OK);
	return view;
}

static enum roll_status begin_status(struct roll_view *view, struct roll_err *err)
{
	struct roll_snap *snap;
	enum roll_status status = roll_snap_begin(view, true, &snap, err);

	if (!status)
		roll_snap_end(snap);
	return status;
}

static bool has_zone(struct roll_view *view, const char *domain)
{
	struct roll_name apex = tempview_name(domain);
	const struct roll_zone *zone;
	struct roll_snap *snap;
	enum roll_status status;

	assert_int_equal(roll_snap_begin(view, true, &snap, NULL), ROLL_OK);
	status = roll_snap_zone_at(snap, &apex, &zone);
	roll_snap_end(snap);
	assert_true(status == ROLL_OK || status == ROLL_ENOENT);
	return status == ROLL_OK;
}

static void put_zone(struct tempview *tv, const char *key, const char *domain)
{
	struct roll_txn *txn = tempview_begin(tv);

	tempview_put_class(txn, "cls", "ours", "ns1.test", 0);
	tempview_put_zone(txn, key, 1, domain, "cls");
	tempview_commit(txn);
}

static void finish(struct tempview *tv)
{
	struct roll_txn *txn = tempview_begin(tv);

	roll_txn_set_complete(txn, tv->wall_ms);
	tempview_commit(txn);
	assert_int_equal(roll_writer_finish(tv->writer, NULL), ROLL_OK);
}

static void path_of(const struct tempview *tv, const char *entry, char out[256])
{
	snprintf(out, 256, "%s/%s", tv->dir, entry);
}

static bool exists(const struct tempview *tv, const char *entry)
{
	char path[256];
	struct stat st;

	path_of(tv, entry, path);
	return lstat(path, &st) == 0;
}

/* --- appearing, swapping --- */

static void a_view_that_is_not_there_is_not_ready_and_is_found_when_it_appears(void **state)
{
	struct tempview *tv = *state;
	struct roll_view *view;
	struct roll_err err;

	/* Not even the folder. */
	assert_int_equal(rmdir(tv->dir), 0);
	view = new_view(tv);
	assert_int_equal(begin_status(view, &err), ROLL_ENOTREADY);
	assert_true(strlen(err.text) > 0);
	assert_true(tempview_open(tv));
	assert_true(roll_writer_is_rebuilding(tv->writer));
	put_zone(tv, "a/z", "example.com");
	assert_int_equal(begin_status(view, &err), ROLL_ENOTREADY);
	assert_int_equal(roll_writer_finish(tv->writer, &err), ROLL_EINVAL);
	assert_int_equal(begin_status(view, &err), ROLL_ENOTREADY);
	finish(tv);
	assert_false(roll_writer_is_rebuilding(tv->writer));
	assert_true(has_zone(view, "example.com"));
	put_zone(tv, "a/y", "example.org");
	assert_true(has_zone(view, "example.org"));
	roll_view_free(view);
}

static void a_rebuild_changes_nothing_until_it_is_finished_and_then_everything(void **state)
{
	struct tempview *tv = *state;
	struct roll_view *view = new_view(tv);
	struct roll_name apex = tempview_name("example.com");
	const struct roll_zone *zone;
	struct roll_snap *snap;
	uint32_t id, serial;

	tempview_make(tv);
	put_zone(tv, "a/z", "example.com");
	assert_int_equal(roll_snap_begin(view, true, &snap, NULL), ROLL_OK);
	assert_int_equal(roll_snap_zone_at(snap, &apex, &zone), ROLL_OK);
	id = zone->id;
	serial = zone->serial;
	roll_snap_end(snap);

	assert_int_equal(roll_writer_rebuild(tv->writer, NULL), ROLL_OK);
	put_zone(tv, "b/y", "example.org");
	assert_true(has_zone(view, "example.com"));
	assert_false(has_zone(view, "example.org"));
	assert_true(has_zone(roll_writer_view(tv->writer), "example.com"));
	finish(tv);
	assert_true(has_zone(view, "example.org"));
	assert_false(has_zone(view, "example.com"));
	assert_true(has_zone(roll_writer_view(tv->writer), "example.org"));
	assert_false(exists(tv, "v1"));
	assert_true(exists(tv, "v2"));

	/* Ids and serials outlive it. */
	put_zone(tv, "a/z", "example.com");
	assert_int_equal(roll_snap_begin(view, true, &snap, NULL), ROLL_OK);
	assert_int_equal(roll_snap_zone_at(snap, &apex, &zone), ROLL_OK);
	assert_int_equal(zone->id, id);
	assert_true(roll_serial_gt(zone->serial, serial));
	roll_snap_end(snap);
	roll_view_free(view);
}

static void an_unfinished_rebuild_is_dropped(void **state)
{
	struct tempview *tv = *state;

	tempview_make(tv);
	put_zone(tv, "a/z", "example.com");
	assert_int_equal(roll_writer_rebuild(tv->writer, NULL), ROLL_OK);
	assert_true(exists(tv, "v2"));
	tempview_close(tv);
	assert_false(exists(tv, "v2"));
	assert_false(tempview_open(tv));
	assert_true(has_zone(roll_writer_view(tv->writer), "example.com"));
}

static void what_a_killed_writer_left_is_cleared_away(void **state)
{
	struct tempview *tv = *state;
	struct roll_view *view = new_view(tv);
	char from[256], to[256], link[256];

	tempview_make(tv);
	put_zone(tv, "a/z", "example.com");
	assert_true(has_zone(view, "example.com"));
	tempview_close(tv);
	/*
	 * As if it had died between the swap and the mark: v1 is what is read, v2 is current. And a
	 * rebuild that was hardly begun, with garbage in it.
	 */
	tempview_open(tv);
	assert_int_equal(roll_writer_rebuild(tv->writer, NULL), ROLL_OK);
	put_zone(tv, "b/z", "example.org");
	path_of(tv, "v1", from);
	path_of(tv, "saved", to);
	assert_int_equal(rename(from, to), 0);
	finish(tv);
	assert_int_equal(rename(to, from), 0);
	tempview_close(tv);
	path_of(tv, "v9", to);
	assert_int_equal(mkdir(to, 0700), 0);
	path_of(tv, "v9/data.mdb", link);
	close(open(link, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_false(tempview_open(tv));
	assert_false(exists(tv, "v1"));
	assert_false(exists(tv, "v9"));
	assert_true(has_zone(view, "example.org"));
	roll_view_free(view);
}

static void poll_notices_a_new_view_without_the_mark(void **state)
{
	struct tempview *tv = *state;
	struct roll_view *view = new_view(tv);
	char from[256], to[256];

	tempview_make(tv);
	put_zone(tv, "a/z", "example.com");
	assert_true(has_zone(view, "example.com"));
	tempview_close(tv);
	/* The old one out of the way, so that nobody can mark it. */
	path_of(tv, "v1", from);
	path_of(tv, "away", to);
	assert_int_equal(rename(from, to), 0);
	assert_true(tempview_open(tv));
	put_zone(tv, "b/z", "example.org");
	finish(tv);
	roll_view_poll(view);
	assert_true(has_zone(view, "example.org"));
	roll_view_free(view);
}

static void a_view_of_another_controller_is_rebuilt(void **state)
{
	struct tempview *tv = *state;
	struct roll_writer_conf conf = {tv->dir, "theirs", &tv->clock, 0};
	struct roll_view *view = new_view(tv);
	bool is_fresh;

	tempview_make(tv);
	put_zone(tv, "a/z", "example.com");
	tempview_close(tv);
	assert_int_equal(roll_writer_open(&conf, &tv->writer, &is_fresh, NULL), ROLL_OK);
	assert_true(is_fresh);
	/* Served on until there is another. */
	assert_true(has_zone(view, "example.com"));
	roll_view_free(view);
}

/* --- damage --- */

enum damage { CUT_SHORT, EMPTY, GARBAGE, TEXT, NO_FILE, NO_FOLDER, MARKED, DAMAGES };

static void damage_view(const struct tempview *tv, enum damage damage)
{
	char data[256], folder[256], junk[65536];
	int fd;

	path_of(tv, "v1", folder);
	path_of(tv, "v1/data.mdb", data);
	memset(junk, 0xa5, sizeof junk);
	fd = open(data, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	switch (damage) {
	case CUT_SHORT:
		assert_int_equal(ftruncate(fd, 3 * 4096), 0);
		break;
	case EMPTY:
		assert_int_equal(ftruncate(fd, 0), 0);
		break;
	case GARBAGE:
		assert_int_equal(pwrite(fd, junk, sizeof junk, 0), sizeof junk);
		break;
	case TEXT:
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, "hello\n", 6, 0), 6);
		break;
	case NO_FILE:
		unlink(data);
		break;
	case NO_FOLDER:
		tempview_remove_all(folder);
		break;
	case MARKED:
		path_of(tv, "v1/damaged", data);
		close(fd);
		fd = open(data, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		break;
	case DAMAGES:
		break;
	}
	close(fd);
}

static void a_damaged_view_is_refused_and_rebuilt_beside_it(void **state)
{
	(void)state;
	for (int damage = 0; damage < DAMAGES; damage++) {
		struct tempview tv;
		struct roll_view *view;
		struct roll_err err = {.code = ROLL_OK};

		tempview_init(&tv);
		tempview_make(&tv);
		put_zone(&tv, "a/z", "example.com");
		tempview_close(&tv);
		damage_view(&tv, (enum damage)damage);
		view = new_view(&tv);
		/* Twice: the second time from memory. */
		for (int i = 0; i < 2; i++) {
			assert_int_equal(begin_status(view, &err), ROLL_ECORRUPT);
			assert_int_equal(err.code, ROLL_ECORRUPT);
			assert_true(strlen(err.text) > 10);
		}
		assert_true(tempview_open(&tv));
		assert_int_equal(begin_status(view, &err), ROLL_ECORRUPT);
		put_zone(&tv, "a/z", "example.com");
		finish(&tv);
		assert_true(has_zone(view, "example.com"));
		roll_view_free(view);
		tempview_fini(&tv);
	}
}

/* The format number in the head, wherever in the file; LMDB has no checksums. */
static void patch_format(const struct tempview *tv)
{
	const char head[] = {'h', 'e', 'a', 'd', ROLL_VIEW_FORMAT, 0, 0, 0};
	const char controller[] = {4, 0, 'o', 'u', 'r', 's', 0, 0};
	const char other = ROLL_VIEW_FORMAT - 1;
	char path[256], *bytes;
	struct stat st;
	int fd, found = 0;

	path_of(tv, "v1/data.mdb", path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	/* The rest is a hole. */
	if (st.st_size > 1 << 20)
		st.st_size = 1 << 20;
	bytes = malloc((size_t)st.st_size);
	assert_non_null(bytes);
	assert_int_equal(pread(fd, bytes, (size_t)st.st_size, 0), st.st_size);
	/* "head" is the key right before its value, which begins with the format. */
	for (off_t i = 0; i + 100 < st.st_size; i++) {
		if (memcmp(bytes + i, head, sizeof head) == 0 &&
		    memmem(bytes + i, 100, controller, sizeof controller)) {
			assert_int_equal(pwrite(fd, &other, 1, i + 4), 1);
			found++;
		}
	}
	assert_true(found > 0);
	free(bytes);
	close(fd);
}

static void a_view_of_another_format_is_refused_and_rebuilt(void **state)
{
	struct tempview *tv = *state;
	struct roll_view *view = new_view(tv);
	struct roll_err err;

	tempview_make(tv);
	put_zone(tv, "a/z", "example.com");
	tempview_close(tv);
	patch_format(tv);
	assert_int_equal(begin_status(view, &err), ROLL_EVERSION);
	assert_non_null(strstr(err.text, "format 2"));
	assert_true(tempview_open(tv));
	assert_int_equal(begin_status(view, &err), ROLL_EVERSION);
	put_zone(tv, "a/z", "example.com");
	finish(tv);
	assert_true(has_zone(view, "example.com"));
	roll_view_free(view);
}

static void an_incomplete_view_is_shown_only_to_those_who_ask(void **state)
{
	struct tempview *tv = *state;
	struct roll_view *view = new_view(tv);
	struct roll_snap *snap;
	struct roll_txn *txn;

	tempview_make(tv);
	txn = tempview_begin(tv);
	roll_txn_set_complete(txn, 0);
	tempview_commit(txn);
	assert_int_equal(begin_status(view, NULL), ROLL_ENOTREADY);
	assert_int_equal(roll_snap_begin(view, false, &snap, NULL), ROLL_OK);
	assert_int_equal(roll_snap_head(snap)->complete_since_ms, 0);
	roll_snap_end(snap);
	roll_view_free(view);
}

/* --- locks --- */

static void a_second_writer_is_refused_with_the_pid_of_the_first(void **state)
{
	struct tempview *tv = *state;
	struct roll_writer_conf conf = {tv->dir, "ours", &tv->clock, 0};
	struct roll_writer *second;
	struct roll_err err;
	char pid[32];
	bool is_fresh;

	tempview_make(tv);
	assert_int_equal(roll_writer_open(&conf, &second, &is_fresh, &err), ROLL_EBUSY);
	snprintf(pid, sizeof pid, "pid %ld", (long)getpid());
	assert_non_null(strstr(err.text, pid));
}

static void another_pid_namespace_is_refused_while_somebody_is_at_the_view(void **state)
{
	struct tempview *tv = *state;
	char path[256], text[64] = "";
	struct roll_view *view;
	struct roll_err err;
	int fd;

	/* Somebody of another namespace: the file says so, and is held. */
	path_of(tv, "pidns", path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "pid:[1]", 7), 7);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	assert_int_equal(roll_view_new(tv->dir, &view, &err), ROLL_EBUSY);
	assert_non_null(strstr(err.text, "shareProcessNamespace: true"));
	assert_non_null(strstr(err.text, "pid:[1]"));
	/* When it is gone, what the file says is history. */
	close(fd);
	assert_int_equal(roll_view_new(tv->dir, &view, &err), ROLL_OK);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof text - 1) > 0);
	assert_non_null(strstr(text, "pid:["));
	assert_null(strstr(text, "pid:[1]"));
	/* Ours is held now. */
	assert_int_not_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	close(fd);
	roll_view_free(view);
}

/* --- several processes --- */

static void wait_for(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static enum roll_status count_row(void *ctx, const struct roll_row *row)
{
	(void)row;
	++*(unsigned *)ctx;
	return ROLL_OK;
}

/* In a PID namespace of its own, as in a container; the exit code is the status. 77: not allowed.
 */
static int view_from_elsewhere(const char *dir)
{
	int status = 0;
	pid_t pid;

	if (unshare(CLONE_NEWPID))
		return 77;
	pid = fork();
	if (pid == 0) {
		struct roll_view *view;

		_exit(-(int)roll_view_new(dir, &view, NULL));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 78;
	return WEXITSTATUS(status);
}

static int run_elsewhere(const char *dir)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(view_from_elsewhere(dir));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void a_process_of_another_pid_namespace_is_refused_while_we_read(void **state)
{
	struct tempview *tv = *state;
	struct roll_view *view;
	int code;

	view = new_view(tv);
	code = run_elsewhere(tv->dir);
	roll_view_free(view);
	if (code == 77)
		skip();
	assert_int_equal(code, -ROLL_EBUSY);
	/* Alone it takes the view over, and so do we after it. */
	assert_int_equal(run_elsewhere(tv->dir), 0);
	view = new_view(tv);
	roll_view_free(view);
}

/*
 * A reader that reads all the time, until it sees the name `last`: names never become fewer, and no
 * read fails. The exit code tells.
 */
static int read_until_last(const char *dir, int ready)
{
	struct roll_name apex = tempview_name("example.com");
	struct roll_name last = tempview_name("last.example.com");
	unsigned before = 0;
	struct roll_view *view;

	if (roll_view_new(dir, &view, NULL))
		return 10;
	for (bool told = false;;) {
		const struct roll_zone *zone;
		struct roll_snap *snap;
		unsigned rows = 0;
		enum roll_status status = roll_snap_begin(view, true, &snap, NULL);

		if (status == ROLL_ENOTREADY)
			continue;
		if (status)
			return 11;
		status = roll_snap_zone_at(snap, &apex, &zone);
		if (!status)
			status = roll_snap_list(snap, zone, count_row, &rows);
		if (status && status != ROLL_ENOENT)
			return 12;
		if (rows < before)
			return 13;
		before = rows;
		rows = 0;
		if (!status &&
		    !roll_snap_lookup(snap, zone, &last, ROLL_TYPE_A, count_row, &rows) && rows)
			break;
		roll_snap_end(snap);
		if (!told && write(ready, "x", 1) != 1)
			return 14;
		told = true;
	}
	roll_view_free(view);
	return 0;
}

static void a_reader_follows_the_map_as_it_grows(void **state)
{
	struct tempview *tv = *state;
	const struct roll_writer_conf conf = {tv->dir, "ours", &tv->clock, (size_t)1 << 20};
	struct roll_txn *txn;
	bool is_fresh;
	char byte;
	int ready[2];
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(read_until_last(tv->dir, ready[1]));
	assert_int_equal(roll_writer_open(&conf, &tv->writer, &is_fresh, NULL), ROLL_OK);
	finish(tv);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	put_zone(tv, "a/z", "example.com");
	for (int i = 0; i < 300; i++) {
		char key[32], spec[512];

		txn = tempview_begin(tv);
		for (int j = 0; j < 20; j++) {
			snprintf(key, sizeof key, "a/r%d-%d", i, j);
			snprintf(spec, sizeof spec, "TXT n%d-%d=%0200d", i, j, i);
			tempview_put_recordset(txn, key, 1, "a/z", spec, 1);
		}
		tempview_commit(txn);
	}
	txn = tempview_begin(tv);
	tempview_put_recordset(txn, "a/last", 1, "a/z", "A last=1", 1);
	tempview_commit(txn);
	wait_for(pid);
	close(ready[0]);
	close(ready[1]);
}

static void on_damage(void *ctx, const char *table, struct roll_str key, const char *what)
{
	print_message("# damage in %s at %.*s: %s\n", table, (int)key.n, key.p, what);
	++*(int *)ctx;
}

/* A writer that changes, sweeps, grows and rebuilds for ever, one pair of names at a time. */
static void write_for_ever(struct tempview *tv, unsigned seed, int started)
{
	bool is_fresh = tempview_open(tv), more;

	for (unsigned i = 0;; i++) {
		struct roll_txn *txn;
		char spec[64];

		if (is_fresh || (i + seed) % 37 == 0) {
			if (!is_fresh && roll_writer_rebuild(tv->writer, NULL))
				_exit(1);
			put_zone(tv, "a/z", "example.com");
		}
		/* Both names or none, and the position with them. */
		snprintf(spec, sizeof spec, "A left%u=1 right%u=1", i % 50, i % 50);
		txn = tempview_begin(tv);
		tempview_put_recordset(txn, "a/r", 1, "a/z", spec, i);
		snprintf(spec, sizeof spec, "%u", i % 50);
		roll_txn_set_position(txn, roll_str_c("p"), roll_str_c(spec));
		if (i % 3 == 0) {
			tempview_put_zone(txn, "a/y", 1, i % 2 ? "example.org" : "example.net",
					  "cls");
			tempview_put_recordset(txn, "a/s", 1, "a/y",
					       spec[0] % 2 ? "A a=1" : "A b=1", i);
		}
		roll_txn_sweep(txn, 3, &more);
		tempview_commit(txn);
		if (roll_writer_is_rebuilding(tv->writer)) {
			txn = tempview_begin(tv);
			roll_txn_set_complete(txn, 1);
			tempview_commit(txn);
			if (roll_writer_finish(tv->writer, NULL))
				_exit(1);
			is_fresh = false;
		}
		if (i == 0 && write(started, "x", 1) != 1)
			_exit(1);
	}
}

static void check_after_kill(struct tempview *tv)
{
	struct roll_name apex = tempview_name("example.com");
	const struct roll_zone *zone;
	struct roll_snap *snap;
	struct roll_txn *txn;
	struct roll_buf position;
	unsigned rows = 0;
	int damages = 0;

	assert_false(tempview_open(tv));
	txn = tempview_begin(tv);
	roll_buf_init(&position, 100);
	assert_int_equal(roll_txn_position(txn, roll_str_c("p"), &position), ROLL_OK);
	snap = roll_txn_snap(txn);
	assert_int_equal(roll_snap_scrub(snap, on_damage, &damages), ROLL_OK);
	assert_int_equal(damages, 0);
	assert_int_equal(roll_snap_zone_at(snap, &apex, &zone), ROLL_OK);
	for (int side = 0; side < 2; side++) {
		struct roll_name name;
		char text[64];

		snprintf(text, sizeof text, "%s%s.example.com", side ? "right" : "left",
			 position.p);
		name = tempview_name(text);
		assert_int_equal(roll_snap_lookup(snap, zone, &name, ROLL_TYPE_A, count_row, &rows),
				 ROLL_OK);
	}
	assert_int_equal(rows, 2);
	rows = 0;
	assert_int_equal(roll_snap_list(snap, zone, count_row, &rows), ROLL_OK);
	assert_int_equal(rows, 4); /* SOA, NS and the pair */
	roll_buf_fini(&position);
	roll_txn_abort(txn);
	tempview_close(tv);
}

static void a_writer_killed_at_any_instant_leaves_a_view_that_is_whole(void **state)
{
	struct tempview *tv = *state;

	for (unsigned round = 0; round < 30; round++) {
		int started[2], status;
		char byte;
		pid_t pid;

		assert_int_equal(pipe(started), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			write_for_ever(tv, round, started[1]);
		assert_int_equal(read(started[0], &byte, 1), 1);
		/* An instant that differs from round to round; nothing is waited for. */
		(void)poll(NULL, 0, (int)(round * 7 % 30));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		close(started[0]);
		close(started[1]);
		check_after_kill(tv);
	}
}

static void slots_of_killed_readers_are_freed(void **state)
{
	struct tempview *tv = *state;
	struct roll_view *view;

	tempview_make(tv);
	put_zone(tv, "a/z", "example.com");
	tempview_close(tv);
	/* More than there are slots. */
	for (int i = 0; i < 600; i++) {
		int status;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			struct roll_snap *snap;

			if (roll_view_new(tv->dir, &view, NULL) ||
			    roll_snap_begin(view, true, &snap, NULL))
				_exit(1);
			kill(getpid(), SIGKILL);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		if (i == 0) {
			/* Somebody has to stay, or the table begins anew. */
			view = new_view(tv);
			assert_true(has_zone(view, "example.com"));
			roll_view_free(view);
		}
	}
	assert_false(tempview_open(tv));
	roll_writer_check_readers(tv->writer);
	put_zone(tv, "a/y", "example.org");
	assert_true(has_zone(roll_writer_view(tv->writer), "example.org"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(a_view_that_is_not_there_is_not_ready_and_is_found_when_it_appears),
		TEST(a_rebuild_changes_nothing_until_it_is_finished_and_then_everything),
		TEST(an_unfinished_rebuild_is_dropped),
		TEST(what_a_killed_writer_left_is_cleared_away),
		TEST(poll_notices_a_new_view_without_the_mark),
		TEST(a_view_of_another_controller_is_rebuilt),
		TEST(a_damaged_view_is_refused_and_rebuilt_beside_it),
		TEST(a_view_of_another_format_is_refused_and_rebuilt),
		TEST(an_incomplete_view_is_shown_only_to_those_who_ask),
		TEST(a_second_writer_is_refused_with_the_pid_of_the_first),
		TEST(another_pid_namespace_is_refused_while_somebody_is_at_the_view),
		TEST(a_process_of_another_pid_namespace_is_refused_while_we_read),
		TEST(a_reader_follows_the_map_as_it_grows),
		TEST(a_writer_killed_at_any_instant_leaves_a_view_that_is_whole),
		TEST(slots_of_killed_readers_are_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
