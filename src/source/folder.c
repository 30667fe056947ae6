/* SPDX-License-Identifier: Apache-2.0 */
#include "source/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "source/folder_state.h"

#define SLICE_MS 20    /* of reading, between turns of the loop */
#define CONFIRM_MS 500 /* until the second list, if the sink wants one */
#define TICK_MS 2000   /* polls and confirms */
#define STALL_MS 1000  /* created, never written to: nobody will close it */
#define BACKOFF_BASE_MS 200
#define BACKOFF_CAP_MS 10000
#define RESTARTS_MAX 50 /* in a row, then with a pause */
#define ONCE_LISTS 3
#define ONCE_WAIT_MS 100 /* for a file that is being written */
#define ONCE_WAITS 20

int64_t roll_folder_now(void)
{
	return roll_clock_monotonic_ms(&roll_clock_system);
}

static int64_t backoff(struct roll_folder *folder)
{
	return roll_backoff_ms(&folder->attempt, BACKOFF_BASE_MS, BACKOFF_CAP_MS, &folder->seed);
}

/* --- the whole tree --- */

/* Look at everything and begin a list of it. */
static enum roll_status begin_all(struct roll_folder *folder, bool do_watch)
{
	enum roll_status status;

	/* A root that was exchanged is another folder at the same place. */
	status = roll_folder_open_root(folder, &folder->err);
	if (!status && do_watch)
		status = roll_folder_watch(folder, &folder->err);
	if (!status)
		status = roll_folder_scan(folder, "", &folder->err);
	if (status)
		return status;
	folder->is_lost = false;
	return roll_folder_tell_begin(folder, true);
}

static bool is_root_trouble(const struct roll_folder *folder, enum roll_status status)
{
	return folder->err.code == status &&
	       (status == ROLL_EIO || status == ROLL_ENOENT || status == ROLL_EDENIED);
}

static void unreachable(struct roll_folder *folder)
{
	char why[400];

	snprintf(why, sizeof why, "%s",
		 folder->err.text[0] ? folder->err.text : "the folder cannot be read");
	folder->sink->unreachable(folder->sink->ctx, why);
}

/* --- once --- */

static bool is_any_being_written(const struct roll_folder *folder)
{
	const struct roll_file *file;

	for (file = folder->files; file; file = file->hh.next) {
		if (file->error && !file->look)
			return true;
	}
	return false;
}

static enum roll_status list_once(struct roll_folder *folder)
{
	enum roll_status status;
	bool is_done = false;

	folder->err = (struct roll_err){0};
	status = begin_all(folder, false);
	while (!status && !is_done)
		status = roll_folder_tell_step(folder, &is_done);
	return status;
}

enum roll_status roll_folder_list(struct roll_folder *folder, struct roll_err *err)
{
	const struct timespec pause = {0, ONCE_WAIT_MS * 1000000l};
	unsigned held = 0, waits = 0, restarts = 0;
	enum roll_status status;

	for (;;) {
		status = list_once(folder);
		if (status == ROLL_ESTALE && restarts++ < 10 * RESTARTS_MAX)
			continue;
		if (status == ROLL_EAGAIN && ++held < ONCE_LISTS)
			continue;
		if (status || !is_any_being_written(folder) || waits++ == ONCE_WAITS)
			break;
		nanosleep(&pause, NULL);
	}
	if (!status)
		folder->sink->confirmed(folder->sink->ctx);
	else if (status == ROLL_EAGAIN)
		roll_err_set(err, status, folder->root,
			     "what it no longer has is held, as said before; nothing was changed");
	else if (folder->err.code == status)
		roll_err_set(err, status, folder->root, "%s", folder->err.text);
	else
		roll_err_set(err, status, folder->root, "%s", roll_status_text(status));
	return status;
}

/* --- from the loop --- */

