/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/words.h"

#include <stdio.h>

#include "dns/rdata.h"
#include "dns/type.h"

const char *roll_words_type(uint16_t type, char text[ROLL_TYPE_TEXT_SIZE])
{
	const struct roll_type_info *info = roll_type_find(type);

	if (info)
		snprintf(text, ROLL_TYPE_TEXT_SIZE, "%s", info->name);
	else
		snprintf(text, ROLL_TYPE_TEXT_SIZE, "TYPE%u", type);
	return text;
}

void roll_words_rdata_generic(struct roll_str rdata, struct roll_buf *buf)
{
	static const char hex[] = "0123456789abcdef";
	size_t i;

	roll_buf_printf(buf, "\\# %zu ", rdata.n);
	for (i = 0; i < rdata.n; i++) {
		roll_buf_add_char(buf, hex[(unsigned char)rdata.p[i] >> 4]);
		roll_buf_add_char(buf, hex[(unsigned char)rdata.p[i] & 15]);
	}
}

void roll_words_rdata(uint16_t type, struct roll_str rdata, struct roll_buf *buf)
{
	if (roll_rdata_print(type, rdata, ROLL_RDATA_ZONE, buf) != ROLL_OK)
		roll_words_rdata_generic(rdata, buf);
}

const char *roll_words_older(int64_t winner_s, int64_t loser_s)
{
	return winner_s == loser_s ? "sorts first (they are of one age)" : "is older";
}

const char *roll_words_why(enum roll_zone_state state)
{
	switch (state) {
	case ROLL_ZONE_IN_USE:
		return "an older DNSZone has the domain";
	case ROLL_ZONE_NO_CLASS_NAME:
		return "it names no class (spec.dnsZoneClassName)";
	case ROLL_ZONE_CLASS_MISSING:
		return "its class is not there";
	case ROLL_ZONE_CLASS_FOREIGN:
		return "its class belongs to another controller";
	case ROLL_ZONE_NO_NAMESERVERS:
		return "its class has no nameservers, and no object brings an SOA for the apex";
	case ROLL_ZONE_UNCLAIMED:
		return "there is no DNSZone for it any more";
	case ROLL_ZONE_SERVED:
		break;
	}
	return "it is served";
}

const char *roll_words_age(int64_t seconds, char text[ROLL_AGE_SIZE])
{
	long long s = seconds < 0 ? 0 : seconds;

	if (s < 60)
		snprintf(text, ROLL_AGE_SIZE, "%llds", s);
	else if (s < 3600)
		snprintf(text, ROLL_AGE_SIZE, "%lldm %llds", s / 60, s % 60);
	else if (s < 86400)
		snprintf(text, ROLL_AGE_SIZE, "%lldh %lldm", s / 3600, s % 3600 / 60);
	else
		snprintf(text, ROLL_AGE_SIZE, "%lldd %lldh", s / 86400, s % 86400 / 3600);
	return text;
}
