/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_SECRET_H
#define ROLL_SOURCE_SECRET_H

#include <jansson.h>

#include "base/str.h"

/*
 * Builders whose bytes are wiped before their memory goes back: keys, tokens, certificates. They
 * are filled in one step, since growing would leave copies behind.
 */
#define ROLL_SECRET_LIMIT_BYTES (1u << 20)

/* Replaces what was there. buf may be zeroed or used before. ELIMIT, ENOMEM. */
enum roll_status roll_secret_set(struct roll_buf *buf, struct roll_str text) ROLL_MUST_CHECK;
/* The text of a regular file; EDENIED or EIO with the path in err, ELIMIT. */
enum roll_status roll_secret_read(struct roll_buf *buf, const char *path,
				  struct roll_err *err) ROLL_MUST_CHECK;
/* Standard base64, with or without line ends (RFC 4648, 4). EINVAL. */
enum roll_status roll_secret_decode(struct roll_buf *buf, struct roll_str base64) ROLL_MUST_CHECK;
enum roll_status roll_secret_encode(struct roll_buf *buf, struct roll_str bytes) ROLL_MUST_CHECK;
void roll_secret_fini(struct roll_buf *buf);

/* Every string in value is overwritten; nobody else may need it any more. */
void roll_secret_wipe_json(json_t *value);

#endif
