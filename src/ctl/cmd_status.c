/* SPDX-License-Identifier: Apache-2.0 */

/*
 * rollcall status: is the view complete, how fresh is it, and is all of it served?
 */

#include <string.h>

#include "ctl/ctl.h"
#include "view/stat.h"

#define UNSERVED_SHOWN 10

struct tally {
	struct roll_snap *snap;
	uint64_t served, unserved; /* DNSZones */
	uint64_t faults, warnings;
	struct {
		struct roll_name name;
		enum roll_zone_state state;
	} first[UNSERVED_SHOWN];
};

static enum roll_status on_domain(void *ctx, const struct roll_domain *domain)
{
	struct tally *tally = ctx;
	enum roll_zone_state state;
	enum roll_status status;

	for (uint32_t i = 0; i < domain->row->claim_count; i++) {
		status = roll_snap_claim_state(tally->snap, domain, i, &state);
		if (status)
			return status;
		if (state == ROLL_ZONE_SERVED) {
			tally->served++;
			continue;
		}
		if (tally->unserved < UNSERVED_SHOWN) {
			tally->first[tally->unserved].name = domain->name;
			tally->first[tally->unserved].state = state;
		}
		tally->unserved++;
	}
	return ROLL_OK;
}

static enum roll_status on_object(void *ctx, const struct roll_object_row *row)
{
	struct tally *tally = ctx;

	tally->faults += row->fault_count;
	tally->warnings += row->warning_count;
	return ROLL_OK;
}

static enum roll_status count(struct roll_snap *snap, struct tally *tally)
{
	enum roll_status status = roll_snap_domains(snap, on_domain, tally);
	unsigned kind;

	for (kind = 0; status == ROLL_OK && kind < ROLL_ROW_KINDS; kind++)
		status = roll_snap_objects(snap, (enum roll_row_kind)kind, roll_str_n(NULL, 0),
					   on_object, tally);
	return status;
}

static bool is_good(const struct roll_head *head, const struct tally *tally)
{
	return head->complete_since_ms && !tally->unserved && !tally->faults;
}

static void print_json(struct roll_ctl *ctl, const struct roll_head *head,
		       const struct roll_view_stat *stat, const struct tally *tally)
{
	struct roll_out *out = &ctl->out;
	uint64_t i;

	roll_out_open(out, NULL, '{');
	roll_out_c(out, "view", ctl->view_dir);
	roll_out_bool(out, "good", is_good(head, tally));
	roll_out_u64(out, "format", head->format);
	roll_out_u64(out, "generation", head->generation);
	roll_out_str(out, "controller", head->controller);
	roll_out_str(out, "source", head->source);
	roll_out_bool(out, "complete", head->complete_since_ms != 0);
	roll_out_time(out, "completeSince", head->complete_since_ms / 1000);
	roll_out_time(out, "confirmed", head->confirmed_ms / 1000);
	roll_out_open(out, "objects", '{');
	for (i = 0; i < ROLL_ROW_KINDS; i++)
		roll_out_u64(out, roll_kind_text((enum roll_kind)i), head->object_count[i]);
	roll_out_close(out);
	roll_out_u64(out, "names", head->name_count);
	roll_out_u64(out, "zonesServed", tally->served);
	roll_out_u64(out, "zonesNotServed", tally->unserved);
	roll_out_u64(out, "errors", tally->faults);
	roll_out_u64(out, "warnings", tally->warnings);
	roll_out_u64(out, "mapBytes", stat->map_bytes);
	roll_out_u64(out, "usedBytes", stat->used_bytes);
	roll_out_u64(out, "readers", stat->readers);
	roll_out_u64(out, "staleReaders", stat->stale_readers);
	roll_out_u64(out, "sweepPending", stat->gone_numbers);
	roll_out_close(out);
}

