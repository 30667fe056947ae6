/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "apply/apply.h"
#include "tests/lib/tempview.h"

/* Objects into the view: what each call says it did, and what the view holds after it. */

struct fixture {
	struct tempview tv;
	struct roll_apply *apply;
	struct roll_txn *txn;
};

static int setup(void **state)
{
	static struct fixture fx;

	memset(&fx, 0, sizeof fx);
	tempview_init(&fx.tv);
	tempview_make(&fx.tv);
	fx.apply = roll_apply_new();
	assert_non_null(fx.apply);
	fx.txn = tempview_begin(&fx.tv);
	*state = &fx;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fx = *state;

	roll_txn_abort(fx->txn);
	roll_apply_free(fx->apply);
	tempview_fini(&fx->tv);
	return 0;
}

static json_t *make(const char *kind, const char *name, const char *metadata, const char *spec)
{
	char text[1024];
	json_t *json;

	snprintf(text, sizeof text,
		 "{\"apiVersion\":\"" ROLL_API_GROUP "/" ROLL_API_VERSION
		 "\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\",\"uid\":\"u\","
		 "\"creationTimestamp\":\"2026-01-01T00:00:00Z\"%s},\"spec\":%s}",
		 kind, name, metadata, spec);
	json = json_loads(text, 0, NULL);
	assert_non_null(json);
	return json;
}

#define CLASS_SPEC                                                                \
	"{\"controllerName\":\"ours\",\"nameServerPolicy\":{\"mode\":\"Static\"," \
	"\"static\":{\"servers\":[\"ns1.example.net\"]}}}"
#define ZONE_SPEC(domain) "{\"domainName\":\"" domain "\",\"dnsZoneClassName\":\"c\"}"
#define SET_SPEC(owner, address)                                               \
	"{\"dnsZoneRef\":{\"name\":\"z\"},\"recordType\":\"A\",\"records\":[{" \
	"\"name\":\"" owner "\",\"a\":{\"content\":\"" address "\"}}]}"

static enum roll_apply_result put_with(struct fixture *fx, const char *kind, const char *name,
				       const char *metadata, const char *spec, const char *scope,
				       const struct roll_apply_extra *extra)
{
	struct roll_object object;
	enum roll_apply_result result = ROLL_APPLY_SLICED;
	json_t *json = make(kind, name, metadata, spec);

	assert_int_equal(roll_object_decode(json, &object, NULL), ROLL_OK);
	assert_int_equal(roll_apply_put(fx->apply, fx->txn, &object, roll_str_c(scope), extra,
					extra ? 1 : 0, &result),
			 ROLL_OK);
	assert_int_equal(roll_txn_status(fx->txn), ROLL_OK);
	json_decref(json);
	return result;
}

static enum roll_apply_result put(struct fixture *fx, const char *kind, const char *name,
				  const char *spec)
{
	return put_with(fx, kind, name, "", spec, "", NULL);
}

static void put_zone(struct fixture *fx)
{
	assert_int_equal(put(fx, "DNSZoneClass", "c", CLASS_SPEC), ROLL_APPLY_CHANGED);
	assert_int_equal(put(fx, "DNSZone", "z", ZONE_SPEC("example.com")), ROLL_APPLY_CHANGED);
}

static enum roll_status take_byte(void *ctx, const struct roll_row *row)
{
	if (row->type == ROLL_TYPE_A)
		*(int *)ctx = (uint8_t)row->rdata.p[3];
	return ROLL_OK;
}

/* Last byte of the address at the name; 0: none. */
static int served(struct fixture *fx, const char *domain, const char *owner)
{
	struct roll_name apex = tempview_name(domain), name = tempview_name(owner);
	const struct roll_zone *zone;
	int byte = 0;

	if (!roll_snap_zone_at(roll_txn_snap(fx->txn), &apex, &zone))
		(void)!roll_snap_lookup(roll_txn_snap(fx->txn), zone, &name, ROLL_TYPE_A, take_byte,
					&byte);
	return byte;
}

static struct roll_object_row row_of(struct fixture *fx, enum roll_row_kind kind, const char *key)
{
	struct roll_object_row row;

	assert_int_equal(roll_snap_object(roll_txn_snap(fx->txn), kind, roll_str_c(key), &row),
			 ROLL_OK);
	return row;
}

