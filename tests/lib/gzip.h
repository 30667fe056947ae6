/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_GZIP_H
#define TESTS_LIB_GZIP_H

#include "base/str.h"

/* Just enough of a compressor (RFC 1951, RFC 1952) to be a server that compresses. */

/* As it is, in the form of a gzip file. */
void gzip_stored(struct roll_buf *out, struct roll_str text);
/* head, then one byte `count` times (more than 0), then tail: 1/159 of its size. */
void gzip_run(struct roll_buf *out, struct roll_str head, unsigned char byte, size_t count,
	      struct roll_str tail);

#endif
