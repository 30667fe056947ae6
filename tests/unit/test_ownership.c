/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/json.h"
#include "model/translate.h"

/*
 * Who serves a name, from objects to verdicts: the rows of the conformance table about ownership
 * (W1 to W7, W11) and what may share a name (4.5), without a view. Each case is a set of objects of
 * one zone and what every claim at one name comes to. Each is decided for every order in which
 * the objects may have come: the result must not depend on it.
 */

#define OBJECTS_MAX 4
#define ZONE "example.com"

struct object {
	const char *name; /* NULL ends the list */
	int created;	  /* seconds; -1: no creationTimestamp */
	const char *type;
	const char *records; /* name and content pairs: "www 192.0.2.1; www 192.0.2.2" */
	const char *uid;
	bool is_terminating;
};

struct scene {
	const char *title;
	const char *at; /* the name in question */
	struct object objects[OBJECTS_MAX];
	/* Served claims by age, then the others by age: "a Served A 1; b NotOwner by a". */
	const char *want;
};

static const struct scene scenes[] = {
	{"W1: the oldest serves the whole RRset, nothing is merged",
	 "www",
	 {{"young", 2, "A", "www 192.0.2.2", "u2", false},
	  {"old", 1, "A", "www 192.0.2.1; www 192.0.2.9", "u1", false}},
	 "old Served A 2; young NotOwner by old"},
	{"W1: of the same age, the smaller name",
	 "www",
	 {{"zzz-other", 1, "A", "www 192.0.2.2", "u2", false},
	  {"aaa-owner", 1, "A", "www 192.0.2.1", "u1", false}},
	 "aaa-owner Served A 1; zzz-other NotOwner by aaa-owner"},
	{"W1: of the same age and name, the smaller UID",
	 "www",
	 {{"twin", 1, "A", "www 192.0.2.2; www 192.0.2.3", "u2", false},
	  {"twin", 1, "A", "www 192.0.2.1", "u1", false}},
	 "twin Served A 1; twin NotOwner by twin"},
	{"W1: without creationTimestamp an object is the youngest",
	 "www",
	 {{"aaa-manifest", -1, "A", "www 192.0.2.2", "", false},
	  {"zzz", 1000, "A", "www 192.0.2.1", "u1", false}},
	 "zzz Served A 1; aaa-manifest NotOwner by zzz"},
	{"W2: every loser learns who serves",
	 "www",
	 {{"c", 3, "A", "www 192.0.2.3", "u3", false},
	  {"b", 2, "A", "www 192.0.2.2", "u2", false},
	  {"a", 1, "A", "www 192.0.2.1", "u1", false}},
	 "a Served A 1; b NotOwner by a; c NotOwner by a"},
	{"W3: when the owner is gone the next oldest serves",
	 "www",
	 {{"c", 3, "A", "www 192.0.2.3", "u3", false}, {"b", 2, "A", "www 192.0.2.2", "u2", false}},
	 "b Served A 1; c NotOwner by b"},
	{"W4: a respelled name is the same claim",
	 "api",
	 {{"one", 1, "A", "api.example.com. 192.0.2.1", "u1", false},
	  {"two", 2, "A", "api 192.0.2.2", "u2", false}},
	 "one Served A 1; two NotOwner by one"},
	{"W5: spellings in one object merge",
	 "api",
	 {{"one", 1, "A", "api 192.0.2.1; api.example.com. 192.0.2.2; API 192.0.2.3", "u1", false}},
	 "one Served A 3"},
	{"W5: spellings in two objects are one name with one owner",
	 "api",
	 {{"one", 2, "A", "api 192.0.2.1", "u1", false},
	  {"two", 1, "A", "api.example.com. 192.0.2.2", "u2", false}},
	 "two Served A 1; one NotOwner by two"},
	{"W5: the apex has three spellings",
	 "@",
	 {{"one", 1, "A", "@ 192.0.2.1", "u1", false},
	  {"two", 2, "A", "example.com. 192.0.2.2", "u2", false}},
	 "one Served A 1; two NotOwner by one"},
	{"W6: case makes no other name",
	 "api",
	 {{"one", 1, "A", "API 192.0.2.1", "u1", false},
	  {"two", 2, "A", "api 192.0.2.2", "u2", false}},
	 "one Served A 1; two NotOwner by one"},
	{"W7: an object that yields nothing claims nothing",
	 "www",
	 {{"bad", 1, "A", "www nonsense; www .", "u1", false},
	  {"good", 2, "A", "www 192.0.2.2", "u2", false}},
	 "good Served A 1"},
	{"W7: nor does it where only other names are good",
	 "www",
	 {{"bad", 1, "A", "www nonsense; other 192.0.2.1", "u1", false},
	  {"good", 2, "A", "www 192.0.2.2", "u2", false}},
	 "good Served A 1"},
	{"W11: a terminating object claims nothing",
	 "www",
	 {{"going", 1, "A", "www 192.0.2.1", "u1", true},
	  {"next", 2, "A", "www 192.0.2.2", "u2", false}},
	 "next Served A 1"},
	{"out of zone claims nothing",
	 "www",
	 {{"out", 1, "A", "www.example.org. 192.0.2.1", "u1", false},
	  {"in", 2, "A", "www 192.0.2.2", "u2", false}},
	 "in Served A 1"},
	{"different types share a name",
	 "www",
	 {{"a", 1, "A", "www 192.0.2.1", "u1", false},
	  {"b", 2, "AAAA", "www 2001:db8::1", "u2", false},
	  {"c", 3, "TXT", "www x", "u3", false}},
	 "a Served A 1; b Served AAAA 1; c Served TXT 1"},
	{"4.5: an older CNAME bars all others",
	 "www",
	 {{"alias", 1, "CNAME", "www t.example.net.", "u1", false},
	  {"a", 2, "A", "www 192.0.2.1", "u2", false},
	  {"txt", 3, "TXT", "www x", "u3", false}},
	 "alias Served CNAME 1; a Conflict by alias; txt Conflict by alias"},
	{"4.5: a younger CNAME is barred, by the oldest",
	 "www",
	 {{"alias", 3, "CNAME", "www t.example.net.", "u1", false},
	  {"a", 1, "A", "www 192.0.2.1", "u2", false},
	  {"txt", 2, "TXT", "www x", "u3", false}},
	 "a Served A 1; txt Served TXT 1; alias Conflict by a"},
	{"4.5: ALIAS stands beside anything but CNAME",
	 "www",
	 {{"alias", 1, "ALIAS", "www t.example.net.", "u1", false},
	  {"a", 2, "A", "www 192.0.2.1", "u2", false},
	  {"mx", 3, "TXT", "www x", "u3", false},
	  {"cname", 4, "CNAME", "www t.example.net.", "u4", false}},
	 "alias Served ALIAS 1; a Served A 1; mx Served TXT 1; cname Conflict by alias"},
	{"4.5: a CNAME bars an ALIAS, too",
	 "www",
	 {{"cname", 1, "CNAME", "www t.example.net.", "u1", false},
	  {"alias", 2, "ALIAS", "www t.example.net.", "u2", false}},
	 "cname Served CNAME 1; alias Conflict by cname"},
	{"4.5: a barred claim bars nobody",
	 "www",
	 {{"a", 1, "A", "www 192.0.2.1", "u1", false},
	  {"cname", 2, "CNAME", "www t.example.net.", "u2", false},
	  {"txt", 3, "TXT", "www x", "u3", false},
	  {"a2", 4, "A", "www 192.0.2.4", "u4", false}},
	 "a Served A 1; txt Served TXT 1; cname Conflict by a; a2 NotOwner by a"},
	{"4.5: of two CNAMEs the older",
	 "www",
	 {{"two", 2, "CNAME", "www b.example.net.", "u2", false},
	  {"one", 1, "CNAME", "www a.example.net.", "u1", false}},
	 "one Served CNAME 1; two NotOwner by one"},
	{"4.5: a CNAME at the apex never serves: the zone has SOA and NS there",
	 "@",
	 {{"cname", 1, "CNAME", "@ t.example.net.", "u1", false}},
	 "cname Conflict by zone"},
	{"4.5: it bars nobody there, even if it is the oldest",
	 "@",
	 {{"cname", 1, "CNAME", "@ t.example.net.", "u1", false},
	  {"a", 2, "A", "@ 192.0.2.1", "u2", false}},
	 "a Served A 1; cname Conflict by zone"},
	{"4.5: ALIAS at the apex serves, beside an A",
	 "@",
	 {{"alias", 1, "ALIAS", "@ t.example.net.", "u1", false},
	  {"a", 2, "A", "@ 192.0.2.1", "u2", false}},
	 "alias Served ALIAS 1; a Served A 1"},
	{"W3: when a CNAME is gone, those it barred serve",
	 "www",
	 {{"a", 2, "A", "www 192.0.2.1", "u2", false}, {"txt", 3, "TXT", "www x", "u3", false}},
	 "a Served A 1; txt Served TXT 1"},
	{"a wildcard and a name that it covers are two names",
	 "*",
	 {{"wild", 2, "A", "* 192.0.2.1", "u1", false},
	  {"name", 1, "A", "www 192.0.2.2", "u2", false}},
	 "wild Served A 1"},
};

