/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/log.h"
#include "tests/lib/fake_view.h"
#include "server/method.h"
#include "server/search.h"

/* 1 MiB here, so that a reply above the ceiling is quickly made. */
#define REPLY_MAX (1u << 20)

struct fixture {
	struct roll_metrics *metrics;
	struct roll_methods *methods;
	struct roll_buf reply;
	int64_t wall_ms, monotonic_ms, monotonic_step_ms;
	char log[8192];
	struct roll_clock clock;
};

static int64_t fixture_wall(void *ctx)
{
	return ((struct fixture *)ctx)->wall_ms;
}

static int64_t fixture_monotonic(void *ctx)
{
	struct fixture *f = ctx;

	f->monotonic_ms += f->monotonic_step_ms;
	return f->monotonic_ms;
}

static void on_log(void *ctx, const char *text)
{
	struct fixture *f = ctx;
	size_t n = strlen(f->log);

	snprintf(f->log + n, sizeof f->log - n, "%s\n", text);
}

static struct fixture the_fixture;

static void start(struct fixture *f, int64_t max_stale_ms, bool is_cacheable)
{
	struct roll_methods_conf conf = {.view = &fake_the_view,
					 .clock = &f->clock,
					 .metrics = f->metrics,
					 .max_stale_ms = max_stale_ms,
					 .is_cacheable = is_cacheable};

	roll_methods_free(f->methods);
	f->methods = roll_methods_new(&conf);
	assert_non_null(f->methods);
}

static int setup(void **state)
{
	struct fixture *f = &the_fixture;

	*f = (struct fixture){.wall_ms = 1000000};
	f->clock = (struct roll_clock){fixture_monotonic, fixture_wall, f};
	fake_reset();
	f->metrics = roll_metrics_new();
	roll_buf_init(&f->reply, REPLY_MAX);
	roll_log_set_sink(on_log, f);
	start(f, 0, false);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	/* Whatever was asked and whatever came of it: no snapshot stays open. */
	assert_int_equal(fake.begun, fake.ended);
	roll_log_set_sink(NULL, NULL);
	roll_methods_free(f->methods);
	roll_metrics_free(f->metrics);
	roll_buf_fini(&f->reply);
	return 0;
}

