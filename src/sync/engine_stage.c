/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/engine_state.h"

#include "base/bin.h"

enum { FLAG_SEEN = 1, FLAG_TERMINATING = 2, FLAG_SPEC = 4, FLAG_REPORTED = 8 };

static void encode_extra(const struct roll_apply_extra *extra, struct roll_buf *buf)
{
	roll_buf_put_u8(buf, (uint8_t)extra->severity);
	roll_buf_put_u8(buf, (uint8_t)extra->reason);
	roll_buf_put_str16(buf, extra->path);
	roll_buf_put_str16(buf, extra->text);
}

void roll_staged_encode(const struct roll_staged *staged, struct roll_buf *buf)
{
	const struct roll_object *object = &staged->decoded.object;
	size_t i;

	roll_buf_put_u8(
		buf, (uint8_t)((staged->is_seen ? FLAG_SEEN : 0) |
			       (!staged->is_seen && object->is_terminating ? FLAG_TERMINATING : 0) |
			       (!staged->is_seen && object->is_reported ? FLAG_REPORTED : 0) |
			       (staged->has_spec ? FLAG_SPEC : 0)));
	roll_buf_put_str16(buf, staged->scope);
	roll_buf_put_u8(buf, (uint8_t)staged->decoded.extra_count);
	for (i = 0; i < staged->decoded.extra_count; i++)
		encode_extra(&staged->decoded.extra[i], buf);
	if (staged->is_seen)
		return;
	roll_buf_put_str16(buf, object->ns);
	roll_buf_put_str16(buf, object->name);
	roll_buf_put_str16(buf, object->uid);
	roll_buf_put_u64(buf, object->revision);
	roll_buf_put_u64(buf, (uint64_t)object->generation);
	roll_buf_put_u64(buf, (uint64_t)object->created_s);
	roll_buf_put_u32(buf, object->serial);
	roll_buf_put_str32(buf, staged->spec);
}

enum roll_status roll_staged_decode(enum roll_kind kind, struct roll_str bytes,
				    struct roll_staged *out)
{
	struct roll_reader r = roll_reader_of(bytes.p, bytes.n);
	struct roll_object *object = &out->decoded.object;
	unsigned flags;
	size_t i;

	*out = (struct roll_staged){.is_seen = false};
	flags = roll_reader_u8(&r);
	out->is_seen = flags & FLAG_SEEN;
	out->has_spec = flags & FLAG_SPEC;
	out->scope = roll_reader_str16(&r);
	out->decoded.extra_count = roll_reader_u8(&r);
	if (out->decoded.extra_count > ROLL_EXTRAS_MAX + 1)
		return ROLL_ECORRUPT;
	for (i = 0; i < out->decoded.extra_count; i++) {
		struct roll_apply_extra *extra = &out->decoded.extra[i];

		extra->severity = (enum roll_severity)roll_reader_u8(&r);
		extra->reason = (enum roll_reason)roll_reader_u8(&r);
		extra->path = roll_reader_str16(&r);
		extra->text = roll_reader_str16(&r);
	}
	object->kind = kind;
	if (!out->is_seen) {
		object->is_terminating = flags & FLAG_TERMINATING;
		object->is_reported = flags & FLAG_REPORTED;
		object->ns = roll_reader_str16(&r);
		object->name = roll_reader_str16(&r);
		object->uid = roll_reader_str16(&r);
		object->revision = roll_reader_u64(&r);
		object->generation = (int64_t)roll_reader_u64(&r);
		object->created_s = (int64_t)roll_reader_u64(&r);
		object->serial = roll_reader_u32(&r);
		out->spec = roll_reader_str32(&r);
	}
	return roll_reader_done(&r) ? ROLL_OK : ROLL_ECORRUPT;
}
