/* SPDX-License-Identifier: Apache-2.0 */
#include "source/patch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "base/json.h"
#include "base/log.h"

#define ITEMS_MAX 20000
#define KNOWN_MAX 2000 /* objects whose status is kept in memory until their turn */
#define OBJECT_LIMIT_BYTES (4u << 20)
#define BODY_LIMIT_BYTES (4u << 20)
#define DECISIONS_A_TURN 32 /* so that events of the loop come in between */
#define TICK_MS 50
#define KEY_LIMIT_BYTES 1024

const struct roll_patch_pace roll_patch_pace_default = {
	.per_second = 100,
	.burst = 100,
	.in_flight = 4,
	.again_ms = 50,
	.rest_ms = 200,
	.rest_cap_ms = 300000,
	.backoff_base_ms = 500,
	.backoff_cap_ms = 60000,
	.answer_ms = 30000,
};

enum state {
	READY,	 /* in one of the two queues */
	WAITING, /* until due_ms, then READY */
	READING,
	WRITING,
	RESTING, /* was written; kept to notice that it is wanted again at once */
};

struct item {
	UT_hash_handle hh;
	struct roll_patch *patch;
	struct item *prev, *next; /* in the list of its state */
	enum state state;
	bool is_urgent;
	bool is_wanted_again; /* while it was being read or written, or resting */
	int64_t due_ms;
	int64_t rest_ms;  /* of the last write */
	uint64_t written; /* hash of it; 0: none yet */
	unsigned attempts;
	struct roll_api_call *call;
	struct roll_buf answer; /* of the object that is read */
	json_t *sent;		/* the status on its way */
	json_t *later;		/* the object as an event told it meanwhile */
	bool later_has_spec;
	/* As far as known; version empty: it has to be read. */
	char uid[64];
	char version[64];
	int64_t generation;
	json_t *spec;
	json_t *status;
	/* Parts of the key: resource, namespace, name. */
	struct roll_str resource, ns, name;
	char key[];
};

struct list {
	struct item *first, *last;
	size_t count;
};

struct roll_patch {
	struct roll_patch_conf conf;
	struct roll_patch_pace pace;
	struct item *items;
	struct list urgent, ready, delayed; /* delayed: WAITING and RESTING */
	size_t in_flight;
	size_t resting;
	size_t known;
	double tokens;
	int64_t filled_ms;
	int64_t paused_until_ms;
	unsigned failures; /* in a row, for the back-off */
	uint64_t seed;
	bool was_busy;
	bool is_working;
	struct roll_timer *timer;
	struct roll_buf text;
	struct roll_metric *m_writes, *m_reads, *m_dropped, *m_queue;
};

/* --- lists --- */

static struct list *list_of(struct roll_patch *patch, const struct item *item)
{
	switch (item->state) {
	case READY:
		return item->is_urgent ? &patch->urgent : &patch->ready;
	case WAITING:
	case RESTING:
		return &patch->delayed;
	default:
		return NULL;
	}
}

static void leave(struct item *item)
{
	struct list *list = list_of(item->patch, item);

	if (item->state == RESTING)
		item->patch->resting--;
	if (!list)
		return;
	if (item->prev)
		item->prev->next = item->next;
	else
		list->first = item->next;
	if (item->next)
		item->next->prev = item->prev;
	else
		list->last = item->prev;
	item->prev = item->next = NULL;
	list->count--;
}

static void enter(struct item *item, enum state state)
{
	struct list *list;

	item->state = state;
	if (state == RESTING)
		item->patch->resting++;
	list = list_of(item->patch, item);
	if (!list)
		return;
	item->prev = list->last;
	item->next = NULL;
	if (list->last)
		list->last->next = item;
	else
		list->first = item;
	list->last = item;
	list->count++;
}

static void move(struct item *item, enum state state)
{
	leave(item);
	enter(item, state);
}

/* --- items --- */

