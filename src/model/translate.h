/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_MODEL_TRANSLATE_H
#define ROLL_MODEL_TRANSLATE_H

#include <jansson.h>

#include "base/arena.h"
#include "dns/claim.h"
#include "dns/name.h"
#include "dns/rrset.h"
#include "model/object.h"

/*
 * Specs to DNS: pure, the same bytes for the same input on every machine. The rules are the
 * conformance table; every finding is reported, good entries are kept (design law 5). Results live
 * in the arena.
 */

/* DNSZoneClass.spec */
struct roll_class_spec {
	struct roll_str controller;    /* empty if absent */
	struct roll_name *nameservers; /* sorted (canonical order), no duplicates */
	size_t nameserver_count;
	bool has_default_ttl;
	uint32_t default_ttl;
};
enum roll_status roll_translate_class(const json_t *spec, struct roll_arena *arena,
				      struct roll_class_spec *out,
				      const struct roll_findings *findings) ROLL_MUST_CHECK;

/* DNSZone.spec. EINVAL if there is no usable domain: such a zone claims nothing. */
struct roll_zone_spec {
	struct roll_name domain;
	struct roll_str class_name; /* empty: none set */
};
enum roll_status roll_translate_zone(const json_t *spec, struct roll_arena *arena,
				     struct roll_zone_spec *out,
				     const struct roll_findings *findings) ROLL_MUST_CHECK;

/* DNSRecordSet.spec */
struct roll_owned {
	struct roll_name owner; /* within the zone */
	struct roll_rrset rrset;
	struct roll_str spelling; /* as first written in spec.records[].name */
};
struct roll_recordset_spec {
	struct roll_str zone_ref; /* spec.dnsZoneRef.name; empty if unusable */
	uint16_t type;		  /* 0 if unusable */
	struct roll_owned *owned; /* sorted by owner in canonical order, one per owner */
	size_t owned_count;
	size_t record_count; /* spec.records length */
};
/*
 * domain NULL: the zone is not known (yet): everything that does not need it is checked, and
 * owned stays empty. EINVAL if zone reference or type are unusable (out is still filled as far as
 * possible). One RRset holds at most what fits a DNS message of 65535 bytes; entries beyond are
 * faults.
 */
enum roll_status roll_translate_recordset(const json_t *spec, const struct roll_name *domain,
					  struct roll_arena *arena, struct roll_recordset_spec *out,
					  const struct roll_findings *findings) ROLL_MUST_CHECK;

/* spec.dnsZoneRef.name alone; the empty slice if there is none. Borrowed. */
struct roll_str roll_recordset_zone_ref(const json_t *spec);

#endif
