/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "sync/progress.h"

struct fixture {
	int64_t now_ms;
	struct roll_clock clock;
	char *shown; /* what went to the terminal */
	size_t shown_n;
	FILE *out;
	char logged[512]; /* the last line */
	size_t lines;
	struct roll_progress progress;
};

static int64_t now_ms(void *ctx)
{
	return ((struct fixture *)ctx)->now_ms;
}

static void on_line(void *ctx, const char *line)
{
	struct fixture *f = ctx;

	snprintf(f->logged, sizeof f->logged, "%s", line);
	f->lines++;
}

static void begin(struct fixture *f, bool is_terminal)
{
	memset(f, 0, sizeof *f);
	f->now_ms = 1000000;
	f->clock = (struct roll_clock){now_ms, now_ms, f};
	f->out = open_memstream(&f->shown, &f->shown_n);
	assert_non_null(f->out);
	roll_log_set_sink(on_line, f);
	roll_progress_init(&f->progress, &f->clock, f->out, is_terminal);
}

static void end(struct fixture *f)
{
	roll_log_set_sink(NULL, NULL);
	fclose(f->out);
	free(f->shown);
}

static void tell_at(struct fixture *f, int64_t after_ms, uint64_t read, uint64_t committed)
{
	f->now_ms = 1000000 + after_ms;
	roll_progress_tell(&f->progress, read, committed);
}

static void what_takes_less_than_a_second_is_not_shown(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, true);
	for (int64_t ms = 0; ms < 1000; ms += 100)
		tell_at(&f, ms, (uint64_t)ms, 0);
	roll_progress_end(&f.progress);
	assert_int_equal(f.shown_n, 0);
	assert_int_equal(f.lines, 0);
	end(&f);
}

static void a_terminal_shows_counts_and_rate_and_is_cleared(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, true);
	tell_at(&f, 0, 100, 0);
	tell_at(&f, 2000, 4100, 3000);
	assert_string_equal(f.shown, "\r4000 objects read, 3000 committed, 2000 a second\033[K");
	/* Not more often than the eye follows. */
	tell_at(&f, 2100, 5000, 3000);
	assert_null(strstr(f.shown, "4900"));
	tell_at(&f, 2200, 5100, 4000);
	assert_non_null(strstr(f.shown, "\r5000 objects read, 4000 committed, "));
	roll_progress_end(&f.progress);
	assert_string_equal(f.shown + f.shown_n - 4, "\r\033[K");
	assert_int_equal(f.lines, 0);
	end(&f);
}

static void elsewhere_a_line_is_logged_every_ten_seconds(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, false);
	for (int64_t ms = 0; ms < 10000; ms += 500)
		tell_at(&f, ms, (uint64_t)ms * 10, 0);
	assert_int_equal(f.lines, 0);
	tell_at(&f, 10000, 100000, 98000);
	assert_int_equal(f.lines, 1);
	assert_non_null(strstr(f.logged, "event=progress objects-read=100000 "
					 "objects-committed=98000 objects-per-second=10000"));
	for (int64_t ms = 10500; ms <= 30000; ms += 500)
		tell_at(&f, ms, (uint64_t)ms * 10, 0);
	assert_int_equal(f.lines, 3);
	assert_int_equal(f.shown_n, 0);
	end(&f);
}

static void after_a_pause_it_is_another_build(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, true);
	tell_at(&f, 0, 0, 0);
	tell_at(&f, 60000, 7000, 7000);
	assert_int_equal(f.shown_n, 0);
	tell_at(&f, 61000, 8000, 8000);
	assert_string_equal(f.shown, "\r1000 objects read, 1000 committed, 1000 a second\033[K");
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_takes_less_than_a_second_is_not_shown),
		cmocka_unit_test(a_terminal_shows_counts_and_rate_and_is_cleared),
		cmocka_unit_test(elsewhere_a_line_is_logged_every_ten_seconds),
		cmocka_unit_test(after_a_pause_it_is_another_build),
	};

	return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
