/* SPDX-License-Identifier: Apache-2.0 */

/*
 * rollcall explain: what is answered for a name, which object makes it so, and who lost.
 */

#include "ctl/ctl.h"
#include "explain/explain.h"
#include "dns/type.h"

/* Who serves instead of a loser, in words. */
static void print_winner(struct roll_ctl *ctl, const struct roll_explain_claim *claim)
{
	char type[ROLL_TYPE_TEXT_SIZE], since[ROLL_SINCE_SIZE];
	struct roll_out *out = &ctl->out;

	if (!claim->by.n) {
		roll_out_text(out, "the zone's own SOA and NS stand at its apex");
		return;
	}
	roll_out_shown(out, claim->by);
	roll_out_text(out, " has %s here and %s (%s)", roll_words_type(claim->by_type, type),
		      roll_words_older(claim->by_created_s, claim->created_s),
		      roll_ctl_since(ctl, claim->by_created_s, since));
}

static void print_headline(struct roll_ctl *ctl, const struct roll_explain *x)
{
	struct roll_out *out = &ctl->out;
	char type[ROLL_TYPE_TEXT_SIZE];

	roll_ctl_out_name(out, &x->name);
	if (x->type != ROLL_TYPE_ANY)
		roll_out_text(out, " %s", roll_words_type(x->type, type));
	switch (x->result) {
	case ROLL_EXPLAIN_ANSWER:
		roll_out_text(out, ": answered");
		if (x->has_wildcard) {
			roll_out_text(out, " by the wildcard ");
			roll_ctl_out_name(out, &x->source);
		}
		break;
	case ROLL_EXPLAIN_NODATA:
		if (x->is_ent && !x->has_wildcard)
			roll_out_text(out,
				      ": no records, but names below it (NOERROR, empty answer)");
		else if (x->has_wildcard) {
			roll_out_text(out, ": the wildcard ");
			roll_ctl_out_name(out, &x->source);
			roll_out_text(out, " lacks this type (NOERROR, empty answer)");
		} else {
			roll_out_text(out, ": the name lacks this type (NOERROR, empty answer)");
		}
		break;
	case ROLL_EXPLAIN_NXDOMAIN:
		roll_out_text(out, ": no such name (NXDOMAIN)");
		break;
	case ROLL_EXPLAIN_REFERRAL:
		roll_out_text(out, ": delegated at ");
		roll_ctl_out_name(out, &x->cut);
		roll_out_text(out, " (referral to its name servers)");
		break;
	case ROLL_EXPLAIN_REFUSED:
		roll_out_text(out, ": in no zone that is served (REFUSED)");
		break;
	}
	roll_out_text(out, "\n");
}

static void print_zone(struct roll_ctl *ctl, const struct roll_explain *x)
{
	const struct roll_explain_domain *in;
	struct roll_out *out = &ctl->out;
	char since[ROLL_SINCE_SIZE];
	const char *label = "zones";

	if (!x->domains) {
		roll_out_label(out, "zones");
		roll_out_text(out, "no DNSZone has this domain or one above it\n");
	}
	for (in = x->domains; in; in = in->next) {
		bool is_answering = x->has_zone && in->claim.number == x->zone.number;

		roll_out_label(out, label);
		label = "";
		roll_ctl_out_name(out, &in->name);
		roll_out_text(out, "  DNSZone ");
		roll_out_shown(out, in->claim.object);
		if (in->state != ROLL_ZONE_SERVED)
			roll_out_text(out, "  not served: %s", roll_words_why(in->state));
		else
			roll_out_text(out, is_answering ? "  answers" : "  served, less deep");
		if (in->claim.class_name.n) {
			roll_out_text(out, ", class ");
			roll_out_shown(out, in->claim.class_name);
		}
		if (is_answering)
			roll_out_text(out, ", serial %u", x->zone.soa_serial);
		roll_out_text(out, " (%s)\n", roll_ctl_since(ctl, in->claim.created_s, since));
	}
}

