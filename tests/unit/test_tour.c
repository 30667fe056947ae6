/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sync/census.h"
#include "sync/tour.h"
#include "tests/lib/tempview.h"
#include "tests/lib/until.h"

struct fixture {
	struct tempview tv;
	struct roll_buf seen;
	unsigned rows;
	unsigned stop_every;
};

static int setup(void **state)
{
	struct fixture *fx = test_calloc(1, sizeof *fx);
	struct roll_txn *txn;

	tempview_init(&fx->tv);
	tempview_make(&fx->tv);
	roll_buf_init(&fx->seen, 1 << 16);
	txn = tempview_begin(&fx->tv);
	tempview_put_class(txn, "cls", "ours", "ns1.test", 0);
	tempview_put_zone(txn, "a/one", 10, "one.test", "cls");
	tempview_put_zone(txn, "a/later", 20, "one.test", "cls");
	tempview_put_zone(txn, "a/lost", 10, "lost.test", "none");
	tempview_put_zone(txn, "a/two", 10, "two.test", "cls");
	tempview_put_recordset(txn, "a/r1", 10, "a/one", "A a=1 b=2 c=3", 1);
	tempview_put_recordset(txn, "a/r2", 20, "a/one", "A b=4", 2);
	tempview_put_recordset(txn, "a/r3", 30, "a/one", "CNAME c=x.test", 3);
	tempview_put_recordset(txn, "a/r4", 10, "a/lost", "A a=1", 4);
	tempview_put_recordset(txn, "a/r5", 10, "a/two", "A @=1 z=1", 5);
	tempview_commit(txn);
	*state = fx;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fx = *state;

	roll_buf_fini(&fx->seen);
	tempview_fini(&fx->tv);
	test_free(fx);
	return 0;
}

static enum roll_status saw(struct fixture *fx, char mark, const struct roll_name *name)
{
	roll_buf_add_char(&fx->seen, mark);
	roll_name_print(name, ROLL_DOT_NONE, &fx->seen);
	roll_buf_add_char(&fx->seen, ' ');
	fx->rows++;
	return fx->stop_every && fx->rows % fx->stop_every == 0 ? ROLL_ECANCELED : ROLL_OK;
}

static enum roll_status on_domain(void *ctx, struct roll_snap *snap,
				  const struct roll_domain *domain)
{
	(void)snap;
	return saw(ctx, '#', &domain->name);
}

static enum roll_status on_name(void *ctx, const struct roll_name *domain,
				const struct roll_name *owner, const struct roll_claim *claims,
				size_t count)
{
	assert_true(count > 0 && claims[0].verdict == ROLL_VERDICT_SERVED);
	assert_true(roll_name_is_within(owner, domain));
	return saw(ctx, '-', owner);
}

#define WHOLE                                                                           \
	"#lost.test #one.test -a.one.test -b.one.test -c.one.test #two.test -two.test " \
	"-z.two.test "

static enum roll_status go(struct fixture *fx, struct roll_tour *tour)
{
	struct roll_tour_hooks hooks = {on_domain, on_name, fx};
	struct roll_snap *snap = NULL;
	enum roll_status status;

	assert_int_equal(roll_snap_begin(roll_writer_view(fx->tv.writer), true, &snap, NULL),
			 ROLL_OK);
	status = roll_tour_go(tour, snap, &hooks);
	roll_snap_end(snap);
	return status;
}

static void sees_every_row_once_wherever_it_is_left(void **state)
{
	struct fixture *fx = *state;
	struct roll_tour tour = {.is_begun = false};

	for (fx->stop_every = 0; fx->stop_every <= 9; fx->stop_every++) {
		enum roll_status status;

		fx->rows = 0;
		roll_buf_reset(&fx->seen);
		while ((status = go(fx, &tour)) == ROLL_ECANCELED)
			assert_true(fx->rows <= 8);
		assert_int_equal(status, ROLL_OK);
		assert_false(tour.is_begun);
		assert_string_equal(fx->seen.p, WHOLE);
	}
}

static void goes_on_behind_a_zone_that_went_away(void **state)
{
	struct fixture *fx = *state;
	struct roll_tour tour = {.is_begun = false};
	struct roll_txn *txn;

	fx->stop_every = 3;
	assert_int_equal(go(fx, &tour), ROLL_ECANCELED);
	assert_string_equal(fx->seen.p, "#lost.test #one.test -a.one.test ");
	txn = tempview_begin(&fx->tv);
	tempview_absent(txn, ROLL_ROW_ZONE, "a/one");
	tempview_absent(txn, ROLL_ROW_ZONE, "a/later");
	tempview_commit(txn);
	fx->stop_every = 0;
	roll_buf_reset(&fx->seen);
	assert_int_equal(go(fx, &tour), ROLL_OK);
	assert_string_equal(fx->seen.p, "#two.test -two.test -z.two.test ");
}

static bool is_counted(void *ctx)
{
	return roll_census_counts(ctx)->is_there;
}

static void census_counts_zones_names_and_losers(void **state)
{
	struct fixture *fx = *state;
	const struct roll_census_counts *counts;
	struct roll_census *census;
	struct roll_loop *loop = NULL;

	assert_int_equal(roll_loop_new(NULL, &loop, NULL), ROLL_OK);
	census = roll_census_new(loop, roll_writer_view(fx->tv.writer), &roll_clock_system);
	assert_non_null(census);
	counts = roll_census_counts(census);
	assert_false(counts->is_there);
	assert_true(until(loop, is_counted, census, 10000));
	assert_int_equal(counts->zones[ROLL_ZONE_SERVED], 2);
	assert_int_equal(counts->zones[ROLL_ZONE_IN_USE], 1);
	assert_int_equal(counts->zones[ROLL_ZONE_CLASS_MISSING], 1);
	assert_int_equal(counts->names, 5);
	assert_int_equal(counts->contested, 2);
	assert_int_equal(counts->claims[ROLL_VERDICT_SERVED], 5);
	assert_int_equal(counts->claims[ROLL_VERDICT_NOT_OWNER], 1);
	assert_int_equal(counts->claims[ROLL_VERDICT_CONFLICT], 1);
	roll_census_free(census);
	roll_loop_free(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sees_every_row_once_wherever_it_is_left, setup,
						teardown),
		cmocka_unit_test_setup_teardown(goes_on_behind_a_zone_that_went_away, setup,
						teardown),
		cmocka_unit_test_setup_teardown(census_counts_zones_names_and_losers, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
