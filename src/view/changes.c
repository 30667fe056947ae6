/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "view/view.h"

/*
 * What a transaction changed, for the caches in front of us: names, and the domains they lie in,
 * each once.
 */

#define ROOM_FIRST 16u

static uint32_t *find_slot(const struct roll_name_set *set, const struct roll_name *name)
{
	size_t at = roll_hash64(name->wire, name->len) & (set->slot_count - 1);

	while (set->slots[at] && !roll_name_eq(&set->names[set->slots[at] - 1], name))
		at = (at + 1) & (set->slot_count - 1);
	return &set->slots[at];
}

/* Twice the room; slots stay at most half full. */
static enum roll_status grow(struct roll_name_set *set)
{
	size_t room = set->room ? set->room * 2 : ROOM_FIRST;
	struct roll_name *names;
	uint32_t *slots;

	if (room > UINT32_MAX / 2)
		return ROLL_ELIMIT;
	slots = calloc(room * 2, sizeof *slots);
	if (!slots)
		return ROLL_ENOMEM;
	names = reallocarray(set->names, room, sizeof *names);
	if (!names) {
		free(slots);
		return ROLL_ENOMEM;
	}
	free(set->slots);
	set->names = names;
	set->room = room;
	set->slots = slots;
	set->slot_count = room * 2;
	for (size_t i = 0; i < set->count; i++)
		*find_slot(set, &names[i]) = (uint32_t)(i + 1);
	return ROLL_OK;
}

enum roll_status roll_name_set_add(struct roll_name_set *set, const struct roll_name *name)
{
	uint32_t *slot;

	if (set->count == set->room) {
		enum roll_status status = grow(set);

		if (status)
			return status;
	}
	slot = find_slot(set, name);
	if (*slot == 0) {
		set->names[set->count++] = *name;
		*slot = (uint32_t)set->count;
	}
	return ROLL_OK;
}

void roll_name_set_fini(struct roll_name_set *set)
{
	free(set->names);
	free(set->slots);
	*set = (struct roll_name_set){NULL, 0, 0, NULL, 0};
}

void roll_name_set_clear(struct roll_name_set *set)
{
	/* What a great list needed is not kept for every small commit after it. */
	if (set->room > ROLL_CHANGED_NAMES_KEPT * 2) {
		roll_name_set_fini(set);
		return;
	}
	if (set->count)
		memset(set->slots, 0, set->slot_count * sizeof *set->slots);
	set->count = 0;
}

void roll_txn_note_name(struct roll_txn *txn, const struct roll_name *name)
{
	enum roll_status status;

	if (!txn->changes.names_complete)
		return;
	status = roll_name_set_add(&txn->changed_names, name);
	if (status) {
		roll_txn_fail(txn, status, "the list of changes");
	} else if (txn->changed_names.count > ROLL_CHANGED_NAMES_KEPT) {
		txn->changes.names_complete = false;
		roll_name_set_clear(&txn->changed_names);
	}
}

void roll_txn_note_zone(struct roll_txn *txn, const struct roll_name *domain)
{
	enum roll_status status = roll_name_set_add(&txn->changed_zones, domain);

	if (status)
		roll_txn_fail(txn, status, "the list of changes");
}

void roll_txn_note_domain(struct roll_txn *txn, const struct roll_name *domain)
{
	enum roll_status status = roll_name_set_add(&txn->changed_domains, domain);

	if (status)
		roll_txn_fail(txn, status, "the list of changes");
}

void roll_txn_clear_changes(struct roll_txn *txn)
{
	roll_name_set_clear(&txn->changed_names);
	roll_name_set_clear(&txn->changed_domains);
	roll_name_set_clear(&txn->changed_zones);
	txn->changes.names_complete = true;
}

const struct roll_changes *roll_txn_changes(const struct roll_txn *txn)
{
	/* The transaction is only const to its reader; what is filled in here is the answer itself.
	 */
	struct roll_changes *changes = (struct roll_changes *)(uintptr_t)&txn->changes;

	changes->names = txn->changed_names.names;
	changes->name_count = txn->changed_names.count;
	changes->domains = txn->changed_domains.names;
	changes->domain_count = txn->changed_domains.count;
	changes->zones_changed = txn->changed_zones.names;
	changes->zones_changed_count = txn->changed_zones.count;
	return changes;
}
