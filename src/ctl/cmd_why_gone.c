/* SPDX-License-Identifier: Apache-2.0 */

/*
 * rollcall why-gone: which objects made a name answer and are gone, and what proved it.
 */

#include "ctl/ctl.h"
#include "explain/explain.h"

struct search {
	struct roll_ctl *ctl;
	struct roll_name name;
	uint64_t found;
};

static void print_text(struct roll_ctl *ctl, const struct roll_removal *removal)
{
	struct roll_out *out = &ctl->out;
	char since[ROLL_SINCE_SIZE];

	roll_out_text(out, "%s  %s ", roll_ctl_since(ctl, removal->at_ms / 1000, since),
		      roll_kind_text((enum roll_kind)removal->kind));
	roll_out_shown(out, removal->key);
	if (removal->uid.n) {
		roll_out_text(out, " (uid ");
		roll_out_shown(out, removal->uid);
		roll_out_text(out, ")");
	}
	if (removal->zone.n) {
		roll_out_text(out, " of DNSZone ");
		roll_out_shown(out, removal->zone);
	}
	roll_out_text(out, ": ");
	roll_out_shown(out, removal->evidence);
	if (removal->revision)
		roll_out_text(out, ", resourceVersion %llu", (unsigned long long)removal->revision);
	roll_out_text(out, "\n");
}

static void print_json(struct roll_ctl *ctl, const struct roll_removal *removal)
{
	struct roll_out *out = &ctl->out;

	roll_out_open(out, NULL, '{');
	roll_out_u64(out, "sequence", removal->sequence);
	roll_out_time(out, "time", removal->at_ms / 1000);
	roll_out_c(out, "kind", roll_kind_text((enum roll_kind)removal->kind));
	roll_out_str(out, "object", removal->key);
	roll_out_str(out, "uid", removal->uid);
	roll_out_str(out, "zoneObject", removal->zone);
	roll_out_str(out, "names", removal->names);
	roll_out_str(out, "evidence", removal->evidence);
	roll_out_u64(out, "revision", removal->revision);
	roll_out_close(out);
}

static enum roll_status on_removal(void *ctx, const struct roll_removal *removal)
{
	struct search *search = ctx;

	if (!roll_removal_names(removal, &search->name))
		return ROLL_OK;
	search->found++;
	if (search->ctl->is_json)
		print_json(search->ctl, removal);
	else
		print_text(search->ctl, removal);
	return ROLL_OK;
}

int roll_cmd_why_gone(struct roll_ctl *ctl)
{
	struct search search = {.ctl = ctl};
	struct roll_ctl_view view;
	enum roll_status status;
	int code;

	if (!roll_ctl_name(ctl, ctl->args[0], &search.name))
		return ROLL_EXIT_USAGE;
	if (!roll_ctl_open(ctl, true, &view, &code))
		return code;
	if (ctl->is_json)
		roll_out_open(&ctl->out, NULL, '[');
	status = roll_snap_removals(view.snap, on_removal, &search);
	if (ctl->is_json)
		roll_out_close(&ctl->out);
	if (status != ROLL_OK) {
		code = roll_ctl_unreadable(ctl, status);
	} else if (search.found) {
		code = ROLL_EXIT_OK;
	} else {
		roll_ctl_complain(ctl,
				  "the last %u removals have nothing of this name; `rollcall "
				  "explain` tells what the view knows of it",
				  ROLL_REMOVALS_KEPT);
		code = ROLL_EXIT_FINDINGS;
	}
	roll_ctl_close(&view);
	return code;
}
