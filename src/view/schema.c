/* SPDX-License-Identifier: Apache-2.0 */
#include "view/schema.h"

#include <string.h>

#include "dns/rrset.h"

/*
 * Every decoder accepts exactly what its encoder writes: lengths add up to the last byte, flags are
 * 0 or 1, names are canonical. So a row that was read can be written back and is the same bytes.
 */

static void put_bool(struct roll_buf *buf, bool v)
{
	roll_buf_put_u8(buf, v ? 1 : 0);
}

static bool read_bool(struct roll_reader *r)
{
	uint8_t v = roll_reader_u8(r);

	if (v > 1)
		r->failed = true;
	return v == 1;
}

static void put_i64(struct roll_buf *buf, int64_t v)
{
	roll_buf_put_u64(buf, (uint64_t)v);
}

static int64_t read_i64(struct roll_reader *r)
{
	return (int64_t)roll_reader_u64(r);
}

static struct roll_reader reader_of(struct roll_str bytes)
{
	return roll_reader_of(bytes.p ? bytes.p : "", bytes.n);
}

static enum roll_status done(const struct roll_reader *r)
{
	return roll_reader_done(r) ? ROLL_OK : ROLL_ECORRUPT;
}

/* The first two members are the same in every format, so that any version can set the mark. */
void roll_head_encode(const struct roll_head *head, struct roll_buf *buf)
{
	roll_buf_put_u32(buf, head->format);
	put_bool(buf, head->is_superseded);
	roll_buf_put_u64(buf, head->generation);
	put_i64(buf, head->complete_since_ms);
	put_i64(buf, head->confirmed_ms);
	roll_buf_put_u32(buf, head->next_number);
	roll_buf_put_u32(buf, head->max_serial);
	roll_buf_put_u64(buf, head->next_removal);
	for (int kind = 0; kind < ROLL_ROW_KINDS; kind++)
		roll_buf_put_u64(buf, head->object_count[kind]);
	roll_buf_put_u64(buf, head->name_count);
	roll_buf_put_str16(buf, head->controller);
	roll_buf_put_str16(buf, head->source);
}

enum roll_status roll_head_decode(struct roll_str bytes, struct roll_head *out)
{
	struct roll_reader r = reader_of(bytes);

	memset(out, 0, sizeof *out);
	out->format = roll_reader_u32(&r);
	out->is_superseded = read_bool(&r);
	if (r.failed)
		return ROLL_ECORRUPT;
	if (out->format != ROLL_VIEW_FORMAT)
		return ROLL_EVERSION;
	out->generation = roll_reader_u64(&r);
	out->complete_since_ms = read_i64(&r);
	out->confirmed_ms = read_i64(&r);
	out->next_number = roll_reader_u32(&r);
	out->max_serial = roll_reader_u32(&r);
	out->next_removal = roll_reader_u64(&r);
	for (int kind = 0; kind < ROLL_ROW_KINDS; kind++)
		out->object_count[kind] = roll_reader_u64(&r);
	out->name_count = roll_reader_u64(&r);
	out->controller = roll_reader_str16(&r);
	out->source = roll_reader_str16(&r);
	return done(&r);
}

void roll_object_row_encode(const struct roll_object_row *row, struct roll_buf *buf)
{
	roll_buf_put_str16(buf, row->uid);
	roll_buf_put_u64(buf, row->revision);
	put_i64(buf, row->generation);
	put_i64(buf, row->created_s);
	roll_buf_put_str16(buf, row->scope);
	roll_buf_put_str16(buf, row->zone);
	roll_buf_put_u32(buf, row->fault_count);
	roll_buf_put_u32(buf, row->warning_count);
	roll_buf_put_str32(buf, row->findings);
	roll_buf_put_u32(buf, row->number);
	roll_buf_put_str32(buf, row->names);
	roll_buf_put_u32(buf, row->record_count);
	roll_buf_put_str32(buf, row->spec);
}

enum roll_status roll_object_row_decode(enum roll_row_kind kind, struct roll_str key,
					struct roll_str bytes, struct roll_object_row *out)
{
	struct roll_reader r = reader_of(bytes), names;

