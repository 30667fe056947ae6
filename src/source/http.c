/* SPDX-License-Identifier: Apache-2.0 */
#include "source/http.h"

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <curl/curl.h>

#include "base/log.h"
#include "source/no_proxy.h"

#define USER_AGENT "rollcall-sync/" PACKAGE_VERSION
#define BUFFER_BYTES (128L << 10)
#define URL_LIMIT_BYTES (64u << 10)

struct roll_http {
	struct roll_loop *loop;
	CURLM *multi;
	struct event *timer; /* libcurl's own */
	struct event *kick;  /* requests to begin or to release */
	struct roll_http_request *first;
	struct roll_http_request *last;
};

struct roll_http_request {
	struct roll_http *http;
	struct roll_http_request *prev;
	struct roll_http_request *next;
	struct roll_http_spec spec; /* its callbacks and limits; pointers in it are gone */
	CURL *easy;
	struct curl_slist *headers;
	struct curl_slist *connect_to;
	struct roll_buf body;
	struct roll_buf pem[3]; /* CA, certificate, key: libcurl borrows them */
	char error[CURL_ERROR_SIZE];
	enum roll_status reader_status; /* of on_body */
	CURLcode code;
	int http_status;
	int64_t retry_after_ms;
	bool is_head_told;
	bool has_news;	  /* on_settled is due */
	bool is_added;	  /* to the multi handle */
	bool is_finished; /* code says how; on_done is due */
	bool is_closing;  /* no callbacks any more, to be released */
};

static void wipe(void *p, size_t n)
{
	if (p)
		explicit_bzero(p, n);
}

static void release(struct roll_http_request *request)
{
	struct roll_http *http = request->http;

	if (request->is_added)
		curl_multi_remove_handle(http->multi, request->easy);
	if (request->easy)
		curl_easy_cleanup(request->easy);
	for (struct curl_slist *line = request->headers; line; line = line->next)
		wipe(line->data, strlen(line->data));
	curl_slist_free_all(request->headers);
	curl_slist_free_all(request->connect_to);
	roll_buf_fini(&request->body);
	for (size_t i = 0; i < 3; i++) {
		wipe(request->pem[i].p, request->pem[i].n);
		roll_buf_fini(&request->pem[i]);
	}
	if (request->prev)
		request->prev->next = request->next;
	else if (http->first == request)
		http->first = request->next;
	if (request->next)
		request->next->prev = request->prev;
	else if (http->last == request)
		http->last = request->prev;
	free(request);
}

/* --- what libcurl calls --- */

static size_t on_curl_header(char *p, size_t size, size_t n, void *ctx)
{
	struct roll_http_request *request = ctx;
	struct roll_str line = roll_str_trim(roll_str_n(p, size * n)), name;
	long code = 0;
	uint32_t seconds;

	if (request->is_closing)
		return 0;
	if (request->is_head_told) /* trailers */
		return size * n;
	if (roll_str_starts(line, "HTTP/")) {
		request->retry_after_ms = -1;
		return size * n;
	}
	if (line.n) {
		name = roll_str_cut(&line, ':');
		/* RFC 9110, 10.2.3; API servers send seconds, never a date. */
		if (roll_str_eq_nocase(name, roll_str_c("retry-after")) &&
		    !roll_str_u32(roll_str_trim(line), 86400, &seconds))
			request->retry_after_ms = (int64_t)seconds * 1000;
		return size * n;
	}
	curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &code);
	if (code < 200) /* RFC 9110, 15.2: the final answer is still to come */
		return size * n;
	request->is_head_told = true;
	request->http_status = (int)code;
	if (request->spec.on_head)
		request->spec.on_head(request->spec.ctx, request->http_status);
	return request->is_closing ? 0 : size * n;
}

