/* SPDX-License-Identifier: Apache-2.0 */
#include "server/method.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "server/answer.h"
#include "server/memo.h"
#include "server/request.h"

/*
 * Answering SERVFAIL has two forms here: a refused `initialize`, and an object without a result to
 * anything else. PowerDNS drops the connection on both and begins anew with the next query, which
 * is what heals it once the view is there. The second is better than closing the connection
 * ourselves in that whoever reads the socket sees why.
 */

#define NAMES_MAX 32u
#define NAME_SHOWN_BYTES 64u

/* What became of a call, as metrics tell it. */
enum outcome { ANSWERED, EMPTY, REFUSED, FAILED, OUTCOMES };
static const char *const outcome_names[] = {"answered", "empty", "refused", "failed"};

static const double latency_bounds[] = {1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4,
					5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 1e-1, 1};

/*
 * `initialize` is never answered with a failure object: PowerDNS would keep the connection without
 * having initialized it.
 */
static enum roll_status answer_initialize(struct roll_answer *answer,
					  const struct roll_request *request, struct roll_err *err)
{
	struct roll_snap *snap = NULL;
	struct roll_err why = {.text = ""};

	(void)request;
	(void)err;
	if (roll_answer_snap(answer, &snap, &why)) {
		roll_answer_complain(answer, ROLL_COMPLAINT_REFUSED, "initialize", why.text);
		answer->is_empty = true;
		roll_reply_result(&answer->reply, "false");
	} else {
		roll_snap_end(snap);
		roll_reply_result(&answer->reply, "true");
	}
	return answer->reply.out->status;
}

/*
 * A number of ours or of nobody: our zones are native, nothing is notified, and nothing that we
 * answer depends on it. Refusing would make PowerDNS log an error and notify again.
 */
static enum roll_status answer_set_notified(struct roll_answer *answer,
					    const struct roll_request *request,
					    struct roll_err *err)
{
	if (!roll_request_param(request, "id", ROLL_PARAM_INTEGER) ||
	    !roll_request_param(request, "serial", ROLL_PARAM_INTEGER))
		return roll_err_set(err, ROLL_EPROTO, NULL, "id or serial is not a number");
	roll_reply_result(&answer->reply, "true");
	return answer->reply.out->status;
}

static void add_status(struct roll_answer *answer, struct roll_buf *out)
{
	const struct roll_head *head;
	struct roll_snap *snap = NULL;
	struct roll_err why = {.text = ""};
	int64_t age_ms;

	if (roll_answer_snap(answer, &snap, &why)) {
		roll_buf_printf(out, "not ready: %s", why.text);
		return;
	}
	head = roll_snap_head(snap);
	age_ms = roll_clock_wall_ms(answer->clock) - head->confirmed_ms;
	roll_buf_printf(out,
			"ready generation=%" PRIu64 " confirmed_age_ms=%" PRId64 " classes=%" PRIu64
			" zones=%" PRIu64 " recordsets=%" PRIu64 " names=%" PRIu64,
			head->generation, age_ms, head->object_count[ROLL_ROW_CLASS],
			head->object_count[ROLL_ROW_ZONE], head->object_count[ROLL_ROW_RECORDSET],
			head->name_count);
	roll_snap_end(snap);
}

/* `pdnsutil backend-cmd remote status`; anything else comes back as it is. */
static enum roll_status answer_command(struct roll_answer *answer,
				       const struct roll_request *request, struct roll_err *err)
{
	const struct roll_param *query = roll_request_param(request, "query", ROLL_PARAM_STRING);
	struct roll_buf text;

	if (!query)
		return roll_err_set(err, ROLL_EPROTO, NULL, "query is missing or not a string");
	roll_buf_init(&text, 1024);
	if (roll_str_eq_c(query->text, "status")) {
		add_status(answer, &text);
		roll_reply_string(&answer->reply, roll_buf_str(&text));
	} else {
		roll_reply_string(&answer->reply, query->text);
	}
	roll_buf_fini(&text);
	return answer->reply.out->status;
}

/*
 * Rows have either a function or a constant result. That we have no metadata, keys and zones of
 * other kinds than native is true whatever the view holds. The order is that of frequency.
 */
struct method {
	const char *name;
	roll_answer_fn answer;
	const char *result;
	enum outcome outcome; /* of a constant result, or of one that says nothing */
};

#define WRITE(name)                          \
	{                                    \
		name, NULL, "false", REFUSED \
	}
