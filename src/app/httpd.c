/* SPDX-License-Identifier: Apache-2.0 */
#include "app/httpd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <netdb.h>
#include <netinet/in.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>

#include "app/option.h"
#include "base/log.h"

/*
 * One request per connection, then it is closed (RFC 9112, 9.6). That is all a scraper or a probe
 * needs, and it makes the bounds simple: so many connections, each for so long at most, whatever
 * it does. libevent's own evhttp (2.1) can bound neither of the two.
 */

#define HEAD_MAX_BYTES 8192u
#define TARGET_MAX_BYTES 1024u
#define BODY_MAX_BYTES (16u << 20)
#define CLIENTS_MAX 64u
#define CLIENT_MS 10000
#define ACCEPT_RETRY_MS 100
#define HANDLERS_MAX 16u
#define NO_CONTENT "default-src 'none'; frame-ancestors 'none'"

struct handler {
	const char *path;
	roll_http_handler fn;
	void *ctx;
};

/*
 *	READING --head complete or bad--> WRITING --all sent--> LINGERING --peer closed--> closed
 * and from anywhere to closed on an error or when its time is over.
 */
enum phase { READING, WRITING, LINGERING };

struct client {
	struct roll_httpd *httpd;
	struct client *next;
	struct client **back; /* what points to this one */
	struct bufferevent *bev;
	struct roll_timer *deadline;
	enum phase phase;
	bool is_closing;
};

struct roll_httpd {
	struct roll_loop *loop;
	struct evconnlistener *listener;
	struct roll_timer *accept_again;
	struct client *clients;
	size_t client_count;
	struct handler handlers[HANDLERS_MAX];
	size_t handler_count;
	uint16_t port;
};

static void free_client(void *what)
{
	struct client *client = what;

	if (client->bev)
		bufferevent_free(client->bev);
	roll_timer_free(client->deadline);
	free(client);
}

/* Out of the list at once, freed at the end of the turn. */
static void close_client(struct client *client)
{
	struct roll_httpd *httpd = client->httpd;

	if (client->is_closing)
		return;
	client->is_closing = true;
	*client->back = client->next;
	if (client->next)
		client->next->back = client->back;
	if (httpd->client_count-- == CLIENTS_MAX)
		evconnlistener_enable(httpd->listener);
	bufferevent_disable(client->bev, EV_READ | EV_WRITE);
	bufferevent_setcb(client->bev, NULL, NULL, NULL, NULL);
	roll_timer_stop(client->deadline);
	roll_loop_defer(httpd->loop, free_client, client);
}

static void on_deadline(void *ctx)
{
	close_client(ctx);
}

static const char *status_text(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 400:
		return "Bad Request";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 414:
		return "URI Too Long";
	case 431:
		return "Request Header Fields Too Large";
	case 503:
		return "Service Unavailable";
	case 505:
		return "HTTP Version Not Supported";
	default:
		return status < 400 ? "OK" : status < 500 ? "Bad Request" : "Internal Server Error";
	}
}

static void send_reply(struct client *client, const struct roll_http_reply *reply, bool is_head)
{
	struct evbuffer *out = bufferevent_get_output(client->bev);
	const char *type = reply->content_type ? reply->content_type : "text/plain; charset=utf-8";
	const char *policy = reply->content_policy ? reply->content_policy : NO_CONTENT;
	int added;

	client->phase = WRITING;
	added = evbuffer_add_printf(out,
				    "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
				    "Content-Security-Policy: %s\r\n"
				    "X-Content-Type-Options: nosniff\r\n"
				    "Referrer-Policy: no-referrer\r\n"
				    "%sCache-Control: no-store\r\nConnection: close\r\n\r\n",
				    reply->status, status_text(reply->status), type, reply->body.n,
				    policy, reply->status == 405 ? "Allow: GET, HEAD\r\n" : "");
	if (added < 0 ||
	    (!is_head && reply->body.n && evbuffer_add(out, reply->body.p, reply->body.n)))
		close_client(client);
}

static void send_status(struct client *client, int status, bool is_head)
{
	struct roll_http_reply reply = {.status = status};

	roll_buf_init(&reply.body, 256);
	roll_buf_printf(&reply.body, "%d %s\n", status, status_text(status));
	send_reply(client, &reply, is_head);
	roll_buf_fini(&reply.body);
}

static int hex_digit(char c)
{
	unsigned char lower = roll_lower((unsigned char)c);

	if (roll_is_digit(lower))
		return lower - '0';
	return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/*
 * Percent-decoding (RFC 3986, 2.1), '+' as a blank in queries only. NUL is refused, so that the
 * result is also a C string.
 */
static enum roll_status decode(struct roll_str text, bool is_query, char *out, size_t out_size)
{
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (c == '%') {
			int high = i + 2 < text.n ? hex_digit(text.p[i + 1]) : -1;
			int low = i + 2 < text.n ? hex_digit(text.p[i + 2]) : -1;

			if (high < 0 || low < 0)
				return ROLL_EINVAL;
			c = (char)(high << 4 | low);
			i += 2;
		} else if (c == '+' && is_query) {
			c = ' ';
		}
		if (c == '\0')
			return ROLL_EINVAL;
		if (n + 1 >= out_size)
			return ROLL_ELIMIT;
		out[n++] = c;
	}
	if (out_size == 0)
		return ROLL_ELIMIT;
	out[n] = '\0';
	return ROLL_OK;
}

