/* SPDX-License-Identifier: Apache-2.0 */
#include "source/lease.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/json.h"
#include "base/log.h"

#define API_VERSION "coordination.k8s.io/v1"
#define IDENTITY_MAX 128
#define DURATION_MS 15000
#define RENEW_MS 5000
#define GOODBYE_MS 1000
#define ANSWER_LIMIT_BYTES (256u << 10)
#define BACKOFF_BASE_MS 100

enum step { STEP_NONE, STEP_LOOK, STEP_WRITE, STEP_RELEASE };

struct roll_lease {
	struct roll_lease_conf conf; /* its strings are gone */
	char ns[64];
	char name[64];
	char identity[IDENTITY_MAX + 1 + 16 + 1];
	struct roll_timer *next;     /* what to do next; while leaving: give up */
	struct roll_timer *watchdog; /* is it still ours? */
	struct roll_api_call *call;
	enum step step; /* of the call */
	struct roll_buf answer;

	json_t *record;	     /* the Lease as the server showed it last; NULL: never seen */
	bool is_absent;	     /* it has gone since */
	int64_t observed_ms; /* first seen with this spec */

	/* Both clocks: the monotonic one stops while the machine is suspended. */
	int64_t sent_ms, sent_wall_ms;	     /* the write on its way */
	int64_t renewed_ms, renewed_wall_ms; /* when the last one was sent that was answered */
	bool is_ours;
	bool is_told; /* what on_change was told */

	bool is_troubled;
	bool is_leaving;
	bool is_gone;
	unsigned conflicts; /* in a row */
	unsigned attempt;
	uint64_t seed;
	struct roll_metric *held;
	struct roll_metric *calls;
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

/* --- what the record says --- */

static const json_t *spec_of(const json_t *record)
{
	return roll_json_object(record, "spec");
}

static struct roll_str holder_of(const struct roll_lease *lease)
{
	return lease->is_absent ? roll_str_n(NULL, 0)
				: roll_json_str(spec_of(lease->record), "holderIdentity");
}

/* For how long nobody but the holder may write it; 0 or less: it is free. */
static int64_t others_left_ms(const struct roll_lease *lease)
{
	const json_t *spec = spec_of(lease->record);
	struct roll_str holder = roll_json_str(spec, "holderIdentity");
	json_int_t duration_s = json_integer_value(json_object_get(spec, "leaseDurationSeconds"));

	/* Also of a record that was deleted: its holder may not know yet. */
	if (holder.n == 0 || roll_str_eq_c(holder, lease->identity))
		return 0;
	/* The holder trusts the duration that it wrote. An int32 for the API; no sum overflows. */
	if (duration_s <= 0 || duration_s > INT32_MAX)
		return lease->observed_ms + lease->conf.duration_ms - now_ms(lease);
	return lease->observed_ms + duration_s * 1000 - now_ms(lease);
}

/* Takes the record. */
static enum roll_status observe(struct roll_lease *lease, json_t *record)
{
	if (roll_json_str(roll_json_object(record, "metadata"), "resourceVersion").n == 0) {
		json_decref(record);
		return ROLL_EPROTO;
	}
	/* Labels may change; that is no sign of life of the holder. */
	if (!lease->record || lease->is_absent ||
	    !json_equal(spec_of(lease->record), spec_of(record)))
		lease->observed_ms = now_ms(lease);
	json_decref(lease->record);
	lease->record = record;
	lease->is_absent = false;
	return ROLL_OK;
}

/* --- is it ours? --- */

/* Since the last renewal; whichever clock says more. */
static int64_t age_ms(const struct roll_lease *lease)
{
	int64_t age = now_ms(lease) - lease->renewed_ms;
	int64_t wall_age = roll_clock_wall_ms(lease->conf.clock) - lease->renewed_wall_ms;

	return wall_age > age ? wall_age : age;
}

static int64_t deadline_ms(const struct roll_lease *lease)
{
	return lease->conf.duration_ms / 3 * 2;
}

bool roll_lease_is_held(const struct roll_lease *lease)
{
	return lease->is_ours && age_ms(lease) < deadline_ms(lease);
}

int64_t roll_lease_left_ms(const struct roll_lease *lease)
{
	return roll_lease_is_held(lease) ? lease->conf.duration_ms - age_ms(lease) : 0;
}

const char *roll_lease_identity(const struct roll_lease *lease)
{
	return lease->identity;
}

/* Tell what has changed, and look again before anything else can. */
static void tell(struct roll_lease *lease)
{
	bool is_held = roll_lease_is_held(lease);
	bool is_news = is_held != lease->is_told;

	lease->is_ours = is_held;
	lease->is_told = is_held;
	if (is_held) {
		int64_t left_ms = deadline_ms(lease) - age_ms(lease);

		roll_timer_set(lease->watchdog,
			       left_ms < lease->conf.renew_ms ? left_ms : lease->conf.renew_ms);
	}
	if (!is_news)
		return;
	roll_metric_set(lease->held, NULL, NULL, is_held);
	roll_log(ROLL_INFO, is_held ? "lease-acquired" : "lease-lost", "lease=%s/%s identity=%s",
		 lease->ns, lease->name, lease->identity);
	if (lease->conf.on_change && !lease->is_leaving)
		lease->conf.on_change(lease->conf.ctx, is_held);
}

static void on_watchdog(void *ctx)
{
	tell(ctx);
}

/* --- calls --- */

static void on_done(void *ctx, const struct roll_api_result *result);

static enum roll_status on_body(void *ctx, struct roll_str piece)
{
	struct roll_lease *lease = ctx;

