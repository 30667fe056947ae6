/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "apply/apply.h"
#include "base/json.h"
#include "sync/report.h"
#include "tests/lib/tempview.h"

#define API "\"apiVersion\":\"dns.networking.miloapis.com/v1alpha1\""

struct world {
	struct tempview tv;
	struct roll_apply *apply;
	unsigned age; /* of the next object, in seconds */
};

static int setup(void **state)
{
	struct world *world = calloc(1, sizeof *world);

	assert_non_null(world);
	tempview_init(&world->tv);
	tempview_make(&world->tv);
	world->apply = roll_apply_new();
	assert_non_null(world->apply);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	roll_apply_free(world->apply);
	tempview_fini(&world->tv);
	free(world);
	return 0;
}

/* Each object is a second younger than the one before, unless the age is turned back. */
static void put(struct world *world, const char *kind, const char *name, const char *spec)
{
	struct roll_object object;
	enum roll_apply_result result;
	struct roll_txn *txn;
	json_t *json = NULL;
	static char text[1 << 20];

	snprintf(
		text, sizeof text,
		"{" API ",\"kind\":\"%s\",\"metadata\":{%s\"name\":\"%s\",\"uid\":\"u-%s\","
		"\"generation\":3,\"creationTimestamp\":\"2026-01-01T00:%02u:%02uZ\"},\"spec\":%s}",
		kind, strcmp(kind, "DNSZoneClass") == 0 ? "" : "\"namespace\":\"ns\",", name, name,
		world->age / 60, world->age % 60, spec);
	world->age++;
	assert_int_equal(roll_json_parse(roll_str_c(text), &json, NULL), ROLL_OK);
	assert_int_equal(roll_object_decode(json, &object, NULL), ROLL_OK);
	txn = tempview_begin(&world->tv);
	assert_int_equal(
		roll_apply_put(world->apply, txn, &object, roll_str_n("", 0), NULL, 0, &result),
		ROLL_OK);
	tempview_commit(txn);
	json_decref(json);
}

static json_t *report(struct world *world, enum roll_row_kind kind, const char *name)
{
	struct roll_object_row row;
	struct roll_snap *snap;
	json_t *out = NULL;
	char key[300];

	snprintf(key, sizeof key, "ns/%s", name);
	assert_int_equal(roll_snap_begin(roll_writer_view(world->tv.writer), true, &snap, NULL),
			 ROLL_OK);
	assert_int_equal(roll_snap_object(snap, kind, roll_str_c(key), &row), ROLL_OK);
	assert_int_equal(kind == ROLL_ROW_ZONE ? roll_report_zone(snap, &row, 7, &out)
					       : roll_report_recordset(snap, &row, &out),
			 ROLL_OK);
	roll_snap_end(snap);
	assert_non_null(out);
	return out;
}

static const char *member(const json_t *status, const char *type, const char *name)
{
	struct roll_str text = roll_report_condition(status, type, name);

	return text.p ? text.p : "";
}

static void class_and_zone(struct world *world)
{
	put(world, "DNSZoneClass", "public",
	    "{\"controllerName\":\"ours\",\"nameServerPolicy\":{\"mode\":\"Static\",\"static\":"
	    "{\"servers\":[\"ns2.example.net\",\"NS1.example.net.\",\"ns2.example.net\"]}}}");
	put(world, "DNSZone", "z",
	    "{\"domainName\":\"example.com\",\"dnsZoneClassName\":\"public\"}");
}

#define SET(type, records) \
	"{\"dnsZoneRef\":{\"name\":\"z\"},\"recordType\":\"" type "\",\"records\":[" records "]}"
#define A(name, content) "{\"name\":\"" name "\",\"a\":{\"content\":\"" content "\"}}"
#define CNAME(name) "{\"name\":\"" name "\",\"cname\":{\"content\":\"x.example.net\"}}"

#define OUT_OF_ZONE \
	"The record name is outside the zone. Check that the name belongs to this DNS zone. "
#define INVALID "The DNS record was rejected as invalid. Check the record type and value. "
#define IN_THE_WAY                                                                               \
	"A conflicting record already exists for this name. Remove the existing record and try " \
	"again. In the way: "

/* Equal; one that ends in a blank only has to begin so, as the reader's words follow. */
static void assert_says(const char *text, const char *wanted)
{
	size_t n = strlen(wanted);

	if (n && wanted[n - 1] == ' ' && strncmp(text, wanted, n) == 0 && text[n])
		return;
	assert_string_equal(text, wanted);
}

