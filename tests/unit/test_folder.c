/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "source/folder.h"
#include "tests/lib/quiet.h"
#include "tests/lib/tempview.h"
#include "tests/lib/until.h"

/*
 * A sink that writes down what it is told. A list is one line, when it ends:
 *
 *	all +a.json -b.json a.json:x a.json:y !c.json
 *
 * scopes that are there, scopes that are gone, objects by name, manifests that are kept.
 */
struct fixture {
	char dir[64];
	struct roll_loop *loop;
	struct roll_folder *folder;
	struct roll_sink sink;
	struct roll_buf list; /* being told */
	struct roll_buf lists;
	size_t count, aborted, confirmed, unreachable;
	struct roll_list_head head;
	enum roll_status verdict; /* of the next list */
	const char *shares[2];	  /* told by the next list */
	const char *waits_for;	  /* a piece of text in lists */
	size_t waits_count;
};

static void add_word(struct roll_buf *buf, const char *before, struct roll_str word)
{
	roll_buf_add_c(buf, buf->n ? " " : "");
	roll_buf_add_c(buf, before);
	roll_buf_add_str(buf, word);
}

static enum roll_status list_begin(void *ctx, const struct roll_list_head *head)
{
	struct fixture *f = ctx;
	size_t i;

	roll_buf_reset(&f->list);
	f->head = *head;
	add_word(&f->list, "", roll_str_c(head->all_scopes ? "all" : "some"));
	for (i = 0; i < head->scopes.count; i++)
		add_word(&f->list, "+", head->scopes.items[i]);
	for (i = 0; i < head->gone.count; i++)
		add_word(&f->list, "-", head->gone.items[i]);
	return ROLL_OK;
}

static enum roll_status list_put(void *ctx, json_t *object, struct roll_str scope,
				 struct roll_str where)
{
	struct fixture *f = ctx;

	assert_true(where.n > 0);
	add_word(&f->list, "", scope);
	roll_buf_add_char(&f->list, ':');
	roll_buf_add_str(&f->list, roll_json_str(object, "n"));
	return ROLL_OK;
}

static enum roll_status list_keep(void *ctx, struct roll_str scope, struct roll_str reason)
{
	struct fixture *f = ctx;

	assert_true(reason.n > 0);
	add_word(&f->list, "!", scope);
	return ROLL_OK;
}

static enum roll_status list_end(void *ctx, uint64_t revision, struct roll_str position)
{
	struct fixture *f = ctx;
	enum roll_status verdict = f->verdict;

	assert_int_equal(revision, 0);
	assert_int_equal(position.n, 0);
	f->verdict = ROLL_OK;
	if (f->shares[0]) {
		f->head.on_shared(f->head.ctx, roll_str_c(f->shares[0]), roll_str_c(f->shares[1]));
		f->shares[0] = NULL;
	}
	roll_buf_add_str(&f->lists, roll_buf_str(&f->list));
	roll_buf_add_c(&f->lists, "\n");
	f->count++;
	return verdict;
}

static void list_abort(void *ctx)
{
	((struct fixture *)ctx)->aborted++;
}

static void confirmed(void *ctx)
{
	((struct fixture *)ctx)->confirmed++;
}

static void unreachable(void *ctx, const char *why)
{
	assert_true(strlen(why) > 0);
	((struct fixture *)ctx)->unreachable++;
}

/* --- files --- */

static const char *path_of(const struct fixture *f, const char *name, char out[256])
{
	snprintf(out, 256, "%s/%s", f->dir, name);
	return out;
}

