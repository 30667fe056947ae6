/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/fake_sink.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "source/watch.h"

#define OBJECTS_MAX 20000
#define POSITIONS_MAX 32

struct object {
	int kind;
	char key[160];
	uint64_t revision;
	bool is_there; /* in the model; false: removed, with the revision of that */
	bool is_staged;
	uint64_t staged_revision;
	bool is_terminating; /* as staged */
};

struct fake_sink {
	struct roll_sink calls;
	struct fake_sink_counts counts;
	struct object *objects;
	size_t count;
	struct {
		char what[128];
		char position[32];
	} positions[POSITIONS_MAX];
	size_t position_count;
	char trouble[512];
	bool in_batch;
	bool in_list;
	int list_kind;
	char list_ns[64];
	char list_what[128];
	enum roll_status event_failure, put_failure, list_failure;
	size_t event_failures, put_failures, list_failures;
};

static enum roll_status fail_from(enum roll_status status, size_t *left)
{
	if (*left == 0)
		return ROLL_OK;
	--*left;
	return status;
}

static int kind_of(const json_t *object)
{
	static const char *const names[] = {"DNSZoneClass", "DNSZone", "DNSRecordSet"};

	for (int i = 0; i < 3; i++) {
		if (roll_str_eq_c(roll_json_str(object, "kind"), names[i]))
			return i;
	}
	abort();
}

static struct object *find(struct fake_sink *sink, int kind, const char *key, bool make)
{
	for (size_t i = 0; i < sink->count; i++) {
		if (sink->objects[i].kind == kind && strcmp(sink->objects[i].key, key) == 0)
			return &sink->objects[i];
	}
	if (!make)
		return NULL;
	assert(sink->count < OBJECTS_MAX);
	sink->objects[sink->count] = (struct object){.kind = kind};
	snprintf(sink->objects[sink->count].key, sizeof sink->objects->key, "%s", key);
	return &sink->objects[sink->count++];
}

static struct object *object_of(struct fake_sink *sink, const json_t *object)
{
	const json_t *metadata = json_object_get(object, "metadata");
	struct roll_str ns = roll_json_str(metadata, "namespace");
	struct roll_str name = roll_json_str(metadata, "name");
	char key[160];

	snprintf(key, sizeof key, ROLL_STR_FMT "/" ROLL_STR_FMT, ROLL_STR_ARG(ns),
		 ROLL_STR_ARG(name));
	return find(sink, kind_of(object), key, true);
}

static uint64_t revision_of(const json_t *object)
{
	uint64_t revision;

	if (roll_revision_of(object, &revision))
		abort();
	return revision;
}

static bool is_terminating(const json_t *object)
{
	return json_object_get(json_object_get(object, "metadata"), "deletionTimestamp") != NULL;
}

static enum roll_status event_begin(void *ctx)
{
	struct fake_sink *sink = ctx;

	assert(!sink->in_batch);
	sink->in_batch = true;
	return ROLL_OK;
}

static enum roll_status event_put(void *ctx, json_t *object, struct roll_str scope,
				  struct roll_str where)
{
	struct fake_sink *sink = ctx;
	struct object *known;
	enum roll_status status;

	(void)where;
	assert(sink->in_batch && scope.n == 0);
	status = fail_from(sink->put_failure, &sink->put_failures);
	if (status)
		return status;
	sink->counts.events++;
	known = object_of(sink, object);
	if (revision_of(object) < known->revision) {
		sink->counts.flickers++;
		return ROLL_OK;
	}
	known->revision = revision_of(object);
	known->is_there = !is_terminating(object);
	return ROLL_OK;
}

static enum roll_status event_absent(void *ctx, json_t *object, uint64_t revision)
{
	struct fake_sink *sink = ctx;
	struct object *known;

	assert(sink->in_batch && revision == revision_of(object));
	sink->counts.events++;
	known = object_of(sink, object);
	if (revision < known->revision) {
		sink->counts.flickers++;
		return ROLL_OK;
	}
	known->revision = revision;
	known->is_there = false;
	return ROLL_OK;
}

void fake_sink_set_position(struct fake_sink *sink, const char *what, const char *position)
{
	size_t i;

	for (i = 0; i < sink->position_count; i++) {
		if (strcmp(sink->positions[i].what, what) == 0)
			break;
	}
	assert(i < POSITIONS_MAX);
	if (i == sink->position_count)
		sink->position_count++;
	snprintf(sink->positions[i].what, sizeof sink->positions[i].what, "%s", what);
	snprintf(sink->positions[i].position, sizeof sink->positions[i].position, "%s", position);
}

static void store(struct fake_sink *sink, struct roll_str what, struct roll_str position)
{
	char a[128], b[32];

	if (position.n == 0)
		return;
	snprintf(a, sizeof a, ROLL_STR_FMT, ROLL_STR_ARG(what));
	snprintf(b, sizeof b, ROLL_STR_FMT, ROLL_STR_ARG(position));
	fake_sink_set_position(sink, a, b);
}

static enum roll_status event_end(void *ctx, struct roll_str what, struct roll_str position)
{
	struct fake_sink *sink = ctx;
	enum roll_status status;

	assert(sink->in_batch);
	sink->in_batch = false;
	sink->counts.batches++;
	status = fail_from(sink->event_failure, &sink->event_failures);
	if (!status)
		store(sink, what, position);
	return status;
}

static enum roll_status list_begin(void *ctx, const struct roll_list_head *head)
{
	struct fake_sink *sink = ctx;

