/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cmocka.h>

#include "app/httpd.h"
#include "app/loop.h"
#include "tests/lib/dial.h"

struct fixture {
	struct roll_loop *loop;
	struct roll_httpd *httpd;
	struct roll_timer *deadline;
	bool is_late;
};

static void on_late(void *ctx)
{
	((struct fixture *)ctx)->is_late = true;
}

static void say_hello(void *ctx, const struct roll_http_query *query, struct roll_http_reply *reply)
{
	char name[32];

	(void)ctx;
	if (roll_http_param(query->query, "name", name, sizeof name))
		roll_buf_add_c(&reply->body, "hello\n");
	else
		roll_buf_printf(&reply->body, "hello %s\n", name);
}

static void be_unready(void *ctx, const struct roll_http_query *query,
		       struct roll_http_reply *reply)
{
	(void)ctx;
	(void)query;
	reply->status = 503;
	reply->content_type = "application/json";
	roll_buf_add_c(&reply->body, "{}");
}

static void say_too_much(void *ctx, const struct roll_http_query *query,
			 struct roll_http_reply *reply)
{
	static char block[1 << 20];

	(void)ctx;
	(void)query;
	memset(block, 'x', sizeof block);
	for (int i = 0; i < 17; i++)
		roll_buf_add(&reply->body, block, sizeof block);
}

static void say_much(void *ctx, const struct roll_http_query *query, struct roll_http_reply *reply)
{
	static char block[1 << 20];

	(void)ctx;
	(void)query;
	memset(block, 'x', sizeof block);
	for (int i = 0; i < 8; i++)
		roll_buf_add(&reply->body, block, sizeof block);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	assert_non_null(f);
	assert_int_equal(roll_loop_new(NULL, &f->loop, NULL), ROLL_OK);
	assert_int_equal(roll_httpd_new(f->loop, "127.0.0.1:0", &f->httpd, NULL), ROLL_OK);
	assert_int_equal(roll_httpd_handle(f->httpd, "/hello", say_hello, NULL), ROLL_OK);
	assert_int_equal(roll_httpd_handle(f->httpd, "/unready", be_unready, NULL), ROLL_OK);
	assert_int_equal(roll_httpd_handle(f->httpd, "/too-much", say_too_much, NULL), ROLL_OK);
	assert_int_equal(roll_httpd_handle(f->httpd, "/much", say_much, NULL), ROLL_OK);
	f->deadline = roll_timer_new(f->loop, on_late, f);
	roll_timer_set(f->deadline, 30000);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	roll_timer_free(f->deadline);
	roll_httpd_free(f->httpd);
	roll_loop_free(f->loop);
	free(f);
	return 0;
}

/* Turn the loop until the server has closed; the reply, of at most 16 MiB, is the caller's. */
static char *read_all(struct fixture *f, int fd)
{
	size_t room = 17 << 20, used = 0;
	char *got = malloc(room);
	ssize_t n;

	assert_non_null(got);
	while ((n = recv(fd, got + used, room - 1 - used, 0)) != 0) {
		if (n > 0) {
			used += (size_t)n;
			continue;
		}
		assert_true(errno == EAGAIN);
		assert_false(f->is_late);
		assert_int_equal(roll_loop_once(f->loop), ROLL_OK);
	}
	got[used] = '\0';
	close(fd);
	return got;
}

static char *ask(struct fixture *f, const char *text)
{
	int fd = dial(roll_httpd_port(f->httpd));

	assert_int_equal(send(fd, text, strlen(text), 0), (ssize_t)strlen(text));
	return read_all(f, fd);
}