static json_t *records_of(const struct object *object, const struct roll_type_info *type)
{
	struct roll_str rest = roll_str_c(object->records), one, name;
	json_t *records = json_array();

	while (rest.n) {
		one = roll_str_trim(roll_str_cut(&rest, ';'));
		name = roll_str_cut(&one, ' ');
		json_array_append_new(records, json_pack("{s:s%,s:{s:s%}}", "name", name.p, name.n,
							 type->field, "content", one.p, one.n));
	}
	return records;
}

static json_t *json_of(const struct object *object)
{
	const struct roll_type_info *type = roll_type_find_name(roll_str_c(object->type));
	json_t *metadata = json_pack("{s:s,s:s,s:s}", "name", object->name, "namespace", "ns",
				     "uid", object->uid);
	char when[ROLL_TIME_SIZE];

	if (object->created >= 0)
		json_object_set_new(metadata, "creationTimestamp",
				    json_string(roll_time_print(object->created, when)));
	if (object->is_terminating)
		json_object_set_new(metadata, "deletionTimestamp",
				    json_string("2026-12-02T00:00:00Z"));
	return json_pack("{s:s,s:s,s:o,s:{s:{s:s},s:s,s:o}}", "apiVersion",
			 ROLL_API_GROUP "/" ROLL_API_VERSION, "kind", "DNSRecordSet", "metadata",
			 metadata, "spec", "dnsZoneRef", "name", "zone", "recordType", object->type,
			 "records", records_of(object, type));
}