static void forget(struct item *item)
{
	if (item->version[0])
		item->patch->known--;
	item->version[0] = item->uid[0] = '\0';
	json_decref(item->spec);
	json_decref(item->status);
	item->spec = item->status = NULL;
}

static void free_item(struct item *item)
{
	struct roll_patch *patch = item->patch;

	leave(item);
	if (item->state == READING || item->state == WRITING)
		patch->in_flight--;
	HASH_DEL(patch->items, item);
	roll_api_cancel(item->call);
	roll_buf_fini(&item->answer);
	json_decref(item->sent);
	json_decref(item->later);
	forget(item);
	free(item);
}

static bool copy(char *to, size_t size, struct roll_str from)
{
	if (from.n == 0 || from.n >= size)
		return false;
	memcpy(to, from.p, from.n);
	to[from.n] = '\0';
	return true;
}

static void learn(struct item *item, const json_t *object, bool has_spec)
{
	const json_t *metadata = json_object_get(object, "metadata");

	forget(item);
	if (!copy(item->uid, sizeof item->uid, roll_json_str(metadata, "uid")) ||
	    !copy(item->version, sizeof item->version,
		  roll_json_str(metadata, "resourceVersion"))) {
		item->version[0] = '\0';
		return;
	}
	item->patch->known++;
	item->generation = json_integer_value(json_object_get(metadata, "generation"));
	item->status = json_incref(json_object_get(object, "status"));
	if (has_spec)
		item->spec = json_incref(json_object_get(object, "spec"));
}

static struct roll_patch_object view_of(const struct item *item)
{
	return (struct roll_patch_object){
		.resource = item->resource,
		.ns = item->ns,
		.name = item->name,
		.uid = roll_str_c(item->uid),
		.version = roll_str_c(item->version),
		.generation = item->generation,
		.spec = item->spec,
		.status = item->status,
	};
}

/* FNV-1a: tells whether the same was written before. */
static uint64_t hash_of(const json_t *status, struct roll_buf *scratch)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	json_t *list = json_object_get(status, "conditions"), *copied;
	size_t i;

	/* Without the times, which differ each time it is undone. */
	copied = json_deep_copy(list ? list : status);
	for (i = 0; i < json_array_size(copied); i++)
		json_object_del(json_array_get(copied, i), "lastTransitionTime");
	roll_buf_reset(scratch);
	if (copied && roll_json_print(copied, scratch))
		roll_buf_reset(scratch);
	json_decref(copied);
	for (i = 0; i < scratch->n; i++)
		hash = (hash ^ (uint8_t)scratch->p[i]) * UINT64_C(0x100000001b3);
	return hash ? hash : 1;
}

/* --- pace --- */

static int64_t now_ms(const struct roll_patch *patch)
{
	return roll_clock_monotonic_ms(patch->conf.clock);
}

static int64_t left_ms(const struct roll_patch *patch)
{
	return patch->conf.left_ms ? patch->conf.left_ms(patch->conf.ctx) : INT64_MAX;
}

static bool take_token(struct roll_patch *patch)
{
	int64_t now = now_ms(patch);

	patch->tokens += (double)(now - patch->filled_ms) * patch->pace.per_second / 1000;
	if (patch->tokens > patch->pace.burst)
		patch->tokens = patch->pace.burst;
	patch->filled_ms = now;
	if (patch->tokens < 1)
		return false;
	patch->tokens -= 1;
	return true;
}

/* The server is in trouble, or does not want us: nobody's turn for a while. */
static void pause_all(struct roll_patch *patch, int64_t retry_after_ms)
{
	int64_t wait = roll_backoff_ms(&patch->failures, patch->pace.backoff_base_ms,
				       patch->pace.backoff_cap_ms, &patch->seed);

	if (retry_after_ms > wait)
		wait = retry_after_ms < patch->pace.backoff_cap_ms ? retry_after_ms
								   : patch->pace.backoff_cap_ms;
	patch->paused_until_ms = now_ms(patch) + wait;
}

