/* SPDX-License-Identifier: Apache-2.0 */
#include "model/entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/field.h"

#define MEMBERS_MAX 7

/*
 * NUMBER must be there; OPTIONAL is a number that is 0 if absent. TEXT is the empty slice if
 * absent: what that means is the builder's to say.
 */
enum member_kind { TEXT, NUMBER, OPTIONAL, PARAMS };

struct member {
	const char *name;
	enum member_kind kind;
	int64_t max;
};

struct shape {
	uint16_t type;
	size_t count;
	struct member members[MEMBERS_MAX];
};

/* Members in the order in which build() takes them. */
static const struct shape shapes[] = {
	{ROLL_TYPE_MX, 2, {{"preference", NUMBER, 65535}, {"exchange", TEXT, 0}}},
	{ROLL_TYPE_SRV,
	 4,
	 {{"priority", NUMBER, 65535},
	  {"weight", NUMBER, 65535},
	  {"port", NUMBER, 65535},
	  {"target", TEXT, 0}}},
	{ROLL_TYPE_CAA, 3, {{"flag", NUMBER, 255}, {"tag", TEXT, 0}, {"value", TEXT, 0}}},
	{ROLL_TYPE_TLSA,
	 4,
	 {{"usage", NUMBER, 255},
	  {"selector", NUMBER, 255},
	  {"matchingType", NUMBER, 255},
	  {"certData", TEXT, 0}}},
	{ROLL_TYPE_SVCB,
	 3,
	 {{"priority", NUMBER, 65535}, {"target", TEXT, 0}, {"params", PARAMS, 0}}},
	{ROLL_TYPE_HTTPS,
	 3,
	 {{"priority", NUMBER, 65535}, {"target", TEXT, 0}, {"params", PARAMS, 0}}},
	{ROLL_TYPE_SOA,
	 7,
	 {{"mname", TEXT, 0},
	  {"rname", TEXT, 0},
	  {"serial", OPTIONAL, UINT32_MAX},
	  {"refresh", OPTIONAL, UINT32_MAX},
	  {"retry", OPTIONAL, UINT32_MAX},
	  {"expire", OPTIONAL, UINT32_MAX},
	  {"ttl", OPTIONAL, UINT32_MAX}}},
};

/* A AAAA CNAME ALIAS TXT NS PTR */
static const struct shape content_shape = {ROLL_TYPE_ENT, 1, {{"content", TEXT, 0}}};

/* One member as read; which part is used follows from its kind. */
struct value {
	int64_t number;
	struct roll_str text;
	struct roll_svc_param *params;
	size_t param_count;
};

