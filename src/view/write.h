/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_VIEW_WRITE_H
#define ROLL_VIEW_WRITE_H

#include "base/clock.h"
#include "dns/claim.h"
#include "dns/name.h"
#include "view/read.h"
#include "view/schema.h"

/*
 * Writing a view. One writer per view directory (a lock tells). The view has two mutations, "put
 * this object" and "this object is absent"; there is no call that deletes a record. All that
 * follows from a mutation (who serves each name, delegations, serial, domain claims) is in the same
 * commit.
 *
 * Errors stick in the transaction; commit reports the first. ROLL_EFULL: nothing was changed, the
 * map was too small: roll_writer_grow, then repeat the whole transaction. Disk full or a
 * write error: nothing was changed, readers go on with the old state.
 */
struct roll_writer;
struct roll_txn;

struct roll_writer_conf {
	const char *dir;
	const char *controller; /* --controller-name */
	const struct roll_clock *clock;
	size_t map_bytes; /* first size of the map; 0: the default */
};

/*
 * Takes the writer lock (EBUSY with the holder's pid in err), makes dir if needed (mode 0750) and
 * opens the current view. If there is none, or it is damaged, of another format, or was written for
 * another controller, a new one is begun beside it (see rebuild) and is_fresh is true: nothing in
 * it yet; readers keep what they have until it is finished.
 */
enum roll_status roll_writer_open(const struct roll_writer_conf *conf, struct roll_writer **out,
				  bool *is_fresh, struct roll_err *err) ROLL_MUST_CHECK;
void roll_writer_close(struct roll_writer *writer); /* an unfinished rebuild is removed */

/*
 * Rebuild: transactions go to a new generation folder, without syncing, while readers keep the
 * current one. Ids and serials of known domains are carried over from the current view where it can
 * be read. finish syncs, swaps it in, marks the old one superseded and removes it: the caller has
 * set head.complete before.
 */
enum roll_status roll_writer_rebuild(struct roll_writer *writer,
				     struct roll_err *err) ROLL_MUST_CHECK;
bool roll_writer_is_rebuilding(const struct roll_writer *writer);
enum roll_status roll_writer_finish(struct roll_writer *writer,
				    struct roll_err *err) ROLL_MUST_CHECK;

enum roll_status roll_writer_grow(struct roll_writer *writer, struct roll_err *err) ROLL_MUST_CHECK;
/*
 * Reading beside writing within the writer's process, which must not open the same view twice: the
 * last committed state of the current view (during a rebuild: of the old one). Belongs to the
 * writer.
 */
struct roll_view *roll_writer_view(struct roll_writer *writer);
/*
 * After ROLL_ECORRUPT: the view is damaged within. It is left as it is, and the next
 * roll_writer_open begins a new one.
 */
void roll_writer_mark_damaged(const struct roll_writer *writer);
/* Free reader slots of dead processes; called on a timer. */
void roll_writer_check_readers(struct roll_writer *writer);

enum roll_status roll_txn_begin(struct roll_writer *writer, struct roll_txn **out,
				struct roll_err *err) ROLL_MUST_CHECK;
enum roll_status roll_txn_commit(struct roll_txn *txn,
				 struct roll_err *err) ROLL_MUST_CHECK; /* frees txn in any case */
void roll_txn_abort(struct roll_txn *txn);				/* accepts NULL */
enum roll_status roll_txn_status(const struct roll_txn *txn);
bool roll_txn_is_changed(const struct roll_txn *txn); /* else there is nothing to commit */
/* Reading what the transaction sees: borrowed, do not end it; valid until the next mutation. */
struct roll_snap *roll_txn_snap(struct roll_txn *txn);

/*
 * What serials of zones changed from here on are taken from: the low 32 bits of number
 * (resourceVersion) if they are later (RFC 1982) than the present serial, else its successor. 0
 * (manifests): wall-clock seconds in the same way.
 *
 * A list may show an object long after it changed, when other things have raised its revision, and
 * an absence longer yet. A serial from that would be later than what replicas that saw the change
 * itself have given out. So is_late: the successor, or, where there is no present serial yet, what
 * was published for the domain, or only then the number.
 */
struct roll_revision {
	uint64_t number;
	bool is_late;
	uint32_t published; /* DNSZones: the serial that a replica has given out; 0: none */
};
void roll_txn_set_revision(struct roll_txn *txn, const struct roll_revision *revision);
/*
 * Would roll_txn_heed_serial change anything? Only if the DNSZone holds its domain, and what
 * answers now is earlier.
 */
bool roll_txn_is_later(struct roll_txn *txn, struct roll_str zone_key, uint32_t published);
/* The zone has changed, nobody knows how: its serial rises as by a change now. */
void roll_txn_raise_serial(struct roll_txn *txn, struct roll_str zone_key);
/* Another replica gave this serial out for the DNSZone: ours is not earlier from now on. */
void roll_txn_heed_serial(struct roll_txn *txn, struct roll_str zone_key, uint32_t published);

/* --- objects --- */

struct roll_name_rrset {
	struct roll_name owner; /* absolute, within the domain of the zone */
	const struct roll_rrset *rrset;
};