/* The reply to a request, which must be one line of JSON. */
static const char *ask(struct fixture *f, const char *request)
{
	char line[4096];
	size_t n = strlen(request);
	json_t *value;

	assert_true(n < sizeof line);
	memcpy(line, request, n);
	roll_buf_reset(&f->reply);
	assert_int_equal(roll_methods_answer(f->methods, line, n, &f->reply), ROLL_OK);
	assert_true(f->reply.n > 0 &&
		    memchr(f->reply.p, '\n', f->reply.n) == f->reply.p + f->reply.n - 1);
	value = json_loadb(f->reply.p, f->reply.n, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(value);
	/* Either a result, or a failure that PowerDNS takes for one. */
	assert_true(!json_object_get(value, "result") == !!json_object_get(value, "error"));
	json_decref(value);
	f->reply.p[--f->reply.n] = '\0';
	return f->reply.p;
}

static const char *lookup(struct fixture *f, const char *qname, const char *qtype, int id)
{
	char request[2048];

	snprintf(request, sizeof request,
		 "{\"method\":\"lookup\",\"parameters\":{\"local\":\"127.0.0.1\",\"qname\":\"%s\","
		 "\"qtype\":\"%s\",\"real-remote\":\"127.0.0.1/32\",\"remote\":\"127.0.0.1\","
		 "\"zone-id\":%d}}",
		 qname, qtype, id);
	return ask(f, request);
}

static bool is_failure(const char *reply)
{
	return strncmp(reply, "{\"error\":\"", 10) == 0;
}

#define WWW_ROW(type, content, ttl)                                                    \
	"{\"qname\":\"www.example.org\",\"qtype\":\"" type "\",\"content\":\"" content \
	"\",\"ttl\":" ttl ",\"domain_id\":1,\"scopeMask\":1,\"auth\":1}"
#define WWW                                                            \
	"{\"result\":[" WWW_ROW("A", "192.0.2.10", "300") "," WWW_ROW( \
		"A", "192.0.2.11", "300") "," WWW_ROW("AAAA", "2001:db8::10", "60") "]}"
#define NOTHING "{\"result\":[]}"
#define ROW(name, type, content, ttl, id, auth)                                              \
	"{\"result\":[{\"qname\":\"" name "\",\"qtype\":\"" type "\",\"content\":\"" content \
	"\",\"ttl\":" ttl ",\"domain_id\":" id ",\"scopeMask\":1,\"auth\":" auth "}]}"
#define SOA(domain, id)                                                                     \
	ROW(domain, "SOA", "ns1." domain " hostmaster." domain " 0 10800 3600 604800 3600", \
	    "3600", id, "1")

static void lookups_are_answered(void **state)
{
	static const struct {
		const char *qname, *qtype;
		int id;
		const char *reply;
	} cases[] = {
		{"www.example.org.", "ANY", 1, WWW},
		{"WWW.eXample.ORG.", "any", 1, WWW},
		{"www.example.org", "ANY", -1, WWW},
		{"www.example.org.", "AAAA", 1,
		 "{\"result\":[" WWW_ROW("AAAA", "2001:db8::10", "60") "]}"},
		{"www.example.org.", "MX", 1, NOTHING},
		{"www.example.org.", "TYPE65280", 1, NOTHING},
		{"www.example.org.", "", 1, NOTHING},
		{"nope.example.org.", "ANY", 1, NOTHING},
		{".", "ANY", -1, NOTHING},
		{"org.", "SOA", -1, NOTHING},
		/* The SOA is that of the asked name or none. */
		{"example.org.", "SOA", -1, SOA("example.org", "1")},
		{"www.example.org.", "SOA", -1, NOTHING},
		{"deep.example.org.", "SOA", -1, NOTHING},
		{"deep.example.org.", "SOA", 1, NOTHING},
		{"example.org.", "SOA", 1, SOA("example.org", "1")},
		{"child.example.org.", "SOA", -1, SOA("child.example.org", "2")},
		/* Empty non-terminals, in answers to ANY only. */
		{"deep.example.org.", "ANY", 1, ROW("deep.example.org", "", "", "0", "1", "1")},
		{"deep.example.org.", "A", 1, NOTHING},
		{"wild.example.org.", "ANY", -1, ROW("wild.example.org", "", "", "0", "1", "1")},
		/* No wildcard is expanded. */
		{"x.wild.example.org.", "ANY", 1, NOTHING},
		{"*.wild.example.org.", "ANY", 1,
		 ROW("*.wild.example.org", "A", "192.0.2.80", "300", "1", "1")},
		/* Delegation and glue. */
		{"sub.example.org.", "ANY", 1,
		 ROW("sub.example.org", "NS", "ns.sub.example.org", "300", "1", "0")},
		{"ns.sub.example.org.", "ANY", 1,
		 ROW("ns.sub.example.org", "A", "192.0.2.90", "300", "1", "0")},
		{"alias.example.org.", "ANY", 1,
		 ROW("alias.example.org", "ALIAS", "www.example.org", "300", "1", "1")},
		/* Escapes of DNS, and of JSON on top of them. */
		{"a\\\\.b.example.org.", "ANY", 1,
		 ROW("a\\\\.b.example.org", "A", "192.0.2.81", "300", "1", "1")},
		{"\\\\119ww.example.org.", "AAAA", 1,
		 "{\"result\":[" WWW_ROW("AAAA", "2001:db8::10", "60") "]}"},
		/* The deepest zone answers, unless one is asked for. */
		{"www.child.example.org.", "ANY", -1,
		 ROW("www.child.example.org", "A", "192.0.2.20", "0", "2", "1")},
		{"www.child.example.org.", "ANY", 1, NOTHING},
		{"www.child.example.org.", "ANY", 2,
		 ROW("www.child.example.org", "A", "192.0.2.20", "0", "2", "1")},
		/* A zone that is gone, and a name outside of the zone. */
		{"www.example.org.", "ANY", 99, NOTHING},
		{"www.example.org.", "ANY", 2, NOTHING},
		{"www.example.com.", "ANY", 1, NOTHING},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *reply = lookup(*state, cases[i].qname, cases[i].qtype, cases[i].id);

		if (strcmp(reply, cases[i].reply) != 0)
			fail_msg("%s %s %d: %s, not %s", cases[i].qname, cases[i].qtype,
				 cases[i].id, reply, cases[i].reply);
	}
}

/* The reply of before is repeated only while the view is the same and can be read. */
static void a_question_asked_again_sees_every_change(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 3; i++) {
		assert_string_equal(lookup(f, "www.example.org.", "ANY", 1), WWW);
		assert_string_equal(lookup(f, "nope.example.org.", "ANY", 1), NOTHING);
	}
	/* No commit: what is read is not looked at. One that cannot be begun is. */
	fake.is_empty = true;
	assert_string_equal(lookup(f, "www.example.org.", "ANY", 1), WWW);
	fake.begin_status = ROLL_EIO;
	assert_true(is_failure(lookup(f, "www.example.org.", "ANY", 1)));
	fake.begin_status = ROLL_OK;
	assert_string_equal(lookup(f, "www.example.org.", "ANY", 1), WWW);
	/* Another client, type or zone is another question. */
	assert_string_equal(lookup(f, "www.example.org.", "A", 1), NOTHING);
	fake.head.generation++;
	assert_string_equal(lookup(f, "www.example.org.", "ANY", 1), NOTHING);
	fake.is_empty = false;
	fake.head.generation++;
	assert_string_equal(lookup(f, "www.example.org.", "ANY", 1), WWW);
	fake.read_status = ROLL_ECORRUPT;
	fake.head.generation++;
	assert_true(is_failure(lookup(f, "www.example.org.", "ANY", 1)));
	/* A failure is not repeated. */
	fake.read_status = ROLL_OK;
	assert_string_equal(lookup(f, "www.example.org.", "ANY", 1), WWW);
}

