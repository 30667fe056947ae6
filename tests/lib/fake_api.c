/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/fake_api.h"

#include <arpa/inet.h>
#include <assert.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "tests/lib/gzip.h"

/* One long file: objects, connections and answers of one server, none of use without the others. */

#define API_VERSION "dns.networking.miloapis.com/v1alpha1"
#define API_PATH "/apis/" API_VERSION "/"

static const struct {
	const char *plural;
	const char *kind;
} kinds[FAKE_KINDS] = {
	{"dnszoneclasses", "DNSZoneClass"},
	{"dnszones", "DNSZone"},
	{"dnsrecordsets", "DNSRecordSet"},
};

/* One change. The history is kept whole, so that any snapshot can be had. */
struct change {
	uint64_t revision;
	uint64_t superseded; /* by a change of this revision; 0: not yet */
	enum fake_kind kind;
	char key[160];	  /* "ns/name" */
	const char *type; /* "ADDED" */
	json_t *object;	  /* of a deletion: the last state, with the deletion's revision */
};

struct script {
	struct script *next;
	char *part;
	char *text; /* NULL: no answer */
	size_t n;
	size_t truncate; /* SIZE_MAX: text instead */
	size_t count;
};

struct conn {
	struct fake_api *api;
	struct conn *next;
	struct bufferevent *bev;
	struct evbuffer *out; /* still to be sent, slice by slice */
	struct event *slice;  /* when the next one is due */
	struct event *end;    /* of a watch */
	bool ends;	      /* close when all is sent */
	bool is_watch;
	bool wants_gzip;
	enum fake_kind kind;
	char ns[64];
	uint64_t sent;	 /* revision up to which the watch has been told */
	size_t truncate; /* bytes left; SIZE_MAX: no limit */
};

struct fake_api {
	struct event_base *base;
	struct evconnlistener *listener;
	evutil_socket_t held; /* the port, while nobody listens: no client is to get it */
	struct fake_api_conf conf;
	struct fake_api_counts counts;
	uint16_t port;
	char url[64];
	char last[4096];
	size_t last_answer_bytes;
	struct conn *conns;
	struct other *others;
	struct change *changes;
	size_t change_count;
	size_t change_room;
	uint64_t revision;
	uint64_t compacted;
	unsigned next_uid;
	struct script *scripts;
	fake_api_on_other on_other;
	void *other_ctx;
};

static void push(struct conn *conn);

/* --- objects --- */

static void make_key(char *key, size_t size, const char *ns, const char *name)
{
	snprintf(key, size, "%s/%s", ns ? ns : "", name);
}

static bool in_ns(const struct change *change, const char *ns)
{
	size_t n = strlen(ns);

	return n == 0 || (strncmp(change->key, ns, n) == 0 && change->key[n] == '/');
}

static struct change *latest(const struct fake_api *api, enum fake_kind kind, const char *key)
{
	for (size_t i = api->change_count; i > 0; i--) {
		struct change *change = &api->changes[i - 1];

		if (change->kind == kind && strcmp(change->key, key) == 0)
			return change;
	}
	return NULL;
}

static bool is_there(const struct change *change)
{
	return change && strcmp(change->type, "DELETED") != 0;
}

/* Part of the snapshot at this revision. */
static bool is_in(const struct change *change, uint64_t at)
{
	return change->revision <= at && (!change->superseded || change->superseded > at) &&
	       is_there(change);
}

static void tell_watches(struct fake_api *api);

static uint64_t record(struct fake_api *api, enum fake_kind kind, const char *key, const char *type,
		       json_t *object)
{
	struct change *change = latest(api, kind, key);
	char text[24];

	if (change)
		change->superseded = api->revision + 1;
	if (api->change_count == api->change_room) {
		api->change_room = api->change_room ? api->change_room * 2 : 64;
		api->changes = reallocarray(api->changes, api->change_room, sizeof *api->changes);
		assert(api->changes);
	}
	change = &api->changes[api->change_count++];
	change->revision = ++api->revision;
	change->superseded = 0;
	change->kind = kind;
	snprintf(change->key, sizeof change->key, "%s", key);
	change->type = type;
	change->object = object;
	snprintf(text, sizeof text, "%llu", (unsigned long long)api->revision);
	json_object_set_new(json_object_get(object, "metadata"), "resourceVersion",
			    json_string(text));
	tell_watches(api);
	return api->revision;
}

