/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SERVER_SEARCH_H
#define ROLL_SERVER_SEARCH_H

#include "base/str.h"

/*
 * Patterns of searchRecords: '*' is any number of bytes, '?' one byte, everything else itself,
 * ASCII letters in either case. The time is at most pattern.n * text.n.
 */
bool roll_pattern_match(struct roll_str pattern, struct roll_str text);

#endif
