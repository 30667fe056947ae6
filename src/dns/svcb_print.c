/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "dns/rdata_build.h"

const char *const roll_svc_names[ROLL_SVC_KNOWN_COUNT] = {
	[ROLL_SVC_MANDATORY] = "mandatory",
	[ROLL_SVC_ALPN] = "alpn",
	[ROLL_SVC_NO_DEFAULT_ALPN] = "no-default-alpn",
	[ROLL_SVC_PORT] = "port",
	[ROLL_SVC_IPV4HINT] = "ipv4hint",
	[ROLL_SVC_ECH] = "ech",
	[ROLL_SVC_IPV6HINT] = "ipv6hint",
	[ROLL_SVC_DOHPATH] = "dohpath",
	[ROLL_SVC_OHTTP] = "ohttp",
};

/* One parameter of the wire form, or all that are left. */
struct param {
	uint16_t key;
	const uint8_t *p;
	size_t n;
};

static uint16_t get_u16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* Cut the first parameter off *rest. */
static bool take_param(struct roll_str *rest, struct param *param)
{
	const uint8_t *p = (const uint8_t *)rest->p;

	if (rest->n < 4 || rest->n - 4 < get_u16(p + 2))
		return false;
	param->key = get_u16(p);
	param->p = p + 4;
	param->n = get_u16(p + 2);
	*rest = roll_str_n(rest->p + 4 + param->n, rest->n - 4 - param->n);
	return true;
}

/* The keys that `mandatory` names are ascending, and so are those of rest: one walk over both. */
static bool is_mandatory_sound(const struct param *mandatory, struct roll_str rest)
{
	struct param param = {0, NULL, 0};
	uint16_t before = ROLL_SVC_MANDATORY;

	if (mandatory->n == 0 || mandatory->n % 2)
		return false;
	for (size_t i = 0; i < mandatory->n; i += 2) {
		uint16_t key = get_u16(mandatory->p + i);

		if (key <= before || key == ROLL_SVC_OHTTP)
			return false;
		before = key;
		while (param.key < key)
			if (!take_param(&rest, &param))
				return false;
		if (param.key != key)
			return false;
		if ((key == ROLL_SVC_IPV4HINT || key == ROLL_SVC_IPV6HINT) && param.n == 0)
			return false;
	}
	return true;
}

static bool is_alpn_sound(const struct param *param)
{
	size_t at = 0;

	while (at < param->n) {
		if (param->p[at] == 0)
			return false;
		at += param->p[at] + 1U;
	}
	return param->n && at == param->n;
}

static bool is_sound(const struct param *param, struct roll_str rest)
{
	switch (param->key) {
	case ROLL_SVC_MANDATORY:
		return is_mandatory_sound(param, rest);
	case ROLL_SVC_ALPN:
		return is_alpn_sound(param);
	case ROLL_SVC_NO_DEFAULT_ALPN:
	case ROLL_SVC_OHTTP:
		return param->n == 0;
	case ROLL_SVC_PORT:
		return param->n == 2;
	case ROLL_SVC_IPV4HINT:
		return param->n % 4 == 0;
	case ROLL_SVC_IPV6HINT:
		return param->n % 16 == 0;
	case ROLL_SVC_ECH:
	case ROLL_SVC_DOHPATH:
		return param->n > 0;
	default:
		return param->key != ROLL_SVC_TLS_GROUPS && param->key != ROLL_SVC_KEY_INVALID;
	}
}

/* dohpath and ohttp only as numbers: see rdata_svcb.c. */
static void print_key(uint16_t key, struct roll_buf *buf)
{
	if (key < ROLL_SVC_DOHPATH) {
		roll_buf_add_c(buf, roll_svc_names[key]);
	} else {
		roll_buf_add(buf, "key", 3);
		roll_buf_add_u64(buf, key);
	}
}

static void print_mandatory(const struct param *param, struct roll_buf *buf)
{
	for (size_t i = 0; i < param->n; i += 2) {
		if (i)
			roll_buf_add_char(buf, ',');
		print_key(get_u16(param->p + i), buf);
	}
}

static bool is_bare(uint8_t c)
{
	return roll_is_alpha(c) || roll_is_digit(c) || c == '-' || c == '.' || c == '/' || c == '_';
}

/*
 * Within quotes. PowerDNS ends a SvcParam at `;`, `(` and `)` even there (measured, 4.7.3 to 5.1.5;
 * TXT and CAA are not concerned), so what is not known to be harmless goes as \DDD.
 */