static void text_survives_both_escapings(void **state)
{
	struct fixture *f = *state;
	json_t *reply = json_loads(lookup(f, "txt.example.org.", "ANY", 1), 0, NULL);
	json_t *row = json_array_get(json_object_get(reply, "result"), 0);

	assert_string_equal(json_string_value(json_object_get(row, "content")),
			    "\"say \\\"hi\\\"\\\\ \\195\\169\"");
	json_decref(reply);
}

static void every_byte_of_a_name_finds_its_way(void **state)
{
	char qname[64];

	/* As PowerDNS writes them: \DDD, with the backslash doubled by JSON. */
	for (unsigned byte = 0; byte < 256; byte++) {
		snprintf(qname, sizeof qname, "x\\\\%03uy.example.org.", byte);
		assert_string_equal(lookup(*state, qname, "ANY", 1), NOTHING);
	}
}

static void cacheable_rows_have_no_scope(void **state)
{
	struct fixture *f = *state;

	start(f, 0, true);
	assert_null(strstr(lookup(f, "www.example.org.", "ANY", 1), "scopeMask"));
}

#define METHOD(name, parameters) "{\"method\":\"" name "\",\"parameters\":{" parameters "}}"

static void methods_are_answered(void **state)
{
	static const struct {
		const char *request, *reply;
	} cases[] = {
		{METHOD("initialize", "\"path\":\"/run/x\",\"timeout\":\"2000\""),
		 "{\"result\":true}"},
		{METHOD("INITIALIZE", ""), "{\"result\":true}"},
		{"{\"method\":\"initialize\"}", "{\"result\":true}"},
		{METHOD("APILookup", "\"qname\":\"ns1.example.org.\",\"qtype\":\"A\",\"zone-id\":1,"
				     "\"include-disabled\":true"),
		 ROW("ns1.example.org", "A", "192.0.2.1", "300", "1", "1")},
		{METHOD("lookup", "\"qname\":\"example.org.\",\"qtype\":\"SOA\""),
		 SOA("example.org", "1")},
		{METHOD("list", "\"zonename\":\"child.example.org.\",\"domain_id\":2,"
				"\"include_disabled\":false"),
		 "{\"result\":[{\"qname\":\"child.example.org\",\"qtype\":\"SOA\",\"content\":"
		 "\"ns1.child.example.org hostmaster.child.example.org 0 10800 3600 604800 3600\","
		 "\"ttl\":3600,\"domain_id\":2,\"auth\":1},{\"qname\":\"www.child.example.org\","
		 "\"qtype\":\"A\",\"content\":\"192.0.2.20\",\"ttl\":0,\"domain_id\":2,\"auth\":1}]"
		 "}"},
		{METHOD("list", "\"zonename\":\"gone.org.\",\"domain_id\":-1"), NOTHING},
		{METHOD("list", "\"zonename\":\"www.example.org.\",\"domain_id\":1"), NOTHING},
		{METHOD("getDomainInfo", "\"name\":\"Example.org.\""),
		 "{\"result\":{\"id\":1,\"zone\":\"example.org\",\"kind\":\"native\",\"serial\":"
		 "2026000001}}"},
		{METHOD("getDomainInfo", "\"name\":\"gone.org.\""), "{\"result\":false}"},
		{METHOD("getAllDomains", "\"include_disabled\":true"),
		 "{\"result\":[{\"id\":1,\"zone\":\"example.org\",\"serial\":2026000001},"
		 "{\"id\":2,\"zone\":\"child.example.org\",\"serial\":2026000002},"
		 "{\"id\":3,\"zone\":\"broken.org\",\"serial\":2026000003},"
		 "{\"id\":4,\"zone\":\"big.org\",\"serial\":2026000004}]}"},
		{METHOD("getAllDomainMetadata", "\"name\":\"example.org.\""), "{\"result\":{}}"},
		{METHOD("getDomainMetadata", "\"name\":\"example.org.\",\"kind\":\"PRESIGNED\""),
		 NOTHING},
		{METHOD("getDomainKeys", "\"name\":\"example.org.\""), NOTHING},
		{METHOD("getTSIGKey", "\"name\":\"k.\""), "{\"result\":false}"},
		{METHOD("getTSIGKeys", ""), NOTHING},
		{METHOD("getUpdatedMasters", ""), NOTHING},
		{METHOD("getUnfreshSlaveInfos", ""), NOTHING},
		{METHOD("setNotified", "\"id\":4294967295,\"serial\":5"), "{\"result\":true}"},
		{METHOD("directBackendCmd", "\"query\":\"HELLO\""), "{\"result\":\"HELLO\"}"},
		{METHOD("directBackendCmd", "\"query\":\"status\""),
		 "{\"result\":\"ready generation=7 confirmed_age_ms=0 classes=1 zones=2 "
		 "recordsets=3 names=12\"}"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(ask(*state, cases[i].request), cases[i].reply);
}

static void writes_are_refused_and_told_once(void **state)
{
	static const char *const writes[] = {
		"setDomainMetadata",
		"addDomainKey",
		"removeDomainKey",
		"activateDomainKey",
		"deactivateDomainKey",
		"publishDomainKey",
		"unpublishDomainKey",
		"setTSIGKey",
		"deleteTSIGKey",
		"superMasterBackend",
		"createSlaveDomain",
		"replaceRRSet",
		"feedRecord",
		"feedEnts",
		"feedEnts3",
		"startTransaction",
		"commitTransaction",
		"abortTransaction",
		"setFresh",
		"setStale",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
		char request[128], told[128];

		snprintf(request, sizeof request,
			 "{\"method\":\"%s\",\"parameters\":{\"trxid\":1}}", writes[i]);
		snprintf(told, sizeof told, "level=warn event=write-refused method=%s\n",
			 writes[i]);
		f->log[0] = '\0';
		assert_string_equal(ask(f, request), "{\"result\":false}");
		assert_string_equal(f->log, told);
		f->log[0] = '\0';
		assert_string_equal(ask(f, request), "{\"result\":false}");
		assert_string_equal(f->log, "");
	}
}

static void unknown_methods_are_refused_and_told_once(void **state)
{
	struct fixture *f = *state;
	char request[128];
	size_t lines = 0;

	assert_string_equal(ask(f, METHOD("evil\\n\\u001b[31m", "")), "{\"result\":false}");
	assert_string_equal(ask(f, METHOD("evil\\n\\u001b[31m", "")), "{\"result\":false}");
	assert_string_equal(f->log,
			    "level=warn event=unknown-method method=\"evil\\x0a\\x1b[31m\"\n");
	/* And of very many names not all. */
	for (int i = 0; i < 200; i++) {
		snprintf(request, sizeof request, "{\"method\":\"m%d\",\"parameters\":{}}",
			 i % 100);
		assert_string_equal(ask(f, request), "{\"result\":false}");
	}
	for (const char *p = f->log; *p; p++)
		lines += *p == '\n';
	assert_int_equal(lines, 32);
}

static void a_read_error_is_never_an_absence(void **state)
{
	static const char *const requests[] = {
		METHOD("lookup", "\"qname\":\"www.example.org.\",\"qtype\":\"ANY\",\"zone-id\":1"),
		METHOD("lookup", "\"qname\":\"nope.example.org.\",\"qtype\":\"ANY\",\"zone-id\":1"),
		METHOD("lookup",
		       "\"qname\":\"nope.example.org.\",\"qtype\":\"SOA\",\"zone-id\":-1"),
		METHOD("lookup",
		       "\"qname\":\"nope.example.org.\",\"qtype\":\"ANY\",\"zone-id\":-1"),
		METHOD("APILookup",
		       "\"qname\":\"nope.example.org.\",\"qtype\":\"A\",\"zone-id\":1"),
		METHOD("list", "\"zonename\":\"example.org.\",\"domain_id\":1"),
		METHOD("getDomainInfo", "\"name\":\"gone.org.\""),
		METHOD("getAllDomains", "\"include_disabled\":true"),
		METHOD("searchRecords", "\"pattern\":\"*\",\"maxResults\":10"),
	};
	static const enum roll_status statuses[] = {
		ROLL_EIO, ROLL_ECORRUPT, ROLL_EVERSION, ROLL_ENOMEM, ROLL_ENOTREADY, ROLL_ESTALE,
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
		for (size_t k = 0; k < sizeof statuses / sizeof *statuses; k++) {
			fake.begin_status = statuses[k];
			assert_true(is_failure(ask(f, requests[i])));
			fake.begin_status = ROLL_OK;
			fake.head.generation++;
			fake.read_status = statuses[k];
			assert_true(is_failure(ask(f, requests[i])));
			fake.read_status = ROLL_OK;
			assert_false(is_failure(ask(f, requests[i])));
		}
	}
}

static void failures_are_told_once_in_ten_seconds(void **state)
{
	struct fixture *f = *state;

	fake.begin_status = ROLL_ENOTREADY;
	for (int i = 0; i < 100; i++) {
		ask(f, METHOD("initialize", ""));
		lookup(f, "www.example.org.", "ANY", 1);
	}
	assert_string_equal(f->log,
			    "level=warn event=initialize-refused method=initialize reason=\"the "
			    "view says \\x22not ready\\x22\" unsaid=0\n"
			    "level=warn event=call-failed method=lookup reason=\"the view says "
			    "\\x22not ready\\x22\" unsaid=0\n");
	f->log[0] = '\0';
	f->monotonic_ms = 10000;
	lookup(f, "www.example.org.", "ANY", 1);
	assert_non_null(strstr(f->log, " unsaid=99\n"));
}

static void initialize_is_refused_until_there_is_a_view(void **state)
{
	struct fixture *f = *state;

	fake.begin_status = ROLL_ENOTREADY;
	assert_string_equal(ask(f, METHOD("initialize", "")), "{\"result\":false}");
	assert_int_equal(roll_methods_ready(f->methods, NULL), ROLL_ENOTREADY);
	assert_non_null(strstr(ask(f, METHOD("directBackendCmd", "\"query\":\"status\"")),
			       "not ready: the view says"));
	fake.begin_status = ROLL_OK;
	assert_string_equal(ask(f, METHOD("initialize", "")), "{\"result\":true}");
	assert_int_equal(roll_methods_ready(f->methods, NULL), ROLL_OK);
}

static void a_view_that_is_too_old_fails(void **state)
{
	struct fixture *f = *state;

	start(f, 60000, false);
	f->wall_ms = fake.head.confirmed_ms + 60000;
	assert_string_equal(lookup(f, "nope.example.org.", "ANY", 1), NOTHING);
	f->wall_ms++;
	assert_true(is_failure(lookup(f, "nope.example.org.", "ANY", 1)));
	assert_true(is_failure(ask(f, METHOD("getAllDomains", ""))));
	assert_string_equal(ask(f, METHOD("initialize", "")), "{\"result\":false}");
	fake.head.confirmed_ms = f->wall_ms;
	assert_string_equal(lookup(f, "nope.example.org.", "ANY", 1), NOTHING);
	assert_string_equal(ask(f, METHOD("initialize", "")), "{\"result\":true}");
}

static void no_zones_is_said_only_of_a_complete_view(void **state)
{
	struct fixture *f = *state;

	fake.is_empty = true;
	assert_string_equal(ask(f, METHOD("getAllDomains", "")), NOTHING);
	fake.begin_status = ROLL_ENOTREADY;
	assert_true(is_failure(ask(f, METHOD("getAllDomains", ""))));
}

static void a_question_not_understood_is_a_failure(void **state)
{
	static const char *const requests[] = {
		METHOD("lookup", ""),
		METHOD("lookup", "\"qname\":\"www.example.org.\""),
		METHOD("lookup", "\"qtype\":\"ANY\""),
		METHOD("lookup", "\"qname\":1,\"qtype\":\"ANY\""),
		METHOD("lookup", "\"qname\":\"www.example.org.\",\"qtype\":255"),
		METHOD("lookup", "\"qname\":\"\",\"qtype\":\"ANY\""),
		METHOD("lookup", "\"qname\":\"a..example.org.\",\"qtype\":\"ANY\""),
		METHOD("lookup", "\"qname\":\"a\\\\999.example.org.\",\"qtype\":\"ANY\""),
		METHOD("list", "\"domain_id\":1"),
		METHOD("list", "\"zonename\":\"example.org.\",\"domain_id\":2"),
		METHOD("getDomainInfo", ""),
		METHOD("setNotified", ""),
		METHOD("searchRecords", ""),
		METHOD("directBackendCmd", ""),
		METHOD("getBeforeAndAfterNamesAbsolute", "\"id\":1,\"qname\":\"nope.\""),
	};

	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
		if (!is_failure(ask(*state, requests[i])))
			fail_msg("answered: %s", requests[i]);
	}
}

static void what_is_not_a_request_closes(void **state)
{
	static const char *const lines[] = {"",
					    "x",
					    "{}",
					    "{\"method\":\"\"}",
					    "[]",
					    "{\"parameters\":{}}",
					    "{\"method\":\"lookup\"}}"};
	struct fixture *f = *state;
	char line[64];

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		memcpy(line, lines[i], strlen(lines[i]));
		assert_int_equal(roll_methods_answer(f->methods, line, strlen(lines[i]), &f->reply),
				 ROLL_EPROTO);
	}
}