static size_t on_curl_body(char *p, size_t size, size_t n, void *ctx)
{
	struct roll_http_request *request = ctx;
	struct roll_str piece = roll_str_n(p, size * n);

	if (request->is_closing)
		return 0;
	request->has_news = true;
	if (request->spec.on_body)
		request->reader_status = request->spec.on_body(request->spec.ctx, piece);
	/* Less than what was offered makes libcurl end the transfer; 0 of 0 is no such sign. */
	return request->is_closing || request->reader_status ? 0 : piece.n;
}

/*
 * Keepalive finds a dead path under an idle watch; this finds one under a request that was sent and
 * not acknowledged. Neither is fatal if the kernel refuses.
 */
static int on_curl_socket_made(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
	unsigned unacknowledged_ms = 30000;
	int probes = 3;

	(void)ctx;
	(void)purpose;
	if (setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms,
		       sizeof unacknowledged_ms) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes))
		roll_log(ROLL_DEBUG, "socket-options", "result=refused");
	return CURL_SOCKOPT_OK;
}

static void kick(struct roll_http *http)
{
	event_active(http->kick, EV_TIMEOUT, 1);
}

/* After libcurl has worked: tell what came, then what ended. */
static void collect(struct roll_http *http)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(http->multi, &left))) {
		struct roll_http_request *request;
		char *private = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
		request = (struct roll_http_request *)(void *)private;
		request->code = message->data.result;
		request->is_finished = true;
	}
	/* Callbacks may add requests behind the last and mark any as closing; none is freed here.
	 */
	for (struct roll_http_request *r = http->first; r; r = r->next) {
		struct roll_http_result result = {ROLL_OK, 0, -1, ""};
		char shown[CURL_ERROR_SIZE];

		if (r->has_news && !r->is_closing && r->spec.on_settled) {
			r->has_news = false;
			r->spec.on_settled(r->spec.ctx);
		}
		if (!r->is_finished || r->is_closing)
			continue;
		result.http_status = r->http_status;
		result.retry_after_ms = r->retry_after_ms;
		if (r->code != CURLE_OK) {
			const char *text = r->error[0] ? r->error : curl_easy_strerror(r->code);

			result.text = roll_str_show(roll_str_c(text), shown, sizeof shown);
		}
		switch (r->code) {
		case CURLE_OK:
			break;
		case CURLE_OUT_OF_MEMORY:
			result.status = ROLL_ENOMEM;
			break;
		case CURLE_WRITE_ERROR:
			result.status = r->reader_status ? r->reader_status : ROLL_EIO;
			break;
		case CURLE_PEER_FAILED_VERIFICATION:
		case CURLE_SSL_CERTPROBLEM:
		case CURLE_SSL_CACERT_BADFILE:
		case CURLE_SSL_ISSUER_ERROR:
			result.status = ROLL_EDENIED;
			break;
		case CURLE_UNSUPPORTED_PROTOCOL:
		case CURLE_URL_MALFORMAT:
			result.status = ROLL_EINVAL;
			break;
		case CURLE_WEIRD_SERVER_REPLY:
		case CURLE_BAD_CONTENT_ENCODING:
			result.status = ROLL_EPROTO;
			break;
		default:
			result.status = ROLL_EIO;
			break;
		}
		r->spec.on_done(r->spec.ctx, &result);
		r->is_closing = true;
		kick(http);
	}
}

static void act(struct roll_http *http, curl_socket_t fd, int what)
{
	CURLMcode code;
	int running;

	code = curl_multi_socket_action(http->multi, fd, what, &running);
	if (code != CURLM_OK)
		roll_log(ROLL_ERROR, "http-multi", "error=\"%s\"", curl_multi_strerror(code));
	collect(http);
}

static void on_socket_event(evutil_socket_t fd, short what, void *ctx)
{
	act(ctx, fd,
	    (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0));
}

static void on_timer_event(evutil_socket_t fd, short what, void *ctx)
{
	(void)fd;
	(void)what;
	act(ctx, CURL_SOCKET_TIMEOUT, 0);
}

