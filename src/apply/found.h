/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_APPLY_FOUND_H
#define ROLL_APPLY_FOUND_H

#include "apply/apply.h"

/*
 * Findings of one object as its row keeps them: all are counted, the first ROLL_FINDINGS_KEPT are
 * kept, long texts are cut. Extra ones (see struct roll_apply_extra) come first, so that they can
 * be replaced without reading the spec again.
 */
struct roll_found {
	struct roll_buf bytes; /* encoded */
	uint32_t kept;
	uint32_t faults;
	uint32_t warnings;
};

void roll_found_init(struct roll_found *found);
void roll_found_fini(struct roll_found *found);
void roll_found_reset(struct roll_found *found);
/* Where the translation reports to. */
struct roll_findings roll_found_sink(struct roll_found *found);

void roll_found_add_extras(struct roll_found *found, const struct roll_apply_extra *extra,
			   size_t count);
/* The extra findings of a stored row, or all the others of it. */
enum roll_status roll_found_add_extras_of(struct roll_found *found,
					  const struct roll_object_row *row) ROLL_MUST_CHECK;
enum roll_status roll_found_add_others_of(struct roll_found *found,
					  const struct roll_object_row *row) ROLL_MUST_CHECK;
/* The extra findings of a row and one more; is_only: instead of those with its reason. */
enum roll_status roll_found_merge_extra(struct roll_found *found, const struct roll_object_row *row,
					const struct roll_apply_extra *extra,
					bool is_only) ROLL_MUST_CHECK;
/* Bytes and counts that were taken from here before. */
void roll_found_restore(struct roll_found *found, struct roll_str bytes, uint32_t faults,
			uint32_t warnings);
/* found holds extra findings only: are they those of the row? */
bool roll_found_has_same_extras(const struct roll_found *found, const struct roll_object_row *row);

#endif
