/* SPDX-License-Identifier: Apache-2.0 */
#include "model/object.h"

#include <string.h>

#include "base/clock.h"
#include "model/field.h"

#define UID_MAX 253

static const struct {
	const char *text;
	const char *plural;
} kinds[ROLL_KIND_COUNT] = {
	[ROLL_KIND_CLASS] = {"DNSZoneClass", "dnszoneclasses"},
	[ROLL_KIND_ZONE] = {"DNSZone", "dnszones"},
	[ROLL_KIND_RECORDSET] = {"DNSRecordSet", "dnsrecordsets"},
};

const char *roll_kind_text(enum roll_kind kind)
{
	return kinds[kind].text;
}

const char *roll_kind_plural(enum roll_kind kind)
{
	return kinds[kind].plural;
}

bool roll_kind_find(struct roll_str text, enum roll_kind *out)
{
	size_t i;

	for (i = 0; i < ROLL_KIND_COUNT; i++) {
		if (roll_str_eq_c(text, kinds[i].text)) {
			*out = (enum roll_kind)i;
			return true;
		}
	}
	return false;
}

/* The member as a string; NULL members and those of another type give the empty slice. */
static struct roll_str text_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_string(value))
		return roll_str_n(NULL, 0);
	return roll_str_n(json_string_value(value), json_string_length(value));
}

static json_t *member(const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	return json_is_null(value) ? NULL : value;
}

/* Of the API group's version that we read? ENOENT for another group. */
static enum roll_status check_version(struct roll_check at, const json_t *json)
{
	struct roll_str version = text_of(json, "apiVersion");
	struct roll_str group = roll_str_cut(&version, '/');
	char shown[80];

	if (!member(json, "apiVersion")) {
		roll_field_find(at, ROLL_FAULT, ROLL_REASON_INVALID, "apiVersion",
				"is missing; expected %s/%s", ROLL_API_GROUP, ROLL_API_VERSION);
		return ROLL_EINVAL;
	}
	if (!roll_str_eq_c(group, ROLL_API_GROUP))
		return ROLL_ENOENT;
	if (!roll_str_eq_c(version, ROLL_API_VERSION)) {
		roll_field_find(at, ROLL_FAULT, ROLL_REASON_INVALID, "apiVersion",
				"version \"%s\" is not known; expected %s/%s",
				roll_str_show(version, shown, sizeof shown), ROLL_API_GROUP,
				ROLL_API_VERSION);
		return ROLL_EINVAL;
	}
	return ROLL_OK;
}

static bool decode_name(struct roll_check at, const json_t *metadata, struct roll_object *out)
{
	char shown[80];

	if (!roll_field_text(at, "name", member(metadata, "name"), &out->name))
		return false;
	if (roll_field_is_subdomain(out->name))
		return true;
	if (out->name.n)
		roll_field_find(at, ROLL_FAULT, ROLL_REASON_INVALID, "name",
				"\"%s\" is not an object name; expected lower-case letters, "
				"digits, '-' and '.', beginning and ending with a letter or digit",
				roll_str_show(out->name, shown, sizeof shown));
	else
		roll_field_find(at, ROLL_FAULT, ROLL_REASON_INVALID, "name", "is missing%s",
				member(metadata, "generateName")
					? "; generateName works in an API server only"
					: "");
	return false;
}

static bool decode_namespace(struct roll_check at, const json_t *metadata, struct roll_object *out)
{
	char shown[80];

	if (!roll_field_text(at, "namespace", member(metadata, "namespace"), &out->ns))
		return false;
	if (out->kind == ROLL_KIND_CLASS) {
		if (out->ns.n)
			roll_field_find(at, ROLL_WARNING, ROLL_REASON_SUSPICIOUS, "namespace",
					"%s is cluster-scoped; the namespace is ignored",
					roll_kind_text(out->kind));
		out->ns = roll_str_n(NULL, 0);
		return true;
	}
	if (!out->ns.n) {
		out->ns = roll_str_c("default");
		return true;
	}
	if (roll_field_is_label(out->ns))
		return true;
	roll_field_find(at, ROLL_FAULT, ROLL_REASON_INVALID, "namespace",
			"\"%s\" is not a namespace; expected at most 63 lower-case letters, digits "
			"and inner hyphens",
			roll_str_show(out->ns, shown, sizeof shown));
	return false;
}

