/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "source/folder_state.h"

/*
 * Files up to this size are told only when they were read to their end: a fault at the end of one
 * leaves no half of it. Larger ones are told while they are read, and if one proves to be broken
 * the list begins anew, without it.
 */
#define SMALL_BYTES ((off_t)512 << 10)

/* --- files that have an object in common --- */

void roll_folder_unpair(struct roll_folder *folder, const struct roll_file *file)
{
	size_t i, kept = 0;

	for (i = 0; i < folder->pair_count; i++) {
		if (folder->pairs[i].a != file && folder->pairs[i].b != file)
			folder->pairs[kept++] = folder->pairs[i];
	}
	folder->pair_count = kept;
}

static struct roll_file *file_of(struct roll_folder *folder, struct roll_str scope)
{
	struct roll_file *file = NULL;

	HASH_FIND(hh, folder->files, scope.p, scope.n, file);
	return file;
}

static void on_shared(void *ctx, struct roll_str scope, struct roll_str other)
{
	struct roll_folder *folder = ctx;
	struct roll_file *a = file_of(folder, scope), *b = file_of(folder, other);
	struct roll_pair *pairs;
	size_t i;

	if (!a || !b || a == b)
		return;
	for (i = 0; i < folder->pair_count; i++) {
		const struct roll_pair *pair = &folder->pairs[i];

		if ((pair->a == a && pair->b == b) || (pair->a == b && pair->b == a))
			return;
	}
	pairs = reallocarray(folder->pairs, folder->pair_count + 1, sizeof *pairs);
	if (!pairs) {
		folder->must_list_all = true;
		return;
	}
	folder->pairs = pairs;
	pairs[folder->pair_count++] = (struct roll_pair){a, b};
}

/* --- the list --- */

static void close_file(struct roll_tell *tell)
{
	roll_manifest_close(tell->manifest);
	tell->manifest = NULL;
	tell->file = NULL;
	tell->put_count = 0;
	json_decref(tell->objects);
	json_decref(tell->wheres);
	tell->objects = tell->wheres = NULL;
}

static void free_tell(struct roll_tell *tell)
{
	close_file(tell);
	free(tell->files);
	free(tell->scopes);
	free(tell->gone_files);
	free(tell->gone);
	*tell = (struct roll_tell){.is_open = false};
}

void roll_folder_tell_abort(struct roll_folder *folder)
{
	if (!folder->tell.is_open)
		return;
	folder->sink->list_abort(folder->sink->ctx);
	free_tell(&folder->tell);
}

static int compare_files(const void *a, const void *b)
{
	const struct roll_file *x = *(struct roll_file *const *)a;
	const struct roll_file *y = *(struct roll_file *const *)b;

	return roll_str_cmp(roll_str_n(x->path, x->path_n), roll_str_n(y->path, y->path_n));
}

static bool is_there(const struct roll_folder *folder, const struct roll_file *file)
{
	struct stat now;

	/* Only this proves that it is gone; what stands in its place may be anything. */
	return fstatat(folder->root_fd, file->path, &now, 0) == 0 ||
	       (errno != ENOENT && errno != ENOTDIR);
}

static struct roll_str *scopes_of(struct roll_file **files, size_t count)
{
	struct roll_str *scopes = calloc(count + 1, sizeof *scopes);
	size_t i;

	for (i = 0; scopes && i < count; i++)
		scopes[i] = roll_str_n(files[i]->path, files[i]->path_n);
	return scopes;
}

/* What shares an object with what is told is told along. */
static void mark_peers(struct roll_folder *folder)
{
	bool more = true;
	size_t i;

	while (more) {
		more = false;
		for (i = 0; i < folder->pair_count; i++) {
			struct roll_pair *pair = &folder->pairs[i];

			if (pair->a->is_dirty == pair->b->is_dirty)
				continue;
			roll_folder_mark(folder, pair->a->is_dirty ? pair->b : pair->a);
			more = true;
		}
	}
}

static void choose(struct roll_folder *folder, struct roll_file *file)
{
	struct roll_tell *tell = &folder->tell;

	if (is_there(folder, file) || roll_folder_is_unreadable(folder, file))
		tell->files[tell->count++] = file;
	else
		tell->gone_files[tell->gone_count++] = file;
}

/* Files to be told of: all, or those that are dirty and not held. */
static enum roll_status choose_files(struct roll_folder *folder)
{
	struct roll_tell *tell = &folder->tell;
	size_t max = tell->is_all ? HASH_COUNT(folder->files) : folder->dirty_count, i;
	struct roll_file *file;
	int64_t now = roll_folder_now();

