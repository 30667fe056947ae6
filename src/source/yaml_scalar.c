/* SPDX-License-Identifier: Apache-2.0 */
#include "source/yaml_scalar.h"

#include <string.h>

static const struct {
	const char *text;
	enum roll_yaml_kind kind;
	bool is_true;
} words[] = {
	{"", ROLL_YAML_NULL, false},	      {"~", ROLL_YAML_NULL, false},
	{"null", ROLL_YAML_NULL, false},      {"Null", ROLL_YAML_NULL, false},
	{"NULL", ROLL_YAML_NULL, false},      {"y", ROLL_YAML_BOOL, true},
	{"Y", ROLL_YAML_BOOL, true},	      {"yes", ROLL_YAML_BOOL, true},
	{"Yes", ROLL_YAML_BOOL, true},	      {"YES", ROLL_YAML_BOOL, true},
	{"true", ROLL_YAML_BOOL, true},	      {"True", ROLL_YAML_BOOL, true},
	{"TRUE", ROLL_YAML_BOOL, true},	      {"on", ROLL_YAML_BOOL, true},
	{"On", ROLL_YAML_BOOL, true},	      {"ON", ROLL_YAML_BOOL, true},
	{"n", ROLL_YAML_BOOL, false},	      {"N", ROLL_YAML_BOOL, false},
	{"no", ROLL_YAML_BOOL, false},	      {"No", ROLL_YAML_BOOL, false},
	{"NO", ROLL_YAML_BOOL, false},	      {"false", ROLL_YAML_BOOL, false},
	{"False", ROLL_YAML_BOOL, false},     {"FALSE", ROLL_YAML_BOOL, false},
	{"off", ROLL_YAML_BOOL, false},	      {"Off", ROLL_YAML_BOOL, false},
	{"OFF", ROLL_YAML_BOOL, false},	      {".nan", ROLL_YAML_NOT_JSON, false},
	{".NaN", ROLL_YAML_NOT_JSON, false},  {".NAN", ROLL_YAML_NOT_JSON, false},
	{".inf", ROLL_YAML_NOT_JSON, false},  {".Inf", ROLL_YAML_NOT_JSON, false},
	{".INF", ROLL_YAML_NOT_JSON, false},  {"+.inf", ROLL_YAML_NOT_JSON, false},
	{"+.Inf", ROLL_YAML_NOT_JSON, false}, {"+.INF", ROLL_YAML_NOT_JSON, false},
	{"-.inf", ROLL_YAML_NOT_JSON, false}, {"-.Inf", ROLL_YAML_NOT_JSON, false},
	{"-.INF", ROLL_YAML_NOT_JSON, false},
};
#define WORD_MAX 5

static bool find_word(struct roll_str text, enum roll_yaml_kind *kind, json_t **out)
{
	size_t i;

	for (i = 0; text.n <= WORD_MAX && i < sizeof words / sizeof words[0]; i++) {
		if (!roll_str_eq_c(text, words[i].text))
			continue;
		*kind = words[i].kind;
		*out = NULL;
		if (*kind == ROLL_YAML_NULL)
			*out = json_null();
		else if (*kind == ROLL_YAML_BOOL)
			*out = json_boolean(words[i].is_true);
		return true;
	}
	return false;
}

/* Number with its underscores dropped; false if it has bytes that no number has. */
static bool clean_number(struct roll_str text, struct roll_buf *out)
{
	size_t i;

	for (i = 0; i < text.n; i++)
		if (text.p[i] == 0 || !strchr("0123456789abcdefABCDEFxXoO+-._", text.p[i]))
			return false;
	for (i = 0; i < text.n; i++)
		if (text.p[i] != '_')
			roll_buf_add_char(out, text.p[i]);
	return true;
}

static unsigned base_of(struct roll_str *digits)
{
	unsigned char mark;

	if (digits->n < 2 || digits->p[0] != '0')
		return 10;
	mark = roll_lower((unsigned char)digits->p[1]);
	if (mark != 'x' && mark != 'o' && mark != 'b') {
		*digits = roll_str_n(digits->p + 1, digits->n - 1);
		return 8;
	}
	*digits = roll_str_n(digits->p + 2, digits->n - 2);
	return mark == 'x' ? 16 : mark == 'o' ? 8 : 2;
}

static unsigned digit_value(unsigned char c)
{
	if (roll_is_digit(c))
		return c - '0';
	return roll_is_alpha(c) ? (unsigned)(roll_lower(c) - 'a') + 10 : 99;
}

/* A float that is whole becomes an integer, if it fits. NULL without memory. */
static json_t *number_of(double value)
{
	/* Both bounds are powers of two and so exact; the upper one does not fit. */
	if (value >= -9223372036854775808.0 && value < 9223372036854775808.0 &&
	    (double)(json_int_t)value == value)
		return json_integer((json_int_t)value);
	return json_real(value);
}