uint64_t fake_api_put(struct fake_api *api, enum fake_kind kind, const char *ns, const char *name,
		      json_t *spec)
{
	const struct change *before;
	json_t *object, *metadata;
	char key[160], text[64];

	make_key(key, sizeof key, ns, name);
	before = latest(api, kind, key);
	if (is_there(before)) {
		object = json_deep_copy(before->object);
		metadata = json_object_get(object, "metadata");
		json_object_set_new(
			metadata, "generation",
			json_integer(json_integer_value(json_object_get(metadata, "generation")) +
				     1));
	} else {
		snprintf(text, sizeof text, "00000000-0000-4000-8000-%012u", ++api->next_uid);
		metadata = json_pack("{s:s, s:s, s:i, s:s, s:s*}", "name", name, "uid", text,
				     "generation", 1, "creationTimestamp", "2026-12-01T00:00:00Z",
				     "namespace", ns);
		object = json_pack("{s:s, s:s, s:o}", "apiVersion", API_VERSION, "kind",
				   kinds[kind].kind, "metadata", metadata);
	}
	json_object_set_new(object, "spec", spec);
	return record(api, kind, key, is_there(before) ? "MODIFIED" : "ADDED", object);
}

uint64_t fake_api_set_status(struct fake_api *api, enum fake_kind kind, const char *ns,
			     const char *name, json_t *status)
{
	const struct change *before;
	json_t *object;
	char key[160];

	make_key(key, sizeof key, ns, name);
	before = latest(api, kind, key);
	if (!is_there(before) || json_equal(json_object_get(before->object, "status"), status)) {
		json_decref(status);
		return is_there(before) ? before->revision : 0;
	}
	object = json_deep_copy(before->object);
	json_object_set_new(object, "status", status);
	return record(api, kind, key, "MODIFIED", object);
}

uint64_t fake_api_terminate(struct fake_api *api, enum fake_kind kind, const char *ns,
			    const char *name)
{
	const struct change *before;
	json_t *object;
	char key[160];

	make_key(key, sizeof key, ns, name);
	before = latest(api, kind, key);
	if (!is_there(before))
		return 0;
	object = json_deep_copy(before->object);
	json_object_set_new(json_object_get(object, "metadata"), "deletionTimestamp",
			    json_string("2026-12-01T01:00:00Z"));
	return record(api, kind, key, "MODIFIED", object);
}

uint64_t fake_api_delete(struct fake_api *api, enum fake_kind kind, const char *ns,
			 const char *name)
{
	const struct change *before;
	char key[160];

	make_key(key, sizeof key, ns, name);
	before = latest(api, kind, key);
	if (!is_there(before))
		return 0;
	return record(api, kind, key, "DELETED", json_deep_copy(before->object));
}

uint64_t fake_api_bump(struct fake_api *api)
{
	return ++api->revision;
}

uint64_t fake_api_revision(const struct fake_api *api)
{
	return api->revision;
}

size_t fake_api_object_count(const struct fake_api *api)
{
	size_t count = 0;

	for (size_t i = 0; i < api->change_count; i++)
		count += is_in(&api->changes[i], api->revision);
	return count;
}

const json_t *fake_api_get(const struct fake_api *api, enum fake_kind kind, const char *ns,
			   const char *name)
{
	const struct change *change;
	char key[160];

	make_key(key, sizeof key, ns, name);
	change = latest(api, kind, key);
	return is_there(change) ? change->object : NULL;
}

uint64_t fake_api_absent_after(const struct fake_api *api, enum fake_kind kind, const char *ns,
			       const char *name, uint64_t revision)
{
	char key[160];

	make_key(key, sizeof key, ns, name);
	for (size_t i = 0; i < api->change_count; i++) {
		const struct change *change = &api->changes[i];

		if (change->kind != kind || change->revision <= revision ||
		    strcmp(change->key, key) != 0)
			continue;
		if (!is_there(change) ||
		    json_object_get(json_object_get(change->object, "metadata"),
				    "deletionTimestamp"))
			return change->revision;
	}
	return 0;
}

void fake_api_compact(struct fake_api *api)
{
	api->compacted = api->revision;
}

/* What this server has seen. */
static uint64_t horizon(const struct fake_api *api)
{
	uint64_t stale_at = api->conf.stale_at;

	return stale_at && stale_at < api->revision ? stale_at : api->revision;
}

