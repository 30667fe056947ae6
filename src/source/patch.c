/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "source/patch_state.h"

#define ITEMS_MAX 20000
#define KNOWN_MAX 2000 /* objects that are kept in memory until their turn */
#define KEY_LIMIT_BYTES 1024
#define ANSWER_LIMIT_BYTES (4u << 20)
#define TEXT_LIMIT_BYTES (4u << 20)
/* So that events of the loop come in between. One object can take a fifth of a second. */
#define DECISIONS_A_TURN 32
#define TURN_MS 20
#define TICK_MS 50

/* The pace. */
#define PER_SECOND 100 /* requests */
#define BURST 100
#define IN_FLIGHT 4
#define AGAIN_MS 50	   /* after a decision that was not possible yet */
#define REST_MS 200	   /* between two writes to one object */
#define REST_CAP_MS 300000 /* ... when somebody undoes them, */
#define UNDONE_MS 60000	   /* which they may take as long for */
#define BACKOFF_BASE_MS 500
#define BACKOFF_CAP_MS 60000

/* --- lists --- */

static struct roll_patch_list *list_of(const struct roll_patch_item *item)
{
	switch (item->state) {
	case ROLL_PATCH_READY:
		return &item->patch->ready[item->rank];
	case ROLL_PATCH_WAITING:
	case ROLL_PATCH_RESTING:
		return &item->patch->delayed;
	default:
		return NULL;
	}
}

static void leave(struct roll_patch_item *item)
{
	struct roll_patch_list *list = list_of(item);

	item->patch->resting -= item->state == ROLL_PATCH_RESTING;
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
}

static void enter(struct roll_patch_item *item)
{
	struct roll_patch_list *list = list_of(item);

	item->patch->resting += item->state == ROLL_PATCH_RESTING;
	if (!list)
		return;
	item->prev = list->last;
	item->next = NULL;
	if (list->last)
		list->last->next = item;
	else
		list->first = item;
	list->last = item;
}

void roll_patch_move(struct roll_patch_item *item, enum roll_patch_state state)
{
	leave(item);
	item->state = state;
	enter(item);
}

void roll_patch_go_on(struct roll_patch_item *item)
{
	struct roll_patch_list *list;

	leave(item);
	item->state = ROLL_PATCH_READY;
	list = list_of(item);
	item->next = list->first;
	if (list->first)
		list->first->prev = item;
	else
		list->last = item;
	list->first = item;
}

/* Whose turn it is. The same one as long as the turn was not used. */
static struct roll_patch_item *first_ready(const struct roll_patch *patch)
{
	static const enum roll_patch_rank turns[] = {
		ROLL_PATCH_HAND_OVER, ROLL_PATCH_HAND_OVER, ROLL_PATCH_HAND_OVER, ROLL_PATCH_NEWS,
		ROLL_PATCH_HAND_OVER, ROLL_PATCH_HAND_OVER, ROLL_PATCH_HAND_OVER, ROLL_PATCH_BULK,
	};
	size_t rank = turns[patch->turn % (sizeof turns / sizeof *turns)];

	if (patch->ready[rank].first)
		return patch->ready[rank].first;
	for (rank = 0; rank < ROLL_PATCH_RANKS; rank++)
		if (patch->ready[rank].first)
			return patch->ready[rank].first;
	return NULL;
}

/* --- items --- */

void roll_patch_forget(struct roll_patch_item *item)
{
	item->patch->known -= item->object != NULL;
	json_decref(item->object);
	item->object = NULL;
}

bool roll_patch_learn(struct roll_patch_item *item, const json_t *object, bool in_view)
{
	const json_t *metadata = roll_json_object(object, "metadata");

	roll_patch_forget(item);
	if (!roll_json_str(metadata, "uid").n || !roll_json_str(metadata, "resourceVersion").n)
		return false;
	item->object = json_incref((json_t *)(uintptr_t)object);
	item->in_view = in_view;
	item->patch->known++;
	return true;
}

struct roll_patch_object roll_patch_object_of(const struct roll_patch_item *item)
{
	const json_t *metadata = roll_json_object(item->object, "metadata");
	int64_t generation = json_integer_value(json_object_get(metadata, "generation"));

