/* SPDX-License-Identifier: Apache-2.0 */
#include "server/listen.h"

#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

/* Bursts of short connections come on top of the long ones (zone transfers, pdnsutil, the API). */
#define BACKLOG 1024

static enum roll_status set_address(const char *path, struct sockaddr_un *out, struct roll_err *err)
{
	size_t n = strlen(path);

	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (n == 0 || n >= sizeof out->sun_path)
		return roll_err_set(err, ROLL_ELIMIT, path,
				    "a socket's path may have 1 to %zu bytes, this has %zu",
				    sizeof out->sun_path - 1, n);
	memcpy(out->sun_path, path, n + 1);
	return ROLL_OK;
}

/* Make way for a new socket at path, unless what is there is in use or not a socket. */
static enum roll_status clear_path(const struct sockaddr_un *address, struct roll_err *err)
{
	const char *path = address->sun_path;
	enum roll_status status = ROLL_OK;
	struct stat st;
	int fd;

	if (lstat(path, &st)) {
		if (errno == ENOENT)
			return ROLL_OK;
		return roll_err_errno(err, ROLL_EIO, errno, path, "cannot look at it");
	}
	if (!S_ISSOCK(st.st_mode))
		return roll_err_set(err, ROLL_EEXIST, path, "it exists and is not a socket");
	/* Non-blocking: a server whose backlog is full is a server as well (EAGAIN). */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return roll_err_errno(err, ROLL_EIO, errno, path, "cannot make a socket");
	if (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 || errno == EAGAIN)
		status = roll_err_set(err, ROLL_EBUSY, path, "another server listens on it");
	else if (errno != ECONNREFUSED && errno != ENOENT)
		status = roll_err_errno(err, errno == EACCES ? ROLL_EDENIED : ROLL_EIO, errno, path,
					"cannot tell whether a server listens on it");
	else if (unlink(path) && errno != ENOENT)
		status = roll_err_errno(err, ROLL_EIO, errno, path, "cannot remove the old socket");
	else
		roll_log(ROLL_INFO, "stale-socket-removed", "inode=%llu",
			 (unsigned long long)st.st_ino);
	close(fd);
	return status;
}

static enum roll_status set_owner(const char *path, mode_t mode, const char *group,
				  struct roll_err *err)
{
	const struct group *entry;

	if (group) {
		errno = 0;
		entry = getgrnam(group);
		if (!entry)
			return roll_err_set(err, ROLL_EINVAL, "--socket-group",
					    "there is no group \"%s\"", group);
		if (chown(path, (uid_t)-1, entry->gr_gid))
			return roll_err_errno(err, ROLL_EDENIED, errno, path,
					      "cannot give it to group %s", group);
	}
	if (chmod(path, mode))
		return roll_err_errno(err, ROLL_EDENIED, errno, path, "cannot set its mode");
	return ROLL_OK;
}

enum roll_status roll_socket_open(const char *path, mode_t mode, const char *group,
				  struct roll_socket *out, struct roll_err *err)
{
	struct sockaddr_un address;
	enum roll_status status;
	mode_t old_mask;
	int fd = -1, failed;

	out->fd = -1;
	out->path[0] = '\0';
	status = set_address(path, &address, err);
	if (!status)
		status = clear_path(&address, err);
	if (status)
		return status;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return roll_err_errno(err, ROLL_EIO, errno, path, "cannot make a socket");
	/* Nobody's at first. And before listen() nobody can connect, whatever the mode. */
	old_mask = umask(0777);
	failed = bind(fd, (const struct sockaddr *)&address, sizeof address) ? errno : 0;
	umask(old_mask);
	if (failed) {
		status = roll_err_errno(err, failed == EACCES ? ROLL_EDENIED : ROLL_EIO, failed,
					path, "cannot make the socket");
		goto out;
	}
	status = set_owner(path, mode, group, err);
	if (!status && listen(fd, BACKLOG))
		status = roll_err_errno(err, ROLL_EIO, errno, path, "cannot listen");
	if (!status && lstat(path, &out->made))
		status = roll_err_errno(err, ROLL_EIO, errno, path, "cannot look at it");
	if (status) {
		unlink(path);
		goto out;
	}
	memcpy(out->path, address.sun_path, sizeof out->path);
	out->fd = fd;
	fd = -1;
out:
	if (fd >= 0)
		close(fd);
	return status;
}

void roll_socket_unlink(const struct roll_socket *sock)
{
	struct stat st;

	/* Inode numbers are soon given to others: the time of the last change tells those apart. */
	if (sock->path[0] && lstat(sock->path, &st) == 0 && st.st_dev == sock->made.st_dev &&
	    st.st_ino == sock->made.st_ino && st.st_ctim.tv_sec == sock->made.st_ctim.tv_sec &&
	    st.st_ctim.tv_nsec == sock->made.st_ctim.tv_nsec)
		unlink(sock->path);
}