static void write_file(const struct fixture *f, const char *name, const char *text)
{
	char path[256];
	FILE *file = fopen(path_of(f, name, path), "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void rename_file(const struct fixture *f, const char *from, const char *to)
{
	char a[256], b[256];

	assert_int_equal(rename(path_of(f, from, a), path_of(f, to, b)), 0);
}

static void remove_file(const struct fixture *f, const char *name)
{
	char path[256];

	assert_int_equal(unlink(path_of(f, name, path)), 0);
}

static void make_folder(const struct fixture *f, const char *name)
{
	char path[256];

	assert_int_equal(mkdir(path_of(f, name, path), 0755), 0);
}

/* --- fixture --- */

static void open_folder(struct fixture *f)
{
	memset(f, 0, sizeof *f);
	snprintf(f->dir, sizeof f->dir, "/tmp/roll-folder-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->sink = (struct roll_sink){.ctx = f,
				     .list_begin = list_begin,
				     .list_put = list_put,
				     .list_keep = list_keep,
				     .list_end = list_end,
				     .list_abort = list_abort,
				     .confirmed = confirmed,
				     .unreachable = unreachable};
	roll_buf_init(&f->list, 1 << 20);
	roll_buf_init(&f->lists, 1 << 22);
	assert_int_equal(roll_loop_new(NULL, &f->loop, NULL), ROLL_OK);
}

static void close_folder(struct fixture *f)
{
	roll_folder_free(f->folder);
	roll_loop_free(f->loop);
	roll_buf_fini(&f->list);
	roll_buf_fini(&f->lists);
	tempview_remove_all(f->dir);
}

static bool has_lists(void *ctx)
{
	struct fixture *f = ctx;

	return f->count >= f->waits_count;
}

static bool has_text(void *ctx)
{
	struct fixture *f = ctx;

	return f->lists.n && strstr(f->lists.p, f->waits_for);
}

/* Exactly what was told since the last time. */
static void expect(struct fixture *f, size_t count, const char *want)
{
	f->waits_count = count;
	if (!until(f->loop, has_lists, f, 10000) || !roll_str_eq_c(roll_buf_str(&f->lists), want))
		print_error("told:\n%s", f->lists.n ? f->lists.p : "nothing\n");
	assert_true(roll_str_eq_c(roll_buf_str(&f->lists), want));
	roll_buf_reset(&f->lists);
	f->count = 0;
}

static void expect_text(struct fixture *f, const char *text)
{
	f->waits_for = text;
	if (!until(f->loop, has_text, f, 10000))
		print_error("told:\n%s", f->lists.n ? f->lists.p : "nothing\n");
	assert_true(has_text(f));
	roll_buf_reset(&f->lists);
	f->count = 0;
}

static void start(struct fixture *f)
{
	assert_int_equal(roll_folder_new(f->loop, f->dir, &f->folder, NULL), ROLL_OK);
	roll_folder_set_sink(f->folder, &f->sink);
	roll_folder_start(f->folder);
}

/* One file of one object, watched. */
static void start_with_one(struct fixture *f)
{
	open_folder(f);
	write_file(f, "a.json", "{\"n\":\"x\"}");
	start(f);
	expect(f, 1, "all +a.json a.json:x\n");
}

/* --- tests --- */

static void reads_every_form_of_manifest_in_path_order(void **state)
{
	struct fixture f;

	(void)state;
	open_folder(&f);
	make_folder(&f, "sub");
	make_folder(&f, ".git");
	write_file(&f, "z.yml", "\"n\": x\n---\n# nothing\n---\n\"n\": \"y\"\n");
	write_file(&f, "list.json", "{\"kind\":\"List\",\"items\":[{\"n\":\"1\"},{\"n\":\"2\"}]}");
	write_file(&f, "list.yaml", "kind: FooList\nitems:\n- {\"n\": \"3\"}\n- {\"n\": \"4\"}\n");
	write_file(&f, "sub/deep.json", "{\"n\":\"d\"}");
	write_file(&f, ".hidden.yaml", "n: no\n");
	write_file(&f, ".git/config.yaml", "n: no\n");
	write_file(&f, "README.md", "n: no\n");
	write_file(&f, "a.yaml~", "n: no\n");
	assert_int_equal(roll_folder_new(NULL, f.dir, &f.folder, NULL), ROLL_OK);
	roll_folder_set_sink(f.folder, &f.sink);
	assert_int_equal(roll_folder_list(f.folder, NULL), ROLL_OK);
	expect(&f, 1,
	       "all +list.json +list.yaml +sub/deep.json +z.yml list.json:1 list.json:2 "
	       "list.yaml:3 list.yaml:4 sub/deep.json:d z.yml:x z.yml:y\n");
	assert_int_equal(roll_folder_errors(f.folder, NULL, NULL), 0);
	close_folder(&f);
}

static void folder_must_be_there(void **state)
{
	struct roll_folder *folder = NULL;
	struct roll_err err = {0};

	(void)state;
	assert_int_equal(roll_folder_new(NULL, "/nonexistent/folder", &folder, &err), ROLL_ENOENT);
	assert_non_null(strstr(err.text, "No such file"));
}

static void file_that_is_removed_is_told_at_once(void **state)
{
	struct fixture f;

	(void)state;
	start_with_one(&f);
	remove_file(&f, "a.json");
	expect(&f, 1, "some -a.json\n");
	close_folder(&f);
}

static void rename_is_one_list(void **state)
{
	struct fixture f;

	(void)state;
	start_with_one(&f);
	make_folder(&f, "sub");
	for_ms(f.loop, 50);
	rename_file(&f, "a.json", "sub/b.json");
	expect(&f, 1, "some +sub/b.json -a.json sub/b.json:x\n");
	rename_file(&f, "sub", "tub");
	expect(&f, 1, "some +tub/b.json -sub/b.json tub/b.json:x\n");
	close_folder(&f);
}

static void editors_that_replace_a_file_change_it(void **state)
{
	struct fixture f;

	(void)state;
	start_with_one(&f);
	/* Written aside and renamed over. */
	write_file(&f, ".a.json.swp", "{\"n\":\"y\"}");
	rename_file(&f, ".a.json.swp", "a.json");
	expect(&f, 1, "some +a.json a.json:y\n");
	/* Moved to a backup, then written anew. */
	rename_file(&f, "a.json", "a.json~");
	for_ms(f.loop, 20);
	write_file(&f, "a.json", "{\"n\":\"z\"}");
	expect(&f, 1, "some +a.json a.json:z\n");
	/* Moved to a backup, and that was all. */
	rename_file(&f, "a.json", "a.json~");
	expect(&f, 1, "some -a.json\n");
	close_folder(&f);
}

static void file_being_written_is_read_when_it_is_closed(void **state)
{
	struct fixture f;
	char path[256];
	int fd;

	(void)state;
	start_with_one(&f);
	fd = open(path_of(&f, "a.json", path), O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "{\"n\":", 5), 5);
	for_ms(f.loop, 100);
	assert_int_equal(f.count, 0);
	assert_int_equal(write(fd, "\"w\"}", 4), 4);
	for_ms(f.loop, 20);
	assert_int_equal(f.count, 0);
	close(fd);
	expect(&f, 1, "some +a.json a.json:w\n");
	close_folder(&f);
}

static void file_that_cannot_be_read_is_kept(void **state)
{
	struct fixture f;

	(void)state;
	start_with_one(&f);
	write_file(&f, "a.json", "{\"n\":");
	expect(&f, 1, "some +a.json !a.json\n");
	assert_int_equal(roll_folder_errors(f.folder, NULL, NULL), 1);
	write_file(&f, "a.json", "");
	expect(&f, 1, "some +a.json !a.json\n");
	write_file(&f, "b.yaml", "n: 1\n---\n{");
	expect(&f, 1, "some +b.yaml !b.yaml\n");
	assert_int_equal(roll_folder_errors(f.folder, NULL, NULL), 2);
	write_file(&f, "a.json", "{\"n\":\"v\"}");
	expect(&f, 1, "some +a.json a.json:v\n");
	remove_file(&f, "b.yaml");
	expect(&f, 1, "some -b.yaml\n");
	assert_int_equal(roll_folder_errors(f.folder, NULL, NULL), 0);
	close_folder(&f);
}

static void large_file_that_breaks_at_its_end_begins_the_list_anew(void **state)
{
	struct fixture f;
	struct roll_buf text;
	unsigned i;

	(void)state;
	open_folder(&f);
	roll_buf_init(&text, 4 << 20);
	roll_buf_add_c(&text, "{\"kind\":\"List\",\"items\":[");
	for (i = 0; i < 60000; i++)
		roll_buf_printf(&text, "{\"n\":\"item\"},");
	write_file(&f, "big.json", text.p);
	write_file(&f, "small.json", "{\"n\":\"s\"}");
	roll_buf_fini(&text);
	start(&f);
	expect(&f, 1, "all +big.json +small.json !big.json small.json:s\n");
	assert_int_equal(f.aborted, 1);
	close_folder(&f);
}

static void links_are_followed(void **state)
{
	struct fixture f;
	char a[256], b[256];

	(void)state;
	start_with_one(&f);
	make_folder(&f, ".outside");
	write_file(&f, ".outside/x", "{\"n\":\"linked\"}");
	assert_int_equal(symlink(".outside/x", path_of(&f, "soft.json", a)), 0);
	expect(&f, 1, "some +soft.json soft.json:linked\n");
	assert_int_equal(link(path_of(&f, ".outside/x", a), path_of(&f, "hard.json", b)), 0);
	expect(&f, 1, "some +hard.json hard.json:linked\n");
	/* Nobody tells that what a link leads to has changed, so it is looked at now and then. */
	remove_file(&f, "hard.json");
	expect(&f, 1, "some -hard.json\n");
	write_file(&f, ".outside/x", "{\"n\":\"changed\"}");
	expect_text(&f, "soft.json:changed");
	close_folder(&f);
}

static void mounted_volume_is_swapped_as_a_whole(void **state)
{
	struct fixture f;
	char a[256];

	(void)state;
	open_folder(&f);
	make_folder(&f, "..1");
	make_folder(&f, "..2");
	write_file(&f, "..1/x.json", "{\"n\":\"x1\"}");
	write_file(&f, "..1/y.json", "{\"n\":\"y1\"}");
	write_file(&f, "..2/x.json", "{\"n\":\"x2\"}");
	assert_int_equal(symlink("..1", path_of(&f, "..data", a)), 0);
	assert_int_equal(symlink("..data/x.json", path_of(&f, "x.json", a)), 0);
	assert_int_equal(symlink("..data/y.json", path_of(&f, "y.json", a)), 0);
	start(&f);
	expect(&f, 1, "all +x.json +y.json x.json:x1 y.json:y1\n");
	assert_int_equal(symlink("..2", path_of(&f, "..data_tmp", a)), 0);
	rename_file(&f, "..data_tmp", "..data");
	expect(&f, 1, "some +x.json -y.json x.json:x2\n");
	close_folder(&f);
}

static void link_to_a_folder_above_does_not_go_round(void **state)
{
	struct fixture f;
	char a[256];

	(void)state;
	open_folder(&f);
	make_folder(&f, "sub");
	write_file(&f, "sub/a.json", "{\"n\":\"x\"}");
	assert_int_equal(symlink("..", path_of(&f, "sub/up", a)), 0);
	start(&f);
	expect(&f, 1, "all +sub/a.json sub/a.json:x\n");
	close_folder(&f);
}

static void folders_come_and_go(void **state)
{
	struct fixture f;

	(void)state;
	start_with_one(&f);
	make_folder(&f, "sub");
	write_file(&f, "sub/b.json", "{\"n\":\"b\"}");
	expect_text(&f, "sub/b.json:b");
	make_folder(&f, "sub/deeper");
	for_ms(f.loop, 50);
	write_file(&f, "sub/deeper/c.json", "{\"n\":\"c\"}");
	expect(&f, 1, "some +sub/deeper/c.json sub/deeper/c.json:c\n");
	rename_file(&f, "sub", ".sub");
	expect(&f, 1, "some -sub/b.json -sub/deeper/c.json\n");
	close_folder(&f);
}

static void too_many_events_mean_another_look_at_everything(void **state)
{
	struct fixture f;
	unsigned i;

	(void)state;
	start_with_one(&f);
	/* More than the kernel queues (fs.inotify.max_queued_events). */
	for (i = 0; i < 20000; i++) {
		write_file(&f, "x1", "");
		remove_file(&f, "x1");
	}
	write_file(&f, "b.json", "{\"n\":\"b\"}");
	expect_text(&f, "b.json:b");
	close_folder(&f);
}

static void folder_that_vanishes_proves_nothing(void **state)
{
	struct fixture f;
	char aside[80];

	(void)state;
	start_with_one(&f);
	snprintf(aside, sizeof aside, "%s-aside", f.dir);
	assert_int_equal(rename(f.dir, aside), 0);
	for_ms(f.loop, 300);
	assert_int_equal(f.count, 0);
	assert_true(f.unreachable > 0);
	assert_int_equal(rename(aside, f.dir), 0);
	expect(&f, 1, "all +a.json a.json:x\n");
	/* And it is watched again. */
	write_file(&f, "b.json", "{\"n\":\"b\"}");
	expect(&f, 1, "some +b.json b.json:b\n");
	close_folder(&f);
}

static void list_that_is_held_is_told_again(void **state)
{
	struct fixture f;

	(void)state;
	open_folder(&f);
	write_file(&f, "a.json", "{\"n\":\"x\"}");
	f.verdict = ROLL_EAGAIN;
	start(&f);
	expect(&f, 2, "all +a.json a.json:x\nall +a.json a.json:x\n");
	/* The view could not be written. */
	f.verdict = ROLL_EIO;
	write_file(&f, "a.json", "{\"n\":\"y\"}");
	expect(&f, 2, "some +a.json a.json:y\nsome +a.json a.json:y\n");
	close_folder(&f);
}

static void files_that_share_an_object_are_told_together(void **state)
{
	struct fixture f;

	(void)state;
	start_with_one(&f);
	f.verdict = ROLL_ESTALE;
	f.shares[0] = "a.json";
	f.shares[1] = "b.json";
	write_file(&f, "b.json", "{\"n\":\"x\"}");
	expect(&f, 2, "some +b.json b.json:x\nsome +a.json +b.json a.json:x b.json:x\n");
	remove_file(&f, "a.json");
	expect(&f, 1, "some +b.json -a.json b.json:x\n");
	/* That was the pair. */
	write_file(&f, "a.json", "{\"n\":\"z\"}");
	expect(&f, 1, "some +a.json a.json:z\n");
	close_folder(&f);
}

static void subfolder_that_cannot_be_read_is_kept(void **state)
{
	const uid_t was = geteuid();
	struct fixture f;
	char path[256];

	(void)state;
	/* Root reads everything: be nobody meanwhile. */
	if (was == 0)
		assert_int_equal(seteuid(65534), 0);
	start_with_one(&f);
	make_folder(&f, "sub");
	write_file(&f, "sub/b.json", "{\"n\":\"b\"}");
	expect_text(&f, "sub/b.json:b");
	assert_int_equal(chmod(path_of(&f, "sub", path), 0), 0);
	roll_folder_again(f.folder);
	expect_text(&f, "!sub/");
	assert_int_equal(chmod(path_of(&f, "sub", path), 0755), 0);
	expect_text(&f, "sub/b.json:b");
	close_folder(&f);
	assert_int_equal(seteuid(was), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_form_of_manifest_in_path_order),
		cmocka_unit_test(folder_must_be_there),
		cmocka_unit_test(file_that_is_removed_is_told_at_once),
		cmocka_unit_test(rename_is_one_list),
		cmocka_unit_test(editors_that_replace_a_file_change_it),
		cmocka_unit_test(file_being_written_is_read_when_it_is_closed),
		cmocka_unit_test(file_that_cannot_be_read_is_kept),
		cmocka_unit_test(large_file_that_breaks_at_its_end_begins_the_list_anew),
		cmocka_unit_test(links_are_followed),
		cmocka_unit_test(mounted_volume_is_swapped_as_a_whole),
		cmocka_unit_test(link_to_a_folder_above_does_not_go_round),
		cmocka_unit_test(folders_come_and_go),
		cmocka_unit_test(too_many_events_mean_another_look_at_everything),
		cmocka_unit_test(folder_that_vanishes_proves_nothing),
		cmocka_unit_test(list_that_is_held_is_told_again),
		cmocka_unit_test(files_that_share_an_object_are_told_together),
		cmocka_unit_test(subfolder_that_cannot_be_read_is_kept),
	};

	quiet();
	return cmocka_run_group_tests_name("folder", tests, NULL, NULL);
}
