/* SPDX-License-Identifier: Apache-2.0 */

/*
 * rollcall: look into the view and explain it. Never writes to it.
 */

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "ctl/ctl.h"

static const struct {
	const char *name;
	int min_args, max_args; /* max -1: any number */
	const char *usage;
	int (*run)(struct roll_ctl *ctl);
} verbs[] = {
	{"status", 0, 0, "status", roll_cmd_status},
	{"zones", 0, 0, "zones", roll_cmd_zones},
	{"dump", 0, 1, "dump [ZONE]", roll_cmd_dump},
	{"explain", 1, 2, "explain NAME [TYPE]", roll_cmd_explain},
	{"verify", 0, 0, "verify", roll_cmd_verify},
	{"why-gone", 1, 1, "why-gone NAME", roll_cmd_why_gone},
	{"check", 1, -1, "check FILE...", roll_cmd_check},
};
#define VERB_COUNT (sizeof verbs / sizeof verbs[0])

static const char synopsis[] = "rollcall [--view DIR] [--json] status\n"
			       "rollcall [--view DIR] [--json] zones\n"
			       "rollcall [--view DIR] [--json] [--pdns] dump [ZONE]\n"
			       "rollcall [--view DIR] [--json] explain NAME [TYPE]\n"
			       "rollcall [--view DIR] [--json] verify\n"
			       "rollcall [--view DIR] [--json] why-gone NAME\n"
			       "rollcall [--json] [--controller-name NAME] check FILE...";

static int refuse_verb(const char *verb)
{
	size_t i;
	char shown[200];

	if (verb)
		fprintf(stderr, "rollcall: \"%s\" is not a verb; expected one of:\n",
			roll_str_show(roll_str_c(verb), shown, sizeof shown));
	else
		fprintf(stderr, "rollcall: a verb is missing; expected one of:\n");
	for (i = 0; i < VERB_COUNT; i++)
		fprintf(stderr, "    rollcall %s\n", verbs[i].usage);
	fputs("`rollcall --help` shows the options, `man rollcall` all of it.\n", stderr);
	return ROLL_EXIT_USAGE;
}

static int run_verb(struct roll_ctl *ctl, int arg_count, char **args)
{
	size_t i;
	int code;

	if (arg_count == 0)
		return refuse_verb(NULL);
	for (i = 0; i < VERB_COUNT && strcmp(verbs[i].name, args[0]) != 0; i++)
		;
	if (i == VERB_COUNT)
		return refuse_verb(args[0]);
	ctl->verb = verbs[i].name;
	ctl->args = args + 1;
	ctl->arg_count = arg_count - 1;
	if (ctl->arg_count < verbs[i].min_args ||
	    (verbs[i].max_args >= 0 && ctl->arg_count > verbs[i].max_args)) {
		fprintf(stderr, "rollcall: %s arguments; expected: rollcall %s\n",
			ctl->arg_count < verbs[i].min_args ? "missing" : "too many",
			verbs[i].usage);
		return ROLL_EXIT_USAGE;
	}
	if (ctl->for_pdns && verbs[i].run != roll_cmd_dump) {
		fprintf(stderr, "rollcall: --pdns is for dump only\n");
		return ROLL_EXIT_USAGE;
	}
	if (roll_out_init(&ctl->out, stdout) != ROLL_OK) {
		fprintf(stderr, "rollcall: out of memory\n");
		return ROLL_EXIT_SOURCE;
	}
	code = verbs[i].run(ctl);
	if (roll_out_fini(&ctl->out) != ROLL_OK && code == ROLL_EXIT_OK)
		code = ROLL_EXIT_SOURCE;
	return code;
}

int main(int argc, char **argv)
{
	struct roll_ctl ctl = {.clock = &roll_clock_system};
	bool is_json = false, for_pdns = false;
	const char *view_dir = "/var/lib/rollcall/view", *controller = "powerdns";
	const struct roll_option options[] = {
		{.name = "view",
		 .kind = ROLL_OPT_STRING,
		 .value = &view_dir,
		 .argument = "DIR",
		 .default_text = "/var/lib/rollcall/view",
		 .help = "directory of the view, as given to rollcall-sync"},
		{.name = "json",
		 .kind = ROLL_OPT_FLAG,
		 .value = &is_json,
		 .help = "print JSON instead of text"},
		{.name = "pdns",
		 .kind = ROLL_OPT_FLAG,
		 .value = &for_pdns,
		 .help = "dump: write ALIAS as PowerDNS's own zone files have it"},
		{.name = "controller-name",
		 .kind = ROLL_OPT_STRING,
		 .value = &controller,
		 .argument = "NAME",
		 .default_text = "powerdns",
		 .help = "check: zones whose class names another controller are not served"},
		{0},
	};
	const struct roll_program program = {
		.name = "rollcall",
		.synopsis = synopsis,
		.summary = "Look into the view that rollcalld answers from, and explain it.",
		.options = options,
	};
	enum roll_status status;
	int rest = 0;

	/* A pager that quits early ends the output by an error of write, as any full disk does. */
	signal(SIGPIPE, SIG_IGN);
	roll_log_init("rollcall", ROLL_WARN, ROLL_LOG_KV);
	status = roll_options_parse(&program, argc, argv, &rest);
	if (status == ROLL_ECANCELED)
		return ROLL_EXIT_OK;
	if (status != ROLL_OK)
		return ROLL_EXIT_USAGE;
	ctl.view_dir = view_dir;
	ctl.controller = controller;
	ctl.is_json = is_json;
	ctl.for_pdns = for_pdns;
	ctl.now_s = roll_clock_wall_ms(ctl.clock) / 1000;
	return run_verb(&ctl, rest, argv + 1);
}
