/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "source/no_proxy.h"

static void lists_name_hosts(void **state)
{
	static const struct {
		const char *list;
		const char *host;
		bool has;
	} cases[] = {
		{"", "api.example", false},
		{"*", "api.example", true},
		{"*", "192.0.2.1", true},
		{"api.example", "api.example", true},
		{"API.example", "api.EXAMPLE", true},
		{".api.example", "api.example", true},
		{"example", "api.example", true},
		{".example", "api.example", true},
		{"ample", "api.example", false},
		{"api.example", "example", false},
		{"api.example", "xapi.example", false},
		{".", "api.example", false},
		{"*.example", "api.example", false}, /* that is not how it is written */
		{"a,b, api.example", "api.example", true},
		{"a b\tapi.example c", "api.example", true},
		{",,, ,", "api.example", false},
		{"localhost,127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", "127.0.0.10", false},
		{"0.0.1", "127.0.0.1", false},
		{"10.0.0.0/8", "10.255.0.1", true},
		{"10.0.0.0/8", "11.0.0.1", false},
		{"10.96.0.0/12", "10.111.255.255", true},
		{"10.96.0.0/12", "10.112.0.0", false},
		{"192.0.2.1/32", "192.0.2.1", true},
		{"192.0.2.1/32", "192.0.2.0", false},
		{"0.0.0.0/0", "192.0.2.1", true},
		{"0.0.0.0/0", "2001:db8::1", false},
		{"10.0.0.0/33", "10.0.0.1", false},
		{"10.0.0.0/x", "10.0.0.1", false},
		{"10.0.0.0/8", "a10.0.0.1", false},
		{"2001:db8::1", "2001:DB8:0::1", true},
		{"2001:db8::1", "[2001:db8::1]", true},
		{"[2001:db8::1]", "[2001:db8::1]", true},
		{"2001:db8::/32", "[2001:db8:ffff::1]", true},
		{"2001:db8::/32", "[2001:db9::1]", false},
		{"10.0.0.1", "", false},
		{"1111111111111111111111111111111111111111111111111111", "192.0.2.1", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (roll_no_proxy_has(roll_str_c(cases[i].list), roll_str_c(cases[i].host)) !=
		    cases[i].has)
			fail_msg("\"%s\" and \"%s\"", cases[i].list, cases[i].host);
	}
	assert_false(roll_no_proxy_has(roll_str_c(NULL), roll_str_c("api.example")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_name_hosts),
	};

	return cmocka_run_group_tests_name("no_proxy", tests, NULL, NULL);
}
