/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "model/translate.h"

/*
 * The conformance table: the files of tests/data/translate. A case is
 *
 *	== O3: what the row says
 *	@zone example.com			optional; example.com if left out
 *	{"recordType": "A", "records": [...]}	the spec, over as many lines as it takes
 *	--
 *	www.example.com. - A 192.0.2.1		owner, TTL or "-" for the default, type, content
 *		c0000201			the same record's rdata in wire form
 *	warn Dropped spec.records[1]		findings in the order of their reporting
 *
 * dnsZoneRef is added to the spec if it is left out. With "@kind zone" or "@kind class" the spec is
 * of that kind and the result is what that kind says. "refused" stands for EINVAL. Lines that begin
 * with '#' between cases are comments. Every row of the table must have a case (see rows below);
 * several cases may share a row, and cases of no row have a name of lower-case letters.
 *
 * "test_translate --print FILE" prints FILE with the results as they are: for writing new cases,
 * and for reading them before they are believed.
 */

#define ARENA_LIMIT (64u << 20)
#define SIZE_LIMIT (16u << 20)

static const char *const files[] = {
	"owner.txt", "target.txt",    "content.txt", "svcparam.txt", "ttl.txt",
	"group.txt", "recordset.txt", "soa.txt",     "zone.txt",     "class.txt",
};
#define FILE_COUNT (sizeof files / sizeof *files)

/* Rows of the conformance table that object translation alone decides. */
static const struct {
	char letter;
	unsigned last;
} rows[] = {{'O', 14}, {'T', 7}, {'C', 45}, {'S', 14}, {'L', 7}, {'N', 3}, {'Z', 10}};

/* Rows of Z that belong to the view: serials over time, defaults made by the zone. */
static bool is_elsewhere(char letter, unsigned row)
{
	return letter == 'Z' && row != 1 && row != 2 && row != 4 && row != 9 && row != 10;
}

struct case_text {
	struct roll_str name; /* "O3" */
	struct roll_str head; /* from "==" to "--", both lines included */
	struct roll_str json;
	struct roll_str want;
	char zone[256];
	enum roll_kind kind;
};

/* The next line without its end; *rest is advanced. */
static struct roll_str next_line(struct roll_str *rest)
{
	return roll_str_cut(rest, '\n');
}

/* One case off *rest; false at the end. */
static bool next_case(struct roll_str *rest, struct case_text *out)
{
	struct roll_str line, before;
	const char *start, *json = NULL;

	*out = (struct case_text){.kind = ROLL_KIND_RECORDSET};
	snprintf(out->zone, sizeof out->zone, "example.com");
	do {
		if (!rest->n)
			return false;
		start = rest->p;
		line = next_line(rest);
	} while (!roll_str_starts(line, "== "));
	line = roll_str_n(line.p + 3, line.n - 3);
	out->name = roll_str_cut(&line, ':');
	for (;;) {
		assert_true(rest->n > 0);
		before = *rest;
		line = next_line(rest);
		if (roll_str_starts(line, "@zone "))
			snprintf(out->zone, sizeof out->zone, ROLL_STR_FMT, (int)line.n - 6,
				 line.p + 6);
		else if (roll_str_eq_c(line, "@kind zone"))
			out->kind = ROLL_KIND_ZONE;
		else if (roll_str_eq_c(line, "@kind class"))
			out->kind = ROLL_KIND_CLASS;
		else if (roll_str_eq_c(line, "--"))
			break;
		else if (!json)
			json = before.p;
	}
	assert_non_null(json);
	out->json = roll_str_n(json, (size_t)(before.p - json));
	out->head = roll_str_n(start, (size_t)(line.p + line.n - start) + 1);
	out->want = *rest;
	while (rest->n && !roll_str_starts(*rest, "== ") && !roll_str_starts(*rest, "#")) {
		line = next_line(rest);
		out->want.n = rest->n ? (size_t)(rest->p - out->want.p)
				      : (size_t)(line.p + line.n - out->want.p);
	}
	while (out->want.n && out->want.p[out->want.n - 1] == '\n')
		out->want.n--;
	return true;
}

