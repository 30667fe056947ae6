/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/rdata_build.h"

#include <string.h>

bool roll_text_is_quoted(struct roll_str text)
{
	return text.n >= 2 && text.p[0] == '"' && text.p[text.n - 1] == '"';
}

bool roll_text_take(struct roll_str text, enum roll_text_style style, uint8_t *byte, size_t *taken)
{
	const unsigned char *p = (const unsigned char *)text.p;
	unsigned value;

	*byte = p[0];
	*taken = 1;
	if (p[0] != '\\')
		return true;
	if (text.n >= 4 && roll_is_digit(p[1]) && roll_is_digit(p[2]) && roll_is_digit(p[3])) {
		value = (p[1] - '0') * 100U + (p[2] - '0') * 10U + (p[3] - '0');
		if (value <= 255) {
			*byte = (uint8_t)value;
			*taken = 4;
			return true;
		}
	}
	if (style == ROLL_TEXT_CHAR_STRING) {
		if (text.n < 2 || roll_is_digit(p[1]))
			return false;
		*byte = p[1];
		*taken = 2;
	} else if (text.n >= 2 && (p[1] == ';' || p[1] == '"' || p[1] == '\\')) {
		*byte = p[1];
		*taken = 2;
	}
	return true;
}

bool roll_text_cut_quoted(struct roll_str *rest, struct roll_str *inside)
{
	const char *p = rest->p;
	size_t i = 1;

	if (rest->n == 0 || p[0] != '"')
		return false;
	/* In both styles a quote or a backslash right behind a backslash is no end and no
	 * beginning. */
	for (; i < rest->n && p[i] != '"'; i++)
		if (p[i] == '\\' && i + 1 < rest->n && (p[i + 1] == '"' || p[i + 1] == '\\'))
			i++;
	if (i >= rest->n)
		return false;
	*inside = roll_str_n(p + 1, i - 1);
	for (i++; i < rest->n && (p[i] == ' ' || p[i] == '\t' || p[i] == '\r' || p[i] == '\n');)
		i++;
	*rest = roll_str_n(p + i, rest->n - i);
	return true;
}

bool roll_text_unescape(struct roll_str text, enum roll_text_style style, struct roll_buf *buf)
{
	size_t taken;
	uint8_t byte;

	for (size_t at = 0; at < text.n; at += taken) {
		const char *slash = memchr(text.p + at, '\\', text.n - at);

		taken = slash ? (size_t)(slash - text.p) - at : text.n - at;
		if (taken) {
			roll_buf_add(buf, text.p + at, taken);
			continue;
		}
		if (!roll_text_take(roll_str_n(text.p + at, text.n - at), style, &byte, &taken))
			return false;
		roll_buf_add(buf, &byte, 1);
	}
	return true;
}

void roll_text_print(struct roll_str bytes, struct roll_buf *buf)
{
	char out[256];
	size_t n = 0;

	for (size_t i = 0; i < bytes.n; i++) {
		unsigned char c = (unsigned char)bytes.p[i];

		if (n > sizeof out - 4) {
			roll_buf_add(buf, out, n);
			n = 0;
		}
		if (c < 0x20 || c >= 0x7f) {
			out[n++] = '\\';
			out[n++] = (char)('0' + c / 100);
			out[n++] = (char)('0' + c / 10 % 10);
			out[n++] = (char)('0' + c % 10);
			continue;
		}
		if (c == '"' || c == '\\')
			out[n++] = '\\';
		out[n++] = (char)c;
	}
	roll_buf_add(buf, out, n);
}

/* text as character-strings of at most 255 bytes (C19, C20), at least one. */
static void put_strings(struct roll_build *build, struct roll_str text)
{
	uint8_t string[1 + 255];
	size_t taken;

	string[0] = 0;
	/* More than fits is reported at the end, and needs no more memory until then. */
	for (size_t at = 0; at < text.n && build->wire->n - build->start <= ROLL_RDATA_MAX;
	     at += taken) {
		if (string[0] == 255) {
			roll_buf_add(build->wire, string, 256);
			string[0] = 0;
		}
		/* Never false: in this style a backslash that begins no escape is itself. */
		(void)roll_text_take(roll_str_n(text.p + at, text.n - at), ROLL_TEXT_PLAIN,
				     &string[string[0] + 1], &taken);
		string[0]++;
	}
	roll_buf_add(build->wire, string, string[0] + 1U);
}

/*
 * C10 to C24. Text that begins and ends with a double quote is a row of quoted strings and must be
 * one throughout (C13, C14, C17); all other text is one string, quotes in it are its own (C15,
 * C16).
 */
enum roll_status roll_rdata_txt(struct roll_check at, struct roll_str content,
				struct roll_buf *wire)
{
	struct roll_build build = roll_build_begin(at, wire);
	struct roll_str rest = roll_str_trim(content), inside;

	if (rest.n == 0) {
		roll_build_fault(&build, "content",
				 "is missing or blank; expected text (\"\" in quotes for an empty "
				 "one)");
	} else if (!roll_text_is_quoted(rest)) {
		if (rest.p[0] == '"')
			roll_build_doubt(&build, "content",
					 "begins with a quote that has no end, and is served with "
					 "it; expected text in quotes, or without any");
		put_strings(&build, rest);
	} else {
		while (rest.n && roll_text_cut_quoted(&rest, &inside))
			put_strings(&build, inside);
		if (rest.n)
			roll_build_fault(&build, "content",
					 "begins and ends with a quote, but is not a row of quoted "
					 "strings; expected \"...\" \"...\" with quotes inside "
					 "written as \\\"");
	}
	return roll_build_end(&build);
}
