/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_DNS_NAME_H
#define ROLL_DNS_NAME_H

#include <stdint.h>

#include "base/str.h"

/*
 * Domain names in canonical wire form: lower-cased labels (RFC 4343; RFC 4034, 6.2), each with its
 * length before it, ending in the root's zero byte. A value type: copy it freely. Always absolute.
 */
#define ROLL_NAME_MAX 255 /* RFC 1035, 2.3.4: the root byte counts */
#define ROLL_LABEL_MAX 63
#define ROLL_LABELS_MAX 127
/* Longest presentation form: every byte as \DDD, dots, NUL. */
#define ROLL_NAME_TEXT_SIZE 1024

struct roll_name {
	uint8_t len; /* 1 (root) to 255 */
	uint8_t wire[ROLL_NAME_MAX];
};

extern const struct roll_name roll_name_root;

/*
 * Presentation text (RFC 1035, 5.1: `\.`, `\DDD`, `\X`); a final dot is allowed and changes
 * nothing. "." is the root. EINVAL for the empty text, an empty label, a broken escape; ELIMIT for
 * a label or name too long. err->text says which label.
 */
enum roll_status roll_name_parse(struct roll_str text, struct roll_name *out,
				 struct roll_err *err) ROLL_MUST_CHECK;

/* Uncompressed wire form, exactly n bytes; lower-cases. EINVAL or ELIMIT if it is not one name. */
enum roll_status roll_name_from_wire(const void *wire, size_t n,
				     struct roll_name *out) ROLL_MUST_CHECK;

/* prefix (relative, its root byte not counted) put before origin; ELIMIT if too long. */
enum roll_status roll_name_join(const struct roll_name *prefix, const struct roll_name *origin,
				struct roll_name *out) ROLL_MUST_CHECK;

enum roll_dot { ROLL_DOT_NONE, ROLL_DOT_FINAL };
/*
 * Presentation text appended to buf. Letters, digits and - _ * / @ + = bare; dot and backslash
 * within a label as `\.` and `\\`; anything else as \DDD. The root is "." in both styles.
 */
void roll_name_print(const struct roll_name *name, enum roll_dot dot, struct roll_buf *buf);
/* As above, NUL-terminated into a fixed array; returns out. */
const char *roll_name_show(const struct roll_name *name, char out[ROLL_NAME_TEXT_SIZE]);

bool roll_name_eq(const struct roll_name *a, const struct roll_name *b);
/* Canonical DNS order (RFC 4034, 6.1). */
int roll_name_cmp(const struct roll_name *a, const struct roll_name *b);
unsigned roll_name_labels(const struct roll_name *name); /* root: 0; "*" counts */
/* name is origin or below it. */
bool roll_name_is_within(const struct roll_name *name, const struct roll_name *origin);
bool roll_name_is_wildcard(const struct roll_name *name); /* leftmost label is exactly "*" */
/* Without its leftmost `count` labels; the root when none are left. */
struct roll_name roll_name_parent(const struct roll_name *name, unsigned count);
/* The leftmost label, without its length byte; empty for the root. Borrowed. */
struct roll_str roll_name_first_label(const struct roll_name *name);

/*
 * A hostname as PowerDNS checks targets of NS, MX and SRV: letters, digits and inner hyphens in
 * every label (RFC 952, RFC 1123 2.1). The root is not one.
 */
bool roll_name_is_hostname(const struct roll_name *name);

/*
 * Sort key of the part of name below origin (name must be within origin): labels from the root
 * side down, each ended by 0x00; bytes 0x00 and 0x01 inside a label become 0x01 0x01 and 0x01 0x02.
 *Byte order of keys is canonical order, and the keys of all names below X start with the key of X.
 *
 *	a.b.example.com below example.com   "b\0a\0"
 *	example.com     below example.com   ""
 *
 * out must have room for ROLL_NAME_KEY_MAX bytes; the length is returned.
 */
#define ROLL_NAME_KEY_MAX 507
size_t roll_name_key(const struct roll_name *name, const struct roll_name *origin, uint8_t *out);
/* The reverse; ECORRUPT if it is not such a key or the name would be too long. */
enum roll_status roll_name_from_key(const void *key, size_t n, const struct roll_name *origin,
				    struct roll_name *out) ROLL_MUST_CHECK;

/*
 * Positive 31-bit number (1 .. 2^31-1) derived from the name only: PowerDNS's domain id before
 * collisions are settled.
 */
uint32_t roll_name_id(const struct roll_name *name);

#endif
