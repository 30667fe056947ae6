/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "app/httpd.h"
#include "app/loop.h"
#include "app/option.h"
#include "base/log.h"
#include "server/conn.h"
#include "server/health.h"
#include "server/listen.h"
#include "server/method.h"
#include "view/read.h"

/* rollcalld: answers PowerDNS's remote backend from the view. Only wiring here. */

#define POLL_MS 1000

struct options {
	const char *view;
	const char *listen;
	int64_t socket_mode;
	const char *socket_group;
	int64_t max_stale_ms;
	bool is_cacheable;
	const char *http;
	const char *log_level;
	const char *log_format;
};

struct server {
	struct roll_loop *loop;
	struct roll_metrics *metrics;
	struct roll_view *view;
	struct roll_methods *methods;
	struct roll_conns *conns;
	struct roll_httpd *httpd;
	struct roll_timer *poll;
	struct roll_health health;
	struct roll_socket sock;
	enum { NOT_TOLD, TOLD_READY, TOLD_NOT_READY } told;
	bool was_notified; /* READY=1 was sent */
};

static enum roll_status parse(int argc, char **argv, struct options *o)
{
	const struct roll_option table[] = {
		{"view", ROLL_OPT_STRING, &o->view, "DIR", NULL, 0, 0, NULL,
		 "directory of the view that rollcall-sync writes"},
		{"listen", ROLL_OPT_STRING, &o->listen, "PATH", NULL, 0, 0, NULL,
		 "Unix socket to listen on"},
		{"socket-mode", ROLL_OPT_OCTAL, &o->socket_mode, "MODE", "0660", 0, 0777, NULL,
		 "file mode of the socket"},
		{"socket-group", ROLL_OPT_STRING, &o->socket_group, "GROUP", NULL, 0, 0, NULL,
		 "group of the socket"},
		{"max-stale", ROLL_OPT_DURATION, &o->max_stale_ms, "DURATION", NULL, 1000,
		 INT64_C(366) * 86400 * 1000, NULL,
		 "fail when the source was not confirmed for so long"},
		{"cacheable", ROLL_OPT_FLAG, &o->is_cacheable, NULL, NULL, 0, 0, NULL,
		 "let PowerDNS cache answers (rows without scopeMask)"},
		{"http", ROLL_OPT_ENDPOINT, &o->http, "ADDR:PORT", NULL, 0, 0, NULL,
		 "serve /metrics, /healthz and /readyz there"},
		{"log-level", ROLL_OPT_WORD, &o->log_level, "LEVEL", "info", 0, 0,
		 "error|warn|info|debug", "what to log"},
		{"log-format", ROLL_OPT_WORD, &o->log_format, "FORMAT", "kv", 0, 0, "kv|json",
		 "how to log"},
		{.name = NULL},
	};
	const struct roll_program program = {
		"rollcalld", "rollcalld --view DIR --listen PATH [OPTION]...",
		"Answer PowerDNS's remote backend from the view.", table};
	enum roll_status status;
	int rest = 0;

	status = roll_options_parse(&program, argc, argv, &rest);
	if (status)
		return status;
	if (rest)
		fprintf(stderr, "rollcalld: takes options only; expected --view and --listen\n");
	else if (!o->view)
		fprintf(stderr, "rollcalld: --view=DIR is missing\n");
	else if (!o->listen)
		fprintf(stderr, "rollcalld: --listen=PATH is missing\n");
	else
		return ROLL_OK;
	fprintf(stderr, "Try 'rollcalld --help'.\n");
	return ROLL_EINVAL;
}

/* A connection is a descriptor: let there be as many as we are allowed to have. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit))
			roll_log(ROLL_WARN, "descriptor-limit-kept", "limit=%llu",
				 (unsigned long long)limit.rlim_cur);
	}
}

static enum roll_status on_line(void *ctx, char *line, size_t n, struct roll_buf *reply)
{
	struct server *server = ctx;

	return roll_methods_answer(server->methods, line, n, reply);
}

static void on_overload(void *ctx, struct roll_buf *reply)
{
	(void)ctx;
	roll_log(ROLL_WARN, "overloaded", "reason=\"replies wait for peers that do not read\"");
	roll_buf_add_c(reply, "{\"error\":\"too many bytes wait to be read\"}\n");
}

/* Tell the log and the service manager whether queries are answered, when that has changed. */
static void tell_readiness(struct server *server)
{
	struct roll_err err = {.text = ""};
	bool is_ready = roll_methods_ready(server->methods, &err) == ROLL_OK;
	char shown[sizeof err.text], state[sizeof err.text + 32];

	if (server->told == (is_ready ? TOLD_READY : TOLD_NOT_READY))
		return;
	server->told = is_ready ? TOLD_READY : TOLD_NOT_READY;
	roll_str_show(roll_str_c(err.text), shown, sizeof shown);
	if (is_ready) {
		roll_log(ROLL_INFO, "ready", "state=answering");
		roll_notify(server->was_notified ? "STATUS=answering"
						 : "READY=1\nSTATUS=answering");
		server->was_notified = true;
	} else {
		roll_log(ROLL_WARN, "not-ready", "state=failing reason=\"%s\"", shown);
		snprintf(state, sizeof state, "STATUS=failing: %s", shown);
		roll_notify(state);
	}
}

