/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_VIEW_SCHEMA_H
#define ROLL_VIEW_SCHEMA_H

#include <stdint.h>

#include "base/arena.h"
#include "base/bin.h"
#include "dns/name.h"

/*
 * What the tables of the view hold, as structs and as bytes. docs/view-format.md is the same for
 * people. All integers in values are little-endian, in keys big-endian (so that they sort).
 *
 *	meta      "head"                              -> struct roll_head
 *	          "position/" + what the source likes -> its bytes
 *	objects   u8 kind, "ns/name" or "name"        -> struct roll_object_row
 *	byzone    u64 hash("ns/zone"), recordset key  -> ""      record sets that refer to a zone
 *	byscope   u64 hash(scope), u8 kind, key       -> ""      objects of one manifest
 *	classes   name                                -> struct roll_class_row
 *	domains   u8 0, name key below the root       -> struct roll_domain_row
 *	ids       u32 id                              -> key in domains
 *	dzones    u32 number                          -> struct roll_dzone_row
 *	names     u32 number, name key below domain   -> claims row (dns/claim.h)
 *	gone      u32 number                          -> ""      to be swept, or being prepared
 *	removals  u64 sequence                        -> struct roll_removal
 *	stage     u8 kind, key                        -> bytes   a list on its way
 *
 * A domain outlives its claims, for its id and serial. Removals are a bounded history.
 *
 * A key is at most 511 bytes (LMDB's default).
 */
#define ROLL_VIEW_FORMAT 2u
#define ROLL_REMOVALS_KEPT 10000u

/* The same values as enum roll_kind in model/object.h. */
enum roll_row_kind { ROLL_ROW_CLASS, ROLL_ROW_ZONE, ROLL_ROW_RECORDSET, ROLL_ROW_KINDS };

struct roll_head {
	uint32_t format;
	uint64_t generation;	   /* +1 with every commit */
	int64_t complete_since_ms; /* wall clock; 0: never complete, nothing may be answered */
	int64_t confirmed_ms;	   /* wall clock: the source was last known to be in step */
	bool is_superseded;	   /* a newer generation folder is current */
	uint32_t next_number;	   /* next DNSZone number */
	uint32_t max_serial;	   /* the latest serial given to anything */
	uint64_t next_removal;
	uint64_t object_count[ROLL_ROW_KINDS];
	uint64_t name_count;	    /* rows in names, swept ones included */
	struct roll_str controller; /* whose classes are ours */
	struct roll_str
		source; /* identity: "folder", or the UID of kube-system; empty if unknown */
};

struct roll_object_row {
	enum roll_row_kind kind;
	struct roll_str key; /* "ns/name"; classes "name" */
	struct roll_str uid;
	uint64_t revision;
	int64_t generation;
	int64_t created_s;
	struct roll_str scope; /* manifest path; empty in cluster mode */
	struct roll_str spec;  /* compact JSON, sorted keys */
	struct roll_str zone;  /* record sets: key of the DNSZone; else empty */
	uint32_t fault_count;  /* all there were, also those beyond what `findings` keeps */
	uint32_t warning_count;
	struct roll_str findings; /* encoded, see below; at most ROLL_FINDINGS_KEPT */
	/*
	 * Record sets: under which number its claims stand (0: none) and at which names. The number
	 * may be one that is gone. DNSZones: their own number, 0 if they claim no domain.
	 */
	uint32_t number;
	struct roll_str names; /* u32 count, then str16 name keys in order; or empty */
	uint32_t record_count; /* spec.records length */
};

#define ROLL_FINDINGS_KEPT 100u
/* One finding in a row: u8 severity, u8 reason, str16 path, str16 text. */

struct roll_class_row {
	struct roll_str controller;
	bool has_default_ttl;
	uint32_t default_ttl;
	uint32_t serial; /* of its last change: every zone's serial is at least this */
	uint32_t nameserver_count;
	struct roll_str nameservers; /* wire names one after another, canonical order */
};

struct roll_domain_claim {
	struct roll_str object; /* "ns/name" of the DNSZone */
	struct roll_str uid;
	int64_t created_s;
	uint32_t number;
	struct roll_str class_name;
};
struct roll_domain_row {
	uint32_t id; /* PowerDNS's domain id, 1 .. 2^31-1 */
	uint32_t serial;
	/*
	 * Changes of one commit raise the serial once, whatever their order: the generation of the
	 * last change, and the effective serial before it.
	 */
	uint64_t changed_generation;
	uint32_t serial_before;
	uint32_t published; /* the serial that a replica had given out when it was met; 0: none */
	uint32_t claim_count;
	struct roll_domain_claim *claims; /* oldest first; arena */
};

struct roll_dzone_row {
	struct roll_str object; /* "ns/name" of the DNSZone */
	struct roll_name domain;
	uint32_t cut_count;  /* names below the apex that serve NS */
	uint32_t name_count; /* rows in names */
};

/* Why an object's claims are gone. */
struct roll_removal {
	uint64_t sequence;
	enum roll_row_kind kind;
	struct roll_str key;
	struct roll_str uid;
	struct roll_str zone;	  /* record sets: key of the DNSZone */
	struct roll_str names;	  /* absolute names as text, blank separated, cut at 1,000 bytes */
	struct roll_str evidence; /* "event DELETED", "list", "manifest gone", "changed: ..." */
	uint64_t revision;	  /* of the event or list; 0 for manifests */
	int64_t at_ms;		  /* wall clock of the commit */
};

void roll_head_encode(const struct roll_head *head, struct roll_buf *buf);
enum roll_status roll_head_decode(struct roll_str bytes, struct roll_head *out) ROLL_MUST_CHECK;
void roll_object_row_encode(const struct roll_object_row *row, struct roll_buf *buf);
enum roll_status roll_object_row_decode(enum roll_row_kind kind, struct roll_str key,
					struct roll_str bytes,
					struct roll_object_row *out) ROLL_MUST_CHECK;
void roll_class_row_encode(const struct roll_class_row *row, struct roll_buf *buf);
enum roll_status roll_class_row_decode(struct roll_str bytes,
				       struct roll_class_row *out) ROLL_MUST_CHECK;
void roll_domain_row_encode(const struct roll_domain_row *row, struct roll_buf *buf);
/* Age: creationTimestamp, then namespace/name, then UID. */
int roll_domain_claim_cmp(const struct roll_domain_claim *a, const struct roll_domain_claim *b);
enum roll_status roll_domain_row_decode(struct roll_str bytes, struct roll_arena *arena,
					struct roll_domain_row *out) ROLL_MUST_CHECK;
void roll_dzone_row_encode(const struct roll_dzone_row *row, struct roll_buf *buf);
enum roll_status roll_dzone_row_decode(struct roll_str bytes,
				       struct roll_dzone_row *out) ROLL_MUST_CHECK;
void roll_removal_encode(const struct roll_removal *row, struct roll_buf *buf);
enum roll_status roll_removal_decode(uint64_t sequence, struct roll_str bytes,
				     struct roll_removal *out) ROLL_MUST_CHECK;

#endif
