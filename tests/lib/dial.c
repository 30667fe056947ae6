/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/dial.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

int dial(uint16_t port)
{
	struct sockaddr_in name = {.sin_family = AF_INET,
				   .sin_port = htons(port),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&name, sizeof name) ||
	    fcntl(fd, F_SETFL, O_NONBLOCK))
		abort();
	return fd;
}
