/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "source/http.h"
#include "source/secret.h"
#include "tests/lib/fake_api.h"
#include "tests/lib/fake_proxy.h"
#include "tests/lib/gzip.h"
#include "tests/lib/until.h"

#define PATIENCE_MS 10000

struct world {
	struct roll_loop *loop;
	struct fake_api *server;
	struct roll_http *http;
	char url[128];
};

/* One request and what became of it. */
struct fetch {
	struct world *world;
	struct roll_http_request *request;
	struct roll_http_identity identity;
	struct roll_buf body;
	int head;
	size_t pieces, settled, done;
	size_t largest;		 /* piece */
	enum roll_status answer; /* to on_body */
	enum roll_status status;
	int http_status;
	int64_t retry_after_ms;
	char text[256];
	struct fetch *starts;  /* from on_done */
	struct fetch *cancels; /* from on_body */
};

static void start(struct fetch *fetch, struct roll_http_spec spec);

static void on_head(void *ctx, int http_status)
{
	struct fetch *fetch = ctx;

	assert_int_equal(fetch->head, 0);
	fetch->head = http_status;
}

static enum roll_status on_body(void *ctx, struct roll_str piece)
{
	struct fetch *fetch = ctx;

	assert_true(fetch->head);
	fetch->pieces++;
	fetch->largest = piece.n > fetch->largest ? piece.n : fetch->largest;
	roll_buf_add_str(&fetch->body, piece);
	if (fetch->cancels) {
		roll_http_cancel(fetch->cancels->request);
		roll_http_cancel(fetch->cancels->request);
	}
	return fetch->answer;
}

static void on_settled(void *ctx)
{
	struct fetch *fetch = ctx;

	assert_true(fetch->pieces > 0 && fetch->done == 0);
	fetch->settled++;
}

static void on_done(void *ctx, const struct roll_http_result *result)
{
	struct fetch *fetch = ctx;

	fetch->done++;
	fetch->status = result->status;
	fetch->http_status = result->http_status;
	fetch->retry_after_ms = result->retry_after_ms;
	snprintf(fetch->text, sizeof fetch->text, "%s", result->text);
	if (fetch->starts)
		start(fetch->starts, (struct roll_http_spec){.url = "/next"});
}

static void start(struct fetch *fetch, struct roll_http_spec spec)
{
	char url[256];

	roll_buf_init(&fetch->body, 1u << 20);
	if (spec.url && spec.url[0] == '/') {
		snprintf(url, sizeof url, "%s%s", fake_api_url(fetch->world->server), spec.url);
		spec.url = url;
	}
	if (!spec.method)
		spec.method = "GET";
	if (!spec.connect_ms)
		spec.connect_ms = 5000;
	spec.identity = &fetch->identity;
	spec.on_head = on_head;
	spec.on_body = on_body;
	spec.on_settled = on_settled;
	spec.on_done = on_done;
	spec.ctx = fetch;
	fetch->request = roll_http_start(fetch->world->http, &spec);
	assert_non_null(fetch->request);
	assert_int_equal(fetch->done, 0);
}

static bool is_done(void *ctx)
{
	return ((struct fetch *)ctx)->done > 0;
}

static void finish(struct fetch *fetch)
{
	assert_true(until(fetch->world->loop, is_done, fetch, PATIENCE_MS));
	assert_int_equal(fetch->done, 1);
}

static void drop(struct fetch *fetch)
{
	roll_buf_fini(&fetch->body);
}

static int setup(void **state)
{
	struct world *world = calloc(1, sizeof *world);

	assert_non_null(world);
	assert_int_equal(roll_loop_new(NULL, &world->loop, NULL), ROLL_OK);
	world->server = fake_api_new(roll_loop_base(world->loop));
	assert_non_null(world->server);
	assert_int_equal(roll_http_new(world->loop, &world->http, NULL), ROLL_OK);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	roll_http_free(world->http);
	fake_api_free(world->server);
	roll_loop_free(world->loop);
	free(world);
	return 0;
}

