/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_CTL_SCRATCH_H
#define ROLL_CTL_SCRATCH_H

#include <jansson.h>

#include "base/clock.h"
#include "model/object.h"
#include "view/read.h"

/*
 * A view that lives for one run of a verb, in a directory of its own below TMPDIR: what `verify`
 * compares with, and where `check` lets objects meet. The directory goes away with it, also when
 * the program is told to stop by a signal: then every call returns ROLL_ECANCELED.
 */
struct roll_scratch;

struct roll_scratch_conf {
	const char *controller;
	const struct roll_clock *clock;
	/* An object that is there already, under another scope, was ignored. May be NULL. */
	void (*on_duplicate)(void *ctx, const struct roll_object *object, struct roll_str scope,
			     struct roll_str first_scope);
	void *ctx;
};

enum roll_status roll_scratch_new(const struct roll_scratch_conf *conf, struct roll_scratch **out,
				  struct roll_err *err) ROLL_MUST_CHECK;
void roll_scratch_free(struct roll_scratch *scratch); /* accepts NULL */

/*
 * Put one object. What object borrows must live until the next roll_scratch_flush, except
 * for object->spec and what belongs to json: of json (may be NULL) a reference is held as long.
 * scope is copied.
 */
enum roll_status roll_scratch_put(struct roll_scratch *scratch, const struct roll_object *object,
				  json_t *json, struct roll_str scope,
				  struct roll_err *err) ROLL_MUST_CHECK;
enum roll_status roll_scratch_flush(struct roll_scratch *scratch,
				    struct roll_err *err) ROLL_MUST_CHECK;
/* All objects are in; the snapshot lives as long as the scratch view. */
enum roll_status roll_scratch_finish(struct roll_scratch *scratch, struct roll_snap **out,
				     struct roll_err *err) ROLL_MUST_CHECK;

/* A signal asked the program to stop. */
bool roll_scratch_is_interrupted(void);

#endif
