/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "model/object.h"

#define API "\"apiVersion\":\"dns.networking.miloapis.com/v1alpha1\""

/* Findings as "fault Invalid metadata.name; ". */
static void on_finding(void *ctx, const struct roll_finding *finding)
{
	struct roll_buf *buf = ctx;

	assert_true(finding->text.n > 0);
	roll_buf_add_c(buf, finding->severity == ROLL_FAULT ? "fault " : "warn ");
	roll_buf_add_c(buf, roll_reason_text(finding->reason));
	roll_buf_add_char(buf, ' ');
	roll_buf_add_str(buf, finding->path);
	roll_buf_add_c(buf, "; ");
}

static json_t *decode(const char *text, enum roll_status want, const char *want_findings,
		      struct roll_object *object)
{
	struct roll_buf found;
	struct roll_findings findings = {on_finding, &found};
	json_t *json;
	enum roll_status status;

	roll_buf_init(&found, 1u << 16);
	assert_int_equal(roll_json_parse(roll_str_c(text), &json, NULL), ROLL_OK);
	status = roll_object_decode(json, object, &findings);
	if (status != want)
		print_error("%s: %s, not %s\n", text, roll_status_text(status),
			    roll_status_text(want));
	assert_int_equal(status, want);
	assert_string_equal(found.n ? found.p : "", want_findings);
	/* Findings are optional and change nothing. */
	assert_int_equal(roll_object_decode(json, object, NULL), want);
	roll_buf_fini(&found);
	return json;
}

static void every_kind_has_its_names(void **state)
{
	enum roll_kind kind;

	(void)state;
	assert_string_equal(roll_kind_text(ROLL_KIND_CLASS), "DNSZoneClass");
	assert_string_equal(roll_kind_plural(ROLL_KIND_CLASS), "dnszoneclasses");
	assert_string_equal(roll_kind_plural(ROLL_KIND_ZONE), "dnszones");
	assert_string_equal(roll_kind_plural(ROLL_KIND_RECORDSET), "dnsrecordsets");
	for (int i = 0; i < ROLL_KIND_COUNT; i++) {
		assert_true(roll_kind_find(roll_str_c(roll_kind_text((enum roll_kind)i)), &kind));
		assert_int_equal(kind, i);
	}
	assert_false(roll_kind_find(roll_str_c("dnszone"), &kind));
	assert_false(roll_kind_find(roll_str_c(""), &kind));
}

static void a_whole_object_is_read(void **state)
{
	struct roll_object object;
	json_t *json = decode(
		"{" API ",\"kind\":\"DNSRecordSet\",\"metadata\":{\"name\":\"www.a\","
		"\"namespace\":\"ns-1\",\"uid\":\"8a7c\",\"resourceVersion\":\"123456789012\","
		"\"generation\":3,\"creationTimestamp\":\"1970-01-02T00:00:00Z\","
		"\"labels\":{},\"managedFields\":[]},\"spec\":{\"x\":1},\"status\":{}}",
		ROLL_OK, "", &object);

	(void)state;
	assert_int_equal(object.kind, ROLL_KIND_RECORDSET);
	assert_true(roll_str_eq_c(object.ns, "ns-1"));
	assert_true(roll_str_eq_c(object.name, "www.a"));
	assert_true(roll_str_eq_c(object.uid, "8a7c"));
	assert_int_equal(object.revision, 123456789012);
	assert_int_equal(object.generation, 3);
	assert_int_equal(object.created_s, 86400);
	assert_false(object.is_terminating);
	assert_ptr_equal(object.spec, json_object_get(json, "spec"));
	json_decref(json);
}

