/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_MODEL_FIELD_H
#define ROLL_MODEL_FIELD_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "dns/finding.h"
#include "dns/rdata.h"

/*
 * Reading members of foreign JSON objects. at.path is the path of the object that holds the member;
 * findings go to at.path + "." + key. A member that is null counts as absent, as it does for the
 * API server.
 */

/* Longest path: spec.records[4294967295].https.params.<key>, the key cut to fit. */
#define ROLL_PATH_SIZE 256

void roll_field_find(struct roll_check at, enum roll_severity severity, enum roll_reason reason,
		     const char *key, const char *fmt, ...) ROLL_PRINTF(5, 6);

/*
 * Find `count` named members in one walk: values[i] is the member names[i], NULL if it is absent.
 * Members of any other name are reported as UnknownField.
 */
void roll_field_split(struct roll_check at, const json_t *object, const char *const *names,
		      size_t count, json_t **values);

/*
 * The value as what the API says it is; absent (NULL) values are accepted and give the empty slice,
 * 0 or NULL. False: it was something else, and that is reported as an Invalid fault.
 */
bool roll_field_text(struct roll_check at, const char *key, const json_t *value,
		     struct roll_str *out);
bool roll_field_number(struct roll_check at, const char *key, const json_t *value, int64_t max,
		       int64_t *out);
bool roll_field_object(struct roll_check at, const char *key, const json_t *value, json_t **out);
bool roll_field_array(struct roll_check at, const char *key, const json_t *value, json_t **out);

/* "a string", "a list", ...: what a value is, for messages. */
const char *roll_field_kind(const json_t *value);

/* Names of Kubernetes objects: RFC 1123 label (63 bytes) and subdomain (253 bytes), lower case. */
bool roll_field_is_label(struct roll_str text);
bool roll_field_is_subdomain(struct roll_str text);

#endif