/* The third object "r" after those named in before; what its status says. */
static void every_reason_has_its_message(void **state)
{
	static const struct {
		const char *other; /* spec of an older record set; NULL: none */
		const char *spec;
		const char *status, *reason, *message;	/* of Programmed */
		const char *name_reason, *name_message; /* of the first name; NULL: none */
	} cases[] = {
		{NULL, SET("A", A("www", "192.0.2.1")), "True", "Programmed",
		 "All records programmed", "Programmed", "Record successfully applied to PDNS"},
		{SET("A", A("www", "192.0.2.1")), SET("A", A("WWW", "192.0.2.1")), "False",
		 "NotOwner",
		 "One or more records not yet programmed: WWW: Another DNSRecordSet owns this "
		 "record: DNSRecordSet ns/other, since 2026-01-01T00:00:02Z",
		 "NotOwner",
		 "Another DNSRecordSet owns this record: DNSRecordSet ns/other, since "
		 "2026-01-01T00:00:02Z"},
		{SET("A", A("www", "192.0.2.1")), SET("CNAME", CNAME("www")), "False", "Conflict",
		 "One or more records not yet programmed: www: " IN_THE_WAY
		 "A of DNSRecordSet ns/other, since 2026-01-01T00:00:02Z",
		 "Conflict", IN_THE_WAY "A of DNSRecordSet ns/other, since 2026-01-01T00:00:02Z"},
		{SET("CNAME", CNAME("www")), SET("A", A("www", "192.0.2.1")), "False", "Conflict",
		 "One or more records not yet programmed: www: " IN_THE_WAY
		 "CNAME of DNSRecordSet ns/other, since 2026-01-01T00:00:02Z",
		 "Conflict",
		 IN_THE_WAY "CNAME of DNSRecordSet ns/other, since "
			    "2026-01-01T00:00:02Z"},
		{NULL, SET("CNAME", CNAME("@")), "False", "Conflict",
		 "One or more records not yet programmed: @: " IN_THE_WAY
		 "SOA and NS of the zone itself",
		 "Conflict", IN_THE_WAY "SOA and NS of the zone itself"},
		{NULL, SET("A", A("www.example.org.", "192.0.2.1")), "False", "OutOfZone",
		 "One or more records not yet programmed: www.example.org.: " OUT_OF_ZONE
		 "spec.records[0].name: ",
		 "OutOfZone", OUT_OF_ZONE "spec.records[0].name: "},
		{NULL, SET("A", A("www", "192.0.2.256")), "False", "InvalidDNSRecordSet",
		 "One or more records not yet programmed: www: " INVALID
		 "spec.records[0].a.content: ",
		 "InvalidDNSRecordSet", INVALID "spec.records[0].a.content: "},
		{NULL, SET("A", A("a", "192.0.2.1") "," A("a", "x")), "False",
		 "InvalidDNSRecordSet",
		 "One or more records not yet programmed: 1 of 2 entries not served: "
		 "spec.records[1].a.content: ",
		 "Programmed",
		 "Record successfully applied to PDNS, but for spec.records[1].a.content: "},
		{NULL, SET("A", ""), "False", "InvalidDNSRecordSet",
		 "One or more records not yet programmed: the object has no records", NULL, NULL},
		{NULL, "{\"dnsZoneRef\":{\"name\":\"z\"},\"recordType\":\"WKS\",\"records\":[]}",
		 "False", "InvalidDNSRecordSet", "spec.recordType: ", NULL, NULL},
		{NULL,
		 "{\"dnsZoneRef\":{\"name\":\"away\"},\"recordType\":\"A\",\"records\":[" A(
			 "a", "192.0.2.1") "]}",
		 "False", "Pending", "waiting for DNSZone \"away\"", "Pending",
		 "waiting for DNSZone \"away\""},
		/* Names may be shared by types, the apex by ALIAS and A. */
		{SET("A", A("www", "192.0.2.1")),
		 SET("TXT", "{\"name\":\"www\",\"txt\":{\"content\":\"x\"}}"), "True", "Programmed",
		 "All records programmed", "Programmed", "Record successfully applied to PDNS"},
		{SET("A", A("@", "192.0.2.1")),
		 SET("ALIAS", "{\"name\":\"@\",\"alias\":{\"content\":\"x.example.net\"}}"), "True",
		 "Programmed", "All records programmed", "Programmed",
		 "Record successfully applied to PDNS"},
		/* Two spellings of one name in one object. */
		{NULL, SET("A", A("api", "192.0.2.1") "," A("API.example.com.", "192.0.2.2")),
		 "True", "Programmed", "All records programmed", "Programmed",
		 "Record successfully applied to PDNS"},
		/* Another's invalid claim is none. */
		{SET("A", A("www", "no address")), SET("A", A("www", "192.0.2.1")), "True",
		 "Programmed", "All records programmed", "Programmed",
		 "Record successfully applied to PDNS"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct world *world;
		const json_t *first;
		json_t *status;

		if (i) {
			teardown(state);
			setup(state);
		}
		world = *state;
		class_and_zone(world);
		if (cases[i].other)
			put(world, "DNSRecordSet", "other", cases[i].other);
		put(world, "DNSRecordSet", "r", cases[i].spec);
		status = report(world, ROLL_ROW_RECORDSET, "r");
		assert_string_equal(member(status, "Programmed", "status"), cases[i].status);
		assert_string_equal(member(status, "Programmed", "reason"), cases[i].reason);
		assert_says(member(status, "Programmed", "message"), cases[i].message);
		first = json_array_get(roll_json_array(status, "recordSets"), 0);
		assert_int_equal(first != NULL, cases[i].name_reason != NULL);
		if (first) {
			assert_string_equal(member(first, "Programmed", "reason"),
					    cases[i].name_reason);
			assert_says(member(first, "Programmed", "message"), cases[i].name_message);
		}
		json_decref(status);
	}
}

static void a_bad_entry_is_named_by_its_index(void **state)
{
	struct world *world = *state;
	json_t *status;

	class_and_zone(world);
	put(world, "DNSRecordSet", "r",
	    SET("A", A("b", "192.0.2.1") "," A("c", "bad") "," A("a", "192.0.2.1")));
	status = report(world, ROLL_ROW_RECORDSET, "r");
	assert_string_equal(member(status, "Accepted", "status"), "True");
	assert_string_equal(member(status, "Accepted", "message"),
			    "DNSRecordSet accepted for PowerDNS zone");
	assert_non_null(strstr(member(status, "Programmed", "message"),
			       "c: The DNS record was rejected as invalid. Check the record type "
			       "and value. spec.records[1].a.content: "));
	json_decref(status);
}

/* "name=reason" of each, joined by blanks. */
static const char *names_of(const json_t *status, char *out, size_t size)
{
	const json_t *names = roll_json_array(status, "recordSets");

	out[0] = '\0';
	for (size_t i = 0; i < json_array_size(names); i++) {
		const json_t *item = json_array_get(names, i);
		size_t n = strlen(out);

		snprintf(out + n, size - n, "%s%s=%s", i ? " " : "", roll_json_str(item, "name").p,
			 member(item, "Programmed", "reason"));
	}
	return out;
}

static void names_are_sorted_and_distinct_as_they_are_spelled(void **state)
{
	struct world *world = *state;
	json_t *status;
	char got[200];

	class_and_zone(world);
	put(world, "DNSRecordSet", "r",
	    SET("A", A("b", "192.0.2.1") "," A("example.com.", "192.0.2.1") "," A(
			     "b", "192.0.2.2") "," A("@", "192.0.2.3") "," A("B", "192.0.2.3")));
	status = report(world, ROLL_ROW_RECORDSET, "r");
	assert_string_equal(names_of(status, got, sizeof got),
			    "@=Programmed B=Programmed b=Programmed example.com.=Programmed");
	json_decref(status);
}

/* Two spellings of one name: what serves is the other's. */
static void a_bad_spelling_is_not_excused_by_a_good_one(void **state)
{
	struct world *world = *state;
	json_t *status;
	char got[200];

	class_and_zone(world);
	put(world, "DNSRecordSet", "r",
	    SET("A", A("api", "bad") "," A("api.example.com.", "192.0.2.1")));
	status = report(world, ROLL_ROW_RECORDSET, "r");
	assert_string_equal(names_of(status, got, sizeof got),
			    "api=InvalidDNSRecordSet api.example.com.=Programmed");
	json_decref(status);
}

/* Some of its names are another's. */
static void each_name_is_judged_by_itself(void **state)
{
	struct world *world = *state;
	json_t *status;
	char got[200];

	class_and_zone(world);
	put(world, "DNSRecordSet", "one", SET("A", A("b", "192.0.2.1")));
	put(world, "DNSRecordSet", "two", SET("CNAME", CNAME("c")));
	put(world, "DNSRecordSet", "r",
	    SET("A", A("a", "192.0.2.1") "," A("b", "192.0.2.1") "," A("c", "192.0.2.1") "," A(
			     "d", "bad") "," A("e.test.", "192.0.2.1")));
	status = report(world, ROLL_ROW_RECORDSET, "r");
	assert_string_equal(names_of(status, got, sizeof got),
			    "a=Programmed b=NotOwner c=Conflict d=InvalidDNSRecordSet "
			    "e.test.=OutOfZone");
	assert_string_equal(member(status, "Accepted", "status"), "True");
	assert_string_equal(member(status, "Programmed", "reason"), "NotOwner");
	json_decref(status);
}

/* Made in the same second: the smaller name has it. */
static void of_two_of_one_age_the_first_by_name_wins(void **state)
{
	struct world *world = *state;
	json_t *status;

	class_and_zone(world);
	put(world, "DNSRecordSet", "zzz-other", SET("A", A("www", "192.0.2.1")));
	world->age--;
	put(world, "DNSRecordSet", "aaa-owner", SET("A", A("www", "192.0.2.2")));
	status = report(world, ROLL_ROW_RECORDSET, "aaa-owner");
	assert_string_equal(member(status, "Programmed", "status"), "True");
	json_decref(status);
	status = report(world, ROLL_ROW_RECORDSET, "zzz-other");
	assert_string_equal(member(status, "Programmed", "reason"), "NotOwner");
	assert_non_null(strstr(member(status, "Programmed", "message"),
			       "DNSRecordSet ns/aaa-owner, since 2026-01-01T00:00:02Z"));
	json_decref(status);
}

/* A status has its limits; what is not served is what one looks for. */
static void of_too_many_names_those_that_are_not_served_stay(void **state)
{
	static char spec[512 << 10];
	struct world *world = *state;
	json_t *status, *names;
	size_t n, bad = 0;

	class_and_zone(world);
	n = (size_t)snprintf(spec, sizeof spec,
			     "{\"dnsZoneRef\":{\"name\":\"z\"},\"recordType\":\"A\",\"records\":[");
	for (unsigned i = 0; i < 1500; i++)
		n += (size_t)snprintf(spec + n, sizeof spec - n,
				      "%s{\"name\":\"n%04u\",\"a\":{\"content\":\"%s\"}}",
				      i ? "," : "", i, i % 150 == 149 ? "bad" : "192.0.2.1");
	snprintf(spec + n, sizeof spec - n, "]}");
	put(world, "DNSRecordSet", "r", spec);
	status = report(world, ROLL_ROW_RECORDSET, "r");
	names = roll_json_array(status, "recordSets");
	assert_int_equal(json_array_size(names), ROLL_REPORT_NAMES_MAX);
	for (size_t i = 0; i < ROLL_REPORT_NAMES_MAX; i++) {
		const json_t *item = json_array_get(names, i);

		bad += strcmp(member(item, "Programmed", "status"), "False") == 0;
		if (i)
			assert_true(
				roll_str_cmp(roll_json_str(json_array_get(names, i - 1), "name"),
					     roll_json_str(item, "name")) < 0);
	}
	assert_int_equal(bad, 10);
	assert_non_null(strstr(member(status, "Programmed", "message"), "spec.records[149]"));
	json_decref(status);
}

/* What a record set is told that cannot be served because of its zone. */
static void a_record_set_says_what_its_zone_lacks(void **state)
{
	static const struct {
		const char *zone; /* spec of the DNSZone "z" */
		const char *reason, *message;
	} cases[] = {
		{NULL, "Pending", "waiting for DNSZone \"z\""},
		{"{\"domainName\":\"a.test\"}", "Pending", "DNSZone \"z\" has no class yet"},
		{"{\"domainName\":\"a.test\",\"dnsZoneClassName\":\"away\"}", "Pending",
		 "DNSZoneClass \"away\" not found"},
		{"{\"domainName\":\"a.test\",\"dnsZoneClassName\":\"theirs\"}", "Pending",
		 "DNSZoneClass controller \"other\" is not \"ours\""},
		{"{\"domainName\":\"a.test\",\"dnsZoneClassName\":\"bare\"}", "Pending",
		 "DNSZone \"z\" has no nameservers yet"},
		{"{\"domainName\":\"..\",\"dnsZoneClassName\":\"public\"}", "Pending",
		 "DNSZone \"z\" has no usable domainName"},
		{"{\"domainName\":\"taken.test\",\"dnsZoneClassName\":\"public\"}", "DNSZoneInUse",
		 "DNSZone \"z\" is not served, its domain is claimed by another resource: DNSZone "
		 "ns/first, since 2026-01-01T00:00:03Z"},
	};
	char got[200];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct world *world;
		json_t *status;

		if (i) {
			teardown(state);
			setup(state);
		}
		world = *state;
		put(world, "DNSZoneClass", "public",
		    "{\"controllerName\":\"ours\",\"nameServerPolicy\":{\"mode\":\"Static\","
		    "\"static\":{\"servers\":[\"ns1.example.net\"]}}}");
		put(world, "DNSZoneClass", "theirs", "{\"controllerName\":\"other\"}");
		put(world, "DNSZoneClass", "bare", "{\"controllerName\":\"ours\"}");
		put(world, "DNSZone", "first",
		    "{\"domainName\":\"taken.test\",\"dnsZoneClassName\":\"public\"}");
		if (cases[i].zone)
			put(world, "DNSZone", "z", cases[i].zone);
		put(world, "DNSRecordSet", "r", SET("A", A("www", "192.0.2.1")));
		status = report(world, ROLL_ROW_RECORDSET, "r");
		for (size_t k = 0; k < 2; k++) {
			const char *type = k ? "Programmed" : "Accepted";

			assert_string_equal(member(status, type, "status"), "False");
			assert_string_equal(member(status, type, "reason"), cases[i].reason);
			assert_string_equal(member(status, type, "message"), cases[i].message);
		}
		snprintf(got, sizeof got, "www=%s", cases[i].reason);
		assert_string_equal(names_of(status, (char[200]){""}, 200), got);
		json_decref(status);
	}
}

