/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_YAML_SCALAR_H
#define ROLL_SOURCE_YAML_SCALAR_H

#include <jansson.h>

#include "base/str.h"

/*
 * What the text of a YAML scalar means (YAML 1.1 core types, with the readings of
 * sigs.k8s.io/yaml where the standard leaves room):
 *
 *	~ null Null NULL and nothing		null
 *	y yes true on, n no false off		true, false; also Capital and UPPER
 *	12 +12 -12 1_000			integers; underscores are dropped
 *	0x1f 010 0o10 0b11			integers of base 16, 8, 8, 2
 *	1.5 .5 1. 1e3				floats; whole ones become integers
 *	.inf -.inf .nan				refused: JSON has no such numbers
 *
 * Integers beyond 64 bits become floats. Anything else is a string.
 */
enum roll_yaml_kind {
	ROLL_YAML_STRING,
	ROLL_YAML_NULL,
	ROLL_YAML_BOOL,
	ROLL_YAML_INT,
	ROLL_YAML_FLOAT,
	ROLL_YAML_NOT_JSON, /* *out is NULL */
};

/*
 * A plain scalar. *out is a new reference; *kind is what the text looked like. ENOMEM only.
 */
enum roll_status roll_yaml_resolve(struct roll_str text, enum roll_yaml_kind *kind,
				   json_t **out) ROLL_MUST_CHECK;

/* Any text as a string. EINVAL if it is not UTF-8. */
enum roll_status roll_yaml_string(struct roll_str text, json_t **out) ROLL_MUST_CHECK;

#endif