static void print_records(struct roll_ctl *ctl, const struct roll_explain *x)
{
	const struct roll_explain_record *record;
	char type[ROLL_TYPE_TEXT_SIZE], owner[ROLL_NAME_TEXT_SIZE];
	struct roll_out *out = &ctl->out;
	const char *label = "records";
	const char *note = roll_explain_alias_note(x);

	for (record = x->records; record; record = record->next) {
		roll_out_label(out, label);
		label = "";
		roll_out_text(out, "%s %u %s ", roll_name_show(&record->owner, owner), record->ttl,
			      roll_words_type(record->type, type));
		roll_out_sentence(out, record->content);
		roll_out_text(out, record->object.n ? "  <- " : "  <- the zone's class");
		roll_out_shown(out, record->object);
		if (!record->auth)
			roll_out_text(out, " (not authoritative)");
		roll_out_text(out, "\n");
	}
	if (note) {
		roll_out_label(out, "note");
		roll_out_text(out, "%s\n", note);
	}
}

static void print_claims(struct roll_ctl *ctl, const struct roll_explain *x)
{
	const struct roll_explain_claim *claim;
	char type[ROLL_TYPE_TEXT_SIZE], since[ROLL_SINCE_SIZE];
	struct roll_out *out = &ctl->out;
	const char *label = "objects";

	for (claim = x->claims; claim; claim = claim->next) {
		roll_out_label(out, label);
		label = "";
		roll_out_shown(out, claim->object);
		roll_out_text(out, " %s (%s)  ", roll_words_type(claim->type, type),
			      roll_ctl_since(ctl, claim->created_s, since));
		if (!claim->is_in_zone && claim->state == ROLL_ZONE_SERVED) {
			roll_out_text(out, "not served: shadowed, the deeper zone ");
			roll_ctl_out_name(out, &x->zone.domain);
			roll_out_text(out, " answers");
		} else if (!claim->is_in_zone) {
			roll_out_text(out, "not served: its DNSZone ");
			roll_out_shown(out, claim->zone);
			roll_out_text(out, " is not (%s)", roll_words_why(claim->state));
		} else if (claim->verdict == ROLL_VERDICT_SERVED) {
			roll_out_text(out, "serves");
		} else {
			roll_out_text(out, "%s: ", roll_verdict_text(claim->verdict));
			print_winner(ctl, claim);
		}
		roll_out_text(out, "\n");
	}
}

static void print_wanting(struct roll_ctl *ctl, const struct roll_explain *x)
{
	const struct roll_explain_wanting *item;
	struct roll_out *out = &ctl->out;
	const char *label = "wanted by";

	for (item = x->wanting; item; item = item->next) {
		roll_out_label(out, label);
		label = "";
		roll_out_shown(out, item->object);
		if (item->is_waiting) {
			roll_out_text(out, item->is_possible ? "  perhaps; " : "  ");
			roll_out_text(out, "waits for its DNSZone ");
			roll_out_shown(out, item->zone.n ? item->zone : roll_str_c("(none named)"));
		} else {
			roll_out_text(out, "  its entry cannot be served, see findings");
		}
		roll_out_text(out, "\n");
	}
	if (x->wanting_count == ROLL_EXPLAIN_WANTING) {
		roll_out_label(out, "");
		roll_out_text(out, "... perhaps more; these are the first %d\n",
			      ROLL_EXPLAIN_WANTING);
	}
}

static void print_findings(struct roll_ctl *ctl, const struct roll_explain *x)
{
	const struct roll_explain_finding *finding;
	struct roll_out *out = &ctl->out;
	const char *label = "findings";

	for (finding = x->findings; finding; finding = finding->next) {
		roll_out_label(out, label);
		label = "";
		roll_out_shown(out, finding->object);
		roll_out_text(out,
			      " %s %s: ", finding->severity == ROLL_FAULT ? "error" : "warning",
			      roll_reason_text(finding->reason));
		roll_out_shown(out, finding->path);
		roll_out_text(out, " ");
		roll_out_sentence(out, finding->text);
		roll_out_text(out, "\n");
	}
}

