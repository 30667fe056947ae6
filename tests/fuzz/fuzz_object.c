/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdint.h>

#include "base/json.h"
#include "model/translate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Any JSON as an object: whatever is emitted passes the check on stored rows, can be printed, and
 * is within the zone; findings are text. Specs are read as all three kinds whatever the kind says.
 */

#define ARENA_LIMIT (16u << 20)

static void on_finding(void *ctx, const struct roll_finding *finding)
{
	(void)ctx;
	assert(finding->reason < ROLL_REASON_COUNT);
	assert(finding->text.n > 0);
	assert(roll_str_is_utf8(finding->text) && roll_str_is_utf8(finding->path));
}

static const struct roll_findings findings = {on_finding, NULL};

static void check_rrset(const struct roll_rrset *rrset)
{
	struct roll_buf text;

	assert(rrset->count > 0 && roll_type_find(rrset->type));
	assert(rrset->has_ttl ? rrset->ttl <= ROLL_TTL_MAX : rrset->ttl == 0);
	assert(rrset->count == 1 || !roll_type_find(rrset->type)->is_singleton);
	roll_buf_init(&text, 1u << 20);
	for (size_t i = 0; i < rrset->count; i++) {
		assert(roll_rdata_check(rrset->type, rrset->rdata[i]) == ROLL_OK);
		assert(roll_rdata_print(rrset->type, rrset->rdata[i], ROLL_RDATA_PDNS, &text) ==
		       ROLL_OK);
		assert(roll_rdata_print(rrset->type, rrset->rdata[i], ROLL_RDATA_ZONE, &text) ==
		       ROLL_OK);
		roll_buf_reset(&text);
	}
	roll_buf_fini(&text);
}

static void check_recordset(const json_t *spec, const char *domain, struct roll_arena *arena)
{
	struct roll_recordset_spec set;
	struct roll_name zone;
	enum roll_status status;

	if (domain)
		assert(roll_name_parse(roll_str_c(domain), &zone, NULL) == ROLL_OK);
	status = roll_translate_recordset(spec, domain ? &zone : NULL, arena, &set, &findings);
	assert(status == ROLL_OK || status == ROLL_EINVAL);
	assert(domain || set.owned_count == 0);
	assert(roll_str_eq(set.zone_ref, roll_recordset_zone_ref(spec)));
	for (size_t i = 0; i < set.owned_count; i++) {
		assert(set.owned[i].rrset.type == set.type);
		assert(roll_name_is_within(&set.owned[i].owner, &zone));
		assert(i == 0 || roll_name_cmp(&set.owned[i - 1].owner, &set.owned[i].owner) < 0);
		check_rrset(&set.owned[i].rrset);
	}
	roll_arena_reset(arena);
}

static void check_spec(const json_t *spec)
{
	struct roll_class_spec class;
	struct roll_zone_spec zone;
	struct roll_arena arena;
	enum roll_status status;

	roll_arena_init(&arena, ARENA_LIMIT);
	check_recordset(spec, NULL, &arena);
	check_recordset(spec, "example.com", &arena);
	check_recordset(spec, "com", &arena);
	status = roll_translate_zone(spec, &arena, &zone, &findings);
	assert(status == ROLL_OK || status == ROLL_EINVAL);
	assert((status == ROLL_OK) == (roll_name_labels(&zone.domain) > 0));
	status = roll_translate_class(spec, &arena, &class, &findings);
	assert(status == ROLL_OK || status == ROLL_EINVAL);
	for (size_t i = 1; i < class.nameserver_count; i++)
		assert(roll_name_cmp(&class.nameservers[i - 1], &class.nameservers[i]) < 0);
	roll_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct roll_object object;
	json_t *json;

	if (roll_json_parse(roll_str_n((const char *)data, size), &json, NULL) != ROLL_OK)
		return 0;
	if (roll_object_decode(json, &object, &findings) == ROLL_OK) {
		assert(object.name.n > 0 && object.name.n <= 253);
		assert((object.ns.n == 0) == (object.kind == ROLL_KIND_CLASS));
		check_spec(object.spec);
	} else {
		check_spec(json);
	}
	json_decref(json);
	return 0;
}