static void answers_are_told_as_they_are(void **state)
{
	static const struct {
		const char *answer;
		enum roll_status status;
		int http_status;
		int64_t retry_after_ms;
		const char *body;
	} cases[] = {
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", ROLL_OK, 200, -1, "hello"},
		{"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello", ROLL_OK, 200, -1, "hello"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n"
		 "\r\n",
		 ROLL_OK, 200, -1, "hello"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nl", ROLL_EIO,
		 200, -1, "hel"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", ROLL_EIO, 200, -1, "hello"},
		{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
		 ROLL_OK, 200, -1, "x"},
		{"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", ROLL_OK, 429,
		 7000, ""},
		{"HTTP/1.1 429 Slow\r\nretry-after:  7 \r\nContent-Length: 0\r\n\r\n", ROLL_OK, 429,
		 7000, ""},
		{"HTTP/1.1 503 No\r\nRetry-After: Wed, 02 Dec 2026 06:00:00 GMT\r\n"
		 "Content-Length: 0\r\n\r\n",
		 ROLL_OK, 503, -1, ""},
		{"HTTP/1.1 503 No\r\nRetry-After: -1\r\nContent-Length: 0\r\n\r\n", ROLL_OK, 503,
		 -1, ""},
		{"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
		 ROLL_OK, 302, -1, ""},
		{"HTTP/1.1 204 No Content\r\n\r\n", ROLL_OK, 204, -1, ""},
		{"", ROLL_EIO, 0, -1, ""},
		{"HTTP/1.1 20", ROLL_EIO, 0, -1, ""},
		{"220 mail.example ESMTP\r\n", ROLL_EIO, 0, -1, ""},
	};
	struct world *world = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fetch fetch = {.world = world};

		fake_api_script(world->server, "/x", cases[i].answer, 1);
		start(&fetch, (struct roll_http_spec){.url = "/x"});
		finish(&fetch);
		if (cases[i].http_status)
			assert_int_equal(fetch.status, cases[i].status);
		else
			assert_true(fetch.status == ROLL_EIO || fetch.status == ROLL_EPROTO ||
				    fetch.status == ROLL_EINVAL);
		assert_int_equal(fetch.http_status, cases[i].http_status);
		assert_int_equal(fetch.head, cases[i].http_status);
		assert_int_equal(fetch.retry_after_ms, cases[i].retry_after_ms);
		assert_string_equal(fetch.body.p ? fetch.body.p : "", cases[i].body);
		assert_true(!fetch.text[0] == !fetch.status);
		assert_int_equal(fetch.settled > 0, fetch.pieces > 0);
		drop(&fetch);
	}
}

static void requests_say_who_they_are(void **state)
{
	static const char *const headers[] = {"Accept: application/json", NULL};
	struct world *world = *state;
	struct fetch fetch = {.world = world};
	const char *head;

	fetch.identity.token = roll_str_c("s3cret");
	start(&fetch, (struct roll_http_spec){
			      .url = "/x?y=1",
			      .method = "PATCH",
			      .headers = headers,
			      .body = roll_str_c("{\"a\":1}"),
			      .accepts_gzip = true,
		      });
	finish(&fetch);
	head = fake_api_last_request(world->server);
	assert_non_null(strstr(head, "PATCH /x?y=1 HTTP/1.1\r\n"));
	assert_non_null(strstr(head, "User-Agent: rollcall-sync/"));
	assert_non_null(strstr(head, "Authorization: Bearer s3cret\r\n"));
	assert_non_null(strstr(head, "Accept: application/json\r\n"));
	assert_non_null(strstr(head, "Accept-Encoding: gzip\r\n"));
	assert_non_null(strstr(head, "Content-Length: 7\r\n"));
	drop(&fetch);
}

static void waiting_has_an_end(void **state)
{
	struct world *world = *state;
	struct fetch total = {.world = world}, silence = {.world = world};

	fake_api_script(world->server, "/hang", NULL, 2);
	start(&total, (struct roll_http_spec){.url = "/hang", .total_ms = 50});
	finish(&total);
	assert_int_equal(total.status, ROLL_EIO);
	assert_int_equal(total.http_status, 0);
	start(&silence, (struct roll_http_spec){.url = "/hang", .silence_ms = 1});
	finish(&silence);
	assert_int_equal(silence.status, ROLL_EIO);
	drop(&total);
	drop(&silence);
}

