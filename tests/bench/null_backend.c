/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"

/*
 * null_backend PATH ZONES: a remote backend that knows nothing, as the yardstick for one that does.
 *
 * The replies are those that rollcalld gives to the names of gen.py, byte for byte but for
 * addresses and ids. Which one is found by looking for the name and at its first letter; nothing
 * is parsed, nothing is looked up, and there is no event library. What rollcalld loses against
 * this is what looking things up costs.
 */
#define CONNS_MAX 1024
#define LINE_MAX_BYTES 8192

struct conn {
	int fd;
	size_t n;
	char in[LINE_MAX_BYTES];
};

static struct conn *conns[CONNS_MAX];
static struct roll_buf reply;
static unsigned zone_count;

/* The bytes between the quotes of the value of key, or the digits of a number; empty if absent. */
static struct roll_str value_of(const char *line, size_t n, const char *key)
{
	const char *end = line + n, *p = memmem(line, n, key, strlen(key)), *from;

	if (!p)
		return roll_str_n("", 0);
	for (p += strlen(key); p < end && (*p == ':' || *p == ' ' || *p == '"'); p++)
		;
	for (from = p; p < end && *p != '"' && *p != ',' && *p != '}'; p++)
		;
	return roll_str_n(from, (size_t)(p - from));
}

static void add_row(struct roll_str name, struct roll_str id, const char *type_and_content)
{
	roll_buf_add_c(&reply, "{\"qname\":\"");
	roll_buf_add(&reply, name.p, name.n ? name.n - 1 : 0);
	roll_buf_add_c(&reply, type_and_content);
	roll_buf_add_str(&reply, id);
	roll_buf_add_c(&reply, ",\"scopeMask\":1,\"auth\":1}");
}

static void add_lookup(const char *line, size_t n)
{
	struct roll_str name = value_of(line, n, "\"qname\"");
	struct roll_str id = value_of(line, n, "\"zone-id\"");

	roll_buf_add_c(&reply, "{\"result\":[");
	if (name.n && name.p[0] == 'h') {
		add_row(name, id,
			"\",\"qtype\":\"A\",\"content\":\"10.0.0.1\",\"ttl\":300,\"domain_id\":");
	} else if (name.n && name.p[0] == 'z') {
		add_row(name, id,
			"\",\"qtype\":\"SOA\",\"content\":\"ns1.bench.net "
			"hostmaster.z000.bench.example 1 10800 3600 604800 3600\",\"ttl\":3600,"
			"\"domain_id\":");
		roll_buf_add_char(&reply, ',');
		add_row(name, id,
			"\",\"qtype\":\"NS\",\"content\":\"ns1.bench.net\",\"ttl\":3600,"
			"\"domain_id\":");
		roll_buf_add_char(&reply, ',');
		add_row(name, id,
			"\",\"qtype\":\"NS\",\"content\":\"ns2.bench.net\",\"ttl\":3600,"
			"\"domain_id\":");
	}
	roll_buf_add_c(&reply, "]}\n");
}

static void add_domains(void)
{
	roll_buf_add_c(&reply, "{\"result\":[");
	for (unsigned i = 0; i < zone_count; i++)
		roll_buf_printf(&reply,
				"%s{\"id\":%u,\"zone\":\"z%03u.bench.example\",\"serial\":1}",
				i ? "," : "", i + 1, i);
	roll_buf_add_c(&reply, "]}\n");
}

static void make_reply(const char *line, size_t n)
{
	struct roll_str method = value_of(line, n, "\"method\"");

	roll_buf_reset(&reply);
	if (roll_str_eq_c(method, "lookup"))
		add_lookup(line, n);
	else if (roll_str_eq_c(method, "initialize"))
		roll_buf_add_c(&reply, "{\"result\":true}\n");
	else if (roll_str_eq_c(method, "getAllDomains"))
		add_domains();
	else if (roll_str_eq_c(method, "getAllDomainMetadata"))
		roll_buf_add_c(&reply, "{\"result\":{}}\n");
	else
		roll_buf_add_c(&reply, "{\"result\":false}\n");
}

static void drop(struct conn *conn)
{
	close(conn->fd);
	conns[conn->fd] = NULL;
	free(conn);
}

static void serve(struct conn *conn)
{
	ssize_t got = recv(conn->fd, conn->in + conn->n, sizeof conn->in - conn->n, 0);

	if (got <= 0) {
		if (got == 0 || errno != EAGAIN)
			drop(conn);
		return;
	}
	conn->n += (size_t)got;
	if (conn->in[conn->n - 1] != '\n')
		return;
	make_reply(conn->in, conn->n);
	conn->n = 0;
	/* PowerDNS takes replies of this size at once. */
	if (send(conn->fd, reply.p, reply.n, MSG_NOSIGNAL) != (ssize_t)reply.n)
		drop(conn);
}

static void welcome(int epoll, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
	struct conn *conn;

	if (fd < 0)
		return;
	conn = fd < CONNS_MAX ? calloc(1, sizeof *conn) : NULL;
	if (!conn || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event)) {
		free(conn);
		close(fd);
		return;
	}
	conn->fd = fd;
	conns[fd] = conn;
}

static int listen_on(const char *path)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
	unlink(path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&name, sizeof name) || listen(fd, 128)) {
		perror(path);
		exit(1);
	}
	return fd;
}

int main(int argc, char **argv)
{
	struct epoll_event events[64], event = {.events = EPOLLIN};
	int listener, epoll;

	if (argc != 3 || roll_str_u32(roll_str_c(argv[2]), 100000, &zone_count)) {
		fprintf(stderr, "usage: null_backend PATH ZONES\n");
		return 2;
	}
	roll_buf_init(&reply, 64u << 20);
	listener = listen_on(argv[1]);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	event.data.fd = listener;
	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event)) {
		perror("epoll");
		return 1;
	}
	for (;;) {
		int count = epoll_wait(epoll, events, 64, -1);

		for (int i = 0; i < count; i++) {
			if (events[i].data.fd == listener)
				welcome(epoll, listener);
			else if (conns[events[i].data.fd])
				serve(conns[events[i].data.fd]);
		}
	}
}
