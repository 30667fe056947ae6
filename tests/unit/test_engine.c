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
#include "tests/lib/engine_world.h"
#include "tests/lib/quiet.h"

/* --- tests --- */

static void complete_only_when_every_kind_was_listed(void **state)
{
	struct fixture f;

	(void)state;
	start_engine(&f, true);
	fill_view(&f, 3);
	assert_int_equal(served(&f, "n2"), 2);
	assert_int_equal(f.swaps, 1);
	restart_engine(&f);
	assert_true(engine_counts(&f).is_complete);
	assert_int_equal(served(&f, "n2"), 2);
	stop_engine(&f);
}

static void assert_position(struct fixture *f, const char *expected)
{
	struct roll_buf position;

	roll_buf_init(&position, 64);
	assert_int_equal(roll_engine_position(f->engine, roll_str_c("dnsrecordsets"), &position),
			 ROLL_OK);
	assert_true(roll_str_eq_c(roll_buf_str(&position), expected));
	roll_buf_fini(&position);
}

static void events_of_a_batch_are_one_commit_with_the_position(void **state)
{
	struct fixture f;
	uint64_t before;

	(void)state;
	start_engine(&f, true);
	fill_view(&f, 3);
	before = generation(&f);
	begin_events(&f);
	event_put(&f, set_object("d", "new", 20, 77));
	event_absent(&f, set_object("d", "n0", 21, 0), 21);
	event_put(&f, set_object("d", "n1", 22, 88));
	assert_int_equal(end_events(&f, "22"), ROLL_OK);
	assert_int_equal(generation(&f), before + 1);
	assert_int_equal(served(&f, "new"), 77);
	assert_int_equal(served(&f, "n0"), -1);
	assert_int_equal(served(&f, "n1"), 88);
	restart_engine(&f);
	assert_position(&f, "22");
	stop_engine(&f);
}

static void same_spec_again_commits_nothing_and_the_position_later(void **state)
{
	struct fixture f;
	uint64_t before;

	(void)state;
	start_engine(&f, true);
	fill_view(&f, 3);
	before = generation(&f);
	begin_events(&f);
	event_put(&f, set_object("d", "n1", 30, 1));
	assert_int_equal(end_events(&f, "30"), ROLL_OK);
	begin_events(&f);
	assert_int_equal(end_events(&f, "35"), ROLL_OK); /* a bookmark */
	assert_int_equal(generation(&f), before);
	assert_int_equal(served(&f, "n1"), 1);
	assert_position(&f, "35");
	/* Until it is stored one begins from the one before, and is told again. */
	restart_engine(&f);
	assert_position(&f, "10");
	begin_events(&f);
	assert_int_equal(end_events(&f, "36"), ROLL_OK);
	f.tv.wall_ms += 60000;
	f.sink->confirmed(f.sink->ctx);
	assert_int_equal(generation(&f), before + 1);
	restart_engine(&f);
	assert_position(&f, "36");
	/* So is it with the next change, and what was older is not brought back. */
	begin_events(&f);
	assert_int_equal(end_events(&f, "37"), ROLL_OK);
	begin_events(&f);
	event_put(&f, set_object("d", "n1", 40, 2));
	assert_int_equal(end_events(&f, "40"), ROLL_OK);
	restart_engine(&f);
	assert_position(&f, "40");
	stop_engine(&f);
}

static void every_removal_has_its_evidence(void **state)
{
	struct fixture f;
	char evidence[256];
	json_t *gone;
	unsigned i;
	char name[16];

	(void)state;
	start_engine(&f, true);
	fill_view(&f, 5);
	begin_events(&f);
	event_absent(&f, set_object("d", "n0", 11, 0), 11);
	assert_int_equal(end_events(&f, "11"), ROLL_OK);
	assert_string_equal(last_evidence(&f, evidence), "event DELETED");
	begin_events(&f);
	gone = set_object("d", "n1", 12, 1);
	json_object_set_new(json_object_get(gone, "metadata"), "deletionTimestamp",
			    json_string("2026-01-01T00:00:00Z"));
	event_put(&f, gone);
	assert_int_equal(end_events(&f, "12"), ROLL_OK);
	assert_string_equal(last_evidence(&f, evidence), "deletionTimestamp");
	assert_int_equal(served(&f, "n1"), -1);
	f.is_repeat = true;
	begin_list(&f, ROLL_KIND_RECORDSET, "");
	for (i = 3; i < 5; i++) {
		snprintf(name, sizeof name, "n%u", i);
		list_put(&f, set_object("d", name, 3, i));
	}
	assert_int_equal(end_list(&f, 13), ROLL_OK);
	assert_string_equal(last_evidence(&f, evidence), "list at revision 13");
	assert_int_equal(served(&f, "n2"), -1);
	assert_int_equal(served(&f, "n3"), 3);
	assert_int_equal(engine_counts(&f).removed_by_list, 1);
	assert_int_equal(engine_counts(&f).healed, 1);
	stop_engine(&f);
}

