/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/conn.h"
#include "server/listen.h"

/* The server under test repeats each line; "big N" becomes N bytes, "bad" is no request. */
struct fixture {
	struct roll_loop *loop;
	struct roll_conns *conns;
	struct roll_timer *tick;
	size_t lines;
	int64_t now_ms;
	struct roll_clock clock;
	char dir[64];
};

static int64_t fixture_now(void *ctx)
{
	return ((struct fixture *)ctx)->now_ms;
}

static enum roll_status on_line(void *ctx, char *line, size_t n, struct roll_buf *reply)
{
	struct fixture *f = ctx;
	struct roll_str text = roll_str_n(line, n);
	uint64_t count;
	char *room;

	f->lines++;
	assert_int_equal(reply->n, 0);
	if (roll_str_eq_c(text, "bad")) {
		roll_buf_add_c(reply, "half a re");
		return ROLL_EPROTO;
	}
	if (roll_str_starts(text, "big ")) {
		assert_int_equal(
			roll_str_u64(roll_str_n(line + 4, n - 4), ROLL_REPLY_MAX_BYTES, &count),
			ROLL_OK);
		room = roll_buf_extend(reply, count);
		assert_non_null(room);
		memset(room, 'x', count);
		room[count - 1] = '\n';
		return ROLL_OK;
	}
	roll_buf_add_str(reply, text);
	roll_buf_add_char(reply, '\n');
	memset(line, '#', n); /* it is ours to overwrite */
	return reply->status;
}

static void on_overload(void *ctx, struct roll_buf *reply)
{
	(void)ctx;
	roll_buf_add_c(reply, "overload\n");
}

static void on_tick(void *ctx)
{
	struct fixture *f = ctx;

	roll_timer_set(f->tick, 1);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct roll_conns_conf conf;

	assert_non_null(f);
	f->clock = (struct roll_clock){fixture_now, fixture_now, f};
	assert_int_equal(roll_loop_new(NULL, &f->loop, NULL), ROLL_OK);
	conf = (struct roll_conns_conf){.loop = f->loop,
					.clock = &f->clock,
					.on_line = on_line,
					.on_overload = on_overload,
					.ctx = f};
	assert_int_equal(roll_conns_new(&conf, &f->conns, NULL), ROLL_OK);
	/* So that a turn of the loop ends also when nothing comes. */
	f->tick = roll_timer_new(f->loop, on_tick, f);
	roll_timer_set(f->tick, 1);
	snprintf(f->dir, sizeof f->dir, "/tmp/roll-conn-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	roll_conns_free(f->conns);
	roll_timer_free(f->tick);
	roll_loop_free(f->loop);
	rmdir(f->dir);
	free(f);
	return 0;
}

static void turn(struct fixture *f, int count)
{
	for (int i = 0; i < count; i++)
		assert_int_equal(roll_loop_once(f->loop), ROLL_OK);
}

/* Our end of a new connection. */
static int dial(struct fixture *f)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(roll_conns_adopt(f->conns, fds[1]), ROLL_OK);
	return fds[0];
}

static void say(int fd, const char *text, size_t n)
{
	assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* n bytes, turning the loop until they are there. */
static void hear(struct fixture *f, int fd, char *out, size_t n)
{
	size_t used = 0;

	for (int i = 0; used < n && i < 100000; i++) {
		ssize_t got = recv(fd, out + used, n - used, MSG_DONTWAIT);

		assert_true(got != 0);
		if (got > 0)
			used += (size_t)got;
		else
			turn(f, 1);
	}
	assert_int_equal(used, n);
}

static void assert_heard(struct fixture *f, int fd, const char *text)
{
	char got[1024] = "";

	hear(f, fd, got, strlen(text));
	assert_string_equal(got, text);
}

static void assert_closed(struct fixture *f, int fd)
{
	bool is_closed = false;
	char byte;

	for (int i = 0; !is_closed && i < 10000; i++) {
		ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT);

		assert_true(got <= 0);
		/* Reset, when it was closed with bytes of ours unread. */
		is_closed = got == 0 || errno == ECONNRESET;
		turn(f, 1);
	}
	assert_true(is_closed);
	close(fd);
}

