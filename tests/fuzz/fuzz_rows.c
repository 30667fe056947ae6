/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdint.h>

#include "dns/rrset.h"
#include "view/view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * The first byte picks a row of the view, the rest is its value (for keys: the key). Whatever
 * decodes is what it encodes to.
 */

#define ARENA_BYTES ((size_t)1 << 24)

enum { HEAD, OBJECT, CLASS, DOMAIN, DZONE, REMOVAL, NAME_KEY, DOMAIN_KEY, SERVED, KINDS };

static void on_finding(void *ctx, unsigned severity, unsigned reason, struct roll_str path,
		       struct roll_str text)
{
	(void)ctx;
	(void)severity;
	(void)reason;
	assert(path.p && text.p);
}

static void walk_served(struct roll_str row)
{
	static const uint16_t types[] = {ROLL_TYPE_A, ROLL_TYPE_NS, ROLL_TYPE_SOA, ROLL_TYPE_ANY};

	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		struct roll_rrset_head head;
		struct roll_reader rdata;

		if (roll_served_find(row, types[i], &head, &rdata))
			continue;
		assert(types[i] == ROLL_TYPE_ANY || head.type == types[i]);
	}
}

static enum roll_status decode_key(struct roll_str key, uint8_t kind, struct roll_buf *again)
{
	struct roll_name domain, name;
	struct roll_key full;
	enum roll_status status;

	if (kind == DOMAIN_KEY) {
		status = roll_key_to_domain(key, &name);
		if (!status)
			full = roll_key_domain(&name);
	} else {
		status = roll_name_parse(roll_str_c("example.com"), &domain, NULL);
		assert(!status);
		status = roll_key_to_name(key, &domain, &name);
		if (!status)
			full = roll_key_name(roll_key_u32(key), &domain, &name);
	}
	if (!status)
		roll_buf_add(again, full.p, full.n);
	return status;
}

static enum roll_status decode_row(struct roll_str bytes, uint8_t kind, struct roll_arena *arena,
				   struct roll_buf *again)
{
	struct roll_head head;
	struct roll_object_row object;
	struct roll_class_row cls;
	struct roll_domain_row domain;
	struct roll_dzone_row dzone;
	struct roll_removal removal;
	enum roll_status status = ROLL_EINVAL;

	switch (kind) {
	case HEAD:
		status = roll_head_decode(bytes, &head);
		if (!status)
			roll_head_encode(&head, again);
		break;
	case OBJECT:
		status = roll_object_row_decode(ROLL_ROW_RECORDSET, roll_str_c("a/b"), bytes,
						&object);
		if (status)
			break;
		(void)!roll_row_findings(&object, on_finding, NULL);
		roll_object_row_encode(&object, again);
		break;
	case CLASS:
		status = roll_class_row_decode(bytes, &cls);
		if (!status)
			roll_class_row_encode(&cls, again);
		break;
	case DOMAIN:
		status = roll_domain_row_decode(bytes, arena, &domain);
		if (!status)
			roll_domain_row_encode(&domain, again);
		break;
	case DZONE:
		status = roll_dzone_row_decode(bytes, &dzone);
		if (!status)
			roll_dzone_row_encode(&dzone, again);
		break;
	case REMOVAL:
		status = roll_removal_decode(1, bytes, &removal);
		if (!status)
			roll_removal_encode(&removal, again);
		break;
	default:
		break;
	}
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct roll_str bytes;
	struct roll_arena arena;
	struct roll_buf again;
	enum roll_status status;

	if (size == 0 || data[0] >= KINDS)
		return 0;
	bytes = roll_str_n((const char *)data + 1, size - 1);
	if (data[0] == SERVED) {
		walk_served(bytes);
		return 0;
	}
	roll_arena_init(&arena, ARENA_BYTES);
	roll_buf_init(&again, size + 64);
	if (data[0] == NAME_KEY || data[0] == DOMAIN_KEY)
		status = decode_key(bytes, data[0], &again);
	else
		status = decode_row(bytes, data[0], &arena, &again);
	if (!status) {
		assert(!again.status);
		assert(roll_str_eq(roll_buf_str(&again), bytes));
	}
	roll_buf_fini(&again);
	roll_arena_fini(&arena);
	return 0;
}
