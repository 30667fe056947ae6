/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "source/folder_state.h"

/*
 * A rename is two events, mostly read together. The second is waited for a moment, so that what it
 * moves does not seem to be gone in between; and longer where an editor has moved a manifest to a
 * backup name, to write a new one in its place.
 */
#define PAIR_MS 10
#define BACKUP_MS 100

#define WATCHED                                                                             \
	(IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | \
	 IN_DELETE_SELF | IN_MOVE_SELF | IN_ATTRIB | IN_ONLYDIR | IN_EXCL_UNLINK)

/* --- watches --- */

static void start_polling(struct roll_folder *folder, int error)
{
	if (!folder->is_polling)
		roll_log(ROLL_WARN, "folder-polled", "reason=\"%s\" remedy=\"raise %s\"",
			 error == ENOSPC ? "no more inotify watches to be had" : strerror(error),
			 error == EMFILE ? "fs.inotify.max_user_instances"
					 : "fs.inotify.max_user_watches");
	folder->is_polling = true;
}

static struct roll_dir *find_dir(struct roll_folder *folder, int wd)
{
	struct roll_dir *dir = NULL;

	HASH_FIND_INT(folder->dirs, &wd, dir);
	return dir;
}

static void drop_dir(struct roll_folder *folder, struct roll_dir *dir)
{
	HASH_DEL(folder->dirs, dir);
	free(dir);
}

void roll_folder_add_watch(struct roll_folder *folder, const char *path)
{
	size_t n = strlen(path), root_n = strlen(folder->root);
	struct roll_dir *dir;
	char *full;
	int wd;

	if (folder->inotify_fd < 0)
		return;
	full = malloc(root_n + n + 2);
	if (!full) {
		start_polling(folder, ENOMEM);
		return;
	}
	snprintf(full, root_n + n + 2, "%s/%s", folder->root, path);
	wd = inotify_add_watch(folder->inotify_fd, full, WATCHED);
	free(full);
	if (wd < 0) {
		if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
			start_polling(folder, errno);
		return;
	}
	dir = find_dir(folder, wd);
	if (dir && dir->path_n == n && memcmp(dir->path, path, n) == 0) {
		dir->scan = folder->scan;
		return;
	}
	if (dir && dir->scan == folder->scan) {
		/* The same folder on two ways: events come for one of them only. */
		start_polling(folder, EEXIST);
		return;
	}
	if (dir)
		drop_dir(folder, dir); /* it was moved here */
	dir = calloc(1, sizeof *dir + n + 1);
	if (!dir) {
		start_polling(folder, ENOMEM);
		return;
	}
	dir->wd = wd;
	dir->scan = folder->scan;
	dir->path_n = n;
	memcpy(dir->path, path, n);
	HASH_ADD_INT(folder->dirs, wd, dir);
}

void roll_folder_drop_watches(struct roll_folder *folder, const char *prefix)
{
	size_t n = strlen(prefix);
	struct roll_dir *dir, *next;

	HASH_ITER (hh, folder->dirs, dir, next) {
		if (dir->scan == folder->scan || dir->path_n < n ||
		    memcmp(dir->path, prefix, n) != 0)
			continue;
		inotify_rm_watch(folder->inotify_fd, dir->wd);
		drop_dir(folder, dir);
	}
}

/* --- events --- */

void roll_folder_want_scan(struct roll_folder *folder, const char *prefix, int64_t at)
{
	char *copy = NULL;
	size_t i;

	if (at > folder->rescan_at || !folder->rescan_count)
		folder->rescan_at = at;
	for (i = 0; i < folder->rescan_count; i++) {
		if (roll_str_starts(roll_str_c(prefix), folder->rescans[i]))
			return;
	}
	if (folder->rescan_count < sizeof folder->rescans / sizeof *folder->rescans)
		copy = strdup(prefix);
	if (copy) {
		folder->rescans[folder->rescan_count++] = copy;
		return;
	}
	/* Too many to tell apart. */
	folder->must_list_all = true;
}

/* A folder came, went or cannot be told from before. */
static void on_dir_event(struct roll_folder *folder, const struct roll_dir *dir,
			 const struct inotify_event *event)
{
	int64_t now = roll_folder_now();
	char path[PATH_MAX + NAME_MAX + 2];
	bool is_swap = event->name[0] == '.' && event->name[1] == '.';

	/* "..data" is exchanged when a mounted ConfigMap changes; what it is for is beside it. */
	if (is_swap)
		snprintf(path, sizeof path, "%s", dir->path);
	else if (event->name[0] != '.')
		snprintf(path, sizeof path, "%s%s/", dir->path, event->name);
	else
		return;
	if (event->mask & (IN_MOVED_FROM | IN_MOVED_TO))
		now += event->mask & IN_MOVED_FROM ? PAIR_MS : 0;
	else if (!(event->mask & (IN_CREATE | IN_DELETE | IN_ATTRIB)))
		return;
	roll_folder_want_scan(folder, path, now);
}

