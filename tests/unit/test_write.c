/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/tempview.h"

struct fixture {
	struct tempview tv;
	struct roll_snap *snap;
};

static int setup(void **state)
{
	struct fixture *fx = test_calloc(1, sizeof *fx);

	tempview_init(&fx->tv);
	tempview_make(&fx->tv);
	*state = fx;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fx = *state;

	roll_snap_end(fx->snap);
	tempview_fini(&fx->tv);
	test_free(fx);
	return 0;
}

static void look(struct fixture *fx)
{
	roll_snap_end(fx->snap);
	assert_int_equal(roll_snap_begin(roll_writer_view(fx->tv.writer), true, &fx->snap, NULL),
			 ROLL_OK);
}

/* Ends the snapshot: the writer wants to change something. */
static void unlook(struct fixture *fx)
{
	roll_snap_end(fx->snap);
	fx->snap = NULL;
}

static void on_damage(void *ctx, const char *table, struct roll_str key, const char *what)
{
	print_message("# damage in %s at %.*s: %s\n", table, (int)key.n, key.p, what);
	++*(int *)ctx;
}

static void assert_sound(struct roll_snap *snap)
{
	int damages = 0;

	assert_int_equal(roll_snap_scrub(snap, on_damage, &damages), ROLL_OK);
	assert_int_equal(damages, 0);
}

static struct roll_txn *begin_at(struct fixture *fx, uint64_t revision)
{
	struct roll_txn *txn;

	unlook(fx);
	txn = tempview_begin(&fx->tv);
	roll_txn_set_revision(txn, &(struct roll_revision){.number = revision});
	return txn;
}

static void make_zone(struct fixture *fx)
{
	struct roll_txn *txn = begin_at(fx, 100);

	tempview_put_class(txn, "cls", "ours", "ns1.test", 0);
	tempview_put_zone(txn, "a/z", 10, "example.com", "cls");
	tempview_commit(txn);
}

static uint32_t serial_of(struct fixture *fx, const char *domain)
{
	struct roll_name apex = tempview_name(domain);
	const struct roll_zone *zone;

	look(fx);
	assert_sound(fx->snap);
	assert_int_equal(roll_snap_zone_at(fx->snap, &apex, &zone), ROLL_OK);
	return zone->serial;
}

static enum roll_status count_row(void *ctx, const struct roll_row *row)
{
	if (row->type != ROLL_TYPE_ENT)
		++*(int *)ctx;
	return ROLL_OK;
}

static bool answers(struct fixture *fx, const char *domain, const char *name_text)
{
	struct roll_name apex = tempview_name(domain), name = tempview_name(name_text);
	const struct roll_zone *zone;
	int rows = 0;
	enum roll_status status;

	look(fx);
	if (roll_snap_zone_at(fx->snap, &apex, &zone))
		return false;
	status = roll_snap_lookup(fx->snap, zone, &name, ROLL_TYPE_ANY, count_row, &rows);
	assert_true(status == ROLL_OK || status == ROLL_ENOENT);
	return rows > 0;
}

/* --- serials --- */

static void an_equal_object_changes_no_serial(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn;

	make_zone(fx);
	txn = begin_at(fx, 110);
	tempview_put_recordset(txn, "a/r", 1, "a/z", "A www=1", 110);
	tempview_commit(txn);
	assert_int_equal(serial_of(fx, "example.com"), 110);
	txn = begin_at(fx, 120);
	tempview_put_recordset(txn, "a/r", 1, "a/z", "A www=1", 120);
	tempview_put_zone(txn, "a/z", 10, "example.com", "cls");
	tempview_put_class(txn, "cls", "ours", "ns1.test", 0);
	assert_int_equal(roll_txn_changes(txn)->name_count, 0);
	assert_int_equal(roll_txn_changes(txn)->domain_count, 0);
	tempview_commit(txn);
	assert_int_equal(serial_of(fx, "example.com"), 110);
	/* A claim that loses changes no answer. */
	txn = begin_at(fx, 130);
	tempview_put_recordset(txn, "a/s", 2, "a/z", "A www=2", 130);
	tempview_commit(txn);
	assert_int_equal(serial_of(fx, "example.com"), 110);
}

static void a_serial_is_the_latest_revision_of_the_commit_whatever_the_order(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn;

	make_zone(fx);
	txn = begin_at(fx, 300);
	tempview_put_recordset(txn, "a/r", 1, "a/z", "A www=1", 300);
	roll_txn_set_revision(txn, &(struct roll_revision){.number = 200});
	tempview_put_recordset(txn, "a/s", 1, "a/z", "A api=1", 200);
	tempview_commit(txn);
	assert_int_equal(serial_of(fx, "example.com"), 300);
	/* An older revision: the successor, once. */
	txn = begin_at(fx, 50);
	tempview_put_recordset(txn, "a/r", 1, "a/z", "A www=2", 50);
	tempview_put_recordset(txn, "a/s", 1, "a/z", "A api=2", 51);
	tempview_commit(txn);
	assert_int_equal(serial_of(fx, "example.com"), 301);
	/* Beyond 32 bits the low ones count. */
	txn = begin_at(fx, (UINT64_C(5) << 32) + 400);
	tempview_absent(txn, ROLL_ROW_RECORDSET, "a/s");
	tempview_commit(txn);
	assert_int_equal(serial_of(fx, "example.com"), 400);
}