static const struct method methods_table[] = {
	{"lookup", roll_answer_lookup, NULL, EMPTY},
	{"getAllDomainMetadata", NULL, "{}", EMPTY},
	{"initialize", answer_initialize, NULL, REFUSED},
	{"getAllDomains", roll_answer_domains, NULL, EMPTY},
	{"getDomainInfo", roll_answer_domain, NULL, EMPTY},
	{"list", roll_answer_list, NULL, EMPTY},
	{"APILookup", roll_answer_lookup, NULL, EMPTY},
	{"getDomainMetadata", NULL, "[]", EMPTY},
	{"getDomainKeys", NULL, "[]", EMPTY},
	{"getTSIGKey", NULL, "false", EMPTY},
	{"getTSIGKeys", NULL, "[]", EMPTY},
	{"getUpdatedMasters", NULL, "[]", EMPTY},
	{"getUnfreshSlaveInfos", NULL, "[]", EMPTY},
	{"setNotified", answer_set_notified, NULL, REFUSED},
	{"searchRecords", roll_answer_search, NULL, EMPTY},
	{"directBackendCmd", answer_command, NULL, REFUSED},
	WRITE("setDomainMetadata"),
	WRITE("addDomainKey"),
	WRITE("removeDomainKey"),
	WRITE("activateDomainKey"),
	WRITE("deactivateDomainKey"),
	WRITE("publishDomainKey"),
	WRITE("unpublishDomainKey"),
	WRITE("setTSIGKey"),
	WRITE("deleteTSIGKey"),
	WRITE("superMasterBackend"),
	WRITE("createSlaveDomain"),
	WRITE("replaceRRSet"),
	WRITE("feedRecord"),
	WRITE("feedEnts"),
	WRITE("feedEnts3"),
	WRITE("startTransaction"),
	WRITE("commitTransaction"),
	WRITE("abortTransaction"),
	WRITE("setFresh"),
	WRITE("setStale"),
	/*
	 * Asked in signed zones only, which we do not have. "false" would be taken for an answer
	 * and made into a wrong proof of absence; without a result it is a failure.
	 */
	{"getBeforeAndAfterNamesAbsolute", NULL, NULL, FAILED},
};
#define METHOD_LOOKUP 0u
#define METHOD_COUNT (sizeof methods_table / sizeof *methods_table)
_Static_assert(METHOD_COUNT <= 64, "refused_seen has one bit per method");

struct roll_methods {
	struct roll_answer answer;
	struct roll_memo *memo; /* of lookups; NULL: there was no memory for it */
	struct roll_metric *calls;
	struct roll_metric *seconds;
	uint64_t refused_seen; /* one bit per row of the table */
	/* By method, the last for unknown ones: what was, and of that what metrics know already. */
	uint64_t counts[METHOD_COUNT + 1][OUTCOMES];
	uint64_t told[METHOD_COUNT + 1][OUTCOMES];
	char unknown[NAMES_MAX][NAME_SHOWN_BYTES];
	size_t unknown_count;
};

static const struct method *find_method(struct roll_str name)
{
	for (size_t i = 0; i < METHOD_COUNT; i++) {
		if (roll_str_eq_nocase(name, roll_str_c(methods_table[i].name)))
			return &methods_table[i];
	}
	return NULL;
}

struct roll_methods *roll_methods_new(const struct roll_methods_conf *conf)
{
	struct roll_methods *methods = calloc(1, sizeof *methods);

	if (!methods)
		return NULL;
	methods->answer = (struct roll_answer){.view = conf->view,
					       .clock = conf->clock,
					       .max_stale_ms = conf->max_stale_ms,
					       .is_cacheable = conf->is_cacheable};
	roll_reply_init(&methods->answer.reply);
	methods->memo = roll_memo_new();
	if (conf->metrics) {
		methods->calls = roll_metric_counter(
			conf->metrics, "rollcall_server_calls_total",
			"Requests of PowerDNS by method and by what became of them.", "method",
			"result");
		methods->seconds = roll_metric_histogram(
			conf->metrics, "rollcall_server_call_seconds",
			"Time from a whole request to its whole reply.", NULL, latency_bounds,
			sizeof latency_bounds / sizeof *latency_bounds);
	}
	return methods;
}

void roll_methods_free(struct roll_methods *methods)
{
	if (!methods)
		return;
	roll_reply_fini(&methods->answer.reply);
	roll_memo_free(methods->memo);
	free(methods);
}

static void log_refused(struct roll_methods *methods, const struct method *method)
{
	uint64_t bit = UINT64_C(1) << (method - methods_table);

	if (methods->refused_seen & bit)
		return;
	methods->refused_seen |= bit;
	roll_log(ROLL_WARN, "write-refused", "method=%s", method->name);
}

/* Each name once, and not more names than there is room for: the peer chooses them. */
static void log_unknown(struct roll_methods *methods, struct roll_str name)
{
	char shown[NAME_SHOWN_BYTES];

	roll_str_show(name, shown, sizeof shown);
	for (size_t i = 0; i < methods->unknown_count; i++) {
		if (strcmp(methods->unknown[i], shown) == 0)
			return;
	}
	if (methods->unknown_count == NAMES_MAX)
		return;
	memcpy(methods->unknown[methods->unknown_count++], shown, sizeof shown);
	roll_log(ROLL_WARN, "unknown-method", "method=\"%s\"", shown);
}