static void wait_for(struct item *item, int64_t delay_ms)
{
	item->due_ms = now_ms(item->patch) + delay_ms;
	move(item, WAITING);
}

static void count(struct roll_patch *patch, struct roll_metric *metric, const char *result)
{
	roll_metric_add(metric, result, NULL, 1);
	roll_metric_set(patch->m_queue, NULL, NULL, (double)roll_patch_count(patch));
}

static void wake(struct roll_patch *patch)
{
	roll_timer_set(patch->timer, 0);
}

/* --- answers --- */

static void path_of(struct item *item, const char *end)
{
	struct roll_buf *text = &item->patch->text;

	roll_buf_reset(text);
	roll_buf_add_c(text, item->patch->conf.base);
	if (item->ns.n) {
		roll_buf_add_c(text, "/namespaces/");
		roll_buf_add_str(text, item->ns);
	}
	roll_buf_add_char(text, '/');
	roll_buf_add_str(text, item->resource);
	roll_buf_add_char(text, '/');
	roll_buf_add_str(text, item->name);
	roll_buf_add_c(text, end);
}

static void complain(struct item *item, const char *what, const struct roll_api_result *result)
{
	char shown[300];

	roll_log(ROLL_WARN, "status-not-written", "what=%s object=\"%s\" reason=\"%s\"", what,
		 item->key, roll_str_show(roll_str_c(result->text), shown, sizeof shown));
}

/* What an event told while the request was on its way. False: nothing. */
static bool take_later(struct item *item)
{
	json_t *later = item->later;

	if (!later)
		return false;
	item->later = NULL;
	learn(item, later, item->later_has_spec);
	json_decref(later);
	return true;
}

/* Done with, unless it was asked for again meanwhile: a name may have come back. */
static void end(struct item *item)
{
	bool is_wanted = take_later(item) || item->is_wanted_again;

	item->is_wanted_again = false;
	if (is_wanted)
		wait_for(item, 0);
	else
		free_item(item);
}

/*
 * What becomes of an item whose request failed. A conflict is nobody's fault: it is read again at
 * once, a few times. What the server finds wrong with the patch will be wrong the next time too.
 */
static void on_failure(struct item *item, const char *what, const struct roll_api_result *result,
		       struct roll_metric *metric)
{
	struct roll_patch *patch = item->patch;
	bool is_ours;

	forget(item);
	item->attempts++;
	switch (result->http_status) {
	case 404:
		count(patch, metric, "gone");
		patch->failures = 0;
		end(item);
		return;
	case 409:
		count(patch, metric, "conflict");
		patch->failures = 0;
		take_later(item);
		wait_for(item, item->attempts <= 3 ? 0 : patch->pace.again_ms);
		return;
	case 400:
	case 413:
	case 422:
		count(patch, metric, "refused");
		patch->failures = 0;
		complain(item, what, result);
		end(item);
		return;
	default:
		break;
	}
	is_ours = result->http_status == 401 || result->http_status == 403;
	count(patch, metric, is_ours ? "denied" : "failed");
	complain(item, what, result);
	pause_all(patch, result->retry_after_ms);
	take_later(item);
	wait_for(item, 0);
}

/* The request has ended; what becomes of the item is for the caller to say. */
static void arrive(struct item *item)
{
	item->call = NULL;
	item->patch->in_flight--;
	wait_for(item, 0);
}

static void on_read(void *ctx, const struct roll_api_result *result)
{
	struct item *item = ctx;
	struct roll_patch *patch = item->patch;
	json_t *object = NULL;

	arrive(item);
	if (result->status) {
		on_failure(item, "read", result, patch->m_reads);
	} else if (roll_json_parse(roll_buf_str(&item->answer), &object, NULL) ||
		   item->answer.status) {
		count(patch, patch->m_reads, "failed");
		pause_all(patch, -1);
		wait_for(item, 0);
	} else {
		count(patch, patch->m_reads, "ok");
		patch->failures = 0;
		/* What an event told is in the view already; what was read need not be. */
		if (!take_later(item))
			learn(item, object, true);
		if (item->version[0])
			move(item, READY);
		else
			free_item(item);
	}
	json_decref(object);
	wake(patch);
}

