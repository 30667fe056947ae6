/* SPDX-License-Identifier: Apache-2.0 */
#include "source/lease.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/json.h"
#include "base/log.h"

#define API_VERSION "coordination.k8s.io/v1"
#define RESOURCE "leases.coordination.k8s.io"
#define IDENTITY_MAX 128
#define ANSWER_LIMIT_BYTES (256u << 10)

#define DURATION_S 15
#define DURATION_MS (DURATION_S * 1000)
#define HELD_MS 10000	    /* after a renewal was sent; no write begins later, */
#define WRITES_END_MS 13500 /* and none ends later */
/*
 * The two that come again and again are spread by a quarter. A renewal that gets no answer can be
 * repeated while the lease is still held.
 */
#define RENEW_MS 3000
#define LOOK_MS 2000
#define ANSWER_MS 5000
#define TURN_OVER_MS 500 /* so that not all who wait take it at the same moment */
#define GOODBYE_MS 1000
#define BACKOFF_BASE_MS 100
#define BACKOFF_CAP_MS 5000
#define DENIED_CAP_MS 60000 /* a person has to do something */

enum step { LOOK, CREATE, UPDATE, RELEASE };

static const struct {
	const char *method;
	const char *verb; /* as roles name it */
} steps[] = {
	[LOOK] = {"GET", "get"},
	[CREATE] = {"POST", "create"},
	[UPDATE] = {"PUT", "update"},
	[RELEASE] = {"PUT", "update"},
};

/* What the log was told last; said again only if it gets worse. */
enum trouble { NONE, FAILED, DENIED };

/* The monotonic clock stands still while the machine is suspended; the other one may be set. */
struct stamp {
	int64_t monotonic_ms;
	int64_t wall_ms;
};

struct roll_lease {
	struct roll_lease_conf conf; /* its strings are gone */
	char ns[64];
	char name[64];
	char identity[IDENTITY_MAX + 1 + 16 + 1];
	struct roll_timer *next;     /* what to do next; while leaving: give up */
	struct roll_timer *watchdog; /* our time is over */
	struct roll_api_call *call;
	enum step step; /* of the call */
	struct roll_buf answer;

	json_t *record;		 /* as the server showed it last; NULL: there was none */
	int64_t others_until_ms; /* until then somebody else may believe to hold it */
	struct stamp sent;	 /* the request on its way, or the last one */
	struct stamp renewed;	 /* when the last write was sent that was answered */
	bool is_holder;		 /* as on_change was told */

	unsigned attempt; /* failures in a row */
	enum trouble trouble;
	char why[300]; /* of the latest failure, as long as there is trouble */
	bool is_leaving;
	bool is_gone;
	uint64_t seed;
	struct roll_metric *held, *acquired, *requests;
};

static int64_t now_ms(const struct roll_lease *lease)
{
	return roll_clock_monotonic_ms(lease->conf.clock);
}

/* 1 to window_ms. */
static int64_t random_ms(struct roll_lease *lease, int64_t window_ms)
{
	unsigned first = 0;

	return roll_backoff_ms(&first, window_ms, window_ms, &lease->seed);
}

static int64_t about_ms(struct roll_lease *lease, int64_t ms)
{
	return ms * 3 / 4 + random_ms(lease, ms / 2);
}

/* --- what the record says --- */

static const json_t *spec_of(const json_t *record)
{
	return roll_json_object(record, "spec");
}

static struct roll_str holder_of(const json_t *record)
{
	return roll_json_str(spec_of(record), "holderIdentity");
}

/* 0: nothing that the API knows as a duration. */
static int64_t duration_ms_of(const json_t *record)
{
	json_int_t seconds =
		json_integer_value(json_object_get(spec_of(record), "leaseDurationSeconds"));

	return seconds > 0 && seconds <= INT32_MAX ? seconds * 1000 : 0;
}

static bool is_ours(const struct roll_lease *lease, const json_t *record)
{
	return roll_str_eq_c(holder_of(record), lease->identity);
}

