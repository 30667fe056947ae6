/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bin.h"
#include "dns/rdata_build.h"

/*
 * SVCB and HTTPS (RFC 9460): rows C40 to C43 and S1 to S14. The value of a parameter is what would
 * stand behind the `=` in a zone file: quotes around it are optional, \DDD and \X are escapes.
 *
 * Three keys are bound by what the PowerDNS versions we serve can read (measured, 4.7.3 to 5.1.5):
 *
 *	dohpath	known by name since 5.1; as `key7="..."` all take it, so that is how it is printed.
 *	ohttp	before 5.1 only `key8=""`, since then only `key8` or `ohttp`. It is kept on the
 *		wire and in zone files, but not sent to PowerDNS: a record without the flag
 *		still works, one that does not parse takes its whole name down.
 *	key9	(tls-supported-groups) 5.1 wants a list of numbers, older ones raw bytes: the same
 *		text makes different records. Refused.
 *
 * ipv4hint=auto and ipv6hint=auto (S13) are PowerDNS's own: it fills in the addresses of the target
 * (svc-autohints=yes) or leaves the hint out. It keeps them as a hint without addresses, which
 * RFC 9460 forbids on the wire, so that nothing else can mean the same; and so do we. A zone file
 * has no form for it, and gets none.
 */

#define SHOWN_SIZE 128
#define MEMBER_SIZE 160

struct param {
	uint16_t key;
	bool is_auto;
	struct roll_str text; /* the value as given, trimmed */
	size_t at, n;	      /* of the wire form in values */
};

struct svc_build {
	struct roll_build *build;
	struct param *params;
	size_t count;
	struct roll_buf text; /* value of the parameter at hand, character-string escapes undone */
	struct roll_buf values; /* wire forms */
	const char *member;
};

/* keyNNNNN without leading zeros (RFC 9460, 2.1), or a name; false if it is neither. */
static bool parse_key(struct roll_str text, uint16_t *key)
{
	for (int i = 0; i < ROLL_SVC_KNOWN_COUNT; i++) {
		if (roll_str_eq_c(text, roll_svc_names[i])) {
			*key = (uint16_t)i;
			return true;
		}
	}
	if (!roll_str_starts(text, "key") || text.n > 8 || (text.n > 4 && text.p[3] == '0'))
		return false;
	return roll_str_u16(roll_str_n(text.p + 3, text.n - 3), UINT16_MAX, key) == ROLL_OK;
}

static bool is_generic(struct roll_str text, uint16_t key)
{
	return key >= ROLL_SVC_KNOWN_COUNT || !roll_str_eq_c(text, roll_svc_names[key]);
}

static bool find_key(struct svc_build *svc, struct roll_str text, uint16_t *key)
{
	char shown[SHOWN_SIZE];

	if (!parse_key(text, key) || *key == ROLL_SVC_KEY_INVALID) {
		roll_build_fault(
			svc->build, svc->member,
			"\"%s\" is no SvcParamKey; expected mandatory, alpn, "
			"no-default-alpn, port, ipv4hint, ech, ipv6hint, dohpath, ohttp or "
			"keyNNNNN",
			roll_str_show(text, shown, sizeof shown));
		return false;
	}
	if (*key < ROLL_SVC_KNOWN_COUNT && is_generic(text, *key)) {
		roll_build_fault(svc->build, svc->member, "key%u has a name; expected \"%s\"", *key,
				 roll_svc_names[*key]);
		return false;
	}
	if (*key == ROLL_SVC_TLS_GROUPS) {
		roll_build_fault(svc->build, svc->member,
				 "key9 (tls-supported-groups) is not supported: PowerDNS versions "
				 "read it differently; expected a record without it");
		return false;
	}
	return true;
}

/* Undo the character-string: quotes around it, escapes in it. */
static bool take_value(struct svc_build *svc, struct roll_str value)
{
	struct roll_str rest = value, inside = value;

	roll_buf_reset(&svc->text);
	if ((!roll_text_is_quoted(value) || (roll_text_cut_quoted(&rest, &inside) && !rest.n)) &&
	    roll_text_unescape(inside, ROLL_TEXT_CHAR_STRING, &svc->text))
		return true;
	roll_build_fault(svc->build, svc->member,
			 "has broken quotes or a broken escape; expected text as in a zone file, "
			 "with quotes and backslashes inside written as \\\" and \\\\");
	return false;
}

static void fault_value(struct svc_build *svc, const char *expected)
{
	char shown[SHOWN_SIZE];

	roll_build_fault(svc->build, svc->member, "is \"%s\"; expected %s",
			 roll_str_show(roll_buf_str(&svc->text), shown, sizeof shown), expected);
}

