/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/type.h"

/* By number. */
const struct roll_type_info roll_types[ROLL_TYPE_COUNT] = {
	{ROLL_TYPE_A, "A", "a", false, false},
	{ROLL_TYPE_NS, "NS", "ns", false, false},
	{ROLL_TYPE_CNAME, "CNAME", "cname", true, false},
	{ROLL_TYPE_SOA, "SOA", "soa", true, true},
	{ROLL_TYPE_PTR, "PTR", "ptr", false, false},
	{ROLL_TYPE_MX, "MX", "mx", false, false},
	{ROLL_TYPE_TXT, "TXT", "txt", false, false},
	{ROLL_TYPE_AAAA, "AAAA", "aaaa", false, false},
	{ROLL_TYPE_SRV, "SRV", "srv", false, false},
	{ROLL_TYPE_TLSA, "TLSA", "tlsa", false, false},
	{ROLL_TYPE_SVCB, "SVCB", "svcb", false, false},
	{ROLL_TYPE_HTTPS, "HTTPS", "https", false, false},
	{ROLL_TYPE_CAA, "CAA", "caa", false, false},
	{ROLL_TYPE_ALIAS, "ALIAS", "alias", true, false},
};

const struct roll_type_info *roll_type_find(uint16_t type)
{
	for (size_t i = 0; i < ROLL_TYPE_COUNT && roll_types[i].type <= type; i++)
		if (roll_types[i].type == type)
			return &roll_types[i];
	return NULL;
}

const struct roll_type_info *roll_type_find_name(struct roll_str name)
{
	for (size_t i = 0; i < ROLL_TYPE_COUNT; i++)
		if (roll_str_eq_nocase(name, roll_str_c(roll_types[i].name)))
			return &roll_types[i];
	return NULL;
}
