/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_MANIFEST_H
#define ROLL_SOURCE_MANIFEST_H

#include <jansson.h>
#include <sys/stat.h>

#include "base/str.h"

/*
 * One manifest file: objects one after the other, items of List objects each on its own. YAML is
 * held in memory and bounded; JSON is read in pieces, so that a List of a million objects costs no
 * more than one of them.
 */
#define ROLL_MANIFEST_YAML_BYTES ((size_t)16 << 20)
#define ROLL_MANIFEST_YAML_NODES 200000u /* values in one document */
#define ROLL_MANIFEST_JSON_NODES \
	200000u /* values in one item, or in all that is outside of items */
#define ROLL_MANIFEST_ITEM_BYTES ((size_t)4 << 20)

/* Is this the name of a manifest: .yaml, .yml or .json, not hidden? */
bool roll_manifest_is_name(struct roll_str name);

/*
 * where is "FILE:LINE" (YAML documents) or "FILE item N" (of a List, from 0). Anything but ROLL_OK
 * stops the reading and is passed on.
 */
typedef enum roll_status (*roll_manifest_on_object)(void *ctx, json_t *object,
						    struct roll_str where);

struct roll_manifest;

/*
 * shown: what to call the file in `where` and in errors. EIO, EDENIED, ENOENT: it cannot be opened;
 * EINVAL: it is no regular file.
 */
enum roll_status roll_manifest_open(int dir_fd, const char *path, const char *shown,
				    struct roll_manifest **out,
				    struct roll_err *err) ROLL_MUST_CHECK;
void roll_manifest_close(struct roll_manifest *manifest);
const struct stat *roll_manifest_stat(const struct roll_manifest *manifest);
/*
 * The next piece: at most a few hundred KiB of JSON, or all of a YAML file. ROLL_OK with *more
 * false: read to its end, and the file did not change meanwhile (EAGAIN if it did). EINVAL, ELIMIT:
 * not a manifest, as err says; empty files are EINVAL as well.
 */
enum roll_status roll_manifest_step(struct roll_manifest *manifest,
				    roll_manifest_on_object on_object, void *ctx, bool *more,
				    struct roll_err *err) ROLL_MUST_CHECK;
/* Did on_object stop the reading, with what step returned? */
bool roll_manifest_was_stopped(const struct roll_manifest *manifest);

/* All of one file (rollcall check). */
enum roll_status roll_manifest_read(const char *path, roll_manifest_on_object on_object, void *ctx,
				    struct roll_err *err) ROLL_MUST_CHECK;

#endif
