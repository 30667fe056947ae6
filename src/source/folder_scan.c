/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bin.h"
#include "base/log.h"
#include "source/folder_state.h"

#define DEPTH_MAX 32
#define PATH_LIMIT 4000
/* When polling, a file that changed just now is left alone until the next look. */
#define SETTLE_NS 1000000000ll

struct ancestor {
	dev_t dev;
	ino_t ino;
};

struct walk {
	struct roll_folder *folder;
	struct ancestor above[DEPTH_MAX];
	size_t depth;
	bool is_linked; /* some folder on the way is a symbolic link */
	char path[PATH_LIMIT + NAME_MAX + 2];
	size_t path_n;
};

/* --- files --- */

struct roll_file *roll_folder_file(struct roll_folder *folder, const char *path, bool make)
{
	struct roll_file *file = NULL;
	size_t n = strlen(path);

	HASH_FIND(hh, folder->files, path, n, file);
	if (file || !make)
		return file;
	file = calloc(1, sizeof *file + n + 1);
	if (!file)
		return NULL;
	memcpy(file->path, path, n);
	file->path_n = n;
	HASH_ADD_KEYPTR(hh, folder->files, file->path, file->path_n, file);
	return file;
}

void roll_folder_forget(struct roll_folder *folder, struct roll_file *file)
{
	size_t i;

	roll_folder_unpair(folder, file);
	roll_folder_unmark(folder, file);
	for (i = 0; i < folder->move_count; i++) {
		if (folder->moves[i].file == file)
			folder->moves[i].file = NULL;
	}
	HASH_DEL(folder->files, file);
	free(file->error);
	free(file);
}

void roll_folder_set_error(struct roll_folder *folder, struct roll_file *file, const char *text)
{
	char path[300], shown[400];

	(void)folder;
	if (text && (!file->error || strcmp(file->error, text) != 0))
		roll_log(ROLL_WARN, "manifest-unreadable", "file=\"%s\" reason=\"%s\"",
			 roll_str_show(roll_str_c(file->path), path, sizeof path),
			 roll_str_show(roll_str_c(text), shown, sizeof shown));
	else if (!text && file->error)
		roll_log(ROLL_INFO, "manifest-readable", "file=\"%s\"",
			 roll_str_show(roll_str_c(file->path), path, sizeof path));
	free(file->error);
	file->error = text ? strdup(text) : NULL;
}

uint64_t roll_folder_look(const struct stat *stat)
{
	const uint64_t parts[] = {
		(uint64_t)stat->st_dev,		 (uint64_t)stat->st_ino,
		(uint64_t)stat->st_size,	 (uint64_t)stat->st_mtim.tv_sec,
		(uint64_t)stat->st_mtim.tv_nsec, (uint64_t)stat->st_ctim.tv_sec,
		(uint64_t)stat->st_ctim.tv_nsec,
	};

	return roll_hash64(parts, sizeof parts) | 1;
}

void roll_folder_mark(struct roll_folder *folder, struct roll_file *file)
{
	file->hold_until = 0;
	if (file->is_dirty)
		return;
	if (folder->dirty_count == folder->dirty_room) {
		size_t room = folder->dirty_room ? folder->dirty_room * 2 : 64;
		struct roll_file **items = reallocarray(folder->dirty, room, sizeof *items);

		if (!items) {
			folder->must_list_all = true;
			return;
		}
		folder->dirty = items;
		folder->dirty_room = room;
	}
	file->is_dirty = true;
	file->dirty_at = folder->dirty_count;
	folder->dirty[folder->dirty_count++] = file;
}

void roll_folder_unmark(struct roll_folder *folder, struct roll_file *file)
{
	struct roll_file *last;

	if (!file->is_dirty)
		return;
	file->is_dirty = false;
	last = folder->dirty[--folder->dirty_count];
	last->dirty_at = file->dirty_at;
	folder->dirty[file->dirty_at] = last;
}

/* Only a poll has to guess from the outside whether somebody is writing still. */
static bool is_settling(const struct roll_folder *folder, const struct stat *stat)
{
	struct timespec now;

	if (!folder->is_polling || clock_gettime(CLOCK_REALTIME, &now))
		return false;
	return (now.tv_sec - stat->st_mtim.tv_sec) * 1000000000ll + now.tv_nsec -
		       stat->st_mtim.tv_nsec <
	       SETTLE_NS;
}