static void nobody_there_is_an_error(void **state)
{
	static const char *const urls[] = {"http://127.0.0.1:1/", "http://nowhere.invalid/",
					   "ftp://127.0.0.1/", "file:///etc/passwd", "http://"};
	struct world *world = *state;

	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		struct fetch fetch = {.world = world};

		start(&fetch, (struct roll_http_spec){.url = urls[i]});
		finish(&fetch);
		assert_int_not_equal(fetch.status, ROLL_OK);
		assert_int_equal(fetch.http_status, 0);
		assert_true(fetch.text[0]);
		drop(&fetch);
	}
}

static void the_reader_can_refuse(void **state)
{
	struct world *world = *state;
	struct fetch fetch = {.world = world, .answer = ROLL_ELIMIT};

	fake_api_script(world->server, "/x", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", 1);
	start(&fetch, (struct roll_http_spec){.url = "/x"});
	finish(&fetch);
	assert_int_equal(fetch.status, ROLL_ELIMIT);
	assert_int_equal(fetch.pieces, 1);
	drop(&fetch);
}

static void callbacks_may_start_and_cancel(void **state)
{
	struct world *world = *state;
	struct fetch next = {.world = world}, other = {.world = world};
	struct fetch own = {.world = world}, first = {.world = world, .starts = &next};

	fake_api_script(world->server, "/hang", NULL, 1);
	fake_api_script(world->server, "/x", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", 2);
	start(&other, (struct roll_http_spec){.url = "/hang"});
	first.cancels = &other;
	start(&first, (struct roll_http_spec){.url = "/x"});
	finish(&first);
	finish(&next);
	assert_int_equal(next.http_status, 404);
	own.cancels = &own;
	start(&own, (struct roll_http_spec){.url = "/x"});
	for_ms(world->loop, 50);
	assert_int_equal(own.pieces, 1);
	assert_int_equal(own.done + other.done, 0);
	drop(&first);
	drop(&next);
	drop(&other);
	drop(&own);
}

static void it_can_be_freed_with_requests_running(void **state)
{
	struct world *world = *state;
	struct fetch fetches[8];

	fake_api_script(world->server, "/hang", NULL, 100);
	for (size_t turns = 0; turns < 6; turns++) {
		for (size_t i = 0; i < 8; i++) {
			fetches[i] = (struct fetch){.world = world};
			start(&fetches[i], (struct roll_http_spec){.url = "/hang"});
		}
		for (size_t i = 0; i < turns; i++)
			assert_int_equal(roll_loop_once(world->loop), ROLL_OK);
		roll_http_free(world->http);
		assert_int_equal(roll_http_new(world->loop, &world->http, NULL), ROLL_OK);
		for (size_t i = 0; i < 8; i++)
			drop(&fetches[i]);
	}
}

static void connections_are_used_again_unless_alone(void **state)
{
	struct world *world = *state;
	uint16_t port = fake_api_port(world->server);

	assert_true(port > 0);
	for (int is_alone = 0; is_alone < 2; is_alone++) {
		struct fetch a = {.world = world}, b = {.world = world};

		start(&a, (struct roll_http_spec){.url = "/a", .is_alone = is_alone});
		finish(&a);
		/* A server that has closed an idle connection is not an error. */
		if (!is_alone)
			fake_api_cut(world->server);
		start(&b, (struct roll_http_spec){.url = "/b", .is_alone = is_alone});
		finish(&b);
		assert_int_equal(b.http_status, 404);
		drop(&a);
		drop(&b);
	}
}

/* --- compression --- */

static void fetch_packed(struct fetch *fetch, struct roll_str packed, bool accepts_gzip)
{
	struct roll_buf answer;

	roll_buf_init(&answer, 1u << 20);
	roll_buf_printf(&answer,
			"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
			packed.n);
	roll_buf_add_str(&answer, packed);
	fake_api_script_bytes(fetch->world->server, "/x", answer.p, answer.n, 1);
	roll_buf_fini(&answer);
	start(fetch, (struct roll_http_spec){.url = "/x", .accepts_gzip = accepts_gzip});
	finish(fetch);
	assert_int_equal(fetch->http_status, 200);
}

static void answers_are_unpacked_if_that_was_asked_for(void **state)
{
	struct fetch plain = {.world = *state}, asked = {.world = *state};
	struct roll_buf packed;

	roll_buf_init(&packed, 1u << 20);
	gzip_run(&packed, roll_str_c("{"), ' ', 500000, roll_str_c("}"));
	fetch_packed(&asked, roll_buf_str(&packed), true);
	assert_int_equal(asked.status, ROLL_OK);
	assert_int_equal(asked.body.n, 500002);
	assert_int_equal(asked.body.p[500001], '}');
	/* However well it was packed. */
	assert_true(asked.largest <= 128u << 10);
	fetch_packed(&plain, roll_buf_str(&packed), false);
	assert_int_equal(plain.status, ROLL_OK);
	assert_memory_equal(plain.body.p, packed.p, packed.n);
	assert_null(strstr(fake_api_last_request(plain.world->server), "Accept-Encoding"));
	drop(&asked);
	drop(&plain);
	roll_buf_fini(&packed);
}

static void what_cannot_be_unpacked_is_an_error(void **state)
{
	struct roll_buf packed;
	size_t n;

	roll_buf_init(&packed, 1u << 20);
	gzip_run(&packed, roll_str_c("{"), ' ', 5000, roll_str_c("}"));
	n = packed.n;
	/* The magic number, the method, the checksum, the size. */
	for (size_t i = 0; i < 4; i++) {
		size_t at = (const size_t[]){0, 2, n - 8, n - 1}[i];
		struct fetch fetch = {.world = *state};

		packed.p[at] ^= 0x40;
		fetch_packed(&fetch, roll_buf_str(&packed), true);
		packed.p[at] ^= 0x40;
		assert_int_equal(fetch.status, ROLL_EPROTO);
		drop(&fetch);
	}
	roll_buf_fini(&packed);
}

/* --- TLS, against a server of the openssl program --- */

struct tls {
	char folder[32];
	pid_t pid;
	FILE *out; /* its chatter has somewhere to go */
	char url[64];
	struct roll_buf ca, cert, key;
};

static pid_t run(const char *const *argv, int out_fd)
{
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;
	int failure;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
	if (out_fd >= 0)
		posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
	else
		posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1, 0);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", 1, 0);
	failure = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv,
			       environ);
	posix_spawn_file_actions_destroy(&actions);
	return failure ? -1 : pid;
}