static void without_revisions_the_clock_gives_the_serial(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn;

	make_zone(fx);
	fx->tv.wall_ms = INT64_C(1700000000) * 1000;
	txn = begin_at(fx, 0);
	tempview_put_recordset(txn, "a/r", 1, "a/z", "A www=1", 0);
	tempview_commit(txn);
	assert_int_equal(serial_of(fx, "example.com"), 1700000000);
	/* Set back a day: still later. */
	fx->tv.wall_ms -= INT64_C(86400000);
	txn = begin_at(fx, 0);
	tempview_put_recordset(txn, "a/r", 1, "a/z", "A www=2", 0);
	tempview_commit(txn);
	assert_int_equal(serial_of(fx, "example.com"), 1700000001);
}

static void a_class_change_raises_every_serial_and_touches_no_zone(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn;
	uint32_t before;

	make_zone(fx);
	txn = begin_at(fx, 150);
	tempview_put_recordset(txn, "a/r", 1, "a/z", "A www=1", 150);
	tempview_commit(txn);
	before = serial_of(fx, "example.com");
	txn = begin_at(fx, 160);
	tempview_put_class(txn, "cls", "ours", "ns1.test ns2.test", 0);
	tempview_commit(txn);
	assert_int_equal(before, 150);
	assert_int_equal(serial_of(fx, "example.com"), 160);
	/* Gone and made again, with an older revision: later than anything that was said. */
	txn = begin_at(fx, 161);
	tempview_absent(txn, ROLL_ROW_CLASS, "cls");
	tempview_commit(txn);
	txn = begin_at(fx, 5);
	tempview_put_class(txn, "cls", "ours", "ns1.test", 0);
	tempview_commit(txn);
	assert_true(roll_serial_gt(serial_of(fx, "example.com"), 160));
}

static void a_serial_does_not_fall_when_a_class_turns_foreign_and_back(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn;
	uint32_t last;
	static const char *const controllers[] = {"theirs", "ours", "theirs", "ours"};

	make_zone(fx);
	txn = begin_at(fx, 101);
	tempview_put_class(txn, "other", "ours", "ns9.test", 0);
	tempview_put_zone(txn, "b/z", 20, "example.com", "other");
	tempview_commit(txn);
	last = serial_of(fx, "example.com");
	for (size_t i = 0; i < sizeof controllers / sizeof controllers[0]; i++) {
		struct roll_name apex = tempview_name("example.com");
		const struct roll_zone *zone;
		uint32_t now;

		txn = begin_at(fx, 1);
		tempview_put_class(txn, "cls", controllers[i], "ns1.test", 0);
		tempview_commit(txn);
		now = serial_of(fx, "example.com");
		assert_true(roll_serial_gt(now, last));
		last = now;
		assert_int_equal(roll_snap_zone_at(fx->snap, &apex, &zone), ROLL_OK);
		assert_true(roll_str_eq_c(zone->object, i % 2 ? "a/z" : "b/z"));
	}
}

/* --- hand-over, ids --- */

static void the_next_zone_takes_over_in_the_same_commit(void **state)
{
	struct fixture *fx = *state;
	struct roll_name apex = tempview_name("example.com");
	const struct roll_zone *zone;
	const struct roll_changes *changes;
	struct roll_txn *txn;
	uint32_t id, last;

	make_zone(fx);
	txn = begin_at(fx, 110);
	tempview_put_zone(txn, "b/z", 20, "example.com", "cls");
	tempview_put_recordset(txn, "b/r", 1, "b/z", "A theirs=1", 110);
	tempview_put_recordset(txn, "a/r", 1, "a/z", "A mine=1", 110);
	tempview_commit(txn);
	last = serial_of(fx, "example.com");
	assert_int_equal(roll_snap_zone_at(fx->snap, &apex, &zone), ROLL_OK);
	id = zone->id;
	assert_true(answers(fx, "example.com", "mine.example.com"));
	assert_false(answers(fx, "example.com", "theirs.example.com"));

	txn = begin_at(fx, 120);
	tempview_absent(txn, ROLL_ROW_ZONE, "a/z");
	changes = roll_txn_changes(txn);
	assert_int_equal(changes->domain_count, 1);
	assert_true(roll_name_eq(&changes->domains[0], &apex));
	tempview_commit(txn);
	assert_true(answers(fx, "example.com", "theirs.example.com"));
	assert_false(answers(fx, "example.com", "mine.example.com"));
	assert_true(roll_serial_gt(serial_of(fx, "example.com"), last));
	last = serial_of(fx, "example.com");
	assert_int_equal(roll_snap_zone_at(fx->snap, &apex, &zone), ROLL_OK);
	assert_int_equal(zone->id, id);

	/* Nobody, then somebody again: same id, later serial. */
	txn = begin_at(fx, 121);
	tempview_absent(txn, ROLL_ROW_ZONE, "b/z");
	tempview_commit(txn);
	look(fx);
	assert_int_equal(roll_snap_zone_at(fx->snap, &apex, &zone), ROLL_ENOENT);
	assert_int_equal(roll_snap_zone_by_id(fx->snap, id, &zone), ROLL_ENOENT);
	txn = begin_at(fx, 3);
	tempview_put_zone(txn, "a/z", 30, "example.com", "cls");
	tempview_commit(txn);
	assert_true(roll_serial_gt(serial_of(fx, "example.com"), last));
	assert_int_equal(roll_snap_zone_at(fx->snap, &apex, &zone), ROLL_OK);
	assert_int_equal(zone->id, id);
	/* Its record sets were waiting. */
	assert_true(answers(fx, "example.com", "mine.example.com"));
}