static void assert_silent(struct fixture *f, int fd)
{
	char byte;

	turn(f, 3);
	assert_true(recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
}

static void requests_are_answered_in_turn(void **state)
{
	struct fixture *f = *state;
	int fd = dial(f);

	for (int i = 0; i < 3; i++) {
		say(fd, "hello\n", 6);
		assert_heard(f, fd, "hello\n");
	}
	assert_int_equal(roll_conns_count(f->conns), 1);
	close(fd);
	turn(f, 3);
	assert_int_equal(roll_conns_count(f->conns), 0);
}

static void a_request_may_be_cut_at_every_byte(void **state)
{
	static const char request[] = "one two three\n";
	struct fixture *f = *state;
	int fd = dial(f);

	for (size_t cut = 1; cut < sizeof request - 1; cut++) {
		say(fd, request, cut);
		assert_silent(f, fd);
		say(fd, request + cut, sizeof request - 1 - cut);
		assert_heard(f, fd, request);
	}
	for (size_t i = 0; i < sizeof request - 1; i++) {
		say(fd, request + i, 1);
		turn(f, 1);
	}
	assert_heard(f, fd, request);
	close(fd);
}

static void several_requests_in_one_write_are_all_answered(void **state)
{
	struct fixture *f = *state;
	int fd = dial(f);

	say(fd, "a\nbb\n\nccc\nd", 11);
	assert_heard(f, fd, "a\nbb\n\nccc\n");
	say(fd, "dd\n", 3);
	assert_heard(f, fd, "ddd\n");
	close(fd);
}

static void no_request_closes_and_sends_nothing_of_the_reply(void **state)
{
	struct fixture *f = *state;
	int fd = dial(f);

	say(fd, "a\nbad\nb\n", 8);
	assert_heard(f, fd, "a\n");
	assert_closed(f, fd);
	assert_int_equal(f->lines, 2);
	assert_int_equal(roll_conns_count(f->conns), 0);
}

static void the_longest_line_is_answered_and_a_longer_one_closes(void **state)
{
	struct fixture *f = *state;
	size_t longest = ROLL_LINE_MAX_BYTES - 1;
	char *line = malloc(longest + 2), *got = malloc(longest + 1);
	int fd = dial(f);

	assert_true(line && got);
	memset(line, 'a', longest + 2);
	line[longest] = '\n';
	for (int i = 0; i < 2; i++) {
		say(fd, line, longest + 1);
		hear(f, fd, got, longest + 1);
		assert_memory_equal(got, line, longest + 1);
	}
	line[longest] = 'a';
	say(fd, line, longest + 1);
	assert_closed(f, fd);
	free(line);
	free(got);
}

static void a_peer_that_is_done_sending_gets_its_replies(void **state)
{
	struct fixture *f = *state;
	int fd = dial(f);
	size_t n = 4 << 20;
	char *got = malloc(n);
	char byte;

	assert_non_null(got);
	say(fd, "big 4194304\nlast\nrest", 21);
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	turn(f, 3);
	hear(f, fd, got, n);
	assert_heard(f, fd, "last\n");
	turn(f, 3);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(roll_conns_count(f->conns), 0);
	close(fd);
	free(got);
}

static void a_slow_reader_holds_up_itself_only(void **state)
{
	struct fixture *f = *state;
	int slow = dial(f), other = dial(f);
	size_t n = 8 << 20;
	char *got = malloc(n);

	assert_non_null(got);
	say(slow, "big 8388608\nafter\n", 18);
	turn(f, 3);
	assert_true(roll_conns_pending_bytes(f->conns) > 0);
	/* Its next request is not looked at, those of others are. */
	say(other, "hello\n", 6);
	assert_heard(f, other, "hello\n");
	assert_int_equal(f->lines, 2);
	hear(f, slow, got, n);
	assert_heard(f, slow, "after\n");
	assert_int_equal(roll_conns_pending_bytes(f->conns), 0);
	close(slow);
	close(other);
	free(got);
}

static void all_replies_together_have_a_bound(void **state)
{
	struct fixture *f = *state;
	int fds[8];
	char got[9];
	size_t overloaded = 0;

	for (size_t i = 0; i < 8; i++) {
		fds[i] = dial(f);
		say(fds[i], "big 8388608\n", 12);
	}
	turn(f, 20);
	assert_true(roll_conns_pending_bytes(f->conns) <= ROLL_REPLIES_MAX_BYTES);
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(recv(fds[i], got, sizeof got, MSG_DONTWAIT), sizeof got);
		overloaded += memcmp(got, "overload\n", 9) == 0;
	}
	assert_int_equal(overloaded, 4);
	for (size_t i = 0; i < 8; i++)
		close(fds[i]);
	turn(f, 5);
	assert_int_equal(roll_conns_pending_bytes(f->conns), 0);
	assert_int_equal(roll_conns_count(f->conns), 0);
}

static void a_stalled_reader_is_closed_and_an_idle_one_is_not(void **state)
{
	struct fixture *f = *state;
	int stalled = dial(f), idle = dial(f), half = dial(f);

	say(stalled, "big 8388608\n", 12);
	say(half, "hel", 3);
	turn(f, 3);
	assert_int_equal(roll_conns_count(f->conns), 3);
	f->now_ms += (int64_t)24 * 3600 * 1000;
	/* Housekeeping comes once a second. */
	for (int i = 0; i < 100000 && roll_conns_count(f->conns) == 3; i++)
		turn(f, 1);
	assert_int_equal(roll_conns_count(f->conns), 2);
	say(idle, "hello\n", 6);
	assert_heard(f, idle, "hello\n");
	say(half, "lo\n", 3);
	assert_heard(f, half, "hello\n");
	close(stalled);
	close(idle);
	close(half);
}