	tell->files = calloc(max + 1, sizeof(struct roll_file *));
	tell->gone_files = calloc(max + 1, sizeof(struct roll_file *));
	if (!tell->files || !tell->gone_files)
		return ROLL_ENOMEM;
	for (file = folder->files; tell->is_all && file; file = file->hh.next)
		choose(folder, file);
	for (i = 0; !tell->is_all && i < folder->dirty_count; i++) {
		file = folder->dirty[i];
		if (file->hold_until <= now && !file->is_writing)
			choose(folder, file);
	}
	qsort(tell->files, tell->count, sizeof(struct roll_file *), compare_files);
	qsort(tell->gone_files, tell->gone_count, sizeof(struct roll_file *), compare_files);
	tell->scopes = scopes_of(tell->files, tell->count);
	tell->gone = scopes_of(tell->gone_files, tell->gone_count);
	return tell->scopes && tell->gone ? ROLL_OK : ROLL_ENOMEM;
}

enum roll_status roll_folder_tell_begin(struct roll_folder *folder, bool is_all)
{
	struct roll_tell *tell = &folder->tell;
	struct roll_list_head head = {
		.kind = -1,
		.all_scopes = is_all,
		.what = roll_str_c("manifests"),
		.on_shared = on_shared,
		.ctx = folder,
	};
	enum roll_status status;
	size_t i;

	roll_folder_tell_abort(folder);
	if (!is_all)
		mark_peers(folder);
	tell->is_all = is_all;
	status = choose_files(folder);
	if (!status && !tell->count && !tell->gone_count && !is_all) {
		free_tell(tell);
		return ROLL_ENOENT;
	}
	head.scopes = (struct roll_scopes){tell->scopes, tell->count};
	head.gone = (struct roll_scopes){tell->gone, tell->gone_count};
	if (!status)
		status = folder->sink->list_begin(folder->sink->ctx, &head);
	tell->is_open = !status;
	for (i = 0; i < folder->unreadable_count && !status; i++)
		status = folder->sink->list_keep(folder->sink->ctx, folder->unreadable[i],
						 roll_str_c("its folder cannot be read"));
	if (status) {
		roll_folder_tell_abort(folder);
		free_tell(tell);
	}
	return status;
}

/* --- one file --- */

static enum roll_status put(struct roll_folder *folder, json_t *object, struct roll_str where)
{
	struct roll_tell *tell = &folder->tell;

	tell->put_count++;
	tell->sink_status = folder->sink->list_put(
		folder->sink->ctx, object, roll_str_n(tell->file->path, tell->file->path_n), where);
	return tell->sink_status;
}

static enum roll_status on_object(void *ctx, json_t *object, struct roll_str where)
{
	struct roll_folder *folder = ctx;
	struct roll_tell *tell = &folder->tell;

	if (!tell->is_small)
		return put(folder, object, where);
	/* File names are bytes, and need not be UTF-8. */
	if (json_array_append(tell->objects, object) ||
	    json_array_append_new(tell->wheres, json_stringn_nocheck(where.p, where.n)))
		return tell->sink_status = ROLL_ENOMEM;
	return ROLL_OK;
}

static enum roll_status put_all(struct roll_folder *folder)
{
	struct roll_tell *tell = &folder->tell;
	enum roll_status status = ROLL_OK;
	size_t i;

	for (i = 0; i < json_array_size(tell->objects) && !status; i++) {
		const json_t *where = json_array_get(tell->wheres, i);

		status = put(folder, json_array_get(tell->objects, i),
			     roll_str_n(json_string_value(where), json_string_length(where)));
	}
	return status;
}

static enum roll_status keep(struct roll_folder *folder, struct roll_file *file)
{
	struct roll_str reason = roll_str_c(file->error ? file->error : "cannot be read");

	file->is_told = true;
	return folder->sink->list_keep(folder->sink->ctx, roll_str_n(file->path, file->path_n),
				       reason);
}

/* The file is of no use as it is. */
static enum roll_status give_up(struct roll_folder *folder, enum roll_status why)
{
	struct roll_tell *tell = &folder->tell;
	struct roll_file *file = tell->file;
	char text[600];