	roll_buf_add_str(&lease->answer, piece);
	return lease->answer.status;
}

static void retry(struct roll_lease *lease, const char *why, int64_t retry_after_ms)
{
	int64_t cap_ms = lease->conf.renew_ms;
	int64_t delay_ms = roll_backoff_ms(&lease->attempt, BACKOFF_BASE_MS, cap_ms, &lease->seed);

	if (retry_after_ms > 0)
		delay_ms += retry_after_ms < cap_ms ? retry_after_ms : cap_ms;
	roll_log(lease->is_troubled ? ROLL_DEBUG : ROLL_WARN, "lease-trouble",
		 "lease=%s/%s reason=\"%s\"", lease->ns, lease->name, why);
	lease->is_troubled = true;
	roll_timer_set(lease->next, delay_ms);
}

/* body: taken, NULL for a GET. */
static void start(struct roll_lease *lease, enum step step, json_t *body)
{
	bool is_new = step == STEP_WRITE && (!lease->record || lease->is_absent);
	struct roll_api_spec spec = {
		.method = step == STEP_LOOK ? "GET" : is_new ? "POST" : "PUT",
		.content_type = step == STEP_LOOK ? NULL : "application/json",
		.total_ms = lease->conf.renew_ms,
		/* Perhaps it is the connection that is dead. */
		.is_alone = lease->attempt > 0,
		.on_body = on_body,
		.on_done = on_done,
		.ctx = lease,
	};
	struct roll_buf text;
	char path[sizeof lease->ns + sizeof lease->name + 64];
	enum roll_status status = ROLL_OK;

	snprintf(path, sizeof path, "/apis/" API_VERSION "/namespaces/%s/leases%s%s", lease->ns,
		 is_new ? "" : "/", is_new ? "" : lease->name);
	spec.path = path;
	roll_buf_init(&text, ANSWER_LIMIT_BYTES * 2);
	if (step != STEP_LOOK) {
		status = body ? roll_json_print(body, &text) : ROLL_ENOMEM;
		spec.body = roll_buf_str(&text);
		lease->sent_ms = now_ms(lease);
		lease->sent_wall_ms = roll_clock_wall_ms(lease->conf.clock);
	}
	roll_buf_reset(&lease->answer);
	lease->step = step;
	if (!status)
		lease->call = roll_api_start(lease->conf.api, &spec);
	roll_buf_fini(&text);
	json_decref(body);
	if (lease->call)
		return;
	if (lease->is_leaving)
		lease->is_gone = true;
	else
		retry(lease, "out of memory", -1);
}

/* The record with our spec in it; whatever else it holds stays. NULL without memory. */
static json_t *written(const struct roll_lease *lease, bool is_release)
{
	const json_t *old = spec_of(lease->record);
	bool is_renewal = roll_str_eq_c(holder_of(lease), lease->identity) && !is_release;
	json_int_t transitions = json_integer_value(json_object_get(old, "leaseTransitions"));
	json_t *acquired = json_object_get(old, "acquireTime");
	char now[ROLL_TIME_MICRO_SIZE];
	json_t *record, *spec;

	roll_time_print_micro(roll_clock_wall_ms(lease->conf.clock), now);
	/* It counts how often the Lease changed hands; giving it back is half of that. */
	if (lease->record && !is_renewal && !is_release && transitions < INT32_MAX)
		transitions++;
	if (lease->record && !lease->is_absent)
		record = json_deep_copy(lease->record);
	else
		record = json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", API_VERSION, "kind", "Lease",
				   "metadata", "name", lease->name, "namespace", lease->ns);
	spec = roll_json_object(record, "spec");
	spec = spec ? json_incref(spec) : json_object();
	if (json_object_set_new(spec, "holderIdentity",
				json_string(is_release ? "" : lease->identity)) ||
	    json_object_set_new(spec, "leaseDurationSeconds",
				json_integer(is_release ? 1 : lease->conf.duration_ms / 1000)) ||
	    json_object_set_new(spec, "leaseTransitions", json_integer(transitions)) ||
	    json_object_set_new(spec, "renewTime", json_string(now)) ||
	    json_object_set_new(spec, "acquireTime",
				is_renewal && acquired ? json_incref(acquired) : json_string(now)) ||
	    json_object_set(record, "spec", spec)) {
		json_decref(record);
		record = NULL;
	}
	json_decref(spec);
	return record;
}

static void release(struct roll_lease *lease)
{
	start(lease, STEP_RELEASE, written(lease, true));
}