/* Why a call failed, in words that a log and a reply may hold. */
static void fail_call(struct roll_methods *methods, const struct method *method,
		      enum roll_status status, const struct roll_err *why)
{
	const char *reason = why->text[0] ? why->text : roll_status_text(status);

	if (status == ROLL_ELIMIT)
		reason = "the reply would be larger than its ceiling";
	roll_answer_complain(&methods->answer, ROLL_COMPLAINT_FAILED, method->name, reason);
	roll_reply_failure(&methods->answer.reply, reason);
}

static enum outcome run_method(struct roll_methods *methods, const struct method *method,
			       const struct roll_request *request)
{
	struct roll_answer *answer = &methods->answer;
	struct roll_err why;
	enum roll_status status;

	if (method->answer) {
		why.text[0] = '\0';
		answer->is_empty = false;
		status = method->answer(answer, request, &why);
		if (!status)
			return answer->is_empty ? method->outcome : ANSWERED;
		fail_call(methods, method, status, &why);
		return FAILED;
	}
	if (method->outcome == REFUSED)
		log_refused(methods, method);
	if (method->result)
		roll_reply_result(&answer->reply, method->result);
	else
		roll_reply_failure(&answer->reply, "not supported");
	return method->outcome;
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void count_call(struct roll_methods *methods, size_t method, enum outcome outcome,
		       double from)
{
	methods->counts[method][outcome]++;
	roll_metric_observe(methods->seconds, NULL, seconds_now() - from);
}

/* The reply of before, if nothing has changed since; looked at as any other, in a snapshot. */
static bool repeat_reply(struct roll_methods *methods, const struct roll_memo_place *place,
			 struct roll_buf *out)
{
	struct roll_snap *snap = NULL;

	if (roll_answer_snap(&methods->answer, &snap, NULL))
		return false;
	roll_snap_end(snap);
	if (methods->answer.content != roll_memo_content(place))
		return false;
	roll_buf_add_str(out, roll_memo_reply(place));
	return true;
}

static bool is_request(struct roll_methods *methods, char *line, size_t n,
		       struct roll_request *request)
{
	struct roll_err why;

	if (!roll_request_parse(line, n, request, &why) && request->method.n)
		return true;
	roll_answer_complain(&methods->answer, ROLL_COMPLAINT_BAD, NULL,
			     request->method.n ? why.text : "no method");
	return false;
}

enum roll_status roll_methods_answer(struct roll_methods *methods, char *line, size_t n,
				     struct roll_buf *out)
{
	const double from = seconds_now();
	const struct method *method;
	struct roll_memo_place *place;
	struct roll_request request;
	enum outcome outcome;
	bool is_known;

	place = roll_memo_find(methods->memo, roll_str_n(line, n), &is_known);
	if (is_known && repeat_reply(methods, place, out)) {
		outcome = roll_str_eq_c(roll_memo_reply(place), ROLL_REPLY_NOTHING) ? EMPTY
										    : ANSWERED;
		count_call(methods, METHOD_LOOKUP, outcome, from);
		return out->status;
	}
	if (!is_request(methods, line, n, &request))
		return ROLL_EPROTO;
	methods->answer.reply.out = out;
	method = find_method(request.method);
	if (!method) {
		log_unknown(methods, request.method);
		roll_reply_result(&methods->answer.reply, "false");
		count_call(methods, METHOD_COUNT, REFUSED, from);
		return out->status;
	}
	outcome = run_method(methods, method, &request);
	/* A line without escapes is as it came. */
	if (place && method == &methods_table[METHOD_LOOKUP] && outcome != FAILED && !out->status)
		roll_memo_put(place, roll_str_n(line, n), roll_buf_str(out),
			      methods->answer.content);
	count_call(methods, (size_t)(method - methods_table), outcome, from);
	return out->status;
}

void roll_methods_tell(struct roll_methods *methods)
{
	for (size_t i = 0; i <= METHOD_COUNT; i++) {
		const char *name = i < METHOD_COUNT ? methods_table[i].name : "unknown";

		for (size_t k = 0; k < OUTCOMES; k++) {
			uint64_t more = methods->counts[i][k] - methods->told[i][k];

			/* A counter that appears with its first event hides that from rate(). */
			if (more || (k == FAILED && i < METHOD_COUNT && methods_table[i].answer))
				roll_metric_add(methods->calls, name, outcome_names[k],
						(double)more);
			methods->told[i][k] += more;
		}
	}
}

enum roll_status roll_methods_ready(struct roll_methods *methods, struct roll_err *err)
{
	struct roll_snap *snap = NULL;
	enum roll_status status = roll_answer_snap(&methods->answer, &snap, err);

	roll_snap_end(snap);
	return status;
}

void roll_methods_status(struct roll_methods *methods, struct roll_buf *out)
{
	add_status(&methods->answer, out);
}
