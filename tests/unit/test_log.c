/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/log.h"

static char lines[16][8192];
static size_t line_count;

static void keep(void *ctx, const char *line)
{
	(void)ctx;
	assert_true(line_count < sizeof lines / sizeof *lines);
	assert_true(strlen(line) < sizeof *lines);
	memcpy(lines[line_count++], line, strlen(line) + 1);
}

static int start(void **state)
{
	(void)state;
	line_count = 0;
	roll_log_init(NULL, ROLL_INFO, ROLL_LOG_KV);
	roll_log_set_sink(keep, NULL);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	roll_log_set_sink(NULL, NULL);
	return 0;
}

static void a_line_has_level_event_and_pairs(void **state)
{
	(void)state;
	roll_log(ROLL_WARN, "zone-not-served", "zone=%s reason=\"%s\"", "example.com", "no class");
	roll_log(ROLL_INFO, "started", "%s", "");
	assert_int_equal(line_count, 2);
	assert_string_equal(
		lines[0], "level=warn event=zone-not-served zone=example.com reason=\"no class\"");
	assert_string_equal(lines[1], "level=info event=started ");
}

static void the_program_comes_first_when_named(void **state)
{
	(void)state;
	roll_log_init("rollcalld", ROLL_INFO, ROLL_LOG_KV);
	roll_log(ROLL_INFO, "ready", "a=1");
	assert_string_equal(lines[0], "program=rollcalld level=info event=ready a=1");
}

static void levels_above_the_maximum_are_silent(void **state)
{
	(void)state;
	roll_log(ROLL_DEBUG, "detail", "a=1");
	assert_int_equal(line_count, 0);
	assert_false(roll_log_enabled(ROLL_DEBUG));
	assert_true(roll_log_enabled(ROLL_ERROR));
}

static void repeats_are_counted(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++)
		roll_log(ROLL_WARN, "lost", "a=1");
	assert_int_equal(line_count, 1);
	roll_log(ROLL_WARN, "lost", "a=2");
	assert_int_equal(line_count, 3);
	assert_string_equal(lines[1], "level=warn event=lost a=1 repeated=4");
	assert_string_equal(lines[2], "level=warn event=lost a=2");
}

static void one_event_is_one_line(void **state)
{
	(void)state;
	roll_log(ROLL_WARN, "odd", "a=\"%s\"", "x\ny\x1b[0m\x7f");
	assert_string_equal(lines[0], "level=warn event=odd a=\"x?y?[0m?\"");
}

static void a_long_line_is_cut_and_closed(void **state)
{
	char text[8192];
	size_t n;

	(void)state;
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	roll_log(ROLL_WARN, "long", "a=\"%s\"", text);
	n = strlen(lines[0]);
	assert_true(n > 4000 && n < 4096);
	assert_string_equal(lines[0] + n - 5, "x...\"");
	roll_log(ROLL_WARN, "long", "a=%s", text);
	n = strlen(lines[1]);
	assert_string_equal(lines[1] + n - 4, "x...");
}

static void json_has_the_same_keys(void **state)
{
	char shown[64];
	json_t *value = NULL;
	struct roll_str note;

	(void)state;
	roll_log_init("rollcall-sync", ROLL_INFO, ROLL_LOG_JSON);
	roll_str_show(roll_str_n("a\"b\\\n\xff", 6), shown, sizeof shown);
	roll_log(ROLL_ERROR, "bad", "file=x.yaml note=\"%s\" line=%d", shown, 7);
	assert_int_equal(roll_json_parse(roll_str_c(lines[0]), &value, NULL), ROLL_OK);
	assert_int_equal(json_object_size(value), 6);
	assert_true(roll_str_eq_c(roll_json_str(value, "program"), "rollcall-sync"));
	assert_true(roll_str_eq_c(roll_json_str(value, "level"), "error"));
	assert_true(roll_str_eq_c(roll_json_str(value, "event"), "bad"));
	assert_true(roll_str_eq_c(roll_json_str(value, "file"), "x.yaml"));
	assert_true(roll_str_eq_c(roll_json_str(value, "line"), "7"));
	note = roll_json_str(value, "note");
	assert_true(roll_str_eq(note, roll_str_n("a\"b\\\n\xc3\xbf", 7)));
	json_decref(value);
}

static void level_names_are_exact(void **state)
{
	enum roll_level level = ROLL_DEBUG;

	(void)state;
	assert_int_equal(roll_level_parse("error", &level), ROLL_OK);
	assert_int_equal(level, ROLL_ERROR);
	assert_int_equal(roll_level_parse("debug", &level), ROLL_OK);
	assert_int_equal(level, ROLL_DEBUG);
	assert_int_equal(roll_level_parse("Warn", &level), ROLL_EINVAL);
	assert_int_equal(roll_level_parse("", &level), ROLL_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_line_has_level_event_and_pairs, start, stop),
		cmocka_unit_test_setup_teardown(the_program_comes_first_when_named, start, stop),
		cmocka_unit_test_setup_teardown(levels_above_the_maximum_are_silent, start, stop),
		cmocka_unit_test_setup_teardown(repeats_are_counted, start, stop),
		cmocka_unit_test_setup_teardown(one_event_is_one_line, start, stop),
		cmocka_unit_test_setup_teardown(a_long_line_is_cut_and_closed, start, stop),
		cmocka_unit_test_setup_teardown(json_has_the_same_keys, start, stop),
		cmocka_unit_test_setup_teardown(level_names_are_exact, start, stop),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
