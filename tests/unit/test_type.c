/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dns/finding.h"
#include "dns/type.h"

static void types_are_in_order_of_number_and_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROLL_TYPE_COUNT; i++) {
		const struct roll_type_info *info = &roll_types[i];

		if (i)
			assert_true(info[-1].type < info->type);
		assert_ptr_equal(roll_type_find(info->type), info);
		assert_ptr_equal(roll_type_find_name(roll_str_c(info->name)), info);
		/* The field is the name in lower case. */
		assert_ptr_equal(roll_type_find_name(roll_str_c(info->field)), info);
	}
}

static void other_types_are_not_found(void **state)
{
	(void)state;
	assert_null(roll_type_find(ROLL_TYPE_ENT));
	assert_null(roll_type_find(ROLL_TYPE_ANY));
	assert_null(roll_type_find(65535));
	assert_null(roll_type_find_name(roll_str_c("")));
	assert_null(roll_type_find_name(roll_str_c("AA")));
	assert_null(roll_type_find_name(roll_str_c("ANY")));
}

static void singletons_are_cname_alias_and_soa(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROLL_TYPE_COUNT; i++) {
		uint16_t type = roll_types[i].type;

		assert_int_equal(roll_types[i].is_singleton, type == ROLL_TYPE_CNAME ||
								     type == ROLL_TYPE_ALIAS ||
								     type == ROLL_TYPE_SOA);
		assert_int_equal(roll_types[i].is_apex_only, type == ROLL_TYPE_SOA);
	}
}

static void every_reason_has_a_text_of_its_own(void **state)
{
	(void)state;
	for (int i = 0; i < ROLL_REASON_COUNT; i++) {
		assert_non_null(roll_reason_text((enum roll_reason)i));
		for (int k = 0; k < i; k++)
			assert_string_not_equal(roll_reason_text((enum roll_reason)i),
						roll_reason_text((enum roll_reason)k));
	}
	assert_string_equal(roll_reason_text((enum roll_reason)99), "Unknown");
}

static void keep(void *ctx, const struct roll_finding *finding)
{
	struct roll_finding *kept = ctx;

	kept->severity = finding->severity;
	kept->reason = finding->reason;
	assert_true(roll_str_eq_c(finding->path, "spec.a"));
	assert_true(roll_str_is_utf8(finding->text));
	kept->text.n = finding->text.n;
}

static void a_finding_is_handed_over_whole_or_cut_at_a_character(void **state)
{
	struct roll_finding kept;
	struct roll_findings findings = {keep, &kept};
	char text[3 * 1000 + 1];

	(void)state;
	roll_find(NULL, ROLL_FAULT, ROLL_REASON_INVALID, "spec.a", "%d", 1);
	roll_find(&findings, ROLL_FAULT, ROLL_REASON_DROPPED, "spec.a", "is %d", 12);
	assert_int_equal(kept.severity, ROLL_FAULT);
	assert_int_equal(kept.reason, ROLL_REASON_DROPPED);
	assert_int_equal(kept.text.n, 5);
	for (size_t i = 0; i < 1000; i++)
		memcpy(text + 3 * i, "\xe2\x82\xac", 4);
	roll_find(&findings, ROLL_WARNING, ROLL_REASON_INVALID, "spec.a", "%s", text);
	assert_int_equal(kept.text.n, 2046);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_are_in_order_of_number_and_found),
		cmocka_unit_test(other_types_are_not_found),
		cmocka_unit_test(singletons_are_cname_alias_and_soa),
		cmocka_unit_test(every_reason_has_a_text_of_its_own),
		cmocka_unit_test(a_finding_is_handed_over_whole_or_cut_at_a_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
