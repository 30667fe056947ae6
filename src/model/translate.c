/* SPDX-License-Identifier: Apache-2.0 */
#include "model/translate.h"

#include <stdio.h>
#include <stdlib.h>

#include "model/field.h"
#include "model/owner.h"

/* spec itself; findings of its members are relative to it. */
static bool have_spec(struct roll_check at, const json_t *spec)
{
	if (json_is_object(spec))
		return true;
	roll_find(at.findings, ROLL_FAULT, ROLL_REASON_INVALID, at.path, "is missing or no map");
	return false;
}

static int compare_names(const void *a, const void *b)
{
	return roll_name_cmp((const struct roll_name *)a, (const struct roll_name *)b);
}

static bool read_server(struct roll_check at, const json_t *json, struct roll_name *out)
{
	struct roll_err err = {0};
	struct roll_str text;

	if (!json_is_string(json)) {
		roll_find(at.findings, ROLL_FAULT, ROLL_REASON_INVALID, at.path,
			  "is %s; expected a host name", roll_field_kind(json));
		return false;
	}
	text = roll_str_trim(roll_str_n(json_string_value(json), json_string_length(json)));
	if (roll_name_parse(text, out, &err) != ROLL_OK) {
		roll_find(at.findings, ROLL_FAULT, ROLL_REASON_INVALID, at.path,
			  "is not a host name: %s", err.text);
		return false;
	}
	/* PowerDNS refuses other targets of NS (row T7). */
	if (!roll_name_is_hostname(out)) {
		roll_find(at.findings, ROLL_FAULT, ROLL_REASON_INVALID, at.path,
			  "is not a host name; expected letters, digits and inner hyphens");
		return false;
	}
	if (roll_name_labels(out) == 1)
		roll_find(at.findings, ROLL_WARNING, ROLL_REASON_SUSPICIOUS, at.path,
			  "is a name at the top level; no domain is added to it");
	return true;
}

/* Sorted, without duplicates; sorting finds them, as the list may be long. */
static enum roll_status read_servers(struct roll_check at, const json_t *list,
				     struct roll_arena *arena, struct roll_class_spec *out)
{
	size_t n = json_array_size(list), i, kept = 0;
	char path[ROLL_PATH_SIZE], shown[ROLL_NAME_TEXT_SIZE];
	struct roll_check in = {at.findings, path};
	struct roll_name *names;

	if (n == 0) {
		roll_find(at.findings, ROLL_WARNING, ROLL_REASON_SUSPICIOUS, at.path,
			  "is empty: zones of this class need SOA and NS of their own");
		return ROLL_OK;
	}
	names = (struct roll_name *)roll_arena_array(arena, n, sizeof *names);
	if (!names)
		return arena->status;
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof path, "%s[%zu]", at.path, i);
		if (read_server(in, json_array_get(list, i), &names[kept]))
			kept++;
	}
	if (kept > 1)
		qsort(names, kept, sizeof *names, compare_names);
	for (i = 0; i < kept; i++) {
		if (i > 0 && roll_name_eq(&names[i], &names[i - 1]))
			roll_find(at.findings, ROLL_WARNING, ROLL_REASON_DROPPED, at.path,
				  "holds %s more than once", roll_name_show(&names[i], shown));
		else
			names[out->nameserver_count++] = names[i];
	}
	out->nameservers = names;
	return ROLL_OK;
}

static enum roll_status read_policy(struct roll_check at, const json_t *policy,
				    struct roll_arena *arena, struct roll_class_spec *out)
{
	static const char *const names[] = {"mode", "static"};
	static const char *const static_names[] = {"servers"};
	struct roll_check in = {at.findings, "spec.nameServerPolicy.static"};
	struct roll_check list_at = {at.findings, "spec.nameServerPolicy.static.servers"};
	json_t *members[2], *servers, *body, *list;
	struct roll_str mode;

	roll_field_split(at, policy, names, 2, members);
	if (!roll_field_text(at, "mode", members[0], &mode))
		return ROLL_OK;
	if (!members[0]) {
		roll_field_find(at, ROLL_WARNING, ROLL_REASON_INVALID, "mode",
				"is missing; taken as \"Static\"");
	} else if (!roll_str_eq_c(mode, "Static")) {
		roll_field_find(at, ROLL_FAULT, ROLL_REASON_INVALID, "mode",
				"is not known; expected \"Static\"");
		return ROLL_OK;
	}
	if (!roll_field_object(at, "static", members[1], &body) || !body)
		return ROLL_OK;
	roll_field_split(in, body, static_names, 1, &servers);
	if (!roll_field_array(in, "servers", servers, &list) || !list)
		return ROLL_OK;
	return read_servers(list_at, list, arena, out);
}

static void read_defaults(struct roll_check at, const json_t *defaults, struct roll_class_spec *out)
{
	static const char *const names[] = {"defaultTTL"};
	json_t *ttl;
	int64_t seconds;

	roll_field_split(at, defaults, names, 1, &ttl);
	if (ttl && roll_field_number(at, names[0], ttl, ROLL_TTL_MAX, &seconds)) {
		out->has_default_ttl = true;
		out->default_ttl = (uint32_t)seconds;
	}
}

enum roll_status roll_translate_class(const json_t *spec, struct roll_arena *arena,
				      struct roll_class_spec *out,
				      const struct roll_findings *findings)
{
	static const char *const names[] = {"controllerName", "nameServerPolicy", "defaults"};
	struct roll_check at = {findings, "spec"};
	struct roll_check policy_at = {findings, "spec.nameServerPolicy"};
	struct roll_check defaults_at = {findings, "spec.defaults"};
	json_t *members[3], *policy, *defaults;
	enum roll_status status = ROLL_OK;
	struct roll_str controller;

	*out = (struct roll_class_spec){0};
	if (!have_spec(at, spec))
		return ROLL_EINVAL;
	roll_field_split(at, spec, names, 3, members);
	if (roll_field_text(at, names[0], members[0], &controller) && controller.n)
		out->controller = roll_arena_str(arena, controller);
	if (roll_field_object(at, names[1], members[1], &policy) && policy)
		status = read_policy(policy_at, policy, arena, out);
	if (roll_field_object(at, names[2], members[2], &defaults) && defaults)
		read_defaults(defaults_at, defaults, out);
	return status != ROLL_OK ? status : arena->status;
}

enum roll_status roll_translate_zone(const json_t *spec, struct roll_arena *arena,
				     struct roll_zone_spec *out,
				     const struct roll_findings *findings)
{
	static const char *const names[] = {"domainName", "dnsZoneClassName"};
	struct roll_check at = {findings, "spec"}, domain_at = {findings, "spec.domainName"};
	json_t *members[2];
	struct roll_str text;
	enum roll_status status = ROLL_EINVAL;

	*out = (struct roll_zone_spec){.domain = roll_name_root};
	if (!have_spec(at, spec))
		return ROLL_EINVAL;
	roll_field_split(at, spec, names, 2, members);
	if (roll_field_text(at, names[0], members[0], &text))
		status = roll_owner_parse_domain(domain_at, text, &out->domain);
	if (roll_field_text(at, names[1], members[1], &text) && text.n) {
		if (roll_field_is_subdomain(text))
			out->class_name = roll_arena_str(arena, text);
		else
			roll_field_find(at, ROLL_FAULT, ROLL_REASON_INVALID, names[1],
					"is not the name of an object");
	}
	return arena->status != ROLL_OK ? arena->status : status;
}