	assert(!sink->in_list && !sink->in_batch && !head->all_scopes && head->kind >= 0);
	sink->in_list = true;
	sink->list_kind = head->kind;
	snprintf(sink->list_ns, sizeof sink->list_ns, ROLL_STR_FMT, ROLL_STR_ARG(head->ns));
	snprintf(sink->list_what, sizeof sink->list_what, ROLL_STR_FMT, ROLL_STR_ARG(head->what));
	sink->counts.lists_begun++;
	for (size_t i = 0; i < sink->count; i++)
		sink->objects[i].is_staged = false;
	return ROLL_OK;
}

static enum roll_status list_put(void *ctx, json_t *object, struct roll_str scope,
				 struct roll_str where)
{
	struct fake_sink *sink = ctx;
	struct object *known = object_of(sink, object);

	(void)where;
	assert(sink->in_list && !sink->in_batch && scope.n == 0 && known->kind == sink->list_kind);
	known->is_staged = true;
	known->staged_revision = revision_of(object);
	known->is_terminating = is_terminating(object);
	return ROLL_OK;
}

static enum roll_status list_keep(void *ctx, struct roll_str scope, struct roll_str reason)
{
	(void)ctx;
	(void)scope;
	(void)reason;
	abort();
}

static enum roll_status list_end(void *ctx, uint64_t revision, struct roll_str position)
{
	struct fake_sink *sink = ctx;
	enum roll_status status;
	size_t n = strlen(sink->list_ns);

	assert(sink->in_list && !sink->in_batch);
	sink->in_list = false;
	status = fail_from(sink->list_failure, &sink->list_failures);
	if (status)
		return status;
	sink->counts.lists_taken++;
	for (size_t i = 0; i < sink->count; i++) {
		struct object *known = &sink->objects[i];

		if (known->kind != sink->list_kind || known->revision > revision ||
		    (n && (strncmp(known->key, sink->list_ns, n) != 0 || known->key[n] != '/')))
			continue;
		if (known->is_staged) {
			known->revision = known->staged_revision;
			known->is_there = !known->is_terminating;
		} else {
			known->is_there = false;
		}
	}
	store(sink, roll_str_c(sink->list_what), position);
	return ROLL_OK;
}

static void list_abort(void *ctx)
{
	struct fake_sink *sink = ctx;

	assert(sink->in_list && !sink->in_batch);
	sink->in_list = false;
	sink->counts.lists_aborted++;
}

static void confirmed(void *ctx)
{
	((struct fake_sink *)ctx)->counts.confirmed++;
}

static void unreachable(void *ctx, const char *why)
{
	struct fake_sink *sink = ctx;

	sink->counts.unreachable++;
	snprintf(sink->trouble, sizeof sink->trouble, "%s", why);
}

struct fake_sink *fake_sink_new(void)
{
	struct fake_sink *sink = calloc(1, sizeof *sink);

	assert(sink);
	sink->objects = calloc(OBJECTS_MAX, sizeof *sink->objects);
	assert(sink->objects);
	sink->calls = (struct roll_sink){
		.ctx = sink,
		.event_begin = event_begin,
		.event_put = event_put,
		.event_absent = event_absent,
		.event_end = event_end,
		.list_begin = list_begin,
		.list_put = list_put,
		.list_keep = list_keep,
		.list_end = list_end,
		.list_abort = list_abort,
		.confirmed = confirmed,
		.unreachable = unreachable,
	};
	return sink;
}

void fake_sink_free(struct fake_sink *sink)
{
	if (!sink)
		return;
	assert(!sink->in_batch && !sink->in_list);
	free(sink->objects);
	free(sink);
}

const struct roll_sink *fake_sink_calls(struct fake_sink *sink)
{
	return &sink->calls;
}

const struct fake_sink_counts *fake_sink_counts(const struct fake_sink *sink)
{
	return &sink->counts;
}

const char *fake_sink_trouble(const struct fake_sink *sink)
{
	return sink->trouble;
}

size_t fake_sink_object_count(const struct fake_sink *sink)
{
	size_t count = 0;

	for (size_t i = 0; i < sink->count; i++)
		count += sink->objects[i].is_there;
	return count;
}

bool fake_sink_equals(const struct fake_sink *sink, const struct fake_api *api)
{
	size_t there = 0;

	for (size_t i = 0; i < sink->count; i++) {
		const struct object *known = &sink->objects[i];
		const char *slash = strchr(known->key, '/');
		const json_t *object;
		char ns[64];

		snprintf(ns, sizeof ns, "%.*s", (int)(slash - known->key), known->key);
		object = fake_api_get(api, (enum fake_kind)known->kind, ns, slash + 1);
		if (object && !is_terminating(object)) {
			if (!known->is_there || known->revision != revision_of(object))
				return false;
		} else if (known->is_there) {
			return false;
		}
		there += object != NULL;
	}
	return there == fake_api_object_count(api);
}

void fake_sink_lose(struct fake_sink *sink, enum fake_kind kind, const char *key)
{
	struct object *known = find(sink, (int)kind, key, false);

	assert(known && known->is_there);
	known->is_there = false;
	known->revision = 0;
}

void fake_sink_fail_events(struct fake_sink *sink, enum roll_status status, size_t count)
{
	sink->event_failure = status;
	sink->event_failures = count;
}

void fake_sink_fail_puts(struct fake_sink *sink, enum roll_status status, size_t count)
{
	sink->put_failure = status;
	sink->put_failures = count;
}

void fake_sink_fail_lists(struct fake_sink *sink, enum roll_status status, size_t count)
{
	sink->list_failure = status;
	sink->list_failures = count;
}

enum roll_status fake_sink_position(void *ctx, struct roll_str what, struct roll_buf *out)
{
	struct fake_sink *sink = ctx;

	for (size_t i = 0; i < sink->position_count; i++) {
		if (roll_str_eq_c(what, sink->positions[i].what)) {
			roll_buf_add_c(out, sink->positions[i].position);
			return out->status;
		}
	}
	return ROLL_ENOENT;
}