/* False also if the member is there but of no use, which is reported. */
static bool decode_time(struct roll_check at, const json_t *metadata, const char *key, int64_t *out)
{
	const json_t *value = member(metadata, key);

	if (!value)
		return false;
	if (json_is_string(value) && roll_time_parse(text_of(metadata, key), out) == ROLL_OK)
		return true;
	roll_field_find(at, ROLL_WARNING, ROLL_REASON_INVALID, key,
			"is not a time such as \"2026-01-31T12:00:00Z\"; ignored");
	return false;
}

/* Members that do not decide whether the object is usable. */
static void decode_rest(struct roll_check at, const json_t *metadata, struct roll_object *out)
{
	const json_t *uid = member(metadata, "uid");
	const json_t *generation = member(metadata, "generation");
	int64_t when;

	out->uid = text_of(metadata, "uid");
	if ((uid && !json_is_string(uid)) || out->uid.n > UID_MAX) {
		roll_field_find(at, ROLL_WARNING, ROLL_REASON_INVALID, "uid",
				"is not a string of at most %d bytes; ignored", UID_MAX);
		out->uid = roll_str_n(NULL, 0);
	}
	/* Opaque by contract: no finding if it is not a number. */
	if (roll_str_u64(text_of(metadata, "resourceVersion"), UINT64_MAX, &out->revision) !=
	    ROLL_OK)
		out->revision = 0;
	if (json_is_integer(generation) && json_integer_value(generation) >= 0)
		out->generation = json_integer_value(generation);
	else if (generation)
		roll_field_find(at, ROLL_WARNING, ROLL_REASON_INVALID, "generation",
				"is not a whole number from 0; ignored");
	if (decode_time(at, metadata, "creationTimestamp", &when))
		out->created_s = when;
	/* Something there that is no time proves nothing: the object stays. */
	out->is_terminating = decode_time(at, metadata, "deletionTimestamp", &when);
}

/* Whoever wrote it: nothing of a status is reported, only what is of use is taken from it. */
static void decode_status(const json_t *status, struct roll_object *out)
{
	const json_t *serial = member(status, "serial");
	const json_t *condition;
	size_t i;

	json_array_foreach (member(status, "conditions"), i, condition) {
		struct roll_str type = text_of(condition, "type");
		const json_t *observed = member(condition, "observedGeneration");

		if ((roll_str_eq_c(type, "Accepted") || roll_str_eq_c(type, "Programmed")) &&
		    out->generation && json_integer_value(observed) == out->generation)
			out->is_reported = true;
	}
	if (out->kind == ROLL_KIND_ZONE && json_integer_value(serial) > 0 &&
	    json_integer_value(serial) <= UINT32_MAX)
		out->serial = (uint32_t)json_integer_value(serial);
}

enum roll_status roll_object_decode(const json_t *json, struct roll_object *out,
				    const struct roll_findings *findings)
{
	struct roll_check root = {findings, ""}, meta = {findings, "metadata"};
	enum roll_status status;
	json_t *metadata;
	bool has_name, has_namespace;

	memset(out, 0, sizeof *out);
	out->created_s = INT64_MAX;
	if (!json_is_object(json)) {
		roll_field_find(root, ROLL_FAULT, ROLL_REASON_INVALID, "",
				"is %s; expected a Kubernetes object", roll_field_kind(json));
		return ROLL_EINVAL;
	}
	if (!roll_kind_find(text_of(json, "kind"), &out->kind))
		return ROLL_ENOENT;
	status = check_version(root, json);
	if (status != ROLL_OK)
		return status;
	if (!roll_field_object(root, "metadata", member(json, "metadata"), &metadata))
		return ROLL_EINVAL;
	if (!metadata) {
		roll_field_find(root, ROLL_FAULT, ROLL_REASON_INVALID, "metadata",
				"is missing; expected at least a name");
		return ROLL_EINVAL;
	}
	has_name = decode_name(meta, metadata, out);
	has_namespace = decode_namespace(meta, metadata, out);
	decode_rest(meta, metadata, out);
	decode_status(member(json, "status"), out);
	if (json_is_object(json_object_get(json, "spec")))
		out->spec = json_object_get(json, "spec");
	return has_name && has_namespace ? ROLL_OK : ROLL_EINVAL;
}
