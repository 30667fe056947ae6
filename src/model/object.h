/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_MODEL_OBJECT_H
#define ROLL_MODEL_OBJECT_H

#include <jansson.h>
#include <stdint.h>

#include "dns/finding.h"

/*
 * A Kubernetes object as far as we need it: identity, age, spec. Nothing is trusted: members may
 * be missing, of another type, absurd. Decoding checks identity only; the spec is read by
 * model/translate.
 */
#define ROLL_API_GROUP "dns.networking.miloapis.com"
#define ROLL_API_VERSION "v1alpha1"
#define ROLL_OBJECT_LIMIT_BYTES (2u << 20) /* etcd refuses objects over 1.5 MiB */

enum roll_kind {
	ROLL_KIND_CLASS,     /* DNSZoneClass, cluster-scoped */
	ROLL_KIND_ZONE,	     /* DNSZone */
	ROLL_KIND_RECORDSET, /* DNSRecordSet */
	ROLL_KIND_COUNT
};

const char *roll_kind_text(enum roll_kind kind);   /* "DNSZoneClass" */
const char *roll_kind_plural(enum roll_kind kind); /* "dnszoneclasses" */
bool roll_kind_find(struct roll_str text, enum roll_kind *out);

struct roll_object {
	enum roll_kind kind;
	struct roll_str ns; /* empty for classes; "default" if a manifest leaves it out */
	struct roll_str name;
	struct roll_str uid; /* may be empty in manifests */
	uint64_t revision;   /* resourceVersion; 0 if absent or not a number */
	int64_t generation;
	int64_t created_s;   /* INT64_MAX if absent: the youngest */
	bool is_terminating; /* deletionTimestamp is set: absent from now on (design section 4) */
	/*
	 * Its status is about this very spec (observedGeneration of Accepted or Programmed), so it
	 * was written after the spec, and revision may be that of the status.
	 */
	bool is_reported;
	uint32_t serial; /* of a DNSZone: status.serial, what a replica has given out; 0: none */
	json_t *spec;	 /* borrowed; an object, or NULL */
};

/*
 * All members are borrowed from json and live as long as it.
 * ROLL_ENOENT: an object of another kind or group (not ours, no finding). EINVAL: ours by kind, but
 * without a usable identity (no name, name or namespace not a DNS-1123 subdomain / label, unknown
 * version); findings say why. Unusual but usable members (bad creationTimestamp, non-numeric
 * generation) are warnings.
 */
enum roll_status roll_object_decode(const json_t *json, struct roll_object *out,
				    const struct roll_findings *findings) ROLL_MUST_CHECK;

#endif
