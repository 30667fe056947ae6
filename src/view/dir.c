/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "view/view.h"

/*
 * The view directory:
 *
 *	current -> v12     the generation folder that is read
 *	v12/               data.mdb, lock.mdb; "damaged" if it was found so
 *	v13/               being built, if any
 *	writer.lock        held by the one writer; its pid
 *	pidns              held by everybody; the PID namespace of those who are at it
 */

#define FILE_MODE 0660
#define FOLDER_MODE 0770

char *roll_dir_path(const char *dir, const char *entry)
{
	size_t n = strlen(dir) + strlen(entry) + 2;
	char *path = malloc(n);

	if (path)
		snprintf(path, n, "%s/%s", dir, entry);
	return path;
}

uint64_t roll_dir_folder_number(const char *folder)
{
	uint64_t number;

	if (folder[0] != 'v' || strlen(folder) >= ROLL_FOLDER_SIZE ||
	    roll_str_u64(roll_str_c(folder + 1), UINT64_MAX - 1, &number))
		return 0;
	return number;
}

enum roll_status roll_dir_current(const char *dir, char out[ROLL_FOLDER_SIZE], struct roll_err *err)
{
	char *path = roll_dir_path(dir, "current");
	enum roll_status status = ROLL_OK;
	ssize_t n;

	memset(out, 0, ROLL_FOLDER_SIZE);
	if (!path)
		return roll_err_set(err, ROLL_ENOMEM, dir, "no memory");
	n = readlink(path, out, ROLL_FOLDER_SIZE);
	if (n < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		status = roll_err_set(err, ROLL_ENOTREADY, dir,
				      "there is no view yet: rollcall-sync has not finished one");
	} else if (n < 0) {
		status = roll_err_errno(err, errno == EACCES ? ROLL_EDENIED : ROLL_EIO, errno, path,
					"the link cannot be read");
	} else if (n >= ROLL_FOLDER_SIZE) {
		status = roll_err_set(err, ROLL_ECORRUPT, path, "the link leads out of the view");
	} else {
		out[n] = '\0';
		if (!roll_dir_folder_number(out))
			status = roll_err_set(err, ROLL_ECORRUPT, path,
					      "the link leads out of the view");
	}
	free(path);
	return status;
}

static enum roll_status sync_folder(const char *path, struct roll_err *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	enum roll_status status = ROLL_OK;

	if (fd < 0 || fsync(fd))
		status = roll_err_errno(err, ROLL_EIO, errno, path, "the folder cannot be synced");
	if (fd >= 0)
		close(fd);
	return status;
}

/* The link counts too: its folder may be gone, and readers know it by its name. */
static uint64_t highest_folder(const char *dir)
{
	char current[ROLL_FOLDER_SIZE];
	DIR *handle = opendir(dir);
	struct dirent *entry;
	uint64_t highest = 0;

	if (!roll_dir_current(dir, current, NULL))
		highest = roll_dir_folder_number(current);
	while (handle && (entry = readdir(handle))) {
		uint64_t number = roll_dir_folder_number(entry->d_name);

		if (number > highest)
			highest = number;
	}
	if (handle)
		closedir(handle);
	return highest;
}

enum roll_status roll_dir_make_folder(const char *dir, char out[ROLL_FOLDER_SIZE],
				      struct roll_err *err)
{
	enum roll_status status = ROLL_OK;
	char *path;

	snprintf(out, ROLL_FOLDER_SIZE, "v%" PRIu64, highest_folder(dir) + 1);
	path = roll_dir_path(dir, out);
	if (!path)
		return roll_err_set(err, ROLL_ENOMEM, dir, "no memory");
	if (mkdir(path, FOLDER_MODE))
		status = roll_err_errno(err, errno == EACCES ? ROLL_EDENIED : ROLL_EIO, errno, path,
					"the folder cannot be made");
	free(path);
	return status;
}

enum roll_status roll_dir_swap(const char *dir, const char *folder, struct roll_err *err)
{
	char *path = roll_dir_path(dir, folder);
	char *fresh = roll_dir_path(dir, "current.new");
	char *current = roll_dir_path(dir, "current");
	enum roll_status status = ROLL_ENOMEM;