static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx)
{
	struct event *event = socket_ctx;
	struct roll_http *http = ctx;
	short wanted = EV_PERSIST;

	(void)easy;
	if (event)
		event_free(event);
	event = NULL;
	if (what != CURL_POLL_REMOVE) {
		wanted = (short)(wanted | (what & CURL_POLL_IN ? EV_READ : 0));
		wanted = (short)(wanted | (what & CURL_POLL_OUT ? EV_WRITE : 0));
		event = event_new(roll_loop_base(http->loop), fd, wanted, on_socket_event, http);
		if (!event || event_add(event, NULL)) {
			/* Deadlines still end the requests of this socket. */
			roll_log(ROLL_ERROR, "out-of-memory", "what=socket");
			if (event)
				event_free(event);
			event = NULL;
		}
	}
	curl_multi_assign(http->multi, fd, event);
	return 0;
}

static int on_curl_timer(CURLM *multi, long delay_ms, void *ctx)
{
	struct timeval delay = {delay_ms / 1000, delay_ms % 1000 * 1000};
	struct roll_http *http = ctx;

	(void)multi;
	if (delay_ms < 0)
		evtimer_del(http->timer);
	else if (evtimer_add(http->timer, &delay))
		event_active(http->timer, EV_TIMEOUT, 1);
	return 0;
}

/* libcurl may not be given or robbed of a request while it is at work; so all of it happens here.
 */
static void on_kick(evutil_socket_t fd, short what, void *ctx)
{
	struct roll_http_request *request, *next;
	struct roll_http *http = ctx;
	bool has_failed = false;

	(void)fd;
	(void)what;
	for (request = http->first; request; request = next) {
		next = request->next;
		if (request->is_closing) {
			release(request);
		} else if (!request->is_added && !request->is_finished) {
			request->is_added = !curl_multi_add_handle(http->multi, request->easy);
			if (!request->is_added) {
				request->code = CURLE_OUT_OF_MEMORY;
				request->is_finished = true;
				has_failed = true;
			}
		}
	}
	if (has_failed)
		collect(http);
}

/* --- making a request --- */

/*
 * libcurl has no name for SNI and verification apart from the URL's host. So the URL gets the name,
 * the connection goes to where the URL pointed, and the Host header says what it said before. Nor
 * would it know that a proxy is not for that host.
 */
static enum roll_status rename_server(struct roll_http_request *request, const char *url,
				      const struct roll_http_identity *identity)
{
	const char *server_name = identity->server_name;
	const char *no_proxy = getenv("no_proxy") ? getenv("no_proxy") : getenv("NO_PROXY");
	char *host = NULL, *port = NULL, *own_port = NULL, *renamed = NULL;
	enum roll_status status = ROLL_ENOMEM;
	struct curl_slist *headers;
	CURLU *parts = curl_url();
	struct roll_buf text;

	roll_buf_init(&text, URL_LIMIT_BYTES);
	if (!parts || curl_url_set(parts, CURLUPART_URL, url, 0) ||
	    curl_url_get(parts, CURLUPART_HOST, &host, 0) ||
	    curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) ||
	    curl_url_set(parts, CURLUPART_HOST, server_name, 0) ||
	    curl_url_get(parts, CURLUPART_URL, &renamed, 0)) {
		status = ROLL_EINVAL;
		goto out;
	}
	roll_buf_printf(&text, "%s:%s:%s:%s", server_name, port, host, port);
	request->connect_to = text.status ? NULL : curl_slist_append(NULL, text.p);
	roll_buf_reset(&text);
	roll_buf_printf(&text, "Host: %s", host);
	if (!curl_url_get(parts, CURLUPART_PORT, &own_port, 0))
		roll_buf_printf(&text, ":%s", own_port);
	headers = text.status ? NULL : curl_slist_append(request->headers, text.p);
	if (!request->connect_to || !headers)
		goto out;
	request->headers = headers;
	if (curl_easy_setopt(request->easy, CURLOPT_CONNECT_TO, request->connect_to) ||
	    curl_easy_setopt(request->easy, CURLOPT_URL, renamed))
		goto out;
	if (!identity->proxy &&
	    curl_easy_setopt(request->easy, CURLOPT_NOPROXY,
			     roll_no_proxy_has(roll_str_c(no_proxy), roll_str_c(host)) ? "*" : ""))
		goto out;
	status = ROLL_OK;
