/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metric.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Families and their series are plain lists: there are some dozens of each, and a label's value
 * comes from a small fixed set (a method, a kind, a result).
 */

enum kind { COUNTER, GAUGE, HISTOGRAM };

struct series {
	struct series *next;
	char *values[2];
	double value;	    /* of a histogram: the sum of what was observed */
	uint64_t count;	    /* histograms only */
	uint64_t buckets[]; /* not cumulative; what exceeds the last bound is in count alone */
};

struct roll_metric {
	struct roll_metric *next;
	enum kind kind;
	char *name;
	char *help;
	char *labels[2];
	const double *bounds;
	size_t bound_count;
	struct series *series;
	struct series **tail;
};

struct roll_metrics {
	struct roll_metric *first;
	struct roll_metric **tail;
};

static void free_series(struct series *series)
{
	if (!series)
		return;
	free(series->values[0]);
	free(series->values[1]);
	free(series);
}

static void free_metric(struct roll_metric *metric)
{
	if (!metric)
		return;
	while (metric->series) {
		struct series *next = metric->series->next;

		free_series(metric->series);
		metric->series = next;
	}
	free(metric->name);
	free(metric->help);
	free(metric->labels[0]);
	free(metric->labels[1]);
	free(metric);
}

struct roll_metrics *roll_metrics_new(void)
{
	struct roll_metrics *metrics = calloc(1, sizeof *metrics);

	if (metrics)
		metrics->tail = &metrics->first;
	return metrics;
}

void roll_metrics_free(struct roll_metrics *metrics)
{
	if (!metrics)
		return;
	while (metrics->first) {
		struct roll_metric *next = metrics->first->next;

		free_metric(metrics->first);
		metrics->first = next;
	}
	free(metrics);
}

static bool copy_text(const char *text, char **out)
{
	*out = text ? strdup(text) : NULL;
	return !text || *out;
}