static void a_zone_says_where_it_stands(void **state)
{
	static const struct {
		const char *spec;
		const char *accepted, *programmed, *reason, *message; /* of Accepted */
	} cases[] = {
		{"{\"domainName\":\"a.test\",\"dnsZoneClassName\":\"public\"}", "True", "True",
		 "Accepted", "Nameservers retrieved from downstream"},
		{"{\"domainName\":\"example.com\",\"dnsZoneClassName\":\"public\"}", "False",
		 "False", "DNSZoneInUse",
		 "DNSZone claimed by another resource: DNSZone ns/z, since 2026-01-01T00:00:01Z"},
		{"{\"domainName\":\"b.test\"}", "False", "False", "Pending",
		 "DNSZoneClassName not set"},
		{"{\"domainName\":\"c.test\",\"dnsZoneClassName\":\"away\"}", "False", "False",
		 "Pending", "DNSZoneClass \"away\" not found"},
		{"{\"domainName\":\"d.test\",\"dnsZoneClassName\":\"theirs\"}", "False", "False",
		 "Pending", "DNSZoneClass controller \"other\" is not \"ours\""},
		{"{\"domainName\":\"e.test\",\"dnsZoneClassName\":\"bare\"}", "False", "False",
		 "Pending", "Waiting for downstream nameservers"},
		{"{\"domainName\":\"..\",\"dnsZoneClassName\":\"public\"}", "False", "False",
		 "InvalidDNSZone", "spec.domainName: "},
		{"{\"domainName\":\"f.test\",\"dnsZoneClassName\":\"Bad_Name\"}", "False", "False",
		 "InvalidDNSZone", "spec.dnsZoneClassName: is not the name of an object"},
	};
	struct world *world = *state;

	class_and_zone(world);
	put(world, "DNSZoneClass", "theirs", "{\"controllerName\":\"other\"}");
	put(world, "DNSZoneClass", "bare", "{\"controllerName\":\"ours\"}");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *status;

		put(world, "DNSZone", "other", cases[i].spec);
		status = report(world, ROLL_ROW_ZONE, "other");
		assert_string_equal(member(status, "Accepted", "status"), cases[i].accepted);
		assert_string_equal(member(status, "Programmed", "status"), cases[i].programmed);
		assert_string_equal(member(status, "Accepted", "reason"), cases[i].reason);
		assert_says(member(status, "Accepted", "message"), cases[i].message);
		/* Of one that is not served both say why. */
		if (i)
			assert_true(roll_str_eq(
				roll_report_condition(status, "Accepted", "message"),
				roll_report_condition(status, "Programmed", "message")));
		assert_int_equal(json_integer_value(json_object_get(status, "recordCount")), 7);
		assert_int_equal(json_object_get(status, "nameservers") != NULL, i == 0);
		assert_int_equal(json_object_get(status, "serial") != NULL, i == 0);
		json_decref(status);
	}
}