	memset(out, 0, sizeof *out);
	out->kind = kind;
	out->key = key;
	out->uid = roll_reader_str16(&r);
	out->revision = roll_reader_u64(&r);
	out->generation = read_i64(&r);
	out->created_s = read_i64(&r);
	out->scope = roll_reader_str16(&r);
	out->zone = roll_reader_str16(&r);
	out->fault_count = roll_reader_u32(&r);
	out->warning_count = roll_reader_u32(&r);
	out->findings = roll_reader_str32(&r);
	out->number = roll_reader_u32(&r);
	out->names = roll_reader_str32(&r);
	out->record_count = roll_reader_u32(&r);
	out->spec = roll_reader_str32(&r);
	if (!roll_reader_done(&r))
		return ROLL_ECORRUPT;
	if (out->names.n == 0)
		return ROLL_OK;
	names = reader_of(out->names);
	for (uint32_t left = roll_reader_u32(&names); left && !names.failed; left--)
		(void)roll_reader_str16(&names);
	return done(&names);
}

/* `count` canonical names one after another, and nothing else. */
static enum roll_status check_names(struct roll_str wires, uint32_t count)
{
	size_t at = 0;

	for (; count; count--) {
		struct roll_name name;
		size_t n = at;

		while (n < wires.n && wires.p[n] != 0)
			n += 1 + (uint8_t)wires.p[n];
		if (n >= wires.n || n - at >= ROLL_NAME_MAX)
			return ROLL_ECORRUPT;
		n++;
		if (roll_name_from_wire(wires.p + at, n - at, &name) ||
		    memcmp(name.wire, wires.p + at, n - at) != 0)
			return ROLL_ECORRUPT;
		at = n;
	}
	return at == wires.n ? ROLL_OK : ROLL_ECORRUPT;
}

void roll_class_row_encode(const struct roll_class_row *row, struct roll_buf *buf)
{
	roll_buf_put_str16(buf, row->controller);
	put_bool(buf, row->has_default_ttl);
	roll_buf_put_u32(buf, row->has_default_ttl ? row->default_ttl : 0);
	roll_buf_put_u32(buf, row->serial);
	roll_buf_put_u32(buf, row->nameserver_count);
	roll_buf_put_str32(buf, row->nameservers);
}

enum roll_status roll_class_row_decode(struct roll_str bytes, struct roll_class_row *out)
{
	struct roll_reader r = reader_of(bytes);

	memset(out, 0, sizeof *out);
	out->controller = roll_reader_str16(&r);
	out->has_default_ttl = read_bool(&r);
	out->default_ttl = roll_reader_u32(&r);
	out->serial = roll_reader_u32(&r);
	out->nameserver_count = roll_reader_u32(&r);
	out->nameservers = roll_reader_str32(&r);
	if (!roll_reader_done(&r) || (!out->has_default_ttl && out->default_ttl) ||
	    out->default_ttl > ROLL_TTL_MAX)
		return ROLL_ECORRUPT;
	return check_names(out->nameservers, out->nameserver_count);
}

int roll_domain_claim_cmp(const struct roll_domain_claim *a, const struct roll_domain_claim *b)
{
	int order;

	if (a->created_s != b->created_s)
		return a->created_s < b->created_s ? -1 : 1;
	order = roll_str_cmp(a->object, b->object);
	return order ? order : roll_str_cmp(a->uid, b->uid);
}

void roll_domain_row_encode(const struct roll_domain_row *row, struct roll_buf *buf)
{
	roll_buf_put_u32(buf, row->id);
	roll_buf_put_u32(buf, row->serial);
	roll_buf_put_u64(buf, row->changed_generation);
	roll_buf_put_u32(buf, row->serial_before);
	roll_buf_put_u32(buf, row->published);
	roll_buf_put_u32(buf, row->claim_count);
	for (uint32_t i = 0; i < row->claim_count; i++) {
		const struct roll_domain_claim *claim = &row->claims[i];

		roll_buf_put_str16(buf, claim->object);
		roll_buf_put_str16(buf, claim->uid);
		put_i64(buf, claim->created_s);
		roll_buf_put_u32(buf, claim->number);
		roll_buf_put_str16(buf, claim->class_name);
	}
}