static void requests_get_their_status(void **state)
{
	static const struct {
		const char *request, *status, *has;
	} cases[] = {
		{"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK", "\r\n\r\nhello\n"},
		{"GET /hello HTTP/1.0\r\n\r\n", "200 OK", "Content-Length: 6\r\n"},
		{"GET /%68ello?name=a%20b+c HTTP/1.1\r\n\r\n", "200 OK", "hello a b c\n"},
		{"GET /hello?x=1&name=%41&name=b HTTP/1.1\r\n\r\n", "200 OK", "hello A\n"},
		{"GET /unready HTTP/1.1\r\n\r\n", "503 Service Unavailable",
		 "Content-Type: application/json\r\n"},
		{"GET / HTTP/1.1\r\n\r\n", "404 Not Found", "404"},
		{"GET /hello/ HTTP/1.1\r\n\r\n", "404 Not Found", "404"},
		{"POST /hello HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "405 Method Not Allowed",
		 "Allow: GET, HEAD\r\n"},
		{"get /hello HTTP/1.1\r\n\r\n", "405 Method Not Allowed", ""},
		{"GET /hel%6 HTTP/1.1\r\n\r\n", "400 Bad Request", ""},
		{"GET /hello%00 HTTP/1.1\r\n\r\n", "400 Bad Request", ""},
		{"GET hello HTTP/1.1\r\n\r\n", "400 Bad Request", ""},
		{"GET  /hello HTTP/1.1\r\n\r\n", "400 Bad Request", ""},
		{"GET /hello\r\n\r\n", "400 Bad Request", ""},
		{"\r\n\r\n", "400 Bad Request", ""},
		{"GET /hello HTTP/2.0\r\n\r\n", "505 HTTP Version Not Supported", ""},
		{"GET /too-much HTTP/1.1\r\n\r\n", "500 Internal Server Error", ""},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *got = ask(*state, cases[i].request);

		if (strncmp(got, "HTTP/1.1 ", 9) != 0 ||
		    strncmp(got + 9, cases[i].status, strlen(cases[i].status)) != 0 ||
		    !strstr(got, cases[i].has))
			fail_msg("%s: %.300s", cases[i].request, got);
		free(got);
	}
}

static void head_has_no_body(void **state)
{
	char *got = ask(*state, "HEAD /hello HTTP/1.1\r\n\r\n");

	assert_non_null(strstr(got, "Content-Length: 6\r\n"));
	assert_string_equal(strstr(got, "\r\n\r\n"), "\r\n\r\n");
	free(got);
}

static void a_request_may_come_byte_by_byte(void **state)
{
	static const char request[] = "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n";
	struct fixture *f = *state;
	int fd = dial(roll_httpd_port(f->httpd));
	char *got;

	for (size_t i = 0; i < sizeof request - 1; i++) {
		assert_int_equal(send(fd, request + i, 1, 0), 1);
		assert_int_equal(roll_loop_once(f->loop), ROLL_OK);
	}
	got = read_all(f, fd);
	assert_non_null(strstr(got, "hello\n"));
	free(got);
}

static void a_head_without_end_is_refused(void **state)
{
	struct fixture *f = *state;
	char junk[9000];
	int fd = dial(roll_httpd_port(f->httpd));
	char *got;

	memset(junk, 'a', sizeof junk);
	assert_int_equal(send(fd, junk, sizeof junk, 0), sizeof junk);
	got = read_all(f, fd);
	assert_int_equal(strncmp(got, "HTTP/1.1 431 ", 13), 0);
	free(got);
}

static void a_long_target_is_refused(void **state)
{
	char request[2000];
	char *got;

	snprintf(request, sizeof request, "GET /%01500d HTTP/1.1\r\n\r\n", 0);
	got = ask(*state, request);
	assert_int_equal(strncmp(got, "HTTP/1.1 414 ", 13), 0);
	free(got);
}

static void a_peer_that_is_done_sending_gets_its_reply(void **state)
{
	static const char request[] = "GET /much HTTP/1.1\r\n\r\n";
	struct fixture *f = *state;
	int fd = dial(roll_httpd_port(f->httpd));
	char *got;

	assert_int_equal(send(fd, request, sizeof request - 1, 0), sizeof request - 1);
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	got = read_all(f, fd);
	assert_true(strlen(got) > 8 << 20);
	free(got);
}