static void nameservers_are_sorted_and_distinct(void **state)
{
	struct world *world = *state;
	json_t *status, *want, *again;

	class_and_zone(world);
	status = report(world, ROLL_ROW_ZONE, "z");
	want = json_pack("[s, s]", "ns1.example.net", "ns2.example.net");
	assert_true(json_equal(json_object_get(status, "nameservers"), want));
	assert_string_equal(member(status, "Programmed", "message"), "Default records ensured");
	/* Another order is no news. */
	put(world, "DNSZoneClass", "public",
	    "{\"controllerName\":\"ours\",\"nameServerPolicy\":{\"mode\":\"Static\",\"static\":"
	    "{\"servers\":[\"ns1.example.net\",\"ns2.example.net\"]}}}");
	again = report(world, ROLL_ROW_ZONE, "z");
	json_object_del(status, "serial");
	json_object_del(again, "serial");
	assert_true(json_equal(status, again));
	json_decref(again);
	json_decref(want);
	json_decref(status);
}

static uint32_t soa_serial(struct world *world)
{
	const struct roll_zone *zone;
	struct roll_snap *snap;
	struct roll_name apex;
	uint32_t serial;

	assert_int_equal(roll_name_parse(roll_str_c("example.com"), &apex, NULL), ROLL_OK);
	assert_int_equal(roll_snap_begin(roll_writer_view(world->tv.writer), true, &snap, NULL),
			 ROLL_OK);
	assert_int_equal(roll_snap_zone_at(snap, &apex, &zone), ROLL_OK);
	serial = zone->soa_serial;
	roll_snap_end(snap);
	return serial;
}

