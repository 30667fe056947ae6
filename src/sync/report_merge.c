/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/json.h"
#include "sync/report_state.h"

/* What an object's status should say, put into the one that it has. */

static const json_t *find_condition(const json_t *list, struct roll_str type)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *item = json_array_get(list, i);

		if (roll_str_eq(roll_json_str(item, "type"), type))
			return item;
	}
	return NULL;
}

static json_t *merge_condition(const json_t *wanted, const json_t *present, int64_t generation,
			       int64_t now_s)
{
	struct roll_str since = roll_json_str(present, "lastTransitionTime");
	char now[ROLL_TIME_SIZE];
	json_t *out = json_copy((json_t *)(uintptr_t)wanted);
	int64_t at;

	if (!present || roll_time_parse(since, &at) ||
	    !roll_str_eq(roll_json_str(present, "status"), roll_json_str(wanted, "status")))
		since = roll_str_c(roll_time_print(now_s, now));
	if (json_object_set_new(out, "observedGeneration", json_integer(generation)) ||
	    json_object_set_new(out, "lastTransitionTime", roll_report_text(since))) {
		json_decref(out);
		return NULL;
	}
	return out;
}

/* Those of others where they are, ours in their places or behind. NULL: no memory. */
static json_t *merge_conditions(const json_t *wanted, const json_t *present, int64_t generation,
				int64_t now_s)
{
	json_t *out = json_array();
	int failed = 0;
	size_t i;

	for (i = 0; i < json_array_size(present); i++) {
		json_t *item = json_array_get(present, i);
		const json_t *ours = find_condition(wanted, roll_json_str(item, "type"));

		failed |= ours ? json_array_append_new(
					 out, merge_condition(ours, item, generation, now_s))
			       : json_array_append(out, item);
	}
	for (i = 0; i < json_array_size(wanted); i++) {
		const json_t *item = json_array_get(wanted, i);

		if (!find_condition(present, roll_json_str(item, "type")))
			failed |= json_array_append_new(
				out, merge_condition(item, NULL, generation, now_s));
	}
	if (!failed && out)
		return out;
	json_decref(out);
	return NULL;
}

/* Both lists are sorted as a rule, so the next name is where the last one was, or behind it. */
static const json_t *find_record(const json_t *list, struct roll_str name, size_t *at)
{
	size_t count = json_array_size(list), i;

	for (i = 0; i < count; i++) {
		size_t index = (*at + i) % count;
		const json_t *item = json_array_get(list, index);

		if (!roll_str_eq(roll_json_str(item, "name"), name))
			continue;
		*at = index + 1;
		return item;
	}
	return NULL;
}

static json_t *merge_records(const json_t *wanted, const json_t *present, int64_t generation,
			     int64_t now_s)
{
	json_t *out = json_array();
	size_t at = 0;

	for (size_t i = 0; i < json_array_size(wanted); i++) {
		const json_t *item = json_array_get(wanted, i);
		const json_t *old = find_record(present, roll_json_str(item, "name"), &at);
		json_t *made = json_copy((json_t *)(uintptr_t)item);

		if (json_object_set_new(made, "conditions",
					merge_conditions(roll_json_array(item, "conditions"),
							 roll_json_array(old, "conditions"),
							 generation, now_s))) {
			json_decref(made);
			made = NULL;
		}
		if (json_array_append_new(out, made)) {
			json_decref(out);
			return NULL;
		}
	}
	return out;
}

/* The patch has the member only if it would change something. False: no memory. */
static bool put(json_t *patch, const json_t *present, const char *key, json_t *value)
{
	const json_t *old = json_object_get(present, key);
	bool is_good = value != NULL;

	if (is_good &&
	    (json_is_null(value) ? old != NULL : !json_equal(value, (json_t *)(uintptr_t)old)))
		return json_object_set_new(patch, key, value) == 0;
	json_decref(value);
	return is_good;
}

enum roll_status roll_report_merge(const json_t *wanted, const json_t *present, int64_t generation,
				   int64_t now_s, json_t **out)
{
	static const char *const of_zones[] = {"nameservers", "recordCount", "serial"};
	json_t *patch = json_object(), *list;
	bool is_good;

	*out = NULL;
	is_good = patch &&
		  put(patch, present, "conditions",
		      merge_conditions(roll_json_array(wanted, "conditions"),
				       roll_json_array(present, "conditions"), generation, now_s));
	list = roll_json_array(wanted, "recordSets");
	if (is_good && list)
		is_good = put(patch, present, "recordSets",
			      merge_records(list, roll_json_array(present, "recordSets"),
					    generation, now_s));
	for (size_t i = 0; i < sizeof of_zones / sizeof *of_zones; i++) {
		json_t *value = json_object_get(wanted, of_zones[i]);

		if (is_good && json_object_get(wanted, "recordCount"))
			is_good = put(patch, present, of_zones[i],
				      value ? json_incref(value) : json_null());
	}
	if (!is_good || json_object_size(patch) == 0) {
		json_decref(patch);
		return is_good ? ROLL_OK : ROLL_ENOMEM;
	}
	*out = patch;
	return ROLL_OK;
}

struct roll_str roll_report_condition(const json_t *status, const char *type, const char *member)
{
	return roll_json_str(
		find_condition(roll_json_array(status, "conditions"), roll_str_c(type)), member);
}

bool roll_report_is_foreign(const json_t *wanted)
{
	return roll_str_starts(roll_report_condition(wanted, "Accepted", "message"),
			       ROLL_REPORT_FOREIGN);
}

bool roll_report_may_overwrite(const json_t *wanted, const json_t *present)
{
	struct roll_str status = roll_report_condition(present, "Accepted", "status");
	struct roll_str ours = roll_report_condition(wanted, "Accepted", "message");
	struct roll_str theirs = roll_report_condition(present, "Accepted", "message");

	if (!roll_report_is_foreign(wanted) || !status.n || roll_str_eq_c(status, "Unknown") ||
	    roll_str_eq(ours, theirs))
		return true;
	if (!roll_str_starts(theirs, ROLL_REPORT_FOREIGN))
		return false;
	roll_str_cut(&ours, '"');
	roll_str_cut(&theirs, '"');
	return !roll_str_eq(roll_str_cut(&ours, '"'), roll_str_cut(&theirs, '"'));
}
