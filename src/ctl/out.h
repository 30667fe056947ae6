/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_CTL_OUT_H
#define ROLL_CTL_OUT_H

#include <stdint.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"

/*
 * What the verbs print: text for people, JSON for programs. Written in pieces, so that a dump of
 * a million names needs no more memory than one of ten.
 */
#define ROLL_OUT_DEPTH 16

struct roll_out {
	FILE *file;
	struct roll_buf buf;
	bool has_failed; /* a write failed: told once, by roll_out_fini */
	bool is_unread;	 /* the reader went away, as pagers do: no reason to complain */
	unsigned depth;
	char closing[ROLL_OUT_DEPTH];
	bool has_member[ROLL_OUT_DEPTH];
};

enum roll_status roll_out_init(struct roll_out *out, FILE *file) ROLL_MUST_CHECK;
/* Flushes. ROLL_EIO: something could not be written, and a message said so. */
enum roll_status roll_out_fini(struct roll_out *out);

/* --- text: foreign bytes go through roll_out_shown only --- */
void roll_out_text(struct roll_out *out, const char *fmt, ...) ROLL_PRINTF(2, 3);
void roll_out_raw(struct roll_out *out, struct roll_str s); /* printed by us, known to be plain */
void roll_out_shown(struct roll_out *out, struct roll_str s);
/* A sentence of ours, escaped when it was made: its own quotes and backslashes stay. */
void roll_out_sentence(struct roll_out *out, struct roll_str s);
/* "label     " to begin a line of a list of facts. */
void roll_out_label(struct roll_out *out, const char *label);
#define ROLL_OUT_LABEL_WIDTH 12

/* --- JSON: key is NULL for the members of an array --- */
void roll_out_open(struct roll_out *out, const char *key, char bracket);
void roll_out_close(struct roll_out *out);
void roll_out_str(struct roll_out *out, const char *key, struct roll_str value);
void roll_out_c(struct roll_out *out, const char *key, const char *value); /* NULL: null */
void roll_out_u64(struct roll_out *out, const char *key, uint64_t value);
void roll_out_bool(struct roll_out *out, const char *key, bool value);
/* RFC 3339; INT64_MAX and 0 ("never") give null. */
void roll_out_time(struct roll_out *out, const char *key, int64_t seconds);

/*
 * Columns of text. Rows are kept until a block of them is full, then printed as wide as that block
 * needs: memory stays bounded.
 */
#define ROLL_TABLE_COLUMNS 8
struct roll_table {
	struct roll_out *out;
	size_t columns;
	size_t column; /* of the next cell */
	size_t rows;
	size_t widths[ROLL_TABLE_COLUMNS];
	struct roll_buf cells; /* each ended by NUL */
};

void roll_table_init(struct roll_table *table, struct roll_out *out, size_t columns);
void roll_table_cell(struct roll_table *table, struct roll_str text); /* escaped here */
void roll_table_cell_c(struct roll_table *table, const char *text);
void roll_table_cell_u64(struct roll_table *table, uint64_t value);
/* Prints what is left and frees. */
void roll_table_fini(struct roll_table *table);

#endif
