/* SPDX-License-Identifier: Apache-2.0 */
#include "source/api.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define CONNECT_MS 10000
#define STATUS_LIMIT_BYTES (16u << 10)
#define URL_LIMIT_BYTES (32u << 10)

struct roll_api {
	struct roll_loop *loop;
	struct roll_cred *cred;
	struct roll_http *http;
	struct roll_api_call *first;
};

struct roll_api_call {
	struct roll_api *api;
	struct roll_api_call *prev;
	struct roll_api_call *next;
	struct roll_api_spec spec;
	struct roll_buf path;
	struct roll_buf body;
	char method[8];
	char content_type[64];
	struct roll_cred_wait *wait;	   /* first for credentials, */
	struct roll_http_request *request; /* then for the answer */
	bool is_good;
	struct roll_buf status_text; /* of an answer that is not good */
};

static void free_call(struct roll_api_call *call)
{
	roll_cred_cancel(call->wait);
	roll_http_cancel(call->request);
	if (call->prev)
		call->prev->next = call->next;
	else
		call->api->first = call->next;
	if (call->next)
		call->next->prev = call->prev;
	roll_buf_fini(&call->path);
	roll_buf_fini(&call->body);
	roll_buf_fini(&call->status_text);
	free(call);
}

static void on_head(void *ctx, int http_status)
{
	struct roll_api_call *call = ctx;

	call->is_good = http_status >= 200 && http_status <= 299;
	if (call->is_good && call->spec.on_open)
		call->spec.on_open(call->spec.ctx);
}

static enum roll_status on_body(void *ctx, struct roll_str piece)
{
	struct roll_api_call *call = ctx;
	size_t room;

	if (call->is_good)
		return call->spec.on_body ? call->spec.on_body(call->spec.ctx, piece) : ROLL_OK;
	/* The beginning says enough; the rest is still read, so that the connection is of use. */
	room = call->status_text.limit_bytes - call->status_text.n;
	roll_buf_add(&call->status_text, piece.p, piece.n < room ? piece.n : room);
	return ROLL_OK;
}

static void on_settled(void *ctx)
{
	struct roll_api_call *call = ctx;

	if (call->is_good && call->spec.on_settled)
		call->spec.on_settled(call->spec.ctx);
}

/* The end: the callback is the last to see the call, which it may not cancel any more. */
static void finish(struct roll_api_call *call, const struct roll_api_result *result)
{
	call->request = NULL;
	call->wait = NULL;
	call->spec.on_done(call->spec.ctx, result);
	free_call(call);
}

static void on_done(void *ctx, const struct roll_http_result *http)
{
	struct roll_api_call *call = ctx;
	struct roll_api_result result = {.status = http->status,
					 .http_status = http->http_status,
					 .retry_after_ms = http->retry_after_ms,
					 .text = http->text};
	struct roll_str body = roll_str_trim(roll_buf_str(&call->status_text)), message = body;
	char shown[200], text[256];
	json_t *status = NULL;

	if (http->http_status == 401)
		roll_cred_reject(call->api->cred);
	if (http->http_status && !call->is_good) {
		/* Text that is no Status object, as a 404's, is shown by its first line. */
		if (!roll_json_parse(body, &status, NULL) && json_is_object(status)) {
			json_t *details = roll_json_object(status, "details");
			json_t *after = json_object_get(details, "retryAfterSeconds");

			message = roll_json_str(status, "message");
			result.reason = roll_json_str(status, "reason");
			result.cause = roll_json_str(
				json_array_get(roll_json_array(details, "causes"), 0), "reason");
			if (result.retry_after_ms < 0 && json_is_integer(after) &&
			    json_integer_value(after) >= 0 && json_integer_value(after) <= 86400)
				result.retry_after_ms = json_integer_value(after) * 1000;
		} else {
			message = roll_str_cut(&message, '\n');
		}
		roll_str_show(message, shown, sizeof shown);
		snprintf(text, sizeof text, "%d%s%s", http->http_status, shown[0] ? ": " : "",
			 shown);
		result.text = text;
		if (!result.status)
			result.status = http->http_status == 401 || http->http_status == 403
						? ROLL_EDENIED
						: ROLL_EAGAIN;
		if (http->http_status == 404)
			result.status = ROLL_ENOENT;
	}
	finish(call, &result);
	json_decref(status);
}

