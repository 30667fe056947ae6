/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_APP_HTTPD_H
#define ROLL_APP_HTTPD_H

#include "app/loop.h"
#include "base/str.h"

/*
 * A small read-only HTTP endpoint (--http) on libevent's server: GET and HEAD only, limits on
 * header size, body, connections and time. Handlers fill a reply synchronously and are short.
 */
struct roll_httpd;

struct roll_http_query {
	struct roll_str path;  /* decoded, without the query */
	struct roll_str query; /* raw, after '?' */
};
struct roll_http_reply {
	int status;		  /* 200 unless set */
	const char *content_type; /* "text/plain; charset=utf-8" unless set */
	/*
	 * Content-Security-Policy; unless set, one that allows nothing at all. What is sent can
	 * hold text that others wrote, so it is also marked as not to be sniffed.
	 */
	const char *content_policy;
	struct roll_buf body; /* ceiling 16 MiB */
};
typedef void (*roll_http_handler)(void *ctx, const struct roll_http_query *query,
				  struct roll_http_reply *reply);

/* endpoint as roll_endpoint_parse takes it; port 0 picks a free one (see roll_httpd_port). */
enum roll_status roll_httpd_new(struct roll_loop *loop, const char *endpoint,
				struct roll_httpd **out, struct roll_err *err) ROLL_MUST_CHECK;
void roll_httpd_free(struct roll_httpd *httpd);
/* Exact path; paths without a handler get 404. */
enum roll_status roll_httpd_handle(struct roll_httpd *httpd, const char *path,
				   roll_http_handler handler, void *ctx) ROLL_MUST_CHECK;
uint16_t roll_httpd_port(const struct roll_httpd *httpd);
/* The decoded value of a query parameter into out; ENOENT, EINVAL, ELIMIT. */
enum roll_status roll_http_param(struct roll_str query, const char *name, char *out,
				 size_t out_size) ROLL_MUST_CHECK;

#endif
