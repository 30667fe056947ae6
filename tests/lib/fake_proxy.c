/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/fake_proxy.h"

#include <arpa/inet.h>
#include <assert.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* A client and, once it has asked for a tunnel, the server at its other end. */
struct pair {
	struct fake_proxy *proxy;
	struct pair *next;
	struct bufferevent *client;
	struct bufferevent *server;
};

struct fake_proxy {
	struct event_base *base;
	struct evconnlistener *listener;
	struct pair *pairs;
	const char *refusal;
	size_t count;
	char url[64];
	char last[4096];
};

static void free_pair(struct pair *pair)
{
	struct pair **at = &pair->proxy->pairs;

	while (*at != pair)
		at = &(*at)->next;
	*at = pair->next;
	bufferevent_free(pair->client);
	if (pair->server)
		bufferevent_free(pair->server);
	free(pair);
}

static void on_sent(struct bufferevent *bev, void *ctx)
{
	(void)bev;
	free_pair(ctx);
}

static void on_pair_event(struct bufferevent *bev, short what, void *ctx)
{
	struct pair *pair = ctx;

	if (what & BEV_EVENT_CONNECTED)
		bufferevent_write(pair->client, "HTTP/1.1 200 Established\r\n\r\n", 28);
	else if (bev == pair->server && evbuffer_get_length(bufferevent_get_output(pair->client)))
		bufferevent_setcb(pair->client, NULL, on_sent, on_pair_event, pair);
	else
		free_pair(pair);
}

static void on_tunnel(struct bufferevent *bev, void *ctx)
{
	struct pair *pair = ctx;

	bufferevent_write_buffer(bev == pair->client ? pair->server : pair->client,
				 bufferevent_get_input(bev));
}

static void open_tunnel(struct pair *pair, uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	pair->server = bufferevent_socket_new(pair->proxy->base, -1, BEV_OPT_CLOSE_ON_FREE);
	assert(pair->server);
	bufferevent_setcb(pair->client, on_tunnel, NULL, on_pair_event, pair);
	bufferevent_setcb(pair->server, on_tunnel, NULL, on_pair_event, pair);
	bufferevent_enable(pair->server, EV_READ | EV_WRITE);
	if (bufferevent_socket_connect(pair->server, (struct sockaddr *)&address, sizeof address))
		abort();
}

static void answer(struct pair *pair, const char *text)
{
	if (!text[0]) {
		free_pair(pair);
		return;
	}
	bufferevent_setcb(pair->client, NULL, on_sent, on_pair_event, pair);
	bufferevent_write(pair->client, text, strlen(text));
}

static void on_request(struct bufferevent *bev, void *ctx)
{
	struct evbuffer *in = bufferevent_get_input(bev);
	struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
	struct pair *pair = ctx;
	struct fake_proxy *proxy = pair->proxy;
	struct roll_str target;
	uint32_t port;

	if (end.pos < 0)
		return;
	assert((size_t)end.pos + 4 < sizeof proxy->last);
	proxy->last[evbuffer_remove(in, proxy->last, (size_t)end.pos + 4)] = '\0';
	proxy->count++;
	target = roll_str_c(proxy->last);
	if (!roll_str_eq_c(roll_str_cut(&target, ' '), "CONNECT")) {
		answer(pair, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nproxied");
		return;
	}
	target = roll_str_cut(&target, ' ');
	roll_str_cut(&target, ':');
	if (proxy->refusal || roll_str_u32(target, 65535, &port))
		answer(pair, proxy->refusal ? proxy->refusal : "HTTP/1.1 400 Bad Request\r\n\r\n");
	else
		open_tunnel(pair, (uint16_t)port);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *peer,
		      int peer_n, void *ctx)
{
	struct pair *pair = calloc(1, sizeof *pair);
	struct fake_proxy *proxy = ctx;

	(void)listener;
	(void)peer;
	(void)peer_n;
	assert(pair);
	pair->proxy = proxy;
	pair->client = bufferevent_socket_new(proxy->base, fd, BEV_OPT_CLOSE_ON_FREE);
	assert(pair->client);
	pair->next = proxy->pairs;
	proxy->pairs = pair;
	bufferevent_setcb(pair->client, on_request, NULL, on_pair_event, pair);
	bufferevent_enable(pair->client, EV_READ | EV_WRITE);
}

struct fake_proxy *fake_proxy_new(struct event_base *base)
{
	struct fake_proxy *proxy = calloc(1, sizeof *proxy);
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t n = sizeof address;

	assert(proxy);
	proxy->base = base;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	proxy->listener = evconnlistener_new_bind(base, on_accept, proxy, LEV_OPT_CLOSE_ON_FREE, 16,
						  (struct sockaddr *)&address, sizeof address);
	if (!proxy->listener ||
	    getsockname(evconnlistener_get_fd(proxy->listener), (struct sockaddr *)&address, &n))
		abort();
	snprintf(proxy->url, sizeof proxy->url, "http://127.0.0.1:%u", ntohs(address.sin_port));
	return proxy;
}

void fake_proxy_free(struct fake_proxy *proxy)
{
	if (!proxy)
		return;
	while (proxy->pairs)
		free_pair(proxy->pairs);
	evconnlistener_free(proxy->listener);
	free(proxy);
}

const char *fake_proxy_url(const struct fake_proxy *proxy)
{
	return proxy->url;
}

void fake_proxy_refuse(struct fake_proxy *proxy, const char *text)
{
	proxy->refusal = text;
}

size_t fake_proxy_count(const struct fake_proxy *proxy)
{
	return proxy->count;
}

const char *fake_proxy_last(const struct fake_proxy *proxy)
{
	return proxy->last;
}
