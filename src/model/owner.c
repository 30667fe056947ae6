/* SPDX-License-Identifier: Apache-2.0 */
#include "model/owner.h"

#include <string.h>

static void fault(struct roll_check at, enum roll_reason reason, const char *text, const char *arg)
{
	roll_find(at.findings, ROLL_FAULT, reason, at.path, "%s%s", text, arg);
}

/* No byte that needs an escape is allowed, so what is left is text that means itself. */
static bool is_plain(struct roll_str text, struct roll_str *odd)
{
	size_t i;

	for (i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (!roll_is_alpha(c) && !roll_is_digit(c) && (c == 0 || !strchr("-_/*.", c))) {
			/* Show a UTF-8 character as a whole. */
			size_t n = 1;

			while (c >= 0xc0 && i + n < text.n && n < 4 &&
			       ((unsigned char)text.p[i + n] & 0xc0) == 0x80)
				n++;
			*odd = roll_str_n(text.p + i, n);
			return false;
		}
	}
	return true;
}

static enum roll_status parse(struct roll_check at, struct roll_str text, struct roll_name *out)
{
	struct roll_err err = {0};
	struct roll_str odd;
	char shown[32];

	if (!is_plain(text, &odd)) {
		roll_find(at.findings, ROLL_FAULT, ROLL_REASON_INVALID, at.path,
			  "\"%s\" cannot be in a name; expected letters, digits, '-', '_', '/' "
			  "and dots",
			  roll_str_show(odd, shown, sizeof shown));
		return ROLL_EINVAL;
	}
	if (roll_name_parse(text, out, &err) != ROLL_OK) {
		fault(at, ROLL_REASON_INVALID, "is not a domain name: ", err.text);
		return ROLL_EINVAL;
	}
	return ROLL_OK;
}

static bool has_star(struct roll_str text)
{
	return text.n && memchr(text.p, '*', text.n);
}

/* Without a wildcard's leftmost label. */
static struct roll_str without_wildcard(struct roll_str text)
{
	if (text.p[0] == '*' && (text.n == 1 || text.p[1] == '.'))
		return roll_str_n(text.p + 1, text.n - 1);
	return text;
}

enum roll_status roll_owner_parse(struct roll_check at, struct roll_str text,
				  struct roll_owner *out)
{
	out->name = roll_name_root;
	out->form = ROLL_OWNER_APEX;
	if (!text.n || roll_str_eq_c(text, "@"))
		return ROLL_OK;
	if (parse(at, text, &out->name) != ROLL_OK)
		return ROLL_EINVAL;
	if (has_star(without_wildcard(text))) {
		fault(at, ROLL_REASON_INVALID, "'*' may only be the whole leftmost label", "");
		return ROLL_EINVAL;
	}
	out->form = text.p[text.n - 1] == '.' ? ROLL_OWNER_ABSOLUTE : ROLL_OWNER_RELATIVE;
	return ROLL_OK;
}

enum roll_status roll_owner_qualify(struct roll_check at, const struct roll_owner *owner,
				    const struct roll_name *domain, struct roll_name *out)
{
	char shown[ROLL_NAME_TEXT_SIZE];

	switch (owner->form) {
	case ROLL_OWNER_APEX:
		*out = *domain;
		return ROLL_OK;
	case ROLL_OWNER_ABSOLUTE:
		*out = owner->name;
		if (roll_name_is_within(out, domain))
			return ROLL_OK;
		fault(at, ROLL_REASON_OUT_OF_ZONE, "is outside the zone ",
		      roll_name_show(domain, shown));
		return ROLL_EINVAL;
	case ROLL_OWNER_RELATIVE:
		break;
	}
	if (roll_name_join(&owner->name, domain, out) != ROLL_OK) {
		fault(at, ROLL_REASON_INVALID, "is over 255 bytes long together with the zone ",
		      roll_name_show(domain, shown));
		return ROLL_EINVAL;
	}
	if (roll_name_is_within(&owner->name, domain))
		roll_find(at.findings, ROLL_WARNING, ROLL_REASON_SUSPICIOUS, at.path,
			  "has no final dot, so it is below the zone: the name is %s",
			  roll_name_show(out, shown));
	return ROLL_OK;
}

enum roll_status roll_owner_parse_domain(struct roll_check at, struct roll_str text,
					 struct roll_name *out)
{
	struct roll_name name;

	if (!text.n) {
		fault(at, ROLL_REASON_INVALID, "is missing; expected a domain name", "");
		return ROLL_EINVAL;
	}
	if (parse(at, text, &name) != ROLL_OK)
		return ROLL_EINVAL;
	if (roll_name_labels(&name) == 0) {
		fault(at, ROLL_REASON_INVALID, "the root cannot be a zone here", "");
		return ROLL_EINVAL;
	}
	if (has_star(text)) {
		fault(at, ROLL_REASON_INVALID, "a zone's domain cannot contain '*'", "");
		return ROLL_EINVAL;
	}
	*out = name;
	return ROLL_OK;
}
