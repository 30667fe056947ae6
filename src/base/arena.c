/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Blocks are chained, newest first, and only the first has free room that is used; a larger
 * request gets a block of its own behind it, so that the room of the first is not given up.
 */
struct roll_arena_block {
	struct roll_arena_block *next;
	size_t room;
	size_t used;
	max_align_t bytes[];
};

#define FIRST_BLOCK 1024
#define MODERATE_BLOCK ((size_t)64 * 1024) /* growth stops here; larger ones are not kept */

void roll_arena_init(struct roll_arena *arena, size_t limit_bytes)
{
	*arena = (struct roll_arena){.limit_bytes = limit_bytes};
}

static void free_blocks(struct roll_arena_block *block)
{
	while (block) {
		struct roll_arena_block *next = block->next;

		free(block);
		block = next;
	}
}

void roll_arena_fini(struct roll_arena *arena)
{
	free_blocks(arena->blocks);
	roll_arena_init(arena, arena->limit_bytes);
}

void roll_arena_reset(struct roll_arena *arena)
{
	struct roll_arena_block *kept = arena->blocks;

	if (kept) {
		free_blocks(kept->next);
		kept->next = NULL;
		kept->used = 0;
		if (kept->room > MODERATE_BLOCK) {
			free(kept);
			kept = NULL;
		}
	}
	arena->blocks = kept;
	arena->used_bytes = 0;
	arena->status = ROLL_OK;
}

static void *fail(struct roll_arena *arena, enum roll_status status)
{
	arena->status = status;
	return NULL;
}

/* A block with room for n bytes, in the chain; the caller has checked n against the ceiling. */
static struct roll_arena_block *add_block(struct roll_arena *arena, size_t n)
{
	struct roll_arena_block *first = arena->blocks, *block;
	size_t room = first ? first->room * 2 : FIRST_BLOCK;

	if (room > MODERATE_BLOCK)
		room = MODERATE_BLOCK;
	if (room < n)
		room = n;
	if (room > SIZE_MAX - sizeof *block)
		return NULL;
	block = malloc(sizeof *block + room);
	if (!block)
		return NULL;
	block->room = room;
	block->used = 0;
	if (first && n > MODERATE_BLOCK / 4) {
		block->next = first->next;
		first->next = block;
	} else {
		block->next = first;
		arena->blocks = block;
	}
	return block;
}

void *roll_arena_alloc(struct roll_arena *arena, size_t n)
{
	struct roll_arena_block *block = arena->blocks;
	const size_t align = _Alignof(max_align_t);
	void *p;

	if (arena->status)
		return NULL;
	if (n > SIZE_MAX - align)
		return fail(arena, ROLL_ELIMIT);
	n = n ? (n + align - 1) / align * align : align;
	if (n > arena->limit_bytes - arena->used_bytes)
		return fail(arena, ROLL_ELIMIT);
	if (!block || n > block->room - block->used)
		block = add_block(arena, n);
	if (!block)
		return fail(arena, ROLL_ENOMEM);
	p = (char *)block->bytes + block->used;
	block->used += n;
	arena->used_bytes += n;
	return memset(p, 0, n);
}

void *roll_arena_array(struct roll_arena *arena, size_t count, size_t size)
{
	size_t n;

	if (__builtin_mul_overflow(count, size, &n))
		return arena->status ? NULL : fail(arena, ROLL_ELIMIT);
	return roll_arena_alloc(arena, n);
}

void *roll_arena_copy(struct roll_arena *arena, const void *bytes, size_t n)
{
	void *p = roll_arena_alloc(arena, n);

	return p && n ? memcpy(p, bytes, n) : p;
}

struct roll_str roll_arena_str(struct roll_arena *arena, struct roll_str s)
{
	char *p = s.n < SIZE_MAX ? roll_arena_alloc(arena, s.n + 1) : fail(arena, ROLL_ELIMIT);

	if (!p)
		return roll_str_n(NULL, 0);
	if (s.n)
		memcpy(p, s.p, s.n);
	return roll_str_n(p, s.n);
}