/* --- connections --- */

struct request {
	char method[16];
	char path[512]; /* without the query */
	char query[2048];
	json_t *body;
};

/* A request for the hook, or the hook's answer, on its way. */
struct other {
	struct fake_api *api;
	struct conn *conn; /* NULL: gone */
	struct other *next;
	struct event *timer;
	struct request request;
	bool has_arrived;
	int code;
	json_t *reply;
};

static void free_conn(struct conn *conn)
{
	struct conn **at = &conn->api->conns;

	for (struct other *other = conn->api->others; other; other = other->next) {
		if (other->conn == conn)
			other->conn = NULL;
	}
	while (*at != conn)
		at = &(*at)->next;
	*at = conn->next;
	event_free(conn->slice);
	event_free(conn->end);
	bufferevent_free(conn->bev);
	evbuffer_free(conn->out);
	free(conn);
}

static void push(struct conn *conn)
{
	struct evbuffer *wire = bufferevent_get_output(conn->bev);
	size_t slice = conn->api->conf.slice_bytes, n = evbuffer_get_length(conn->out);

	if (evbuffer_get_length(wire))
		return;
	if (n == 0) {
		if (conn->ends)
			free_conn(conn);
		return;
	}
	evbuffer_remove_buffer(conn->out, wire, slice && slice < n ? slice : n);
}

static void start_timer(struct event *timer, int64_t ms)
{
	struct timeval delay = {ms / 1000, ms % 1000 * 1000};

	if (evtimer_add(timer, &delay))
		abort();
}

static void on_slice(evutil_socket_t fd, short what, void *ctx)
{
	(void)fd;
	(void)what;
	push(ctx);
}

static void on_written(struct bufferevent *bev, void *ctx)
{
	struct conn *conn = ctx;

	(void)bev;
	if (conn->api->conf.slice_ms && evbuffer_get_length(conn->out))
		start_timer(conn->slice, conn->api->conf.slice_ms);
	else
		push(conn);
}

static void send_bytes(struct conn *conn, const void *bytes, size_t n)
{
	if (n > conn->truncate) {
		n = conn->truncate;
		conn->ends = true;
	}
	if (conn->truncate != SIZE_MAX)
		conn->truncate -= n;
	evbuffer_add(conn->out, bytes, n);
}

static void send_chunk(struct conn *conn, const char *text, size_t n)
{
	char size[32];
	int size_n = snprintf(size, sizeof size, "%zx\r\n", n);

	send_bytes(conn, size, (size_t)size_n);
	send_bytes(conn, text, n);
	send_bytes(conn, "\r\n", 2);
}

static void reply(struct conn *conn, int code, const char *type, const char *body, size_t n)
{
	struct roll_buf zipped;
	char head[256];
	int head_n;

	roll_buf_init(&zipped, n + (n >> 4) + 64);
	if (conn->wants_gzip) {
		gzip_stored(&zipped, roll_str_n(body, n));
		body = zipped.p;
		n = zipped.n;
	}
	head_n = snprintf(head, sizeof head,
			  "HTTP/1.1 %d Whatever\r\nContent-Type: %s\r\n%s"
			  "Content-Length: %zu\r\n\r\n",
			  code, type, conn->wants_gzip ? "Content-Encoding: gzip\r\n" : "", n);
	conn->api->last_answer_bytes = (size_t)head_n + n;
	send_bytes(conn, head, (size_t)head_n);
	send_bytes(conn, body, n);
	push(conn);
	roll_buf_fini(&zipped);
}

static void reply_json(struct conn *conn, int code, json_t *body)
{
	/* The order of the members is that of a real server: metadata comes after the items. */
	char *text = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS);

	assert(text);
	reply(conn, code, "application/json", text, strlen(text));
	free(text);
	json_decref(body);
}

static json_t *status_object(int code, const char *reason, const char *message)
{
	return json_pack("{s:s, s:s, s:{}, s:s, s:s, s:s, s:i}", "kind", "Status", "apiVersion",
			 "v1", "metadata", "status", "Failure", "message", message, "reason",
			 reason, "code", code);
}

static void send_event(struct conn *conn, const char *type, json_t *object)
{
	json_t *event = json_pack("{s:s, s:O}", "type", type, "object", object);
	char *text = json_dumps(event, JSON_COMPACT);
	size_t n;

	assert(text);
	n = strlen(text);
	text[n] = '\n'; /* in the place of the NUL */
	send_chunk(conn, text, n + 1);
	free(text);
	json_decref(event);
}

