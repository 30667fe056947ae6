/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_HTTP_H
#define ROLL_SOURCE_HTTP_H

#include "app/loop.h"
#include "base/str.h"

/*
 * HTTP requests over libcurl on our event loop. This module knows bytes, deadlines and TLS, not
 * what the bytes mean.
 *
 * Each request uses a connection of its own while it lasts, so a slow list does not stand in front
 * of a watch; idle ones are used again. Without multiplexing HTTP/2 has nothing to give: three
 * watches are three connections either way. So it is not offered, and what is tested byte by byte
 * against servers that misbehave is what runs against real ones. Names are resolved anew for each
 * new connection. Proxies come from the environment as with curl (HTTPS_PROXY, NO_PROXY) unless the
 * request names one; they see neither a path nor a token of what goes through them by TLS.
 * Redirects are not followed: an answer that comes from elsewhere is not the server's.
 *
 * Callbacks run from the loop, never within roll_http_start or roll_http_cancel, and may start and
 * cancel requests, also their own.
 */
struct roll_http;
struct roll_http_request;

/* Everything in PEM; empty: none. Copied. */
struct roll_http_identity {
	struct roll_str ca;   /* empty: the system's authorities */
	struct roll_str cert; /* of the client */
	struct roll_str key;
	struct roll_str token;	 /* bearer */
	const char *server_name; /* asked for and verified instead of the URL's host; NULL: none */
	const char *proxy;	 /* URL; NULL: as the environment says */
	bool is_insecure;	 /* server not verified: only if its owner asked for that */
};

struct roll_http_result {
	enum roll_status status; /* ROLL_OK: an answer was read to its end, whatever it says */
	int http_status;	 /* 0: no answer at all */
	int64_t retry_after_ms;	 /* -1: not told */
	const char *text;	 /* of an error: printable, without secrets; valid for the call */
};

struct roll_http_spec {
	const char *method; /* "GET" */
	const char *url;
	const char *const *headers; /* "Name: value"; NULL at the end; may be NULL */
	const struct roll_http_identity *identity;
	struct roll_str body; /* copied; empty: none */
	int64_t connect_ms;   /* name, TCP, proxy and TLS together */
	int64_t total_ms;     /* until the end of the answer; 0: no limit */
	int64_t silence_ms;   /* without a byte, in whole seconds; 0: no limit */
	/*
	 * The body comes unpacked, in pieces of some KiB whatever its size. Whether it was whole is
	 * for the reader to know: libcurl does not tell when packed data ends early.
	 */
	bool accepts_gzip;
	bool is_alone; /* a new connection that nobody uses afterwards */

	/* The final answer's head. */
	void (*on_head)(void *ctx, int http_status);
	/* A piece of the body, borrowed. An error ends the request: on_done gets it as its status.
	 */
	enum roll_status (*on_body)(void *ctx, struct roll_str piece);
	/* All that had arrived was handed to on_body; more is not there yet. May be NULL. */
	void (*on_settled)(void *ctx);
	/* The end, once; the request is gone afterwards. */
	void (*on_done)(void *ctx, const struct roll_http_result *result);
	void *ctx;
};

enum roll_status roll_http_new(struct roll_loop *loop, struct roll_http **out,
			       struct roll_err *err) ROLL_MUST_CHECK;
/* Requests that still run end without a callback. Not to be called from a callback. */
void roll_http_free(struct roll_http *http);

/* NULL without memory. */
struct roll_http_request *roll_http_start(struct roll_http *http,
					  const struct roll_http_spec *spec);
/* No callback comes any more, not even on_done. Accepts NULL. */
void roll_http_cancel(struct roll_http_request *request);

#endif
