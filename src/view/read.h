/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_VIEW_READ_H
#define ROLL_VIEW_READ_H

#include "base/arena.h"
#include "dns/claim.h"
#include "dns/name.h"
#include "view/schema.h"

/*
 * Reading a view: what is served, and why.
 *
 * A reader follows the writer by itself: map growth, a rebuilt view that was swapped in, a view
 * that appears after the reader started. One snapshot (read transaction) per request; everything
 * borrowed from a snapshot is valid until it ends.
 *
 * Errors never look like absence: ROLL_ENOENT from the functions below is proven by a complete
 * view; every other error means "do not know".
 */
struct roll_view;
struct roll_snap;

/*
 * Prepares a reader; the view itself is opened when first needed, so dir may still be empty (or
 * absent). ROLL_EBUSY: the view is in use from another PID namespace (err says what to do).
 */
enum roll_status roll_view_new(const char *dir, struct roll_view **out,
			       struct roll_err *err) ROLL_MUST_CHECK;
void roll_view_free(struct roll_view *view);

/*
 * Look whether another generation folder is current (a readlink): to be called once a second or
 * so. Snapshots also notice it by the mark in the old view; this is for a view too damaged to be
 * marked.
 */
void roll_view_poll(struct roll_view *view);

/*
 * Begin reading. ROLL_ENOTREADY: no view, or never complete. ROLL_EVERSION, ROLL_ECORRUPT,
 * ROLL_EIO, ...: as said in err. At most one snapshot per view at a time. complete_only false: also
 * an incomplete view (rollcall status). Allocates nothing in the steady state.
 */
enum roll_status roll_snap_begin(struct roll_view *view, bool complete_only, struct roll_snap **out,
				 struct roll_err *err) ROLL_MUST_CHECK;
void roll_snap_end(struct roll_snap *snap);
const struct roll_head *roll_snap_head(const struct roll_snap *snap);
/*
 * Two snapshots of one view with the same number hold the same, so that what was made from the one
 * is true of the other.
 */
uint64_t roll_snap_content(const struct roll_snap *snap);

/* State of a domain, or of one DNSZone's claim to it. */
enum roll_zone_state {
	ROLL_ZONE_SERVED,
	ROLL_ZONE_IN_USE,	 /* an older DNSZone has the domain */
	ROLL_ZONE_NO_CLASS_NAME, /* the DNSZone names no class */
	ROLL_ZONE_CLASS_MISSING,
	ROLL_ZONE_CLASS_FOREIGN,  /* the class belongs to another controller; does not hold the
				     domain */
	ROLL_ZONE_NO_NAMESERVERS, /* no nameservers in the class and no SOA object at the apex */
	ROLL_ZONE_UNCLAIMED	  /* no DNSZone any more */
};
const char *roll_zone_state_text(enum roll_zone_state state); /* "served", "in use", ... */

/* A zone as served. Borrowed from the snapshot. */
struct roll_zone {
	uint32_t id;
	uint32_t number;
	struct roll_name domain;
	struct roll_str object; /* the DNSZone, "ns/name" */
	struct roll_str class_name;
	uint32_t serial;     /* effective, before an SOA object's own */
	uint32_t soa_serial; /* what the SOA answer carries */
	uint32_t default_ttl;
	uint32_t cut_count;
	uint32_t name_count;
	uint32_t nameserver_count;
	struct roll_str nameservers; /* wire names one after another */
};

/* Served zones only. ROLL_ENOENT: not there, or not served. Results are cached per commit. */
enum roll_status roll_snap_zone_by_id(struct roll_snap *snap, uint32_t id,
				      const struct roll_zone **out) ROLL_MUST_CHECK;
enum roll_status roll_snap_zone_at(struct roll_snap *snap, const struct roll_name *apex,
				   const struct roll_zone **out) ROLL_MUST_CHECK;
/* The deepest served zone that holds name. */
enum roll_status roll_snap_zone_of(struct roll_snap *snap, const struct roll_name *name,
				   const struct roll_zone **out) ROLL_MUST_CHECK;

/* One record, or an empty non-terminal (type ROLL_TYPE_ENT, ttl 0, empty rdata). */
struct roll_row {
	const struct roll_name *owner;
	uint16_t type;
	bool auth; /* false: NS at a cut, and anything below one */
	uint32_t ttl;
	struct roll_str rdata; /* wire; the SOA with its serial filled in */
};
/* Return anything but ROLL_OK to stop; it is passed on. */
typedef enum roll_status (*roll_on_row)(void *ctx, const struct roll_row *row);

/*
 * Every record of `type` (or ROLL_TYPE_ANY: all) at exactly name, the zone's own SOA and NS
 * included; one ENT row if there is nothing but names below exist (whatever the type). ROLL_ENOENT
 * if neither; a name with data but not of the type is ROLL_OK without a row. No wildcard is
 * expanded.
 */
enum roll_status roll_snap_lookup(struct roll_snap *snap, const struct roll_zone *zone,
				  const struct roll_name *name, uint16_t type, roll_on_row on_row,
				  void *ctx) ROLL_MUST_CHECK;

