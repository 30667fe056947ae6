/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_EXPLAIN_WORDS_H
#define ROLL_EXPLAIN_WORDS_H

#include "view/read.h"

/* How facts of the view are put for people, the same on a terminal and on a page. */

/* "A", or "TYPE123" for what we do not know. Returns text. */
#define ROLL_TYPE_TEXT_SIZE 12
const char *roll_words_type(uint16_t type, char text[ROLL_TYPE_TEXT_SIZE]);
/* Rdata as a zone file has it; rdata that cannot be printed comes in the form of RFC 3597. */
void roll_words_rdata(uint16_t type, struct roll_str rdata, struct roll_buf *buf);
/* RFC 3597, 5: \# length hex. */
void roll_words_rdata_generic(struct roll_str rdata, struct roll_buf *buf);

/* "is older", or what else decides between two objects of the same age. */
const char *roll_words_older(int64_t winner_s, int64_t loser_s);

/* Why a DNSZone is not served, as the end of a sentence. */
const char *roll_words_why(enum roll_zone_state state);

/* "5s", "3m 20s", "4h 10m", "12d 3h": an age for people. Returns text. */
#define ROLL_AGE_SIZE 40
const char *roll_words_age(int64_t seconds, char text[ROLL_AGE_SIZE]);

#endif