static void send_bookmark(struct conn *conn, uint64_t revision, bool ends_initial)
{
	json_t *object, *metadata;
	char text[24];

	snprintf(text, sizeof text, "%llu", (unsigned long long)revision);
	metadata = json_pack("{s:s}", "resourceVersion", text);
	if (ends_initial)
		json_object_set_new(metadata, "annotations",
				    json_pack("{s:s}", "k8s.io/initial-events-end", "true"));
	object = json_pack("{s:s, s:s, s:o}", "apiVersion", API_VERSION, "kind",
			   kinds[conn->kind].kind, "metadata", metadata);
	send_event(conn, "BOOKMARK", object);
	json_decref(object);
}

static void tell_watch(struct conn *conn)
{
	struct fake_api *api = conn->api;
	uint64_t end = horizon(api);

	for (size_t i = 0; i < api->change_count && !api->conf.is_silent; i++) {
		const struct change *change = &api->changes[i];

		if (change->revision <= conn->sent || change->revision > end ||
		    change->kind != conn->kind || !in_ns(change, conn->ns))
			continue;
		send_event(conn, change->type, change->object);
	}
	if (end > conn->sent && !api->conf.is_silent)
		conn->sent = end;
	push(conn);
}

static void tell_watches(struct fake_api *api)
{
	struct conn *next;

	for (struct conn *conn = api->conns; conn; conn = next) {
		next = conn->next;
		if (conn->is_watch && !conn->ends)
			tell_watch(conn);
	}
}

void fake_api_bookmark(struct fake_api *api)
{
	struct conn *next;

	for (struct conn *conn = api->conns; conn; conn = next) {
		next = conn->next;
		if (!conn->is_watch || conn->ends)
			continue;
		send_bookmark(conn, horizon(api), false);
		push(conn);
	}
}

void fake_api_lose(struct fake_api *api)
{
	for (struct conn *conn = api->conns; conn; conn = conn->next)
		conn->sent = horizon(api);
}

void fake_api_say(struct fake_api *api, const char *text, size_t n)
{
	struct conn *next;

	for (struct conn *conn = api->conns; conn; conn = next) {
		next = conn->next;
		if (!conn->is_watch || conn->ends)
			continue;
		send_chunk(conn, text, n);
		push(conn);
	}
}

static void end_watch(struct conn *conn)
{
	send_bytes(conn, "0\r\n\r\n", 5);
	conn->ends = true;
	push(conn);
}

static void on_watch_end(evutil_socket_t fd, short what, void *ctx)
{
	struct conn *conn = ctx;

	(void)fd;
	(void)what;
	if (!conn->ends)
		end_watch(conn);
}

void fake_api_end_watches(struct fake_api *api)
{
	struct conn *next;

	for (struct conn *conn = api->conns; conn; conn = next) {
		next = conn->next;
		if (conn->is_watch && !conn->ends)
			end_watch(conn);
	}
}

size_t fake_api_open_watches(const struct fake_api *api)
{
	size_t count = 0;

	for (const struct conn *conn = api->conns; conn; conn = conn->next)
		count += conn->is_watch && !conn->ends;
	return count;
}

void fake_api_cut(struct fake_api *api)
{
	while (api->conns)
		free_conn(api->conns);
}

void fake_api_restore(struct fake_api *api, uint64_t revision)
{
	fake_api_cut(api);
	api->revision = revision;
	while (api->change_count && api->changes[api->change_count - 1].revision > revision)
		json_decref(api->changes[--api->change_count].object);
	for (size_t i = 0; i < api->change_count; i++) {
		if (api->changes[i].superseded > revision)
			api->changes[i].superseded = 0;
	}
}

/* --- requests --- */

/* Decoded value of a query parameter; empty if it is not there. */
static const char *param(const struct request *request, const char *name, char *out, size_t size)
{
	size_t n = strlen(name), used = 0;
	const char *p = request->query;

	out[0] = '\0';
	while (*p && (strncmp(p, name, n) != 0 || p[n] != '=')) {
		p = strchr(p, '&');
		if (!p)
			return out;
		p++;
	}
	if (!*p)
		return out;
	for (p += n + 1; *p && *p != '&' && used + 1 < size; p++) {
		char c = *p;

		if (c == '%' && p[1] && p[2]) {
			static const char digits[] = "0123456789ABCDEF";

			c = (char)((strchr(digits, p[1]) - digits) << 4 |
				   (strchr(digits, p[2]) - digits));
			p += 2;
		}
		out[used++] = c;
	}
	out[used] = '\0';
	return out;
}

