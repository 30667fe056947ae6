/* SPDX-License-Identifier: Apache-2.0 */
#include "app/option.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

#include "base/clock.h"

#define OPTIONS_MAX 64 /* one bit each, to notice what is given twice */
#define NUMBER_MAX ((uint64_t)INT64_MAX)

static const struct roll_option *find(const struct roll_option *options, struct roll_str name)
{
	for (; options->name; options++) {
		if (roll_str_eq_c(name, options->name))
			return options;
	}
	return NULL;
}

static enum roll_status parse_octal(struct roll_str text, uint64_t *out)
{
	uint64_t value = 0;

	if (text.n == 0 || text.n > 8)
		return ROLL_EINVAL;
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '7')
			return ROLL_EINVAL;
		value = value << 3 | (uint64_t)(text.p[i] - '0');
	}
	*out = value;
	return ROLL_OK;
}

/* text is one of the words in "one|two|three". */
static bool is_word(const char *words, const char *text)
{
	struct roll_str rest = roll_str_c(words);

	while (rest.n) {
		if (roll_str_eq_c(roll_str_cut(&rest, '|'), text))
			return true;
	}
	return false;
}

static enum roll_status set_number(const struct roll_option *option, const char *text)
{
	struct roll_str s = roll_str_c(text);
	enum roll_status status;
	int64_t number = 0;
	uint64_t value = 0;

	assert(option->min >= 0 && option->min <= option->max);
	if (option->kind == ROLL_OPT_DURATION) {
		status = roll_duration_parse(s, &number);
	} else {
		status = option->kind == ROLL_OPT_OCTAL ? parse_octal(s, &value)
							: roll_str_u64(s, NUMBER_MAX, &value);
		number = (int64_t)value;
	}
	if (status)
		return status;
	if (number < option->min || number > option->max)
		return ROLL_ELIMIT;
	*(int64_t *)option->value = number;
	return ROLL_OK;
}

static enum roll_status set_value(const struct roll_option *option, const char *text)
{
	struct roll_option_list *list;
	char host[64];
	uint16_t port;

	switch (option->kind) {
	case ROLL_OPT_FLAG:
		*(bool *)option->value = true;
		return ROLL_OK;
	case ROLL_OPT_STRING:
		if (!*text)
			return ROLL_EINVAL;
		*(const char **)option->value = text;
		return ROLL_OK;
	case ROLL_OPT_LIST:
		list = option->value;
		if (!*text)
			return ROLL_EINVAL;
		if (list->count == sizeof list->items / sizeof *list->items)
			return ROLL_ELIMIT;
		list->items[list->count++] = text;
		return ROLL_OK;
	case ROLL_OPT_WORD:
		if (!is_word(option->words, text))
			return ROLL_EINVAL;
		*(const char **)option->value = text;
		return ROLL_OK;
	case ROLL_OPT_ENDPOINT:
		if (roll_endpoint_parse(text, host, sizeof host, &port))
			return ROLL_EINVAL;
		*(const char **)option->value = text;
		return ROLL_OK;
	case ROLL_OPT_DURATION:
	case ROLL_OPT_NUMBER:
	case ROLL_OPT_OCTAL:
		return set_number(option, text);
	}
	return ROLL_EINVAL;
}

static void print_duration(int64_t ms, FILE *out)
{
	if (ms % 1000)
		fprintf(out, "%lldms", (long long)ms);
	else
		fprintf(out, "%llds", (long long)(ms / 1000));
}

/* What would have been right, as the end of a message. */
static void print_expected(const struct roll_option *option, FILE *out)
{
	switch (option->kind) {
	case ROLL_OPT_FLAG:
		fputs("no value", out);
		break;
	case ROLL_OPT_STRING:
		fputs("a value that is not empty", out);
		break;
	case ROLL_OPT_LIST:
		fputs("at most 64 values that are not empty", out);
		break;
	case ROLL_OPT_DURATION:
		fputs("a duration such as 90s, 5m or 1h30m, from ", out);
		print_duration(option->min, out);
		fputs(" to ", out);
		print_duration(option->max, out);
		break;
	case ROLL_OPT_NUMBER:
		fprintf(out, "a number from %lld to %lld", (long long)option->min,
			(long long)option->max);
		break;
	case ROLL_OPT_OCTAL:
		fprintf(out, "an octal number from %04llo to %04llo",
			(unsigned long long)option->min, (unsigned long long)option->max);
		break;
	case ROLL_OPT_WORD:
		fprintf(out, "one of %s", option->words);
		break;
	case ROLL_OPT_ENDPOINT:
		fputs("an address and a port such as 127.0.0.1:9153, [::1]:9153 or :9153", out);
		break;
	}
}

static enum roll_status refuse(const struct roll_program *program)
{
	fprintf(stderr, "Try '%s --help'.\n", program->name);
	return ROLL_EINVAL;
}

static enum roll_status refuse_value(const struct roll_program *program,
				     const struct roll_option *option, const char *text)
{
	char shown[128];

	fprintf(stderr, "%s: --%s: \"%s\" is not right; expected ", program->name, option->name,
		roll_str_show(roll_str_c(text), shown, sizeof shown));
	print_expected(option, stderr);
	fputc('\n', stderr);
	return refuse(program);
}

static const char *column_text(const struct roll_option *option, char *out, size_t size)
{
	int n = snprintf(out, size, "--%s%s%s", option->name, option->argument ? " " : "",
			 option->argument ? option->argument : "");

	assert(n > 0 && (size_t)n < size);
	return out;
}