/*
 * Put a record set: its row, and its claims under `number` (0: its DNSZone is not there; then
 * count is 0). Claims it had before, under whatever number, are replaced. row->number and names are
 * filled in by this call.
 */
void roll_txn_put_recordset(struct roll_txn *txn, const struct roll_object_row *row,
			    uint32_t number, const struct roll_name_rrset *owned, size_t count);

/*
 * Put a DNSZone. domain NULL: its spec has no usable one; it claims nothing. number: what
 * roll_txn_zone_number gave if domain is unchanged, else a new one from roll_txn_new_number under
 * which the waiting record sets have been claimed (their rows put again with it) in this or in
 * earlier transactions. The old number, if another, is left to the sweep.
 */
void roll_txn_put_zone(struct roll_txn *txn, const struct roll_object_row *row,
		       const struct roll_name *domain, struct roll_str class_name, uint32_t number);
/* Number and domain of a DNSZone that claims something. ENOENT otherwise. */
enum roll_status roll_txn_zone_number(struct roll_txn *txn, struct roll_str zone_key,
				      uint32_t *number, struct roll_name *domain) ROLL_MUST_CHECK;
/* A new number for names below domain; listed in `gone` until a DNSZone is put with it, so that a
 * crash in between leaves nothing behind. */
uint32_t roll_txn_new_number(struct roll_txn *txn, const struct roll_name *domain);

/* Put a DNSZoneClass. cls->serial is filled in by this call. */
void roll_txn_put_class(struct roll_txn *txn, const struct roll_object_row *row,
			const struct roll_class_row *cls);

/*
 * The object is absent: row, claims and indexes go, evidence is kept in `removals`. Nothing happens
 * (and ENOENT is returned, not sticking) if it was not there.
 */
enum roll_status roll_txn_absent(struct roll_txn *txn, enum roll_row_kind kind, struct roll_str key,
				 const char *evidence, uint64_t revision);

/* Only the row's facts that change no answer (revision, generation, scope, findings): claims stay.
 */
void roll_txn_touch(struct roll_txn *txn, const struct roll_object_row *row);

/* --- bookkeeping --- */
void roll_txn_set_source(struct roll_txn *txn, struct roll_str identity);
void roll_txn_set_position(struct roll_txn *txn, struct roll_str what,
			   struct roll_str position); /* empty position: forget */
enum roll_status roll_txn_position(struct roll_txn *txn, struct roll_str what,
				   struct roll_buf *out) ROLL_MUST_CHECK; /* ENOENT */
void roll_txn_set_confirmed(struct roll_txn *txn, int64_t wall_ms);
void roll_txn_set_complete(struct roll_txn *txn, int64_t wall_ms);

/* Rows of gone numbers, at most `limit`; *more tells whether to go on in another transaction. */
void roll_txn_sweep(struct roll_txn *txn, size_t limit, bool *more);

/* --- stage: a list on its way --- */
void roll_txn_stage_clear(struct roll_txn *txn);
void roll_txn_stage_put(struct roll_txn *txn, enum roll_row_kind kind, struct roll_str key,
			struct roll_str bytes);
enum roll_status roll_txn_stage_get(struct roll_txn *txn, enum roll_row_kind kind,
				    struct roll_str key,
				    struct roll_str *bytes) ROLL_MUST_CHECK; /* ENOENT */
typedef enum roll_status (*roll_on_staged)(void *ctx, enum roll_row_kind kind, struct roll_str key,
					   struct roll_str bytes);
/* Walk in key order (classes, zones, record sets). on_staged may put and remove objects, but not
 * stage. */
enum roll_status roll_txn_stage_walk(struct roll_txn *txn, roll_on_staged on_staged,
				     void *ctx) ROLL_MUST_CHECK;

/*
 * Keys of objects of `kind` whose row has this scope (by the index), or, scope empty, whose key
 * starts with key_prefix, that are not staged: candidates for absence. The callback may not change
 * anything.
 */
typedef enum roll_status (*roll_on_key)(void *ctx, enum roll_row_kind kind, struct roll_str key);
enum roll_status roll_txn_unstaged(struct roll_txn *txn, enum roll_row_kind kind,
				   struct roll_str scope, struct roll_str key_prefix,
				   roll_on_key on_key, void *ctx) ROLL_MUST_CHECK;
/* Distinct scopes in the view (rows with one), each once. */
enum roll_status roll_txn_scopes(struct roll_txn *txn,
				 void (*on_scope)(void *ctx, struct roll_str scope,
						  uint64_t objects),
				 void *ctx) ROLL_MUST_CHECK;

/*
 * What the transaction changed, for the cache purge: owner names whose served data changed and
 * domains that began or ceased to be claimed or changed class. Valid until the transaction ends;
 * copy what is needed before commit. Beyond 1,000 names only domains are kept (names_complete
 * false).
 */
struct roll_changes {
	const struct roll_name *names;
	size_t name_count;
	bool names_complete;
	const struct roll_name *domains;
	size_t domain_count;
	const struct roll_name *zones_changed; /* domains that any changed name lies in */
	size_t zones_changed_count;
};
const struct roll_changes *roll_txn_changes(const struct roll_txn *txn);

#endif
