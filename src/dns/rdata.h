/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_DNS_RDATA_H
#define ROLL_DNS_RDATA_H

#include <stdint.h>

#include "base/str.h"
#include "dns/finding.h"
#include "dns/name.h"
#include "dns/type.h"

/*
 * Rdata: the uncompressed, canonical wire form is the truth (names lower-cased, SvcParams in key
 * order, hex and base64 decoded). One function per shape of input checks the members as users
 * write them and appends wire bytes to `wire`; one function prints any wire form.
 *
 * The builders return ROLL_OK when the record can be served (there may be warnings) and
 * ROLL_EINVAL when not (at least one FAULT was reported). On any error `wire` is as it was before.
 * path is the entry's path, e.g. "spec.records[2].mx"; members are appended by the builder
 * (".exchange"). Blanks around text members are trimmed (row T5 of the conformance table). The rows
 * of the conformance table that each builder implements are named in rdata.c.
 */
struct roll_check {
	const struct roll_findings *findings; /* may be NULL */
	const char *path;
};

enum roll_status roll_rdata_a(struct roll_check at, struct roll_str content,
			      struct roll_buf *wire) ROLL_MUST_CHECK;
enum roll_status roll_rdata_aaaa(struct roll_check at, struct roll_str content,
				 struct roll_buf *wire) ROLL_MUST_CHECK;
/* CNAME, ALIAS, NS, PTR: one target, member "content". NS must be a hostname. */
enum roll_status roll_rdata_target(struct roll_check at, uint16_t type, struct roll_str content,
				   struct roll_buf *wire) ROLL_MUST_CHECK;
/* Text with or without quotes: rows C10 to C24. */
enum roll_status roll_rdata_txt(struct roll_check at, struct roll_str content,
				struct roll_buf *wire) ROLL_MUST_CHECK;
/* Numbers come as int64 as JSON has them; the builder checks the range. */
enum roll_status roll_rdata_mx(struct roll_check at, int64_t preference, struct roll_str exchange,
			       struct roll_buf *wire) ROLL_MUST_CHECK;
enum roll_status roll_rdata_srv(struct roll_check at, int64_t priority, int64_t weight,
				int64_t port, struct roll_str target,
				struct roll_buf *wire) ROLL_MUST_CHECK;
enum roll_status roll_rdata_caa(struct roll_check at, int64_t flag, struct roll_str tag,
				struct roll_str value, struct roll_buf *wire) ROLL_MUST_CHECK;
enum roll_status roll_rdata_tlsa(struct roll_check at, int64_t usage, int64_t selector,
				 int64_t matching_type, struct roll_str cert_data,
				 struct roll_buf *wire) ROLL_MUST_CHECK;

struct roll_svc_param {
	struct roll_str key;
	struct roll_str value;
};
/* SVCB and HTTPS (RFC 9460). params in any order. */
enum roll_status roll_rdata_svcb(struct roll_check at, int64_t priority, struct roll_str target,
				 const struct roll_svc_param *params, size_t param_count,
				 struct roll_buf *wire) ROLL_MUST_CHECK;

/* Members that are absent or 0 take the defaults of row Z4; serial 0 = computed when read.
 */
struct roll_soa_text {
	struct roll_str mname;
	struct roll_str rname;
	int64_t serial, refresh, retry, expire, minimum;
};
enum roll_status roll_rdata_soa(struct roll_check at, const struct roll_soa_text *soa,
				struct roll_buf *wire) ROLL_MUST_CHECK;
/* The zone's own SOA (design section 4): the given mname, hostmaster.<apex>, default timers. */
enum roll_status roll_rdata_soa_default(const struct roll_name *mname, const struct roll_name *apex,
					struct roll_buf *wire) ROLL_MUST_CHECK;

/* The serial inside SOA wire form: read and overwrite. ECORRUPT if it is not SOA rdata. */
enum roll_status roll_rdata_soa_serial(struct roll_str wire, uint32_t *serial) ROLL_MUST_CHECK;
enum roll_status roll_rdata_soa_set_serial(char *wire, size_t n, uint32_t serial) ROLL_MUST_CHECK;

/*
 * PDNS: as the remote backend sends it: names without final dot, TXT and CAA quoted, hex lower
 * case (docs/protocol.md). ZONE: master file form (RFC 1035, 5), names with final dot; ALIAS in
 * its own presentation (`ALIAS target.`), the rest as any zone-file reader takes it.
 */
enum roll_rdata_style { ROLL_RDATA_PDNS, ROLL_RDATA_ZONE };
/* ECORRUPT if wire is not the wire form of type; buf then has nothing new. */
enum roll_status roll_rdata_print(uint16_t type, struct roll_str wire, enum roll_rdata_style style,
				  struct roll_buf *buf) ROLL_MUST_CHECK;

/* Wire bytes as we would have written them: canonical and complete. Used on stored rows. */
enum roll_status roll_rdata_check(uint16_t type, struct roll_str wire) ROLL_MUST_CHECK;

#endif
