/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_EXPLAIN_EXPLAIN_H
#define ROLL_EXPLAIN_EXPLAIN_H

#include "base/arena.h"
#include "dns/claim.h"
#include "dns/finding.h"
#include "view/read.h"

/*
 * Everything the view knows about one name, gathered before anything is printed. The walk is
 * PowerDNS's own (deepest zone, delegations on the way, the name, wildcards), so that the result is
 * what a client sees. Strings are borrowed from the snapshot or live in the arena.
 */
enum roll_explain_result {
	ROLL_EXPLAIN_ANSWER,
	ROLL_EXPLAIN_NODATA, /* the name exists, the type does not */
	ROLL_EXPLAIN_NXDOMAIN,
	ROLL_EXPLAIN_REFERRAL, /* at or below a delegation */
	ROLL_EXPLAIN_REFUSED,  /* in no zone that is served */
};

/* A claim to a domain that is the name or above it. */
struct roll_explain_domain {
	struct roll_explain_domain *next;
	struct roll_name name;
	enum roll_zone_state state; /* of this claim */
	struct roll_domain_claim claim;
};

struct roll_explain_record {
	struct roll_explain_record *next;
	struct roll_name owner;
	uint16_t type;
	bool auth;
	uint32_t ttl;
	struct roll_str content;
	struct roll_str object; /* empty: made from the zone's class */
};

/* An object's claim to the name (or to the wildcard that answers for it). */
struct roll_explain_claim {
	struct roll_explain_claim *next;
	struct roll_str object;
	int64_t created_s;
	uint16_t type;
	enum roll_verdict verdict;
	struct roll_str by; /* the object that serves instead; empty: the zone itself, or none */
	uint16_t by_type;   /* 0: the zone itself, or none */
	int64_t by_created_s;
	/* The zone that answers; otherwise a DNSZone that does not serve, or a shallower one. */
	bool is_in_zone;
	struct roll_str zone; /* the DNSZone */
	struct roll_name domain;
	enum roll_zone_state state; /* of the DNSZone's claim; SERVED and not in_zone: shadowed */
};

/* A record set that has an entry for the name, but no claim. */
struct roll_explain_wanting {
	struct roll_explain_wanting *next;
	struct roll_str object;
	struct roll_str zone;
	bool is_waiting;  /* for its DNSZone; otherwise its entry cannot be served */
	bool is_possible; /* its domain is not known: the name only begins as the entry does */
};

struct roll_explain_finding {
	struct roll_explain_finding *next;
	struct roll_str object;
	enum roll_severity severity;
	enum roll_reason reason;
	struct roll_str path;
	struct roll_str text;
};

struct roll_explain_removal {
	struct roll_explain_removal *next;
	struct roll_removal removal;
};

#define ROLL_EXPLAIN_REMOVALS 5
#define ROLL_EXPLAIN_WANTING 20

struct roll_explain {
	struct roll_snap *snap;
	struct roll_arena arena;
	struct roll_buf text;

	struct roll_name name;
	uint16_t type; /* ROLL_TYPE_ANY: all */

	enum roll_explain_result result;
	bool has_zone;
	struct roll_zone zone;
	bool has_cut;
	struct roll_name cut;
	bool is_ent;		 /* nothing at the name, but names below */
	bool has_wildcard;	 /* which answers for the name */
	struct roll_name source; /* where the records are: the name, the wildcard, or the cut */

	struct roll_explain_domain *domains, **domains_end; /* deepest first */
	struct roll_explain_record *records, **records_end; /* of all types */
	struct roll_explain_claim *claims, **claims_end;
	struct roll_explain_wanting *wanting, **wanting_end;
	size_t wanting_count;
	struct roll_explain_finding *findings, **findings_end;
	struct roll_explain_removal *removals, **removals_end; /* newest first */
	size_t removal_count;

	uint64_t limit; /* see roll_explain_limit; 0: none */
	uint64_t left;
	bool is_cut; /* the limit was met: findings, wanting and removals may lack some */
};

enum roll_status roll_explain_init(struct roll_explain *x, struct roll_snap *snap,
				   const struct roll_name *name, uint16_t type) ROLL_MUST_CHECK;
/*
 * Before gathering: look at no more than about so many bytes for each of findings, wanting and
 * removals, for somebody who has other things to do. What answers and who claims the name is
 * complete in any case.
 */
void roll_explain_limit(struct roll_explain *x, uint64_t bytes);
enum roll_status roll_explain_gather(struct roll_explain *x) ROLL_MUST_CHECK;
void roll_explain_fini(struct roll_explain *x);

/* A record that a question for the type is answered with. */
bool roll_explain_answers(const struct roll_explain *x, uint16_t type);
/* "answer", "nodata", "nxdomain", "referral", "refused". */
const char *roll_explain_result_text(enum roll_explain_result result);
/*
 * What there is to say about an ALIAS, or NULL: it serves addresses only through PowerDNS, and at a
 * wildcard not even so.
 */
const char *roll_explain_alias_note(const struct roll_explain *x);

/* Whether a removal's list of names has this one. */
bool roll_removal_names(const struct roll_removal *removal, const struct roll_name *name);

#endif
