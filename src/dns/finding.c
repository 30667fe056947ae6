/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/finding.h"

#include <stdarg.h>
#include <stdio.h>

/* Room for a sentence with a name in it at its longest (ROLL_NAME_TEXT_SIZE). */
#define TEXT_SIZE 2048

static const char *const reason_texts[ROLL_REASON_COUNT] = {
	[ROLL_REASON_INVALID] = "Invalid",
	[ROLL_REASON_OUT_OF_ZONE] = "OutOfZone",
	[ROLL_REASON_DROPPED] = "Dropped",
	[ROLL_REASON_SUSPICIOUS] = "Suspicious",
	[ROLL_REASON_TTL_MISMATCH] = "TTLMismatch",
	[ROLL_REASON_UNKNOWN_FIELD] = "UnknownField",
	[ROLL_REASON_DUPLICATE_OBJECT] = "DuplicateObject",
	[ROLL_REASON_STALE_FILE] = "StaleFile",
};

const char *roll_reason_text(enum roll_reason reason)
{
	/* Reasons are read back from stored rows, so any number may come. */
	if ((unsigned)reason >= ROLL_REASON_COUNT)
		return "Unknown";
	return reason_texts[reason];
}

void roll_find(const struct roll_findings *findings, enum roll_severity severity,
	       enum roll_reason reason, const char *path, const char *fmt, ...)
{
	char text[TEXT_SIZE];
	struct roll_finding finding = {severity, reason, roll_str_c(path), {text, 0}};
	va_list args;
	int n;

	if (!findings || !findings->on_finding)
		return;
	va_start(args, fmt);
	n = vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	if (n > 0)
		finding.text.n = (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
	/* A cut within a character would not be UTF-8: take the broken character away. */
	if ((size_t)n >= sizeof text)
		while (finding.text.n && !roll_str_is_utf8(finding.text))
			finding.text.n--;
	findings->on_finding(findings->ctx, &finding);
}