static void a_status_says_what_was_reported_and_published(void **state)
{
	static const struct {
		const char *kind, *status;
		bool is_reported;
		uint32_t serial;
	} cases[] = {
		{"DNSZone", "{\"serial\":7}", false, 7},
		{"DNSZone", "{\"serial\":4294967295}", false, UINT32_MAX},
		{"DNSZone", "{\"serial\":4294967296}", false, 0},
		{"DNSZone", "{\"serial\":-7}", false, 0},
		{"DNSZone", "{\"serial\":7.5}", false, 0},
		{"DNSZone", "{\"serial\":\"7\"}", false, 0},
		{"DNSRecordSet", "{\"serial\":7}", false, 0},
		{"DNSZone", "[]", false, 0},
		{"DNSZone", "null", false, 0},
		{"DNSRecordSet", "{\"conditions\":{}}", false, 0},
		{"DNSRecordSet", "{\"conditions\":[null,7,{}]}", false, 0},
		{"DNSRecordSet",
		 "{\"conditions\":[{\"type\":\"Accepted\",\"observedGeneration\":3}]}", true, 0},
		{"DNSRecordSet",
		 "{\"conditions\":[{\"type\":\"Programmed\",\"observedGeneration\":3}]}", true, 0},
		{"DNSRecordSet",
		 "{\"conditions\":[{\"type\":\"Programmed\",\"observedGeneration\":2}]}", false, 0},
		{"DNSRecordSet",
		 "{\"conditions\":[{\"type\":\"Programmed\",\"observedGeneration\":\"3\"}]}", false,
		 0},
		{"DNSRecordSet",
		 "{\"conditions\":[{\"type\":\"Programmed\"},{\"type\":\"Other\","
		 "\"observedGeneration\":3}]}",
		 false, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct roll_object object;
		char text[400];

		snprintf(text, sizeof text,
			 "{" API ",\"kind\":\"%s\",\"metadata\":{\"name\":\"z\","
			 "\"namespace\":\"n\",\"generation\":3},\"status\":%s}",
			 cases[i].kind, cases[i].status);
		json_decref(decode(text, ROLL_OK, "", &object));
		assert_int_equal(object.is_reported, cases[i].is_reported);
		assert_int_equal(object.serial, cases[i].serial);
	}
}

static void a_manifest_may_leave_out_what_a_server_fills_in(void **state)
{
	struct roll_object object;
	json_t *json = decode("{" API ",\"kind\":\"DNSZone\",\"metadata\":{\"name\":\"z\","
			      "\"creationTimestamp\":null},\"spec\":null}",
			      ROLL_OK, "", &object);

	(void)state;
	assert_true(roll_str_eq_c(object.ns, "default"));
	assert_int_equal(object.uid.n, 0);
	assert_int_equal(object.revision, 0);
	assert_true(object.created_s == INT64_MAX);
	assert_null(object.spec);
	json_decref(json);
}

static void a_class_has_no_namespace(void **state)
{
	struct roll_object object;

	(void)state;
	json_decref(decode("{" API ",\"kind\":\"DNSZoneClass\",\"metadata\":{\"name\":\"c\"}}",
			   ROLL_OK, "", &object));
	assert_int_equal(object.ns.n, 0);
	json_decref(decode("{" API ",\"kind\":\"DNSZoneClass\",\"metadata\":{\"name\":\"c\","
			   "\"namespace\":\"x\"}}",
			   ROLL_OK, "warn Suspicious metadata.namespace; ", &object));
	assert_int_equal(object.ns.n, 0);
}

static void an_object_with_a_deletion_time_is_terminating(void **state)
{
	struct roll_object object;

	(void)state;
	json_decref(decode("{" API ",\"kind\":\"DNSZone\",\"metadata\":{\"name\":\"z\","
			   "\"deletionTimestamp\":\"2026-12-02T05:31:50Z\"}}",
			   ROLL_OK, "", &object));
	assert_true(object.is_terminating);
	/* What is no time proves nothing. */
	json_decref(decode("{" API ",\"kind\":\"DNSZone\",\"metadata\":{\"name\":\"z\","
			   "\"deletionTimestamp\":\"soon\"}}",
			   ROLL_OK, "warn Invalid metadata.deletionTimestamp; ", &object));
	assert_false(object.is_terminating);
}

/* Bodies after apiVersion and kind DNSZone. */
static void odd_members_are_reported(void **state)
{
	static const struct {
		const char *body;
		enum roll_status status;
		const char *findings;
	} cases[] = {
		{"", ROLL_EINVAL, "fault Invalid metadata; "},
		{",\"metadata\":null", ROLL_EINVAL, "fault Invalid metadata; "},
		{",\"metadata\":[]", ROLL_EINVAL, "fault Invalid metadata; "},
		{",\"metadata\":{}", ROLL_EINVAL, "fault Invalid metadata.name; "},
		{",\"metadata\":{\"generateName\":\"a-\"}", ROLL_EINVAL,
		 "fault Invalid metadata.name; "},
		{",\"metadata\":{\"name\":1}", ROLL_EINVAL, "fault Invalid metadata.name; "},
		{",\"metadata\":{\"name\":\"\"}", ROLL_EINVAL, "fault Invalid metadata.name; "},
		{",\"metadata\":{\"name\":\"A\"}", ROLL_EINVAL, "fault Invalid metadata.name; "},
		{",\"metadata\":{\"name\":\"a/b\"}", ROLL_EINVAL, "fault Invalid metadata.name; "},
		{",\"metadata\":{\"name\":\"a..b\"}", ROLL_EINVAL, "fault Invalid metadata.name; "},
		{",\"metadata\":{\"name\":\"a.\"}", ROLL_EINVAL, "fault Invalid metadata.name; "},
		{",\"metadata\":{\"name\":\"-a\"}", ROLL_EINVAL, "fault Invalid metadata.name; "},
		{",\"metadata\":{\"name\":\"a\\u0000\"}", ROLL_EINVAL,
		 "fault Invalid metadata.name; "},
		{",\"metadata\":{\"name\":\"a\",\"namespace\":\"b.c\"}", ROLL_EINVAL,
		 "fault Invalid metadata.namespace; "},
		{",\"metadata\":{\"name\":\"a\",\"namespace\":7}", ROLL_EINVAL,
		 "fault Invalid metadata.namespace; "},
		{",\"metadata\":{\"name\":\"A\",\"namespace\":\"B\"}", ROLL_EINVAL,
		 "fault Invalid metadata.name; fault Invalid metadata.namespace; "},
		{",\"metadata\":{\"name\":\"a\",\"namespace\":\"\"}", ROLL_OK, ""},
		{",\"metadata\":{\"name\":\"a\",\"uid\":5}", ROLL_OK,
		 "warn Invalid metadata.uid; "},
		{",\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"x\"}", ROLL_OK, ""},
		{",\"metadata\":{\"name\":\"a\",\"generation\":\"1\"}", ROLL_OK,
		 "warn Invalid metadata.generation; "},
		{",\"metadata\":{\"name\":\"a\",\"generation\":-1}", ROLL_OK,
		 "warn Invalid metadata.generation; "},
		{",\"metadata\":{\"name\":\"a\",\"creationTimestamp\":\"2026-02-30T00:00:00Z\"}",
		 ROLL_OK, "warn Invalid metadata.creationTimestamp; "},
		{",\"metadata\":{\"name\":\"a\",\"creationTimestamp\":12}", ROLL_OK,
		 "warn Invalid metadata.creationTimestamp; "},
		{",\"metadata\":{\"name\":\"a\"},\"spec\":[]", ROLL_OK, ""},
	};
	struct roll_object object;
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(text, sizeof text, "{" API ",\"kind\":\"DNSZone\"%s}", cases[i].body);
		json_decref(decode(text, cases[i].status, cases[i].findings, &object));
		assert_null(object.spec);
	}
}