static void list_ended(struct roll_folder *folder, enum roll_status status, bool was_all)
{
	switch (status) {
	case ROLL_OK:
		folder->attempt = folder->restarts = 0;
		if (!folder->dirty_count && !folder->must_list_all)
			folder->sink->confirmed(folder->sink->ctx);
		roll_timer_set(folder->turn, 0);
		return;
	case ROLL_ESTALE: /* with other files */
		folder->must_list_all = folder->must_list_all || was_all;
		roll_timer_set(folder->turn,
			       ++folder->restarts < RESTARTS_MAX ? 0 : backoff(folder));
		return;
	case ROLL_EAGAIN: /* once more the same */
		folder->must_list_all = folder->must_list_all || was_all;
		roll_timer_set(folder->turn,
			       CONFIRM_MS + (folder->restarts++ ? backoff(folder) : 0));
		return;
	case ROLL_ECANCELED: /* on the way out */
		return;
	default:
		folder->must_list_all = folder->must_list_all || was_all;
		if (is_root_trouble(folder, status))
			unreachable(folder);
		roll_timer_set(folder->turn, backoff(folder));
	}
}

/* A slice of the list that is open. */
static void tell_on(struct roll_folder *folder)
{
	int64_t until = roll_folder_now() + SLICE_MS;
	bool was_all = folder->tell.is_all, is_done = false;
	enum roll_status status = ROLL_OK;

	while (!status && !is_done && roll_folder_now() < until)
		status = roll_folder_tell_step(folder, &is_done);
	if (is_done) {
		roll_folder_arm(folder);
		list_ended(folder, status, was_all);
	} else {
		roll_timer_set(folder->turn, 0);
	}
}

/* When the next thing is due that now has to wait; -1: nothing is. */
static int64_t next_due(struct roll_folder *folder, int64_t now)
{
	int64_t due = folder->rescan_count ? folder->rescan_at : INT64_MAX;
	size_t i;

	for (i = 0; i < folder->dirty_count; i++) {
		struct roll_file *file = folder->dirty[i];
		int64_t at = file->hold_until;

		if (file->is_writing && file->is_modified)
			continue; /* its close is an event */
		if (file->is_writing)
			at = file->created_ms + STALL_MS;
		if (at <= now && file->is_writing) {
			file->is_writing = false;
			at = 0;
		}
		due = at < due ? at : due;
	}
	return due == INT64_MAX ? -1 : due > now ? due - now : 0;
}

static enum roll_status run_rescans(struct roll_folder *folder)
{
	enum roll_status status = ROLL_OK;
	size_t count = folder->rescan_count, i;

	folder->rescan_count = 0;
	for (i = 0; i < count; i++) {
		if (!status)
			status = roll_folder_scan(folder, folder->rescans[i], &folder->err);
		free(folder->rescans[i]);
	}
	return status;
}

/* Decide what to do next, and begin it. */
static void on_turn(void *ctx)
{
	struct roll_folder *folder = ctx;
	int64_t now = roll_folder_now(), due;
	enum roll_status status = ROLL_OK;
	bool is_all;

	if (folder->tell.is_open) {
		tell_on(folder);
		return;
	}
	if (folder->inotify_fd >= 0)
		roll_folder_read_events(folder);
	folder->err = (struct roll_err){0};
	/* The files of a folder that is gone are not: nobody can look. */
	is_all = folder->must_list_all || folder->is_lost || !roll_folder_root_is_there(folder);
	if (is_all) {
		if (folder->readable)
			event_free(folder->readable);
		folder->readable = NULL;
		status = begin_all(folder, true);
		roll_folder_arm(folder);
	} else {
		if (folder->rescan_count && folder->rescan_at <= now)
			status = run_rescans(folder);
		due = next_due(folder, now);
		if (due != 0 && !status) {
			if (due > 0)
				roll_timer_set(folder->turn, due);
			return;
		}
		if (!status)
			status = roll_folder_tell_begin(folder, false);
		/* Nothing to tell: everything is held, or being written. */
		if (status == ROLL_ENOENT && !folder->err.code) {
			if (folder->dirty_count)
				roll_timer_set(folder->turn, STALL_MS);
			return;
		}
	}
	if (status) {
		if (is_all)
			folder->is_lost = true;
		list_ended(folder, status, is_all);
		return;
	}
	tell_on(folder);
}

static void on_readable(evutil_socket_t fd, short what, void *ctx)
{
	struct roll_folder *folder = ctx;

	(void)fd;
	(void)what;
	/* While a list is open the kernel keeps what comes; the list's end looks for it. */
	if (folder->tell.is_open) {
		event_del(folder->readable);
		return;
	}
	on_turn(folder);
}

void roll_folder_arm(struct roll_folder *folder)
{
	if (!folder->readable && folder->inotify_fd >= 0)
		folder->readable = event_new(roll_loop_base(folder->loop), folder->inotify_fd,
					     EV_READ | EV_PERSIST, on_readable, folder);
	if (folder->readable)
		event_add(folder->readable, NULL);
}