	return (struct roll_patch_object){
		.resource = item->resource,
		.ns = item->ns,
		.name = item->name,
		.uid = roll_json_str(metadata, "uid"),
		.generation = generation,
		.spec = item->in_view ? NULL : json_object_get(item->object, "spec"),
		.status = json_object_get(item->object, "status"),
		.has_no_room = item->too_large && item->too_large == generation,
	};
}

void roll_patch_drop(struct roll_patch_item *item)
{
	struct roll_patch *patch = item->patch;

	leave(item);
	patch->in_flight -= item->call != NULL;
	HASH_DEL(patch->items, item);
	roll_api_cancel(item->call);
	roll_buf_fini(&item->answer);
	json_decref(item->sent);
	json_decref(item->later);
	roll_patch_forget(item);
	free(item);
}

/* --- pace --- */

static int64_t now_ms(const struct roll_patch *patch)
{
	return roll_clock_monotonic_ms(patch->conf.clock);
}

int64_t roll_patch_left_ms(const struct roll_patch *patch)
{
	return patch->conf.left_ms ? patch->conf.left_ms(patch->conf.ctx) : INT64_MAX;
}

static bool take_token(struct roll_patch *patch)
{
	int64_t now = now_ms(patch);

	patch->tokens += (double)(now - patch->filled_ms) * PER_SECOND / 1000;
	if (patch->tokens > BURST)
		patch->tokens = BURST;
	patch->filled_ms = now;
	if (patch->tokens < 1)
		return false;
	patch->tokens -= 1;
	return true;
}

void roll_patch_pause(struct roll_patch *patch, int64_t retry_after_ms)
{
	int64_t wait =
		roll_backoff_ms(&patch->failures, BACKOFF_BASE_MS, BACKOFF_CAP_MS, &patch->seed);

	if (retry_after_ms > wait)
		wait = retry_after_ms < BACKOFF_CAP_MS ? retry_after_ms : BACKOFF_CAP_MS;
	patch->paused_until_ms = now_ms(patch) + wait;
}

void roll_patch_wait(struct roll_patch_item *item, int64_t delay_ms)
{
	item->due_ms = now_ms(item->patch) + delay_ms;
	roll_patch_move(item, ROLL_PATCH_WAITING);
}

/* Whatever is wrong may be wrong with it alone: the others are not to wait for it. */
void roll_patch_retry(struct roll_patch_item *item)
{
	roll_patch_wait(item, roll_backoff_ms(&item->attempts, BACKOFF_BASE_MS, BACKOFF_CAP_MS,
					      &item->patch->seed));
}

static void strip_times(json_t *conditions)
{
	for (size_t i = 0; i < json_array_size(conditions); i++)
		json_object_del(json_array_get(conditions, i), "lastTransitionTime");
}

/* FNV-1a of a patch, without the times in it: they differ each time that it is undone. */
static uint64_t hash_of(const json_t *patch, struct roll_buf *scratch)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	json_t *copy = json_deep_copy(patch);
	json_t *names = roll_json_array(copy, "recordSets");

	strip_times(roll_json_array(copy, "conditions"));
	for (size_t i = 0; i < json_array_size(names); i++)
		strip_times(roll_json_array(json_array_get(names, i), "conditions"));
	roll_buf_reset(scratch);
	if (!copy || roll_json_print(copy, scratch))
		roll_buf_reset(scratch);
	json_decref(copy);
	for (size_t i = 0; i < scratch->n; i++)
		hash = (hash ^ (uint8_t)scratch->p[i]) * UINT64_C(0x100000001b3);
	return hash ? hash : 1;
}

/* The same once more: somebody has undone it, and there is no hurry to do it again. */
void roll_patch_rest(struct roll_patch_item *item)
{
	uint64_t hash = hash_of(item->sent, &item->patch->text);

	if (item->written != hash)
		item->rest_ms = REST_MS;
	else
		item->rest_ms = item->rest_ms < REST_CAP_MS / 2 ? item->rest_ms * 2 : REST_CAP_MS;
	item->written = hash;
	item->due_ms = now_ms(item->patch) + item->rest_ms;
	roll_patch_move(item, ROLL_PATCH_RESTING);
	item->rank = ROLL_PATCH_BULK;
}

/* --- turns --- */

