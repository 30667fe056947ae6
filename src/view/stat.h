/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_VIEW_STAT_H
#define ROLL_VIEW_STAT_H

#include "view/read.h"

/*
 * A view from the outside, for inspection: how large it is, who reads it, and its tables (named as
 * in view/schema.h) as bare bytes. Answers come from view/read alone.
 */
struct roll_view_stat {
	uint64_t map_bytes;
	uint64_t used_bytes; /* up to the last page in use; free pages below it included */
	uint64_t gone_numbers;
	unsigned readers;	/* slots in use, this one included */
	unsigned stale_readers; /* of processes that are no more */
};
enum roll_status roll_snap_stat(struct roll_snap *snap, struct roll_view_stat *out) ROLL_MUST_CHECK;

/* Every row in key order, borrowed for the call. on_raw may read other tables of the snapshot. */
typedef enum roll_status (*roll_on_raw)(void *ctx, struct roll_str key, struct roll_str value);
enum roll_status roll_snap_raw_walk(struct roll_snap *snap, const char *table, roll_on_raw on_raw,
				    void *ctx) ROLL_MUST_CHECK;
/* ENOENT if there is no such key. Borrowed from the snapshot. */
enum roll_status roll_snap_raw_get(struct roll_snap *snap, const char *table, struct roll_str key,
				   struct roll_str *value) ROLL_MUST_CHECK;

#endif
