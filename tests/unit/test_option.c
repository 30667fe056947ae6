/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "app/option.h"

/* One option of each kind. */
static bool flag;
static const char *string, *word, *endpoint;
static struct roll_option_list list;
static int64_t duration_ms, number, mode;

static const struct roll_option options[] = {
	{"flag", ROLL_OPT_FLAG, &flag, NULL, NULL, 0, 0, NULL, "a switch"},
	{"string", ROLL_OPT_STRING, &string, "DIR", NULL, 0, 0, NULL, "a text"},
	{"list", ROLL_OPT_LIST, &list, "NS", NULL, 0, 0, NULL, "several"},
	{"duration", ROLL_OPT_DURATION, &duration_ms, "DURATION", "5s", 1000, 3600000, NULL,
	 "wait"},
	{"number", ROLL_OPT_NUMBER, &number, "N", "7", 1, 100, NULL, "count"},
	{"mode", ROLL_OPT_OCTAL, &mode, "MODE", "0660", 0, 0777, NULL, "mode"},
	{"http", ROLL_OPT_ENDPOINT, &endpoint, "ADDR:PORT", NULL, 0, 0, NULL, "where"},
	{"word", ROLL_OPT_WORD, &word, "WORD", "never", 0, 0, "leader|always|never", "when"},
	{0},
};
static const struct roll_program program = {"prog", "prog [--flag] [FILE]...\nprog --help",
					    "Does a thing.", options};

/* The words of a command line, "" is an empty argument; what was said on stderr in said. */
static char said[4096];
static char *arguments[32];

static enum roll_status parse(const char *const *words, int *rest_count)
{
	char *message = NULL;
	size_t message_size = 0;
	enum roll_status status;
	FILE *old = stderr, *old_out = stdout;
	FILE *memory = open_memstream(&message, &message_size);
	int argc = 0;

	flag = false;
	string = NULL;
	endpoint = NULL;
	word = "never";
	list.count = 0;
	duration_ms = 5000;
	number = 7;
	mode = 0660;
	assert_non_null(memory);
	for (; words[argc]; argc++)
		arguments[argc] = (char *)(uintptr_t)words[argc];
	arguments[argc] = NULL;
	stderr = memory;
	stdout = memory;
	status = roll_options_parse(&program, argc, arguments, rest_count);
	stderr = old;
	stdout = old_out;
	fclose(memory);
	snprintf(said, sizeof said, "%s", message);
	free(message);
	return status;
}

static void every_kind_is_set_in_both_forms(void **state)
{
	static const char *const apart[] = {
		"prog",	  "--flag", "--string",	  "/x",	    "--list",	"a",
		"--list", "b",	    "--duration", "1m30s",  "--number", "100",
		"--mode", "0600",   "--word",	  "leader", NULL};
	static const char *const joined[] = {"prog",	      "--flag",
					     "--string=/x",   "--list=a",
					     "--list=b",      "--duration=1m30s",
					     "--number=100",  "--mode=0600",
					     "--word=leader", NULL};
	const char *const *both[] = {apart, joined};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		int rest = -1;

		assert_int_equal(parse(both[i], &rest), ROLL_OK);
		assert_int_equal(rest, 0);
		assert_true(flag);
		assert_string_equal(string, "/x");
		assert_int_equal(list.count, 2);
		assert_string_equal(list.items[0], "a");
		assert_string_equal(list.items[1], "b");
		assert_int_equal(duration_ms, 90000);
		assert_int_equal(number, 100);
		assert_int_equal(mode, 0600);
		assert_string_equal(word, "leader");
		assert_string_equal(said, "");
	}
}

static void rest_arguments_keep_their_order(void **state)
{
	static const char *const words[] = {"prog", "one", "--flag", "-",  "--number=1",
					    "two",  "--",  "--flag", "-x", NULL};
	int rest = 0;

	(void)state;
	assert_int_equal(parse(words, &rest), ROLL_OK);
	assert_int_equal(rest, 5);
	assert_string_equal(arguments[1], "one");
	assert_string_equal(arguments[2], "-");
	assert_string_equal(arguments[3], "two");
	assert_string_equal(arguments[4], "--flag");
	assert_string_equal(arguments[5], "-x");
}