static void the_next_claim_to_a_name_serves_in_the_same_commit(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn;

	make_zone(fx);
	txn = begin_at(fx, 110);
	tempview_put_recordset(txn, "a/old", 1, "a/z", "CNAME www=x.test", 110);
	tempview_put_recordset(txn, "a/new", 2, "a/z", "A www=7", 110);
	tempview_commit(txn);
	assert_true(answers(fx, "example.com", "www.example.com"));
	txn = begin_at(fx, 120);
	tempview_absent(txn, ROLL_ROW_RECORDSET, "a/old");
	assert_int_equal(roll_txn_changes(txn)->name_count, 1);
	assert_int_equal(roll_txn_changes(txn)->zones_changed_count, 1);
	tempview_commit(txn);
	assert_true(answers(fx, "example.com", "www.example.com"));
	txn = begin_at(fx, 130);
	tempview_absent(txn, ROLL_ROW_RECORDSET, "a/new");
	tempview_commit(txn);
	assert_false(answers(fx, "example.com", "www.example.com"));
	assert_int_equal(serial_of(fx, "example.com"), 130);
}

static void changes_beyond_a_thousand_names_are_told_by_zone(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn;
	const struct roll_changes *changes;

	make_zone(fx);
	txn = begin_at(fx, 110);
	for (int i = 0; i < 1200; i++) {
		char key[32], spec[32];

		snprintf(key, sizeof key, "a/r%d", i);
		snprintf(spec, sizeof spec, "A n%d=1", i);
		tempview_put_recordset(txn, key, 1, "a/z", spec, 110);
		changes = roll_txn_changes(txn);
		assert_int_equal(changes->names_complete, i < 1000);
		assert_int_equal(changes->name_count, i < 1000 ? i + 1 : 0);
	}
	assert_int_equal(roll_txn_changes(txn)->zones_changed_count, 1);
	tempview_commit(txn);
	look(fx);
	assert_sound(fx->snap);
}

static void a_zone_that_changes_its_domain_takes_its_records_along(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn;

	make_zone(fx);
	txn = begin_at(fx, 110);
	tempview_put_recordset(txn, "a/r", 1, "a/z", "A www=1", 110);
	tempview_commit(txn);
	txn = begin_at(fx, 120);
	tempview_put_zone(txn, "a/z", 10, "example.org", "cls");
	tempview_commit(txn);
	assert_false(answers(fx, "example.com", "www.example.com"));
	assert_true(answers(fx, "example.org", "www.example.org"));
	assert_int_equal(serial_of(fx, "example.org"), 120);
	txn = begin_at(fx, 130);
	tempview_put_zone(txn, "a/z", 10, NULL, "cls");
	tempview_commit(txn);
	assert_false(answers(fx, "example.org", "www.example.org"));
	look(fx);
	assert_sound(fx->snap);
}

/* --- gone --- */

static uint64_t name_rows(struct fixture *fx)
{
	look(fx);
	return roll_snap_head(fx->snap)->name_count;
}

static void sweep_all(struct fixture *fx, size_t slice)
{
	bool more = true;

	while (more) {
		struct roll_txn *txn = begin_at(fx, 0);

		roll_txn_sweep(txn, slice, &more);
		tempview_commit(txn);
		look(fx);
		assert_sound(fx->snap);
	}
}

static void the_sweep_takes_what_is_gone_in_slices_and_changes_no_answer(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn;
	uint32_t serial;

	make_zone(fx);
	txn = begin_at(fx, 110);
	tempview_put_zone(txn, "a/y", 10, "example.org", "cls");
	tempview_put_recordset(txn, "a/r", 1, "a/z", "A a=1 b=1 c=1 d=1 e=1", 110);
	tempview_put_recordset(txn, "a/s", 1, "a/y", "A a=1 b=1", 110);
	tempview_commit(txn);
	serial = serial_of(fx, "example.org");
	txn = begin_at(fx, 120);
	tempview_absent(txn, ROLL_ROW_ZONE, "a/z");
	tempview_commit(txn);
	assert_int_equal(name_rows(fx), 7);
	sweep_all(fx, 2);
	assert_int_equal(name_rows(fx), 2);
	assert_int_equal(serial_of(fx, "example.org"), serial);
	assert_true(answers(fx, "example.org", "b.example.org"));
	/* What the record set claimed is swept, and it can go, or wait and come back. */
	txn = begin_at(fx, 130);
	tempview_put_zone(txn, "a/z", 10, "example.com", "cls");
	tempview_commit(txn);
	assert_true(answers(fx, "example.com", "e.example.com"));
	assert_int_equal(name_rows(fx), 7);
}

static void a_number_in_preparation_is_not_swept_but_one_of_a_dead_process_is(void **state)
{
	struct fixture *fx = *state;
	struct roll_name domain = tempview_name("prepared.test");
	struct roll_txn *txn = begin_at(fx, 100);
	const struct roll_rrset *none = NULL;
	struct roll_rrset rrset;
	struct roll_arena arena;
	struct roll_object_row row = {
		.kind = ROLL_ROW_RECORDSET, .key = roll_str_c("a/r"), .zone = roll_str_c("a/p")};
	struct roll_name_rrset owned = {tempview_name("www.prepared.test"), none};
	uint32_t number = roll_txn_new_number(txn, &domain);

	roll_arena_init(&arena, 1 << 16);
	roll_rrset_init(&rrset, ROLL_TYPE_A);
	assert_int_equal(roll_rrset_add(&rrset, roll_str_n("\300\0\2\1", 4), &arena), ROLL_OK);
	owned.rrset = &rrset;
	roll_txn_put_recordset(txn, &row, number, &owned, 1);
	assert_int_equal(roll_txn_changes(txn)->name_count, 0);
	tempview_commit(txn);
	sweep_all(fx, 10);
	assert_int_equal(name_rows(fx), 1);
	unlook(fx);
	tempview_close(&fx->tv);
	assert_false(tempview_open(&fx->tv));
	sweep_all(fx, 10);
	assert_int_equal(name_rows(fx), 0);
	/* The record set still names the number; that must not matter. */
	txn = begin_at(fx, 110);
	tempview_absent(txn, ROLL_ROW_RECORDSET, "a/r");
	tempview_commit(txn);
	look(fx);
	assert_sound(fx->snap);
	roll_arena_fini(&arena);
}