static void print_lines(const char *first, const char *next, const char *text, FILE *out)
{
	struct roll_str rest = roll_str_c(text);
	const char *before = first;

	while (rest.n) {
		struct roll_str line = roll_str_cut(&rest, '\n');

		fprintf(out, "%s" ROLL_STR_FMT "\n", before, ROLL_STR_ARG(line));
		before = next;
	}
}

void roll_options_help(const struct roll_program *program, FILE *out)
{
	char left[80];

	print_lines("usage: ", "       ", program->synopsis, out);
	fputc('\n', out);
	print_lines("", "", program->summary, out);
	fputs("\nOptions:\n", out);
	for (const struct roll_option *option = program->options; option->name; option++) {
		fprintf(out, "  %-28s %s", column_text(option, left, sizeof left), option->help);
		if (option->words)
			fprintf(out, ": %s", option->words);
		if (option->default_text)
			fprintf(out, " [%s]", option->default_text);
		fputc('\n', out);
	}
	fprintf(out, "  %-28s %s\n", "-h, --help", "print this and exit");
	fprintf(out, "  %-28s %s\n", "-V, --version", "print the version and exit");
}

/* One argument that starts with a dash; *at is moved on if its value is the next one. */
static enum roll_status parse_one(const struct roll_program *program, int argc, char **argv,
				  int *at, uint64_t *seen)
{
	struct roll_str rest = roll_str_c(argv[*at]);
	const struct roll_option *option = NULL;
	const char *value = NULL;
	struct roll_str name;
	char shown[128];
	uint64_t bit;

	name = roll_str_cut(&rest, '=');
	if (name.n < strlen(argv[*at]))
		value = argv[*at] + name.n + 1;
	if (roll_str_starts(name, "--"))
		option = find(program->options, roll_str_n(name.p + 2, name.n - 2));
	if (!option) {
		fprintf(stderr, "%s: unknown option %s\n", program->name,
			roll_str_show(name, shown, sizeof shown));
		return refuse(program);
	}
	if (option->kind == ROLL_OPT_FLAG) {
		if (value)
			return refuse_value(program, option, value);
	} else if (!value) {
		/* What looks like the next option is more likely a value that was forgotten. */
		if (*at + 1 >= argc || strncmp(argv[*at + 1], "--", 2) == 0) {
			fprintf(stderr, "%s: --%s needs a value: --%s=%s\n", program->name,
				option->name, option->name, option->argument);
			return refuse(program);
		}
		value = argv[++*at];
	}
	bit = UINT64_C(1) << (option - program->options);
	if (*seen & bit && option->kind != ROLL_OPT_LIST) {
		fprintf(stderr, "%s: --%s is given twice; expected once\n", program->name,
			option->name);
		return refuse(program);
	}
	*seen |= bit;
	if (set_value(option, value ? value : ""))
		return refuse_value(program, option, value);
	return ROLL_OK;
}

static bool is_either(const char *text, const char *a, const char *b)
{
	return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

enum roll_status roll_options_parse(const struct roll_program *program, int argc, char **argv,
				    int *rest_count)
{
	bool is_only_rest = false;
	enum roll_status status;
	uint64_t seen = 0;
	size_t count = 0;
	int rest = 0;

	while (program->options[count].name)
		count++;
	assert(count <= OPTIONS_MAX);
	for (int i = 1; i < argc; i++) {
		if (is_only_rest || argv[i][0] != '-' || argv[i][1] == '\0') {
			argv[++rest] = argv[i];
		} else if (strcmp(argv[i], "--") == 0) {
			is_only_rest = true;
		} else if (is_either(argv[i], "-h", "--help")) {
			roll_options_help(program, stdout);
			return ROLL_ECANCELED;
		} else if (is_either(argv[i], "-V", "--version")) {
			printf("%s (rollcall) %s\n", program->name, PACKAGE_VERSION);
			return ROLL_ECANCELED;
		} else {
			status = parse_one(program, argc, argv, &i, &seen);
			if (status)
				return status;
		}
	}
	*rest_count = rest;
	return ROLL_OK;
}

enum roll_status roll_endpoint_parse(const char *text, char *host, size_t host_size, uint16_t *port)
{
	struct roll_str all = roll_str_c(text), address, digits;
	bool is_v6 = all.n && all.p[0] == '[';
	unsigned char binary[16];
	const char *colon;
	uint16_t number;

	if (is_v6) {
		const char *end = memchr(all.p, ']', all.n);

		if (!end || end[1] != ':')
			return ROLL_EINVAL;
		address = roll_str_n(all.p + 1, (size_t)(end - all.p) - 1);
		colon = end + 1;
	} else {
		colon = memchr(all.p, ':', all.n);
		if (!colon)
			return ROLL_EINVAL;
		address = roll_str_n(all.p, (size_t)(colon - all.p));
	}
	digits = roll_str_n(colon + 1, (size_t)(all.p + all.n - colon) - 1);
	if (roll_str_u16(digits, UINT16_MAX, &number))
		return ROLL_EINVAL;
	if (address.n >= host_size)
		return ROLL_ELIMIT;
	memcpy(host, address.p, address.n);
	host[address.n] = '\0';
	/* Addresses only: looking names up here would wait for DNS, which may be us. */
	if ((is_v6 || address.n) && inet_pton(is_v6 ? AF_INET6 : AF_INET, host, binary) != 1)
		return ROLL_EINVAL;
	*port = number;
	return ROLL_OK;
}