	if (!path || !fresh || !current)
		goto out;
	status = sync_folder(path, err);
	if (status)
		goto out;
	if ((unlink(fresh) && errno != ENOENT) || symlink(folder, fresh) ||
	    rename(fresh, current)) {
		status = roll_err_errno(err, ROLL_EIO, errno, current, "the link cannot be set");
		goto out;
	}
	status = sync_folder(dir, err);
out:
	free(path);
	free(fresh);
	free(current);
	return status;
}

void roll_dir_remove_folder(const char *dir, const char *folder)
{
	/* The data first: a reader that opens it just now finds none, and makes no lock file. */
	static const char *const files[] = {"data.mdb", "lock.mdb", ROLL_DAMAGE_MARK};
	char *path = roll_dir_path(dir, folder);

	if (!path)
		return;
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		char *file = roll_dir_path(path, files[i]);

		if (file)
			unlink(file);
		free(file);
	}
	rmdir(path);
	free(path);
}

/*
 * A number above the current one is a rebuild that was not finished: it was never synced, so it is
 * not even opened. One below was current: the writer died between the swap and the mark, and
 * readers may still be in it.
 */
void roll_dir_clean(const char *dir, const char *current)
{
	uint64_t current_number = roll_dir_folder_number(current);
	DIR *handle = opendir(dir);
	struct dirent *entry;

	while (handle && (entry = readdir(handle))) {
		uint64_t number = roll_dir_folder_number(entry->d_name);

		if (number == 0 || number == current_number)
			continue;
		if (number < current_number) {
			char *path = roll_dir_path(dir, entry->d_name);

			if (path)
				roll_env_supersede_path(path);
			free(path);
		}
		roll_dir_remove_folder(dir, entry->d_name);
	}
	if (handle)
		closedir(handle);
}

/* --- PID namespaces --- */

#define TEXT_SIZE 64

/* What a lock file says, without its final newline; empty if nothing. */
static void read_text(int fd, char out[TEXT_SIZE])
{
	ssize_t n = pread(fd, out, TEXT_SIZE - 1, 0);

	out[n < 0 ? 0 : n] = '\0';
	out[strcspn(out, "\n")] = '\0';
}

static bool write_text(int fd, const char *text)
{
	size_t n = strlen(text);

	return !ftruncate(fd, 0) && pwrite(fd, text, n, 0) == (ssize_t)n;
}

static bool try_lock(int fd, int operation)
{
	int rc;

	do
		rc = flock(fd, operation | LOCK_NB);
	while (rc && errno == EINTR);
	return rc == 0;
}

/*
 * Those who start at once may each keep the others from the exclusive lock; flock gives up the
 * shared one while trying, so one of them gets it in a next round. Whoever is at a file that says
 * nothing yet is on the way to claim it, and no stranger: that is worth more patience.
 */
#define GUARD_ROUNDS 40
#define GUARD_EMPTY_ROUNDS 2000
#define GUARD_WAIT_MS 8

/* Different from process to process and from round to round, so that they do not keep step. */
static int guard_wait_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return 1 + (int)((now.tv_nsec / 1000 + getpid()) % GUARD_WAIT_MS);
}

static enum roll_status hold(int fd, const char *ours, char theirs[TEXT_SIZE])
{
	int rounds = GUARD_EMPTY_ROUNDS;

	for (int round = 0; round < rounds; round++) {
		if (round)
			(void)poll(NULL, 0, guard_wait_ms());
		if (!try_lock(fd, LOCK_SH))
			continue;
		read_text(fd, theirs);
		if (strcmp(theirs, ours) == 0)
			return ROLL_OK;
		rounds = theirs[0] ? GUARD_ROUNDS : GUARD_EMPTY_ROUNDS;
		/* Nobody at it: what the file says is history. */
		if (try_lock(fd, LOCK_EX) && !write_text(fd, ours))
			return ROLL_EIO;
		if (!try_lock(fd, LOCK_SH))
			continue;
		read_text(fd, theirs);
		if (strcmp(theirs, ours) == 0)
			return ROLL_OK;
	}
	return ROLL_EBUSY;
}