struct removals {
	char text[1024];
	int count;
	uint64_t last;
};

static enum roll_status on_removal(void *ctx, const struct roll_removal *removal)
{
	struct removals *seen = ctx;
	size_t n = strlen(seen->text);

	if (seen->count++)
		assert_true(removal->sequence < seen->last);
	seen->last = removal->sequence;
	snprintf(seen->text + n, sizeof seen->text - n, "%.*s [%.*s] %.*s %llu\n",
		 (int)removal->key.n, removal->key.p, (int)removal->names.n, removal->names.p,
		 (int)removal->evidence.n, removal->evidence.p,
		 (unsigned long long)removal->revision);
	return ROLL_OK;
}

static void every_removal_is_kept_with_its_evidence(void **state)
{
	struct fixture *fx = *state;
	struct removals seen = {"", 0, 0};
	struct roll_txn *txn;

	make_zone(fx);
	txn = begin_at(fx, 110);
	tempview_put_recordset(txn, "a/r", 1, "a/z", "A www=1 api=1", 110);
	tempview_commit(txn);
	txn = begin_at(fx, 120);
	tempview_put_recordset(txn, "a/r", 1, "a/z", "A www=1", 120);
	assert_int_equal(roll_txn_absent(txn, ROLL_ROW_RECORDSET, roll_str_c("a/none"), "list", 1),
			 ROLL_ENOENT);
	assert_int_equal(roll_txn_status(txn), ROLL_OK);
	assert_int_equal(roll_txn_absent(txn, ROLL_ROW_RECORDSET, roll_str_c("a/r"), "list", 121),
			 ROLL_OK);
	assert_int_equal(
		roll_txn_absent(txn, ROLL_ROW_ZONE, roll_str_c("a/z"), "event DELETED", 122),
		ROLL_OK);
	tempview_commit(txn);
	look(fx);
	assert_int_equal(roll_snap_removals(fx->snap, on_removal, &seen), ROLL_OK);
	assert_string_equal(seen.text, "a/z [example.com] event DELETED 122\n"
				       "a/r [www.example.com] list 121\n"
				       "a/r [api.example.com] changed: revision 120 120\n");
}

static void the_history_of_removals_is_bounded(void **state)
{
	struct fixture *fx = *state;
	struct removals seen = {"", 0, 0};
	struct roll_txn *txn = begin_at(fx, 1);

	for (unsigned i = 0; i < ROLL_REMOVALS_KEPT + 50; i++) {
		tempview_put_class(txn, "cls", "ours", "", 0);
		tempview_absent(txn, ROLL_ROW_CLASS, "cls");
		if (i % 1000 == 0) {
			tempview_commit(txn);
			txn = begin_at(fx, 1);
		}
	}
	tempview_commit(txn);
	look(fx);
	assert_int_equal(roll_snap_removals(fx->snap, on_removal, &seen), ROLL_OK);
	assert_int_equal(seen.count, ROLL_REMOVALS_KEPT);
	assert_int_equal(seen.last, 50);
}

/* --- bookkeeping, stage --- */

static void a_position_is_committed_with_the_data_or_not_at_all(void **state)
{
	struct fixture *fx = *state;
	struct roll_str what = roll_str_c("zones");
	struct roll_txn *txn = begin_at(fx, 1);
	struct roll_buf buf;

	roll_buf_init(&buf, 100);
	roll_txn_set_position(txn, what, roll_str_c("17"));
	roll_txn_set_source(txn, roll_str_c("cluster-uid"));
	roll_txn_set_confirmed(txn, 5);
	assert_int_equal(roll_txn_position(txn, what, &buf), ROLL_OK);
	roll_txn_abort(txn);
	txn = begin_at(fx, 1);
	roll_buf_reset(&buf);
	assert_int_equal(roll_txn_position(txn, what, &buf), ROLL_ENOENT);
	roll_txn_set_position(txn, what, roll_str_c("18"));
	roll_txn_set_source(txn, roll_str_c("cluster-uid"));
	tempview_commit(txn);
	look(fx);
	assert_true(roll_str_eq_c(roll_snap_head(fx->snap)->source, "cluster-uid"));
	assert_int_equal(roll_snap_head(fx->snap)->confirmed_ms, 0);
	txn = begin_at(fx, 1);
	assert_int_equal(roll_txn_position(txn, what, &buf), ROLL_OK);
	assert_string_equal(buf.p, "18");
	roll_txn_set_position(txn, what, roll_str_n(NULL, 0));
	tempview_commit(txn);
	txn = begin_at(fx, 1);
	assert_int_equal(roll_txn_position(txn, what, &buf), ROLL_ENOENT);
	roll_txn_abort(txn);
	roll_buf_fini(&buf);
}

static void nothing_changed_is_nothing_committed(void **state)
{
	struct fixture *fx = *state;
	uint64_t generation;
	struct roll_txn *txn;

	make_zone(fx);
	look(fx);
	generation = roll_snap_head(fx->snap)->generation;
	txn = begin_at(fx, 200);
	tempview_absent(txn, ROLL_ROW_RECORDSET, "a/none");
	tempview_commit(txn);
	look(fx);
	assert_int_equal(roll_snap_head(fx->snap)->generation, generation);
}