static void on_tick(void *ctx)
{
	struct roll_folder *folder = ctx;

	roll_timer_set(folder->tick, TICK_MS);
	if (folder->tell.is_open)
		return;
	if (folder->is_polling)
		roll_folder_want_scan(folder, "", 0);
	roll_folder_check_links(folder);
	if (!roll_folder_root_is_there(folder))
		folder->is_lost = true;
	if (folder->is_lost || folder->must_list_all || folder->dirty_count ||
	    folder->rescan_count) {
		if (!folder->attempt)
			on_turn(folder);
		return;
	}
	folder->sink->confirmed(folder->sink->ctx);
}

/* --- life --- */

enum roll_status roll_folder_new(struct roll_loop *loop, const char *dir, struct roll_folder **out,
				 struct roll_err *err)
{
	struct roll_folder *folder = calloc(1, sizeof *folder);
	enum roll_status status = ROLL_OK;

	if (!folder)
		return roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	folder->loop = loop;
	folder->root_fd = folder->inotify_fd = -1;
	folder->seed = (uint64_t)roll_folder_now();
	folder->must_list_all = true;
	folder->root = strdup(dir);
	if (loop) {
		folder->turn = roll_timer_new(loop, on_turn, folder);
		folder->tick = roll_timer_new(loop, on_tick, folder);
	}
	if (!folder->root || (loop && (!folder->turn || !folder->tick)))
		status = roll_err_set(err, ROLL_ENOMEM, NULL, "out of memory");
	if (!status)
		status = roll_folder_open_root(folder, err);
	if (status) {
		roll_folder_free(folder);
		return status;
	}
	*out = folder;
	return ROLL_OK;
}

void roll_folder_free(struct roll_folder *folder)
{
	struct roll_file *file, *next;
	size_t i;

	if (!folder)
		return;
	if (folder->sink)
		roll_folder_tell_abort(folder);
	if (folder->readable)
		event_free(folder->readable);
	roll_timer_free(folder->turn);
	roll_timer_free(folder->tick);
	roll_folder_unwatch(folder);
	HASH_ITER (hh, folder->files, file, next)
		roll_folder_forget(folder, file);
	for (i = 0; i < folder->unreadable_count; i++)
		free((char *)folder->unreadable[i].p);
	free(folder->unreadable);
	free(folder->pairs);
	free(folder->dirty);
	if (folder->root_fd >= 0)
		close(folder->root_fd);
	free(folder->root);
	free(folder);
}

void roll_folder_set_sink(struct roll_folder *folder, const struct roll_sink *sink)
{
	folder->sink = sink;
}

void roll_folder_start(struct roll_folder *folder)
{
	roll_timer_set(folder->turn, 0);
	roll_timer_set(folder->tick, TICK_MS);
}

void roll_folder_again(struct roll_folder *folder)
{
	struct roll_file *file;

	/* Whatever they look like. */
	for (file = folder->files; file; file = file->hh.next)
		file->look = 0;
	folder->must_list_all = true;
	roll_timer_set(folder->turn, 0);
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(((const struct roll_folder_file_error *)a)->path,
		      ((const struct roll_folder_file_error *)b)->path);
}

size_t roll_folder_errors(const struct roll_folder *folder,
			  void (*on_error)(void *ctx, const struct roll_folder_file_error *error),
			  void *ctx)
{
	struct roll_folder_file_error *errors;
	const struct roll_file *file;
	size_t count = 0, i;

	for (file = folder->files; file; file = file->hh.next)
		count += file->error != NULL;
	count += folder->unreadable_count;
	if (!on_error || !count)
		return count;
	errors = calloc(count, sizeof *errors);
	if (!errors)
		return count;
	i = 0;
	for (file = folder->files; file; file = file->hh.next) {
		if (file->error)
			errors[i++] = (struct roll_folder_file_error){file->path, file->error};
	}
	for (size_t k = 0; k < folder->unreadable_count; k++)
		errors[i++] = (struct roll_folder_file_error){folder->unreadable[k].p,
							      "the folder cannot be read"};
	qsort(errors, count, sizeof *errors, compare_paths);
	for (i = 0; i < count; i++)
		on_error(ctx, &errors[i]);
	free(errors);
	return count;
}