static void on_finding(void *ctx, const struct roll_finding *finding)
{
	struct roll_buf *buf = ctx;

	assert_true(finding->text.n > 0 && roll_str_is_utf8(finding->text));
	roll_buf_add_c(buf, finding->severity == ROLL_FAULT ? "fault " : "warn ");
	roll_buf_add_c(buf, roll_reason_text(finding->reason));
	roll_buf_add_char(buf, ' ');
	roll_buf_add_str(buf, finding->path);
	roll_buf_add_char(buf, '\n');
}

static void add_hex(struct roll_buf *buf, struct roll_str bytes)
{
	for (size_t i = 0; i < bytes.n; i++)
		roll_buf_printf(buf, "%02x", (unsigned char)bytes.p[i]);
}

static void print_owned(const struct roll_owned *owned, const struct roll_name *zone,
			struct roll_buf *out)
{
	const struct roll_rrset *rrset = &owned->rrset;
	struct roll_buf other;

	roll_buf_init(&other, SIZE_LIMIT);
	assert_true(roll_name_is_within(&owned->owner, zone));
	assert_true(rrset->count > 0);
	for (size_t i = 0; i < rrset->count; i++) {
		roll_name_print(&owned->owner, ROLL_DOT_FINAL, out);
		if (rrset->has_ttl)
			roll_buf_printf(out, " %u ", (unsigned)rrset->ttl);
		else
			roll_buf_add_c(out, " - ");
		roll_buf_add_c(out, roll_type_find(rrset->type)->name);
		roll_buf_add_char(out, ' ');
		assert_int_equal(roll_rdata_check(rrset->type, rrset->rdata[i]), ROLL_OK);
		assert_int_equal(
			roll_rdata_print(rrset->type, rrset->rdata[i], ROLL_RDATA_PDNS, out),
			ROLL_OK);
		assert_int_equal(
			roll_rdata_print(rrset->type, rrset->rdata[i], ROLL_RDATA_ZONE, &other),
			ROLL_OK);
		roll_buf_add_c(out, "\n\t");
		add_hex(out, rrset->rdata[i]);
		roll_buf_add_char(out, '\n');
	}
	roll_buf_fini(&other);
}

static enum roll_status print_recordset(json_t *spec, const char *zone_text, struct roll_buf *out,
					const struct roll_findings *findings)
{
	struct roll_recordset_spec set, blind;
	struct roll_arena arena;
	struct roll_name zone;
	enum roll_status status;

	if (!json_object_get(spec, "dnsZoneRef"))
		json_object_set_new(spec, "dnsZoneRef", json_pack("{s:s}", "name", "zone"));
	assert_int_equal(roll_name_parse(roll_str_c(zone_text), &zone, NULL), ROLL_OK);
	roll_arena_init(&arena, ARENA_LIMIT);
	/* Without the zone nothing is owned, and all else is the same. */
	status = roll_translate_recordset(spec, NULL, &arena, &blind, NULL);
	assert_int_equal(blind.owned_count, 0);
	assert_int_equal(roll_translate_recordset(spec, &zone, &arena, &set, findings), status);
	assert_int_equal(set.type, blind.type);
	assert_int_equal(set.record_count, blind.record_count);
	assert_true(roll_str_eq(set.zone_ref, blind.zone_ref));
	assert_true(roll_str_eq(set.zone_ref, roll_recordset_zone_ref(spec)));
	for (size_t i = 0; i < set.owned_count; i++) {
		if (i > 0)
			assert_true(roll_name_cmp(&set.owned[i - 1].owner, &set.owned[i].owner) <
				    0);
		print_owned(&set.owned[i], &zone, out);
	}
	roll_arena_fini(&arena);
	return status;
}

static enum roll_status print_zone(json_t *spec, struct roll_buf *out,
				   const struct roll_findings *findings)
{
	struct roll_zone_spec zone;
	struct roll_arena arena;
	enum roll_status status;

	roll_arena_init(&arena, ARENA_LIMIT);
	status = roll_translate_zone(spec, &arena, &zone, findings);
	if (status == ROLL_OK) {
		roll_buf_add_c(out, "domain ");
		roll_name_print(&zone.domain, ROLL_DOT_FINAL, out);
		roll_buf_add_char(out, '\n');
	}
	if (zone.class_name.n) {
		roll_buf_add_c(out, "class ");
		roll_buf_add_str(out, zone.class_name);
		roll_buf_add_char(out, '\n');
	}
	roll_arena_fini(&arena);
	return status;
}

