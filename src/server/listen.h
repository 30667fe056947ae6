/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SERVER_LISTEN_H
#define ROLL_SERVER_LISTEN_H

#include <sys/stat.h>

#include "base/str.h"

/* The Unix socket that PowerDNS connects to. */
struct roll_socket {
	int fd; /* listening, non-blocking; -1: none */
	char path[108];
	struct stat made; /* which file is ours */
};

/*
 * Listen on path with that mode and group (NULL: as it comes), which hold before anybody can
 * connect. A socket that nobody listens on any more is replaced. EBUSY: somebody does; EEXIST:
 * something else is there; ELIMIT: the path is too long for a socket.
 */
enum roll_status roll_socket_open(const char *path, mode_t mode, const char *group,
				  struct roll_socket *out, struct roll_err *err) ROLL_MUST_CHECK;

/* Remove the file, if it is still ours. The descriptor is not closed. */
void roll_socket_unlink(const struct roll_socket *sock);

#endif