/* One list item (RFC 9460, A.1): a comma or backslash inside is escaped once more. Blanks are
 * trimmed. */
static bool take_alpn(struct roll_str *rest, uint8_t id[255], size_t *n)
{
	size_t i = 0, end = 0; /* end: behind the last byte that is no blank */

	*n = 0;
	for (; i < rest->n && rest->p[i] != ','; i++) {
		char c = rest->p[i];
		bool is_escaped = c == '\\';

		if (is_escaped) {
			if (++i == rest->n || (rest->p[i] != ',' && rest->p[i] != '\\'))
				return false;
			c = rest->p[i];
		}
		if ((c == ' ' || c == '\t') && !is_escaped && *n == 0)
			continue;
		if (*n == 255)
			return false;
		id[(*n)++] = (uint8_t)c;
		if ((c != ' ' && c != '\t') || is_escaped)
			end = *n;
	}
	*n = end;
	*rest = i < rest->n ? roll_str_n(rest->p + i + 1, rest->n - i - 1) : roll_str_n(NULL, 0);
	return end > 0;
}

static void put_alpn(struct svc_build *svc)
{
	struct roll_str rest = roll_buf_str(&svc->text);
	uint8_t id[255];
	size_t n;

	do {
		/* A comma at the end leaves an empty item, which rest does not show. */
		bool ends = rest.n && rest.p[rest.n - 1] == ',';
		bool is_good = take_alpn(&rest, id, &n);

		if (!is_good || (ends && !rest.n)) {
			fault_value(svc, "protocol identifiers of 1 to 255 bytes, comma separated, "
					 "as in h2,h3");
			return;
		}
		roll_buf_put_u8(&svc->values, (uint8_t)n);
		roll_buf_add(&svc->values, id, n);
	} while (rest.n);
}

static void put_port(struct svc_build *svc)
{
	uint16_t port;

	if (roll_str_u16(roll_str_trim(roll_buf_str(&svc->text)), UINT16_MAX, &port)) {
		fault_value(svc, "a number from 0 to 65535");
		return;
	}
	roll_buf_put_u8(&svc->values, (uint8_t)(port >> 8));
	roll_buf_put_u8(&svc->values, (uint8_t)(port & 0xff));
}

static void put_hints(struct svc_build *svc, struct param *param)
{
	bool is_ipv4 = param->key == ROLL_SVC_IPV4HINT, is_good = true;
	struct roll_str text = roll_str_trim(roll_buf_str(&svc->text)), item;
	uint8_t address[16];

	if (roll_str_eq_c(text, "auto")) {
		param->is_auto = true;
		roll_build_doubt(
			svc->build, svc->member,
			"is \"auto\", which PowerDNS fills in if svc-autohints is on and "
			"leaves out if not; expected addresses, to be independent of that");
		return;
	}
	for (size_t at = 0; is_good && at <= text.n; at += item.n + 1) {
		struct roll_str rest = roll_str_n(text.p + at, text.n - at);

		item = roll_str_cut(&rest, ',');
		is_good = is_ipv4 ? roll_ipv4_parse(roll_str_trim(item), address)
				  : roll_ipv6_parse(roll_str_trim(item), address);
		roll_buf_add(&svc->values, address, is_good ? (is_ipv4 ? 4 : 16) : 0);
	}
	if (!is_good)
		fault_value(svc, is_ipv4 ? "IPv4 addresses, comma separated"
					 : "IPv6 addresses, comma separated");
}

static int base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* RFC 4648, 4, with its padding; bits that are left over must be 0. */
static bool put_base64(struct roll_str text, struct roll_buf *out)
{
	size_t digits = text.n;

	while (digits && text.n - digits < 2 && text.p[digits - 1] == '=')
		digits--;
	if (text.n == 0 || text.n % 4 || text.n - digits != (4 - digits % 4) % 4)
		return false;
	for (size_t i = 0; i < digits; i += 4) {
		size_t n = digits - i < 4 ? digits - i : 4;
		uint32_t bits = 0;

		for (size_t k = 0; k < 4; k++) {
			int digit = k < n ? base64_digit(text.p[i + k]) : 0;

			if (digit < 0)
				return false;
			bits = bits << 6 | (uint32_t)digit;
		}
		for (size_t k = 0; k < n - 1; k++)
			roll_buf_put_u8(out, (uint8_t)(bits >> (16 - 8 * k) & 0xff));
		if (n < 4 && (bits & (n == 3 ? 0xff : 0xffff)))
			return false;
	}
	return true;
}

