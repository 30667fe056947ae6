/* SPDX-License-Identifier: Apache-2.0 */
#include "server/answer.h"

#include "base/log.h"
#include "dns/type.h"

/* Asked for by type, but no type of ours: only whether the name exists matters (RFC 6895, 3.1). */
#define TYPE_FOREIGN 65535

#define QUIET_MS 10000

void roll_answer_complain(struct roll_answer *answer, enum roll_complaint kind, const char *method,
			  const char *reason)
{
	static const char *const events[] = {"initialize-refused", "call-failed", "bad-request"};
	int64_t now_ms = roll_clock_monotonic_ms(answer->clock);
	char shown[320];

	if (now_ms < answer->quiet_until_ms[kind]) {
		answer->unsaid[kind]++;
		return;
	}
	roll_log(ROLL_WARN, events[kind], "method=%s reason=\"%s\" unsaid=%llu",
		 method ? method : "none", roll_str_show(roll_str_c(reason), shown, sizeof shown),
		 (unsigned long long)answer->unsaid[kind]);
	answer->quiet_until_ms[kind] = now_ms + QUIET_MS;
	answer->unsaid[kind] = 0;
}

enum roll_status roll_answer_snap(struct roll_answer *answer, struct roll_snap **out,
				  struct roll_err *err)
{
	const struct roll_head *head;
	enum roll_status status;
	int64_t age_ms;

	status = roll_snap_begin(answer->view, true, out, err);
	if (status)
		return status;
	answer->content = roll_snap_content(*out);
	if (answer->max_stale_ms == 0)
		return ROLL_OK;
	head = roll_snap_head(*out);
	age_ms = roll_clock_wall_ms(answer->clock) - head->confirmed_ms;
	if (age_ms <= answer->max_stale_ms)
		return ROLL_OK;
	roll_snap_end(*out);
	*out = NULL;
	return roll_err_set(err, ROLL_ENOTREADY, NULL,
			    "the view was last confirmed more than --max-stale ago");
}

/*
 * PowerDNS sends names it has read from wire form, and each of those has a text that we can read.
 * So a text that is no name is not an empty answer: we do not know what was asked.
 */
enum roll_status roll_answer_name(const struct roll_request *request, const char *param,
				  struct roll_name *out, struct roll_err *err)
{
	const struct roll_param *text = roll_request_param(request, param, ROLL_PARAM_STRING);

	if (!text)
		return roll_err_set(err, ROLL_EPROTO, NULL, "%s is missing or not a string", param);
	if (roll_name_parse(text->text, out, NULL))
		return roll_err_set(err, ROLL_EPROTO, NULL, "%s is not a domain name", param);
	return ROLL_OK;
}

/* PowerDNS's id of a zone; 0 if it does not know one, which is -1 there, unsigned in some places.
 */
static uint32_t zone_id(const struct roll_request *request, const char *param)
{
	const struct roll_param *id = roll_request_param(request, param, ROLL_PARAM_INTEGER);

	return id && id->number > 0 && id->number <= INT32_MAX ? (uint32_t)id->number : 0;
}

static uint16_t question_type(struct roll_str text)
{
	const struct roll_type_info *info;

	if (roll_str_eq_nocase(text, roll_str_c("ANY")))
		return ROLL_TYPE_ANY;
	info = roll_type_find_name(text);
	return info ? info->type : TYPE_FOREIGN;
}

/*
 * The zone that a lookup is about. With an id, that one: if it is not served any more, nothing is
 * below it. Without, the deepest that holds the name, but for SOA only a zone that begins at the
 * name: PowerDNS takes the name it asked with for the zone's own.
 */
static enum roll_status lookup_zone(struct roll_snap *snap, uint32_t id, uint16_t type,
				    const struct roll_name *name, const struct roll_zone **out)
{
	enum roll_status status;

	if (id) {
		status = roll_snap_zone_by_id(snap, id, out);
		if (!status && !roll_name_is_within(name, &(*out)->domain))
			status = ROLL_ENOENT;
		return status;
	}
	if (type == ROLL_TYPE_SOA)
		return roll_snap_zone_at(snap, name, out);
	return roll_snap_zone_of(snap, name, out);
}

struct rows {
	struct roll_reply *reply;
	uint32_t zone_id;
	uint16_t type;
};

static enum roll_status on_lookup_row(void *ctx, const struct roll_row *row)
{
	const struct rows *rows = ctx;

	/*
	 * The row of an empty non-terminal belongs to ANY, where PowerDNS looks for it. As an
	 * answer to SOA it would make PowerDNS throw its handle away.
	 */
	if (row->type == ROLL_TYPE_ENT && rows->type != ROLL_TYPE_ANY)
		return ROLL_OK;
	return roll_reply_row(rows->reply, rows->zone_id, row);
}