/* So that replicas that start later answer with the same. */
static void a_served_zone_says_its_serial(void **state)
{
	struct world *world = *state;
	uint32_t serial[2];

	class_and_zone(world);
	for (size_t i = 0; i < 2; i++) {
		json_t *status = report(world, ROLL_ROW_ZONE, "z");

		serial[i] = (uint32_t)json_integer_value(json_object_get(status, "serial"));
		assert_int_equal(serial[i], soa_serial(world));
		json_decref(status);
		put(world, "DNSRecordSet", "r", SET("A", A("www", "192.0.2.1")));
	}
	assert_int_not_equal(serial[0], serial[1]);
}

/* Without nameservers in the class and with a SOA of its own, there is no NS to be had. */
static void a_zone_without_ns_is_not_programmed(void **state)
{
	struct world *world = *state;
	json_t *status;

	put(world, "DNSZoneClass", "bare", "{\"controllerName\":\"ours\"}");
	put(world, "DNSZone", "z",
	    "{\"domainName\":\"example.com\",\"dnsZoneClassName\":\"bare\"}");
	put(world, "DNSRecordSet", "soa",
	    SET("SOA", "{\"name\":\"@\",\"soa\":{\"mname\":\"ns.example.net\",\"rname\":"
		       "\"h.example.net\"}}"));
	status = report(world, ROLL_ROW_ZONE, "z");
	assert_string_equal(member(status, "Accepted", "status"), "True");
	assert_string_equal(member(status, "Programmed", "status"), "False");
	assert_string_equal(member(status, "Programmed", "message"),
			    "Waiting for default records: there is no NS at the apex");
	json_decref(status);
}