static bool is_equal(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

static struct series *find(const struct roll_metric *metric, const char *value1, const char *value2)
{
	struct series *series = metric->series;

	while (series &&
	       !(is_equal(series->values[0], value1) && is_equal(series->values[1], value2)))
		series = series->next;
	return series;
}

/* Found or made; NULL without memory. */
static struct series *series_of(struct roll_metric *metric, const char *value1, const char *value2)
{
	struct series *series = find(metric, value1, value2);

	if (series)
		return series;
	series = calloc(1, sizeof *series + metric->bound_count * sizeof *series->buckets);
	if (!series)
		return NULL;
	if (!copy_text(value1, &series->values[0]) || !copy_text(value2, &series->values[1])) {
		free_series(series);
		return NULL;
	}
	*metric->tail = series;
	metric->tail = &series->next;
	return series;
}

static struct roll_metric *add_family(struct roll_metrics *metrics, const struct roll_metric *like)
{
	struct roll_metric *metric;

	if (!metrics)
		return NULL;
	metric = calloc(1, sizeof *metric);
	if (!metric)
		return NULL;
	metric->kind = like->kind;
	metric->bounds = like->bounds;
	metric->bound_count = like->bound_count;
	metric->tail = &metric->series;
	if (!copy_text(like->name, &metric->name) || !copy_text(like->help, &metric->help) ||
	    !copy_text(like->labels[0], &metric->labels[0]) ||
	    !copy_text(like->labels[1], &metric->labels[1]))
		goto out;
	/* Without labels there is one series, and it is worth seeing while it is still zero. */
	if (!metric->labels[0] && !series_of(metric, NULL, NULL))
		goto out;
	*metrics->tail = metric;
	metrics->tail = &metric->next;
	return metric;
out:
	free_metric(metric);
	return NULL;
}

struct roll_metric *roll_metric_counter(struct roll_metrics *metrics, const char *name,
					const char *help, const char *label1, const char *label2)
{
	struct roll_metric like = {.kind = COUNTER,
				   .name = (char *)name,
				   .help = (char *)help,
				   .labels = {(char *)label1, (char *)label2}};

	return add_family(metrics, &like);
}

struct roll_metric *roll_metric_gauge(struct roll_metrics *metrics, const char *name,
				      const char *help, const char *label1, const char *label2)
{
	struct roll_metric like = {.kind = GAUGE,
				   .name = (char *)name,
				   .help = (char *)help,
				   .labels = {(char *)label1, (char *)label2}};

	return add_family(metrics, &like);
}

struct roll_metric *roll_metric_histogram(struct roll_metrics *metrics, const char *name,
					  const char *help, const char *label1,
					  const double *bounds, size_t bound_count)
{
	struct roll_metric like = {.kind = HISTOGRAM,
				   .name = (char *)name,
				   .help = (char *)help,
				   .labels = {(char *)label1},
				   .bounds = bounds,
				   .bound_count = bound_count};

	return add_family(metrics, &like);
}

void roll_metric_add(struct roll_metric *metric, const char *value1, const char *value2, double by)
{
	struct series *series = metric ? series_of(metric, value1, value2) : NULL;

	if (!series)
		return;
	assert(metric->kind == GAUGE || (metric->kind == COUNTER && by >= 0));
	series->value += by;
}

void roll_metric_set(struct roll_metric *metric, const char *value1, const char *value2, double to)
{
	struct series *series = metric ? series_of(metric, value1, value2) : NULL;

	if (!series)
		return;
	assert(metric->kind == GAUGE);
	series->value = to;
}

void roll_metric_observe(struct roll_metric *metric, const char *value1, double seconds)
{
	struct series *series = metric ? series_of(metric, value1, NULL) : NULL;
	size_t i = 0;

	if (!series)
		return;
	assert(metric->kind == HISTOGRAM);
	while (i < metric->bound_count && seconds > metric->bounds[i])
		i++;
	if (i < metric->bound_count)
		series->buckets[i]++;
	series->count++;
	series->value += seconds;
}

double roll_metric_value(const struct roll_metric *metric, const char *value1, const char *value2)
{
	const struct series *series = metric ? find(metric, value1, value2) : NULL;

	return series ? series->value : 0;
}

/* Prometheus text format 0.0.4: backslash and newline are escaped, in label values '"' as well. */
static void add_escaped(struct roll_buf *buf, const char *text, bool is_label)
{
	for (const char *p = text ? text : ""; *p; p++) {
		if (*p == '\n')
			roll_buf_add(buf, "\\n", 2);
		else if (*p == '\\' || (is_label && *p == '"'))
			roll_buf_add(buf, (char[]){'\\', *p}, 2);
		else
			roll_buf_add_char(buf, *p);
	}
}

/* Whole numbers in full, others in 15 digits, which every double of them survives. */
static void add_number(struct roll_buf *buf, double value)
{
	if (isnan(value))
		roll_buf_add_c(buf, "NaN");
	else if (isinf(value))
		roll_buf_add_c(buf, value > 0 ? "+Inf" : "-Inf");
	else if (fabs(value) < 9007199254740992.0 && value == trunc(value))
		roll_buf_printf(buf, "%.0f", value);
	else
		roll_buf_printf(buf, "%.15g", value);
}

static void add_label(struct roll_buf *buf, char *sep, const char *name, const char *value)
{
	if (!name)
		return;
	roll_buf_add_char(buf, *sep);
	roll_buf_add_c(buf, name);
	roll_buf_add_c(buf, "=\"");
	add_escaped(buf, value, true);
	roll_buf_add_char(buf, '"');
	*sep = ',';
}

/* "name_suffix{labels,le="bound"} "; the value follows. le may be NULL. */
static void add_head(struct roll_buf *buf, const struct roll_metric *metric,
		     const struct series *series, const char *suffix, const char *le)
{
	char sep = '{';

	roll_buf_add_c(buf, metric->name);
	roll_buf_add_c(buf, suffix);
	add_label(buf, &sep, metric->labels[0], series->values[0]);
	add_label(buf, &sep, metric->labels[1], series->values[1]);
	add_label(buf, &sep, le ? "le" : NULL, le);
	roll_buf_add_c(buf, sep == ',' ? "} " : " ");
}

static void add_histogram(struct roll_buf *buf, const struct roll_metric *metric,
			  const struct series *series)
{
	uint64_t below = 0;
	char le[32];

	for (size_t i = 0; i < metric->bound_count; i++) {
		snprintf(le, sizeof le, "%g", metric->bounds[i]);
		below += series->buckets[i];
		add_head(buf, metric, series, "_bucket", le);
		roll_buf_add_u64(buf, below);
		roll_buf_add_char(buf, '\n');
	}
	add_head(buf, metric, series, "_bucket", "+Inf");
	roll_buf_add_u64(buf, series->count);
	roll_buf_add_char(buf, '\n');
	add_head(buf, metric, series, "_sum", NULL);
	add_number(buf, series->value);
	roll_buf_add_char(buf, '\n');
	add_head(buf, metric, series, "_count", NULL);
	roll_buf_add_u64(buf, series->count);
	roll_buf_add_char(buf, '\n');
}

static void add_metric(struct roll_buf *buf, const struct roll_metric *metric)
{
	static const char *const kinds[] = {"counter", "gauge", "histogram"};

	roll_buf_add_c(buf, "# HELP ");
	roll_buf_add_c(buf, metric->name);
	roll_buf_add_char(buf, ' ');
	add_escaped(buf, metric->help, false);
	roll_buf_printf(buf, "\n# TYPE %s %s\n", metric->name, kinds[metric->kind]);
	for (const struct series *series = metric->series; series; series = series->next) {
		if (metric->kind == HISTOGRAM) {
			add_histogram(buf, metric, series);
			continue;
		}
		add_head(buf, metric, series, "", NULL);
		add_number(buf, series->value);
		roll_buf_add_char(buf, '\n');
	}
}

void roll_metrics_print(const struct roll_metrics *metrics, struct roll_buf *buf)
{
	if (!metrics)
		return;
	for (const struct roll_metric *metric = metrics->first; metric; metric = metric->next)
		add_metric(buf, metric);
}