static void print_zones(struct roll_ctl *ctl, const struct tally *tally)
{
	struct roll_out *out = &ctl->out;
	uint64_t i;

	roll_out_label(out, "zones");
	roll_out_text(out, "%llu served, %llu not served\n", (unsigned long long)tally->served,
		      (unsigned long long)tally->unserved);
	for (i = 0; i < tally->unserved && i < UNSERVED_SHOWN; i++) {
		roll_out_label(out, "");
		roll_ctl_out_name(out, &tally->first[i].name);
		roll_out_text(out, ": %s\n", roll_words_why(tally->first[i].state));
	}
	if (tally->unserved > UNSERVED_SHOWN) {
		roll_out_label(out, "");
		roll_out_text(out, "... and %llu more: rollcall zones\n",
			      (unsigned long long)(tally->unserved - UNSERVED_SHOWN));
	}
}

static void print_text(struct roll_ctl *ctl, const struct roll_head *head,
		       const struct roll_view_stat *stat, const struct tally *tally)
{
	struct roll_out *out = &ctl->out;
	char since[ROLL_SINCE_SIZE], age[ROLL_AGE_SIZE];
	int64_t confirmed_s = head->confirmed_ms / 1000;
	unsigned i;

	roll_out_label(out, "view");
	roll_out_text(out, "%s, format %u, generation %llu\n", ctl->view_dir, head->format,
		      (unsigned long long)head->generation);
	roll_out_label(out, "complete");
	if (head->complete_since_ms)
		roll_out_text(out, "since %s\n",
			      roll_ctl_since(ctl, head->complete_since_ms / 1000, since));
	else
		roll_out_text(out, "NO: the source was never read to its end; every question is "
				   "answered SERVFAIL\n");
	roll_out_label(out, "confirmed");
	if (head->confirmed_ms)
		roll_out_text(out, "%s ago\n", roll_words_age(ctl->now_s - confirmed_s, age));
	else
		roll_out_text(out, "never\n");
	roll_out_label(out, "source");
	roll_out_shown(out, head->source.n ? head->source : roll_str_c("unknown"));
	roll_out_text(out, ", classes of controller ");
	roll_out_shown(out, head->controller);
	roll_out_text(out, "\n");
	roll_out_label(out, "objects");
	for (i = 0; i < ROLL_ROW_KINDS; i++)
		roll_out_text(out, "%s%llu %s", i ? ", " : "",
			      (unsigned long long)head->object_count[i],
			      roll_kind_text((enum roll_kind)i));
	roll_out_text(out, "\n");
	roll_out_label(out, "names");
	roll_out_text(out, "%llu\n", (unsigned long long)head->name_count);
	print_zones(ctl, tally);
	roll_out_label(out, "findings");
	roll_out_text(out, "%llu errors, %llu warnings\n", (unsigned long long)tally->faults,
		      (unsigned long long)tally->warnings);
	roll_out_label(out, "map");
	roll_out_text(out, "%.1f of %.1f MiB used\n", (double)stat->used_bytes / 1048576.0,
		      (double)stat->map_bytes / 1048576.0);
	roll_out_label(out, "readers");
	roll_out_text(out, "%u, %u of them dead\n", stat->readers, stat->stale_readers);
	roll_out_label(out, "sweep");
	if (stat->gone_numbers)
		roll_out_text(out, "pending: rows of %llu zones that are gone\n",
			      (unsigned long long)stat->gone_numbers);
	else
		roll_out_text(out, "nothing pending\n");
}

int roll_cmd_status(struct roll_ctl *ctl)
{
	struct roll_ctl_view view;
	struct roll_view_stat stat = {0};
	struct tally tally;
	enum roll_status status;
	int code;

	memset(&tally, 0, sizeof tally);
	if (!roll_ctl_open(ctl, false, &view, &code))
		return code;
	tally.snap = view.snap;
	status = count(view.snap, &tally);
	if (status == ROLL_OK)
		status = roll_snap_stat(view.snap, &stat);
	if (status != ROLL_OK) {
		code = roll_ctl_unreadable(ctl, status);
	} else {
		const struct roll_head *head = roll_snap_head(view.snap);

		if (ctl->is_json)
			print_json(ctl, head, &stat, &tally);
		else
			print_text(ctl, head, &stat, &tally);
		code = is_good(head, &tally) ? ROLL_EXIT_OK : ROLL_EXIT_FINDINGS;
	}
	roll_ctl_close(&view);
	return code;
}
