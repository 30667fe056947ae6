/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "sync/events_state.h"

#define MEMORY_MS (10 * 60000) /* of an event, after it was noted last */
#define GATHER_MS 30000	       /* repeats, before the server is told of them */
#define ENTRIES_MAX 10000
#define BYTES_MAX ((size_t)16 << 20)
/*
 * Different events of an object: so many in a row, then one each minute. An object is forgotten
 * with its last event, which is just when it may cause a whole row again.
 */
#define BURST 10
#define REFILL_MS (MEMORY_MS / BURST)

#define NAME_MAX_BYTES (ROLL_EVENTS_NAME_SIZE - 1)
#define NOTE_MAX_BYTES 1024
#define KEY_LIMIT_BYTES 1024
#define IDENTITY_LIMIT_BYTES 4096

static int64_t now_ms(const struct roll_events_table *table)
{
	return roll_clock_monotonic_ms(table->clock);
}

size_t roll_events_cut(const char *text, size_t limit_bytes)
{
	struct roll_str rest = roll_str_c(text);
	size_t n, total = 0;

	while ((n = roll_str_utf8_len(rest)) > 0 && total + n <= limit_bytes) {
		total += n;
		rest = roll_str_n(rest.p + n, rest.n - n);
	}
	return total;
}

/* --- names --- */

/* The time, but never the same twice. */
void roll_events_stamp(struct roll_events_table *table, struct roll_events_entry *entry)
{
	int64_t wall_ms = roll_clock_wall_ms(table->clock);
	uint64_t stamp = wall_ms > 0 ? (uint64_t)wall_ms * 1000000 : 0;

	if (stamp <= table->last_stamp)
		stamp = table->last_stamp + 1;
	table->last_stamp = stamp;
	entry->stamp = stamp;
}

/* The name of an event is a DNS subdomain (RFC 1123), as is the object's, which may fill it. */
void roll_events_print_name(const struct roll_events_entry *entry, char out[ROLL_EVENTS_NAME_SIZE])
{
	const char *name = entry->object->name;
	size_t n = strlen(name);
	char stamp[20];
	int stamp_n = snprintf(stamp, sizeof stamp, ".%016llx", (unsigned long long)entry->stamp);

	if (n > NAME_MAX_BYTES - (size_t)stamp_n)
		n = NAME_MAX_BYTES - (size_t)stamp_n;
	while (n && (name[n - 1] == '-' || name[n - 1] == '.'))
		n--;
	snprintf(out, ROLL_EVENTS_NAME_SIZE, "%.*s%s", (int)n, name, stamp);
}

/* --- queues --- */

static struct roll_events_entry **queue_of(struct roll_events_table *table,
					   enum roll_events_state state)
{
	return state == ROLL_EVENTS_SOON    ? &table->soon
	       : state == ROLL_EVENTS_LATER ? &table->later
					    : NULL;
}

void roll_events_move(struct roll_events_table *table, struct roll_events_entry *entry,
		      enum roll_events_state state)
{
	struct roll_events_entry **queue = queue_of(table, entry->state);

	if (queue)
		DL_DELETE2(*queue, entry, queue_prev, queue_next);
	table->pending -= entry->state != ROLL_EVENTS_IDLE;
	table->pending += state != ROLL_EVENTS_IDLE;
	entry->state = state;
	entry->due_ms = now_ms(table) + (state == ROLL_EVENTS_LATER ? GATHER_MS : 0);
	queue = queue_of(table, state);
	if (queue)
		DL_APPEND2(*queue, entry, queue_prev, queue_next);
}

struct roll_events_entry *roll_events_next(const struct roll_events_table *table)
{
	struct roll_events_entry *soon = table->soon, *later = table->later;

	return !soon || (later && later->due_ms < soon->due_ms) ? later : soon;
}

/* --- memory --- */

static size_t size_of(const struct roll_events_entry *entry)
{
	return sizeof *entry + entry->identity_n;
}