static void a_record_that_cannot_be_printed_fails_the_name(void **state)
{
	assert_true(is_failure(lookup(*state, "www.broken.org.", "ANY", 3)));
	assert_true(is_failure(ask(*state, METHOD("list", "\"zonename\":\"broken.org.\""))));
}

static void a_reply_above_its_ceiling_is_a_failure(void **state)
{
	struct fixture *f = *state;

	fake.big_rows = 100;
	assert_false(is_failure(ask(f, METHOD("list", "\"zonename\":\"big.org.\""))));
	fake.big_rows = 100000;
	assert_true(is_failure(ask(f, METHOD("list", "\"zonename\":\"big.org.\""))));
	assert_non_null(strstr(f->reply.p, "ceiling"));
	/* And the connection's next reply is as good as ever. */
	assert_string_equal(lookup(f, "www.example.org.", "ANY", 1), WWW);
}

static size_t count_results(const char *reply)
{
	json_t *value = json_loads(reply, 0, NULL);
	size_t count = json_array_size(json_object_get(value, "result"));

	json_decref(value);
	return count;
}

static void searches_find_names_and_contents(void **state)
{
	static const struct {
		const char *parameters;
		size_t count;
	} cases[] = {
		/* The ALIAS to www is found by its content. */
		{"\"pattern\":\"www*\",\"maxResults\":100", 5},
		{"\"pattern\":\"WWW.example.org\",\"maxResults\":100", 4},
		{"\"pattern\":\"www.example.org.\",\"maxResults\":100", 4},
		{"\"pattern\":\"www*\",\"maxResults\":2", 2},
		{"\"pattern\":\"www*\",\"maxResults\":0", 0},
		{"\"pattern\":\"192.0.2.1?\",\"maxResults\":100", 3},
		{"\"pattern\":\"nothing\",\"maxResults\":100", 0},
		{"\"pattern\":\"\",\"maxResults\":100", 0},
	};

	fake.is_whole = true;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char request[256];

		snprintf(request, sizeof request,
			 "{\"method\":\"searchRecords\",\"parameters\":{%s}}", cases[i].parameters);
		assert_int_equal(count_results(ask(*state, request)), cases[i].count);
	}
	/* Whatever cannot be read is not passed over in silence. */
	fake.is_whole = false;
	assert_true(is_failure(ask(*state, METHOD("searchRecords", "\"pattern\":\"nothing\""))));
}