out:
	roll_buf_fini(&text);
	curl_free(host);
	curl_free(port);
	curl_free(own_port);
	curl_free(renamed);
	curl_url_cleanup(parts);
	return status;
}

static bool add_header(struct roll_http_request *request, const char *line)
{
	struct curl_slist *grown = curl_slist_append(request->headers, line);

	if (grown)
		request->headers = grown;
	return grown != NULL;
}

static bool set_pem(struct roll_http_request *request, size_t at, CURLoption option,
		    struct roll_str text)
{
	struct roll_buf *copy = &request->pem[at];
	struct curl_blob blob;

	roll_buf_add_str(copy, text);
	blob = (struct curl_blob){copy->p, copy->n, CURL_BLOB_NOCOPY};
	return !copy->status && (text.n == 0 || !curl_easy_setopt(request->easy, option, &blob));
}

static bool set_identity(struct roll_http_request *request,
			 const struct roll_http_identity *identity)
{
	long verify = identity->is_insecure ? 0 : 1;
	struct roll_buf line;
	bool ok = true;

	for (size_t i = 0; i < 3; i++)
		roll_buf_init(&request->pem[i], 4u << 20);
	if (identity->token.n) {
		roll_buf_init(&line, identity->token.n + 64);
		roll_buf_add_c(&line, "Authorization: Bearer ");
		roll_buf_add_str(&line, identity->token);
		ok = !line.status && add_header(request, line.p);
		wipe(line.p, line.n);
		roll_buf_fini(&line);
	}
	if (identity->proxy)
		ok = ok && !curl_easy_setopt(request->easy, CURLOPT_PROXY, identity->proxy) &&
		     !curl_easy_setopt(request->easy, CURLOPT_NOPROXY, "");
	return ok && set_pem(request, 0, CURLOPT_CAINFO_BLOB, identity->ca) &&
	       set_pem(request, 1, CURLOPT_SSLCERT_BLOB, identity->cert) &&
	       set_pem(request, 2, CURLOPT_SSLKEY_BLOB, identity->key) &&
	       !curl_easy_setopt(request->easy, CURLOPT_SSL_VERIFYPEER, verify) &&
	       !curl_easy_setopt(request->easy, CURLOPT_SSL_VERIFYHOST, verify * 2);
}

static bool set_method(struct roll_http_request *request, const char *method, struct roll_str body)
{
	CURL *easy = request->easy;

	roll_buf_init(&request->body, body.n + 1);
	if (strcmp(method, "GET") == 0 && body.n == 0)
		return true;
	if (curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method))
		return false;
	if (body.n == 0)
		return true;
	roll_buf_add_str(&request->body, body);
	/* A server that answers before the body was sent is fine; do not wait for a 100. */
	return !request->body.status && add_header(request, "Expect:") &&
	       !curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.n) &&
	       !curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body.p);
}

