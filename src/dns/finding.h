/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_DNS_FINDING_H
#define ROLL_DNS_FINDING_H

#include "base/str.h"

/*
 * What is wrong with, or remarkable about, user input. A check reports every finding and goes on;
 * it never stops at the first. ERROR: the part named by path is not served. WARNING: it is served,
 * perhaps not as meant.
 */
enum roll_severity { ROLL_WARNING, ROLL_FAULT };

enum roll_reason {
	ROLL_REASON_INVALID,	   /* does not parse, out of range, wrong shape */
	ROLL_REASON_OUT_OF_ZONE,   /* owner outside the DNSZone's domain */
	ROLL_REASON_DROPPED,	   /* valid but surplus: duplicate, further entry of a singleton */
	ROLL_REASON_SUSPICIOUS,	   /* served as it stands, probably meant otherwise */
	ROLL_REASON_TTL_MISMATCH,  /* entries of one RRset disagree (RFC 2181, 5.2) */
	ROLL_REASON_UNKNOWN_FIELD, /* not part of the API; ignored */
	ROLL_REASON_DUPLICATE_OBJECT, /* the same object in a second manifest; that is ignored */
	ROLL_REASON_STALE_FILE, /* its manifest no longer parses; last good content is served */
	ROLL_REASON_COUNT
};

/* "Invalid", "OutOfZone", ...: as shown to users, in metrics labels and JSON. Never NULL. */
const char *roll_reason_text(enum roll_reason reason);

/*
 * path is the field from the object's root, as a user would write it:
 * `spec.records[2].mx.exchange`. text is a sentence that says what is wrong and what is expected;
 * foreign bytes in it are escaped. Both are borrowed for the call.
 */
struct roll_finding {
	enum roll_severity severity;
	enum roll_reason reason;
	struct roll_str path;
	struct roll_str text;
};

/* Where findings go. */
struct roll_findings {
	void (*on_finding)(void *ctx, const struct roll_finding *finding);
	void *ctx;
};

/* Formats and hands over; findings may be NULL (then nothing happens). */
void roll_find(const struct roll_findings *findings, enum roll_severity severity,
	       enum roll_reason reason, const char *path, const char *fmt, ...) ROLL_PRINTF(5, 6);

#endif