static void forget_object(struct roll_events_table *table, struct roll_events_object *object)
{
	table->bytes -= sizeof *object + object->key_n;
	HASH_DEL(table->objects, object);
	free(object);
}

static void forget(struct roll_events_table *table, struct roll_events_entry *entry)
{
	struct roll_events_object *object = entry->object;

	roll_events_move(table, entry, ROLL_EVENTS_IDLE);
	DL_DELETE2(table->by_age, entry, older, newer);
	DL_DELETE(object->entries, entry);
	table->count--;
	table->bytes -= size_of(entry);
	free(entry);
	if (!object->entries)
		forget_object(table, object);
}

int64_t roll_events_table_prune_ms(const struct roll_events_table *table)
{
	return table->by_age ? table->by_age->last_ms + MEMORY_MS : INT64_MAX;
}

void roll_events_table_prune(struct roll_events_table *table)
{
	struct roll_events_entry *oldest;

	while ((oldest = table->by_age) && now_ms(table) >= roll_events_table_prune_ms(table) &&
	       oldest->state != ROLL_EVENTS_SENDING) {
		if (oldest->state != ROLL_EVENTS_IDLE)
			roll_metric_add(table->results, "late", NULL, 1);
		forget(table, oldest);
	}
}

static bool has_room(const struct roll_events_table *table, size_t bytes)
{
	return table->bytes + bytes <= BYTES_MAX;
}

static struct roll_events_object *add_object(struct roll_events_table *table,
					     const struct roll_event *event)
{
	const struct roll_buf *key = &table->key;
	struct roll_events_object *object;

	if (!has_room(table, sizeof *object + key->n))
		return NULL;
	object = calloc(1, sizeof *object + key->n);
	if (!object)
		return NULL;
	memcpy(object->key, key->p, key->n);
	object->key_n = key->n;
	object->kind = event->kind;
	object->ns = object->key + strlen(object->key) + 1;
	object->name = object->ns + strlen(object->ns) + 1;
	HASH_ADD_KEYPTR(hh, table->objects, object->key, object->key_n, object);
	table->bytes += sizeof *object + object->key_n;
	return object;
}

static struct roll_events_entry *add_entry(struct roll_events_table *table,
					   struct roll_events_object *object, bool is_warning)
{
	const struct roll_buf *identity = &table->identity;
	struct roll_events_entry *entry;

	if (table->count >= ENTRIES_MAX || !has_room(table, sizeof *entry + identity->n))
		return NULL;
	entry = calloc(1, sizeof *entry + identity->n);
	if (!entry)
		return NULL;
	memcpy(entry->identity, identity->p, identity->n);
	entry->identity_n = identity->n;
	entry->uid = entry->identity;
	entry->zone_name = entry->uid + strlen(entry->uid) + 1;
	entry->zone_uid = entry->zone_name + strlen(entry->zone_name) + 1;
	entry->reason = entry->zone_uid + strlen(entry->zone_uid) + 1;
	entry->note = entry->reason + strlen(entry->reason) + 1;
	entry->is_warning = is_warning;
	entry->object = object;
	DL_APPEND(object->entries, entry);
	DL_APPEND2(table->by_age, entry, older, newer);
	table->count++;
	table->bytes += size_of(entry);
	return entry;
}

/* --- noting --- */

/* Up to a NUL, which no name has. */
static void add_part(struct roll_buf *buf, struct roll_str part)
{
	roll_buf_add_str(buf, roll_str_cut(&part, '\0'));
	roll_buf_add_char(buf, '\0');
}

/* False: nothing that the server would know, too long or no text. */
static bool describe(struct roll_events_table *table, const struct roll_event *event)
{
	roll_buf_reset(&table->key);
	add_part(&table->key, roll_str_c(roll_kind_text(event->kind)));
	add_part(&table->key, event->ns);
	add_part(&table->key, event->name);
	roll_buf_reset(&table->identity);
	add_part(&table->identity, event->uid);
	add_part(&table->identity, event->zone_name);
	add_part(&table->identity, event->zone_uid);
	add_part(&table->identity, roll_str_c(event->reason));
	add_part(&table->identity,
		 roll_str_n(event->note, roll_events_cut(event->note, NOTE_MAX_BYTES)));
	return !table->key.status && !table->identity.status &&
	       roll_str_is_utf8(roll_buf_str(&table->key)) &&
	       roll_str_is_utf8(roll_buf_str(&table->identity));
}