static void the_first_error_sticks_and_nothing_is_committed(void **state)
{
	struct fixture *fx = *state;
	struct roll_object_row row = {.kind = ROLL_ROW_RECORDSET, .key = roll_str_c("a/r")};
	struct roll_txn *txn;
	struct roll_err err;

	make_zone(fx);
	txn = begin_at(fx, 110);
	tempview_put_recordset(txn, "a/good", 1, "a/z", "A www=1", 110);
	roll_txn_put_recordset(txn, &row, 4711, NULL, 0);
	assert_int_equal(roll_txn_status(txn), ROLL_EINVAL);
	tempview_put_recordset(txn, "a/good2", 1, "a/z", "A www=1", 110);
	assert_int_equal(roll_txn_commit(txn, &err), ROLL_EINVAL);
	assert_int_equal(err.code, ROLL_EINVAL);
	assert_false(answers(fx, "example.com", "www.example.com"));
}

struct staged {
	struct roll_txn *txn;
	char text[256];
};

static enum roll_status on_staged(void *ctx, enum roll_row_kind kind, struct roll_str key,
				  struct roll_str bytes)
{
	struct staged *seen = ctx;
	size_t n = strlen(seen->text);
	char text[64];

	/* Changes under way must move neither the walk nor what it handed out. */
	for (int i = 0; i < 50; i++) {
		snprintf(text, sizeof text, "a/w%d-%d", (int)n, i);
		tempview_put_recordset(seen->txn, text, 1, "a/z", "TXT www=x", 1);
	}
	snprintf(seen->text + n, sizeof seen->text - n, "%d %.*s=%.*s;", (int)kind, (int)key.n,
		 key.p, (int)bytes.n, bytes.p);
	return ROLL_OK;
}

static enum roll_status on_key(void *ctx, enum roll_row_kind kind, struct roll_str key)
{
	struct staged *seen = ctx;
	size_t n = strlen(seen->text);

	snprintf(seen->text + n, sizeof seen->text - n, "%d %.*s;", (int)kind, (int)key.n, key.p);
	return ROLL_OK;
}

static void the_stage_is_walked_in_order_while_objects_change(void **state)
{
	struct fixture *fx = *state;
	struct staged seen = {NULL, ""};
	struct roll_str bytes;
	struct roll_txn *txn;

	make_zone(fx);
	txn = begin_at(fx, 110);
	roll_txn_stage_put(txn, ROLL_ROW_RECORDSET, roll_str_c("a/r"), roll_str_c("rrr"));
	roll_txn_stage_put(txn, ROLL_ROW_CLASS, roll_str_c("c"), roll_str_c("ccc"));
	tempview_commit(txn);
	txn = begin_at(fx, 110);
	roll_txn_stage_put(txn, ROLL_ROW_ZONE, roll_str_c("a/z"), roll_str_c("zzz"));
	assert_int_equal(roll_txn_stage_get(txn, ROLL_ROW_ZONE, roll_str_c("a/z"), &bytes),
			 ROLL_OK);
	assert_true(roll_str_eq_c(bytes, "zzz"));
	assert_int_equal(roll_txn_stage_get(txn, ROLL_ROW_ZONE, roll_str_c("a/y"), &bytes),
			 ROLL_ENOENT);
	seen.txn = txn;
	assert_int_equal(roll_txn_stage_walk(txn, on_staged, &seen), ROLL_OK);
	assert_string_equal(seen.text, "0 c=ccc;1 a/z=zzz;2 a/r=rrr;");
	roll_txn_stage_clear(txn);
	seen.text[0] = '\0';
	assert_int_equal(roll_txn_stage_walk(txn, on_staged, &seen), ROLL_OK);
	assert_string_equal(seen.text, "");
	tempview_commit(txn);
}

static void put_scoped(struct roll_txn *txn, const char *key, const char *scope)
{
	struct roll_object_row row = {
		.kind = ROLL_ROW_RECORDSET, .key = roll_str_c(key), .scope = roll_str_c(scope)};

	roll_txn_put_recordset(txn, &row, 0, NULL, 0);
}

static void on_scope(void *ctx, struct roll_str scope, uint64_t objects)
{
	struct staged *seen = ctx;
	size_t n = strlen(seen->text);

	snprintf(seen->text + n, sizeof seen->text - n, "%.*s:%d;", (int)scope.n, scope.p,
		 (int)objects);
}

static void candidates_for_absence_are_what_a_scope_has_and_the_stage_lacks(void **state)
{
	struct fixture *fx = *state;
	struct staged seen = {NULL, ""};
	struct roll_txn *txn = begin_at(fx, 110);

	put_scoped(txn, "a/1", "one.yaml");
	put_scoped(txn, "a/2", "one.yaml");
	put_scoped(txn, "b/3", "two.yaml");
	put_scoped(txn, "b/4", "one.yaml");
	put_scoped(txn, "b/4", "two.yaml"); /* moved */
	roll_txn_stage_put(txn, ROLL_ROW_RECORDSET, roll_str_c("a/2"), roll_str_c("x"));
	assert_int_equal(roll_txn_unstaged(txn, ROLL_ROW_RECORDSET, roll_str_c("one.yaml"),
					   roll_str_n(NULL, 0), on_key, &seen),
			 ROLL_OK);
	assert_string_equal(seen.text, "2 a/1;");
	seen.text[0] = '\0';
	assert_int_equal(roll_txn_unstaged(txn, ROLL_ROW_RECORDSET, roll_str_n(NULL, 0),
					   roll_str_c("b/"), on_key, &seen),
			 ROLL_OK);
	assert_string_equal(seen.text, "2 b/3;2 b/4;");
	seen.text[0] = '\0';
	assert_int_equal(roll_txn_unstaged(txn, ROLL_ROW_ZONE, roll_str_c("one.yaml"),
					   roll_str_n(NULL, 0), on_key, &seen),
			 ROLL_OK);
	assert_string_equal(seen.text, "");
	assert_int_equal(roll_txn_scopes(txn, on_scope, &seen), ROLL_OK);
	assert_non_null(strstr(seen.text, "one.yaml:2;"));
	assert_non_null(strstr(seen.text, "two.yaml:2;"));
	tempview_commit(txn);
	look(fx);
	assert_sound(fx->snap);
}

