/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SYNC_EVENTS_H
#define ROLL_SYNC_EVENTS_H

#include "base/metric.h"
#include "model/object.h"
#include "source/api.h"

/*
 * What happened to an object, for whoever looks at it: events.k8s.io/v1. Nothing depends on them:
 * they are sent when there is time, one after the other, and dropped rather than waited for.
 *
 * The same event again within ten minutes becomes a series of the first; repeats are gathered for
 * half a minute before the server is told. An object may cause ten different events in a row and
 * one more each minute. What cannot be sent for ten minutes is dropped. The memory of those ten
 * minutes is bounded, and what finds it full is dropped as well.
 */
struct roll_events;

struct roll_events_conf {
	struct roll_loop *loop;
	struct roll_api *api;
	const char *instance; /* which replica: reportingInstance, cut after 128 bytes; copied */
	const struct roll_clock *clock;
	struct roll_metrics *metrics; /* may be NULL */
};

/* All is copied. */
struct roll_event {
	enum roll_kind kind;
	struct roll_str ns, name, uid;
	/* The DNSZone it is about, if it is not the object itself; may be empty. */
	struct roll_str zone_name, zone_uid;
	const char *reason; /* one of those below */
	bool is_warning;
	const char *note; /* UTF-8; cut after 1024 bytes */
};

#define ROLL_EVENT_ZONE_PROGRAMMED "ZoneProgrammed"
#define ROLL_EVENT_ZONE_FAILED "ZoneProgrammingFailed"
#define ROLL_EVENT_RECORDSET_PROGRAMMED "RecordSetProgrammed"
#define ROLL_EVENT_RECORDSET_FAILED "RecordSetProgrammingFailed"
#define ROLL_EVENT_CONFLICT "Conflict"
#define ROLL_EVENT_ZONE_IN_USE "DNSZoneInUse"

/* EINVAL: no instance. */
enum roll_status roll_events_new(const struct roll_events_conf *conf, struct roll_events **out,
				 struct roll_err *err) ROLL_MUST_CHECK;
/* What was not sent is forgotten. Not to be called from a callback. Accepts NULL. */
void roll_events_free(struct roll_events *events);
/* Never waits and never fails. */
void roll_events_note(struct roll_events *events, const struct roll_event *event);
/* What was not sent is forgotten, what is on its way cancelled. Not to be called from roll_api. */
void roll_events_clear(struct roll_events *events);
/* Those that still have to be sent. */
size_t roll_events_pending(const struct roll_events *events);

#endif