static bool set_common(struct roll_http_request *request, const struct roll_http_spec *spec)
{
	const struct {
		CURLoption option;
		long value;
	} numbers[] = {
		{CURLOPT_NOSIGNAL, 1},
		{CURLOPT_DNS_CACHE_TIMEOUT, 0},
		{CURLOPT_TCP_KEEPALIVE, 1},
		{CURLOPT_TCP_KEEPIDLE, 20},
		{CURLOPT_TCP_KEEPINTVL, 5},
		{CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1}, /* see http.h */
		{CURLOPT_BUFFERSIZE, BUFFER_BYTES},
		{CURLOPT_FOLLOWLOCATION, 0},
		{CURLOPT_SUPPRESS_CONNECT_HEADERS, 1},
		{CURLOPT_CONNECTTIMEOUT_MS, (long)spec->connect_ms},
		{CURLOPT_TIMEOUT_MS, (long)spec->total_ms},
		{CURLOPT_LOW_SPEED_LIMIT, spec->silence_ms > 0},
		{CURLOPT_LOW_SPEED_TIME, (long)((spec->silence_ms + 999) / 1000)},
		{CURLOPT_FRESH_CONNECT, spec->is_alone},
		{CURLOPT_FORBID_REUSE, spec->is_alone},
	};
	const struct {
		CURLoption option;
		const void *value;
	} pointers[] = {
		{CURLOPT_URL, spec->url},
		{CURLOPT_PROTOCOLS_STR, "http,https"},
		{CURLOPT_USERAGENT, USER_AGENT},
		{CURLOPT_ACCEPT_ENCODING, spec->accepts_gzip ? "gzip" : NULL},
		{CURLOPT_ERRORBUFFER, request->error},
		{CURLOPT_PRIVATE, request},
		{CURLOPT_HEADERDATA, request},
		{CURLOPT_WRITEDATA, request},
	};
	CURL *easy = request->easy;

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		if (curl_easy_setopt(easy, numbers[i].option, numbers[i].value))
			return false;
	}
	for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
		if (curl_easy_setopt(easy, pointers[i].option, pointers[i].value))
			return false;
	}
	return !curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_curl_header) &&
	       !curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_curl_body) &&
	       !curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_curl_socket_made);
}

enum roll_status roll_http_new(struct roll_loop *loop, struct roll_http **out, struct roll_err *err)
{
	struct roll_http *http = calloc(1, sizeof *http);
	CURLMcode code = CURLM_OK;

	/* Counted by libcurl: every call but the first is cheap, and none needs to be undone. */
	if (!http || curl_global_init(CURL_GLOBAL_DEFAULT))
		goto out;
	http->loop = loop;
	http->timer = evtimer_new(roll_loop_base(loop), on_timer_event, http);
	http->kick = evtimer_new(roll_loop_base(loop), on_kick, http);
	http->multi = curl_multi_init();
	if (!http->timer || !http->kick || !http->multi)
		goto out;
	code |= curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
	code |= curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
	code |= curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
	code |= curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
	if (code)
		goto out;
	*out = http;
	return ROLL_OK;
out:
	roll_http_free(http);
	return roll_err_set(err, ROLL_ENOMEM, NULL, "cannot set up HTTP");
}

void roll_http_free(struct roll_http *http)
{
	if (!http)
		return;
	while (http->first)
		release(http->first);
	if (http->multi)
		curl_multi_cleanup(http->multi);
	if (http->timer)
		event_free(http->timer);
	if (http->kick)
		event_free(http->kick);
	free(http);
}

struct roll_http_request *roll_http_start(struct roll_http *http, const struct roll_http_spec *spec)
{
	struct roll_http_request *request = calloc(1, sizeof *request);
	bool ok;

	assert(spec->on_done);
	if (!request)
		return NULL;
	request->http = http;
	request->prev = http->last;
	if (http->last)
		http->last->next = request;
	else
		http->first = request;
	http->last = request;
	request->retry_after_ms = -1;
	request->spec = *spec;
	request->easy = curl_easy_init();
	ok = request->easy && set_common(request, spec) &&
	     set_method(request, spec->method, spec->body) && set_identity(request, spec->identity);
	for (const char *const *line = spec->headers; ok && line && *line; line++)
		ok = add_header(request, *line);
	if (ok && spec->identity->server_name && rename_server(request, spec->url, spec->identity))
		ok = false;
	if (!ok || curl_easy_setopt(request->easy, CURLOPT_HTTPHEADER, request->headers)) {
		release(request);
		return NULL;
	}
	request->spec.url = NULL;
	request->spec.headers = NULL;
	request->spec.identity = NULL;
	kick(http);
	return request;
}

void roll_http_cancel(struct roll_http_request *request)
{
	if (!request || request->is_closing)
		return;
	request->is_closing = true;
	kick(request->http);
}