/* The object's claim at a name, as whoever builds a view makes it. */
static bool claim_of(const json_t *json, const struct roll_name *at, const struct roll_name *zone,
		     struct roll_arena *arena, struct roll_claim *out)
{
	struct roll_recordset_spec set;
	struct roll_object object;

	assert_int_equal(roll_object_decode(json, &object, NULL), ROLL_OK);
	if (object.is_terminating)
		return false;
	assert_int_equal(roll_translate_recordset(object.spec, zone, arena, &set, NULL), ROLL_OK);
	for (size_t i = 0; i < set.owned_count; i++) {
		if (!roll_name_eq(&set.owned[i].owner, at))
			continue;
		*out = (struct roll_claim){.object = object.name,
					   .uid = object.uid,
					   .created_s = object.created_s,
					   .rrset = set.owned[i].rrset};
		return true;
	}
	return false;
}

static void print_claims(const struct roll_claim *claims, size_t count, struct roll_buf *out)
{
	for (size_t i = 0; i < count; i++) {
		roll_buf_add_c(out, i ? "; " : "");
		roll_buf_add_str(out, claims[i].object);
		roll_buf_printf(out, " %s ", roll_verdict_text(claims[i].verdict));
		if (claims[i].verdict == ROLL_VERDICT_SERVED)
			roll_buf_printf(out, "%s %u", roll_type_find(claims[i].rrset.type)->name,
					(unsigned)claims[i].rrset.count);
		else if (claims[i].by == ROLL_BY_ZONE)
			roll_buf_add_c(out, "by zone");
		else
			roll_buf_printf(out, "by " ROLL_STR_FMT,
					ROLL_STR_ARG(claims[claims[i].by].object));
	}
}

static void decide(const struct scene *scene, const size_t *order, size_t count,
		   struct roll_buf *out)
{
	struct roll_claim claims[OBJECTS_MAX];
	json_t *objects[OBJECTS_MAX];
	struct roll_name zone, at;
	struct roll_arena arena;
	char text[512];
	size_t claim_count = 0;
	bool is_apex = strcmp(scene->at, "@") == 0;

	snprintf(text, sizeof text, "%s%s%s", is_apex ? "" : scene->at, is_apex ? "" : ".", ZONE);
	assert_int_equal(roll_name_parse(roll_str_c(ZONE), &zone, NULL), ROLL_OK);
	assert_int_equal(roll_name_parse(roll_str_c(text), &at, NULL), ROLL_OK);
	roll_arena_init(&arena, 1u << 20);
	for (size_t i = 0; i < count; i++) {
		objects[i] = json_of(&scene->objects[order[i]]);
		assert_non_null(objects[i]);
		claim_count += claim_of(objects[i], &at, &zone, &arena, &claims[claim_count]);
	}
	roll_claims_decide(claims, claim_count, is_apex);
	print_claims(claims, claim_count, out);
	for (size_t i = 0; i < count; i++)
		json_decref(objects[i]);
	roll_arena_fini(&arena);
}

/* The next permutation in lexical order; false after the last. */
static bool permute(size_t *order, size_t count)
{
	size_t i = count - 1, j = count - 1, swap;

	while (i > 0 && order[i - 1] > order[i])
		i--;
	if (i == 0)
		return false;
	while (order[j] < order[i - 1])
		j--;
	swap = order[j];
	order[j] = order[i - 1];
	order[i - 1] = swap;
	for (j = count - 1; i < j; i++, j--) {
		swap = order[i];
		order[i] = order[j];
		order[j] = swap;
	}
	return true;
}

static void the_oldest_claim_serves_in_whatever_order_they_come(void **state)
{
	const struct scene *scene = *state;
	size_t order[OBJECTS_MAX] = {0, 1, 2, 3}, count = 0;
	struct roll_buf got;

	while (count < OBJECTS_MAX && scene->objects[count].name)
		count++;
	do {
		roll_buf_init(&got, 4096);
		decide(scene, order, count, &got);
		assert_string_equal(got.p, scene->want);
		roll_buf_fini(&got);
	} while (permute(order, count));
}

int main(void)
{
	struct CMUnitTest tests[sizeof scenes / sizeof *scenes];

	for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
		tests[i] = (struct CMUnitTest){scenes[i].title,
					       the_oldest_claim_serves_in_whatever_order_they_come,
					       NULL, NULL, (void *)(uintptr_t)&scenes[i]};
	return _cmocka_run_group_tests("ownership", tests, sizeof tests / sizeof *tests, NULL,
				       NULL);
}
