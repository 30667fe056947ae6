/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SERVER_REQUEST_H
#define ROLL_SERVER_REQUEST_H

#include "base/str.h"

/*
 * One request of the remote protocol: {"method": <string>, "parameters": {...}}.
 *
 * Read in one pass without allocation: strings are decoded where they stand, since no escape is
 * longer decoded than encoded. Strict about JSON (RFC 8259) but for two things that PowerDNS does:
 * strings may hold bytes that are not UTF-8 (salts), and the last of several equal keys counts.
 */
#define ROLL_REQUEST_PARAMS_MAX 32u /* PowerDNS sends 8 at most */
#define ROLL_REQUEST_DEPTH_MAX 32u

enum roll_param_kind {
	ROLL_PARAM_STRING,
	ROLL_PARAM_INTEGER, /* fits int64 */
	ROLL_PARAM_OTHER,   /* anything else; checked, not kept */
};

struct roll_param {
	struct roll_str name;
	enum roll_param_kind kind;
	struct roll_str text;
	int64_t number;
};

struct roll_request {
	struct roll_str method; /* empty if there is none */
	struct roll_param params[ROLL_REQUEST_PARAMS_MAX];
	size_t param_count;
};

/*
 * text is overwritten, and *out points into it. EINVAL if it is not such a request; ELIMIT if it
 * is nested too deeply or has too many parameters. err tells what and at which byte.
 */
enum roll_status roll_request_parse(char *text, size_t n, struct roll_request *out,
				    struct roll_err *err) ROLL_MUST_CHECK;

/* The last parameter of that name; NULL if it is absent or of another kind. */
const struct roll_param *roll_request_param(const struct roll_request *request, const char *name,
					    enum roll_param_kind kind);

#endif