static void on_identity(void *ctx, const struct roll_http_identity *identity,
			const struct roll_err *err)
{
	struct roll_api_call *call = ctx;
	const char *headers[] = {"Accept: application/json", NULL, NULL};
	struct roll_http_spec spec = {
		.method = call->method,
		.headers = headers,
		.identity = identity,
		.body = roll_buf_str(&call->body),
		.connect_ms = call->spec.connect_ms ? call->spec.connect_ms : CONNECT_MS,
		.total_ms = call->spec.total_ms,
		.silence_ms = call->spec.silence_ms,
		.accepts_gzip = call->spec.accepts_gzip,
		.is_alone = call->spec.is_alone,
		.on_head = on_head,
		.on_body = on_body,
		.on_settled = on_settled,
		.on_done = on_done,
		.ctx = call,
	};
	struct roll_api_result failed = {
		.status = ROLL_ENOMEM, .retry_after_ms = -1, .text = "out of memory"};
	char text[sizeof err->where + sizeof err->text + 2];
	struct roll_buf url;

	call->wait = NULL;
	if (err) {
		snprintf(text, sizeof text, "%s: %s", err->where, err->text);
		failed.status = err->code;
		failed.text = text;
		finish(call, &failed);
		return;
	}
	if (call->content_type[0])
		headers[1] = call->content_type;
	roll_buf_init(&url, URL_LIMIT_BYTES * 2);
	roll_buf_add_c(&url, roll_cred_server(call->api->cred));
	roll_buf_add_str(&url, roll_buf_str(&call->path));
	if (!url.status) {
		spec.url = url.p;
		call->request = roll_http_start(call->api->http, &spec);
	}
	roll_buf_fini(&url);
	if (!call->request)
		finish(call, &failed);
}

enum roll_status roll_api_new(struct roll_loop *loop, struct roll_cred *cred, struct roll_api **out,
			      struct roll_err *err)
{
	struct roll_api *api = calloc(1, sizeof *api);
	enum roll_status status;

	if (!api) {
		roll_cred_free(cred);
		return roll_err_set(err, ROLL_ENOMEM, NULL, "no memory for the API client");
	}
	api->loop = loop;
	api->cred = cred;
	status = roll_http_new(loop, &api->http, err);
	if (status) {
		roll_api_free(api);
		return status;
	}
	*out = api;
	return ROLL_OK;
}

void roll_api_free(struct roll_api *api)
{
	if (!api)
		return;
	while (api->first)
		free_call(api->first);
	roll_http_free(api->http);
	roll_cred_free(api->cred);
	free(api);
}

const char *roll_api_server(const struct roll_api *api)
{
	return roll_cred_server(api->cred);
}

struct roll_api_call *roll_api_start(struct roll_api *api, const struct roll_api_spec *spec)
{
	struct roll_api_call *call = calloc(1, sizeof *call);

	assert(strlen(spec->method) < sizeof call->method);
	if (!call)
		return NULL;
	call->api = api;
	call->next = api->first;
	if (api->first)
		api->first->prev = call;
	api->first = call;
	call->spec = *spec;
	snprintf(call->method, sizeof call->method, "%s", spec->method);
	if (spec->content_type)
		snprintf(call->content_type, sizeof call->content_type, "Content-Type: %s",
			 spec->content_type);
	roll_buf_init(&call->path, URL_LIMIT_BYTES);
	roll_buf_init(&call->body, spec->body.n);
	roll_buf_init(&call->status_text, STATUS_LIMIT_BYTES);
	roll_buf_add_c(&call->path, spec->path);
	roll_buf_add_str(&call->body, spec->body);
	call->spec.path = NULL;
	call->wait = roll_cred_get(api->cred, on_identity, call);
	if (!call->wait || call->path.status || call->body.status) {
		free_call(call);
		return NULL;
	}
	return call;
}

void roll_api_cancel(struct roll_api_call *call)
{
	if (call)
		free_call(call);
}
