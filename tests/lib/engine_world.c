/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "dns/type.h"
#include "tests/lib/engine_world.h"

static void on_commit(void *ctx, const struct roll_changes *changes)
{
	struct fixture *f = ctx;

	f->commits++;
	f->swaps += changes == NULL;
}

static bool is_approved(void *ctx)
{
	return ((struct fixture *)ctx)->is_approved;
}

enum roll_status open_engine(struct fixture *f, struct roll_err *err)
{
	struct roll_engine_conf conf = {
		.is_cluster = f->is_cluster,
		.namespace_count = f->namespace_count,
		.guard = &f->guard,
		.clock = &f->tv.clock,
		.on_commit = on_commit,
		.is_approved = is_approved,
		.ctx = f,
	};
	enum roll_status status;

	tempview_open(&f->tv);
	conf.writer = f->tv.writer;
	status = roll_engine_new(&conf, &f->engine, err);
	if (!status)
		f->sink = roll_engine_sink(f->engine);
	return status;
}

void close_engine(struct fixture *f)
{
	roll_engine_free(f->engine);
	f->engine = NULL;
	tempview_close(&f->tv);
}

void start_engine(struct fixture *f, bool is_cluster)
{
	memset(f, 0, sizeof *f);
	f->is_cluster = is_cluster;
	tempview_init(&f->tv);
	assert_int_equal(open_engine(f, NULL), ROLL_OK);
}

void restart_engine(struct fixture *f)
{
	close_engine(f);
	assert_int_equal(open_engine(f, NULL), ROLL_OK);
}

void stop_engine(struct fixture *f)
{
	close_engine(f);
	tempview_fini(&f->tv);
}

/* --- objects --- */

json_t *make_object(const char *kind, const char *ns, const char *name, unsigned revision,
		    const char *spec)
{
	json_error_t error;
	char text[24];
	json_t *value;

	snprintf(text, sizeof text, "%u", revision);
	value = json_pack("{s:s,s:s,s:{s:s,s:s,s:s,s:s},s:o}", "apiVersion",
			  ROLL_API_GROUP "/" ROLL_API_VERSION, "kind", kind, "metadata", "name",
			  name, "uid", name, "resourceVersion", text, "creationTimestamp",
			  "2026-01-01T00:00:00Z", "spec", json_loads(spec, 0, &error));
	assert_non_null(value);
	if (ns)
		json_object_set_new(json_object_get(value, "metadata"), "namespace",
				    json_string(ns));
	return value;
}

json_t *class_object(void)
{
	return make_object("DNSZoneClass", NULL, "c", 1,
			   "{\"controllerName\":\"ours\",\"nameServerPolicy\":{\"mode\":\"Static\","
			   "\"static\":{\"servers\":[\"ns1.example.net\"]}}}");
}

json_t *zone_object(unsigned revision)
{
	return make_object("DNSZone", "d", "z", revision,
			   "{\"domainName\":\"example.com\",\"dnsZoneClassName\":\"c\"}");
}

json_t *set_object(const char *ns, const char *name, unsigned revision, unsigned byte)
{
	char spec[256];

	snprintf(spec, sizeof spec,
		 "{\"dnsZoneRef\":{\"name\":\"z\"},\"recordType\":\"A\",\"records\":[{\"name\":"
		 "\"%s\",\"a\":{\"content\":\"192.0.2.%u\"}}]}",
		 name, byte);
	return make_object("DNSRecordSet", ns, name, revision, spec);
}

/* --- what the view says --- */

static enum roll_status take_byte(void *ctx, const struct roll_row *row)
{
	if (row->type == ROLL_TYPE_A && row->rdata.n == 4)
		*(int *)ctx = (unsigned char)row->rdata.p[3];
	return ROLL_OK;
}