static void list_that_was_aborted_changes_nothing(void **state)
{
	struct fixture f;
	unsigned i;

	(void)state;
	start_engine(&f, true);
	fill_view(&f, 5);
	begin_list(&f, ROLL_KIND_RECORDSET, "");
	for (i = 0; i < 3000; i++) {
		char name[16];

		snprintf(name, sizeof name, "m%u", i);
		list_put(&f, set_object("d", name, 11, i % 250));
	}
	f.sink->list_abort(f.sink->ctx);
	assert_int_equal(served(&f, "m1"), -1);
	assert_int_equal(served(&f, "n1"), 1);
	/* What was staged is of no use to the next list. */
	begin_list(&f, ROLL_KIND_RECORDSET, "");
	for (i = 0; i < 4; i++) {
		char name[16];

		snprintf(name, sizeof name, "n%u", i);
		list_put(&f, set_object("d", name, 3, i));
	}
	assert_int_equal(end_list(&f, 12), ROLL_OK);
	assert_int_equal(served(&f, "m1"), -1);
	assert_int_equal(served(&f, "n4"), -1);
	stop_engine(&f);
}

static void mass_removal_waits_for_a_second_list(void **state)
{
	struct fixture f;
	int turn;

	(void)state;
	start_engine(&f, true);
	fill_view(&f, 20);
	for (turn = 0; turn < 2; turn++) {
		begin_list(&f, ROLL_KIND_RECORDSET, "");
		list_put(&f, set_object("d", "n1", 3, 1));
		assert_int_equal(end_list(&f, 11), turn ? ROLL_OK : ROLL_EAGAIN);
		assert_int_equal(served(&f, "n2"), turn ? -1 : 2);
		/* Another kind in between is not a second look. */
		if (!turn) {
			begin_list(&f, ROLL_KIND_CLASS, "");
			list_put(&f, class_object());
			assert_int_equal(end_list(&f, 11), ROLL_OK);
		}
	}
	assert_int_equal(engine_counts(&f).held, 1);
	stop_engine(&f);
}

static void every_zone_gone_waits_for_a_second_list(void **state)
{
	struct fixture f;

	(void)state;
	start_engine(&f, true);
	fill_view(&f, 3);
	begin_list(&f, ROLL_KIND_ZONE, "");
	assert_int_equal(end_list(&f, 11), ROLL_EAGAIN);
	assert_int_equal(served(&f, "n2"), 2);
	begin_list(&f, ROLL_KIND_ZONE, "");
	assert_int_equal(end_list(&f, 12), ROLL_OK);
	assert_int_equal(served(&f, "n2"), -1);
	/* And when it is back, so are its record sets. */
	begin_events(&f);
	event_put(&f, zone_object(13));
	assert_int_equal(end_events(&f, "13"), ROLL_OK);
	assert_int_equal(served(&f, "n2"), 2);
	stop_engine(&f);
}

static void brake_holds_until_approved(void **state)
{
	struct fixture f;
	int turn;

	(void)state;
	start_engine(&f, true);
	f.guard.brake_percent = 10;
	restart_engine(&f);
	fill_view(&f, 5);
	for (turn = 0; turn < 4; turn++) {
		f.is_approved = turn == 3;
		begin_list(&f, ROLL_KIND_RECORDSET, "");
		list_put(&f, set_object("d", "n1", 3, 1));
		list_put(&f, set_object("d", "n2", 3, 2));
		list_put(&f, set_object("d", "n3", 3, 3));
		assert_int_equal(end_list(&f, 11), f.is_approved ? ROLL_OK : ROLL_EAGAIN);
		assert_int_equal(served(&f, "n0"), f.is_approved ? -1 : 0);
	}
	stop_engine(&f);
}

