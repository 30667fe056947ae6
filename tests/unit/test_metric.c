/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "base/metric.h"

static void assert_prints(const struct roll_metrics *metrics, const char *text)
{
	struct roll_buf buf;

	roll_buf_init(&buf, 65536);
	roll_metrics_print(metrics, &buf);
	assert_int_equal(buf.status, ROLL_OK);
	assert_string_equal(buf.n ? buf.p : "", text);
	roll_buf_fini(&buf);
}

static void families_and_series_keep_their_order(void **state)
{
	struct roll_metrics *metrics = roll_metrics_new();
	struct roll_metric *calls =
		roll_metric_counter(metrics, "rollcall_calls_total", "Calls.", "method", "result");
	struct roll_metric *age =
		roll_metric_gauge(metrics, "rollcall_age_seconds", "Age.", NULL, NULL);

	(void)state;
	roll_metric_add(calls, "lookup", "ok", 1);
	roll_metric_add(calls, "list", "ok", 1);
	roll_metric_add(calls, "lookup", "ok", 2);
	roll_metric_set(age, NULL, NULL, 1.5);
	roll_metric_add(age, NULL, NULL, -2);
	assert_prints(metrics, "# HELP rollcall_calls_total Calls.\n"
			       "# TYPE rollcall_calls_total counter\n"
			       "rollcall_calls_total{method=\"lookup\",result=\"ok\"} 3\n"
			       "rollcall_calls_total{method=\"list\",result=\"ok\"} 1\n"
			       "# HELP rollcall_age_seconds Age.\n"
			       "# TYPE rollcall_age_seconds gauge\n"
			       "rollcall_age_seconds -0.5\n");
	assert_true(roll_metric_value(calls, "lookup", "ok") == 3);
	assert_true(roll_metric_value(calls, "lookup", "bad") == 0);
	roll_metrics_free(metrics);
}

static void without_labels_zero_is_shown(void **state)
{
	struct roll_metrics *metrics = roll_metrics_new();

	(void)state;
	roll_metric_counter(metrics, "a_total", "A.", NULL, NULL);
	roll_metric_counter(metrics, "b_total", "B.", "l", NULL);
	assert_prints(metrics, "# HELP a_total A.\n# TYPE a_total counter\na_total 0\n"
			       "# HELP b_total B.\n# TYPE b_total counter\n");
	roll_metrics_free(metrics);
}

static void histograms_count_up_to_infinity(void **state)
{
	static const double bounds[] = {0.001, 0.1, 2.5};
	struct roll_metrics *metrics = roll_metrics_new();
	struct roll_metric *h = roll_metric_histogram(metrics, "h_seconds", "H.", "l", bounds, 3);

	(void)state;
	roll_metric_observe(h, "x", 0.001);
	roll_metric_observe(h, "x", 0.05);
	roll_metric_observe(h, "x", 7);
	assert_prints(metrics, "# HELP h_seconds H.\n# TYPE h_seconds histogram\n"
			       "h_seconds_bucket{l=\"x\",le=\"0.001\"} 1\n"
			       "h_seconds_bucket{l=\"x\",le=\"0.1\"} 2\n"
			       "h_seconds_bucket{l=\"x\",le=\"2.5\"} 2\n"
			       "h_seconds_bucket{l=\"x\",le=\"+Inf\"} 3\n"
			       "h_seconds_sum{l=\"x\"} 7.051\n"
			       "h_seconds_count{l=\"x\"} 3\n");
	roll_metrics_free(metrics);
}

static void labels_and_help_are_escaped(void **state)
{
	struct roll_metrics *metrics = roll_metrics_new();
	struct roll_metric *g = roll_metric_gauge(metrics, "g", "a\\b\n\"c\"", "l", NULL);

	(void)state;
	roll_metric_set(g, "a\\b\n\"c\"", NULL, 1);
	assert_prints(metrics, "# HELP g a\\\\b\\n\"c\"\n# TYPE g gauge\n"
			       "g{l=\"a\\\\b\\n\\\"c\\\"\"} 1\n");
	roll_metrics_free(metrics);
}

static void numbers_have_the_forms_of_prometheus(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{INFINITY, "+Inf"}, {-INFINITY, "-Inf"}, {NAN, "NaN"}, {1e15, "1000000000000000"},
		{1e300, "1e+300"},  {0.1, "0.1"},	 {-3, "-3"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct roll_metrics *metrics = roll_metrics_new();
		struct roll_metric *g = roll_metric_gauge(metrics, "g", "G", NULL, NULL);
		struct roll_buf buf;

		roll_metric_set(g, NULL, NULL, cases[i].value);
		roll_buf_init(&buf, 4096);
		roll_metrics_print(metrics, &buf);
		assert_non_null(strstr(buf.p, cases[i].text));
		assert_int_equal(strlen(strstr(buf.p, "\ng ")), 4 + strlen(cases[i].text));
		roll_buf_fini(&buf);
		roll_metrics_free(metrics);
	}
}

static void no_metric_is_no_trouble(void **state)
{
	(void)state;
	assert_null(roll_metric_counter(NULL, "a", "b", NULL, NULL));
	roll_metric_add(NULL, NULL, NULL, 1);
	roll_metric_set(NULL, NULL, NULL, 1);
	roll_metric_observe(NULL, NULL, 1);
	assert_true(roll_metric_value(NULL, NULL, NULL) == 0);
	assert_prints(NULL, "");
	roll_metrics_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(families_and_series_keep_their_order),
		cmocka_unit_test(without_labels_zero_is_shown),
		cmocka_unit_test(histograms_count_up_to_infinity),
		cmocka_unit_test(labels_and_help_are_escaped),
		cmocka_unit_test(numbers_have_the_forms_of_prometheus),
		cmocka_unit_test(no_metric_is_no_trouble),
	};

	return cmocka_run_group_tests_name("metric", tests, NULL, NULL);
}