/* RFC 9461, 5: a relative URI template with the variable "dns". */
static void put_dohpath(struct svc_build *svc)
{
	struct roll_str path = roll_buf_str(&svc->text);
	const char *open = memchr(path.p, '{', path.n);

	if (!roll_str_is_utf8(path) || path.p[0] != '/' || !open ||
	    !memmem(open, (size_t)(path.p + path.n - open), "dns", 3))
		roll_build_doubt(svc->build, svc->member,
				 "is no path with the variable \"dns\"; expected a URI template "
				 "such as /dns-query{?dns}");
	roll_buf_add_str(&svc->values, path);
}

static bool is_flag(uint16_t key)
{
	return key == ROLL_SVC_NO_DEFAULT_ALPN || key == ROLL_SVC_OHTTP;
}

/* The wire form of one parameter, but for `mandatory`, which needs to know all others first. */
static void put_value(struct svc_build *svc, struct param *param)
{
	switch (param->key) {
	case ROLL_SVC_ALPN:
		put_alpn(svc);
		break;
	case ROLL_SVC_PORT:
		put_port(svc);
		break;
	case ROLL_SVC_IPV4HINT:
	case ROLL_SVC_IPV6HINT:
		put_hints(svc, param);
		break;
	case ROLL_SVC_ECH:
		if (!put_base64(roll_str_trim(roll_buf_str(&svc->text)), &svc->values))
			fault_value(svc, "an ECHConfigList in base64, padded");
		break;
	case ROLL_SVC_DOHPATH:
		put_dohpath(svc);
		break;
	default:
		roll_buf_add_str(&svc->values, roll_buf_str(&svc->text));
	}
}

/* One parameter as given into params, unless it is to be left out. */
static void add_param(struct svc_build *svc, const struct roll_svc_param *given)
{
	struct param param = {.text = roll_str_trim(given->value)};

	if (!find_key(svc, given->key, &param.key))
		return;
	if (is_flag(param.key)) { /* S1, S2, S12 */
		if (param.text.n && !roll_str_eq_c(param.text, "\"\""))
			roll_build_doubt(svc->build, svc->member,
					 "is a flag, its value is ignored; expected \"\"");
		if (param.key == ROLL_SVC_OHTTP)
			roll_build_doubt(svc->build, svc->member,
					 "is not sent to PowerDNS: no form of it is understood by "
					 "all versions from 4.7 on");
	} else if (!param.text.n || (param.key < ROLL_SVC_KNOWN_COUNT &&
				     roll_str_eq_c(param.text, "\"\""))) { /* S10 */
		roll_build_doubt(
			svc->build, svc->member, "is empty and left out; expected a value%s",
			param.key < ROLL_SVC_KNOWN_COUNT ? ""
							 : " (\"\" in quotes for an empty one)");
		return;
	} else if (param.key != ROLL_SVC_MANDATORY) {
		if (!take_value(svc, param.text))
			return;
		param.at = svc->values.n;
		put_value(svc, &param);
		param.n = svc->values.n - param.at;
	}
	svc->params[svc->count++] = param;
}

