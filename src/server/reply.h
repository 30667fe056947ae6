/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SERVER_REPLY_H
#define ROLL_SERVER_REPLY_H

#include "base/str.h"
#include "view/read.h"

/*
 * Replies as text: one compact JSON object and a line end. Built by hand into the buffer of the
 * connection, since PowerDNS parses what it has so far again after every 1500 bytes: each byte
 * less counts, and there is nothing a tree of values would be good for.
 *
 * Errors stick in the buffer; roll_reply_end tells.
 */
/* Rows without a row. */
#define ROLL_REPLY_NOTHING "{\"result\":[]}\n"

struct roll_reply {
	struct roll_buf *out;
	struct roll_buf text;	/* scratch: a name or content before JSON escaping */
	struct roll_buf head;	/* a row up to its type, for the owner below */
	struct roll_buf tail;	/* a row from its domain_id on, up to the value of auth */
	struct roll_name owner; /* of the row before; len 0: none */
	uint32_t zone_id;
	bool is_scoped;
	size_t count; /* rows or domains so far */
};

void roll_reply_init(struct roll_reply *reply);
void roll_reply_fini(struct roll_reply *reply);

/* A whole reply whose result is the JSON text given: `{"result":true}`. */
void roll_reply_result(struct roll_reply *reply, const char *json);
/* A whole reply whose result is a string. */
void roll_reply_string(struct roll_reply *reply, struct roll_str text);
/*
 * A whole reply without a result, in place of whatever was begun: the failure that PowerDNS turns
 * into SERVFAIL, keeps out of its caches and answers with a new connection.
 */
void roll_reply_failure(struct roll_reply *reply, const char *reason);

/*
 * Rows between begin and end. is_scoped: each row says scopeMask 1, which keeps PowerDNS from
 * caching the answer whatever its settings are.
 */
void roll_reply_begin(struct roll_reply *reply, bool is_scoped);
enum roll_status roll_reply_row(struct roll_reply *reply, uint32_t zone_id,
				const struct roll_row *row) ROLL_MUST_CHECK;
/* One element of getAllDomains, or with is_full the object of getDomainInfo. */
void roll_reply_domain(struct roll_reply *reply, const struct roll_zone *zone, bool is_full);
enum roll_status roll_reply_end(struct roll_reply *reply) ROLL_MUST_CHECK;

#endif
