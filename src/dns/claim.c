/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/claim.h"

#include <assert.h>
#include <stdlib.h>

const char *roll_verdict_text(enum roll_verdict verdict)
{
	switch (verdict) {
	case ROLL_VERDICT_SERVED:
		return "Served";
	case ROLL_VERDICT_NOT_OWNER:
		return "NotOwner";
	case ROLL_VERDICT_CONFLICT:
		return "Conflict";
	}
	return "Unknown";
}

int roll_claim_cmp(const struct roll_claim *a, const struct roll_claim *b)
{
	int order;

	if (a->created_s != b->created_s)
		return a->created_s < b->created_s ? -1 : 1;
	order = roll_str_cmp(a->object, b->object);
	return order ? order : roll_str_cmp(a->uid, b->uid);
}

/* The type settles what an object with two claims would leave open; then the order is total. */
static int cmp_age(const void *a, const void *b)
{
	const struct roll_claim *x = a, *y = b;
	int order = roll_claim_cmp(x, y);

	return order ? order : (x->rrset.type > y->rrset.type) - (x->rrset.type < y->rrset.type);
}

static bool is_served(const struct roll_claim *claim)
{
	return claim->verdict == ROLL_VERDICT_SERVED;
}

static int cmp_served_first(const void *a, const void *b)
{
	bool x = is_served(a), y = is_served(b);

	return x != y ? y - x : cmp_age(a, b);
}

/*
 * served holds the types that serve so far, oldest first. Those never are many: each type once.
 * `by` is an index into it, and so into the claims once the served ones are first.
 */
static void decide_one(struct roll_claim *claim, const uint16_t *served, uint32_t count,
		       bool is_apex)
{
	uint16_t type = claim->rrset.type;

	claim->verdict = ROLL_VERDICT_SERVED;
	claim->by = ROLL_BY_NONE;
	if (is_apex && type == ROLL_TYPE_CNAME) {
		claim->verdict = ROLL_VERDICT_CONFLICT;
		claim->by = ROLL_BY_ZONE;
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (served[i] == type) {
			claim->verdict = ROLL_VERDICT_NOT_OWNER;
			claim->by = i;
			return;
		}
		/* RFC 1034, 3.6.2: beside a CNAME there is nothing else. */
		if (claim->by == ROLL_BY_NONE &&
		    (served[i] == ROLL_TYPE_CNAME || type == ROLL_TYPE_CNAME)) {
			claim->verdict = ROLL_VERDICT_CONFLICT;
			claim->by = i;
		}
	}
}

void roll_claims_decide(struct roll_claim *claims, size_t count, bool is_apex)
{
	uint16_t served[ROLL_TYPE_COUNT];
	uint32_t served_count = 0;

	if (count == 0)
		return;
	qsort(claims, count, sizeof *claims, cmp_age);
	for (size_t i = 0; i < count; i++) {
		decide_one(&claims[i], served, served_count, is_apex);
		if (is_served(&claims[i])) {
			assert(served_count < ROLL_TYPE_COUNT);
			served[served_count++] = claims[i].rrset.type;
		}
	}
	qsort(claims, count, sizeof *claims, cmp_served_first);
}

