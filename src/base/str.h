/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_BASE_STR_H
#define ROLL_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * Slices, bounded builders, strict numbers, escaping. Locale-free throughout.
 */

/* Bytes that somebody else owns; not NUL-terminated, may contain NUL. p may be NULL if n is 0. */
struct roll_str {
	const char *p;
	size_t n;
};

#define ROLL_STR_FMT "%.*s"
#define ROLL_STR_ARG(s) (int)(s).n, (s).p

static inline struct roll_str roll_str_n(const char *p, size_t n)
{
	return (struct roll_str){p, n};
}

struct roll_str roll_str_c(const char *c_string); /* NULL gives the empty slice */
bool roll_str_eq(struct roll_str a, struct roll_str b);
bool roll_str_eq_c(struct roll_str a, const char *b);
bool roll_str_eq_nocase(struct roll_str a, struct roll_str b); /* ASCII only */
bool roll_str_starts(struct roll_str s, const char *prefix);
int roll_str_cmp(struct roll_str a, struct roll_str b); /* bytes, shorter first */
struct roll_str roll_str_trim(struct roll_str s);	/* blanks, tabs, CR and LF at both ends */

/* Cut the part before the first `sep` off *rest and return it; all of it if there is none. */
struct roll_str roll_str_cut(struct roll_str *rest, char sep);

/* ASCII classes and case, whatever the locale. */
static inline bool roll_is_digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}
static inline unsigned char roll_lower(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : c;
}
static inline bool roll_is_alpha(unsigned char c)
{
	return roll_lower(c) >= 'a' && roll_lower(c) <= 'z';
}

/*
 * Decimal digits only: no sign, blank, base prefix or trailing byte. EINVAL if not a number,
 * ELIMIT if above max. *out is untouched on error.
 */
enum roll_status roll_str_u64(struct roll_str s, uint64_t max, uint64_t *out) ROLL_MUST_CHECK;
enum roll_status roll_str_u32(struct roll_str s, uint32_t max, uint32_t *out) ROLL_MUST_CHECK;
enum roll_status roll_str_u16(struct roll_str s, uint16_t max, uint16_t *out) ROLL_MUST_CHECK;

/* Whole string is well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms). */
bool roll_str_is_utf8(struct roll_str s);
/* Length of the well-formed UTF-8 character that s begins with; 0 if there is none. */
size_t roll_str_utf8_len(struct roll_str s);

/*
 * Builder with a ceiling. The first failure (ELIMIT, ENOMEM) sticks in .status, later calls do
 * nothing, so callers check once at the end. The bytes are NUL-terminated after every call
 * (the NUL is not counted). Reset keeps the memory and clears the failure.
 */
struct roll_buf {
	char *p;
	size_t n;
	size_t room;
	size_t limit_bytes;
	enum roll_status status;
};

void roll_buf_init(struct roll_buf *buf, size_t limit_bytes);
void roll_buf_fini(struct roll_buf *buf);
void roll_buf_reset(struct roll_buf *buf);
void roll_buf_add(struct roll_buf *buf, const void *bytes, size_t n);
void roll_buf_add_c(struct roll_buf *buf, const char *c_string);
void roll_buf_add_str(struct roll_buf *buf, struct roll_str s);
void roll_buf_add_char(struct roll_buf *buf, char c);
void roll_buf_add_u64(struct roll_buf *buf, uint64_t value); /* decimal, no printf */
void roll_buf_printf(struct roll_buf *buf, const char *fmt, ...) ROLL_PRINTF(2, 3);
/* n bytes of room at the end to write into, counted as used; NULL once failed. */
char *roll_buf_extend(struct roll_buf *buf, size_t n);
/* Cut back to n bytes (n <= buf->n); does not clear a failure. */
void roll_buf_truncate(struct roll_buf *buf, size_t n);
struct roll_str roll_buf_str(const struct roll_buf *buf);

/*
 * JSON string body (no quotes around): RFC 8259 escapes; bytes that are not UTF-8 become \u00XX
 * of their value, so the output is always valid JSON.
 */
void roll_buf_add_json(struct roll_buf *buf, struct roll_str s);
/* A quoted JSON string. */
void roll_buf_add_json_str(struct roll_buf *buf, struct roll_str s);
/*
 * For logs, messages and status texts: printable UTF-8 as it is; controls, invalid bytes, backslash
 * and '"' as \xNN. At most max_bytes are shown, then "...".
 */
void roll_buf_add_shown(struct roll_buf *buf, struct roll_str s, size_t max_bytes);

/* The same into a fixed array; returns out. A convenience for messages. */
const char *roll_str_show(struct roll_str s, char *out, size_t out_size);

#endif