static void see_file(struct walk *walk, const struct stat *stat, bool is_link)
{
	struct roll_folder *folder = walk->folder;
	struct roll_file *file = roll_folder_file(folder, walk->path, true);
	uint64_t look = roll_folder_look(stat);

	if (!file) {
		/* Not known is not gone: everything is to be looked at again. */
		folder->must_list_all = true;
		return;
	}
	file->scan = folder->scan;
	file->is_linked = is_link || walk->is_linked;
	folder->has_links = folder->has_links || file->is_linked;
	if (file->look == look && file->is_told)
		return;
	if (file->is_told && is_settling(folder, stat))
		return;
	/* Whoever lists the tree has no use for waiting: the writer's close is told later. */
	roll_folder_mark(folder, file);
}

/* --- folders --- */

static void clear_unreadable(struct roll_folder *folder, const char *prefix)
{
	size_t i, kept = 0;

	for (i = 0; i < folder->unreadable_count; i++) {
		if (roll_str_starts(folder->unreadable[i], prefix))
			free((char *)folder->unreadable[i].p);
		else
			folder->unreadable[kept++] = folder->unreadable[i];
	}
	folder->unreadable_count = kept;
}

static bool has_prefix(const char *path, size_t n, struct roll_str prefix)
{
	return n >= prefix.n && memcmp(path, prefix.p, prefix.n) == 0;
}

bool roll_folder_is_unreadable(const struct roll_folder *folder, const struct roll_file *file)
{
	size_t i;

	for (i = 0; i < folder->unreadable_count; i++) {
		if (has_prefix(file->path, file->path_n, folder->unreadable[i]))
			return true;
	}
	return false;
}

static void add_unreadable(struct roll_folder *folder, const char *path, int error)
{
	struct roll_str *items;
	char shown[300];
	char *copy = strdup(path);

	items = reallocarray(folder->unreadable, folder->unreadable_count + 1, sizeof *items);
	if (items)
		folder->unreadable = items;
	if (!copy || !items) {
		free(copy);
		folder->must_list_all = true;
		return;
	}
	roll_log(ROLL_WARN, "folder-unreadable", "folder=\"%s\" reason=\"%s\"",
		 roll_str_show(roll_str_c(path), shown, sizeof shown), strerror(error));
	items[folder->unreadable_count++] = roll_str_c(copy);
}

static enum roll_status walk_folder(struct walk *walk, int dir_fd, const char *name);

static bool append(struct walk *walk, const char *name, const char *end)
{
	size_t n = strlen(name);

	if (walk->path_n + n > PATH_LIMIT)
		return false;
	memcpy(walk->path + walk->path_n, name, n + 1);
	walk->path_n += n;
	if (*end) {
		walk->path[walk->path_n++] = *end;
		walk->path[walk->path_n] = '\0';
	}
	return true;
}

static void see_entry(struct walk *walk, int dir_fd, const struct dirent *entry)
{
	size_t before = walk->path_n;
	bool was_linked = walk->is_linked, is_link = entry->d_type == DT_LNK;
	struct stat stat;

	/* Names that begin with ".." are how Kubernetes swaps mounted volumes; hidden all the same.
	 */
	if (entry->d_name[0] == '.')
		return;
	if (entry->d_type == DT_REG && !roll_manifest_is_name(roll_str_c(entry->d_name)))
		return;
	if (fstatat(dir_fd, entry->d_name, &stat, 0))
		return; /* gone meanwhile, or a link to nowhere: there is no such file */
	if (entry->d_type == DT_UNKNOWN) {
		struct stat own;

		is_link = !fstatat(dir_fd, entry->d_name, &own, AT_SYMLINK_NOFOLLOW) &&
			  S_ISLNK(own.st_mode);
	}
	if (S_ISDIR(stat.st_mode)) {
		walk->is_linked = was_linked || is_link;
		if (append(walk, entry->d_name, "/"))
			(void)walk_folder(walk, dir_fd, entry->d_name);
		walk->is_linked = was_linked;
	} else if (S_ISREG(stat.st_mode) && roll_manifest_is_name(roll_str_c(entry->d_name))) {
		if (append(walk, entry->d_name, ""))
			see_file(walk, &stat, is_link);
	}
	walk->path_n = before;
	walk->path[before] = '\0';
}

/* A link to a folder above would go round for ever. */
static bool is_above(const struct walk *walk, const struct stat *stat)
{
	size_t i;

	for (i = 0; i < walk->depth; i++) {
		if (walk->above[i].dev == stat->st_dev && walk->above[i].ino == stat->st_ino)
			return true;
	}
	return false;
}