/* The record is known: wait, or write it. */
static void act(struct roll_lease *lease)
{
	struct roll_str holder = holder_of(lease);
	int64_t left_ms = others_left_ms(lease), delay_ms;

	/* A hand that is none of the replicas' gave it away. */
	if (!roll_str_eq_c(holder, lease->identity)) {
		lease->is_ours = false;
		tell(lease);
	}
	if (left_ms <= 0) {
		start(lease, STEP_WRITE, written(lease, false));
		return;
	}
	lease->attempt = 0;
	lease->conflicts = 0;
	/* Replicas that wait for the same record should not all come at once. */
	delay_ms = lease->conf.renew_ms / 2 + random_ms(lease, lease->conf.renew_ms / 2);
	if (left_ms < delay_ms)
		delay_ms = left_ms + random_ms(lease, lease->conf.renew_ms / 10 + 1);
	roll_timer_set(lease->next, delay_ms);
}

static void on_next(void *ctx)
{
	struct roll_lease *lease = ctx;

	if (lease->is_leaving) {
		lease->is_gone = true;
		return;
	}
	tell(lease);
	if (lease->is_ours && !lease->conflicts)
		act(lease);
	else
		start(lease, STEP_LOOK, NULL);
}

static void on_written(struct roll_lease *lease)
{
	int64_t passed_ms = now_ms(lease) - lease->sent_ms, delay_ms;

	lease->is_ours = true;
	lease->renewed_ms = lease->sent_ms;
	lease->renewed_wall_ms = lease->sent_wall_ms;
	lease->conflicts = 0;
	lease->attempt = 0;
	/* So early that one renewal that gets no answer can be repeated in time. */
	delay_ms = lease->conf.renew_ms * 3 / 5 + random_ms(lease, lease->conf.renew_ms / 5) - passed_ms;
	roll_timer_set(lease->next, delay_ms > 0 ? delay_ms : 0);
	tell(lease);
}

static void on_done(void *ctx, const struct roll_api_result *result)
{
	static const char *const names[] = {"none", "get", "write", "release"};
	struct roll_lease *lease = ctx;
	enum step step = lease->step;
	enum roll_status status = result->status;
	const char *why = result->text;
	json_t *record = NULL;

	lease->call = NULL;
	if (!status) {
		status = roll_json_parse(roll_buf_str(&lease->answer), &record, NULL);
		if (!status)
			status = observe(lease, record);
		why = "the answer is no Lease";
	}
	roll_metric_add(lease->calls, names[step], status ? "error" : "ok", 1);
	if (!status && lease->is_troubled) {
		lease->is_troubled = false;
		roll_log(ROLL_INFO, "lease-trouble-over", "lease=%s/%s", lease->ns, lease->name);
	}
	if (lease->is_leaving) {
		if (!status && step == STEP_WRITE)
			release(lease);
		else
			lease->is_gone = true;
		return;
	}
	if (!status && step == STEP_WRITE) {
		on_written(lease);
	} else if (!status) {
		act(lease);
	} else if (result->http_status == 404 && step == STEP_LOOK) {
		lease->is_absent = true;
		act(lease);
	} else if (result->http_status == 404 && lease->record && !lease->is_absent) {
		/* Deleted: anybody may make a new one. */
		lease->is_absent = true;
		act(lease);
	} else if (result->http_status == 409) {
		/* Somebody was faster, or it was ourselves and the answer got lost. */
		if (++lease->conflicts == 1)
			roll_timer_set(lease->next, 0);
		else
			retry(lease, why, result->retry_after_ms);
	} else {
		retry(lease, why, result->retry_after_ms);
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
				    "the identity must be 1 to %d printable characters", IDENTITY_MAX);
	if (conf->duration_ms <= 0 || conf->duration_ms % 1000 != 0 ||
	    conf->duration_ms > INT32_MAX || conf->renew_ms <= 0 ||
	    conf->renew_ms > conf->duration_ms / 3)
		return roll_err_set(err, ROLL_EINVAL, "lease",
				    "the duration must be whole seconds, renewals at least three times "
				    "as often");
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
	if (!conf->duration_ms)
		lease->conf.duration_ms = DURATION_MS;
	if (!conf->renew_ms)
		lease->conf.renew_ms = RENEW_MS;
	status = check(&lease->conf, err);
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
		lease->held = roll_metric_gauge(conf->metrics, "rollcall_lease_held",
						"1 in the replica that holds the Lease.", NULL, NULL);
		lease->calls = roll_metric_counter(conf->metrics, "rollcall_lease_calls_total",
						   "Requests about the Lease, by kind and result.",
						   "call", "result");
		roll_metric_set(lease->held, NULL, NULL, 0);
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

/* A renewal on its way is waited for: with its answer comes the version that can be written. */
static void leave(struct roll_lease *lease)
{
	lease->is_leaving = true;
	roll_timer_set(lease->next, GOODBYE_MS);
	if (!lease->call)
		release(lease);
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
	roll_api_cancel(lease->call);
	roll_timer_free(lease->next);
	roll_timer_free(lease->watchdog);
	roll_buf_fini(&lease->answer);
	json_decref(lease->record);
	free(lease);
}