	if (tell->sink_status)
		return tell->sink_status;
	/* Memory is short: no fault of the file. */
	if (why == ROLL_ENOMEM)
		return why;
	snprintf(text, sizeof text, "%s%s%s", folder->err.where, folder->err.where[0] ? ": " : "",
		 folder->err.text[0] ? folder->err.text : roll_status_text(why));
	roll_folder_set_error(folder, file, text);
	if (!tell->is_small && tell->put_count)
		tell->must_restart = true;
	/* Whoever writes it will close it. */
	if (why == ROLL_EAGAIN)
		file->look = 0;
	return tell->must_restart ? ROLL_OK : keep(folder, file);
}

static enum roll_status open_next(struct roll_folder *folder, struct roll_file *file)
{
	struct roll_tell *tell = &folder->tell;
	enum roll_status status;
	struct stat now;

	if (roll_folder_is_unreadable(folder, file))
		return ROLL_OK; /* kept with its folder */
	tell->file = file;
	tell->put_count = 0;
	tell->is_small = true;
	folder->err = (struct roll_err){0};
	/* Broken before, and not touched since. */
	if (file->error && file->look && fstatat(folder->root_fd, file->path, &now, 0) == 0 &&
	    roll_folder_look(&now) == file->look) {
		tell->file = NULL;
		return keep(folder, file);
	}
	status = roll_manifest_open(folder->root_fd, file->path, file->path, &tell->manifest,
				    &folder->err);
	if (!status) {
		file->look = roll_folder_look(roll_manifest_stat(tell->manifest));
		tell->is_small = roll_manifest_stat(tell->manifest)->st_size <= SMALL_BYTES;
		if (!tell->is_small)
			return ROLL_OK;
		tell->objects = json_array();
		tell->wheres = json_array();
		return tell->objects && tell->wheres ? ROLL_OK : ROLL_ENOMEM;
	}
	/* What cannot be opened is looked at again whenever it seems different. */
	file->look = fstatat(folder->root_fd, file->path, &now, 0) ? 0 : roll_folder_look(&now);
	/* The list said that it is there. */
	if (status == ROLL_ENOENT)
		tell->must_restart = true;
	else
		status = give_up(folder, status);
	tell->file = NULL;
	return tell->must_restart ? ROLL_OK : status;
}

static enum roll_status read_on(struct roll_folder *folder)
{
	struct roll_tell *tell = &folder->tell;
	struct roll_file *file = tell->file;
	enum roll_status status;
	bool more = false;

	status = roll_manifest_step(tell->manifest, on_object, folder, &more, &folder->err);
	if (!status && more)
		return ROLL_OK;
	if (!status && tell->is_small)
		status = put_all(folder);
	if (status)
		status = give_up(folder, status);
	else
		roll_folder_set_error(folder, file, NULL);
	file->is_told = true;
	close_file(tell);
	return status;
}

/* The sink has taken it: what was told is known now. */
static void settle(struct roll_folder *folder)
{
	struct roll_tell *tell = &folder->tell;
	size_t i;

	if (tell->is_all)
		folder->must_list_all = false;
	for (i = 0; i < tell->count; i++) {
		tell->files[i]->is_told = true;
		if (tell->files[i]->look)
			tell->files[i]->is_writing = false;
		roll_folder_unmark(folder, tell->files[i]);
	}
	for (i = 0; i < tell->gone_count; i++) {
		/* Unless it came back meanwhile, which is then to be told. */
		if (is_there(folder, tell->gone_files[i])) {
			tell->gone_files[i]->is_told = false;
			roll_folder_mark(folder, tell->gone_files[i]);
		} else {
			roll_folder_forget(folder, tell->gone_files[i]);
		}
	}
}

enum roll_status roll_folder_tell_step(struct roll_folder *folder, bool *is_done)
{
	struct roll_tell *tell = &folder->tell;
	enum roll_status status = ROLL_OK;

	*is_done = false;
	if (tell->file)
		status = read_on(folder);
	else if (tell->next < tell->count)
		status = open_next(folder, tell->files[tell->next++]);
	if (!status && tell->must_restart)
		status = ROLL_ESTALE;
	if (status) {
		roll_folder_tell_abort(folder);
		*is_done = true;
		return status;
	}
	if (tell->file || tell->next < tell->count)
		return ROLL_OK;
	*is_done = true;
	tell->is_open = false;
	status = folder->sink->list_end(folder->sink->ctx, 0, roll_str_n("", 0));
	if (!status)
		settle(folder);
	free_tell(tell);
	return status;
}