static void a_search_ends_in_time(void **state)
{
	struct fixture *f = *state;
	const char *reply;

	fake.is_whole = true;
	fake.big_rows = 1000;
	reply = ask(f, METHOD("searchRecords", "\"pattern\":\"name-*9.big.org\""));
	assert_int_equal(count_results(reply), 100);
	assert_null(strstr(reply, "\"log\""));
	/* What was found in time is told, and that it is not all. */
	f->monotonic_step_ms = 60;
	reply = ask(f, METHOD("searchRecords", "\"pattern\":\"name-*9.big.org\""));
	assert_in_range(count_results(reply), 1, 99);
	assert_non_null(strstr(reply, "],\"log\":[\""));
}

static void patterns_match_as_wildcards_do(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool matches;
	} cases[] = {
		{"", "", true},
		{"*", "", true},
		{"?", "", false},
		{"a", "A", true},
		{"a", "b", false},
		{"a*", "abc", true},
		{"*c", "abc", true},
		{"*b*", "abc", true},
		{"a?c", "abc", true},
		{"a?c", "ac", false},
		{"**a**", "a", true},
		{"*ab*ab", "abab", true},
		{"*ab*ab", "ab", false},
		{"*aab", "aaab", true},
		{"a*b?", "axxbxb", false},
		{"a*b?", "axxbxbz", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (roll_pattern_match(roll_str_c(cases[i].pattern), roll_str_c(cases[i].text)) !=
		    cases[i].matches)
			fail_msg("%s with %s", cases[i].pattern, cases[i].text);
	}
}