static bool has_run(const char *const *argv)
{
	pid_t pid = run(argv, -1);
	int how;

	return pid > 0 && waitpid(pid, &how, 0) == pid && WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

static void read_pem(struct tls *tls, const char *name, struct roll_buf *out)
{
	char path[64];

	snprintf(path, sizeof path, "%s/%s", tls->folder, name);
	assert_int_equal(roll_secret_read(out, path, NULL), ROLL_OK);
}

/* A server that would rather speak HTTP/2. False: there is no openssl program. */
static bool start_tls(struct tls *tls, bool wants_client)
{
	char key[64], cert[64];
	const char *make[] = {"openssl",
			      "req",
			      "-x509",
			      "-newkey",
			      "ec",
			      "-pkeyopt",
			      "ec_paramgen_curve:P-256",
			      "-nodes",
			      "-days",
			      "2",
			      "-subj",
			      "/CN=api.example",
			      "-addext",
			      "subjectAltName=DNS:api.example",
			      "-keyout",
			      key,
			      "-out",
			      cert,
			      NULL};
	const char *serve[] = {"openssl", "s_server",
			       "-accept", "127.0.0.1:0",
			       "-alpn",	  "h2,http/1.1",
			       "-www",	  "-key",
			       key,	  "-cert",
			       cert,	  "-CAfile",
			       cert,	  wants_client ? "-Verify" : NULL,
			       "1",	  "-verify_return_error",
			       NULL};
	char line[256];
	int fds[2];

	*tls = (struct tls){.folder = "tls-XXXXXX"};
	assert_non_null(mkdtemp(tls->folder));
	snprintf(key, sizeof key, "%s/key", tls->folder);
	snprintf(cert, sizeof cert, "%s/cert", tls->folder);
	if (!has_run(make)) {
		rmdir(tls->folder);
		return false;
	}
	read_pem(tls, "cert", &tls->ca);
	read_pem(tls, "cert", &tls->cert);
	read_pem(tls, "key", &tls->key);
	assert_int_equal(pipe(fds), 0);
	tls->pid = run(serve, fds[1]);
	assert_true(tls->pid > 0);
	close(fds[1]);
	tls->out = fdopen(fds[0], "r");
	assert_non_null(tls->out);
	while (fgets(line, sizeof line, tls->out)) {
		char *colon = strrchr(line, ':');

		if (strncmp(line, "ACCEPT", 6) == 0 && colon) {
			colon[strcspn(colon, "\r\n")] = '\0';
			snprintf(tls->url, sizeof tls->url, "https://127.0.0.1%s/", colon);
			break;
		}
	}
	assert_true(tls->url[0]);
	remove(key);
	remove(cert);
	rmdir(tls->folder);
	return true;
}

static void stop_tls(struct tls *tls)
{
	kill(tls->pid, SIGKILL);
	waitpid(tls->pid, NULL, 0);
	fclose(tls->out);
	roll_secret_fini(&tls->ca);
	roll_secret_fini(&tls->cert);
	roll_secret_fini(&tls->key);
}

static void the_server_is_verified(void **state)
{
	struct world *world = *state;
	struct tls tls;

	if (!start_tls(&tls, false))
		skip();
	{
		struct roll_str ca = roll_buf_str(&tls.ca);
		const struct {
			struct roll_http_identity identity;
			enum roll_status status;
		} cases[] = {
			{{.ca = ca, .server_name = "api.example"}, ROLL_OK},
			{{.ca = ca}, ROLL_EDENIED}, /* it is not called 127.0.0.1 */
			{{.ca = ca, .server_name = "other.example"}, ROLL_EDENIED},
			{{.server_name = "api.example"}, ROLL_EDENIED}, /* not the system's */
			{{.is_insecure = true}, ROLL_OK},
			{{.ca = roll_str_c("nonsense"), .server_name = "api.example"},
			 ROLL_EDENIED},
		};

		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			struct fetch fetch = {.world = world, .identity = cases[i].identity};

			start(&fetch, (struct roll_http_spec){.url = tls.url});
			finish(&fetch);
			if (fetch.status != cases[i].status)
				fail_msg("case %zu: %d %s", i, fetch.status, fetch.text);
			drop(&fetch);
		}
	}
	stop_tls(&tls);
}

