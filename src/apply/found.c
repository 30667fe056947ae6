/* SPDX-License-Identifier: Apache-2.0 */
#include "apply/found.h"

#include "base/bin.h"

#define PATH_MAX_BYTES 256
#define TEXT_MAX_BYTES 500
#define FOUND_LIMIT_BYTES ((size_t)ROLL_FINDINGS_KEPT * (PATH_MAX_BYTES + TEXT_MAX_BYTES + 16))

void roll_found_init(struct roll_found *found)
{
	*found = (struct roll_found){0};
	roll_buf_init(&found->bytes, FOUND_LIMIT_BYTES);
}

void roll_found_fini(struct roll_found *found)
{
	roll_buf_fini(&found->bytes);
}

void roll_found_reset(struct roll_found *found)
{
	roll_buf_reset(&found->bytes);
	found->kept = found->faults = found->warnings = 0;
}

/* At most max bytes, ending at the border of a character. */
static struct roll_str shorten(struct roll_str s, size_t max)
{
	if (s.n <= max)
		return s;
	while (max > 0 && ((unsigned char)s.p[max] & 0xc0) == 0x80)
		max--;
	return roll_str_n(s.p, max);
}

static void on_finding(void *ctx, const struct roll_finding *finding)
{
	struct roll_found *found = ctx;

	if (finding->severity == ROLL_FAULT)
		found->faults++;
	else
		found->warnings++;
	if (found->kept >= ROLL_FINDINGS_KEPT)
		return;
	found->kept++;
	roll_buf_put_u8(&found->bytes, (uint8_t)finding->severity);
	roll_buf_put_u8(&found->bytes, (uint8_t)finding->reason);
	roll_buf_put_str16(&found->bytes, shorten(finding->path, PATH_MAX_BYTES));
	roll_buf_put_str16(&found->bytes, shorten(finding->text, TEXT_MAX_BYTES));
}

struct roll_findings roll_found_sink(struct roll_found *found)
{
	return (struct roll_findings){on_finding, found};
}

void roll_found_add_extras(struct roll_found *found, const struct roll_apply_extra *extra,
			   size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		struct roll_finding finding = {extra[i].severity, extra[i].reason, extra[i].path,
					       extra[i].text};

		on_finding(found, &finding);
	}
}

static bool is_extra(struct roll_str path)
{
	return !roll_str_starts(path, "spec");
}

struct pick {
	struct roll_found *found;
	bool want_extra;
	const struct roll_apply_extra *not_like; /* leave out those like it; or NULL */
	bool is_any_text;			 /* the same reason is like it enough */
	uint32_t faults, warnings;		 /* seen of the unwanted */
};

static void on_row_finding(void *ctx, unsigned severity, unsigned reason, struct roll_str path,
			   struct roll_str text)
{
	struct roll_finding finding = {(enum roll_severity)severity, (enum roll_reason)reason, path,
				       text};
	struct pick *pick = ctx;

	if (pick->not_like && pick->not_like->reason == (enum roll_reason)reason &&
	    (pick->is_any_text || roll_str_eq(pick->not_like->text, text)))
		return;
	if (is_extra(path) == pick->want_extra)
		on_finding(pick->found, &finding);
	else if (severity == ROLL_FAULT)
		pick->faults++;
	else
		pick->warnings++;
}

enum roll_status roll_found_add_extras_of(struct roll_found *found,
					  const struct roll_object_row *row)
{
	struct pick pick = {.found = found, .want_extra = true};

	return roll_row_findings(row, on_row_finding, &pick);
}

enum roll_status roll_found_add_others_of(struct roll_found *found,
					  const struct roll_object_row *row)
{
	struct pick pick = {.found = found};
	uint32_t faults = found->faults, warnings = found->warnings;
	enum roll_status status = roll_row_findings(row, on_row_finding, &pick);

	/* Those that were counted only count on. Extra ones come first, so they are all kept. */
	if (row->fault_count >= pick.faults)
		found->faults = faults + row->fault_count - pick.faults;
	if (row->warning_count >= pick.warnings)
		found->warnings = warnings + row->warning_count - pick.warnings;
	return status;
}

enum roll_status roll_found_merge_extra(struct roll_found *found, const struct roll_object_row *row,
					const struct roll_apply_extra *extra, bool is_only)
{
	struct pick pick = {
		.found = found, .want_extra = true, .not_like = extra, .is_any_text = is_only};
	enum roll_status status = roll_row_findings(row, on_row_finding, &pick);

	if (!status)
		roll_found_add_extras(found, extra, 1);
	return status;
}

void roll_found_restore(struct roll_found *found, struct roll_str bytes, uint32_t faults,
			uint32_t warnings)
{
	roll_buf_reset(&found->bytes);
	roll_buf_add_str(&found->bytes, bytes);
	found->faults = faults;
	found->warnings = warnings;
	found->kept =
		faults + warnings < ROLL_FINDINGS_KEPT ? faults + warnings : ROLL_FINDINGS_KEPT;
}

bool roll_found_has_same_extras(const struct roll_found *found, const struct roll_object_row *row)
{
	struct roll_found stored;
	bool is_same;

	if (!row->findings.n && !found->bytes.n)
		return true;
	roll_found_init(&stored);
	is_same = !roll_found_add_extras_of(&stored, row) && !stored.bytes.status &&
		  roll_str_eq(roll_buf_str(&stored.bytes), roll_buf_str(&found->bytes));
	roll_found_fini(&stored);
	return is_same;
}