static void what_is_the_same_is_not_written(void **state)
{
	struct fixture *fx = *state;
	bool is_unchanged = false;
	struct roll_object object;
	json_t *json = make("DNSRecordSet", "www", "", SET_SPEC("www", "192.0.2.1"));
	char *spec = json_dumps(json_object_get(json, "spec"), JSON_COMPACT | JSON_SORT_KEYS);

	put_zone(fx);
	assert_int_equal(put(fx, "DNSRecordSet", "www", SET_SPEC("www", "192.0.2.1")),
			 ROLL_APPLY_CHANGED);
	assert_int_equal(served(fx, "example.com", "www.example.com"), 1);
	tempview_commit(fx->txn);
	fx->txn = tempview_begin(&fx->tv);
	assert_int_equal(put(fx, "DNSRecordSet", "www", SET_SPEC("www", "192.0.2.1")),
			 ROLL_APPLY_UNCHANGED);
	assert_int_equal(put(fx, "DNSZone", "z", ZONE_SPEC("example.com")), ROLL_APPLY_UNCHANGED);
	assert_int_equal(put(fx, "DNSZoneClass", "c", CLASS_SPEC), ROLL_APPLY_UNCHANGED);
	/* Other labels, another revision and generation. */
	assert_int_equal(put_with(fx, "DNSRecordSet", "www",
				  ",\"labels\":{\"a\":\"b\"},\"resourceVersion\":\"9\","
				  "\"generation\":4",
				  SET_SPEC("www", "192.0.2.1"), "", NULL),
			 ROLL_APPLY_UNCHANGED);
	assert_int_equal(roll_object_decode(json, &object, NULL), ROLL_OK);
	assert_int_equal(roll_apply_is_unchanged(fx->apply, fx->txn, &object, roll_str_c(spec),
						 roll_str_c(""), NULL, 0, &is_unchanged),
			 ROLL_OK);
	assert_true(is_unchanged);
	assert_false(roll_txn_is_changed(fx->txn));
	free(spec);
	json_decref(json);
	assert_int_equal(put(fx, "DNSRecordSet", "www", SET_SPEC("www", "192.0.2.2")),
			 ROLL_APPLY_CHANGED);
	assert_int_equal(served(fx, "example.com", "www.example.com"), 2);
}

/* The same name, made again: it may be younger than the one that waited behind it. */
static void another_uid_is_another_object(void **state)
{
	struct fixture *fx = *state;

	put_zone(fx);
	put(fx, "DNSRecordSet", "first", SET_SPEC("www", "192.0.2.1"));
	put_with(fx, "DNSRecordSet", "second", ",\"creationTimestamp\":\"2026-02-01T00:00:00Z\"",
		 SET_SPEC("www", "192.0.2.2"), "", NULL);
	assert_int_equal(served(fx, "example.com", "www.example.com"), 1);
	assert_int_equal(put_with(fx, "DNSRecordSet", "first",
				  ",\"uid\":\"v\",\"creationTimestamp\":\"2026-03-01T00:00:00Z\"",
				  SET_SPEC("www", "192.0.2.1"), "", NULL),
			 ROLL_APPLY_CHANGED);
	assert_int_equal(served(fx, "example.com", "www.example.com"), 2);
}

static void terminating_is_absent(void **state)
{
	struct fixture *fx = *state;
	const char *going = ",\"deletionTimestamp\":\"2026-01-02T00:00:00Z\"";
	struct roll_object_row row;

	put_zone(fx);
	put(fx, "DNSRecordSet", "www", SET_SPEC("www", "192.0.2.1"));
	assert_int_equal(
		put_with(fx, "DNSRecordSet", "www", going, SET_SPEC("www", "192.0.2.1"), "", NULL),
		ROLL_APPLY_ABSENT);
	assert_int_equal(served(fx, "example.com", "www.example.com"), 0);
	assert_int_equal(roll_snap_object(roll_txn_snap(fx->txn), ROLL_ROW_RECORDSET,
					  roll_str_c("default/www"), &row),
			 ROLL_ENOENT);
	/* It was not there to begin with. */
	assert_int_equal(
		put_with(fx, "DNSRecordSet", "api", going, SET_SPEC("api", "192.0.2.1"), "", NULL),
		ROLL_APPLY_ABSENT);
	assert_int_equal(roll_apply_absent(fx->apply, fx->txn, ROLL_KIND_RECORDSET,
					   roll_str_c("default/api"), "test", 1),
			 ROLL_ENOENT);
}

