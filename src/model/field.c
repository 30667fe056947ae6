/* SPDX-License-Identifier: Apache-2.0 */
#include "model/field.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LABEL_MAX 63
#define SUBDOMAIN_MAX 253
#define KEY_SHOWN 80

void roll_field_find(struct roll_check at, enum roll_severity severity, enum roll_reason reason,
		     const char *key, const char *fmt, ...)
{
	char path[ROLL_PATH_SIZE], shown[KEY_SHOWN], text[512];
	va_list args;

	if (!at.findings)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	roll_str_show(roll_str_c(key), shown, sizeof shown);
	snprintf(path, sizeof path, "%s%s%s", at.path, at.path[0] && key[0] ? "." : "", shown);
	roll_find(at.findings, severity, reason, path, "%s", text);
}

void roll_field_split(struct roll_check at, const json_t *object, const char *const *names,
		      size_t count, json_t **values)
{
	json_t *members = (json_t *)object; /* jansson's iterators are not const-correct */
	const char *key;
	json_t *value;
	size_t i;

	memset(values, 0, count * sizeof *values);
	json_object_foreach (members, key, value) {
		for (i = 0; i < count && strcmp(key, names[i]) != 0; i++)
			;
		if (i == count)
			roll_field_find(at, ROLL_WARNING, ROLL_REASON_UNKNOWN_FIELD, key,
					"not a field of the API; ignored");
		else if (!json_is_null(value))
			values[i] = value;
	}
}

const char *roll_field_kind(const json_t *value)
{
	if (!value)
		return "missing";
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return "a map";
	case JSON_ARRAY:
		return "a list";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
		return "a number";
	case JSON_REAL:
		return "a fraction or too large";
	case JSON_TRUE:
	case JSON_FALSE:
		return "a truth value";
	case JSON_NULL:
		break;
	}
	return "null";
}

bool roll_field_text(struct roll_check at, const char *key, const json_t *value,
		     struct roll_str *out)
{
	*out = roll_str_n(NULL, 0);
	if (!value)
		return true;
	if (!json_is_string(value)) {
		roll_field_find(at, ROLL_FAULT, ROLL_REASON_INVALID, key,
				"is %s; expected a string%s", roll_field_kind(value),
				json_is_number(value) || json_is_boolean(value)
					? " (in YAML write it in quotes)"
					: "");
		return false;
	}
	*out = roll_str_n(json_string_value(value), json_string_length(value));
	return true;
}

bool roll_field_number(struct roll_check at, const char *key, const json_t *value, int64_t max,
		       int64_t *out)
{
	*out = 0;
	if (!value)
		return true;
	if (!json_is_integer(value)) {
		roll_field_find(at, ROLL_FAULT, ROLL_REASON_INVALID, key,
				"is %s; expected a whole number from 0 to %" PRId64,
				roll_field_kind(value), max);
		return false;
	}
	if (json_integer_value(value) < 0 || json_integer_value(value) > max) {
		roll_field_find(at, ROLL_FAULT, ROLL_REASON_INVALID, key,
				"%" JSON_INTEGER_FORMAT " is out of range; expected 0 to %" PRId64,
				json_integer_value(value), max);
		return false;
	}
	*out = json_integer_value(value);
	return true;
}

static bool is_typed(struct roll_check at, const char *key, const json_t *value, json_type type,
		     json_t **out)
{
	*out = NULL;
	if (!value)
		return true;
	if (json_typeof(value) != type) {
		roll_field_find(at, ROLL_FAULT, ROLL_REASON_INVALID, key, "is %s; expected %s",
				roll_field_kind(value), type == JSON_OBJECT ? "a map" : "a list");
		return false;
	}
	*out = (json_t *)value;
	return true;
}

bool roll_field_object(struct roll_check at, const char *key, const json_t *value, json_t **out)
{
	return is_typed(at, key, value, JSON_OBJECT, out);
}

bool roll_field_array(struct roll_check at, const char *key, const json_t *value, json_t **out)
{
	return is_typed(at, key, value, JSON_ARRAY, out);
}

static bool is_alnum_lower(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Letters, digits and hyphens, no hyphen at either end. */
static bool is_label_body(struct roll_str text)
{
	size_t i;

	if (!text.n || !is_alnum_lower(text.p[0]) || !is_alnum_lower(text.p[text.n - 1]))
		return false;
	for (i = 0; i < text.n; i++)
		if (!is_alnum_lower(text.p[i]) && text.p[i] != '-')
			return false;
	return true;
}

bool roll_field_is_label(struct roll_str text)
{
	return text.n <= LABEL_MAX && is_label_body(text);
}

/* Kubernetes bounds the whole, not each label. */
bool roll_field_is_subdomain(struct roll_str text)
{
	if (!text.n || text.n > SUBDOMAIN_MAX || text.p[text.n - 1] == '.')
		return false;
	while (text.n)
		if (!is_label_body(roll_str_cut(&text, '.')))
			return false;
	return true;
}
