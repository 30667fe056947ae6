/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/html.h"

static const char hex[] = "0123456789abcdef";

/* The value of a well-formed character of n bytes. */
static uint32_t code_point(const char *p, size_t n)
{
	static const unsigned char first_mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t code = (unsigned char)p[0] & first_mask[n];

	for (size_t i = 1; i < n; i++)
		code = code << 6 | ((unsigned char)p[i] & 0x3fu);
	return code;
}

/*
 * What a reader does not see, or what makes the rest look different from what it is: C1 controls,
 * marks and overrides of direction (Unicode 15, 23.2), line and paragraph separators, byte order
 * mark.
 */
static bool is_hidden(uint32_t code)
{
	return (code >= 0x80 && code <= 0x9f) || code == 0x61c || code == 0xfeff ||
	       (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2060 && code <= 0x206f);
}

static void add_byte(struct roll_buf *buf, unsigned char c)
{
	switch (c) {
	case '&':
		roll_buf_add_c(buf, "&amp;");
		break;
	case '<':
		roll_buf_add_c(buf, "&lt;");
		break;
	case '>':
		roll_buf_add_c(buf, "&gt;");
		break;
	case '"':
		roll_buf_add_c(buf, "&quot;");
		break;
	case '\'':
		roll_buf_add_c(buf, "&#39;");
		break;
	default:
		if (c >= 0x20 && c < 0x7f)
			roll_buf_add_char(buf, (char)c);
		else
			roll_buf_printf(buf, "\\x%02x", c);
		break;
	}
}

void roll_html_add(struct roll_buf *buf, struct roll_str text)
{
	while (text.n) {
		size_t n = roll_str_utf8_len(text);

		if (n <= 1) {
			n = 1;
			add_byte(buf, (unsigned char)text.p[0]);
		} else if (is_hidden(code_point(text.p, n))) {
			roll_buf_printf(buf, "\\u{%x}", (unsigned)code_point(text.p, n));
		} else {
			roll_buf_add(buf, text.p, n);
		}
		text = roll_str_n(text.p + n, text.n - n);
	}
}

void roll_html_add_c(struct roll_buf *buf, const char *text)
{
	roll_html_add(buf, roll_str_c(text));
}

void roll_html_add_param(struct roll_buf *buf, struct roll_str value)
{
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if (roll_is_alpha(c) || roll_is_digit(c) || c == '-' || c == '.' || c == '_' ||
		    c == '~') {
			roll_buf_add_char(buf, (char)c);
		} else {
			roll_buf_add_char(buf, '%');
			roll_buf_add_char(buf, hex[c >> 4]);
			roll_buf_add_char(buf, hex[c & 15]);
		}
	}
}