/* As we leave it behind, and client-go too. */
static bool is_released(const json_t *record)
{
	return holder_of(record).n == 0 && duration_ms_of(record) == 1000;
}

static struct roll_str version_of(const json_t *record)
{
	return roll_json_str(roll_json_object(record, "metadata"), "resourceVersion");
}

static void tell_holder(const struct roll_lease *lease, const json_t *before)
{
	struct roll_str holder = holder_of(lease->record);
	char shown[200];

	if (holder.n == 0 || roll_str_eq(holder, holder_of(before)))
		return;
	roll_log(ROLL_INFO, "lease-held-by-other", "lease=%s/%s holder=\"%s\" seconds=%lld",
		 lease->ns, lease->name, roll_str_show(holder, shown, sizeof shown),
		 (long long)duration_ms_of(lease->record) / 1000);
}

/*
 * Takes the record; NULL: there is none. What we have written ourselves was ours to write. Who
 * gives it back does not write any more. Behind any other change there may be a holder, that of now
 * or that of a moment ago.
 */
static void observe(struct roll_lease *lease, json_t *record)
{
	json_t *before = lease->record;
	/* Without a holder the duration is nobody's. */
	int64_t duration_ms = holder_of(record).n ? duration_ms_of(record) : 0;

	lease->record = record;
	if (!is_ours(lease, record) && !roll_str_eq(version_of(before), version_of(record))) {
		lease->others_until_ms = now_ms(lease);
		if (!is_released(record))
			lease->others_until_ms +=
				duration_ms > DURATION_MS ? duration_ms : DURATION_MS;
		tell_holder(lease, before);
	}
	json_decref(before);
}

/* --- is it ours? --- */

static struct stamp stamp(const struct roll_lease *lease)
{
	return (struct stamp){now_ms(lease), roll_clock_wall_ms(lease->conf.clock)};
}

/* Since the last renewal; whichever clock says more. */
static int64_t age_ms(const struct roll_lease *lease)
{
	struct stamp now = stamp(lease);
	int64_t age = now.monotonic_ms - lease->renewed.monotonic_ms;
	int64_t wall_age = now.wall_ms - lease->renewed.wall_ms;

	return wall_age > age ? wall_age : age;
}

bool roll_lease_is_held(const struct roll_lease *lease)
{
	return lease->is_holder && age_ms(lease) < HELD_MS;
}

int64_t roll_lease_left_ms(const struct roll_lease *lease)
{
	int64_t age = age_ms(lease);

	return lease->is_holder && age < HELD_MS ? WRITES_END_MS - age : 0;
}

const char *roll_lease_trouble(const struct roll_lease *lease)
{
	return lease->trouble && !roll_lease_is_held(lease) ? lease->why : NULL;
}

const char *roll_lease_identity(const struct roll_lease *lease)
{
	return lease->identity;
}

static void change(struct roll_lease *lease, bool is_holder)
{
	if (lease->is_holder == is_holder)
		return;
	lease->is_holder = is_holder;
	roll_metric_set(lease->held, NULL, NULL, is_holder);
	roll_metric_add(lease->acquired, NULL, NULL, is_holder);
	roll_log(ROLL_INFO, is_holder ? "lease-acquired" : "lease-lost", "lease=%s/%s identity=%s",
		 lease->ns, lease->name, lease->identity);
	if (lease->conf.on_change && !lease->is_leaving)
		lease->conf.on_change(lease->conf.ctx, is_holder);
}

static void on_watchdog(void *ctx)
{
	struct roll_lease *lease = ctx;

	change(lease, roll_lease_is_held(lease));
}

/* --- requests --- */

static void on_done(void *ctx, const struct roll_api_result *result);

static enum roll_status on_body(void *ctx, struct roll_str piece)
{
	struct roll_lease *lease = ctx;

	roll_buf_add_str(&lease->answer, piece);
	return lease->answer.status;
}