static void calls_are_counted_by_outcome(void **state)
{
	struct fixture *f = *state;
	struct roll_buf text;

	lookup(f, "www.example.org.", "ANY", 1);
	lookup(f, "nope.example.org.", "ANY", 1);
	lookup(f, "nope.example.org.", "ANY", 1);
	ask(f, METHOD("setFresh", "\"id\":1"));
	ask(f, METHOD("what\\\"", ""));
	fake.head.generation++;
	fake.read_status = ROLL_EIO;
	lookup(f, "nope.example.org.", "ANY", 1);
	roll_methods_tell(f->methods);
	roll_methods_tell(f->methods); /* nothing is told twice */
	roll_buf_init(&text, 1 << 20);
	roll_metrics_print(f->metrics, &text);
	assert_non_null(strstr(text.p, "calls_total{method=\"lookup\",result=\"answered\"} 1\n"));
	assert_non_null(strstr(text.p, "calls_total{method=\"lookup\",result=\"empty\"} 2\n"));
	assert_non_null(strstr(text.p, "calls_total{method=\"lookup\",result=\"failed\"} 1\n"));
	assert_non_null(strstr(text.p, "calls_total{method=\"setFresh\",result=\"refused\"} 1\n"));
	assert_non_null(strstr(text.p, "calls_total{method=\"unknown\",result=\"refused\"} 1\n"));
	assert_non_null(strstr(text.p, "rollcall_server_call_seconds_count 6\n"));
	roll_buf_fini(&text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(lookups_are_answered),
		TEST(a_question_asked_again_sees_every_change),
		TEST(text_survives_both_escapings),
		TEST(every_byte_of_a_name_finds_its_way),
		TEST(cacheable_rows_have_no_scope),
		TEST(methods_are_answered),
		TEST(writes_are_refused_and_told_once),
		TEST(unknown_methods_are_refused_and_told_once),
		TEST(a_read_error_is_never_an_absence),
		TEST(failures_are_told_once_in_ten_seconds),
		TEST(initialize_is_refused_until_there_is_a_view),
		TEST(a_view_that_is_too_old_fails),
		TEST(no_zones_is_said_only_of_a_complete_view),
		TEST(a_question_not_understood_is_a_failure),
		TEST(what_is_not_a_request_closes),
		TEST(a_record_that_cannot_be_printed_fails_the_name),
		TEST(a_reply_above_its_ceiling_is_a_failure),
		TEST(searches_find_names_and_contents),
		TEST(a_search_ends_in_time),
		cmocka_unit_test(patterns_match_as_wildcards_do),
		TEST(calls_are_counted_by_outcome),
	};

	return cmocka_run_group_tests_name("method", tests, NULL, NULL);
}