static void on_created(struct roll_folder *folder, struct roll_file *file)
{
	struct stat own;

	/* Links to files come whole; no writer will close them. */
	if (fstatat(folder->root_fd, file->path, &own, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (S_ISLNK(own.st_mode) || own.st_nlink > 1)) {
		file->is_linked = S_ISLNK(own.st_mode);
		folder->has_links = folder->has_links || file->is_linked;
		return;
	}
	file->is_writing = true;
	file->is_modified = false;
	file->created_ms = roll_folder_now();
}

static void note_move(struct roll_folder *folder, struct roll_file *file, uint32_t cookie)
{
	size_t room = sizeof folder->moves / sizeof *folder->moves;

	if (folder->move_count == room) {
		memmove(folder->moves, folder->moves + 1, (room - 1) * sizeof *folder->moves);
		folder->move_count--;
	}
	folder->moves[folder->move_count++] = (struct roll_move){cookie, file};
}

static struct roll_file *moved_from(struct roll_folder *folder, uint32_t cookie)
{
	size_t i;

	for (i = 0; i < folder->move_count; i++) {
		struct roll_file *file = folder->moves[i].file;

		if (folder->moves[i].cookie == cookie) {
			folder->moves[i].file = NULL;
			return file;
		}
	}
	return NULL;
}

static void on_file_event(struct roll_folder *folder, const struct roll_dir *dir,
			  const struct inotify_event *event)
{
	char path[PATH_MAX + NAME_MAX + 2];
	struct roll_file *file, *from = NULL;
	int64_t now = roll_folder_now();
	bool is_manifest = roll_manifest_is_name(roll_str_c(event->name));

	if (event->mask & IN_MOVED_TO)
		from = moved_from(folder, event->cookie);
	if (from && is_manifest)
		from->hold_until = 0;
	else if (from)
		from->hold_until = now + BACKUP_MS;
	if (!is_manifest)
		return;
	snprintf(path, sizeof path, "%s%s", dir->path, event->name);
	file = roll_folder_file(folder, path, !(event->mask & (IN_DELETE | IN_MOVED_FROM)));
	if (!file) {
		if (!(event->mask & (IN_DELETE | IN_MOVED_FROM)))
			folder->must_list_all = true;
		return;
	}
	roll_folder_mark(folder, file);
	if (event->mask & IN_CREATE)
		on_created(folder, file);
	if (event->mask & IN_MODIFY) {
		file->is_writing = file->is_modified = true;
	} else if (event->mask & (IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM)) {
		file->is_writing = file->is_modified = false;
		file->look = 0; /* it may look the same: clocks of file systems are coarse */
	}
	if (event->mask & IN_MOVED_FROM) {
		file->hold_until = now + PAIR_MS;
		note_move(folder, file, event->cookie);
	}
}

static void on_inotify(struct roll_folder *folder, const struct inotify_event *event)
{
	struct roll_dir *dir;

	if (event->mask & IN_Q_OVERFLOW) {
		roll_log(ROLL_WARN, "inotify-overflow", "reason=\"looking at everything again\"");
		folder->must_list_all = true;
		return;
	}
	dir = find_dir(folder, event->wd);
	if (!dir)
		return;
	if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)) {
		if (dir->path_n == 0)
			folder->is_lost = true;
		if (event->mask & IN_IGNORED)
			drop_dir(folder, dir);
		return;
	}
	if (!event->len)
		return;
	if (event->mask & IN_ISDIR || (event->name[0] == '.' && event->name[1] == '.'))
		on_dir_event(folder, dir, event);
	else
		on_file_event(folder, dir, event);
	/* A link to a folder looks like a file. */
	if (event->mask & (IN_CREATE | IN_MOVED_TO) && !(event->mask & IN_ISDIR) &&
	    !roll_manifest_is_name(roll_str_c(event->name)) && event->name[0] != '.') {
		char path[PATH_MAX + NAME_MAX + 2];
		struct stat stat;

		snprintf(path, sizeof path, "%s%s", dir->path, event->name);
		if (fstatat(folder->root_fd, path, &stat, 0) == 0 && S_ISDIR(stat.st_mode))
			on_dir_event(folder, dir, event);
	}
}

void roll_folder_read_events(struct roll_folder *folder)
{
	_Alignas(struct inotify_event) char bytes[64 << 10];
	ssize_t got;

	while ((got = read(folder->inotify_fd, bytes, sizeof bytes)) > 0) {
		size_t at = 0;

		while (at < (size_t)got) {
			const struct inotify_event *event = (const void *)(bytes + at);

			on_inotify(folder, event);
			at += sizeof *event + event->len;
		}
	}
}

enum roll_status roll_folder_watch(struct roll_folder *folder, struct roll_err *err)
{
	roll_folder_unwatch(folder);
	folder->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	folder->is_polling = false;
	if (folder->inotify_fd < 0) {
		if (errno != EMFILE && errno != ENFILE)
			return roll_err_errno(err, ROLL_EIO, errno, NULL, "no inotify");
		start_polling(folder, errno);
	}
	return ROLL_OK;
}

void roll_folder_unwatch(struct roll_folder *folder)
{
	struct roll_dir *dir, *next;
	size_t i;

	HASH_ITER (hh, folder->dirs, dir, next)
		drop_dir(folder, dir);
	if (folder->inotify_fd >= 0)
		close(folder->inotify_fd);
	folder->inotify_fd = -1;
	folder->move_count = 0;
	for (i = 0; i < folder->rescan_count; i++)
		free(folder->rescans[i]);
	folder->rescan_count = 0;
}
