/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"

/*
 * socket_bench PATH NAMES SECONDS CONNECTIONS h|m: ask a remote backend as PowerDNS does, one
 * request at a time on each connection, for names of gen.py that exist (h) or do not (m). Prints
 * calls per second and the 50th and 99th percentile of the time of a call in microseconds.
 */
#define CONNS_MAX 64
#define PER_ZONE 10000u
#define SAMPLES_MAX 8000000u

struct conn {
	int fd;
	int64_t sent_ns;
	size_t n;
	char in[4096];
};

struct bench {
	uint32_t names, seconds, conn_count;
	char letter;
	uint64_t random;
	uint32_t *zone_ids;
	size_t zone_count;
	uint32_t *samples;
	size_t sample_count;
	uint64_t empty;
};

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int dial(const char *path)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&name, sizeof name))
		die(path);
	return fd;
}

/* One request and its reply, which ends with the line; the value is the caller's. */
static json_t *ask(int fd, const char *request)
{
	static char reply[8 << 20];
	size_t n = 0;

	if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
		die("send");
	while (n == 0 || reply[n - 1] != '\n') {
		ssize_t got = recv(fd, reply + n, sizeof reply - n, 0);

		if (got <= 0)
			die("recv");
		n += (size_t)got;
	}
	return json_loadb(reply, n, 0, NULL);
}

static void learn_zones(struct bench *bench, int fd)
{
	json_t *reply = ask(fd, "{\"method\": \"getAllDomains\", \"parameters\": "
				"{\"include_disabled\": true}}\n");
	json_t *rows = json_object_get(reply, "result"), *row;
	size_t i;

	bench->zone_count = (bench->names + PER_ZONE - 1) / PER_ZONE;
	bench->zone_ids = calloc(bench->zone_count, sizeof *bench->zone_ids);
	if (!bench->zone_ids)
		die("calloc");
	json_array_foreach (rows, i, row) {
		const char *zone = json_string_value(json_object_get(row, "zone"));
		uint32_t index;

		if (zone && zone[0] == 'z' && strlen(zone) > 4 &&
		    !roll_str_u32(roll_str_n(zone + 1, 3), 999, &index) &&
		    index < bench->zone_count)
			bench->zone_ids[index] =
				(uint32_t)json_integer_value(json_object_get(row, "id"));
	}
	json_decref(reply);
}

static void send_lookup(struct bench *bench, struct conn *conn)
{
	uint32_t index, zone;
	char line[512];
	int n;

	bench->random ^= bench->random << 13;
	bench->random ^= bench->random >> 7;
	bench->random ^= bench->random << 17;
	index = (uint32_t)(bench->random % bench->names);
	zone = index / PER_ZONE;
	n = snprintf(line, sizeof line,
		     "{\"method\": \"lookup\", \"parameters\": {\"local\": \"127.0.0.1\", "
		     "\"qname\": \"%c%07u.z%03u.bench.example.\", \"qtype\": \"ANY\", "
		     "\"real-remote\": \"127.0.0.1/32\", \"remote\": \"127.0.0.1\", "
		     "\"zone-id\": %u}}\n",
		     bench->letter, index, zone, bench->zone_ids[zone]);
	conn->n = 0;
	conn->sent_ns = now_ns();
	if (send(conn->fd, line, (size_t)n, MSG_NOSIGNAL) != n)
		die("send");
}

static void receive(struct bench *bench, struct conn *conn)
{
	ssize_t got = recv(conn->fd, conn->in + conn->n, sizeof conn->in - conn->n, 0);

	if (got <= 0)
		die("recv");
	conn->n += (size_t)got;
	if (conn->in[conn->n - 1] != '\n')
		return;
	if (bench->sample_count < SAMPLES_MAX)
		bench->samples[bench->sample_count++] = (uint32_t)(now_ns() - conn->sent_ns);
	bench->empty += conn->n == sizeof "{\"result\":[]}\n" - 1;
	send_lookup(bench, conn);
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void run(struct bench *bench, const char *path)
{
	static struct conn conns[CONNS_MAX];
	struct epoll_event events[CONNS_MAX];
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	int64_t from, until;

	if (epoll < 0)
		die("epoll");
	for (uint32_t i = 0; i < bench->conn_count; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = &conns[i]};

		conns[i].fd = dial(path);
		json_decref(ask(conns[i].fd, "{\"method\": \"initialize\", \"parameters\": {}}\n"));
		if (i == 0)
			learn_zones(bench, conns[i].fd);
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, conns[i].fd, &event))
			die("epoll_ctl");
	}
	from = now_ns();
	until = from + (int64_t)bench->seconds * 1000000000;
	for (uint32_t i = 0; i < bench->conn_count; i++)
		send_lookup(bench, &conns[i]);
	while (now_ns() < until) {
		int count = epoll_wait(epoll, events, CONNS_MAX, 1000);

		if (count <= 0)
			die("epoll_wait");
		for (int i = 0; i < count; i++)
			receive(bench, events[i].data.ptr);
	}
	/* A benchmark of wrong answers is none. */
	if (bench->empty != (bench->letter == 'm' ? bench->sample_count : 0)) {
		fprintf(stderr, "socket_bench: %llu of %zu answers were empty\n",
			(unsigned long long)bench->empty, bench->sample_count);
		exit(1);
	}
	qsort(bench->samples, bench->sample_count, sizeof *bench->samples, by_size);
	printf("%.0f %.1f %.1f\n", (double)bench->sample_count / ((double)(now_ns() - from) / 1e9),
	       bench->samples[bench->sample_count / 2] / 1000.0,
	       bench->samples[bench->sample_count - bench->sample_count / 100 - 1] / 1000.0);
}

int main(int argc, char **argv)
{
	struct bench bench = {.random = UINT64_C(88172645463325252)};

	if (argc != 6 || roll_str_u32(roll_str_c(argv[2]), 10000000, &bench.names) ||
	    !bench.names || roll_str_u32(roll_str_c(argv[3]), 3600, &bench.seconds) ||
	    roll_str_u32(roll_str_c(argv[4]), CONNS_MAX, &bench.conn_count) || !bench.conn_count ||
	    (strcmp(argv[5], "h") != 0 && strcmp(argv[5], "m") != 0)) {
		fprintf(stderr, "usage: socket_bench PATH NAMES SECONDS CONNECTIONS h|m\n");
		return 2;
	}
	bench.letter = argv[5][0];
	bench.samples = malloc(SAMPLES_MAX * sizeof *bench.samples);
	if (!bench.samples)
		die("malloc");
	run(&bench, argv[1]);
	free(bench.samples);
	free(bench.zone_ids);
	return 0;
}