enum roll_status roll_http_param(struct roll_str query, const char *name, char *out,
				 size_t out_size)
{
	while (query.n) {
		struct roll_str value = roll_str_cut(&query, '&');
		struct roll_str key = roll_str_cut(&value, '=');

		if (roll_str_eq_c(key, name))
			return decode(value, true, out, out_size);
	}
	return ROLL_ENOENT;
}

static void run_handler(struct client *client, struct roll_str target, bool is_head)
{
	struct roll_http_reply reply = {.status = 200};
	struct roll_httpd *httpd = client->httpd;
	const struct handler *handler = NULL;
	struct roll_http_query query;
	char path[TARGET_MAX_BYTES + 1];

	query.query = target;
	if (decode(roll_str_cut(&query.query, '?'), false, path, sizeof path)) {
		send_status(client, 400, is_head);
		return;
	}
	query.path = roll_str_c(path);
	for (size_t i = 0; i < httpd->handler_count && !handler; i++) {
		if (roll_str_eq_c(query.path, httpd->handlers[i].path))
			handler = &httpd->handlers[i];
	}
	if (!handler) {
		send_status(client, 404, is_head);
		return;
	}
	roll_buf_init(&reply.body, BODY_MAX_BYTES);
	handler->fn(handler->ctx, &query, &reply);
	if (reply.body.status)
		send_status(client, 500, is_head);
	else
		send_reply(client, &reply, is_head);
	roll_buf_fini(&reply.body);
}

/* RFC 9112, 3: method SP request-target SP HTTP-version. */
static void handle_request(struct client *client, struct roll_str head)
{
	struct roll_str line = roll_str_cut(&head, '\r');
	struct roll_str method = roll_str_cut(&line, ' ');
	struct roll_str target = roll_str_cut(&line, ' ');
	bool is_head = roll_str_eq_c(method, "HEAD");

	if (!method.n || !target.n || !roll_str_starts(line, "HTTP/"))
		send_status(client, 400, false);
	else if (!roll_str_starts(line, "HTTP/1."))
		send_status(client, 505, false);
	else if (!is_head && !roll_str_eq_c(method, "GET"))
		send_status(client, 405, false);
	else if (target.n > TARGET_MAX_BYTES)
		send_status(client, 414, is_head);
	else if (target.p[0] != '/')
		send_status(client, 400, is_head);
	else
		run_handler(client, target, is_head);
}

static void on_read(struct bufferevent *bev, void *ctx)
{
	struct evbuffer *in = bufferevent_get_input(bev);
	struct client *client = ctx;
	struct evbuffer_ptr end;
	char *bytes;

	if (client->phase != READING) {
		/* Whatever still comes is not read as a request; see on_sent. */
		evbuffer_drain(in, evbuffer_get_length(in));
		return;
	}
	end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
	if (end.pos < 0) {
		if (evbuffer_get_length(in) >= HEAD_MAX_BYTES)
			send_status(client, 431, false);
		return;
	}
	bytes = (char *)evbuffer_pullup(in, end.pos + 2);
	if (!bytes) {
		close_client(client);
		return;
	}
	handle_request(client, roll_str_n(bytes, (size_t)end.pos));
	evbuffer_drain(in, evbuffer_get_length(in));
}

static void on_sent(struct bufferevent *bev, void *ctx)
{
	struct client *client = ctx;

	if (client->phase != WRITING)
		return;
	/*
	 * RFC 9112, 9.6: closing while bytes of the peer are unread would reset the connection,
	 * perhaps before the peer has read our reply.
	 */
	client->phase = LINGERING;
	if (shutdown(bufferevent_getfd(bev), SHUT_WR))
		close_client(client);
}

static void on_event(struct bufferevent *bev, short what, void *ctx)
{
	struct client *client = ctx;

	(void)bev;
	/* A peer that is done sending may still read. */
	if (what & BEV_EVENT_EOF && client->phase == WRITING)
		return;
	close_client(client);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *peer,
		      int peer_size, void *ctx)
{
	struct roll_httpd *httpd = ctx;
	struct client *client = calloc(1, sizeof *client);

	(void)peer;
	(void)peer_size;
	if (!client) {
		evutil_closesocket(fd);
		return;
	}
	client->httpd = httpd;
	client->bev =
		bufferevent_socket_new(roll_loop_base(httpd->loop), fd, BEV_OPT_CLOSE_ON_FREE);
	client->deadline = roll_timer_new(httpd->loop, on_deadline, client);
	if (!client->bev || !client->deadline) {
		if (!client->bev)
			evutil_closesocket(fd);
		free_client(client);
		return;
	}
	client->next = httpd->clients;
	client->back = &httpd->clients;
	if (client->next)
		client->next->back = &client->next;
	httpd->clients = client;
	if (++httpd->client_count == CLIENTS_MAX)
		evconnlistener_disable(listener);
	bufferevent_setcb(client->bev, on_read, on_sent, on_event, client);
	bufferevent_setwatermark(client->bev, EV_READ, 0, HEAD_MAX_BYTES);
	roll_timer_set(client->deadline, CLIENT_MS);
	if (bufferevent_enable(client->bev, EV_READ | EV_WRITE))
		close_client(client);
}