static void a_record_set_waits_for_its_zone(void **state)
{
	struct fixture *fx = *state;

	put(fx, "DNSRecordSet", "www", SET_SPEC("www", "192.0.2.1"));
	assert_int_equal(row_of(fx, ROLL_ROW_RECORDSET, "default/www").number, 0);
	put_zone(fx);
	assert_int_equal(served(fx, "example.com", "www.example.com"), 1);
	/* It goes with the zone to another domain, and waits again when the zone is gone. */
	assert_int_equal(put(fx, "DNSZone", "z", ZONE_SPEC("example.org")), ROLL_APPLY_CHANGED);
	assert_int_equal(served(fx, "example.com", "www.example.com"), 0);
	assert_int_equal(served(fx, "example.org", "www.example.org"), 1);
	assert_int_equal(roll_apply_absent(fx->apply, fx->txn, ROLL_KIND_ZONE,
					   roll_str_c("default/z"), "test", 1),
			 ROLL_OK);
	assert_int_equal(served(fx, "example.org", "www.example.org"), 0);
	put(fx, "DNSZone", "z", ZONE_SPEC("example.com"));
	assert_int_equal(served(fx, "example.com", "www.example.com"), 1);
}

static void findings_are_counted_as_they_come_and_go(void **state)
{
	struct fixture *fx = *state;
	const struct roll_apply_extra extra = {ROLL_WARNING, ROLL_REASON_SUSPICIOUS,
					       roll_str_c("metadata"), roll_str_c("odd")};
	struct roll_apply_delta delta;

	put_zone(fx);
	roll_apply_take_delta(fx->apply);
	put(fx, "DNSRecordSet", "www", SET_SPEC("www", "192.0.2.300"));
	delta = roll_apply_take_delta(fx->apply);
	assert_int_equal(delta.faults, 1);
	assert_int_equal(row_of(fx, ROLL_ROW_RECORDSET, "default/www").fault_count, 1);
	put_with(fx, "DNSRecordSet", "www", "", SET_SPEC("www", "192.0.2.3"), "", &extra);
	delta = roll_apply_take_delta(fx->apply);
	assert_int_equal(delta.faults, -1);
	assert_int_equal(delta.warnings, 1);
	assert_int_equal(served(fx, "example.com", "www.example.com"), 3);
	/* Extra findings alone leave claims and those of the spec as they are. */
	assert_int_equal(roll_apply_extras(fx->apply, fx->txn, ROLL_KIND_RECORDSET,
					   roll_str_c("default/www"), NULL, 0),
			 ROLL_OK);
	delta = roll_apply_take_delta(fx->apply);
	assert_int_equal(delta.warnings, -1);
	assert_int_equal(served(fx, "example.com", "www.example.com"), 3);
	assert_int_equal(roll_apply_extras(fx->apply, fx->txn, ROLL_KIND_RECORDSET,
					   roll_str_c("default/none"), NULL, 0),
			 ROLL_ENOENT);
	/* What goes takes its findings along. */
	put(fx, "DNSRecordSet", "www", SET_SPEC("www", "nowhere"));
	assert_int_equal(roll_apply_absent(fx->apply, fx->txn, ROLL_KIND_RECORDSET,
					   roll_str_c("default/www"), "test", 1),
			 ROLL_OK);
	delta = roll_apply_take_delta(fx->apply);
	assert_int_equal(delta.faults, 0);
}

/* From another manifest, the same: only where it comes from is written. */
static void another_scope_touches_the_row_only(void **state)
{
	struct fixture *fx = *state;

	put_zone(fx);
	put_with(fx, "DNSRecordSet", "www", "", SET_SPEC("www", "192.0.2.1"), "a.yaml", NULL);
	assert_int_equal(put_with(fx, "DNSRecordSet", "www", "", SET_SPEC("www", "192.0.2.1"),
				  "b.yaml", NULL),
			 ROLL_APPLY_CHANGED);
	assert_true(roll_str_eq_c(row_of(fx, ROLL_ROW_RECORDSET, "default/www").scope, "b.yaml"));
	assert_int_equal(served(fx, "example.com", "www.example.com"), 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(what_is_the_same_is_not_written),
		TEST(another_uid_is_another_object),
		TEST(terminating_is_absent),
		TEST(a_record_set_waits_for_its_zone),
		TEST(findings_are_counted_as_they_come_and_go),
		TEST(another_scope_touches_the_row_only),
#undef TEST
	};

	return cmocka_run_group_tests_name("apply", tests, NULL, NULL);
}