static void on_poll(void *ctx)
{
	struct server *server = ctx;

	roll_view_poll(server->view);
	tell_readiness(server);
	roll_timer_set(server->poll, POLL_MS);
}

/* There is nothing to read again but the view; connections do not notice. */
static void on_reload(void *ctx)
{
	struct server *server = ctx;

	roll_log(ROLL_INFO, "reload", "connections=%zu", roll_conns_count(server->conns));
	roll_notify("RELOADING=1");
	roll_view_poll(server->view);
	tell_readiness(server);
	if (server->was_notified)
		roll_notify("READY=1");
}

static void on_stop(void *ctx)
{
	struct server *server = ctx;

	roll_notify("STOPPING=1");
	roll_loop_stop(server->loop);
}

static enum roll_status start(struct server *server, const struct options *o, struct roll_err *err)
{
	struct roll_loop_hooks hooks = {on_stop, on_reload, server};
	struct roll_methods_conf methods = {.clock = &roll_clock_system,
					    .max_stale_ms = o->max_stale_ms,
					    .is_cacheable = o->is_cacheable};
	struct roll_conns_conf conns = {.clock = &roll_clock_system,
					.on_line = on_line,
					.on_overload = on_overload,
					.ctx = server};
	enum roll_status status;

	status = roll_loop_new(&hooks, &server->loop, err);
	if (!status)
		status = roll_view_new(o->view, &server->view, err);
	if (status)
		return status;
	server->metrics = roll_metrics_new();
	methods.view = server->view;
	methods.metrics = server->metrics;
	server->methods = roll_methods_new(&methods);
	server->poll = roll_timer_new(server->loop, on_poll, server);
	if (!server->metrics || !server->methods || !server->poll)
		return roll_err_set(err, ROLL_ENOMEM, NULL, "cannot start");
	conns.loop = server->loop;
	conns.metrics = server->metrics;
	status = roll_conns_new(&conns, &server->conns, err);
	if (status)
		return status;
	server->health = (struct roll_health){.view = server->view,
					      .methods = server->methods,
					      .conns = server->conns,
					      .metrics = server->metrics,
					      .clock = &roll_clock_system};
	roll_health_init(&server->health);
	if (o->http) {
		status = roll_httpd_new(server->loop, o->http, &server->httpd, err);
		if (!status)
			status = roll_health_attach(&server->health, server->httpd);
		if (status)
			return status;
	}
	status = roll_socket_open(o->listen, (mode_t)o->socket_mode, o->socket_group, &server->sock,
				  err);
	if (status)
		return status;
	return roll_conns_listen(server->conns, server->sock.fd, err);
}

static void stop(struct server *server)
{
	roll_socket_unlink(&server->sock);
	roll_httpd_free(server->httpd);
	roll_conns_free(server->conns);
	roll_timer_free(server->poll);
	roll_methods_free(server->methods);
	roll_view_free(server->view);
	roll_metrics_free(server->metrics);
	roll_loop_free(server->loop);
}

int main(int argc, char **argv)
{
	struct options o = {.socket_mode = 0660, .log_level = "info", .log_format = "kv"};
	struct server server = {.sock = {.fd = -1}};
	struct roll_err err = {.text = ""};
	char where[256], text[512];
	enum roll_level level = ROLL_INFO;
	enum roll_status status;

	status = parse(argc, argv, &o);
	if (status)
		return status == ROLL_ECANCELED ? ROLL_EXIT_OK : ROLL_EXIT_USAGE;
	if (roll_level_parse(o.log_level, &level))
		return ROLL_EXIT_USAGE;
	roll_log_init("rollcalld", level,
		      strcmp(o.log_format, "json") == 0 ? ROLL_LOG_JSON : ROLL_LOG_KV);
	raise_descriptors();
	status = start(&server, &o, &err);
	if (status) {
		roll_log(ROLL_ERROR, "cannot-start", "where=\"%s\" reason=\"%s\"",
			 roll_str_show(roll_str_c(err.where), where, sizeof where),
			 err.text[0] ? roll_str_show(roll_str_c(err.text), text, sizeof text)
				     : roll_status_text(status));
	} else {
		roll_log(ROLL_INFO, "listening", "path=\"%s\"",
			 roll_str_show(roll_str_c(o.listen), where, sizeof where));
		on_poll(&server);
		status = roll_loop_run(server.loop);
	}
	stop(&server);
	return status ? ROLL_EXIT_SOURCE : ROLL_EXIT_OK;
}