static void print_removals(struct roll_ctl *ctl, const struct roll_explain *x)
{
	const struct roll_explain_removal *item;
	struct roll_out *out = &ctl->out;
	char since[ROLL_SINCE_SIZE];
	const char *label = "removed";

	for (item = x->removals; item; item = item->next) {
		roll_out_label(out, label);
		label = "";
		roll_out_text(out, "%s ", roll_kind_text((enum roll_kind)item->removal.kind));
		roll_out_shown(out, item->removal.key);
		roll_out_text(out,
			      " (%s): ", roll_ctl_since(ctl, item->removal.at_ms / 1000, since));
		roll_out_shown(out, item->removal.evidence);
		roll_out_text(out, "\n");
	}
}

static void print_json_claims(struct roll_ctl *ctl, const struct roll_explain *x)
{
	const struct roll_explain_claim *claim;
	struct roll_out *out = &ctl->out;
	char type[ROLL_TYPE_TEXT_SIZE];

	roll_out_open(out, "objects", '[');
	for (claim = x->claims; claim; claim = claim->next) {
		bool is_serving = claim->is_in_zone && claim->verdict == ROLL_VERDICT_SERVED;

		roll_out_open(out, NULL, '{');
		roll_out_str(out, "object", claim->object);
		roll_out_c(out, "type", roll_words_type(claim->type, type));
		roll_out_time(out, "created", claim->created_s);
		roll_out_str(out, "zoneObject", claim->zone);
		roll_out_bool(out, "serves", is_serving);
		if (claim->is_in_zone)
			roll_out_c(out, "verdict", roll_verdict_text(claim->verdict));
		else if (claim->state == ROLL_ZONE_SERVED)
			roll_out_c(out, "verdict", "Shadowed");
		else
			roll_out_c(out, "verdict", "ZoneNotServed");
		if (claim->by.n)
			roll_out_str(out, "servedBy", claim->by);
		else
			roll_out_c(out, "servedBy", NULL);
		roll_out_close(out);
	}
	roll_out_close(out);
}

static void print_json_rest(struct roll_ctl *ctl, const struct roll_explain *x)
{
	const struct roll_explain_wanting *wanting;
	const struct roll_explain_finding *finding;
	const struct roll_explain_removal *removal;
	struct roll_out *out = &ctl->out;

	roll_out_open(out, "wantedBy", '[');
	for (wanting = x->wanting; wanting; wanting = wanting->next) {
		roll_out_open(out, NULL, '{');
		roll_out_str(out, "object", wanting->object);
		roll_out_str(out, "zoneObject", wanting->zone);
		roll_out_bool(out, "waits", wanting->is_waiting);
		roll_out_bool(out, "certain", !wanting->is_possible);
		roll_out_close(out);
	}
	roll_out_close(out);
	roll_out_open(out, "findings", '[');
	for (finding = x->findings; finding; finding = finding->next) {
		roll_out_open(out, NULL, '{');
		roll_out_str(out, "object", finding->object);
		roll_out_c(out, "severity", finding->severity == ROLL_FAULT ? "error" : "warning");
		roll_out_c(out, "reason", roll_reason_text(finding->reason));
		roll_out_str(out, "path", finding->path);
		roll_out_str(out, "text", finding->text);
		roll_out_close(out);
	}
	roll_out_close(out);
	roll_out_open(out, "removed", '[');
	for (removal = x->removals; removal; removal = removal->next) {
		roll_out_open(out, NULL, '{');
		roll_out_c(out, "kind", roll_kind_text((enum roll_kind)removal->removal.kind));
		roll_out_str(out, "object", removal->removal.key);
		roll_out_str(out, "evidence", removal->removal.evidence);
		roll_out_u64(out, "revision", removal->removal.revision);
		roll_out_time(out, "time", removal->removal.at_ms / 1000);
		roll_out_close(out);
	}
	roll_out_close(out);
}

