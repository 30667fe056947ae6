/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"

static void times_parse_and_print(void **state)
{
	static const struct {
		const char *text;
		int64_t seconds;
		const char *printed; /* NULL: as text */
	} cases[] = {
		{"1970-01-01T00:00:00Z", 0, NULL},
		{"2026-12-02T05:31:50Z", 1796189510, NULL},
		{"2000-02-29T23:59:59Z", 951868799, NULL},
		{"1969-12-31T23:59:59Z", -1, NULL},
		{"0000-01-01T00:00:00Z", -62167219200, NULL},
		{"0000-02-29T00:00:00Z", -62162121600, NULL},
		{"9999-12-31T23:59:59Z", 253402300799, NULL},
		{"2026-12-02T05:31:50.123456Z", 1796189510, "2026-12-02T05:31:50Z"},
		{"2026-12-02T07:31:50+02:00", 1796189510, "2026-12-02T05:31:50Z"},
		{"2026-12-01T23:01:50-06:30", 1796189510, "2026-12-02T05:31:50Z"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char out[ROLL_TIME_SIZE];
		int64_t seconds = 4711;

		assert_int_equal(roll_time_parse(roll_str_c(cases[i].text), &seconds), ROLL_OK);
		assert_true(seconds == cases[i].seconds);
		assert_string_equal(roll_time_print(seconds, out),
				    cases[i].printed ? cases[i].printed : cases[i].text);
	}
}

static void every_day_prints_as_it_parses(void **state)
{
	(void)state;
	for (int64_t s = -62167219200; s <= 253402300799; s += 86400 * 11 + 3607) {
		char out[ROLL_TIME_SIZE];
		int64_t again;

		assert_int_equal(roll_time_parse(roll_str_c(roll_time_print(s, out)), &again),
				 ROLL_OK);
		assert_true(again == s);
	}
}

static void printed_years_are_clamped(void **state)
{
	char out[ROLL_TIME_SIZE];

	(void)state;
	assert_string_equal(roll_time_print(INT64_MIN, out), "0000-01-01T00:00:00Z");
	assert_string_equal(roll_time_print(INT64_MAX, out), "9999-12-31T23:59:59Z");
}

static void micro_times_have_six_digits_of_a_fraction(void **state)
{
	static const struct {
		int64_t wall_ms;
		const char *printed;
	} cases[] = {
		{0, "1970-01-01T00:00:00.000000Z"},
		{1796189510123, "2026-12-02T05:31:50.123000Z"},
		{1796189510999, "2026-12-02T05:31:50.999000Z"},
		{1796189510007, "2026-12-02T05:31:50.007000Z"},
		{951868799000, "2000-02-29T23:59:59.000000Z"},
		{-1, "1969-12-31T23:59:59.999000Z"},
		{-999, "1969-12-31T23:59:59.001000Z"},
		{-1000, "1969-12-31T23:59:59.000000Z"},
		{-1001, "1969-12-31T23:59:58.999000Z"},
		{INT64_MIN, "0000-01-01T00:00:00.192000Z"},
		{INT64_MAX, "9999-12-31T23:59:59.807000Z"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char out[ROLL_TIME_MICRO_SIZE];
		int64_t seconds;

		assert_string_equal(roll_time_print_micro(cases[i].wall_ms, out), cases[i].printed);
		assert_int_equal(strlen(out), sizeof out - 1);
		assert_int_equal(roll_time_parse(roll_str_c(out), &seconds), ROLL_OK);
	}
}

static void impossible_times_are_refused(void **state)
{
	static const char *const cases[] = {
		"",
		"2026-12-02",
		"2026-12-02T05:31:50",
		"2026-12-02 05:31:50Z",
		"2026-12-02t05:31:50z",
		"2026-12-02T05:31:50Z ",
		" 2026-12-02T05:31:50Z",
		"2026-13-02T05:31:50Z",
		"2026-00-02T05:31:50Z",
		"2026-12-00T05:31:50Z",
		"2026-11-31T05:31:50Z",
		"2026-02-29T05:31:50Z",
		"1900-02-29T05:31:50Z",
		"2026-12-02T24:00:00Z",
		"2026-12-02T05:60:50Z",
		"2026-12-02T05:31:60Z",
		"2026-12-02T05:31:50.Z",
		"2026-12-02T05:31:50+0200",
		"2026-12-02T05:31:50+24:00",
		"2026-12-02T05:31:50+02:60",
		"+026-12-02T05:31:50Z",
		"2026-1-02T05:31:50Z",
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t seconds = 4711;

		assert_int_equal(roll_time_parse(roll_str_c(cases[i]), &seconds), ROLL_EINVAL);
		assert_int_equal(seconds, 4711);
	}
}

static void durations_need_units_in_order(void **state)
{
	static const struct {
		const char *text;
		enum roll_status status;
		int64_t ms;
	} cases[] = {
		{"90s", ROLL_OK, 90000},
		{"5m", ROLL_OK, 300000},
		{"1h30m", ROLL_OK, 5400000},
		{"2d", ROLL_OK, 172800000},
		{"250ms", ROLL_OK, 250},
		{"0s", ROLL_OK, 0},
		{"1d1h1m1s1ms", ROLL_OK, 90061001},
		{"", ROLL_EINVAL, 0},
		{"5", ROLL_EINVAL, 0},
		{"s", ROLL_EINVAL, 0},
		{"5 s", ROLL_EINVAL, 0},
		{"-5s", ROLL_EINVAL, 0},
		{"1.5h", ROLL_EINVAL, 0},
		{"5S", ROLL_EINVAL, 0},
		{"5w", ROLL_EINVAL, 0},
		{"1m1h", ROLL_EINVAL, 0},
		{"1s1s", ROLL_EINVAL, 0},
		{"5s ", ROLL_EINVAL, 0},
		{"99999999999999999999d", ROLL_ELIMIT, 0},
		{"9223372036854775807s", ROLL_ELIMIT, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t ms = 4711;

		assert_int_equal(roll_duration_parse(roll_str_c(cases[i].text), &ms),
				 cases[i].status);
		assert_int_equal(ms, cases[i].status ? 4711 : cases[i].ms);
	}
}

static void back_off_grows_to_its_cap_and_is_spread(void **state)
{
	uint64_t seed = 1;
	unsigned attempt = 0;
	int64_t window = 100, low = INT64_MAX, high = 0;

	(void)state;
	for (int i = 0; i < 200; i++) {
		int64_t ms = roll_backoff_ms(&attempt, 100, 30000, &seed);

		assert_in_range(ms, 1, window);
		window = window * 2 > 30000 ? 30000 : window * 2;
		if (i > 20) {
			low = ms < low ? ms : low;
			high = ms > high ? ms : high;
		}
	}
	assert_true(low < 3000 && high > 27000);
	attempt = 0;
	assert_in_range(roll_backoff_ms(&attempt, 100, 30000, &seed), 1, 100);
	attempt = 60;
	assert_in_range(roll_backoff_ms(&attempt, INT64_MAX, INT64_MAX, &seed), 1, INT64_MAX);
}

static void the_system_clocks_run(void **state)
{
	int64_t before = roll_clock_monotonic_ms(&roll_clock_system);

	(void)state;
	assert_true(roll_clock_monotonic_ms(&roll_clock_system) >= before);
	assert_true(roll_clock_wall_ms(&roll_clock_system) > INT64_C(1600000000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_parse_and_print),
		cmocka_unit_test(every_day_prints_as_it_parses),
		cmocka_unit_test(printed_years_are_clamped),
		cmocka_unit_test(micro_times_have_six_digits_of_a_fraction),
		cmocka_unit_test(impossible_times_are_refused),
		cmocka_unit_test(durations_need_units_in_order),
		cmocka_unit_test(back_off_grows_to_its_cap_and_is_spread),
		cmocka_unit_test(the_system_clocks_run),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