static void the_client_shows_its_certificate(void **state)
{
	struct world *world = *state;
	struct tls tls;

	if (!start_tls(&tls, true))
		skip();
	for (int has_cert = 0; has_cert < 2; has_cert++) {
		struct fetch fetch = {.world = world};

		fetch.identity.ca = roll_buf_str(&tls.ca);
		fetch.identity.server_name = "api.example";
		if (has_cert) {
			fetch.identity.cert = roll_buf_str(&tls.cert);
			fetch.identity.key = roll_buf_str(&tls.key);
		}
		start(&fetch, (struct roll_http_spec){.url = tls.url});
		finish(&fetch);
		assert_int_equal(fetch.http_status, has_cert ? 200 : 0);
		drop(&fetch);
	}
	stop_tls(&tls);
}

/* --- proxies --- */

static void set_environment(const char *const *settings)
{
	static const char *const names[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
					    "ALL_PROXY",  "no_proxy",	 "NO_PROXY"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unsetenv(names[i]);
	for (; settings[0]; settings += 2)
		setenv(settings[0], settings[1], 1);
}

static void a_proxy_of_the_environment_is_used(void **state)
{
#define DEAD "http://127.0.0.1:1"
	struct world *world = *state;
	struct fake_proxy *proxy = fake_proxy_new(roll_loop_base(world->loop));
	const char *url = fake_proxy_url(proxy);
	const struct {
		const char *settings[5];
		const char *server_name;
		bool is_proxied;
		bool has_own; /* the kubeconfig's */
	} cases[] = {
		{{"HTTPS_PROXY", url}, NULL, true, false},
		{{"https_proxy", url}, NULL, true, false},
		{{"ALL_PROXY", url}, NULL, true, false},
		{{"HTTPS_PROXY", url, "NO_PROXY", "other.example"}, NULL, true, false},
		{{"HTTPS_PROXY", url}, "api.example", true, false},
		{{NULL}, NULL, false, false},
		{{"http_proxy", DEAD}, NULL, false, false},
		{{"HTTPS_PROXY", DEAD, "NO_PROXY", "a.example,127.0.0.1"}, NULL, false, false},
		{{"HTTPS_PROXY", DEAD, "no_proxy", "127.0.0.1"}, NULL, false, false},
		{{"HTTPS_PROXY", DEAD, "NO_PROXY", "*"}, NULL, false, false},
		{{"HTTPS_PROXY", DEAD, "NO_PROXY", "127.0.0.0/8"}, NULL, false, false},
		/* The name in the certificate is not the host's. */
		{{"HTTPS_PROXY", DEAD, "NO_PROXY", "127.0.0.1"}, "api.example", false, false},
		{{"HTTPS_PROXY", url, "NO_PROXY", "api.example"}, "api.example", true, false},
		{{"HTTPS_PROXY", DEAD}, NULL, true, true},
		{{"HTTPS_PROXY", DEAD, "NO_PROXY", "127.0.0.1"}, NULL, true, true},
	};
	struct tls tls;

	if (!start_tls(&tls, false))
		skip();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t count = fake_proxy_count(proxy);
		struct fetch fetch = {.world = world};

		set_environment(cases[i].settings);
		fetch.identity.ca = roll_buf_str(&tls.ca);
		fetch.identity.is_insecure = !cases[i].server_name;
		fetch.identity.server_name = cases[i].server_name;
		fetch.identity.proxy = cases[i].has_own ? url : NULL;
		fetch.identity.token = roll_str_c("s3cret");
		start(&fetch, (struct roll_http_spec){.url = tls.url, .is_alone = true});
		finish(&fetch);
		if (fetch.http_status != 200)
			fail_msg("case %zu: %d %s", i, fetch.http_status, fetch.text);
		assert_int_equal(fake_proxy_count(proxy) - count, cases[i].is_proxied);
		if (cases[i].is_proxied) {
			assert_non_null(strstr(fake_proxy_last(proxy), "CONNECT 127.0.0.1:"));
			assert_null(strstr(fake_proxy_last(proxy), "s3cret"));
		}
		drop(&fetch);
	}
	stop_tls(&tls);
	fake_proxy_free(proxy);
}