static void mistakes_are_named_with_what_is_expected(void **state)
{
	static const struct {
		const char *words[4];
		const char *says;
	} cases[] = {
		{{"prog", "--nope"}, "unknown option --nope"},
		{{"prog", "-f"}, "unknown option -f"},
		{{"prog", "--fla"}, "unknown option --fla"},
		{{"prog", "--"
			  "\x1b[31m"},
		 "unknown option --\\x1b[31m"},
		{{"prog", "--flag=yes"}, "expected no value"},
		{{"prog", "--flag", "--flag"}, "--flag is given twice"},
		{{"prog", "--string"}, "--string needs a value: --string=DIR"},
		{{"prog", "--string", "--flag"}, "--string needs a value: --string=DIR"},
		{{"prog", "--string="}, "expected a value that is not empty"},
		{{"prog", "--list="}, "expected at most 64 values"},
		{{"prog", "--duration=5"}, "expected a duration such as 90s"},
		{{"prog", "--duration=1ms"}, "from 1s to 3600s"},
		{{"prog", "--duration=2h"}, "from 1s to 3600s"},
		{{"prog", "--number=0"}, "expected a number from 1 to 100"},
		{{"prog", "--number=101"}, "expected a number from 1 to 100"},
		{{"prog", "--number=1x"}, "expected a number from 1 to 100"},
		{{"prog", "--number=99999999999999999999"}, "expected a number from 1 to 100"},
		{{"prog", "--mode=0888"}, "expected an octal number from 0000 to 0777"},
		{{"prog", "--mode=7777"}, "expected an octal number"},
		{{"prog", "--mode="}, "expected an octal number"},
		{{"prog", "--mode=000000660"}, "expected an octal number"},
		{{"prog", "--http=80"}, "expected an address and a port such as 127.0.0.1:9153"},
		{{"prog", "--http=localhost:80"}, "expected an address and a port"},
		{{"prog", "--http=127.0.0.1:99999"}, "expected an address and a port"},
		{{"prog", "--word=some"}, "expected one of leader|always|never"},
		{{"prog", "--word=leader|always"}, "expected one of"},
		{{"prog", "--word="}, "expected one of"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int rest;

		assert_int_equal(parse(cases[i].words, &rest), ROLL_EINVAL);
		if (!strstr(said, cases[i].says))
			fail_msg("%s: %s", cases[i].words[1], said);
		assert_non_null(strstr(said, "Try 'prog --help'."));
	}
}

static void a_list_has_a_bound(void **state)
{
	static char *many[67];
	FILE *old = stderr;
	int rest;

	(void)state;
	many[0] = (char *)(uintptr_t) "prog";
	for (size_t i = 1; i < 66; i++)
		many[i] = (char *)(uintptr_t) "--list=x";
	list.count = 0;
	assert_int_equal(roll_options_parse(&program, 65, many, &rest), ROLL_OK);
	assert_int_equal(list.count, 64);
	list.count = 0;
	stderr = fopen("/dev/null", "w");
	assert_int_equal(roll_options_parse(&program, 66, many, &rest), ROLL_EINVAL);
	fclose(stderr);
	stderr = old;
}

static void help_tells_every_option_with_its_default(void **state)
{
	static const char *const words[] = {"prog", "--flag", "-h", NULL};
	static const char *const lines[] = {
		"usage: prog [--flag] [FILE]...\n       prog --help\n",
		"\nDoes a thing.\n",
		"  --flag                       a switch\n",
		"  --string DIR                 a text\n",
		"  --duration DURATION          wait [5s]\n",
		"  --word WORD                  when: leader|always|never [never]\n",
		"  -h, --help ",
		"  -V, --version ",
	};
	int rest;

	(void)state;
	assert_int_equal(parse(words, &rest), ROLL_ECANCELED);
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		if (!strstr(said, lines[i]))
			fail_msg("no \"%s\" in: %s", lines[i], said);
	}
}

static void version_is_printed(void **state)
{
	static const char *const words[] = {"prog", "--version", NULL};
	int rest;

	(void)state;
	assert_int_equal(parse(words, &rest), ROLL_ECANCELED);
	assert_string_equal(said, "prog (rollcall) " PACKAGE_VERSION "\n");
}

static void endpoints_are_addresses_with_ports(void **state)
{
	static const struct {
		const char *text, *host;
		uint16_t port;
	} good[] = {
		{"127.0.0.1:9153", "127.0.0.1", 9153},
		{"[::1]:9153", "::1", 9153},
		{":9153", "", 9153},
		{"0.0.0.0:0", "0.0.0.0", 0},
		{"[::]:65535", "::", 65535},
	};
	static const char *const bad[] = {
		"",
		"9153",
		"127.0.0.1",
		"127.0.0.1:",
		"127.0.0.1:65536",
		"localhost:1",
		"::1:9153",
		"[::1]",
		"[::1]9153",
		"[]:1",
		"[127.0.0.1]:1",
		"127.0.0.1:-1",
		"127.0.0.1: 1",
		"127.0.0.1:1 ",
		"[::1",
		"1.2.3:4",
		"[::1]:",
	};
	char host[64];
	uint16_t port;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_int_equal(roll_endpoint_parse(good[i].text, host, sizeof host, &port),
				 ROLL_OK);
		assert_string_equal(host, good[i].host);
		assert_int_equal(port, good[i].port);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (roll_endpoint_parse(bad[i], host, sizeof host, &port) != ROLL_EINVAL)
			fail_msg("%s was taken", bad[i]);
	}
	assert_int_equal(roll_endpoint_parse("127.0.0.1:1", host, 9, &port), ROLL_ELIMIT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_set_in_both_forms),
		cmocka_unit_test(rest_arguments_keep_their_order),
		cmocka_unit_test(mistakes_are_named_with_what_is_expected),
		cmocka_unit_test(a_list_has_a_bound),
		cmocka_unit_test(help_tells_every_option_with_its_default),
		cmocka_unit_test(version_is_printed),
		cmocka_unit_test(endpoints_are_addresses_with_ports),
	};

	return cmocka_run_group_tests_name("option", tests, NULL, NULL);
}