static enum roll_status on_read_body(void *ctx, struct roll_str piece)
{
	struct item *item = ctx;

	roll_buf_add_str(&item->answer, piece);
	return item->answer.status;
}

static void rest(struct item *item)
{
	struct roll_patch *patch = item->patch;
	uint64_t hash = hash_of(item->sent, &patch->text);

	/* The same once more: somebody has undone it, so we do not hurry to do it again. */
	if (item->written == hash && item->rest_ms)
		item->rest_ms = item->rest_ms * 2 < patch->pace.rest_cap_ms
					? item->rest_ms * 2
					: patch->pace.rest_cap_ms;
	else
		item->rest_ms = patch->pace.rest_ms;
	item->written = hash;
	item->due_ms = now_ms(patch) + item->rest_ms;
	move(item, RESTING);
}

static void on_written(void *ctx, const struct roll_api_result *result)
{
	struct item *item = ctx;
	struct roll_patch *patch = item->patch;
	struct roll_patch_object object;

	arrive(item);
	if (result->status) {
		json_decref(item->sent);
		item->sent = NULL;
		on_failure(item, "write", result, patch->m_writes);
	} else {
		patch->failures = 0;
		item->attempts = 0;
		rest(item);
		count(patch, patch->m_writes, "ok");
		object = view_of(item);
		if (patch->conf.on_written)
			patch->conf.on_written(patch->conf.ctx, &object, item->sent);
		forget(item);
		/* As a rule this is our own write, come back as an event. */
		take_later(item);
		json_decref(item->sent);
		item->sent = NULL;
	}
	wake(patch);
}

/* --- requests --- */

static bool start(struct item *item, enum state state, const struct roll_api_spec *spec)
{
	struct roll_patch *patch = item->patch;

	item->call = patch->text.status ? NULL : roll_api_start(patch->conf.api, spec);
	if (!item->call)
		return false;
	move(item, state);
	patch->in_flight++;
	return true;
}

static bool start_read(struct item *item)
{
	struct roll_api_spec spec = {
		.method = "GET",
		.total_ms = item->patch->pace.answer_ms,
		.on_body = on_read_body,
		.on_done = on_read,
		.ctx = item,
	};

	item->is_wanted_again = false;
	path_of(item, "");
	spec.path = item->patch->text.p;
	roll_buf_reset(&item->answer);
	return start(item, READING, &spec);
}

/* The uid does not stop the server, but the version does: a new object never has an old one. */
static bool start_write(struct item *item, json_t *status)
{
	struct roll_patch *patch = item->patch;
	struct roll_api_spec spec = {
		.method = "PATCH",
		.content_type = "application/merge-patch+json",
		.total_ms = patch->pace.answer_ms,
		.on_done = on_written,
		.ctx = item,
	};
	int64_t left = left_ms(patch);
	json_t *body = json_pack("{s:{s:s, s:s}, s:O}", "metadata", "resourceVersion",
				 item->version, "uid", item->uid, "status", status);
	struct roll_buf text;
	bool is_started;

	if (left < spec.total_ms)
		spec.total_ms = left > 0 ? left : 1;
	roll_buf_init(&text, BODY_LIMIT_BYTES);
	path_of(item, "/status?fieldManager=rollcall");
	is_started = body && !roll_json_print(body, &text);
	if (is_started) {
		spec.path = patch->text.p;
		spec.body = roll_buf_str(&text);
		is_started = start(item, WRITING, &spec);
	}
	if (is_started)
		item->sent = json_incref(status);
	json_decref(body);
	roll_buf_fini(&text);
	return is_started;
}