static void a_peer_that_leaves_costs_nothing(void **state)
{
	struct fixture *f = *state;
	char *got;

	close(dial(roll_httpd_port(f->httpd)));
	for (int i = 0; i < 100; i++) {
		int fd = dial(roll_httpd_port(f->httpd));

		assert_true(send(fd, "GET /much HTTP/1.1\r\n\r\n", 22, 0) == 22);
		close(fd);
	}
	got = ask(f, "GET /hello HTTP/1.1\r\n\r\n");
	assert_non_null(strstr(got, "hello\n"));
	free(got);
}

/* The bound is 64; those beyond it wait in the backlog until one leaves. */
static void connections_have_a_bound(void **state)
{
	struct fixture *f = *state;
	int idle[64], last;
	char byte;
	char *got;

	for (size_t i = 0; i < 64; i++)
		idle[i] = dial(roll_httpd_port(f->httpd));
	last = dial(roll_httpd_port(f->httpd));
	assert_true(send(last, "GET /hello HTTP/1.1\r\n\r\n", 23, 0) == 23);
	for (int i = 0; i < 5; i++) {
		struct roll_timer *tick = roll_timer_new(f->loop, on_late, &(struct fixture){0});

		roll_timer_set(tick, 1);
		assert_int_equal(roll_loop_once(f->loop), ROLL_OK);
		roll_timer_free(tick);
	}
	assert_true(recv(last, &byte, 1, 0) < 0 && errno == EAGAIN);
	for (size_t i = 0; i < 64; i++)
		close(idle[i]);
	got = read_all(f, last);
	assert_non_null(strstr(got, "hello\n"));
	free(got);
}

static void an_endpoint_that_cannot_be_is_explained(void **state)
{
	struct fixture *f = *state;
	struct roll_httpd *other = NULL;
	struct roll_err err;
	char taken[32];

	assert_int_equal(roll_httpd_new(f->loop, "localhost:1", &other, &err), ROLL_EINVAL);
	assert_non_null(strstr(err.text, "expected 127.0.0.1:9153"));
	snprintf(taken, sizeof taken, "127.0.0.1:%u", roll_httpd_port(f->httpd));
	assert_int_equal(roll_httpd_new(f->loop, taken, &other, &err), ROLL_EIO);
	assert_non_null(strstr(err.text, "Address already in use"));
	assert_null(other);
	/* All addresses, with whatever families this machine has. */
	assert_int_equal(roll_httpd_new(f->loop, ":0", &other, &err), ROLL_OK);
	assert_true(roll_httpd_port(other) > 0);
	roll_httpd_free(other);
}

static void parameters_are_found_and_decoded(void **state)
{
	static const struct {
		const char *query, *name, *value;
		enum roll_status status;
	} cases[] = {
		{"a=1", "a", "1", ROLL_OK},
		{"a=", "a", "", ROLL_OK},
		{"a", "a", "", ROLL_OK},
		{"aa=1&a=2", "a", "2", ROLL_OK},
		{"", "a", NULL, ROLL_ENOENT},
		{"b=1", "a", NULL, ROLL_ENOENT},
		{"a=%", "a", NULL, ROLL_EINVAL},
		{"a=%zz", "a", NULL, ROLL_EINVAL},
		{"a=%2", "a", NULL, ROLL_EINVAL},
		{"a=%2e%2E", "a", "..", ROLL_OK},
		{"a=12345678", "a", NULL, ROLL_ELIMIT},
	};
	char out[8];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(
			roll_http_param(roll_str_c(cases[i].query), cases[i].name, out, sizeof out),
			cases[i].status);
		if (!cases[i].status)
			assert_string_equal(out, cases[i].value);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(requests_get_their_status),
		TEST(head_has_no_body),
		TEST(a_request_may_come_byte_by_byte),
		TEST(a_head_without_end_is_refused),
		TEST(a_long_target_is_refused),
		TEST(a_peer_that_is_done_sending_gets_its_reply),
		TEST(a_peer_that_leaves_costs_nothing),
		TEST(connections_have_a_bound),
		TEST(an_endpoint_that_cannot_be_is_explained),
		cmocka_unit_test(parameters_are_found_and_decoded),
	};

	return cmocka_run_group_tests_name("httpd", tests, NULL, NULL);
}