void roll_claims_encode(const struct roll_claim *claims, size_t count, struct roll_buf *buf)
{
	size_t served_count = 0, served_bytes = 2;

	while (served_count < count && is_served(&claims[served_count]))
		served_bytes += roll_rrset_encoded_size(&claims[served_count++].rrset);
	if (count > UINT32_MAX || served_count > UINT16_MAX || served_bytes > UINT32_MAX) {
		if (!buf->status)
			buf->status = ROLL_ELIMIT;
		return;
	}
	roll_buf_put_u32(buf, (uint32_t)served_bytes);
	roll_buf_put_u16(buf, (uint16_t)served_count);
	for (size_t i = 0; i < served_count; i++)
		roll_rrset_encode(&claims[i].rrset, buf);
	roll_buf_put_u32(buf, (uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		assert(is_served(&claims[i]) == (i < served_count));
		roll_buf_put_u8(buf, (uint8_t)claims[i].verdict);
		roll_buf_put_u32(buf, claims[i].by);
		roll_buf_put_u64(buf, (uint64_t)claims[i].created_s);
		roll_buf_put_str16(buf, claims[i].object);
		roll_buf_put_str16(buf, claims[i].uid);
		if (i >= served_count)
			roll_rrset_encode(&claims[i].rrset, buf);
	}
}

/* Open the served part in *r; what is behind it is left in *rest. */
static enum roll_status open_row(struct roll_str row, struct roll_reader *rest,
				 struct roll_reader *r, uint16_t *served_count)
{
	struct roll_str served;

	*rest = roll_reader_of(row.p, row.n);
	served = roll_reader_str32(rest);
	*r = roll_reader_of(served.p, served.n);
	*served_count = roll_reader_u16(r);
	return rest->failed || r->failed ? ROLL_ECORRUPT : ROLL_OK;
}

/* Whether the claim that is said to serve instead can be the reason. */
static bool is_reason(const struct roll_claim *claim, const struct roll_claim *winner)
{
	uint16_t type = claim->rrset.type, other = winner->rrset.type;

	if (claim->verdict == ROLL_VERDICT_NOT_OWNER)
		return type == other;
	return type != other && (type == ROLL_TYPE_CNAME || other == ROLL_TYPE_CNAME);
}

/* A claim of a row as roll_claims_decide leaves it; those before it were found sound. */
static bool is_sound(const struct roll_claim *claims, uint32_t i, uint32_t served_count)
{
	const struct roll_claim *claim = &claims[i];
	bool is_first = i == 0 || i == served_count;

	if (is_served(claim) != (i < served_count) || !roll_type_find(claim->rrset.type) ||
	    (!is_first && roll_claim_cmp(claim - 1, claim) > 0))
		return false;
	switch (claim->verdict) {
	case ROLL_VERDICT_SERVED:
		return claim->by == ROLL_BY_NONE;
	case ROLL_VERDICT_CONFLICT:
		if (claim->by == ROLL_BY_ZONE)
			return claim->rrset.type == ROLL_TYPE_CNAME;
		break;
	case ROLL_VERDICT_NOT_OWNER:
		break;
	default:
		return false;
	}
	return claim->by < served_count && is_reason(claim, &claims[claim->by]);
}

/* A claim has 17 bytes at least, which bounds the array before it is allocated. */
#define CLAIM_BYTES_MIN (1 + 4 + 8 + 2 + 2)

enum roll_status roll_claims_decode(struct roll_str row, struct roll_arena *arena,
				    struct roll_claim **claims, size_t *count)
{
	struct roll_reader rest, served;
	struct roll_claim *list;
	uint16_t served_count;
	uint32_t n;

	if (open_row(row, &rest, &served, &served_count))
		return ROLL_ECORRUPT;
	n = roll_reader_u32(&rest);
	if (rest.failed || n < served_count || n > (size_t)(rest.end - rest.p) / CLAIM_BYTES_MIN)
		return ROLL_ECORRUPT;
	list = roll_arena_array(arena, n, sizeof *list);
	if (!list)
		return arena->status;
	for (uint32_t i = 0; i < n; i++) {
		struct roll_claim *claim = &list[i];
		enum roll_status status;

		claim->verdict = roll_reader_u8(&rest);
		claim->by = roll_reader_u32(&rest);
		claim->created_s = (int64_t)roll_reader_u64(&rest);
		claim->object = roll_reader_str16(&rest);
		claim->uid = roll_reader_str16(&rest);
		status =
			roll_rrset_decode(i < served_count ? &served : &rest, arena, &claim->rrset);
		if (status)
			return status;
		if (!is_sound(list, i, served_count))
			return ROLL_ECORRUPT;
	}
	if (!roll_reader_done(&served) || !roll_reader_done(&rest))
		return ROLL_ECORRUPT;
	*claims = list;
	*count = n;
	return ROLL_OK;
}

enum roll_status roll_claims_served(struct roll_str row, struct roll_reader *r,
				    uint16_t *rrset_count)
{
	struct roll_reader rest;

	return open_row(row, &rest, r, rrset_count);
}

bool roll_serial_gt(uint32_t a, uint32_t b)
{
	/* Two numbers half the range apart are not ordered: neither is after the other. */
	return a != b && a - b < (uint32_t)1 << 31;
}

uint32_t roll_serial_later(uint32_t a, uint32_t b)
{
	return roll_serial_gt(a, b) ? a : b;
}

uint32_t roll_serial_next(uint32_t serial)
{
	return serial == UINT32_MAX ? 1 : serial + 1;
}