void roll_patch_wake(struct roll_patch *patch)
{
	if (!patch->is_deciding)
		roll_timer_set(patch->timer, 0);
}

/* Nothing to write. One that was written lately is kept for as long as that counts. */
static void settle(struct roll_patch_item *item)
{
	roll_metric_add(item->patch->m_writes, "unchanged", NULL, 1);
	item->attempts = 0;
	roll_patch_forget(item);
	if (!item->written) {
		roll_patch_drop(item);
		return;
	}
	item->due_ms = now_ms(item->patch) + item->rest_ms;
	roll_patch_move(item, ROLL_PATCH_RESTING);
	item->rank = ROLL_PATCH_BULK;
}

static enum roll_status decide(struct roll_patch_item *item, json_t **wanted)
{
	struct roll_patch_object object = roll_patch_object_of(item);
	struct roll_patch *patch = item->patch;
	enum roll_status status;

	*wanted = NULL;
	patch->is_deciding = true;
	status = patch->conf.decide(patch->conf.ctx, &object, wanted);
	patch->is_deciding = false;
	return status;
}

/* False: no more can be done now. */
static bool handle(struct roll_patch_item *item)
{
	enum roll_status status;
	json_t *wanted;
	bool can_go_on = true;

	if (!item->object) {
		if (!take_token(item->patch))
			return false;
		if (!roll_patch_start_read(item))
			roll_patch_retry(item);
		return true;
	}
	item->is_wanted_again = false;
	status = decide(item, &wanted);
	if (status == ROLL_ENOENT)
		settle(item);
	else if (status == ROLL_EAGAIN)
		roll_patch_wait(item, AGAIN_MS);
	else if (status)
		roll_patch_retry(item);
	else if (!take_token(item->patch))
		can_go_on = false;
	else if (!roll_patch_start_write(item, wanted))
		roll_patch_retry(item);
	json_decref(wanted);
	return can_go_on;
}

static void wake_delayed(struct roll_patch *patch)
{
	int64_t now = now_ms(patch);
	struct roll_patch_item *next;

	for (struct roll_patch_item *item = patch->delayed.first; item; item = next) {
		next = item->next;
		if (item->due_ms > now)
			continue;
		if (item->state == ROLL_PATCH_WAITING || item->is_wanted_again)
			roll_patch_move(item, ROLL_PATCH_READY);
		else if (now - item->due_ms >= UNDONE_MS)
			roll_patch_drop(item);
	}
}

static void on_turn(void *ctx)
{
	struct roll_patch *patch = ctx;
	int64_t began = now_ms(patch);
	bool can_go_on = began >= patch->paused_until_ms && roll_patch_left_ms(patch) > 0;

	wake_delayed(patch);
	for (unsigned left = DECISIONS_A_TURN;
	     left && can_go_on && first_ready(patch) && now_ms(patch) - began < TURN_MS; left--) {
		/* With all places taken there is nothing that could be sent. */
		can_go_on = patch->in_flight < IN_FLIGHT && handle(first_ready(patch));
		patch->turn += can_go_on;
	}
	roll_metric_set(patch->m_queue, NULL, NULL, (double)roll_patch_count(patch));
	if (can_go_on && first_ready(patch))
		roll_timer_set(patch->timer, 0);
	else if (patch->items)
		roll_timer_set(patch->timer, TICK_MS);
}

/* --- from outside --- */

static struct roll_patch_item *add_item(struct roll_patch *patch, struct roll_str resource,
					struct roll_str ns, struct roll_str name)
{
	const struct roll_buf *key = &patch->text;
	struct roll_patch_item *item = calloc(1, sizeof *item + key->n + 1);

	if (!item)
		return NULL;
	item->patch = patch;
	memcpy(item->key, key->p, key->n);
	roll_buf_init(&item->answer, ANSWER_LIMIT_BYTES);
	item->resource = roll_str_n(item->key, resource.n);
	item->ns = roll_str_n(item->key + resource.n + 1, ns.n);
	item->name = roll_str_n(item->key + resource.n + 1 + ns.n + 1, name.n);
	HASH_ADD_KEYPTR(hh, patch->items, item->key, key->n, item);
	item->rank = ROLL_PATCH_BULK;
	item->state = ROLL_PATCH_READY;
	enter(item);
	return item;
}