/* All is well: the record is known, and there is time. */
static void rest(struct roll_lease *lease, int64_t delay_ms)
{
	if (lease->trouble)
		roll_log(ROLL_INFO, "lease-trouble-over", "lease=%s/%s", lease->ns, lease->name);
	lease->trouble = NONE;
	lease->attempt = 0;
	roll_timer_set(lease->next, delay_ms);
}

static void retry(struct roll_lease *lease, enum trouble trouble, const char *why,
		  int64_t retry_after_ms)
{
	int64_t delay_ms =
		roll_backoff_ms(&lease->attempt, BACKOFF_BASE_MS,
				trouble == DENIED ? DENIED_CAP_MS : BACKOFF_CAP_MS, &lease->seed);

	if (retry_after_ms > 0)
		delay_ms += retry_after_ms < BACKOFF_CAP_MS ? retry_after_ms : BACKOFF_CAP_MS;
	roll_log(trouble > lease->trouble ? ROLL_WARN : ROLL_DEBUG,
		 trouble == DENIED ? "lease-denied" : "lease-trouble",
		 "lease=%s/%s verb=%s resource=" RESOURCE " reason=\"%s\"", lease->ns, lease->name,
		 steps[lease->step].verb, why);
	snprintf(lease->why, sizeof lease->why, "%s " RESOURCE " %s/%s: %s",
		 steps[lease->step].verb, lease->ns, lease->name, why);
	if (trouble > lease->trouble)
		lease->trouble = trouble;
	roll_timer_set(lease->next, delay_ms);
}

/* The record with our spec in it; whatever else it holds stays. NULL without memory. */
static json_t *written(const struct roll_lease *lease, enum step step)
{
	const json_t *old = spec_of(lease->record);
	bool is_renewal = step == UPDATE && is_ours(lease, lease->record);
	json_int_t transitions = json_integer_value(json_object_get(old, "leaseTransitions"));
	json_t *acquired = json_object_get(old, "acquireTime"), *record, *spec;
	char now[ROLL_TIME_MICRO_SIZE];

	roll_time_print_micro(roll_clock_wall_ms(lease->conf.clock), now);
	if (transitions < 0 || transitions >= INT32_MAX)
		transitions = 0;
	/* It counts how often the Lease changed hands; giving it back is half of that. */
	if (step == UPDATE && !is_renewal)
		transitions++;
	if (step == CREATE)
		record =
			json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", API_VERSION, "kind",
				  "Lease", "metadata", "name", lease->name, "namespace", lease->ns);
	else
		record = json_deep_copy(lease->record);
	spec = roll_json_object(record, "spec");
	spec = spec ? json_incref(spec) : json_object();
	if (json_object_set_new(spec, "holderIdentity",
				json_string(step == RELEASE ? "" : lease->identity)) ||
	    json_object_set_new(spec, "leaseDurationSeconds",
				json_integer(step == RELEASE ? 1 : DURATION_S)) ||
	    json_object_set_new(spec, "leaseTransitions", json_integer(transitions)) ||
	    json_object_set_new(spec, "renewTime", json_string(now)) ||
	    json_object_set_new(spec, "acquireTime",
				is_renewal && json_is_string(acquired) ? json_incref(acquired)
								       : json_string(now)) ||
	    json_object_set(record, "spec", spec)) {
		json_decref(record);
		record = NULL;
	}
	json_decref(spec);
	return record;
}

static void start(struct roll_lease *lease, enum step step)
{
	struct roll_api_spec spec = {
		.method = steps[step].method,
		.content_type = step == LOOK ? NULL : "application/json",
		.total_ms = ANSWER_MS,
		/* Perhaps it is the connection that is dead. */
		.is_alone = lease->attempt > 0,
		.on_body = on_body,
		.on_done = on_done,
		.ctx = lease,
	};
	json_t *record = step == LOOK ? NULL : written(lease, step);
	char path[sizeof lease->ns + sizeof lease->name + 64];
	enum roll_status status = ROLL_OK;
	struct roll_buf text;

	snprintf(path, sizeof path, "/apis/" API_VERSION "/namespaces/%s/leases%s%s", lease->ns,
		 step == CREATE ? "" : "/", step == CREATE ? "" : lease->name);
	spec.path = path;
	roll_buf_init(&text, ANSWER_LIMIT_BYTES * 2);
	if (step != LOOK)
		status = record ? roll_json_print(record, &text) : ROLL_ENOMEM;
	spec.body = roll_buf_str(&text);
	lease->sent = stamp(lease);
	lease->step = step;
	roll_buf_reset(&lease->answer);
	if (!status)
		lease->call = roll_api_start(lease->conf.api, &spec);
	roll_buf_fini(&text);
	json_decref(record);
	if (lease->call)
		return;
	if (lease->is_leaving)
		lease->is_gone = true;
	else
		retry(lease, FAILED, "out of memory", -1);
}