/*
 * The file comes into being with what it says, so that whoever starts at the same moment finds it
 * whole. That another was first is as good.
 */
static enum roll_status make_guard(const char *dir, const char *path, const char *ours)
{
	char *aside = roll_dir_path(dir, "pidns.XXXXXX");
	enum roll_status status = ROLL_ENOMEM;
	int fd = -1;

	if (!aside)
		return status;
	status = ROLL_EIO;
	fd = mkostemp(aside, O_CLOEXEC);
	if (fd < 0)
		goto out;
	if (!fchmod(fd, FILE_MODE) && write_text(fd, ours) &&
	    (!link(aside, path) || errno == EEXIST))
		status = ROLL_OK;
	(void)unlink(aside);
	close(fd);
out:
	free(aside);
	return status;
}

/*
 * LMDB's table of readers knows them by PID, and frees the slot of a PID that is no more. The same
 * number in two PID namespaces is two processes: the writer would then free, or take for its own,
 * the slot of a living reader, and overwrite pages that it reads.
 */
enum roll_status roll_dir_guard(const char *dir, int *out_fd, struct roll_err *err)
{
	char *path = roll_dir_path(dir, "pidns");
	char ours[TEXT_SIZE], theirs[TEXT_SIZE] = "";
	enum roll_status status;
	ssize_t n;
	int fd = -1;

	if (!path)
		return roll_err_set(err, ROLL_ENOMEM, dir, "no memory");
	n = readlink("/proc/self/ns/pid", ours, sizeof ours - 1);
	if (n < 0) {
		status = roll_err_errno(err, ROLL_EIO, errno, "/proc/self/ns/pid",
					"the PID namespace is unknown; /proc must be mounted");
		goto out;
	}
	ours[n] = '\0';
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && !make_guard(dir, path, ours))
		fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			status = roll_err_set(err, ROLL_ENOENT, dir, "no such directory");
		else
			status = roll_err_errno(err, errno == EACCES ? ROLL_EDENIED : ROLL_EIO,
						errno, path,
						"the file cannot be opened for writing");
		goto out;
	}
	status = hold(fd, ours, theirs);
	if (status == ROLL_EBUSY)
		roll_err_set(err, status, dir,
			     "the view is in use from another PID namespace (%s, here %s): two "
			     "containers that share a view need one PID namespace "
			     "(shareProcessNamespace: true)",
			     theirs, ours);
	else if (status)
		roll_err_errno(err, status, errno, path, "the file cannot be written");
out:
	if (status && fd >= 0)
		close(fd);
	else if (!status)
		*out_fd = fd;
	free(path);
	return status;
}

enum roll_status roll_dir_lock(const char *dir, int *out_fd, struct roll_err *err)
{
	char *path = roll_dir_path(dir, "writer.lock");
	char text[TEXT_SIZE];
	enum roll_status status = ROLL_OK;
	int fd = -1;

	if (!path)
		return roll_err_set(err, ROLL_ENOMEM, dir, "no memory");
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
	if (fd < 0) {
		status = roll_err_errno(err, errno == EACCES ? ROLL_EDENIED : ROLL_EIO, errno, path,
					"the file cannot be opened for writing");
	} else if (!try_lock(fd, LOCK_EX)) {
		char shown[TEXT_SIZE * 4];

		read_text(fd, text);
		status = roll_err_set(
			err, ROLL_EBUSY, dir, "another rollcall-sync writes this view (pid %s)",
			text[0] ? roll_str_show(roll_str_c(text), shown, sizeof shown) : "unknown");
	} else {
		snprintf(text, sizeof text, "%ld\n", (long)getpid());
		if (!write_text(fd, text))
			status = roll_err_errno(err, ROLL_EIO, errno, path,
						"the file cannot be written");
	}
	if (status && fd >= 0)
		close(fd);
	else if (!status)
		*out_fd = fd;
	free(path);
	return status;
}