/* False if it is no integer, or a decimal one that is too wide. */
static bool parse_int(struct roll_str text, enum roll_yaml_kind *kind, json_t **out)
{
	bool is_negative = text.n && text.p[0] == '-', is_wide = false;
	uint64_t value = 0;
	double wide = 0;
	unsigned base, digit;
	size_t i;

	if (text.n && (text.p[0] == '-' || text.p[0] == '+'))
		text = roll_str_n(text.p + 1, text.n - 1);
	base = base_of(&text);
	if (!text.n)
		return false;
	for (i = 0; i < text.n; i++) {
		digit = digit_value((unsigned char)text.p[i]);
		if (digit >= base)
			return false;
		wide = wide * base + digit;
		if (value > ((uint64_t)INT64_MAX - digit) / base)
			is_wide = true;
		else
			value = value * base + digit;
	}
	if (is_wide && base == 10)
		return false; /* rounds once, as a float */
	*kind = ROLL_YAML_INT;
	if (!is_wide)
		*out = json_integer(is_negative ? -(json_int_t)value : (json_int_t)value);
	else if (wide - wide != 0) /* infinite */
		*kind = ROLL_YAML_NOT_JSON;
	else
		*out = number_of(is_negative ? -wide : wide);
	return true;
}

static size_t count_digits(struct roll_str text, size_t from)
{
	size_t n = 0;

	while (from + n < text.n && roll_is_digit((unsigned char)text.p[from + n]))
		n++;
	return n;
}

/*
 * [-+]? (.D+ | D+(.D*)?) ([eE][-+]?D+)? as the nearest text that JSON has, so that jansson, which
 * is free of the locale, can read it. False if it does not have that shape.
 */
static bool print_float(struct roll_str text, struct roll_buf *out)
{
	size_t at = 0, whole, fraction = 0, zeros = 0;

	if (at < text.n && (text.p[at] == '-' || text.p[at] == '+'))
		if (text.p[at++] == '-')
			roll_buf_add_char(out, '-');
	whole = count_digits(text, at);
	while (zeros + 1 < whole && text.p[at + zeros] == '0')
		zeros++;
	if (whole)
		roll_buf_add(out, text.p + at + zeros, whole - zeros);
	else
		roll_buf_add_char(out, '0');
	at += whole;
	roll_buf_add_char(out, '.');
	if (at < text.n && text.p[at] == '.') {
		fraction = count_digits(text, ++at);
		roll_buf_add(out, text.p + at, fraction);
		at += fraction;
	}
	if (whole + fraction == 0)
		return false;
	if (fraction == 0)
		roll_buf_add_char(out, '0');
	if (at == text.n)
		return true;
	if (text.p[at] != 'e' && text.p[at] != 'E')
		return false;
	roll_buf_add_char(out, 'e');
	at++;
	if (at < text.n && (text.p[at] == '-' || text.p[at] == '+'))
		roll_buf_add_char(out, text.p[at++]);
	if (count_digits(text, at) == 0 || at + count_digits(text, at) != text.n)
		return false;
	roll_buf_add(out, text.p + at, text.n - at);
	return true;
}

static enum roll_status parse_float(struct roll_str text, enum roll_yaml_kind *kind, json_t **out)
{
	struct roll_buf buf;
	json_error_t error;
	json_t *real;

	roll_buf_init(&buf, text.n + 8);
	if (!print_float(text, &buf) || buf.status != ROLL_OK)
		goto out;
	real = json_loadb(buf.p, buf.n, JSON_DECODE_ANY, &error);
	if (real) {
		*kind = ROLL_YAML_FLOAT;
		*out = number_of(json_real_value(real));
		json_decref(real);
	} else if (json_error_code(&error) == json_error_numeric_overflow) {
		*kind = ROLL_YAML_NOT_JSON;
	} else {
		buf.status = ROLL_ENOMEM;
	}
out:
	roll_buf_fini(&buf);
	return buf.status == ROLL_OK ? ROLL_OK : ROLL_ENOMEM;
}

static enum roll_status parse_number(struct roll_str text, enum roll_yaml_kind *kind, json_t **out)
{
	enum roll_status status = ROLL_OK;
	struct roll_buf clean;

	/* What begins with a dot is a float without underscores or nothing. */
	if (text.p[0] == '.')
		return parse_float(text, kind, out);
	roll_buf_init(&clean, text.n + 1);
	if (clean_number(text, &clean)) {
		status = clean.status;
		if (status == ROLL_OK && !parse_int(roll_buf_str(&clean), kind, out))
			status = parse_float(roll_buf_str(&clean), kind, out);
	}
	roll_buf_fini(&clean);
	return status;
}

enum roll_status roll_yaml_string(struct roll_str text, json_t **out)
{
	*out = json_stringn(text.n ? text.p : "", text.n);
	if (*out)
		return ROLL_OK;
	return roll_str_is_utf8(text) ? ROLL_ENOMEM : ROLL_EINVAL;
}

enum roll_status roll_yaml_resolve(struct roll_str text, enum roll_yaml_kind *kind, json_t **out)
{
	enum roll_status status = ROLL_OK;

	*kind = ROLL_YAML_STRING;
	*out = NULL;
	if (find_word(text, kind, out))
		return ROLL_OK;
	if (roll_is_digit((unsigned char)text.p[0]) || strchr("+-.", text.p[0]))
		status = parse_number(text, kind, out);
	if (status == ROLL_OK && *kind == ROLL_YAML_STRING)
		return roll_yaml_string(text, out);
	if (status == ROLL_OK && *kind != ROLL_YAML_NOT_JSON && !*out)
		return ROLL_ENOMEM;
	return status;
}