/* walk->path is the folder, name the way to it from dir_fd. */
static enum roll_status walk_folder(struct walk *walk, int dir_fd, const char *name)
{
	struct dirent *entry;
	struct stat stat;
	int error = 0, fd;
	DIR *dir = NULL;

	if (walk->depth == DEPTH_MAX) {
		error = ELOOP;
		goto out;
	}
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		error = errno;
		goto out;
	}
	if (fstat(fd, &stat)) {
		error = errno;
		close(fd);
		goto out;
	}
	if (is_above(walk, &stat)) {
		close(fd);
		return ROLL_OK;
	}
	/* Before it is read, so that nothing happens unseen in between. */
	roll_folder_add_watch(walk->folder, walk->path);
	dir = fdopendir(fd);
	if (!dir) {
		error = errno;
		close(fd);
		goto out;
	}
	walk->above[walk->depth++] = (struct ancestor){stat.st_dev, stat.st_ino};
	for (errno = 0; (entry = readdir(dir)); errno = 0)
		see_entry(walk, dirfd(dir), entry);
	error = errno;
	walk->depth--;
out:
	if (dir)
		closedir(dir);
	/* Gone meanwhile is gone; anything else proves nothing about what is in it. */
	if (error && error != ENOENT && error != ENOTDIR)
		add_unreadable(walk->folder, walk->path, error);
	return error ? ROLL_EIO : ROLL_OK;
}

enum roll_status roll_folder_scan(struct roll_folder *folder, const char *prefix,
				  struct roll_err *err)
{
	struct roll_str within = roll_str_c(prefix);
	struct walk *walk = calloc(1, sizeof *walk);
	struct roll_file *file, *next;
	enum roll_status status;

	if (!walk)
		return roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	walk->folder = folder;
	if (within.n > PATH_LIMIT) {
		free(walk);
		return ROLL_OK;
	}
	memcpy(walk->path, prefix, within.n);
	walk->path_n = within.n;
	folder->scan++;
	clear_unreadable(folder, prefix);
	status = walk_folder(walk, folder->root_fd, within.n ? prefix : ".");
	free(walk);
	if (status && !within.n)
		return roll_err_set(err, ROLL_EIO, NULL, "the folder cannot be read");
	/* What was not seen is gone, where it could have been seen. */
	HASH_ITER (hh, folder->files, file, next) {
		if (file->scan == folder->scan || !has_prefix(file->path, file->path_n, within) ||
		    roll_folder_is_unreadable(folder, file))
			continue;
		if (!file->hold_until)
			roll_folder_mark(folder, file);
	}
	roll_folder_drop_watches(folder, prefix);
	return ROLL_OK;
}

void roll_folder_check_links(struct roll_folder *folder)
{
	struct roll_file *file, *next;
	struct stat stat;

	if (!folder->has_links)
		return;
	HASH_ITER (hh, folder->files, file, next) {
		if (!file->is_linked || !file->is_told)
			continue;
		if (fstatat(folder->root_fd, file->path, &stat, 0) == 0
			    ? roll_folder_look(&stat) != file->look
			    : errno == ENOENT)
			roll_folder_mark(folder, file);
	}
}

/* --- the root --- */

enum roll_status roll_folder_open_root(struct roll_folder *folder, struct roll_err *err)
{
	struct stat stat;
	int fd = open(folder->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = errno;
	enum roll_status status = error == EACCES || error == EPERM ? ROLL_EDENIED
				  : error == ENOENT		    ? ROLL_ENOENT
								    : ROLL_EIO;

	if (fd < 0)
		return roll_err_errno(err, status, error, folder->root, "cannot read the folder");
	if (fstat(fd, &stat)) {
		error = errno;
		close(fd);
		return roll_err_errno(err, ROLL_EIO, error, folder->root, "cannot read the folder");
	}
	if (folder->root_fd >= 0)
		close(folder->root_fd);
	folder->root_fd = fd;
	folder->root_dev = (uint64_t)stat.st_dev;
	folder->root_ino = (uint64_t)stat.st_ino;
	return ROLL_OK;
}

bool roll_folder_root_is_there(const struct roll_folder *folder)
{
	struct stat now;

	return stat(folder->root, &now) == 0 && (uint64_t)now.st_dev == folder->root_dev &&
	       (uint64_t)now.st_ino == folder->root_ino;
}