static void touch_changes_the_row_and_no_answer(void **state)
{
	struct fixture *fx = *state;
	struct roll_object_row row, copy;
	struct roll_txn *txn;
	uint32_t serial;

	make_zone(fx);
	txn = begin_at(fx, 110);
	tempview_put_recordset(txn, "a/r", 1, "a/z", "A www=1", 110);
	tempview_commit(txn);
	serial = serial_of(fx, "example.com");
	txn = begin_at(fx, 120);
	assert_int_equal(
		roll_snap_object(roll_txn_snap(txn), ROLL_ROW_RECORDSET, roll_str_c("a/r"), &row),
		ROLL_OK);
	row.revision = 120;
	row.generation = 9;
	row.scope = roll_str_c("moved.yaml");
	row.number = 0;
	row.names = roll_str_n(NULL, 0);
	roll_txn_touch(txn, &row);
	tempview_commit(txn);
	assert_int_equal(serial_of(fx, "example.com"), serial);
	assert_true(answers(fx, "example.com", "www.example.com"));
	assert_int_equal(roll_snap_object(fx->snap, ROLL_ROW_RECORDSET, roll_str_c("a/r"), &copy),
			 ROLL_OK);
	assert_int_equal(copy.revision, 120);
	assert_int_equal(copy.generation, 9);
	assert_true(copy.number != 0);
}

/* --- full maps, full disks --- */

static void a_full_map_changes_nothing_and_the_repeat_succeeds(void **state)
{
	struct fixture *fx = *state;
	size_t n = (size_t)24 << 20;
	char *big = calloc(1, n);
	struct roll_txn *txn;
	int grown = 0;
	struct roll_err err;

	assert_non_null(big);
	make_zone(fx);
	for (;;) {
		enum roll_status status;

		txn = begin_at(fx, 110);
		tempview_put_recordset(txn, "a/r", 1, "a/z", "A www=1", 110);
		for (int i = 0; i < 4; i++) {
			char key[16];

			snprintf(key, sizeof key, "a/%d", i);
			roll_txn_stage_put(txn, ROLL_ROW_ZONE, roll_str_c(key), roll_str_n(big, n));
		}
		status = roll_txn_commit(txn, &err);
		if (!status)
			break;
		assert_int_equal(status, ROLL_EFULL);
		assert_false(answers(fx, "example.com", "www.example.com"));
		unlook(fx);
		assert_int_equal(roll_writer_grow(fx->tv.writer, NULL), ROLL_OK);
		grown++;
	}
	assert_true(grown >= 1);
	assert_true(answers(fx, "example.com", "www.example.com"));
	assert_sound(fx->snap);
	free(big);
}

static void a_write_error_changes_nothing_and_the_next_commit_succeeds(void **state)
{
	struct fixture *fx = *state;
	struct rlimit old, tight = {(rlim_t)128 << 10, RLIM_INFINITY};
	struct roll_txn *txn;
	struct roll_err err;
	size_t n = (size_t)1 << 20;
	char *big = calloc(1, n);

	assert_non_null(big);
	make_zone(fx);
	signal(SIGXFSZ, SIG_IGN);
	txn = begin_at(fx, 110);
	tempview_put_recordset(txn, "a/r", 1, "a/z", "A www=1", 110);
	roll_txn_stage_put(txn, ROLL_ROW_ZONE, roll_str_c("x"), roll_str_n(big, n));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	tight.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	assert_int_equal(roll_txn_commit(txn, &err), ROLL_EIO);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_false(answers(fx, "example.com", "www.example.com"));
	assert_sound(fx->snap);
	txn = begin_at(fx, 110);
	tempview_put_recordset(txn, "a/r", 1, "a/z", "A www=1", 110);
	tempview_commit(txn);
	assert_true(answers(fx, "example.com", "www.example.com"));
	free(big);
}

/* --- a model --- */

/*
 * Few names, few objects, many steps: everything collides. After each commit the view must be
 * sound, say what a fresh look at all objects says, and keep ids and serials in order.
 */
#define MODEL_ZONES 6
#define MODEL_SETS 12
#define MODEL_CLASSES 3
#define MODEL_DOMAINS 3

struct model {
	struct {
		bool is_there, is_ours;
		int nameservers;
	} classes[MODEL_CLASSES];
	struct {
		bool is_there;
		int created, domain, cls;
	} zones[MODEL_ZONES];
	struct {
		bool is_there;
		int created, zone, spec;
	} sets[MODEL_SETS];
	uint32_t ids[MODEL_DOMAINS];
	uint32_t serials[MODEL_DOMAINS];
	char contents[MODEL_DOMAINS][4096];
	uint64_t seed;
	uint64_t revision;
};

