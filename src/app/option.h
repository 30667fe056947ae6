/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_APP_OPTION_H
#define ROLL_APP_OPTION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/str.h"

/*
 * Command lines from one table per program. The table feeds the parser, --help and a test that
 * the man page names every option with the same default. Long options only, `--name VALUE` or
 * `--name=VALUE`; -h and -V are --help and --version.
 */
enum roll_option_kind {
	ROLL_OPT_FLAG,	   /* bool */
	ROLL_OPT_STRING,   /* const char * */
	ROLL_OPT_LIST,	   /* struct roll_option_list: may be given several times */
	ROLL_OPT_DURATION, /* int64_t milliseconds; min and max in ms */
	ROLL_OPT_NUMBER,   /* int64_t; min and max */
	ROLL_OPT_OCTAL,	   /* int64_t; a file mode */
	ROLL_OPT_WORD,	   /* const char *; one of `words` */
	ROLL_OPT_ENDPOINT, /* const char *; what roll_endpoint_parse takes */
};

struct roll_option_list {
	const char *items[64];
	size_t count;
};

struct roll_option {
	const char *name; /* "view" */
	enum roll_option_kind kind;
	void *value;		  /* where it goes; holds the default beforehand */
	const char *argument;	  /* "DIR"; NULL for flags */
	const char *default_text; /* as shown by --help and the man page; NULL: none */
	int64_t min, max;
	const char *words; /* "leader|always|never" */
	const char *help;
};

/*
 * Parses argv[1..]; options may stand anywhere before "--". Rest arguments stay in order at
 * argv[1..*rest_count]. On a mistake (unknown option, missing or bad value, option given twice) a
 * message naming it and what is expected goes to stderr and ROLL_EINVAL is returned: exit 2.
 * ROLL_ECANCELED: --help or --version was printed to stdout: exit 0.
 */
struct roll_program {
	const char *name;
	const char *synopsis; /* lines after "usage: " */
	const char *summary;
	const struct roll_option *options; /* ends with name NULL */
};
enum roll_status roll_options_parse(const struct roll_program *program, int argc, char **argv,
				    int *rest_count) ROLL_MUST_CHECK;
void roll_options_help(const struct roll_program *program, FILE *out);

/* "127.0.0.1:9153", "[::1]:9153", ":9153" (all addresses): host into host[], port. */
enum roll_status roll_endpoint_parse(const char *text, char *host, size_t host_size,
				     uint16_t *port) ROLL_MUST_CHECK;

/* The exit codes of every program (design section 2). */
enum roll_exit {
	ROLL_EXIT_OK = 0,
	ROLL_EXIT_FINDINGS = 1,
	ROLL_EXIT_USAGE = 2,
	ROLL_EXIT_SOURCE = 3 /* source, view or socket cannot be used */
};

#endif
