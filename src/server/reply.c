/* SPDX-License-Identifier: Apache-2.0 */
#include "server/reply.h"

#include "dns/rdata.h"
#include "dns/type.h"

/* Rdata is at most 65535 bytes, and each byte prints as \DDD at worst. */
#define TEXT_MAX_BYTES (5u << 16)

void roll_reply_init(struct roll_reply *reply)
{
	*reply = (struct roll_reply){.out = NULL};
	roll_buf_init(&reply->text, TEXT_MAX_BYTES);
	roll_buf_init(&reply->head, (size_t)8 * ROLL_NAME_TEXT_SIZE);
	roll_buf_init(&reply->tail, 128);
}

void roll_reply_fini(struct roll_reply *reply)
{
	roll_buf_fini(&reply->text);
	roll_buf_fini(&reply->head);
	roll_buf_fini(&reply->tail);
}

void roll_reply_result(struct roll_reply *reply, const char *json)
{
	roll_buf_add_c(reply->out, "{\"result\":");
	roll_buf_add_c(reply->out, json);
	roll_buf_add_c(reply->out, "}\n");
}

void roll_reply_string(struct roll_reply *reply, struct roll_str text)
{
	roll_buf_add_c(reply->out, "{\"result\":");
	roll_buf_add_json_str(reply->out, text);
	roll_buf_add_c(reply->out, "}\n");
}

void roll_reply_failure(struct roll_reply *reply, const char *reason)
{
	roll_buf_reset(reply->out);
	roll_buf_add_c(reply->out, "{\"error\":");
	roll_buf_add_json_str(reply->out, roll_str_c(reason));
	roll_buf_add_c(reply->out, "}\n");
}

void roll_reply_begin(struct roll_reply *reply, bool is_scoped)
{
	reply->count = 0;
	reply->owner.len = 0;
	reply->zone_id = 0;
	reply->is_scoped = is_scoped;
	roll_buf_add_c(reply->out, "{\"result\":[");
}

static void add_name(struct roll_reply *reply, const struct roll_name *name, struct roll_buf *to)
{
	roll_buf_reset(&reply->text);
	roll_name_print(name, ROLL_DOT_NONE, &reply->text);
	if (reply->text.status)
		to->status = reply->text.status;
	roll_buf_add_json(to, roll_buf_str(&reply->text));
}

/* What the rows of one owner and of one zone have in common is printed once. */
static void prepare_row(struct roll_reply *reply, uint32_t zone_id, const struct roll_name *owner)
{
	if (reply->owner.len == 0 || !roll_name_eq(owner, &reply->owner)) {
		reply->owner = *owner;
		roll_buf_reset(&reply->head);
		roll_buf_add_c(&reply->head, "{\"qname\":\"");
		add_name(reply, owner, &reply->head);
		roll_buf_add_c(&reply->head, "\",\"qtype\":\"");
	}
	if (reply->zone_id != zone_id) {
		reply->zone_id = zone_id;
		roll_buf_reset(&reply->tail);
		roll_buf_add_c(&reply->tail, ",\"domain_id\":");
		roll_buf_add_u64(&reply->tail, zone_id);
		if (reply->is_scoped)
			roll_buf_add_c(&reply->tail, ",\"scopeMask\":1");
		roll_buf_add_c(&reply->tail, ",\"auth\":");
	}
}

enum roll_status roll_reply_row(struct roll_reply *reply, uint32_t zone_id,
				const struct roll_row *row)
{
	const struct roll_type_info *info = roll_type_find(row->type);
	struct roll_buf *out = reply->out;
	enum roll_status status;

	/* PowerDNS fails on all of a name for one record that it cannot parse: so do we, knowingly.
	 */
	if (!info && row->type != ROLL_TYPE_ENT)
		return ROLL_ECORRUPT;
	prepare_row(reply, zone_id, row->owner);
	if (reply->head.status || reply->tail.status)
		return reply->head.status ? reply->head.status : reply->tail.status;
	if (reply->count++)
		roll_buf_add_char(out, ',');
	roll_buf_add_str(out, roll_buf_str(&reply->head));
	if (info)
		roll_buf_add_c(out, info->name);
	roll_buf_add_c(out, "\",\"content\":\"");
	if (info) {
		roll_buf_reset(&reply->text);
		status = roll_rdata_print(row->type, row->rdata, ROLL_RDATA_PDNS, &reply->text);
		if (!status)
			status = reply->text.status;
		if (status)
			return status;
		roll_buf_add_json(out, roll_buf_str(&reply->text));
	}
	roll_buf_add_c(out, "\",\"ttl\":");
	roll_buf_add_u64(out, row->ttl);
	roll_buf_add_str(out, roll_buf_str(&reply->tail));
	roll_buf_add_c(out, row->auth ? "1}" : "0}");
	return out->status;
}

/* kind is left out in the long list: what is not named is native. */
void roll_reply_domain(struct roll_reply *reply, const struct roll_zone *zone, bool is_full)
{
	struct roll_buf *out = reply->out;

	if (reply->count++)
		roll_buf_add_char(out, ',');
	roll_buf_add_c(out, "{\"id\":");
	roll_buf_add_u64(out, zone->id);
	roll_buf_add_c(out, ",\"zone\":\"");
	add_name(reply, &zone->domain, out);
	roll_buf_add_c(out, is_full ? "\",\"kind\":\"native\",\"serial\":" : "\",\"serial\":");
	roll_buf_add_u64(out, zone->soa_serial);
	roll_buf_add_char(out, '}');
}

enum roll_status roll_reply_end(struct roll_reply *reply)
{
	roll_buf_add_c(reply->out, "]}\n");
	return reply->out->status;
}
