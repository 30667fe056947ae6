/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_BASE_ARENA_H
#define ROLL_BASE_ARENA_H

#include <stddef.h>

#include "base/str.h"

/*
 * Region with a byte ceiling. Everything in it is freed at once. Allocation beyond the ceiling or
 * without memory returns NULL and sets .status (sticky until reset).
 */
struct roll_arena_block;

struct roll_arena {
	struct roll_arena_block *blocks;
	size_t used_bytes;
	size_t limit_bytes;
	enum roll_status status;
};

void roll_arena_init(struct roll_arena *arena, size_t limit_bytes);
void roll_arena_fini(struct roll_arena *arena);
/* Frees all but one block of moderate size, which is used again. */
void roll_arena_reset(struct roll_arena *arena);
/* Zeroed, aligned for any type. */
void *roll_arena_alloc(struct roll_arena *arena, size_t n);
/* Zeroed; NULL also when count * size overflows. */
void *roll_arena_array(struct roll_arena *arena, size_t count, size_t size);
void *roll_arena_copy(struct roll_arena *arena, const void *bytes, size_t n);
/* A copy that is also NUL-terminated (the NUL is not counted). p is NULL on failure. */
struct roll_str roll_arena_str(struct roll_arena *arena, struct roll_str s);

#endif