/* Bytes of a claim with empty strings: bounds the array before it is allocated. */
#define CLAIM_BYTES_MIN (2u + 2u + 8u + 4u + 2u)

enum roll_status roll_domain_row_decode(struct roll_str bytes, struct roll_arena *arena,
					struct roll_domain_row *out)
{
	struct roll_reader r = reader_of(bytes);

	memset(out, 0, sizeof *out);
	out->id = roll_reader_u32(&r);
	out->serial = roll_reader_u32(&r);
	out->changed_generation = roll_reader_u64(&r);
	out->serial_before = roll_reader_u32(&r);
	out->published = roll_reader_u32(&r);
	out->claim_count = roll_reader_u32(&r);
	if (r.failed || out->id == 0 || out->id > INT32_MAX ||
	    out->claim_count > (size_t)(r.end - r.p) / CLAIM_BYTES_MIN)
		return ROLL_ECORRUPT;
	if (out->claim_count) {
		out->claims = roll_arena_array(arena, out->claim_count, sizeof *out->claims);
		if (!out->claims)
			return arena->status;
	}
	for (uint32_t i = 0; i < out->claim_count; i++) {
		struct roll_domain_claim *claim = &out->claims[i];

		claim->object = roll_reader_str16(&r);
		claim->uid = roll_reader_str16(&r);
		claim->created_s = read_i64(&r);
		claim->number = roll_reader_u32(&r);
		claim->class_name = roll_reader_str16(&r);
		if (r.failed || (i && roll_domain_claim_cmp(claim - 1, claim) >= 0))
			return ROLL_ECORRUPT;
	}
	return done(&r);
}

void roll_dzone_row_encode(const struct roll_dzone_row *row, struct roll_buf *buf)
{
	roll_buf_put_str16(buf, row->object);
	roll_buf_put_str16(buf, roll_str_n((const char *)row->domain.wire, row->domain.len));
	roll_buf_put_u32(buf, row->cut_count);
	roll_buf_put_u32(buf, row->name_count);
}

enum roll_status roll_dzone_row_decode(struct roll_str bytes, struct roll_dzone_row *out)
{
	struct roll_reader r = reader_of(bytes);
	struct roll_str wire;

	memset(out, 0, sizeof *out);
	out->object = roll_reader_str16(&r);
	wire = roll_reader_str16(&r);
	out->cut_count = roll_reader_u32(&r);
	out->name_count = roll_reader_u32(&r);
	if (!roll_reader_done(&r) || check_names(wire, 1) ||
	    roll_name_from_wire(wire.p, wire.n, &out->domain))
		return ROLL_ECORRUPT;
	return ROLL_OK;
}

void roll_removal_encode(const struct roll_removal *row, struct roll_buf *buf)
{
	roll_buf_put_u8(buf, (uint8_t)row->kind);
	roll_buf_put_str16(buf, row->key);
	roll_buf_put_str16(buf, row->uid);
	roll_buf_put_str16(buf, row->zone);
	roll_buf_put_str16(buf, row->names);
	roll_buf_put_str16(buf, row->evidence);
	roll_buf_put_u64(buf, row->revision);
	put_i64(buf, row->at_ms);
}

enum roll_status roll_removal_decode(uint64_t sequence, struct roll_str bytes,
				     struct roll_removal *out)
{
	struct roll_reader r = reader_of(bytes);
	uint8_t kind;

	memset(out, 0, sizeof *out);
	out->sequence = sequence;
	kind = roll_reader_u8(&r);
	out->key = roll_reader_str16(&r);
	out->uid = roll_reader_str16(&r);
	out->zone = roll_reader_str16(&r);
	out->names = roll_reader_str16(&r);
	out->evidence = roll_reader_str16(&r);
	out->revision = roll_reader_u64(&r);
	out->at_ms = read_i64(&r);
	if (!roll_reader_done(&r) || kind >= ROLL_ROW_KINDS)
		return ROLL_ECORRUPT;
	out->kind = (enum roll_row_kind)kind;
	return ROLL_OK;
}
