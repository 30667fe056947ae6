/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/out.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#define FLUSH_BYTES ((size_t)64 << 10)
#define BUF_LIMIT                                                                      \
	((size_t)4 << 20) /* one piece is at most one row: an rdata of 64 KiB, printed \
			   */
#define SHOWN_MAX 1000
#define TABLE_ROWS 1000
#define TABLE_BYTES ((size_t)2 << 20)

enum roll_status roll_out_init(struct roll_out *out, FILE *file)
{
	memset(out, 0, sizeof *out);
	out->file = file;
	roll_buf_init(&out->buf, BUF_LIMIT);
	return out->buf.status;
}

static void flush(struct roll_out *out)
{
	if (out->buf.status != ROLL_OK) {
		out->has_failed = true;
	} else if (out->buf.n && fwrite(out->buf.p, 1, out->buf.n, out->file) != out->buf.n) {
		out->has_failed = true;
		out->is_unread = out->is_unread || errno == EPIPE;
	}
	roll_buf_reset(&out->buf);
}

static void flush_if_full(struct roll_out *out)
{
	if (out->buf.n >= FLUSH_BYTES || out->buf.status != ROLL_OK)
		flush(out);
}

enum roll_status roll_out_fini(struct roll_out *out)
{
	assert(out->depth == 0);
	flush(out);
	roll_buf_fini(&out->buf);
	if (fflush(out->file) != 0) {
		out->has_failed = true;
		out->is_unread = out->is_unread || errno == EPIPE;
	}
	if (!out->has_failed || out->is_unread)
		return ROLL_OK;
	fprintf(stderr, "rollcall: the output could not be written in full\n");
	return ROLL_EIO;
}

void roll_out_text(struct roll_out *out, const char *fmt, ...)
{
	size_t before = out->buf.n;
	va_list args;
	char *room;
	int n;

	va_start(args, fmt);
	n = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	room = n < 0 ? NULL : roll_buf_extend(&out->buf, (size_t)n + 1);
	if (room) {
		va_start(args, fmt);
		vsnprintf(room, (size_t)n + 1, fmt, args);
		va_end(args);
		roll_buf_truncate(&out->buf, before + (size_t)n);
	} else {
		out->has_failed = true;
	}
	flush_if_full(out);
}

void roll_out_raw(struct roll_out *out, struct roll_str s)
{
	roll_buf_add_str(&out->buf, s);
	flush_if_full(out);
}

void roll_out_shown(struct roll_out *out, struct roll_str s)
{
	roll_buf_add_shown(&out->buf, s, SHOWN_MAX);
	flush_if_full(out);
}

void roll_out_sentence(struct roll_out *out, struct roll_str s)
{
	size_t i, begin = 0;

	for (i = 0; i < s.n; i++) {
		if (s.p[i] != '"' && s.p[i] != '\\')
			continue;
		roll_out_shown(out, roll_str_n(s.p + begin, i - begin));
		roll_buf_add_char(&out->buf, s.p[i]);
		begin = i + 1;
	}
	roll_out_shown(out, roll_str_n(s.p + begin, s.n - begin));
}

void roll_out_label(struct roll_out *out, const char *label)
{
	roll_out_text(out, "%-*s", ROLL_OUT_LABEL_WIDTH, label);
}

/* --- JSON --- */

static void begin_member(struct roll_out *out, const char *key)
{
	if (out->depth) {
		if (out->has_member[out->depth - 1])
			roll_buf_add_char(&out->buf, ',');
		out->has_member[out->depth - 1] = true;
	}
	if (key) {
		roll_buf_add_json_str(&out->buf, roll_str_c(key));
		roll_buf_add_char(&out->buf, ':');
	}
	flush_if_full(out);
}

void roll_out_open(struct roll_out *out, const char *key, char bracket)
{
	assert(out->depth < ROLL_OUT_DEPTH);
	begin_member(out, key);
	roll_buf_add_char(&out->buf, bracket);
	out->closing[out->depth] = bracket == '{' ? '}' : ']';
	out->has_member[out->depth++] = false;
}

void roll_out_close(struct roll_out *out)
{
	assert(out->depth > 0);
	roll_buf_add_char(&out->buf, out->closing[--out->depth]);
	if (out->depth == 0)
		roll_buf_add_char(&out->buf, '\n');
	flush_if_full(out);
}

void roll_out_str(struct roll_out *out, const char *key, struct roll_str value)
{
	begin_member(out, key);
	roll_buf_add_json_str(&out->buf, value);
}

void roll_out_c(struct roll_out *out, const char *key, const char *value)
{
	begin_member(out, key);
	if (value)
		roll_buf_add_json_str(&out->buf, roll_str_c(value));
	else
		roll_buf_add_c(&out->buf, "null");
}

void roll_out_u64(struct roll_out *out, const char *key, uint64_t value)
{
	begin_member(out, key);
	roll_buf_add_u64(&out->buf, value);
}

void roll_out_bool(struct roll_out *out, const char *key, bool value)
{
	begin_member(out, key);
	roll_buf_add_c(&out->buf, value ? "true" : "false");
}

void roll_out_time(struct roll_out *out, const char *key, int64_t seconds)
{
	char text[ROLL_TIME_SIZE];

	roll_out_c(out, key,
		   seconds == 0 || seconds == INT64_MAX ? NULL : roll_time_print(seconds, text));
}

/* --- tables --- */

void roll_table_init(struct roll_table *table, struct roll_out *out, size_t columns)
{
	assert(columns > 0 && columns <= ROLL_TABLE_COLUMNS);
	memset(table, 0, sizeof *table);
	table->out = out;
	table->columns = columns;
	roll_buf_init(&table->cells, TABLE_BYTES);
}

static void print_rows(struct roll_table *table)
{
	const char *cell = table->cells.p;
	size_t row, column;

	if (table->cells.status != ROLL_OK) {
		table->out->has_failed = true;
		table->rows = 0;
	}
	for (row = 0; row < table->rows; row++) {
		for (column = 0; column < table->columns; column++) {
			bool is_last = column + 1 == table->columns;

			roll_buf_add_c(&table->out->buf, cell);
			for (size_t n = strlen(cell); !is_last && n < table->widths[column] + 2;
			     n++)
				roll_buf_add_char(&table->out->buf, ' ');
			cell += strlen(cell) + 1;
		}
		roll_buf_add_char(&table->out->buf, '\n');
		flush_if_full(table->out);
	}
	roll_buf_reset(&table->cells);
	memset(table->widths, 0, sizeof table->widths);
	table->rows = 0;
}

void roll_table_cell(struct roll_table *table, struct roll_str text)
{
	size_t before = table->cells.n, width;

	roll_buf_add_shown(&table->cells, text, SHOWN_MAX);
	width = table->cells.n - before;
	roll_buf_add_char(&table->cells, '\0');
	if (width > table->widths[table->column])
		table->widths[table->column] = width;
	if (++table->column < table->columns)
		return;
	table->column = 0;
	if (++table->rows >= TABLE_ROWS || table->cells.n > TABLE_BYTES / 2)
		print_rows(table);
}

void roll_table_cell_c(struct roll_table *table, const char *text)
{
	roll_table_cell(table, roll_str_c(text));
}

void roll_table_cell_u64(struct roll_table *table, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	roll_table_cell_c(table, text);
}

void roll_table_fini(struct roll_table *table)
{
	assert(table->column == 0);
	print_rows(table);
	roll_buf_fini(&table->cells);
}