static int cmp_param(const void *a, const void *b)
{
	const struct param *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

static const struct param *find_param(const struct svc_build *svc, uint16_t key)
{
	for (size_t i = 0; i < svc->count; i++)
		if (svc->params[i].key == key)
			return &svc->params[i];
	return NULL;
}

static int cmp_key(const void *a, const void *b)
{
	const uint8_t *x = a, *y = b;

	return x[0] != y[0] ? x[0] - y[0] : x[1] - y[1];
}

/*
 * S9. RFC 9460, 8: each key once, not "mandatory" itself, in ascending order; each must be there. A
 * parameter that a reader of the record may never get to see cannot be mandatory.
 */
static void put_mandatory(struct svc_build *svc, struct param *param)
{
	struct roll_str rest, item;
	size_t at = svc->values.n;
	uint8_t *keys;

	svc->member = "params.mandatory";
	if (!take_value(svc, param->text))
		return;
	rest = roll_buf_str(&svc->text);
	do {
		const struct param *named;
		char shown[SHOWN_SIZE];
		uint16_t key;
		bool ends = rest.n && rest.p[rest.n - 1] == ',';

		item = roll_str_trim(roll_str_cut(&rest, ','));
		if (ends && !rest.n)
			item = roll_str_n(NULL, 0);
		if (!find_key(svc, item, &key))
			return;
		named = find_param(svc, key);
		roll_str_show(item, shown, sizeof shown);
		if (key == ROLL_SVC_MANDATORY || !named)
			roll_build_fault(svc->build, svc->member,
					 "names \"%s\"; expected keys of other parameters that are "
					 "there",
					 shown);
		else if (key == ROLL_SVC_OHTTP || named->is_auto)
			roll_build_fault(svc->build, svc->member,
					 "names \"%s\", which cannot be mandatory: PowerDNS may "
					 "leave it out",
					 shown);
		roll_buf_put_u8(&svc->values, (uint8_t)(key >> 8));
		roll_buf_put_u8(&svc->values, (uint8_t)(key & 0xff));
	} while (rest.n);
	if (svc->values.status)
		return;
	param->at = at;
	param->n = svc->values.n - at;
	keys = (uint8_t *)svc->values.p + at;
	qsort(keys, param->n / 2, 2, cmp_key);
	for (size_t i = 2; i < param->n; i += 2) {
		if (cmp_key(keys + i - 2, keys + i) == 0) {
			roll_build_fault(svc->build, svc->member,
					 "names a key twice; expected each key once");
			return;
		}
	}
}

static void put_params(struct svc_build *svc)
{
	struct roll_buf *wire = svc->build->wire;

	qsort(svc->params, svc->count, sizeof *svc->params, cmp_param);
	/* A name and its keyNNNNN would be the only way to give a key twice, and the latter is
	 * refused. */
	if (svc->count && svc->params[0].key == ROLL_SVC_MANDATORY)
		put_mandatory(svc, &svc->params[0]);
	if (find_param(svc, ROLL_SVC_NO_DEFAULT_ALPN) && !find_param(svc, ROLL_SVC_ALPN))
		roll_build_doubt(svc->build, "params.no-default-alpn",
				 "stands without alpn, and clients ignore such a record (RFC 9460, "
				 "7.1.1); expected alpn beside it");
	for (size_t i = 0; i < svc->count; i++) {
		const struct param *param = &svc->params[i];

		if (i && param->key == svc->params[i - 1].key)
			roll_build_fault(svc->build, "params",
					 "has key %u twice; expected each key once", param->key);
		if (param->n > UINT16_MAX)
			roll_build_fault(svc->build, "params",
					 "has %zu bytes for key %u; expected at most 65535",
					 param->n, param->key);
		roll_buf_put_u8(wire, (uint8_t)(param->key >> 8));
		roll_buf_put_u8(wire, (uint8_t)(param->key & 0xff));
		roll_buf_put_u8(wire, (uint8_t)(param->n >> 8 & 0xff));
		roll_buf_put_u8(wire, (uint8_t)(param->n & 0xff));
		if (param->n)
			roll_buf_add(wire, svc->values.p + param->at, param->n);
	}
}

/* Only parameters of more than a record can hold make the scratch builders reach this. */
#define SCRATCH_BYTES (16 * (size_t)ROLL_RDATA_MAX)

enum roll_status roll_rdata_svcb(struct roll_check at, int64_t priority, struct roll_str target,
				 const struct roll_svc_param *params, size_t param_count,
				 struct roll_buf *wire)
{
	struct roll_build build = roll_build_begin(at, wire);
	struct svc_build svc = {.build = &build};
	char shown[SHOWN_SIZE], member[MEMBER_SIZE];

	roll_buf_init(&svc.text, SCRATCH_BYTES);
	roll_buf_init(&svc.values, SCRATCH_BYTES);
	roll_build_number(&build, "priority", priority, 2);
	target = roll_str_trim(target);
	if (target.n == 0) /* C42 */
		target = roll_str_c(".");
	roll_build_name(&build, "target", target, ROLL_NAME_OR_ROOT);
	/* C40: a record in AliasMode has no parameters (RFC 9460, 2.4.2). */
	if (priority == 0 && param_count)
		roll_build_doubt(&build, "params",
				 "are ignored: with priority 0 the record is an alias; expected "
				 "none, or another priority");
	if (priority == 0 || param_count == 0)
		goto out;
	svc.params = calloc(param_count, sizeof *svc.params);
	if (!svc.params) {
		wire->status = ROLL_ENOMEM;
		goto out;
	}
	for (size_t i = 0; i < param_count; i++) {
		snprintf(member, sizeof member, "params.%s",
			 roll_str_show(params[i].key, shown, sizeof shown));
		svc.member = member;
		add_param(&svc, &params[i]);
	}
	put_params(&svc);
	if (svc.values.status == ROLL_ELIMIT || svc.text.status == ROLL_ELIMIT)
		roll_build_fault(&build, "params", "are longer than a record can be");
	else if (svc.values.status || svc.text.status)
		wire->status = ROLL_ENOMEM;
out:
	roll_buf_fini(&svc.text);
	roll_buf_fini(&svc.values);
	free(svc.params);
	return roll_build_end(&build);
}
