/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SERVER_HEALTH_H
#define ROLL_SERVER_HEALTH_H

#include "app/httpd.h"
#include "base/clock.h"
#include "base/metric.h"
#include "server/conn.h"
#include "server/method.h"
#include "view/read.h"

/*
 * What --http shows: /metrics, /healthz (the loop turns) and /readyz (the view can be answered
 * from).
 */
struct roll_health {
	struct roll_view *view;
	struct roll_methods *methods;
	struct roll_conns *conns;
	struct roll_metrics *metrics;
	const struct roll_clock *clock;
	struct roll_metric *ready;
	struct roll_metric *generation;
	struct roll_metric *age;
	struct roll_metric *objects;
	struct roll_metric *names;
	struct roll_metric *confirmed;
	struct roll_metric *pending;
};

/* Register the gauges of the view; the members before them are set by the caller. */
void roll_health_init(struct roll_health *health);
/* The three paths; health must live as long as httpd. */
enum roll_status roll_health_attach(struct roll_health *health,
				    struct roll_httpd *httpd) ROLL_MUST_CHECK;

#endif
