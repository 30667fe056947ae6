/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_FOLDER_STATE_H
#define ROLL_SOURCE_FOLDER_STATE_H

#include <sys/inotify.h>
#include <uthash.h>

#include "source/folder.h"

/*
 * What the files of the folder source share; nobody else includes it.
 *
 *	folder.c	life, timers, what to do next
 *	folder_scan.c	walking the tree: which files and folders there are
 *	folder_watch.c	inotify: what changed
 *	folder_tell.c	reading files and telling the sink
 */

struct roll_file {
	UT_hash_handle hh;
	uint64_t look;	    /* device, inode, size and times, hashed: when it was last read */
	char *error;	    /* why that look could not be read; NULL: it could */
	int64_t hold_until; /* monotonic: moved away, perhaps by an editor that makes a new one */
	uint64_t scan;	    /* the scan that last saw it */
	bool is_told;	    /* the sink knows what it had, or that it could not be read */
	bool is_dirty;
	size_t dirty_at;    /* where in folder->dirty */
	bool is_writing;    /* created or modified, and not closed yet */
	bool is_modified;   /* while is_writing: bytes were seen to be written */
	bool is_linked;	    /* reached through a symbolic link: its changes may not be told */
	int64_t created_ms; /* monotonic: is_writing since */
	size_t path_n;
	char path[]; /* relative, NUL-terminated */
};

struct roll_dir {
	UT_hash_handle hh;
	int wd;
	uint64_t scan;
	size_t path_n;
	char path[]; /* "" or "sub/", NUL-terminated */
};

/* Two files that have an object in common. */
struct roll_pair {
	struct roll_file *a, *b;
};

struct roll_move {
	uint32_t cookie;
	struct roll_file *file;
};

/* A list on its way to the sink. */
struct roll_tell {
	bool is_open;
	bool is_all;
	bool must_restart;	  /* what was put of a file has to be forgotten */
	struct roll_file **files; /* sorted by path */
	size_t count, next;
	struct roll_str *scopes; /* of files */
	struct roll_file **gone_files;
	struct roll_str *gone;
	size_t gone_count;
	struct roll_manifest *manifest;
	struct roll_file *file; /* that manifest is of */
	size_t put_count;	/* objects told of it */
	json_t *objects;	/* of a small file, told when it was read to its end */
	json_t *wheres;
	bool is_small;
	enum roll_status sink_status;
};

struct roll_folder {
	struct roll_loop *loop;
	const struct roll_sink *sink;
	char *root;
	int root_fd;
	uint64_t root_dev, root_ino;

	struct roll_file *files; /* by path */
	struct roll_file **dirty;
	size_t dirty_count, dirty_room;
	struct roll_dir *dirs; /* by wd */
	uint64_t scan;
	struct roll_str *unreadable; /* folders, "sub/"; heap, each of it too */
	size_t unreadable_count;
	struct roll_pair *pairs;
	size_t pair_count;

	int inotify_fd;
	struct event *readable;
	bool is_polling; /* no more watches to be had */
	bool has_links;
	char *rescans[16]; /* folders to look at again: "" or "sub/" */
	size_t rescan_count;
	int64_t rescan_at; /* monotonic */
	struct roll_move moves[64];
	size_t move_count;

	struct roll_tell tell;
	bool must_list_all;
	bool is_lost; /* the root */
	unsigned attempt;
	uint64_t seed;
	unsigned restarts;
	struct roll_timer *turn; /* the next slice of work, or another attempt */
	struct roll_timer *tick; /* polls, confirms */
	struct roll_err err;
};

int64_t roll_folder_now(void);
/* Have what inotify tells from now on. */
void roll_folder_arm(struct roll_folder *folder);

/* --- folder_scan.c --- */

struct roll_file *roll_folder_file(struct roll_folder *folder, const char *path, bool make);
void roll_folder_forget(struct roll_folder *folder, struct roll_file *file);
/* To be read and told; takes a hold off. */
void roll_folder_mark(struct roll_folder *folder, struct roll_file *file);
void roll_folder_unmark(struct roll_folder *folder, struct roll_file *file);
void roll_folder_set_error(struct roll_folder *folder, struct roll_file *file, const char *text);
/* Hash of what a file looks like from outside; never 0. */
uint64_t roll_folder_look(const struct stat *stat);
/*
 * Look at everything below prefix ("" or "sub/"): files that look different are dirty, those gone
 * as well. An error means that the root cannot be read.
 */
enum roll_status roll_folder_scan(struct roll_folder *folder, const char *prefix,
				  struct roll_err *err) ROLL_MUST_CHECK;
/* Is the file below a folder that cannot be read? */
bool roll_folder_is_unreadable(const struct roll_folder *folder, const struct roll_file *file);
/* Look at files that are reached through links. */
void roll_folder_check_links(struct roll_folder *folder);
/* Open the root anew; EIO, ENOENT, EDENIED. */
enum roll_status roll_folder_open_root(struct roll_folder *folder,
				       struct roll_err *err) ROLL_MUST_CHECK;
bool roll_folder_root_is_there(const struct roll_folder *folder);

/* --- folder_watch.c --- */

enum roll_status roll_folder_watch(struct roll_folder *folder,
				   struct roll_err *err) ROLL_MUST_CHECK;
void roll_folder_unwatch(struct roll_folder *folder);
/* Watch the folder at path ("" or "sub/"), which scan number `scan` has seen. */
void roll_folder_add_watch(struct roll_folder *folder, const char *path);
/* Folders below prefix that the scan has not seen are watched no more. */
void roll_folder_drop_watches(struct roll_folder *folder, const char *prefix);
/* Take all that inotify has. */
void roll_folder_read_events(struct roll_folder *folder);
void roll_folder_want_scan(struct roll_folder *folder, const char *prefix, int64_t at);

/* --- folder_tell.c --- */

/* Begin a list: of everything, or of the files that are dirty. */
enum roll_status roll_folder_tell_begin(struct roll_folder *folder, bool is_all) ROLL_MUST_CHECK;
/* Some of it. *is_done: list_end was called and said what is returned, or it was aborted. */
enum roll_status roll_folder_tell_step(struct roll_folder *folder, bool *is_done) ROLL_MUST_CHECK;
void roll_folder_tell_abort(struct roll_folder *folder);
void roll_folder_unpair(struct roll_folder *folder, const struct roll_file *file);

#endif