static void print_text(struct roll_str bytes, struct roll_buf *buf)
{
	for (size_t i = 0; i < bytes.n; i++) {
		unsigned char c = (unsigned char)bytes.p[i];
		char escape[] = {'\\', (char)('0' + c / 100), (char)('0' + c / 10 % 10),
				 (char)('0' + c % 10)};

		if (c && (is_bare(c) || strchr(" ,:=?&+{}", c)))
			roll_buf_add_char(buf, (char)c);
		else if (c == '"' || c == '\\')
			roll_buf_add(buf, (char[]){'\\', (char)c}, 2);
		else
			roll_buf_add(buf, escape, sizeof escape);
	}
}

/*
 * RFC 9460, A.1: a comma or backslash inside an identifier is escaped for the list, and the
 * backslash that does it once more for the character-string: `\\,` and `\\\\`.
 */
static void print_alpn_id(const uint8_t *p, size_t n, struct roll_buf *buf)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] == ',' || p[i] == '\\')
			roll_buf_add(buf, "\\\\", 2);
		print_text(roll_str_n((const char *)p + i, 1), buf);
	}
}

static void print_alpn(const struct param *param, struct roll_buf *buf)
{
	bool is_quoted = false;

	for (size_t at = 0; at < param->n; at += param->p[at] + 1U)
		for (size_t i = 1; i <= param->p[at]; i++)
			is_quoted = is_quoted || !is_bare(param->p[at + i]);
	if (is_quoted)
		roll_buf_add_char(buf, '"');
	for (size_t at = 0; at < param->n; at += param->p[at] + 1U) {
		if (at)
			roll_buf_add_char(buf, ',');
		if (is_quoted)
			print_alpn_id(param->p + at + 1, param->p[at], buf);
		else
			roll_buf_add(buf, param->p + at + 1, param->p[at]);
	}
	if (is_quoted)
		roll_buf_add_char(buf, '"');
}

static void print_hints(const struct param *param, size_t bytes, struct roll_buf *buf)
{
	if (param->n == 0)
		roll_buf_add_c(buf, "auto");
	for (size_t i = 0; i < param->n; i += bytes) {
		if (i)
			roll_buf_add_char(buf, ',');
		if (bytes == 4)
			roll_ipv4_print(param->p + i, buf);
		else
			roll_ipv6_print(param->p + i, buf);
	}
}

static void print_base64(const struct param *param, struct roll_buf *buf)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < param->n; i += 3) {
		size_t n = param->n - i < 3 ? param->n - i : 3;
		uint32_t bits = 0;
		char out[4];

		for (size_t k = 0; k < 3; k++)
			bits = bits << 8 | (k < n ? param->p[i + k] : 0U);
		for (size_t k = 0; k < 4; k++)
			out[k] = k <= n ? digits[bits >> (18 - 6 * k) & 63] : '=';
		roll_buf_add(buf, out, sizeof out);
	}
}

static void print_value(const struct param *param, struct roll_buf *buf)
{
	switch (param->key) {
	case ROLL_SVC_MANDATORY:
		print_mandatory(param, buf);
		break;
	case ROLL_SVC_ALPN:
		print_alpn(param, buf);
		break;
	case ROLL_SVC_PORT:
		roll_buf_add_u64(buf, get_u16(param->p));
		break;
	case ROLL_SVC_IPV4HINT:
		print_hints(param, 4, buf);
		break;
	case ROLL_SVC_IPV6HINT:
		print_hints(param, 16, buf);
		break;
	case ROLL_SVC_ECH:
		print_base64(param, buf);
		break;
	default:
		roll_buf_add_char(buf, '"');
		print_text(roll_str_n((const char *)param->p, param->n), buf);
		roll_buf_add_char(buf, '"');
	}
}

/* What the reader of this style has no form for is left out: see rdata_svcb.c. */
static bool is_printed(const struct param *param, enum roll_rdata_style style)
{
	if (style == ROLL_RDATA_PDNS)
		return param->key != ROLL_SVC_OHTTP;
	return param->n || (param->key != ROLL_SVC_IPV4HINT && param->key != ROLL_SVC_IPV6HINT);
}

bool roll_svc_print(struct roll_str wire, enum roll_rdata_style style, struct roll_buf *buf)
{
	struct param param;
	int before = -1;

	while (wire.n) {
		/* RFC 9460, 2.2: keys in strictly increasing order. */
		if (!take_param(&wire, &param) || param.key <= before || !is_sound(&param, wire))
			return false;
		before = param.key;
		if (!buf || !is_printed(&param, style))
			continue;
		roll_buf_add_char(buf, ' ');
		print_key(param.key, buf);
		if (param.key == ROLL_SVC_NO_DEFAULT_ALPN || param.key == ROLL_SVC_OHTTP)
			continue;
		roll_buf_add_char(buf, '=');
		print_value(&param, buf);
	}
	return true;
}
