/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "sync/engine_state.h"

#define REJECTS_KEPT 1000u

/* --- objects without an identity --- */

static char *copy(struct roll_str s)
{
	return s.p ? strndup(s.p, s.n) : strdup("");
}

static void free_reject(struct roll_reject *reject)
{
	free(reject->scope);
	free(reject->where);
	free(reject->path);
	free(reject->text);
}

void roll_engine_reject(struct roll_engine *engine, struct roll_str scope, struct roll_str where,
			const struct roll_decoded *decoded)
{
	struct roll_apply_extra why = {ROLL_FAULT, ROLL_REASON_INVALID, roll_str_c("spec"),
				       roll_str_c("is larger than an object can be; the most is "
						  "2 MiB")};
	char at[200], path[200], text[400];
	struct roll_reject *items;
	size_t i;

	for (i = decoded->extra_count; i-- > 0;) {
		if (decoded->extra[i].severity == ROLL_FAULT)
			why = decoded->extra[i];
	}
	if (!where.n)
		where = scope.n ? scope : decoded->object.name;
	roll_log(ROLL_WARN, "object-rejected", "where=\"%s\" field=\"%s\" reason=\"%s\"",
		 roll_str_show(where, at, sizeof at), roll_str_show(why.path, path, sizeof path),
		 roll_str_show(why.text, text, sizeof text));
	if (engine->reject_count == REJECTS_KEPT) {
		engine->rejects_dropped++;
		return;
	}
	items = reallocarray(engine->rejects, engine->reject_count + 1, sizeof *items);
	if (!items) {
		engine->rejects_dropped++;
		return;
	}
	engine->rejects = items;
	items[engine->reject_count++] = (struct roll_reject){
		copy(scope), copy(where), copy(why.path), copy(why.text), why.reason};
}

void roll_engine_clear_rejects(struct roll_engine *engine, bool all, struct roll_str scope)
{
	size_t i, kept = 0;

	for (i = 0; i < engine->reject_count; i++) {
		struct roll_reject *reject = &engine->rejects[i];

		if (all || !reject->scope || roll_str_eq_c(scope, reject->scope))
			free_reject(reject);
		else
			engine->rejects[kept++] = *reject;
	}
	engine->reject_count = kept;
	if (all)
		engine->rejects_dropped = 0;
}

/* --- everything for people --- */

struct report {
	roll_engine_on_finding on_finding;
	void *ctx;
	const struct roll_object_row *row;
	struct roll_snap *snap;
};

static void on_row_finding(void *ctx, unsigned severity, unsigned reason, struct roll_str path,
			   struct roll_str text)
{
	const struct report *report = ctx;
	char object[400], key[340], shown_path[300], shown_text[600];

	(void)severity;
	snprintf(object, sizeof object, "%s/%s", roll_kind_text((enum roll_kind)report->row->kind),
		 roll_str_show(report->row->key, key, sizeof key));
	report->on_finding(report->ctx, object, roll_str_show(path, shown_path, sizeof shown_path),
			   roll_reason_text((enum roll_reason)reason),
			   roll_str_show(text, shown_text, sizeof shown_text));
}

static enum roll_status on_row(void *ctx, const struct roll_object_row *row)
{
	struct report *report = ctx;
	uint32_t kept = 0, total = row->fault_count + row->warning_count;
	char object[400], key[340], text[80];
	enum roll_status status;

	if (!total)
		return ROLL_OK;
	report->row = row;
	status = roll_row_findings(row, on_row_finding, report);
	kept = total < ROLL_FINDINGS_KEPT ? total : ROLL_FINDINGS_KEPT;
	if (!status && kept < total) {
		snprintf(object, sizeof object, "%s/%s", roll_kind_text((enum roll_kind)row->kind),
			 roll_str_show(row->key, key, sizeof key));
		snprintf(text, sizeof text, "and %u findings more", total - kept);
		report->on_finding(report->ctx, object, "", "Invalid", text);
	}
	return status;
}

static enum roll_status on_domain(void *ctx, const struct roll_domain *domain)
{
	struct report *report = ctx;
	char object[400], key[340], text[ROLL_NAME_TEXT_SIZE + 80], name[ROLL_NAME_TEXT_SIZE];
	enum roll_zone_state state;
	enum roll_status status;
	uint32_t i;

	for (i = 0; i < domain->row->claim_count; i++) {
		/* The holder's state is known already, and of the domain as a whole. */
		state = domain->state;
		if (i != domain->holder) {
			status = roll_snap_claim_state(report->snap, domain, i, &state);
			if (status)
				return status;
		}
		if (state == ROLL_ZONE_SERVED)
			continue;
		snprintf(object, sizeof object, "%s/%s", roll_kind_text(ROLL_KIND_ZONE),
			 roll_str_show(domain->row->claims[i].object, key, sizeof key));
		snprintf(text, sizeof text, "%s is not served for it: %s",
			 roll_name_show(&domain->name, name), roll_zone_state_text(state));
		report->on_finding(report->ctx, object, "spec",
				   state == ROLL_ZONE_IN_USE ? "DNSZoneInUse" : "NotServed", text);
	}
	return ROLL_OK;
}

enum roll_status roll_engine_findings(struct roll_engine *engine, roll_engine_on_finding on_finding,
				      void *ctx)
{
	struct report report = {.on_finding = on_finding, .ctx = ctx};
	struct roll_txn *txn = NULL;
	enum roll_status status;
	char where[300], text[80];
	size_t i;
	int kind;

	status = roll_txn_begin(engine->conf.writer, &txn, NULL);
	if (status)
		return status;
	report.snap = roll_txn_snap(txn);
	for (kind = 0; kind < ROLL_ROW_KINDS && !status; kind++)
		status = roll_snap_objects(report.snap, (enum roll_row_kind)kind, roll_str_n("", 0),
					   on_row, &report);
	if (!status)
		status = roll_snap_domains(report.snap, on_domain, &report);
	roll_txn_abort(txn);
	for (i = 0; i < engine->reject_count; i++) {
		const struct roll_reject *reject = &engine->rejects[i];

		roll_str_show(roll_str_c(reject->where), where, sizeof where);
		on_finding(ctx, where, reject->path ? reject->path : "",
			   roll_reason_text(reject->reason), reject->text ? reject->text : "");
	}
	if (engine->rejects_dropped) {
		snprintf(text, sizeof text, "and %llu objects more without a usable identity",
			 (unsigned long long)engine->rejects_dropped);
		on_finding(ctx, "", "", roll_reason_text(ROLL_REASON_INVALID), text);
	}
	return status;
}
