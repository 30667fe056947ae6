/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_API_H
#define ROLL_SOURCE_API_H

#include "source/cred.h"
#include "source/http.h"

/*
 * Calls to one Kubernetes API server: source/http with the credentials of source/cred. An answer
 * other than 2xx is an error here, told with what the server's Status object says.
 */
struct roll_api;
struct roll_api_call;

struct roll_api_result {
	enum roll_status status; /* ROLL_OK: a 2xx answer was read to its end */
	int http_status;	 /* 0: no answer */
	int64_t retry_after_ms;	 /* -1: not told */
	struct roll_str reason;	 /* "Expired"; of the Status object, may be empty */
	struct roll_str cause; /* "NamespaceTerminating"; the first in its details, may be empty */
	const char *text;      /* "403 Forbidden: ..."; printable; empty on success */
};

struct roll_api_spec {
	const char *method;
	const char *path;	  /* with its query, below the server's URL */
	const char *content_type; /* of the body; NULL without one */
	struct roll_str body;
	int64_t connect_ms; /* 0: 10 s */
	int64_t total_ms;   /* 0: no limit */
	int64_t silence_ms; /* 0: no limit */
	bool accepts_gzip;
	bool is_alone; /* see struct roll_http_spec */

	/* As in struct roll_http_spec, but of 2xx answers alone; on_body NULL: thrown away. */
	void (*on_open)(void *ctx);
	enum roll_status (*on_body)(void *ctx, struct roll_str piece);
	void (*on_settled)(void *ctx);
	void (*on_done)(void *ctx, const struct roll_api_result *result);
	void *ctx;
};

/* Takes cred in any case. */
enum roll_status roll_api_new(struct roll_loop *loop, struct roll_cred *cred, struct roll_api **out,
			      struct roll_err *err) ROLL_MUST_CHECK;
/* Calls that still run end without a callback. Not to be called from a callback. */
void roll_api_free(struct roll_api *api);
const char *roll_api_server(const struct roll_api *api);

/* NULL without memory. Callbacks come from the loop; on_done once, the call is gone afterwards. */
struct roll_api_call *roll_api_start(struct roll_api *api, const struct roll_api_spec *spec);
/* No callback comes any more. Accepts NULL. */
void roll_api_cancel(struct roll_api_call *call);

#endif