static uint64_t number(const char *text)
{
	uint64_t value = 0;

	return roll_str_u64(roll_str_c(text), UINT64_MAX, &value) ? 0 : value;
}

static int by_key(const void *a, const void *b)
{
	const struct change *const *x = a, *const *y = b;

	return strcmp((*x)->key, (*y)->key);
}

/* The objects of a snapshot as a server lists them: by name. The caller frees the array. */
static const struct change **find_snapshot(const struct conn *conn, uint64_t at, size_t *count)
{
	const struct fake_api *api = conn->api;
	const struct change **found = calloc(api->change_count + 1, sizeof *found);

	assert(found);
	*count = 0;
	for (size_t i = 0; i < api->change_count; i++) {
		const struct change *change = &api->changes[i];

		if (change->kind == conn->kind && in_ns(change, conn->ns) && is_in(change, at))
			found[(*count)++] = change;
	}
	qsort(found, *count, sizeof *found, by_key);
	return found;
}

static void reply_list(struct conn *conn, const struct request *request)
{
	struct fake_api *api = conn->api;
	char text[512];
	uint64_t at = horizon(api);
	size_t limit = (size_t)number(param(request, "limit", text, sizeof text));
	json_t *items = json_array(), *metadata;
	const struct change **found;
	const char *after = "";
	size_t i, count, taken = 0;

	/* A token holds the snapshot and the last key, in bytes that must be encoded in a URL. */
	param(request, "continue", text, sizeof text);
	if (text[0]) {
		char *key = strchr(text, '+');

		/* Nobody may go on with the token that comes with a 410. */
		assert(key && strcmp(key, "+fresh") != 0);
		*key = '\0';
		after = key + 1;
		at = number(text + 2);
		if (at < api->compacted) {
			json_t *status = status_object(410, "Expired", "the token is too old");

			json_object_set_new(json_object_get(status, "metadata"), "continue",
					    json_string("r=1+fresh"));
			json_decref(items);
			reply_json(conn, 410, status);
			return;
		}
	}
	found = find_snapshot(conn, at, &count);
	if (api->conf.page_max && (limit == 0 || limit > api->conf.page_max))
		limit = api->conf.page_max;
	for (i = 0; i < count && (limit == 0 || taken < limit); i++) {
		if (strcmp(found[i]->key, after) <= 0)
			continue;
		json_array_append(items, found[i]->object);
		taken++;
	}
	{
		char revision[24], token[256] = "", kind[32];

		snprintf(revision, sizeof revision, "%llu", (unsigned long long)at);
		if (i < count)
			snprintf(token, sizeof token, "r=%s+%s", revision, found[i - 1]->key);
		snprintf(kind, sizeof kind, "%sList", kinds[conn->kind].kind);
		metadata = json_pack("{s:s, s:s}", "continue", token, "resourceVersion", revision);
		free(found);
		reply_json(conn, 200,
			   json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", API_VERSION, "kind",
				     kind, "items", items, "metadata", metadata));
	}
}

static void begin_watch(struct conn *conn, const struct request *request)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
				   "Transfer-Encoding: chunked\r\n\r\n";
	struct fake_api *api = conn->api;
	char text[64];
	bool is_stream =
		strcmp(param(request, "sendInitialEvents", text, sizeof text), "true") == 0;
	bool has_bookmarks =
		strcmp(param(request, "allowWatchBookmarks", text, sizeof text), "true") == 0;
	int64_t length_s = (int64_t)number(param(request, "timeoutSeconds", text, sizeof text));
	uint64_t from = number(param(request, "resourceVersion", text, sizeof text));
	const struct change **found;
	size_t count;

	if (is_stream) {
		param(request, "resourceVersionMatch", text, sizeof text);
		if (!api->conf.ignores_initial &&
		    (!api->conf.has_stream || strcmp(text, "NotOlderThan") != 0)) {
			reply_json(conn, 422,
				   status_object(422, "Invalid", "sendInitialEvents is forbidden"));
			return;
		}
		api->counts.streams++;
	} else {
		api->counts.watches++;
	}
	/* Whoever names no version gets what there is, marked as complete or not. */
	if (from == 0)
		from = horizon(api);
	send_bytes(conn, head, sizeof head - 1);
	if (!is_stream && from < api->compacted) {
		json_t *status = status_object(410, "Expired", "too old resource version");

		send_event(conn, "ERROR", status);
		json_decref(status);
		send_bytes(conn, "0\r\n\r\n", 5);
		conn->ends = true;
		push(conn);
		return;
	}
	conn->is_watch = true;
	conn->sent = from;
	if (length_s && !api->conf.ignores_timeout)
		start_timer(conn->end, length_s * 1000);
	if (is_stream && !api->conf.is_silent) {
		found = find_snapshot(conn, from, &count);
		for (size_t i = 0; i < count; i++)
			send_event(conn, "ADDED", found[i]->object);
		free(found);
		if (has_bookmarks && !api->conf.ignores_initial)
			send_bookmark(conn, from, true);
	}
	tell_watch(conn);
}

