/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_DNS_RDATA_BUILD_H
#define ROLL_DNS_RDATA_BUILD_H

#include "dns/rdata.h"

/*
 * What the builders of dns/rdata.h share; nobody else includes this. A build goes on after a fault,
 * so that every fault of an entry is reported; roll_build_end takes back what it wrote then.
 *
 * member names the part of the entry, as in "exchange" or "params.alpn"; NULL is the entry itself.
 */
struct roll_build {
	struct roll_check at;
	struct roll_buf *wire;
	size_t start; /* bytes in wire before the build */
	bool has_fault;
};

#define ROLL_RDATA_MAX 65535u /* RFC 1035, 3.2.1: RDLENGTH has 16 bits */

struct roll_build roll_build_begin(struct roll_check at, struct roll_buf *wire);
enum roll_status roll_build_end(struct roll_build *build) ROLL_MUST_CHECK;

/* Not served. */
void roll_build_fault(struct roll_build *build, const char *member, const char *fmt, ...)
	ROLL_PRINTF(3, 4);
/* Served, probably meant otherwise. */
void roll_build_doubt(struct roll_build *build, const char *member, const char *fmt, ...)
	ROLL_PRINTF(3, 4);

/* A number as JSON has it, in `bytes` (1, 2 or 4) bytes of network order. */
void roll_build_number(struct roll_build *build, const char *member, int64_t value, size_t bytes);

/*
 * Which names a member takes. Without a flag: any but the root and the single label "@", which in a
 * zone file would mean the zone's own name and not a name "@".
 */
enum roll_name_rule {
	ROLL_NAME_ANY = 0,
	ROLL_NAME_HOST = 1,    /* a hostname, as PowerDNS checks it */
	ROLL_NAME_OR_ROOT = 2, /* or the root */
};
bool roll_name_is_allowed(const struct roll_name *name, unsigned rules);
void roll_build_name(struct roll_build *build, const char *member, struct roll_str text,
		     unsigned rules);

/*
 * Text as users write it (rdata_text.c). PLAIN: `\;` `\"` `\\` and `\DDD` up to 255 are escapes,
 * any other backslash is itself. CHAR_STRING: RFC 9460, A: \DDD and \X, and a backslash that begins
 * neither is a fault.
 */
enum roll_text_style { ROLL_TEXT_PLAIN, ROLL_TEXT_CHAR_STRING };
/* Begins and ends with a double quote (and has two of them): to be read as quoted strings. */
bool roll_text_is_quoted(struct roll_str text);
/*
 * Cut the quoted string that *rest begins with off it, and blanks behind; *inside is what is
 * between the quotes, escapes still in it. False if there is none, or no end to it.
 */
bool roll_text_cut_quoted(struct roll_str *rest, struct roll_str *inside);
/* The first byte of text (n > 0); *taken bytes of text made it. False: a broken escape. */
bool roll_text_take(struct roll_str text, enum roll_text_style style, uint8_t *byte, size_t *taken);
/* All of text appended to buf. False: a broken escape. */
bool roll_text_unescape(struct roll_str text, enum roll_text_style style, struct roll_buf *buf);
/* Presentation within quotes: `"` and `\` with a backslash, bytes that are not printable ASCII as
 * \DDD. */
void roll_text_print(struct roll_str bytes, struct roll_buf *buf);

/* Addresses (address.c). Blanks are not trimmed. */
bool roll_ipv4_parse(struct roll_str text, uint8_t out[4]);
bool roll_ipv6_parse(struct roll_str text, uint8_t out[16]);
void roll_ipv4_print(const uint8_t address[4], struct roll_buf *buf);
void roll_ipv6_print(const uint8_t address[16], struct roll_buf *buf); /* RFC 5952 */

/* SvcParams (RFC 9460, 14.3.2; svcb_print.c). */
enum roll_svc_key {
	ROLL_SVC_MANDATORY = 0,
	ROLL_SVC_ALPN = 1,
	ROLL_SVC_NO_DEFAULT_ALPN = 2,
	ROLL_SVC_PORT = 3,
	ROLL_SVC_IPV4HINT = 4,
	ROLL_SVC_ECH = 5,
	ROLL_SVC_IPV6HINT = 6,
	ROLL_SVC_DOHPATH = 7,
	ROLL_SVC_OHTTP = 8,
	ROLL_SVC_KNOWN_COUNT
};
#define ROLL_SVC_TLS_GROUPS 9u	    /* tls-supported-groups: see rdata_svcb.c */
#define ROLL_SVC_KEY_INVALID 65535u /* RFC 9460, 14.3.2: reserved */
extern const char *const roll_svc_names[ROLL_SVC_KNOWN_COUNT];

/* SvcParams to the end of wire: sound as a whole, and printed if buf is not NULL (each with a blank
 * before it). */
bool roll_svc_print(struct roll_str wire, enum roll_rdata_style style, struct roll_buf *buf);

#endif