/* All records of the zone in canonical order of owners, apex first; no ENT rows. */
enum roll_status roll_snap_list(struct roll_snap *snap, const struct roll_zone *zone,
				roll_on_row on_row, void *ctx) ROLL_MUST_CHECK;

/* Every domain with at least one claim, in canonical order. zone is NULL unless served. */
struct roll_domain {
	struct roll_name name;
	const struct roll_domain_row *row;
	enum roll_zone_state state; /* of the domain: that of the claim that holds it */
	uint32_t holder;	    /* index into row->claims; ROLL_BY_NONE if nobody holds it */
	const struct roll_zone *zone;
};
typedef enum roll_status (*roll_on_domain)(void *ctx, const struct roll_domain *domain);
enum roll_status roll_snap_domains(struct roll_snap *snap, roll_on_domain on_domain,
				   void *ctx) ROLL_MUST_CHECK;
/* Only those after a name, in the same order; NULL: from the first. */
enum roll_status roll_snap_domains_after(struct roll_snap *snap, const struct roll_name *after,
					 roll_on_domain on_domain, void *ctx) ROLL_MUST_CHECK;
/* One domain by name, served or not. ENOENT if no DNSZone claims it. Valid until the next call. */
enum roll_status roll_snap_domain(struct roll_snap *snap, const struct roll_name *name,
				  struct roll_domain *out) ROLL_MUST_CHECK;
/* State of one claim of a domain row (index into claims). */
enum roll_status roll_snap_claim_state(struct roll_snap *snap, const struct roll_domain *domain,
				       uint32_t index, enum roll_zone_state *out) ROLL_MUST_CHECK;

/* All claims at a name under a DNSZone's number, losers too. ENOENT if none. */
enum roll_status roll_snap_claims(struct roll_snap *snap, uint32_t number,
				  const struct roll_name *domain, const struct roll_name *name,
				  struct roll_arena *arena, struct roll_claim **claims,
				  size_t *count) ROLL_MUST_CHECK;
typedef enum roll_status (*roll_on_claims)(void *ctx, const struct roll_name *owner,
					   const struct roll_claim *claims, size_t count);
/* Every name under a number, in canonical order. The claims live for the call. */
enum roll_status roll_snap_all_claims(struct roll_snap *snap, uint32_t number,
				      const struct roll_name *domain, roll_on_claims on_claims,
				      void *ctx) ROLL_MUST_CHECK;
/* Only those after a name; NULL: from the first. */
enum roll_status roll_snap_claims_after(struct roll_snap *snap, uint32_t number,
					const struct roll_name *domain,
					const struct roll_name *after, roll_on_claims on_claims,
					void *ctx) ROLL_MUST_CHECK;

/* Objects. after: empty, or the key after which to go on (walks may be cut into slices). */
enum roll_status roll_snap_object(struct roll_snap *snap, enum roll_row_kind kind,
				  struct roll_str key, struct roll_object_row *out) ROLL_MUST_CHECK;
typedef enum roll_status (*roll_on_object)(void *ctx, const struct roll_object_row *row);
enum roll_status roll_snap_objects(struct roll_snap *snap, enum roll_row_kind kind,
				   struct roll_str after, roll_on_object on_object,
				   void *ctx) ROLL_MUST_CHECK;
/* Record sets that refer to a DNSZone ("ns/name"), present or not. */
enum roll_status roll_snap_recordsets_of(struct roll_snap *snap, struct roll_str zone_key,
					 roll_on_object on_object, void *ctx) ROLL_MUST_CHECK;
/* Those behind `after` (the key of a record set; empty: all), for walks in slices. */
enum roll_status roll_snap_recordsets_after(struct roll_snap *snap, struct roll_str zone_key,
					    struct roll_str after, roll_on_object on_object,
					    void *ctx) ROLL_MUST_CHECK;
enum roll_status roll_snap_class(struct roll_snap *snap, struct roll_str name,
				 struct roll_class_row *out) ROLL_MUST_CHECK;
/* DNSZone by object key. */
enum roll_status roll_snap_dzone(struct roll_snap *snap, struct roll_str zone_key, uint32_t *number,
				 struct roll_dzone_row *out) ROLL_MUST_CHECK;

/* Newest first. */
typedef enum roll_status (*roll_on_removal)(void *ctx, const struct roll_removal *removal);
enum roll_status roll_snap_removals(struct roll_snap *snap, roll_on_removal on_removal,
				    void *ctx) ROLL_MUST_CHECK;

/* Findings of a row, in order. */
typedef void (*roll_on_row_finding)(void *ctx, unsigned severity, unsigned reason,
				    struct roll_str path, struct roll_str text);
enum roll_status roll_row_findings(const struct roll_object_row *row,
				   roll_on_row_finding on_finding, void *ctx) ROLL_MUST_CHECK;

/*
 * Integrity below the rows (verify): every table is walked, each value decoded, indexes followed,
 * claims decided again, counts compared with head. Damage is told through on_damage only; the
 * status says whether the walk could be done.
 */
typedef void (*roll_on_damage)(void *ctx, const char *table, struct roll_str shown_key,
			       const char *what);
enum roll_status roll_snap_scrub(struct roll_snap *snap, roll_on_damage on_damage,
				 void *ctx) ROLL_MUST_CHECK;

#endif