static enum roll_status print_class(json_t *spec, struct roll_buf *out,
				    const struct roll_findings *findings)
{
	struct roll_class_spec class;
	struct roll_arena arena;
	enum roll_status status;

	roll_arena_init(&arena, ARENA_LIMIT);
	status = roll_translate_class(spec, &arena, &class, findings);
	if (class.controller.n) {
		roll_buf_add_c(out, "controller ");
		roll_buf_add_str(out, class.controller);
		roll_buf_add_char(out, '\n');
	}
	for (size_t i = 0; i < class.nameserver_count; i++) {
		roll_buf_add_c(out, "server ");
		roll_name_print(&class.nameservers[i], ROLL_DOT_FINAL, out);
		roll_buf_add_char(out, '\n');
	}
	if (class.has_default_ttl)
		roll_buf_printf(out, "ttl %u\n", (unsigned)class.default_ttl);
	roll_arena_fini(&arena);
	return status;
}

/* What the case yields, as the file has it. */
static void run_case(const struct case_text *one, struct roll_buf *out)
{
	struct roll_buf found;
	struct roll_findings findings = {on_finding, &found};
	struct roll_err err = {ROLL_OK, "", ""};
	enum roll_status status = ROLL_EINVAL;
	json_t *spec;

	roll_buf_init(&found, SIZE_LIMIT);
	if (roll_json_parse(roll_str_trim(one->json), &spec, &err) != ROLL_OK)
		fail_msg(ROLL_STR_FMT ": %s: %s", ROLL_STR_ARG(one->name), err.where, err.text);
	switch (one->kind) {
	case ROLL_KIND_CLASS:
		status = print_class(spec, out, &findings);
		break;
	case ROLL_KIND_ZONE:
		status = print_zone(spec, out, &findings);
		break;
	case ROLL_KIND_RECORDSET:
	case ROLL_KIND_COUNT:
		status = print_recordset(spec, one->zone, out, &findings);
		break;
	}
	assert_true(status == ROLL_OK || status == ROLL_EINVAL);
	if (status == ROLL_EINVAL)
		roll_buf_add_c(out, "refused\n");
	roll_buf_add_str(out, roll_buf_str(&found));
	if (out->n)
		roll_buf_truncate(out, out->n - 1);
	assert_int_equal(out->status, ROLL_OK);
	roll_buf_fini(&found);
	json_decref(spec);
}

static void load(const char *path, struct roll_buf *out)
{
	FILE *file = fopen(path, "r");
	char piece[4096];
	size_t n;

	if (!file)
		fail_msg("cannot open %s", path);
	roll_buf_init(out, SIZE_LIMIT);
	while ((n = fread(piece, 1, sizeof piece, file)) > 0)
		roll_buf_add(out, piece, n);
	fclose(file);
	assert_int_equal(out->status, ROLL_OK);
}

static void load_data(const char *name, struct roll_buf *out)
{
	const char *folder = getenv("ROLL_SRCDIR");
	char path[4096];

	snprintf(path, sizeof path, "%s/tests/data/translate/%s", folder ? folder : ".", name);
	load(path, out);
}

static void every_case_of_the_file_holds(void **state)
{
	const char *const *file = *state;
	struct roll_buf text, got;
	struct case_text one;
	struct roll_str rest;
	size_t failed = 0;

	load_data(*file, &text);
	rest = roll_buf_str(&text);
	roll_buf_init(&got, SIZE_LIMIT);
	while (next_case(&rest, &one)) {
		roll_buf_reset(&got);
		run_case(&one, &got);
		if (roll_str_eq(roll_buf_str(&got), one.want))
			continue;
		failed++;
		print_error(ROLL_STR_FMT "wanted:\n" ROLL_STR_FMT "\ngot:\n" ROLL_STR_FMT "\n\n",
			    ROLL_STR_ARG(one.head), ROLL_STR_ARG(one.want), ROLL_STR_ARG(got));
	}
	roll_buf_fini(&got);
	roll_buf_fini(&text);
	assert_int_equal(failed, 0);
}

