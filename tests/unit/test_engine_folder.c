/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/engine_world.h"
#include "tests/lib/quiet.h"

/* What an engine makes of a folder of manifests: scopes that are there, gone, or cannot be read. */

static void on_shared(void *ctx, struct roll_str scope, struct roll_str other)
{
	struct fixture *f = ctx;

	if (f->shared_count < 8)
		snprintf(f->shared[f->shared_count++], 128, "%.*s+%.*s", ROLL_STR_ARG(scope),
			 ROLL_STR_ARG(other));
}

/* "class,zone:a" : scopes, '-' before one that is gone, '!' before one that cannot be read. */
static enum roll_status tell(struct fixture *f, bool all, const char *const *scopes,
			     const char *const *objects)
{
	struct roll_str there[8], gone[8];
	struct roll_list_head head = {.kind = -1,
				      .all_scopes = all,
				      .scopes = {there, 0},
				      .gone = {gone, 0},
				      .what = roll_str_c("manifests"),
				      .on_shared = on_shared,
				      .ctx = f};
	size_t i;

	f->shared_count = 0;
	for (i = 0; scopes[i]; i++) {
		if (scopes[i][0] == '-')
			gone[head.gone.count++] = roll_str_c(scopes[i] + 1);
		else
			there[head.scopes.count++] = roll_str_c(scopes[i] + (scopes[i][0] == '!'));
	}
	assert_int_equal(f->sink->list_begin(f->sink->ctx, &head), ROLL_OK);
	for (i = 0; scopes[i]; i++) {
		if (scopes[i][0] == '!')
			assert_int_equal(f->sink->list_keep(f->sink->ctx, roll_str_c(scopes[i] + 1),
							    roll_str_c("broken")),
					 ROLL_OK);
	}
	/* "scope name byte" */
	for (i = 0; objects[i]; i++) {
		char scope[32], name[32];
		struct roll_str rest = roll_str_c(objects[i]), word;
		uint32_t byte = 0;
		json_t *value;

		word = roll_str_cut(&rest, ' ');
		snprintf(scope, sizeof scope, "%.*s", ROLL_STR_ARG(word));
		word = roll_str_cut(&rest, ' ');
		snprintf(name, sizeof name, "%.*s", ROLL_STR_ARG(word));
		assert_int_equal(roll_str_u32(rest, 255, &byte), ROLL_OK);
		value = strcmp(name, "class") == 0  ? class_object()
			: strcmp(name, "zone") == 0 ? zone_object(0)
						    : set_object("d", name, 0, byte);
		assert_int_equal(f->sink->list_put(f->sink->ctx, value, roll_str_c(scope),
						   roll_str_n("", 0)),
				 ROLL_OK);
		json_decref(value);
	}
	return f->sink->list_end(f->sink->ctx, 0, roll_str_n("", 0));
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NONE ((const char *const[]){NULL})

static void count_finding(void *ctx, const char *object, const char *path, const char *reason,
			  const char *text)
{
	(void)object;
	(void)path;
	(void)text;
	if (strcmp(reason, "DuplicateObject") == 0)
		((size_t *)ctx)[0]++;
	if (strcmp(reason, "StaleFile") == 0)
		((size_t *)ctx)[1]++;
}

static void expect_findings(struct fixture *f, size_t duplicates, size_t stale)
{
	size_t found[2] = {0, 0};

	assert_int_equal(roll_engine_findings(f->engine, count_finding, found), ROLL_OK);
	assert_int_equal(found[0], duplicates);
	assert_int_equal(found[1], stale);
}

static void start_folder(struct fixture *f)
{
	start_engine(f, false);
	assert_int_equal(tell(f, true, LIST("a", "m"), LIST("a class 0", "a zone 0", "m x 1")),
			 ROLL_OK);
	assert_int_equal(served(f, "x"), 1);
}

static void manifest_that_is_gone_is_proof_at_once(void **state)
{
	char evidence[256];
	struct fixture f;

	(void)state;
	start_folder(&f);
	assert_int_equal(tell(&f, false, LIST("-m"), NONE), ROLL_OK);
	assert_int_equal(served(&f, "x"), -1);
	assert_string_equal(last_evidence(&f, evidence), "manifest m gone");
	assert_int_equal(tell(&f, false, LIST("m"), LIST("m x 1", "m y 2")), ROLL_OK);
	assert_int_equal(tell(&f, false, LIST("m"), LIST("m x 1")), ROLL_OK);
	assert_string_equal(last_evidence(&f, evidence), "no longer in manifest m");
	stop_engine(&f);
}

static void manifest_that_cannot_be_read_keeps_its_objects(void **state)
{
	struct fixture f;
	uint64_t before;

	(void)state;
	start_folder(&f);
	assert_int_equal(tell(&f, false, LIST("!m"), NONE), ROLL_OK);
	assert_int_equal(served(&f, "x"), 1);
	expect_findings(&f, 0, 1);
	assert_int_equal(tell(&f, true, LIST("a", "!m"), LIST("a class 0", "a zone 0")), ROLL_OK);
	assert_int_equal(served(&f, "x"), 1);
	expect_findings(&f, 0, 1);
	assert_int_equal(tell(&f, false, LIST("m"), LIST("m x 1")), ROLL_OK);
	expect_findings(&f, 0, 0);
	before = generation(&f);
	assert_int_equal(served(&f, "x"), 1);
	assert_int_equal(generation(&f), before);
	stop_engine(&f);
}

static void first_manifest_by_path_has_the_object(void **state)
{
	struct fixture f;

	(void)state;
	start_folder(&f);
	/* A later one that was not there before: the first has to be told along. */
	assert_int_equal(tell(&f, false, LIST("n"), LIST("n x 2")), ROLL_ESTALE);
	assert_int_equal(f.shared_count, 1);
	assert_string_equal(f.shared[0], "m+n");
	assert_int_equal(served(&f, "x"), 1);
	assert_int_equal(tell(&f, false, LIST("m", "n"), LIST("m x 1", "n x 2")), ROLL_OK);
	assert_int_equal(served(&f, "x"), 1);
	expect_findings(&f, 1, 0);
	/* The first goes, the second takes over in the same commit. */
	assert_int_equal(tell(&f, false, LIST("-m", "n"), LIST("n x 2")), ROLL_OK);
	assert_int_equal(served(&f, "x"), 2);
	expect_findings(&f, 0, 0);
	/* An earlier one comes; told in whatever order. */
	assert_int_equal(tell(&f, false, LIST("l", "n"), LIST("n x 2", "l x 3")), ROLL_OK);
	assert_int_equal(served(&f, "x"), 3);
	expect_findings(&f, 1, 0);
	/* The earlier one cannot be read any more: what it had still counts. */
	assert_int_equal(tell(&f, false, LIST("!l", "n"), LIST("n x 2")), ROLL_OK);
	assert_int_equal(served(&f, "x"), 3);
	stop_engine(&f);
}

static void file_that_is_renamed_changes_no_answer(void **state)
{
	struct fixture f;

	(void)state;
	start_folder(&f);
	assert_int_equal(tell(&f, false, LIST("-m", "q"), LIST("q x 1")), ROLL_OK);
	assert_int_equal(served(&f, "x"), 1);
	assert_int_equal(tell(&f, false, LIST("-q"), NONE), ROLL_OK);
	assert_int_equal(served(&f, "x"), -1);
	stop_engine(&f);
}

static void list_given_up_leaves_nothing_in_a_new_view(void **state)
{
	struct roll_list_head head = {
		.kind = -1, .all_scopes = true, .what = roll_str_c("manifests")};
	struct fixture f;
	unsigned i;

	(void)state;
	start_engine(&f, false);
	assert_int_equal(f.sink->list_begin(f.sink->ctx, &head), ROLL_OK);
	for (i = 0; i < 3000; i++) {
		char name[16];
		json_t *value;

		snprintf(name, sizeof name, "m%u", i);
		value = set_object("d", name, 0, i % 250);
		assert_int_equal(
			f.sink->list_put(f.sink->ctx, value, roll_str_c("big"), roll_str_n("", 0)),
			ROLL_OK);
		json_decref(value);
	}
	f.sink->list_abort(f.sink->ctx);
	assert_int_equal(tell(&f, true, LIST("a", "!big"), LIST("a class 0", "a zone 0", "a x 1")),
			 ROLL_OK);
	assert_int_equal(served(&f, "m1"), -1);
	assert_int_equal(served(&f, "x"), 1);
	stop_engine(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(manifest_that_is_gone_is_proof_at_once),
		cmocka_unit_test(manifest_that_cannot_be_read_keeps_its_objects),
		cmocka_unit_test(first_manifest_by_path_has_the_object),
		cmocka_unit_test(file_that_is_renamed_changes_no_answer),
		cmocka_unit_test(list_given_up_leaves_nothing_in_a_new_view),
	};

	quiet();
	return cmocka_run_group_tests_name("engine_folder", tests, NULL, NULL);
}