static void a_deeper_zone_has_the_name(void **state)
{
	struct world *world = *state;
	json_t *status;

	class_and_zone(world);
	put(world, "DNSZone", "deep",
	    "{\"domainName\":\"sub.example.com\",\"dnsZoneClassName\":\"public\"}");
	put(world, "DNSRecordSet", "r", SET("A", A("x.sub", "192.0.2.1")));
	status = report(world, ROLL_ROW_RECORDSET, "r");
	assert_string_equal(member(status, "Programmed", "reason"), "Conflict");
	assert_non_null(strstr(member(status, "Programmed", "message"),
			       "sub.example.com of DNSZone ns/deep"));
	json_decref(status);
	/* The delegation to it is this zone's to tell. */
	put(world, "DNSRecordSet", "ns",
	    SET("NS", "{\"name\":\"sub\",\"ns\":{\"content\":\"ns1.example.net\"}}"));
	status = report(world, ROLL_ROW_RECORDSET, "ns");
	assert_string_equal(member(status, "Programmed", "status"), "True");
	json_decref(status);
}

/* --- merging --- */

static json_t *parse(const char *text)
{
	json_t *out = NULL;

	assert_int_equal(roll_json_parse(roll_str_c(text), &out, NULL), ROLL_OK);
	return out;
}

#define COND(type, status, rest)                                                                   \
	"{\"type\":\"" type "\",\"status\":\"" status "\",\"reason\":\"R\",\"message\":\"m\"" rest \
	"}"
#define OLD ",\"observedGeneration\":3,\"lastTransitionTime\":\"2020-01-01T00:00:00Z\""
#define NEW ",\"observedGeneration\":3,\"lastTransitionTime\":\"2026-01-01T00:00:00Z\""

