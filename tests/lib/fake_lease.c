/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/fake_lease.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"

static int answer(int code, const char *reason, const char *message, json_t **reply)
{
	*reply = json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "kind", "Status", "apiVersion", "v1",
			   "status", "Failure", "reason", reason, "message", message, "code", code);
	return code;
}

json_t *fake_lease_spec(const struct fake_lease *lease)
{
	return json_object_get(lease->record, "spec");
}

static void set_version(struct fake_lease *lease)
{
	char text[24];

	snprintf(text, sizeof text, "%llu", (unsigned long long)++lease->revision);
	json_object_set_new(json_object_get(lease->record, "metadata"), "resourceVersion",
			    json_string(text));
	lease->written++;
}

/* A MicroTime: six digits of a fraction, UTC. */
static bool is_micro_time(const json_t *value)
{
	struct roll_str text = roll_str_n(json_string_value(value), json_string_length(value));
	int64_t seconds;

	return text.n == ROLL_TIME_MICRO_SIZE - 1 && text.p[19] == '.' && text.p[26] == 'Z' &&
	       !roll_time_parse(text, &seconds);
}

static bool is_valid(const json_t *body)
{
	const json_t *spec = json_object_get(body, "spec");
	const json_t *duration = json_object_get(spec, "leaseDurationSeconds");
	const json_t *transitions = json_object_get(spec, "leaseTransitions");

	return roll_str_eq_c(roll_json_str(body, "kind"), "Lease") &&
	       roll_str_eq_c(roll_json_str(body, "apiVersion"), "coordination.k8s.io/v1") &&
	       json_is_string(json_object_get(spec, "holderIdentity")) &&
	       json_is_integer(duration) && json_integer_value(duration) > 0 &&
	       json_integer_value(duration) <= INT32_MAX && json_is_integer(transitions) &&
	       json_integer_value(transitions) >= 0 &&
	       json_integer_value(transitions) <= INT32_MAX &&
	       is_micro_time(json_object_get(spec, "acquireTime")) &&
	       is_micro_time(json_object_get(spec, "renewTime"));
}

static int create(struct fake_lease *lease, const json_t *body, json_t **reply)
{
	const char *name = strrchr(lease->path, '/') + 1;

	lease->creates++;
	if (lease->record) {
		lease->conflicts++;
		return answer(409, "AlreadyExists", "it already exists", reply);
	}
	if (!is_valid(body) ||
	    !roll_str_eq_c(roll_json_str(json_object_get(body, "metadata"), "name"), name))
		return answer(422, "Invalid", "it is no Lease", reply);
	fake_lease_edit(lease, json_deep_copy(json_object_get(body, "spec")));
	*reply = json_deep_copy(lease->record);
	return 201;
}

static int update(struct fake_lease *lease, const json_t *body, json_t **reply)
{
	const json_t *metadata = json_object_get(body, "metadata");
	const json_t *ours = json_object_get(lease->record, "metadata");

	lease->updates++;
	if (!is_valid(body) || roll_json_str(metadata, "resourceVersion").n == 0)
		return answer(422, "Invalid", "it is no Lease", reply);
	/* A PUT may make a Lease, but not one with a uid: so it is no 404 if it was deleted. */
	if (!lease->record ||
	    !roll_str_eq(roll_json_str(metadata, "resourceVersion"),
			 roll_json_str(ours, "resourceVersion")) ||
	    !roll_str_eq(roll_json_str(metadata, "uid"), roll_json_str(ours, "uid"))) {
		lease->conflicts++;
		return answer(409, "Conflict", "it has been modified", reply);
	}
	if (!json_equal(body, lease->record)) {
		json_decref(lease->record);
		lease->record = json_deep_copy(body);
		set_version(lease);
	}
	*reply = json_deep_copy(lease->record);
	return 200;
}

int fake_lease_ask(void *ctx, const char *method, const char *path, json_t *body, json_t **reply)
{
	struct fake_lease *lease = ctx;
	size_t list_n = (size_t)(strrchr(lease->path, '/') - lease->path);

	if (strcmp(method, "POST") == 0 && strlen(path) == list_n &&
	    strncmp(path, lease->path, list_n) == 0)
		return create(lease, body, reply);
	if (strcmp(path, lease->path) != 0)
		return answer(404, "NotFound", "the path is not known", reply);
	if (strcmp(method, "PUT") == 0)
		return update(lease, body, reply);
	assert(strcmp(method, "GET") == 0 && !body);
	lease->gets++;
	if (!lease->record)
		return answer(404, "NotFound", "it is not found", reply);
	*reply = json_deep_copy(lease->record);
	return 200;
}

void fake_lease_edit(struct fake_lease *lease, json_t *spec)
{
	char uid[40];

	if (!lease->record) {
		snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012llu",
			 (unsigned long long)lease->revision + 1);
		lease->record = json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion",
					  "coordination.k8s.io/v1", "kind", "Lease", "metadata",
					  "name", strrchr(lease->path, '/') + 1, "uid", uid);
	}
	if (spec)
		json_object_set_new(lease->record, "spec", spec);
	else
		json_object_del(lease->record, "spec");
	set_version(lease);
}

void fake_lease_delete(struct fake_lease *lease)
{
	json_decref(lease->record);
	lease->record = NULL;
}
