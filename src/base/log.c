/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

#define LINE_MAX_BYTES 4096
#define REPEAT_MS 10000

static const struct {
	const char *name;
	const char *priority; /* sd-daemon(3) */
} levels[] = {
	[ROLL_ERROR] = {"error", "<3>"},
	[ROLL_WARN] = {"warn", "<4>"},
	[ROLL_INFO] = {"info", "<6>"},
	[ROLL_DEBUG] = {"debug", "<7>"},
};

/* The log sink: one of the two things in this program that are global. */
static struct {
	const char *program;
	enum roll_level max_level;
	enum roll_log_format format;
	bool is_journal;
	void (*sink)(void *ctx, const char *line);
	void *sink_ctx;

	char last[LINE_MAX_BYTES]; /* the last line written, in key=value form */
	enum roll_level last_level;
	int64_t last_ms;
	uint64_t repeats; /* of it, since it was written */
} state = {.max_level = ROLL_INFO};

/* JOURNAL_STREAM names device and inode, so that a redirected stderr is told from the journal. */
static bool stderr_is_journal(void)
{
	struct roll_str text = roll_str_c(getenv("JOURNAL_STREAM"));
	struct roll_str device = roll_str_cut(&text, ':');
	uint64_t dev, ino;
	struct stat st;

	return !roll_str_u64(device, UINT64_MAX, &dev) && !roll_str_u64(text, UINT64_MAX, &ino) &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

void roll_log_init(const char *program, enum roll_level max_level, enum roll_log_format format)
{
	state.program = program;
	state.max_level = max_level;
	state.format = format;
	state.is_journal = stderr_is_journal();
	state.last[0] = '\0';
	state.repeats = 0;
}

enum roll_status roll_level_parse(const char *text, enum roll_level *out)
{
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
		if (strcmp(text, levels[i].name) == 0) {
			*out = (enum roll_level)i;
			return ROLL_OK;
		}
	}
	return ROLL_EINVAL;
}

int roll_log_enabled(enum roll_level level)
{
	return level <= state.max_level;
}

static unsigned hex_value(char c)
{
	unsigned char lower = roll_lower((unsigned char)c);

	return roll_is_digit(lower) ? lower - (unsigned)'0' : lower - (unsigned)'a' + 10U;
}

static bool is_hex(char c)
{
	unsigned char lower = roll_lower((unsigned char)c);

	return roll_is_digit(lower) || (lower >= 'a' && lower <= 'f');
}

/* Undo the \xNN of roll_str_show. The result is never longer than s, itself a part of a line. */
static struct roll_str unshow(struct roll_str s, char out[LINE_MAX_BYTES])
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		if (s.n - i >= 4 && s.p[i] == '\\' && s.p[i + 1] == 'x' && is_hex(s.p[i + 2]) &&
		    is_hex(s.p[i + 3])) {
			out[n++] = (char)(hex_value(s.p[i + 2]) << 4 | hex_value(s.p[i + 3]));
			i += 3;
		} else {
			out[n++] = s.p[i];
		}
	}
	return roll_str_n(out, n);
}

/* Cut the next value, quoted or not, and the blank after it, off *rest. */
static struct roll_str cut_value(struct roll_str *rest)
{
	struct roll_str value;

	if (rest->n == 0 || rest->p[0] != '"')
		return roll_str_cut(rest, ' ');
	*rest = roll_str_n(rest->p + 1, rest->n - 1);
	value = roll_str_cut(rest, '"');
	roll_str_cut(rest, ' ');
	return value;
}

/* All values become strings, so that a key has one type whatever its values look like. */
static void add_json_line(struct roll_buf *out, struct roll_str line)
{
	char value[LINE_MAX_BYTES];
	char sep = '{';

	while (line.n) {
		struct roll_str key = roll_str_cut(&line, '=');

		roll_buf_add_char(out, sep);
		roll_buf_add_json_str(out, key);
		roll_buf_add_char(out, ':');
		roll_buf_add_json_str(out, unshow(cut_value(&line), value));
		sep = ',';
	}
	roll_buf_add_char(out, '}');
}

/* One write for one line, so that lines of several programs do not mix. */
static void emit_stderr(enum roll_level level, struct roll_str line)
{
	const char *prefix = state.is_journal ? levels[level].priority : "";
	struct iovec parts[] = {
		{(void *)prefix, strlen(prefix)},
		{(void *)line.p, line.n},
		{(void *)"\n", 1},
	};

	/* There is nobody to tell that telling failed. */
	if (writev(STDERR_FILENO, parts, 3) < 0)
		return;
}

static void emit(enum roll_level level, const char *line)
{
	struct roll_buf json;

	/* Each byte grows to six at most; keys and quotes take less than one byte per byte. */
	roll_buf_init(&json, (size_t)8 * LINE_MAX_BYTES);
	if (state.format == ROLL_LOG_JSON) {
		add_json_line(&json, roll_str_c(line));
		if (!json.status)
			line = json.p;
	}
	if (state.sink)
		state.sink(state.sink_ctx, line);
	else
		emit_stderr(level, roll_str_c(line));
	roll_buf_fini(&json);
}

static void emit_repeats(void)
{
	char line[LINE_MAX_BYTES + 32];

	if (state.repeats == 0)
		return;
	snprintf(line, sizeof line, "%s repeated=%llu", state.last,
		 (unsigned long long)state.repeats);
	state.repeats = 0;
	emit(state.last_level, line);
}

/* A line that was too long is cut, in a quoted value mostly, which is closed again. */
static void close_cut(char *line, size_t size)
{
	size_t end = size - sizeof "...\"", quotes = 0;

	while (end > 0 && ((unsigned char)line[end] & 0xc0) == 0x80)
		end--;
	for (size_t i = 0; i < end; i++)
		quotes += line[i] == '"';
	memcpy(line + end, quotes % 2 ? "...\"" : "...", quotes % 2 ? 5 : 4);
}

void roll_log(enum roll_level level, const char *event, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES];
	int64_t now_ms;
	va_list args;
	int head, rest;

	if (!roll_log_enabled(level))
		return;
	head = snprintf(line, sizeof line / 2, "%s%s%slevel=%s event=%s%s",
			state.program ? "program=" : "", state.program ? state.program : "",
			state.program ? " " : "", levels[level].name, event, *fmt ? " " : "");
	if (head < 0 || (size_t)head >= sizeof line / 2)
		return;
	va_start(args, fmt);
	rest = vsnprintf(line + head, sizeof line - (size_t)head, fmt, args);
	va_end(args);
	if (rest < 0)
		return;
	if ((size_t)rest >= sizeof line - (size_t)head)
		close_cut(line, sizeof line);
	/* One event is one line, also when a value was not escaped as it should have been. */
	for (char *p = line; *p; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	}

	now_ms = roll_clock_monotonic_ms(&roll_clock_system);
	if (strcmp(line, state.last) == 0 && now_ms - state.last_ms < REPEAT_MS) {
		state.repeats++;
		return;
	}
	emit_repeats();
	memcpy(state.last, line, strlen(line) + 1);
	state.last_level = level;
	state.last_ms = now_ms;
	emit(level, line);
}

void roll_log_set_sink(void (*sink)(void *ctx, const char *line), void *ctx)
{
	state.sink = sink;
	state.sink_ctx = ctx;
	state.last[0] = '\0';
	state.repeats = 0;
}