static void merging_changes_no_more_than_it_must(void **state)
{
	static const struct {
		const char *wanted, *present, *patch; /* patch NULL: none */
	} cases[] = {
		/* Nothing there yet. */
		{"{\"conditions\":[" COND("P", "True", "") "]}", NULL,
		 "{\"conditions\":[" COND("P", "True", NEW) "]}"},
		/* As it is. */
		{"{\"conditions\":[" COND("P", "True", "") "]}",
		 "{\"conditions\":[" COND("P", "True", OLD) "]}", NULL},
		/* A flip moves the time, and only that of the condition that flips. */
		{"{\"conditions\":[" COND("P", "True", "") "," COND("Q", "True", "") "]}",
		 "{\"conditions\":[" COND("P", "False", OLD) "," COND("Q", "True", OLD) "]}",
		 "{\"conditions\":[" COND("P", "True", NEW) "," COND("Q", "True", OLD) "]}"},
		/* Another generation does not. */
		{"{\"conditions\":[" COND("P", "True", "") "]}",
		 "{\"conditions\":[" COND("P", "True",
					  ",\"observedGeneration\":2,\"lastTransitionTime\":\"2020-"
					  "01-01T00:00:00Z\"") "]}",
		 "{\"conditions\":[" COND("P", "True", OLD) "]}"},
		/* Those of others stay where they are. */
		{"{\"conditions\":[" COND("P", "True", "") "]}",
		 "{\"conditions\":[" COND("X", "True", "") "," COND("P", "False", OLD) "]}",
		 "{\"conditions\":[" COND("X", "True", "") "," COND("P", "True", NEW) "]}"},
		{"{\"conditions\":[" COND("P", "True", "") "]}",
		 "{\"conditions\":[" COND("X", "True", "") "," COND("P", "True", OLD) "]}", NULL},
		/* A time that is none is replaced. */
		{"{\"conditions\":[" COND("P", "True", "") "]}",
		 "{\"conditions\":[" COND("P", "True", ",\"lastTransitionTime\":\"x\"") "]}",
		 "{\"conditions\":[" COND("P", "True", NEW) "]}"},
		/* Names that went are pruned, those that stay keep their time. */
		{"{\"recordSets\":[{\"name\":\"b\",\"conditions\":[" COND("P", "True", "") "]}]}",
		 "{\"recordSets\":[{\"name\":\"a\"},{\"name\":\"b\",\"conditions\":[" COND(
			 "P", "True", OLD) "]}]}",
		 "{\"recordSets\":[{\"name\":\"b\",\"conditions\":[" COND("P", "True", OLD) "]}]}"},
		/* Zones. */
		{"{\"recordCount\":2,\"nameservers\":[\"a\"]}",
		 "{\"recordCount\":2,\"nameservers\":[\"a\"],\"domainRef\":{\"name\":\"d\"}}",
		 NULL},
		{"{\"recordCount\":3,\"nameservers\":[\"a\"]}",
		 "{\"recordCount\":2,\"nameservers\":[\"a\"]}", "{\"recordCount\":3}"},
		{"{\"recordCount\":2}", "{\"recordCount\":2,\"nameservers\":[\"a\"]}",
		 "{\"nameservers\":null}"},
		{"{\"recordCount\":2}", "{\"recordCount\":2}", NULL},
		{"{\"recordCount\":2,\"serial\":5}", "{\"recordCount\":2,\"serial\":4}",
		 "{\"serial\":5}"},
		{"{\"recordCount\":2,\"serial\":5}", "{\"recordCount\":2,\"serial\":5}", NULL},
		/* No longer served. */
		{"{\"recordCount\":2}", "{\"recordCount\":2,\"serial\":5}", "{\"serial\":null}"},
		/* A status that is nothing like one. */
		{"{\"recordCount\":2}", "[]", "{\"recordCount\":2}"},
		{"{\"conditions\":[" COND("P", "True", "") "]}", "{\"conditions\":{\"a\":1}}",
		 "{\"conditions\":[" COND("P", "True", NEW) "]}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *wanted = parse(cases[i].wanted), *patch = NULL, *want;
		json_t *present = cases[i].present ? parse(cases[i].present) : NULL;

		/* What one makes needs all members; a test only those that it is about. */
		if (!json_object_get(wanted, "conditions"))
			json_object_set_new(wanted, "conditions", json_array());
		if (json_is_object(present) && !json_object_get(present, "conditions"))
			json_object_set_new(present, "conditions", json_array());
		assert_int_equal(roll_report_merge(wanted, present, 3, 1767225600, &patch),
				 ROLL_OK);
		if (patch && json_array_size(json_object_get(patch, "conditions")) == 0)
			json_object_del(patch, "conditions");
		if (cases[i].patch) {
			want = parse(cases[i].patch);
			assert_true(json_equal(patch, want));
			json_decref(want);
		} else {
			assert_null(patch);
		}
		json_decref(patch);
		json_decref(present);
		json_decref(wanted);
	}
}

/* "STATUS/REASON" of Programmed; "": there is no such condition. */
static json_t *programmed(const char *text)
{
	struct roll_str reason = roll_str_c(text), status = roll_str_cut(&reason, '/');

	if (!text[0])
		return json_pack("{s:[]}", "conditions");
	return json_pack("{s:[{s:s,s:s%,s:s%}]}", "conditions", "type", "Programmed", "status",
			 status.p, status.n, "reason", reason.p, reason.n);
}

static void news_is_what_changes_between_served_and_not(void **state)
{
	static const struct {
		const char *before, *now;
		const char *recordset, *zone;
	} cases[] = {
		{"", "True/Programmed", "RecordSetProgrammed", "ZoneProgrammed"},
		{"Unknown/Pending", "True/Programmed", "RecordSetProgrammed", "ZoneProgrammed"},
		{"False/Pending", "True/Programmed", "RecordSetProgrammed", "ZoneProgrammed"},
		{"False/NotOwner", "True/Programmed", "RecordSetProgrammed", "ZoneProgrammed"},
		{"True/Programmed", "False/Pending", "RecordSetProgrammingFailed",
		 "ZoneProgrammingFailed"},
		{"True/Programmed", "False/InvalidDNSRecordSet", "RecordSetProgrammingFailed",
		 "ZoneProgrammingFailed"},
		{"True/Programmed", "False/NotOwner", "Conflict", "Conflict"},
		{"True/Programmed", "False/DNSZoneInUse", "DNSZoneInUse", "DNSZoneInUse"},
		/* One that never worked has an event as well. */
		{"", "False/InvalidDNSRecordSet", "RecordSetProgrammingFailed",
		 "ZoneProgrammingFailed"},
		{"Unknown/Pending", "False/Conflict", "Conflict", "Conflict"},
		{"False/Pending", "False/DNSZoneInUse", "DNSZoneInUse", "DNSZoneInUse"},
		{"False/NotOwner", "False/OutOfZone", "RecordSetProgrammingFailed",
		 "ZoneProgrammingFailed"},
		/* Waiting is no news, nor is what is said again, or said no more. */
		{"", "False/Pending", NULL, NULL},
		{"Unknown/Pending", "False/Pending", NULL, NULL},
		{"False/NotOwner", "False/Pending", NULL, NULL},
		{"False/NotOwner", "False/NotOwner", NULL, NULL},
		{"False/Pending", "False/Pending", NULL, NULL},
		{"True/Programmed", "True/Programmed", NULL, NULL},
		{"True/Synced", "True/Programmed", NULL, NULL},
		{"True/Programmed", "", NULL, NULL},
		{"False/NotOwner", "", NULL, NULL},
		{"", "", NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *before = programmed(cases[i].before), *now = programmed(cases[i].now);
		const char *recordset = roll_report_event(ROLL_KIND_RECORDSET, before, now);
		const char *zone = roll_report_event(ROLL_KIND_ZONE, before, now);

		assert_string_equal(recordset ? recordset : "",
				    cases[i].recordset ? cases[i].recordset : "");
		assert_string_equal(zone ? zone : "", cases[i].zone ? cases[i].zone : "");
		json_decref(before);
		json_decref(now);
	}
}

static json_t *said(const char *message)
{
	char text[256];

	snprintf(text, sizeof text,
		 "{\"conditions\":[{\"type\":\"Accepted\",\"status\":\"False\",\"reason\":"
		 "\"Pending\","
		 "\"message\":\"%s\"}]}",
		 message);
	return parse(text);
}

/* Its class is of another controller, so it is that one's to report about. */
static void a_foreign_zone_is_left_to_its_controller(void **state)
{
	struct world *world = *state;
	json_t *wanted, *present;

	put(world, "DNSZoneClass", "theirs", "{\"controllerName\":\"other\"}");
	put(world, "DNSZone", "z",
	    "{\"domainName\":\"example.com\",\"dnsZoneClassName\":\"theirs\"}");
	put(world, "DNSRecordSet", "r", SET("A", A("www", "192.0.2.1")));
	wanted = report(world, ROLL_ROW_RECORDSET, "r");
	assert_string_equal(member(wanted, "Accepted", "message"),
			    "DNSZoneClass controller \"other\" is not \"ours\"");
	assert_true(roll_report_is_foreign(wanted));
	assert_true(roll_report_may_overwrite(wanted, NULL));
	assert_true(roll_report_may_overwrite(wanted, wanted));
	present = parse("{\"conditions\":[" COND("Accepted", "Unknown", "") "]}");
	assert_true(roll_report_may_overwrite(wanted, present));
	json_decref(present);
	present = parse("{\"conditions\":[" COND("Accepted", "True", "") "]}");
	assert_false(roll_report_may_overwrite(wanted, present));
	json_decref(present);
	/* Two like us, of other names, would undo each other's words for ever. */
	present = said("DNSZoneClass controller \\\"other\\\" is not \\\"third\\\"");
	assert_false(roll_report_may_overwrite(wanted, present));
	json_decref(present);
	/* The class was another one's when that was said. */
	present = said("DNSZoneClass controller \\\"before\\\" is not \\\"third\\\"");
	assert_true(roll_report_may_overwrite(wanted, present));
	json_decref(present);
	json_decref(wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(every_reason_has_its_message),
		TEST(a_bad_entry_is_named_by_its_index),
		TEST(names_are_sorted_and_distinct_as_they_are_spelled),
		TEST(a_bad_spelling_is_not_excused_by_a_good_one),
		TEST(each_name_is_judged_by_itself),
		TEST(of_two_of_one_age_the_first_by_name_wins),
		TEST(of_too_many_names_those_that_are_not_served_stay),
		TEST(a_record_set_says_what_its_zone_lacks),
		TEST(a_zone_says_where_it_stands),
		TEST(nameservers_are_sorted_and_distinct),
		TEST(a_served_zone_says_its_serial),
		TEST(a_zone_without_ns_is_not_programmed),
		TEST(a_deeper_zone_has_the_name),
		TEST(merging_changes_no_more_than_it_must),
		TEST(a_foreign_zone_is_left_to_its_controller),
		TEST(news_is_what_changes_between_served_and_not),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