/* --- turns --- */

/* Nothing to write, so far. */
static void settle(struct item *item)
{
	count(item->patch, item->patch->m_writes, "unchanged");
	forget(item);
	if (!item->written) {
		free_item(item);
		return;
	}
	/* It was written lately: kept for as long as that counts. */
	item->due_ms = now_ms(item->patch) + item->rest_ms;
	move(item, RESTING);
}

/* False: no more can be done now. */
static bool handle(struct item *item)
{
	struct roll_patch *patch = item->patch;
	struct roll_patch_object object = view_of(item);
	enum roll_status status;
	json_t *wanted = NULL;

	if (!item->version[0]) {
		if (patch->in_flight >= patch->pace.in_flight || !take_token(patch))
			return false;
		if (!start_read(item))
			wait_for(item, patch->pace.backoff_base_ms);
		return true;
	}
	item->is_wanted_again = false;
	status = patch->conf.decide(patch->conf.ctx, &object, &wanted);
	if (status == ROLL_ENOENT) {
		settle(item);
	} else if (status) {
		wait_for(item, status == ROLL_EAGAIN ? patch->pace.again_ms
						     : patch->pace.backoff_base_ms);
	} else if (patch->in_flight >= patch->pace.in_flight || !take_token(patch)) {
		json_decref(wanted);
		return false;
	} else if (!start_write(item, wanted)) {
		wait_for(item, patch->pace.backoff_base_ms);
	}
	json_decref(wanted);
	return true;
}

static void wake_delayed(struct roll_patch *patch)
{
	int64_t now = now_ms(patch);
	struct item *next;

	for (struct item *item = patch->delayed.first; item; item = next) {
		next = item->next;
		if (item->due_ms > now)
			continue;
		if (item->state == WAITING || item->is_wanted_again) {
			item->is_wanted_again = false;
			move(item, READY);
		} else {
			free_item(item);
		}
	}
}

static void on_turn(void *ctx)
{
	struct roll_patch *patch = ctx;
	bool can_go_on = true;
	unsigned left = DECISIONS_A_TURN;

	patch->is_working = true;
	wake_delayed(patch);
	if (now_ms(patch) < patch->paused_until_ms || left_ms(patch) <= 0)
		can_go_on = false;
	while (can_go_on && left-- && (patch->urgent.first || patch->ready.first)) {
		/* With all places taken there is nothing that could be sent. */
		if (patch->in_flight >= patch->pace.in_flight)
			can_go_on = false;
		else
			can_go_on = handle(patch->urgent.first ? patch->urgent.first
							       : patch->ready.first);
	}
	patch->is_working = false;
	if (roll_patch_count(patch)) {
		patch->was_busy = true;
	} else if (patch->was_busy) {
		patch->was_busy = false;
		if (patch->conf.on_idle)
			patch->conf.on_idle(patch->conf.ctx);
	}
	if (can_go_on && (patch->urgent.first || patch->ready.first))
		roll_timer_set(patch->timer, 0);
	else if (patch->items)
		roll_timer_set(patch->timer, TICK_MS);
}

/* --- from outside --- */

static struct item *add_item(struct roll_patch *patch, struct roll_str resource, struct roll_str ns,
			     struct roll_str name)
{
	size_t n = patch->text.n;
	struct item *item = calloc(1, sizeof *item + n + 1);

	if (!item)
		return NULL;
	item->patch = patch;
	memcpy(item->key, patch->text.p, n);
	roll_buf_init(&item->answer, OBJECT_LIMIT_BYTES);
	item->resource = roll_str_n(item->key, resource.n);
	item->ns = roll_str_n(item->key + resource.n + 1, ns.n);
	item->name = roll_str_n(item->key + resource.n + 1 + ns.n + 1, name.n);
	HASH_ADD_KEYPTR(hh, patch->items, item->key, n, item);
	enter(item, READY);
	return item;
}

