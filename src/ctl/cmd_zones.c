/* SPDX-License-Identifier: Apache-2.0 */

/*
 * rollcall zones: every domain, who claims it, whether it is served, and if not, why.
 */

#include "ctl/ctl.h"

struct listing {
	struct roll_ctl *ctl;
	struct roll_snap *snap;
	struct roll_table table;
	uint64_t unserved;
};

static void open_json(struct roll_out *out, const struct roll_domain *domain)
{
	const struct roll_zone *zone = domain->zone;

	roll_out_open(out, NULL, '{');
	roll_ctl_json_name(out, "domain", &domain->name);
	roll_out_c(out, "state", roll_zone_state_text(domain->state));
	roll_out_bool(out, "served", zone != NULL);
	roll_out_u64(out, "id", domain->row->id);
	if (zone) {
		roll_out_str(out, "object", zone->object);
		roll_out_u64(out, "serial", zone->soa_serial);
		roll_out_u64(out, "defaultTTL", zone->default_ttl);
		roll_out_u64(out, "names", zone->name_count);
		roll_out_u64(out, "delegations", zone->cut_count);
	}
	roll_out_open(out, "claims", '[');
}

static void print_claim(struct roll_out *out, const struct roll_domain_claim *claim,
			enum roll_zone_state state)
{
	roll_out_open(out, NULL, '{');
	roll_out_str(out, "object", claim->object);
	roll_out_c(out, "state", roll_zone_state_text(state));
	roll_out_str(out, "class", claim->class_name);
	roll_out_time(out, "created", claim->created_s);
	roll_out_close(out);
}

static void close_json(struct roll_out *out)
{
	roll_out_close(out);
	roll_out_close(out);
}

static void print_row(struct roll_table *table, const struct roll_domain *domain,
		      const struct roll_domain_claim *claim, enum roll_zone_state state)
{
	bool is_serving = state == ROLL_ZONE_SERVED && domain->zone;
	struct roll_buf name;

	roll_buf_init(&name, ROLL_NAME_TEXT_SIZE);
	roll_name_print(&domain->name, ROLL_DOT_NONE, &name);
	roll_table_cell(table, roll_buf_str(&name));
	roll_buf_fini(&name);
	roll_table_cell_c(table, roll_zone_state_text(state));
	if (is_serving) {
		roll_table_cell_u64(table, domain->zone->soa_serial);
		roll_table_cell_u64(table, domain->zone->name_count);
	} else {
		roll_table_cell_c(table, "-");
		roll_table_cell_c(table, "-");
	}
	roll_table_cell(table, claim->class_name.n ? claim->class_name : roll_str_c("-"));
	roll_table_cell(table, claim->object);
}

static enum roll_status on_domain(void *ctx, const struct roll_domain *domain)
{
	struct listing *listing = ctx;
	bool is_json = listing->ctl->is_json;
	struct roll_out *out = &listing->ctl->out;
	enum roll_status status = ROLL_OK;
	enum roll_zone_state state;

	if (domain->row->claim_count == 0)
		return ROLL_OK;
	if (is_json)
		open_json(out, domain);
	for (uint32_t i = 0; i < domain->row->claim_count; i++) {
		const struct roll_domain_claim *claim = &domain->row->claims[i];

		status = roll_snap_claim_state(listing->snap, domain, i, &state);
		if (status != ROLL_OK)
			break;
		listing->unserved += state != ROLL_ZONE_SERVED;
		if (is_json)
			print_claim(out, claim, state);
		else
			print_row(&listing->table, domain, claim, state);
	}
	if (is_json)
		close_json(out);
	return status;
}

int roll_cmd_zones(struct roll_ctl *ctl)
{
	static const char *const titles[] = {"DOMAIN", "STATE", "SERIAL",
					     "NAMES",  "CLASS", "DNSZONE"};
	struct listing listing = {.ctl = ctl};
	struct roll_ctl_view view;
	enum roll_status status;
	size_t i;
	int code;

	if (!roll_ctl_open(ctl, true, &view, &code))
		return code;
	listing.snap = view.snap;
	roll_table_init(&listing.table, &ctl->out, sizeof titles / sizeof *titles);
	if (ctl->is_json)
		roll_out_open(&ctl->out, NULL, '[');
	for (i = 0; !ctl->is_json && i < sizeof titles / sizeof *titles; i++)
		roll_table_cell_c(&listing.table, titles[i]);
	status = roll_snap_domains(view.snap, on_domain, &listing);
	roll_table_fini(&listing.table);
	if (ctl->is_json)
		roll_out_close(&ctl->out);
	if (status != ROLL_OK)
		code = roll_ctl_unreadable(ctl, status);
	else
		code = listing.unserved ? ROLL_EXIT_FINDINGS : ROLL_EXIT_OK;
	roll_ctl_close(&view);
	return code;
}