/* The record is known: wait, or write it. */
static void act(struct roll_lease *lease)
{
	int64_t left_ms = lease->others_until_ms - now_ms(lease);
	int64_t delay_ms = about_ms(lease, LOOK_MS);

	if (!is_ours(lease, lease->record))
		change(lease, false);
	if (left_ms <= 0) {
		start(lease, lease->record ? UPDATE : CREATE);
		return;
	}
	if (left_ms < delay_ms)
		delay_ms = left_ms + random_ms(lease, TURN_OVER_MS);
	rest(lease, delay_ms);
}

static void on_next(void *ctx)
{
	struct roll_lease *lease = ctx;

	if (lease->is_leaving) {
		lease->is_gone = true;
		return;
	}
	on_watchdog(lease);
	/* After a failure we do not know what became of our write. */
	if (lease->is_holder && lease->attempt == 0)
		act(lease);
	else
		start(lease, LOOK);
}

static void on_written(struct roll_lease *lease)
{
	int64_t age, delay_ms = about_ms(lease, RENEW_MS);

	on_watchdog(lease);
	lease->renewed = lease->sent;
	age = age_ms(lease);
	rest(lease, delay_ms > age ? delay_ms - age : 0);
	if (age < HELD_MS)
		roll_timer_set(lease->watchdog, HELD_MS - age);
	change(lease, age < HELD_MS);
}

static enum roll_status read_answer(struct roll_lease *lease)
{
	json_t *record = NULL;
	enum roll_status status = roll_json_parse(roll_buf_str(&lease->answer), &record, NULL);

	if (!status && version_of(record).n == 0)
		status = ROLL_EPROTO;
	if (status)
		json_decref(record);
	else
		observe(lease, record);
	return status;
}

static const char *result_name(enum roll_status status, int http_status)
{
	if (!status)
		return "ok";
	if (http_status == 404)
		return "absent";
	if (http_status == 409)
		return "conflict";
	return status == ROLL_EDENIED ? "denied" : "failed";
}

static void on_done(void *ctx, const struct roll_api_result *result)
{
	struct roll_lease *lease = ctx;
	enum roll_status status = result->status;
	const char *why = result->text;
	enum step step = lease->step;

	lease->call = NULL;
	if (!status) {
		status = read_answer(lease);
		why = "the answer is no Lease";
	}
	roll_metric_add(lease->requests, steps[step].verb, result_name(status, result->http_status),
			1);
	if (lease->is_leaving) {
		if (!status && step != RELEASE && is_ours(lease, lease->record))
			start(lease, RELEASE);
		else
			lease->is_gone = true;
	} else if (!status && step == LOOK) {
		act(lease);
	} else if (!status) {
		on_written(lease);
	} else if (result->http_status == 404 && step == LOOK) {
		observe(lease, NULL);
		act(lease);
	} else if (result->http_status == 409 && lease->attempt == 0) {
		/* Somebody was faster, or has deleted it. */
		lease->attempt++;
		roll_timer_set(lease->next, 0);
	} else {
		retry(lease, status == ROLL_EDENIED ? DENIED : FAILED, why, result->retry_after_ms);
	}
}

/* --- life --- */