/* ".../dnszones" or ".../namespaces/NS/dnszones". */
static bool find_resource(struct conn *conn, const char *path)
{
	const char *rest = path, *slash;

	if (strncmp(rest, API_PATH, sizeof API_PATH - 1) != 0)
		return false;
	rest += sizeof API_PATH - 1;
	conn->ns[0] = '\0';
	if (strncmp(rest, "namespaces/", 11) == 0) {
		rest += 11;
		slash = strchr(rest, '/');
		if (!slash)
			return false;
		snprintf(conn->ns, sizeof conn->ns, "%.*s", (int)(slash - rest), rest);
		rest = slash + 1;
	}
	for (size_t i = 0; i < FAKE_KINDS; i++) {
		if (strcmp(rest, kinds[i].plural) == 0) {
			conn->kind = (enum fake_kind)i;
			return true;
		}
	}
	return false;
}

static struct script *find_script(struct fake_api *api, const char *head)
{
	for (struct script *script = api->scripts; script; script = script->next) {
		if (script->count && strstr(head, script->part))
			return script;
	}
	return NULL;
}

static bool is_allowed(struct fake_api *api, const char *head)
{
	char want[256];

	if (!api->conf.token)
		return true;
	snprintf(want, sizeof want, "Authorization: Bearer %s\r\n", api->conf.token);
	return strstr(head, want) != NULL;
}

static void free_other(struct other *other)
{
	struct other **at = &other->api->others;

	while (*at != other)
		at = &(*at)->next;
	*at = other->next;
	event_free(other->timer);
	json_decref(other->request.body);
	json_decref(other->reply);
	free(other);
}

/* It has arrived, or its answer has. */
static void on_other_due(evutil_socket_t fd, short what, void *ctx)
{
	struct other *other = ctx;
	struct fake_api *api = other->api;
	int64_t ms = api->conf.answer_ms;
	const struct timeval delay = {ms / 1000, ms % 1000 * 1000};

	(void)fd;
	(void)what;
	if (!other->has_arrived) {
		other->has_arrived = true;
		other->code =
			api->on_other(api->other_ctx, other->request.method, other->request.path,
				      other->request.body, &other->reply);
		if (ms > 0) {
			evtimer_add(other->timer, &delay);
			return;
		}
	}
	if (other->conn && other->code)
		reply_json(other->conn, other->code,
			   other->reply ? json_incref(other->reply) : json_object());
	free_other(other);
}

static void ask_other(struct conn *conn, const struct request *request)
{
	struct other *other = calloc(1, sizeof *other);
	struct fake_api *api = conn->api;
	int64_t ms = api->conf.request_ms;
	const struct timeval delay = {ms / 1000, ms % 1000 * 1000};

	assert(other);
	other->api = api;
	other->conn = conn;
	other->next = api->others;
	api->others = other;
	other->request = *request;
	json_incref(other->request.body);
	other->timer = evtimer_new(api->base, on_other_due, other);
	assert(other->timer);
	if (ms > 0)
		evtimer_add(other->timer, &delay);
	else
		on_other_due(-1, 0, other);
}

