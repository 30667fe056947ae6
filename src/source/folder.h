/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_FOLDER_H
#define ROLL_SOURCE_FOLDER_H

#include "app/loop.h"
#include "source/manifest.h"
#include "source/source.h"

/*
 * A folder of manifests: .yaml, .yml and .json files in it and in its subfolders (hidden ones are
 * skipped), several documents a file, List objects too. Watched with inotify; what changes together
 * is told together. A file gone proves its objects absent; a file that cannot be read or parsed, or
 * is empty (a write in progress, a full disk), proves nothing.
 *
 * The same object in two files: the first by path order counts, the other is reported; when the
 * first goes, the other takes over in the same commit.
 */
struct roll_folder;

struct roll_folder_file_error {
	const char *path; /* relative to the folder */
	const char *text; /* with line and column where there is one */
};

/*
 * dir must be a readable directory: EIO, ENOENT or EDENIED otherwise, nothing was told to the sink.
 * loop may be NULL if only roll_folder_list is called.
 */
enum roll_status roll_folder_new(struct roll_loop *loop, const char *dir, struct roll_folder **out,
				 struct roll_err *err) ROLL_MUST_CHECK;
void roll_folder_free(struct roll_folder *folder);
/* Before the first list. sink must live as long. */
void roll_folder_set_sink(struct roll_folder *folder, const struct roll_sink *sink);
/*
 * One complete list, now, without a loop (--once). EAGAIN: the sink wants a second one and the
 * folder did not look the same again, or a brake holds it. Other errors are the sink's, or mean
 * that the folder cannot be read.
 */
enum roll_status roll_folder_list(struct roll_folder *folder, struct roll_err *err) ROLL_MUST_CHECK;
/* List, then watch, from the loop. */
void roll_folder_start(struct roll_folder *folder);
/* Look at everything again, soon. */
void roll_folder_again(struct roll_folder *folder);
/* Files that could not be read at the last look. Calls on_error for each. */
size_t roll_folder_errors(const struct roll_folder *folder,
			  void (*on_error)(void *ctx, const struct roll_folder_file_error *error),
			  void *ctx);

#endif