static void older_list_never_counts(void **state)
{
	struct fixture f;

	(void)state;
	start_engine(&f, true);
	fill_view(&f, 3);
	begin_events(&f);
	event_put(&f, set_object("d", "new", 20, 77));
	assert_int_equal(end_events(&f, "20"), ROLL_OK);
	restart_engine(&f);
	begin_list(&f, ROLL_KIND_RECORDSET, "");
	assert_int_equal(end_list(&f, 19), ROLL_ESTALE);
	assert_int_equal(served(&f, "new"), 77);
	assert_int_equal(served(&f, "n1"), 1);
	stop_engine(&f);
}

/* Both into a new view and into one that is there. */
static void events_beside_a_list_are_newer(void **state)
{
	struct fixture f;
	int turn;

	(void)state;
	start_engine(&f, true);
	for (turn = 0; turn < 2; turn++) {
		unsigned at = turn ? 100 : 10;

		if (!turn) {
			begin_list(&f, ROLL_KIND_CLASS, "");
			list_put(&f, class_object());
			assert_int_equal(end_list(&f, at), ROLL_OK);
			begin_list(&f, ROLL_KIND_ZONE, "");
			list_put(&f, zone_object(2));
			assert_int_equal(end_list(&f, at), ROLL_OK);
		}
		begin_list(&f, ROLL_KIND_RECORDSET, "");
		list_put(&f, set_object("d", "early", at, 1));
		begin_events(&f);
		event_put(&f, set_object("d", "early", at + 5, 2));
		event_put(&f, set_object("d", "late", at + 6, 4));
		event_put(&f, set_object("d", "other", at + 7, 5));
		event_absent(&f, set_object("d", "gone", at + 8, 6), at + 8);
		assert_int_equal(end_events(&f, turn ? "108" : "18"), ROLL_OK);
		list_put(&f, set_object("d", "late", at, 3));
		list_put(&f, set_object("d", "gone", at, 6));
		assert_int_equal(end_list(&f, at + 1), ROLL_OK);
		assert_int_equal(served(&f, "early"), 2);
		assert_int_equal(served(&f, "late"), 4);
		assert_int_equal(served(&f, "other"), 5);
		assert_int_equal(served(&f, "gone"), -1);
	}
	stop_engine(&f);
}

static void list_of_one_namespace_leaves_others_alone(void **state)
{
	struct fixture f;

	(void)state;
	start_engine(&f, true);
	fill_view(&f, 3);
	begin_events(&f);
	event_put(&f, set_object("other", "x", 11, 1));
	event_put(&f, set_object("other", "y", 12, 1));
	assert_int_equal(end_events(&f, "12"), ROLL_OK);
	begin_list(&f, ROLL_KIND_RECORDSET, "other");
	list_put(&f, set_object("other", "x", 11, 1));
	assert_int_equal(end_list(&f, 13), ROLL_OK);
	assert_int_equal(served(&f, "n1"), 1);
	assert_int_equal(engine_counts(&f).objects[ROLL_KIND_RECORDSET], 4);
	stop_engine(&f);
}

static void complete_when_every_namespace_was_listed(void **state)
{
	static const struct {
		int kind;
		const char *ns;
	} lists[] = {
		{ROLL_KIND_CLASS, ""},	    {ROLL_KIND_ZONE, "a"},	{ROLL_KIND_ZONE, "b"},
		{ROLL_KIND_RECORDSET, "a"}, {ROLL_KIND_RECORDSET, "b"},
	};
	struct fixture f;
	size_t i;

	(void)state;
	start_engine(&f, true);
	f.namespace_count = 2;
	restart_engine(&f);
	for (i = 0; i < sizeof lists / sizeof *lists; i++) {
		assert_false(engine_counts(&f).is_complete);
		begin_list(&f, lists[i].kind, lists[i].ns);
		assert_int_equal(end_list(&f, 10), ROLL_OK);
	}
	assert_true(engine_counts(&f).is_complete);
	stop_engine(&f);
}

static void another_source_is_refused(void **state)
{
	struct roll_err err = {0};
	struct fixture f;

	(void)state;
	start_engine(&f, true);
	assert_int_equal(roll_engine_identify(f.engine, roll_str_c(""), NULL), ROLL_OK);
	assert_int_equal(roll_engine_identify(f.engine, roll_str_c("uid-1"), NULL), ROLL_OK);
	fill_view(&f, 1);
	assert_int_equal(roll_engine_identify(f.engine, roll_str_c("uid-2"), &err), ROLL_EDENIED);
	restart_engine(&f);
	assert_int_equal(roll_engine_identify(f.engine, roll_str_c("uid-2"), &err), ROLL_EDENIED);
	assert_int_equal(roll_engine_identify(f.engine, roll_str_c("uid-1"), &err), ROLL_OK);
	close_engine(&f);
	f.is_cluster = false;
	assert_int_equal(open_engine(&f, &err), ROLL_EDENIED);
	assert_non_null(strstr(err.text, "a cluster"));
	stop_engine(&f);
}

