/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdint.h>

#include "dns/claim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * A row that decodes is what its own claims encode to, the served part alone is the beginning of
 * it, and claims that are decided anew make a row again.
 */

#define ARENA_BYTES ((size_t)1 << 24)

static void check_served(struct roll_str row, const struct roll_claim *claims, size_t count)
{
	struct roll_reader r;
	uint16_t served;

	assert(roll_claims_served(row, &r, &served) == ROLL_OK);
	assert(served <= count);
	for (size_t i = 0; i < served; i++) {
		struct roll_rrset_head head = roll_rrset_decode_head(&r);

		assert(head.type == claims[i].rrset.type && head.count == claims[i].rrset.count);
		for (uint32_t k = 0; k < head.count; k++)
			assert(roll_str_eq(roll_rrset_decode_rdata(&r), claims[i].rrset.rdata[k]));
	}
	assert(roll_reader_done(&r));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct roll_str row = roll_str_n((const char *)data, size);
	struct roll_claim *claims, *again;
	struct roll_arena arena;
	struct roll_buf buf;
	size_t count;

	roll_arena_init(&arena, ARENA_BYTES);
	roll_buf_init(&buf, ARENA_BYTES);
	if (roll_claims_decode(row, &arena, &claims, &count) == ROLL_OK) {
		roll_claims_encode(claims, count, &buf);
		assert(roll_str_eq(roll_buf_str(&buf), row));
		check_served(row, claims, count);

		for (int is_apex = 0; is_apex < 2; is_apex++) {
			roll_claims_decide(claims, count, is_apex);
			roll_buf_reset(&buf);
			roll_claims_encode(claims, count, &buf);
			assert(buf.status == ROLL_OK);
			assert(roll_claims_decode(roll_buf_str(&buf), &arena, &again, &count) ==
			       ROLL_OK);
			check_served(roll_buf_str(&buf), again, count);
		}
	}
	roll_buf_fini(&buf);
	roll_arena_fini(&arena);
	return 0;
}