/* Out of descriptors, mostly: the connection would be reported again at once. */
static void on_accept_error(struct evconnlistener *listener, void *ctx)
{
	struct roll_httpd *httpd = ctx;

	roll_log(ROLL_WARN, "http-accept-failed", "reason=\"%s\"",
		 evutil_socket_error_to_string(EVUTIL_SOCKET_ERROR()));
	evconnlistener_disable(listener);
	roll_timer_set(httpd->accept_again, ACCEPT_RETRY_MS);
}

static void on_accept_again(void *ctx)
{
	struct roll_httpd *httpd = ctx;

	if (httpd->client_count < CLIENTS_MAX)
		evconnlistener_enable(httpd->listener);
}

static uint16_t port_of(evutil_socket_t fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} name = {0};
	socklen_t n = sizeof name;

	if (getsockname(fd, &name.any, &n))
		return 0;
	return ntohs(name.any.sa_family == AF_INET6 ? name.v6.sin6_port : name.v4.sin_port);
}

/* All addresses means both families through one socket; without IPv6, the other alone. */
static enum roll_status listen_on(struct roll_httpd *httpd, const char *host, uint16_t port,
				  struct roll_err *err)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
				 .ai_socktype = SOCK_STREAM};
	const unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE;
	const char *hosts[] = {*host ? host : "::", *host ? NULL : "0.0.0.0"};
	struct addrinfo *found = NULL;
	char service[8];
	int failed = 0;

	snprintf(service, sizeof service, "%u", (unsigned)port);
	for (size_t i = 0; i < 2 && hosts[i] && !httpd->listener; i++) {
		if (getaddrinfo(hosts[i], service, &hints, &found))
			return roll_err_set(err, ROLL_EINVAL, NULL, "%s is not an address",
					    hosts[i]);
		httpd->listener =
			evconnlistener_new_bind(roll_loop_base(httpd->loop), on_accept, httpd,
						flags, 128, found->ai_addr, (int)found->ai_addrlen);
		failed = errno;
		freeaddrinfo(found);
	}
	if (!httpd->listener)
		return roll_err_errno(err, failed == EACCES ? ROLL_EDENIED : ROLL_EIO, failed, NULL,
				      "cannot listen on %s port %u", *host ? host : "*",
				      (unsigned)port);
	evconnlistener_set_error_cb(httpd->listener, on_accept_error);
	httpd->port = port_of(evconnlistener_get_fd(httpd->listener));
	return ROLL_OK;
}

enum roll_status roll_httpd_new(struct roll_loop *loop, const char *endpoint,
				struct roll_httpd **out, struct roll_err *err)
{
	enum roll_status status = ROLL_ENOMEM;
	struct roll_httpd *httpd = NULL;
	char host[64], shown[128];
	uint16_t port;

	if (roll_endpoint_parse(endpoint, host, sizeof host, &port))
		return roll_err_set(err, ROLL_EINVAL, NULL,
				    "\"%s\" is not ADDR:PORT; expected 127.0.0.1:9153, "
				    "[::1]:9153 or :9153",
				    roll_str_show(roll_str_c(endpoint), shown, sizeof shown));
	httpd = calloc(1, sizeof *httpd);
	if (!httpd)
		goto out;
	httpd->loop = loop;
	httpd->accept_again = roll_timer_new(loop, on_accept_again, httpd);
	if (!httpd->accept_again)
		goto out;
	status = listen_on(httpd, host, port, err);
	if (status)
		goto out;
	*out = httpd;
	httpd = NULL;
out:
	roll_httpd_free(httpd);
	if (status == ROLL_ENOMEM)
		roll_err_set(err, status, NULL, "cannot make an HTTP endpoint");
	return status;
}

void roll_httpd_free(struct roll_httpd *httpd)
{
	if (!httpd)
		return;
	while (httpd->clients)
		close_client(httpd->clients);
	if (httpd->listener)
		evconnlistener_free(httpd->listener);
	roll_timer_free(httpd->accept_again);
	free(httpd);
}

enum roll_status roll_httpd_handle(struct roll_httpd *httpd, const char *path,
				   roll_http_handler handler, void *ctx)
{
	if (httpd->handler_count == HANDLERS_MAX)
		return ROLL_ELIMIT;
	httpd->handlers[httpd->handler_count++] = (struct handler){path, handler, ctx};
	return ROLL_OK;
}

uint16_t roll_httpd_port(const struct roll_httpd *httpd)
{
	return httpd->port;
}
