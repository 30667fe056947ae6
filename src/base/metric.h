/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_BASE_METRIC_H
#define ROLL_BASE_METRIC_H

#include <stdint.h>

#include "base/str.h"

/*
 * Counters, gauges and histograms, and their Prometheus text form (exposition format 0.0.4). No
 * I/O. A metric family is registered once and lives as long as its registry; series of a family
 * are told apart by the value of at most two labels. Names follow the Prometheus conventions:
 * rollcall_<what>_<unit>, counters end in _total, times in seconds.
 */
struct roll_metrics;
struct roll_metric;

struct roll_metrics *roll_metrics_new(void);
void roll_metrics_free(struct roll_metrics *metrics);

/* label names may be NULL. NULL is returned only without memory; all functions below accept it. */
struct roll_metric *roll_metric_counter(struct roll_metrics *metrics, const char *name,
					const char *help, const char *label1, const char *label2);
struct roll_metric *roll_metric_gauge(struct roll_metrics *metrics, const char *name,
				      const char *help, const char *label1, const char *label2);
/* bounds in seconds, rising, without +Inf; the array must live as long as the registry. */
struct roll_metric *roll_metric_histogram(struct roll_metrics *metrics, const char *name,
					  const char *help, const char *label1,
					  const double *bounds, size_t bound_count);

/* Values for labels that the family does not have are NULL. Label values are copied. */
void roll_metric_add(struct roll_metric *metric, const char *value1, const char *value2, double by);
void roll_metric_set(struct roll_metric *metric, const char *value1, const char *value2, double to);
void roll_metric_observe(struct roll_metric *metric, const char *value1, double seconds);
double roll_metric_value(const struct roll_metric *metric, const char *value1, const char *value2);

/* Everything, families in order of registration, series in order of first use. */
void roll_metrics_print(const struct roll_metrics *metrics, struct roll_buf *buf);

#endif