static void zone_with_many_waiting_record_sets_appears_at_once(void **state)
{
	struct fixture f;
	unsigned i;

	(void)state;
	start_engine(&f, true);
	fill_view(&f, 1);
	begin_events(&f);
	event_absent(&f, zone_object(11), 11);
	assert_int_equal(end_events(&f, "11"), ROLL_OK);
	begin_list(&f, ROLL_KIND_RECORDSET, "");
	for (i = 0; i < 2 * ROLL_APPLY_SLICE + 1; i++) {
		char name[16];

		snprintf(name, sizeof name, "n%u", i);
		list_put(&f, set_object("d", name, 3, i % 250));
	}
	assert_int_equal(end_list(&f, 12), ROLL_OK);
	begin_events(&f);
	event_put(&f, zone_object(13));
	event_put(&f, set_object("d", "n7", 14, 77));
	assert_int_equal(end_events(&f, "14"), ROLL_OK);
	assert_int_equal(served(&f, "n7"), 77);
	assert_int_equal(served(&f, "n4000"), 0);
	while (roll_engine_work(f.engine))
		;
	assert_int_equal(served(&f, "n3251"), 1);
	stop_engine(&f);
}

static void list_that_changes_very_much_is_applied_whole(void **state)
{
	const unsigned count = 2 * ROLL_LIST_SLICE + 500;
	struct fixture f;
	unsigned i, turn;
	char name[16];

	(void)state;
	start_engine(&f, true);
	fill_view(&f, 10);
	begin_list(&f, ROLL_KIND_RECORDSET, "");
	for (i = 0; i < count; i++) {
		snprintf(name, sizeof name, "n%u", i);
		list_put(&f, set_object("d", name, 11, i % 199));
	}
	assert_int_equal(end_list(&f, 12), ROLL_OK);
	assert_int_equal(engine_counts(&f).objects[ROLL_KIND_RECORDSET], count);
	assert_int_equal(served(&f, "n0"), 0);
	assert_int_equal(served(&f, "n20499"), 20499 % 199);
	/* And away again, in slices as well. */
	for (turn = 0; turn < 2; turn++) {
		begin_list(&f, ROLL_KIND_RECORDSET, "");
		list_put(&f, set_object("d", "n5", 11, 5));
		assert_int_equal(end_list(&f, 13), turn ? ROLL_OK : ROLL_EAGAIN);
	}
	assert_int_equal(engine_counts(&f).objects[ROLL_KIND_RECORDSET], 1);
	assert_int_equal(served(&f, "n5"), 5);
	assert_int_equal(served(&f, "n20499"), -1);
	stop_engine(&f);
}

/* --- serials that others have written --- */

static json_t *zone_that_says(const char *name, const char *domain, unsigned revision,
			      uint32_t serial)
{
	char spec[128];
	json_t *value;

	snprintf(spec, sizeof spec, "{\"domainName\":\"%s\",\"dnsZoneClassName\":\"c\"}", domain);
	value = make_object("DNSZone", "d", name, revision, spec);
	json_object_set_new(value, "status", json_pack("{s:I}", "serial", (json_int_t)serial));
	return value;
}

static json_t *class_with_ttl(unsigned revision)
{
	char spec[256];

	snprintf(spec, sizeof spec,
		 "{\"controllerName\":\"ours\",\"defaults\":{\"defaultTTL\":%u},"
		 "\"nameServerPolicy\":{\"mode\":\"Static\",\"static\":{\"servers\":"
		 "[\"ns%u.example.net\"]}}}",
		 revision, revision);
	return make_object("DNSZoneClass", NULL, "c", revision, spec);
}

static uint32_t serial_of(struct fixture *f, const char *domain)
{
	struct roll_txn *txn = tempview_begin(&f->tv);
	struct roll_name apex = tempview_name(domain);
	const struct roll_zone *zone;
	uint32_t serial;

	assert_int_equal(roll_snap_zone_at(roll_txn_snap(txn), &apex, &zone), ROLL_OK);
	serial = zone->serial;
	roll_txn_abort(txn);
	return serial;
}