int served(struct fixture *f, const char *owner)
{
	struct roll_txn *txn = tempview_begin(&f->tv);
	struct roll_name name, apex = tempview_name("example.com");
	const struct roll_zone *zone;
	char text[128];
	int byte = -1;

	snprintf(text, sizeof text, "%s.example.com", owner);
	name = tempview_name(text);
	if (!roll_snap_zone_at(roll_txn_snap(txn), &apex, &zone))
		(void)!roll_snap_lookup(roll_txn_snap(txn), zone, &name, ROLL_TYPE_A, take_byte,
					&byte);
	roll_txn_abort(txn);
	return byte;
}

uint64_t generation(struct fixture *f)
{
	struct roll_txn *txn = tempview_begin(&f->tv);
	uint64_t n = roll_snap_head(roll_txn_snap(txn))->generation;

	roll_txn_abort(txn);
	return n;
}

static enum roll_status keep_evidence(void *ctx, const struct roll_removal *removal)
{
	snprintf(ctx, 256, "%.*s", ROLL_STR_ARG(removal->evidence));
	return ROLL_ECANCELED;
}

const char *last_evidence(struct fixture *f, char out[256])
{
	struct roll_txn *txn = tempview_begin(&f->tv);

	out[0] = '\0';
	(void)!roll_snap_removals(roll_txn_snap(txn), keep_evidence, out);
	roll_txn_abort(txn);
	return out;
}

struct roll_engine_counts engine_counts(struct fixture *f)
{
	struct roll_engine_counts out;

	roll_engine_counts(f->engine, &out);
	return out;
}

/* --- what the source tells --- */

const char *const engine_kinds[] = {"dnszoneclasses", "dnszones", "dnsrecordsets"};

void begin_list(struct fixture *f, int kind, const char *ns)
{
	struct roll_list_head head = {.kind = kind,
				      .ns = roll_str_c(ns),
				      .what = roll_str_c(engine_kinds[kind]),
				      .is_repeat = f->is_repeat};

	assert_int_equal(f->sink->list_begin(f->sink->ctx, &head), ROLL_OK);
}

void list_put(struct fixture *f, json_t *value)
{
	assert_int_equal(
		f->sink->list_put(f->sink->ctx, value, roll_str_n("", 0), roll_str_n("", 0)),
		ROLL_OK);
	json_decref(value);
}

enum roll_status end_list(struct fixture *f, uint64_t revision)
{
	char text[24];

	snprintf(text, sizeof text, "%llu", (unsigned long long)revision);
	return f->sink->list_end(f->sink->ctx, revision, roll_str_c(text));
}

void begin_events(struct fixture *f)
{
	assert_int_equal(f->sink->event_begin(f->sink->ctx), ROLL_OK);
}

void event_put(struct fixture *f, json_t *value)
{
	assert_int_equal(
		f->sink->event_put(f->sink->ctx, value, roll_str_n("", 0), roll_str_n("", 0)),
		ROLL_OK);
	json_decref(value);
}

void event_absent(struct fixture *f, json_t *value, uint64_t revision)
{
	assert_int_equal(f->sink->event_absent(f->sink->ctx, value, revision), ROLL_OK);
	json_decref(value);
}

enum roll_status end_events(struct fixture *f, const char *position)
{
	return f->sink->event_end(f->sink->ctx, roll_str_c("dnsrecordsets"), roll_str_c(position));
}

void fill_view(struct fixture *f, unsigned count)
{
	char name[16];
	unsigned i;

	begin_list(f, ROLL_KIND_CLASS, "");
	list_put(f, class_object());
	assert_int_equal(end_list(f, 10), ROLL_OK);
	begin_list(f, ROLL_KIND_ZONE, "");
	list_put(f, zone_object(2));
	assert_int_equal(end_list(f, 10), ROLL_OK);
	assert_false(engine_counts(f).is_complete);
	begin_list(f, ROLL_KIND_RECORDSET, "");
	for (i = 0; i < count; i++) {
		snprintf(name, sizeof name, "n%u", i);
		list_put(f, set_object("d", name, 3 + i % 5, i % 250));
	}
	assert_int_equal(end_list(f, 10), ROLL_OK);
	assert_true(engine_counts(f).is_complete);
}