static void names_have_a_greatest_length(void **state)
{
	struct roll_object object;
	char name[260], text[1024];
	size_t n;

	(void)state;
	for (n = 253; n <= 254; n++) {
		memset(name, 'a', n);
		name[n] = 0;
		snprintf(text, sizeof text,
			 "{" API ",\"kind\":\"DNSZone\",\"metadata\":{\"name\":\"%s\"}}", name);
		json_decref(decode(text, n == 253 ? ROLL_OK : ROLL_EINVAL,
				   n == 253 ? "" : "fault Invalid metadata.name; ", &object));
	}
	for (n = 63; n <= 64; n++) {
		memset(name, 'a', n);
		name[n] = 0;
		snprintf(text, sizeof text,
			 "{" API ",\"kind\":\"DNSZone\",\"metadata\":"
			 "{\"name\":\"z\",\"namespace\":\"%s\"}}",
			 name);
		json_decref(decode(text, n == 63 ? ROLL_OK : ROLL_EINVAL,
				   n == 63 ? "" : "fault Invalid metadata.namespace; ", &object));
	}
}

static void other_kinds_and_groups_are_not_ours(void **state)
{
	static const struct {
		const char *text;
		enum roll_status status;
		const char *findings;
	} cases[] = {
		{"{}", ROLL_ENOENT, ""},
		{"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"}", ROLL_ENOENT, ""},
		{"{" API "}", ROLL_ENOENT, ""},
		{"{" API ",\"kind\":7}", ROLL_ENOENT, ""},
		{"{" API ",\"kind\":\"DNSZoneDiscovery\"}", ROLL_ENOENT, ""},
		{"{\"apiVersion\":\"example.com/v1\",\"kind\":\"DNSZone\"}", ROLL_ENOENT, ""},
		{"{\"apiVersion\":\"v1alpha1\",\"kind\":\"DNSZone\"}", ROLL_ENOENT, ""},
		{"{\"kind\":\"DNSZone\"}", ROLL_EINVAL, "fault Invalid apiVersion; "},
		{"{\"apiVersion\":\"dns.networking.miloapis.com/v1\",\"kind\":\"DNSZone\"}",
		 ROLL_EINVAL, "fault Invalid apiVersion; "},
		{"{\"apiVersion\":\"dns.networking.miloapis.com\",\"kind\":\"DNSZone\"}",
		 ROLL_EINVAL, "fault Invalid apiVersion; "},
		{"[]", ROLL_EINVAL, "fault Invalid ; "},
		{"\"text\"", ROLL_EINVAL, "fault Invalid ; "},
	};
	struct roll_object object;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		json_decref(decode(cases[i].text, cases[i].status, cases[i].findings, &object));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_has_its_names),
		cmocka_unit_test(a_whole_object_is_read),
		cmocka_unit_test(a_status_says_what_was_reported_and_published),
		cmocka_unit_test(a_manifest_may_leave_out_what_a_server_fills_in),
		cmocka_unit_test(a_class_has_no_namespace),
		cmocka_unit_test(an_object_with_a_deletion_time_is_terminating),
		cmocka_unit_test(odd_members_are_reported),
		cmocka_unit_test(names_have_a_greatest_length),
		cmocka_unit_test(other_kinds_and_groups_are_not_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