static const char *const model_domains[MODEL_DOMAINS] = {"a.test", "b.a.test", "c.test"};
static const char *const model_specs[] = {
	"A @=1 www=1 x.y=1", "A www=2 w=2",    "CNAME www=t.test x=t.test",
	"TXT y=t www=t",     "NS sub=ns.test", "A g.sub=3 sub=3",
	"SOA @=0",	     "NS @=own.test",  "CNAME @=t.test",
};
#define MODEL_SPECS (sizeof model_specs / sizeof model_specs[0])

static unsigned draw(struct model *m, unsigned below)
{
	m->seed = m->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(m->seed >> 33) % below;
}

static const char *key_of(const char *what, int i, char out[16])
{
	snprintf(out, 16, "%s%d", what, i);
	return out;
}

static void step_class(struct model *m, struct roll_txn *txn)
{
	int i = (int)draw(m, MODEL_CLASSES);
	char key[16];

	key_of("c", i, key);
	if (m->classes[i].is_there && draw(m, 3) == 0) {
		m->classes[i].is_there = false;
		tempview_absent(txn, ROLL_ROW_CLASS, key);
		return;
	}
	m->classes[i].is_there = true;
	m->classes[i].is_ours = draw(m, 3) != 0;
	m->classes[i].nameservers = (int)draw(m, 3);
	tempview_put_class(txn, key, m->classes[i].is_ours ? "ours" : "theirs",
			   m->classes[i].nameservers == 0   ? ""
			   : m->classes[i].nameservers == 1 ? "n1.test"
							    : "n1.test n2.test",
			   0);
}

static void step_zone(struct model *m, struct roll_txn *txn)
{
	int i = (int)draw(m, MODEL_ZONES);
	char key[16], cls[16];

	key_of("n/z", i, key);
	if (m->zones[i].is_there && draw(m, 3) == 0) {
		m->zones[i].is_there = false;
		tempview_absent(txn, ROLL_ROW_ZONE, key);
		return;
	}
	if (!m->zones[i].is_there)
		m->zones[i].created = (int)draw(m, 10);
	m->zones[i].is_there = true;
	m->zones[i].domain = (int)draw(m, MODEL_DOMAINS + 1) - 1;
	m->zones[i].cls = (int)draw(m, MODEL_CLASSES + 1) - 1;
	tempview_put_zone(txn, key, m->zones[i].created,
			  m->zones[i].domain < 0 ? NULL : model_domains[m->zones[i].domain],
			  m->zones[i].cls < 0 ? "" : key_of("c", m->zones[i].cls, cls));
}

static void step_set(struct model *m, struct roll_txn *txn)
{
	int i = (int)draw(m, MODEL_SETS);
	char key[16], zone[16];

	key_of("n/r", i, key);
	if (m->sets[i].is_there && draw(m, 3) == 0) {
		m->sets[i].is_there = false;
		tempview_absent(txn, ROLL_ROW_RECORDSET, key);
		return;
	}
	if (!m->sets[i].is_there)
		m->sets[i].created = (int)draw(m, 10);
	m->sets[i].is_there = true;
	m->sets[i].zone = (int)draw(m, MODEL_ZONES);
	m->sets[i].spec = (int)draw(m, MODEL_SPECS);
	tempview_put_recordset(txn, key, m->sets[i].created, key_of("n/z", m->sets[i].zone, zone),
			       model_specs[m->sets[i].spec], m->revision);
}

/* The same objects put into an empty view, in the order of their keys. */
static void rebuild_from_model(const struct model *m, struct tempview *tv)
{
	struct roll_txn *txn;
	char key[16], other[16];

	tempview_init(tv);
	tempview_make(tv);
	txn = tempview_begin(tv);
	for (int i = 0; i < MODEL_SETS; i++)
		if (m->sets[i].is_there)
			tempview_put_recordset(txn, key_of("n/r", i, key), m->sets[i].created,
					       key_of("n/z", m->sets[i].zone, other),
					       model_specs[m->sets[i].spec], 1);
	for (int i = 0; i < MODEL_CLASSES; i++)
		if (m->classes[i].is_there)
			tempview_put_class(txn, key_of("c", i, key),
					   m->classes[i].is_ours ? "ours" : "theirs",
					   m->classes[i].nameservers == 0   ? ""
					   : m->classes[i].nameservers == 1 ? "n1.test"
									    : "n1.test n2.test",
					   0);
	for (int i = 0; i < MODEL_ZONES; i++)
		if (m->zones[i].is_there)
			tempview_put_zone(
				txn, key_of("n/z", i, key), m->zones[i].created,
				m->zones[i].domain < 0 ? NULL : model_domains[m->zones[i].domain],
				m->zones[i].cls < 0 ? "" : key_of("c", m->zones[i].cls, other));
	tempview_commit(txn);
}

/* The computed serial is left out: it is a matter of history. */
static enum roll_status print_row(void *ctx, const struct roll_row *row)
{
	struct roll_buf *buf = ctx;

	roll_name_print(row->owner, ROLL_DOT_FINAL, buf);
	roll_buf_printf(buf, " %u %u %d ", row->type, row->ttl, row->auth);
	if (row->type == ROLL_TYPE_SOA)
		roll_buf_add(buf, row->rdata.p, row->rdata.n - 20);
	else
		roll_buf_add_str(buf, row->rdata);
	roll_buf_add_char(buf, '\n');
	return buf->status;
}

