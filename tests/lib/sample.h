/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_SAMPLE_H
#define TESTS_LIB_SAMPLE_H

#include "base/metric.h"

/* A whole number as /metrics shows it; series with its labels: "a_total{b=\"c\"}". 0: not there. */
uint32_t sample(const struct roll_metrics *metrics, const char *series);

#endif