static void a_proxy_that_refuses_is_no_server_that_answers(void **state)
{
	static const char *const answers[] = {
		"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno",
		"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 410 Gone\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 Established\r\n\r\nbut not by TLS",
		"",
	};
	struct world *world = *state;
	struct fake_proxy *proxy = fake_proxy_new(roll_loop_base(world->loop));

	set_environment((const char *const[]){"HTTPS_PROXY", fake_proxy_url(proxy), NULL});
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		struct fetch fetch = {.world = world};

		fake_proxy_refuse(proxy, answers[i]);
		start(&fetch, (struct roll_http_spec){.url = "https://127.0.0.1:1/"});
		finish(&fetch);
		assert_int_equal(fetch.status, ROLL_EIO);
		assert_int_equal(fetch.http_status, 0);
		assert_int_equal(fetch.retry_after_ms, -1);
		drop(&fetch);
	}
	fake_proxy_free(proxy);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(answers_are_told_as_they_are),
		TEST(requests_say_who_they_are),
		TEST(waiting_has_an_end),
		TEST(nobody_there_is_an_error),
		TEST(the_reader_can_refuse),
		TEST(callbacks_may_start_and_cancel),
		TEST(it_can_be_freed_with_requests_running),
		TEST(connections_are_used_again_unless_alone),
		TEST(answers_are_unpacked_if_that_was_asked_for),
		TEST(what_cannot_be_unpacked_is_an_error),
		TEST(the_server_is_verified),
		TEST(the_client_shows_its_certificate),
		TEST(a_proxy_of_the_environment_is_used),
		TEST(a_proxy_that_refuses_is_no_server_that_answers),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
