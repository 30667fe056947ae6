/* SPDX-License-Identifier: Apache-2.0 */

/*
 * rollcall dump: what is served, as a zone file (RFC 1035, 5) that any reader takes: absolute
 * names, a TTL on every line, no directives, the SOA first.
 *
 * ALIAS is PowerDNS's own type. It is written as RFC 3597 has unknown types, with its target in a
 * comment; --pdns writes `ALIAS target.`, which PowerDNS loads and other servers refuse.
 */

#include "ctl/ctl.h"
#include "dns/rdata.h"
#include "dns/type.h"

struct dump {
	struct roll_ctl *ctl;
	struct roll_snap *snap;
	struct roll_buf line;
	bool skip_soa; /* it has been printed */
};

static void print_json_row(struct dump *dump, const struct roll_row *row)
{
	struct roll_out *out = &dump->ctl->out;
	char type[ROLL_TYPE_TEXT_SIZE];

	roll_buf_reset(&dump->line);
	roll_words_rdata(row->type, row->rdata, &dump->line);
	roll_out_open(out, NULL, '{');
	roll_ctl_json_name(out, "name", row->owner);
	roll_out_c(out, "type", roll_words_type(row->type, type));
	roll_out_u64(out, "ttl", row->ttl);
	roll_out_str(out, "content", roll_buf_str(&dump->line));
	roll_out_bool(out, "auth", row->auth);
	roll_out_close(out);
}

static void print_row(struct dump *dump, const struct roll_row *row)
{
	bool is_generic = row->type == ROLL_TYPE_ALIAS && !dump->ctl->for_pdns;
	struct roll_buf *line = &dump->line;
	char type[ROLL_TYPE_TEXT_SIZE];

	roll_buf_reset(line);
	roll_name_print(row->owner, ROLL_DOT_FINAL, line);
	if (is_generic) {
		roll_buf_printf(line, "\t%u\tIN\tTYPE%u\t", row->ttl, row->type);
		roll_words_rdata_generic(row->rdata, line);
		roll_buf_add_c(line, " ; ALIAS ");
	} else {
		roll_buf_printf(line, "\t%u\tIN\t%s\t", row->ttl, roll_words_type(row->type, type));
	}
	roll_words_rdata(row->type, row->rdata, line);
	roll_buf_add_char(line, '\n');
	roll_out_raw(&dump->ctl->out, roll_buf_str(line));
}

static enum roll_status on_row(void *ctx, const struct roll_row *row)
{
	struct dump *dump = ctx;

	if (row->type == ROLL_TYPE_ENT || (row->type == ROLL_TYPE_SOA && dump->skip_soa))
		return ROLL_OK;
	if (dump->ctl->is_json)
		print_json_row(dump, row);
	else
		print_row(dump, row);
	return dump->line.status;
}

static enum roll_status dump_zone(struct dump *dump, const struct roll_zone *zone)
{
	struct roll_out *out = &dump->ctl->out;
	/* The domain is compared with owners while rows are read: keep it. */
	const struct roll_zone copy = *zone;
	enum roll_status status;

	if (dump->ctl->is_json) {
		roll_out_open(out, NULL, '{');
		roll_ctl_json_name(out, "domain", &copy.domain);
		roll_out_str(out, "object", copy.object);
		roll_out_u64(out, "serial", copy.soa_serial);
		roll_out_open(out, "records", '[');
	} else {
		roll_out_text(out, "; zone ");
		roll_ctl_out_name(out, &copy.domain);
		roll_out_text(out, " of DNSZone ");
		roll_out_shown(out, copy.object);
		roll_out_text(out, ", serial %u\n", copy.soa_serial);
	}
	/* RFC 1035, 5.2: readers expect the SOA before anything else. */
	dump->skip_soa = false;
	status = roll_snap_lookup(dump->snap, &copy, &copy.domain, ROLL_TYPE_SOA, on_row, dump);
	dump->skip_soa = true;
	if (status == ROLL_OK)
		status = roll_snap_list(dump->snap, &copy, on_row, dump);
	if (dump->ctl->is_json) {
		roll_out_close(out);
		roll_out_close(out);
	}
	return status;
}

static enum roll_status on_domain(void *ctx, const struct roll_domain *domain)
{
	return domain->zone ? dump_zone(ctx, domain->zone) : ROLL_OK;
}

static int dump_one(struct dump *dump, const char *text)
{
	const struct roll_ctl *ctl = dump->ctl;
	char shown[ROLL_NAME_TEXT_SIZE];
	const struct roll_zone *zone;
	struct roll_domain domain;
	enum roll_status status;
	struct roll_name name;

	if (!roll_ctl_name(ctl, text, &name))
		return ROLL_EXIT_USAGE;
	roll_name_show(&name, shown);
	status = roll_snap_zone_at(dump->snap, &name, &zone);
	if (status == ROLL_OK)
		status = dump_zone(dump, zone);
	else if (status == ROLL_ENOENT) {
		status = roll_snap_domain(dump->snap, &name, &domain);
		if (status == ROLL_OK)
			roll_ctl_complain(ctl, "the zone %s is not served: %s", shown,
					  roll_words_why(domain.state));
		else if (status == ROLL_ENOENT)
			roll_ctl_complain(ctl,
					  "no DNSZone has the domain %s; `rollcall zones` "
					  "lists those there are",
					  shown);
		if (status == ROLL_OK || status == ROLL_ENOENT)
			return ROLL_EXIT_FINDINGS;
	}
	return status == ROLL_OK ? ROLL_EXIT_OK : roll_ctl_unreadable(ctl, status);
}

int roll_cmd_dump(struct roll_ctl *ctl)
{
	struct dump dump = {.ctl = ctl};
	struct roll_ctl_view view;
	enum roll_status status;
	int code;

	if (!roll_ctl_open(ctl, true, &view, &code))
		return code;
	dump.snap = view.snap;
	/* 64 KiB of rdata, each byte as \DDD or twice in hex, and a name. */
	roll_buf_init(&dump.line, (size_t)1 << 20);
	if (ctl->is_json)
		roll_out_open(&ctl->out, NULL, '[');
	if (ctl->arg_count) {
		code = dump_one(&dump, ctl->args[0]);
	} else {
		status = roll_snap_domains(view.snap, on_domain, &dump);
		code = status == ROLL_OK ? ROLL_EXIT_OK : roll_ctl_unreadable(ctl, status);
	}
	if (ctl->is_json)
		roll_out_close(&ctl->out);
	roll_buf_fini(&dump.line);
	roll_ctl_close(&view);
	return code;
}