void roll_patch_want(struct roll_patch *patch, const char *resource, struct roll_str ns,
		     struct roll_str name, const json_t *known, bool has_spec, bool is_urgent)
{
	struct roll_buf *key = &patch->text;
	struct item *item = NULL;

	roll_buf_reset(key);
	roll_buf_add_c(key, resource);
	roll_buf_add_char(key, '/');
	roll_buf_add_str(key, ns);
	roll_buf_add_char(key, '/');
	roll_buf_add_str(key, name);
	if (key->status || key->n > KEY_LIMIT_BYTES)
		return;
	HASH_FIND(hh, patch->items, key->p, key->n, item);
	if (!item && roll_patch_count(patch) < patch->conf.items_max)
		item = add_item(patch, roll_str_c(resource), ns, name);
	if (!item) {
		roll_metric_add(patch->m_dropped, NULL, NULL, 1);
		if (patch->conf.on_dropped)
			patch->conf.on_dropped(patch->conf.ctx);
		return;
	}
	if (is_urgent && !item->is_urgent) {
		leave(item);
		item->is_urgent = true;
		enter(item, item->state);
	}
	item->is_wanted_again = true;
	/* What a write was decided from stays: it is told with the answer. */
	if (item->state == READING || item->state == WRITING) {
		json_decref(item->later);
		item->later = json_incref((json_t *)(uintptr_t)known);
		item->later_has_spec = has_spec;
	} else if (known && (patch->known < KNOWN_MAX || item->version[0])) {
		learn(item, known, has_spec);
	} else {
		forget(item);
	}
	if (!patch->is_working)
		wake(patch);
}

void roll_patch_clear(struct roll_patch *patch)
{
	struct item *item, *next;

	HASH_ITER (hh, patch->items, item, next)
		free_item(item);
	patch->was_busy = false;
}

size_t roll_patch_count(const struct roll_patch *patch)
{
	return HASH_COUNT(patch->items) - patch->resting;
}

enum roll_status roll_patch_new(const struct roll_patch_conf *conf, struct roll_patch **out,
				struct roll_err *err)
{
	struct roll_patch *patch = calloc(1, sizeof *patch);

	if (!patch)
		return roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	patch->conf = *conf;
	patch->pace = conf->pace ? *conf->pace : roll_patch_pace_default;
	if (!patch->conf.items_max)
		patch->conf.items_max = ITEMS_MAX;
	patch->tokens = patch->pace.burst;
	patch->filled_ms = now_ms(patch);
	patch->seed = (uint64_t)roll_clock_wall_ms(conf->clock);
	roll_buf_init(&patch->text, BODY_LIMIT_BYTES);
	patch->timer = roll_timer_new(conf->loop, on_turn, patch);
	if (!patch->timer) {
		roll_patch_free(patch);
		return roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	}
	if (conf->metrics) {
		patch->m_writes = roll_metric_counter(
			conf->metrics, "rollcall_sync_status_patches_total",
			"Status of objects, looked at and, unless unchanged, written.", "result",
			NULL);
		patch->m_reads = roll_metric_counter(
			conf->metrics, "rollcall_sync_status_reads_total",
			"Objects read before their status is written.", "result", NULL);
		patch->m_dropped = roll_metric_counter(
			conf->metrics, "rollcall_sync_status_dropped_total",
			"Objects that the queue had no room for; they are looked at later.", NULL,
			NULL);
		patch->m_queue = roll_metric_gauge(conf->metrics, "rollcall_sync_status_queue",
						   "Objects whose status waits to be looked at.",
						   NULL, NULL);
		roll_metric_set(patch->m_queue, NULL, NULL, 0);
	}
	*out = patch;
	return ROLL_OK;
}

void roll_patch_free(struct roll_patch *patch)
{
	if (!patch)
		return;
	roll_patch_clear(patch);
	roll_timer_free(patch->timer);
	roll_buf_fini(&patch->text);
	free(patch);
}