static void handle(struct conn *conn, const char *head, struct request *request)
{
	struct fake_api *api = conn->api;
	struct script *script = find_script(api, head);
	char text[64];

	api->counts.requests++;
	conn->wants_gzip = api->conf.gzips && strstr(head, "\r\nAccept-Encoding: gzip\r\n");
	if (script) {
		script->count--;
		api->counts.scripted++;
		if (script->truncate != SIZE_MAX) {
			conn->truncate = script->truncate;
		} else {
			if (!script->text)
				return;
			conn->ends = true;
			send_bytes(conn, script->text, script->n);
			push(conn);
			return;
		}
	}
	if (!is_allowed(api, head)) {
		api->counts.denied++;
		reply_json(conn, 401, status_object(401, "Unauthorized", "Unauthorized"));
		return;
	}
	if (strcmp(request->method, "GET") == 0 && find_resource(conn, request->path)) {
		bool is_probe = strcmp(param(request, "limit", text, sizeof text), "1") == 0;

		if (param(request, "watch", text, sizeof text)[0]) {
			begin_watch(conn, request);
			return;
		}
		if (is_probe)
			api->counts.probes++;
		else if (param(request, "continue", text, sizeof text)[0])
			api->counts.pages++;
		else
			api->counts.lists++;
		if (!api->conf.hangs_lists)
			reply_list(conn, request);
		return;
	}
	if (api->conf.identity && strcmp(request->path, "/api/v1/namespaces/kube-system") == 0) {
		reply_json(conn, 200,
			   json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", "v1", "kind",
				     "Namespace", "metadata", "name", "kube-system", "uid",
				     api->conf.identity));
		return;
	}
	if (api->on_other) {
		ask_other(conn, request);
		return;
	}
	reply(conn, 404, "text/plain", "404 page not found\n", 19);
}

static void on_readable(struct bufferevent *bev, void *ctx)
{
	struct evbuffer *in = bufferevent_get_input(bev);
	struct conn *conn = ctx;
	struct fake_api *api = conn->api;

	for (;;) {
		struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
		struct request request = {.body = NULL};
		uint64_t body_n = 0;
		struct roll_str line, part;
		size_t n;
		char *at, *all;

		if (end.pos < 0 || conn->ends || conn->is_watch)
			return;
		n = (size_t)end.pos + 4;
		assert(n < sizeof api->last);
		evbuffer_copyout(in, api->last, n);
		api->last[n] = '\0';
		at = strstr(api->last, "Content-Length: ");
		if (at) {
			line = roll_str_c(at + 16);
			part = roll_str_trim(roll_str_cut(&line, '\n'));
			if (roll_str_u64(part, 1u << 24, &body_n))
				abort();
		}
		if (evbuffer_get_length(in) < n + body_n)
			return;
		all = malloc(n + body_n);
		assert(all);
		evbuffer_remove(in, all, n + body_n);
		if (body_n)
			request.body = json_loadb(all + n, body_n, 0, NULL);
		free(all);
		line = roll_str_c(api->last);
		part = roll_str_cut(&line, ' ');
		snprintf(request.method, sizeof request.method, ROLL_STR_FMT, ROLL_STR_ARG(part));
		part = roll_str_cut(&line, ' ');
		at = memchr(part.p, '?', part.n);
		if (at)
			snprintf(request.query, sizeof request.query, "%.*s",
				 (int)(part.n - (size_t)(at + 1 - part.p)), at + 1);
		snprintf(request.path, sizeof request.path, "%.*s",
			 (int)(at ? at - part.p : (ptrdiff_t)part.n), part.p);
		/* The connection may be gone afterwards; then nothing may be looked at any more. */
		handle(conn, api->last, &request);
		json_decref(request.body);
		for (conn = api->conns; conn && conn->bev != bev; conn = conn->next)
			;
		if (!conn)
			return;
	}
}

static void on_conn_event(struct bufferevent *bev, short what, void *ctx)
{
	(void)bev;
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		free_conn(ctx);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *peer,
		      int peer_n, void *ctx)
{
	struct conn *conn = calloc(1, sizeof *conn);
	struct fake_api *api = ctx;
	int at_once = 1;

	(void)listener;
	(void)peer;
	(void)peer_n;
	assert(conn);
	conn->api = api;
	conn->truncate = SIZE_MAX;
	conn->out = evbuffer_new();
	conn->bev = bufferevent_socket_new(api->base, fd, BEV_OPT_CLOSE_ON_FREE);
	conn->slice = evtimer_new(api->base, on_slice, conn);
	conn->end = evtimer_new(api->base, on_watch_end, conn);
	assert(conn->out && conn->bev && conn->slice && conn->end);
	/* As servers do; else the kernel may hold back a slice for some time of its own. */
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once))
		abort();
	conn->next = api->conns;
	api->conns = conn;
	bufferevent_setcb(conn->bev, on_readable, on_written, on_conn_event, conn);
	bufferevent_enable(conn->bev, EV_READ | EV_WRITE);
}

