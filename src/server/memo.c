/* SPDX-License-Identifier: Apache-2.0 */
#include "server/memo.h"

#include <stdlib.h>
#include <string.h>

/* 256 places of 1.5 KiB: more names than are asked for at a time, less than a cache of the CPU. */
#define PLACES 256u
#define QUESTION_MAX_BYTES 512u
#define REPLY_MAX_BYTES 1000u

struct roll_memo_place {
	uint64_t content;
	uint16_t question_n; /* 0: empty */
	uint16_t reply_n;
	char question[QUESTION_MAX_BYTES];
	char reply[REPLY_MAX_BYTES];
};

struct roll_memo {
	struct roll_memo_place places[PLACES];
};

struct roll_memo *roll_memo_new(void)
{
	return calloc(1, sizeof(struct roll_memo));
}

void roll_memo_free(struct roll_memo *memo)
{
	free(memo);
}

/*
 * Eight bytes at a time (splitmix64's multiplier). A bad distribution costs time only: questions
 * are compared byte by byte.
 */
static uint64_t hash(struct roll_str s)
{
	uint64_t h = s.n, eight = 0;
	size_t i = 0;

	for (; s.n - i >= sizeof eight; i += sizeof eight) {
		memcpy(&eight, s.p + i, sizeof eight);
		h = (h ^ eight) * UINT64_C(0xbf58476d1ce4e5b9);
		h ^= h >> 32;
	}
	eight = 0;
	memcpy(&eight, s.p + i, s.n - i);
	h = (h ^ eight) * UINT64_C(0xbf58476d1ce4e5b9);
	return h ^ h >> 32;
}

struct roll_memo_place *roll_memo_find(struct roll_memo *memo, struct roll_str question,
				       bool *is_known)
{
	struct roll_memo_place *place;

	*is_known = false;
	if (!memo || question.n == 0 || question.n > QUESTION_MAX_BYTES ||
	    memchr(question.p, '\\', question.n))
		return NULL;
	place = &memo->places[hash(question) % PLACES];
	*is_known = roll_str_eq(question, roll_str_n(place->question, place->question_n));
	return place;
}

uint64_t roll_memo_content(const struct roll_memo_place *place)
{
	return place->content;
}

struct roll_str roll_memo_reply(const struct roll_memo_place *place)
{
	return roll_str_n(place->reply, place->reply_n);
}

void roll_memo_put(struct roll_memo_place *place, struct roll_str question, struct roll_str reply,
		   uint64_t content)
{
	place->question_n = 0;
	if (question.n > QUESTION_MAX_BYTES || reply.n > REPLY_MAX_BYTES)
		return;
	memcpy(place->question, question.p, question.n);
	memcpy(place->reply, reply.p, reply.n);
	place->question_n = (uint16_t)question.n;
	place->reply_n = (uint16_t)reply.n;
	place->content = content;
}
