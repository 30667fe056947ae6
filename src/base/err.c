/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const status_texts[] = {
	[-ROLL_OK] = "success",
	[-ROLL_ENOMEM] = "out of memory",
	[-ROLL_ELIMIT] = "limit exceeded",
	[-ROLL_EINVAL] = "invalid input",
	[-ROLL_ENOENT] = "not found",
	[-ROLL_EEXIST] = "already exists",
	[-ROLL_EIO] = "input/output error",
	[-ROLL_ECORRUPT] = "stored data is damaged",
	[-ROLL_EVERSION] = "stored by another format version",
	[-ROLL_EFULL] = "map is full",
	[-ROLL_EBUSY] = "in use",
	[-ROLL_EAGAIN] = "try again later",
	[-ROLL_ENOTREADY] = "not ready",
	[-ROLL_ESTALE] = "superseded",
	[-ROLL_EDENIED] = "permission denied",
	[-ROLL_EPROTO] = "protocol violation",
	[-ROLL_ECANCELED] = "canceled",
};

static_assert(sizeof status_texts / sizeof *status_texts == 1 - ROLL_STATUS_LAST,
	      "every status needs a text");

/* The text in out did not fit: end it in "...", without half a character before the dots. */
static void mark_cut(char *out, size_t size)
{
	size_t end = size - sizeof "...";

	while (end > 0 && ((unsigned char)out[end] & 0xc0) == 0x80)
		end--;
	memcpy(out + end, "...", sizeof "...");
}

static void ROLL_PRINTF(3, 0) print_fixed(char *out, size_t size, const char *fmt, va_list args)
{
	int n = vsnprintf(out, size, fmt, args);

	if (n < 0)
		out[0] = '\0';
	else if ((size_t)n >= size)
		mark_cut(out, size);
}

static void ROLL_PRINTF(3, 4) put_fixed(char *out, size_t size, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print_fixed(out, size, fmt, args);
	va_end(args);
}

static void ROLL_PRINTF(4, 0) fill(struct roll_err *err, enum roll_status code, const char *where,
				   const char *fmt, va_list args)
{
	char text[sizeof err->text];

	/* The arguments may point into *err itself, when a caller adds to an earlier message. */
	print_fixed(text, sizeof text, fmt, args);
	if (where != err->where)
		put_fixed(err->where, sizeof err->where, "%s", where ? where : "");
	memcpy(err->text, text, sizeof text);
	err->code = code;
}

const char *roll_status_text(enum roll_status status)
{
	if (status > 0 || status < ROLL_STATUS_LAST)
		return "unknown status";
	return status_texts[-status];
}

enum roll_status roll_err_set(struct roll_err *err, enum roll_status code, const char *where,
			      const char *fmt, ...)
{
	va_list args;

	if (err) {
		va_start(args, fmt);
		fill(err, code, where, fmt, args);
		va_end(args);
	}
	return code;
}

enum roll_status roll_err_errno(struct roll_err *err, enum roll_status code, int errno_value,
				const char *where, const char *fmt, ...)
{
	char text[sizeof err->text];
	va_list args;

	if (!err)
		return code;
	va_start(args, fmt);
	print_fixed(text, sizeof text, fmt, args);
	va_end(args);
	return roll_err_set(err, code, where, "%s: %s", text, strerror(errno_value));
}