static bool has_case(const struct roll_buf *texts, const char *name)
{
	struct case_text one;
	struct roll_str rest;

	for (size_t i = 0; i < FILE_COUNT; i++) {
		rest = roll_buf_str(&texts[i]);
		while (next_case(&rest, &one))
			if (roll_str_eq_c(one.name, name))
				return true;
	}
	return false;
}

static void every_row_has_a_case(void **state)
{
	struct roll_buf texts[FILE_COUNT];
	size_t missing = 0;
	char name[16];

	(void)state;
	for (size_t i = 0; i < FILE_COUNT; i++)
		load_data(files[i], &texts[i]);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		for (unsigned row = 1; row <= rows[i].last; row++) {
			snprintf(name, sizeof name, "%c%u", rows[i].letter, row);
			if (is_elsewhere(rows[i].letter, row) || has_case(texts, name))
				continue;
			print_error("row %s has no case\n", name);
			missing++;
		}
	}
	for (size_t i = 0; i < FILE_COUNT; i++)
		roll_buf_fini(&texts[i]);
	assert_int_equal(missing, 0);
}

/* Cases too large for a table. */

static void count_findings(void *ctx, const struct roll_finding *finding)
{
	(void)finding;
	++*(size_t *)ctx;
}

struct large {
	struct roll_arena arena;
	struct roll_recordset_spec set;
	size_t findings;
};

static void translate_large(json_t *records, const char *type, struct large *out)
{
	struct roll_findings findings = {count_findings, &out->findings};
	json_t *spec = json_pack("{s:{s:s},s:s,s:o}", "dnsZoneRef", "name", "zone", "recordType",
				 type, "records", records);
	struct roll_name zone;

	assert_non_null(spec);
	out->findings = 0;
	roll_arena_init(&out->arena, ARENA_LIMIT);
	assert_int_equal(roll_name_parse(roll_str_c("example.com"), &zone, NULL), ROLL_OK);
	assert_int_equal(roll_translate_recordset(spec, &zone, &out->arena, &out->set, &findings),
			 ROLL_OK);
	json_decref(spec);
}

static void c24_txt_over_65535_bytes_is_refused(void **state)
{
	static const size_t sizes[] = {60000, 65535, 65536, 1000000};
	struct large large;
	char *text;

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		text = malloc(sizes[i] + 1);
		assert_non_null(text);
		memset(text, 'x', sizes[i]);
		text[sizes[i]] = 0;
		translate_large(json_pack("[{s:s,s:{s:s}}]", "name", "@", "txt", "content", text),
				"TXT", &large);
		free(text);
		assert_int_equal(large.set.owned_count, sizes[i] == 60000 ? 1 : 0);
		assert_int_equal(large.findings, sizes[i] == 60000 ? 0 : 1);
		roll_arena_fini(&large.arena);
	}
}

/* 12 bytes of overhead and 4 of rdata each, within 65535 - 282. */
static void an_rrset_holds_what_fits_a_message(void **state)
{
	const size_t fitting = (65535 - 282) / 16;
	json_t *records = json_array();
	struct large large;
	char address[32];

	(void)state;
	for (unsigned i = 0; i < 5000; i++) {
		snprintf(address, sizeof address, "10.0.%u.%u", i / 256, i % 256);
		json_array_append_new(records, json_pack("{s:s,s:{s:s}}", "name", "many", "a",
							 "content", address));
	}
	translate_large(records, "A", &large);
	assert_int_equal(large.set.owned_count, 1);
	assert_int_equal(large.set.owned[0].rrset.count, fitting);
	assert_int_equal(large.findings, 5000 - fitting);
	roll_arena_fini(&large.arena);
}