static struct roll_patch_item *find_or_add(struct roll_patch *patch, struct roll_str resource,
					   struct roll_str ns, struct roll_str name)
{
	struct roll_patch_item *item = NULL;
	struct roll_buf *key = &patch->text;

	roll_buf_reset(key);
	roll_buf_add_str(key, resource);
	roll_buf_add_char(key, '/');
	roll_buf_add_str(key, ns);
	roll_buf_add_char(key, '/');
	roll_buf_add_str(key, name);
	if (key->status || key->n > KEY_LIMIT_BYTES)
		return NULL;
	HASH_FIND(hh, patch->items, key->p, key->n, item);
	if (item || roll_patch_count(patch) >= ITEMS_MAX)
		return item;
	return add_item(patch, resource, ns, name);
}

void roll_patch_want(struct roll_patch *patch, enum roll_patch_rank rank, const char *resource,
		     struct roll_str ns, struct roll_str name, const json_t *known, bool in_view)
{
	struct roll_patch_item *item = find_or_add(patch, roll_str_c(resource), ns, name);

	if (!item) {
		roll_metric_add(patch->m_dropped, NULL, NULL, 1);
		if (patch->conf.on_dropped)
			patch->conf.on_dropped(patch->conf.ctx);
		return;
	}
	if (rank < item->rank) {
		leave(item);
		item->rank = rank;
		enter(item);
	}
	item->is_wanted_again = true;
	if (item->call) {
		/* What the request was made from stays until it is answered. */
		json_decref(item->later);
		item->later = json_incref((json_t *)(uintptr_t)known);
		item->later_in_view = in_view;
	} else if (known && (patch->known < KNOWN_MAX || item->object)) {
		roll_patch_learn(item, known, in_view);
	} else {
		roll_patch_forget(item);
	}
	if (item->state == ROLL_PATCH_RESTING && item->due_ms <= now_ms(patch))
		roll_patch_move(item, ROLL_PATCH_READY);
	roll_patch_wake(patch);
}

void roll_patch_clear(struct roll_patch *patch)
{
	struct roll_patch_item *item, *next;

	HASH_ITER (hh, patch->items, item, next)
		roll_patch_drop(item);
	patch->refusal[0] = '\0';
	roll_metric_set(patch->m_queue, NULL, NULL, 0);
}

/* What was denied waits to be tried again; nothing waits: it has been settled otherwise. */
const char *roll_patch_refusal(const struct roll_patch *patch)
{
	return patch->refusal[0] && roll_patch_count(patch) ? patch->refusal : NULL;
}

size_t roll_patch_count(const struct roll_patch *patch)
{
	return HASH_COUNT(patch->items) - patch->resting;
}

static void add_metrics(struct roll_patch *patch, struct roll_metrics *metrics)
{
	patch->m_writes = roll_metric_counter(
		metrics, "rollcall_sync_status_patches_total",
		"Status of objects, looked at and, unless unchanged, written.", "result", NULL);
	patch->m_reads =
		roll_metric_counter(metrics, "rollcall_sync_status_reads_total",
				    "Objects read before their status is written.", "result", NULL);
	patch->m_dropped = roll_metric_counter(
		metrics, "rollcall_sync_status_dropped_total",
		"Objects that the queue had no room for; they are looked at later.", NULL, NULL);
	patch->m_queue =
		roll_metric_gauge(metrics, "rollcall_sync_status_queue",
				  "Objects whose status waits to be looked at.", NULL, NULL);
	roll_metric_set(patch->m_queue, NULL, NULL, 0);
}

enum roll_status roll_patch_new(const struct roll_patch_conf *conf, struct roll_patch **out,
				struct roll_err *err)
{
	struct roll_patch *patch = calloc(1, sizeof *patch);

	if (!patch)
		return roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	patch->conf = *conf;
	patch->tokens = BURST;
	patch->filled_ms = now_ms(patch);
	patch->seed = (uint64_t)roll_clock_wall_ms(conf->clock);
	roll_buf_init(&patch->text, TEXT_LIMIT_BYTES);
	patch->timer = roll_timer_new(conf->loop, on_turn, patch);
	if (!patch->timer) {
		roll_patch_free(patch);
		return roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	}
	if (conf->metrics)
		add_metrics(patch, conf->metrics);
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
