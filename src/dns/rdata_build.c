/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/rdata_build.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/bin.h"

#define PATH_SIZE 512
#define TEXT_SIZE 2048
#define SHOWN_SIZE 128

struct roll_build roll_build_begin(struct roll_check at, struct roll_buf *wire)
{
	return (struct roll_build){at, wire, wire->n, false};
}

enum roll_status roll_build_end(struct roll_build *build)
{
	struct roll_buf *wire = build->wire;
	enum roll_status status = wire->status;

	if (!status && !build->has_fault && wire->n - build->start > ROLL_RDATA_MAX)
		roll_build_fault(build, NULL, "is %zu bytes of rdata; expected at most %u",
				 wire->n - build->start, ROLL_RDATA_MAX);
	if (!status && build->has_fault)
		status = ROLL_EINVAL;
	if (status)
		roll_buf_truncate(wire, build->start);
	return status;
}

static void ROLL_PRINTF(5, 0)
	report(struct roll_build *build, enum roll_severity severity, enum roll_reason reason,
	       const char *member, const char *fmt, va_list args)
{
	char path[PATH_SIZE], text[TEXT_SIZE];

	snprintf(path, sizeof path, "%s%s%s", build->at.path, member ? "." : "",
		 member ? member : "");
	vsnprintf(text, sizeof text, fmt, args);
	roll_find(build->at.findings, severity, reason, path, "%s", text);
}

void roll_build_fault(struct roll_build *build, const char *member, const char *fmt, ...)
{
	va_list args;

	build->has_fault = true;
	va_start(args, fmt);
	report(build, ROLL_FAULT, ROLL_REASON_INVALID, member, fmt, args);
	va_end(args);
}

void roll_build_doubt(struct roll_build *build, const char *member, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	report(build, ROLL_WARNING, ROLL_REASON_SUSPICIOUS, member, fmt, args);
	va_end(args);
}

void roll_build_number(struct roll_build *build, const char *member, int64_t value, size_t bytes)
{
	int64_t max = (int64_t)((UINT64_C(1) << 8 * bytes) - 1);

	if (value < 0 || value > max) {
		roll_build_fault(build, member, "is %lld; expected a whole number from 0 to %lld",
				 (long long)value, (long long)max);
		return;
	}
	while (bytes--)
		roll_buf_put_u8(build->wire, (uint8_t)(value >> 8 * bytes & 0xff));
}

static bool is_at_sign(const struct roll_name *name)
{
	return name->len == 3 && name->wire[1] == '@';
}

bool roll_name_is_allowed(const struct roll_name *name, unsigned rules)
{
	if (roll_name_labels(name) == 0)
		return rules & ROLL_NAME_OR_ROOT;
	return !is_at_sign(name) && (!(rules & ROLL_NAME_HOST) || roll_name_is_hostname(name));
}

/* Bytes that mean something else in a zone file, blanks above all, must be escaped in a target. */
static bool is_plain_target(struct roll_str text)
{
	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (c <= ' ' || c >= 0x7f || c == '"' || c == ';' || c == '(' || c == ')')
			return false;
		if (c == '\\' && i + 1 < text.n)
			i++;
	}
	return true;
}

void roll_build_name(struct roll_build *build, const char *member, struct roll_str text,
		     unsigned rules)
{
	char shown[SHOWN_SIZE], name_shown[ROLL_NAME_TEXT_SIZE];
	struct roll_name name;
	struct roll_err err;

	text = roll_str_trim(text);
	roll_str_show(text, shown, sizeof shown);
	if (text.n == 0) {
		roll_build_fault(build, member, "is missing or empty; expected a domain name");
		return;
	}
	if (!is_plain_target(text)) {
		roll_build_fault(build, member,
				 "is \"%s\", with a blank or another byte that a name cannot have; "
				 "expected a domain name, with such bytes written as \\DDD",
				 shown);
		return;
	}
	if (roll_name_parse(text, &name, &err)) {
		roll_build_fault(build, member, "is \"%s\": %s; expected a domain name", shown,
				 err.text);
		return;
	}
	if (!roll_name_is_allowed(&name, rules)) {
		roll_build_fault(build, member, "is \"%s\"; expected %s%s", shown,
				 rules & ROLL_NAME_HOST
					 ? "a hostname (letters, digits and inner hyphens)"
					 : "a domain name, written in full",
				 rules & ROLL_NAME_OR_ROOT ? ", or \".\"" : "");
		return;
	}
	if (roll_name_labels(&name) == 1)
		roll_build_doubt(build, member,
				 "is the single label \"%s\", which is taken as a top-level name; "
				 "expected the name in full: the zone's name is never added to it",
				 roll_name_show(&name, name_shown));
	roll_buf_add(build->wire, name.wire, name.len);
}
