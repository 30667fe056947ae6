/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/rrset.h"

#include <string.h>

/* Up to here a duplicate is found by comparing with each; beyond, by a hash index. */
#define UNHASHED_MAX 8u
#define COUNT_MAX (UINT32_MAX / 4)

/* Bytes of one encoded RRset before its rdata. */
#define HEAD_BYTES (2 + 1 + 4 + 4)

void roll_rrset_init(struct roll_rrset *rrset, uint16_t type)
{
	*rrset = (struct roll_rrset){.type = type};
}

/* Slots of an index that is at most half full, so that probing stays short. */
static uint32_t slots_for(uint32_t room)
{
	return room * 2;
}

/* room is a power of two once there is an index, and so are the slots. */
static uint32_t *find_slot(const struct roll_rrset *rrset, uint32_t *index, struct roll_str rdata)
{
	uint32_t mask = slots_for(rrset->room) - 1;
	uint64_t hash = roll_hash64(rdata.p, rdata.n);
	uint32_t slot = (uint32_t)(hash ^ hash >> 32) & mask;

	/* A slot holds 1 + the position in rdata; 0 is free. */
	while (index[slot] && !roll_str_eq(rrset->rdata[index[slot] - 1], rdata))
		slot = (slot + 1) & mask;
	return &index[slot];
}

static enum roll_status grow(struct roll_rrset *rrset, struct roll_arena *arena)
{
	uint32_t room = 1, *index = NULL;
	struct roll_str *rdata;

	if (rrset->count >= COUNT_MAX)
		return ROLL_ELIMIT;
	while (room <= rrset->count)
		room *= 2;
	rdata = roll_arena_array(arena, room, sizeof *rdata);
	if (!rdata)
		return arena->status;
	if (room > UNHASHED_MAX) {
		index = roll_arena_array(arena, slots_for(room), sizeof *index);
		if (!index)
			return arena->status;
	}
	if (rrset->count)
		memcpy(rdata, rrset->rdata, rrset->count * sizeof *rdata);
	rrset->rdata = rdata;
	rrset->room = room;
	rrset->index = index;
	for (uint32_t i = 0; index && i < rrset->count; i++)
		*find_slot(rrset, index, rdata[i]) = i + 1;
	return ROLL_OK;
}

static bool is_there(const struct roll_rrset *rrset, struct roll_str rdata)
{
	if (rrset->index)
		return *find_slot(rrset, rrset->index, rdata) != 0;
	for (uint32_t i = 0; i < rrset->count; i++)
		if (roll_str_eq(rrset->rdata[i], rdata))
			return true;
	return false;
}

enum roll_status roll_rrset_add(struct roll_rrset *rrset, struct roll_str rdata,
				struct roll_arena *arena)
{
	enum roll_status status;
	struct roll_str copy;

	if (rdata.n > UINT16_MAX)
		return ROLL_ELIMIT;
	if (is_there(rrset, rdata))
		return ROLL_EEXIST;
	if (rrset->count == rrset->room) {
		status = grow(rrset, arena);
		if (status)
			return status;
	}
	copy = roll_str_n(roll_arena_copy(arena, rdata.p, rdata.n), rdata.n);
	if (!copy.p)
		return arena->status;
	if (rrset->index)
		*find_slot(rrset, rrset->index, rdata) = rrset->count + 1;
	rrset->rdata[rrset->count++] = copy;
	return ROLL_OK;
}

size_t roll_rrset_encoded_size(const struct roll_rrset *rrset)
{
	size_t n = HEAD_BYTES;

	for (uint32_t i = 0; i < rrset->count; i++)
		n += 2 + rrset->rdata[i].n;
	return n;
}

void roll_rrset_encode(const struct roll_rrset *rrset, struct roll_buf *buf)
{
	roll_buf_put_u16(buf, rrset->type);
	roll_buf_put_u8(buf, rrset->has_ttl);
	roll_buf_put_u32(buf, rrset->has_ttl ? rrset->ttl : 0);
	roll_buf_put_u32(buf, rrset->count);
	for (uint32_t i = 0; i < rrset->count; i++)
		roll_buf_put_str16(buf, rrset->rdata[i]);
}

struct roll_rrset_head roll_rrset_decode_head(struct roll_reader *r)
{
	struct roll_rrset_head head;
	uint8_t has_ttl;

	head.type = roll_reader_u16(r);
	has_ttl = roll_reader_u8(r);
	head.has_ttl = has_ttl == 1;
	head.ttl = roll_reader_u32(r);
	head.count = roll_reader_u32(r);
	/* Each rdata has two bytes at least, which bounds what a caller may want to allocate. */
	if (has_ttl > 1 || head.ttl > (has_ttl ? ROLL_TTL_MAX : 0) ||
	    head.count > (size_t)(r->end - r->p) / 2)
		r->failed = true;
	if (r->failed)
		head = (struct roll_rrset_head){0};
	return head;
}

struct roll_str roll_rrset_decode_rdata(struct roll_reader *r)
{
	return roll_reader_str16(r);
}

enum roll_status roll_rrset_decode(struct roll_reader *r, struct roll_arena *arena,
				   struct roll_rrset *out)
{
	struct roll_rrset_head head = roll_rrset_decode_head(r);

	if (r->failed)
		return ROLL_ECORRUPT;
	*out = (struct roll_rrset){
		.type = head.type,
		.has_ttl = head.has_ttl,
		.ttl = head.ttl,
		.count = head.count,
		.room = head.count,
		.rdata = roll_arena_array(arena, head.count, sizeof *out->rdata),
	};
	if (!out->rdata)
		return arena->status;
	for (uint32_t i = 0; i < head.count; i++)
		out->rdata[i] = roll_rrset_decode_rdata(r);
	return r->failed ? ROLL_ECORRUPT : ROLL_OK;
}