static void many_owners_come_sorted_and_whole(void **state)
{
	const unsigned count = 20000;
	json_t *records = json_array();
	struct large large;
	char owner[32];

	(void)state;
	for (unsigned i = 0; i < count; i++) {
		snprintf(owner, sizeof owner, "n%u", i * 7919 % count);
		json_array_append_new(records, json_pack("{s:s,s:{s:s}}", "name", owner, "a",
							 "content", "192.0.2.1"));
	}
	translate_large(records, "A", &large);
	assert_int_equal(large.findings, 0);
	assert_int_equal(large.set.record_count, count);
	assert_int_equal(large.set.owned_count, count);
	for (size_t i = 1; i < count; i++)
		assert_true(roll_name_cmp(&large.set.owned[i - 1].owner,
					  &large.set.owned[i].owner) < 0);
	roll_arena_fini(&large.arena);
}

static void an_arena_that_is_too_small_is_an_error(void **state)
{
	json_t *spec =
		json_pack("{s:{s:s},s:s,s:[{s:s,s:{s:s}}]}", "dnsZoneRef", "name", "zone",
			  "recordType", "A", "records", "name", "www", "a", "content", "192.0.2.1");
	struct roll_recordset_spec set;
	struct roll_arena arena;
	struct roll_name zone;
	enum roll_status status = ROLL_ELIMIT;
	size_t limit;

	(void)state;
	assert_int_equal(roll_name_parse(roll_str_c("example.com"), &zone, NULL), ROLL_OK);
	for (limit = 0; limit < 65536 && status != ROLL_OK; limit += 64) {
		roll_arena_init(&arena, limit);
		status = roll_translate_recordset(spec, &zone, &arena, &set, NULL);
		assert_true(status == ROLL_OK || status == ROLL_ELIMIT);
		roll_arena_fini(&arena);
	}
	assert_int_equal(status, ROLL_OK);
	json_decref(spec);
}

static void the_spelling_is_kept_as_first_written(void **state)
{
	struct large large;

	(void)state;
	translate_large(json_pack("[{s:s,s:{s:s}},{s:s,s:{s:s}},{s:s,s:{s:s}}]", "name", "API", "a",
				  "content", "bad", "name", "Api", "a", "content", "192.0.2.1",
				  "name", "api.example.com.", "a", "content", "192.0.2.2"),
			"A", &large);
	assert_int_equal(large.set.owned_count, 1);
	assert_int_equal(large.set.owned[0].rrset.count, 2);
	assert_true(roll_str_eq_c(large.set.owned[0].spelling, "Api"));
	roll_arena_fini(&large.arena);
}

/* For people: the file with its results as they are now. */
static int print_file(const char *path)
{
	struct roll_buf text, got;
	struct case_text one;
	struct roll_str rest;
	const char *done;

	load(path, &text);
	rest = roll_buf_str(&text);
	done = rest.p;
	roll_buf_init(&got, SIZE_LIMIT);
	while (next_case(&rest, &one)) {
		roll_buf_reset(&got);
		run_case(&one, &got);
		printf(ROLL_STR_FMT ROLL_STR_FMT ROLL_STR_FMT "\n\n", (int)(one.head.p - done),
		       done, ROLL_STR_ARG(one.head), ROLL_STR_ARG(got));
		done = rest.p;
	}
	roll_buf_fini(&got);
	roll_buf_fini(&text);
	return 0;
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[FILE_COUNT + 16];
	const struct CMUnitTest others[] = {
		cmocka_unit_test(every_row_has_a_case),
		cmocka_unit_test(c24_txt_over_65535_bytes_is_refused),
		cmocka_unit_test(an_rrset_holds_what_fits_a_message),
		cmocka_unit_test(many_owners_come_sorted_and_whole),
		cmocka_unit_test(an_arena_that_is_too_small_is_an_error),
		cmocka_unit_test(the_spelling_is_kept_as_first_written),
	};
	size_t n = 0;

	if (argc == 3 && strcmp(argv[1], "--print") == 0)
		return print_file(argv[2]);
	for (; n < FILE_COUNT; n++)
		tests[n] = (struct CMUnitTest){files[n], every_case_of_the_file_holds, NULL, NULL,
					       (void *)(uintptr_t)&files[n]};
	memcpy(tests + n, others, sizeof others);
	return _cmocka_run_group_tests("translate", tests, n + sizeof others / sizeof *others, NULL,
				       NULL);
}