/* An RFC 1123 label, which goes into paths as it is. */
static bool is_label(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)name[i];

		if (!(c >= 'a' && c <= 'z') && !roll_is_digit(c) &&
		    (c != '-' || i == 0 || i == n - 1))
			return false;
	}
	return n > 0 && n <= 63;
}

static bool is_identity(const char *text)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i++) {
		if (text[i] <= ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\')
			return false;
	}
	return n > 0 && n <= IDENTITY_MAX;
}

static enum roll_status check(const struct roll_lease_conf *conf, struct roll_err *err)
{
	if (!is_label(conf->ns) || !is_label(conf->name))
		return roll_err_set(err, ROLL_EINVAL, "lease", "no name of a namespace or a Lease");
	if (!is_identity(conf->identity))
		return roll_err_set(err, ROLL_EINVAL, "lease",
				    "the identity must be 1 to %d printable characters",
				    IDENTITY_MAX);
	return ROLL_OK;
}

enum roll_status roll_lease_new(const struct roll_lease_conf *conf, struct roll_lease **out,
				struct roll_err *err)
{
	struct roll_lease *lease = calloc(1, sizeof *lease);
	enum roll_status status = ROLL_ENOMEM;

	if (!lease)
		goto out;
	lease->conf = *conf;
	status = check(conf, err);
	if (status)
		goto out;
	status = ROLL_EIO;
	if (getrandom(&lease->seed, sizeof lease->seed, 0) != (ssize_t)sizeof lease->seed) {
		roll_err_set(err, status, "lease", "no random number to be had");
		goto out;
	}
	snprintf(lease->ns, sizeof lease->ns, "%s", conf->ns);
	snprintf(lease->name, sizeof lease->name, "%s", conf->name);
	snprintf(lease->identity, sizeof lease->identity, "%s_%016llx", conf->identity,
		 (unsigned long long)lease->seed);
	lease->conf.ns = lease->conf.name = lease->conf.identity = NULL;
	roll_buf_init(&lease->answer, ANSWER_LIMIT_BYTES);
	if (conf->metrics) {
		lease->held = roll_metric_gauge(
			conf->metrics, "rollcall_sync_lease_held",
			"1 while this replica holds the Lease, by which it writes status.", NULL,
			NULL);
		lease->acquired =
			roll_metric_counter(conf->metrics, "rollcall_sync_lease_acquired_total",
					    "Times this replica got the Lease.", NULL, NULL);
		lease->requests = roll_metric_counter(
			conf->metrics, "rollcall_sync_lease_requests_total",
			"Requests for the Lease by verb and result: ok, absent, conflict, denied, "
			"failed.",
			"verb", "result");
		roll_metric_set(lease->held, NULL, NULL, 0);
		roll_metric_add(lease->acquired, NULL, NULL, 0);
	}
	status = ROLL_ENOMEM;
	lease->next = roll_timer_new(conf->loop, on_next, lease);
	lease->watchdog = roll_timer_new(conf->loop, on_watchdog, lease);
	if (!lease->next || !lease->watchdog)
		goto out;
	roll_timer_set(lease->next, 0);
	*out = lease;
	return ROLL_OK;
out:
	roll_lease_free(lease);
	return status == ROLL_ENOMEM ? roll_err_set(err, status, "lease", "out of memory") : status;
}

/* Only what the server has now can be written: what is on its way is waited for. */
static void leave(struct roll_lease *lease)
{
	lease->is_leaving = true;
	roll_timer_set(lease->next, GOODBYE_MS);
	if (!lease->call)
		start(lease, lease->attempt ? LOOK : RELEASE);
	while (!lease->is_gone) {
		if (roll_loop_once(lease->conf.loop))
			break;
	}
}

void roll_lease_free(struct roll_lease *lease)
{
	if (!lease)
		return;
	if (roll_lease_is_held(lease))
		leave(lease);
	roll_metric_set(lease->held, NULL, NULL, 0);
	roll_api_cancel(lease->call);
	roll_timer_free(lease->next);
	roll_timer_free(lease->watchdog);
	roll_buf_fini(&lease->answer);
	json_decref(lease->record);
	free(lease);
}
