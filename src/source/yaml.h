/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_YAML_H
#define ROLL_SOURCE_YAML_H

#include <jansson.h>

#include "base/str.h"

/*
 * YAML documents to JSON values, as Kubernetes tools read manifests (YAML 1.1 core scalars as
 * sigs.k8s.io/yaml resolves them: null ~ true/false y/n yes/no on/off, integers, floats; quoted
 * scalars are strings; anything else, timestamps included, is a string). A whole float is an
 * integer (1e3 is 1000), as it is after that library's way through JSON. JSON text is YAML, but
 * large JSON should go through base/json's splitter.
 *
 * Limits: nesting ROLL_JSON_DEPTH; node_limit nodes per document after aliases are expanded (an
 * alias bomb hits it), where a scalar counts once for each KiB begun. The caller bounds the text.
 * Refused with line and column: duplicate keys, keys that are not scalars, anchors that contain
 * themselves, text that is not UTF-8, tags other than the core ones, merge keys that are not maps,
 * infinities and not-a-number (JSON has none), NUL in keys, over 1000 lines of %TAG directives.
 *
 * Values under an alias are shared, not copied: treat documents as read-only.
 */
typedef enum roll_status (*roll_yaml_on_document)(void *ctx, json_t *document, size_t line);

/*
 * Every document of the stream in turn, each as a value that lives for the call; empty documents
 * are skipped. line is the document's first line. EINVAL or ELIMIT with err->where naming line
 * and column; documents before the fault have been handed out, so the caller decides at the end.
 */
enum roll_status roll_yaml_read(struct roll_str text, size_t node_limit,
				roll_yaml_on_document on_document, void *ctx,
				struct roll_err *err) ROLL_MUST_CHECK;

#endif
