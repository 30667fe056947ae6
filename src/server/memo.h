/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SERVER_MEMO_H
#define ROLL_SERVER_MEMO_H

#include "base/str.h"

/*
 * The last questions with their replies. PowerDNS asks for a name twice in a row, once for a
 * delegation and once for the answer, and for the apex of the zone with each query: two of three
 * questions were asked just before.
 *
 * A reply is good for as long as the view holds what it held (roll_snap_content), and the caller
 * looks with a snapshot of its own each time: this saves work, it does not hide changes.
 */
struct roll_memo;

/* NULL without memory: everything below then does nothing. */
struct roll_memo *roll_memo_new(void);
void roll_memo_free(struct roll_memo *memo);

/*
 * A place for the question: *is_known tells that it has a reply to the very same bytes, made when
 * the view held roll_memo_content. NULL: it is not one to be kept (too long; or with escapes, which
 * are decoded in place).
 */
struct roll_memo_place;
struct roll_memo_place *roll_memo_find(struct roll_memo *memo, struct roll_str question,
				       bool *is_known);
uint64_t roll_memo_content(const struct roll_memo_place *place);
struct roll_str roll_memo_reply(const struct roll_memo_place *place);
/* Replace what is in the place; a reply that is too long leaves it empty. */
void roll_memo_put(struct roll_memo_place *place, struct roll_str question, struct roll_str reply,
		   uint64_t content);

#endif