enum roll_status roll_answer_lookup(struct roll_answer *answer, const struct roll_request *request,
				    struct roll_err *err)
{
	const struct roll_param *qtype = roll_request_param(request, "qtype", ROLL_PARAM_STRING);
	const struct roll_zone *zone = NULL;
	struct roll_snap *snap = NULL;
	struct roll_name qname;
	enum roll_status status;
	struct rows rows;

	if (!qtype)
		return roll_err_set(err, ROLL_EPROTO, NULL, "qtype is missing or not a string");
	status = roll_answer_name(request, "qname", &qname, err);
	if (!status)
		status = roll_answer_snap(answer, &snap, err);
	if (status)
		return status;
	roll_reply_begin(&answer->reply, !answer->is_cacheable);
	rows = (struct rows){.reply = &answer->reply, .type = question_type(qtype->text)};
	status = lookup_zone(snap, zone_id(request, "zone-id"), rows.type, &qname, &zone);
	if (!status) {
		rows.zone_id = zone->id;
		status = roll_snap_lookup(snap, zone, &qname, rows.type, on_lookup_row, &rows);
	}
	roll_snap_end(snap);
	if (status && status != ROLL_ENOENT)
		return status;
	answer->is_empty = answer->reply.count == 0;
	return roll_reply_end(&answer->reply);
}

static enum roll_status on_list_row(void *ctx, const struct roll_row *row)
{
	const struct rows *rows = ctx;

	return roll_reply_row(rows->reply, rows->zone_id, row);
}

/* Results of list are never cached by PowerDNS: the rows do without scopeMask. */
enum roll_status roll_answer_list(struct roll_answer *answer, const struct roll_request *request,
				  struct roll_err *err)
{
	uint32_t id = zone_id(request, "domain_id");
	struct rows rows = {.reply = &answer->reply};
	const struct roll_zone *zone = NULL;
	struct roll_snap *snap = NULL;
	struct roll_name apex;
	enum roll_status status;

	status = roll_answer_name(request, "zonename", &apex, err);
	if (!status)
		status = roll_answer_snap(answer, &snap, err);
	if (status)
		return status;
	roll_reply_begin(&answer->reply, false);
	status = roll_snap_zone_at(snap, &apex, &zone);
	if (!status && id && id != zone->id)
		status = roll_err_set(err, ROLL_EPROTO, NULL, "domain_id is not that of zonename");
	if (!status) {
		rows.zone_id = zone->id;
		status = roll_snap_list(snap, zone, on_list_row, &rows);
	}
	roll_snap_end(snap);
	if (status && status != ROLL_ENOENT)
		return status;
	answer->is_empty = answer->reply.count == 0;
	return roll_reply_end(&answer->reply);
}

enum roll_status roll_answer_domain(struct roll_answer *answer, const struct roll_request *request,
				    struct roll_err *err)
{
	struct roll_buf *out = answer->reply.out;
	const struct roll_zone *zone = NULL;
	struct roll_snap *snap = NULL;
	struct roll_name apex;
	enum roll_status status;

	status = roll_answer_name(request, "name", &apex, err);
	if (!status)
		status = roll_answer_snap(answer, &snap, err);
	if (status)
		return status;
	status = roll_snap_zone_at(snap, &apex, &zone);
	answer->is_empty = status == ROLL_ENOENT;
	if (!status) {
		answer->reply.count = 0;
		roll_buf_add_c(out, "{\"result\":");
		roll_reply_domain(&answer->reply, zone, true);
		roll_buf_add_c(out, "}\n");
		status = out->status;
	} else if (status == ROLL_ENOENT) {
		roll_reply_result(&answer->reply, "false");
		status = out->status;
	}
	roll_snap_end(snap);
	return status;
}

static enum roll_status on_domain(void *ctx, const struct roll_domain *domain)
{
	struct roll_reply *reply = ctx;

	if (domain->zone)
		roll_reply_domain(reply, domain->zone, false);
	return reply->out->status;
}

/*
 * An empty list makes PowerDNS forget every zone it knows, and answer REFUSED: it is sent only when
 * a complete view has no zone to serve.
 */
enum roll_status roll_answer_domains(struct roll_answer *answer, const struct roll_request *request,
				     struct roll_err *err)
{
	struct roll_snap *snap = NULL;
	enum roll_status status;

	(void)request;
	status = roll_answer_snap(answer, &snap, err);
	if (status)
		return status;
	roll_reply_begin(&answer->reply, false);
	status = roll_snap_domains(snap, on_domain, &answer->reply);
	roll_snap_end(snap);
	if (status)
		return status;
	answer->is_empty = answer->reply.count == 0;
	return roll_reply_end(&answer->reply);
}
