/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_CTL_CTL_H
#define ROLL_CTL_CTL_H

#include "app/option.h"
#include "ctl/out.h"
#include "explain/words.h"
#include "model/object.h"
#include "view/read.h"

/*
 * What the verbs of `rollcall` share: the command line, the view, and how things are shown.
 *
 * A verb returns the exit code. ROLL_EXIT_FINDINGS also stands for differences and for "not
 * served"; ROLL_EXIT_SOURCE for a view that cannot be read.
 */
struct roll_ctl {
	struct roll_out out;
	const char *view_dir;
	const char *controller; /* check: whose classes are ours */
	bool is_json;
	bool for_pdns; /* dump: ALIAS as PowerDNS's own zone files have it */
	const struct roll_clock *clock;
	int64_t now_s;
	const char *verb;
	char *const *args; /* after the verb */
	int arg_count;
};

int roll_cmd_status(struct roll_ctl *ctl);
int roll_cmd_zones(struct roll_ctl *ctl);
int roll_cmd_dump(struct roll_ctl *ctl);
int roll_cmd_explain(struct roll_ctl *ctl);
int roll_cmd_verify(struct roll_ctl *ctl);
int roll_cmd_why_gone(struct roll_ctl *ctl);
int roll_cmd_check(struct roll_ctl *ctl);

/* A view and one snapshot of it. Closing accepts what was never opened. */
struct roll_ctl_view {
	struct roll_view *view;
	struct roll_snap *snap;
};
/* On failure a message that says what to look at is on stderr; *exit_code is what to return. */
bool roll_ctl_open(struct roll_ctl *ctl, bool complete_only, struct roll_ctl_view *out,
		   int *exit_code) ROLL_MUST_CHECK;
void roll_ctl_close(struct roll_ctl_view *view);

/* "rollcall VERB: ..." on stderr. */
void roll_ctl_complain(const struct roll_ctl *ctl, const char *fmt, ...) ROLL_PRINTF(2, 3);
/* The view could not be read any further: says so and returns ROLL_EXIT_SOURCE. */
int roll_ctl_unreadable(const struct roll_ctl *ctl, enum roll_status status);
/* An argument as a domain name; complains otherwise. */
bool roll_ctl_name(const struct roll_ctl *ctl, const char *text,
		   struct roll_name *out) ROLL_MUST_CHECK;

/* "2026-12-02T05:31:50Z, 3d 2h ago" or "without creation time". Returns text. */
#define ROLL_SINCE_SIZE 80
const char *roll_ctl_since(const struct roll_ctl *ctl, int64_t seconds, char text[ROLL_SINCE_SIZE]);

/* Names without final dot, as people type them; the root is ".". */
void roll_ctl_out_name(struct roll_out *out, const struct roll_name *name);
void roll_ctl_json_name(struct roll_out *out, const char *key, const struct roll_name *name);

#endif
