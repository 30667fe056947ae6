/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sync/html.h"

static void text_of_others_is_no_markup(void **state)
{
	static const struct {
		struct roll_str in;
		const char *want;
	} cases[] = {
		{{"", 0}, ""},
		{{"plain text, 100 %", 17}, "plain text, 100 %"},
		{{"<b a='1' c=\"2\">&amp;", 20},
		 "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;amp;"},
		{{"a\0b\tc\nd\x7f", 8}, "a\\x00b\\x09c\\x0ad\\x7f"},
		{{"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", 15},
		 "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
		{{"\xff\xc0\xaf\xed\xa0\x80", 6}, "\\xff\\xc0\\xaf\\xed\\xa0\\x80"},
		/* Half a character at the end. */
		{{"\xe2\x82", 2}, "\\xe2\\x82"},
		/* Right-to-left override, zero width space, C1 control, byte order mark. */
		{{"a\xe2\x80\xae"
		  "b",
		  5},
		 "a\\u{202e}b"},
		{{"\xe2\x80\x8b\xc2\x85\xef\xbb\xbf", 8}, "\\u{200b}\\u{85}\\u{feff}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct roll_buf buf;

		roll_buf_init(&buf, 1000);
		roll_html_add(&buf, cases[i].in);
		assert_string_equal(buf.n ? buf.p : "", cases[i].want);
		roll_buf_fini(&buf);
	}
}

static void parameter_keeps_every_byte(void **state)
{
	struct roll_buf buf;

	(void)state;
	roll_buf_init(&buf, 1000);
	roll_html_add_param(&buf, roll_str_n("Az09-._~ &=\"<\\\xff\0", 16));
	assert_string_equal(buf.p, "Az09-._~%20%26%3d%22%3c%5c%ff%00");
	roll_buf_fini(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_of_others_is_no_markup),
		cmocka_unit_test(parameter_keeps_every_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