/* --- life --- */

static void let_port_go(struct fake_api *api)
{
	if (api->held != -1)
		close(api->held);
	api->held = -1;
}

/* The one that it had, or any. */
static void hold_port(struct fake_api *api)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(api->port)};
	socklen_t n = sizeof address;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	api->held = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (api->held == -1 || evutil_make_listen_socket_reuseable(api->held) ||
	    bind(api->held, (struct sockaddr *)&address, sizeof address) ||
	    getsockname(api->held, (struct sockaddr *)&address, &n)) {
		let_port_go(api);
		return;
	}
	api->port = ntohs(address.sin_port);
	snprintf(api->url, sizeof api->url, "http://127.0.0.1:%u", api->port);
}

bool fake_api_resume(struct fake_api *api)
{
	if (api->held == -1)
		return false;
	api->listener =
		evconnlistener_new(api->base, on_accept, api, LEV_OPT_CLOSE_ON_FREE, 16, api->held);
	if (!api->listener)
		return false;
	api->held = -1;
	return true;
}

void fake_api_stop(struct fake_api *api)
{
	if (!api->listener)
		return;
	evconnlistener_free(api->listener);
	api->listener = NULL;
	hold_port(api);
	fake_api_cut(api);
}

struct fake_api *fake_api_new(struct event_base *base)
{
	struct fake_api *api = calloc(1, sizeof *api);

	assert(api);
	/* Whatever proxy the machine has, we are not behind it. */
	setenv("no_proxy", "127.0.0.1", 1);
	api->base = base;
	api->revision = 100;
	hold_port(api);
	if (!fake_api_resume(api)) {
		fake_api_free(api);
		return NULL;
	}
	return api;
}

void fake_api_unscript(struct fake_api *api)
{
	while (api->scripts) {
		struct script *script = api->scripts;

		api->scripts = script->next;
		free(script->part);
		free(script->text);
		free(script);
	}
}

void fake_api_free(struct fake_api *api)
{
	if (!api)
		return;
	fake_api_stop(api);
	let_port_go(api);
	while (api->others)
		free_other(api->others);
	for (size_t i = 0; i < api->change_count; i++)
		json_decref(api->changes[i].object);
	free(api->changes);
	fake_api_unscript(api);
	free(api);
}

struct fake_api_conf *fake_api_conf(struct fake_api *api)
{
	return &api->conf;
}

const struct fake_api_counts *fake_api_counts(const struct fake_api *api)
{
	return &api->counts;
}

uint16_t fake_api_port(const struct fake_api *api)
{
	return api->port;
}

const char *fake_api_url(const struct fake_api *api)
{
	return api->url;
}

const char *fake_api_last_request(const struct fake_api *api)
{
	return api->last;
}

size_t fake_api_last_answer_bytes(const struct fake_api *api)
{
	return api->last_answer_bytes;
}

static void add_script(struct fake_api *api, const char *part, const void *text, size_t n,
		       size_t truncate, size_t count)
{
	struct script *script = calloc(1, sizeof *script);

	assert(script);
	script->part = strdup(part);
	if (text) {
		script->text = malloc(n + 1);
		assert(script->text);
		memcpy(script->text, text, n);
		script->n = n;
	}
	script->truncate = truncate;
	script->count = count;
	script->next = api->scripts;
	api->scripts = script;
}

void fake_api_script(struct fake_api *api, const char *part, const char *text, size_t count)
{
	add_script(api, part, text, text ? strlen(text) : 0, SIZE_MAX, count);
}

void fake_api_script_bytes(struct fake_api *api, const char *part, const void *bytes, size_t n,
			   size_t count)
{
	add_script(api, part, bytes, n, SIZE_MAX, count);
}

void fake_api_truncate(struct fake_api *api, const char *part, size_t bytes, size_t count)
{
	add_script(api, part, NULL, 0, bytes, count);
}

void fake_api_set_other(struct fake_api *api, fake_api_on_other on_other, void *ctx)
{
	api->on_other = on_other;
	api->other_ctx = ctx;
}