static struct roll_events_entry *find_entry(const struct roll_events_table *table,
					    struct roll_events_object *object, bool is_warning)
{
	const struct roll_buf *identity = &table->identity;
	struct roll_events_entry *entry = object->entries;

	while (entry && (entry->is_warning != is_warning || entry->identity_n != identity->n ||
			 memcmp(entry->identity, identity->p, identity->n) != 0))
		entry = entry->next;
	return entry;
}

/* A token bucket, told by the time when it is full again. */
static bool may_cause(struct roll_events_object *object, int64_t now)
{
	int64_t full_ms = object->full_ms > now ? object->full_ms : now;

	if (full_ms - now > (BURST - 1) * REFILL_MS)
		return false;
	object->full_ms = full_ms + REFILL_MS;
	return true;
}

static void begin(struct roll_events_table *table, struct roll_events_object *object,
		  const struct roll_event *event)
{
	struct roll_events_entry *entry;

	if (!may_cause(object, now_ms(table))) {
		roll_metric_add(table->results, "limited", NULL, 1);
		return;
	}
	entry = add_entry(table, object, event->is_warning);
	if (!entry) {
		roll_metric_add(table->results, "full", NULL, 1);
		if (!object->entries)
			forget_object(table, object);
		return;
	}
	entry->count = 1;
	entry->last_ms = now_ms(table);
	entry->first_wall_ms = entry->last_wall_ms = roll_clock_wall_ms(table->clock);
	roll_events_stamp(table, entry);
	roll_events_move(table, entry, ROLL_EVENTS_SOON);
}

static void repeat(struct roll_events_table *table, struct roll_events_entry *entry)
{
	/* It is forgotten in its time, so that the server is asked again one day. */
	if (entry->is_given_up)
		return;
	entry->count += entry->count < INT32_MAX;
	entry->last_ms = now_ms(table);
	entry->last_wall_ms = roll_clock_wall_ms(table->clock);
	DL_DELETE2(table->by_age, entry, older, newer);
	DL_APPEND2(table->by_age, entry, older, newer);
	if (entry->state == ROLL_EVENTS_IDLE)
		roll_events_move(table, entry, ROLL_EVENTS_LATER);
}

void roll_events_table_note(struct roll_events_table *table, const struct roll_event *event)
{
	struct roll_events_object *object = NULL;
	struct roll_events_entry *entry = NULL;

	roll_events_table_prune(table);
	if (!describe(table, event)) {
		roll_metric_add(table->results, "refused", NULL, 1);
		return;
	}
	HASH_FIND(hh, table->objects, table->key.p, table->key.n, object);
	if (object)
		entry = find_entry(table, object, event->is_warning);
	else
		object = add_object(table, event);
	if (entry)
		repeat(table, entry);
	else if (object)
		begin(table, object, event);
	else
		roll_metric_add(table->results, "full", NULL, 1);
}

/* --- life --- */

void roll_events_table_init(struct roll_events_table *table, const struct roll_clock *clock)
{
	*table = (struct roll_events_table){.clock = clock};
	roll_buf_init(&table->key, KEY_LIMIT_BYTES);
	roll_buf_init(&table->identity, IDENTITY_LIMIT_BYTES);
}

void roll_events_table_clear(struct roll_events_table *table)
{
	while (table->by_age)
		forget(table, table->by_age);
}

void roll_events_table_fini(struct roll_events_table *table)
{
	roll_events_table_clear(table);
	roll_buf_fini(&table->key);
	roll_buf_fini(&table->identity);
}