/* An event; NULL: a bookmark. */
static void tell_event(struct fixture *f, int kind, json_t *value, unsigned revision)
{
	char text[24];

	snprintf(text, sizeof text, "%u", revision);
	begin_events(f);
	if (value)
		event_put(f, value);
	assert_int_equal(
		f->sink->event_end(f->sink->ctx, roll_str_c(engine_kinds[kind]), roll_str_c(text)),
		ROLL_OK);
}

static void list_two_zones(struct fixture *f, uint32_t serial)
{
	begin_list(f, ROLL_KIND_CLASS, "");
	list_put(f, class_object());
	assert_int_equal(end_list(f, 2000), ROLL_OK);
	begin_list(f, ROLL_KIND_ZONE, "");
	list_put(f, zone_that_says("a", "a.test", 1000, 1000));
	list_put(f, zone_that_says("b", "b.test", 1500, serial));
	assert_int_equal(end_list(f, 2000), ROLL_OK);
	begin_list(f, ROLL_KIND_RECORDSET, "");
	assert_int_equal(end_list(f, 2000), ROLL_OK);
}

/* Half the range on there is no order any more, and a change of class is told to all zones. */
static void a_serial_from_nowhere_moves_no_other_zone(void **state)
{
	static const uint32_t serials[] = {
		UINT32_C(0x7fffffff), UINT32_C(0x800003e6), UINT32_C(0x800003e7),
		UINT32_C(0x800003e8), UINT32_C(0x800005dd), UINT32_MAX,
	};

	(void)state;
	for (size_t i = 0; i < sizeof serials / sizeof *serials; i++) {
		struct fixture f;

		start_engine(&f, true);
		list_two_zones(&f, serials[i]);
		assert_int_equal(serial_of(&f, "a.test"), 1000);
		for (unsigned revision = 2001; revision < 2006; revision++) {
			tell_event(&f, ROLL_KIND_CLASS, class_with_ttl(revision), revision);
			assert_int_equal(serial_of(&f, "a.test"), revision);
			assert_int_equal(serial_of(&f, "b.test"), revision);
		}
		stop_engine(&f);
	}
}

static void a_serial_that_was_taken_back_is_not_heeded(void **state)
{
	struct fixture f;

	(void)state;
	start_engine(&f, true);
	list_two_zones(&f, 1500);
	tell_event(&f, ROLL_KIND_ZONE, zone_that_says("a", "a.test", 2001, 3000), 2001);
	tell_event(&f, ROLL_KIND_ZONE, zone_that_says("b", "b.test", 2002, 3000), 2002);
	tell_event(&f, ROLL_KIND_ZONE, zone_that_says("b", "b.test", 2003, 1500), 2003);
	assert_int_equal(serial_of(&f, "a.test"), 1000);
	for (int kind = 0; kind < ROLL_KIND_COUNT; kind++)
		tell_event(&f, kind, NULL, 3001);
	assert_int_equal(serial_of(&f, "a.test"), 3000);
	assert_int_equal(serial_of(&f, "b.test"), 1500);
	stop_engine(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(complete_only_when_every_kind_was_listed),
		cmocka_unit_test(events_of_a_batch_are_one_commit_with_the_position),
		cmocka_unit_test(same_spec_again_commits_nothing_and_the_position_later),
		cmocka_unit_test(every_removal_has_its_evidence),
		cmocka_unit_test(list_that_was_aborted_changes_nothing),
		cmocka_unit_test(mass_removal_waits_for_a_second_list),
		cmocka_unit_test(every_zone_gone_waits_for_a_second_list),
		cmocka_unit_test(brake_holds_until_approved),
		cmocka_unit_test(older_list_never_counts),
		cmocka_unit_test(events_beside_a_list_are_newer),
		cmocka_unit_test(list_of_one_namespace_leaves_others_alone),
		cmocka_unit_test(complete_when_every_namespace_was_listed),
		cmocka_unit_test(another_source_is_refused),
		cmocka_unit_test(zone_with_many_waiting_record_sets_appears_at_once),
		cmocka_unit_test(list_that_changes_very_much_is_applied_whole),
		cmocka_unit_test(a_serial_from_nowhere_moves_no_other_zone),
		cmocka_unit_test(a_serial_that_was_taken_back_is_not_heeded),
	};

	quiet();
	return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
