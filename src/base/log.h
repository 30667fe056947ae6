/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_BASE_LOG_H
#define ROLL_BASE_LOG_H

#include "base/err.h"

/*
 * One line per event on stderr: `level=warn event=zone-not-served zone=example.com reason="..."`.
 *
 * error: a human must act; warn: we coped; info: a state changed; debug: everything else. Under
 * systemd (JOURNAL_STREAM set) the line is prefixed with <N> priorities. With --log-format json
 * each line is a JSON object of the same keys. No secrets, no raw foreign bytes.
 */
enum roll_level { ROLL_ERROR, ROLL_WARN, ROLL_INFO, ROLL_DEBUG };
enum roll_log_format { ROLL_LOG_KV, ROLL_LOG_JSON };

void roll_log_init(const char *program, enum roll_level max_level, enum roll_log_format format);
/* EINVAL if text is none of error, warn, info, debug. */
enum roll_status roll_level_parse(const char *text, enum roll_level *out) ROLL_MUST_CHECK;
int roll_log_enabled(enum roll_level level);

/*
 * event is a stable lower-case-with-dashes name. fmt yields `key=value key="quoted value"` pairs;
 * values from outside must have gone through roll_str_show. The same line again within 10 s is not
 * repeated but counted; before the next different line it is told again, once, with repeated=N at
 * its end. Lines start with program=NAME if roll_log_init was given a name.
 */
void roll_log(enum roll_level level, const char *event, const char *fmt, ...) ROLL_PRINTF(3, 4);

/* Tests: lines go to sink instead of stderr. NULL restores. */
void roll_log_set_sink(void (*sink)(void *ctx, const char *line), void *ctx);

#endif
