/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sync/engine_state.h"

/*
 * Where the source is, in the same commit as what came until there. Most of what a busy cluster
 * tells changes nothing (statuses are written, bookmarks are sent), and is worth no commit: such
 * positions are kept in mind, and stored with the next commit there is, at the latest with the time
 * of confirmation. Whoever begins from one that is older is told the same things again.
 */

static const char high_water_key[] = "high-water";

void roll_engine_clear_positions(struct roll_engine *engine)
{
	for (size_t i = 0; i < engine->position_count; i++) {
		free(engine->positions[i].what);
		free(engine->positions[i].text);
	}
	free(engine->positions);
	engine->positions = NULL;
	engine->position_count = 0;
}

static struct roll_position *find(const struct roll_engine *engine, struct roll_str what)
{
	for (size_t i = 0; i < engine->position_count; i++) {
		if (roll_str_eq_c(what, engine->positions[i].what))
			return &engine->positions[i];
	}
	return NULL;
}

static struct roll_position *add(struct roll_engine *engine, struct roll_str what)
{
	struct roll_position *grown;
	char *copy = strndup(what.p, what.n);

	if (!copy)
		return NULL;
	grown = reallocarray(engine->positions, engine->position_count + 1, sizeof *grown);
	if (!grown) {
		free(copy);
		return NULL;
	}
	engine->positions = grown;
	grown += engine->position_count++;
	*grown = (struct roll_position){.what = copy, .is_stored = true};
	return grown;
}

void roll_engine_set_position(struct roll_engine *engine, struct roll_str what,
			      struct roll_str text, bool is_stored)
{
	struct roll_position *position;
	char *copy;

	if (!text.n)
		return;
	position = find(engine, what);
	if (!position)
		position = add(engine, what);
	/* Without memory for it an older one stays, which is good enough. */
	copy = position ? strndup(text.p, text.n) : NULL;
	if (!copy)
		return;
	free(position->text);
	position->text = copy;
	position->is_stored = is_stored;
	if (roll_str_u64(text, UINT64_MAX, &position->revision))
		position->revision = 0;
}

uint64_t roll_engine_reached(const struct roll_engine *engine)
{
	size_t spaces = engine->conf.namespace_count > 1 ? engine->conf.namespace_count : 1;
	uint64_t least = UINT64_MAX;

	/* A list or watch for classes, and of the other kinds one for each namespace. */
	if (engine->position_count < 1 + 2 * spaces)
		return 0;
	for (size_t i = 0; i < engine->position_count; i++) {
		if (engine->positions[i].revision < least)
			least = engine->positions[i].revision;
	}
	return least;
}

enum roll_status roll_engine_note(struct roll_engine *engine, struct roll_txn *txn,
				  struct roll_str what, struct roll_str position, uint64_t revision)
{
	char text[24];

	for (size_t i = 0; i < engine->position_count; i++) {
		const struct roll_position *other = &engine->positions[i];

		if (!other->is_stored)
			roll_txn_set_position(txn, roll_str_c(other->what),
					      roll_str_c(other->text));
	}
	if (position.n)
		roll_txn_set_position(txn, what, position);
	if (revision < engine->high_water)
		revision = engine->high_water;
	if (revision > engine->high_water_stored) {
		snprintf(text, sizeof text, "%" PRIu64, revision);
		roll_txn_set_position(txn, roll_str_c(high_water_key), roll_str_c(text));
	}
	engine->is_noted = true;
	engine->high_water_noted = revision;
	return roll_txn_status(txn);
}

void roll_engine_noted(struct roll_engine *engine)
{
	if (!engine->is_noted)
		return;
	engine->is_noted = false;
	engine->high_water_stored = engine->high_water_noted;
	for (size_t i = 0; i < engine->position_count; i++)
		engine->positions[i].is_stored = true;
}

enum roll_status roll_engine_load_high_water(struct roll_engine *engine, struct roll_txn *txn)
{
	enum roll_status status = roll_txn_position(txn, roll_str_c(high_water_key), &engine->key);

	if (status == ROLL_ENOENT)
		return ROLL_OK;
	if (!status)
		status = roll_str_u64(roll_buf_str(&engine->key), UINT64_MAX, &engine->high_water);
	engine->high_water_stored = engine->high_water;
	return status;
}

enum roll_status roll_engine_position(struct roll_engine *engine, struct roll_str what,
				      struct roll_buf *out)
{
	const struct roll_position *position = find(engine, what);
	struct roll_txn *txn = NULL;
	enum roll_status status;

	if (position) {
		roll_buf_add_c(out, position->text);
		return out->status;
	}
	/* A view that is being built holds positions of lists that were taken, like any other. */
	status = roll_txn_begin(engine->conf.writer, &txn, NULL);
	if (!status)
		status = roll_txn_position(txn, what, out);
	roll_txn_abort(txn);
	return status;
}