static const struct shape *find_shape(uint16_t type)
{
	size_t i;

	for (i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		if (shapes[i].type == type)
			return &shapes[i];
	return &content_shape;
}

static enum roll_status read_params(struct roll_check at, const struct member *member,
				    const json_t *json, struct value *out)
{
	char path[ROLL_PATH_SIZE];
	struct roll_check in = {at.findings, path};
	enum roll_status status = ROLL_OK;
	struct roll_str text;
	const char *key;
	json_t *params, *param;
	size_t n;

	if (!roll_field_object(at, member->name, json, &params))
		return ROLL_EINVAL;
	n = json_object_size(params);
	if (n == 0)
		return ROLL_OK;
	out->params = (struct roll_svc_param *)calloc(n, sizeof *out->params);
	if (!out->params)
		return ROLL_ENOMEM;
	snprintf(path, sizeof path, "%s.%s", at.path, member->name);
	json_object_foreach (params, key, param) {
		if (!roll_field_text(in, key, param, &text)) {
			status = ROLL_EINVAL;
			continue;
		}
		out->params[out->param_count].key = roll_str_c(key);
		out->params[out->param_count++].value = text;
	}
	return status;
}

static enum roll_status read_member(struct roll_check at, const struct member *member,
				    const json_t *json, struct value *out)
{
	switch (member->kind) {
	case TEXT:
		return roll_field_text(at, member->name, json, &out->text) ? ROLL_OK : ROLL_EINVAL;
	case NUMBER:
		if (json)
			break;
		roll_field_find(at, ROLL_FAULT, ROLL_REASON_INVALID, member->name,
				"is missing; expected a whole number from 0 to %lld",
				(long long)member->max);
		return ROLL_EINVAL;
	case OPTIONAL:
		break;
	case PARAMS:
		return read_params(at, member, json, out);
	}
	return roll_field_number(at, member->name, json, member->max, &out->number) ? ROLL_OK
										    : ROLL_EINVAL;
}

static enum roll_status build(struct roll_check at, uint16_t type, const struct value *v,
			      struct roll_buf *wire)
{
	struct roll_soa_text soa;

	switch (type) {
	case ROLL_TYPE_A:
		return roll_rdata_a(at, v[0].text, wire);
	case ROLL_TYPE_AAAA:
		return roll_rdata_aaaa(at, v[0].text, wire);
	case ROLL_TYPE_CNAME:
	case ROLL_TYPE_ALIAS:
	case ROLL_TYPE_NS:
	case ROLL_TYPE_PTR:
		return roll_rdata_target(at, type, v[0].text, wire);
	case ROLL_TYPE_TXT:
		return roll_rdata_txt(at, v[0].text, wire);
	case ROLL_TYPE_MX:
		return roll_rdata_mx(at, v[0].number, v[1].text, wire);
	case ROLL_TYPE_SRV:
		return roll_rdata_srv(at, v[0].number, v[1].number, v[2].number, v[3].text, wire);
	case ROLL_TYPE_CAA:
		return roll_rdata_caa(at, v[0].number, v[1].text, v[2].text, wire);
	case ROLL_TYPE_TLSA:
		return roll_rdata_tlsa(at, v[0].number, v[1].number, v[2].number, v[3].text, wire);
	case ROLL_TYPE_SVCB:
	case ROLL_TYPE_HTTPS:
		return roll_rdata_svcb(at, v[0].number, v[1].text, v[2].params, v[2].param_count,
				       wire);
	case ROLL_TYPE_SOA:
		soa = (struct roll_soa_text){v[0].text,	  v[1].text,   v[2].number, v[3].number,
					     v[4].number, v[5].number, v[6].number};
		return roll_rdata_soa(at, &soa, wire);
	default:
		return ROLL_EINVAL;
	}
}

enum roll_status roll_entry_rdata(struct roll_check at, uint16_t type, const json_t *typed,
				  struct roll_buf *wire)
{
	const struct shape *shape = find_shape(type);
	struct value values[MEMBERS_MAX] = {0};
	const char *names[MEMBERS_MAX];
	json_t *members[MEMBERS_MAX];
	enum roll_status status = ROLL_OK, one;
	size_t start = wire->n, i;
	bool can_build = true;

	for (i = 0; i < shape->count; i++)
		names[i] = shape->members[i].name;
	roll_field_split(at, typed, names, shape->count, members);
	for (i = 0; i < shape->count; i++) {
		one = read_member(at, &shape->members[i], members[i], &values[i]);
		if (one == ROLL_ENOMEM) {
			status = one;
			goto out;
		}
		if (one == ROLL_OK)
			continue;
		status = one;
		/*
		 * A number at fault is replaced by one that raises no doubts, so that the other
		 * members are checked as well. (0 would turn SVCB into its alias form.)
		 */
		if (shape->members[i].kind == TEXT || shape->members[i].kind == PARAMS)
			can_build = false;
		else
			values[i].number = shape->members[i].max == 65535;
	}
	if (can_build) {
		one = build(at, type, values, wire);
		status = one != ROLL_OK ? one : status;
	}
	if (status != ROLL_OK)
		roll_buf_truncate(wire, start);
out:
	for (i = 0; i < shape->count; i++)
		free(values[i].params);
	return status;
}