/* Everything that can be asked about a domain. */
static void print_domain(struct roll_snap *snap, int d, struct roll_buf *buf)
{
	static const char *const asked[] = {"@",   "www",   "x",     "y", "x.y",  "w",
					    "sub", "g.sub", "q.sub", "b", "nope", "z.www"};
	struct roll_name apex = tempview_name(model_domains[d]);
	const struct roll_zone *zone;
	enum roll_status status = roll_snap_zone_at(snap, &apex, &zone);

	if (status) {
		assert_int_equal(status, ROLL_ENOENT);
		roll_buf_add_c(buf, "not served\n");
		return;
	}
	roll_buf_printf(buf, "%.*s %.*s\n", (int)zone->object.n, zone->object.p,
			(int)zone->class_name.n, zone->class_name.p);
	assert_int_equal(roll_snap_list(snap, zone, print_row, buf), ROLL_OK);
	for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
		struct roll_name prefix = roll_name_root, name;

		if (i)
			prefix = tempview_name(asked[i]);
		assert_int_equal(roll_name_join(&prefix, &apex, &name), ROLL_OK);
		status = roll_snap_lookup(snap, zone, &name, ROLL_TYPE_ANY, print_row, buf);
		roll_buf_printf(buf, "%s %d\n", asked[i], (int)status);
	}
}

static void compare_domain(struct model *m, struct roll_snap *snap, struct roll_snap *fresh, int d)
{
	struct roll_name apex = tempview_name(model_domains[d]);
	struct roll_buf got, want;
	const struct roll_zone *zone;

	roll_buf_init(&got, 4096);
	roll_buf_init(&want, 4096);
	print_domain(snap, d, &got);
	print_domain(fresh, d, &want);
	assert_int_equal(got.status, ROLL_OK);
	assert_int_equal(got.n, want.n);
	assert_memory_equal(got.p, want.p, got.n);
	for (size_t i = 0; i < got.n; i++) /* kept as a string */
		if (got.p[i] == '\0')
			got.p[i] = '0';
	if (!roll_snap_zone_at(snap, &apex, &zone)) {
		bool is_changed = strlen(m->contents[d]) != got.n ||
				  memcmp(m->contents[d], got.p, got.n) != 0;

		if (m->ids[d])
			assert_int_equal(m->ids[d], zone->id);
		m->ids[d] = zone->id;
		if (m->serials[d]) {
			assert_false(roll_serial_gt(m->serials[d], zone->serial));
			if (is_changed)
				assert_true(roll_serial_gt(zone->serial, m->serials[d]));
		}
		m->serials[d] = zone->serial;
		memcpy(m->contents[d], got.p, got.n + 1);
	}
	roll_buf_fini(&got);
	roll_buf_fini(&want);
}

static void run_model(struct fixture *fx, uint64_t seed, int commits)
{
	struct model *m = test_calloc(1, sizeof *m);

	m->seed = seed;
	m->revision = 1000;
	for (int commit = 0; commit < commits; commit++) {
		struct tempview again;
		struct roll_snap *fresh;
		struct roll_txn *txn;
		bool more;

		m->revision += draw(m, 5);
		txn = begin_at(fx, draw(m, 8) ? m->revision : 3);
		for (unsigned left = 1 + draw(m, 4); left; left--) {
			unsigned what = draw(m, 10);

			if (what < 1)
				step_class(m, txn);
			else if (what < 4)
				step_zone(m, txn);
			else
				step_set(m, txn);
		}
		if (draw(m, 4) == 0)
			roll_txn_sweep(txn, draw(m, 4), &more);
		tempview_commit(txn);
		if (draw(m, 40) == 0) {
			unlook(fx);
			tempview_close(&fx->tv);
			assert_false(tempview_open(&fx->tv));
		}
		look(fx);
		assert_sound(fx->snap);
		rebuild_from_model(m, &again);
		assert_int_equal(
			roll_snap_begin(roll_writer_view(again.writer), true, &fresh, NULL),
			ROLL_OK);
		for (int d = 0; d < MODEL_DOMAINS; d++)
			compare_domain(m, fx->snap, fresh, d);
		roll_snap_end(fresh);
		tempview_fini(&again);
	}
	test_free(m);
}

static void answers_follow_from_the_objects_present_seed_1(void **state)
{
	run_model(*state, 1, 400);
}

static void answers_follow_from_the_objects_present_seed_2(void **state)
{
	run_model(*state, 20261202, 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(an_equal_object_changes_no_serial),
		TEST(a_serial_is_the_latest_revision_of_the_commit_whatever_the_order),
		TEST(without_revisions_the_clock_gives_the_serial),
		TEST(a_class_change_raises_every_serial_and_touches_no_zone),
		TEST(a_serial_does_not_fall_when_a_class_turns_foreign_and_back),
		TEST(the_next_zone_takes_over_in_the_same_commit),
		TEST(the_next_claim_to_a_name_serves_in_the_same_commit),
		TEST(changes_beyond_a_thousand_names_are_told_by_zone),
		TEST(a_zone_that_changes_its_domain_takes_its_records_along),
		TEST(the_sweep_takes_what_is_gone_in_slices_and_changes_no_answer),
		TEST(a_number_in_preparation_is_not_swept_but_one_of_a_dead_process_is),
		TEST(every_removal_is_kept_with_its_evidence),
		TEST(the_history_of_removals_is_bounded),
		TEST(a_position_is_committed_with_the_data_or_not_at_all),
		TEST(nothing_changed_is_nothing_committed),
		TEST(the_first_error_sticks_and_nothing_is_committed),
		TEST(the_stage_is_walked_in_order_while_objects_change),
		TEST(candidates_for_absence_are_what_a_scope_has_and_the_stage_lacks),
		TEST(touch_changes_the_row_and_no_answer),
		TEST(a_full_map_changes_nothing_and_the_repeat_succeeds),
		TEST(a_write_error_changes_nothing_and_the_next_commit_succeeds),
		TEST(answers_follow_from_the_objects_present_seed_1),
		TEST(answers_follow_from_the_objects_present_seed_2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