static void a_peer_that_leaves_amid_its_reply_costs_nothing(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 50; i++) {
		int fd = dial(f);

		say(fd, "big 1048576\nmore\n", 17);
		if (i % 2)
			turn(f, 2);
		close(fd);
		turn(f, 2);
	}
	turn(f, 5);
	assert_int_equal(roll_conns_count(f->conns), 0);
	assert_int_equal(roll_conns_pending_bytes(f->conns), 0);
}

static int connect_to(const char *path)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
	if (connect(fd, (struct sockaddr *)&name, sizeof name) == 0)
		return fd;
	close(fd);
	return -1;
}

static void the_socket_has_its_mode_and_is_removed(void **state)
{
	struct fixture *f = *state;
	struct roll_socket sock;
	struct roll_err err;
	struct stat st;
	char path[100];
	int fds[20];

	snprintf(path, sizeof path, "%s/sock", f->dir);
	assert_int_equal(roll_socket_open(path, 0620, NULL, &sock, &err), ROLL_OK);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode) && (st.st_mode & 0777) == 0620);
	assert_int_equal(roll_conns_listen(f->conns, sock.fd, &err), ROLL_OK);
	for (size_t i = 0; i < 20; i++) {
		fds[i] = connect_to(path);
		assert_true(fds[i] >= 0);
	}
	for (size_t i = 0; i < 20; i++) {
		say(fds[i], "hello\n", 6);
		assert_heard(f, fds[i], "hello\n");
	}
	assert_int_equal(roll_conns_count(f->conns), 20);
	for (size_t i = 0; i < 20; i++)
		close(fds[i]);
	roll_socket_unlink(&sock);
	assert_int_equal(access(path, F_OK), -1);
}

static void a_socket_in_use_is_refused_and_a_stale_one_replaced(void **state)
{
	struct fixture *f = *state;
	struct roll_socket first, second;
	struct roll_err err;
	char path[100];

	snprintf(path, sizeof path, "%s/sock", f->dir);
	assert_int_equal(roll_socket_open(path, 0600, NULL, &first, &err), ROLL_OK);
	assert_int_equal(roll_socket_open(path, 0600, NULL, &second, &err), ROLL_EBUSY);
	assert_string_equal(err.text, "another server listens on it");
	/* As after a crash: the file is there, the server is not. */
	close(first.fd);
	assert_int_equal(roll_socket_open(path, 0600, NULL, &second, &err), ROLL_OK);
	/* The first must not remove what is the second's now. */
	roll_socket_unlink(&first);
	assert_int_equal(access(path, F_OK), 0);
	close(second.fd);
	roll_socket_unlink(&second);
	assert_int_equal(access(path, F_OK), -1);
}

static void what_cannot_be_listened_on_is_explained(void **state)
{
	struct fixture *f = *state;
	struct roll_socket sock;
	struct roll_err err;
	char path[200];
	FILE *file;

	snprintf(path, sizeof path, "%s/%0107d", f->dir, 0);
	assert_int_equal(roll_socket_open(path, 0600, NULL, &sock, &err), ROLL_ELIMIT);
	assert_non_null(strstr(err.text, "1 to 107 bytes"));
	assert_int_equal(roll_socket_open("", 0600, NULL, &sock, &err), ROLL_ELIMIT);
	snprintf(path, sizeof path, "%s/no/sock", f->dir);
	assert_int_equal(roll_socket_open(path, 0600, NULL, &sock, &err), ROLL_EIO);
	assert_non_null(strstr(err.text, "No such file or directory"));
	snprintf(path, sizeof path, "%s/sock", f->dir);
	assert_int_equal(roll_socket_open(path, 0600, "no-such-group", &sock, &err), ROLL_EINVAL);
	assert_string_equal(err.where, "--socket-group");
	assert_int_equal(access(path, F_OK), -1);
	/* A file that is no socket is somebody's. */
	file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	assert_int_equal(roll_socket_open(path, 0600, NULL, &sock, &err), ROLL_EEXIST);
	assert_int_equal(unlink(path), 0);
	roll_socket_unlink(&sock);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(requests_are_answered_in_turn),
		TEST(a_request_may_be_cut_at_every_byte),
		TEST(several_requests_in_one_write_are_all_answered),
		TEST(no_request_closes_and_sends_nothing_of_the_reply),
		TEST(the_longest_line_is_answered_and_a_longer_one_closes),
		TEST(a_peer_that_is_done_sending_gets_its_replies),
		TEST(a_slow_reader_holds_up_itself_only),
		TEST(all_replies_together_have_a_bound),
		TEST(a_stalled_reader_is_closed_and_an_idle_one_is_not),
		TEST(a_peer_that_leaves_amid_its_reply_costs_nothing),
		TEST(the_socket_has_its_mode_and_is_removed),
		TEST(a_socket_in_use_is_refused_and_a_stale_one_replaced),
		TEST(what_cannot_be_listened_on_is_explained),
	};

	return cmocka_run_group_tests_name("conn", tests, NULL, NULL);
}