static void print_json(struct roll_ctl *ctl, const struct roll_explain *x)
{
	const struct roll_explain_record *record;
	const struct roll_explain_domain *in;
	struct roll_out *out = &ctl->out;
	char type[ROLL_TYPE_TEXT_SIZE];

	roll_out_open(out, NULL, '{');
	roll_ctl_json_name(out, "name", &x->name);
	roll_out_c(out, "type", x->type == ROLL_TYPE_ANY ? NULL : roll_words_type(x->type, type));
	roll_out_c(out, "result", roll_explain_result_text(x->result));
	roll_out_bool(out, "emptyNonTerminal", x->is_ent && !x->has_wildcard);
	if (x->has_cut)
		roll_ctl_json_name(out, "delegation", &x->cut);
	else
		roll_out_c(out, "delegation", NULL);
	if (x->has_wildcard)
		roll_ctl_json_name(out, "wildcard", &x->source);
	else
		roll_out_c(out, "wildcard", NULL);
	roll_out_open(out, "zones", '[');
	for (in = x->domains; in; in = in->next) {
		roll_out_open(out, NULL, '{');
		roll_ctl_json_name(out, "domain", &in->name);
		roll_out_str(out, "object", in->claim.object);
		roll_out_c(out, "state", roll_zone_state_text(in->state));
		roll_out_bool(out, "answers", x->has_zone && in->claim.number == x->zone.number);
		roll_out_str(out, "class", in->claim.class_name);
		roll_out_time(out, "created", in->claim.created_s);
		roll_out_close(out);
	}
	roll_out_close(out);
	roll_out_open(out, "records", '[');
	for (record = x->records; record; record = record->next) {
		roll_out_open(out, NULL, '{');
		roll_ctl_json_name(out, "name", &record->owner);
		roll_out_c(out, "type", roll_words_type(record->type, type));
		roll_out_u64(out, "ttl", record->ttl);
		roll_out_str(out, "content", record->content);
		roll_out_bool(out, "auth", record->auth);
		if (record->object.n)
			roll_out_str(out, "object", record->object);
		else
			roll_out_c(out, "object", NULL);
		roll_out_bool(out, "answers",
			      x->result == ROLL_EXPLAIN_ANSWER &&
				      roll_explain_answers(x, record->type));
		roll_out_close(out);
	}
	roll_out_close(out);
	print_json_claims(ctl, x);
	roll_out_c(out, "note", roll_explain_alias_note(x));
	print_json_rest(ctl, x);
	roll_out_close(out);
}

static void print_text(struct roll_ctl *ctl, const struct roll_explain *x)
{
	print_headline(ctl, x);
	print_zone(ctl, x);
	print_records(ctl, x);
	print_claims(ctl, x);
	print_wanting(ctl, x);
	print_findings(ctl, x);
	print_removals(ctl, x);
}

static bool parse_type(const struct roll_ctl *ctl, const char *text, uint16_t *out)
{
	const struct roll_type_info *info = roll_type_find_name(roll_str_c(text));
	char shown[100];
	size_t i;

	if (info) {
		*out = info->type;
		return true;
	}
	if (roll_str_eq_nocase(roll_str_c(text), roll_str_c("ANY"))) {
		*out = ROLL_TYPE_ANY;
		return true;
	}
	fprintf(stderr, "rollcall %s: \"%s\" is not a type that is served; expected one of ANY",
		ctl->verb, roll_str_show(roll_str_c(text), shown, sizeof shown));
	for (i = 0; i < ROLL_TYPE_COUNT; i++)
		fprintf(stderr, " %s", roll_types[i].name);
	fputc('\n', stderr);
	return false;
}

int roll_cmd_explain(struct roll_ctl *ctl)
{
	uint16_t type = ROLL_TYPE_ANY;
	struct roll_ctl_view view;
	struct roll_explain x;
	enum roll_status status;
	struct roll_name name;
	int code;

	if (!roll_ctl_name(ctl, ctl->args[0], &name) ||
	    (ctl->arg_count == 2 && !parse_type(ctl, ctl->args[1], &type)))
		return ROLL_EXIT_USAGE;
	if (!roll_ctl_open(ctl, true, &view, &code))
		return code;
	status = roll_explain_init(&x, view.snap, &name, type);
	if (status == ROLL_OK)
		status = roll_explain_gather(&x);
	if (status != ROLL_OK) {
		code = roll_ctl_unreadable(ctl, status);
	} else {
		if (ctl->is_json)
			print_json(ctl, &x);
		else
			print_text(ctl, &x);
		code = x.result == ROLL_EXPLAIN_ANSWER || x.result == ROLL_EXPLAIN_REFERRAL
			       ? ROLL_EXIT_OK
			       : ROLL_EXIT_FINDINGS;
	}
	roll_explain_fini(&x);
	roll_ctl_close(&view);
	return code;
}
