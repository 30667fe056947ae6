/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_VIEW_VIEW_H
#define ROLL_VIEW_VIEW_H

#include <lmdb.h>

#include "view/read.h"
#include "view/write.h"

/*
 * What the files of this folder share; nobody else includes it.
 *
 *	env.c     one LMDB environment: open, check, grow
 *	dir.c     the view directory: generation folders, `current`, locks
 *	key.c     keys, point reads and walks
 *	zone.c    from a domain row to the zone that is served; the cache of that
 *	snap.c    readers and snapshots
 *	read.c    lookup and list
 *	walk.c    everything else that is read
 *	scrub.c   integrity
 *	stat.c    sizes, and tables as bytes
 *	write.c   the writer: open, rebuild, finish
 *	txn.c     a write transaction, bookkeeping, sweep
 *	claims.c  claims at names
 *	domain.c  claims to domains, ids, serials
 *	put.c     objects: put, absent, touch
 *	stage.c   a list on its way
 *	changes.c what a transaction changed
 */

enum roll_table {
	ROLL_TABLE_META,
	ROLL_TABLE_OBJECTS,
	ROLL_TABLE_BYZONE,
	ROLL_TABLE_BYSCOPE,
	ROLL_TABLE_CLASSES,
	ROLL_TABLE_DOMAINS,
	ROLL_TABLE_IDS,
	ROLL_TABLE_DZONES,
	ROLL_TABLE_NAMES,
	ROLL_TABLE_GONE,
	ROLL_TABLE_REMOVALS,
	ROLL_TABLE_STAGE,
	ROLL_TABLE_COUNT
};
extern const char *const roll_table_names[ROLL_TABLE_COUNT];

/* --- env.c --- */

enum roll_env_mode {
	ROLL_ENV_READ,
	ROLL_ENV_WRITE, /* an existing view */
	ROLL_ENV_BUILD, /* a new one: tables are made, nothing is synced until roll_env_settle */
};

struct roll_env {
	MDB_env *mdb;
	MDB_dbi dbi[ROLL_TABLE_COUNT];
	char *mark; /* the file that says "damaged"; NULL for those who only read */
};

/* The next who opens it for writing begins a new one beside it; until then nobody reads it. */
void roll_env_mark_damaged(const struct roll_env *env);

#define ROLL_DAMAGE_MARK "damaged" /* an empty file beside data.mdb */
#define ROLL_MAP_BYTES ((size_t)64 << 20)

/* LMDB's code as ours. */
enum roll_status roll_mdb_status(int rc);
/* The same, with a text; what says what was tried. */
enum roll_status roll_mdb_err(struct roll_err *err, int rc, const char *where, const char *what);

/*
 * path is a generation folder. ENOENT: it is not there. ECORRUPT: not a view or damaged; EVERSION:
 * a view of another format.
 */
enum roll_status roll_env_open(const char *path, enum roll_env_mode mode, size_t map_bytes,
			       struct roll_env **out, struct roll_err *err) ROLL_MUST_CHECK;
void roll_env_close(struct roll_env *env); /* accepts NULL */
/* Double the map. No transaction of this process may be open. */
enum roll_status roll_env_grow(struct roll_env *env, struct roll_err *err) ROLL_MUST_CHECK;
/* More than half of the map has been used at some time. */
bool roll_env_is_crowded(const struct roll_env *env);
/* After a build: everything to disk, and from now on as ROLL_ENV_WRITE. */
enum roll_status roll_env_settle(struct roll_env *env, struct roll_err *err) ROLL_MUST_CHECK;
/*
 * Set the mark in the head of a view of any format, so that its readers look for the new one. Best
 * effort: a reader that misses it finds the new one by its next poll.
 */
void roll_env_supersede(struct roll_env *env);
/* The same by path, for a folder that nobody of this process has open. */
void roll_env_supersede_path(const char *path);

/* --- dir.c --- */

#define ROLL_FOLDER_SIZE 24 /* "v" and 20 digits at most, NUL */

/* Which folder is current: "v12". ENOTREADY: none. */
enum roll_status roll_dir_current(const char *dir, char out[ROLL_FOLDER_SIZE],
				  struct roll_err *err) ROLL_MUST_CHECK;
/* 0: not the name of a generation folder. */
uint64_t roll_dir_folder_number(const char *folder);
/* DIR/ENTRY; heap. NULL without memory. */
char *roll_dir_path(const char *dir, const char *entry);
/* A new, empty folder with a number above all others; its name goes to out. */
enum roll_status roll_dir_make_folder(const char *dir, char out[ROLL_FOLDER_SIZE],
				      struct roll_err *err) ROLL_MUST_CHECK;
/* Make folder current, durably. */
enum roll_status roll_dir_swap(const char *dir, const char *folder,
			       struct roll_err *err) ROLL_MUST_CHECK;
void roll_dir_remove_folder(const char *dir, const char *folder);
/* Remove what a killed writer left; old views are marked superseded first. */
void roll_dir_clean(const char *dir, const char *current);
/*
 * Shared hold on the PID namespace of this view, kept until the descriptor is closed. ENOENT: no
 * such dir. EBUSY: in use from another namespace.
 */
enum roll_status roll_dir_guard(const char *dir, int *out_fd, struct roll_err *err) ROLL_MUST_CHECK;
/* The writer's lock. EBUSY: with the holder's pid in err. */
enum roll_status roll_dir_lock(const char *dir, int *out_fd, struct roll_err *err) ROLL_MUST_CHECK;

/* --- key.c --- */

#define ROLL_KEY_MAX 511 /* LMDB's default */

/* A key under construction. One that grows too long becomes empty, which LMDB refuses. */
struct roll_key {
	size_t n;
	bool is_too_long;
	uint8_t p[ROLL_KEY_MAX];
};

void roll_key_add(struct roll_key *key, const void *bytes, size_t n);
void roll_key_add_u8(struct roll_key *key, uint8_t v);
void roll_key_add_u32(struct roll_key *key, uint32_t v);
void roll_key_add_u64(struct roll_key *key, uint64_t v);
uint32_t roll_key_u32(struct roll_str key); /* of its first 4 bytes; 0 if shorter */
uint64_t roll_key_u64(struct roll_str key);

struct roll_key roll_key_of(const char *text);
struct roll_key roll_key_number(uint32_t number);
struct roll_key roll_key_object(enum roll_row_kind kind, struct roll_str key);
struct roll_key roll_key_domain(const struct roll_name *name);
struct roll_key roll_key_name(uint32_t number, const struct roll_name *domain,
			      const struct roll_name *name);
struct roll_key roll_key_byzone(struct roll_str zone_key, struct roll_str recordset);
struct roll_key roll_key_byscope(struct roll_str scope, enum roll_row_kind kind,
				 struct roll_str key);
/* The reverse of two of them; ECORRUPT if the key is not of that form. */
enum roll_status roll_key_to_domain(struct roll_str key, struct roll_name *out) ROLL_MUST_CHECK;
enum roll_status roll_key_to_name(struct roll_str key, const struct roll_name *domain,
				  struct roll_name *out) ROLL_MUST_CHECK;
bool roll_str_has_prefix(struct roll_str s, const void *prefix, size_t n);

/* A transaction, of whatever kind, and the tables. */
struct roll_at {
	MDB_txn *txn;
	const MDB_dbi *dbi;
};

/* ENOENT if there is no such key. The value is borrowed until the next mutation or the end. */
enum roll_status roll_at_get(const struct roll_at *at, enum roll_table table,
			     const struct roll_key *key, struct roll_str *out) ROLL_MUST_CHECK;

struct roll_walk {
	MDB_cursor *cursor;
	struct roll_str key;
	struct roll_str value;
};

enum roll_status roll_walk_begin(struct roll_walk *walk, const struct roll_at *at,
				 enum roll_table table) ROLL_MUST_CHECK;
/* The first key that is not below `key` (NULL: the very first); ENOENT if there is none. */
enum roll_status roll_walk_seek(struct roll_walk *walk, const struct roll_key *key) ROLL_MUST_CHECK;
enum roll_status roll_walk_next(struct roll_walk *walk) ROLL_MUST_CHECK;
enum roll_status roll_walk_last(struct roll_walk *walk) ROLL_MUST_CHECK;
enum roll_status roll_walk_prev(struct roll_walk *walk) ROLL_MUST_CHECK;
void roll_walk_end(struct roll_walk *walk);

/* --- zone.c --- */

/* Who holds a domain, and the serial before any SOA object's own. */
struct roll_settled {
	enum roll_zone_state state; /* NO_NAMESERVERS is not told apart from SERVED yet */
	uint32_t holder;	    /* index, or ROLL_BY_NONE */
	bool has_class;		    /* cls is that of the holder */
	struct roll_class_row cls;  /* borrowed */
	uint32_t serial;
};

enum roll_status roll_domain_settle(const struct roll_at *at, const struct roll_head *head,
				    const struct roll_domain_row *row,
				    struct roll_settled *out) ROLL_MUST_CHECK;
/* Like roll_serial_later, but 0 stands for "none yet". */
uint32_t roll_serial_later_or(uint32_t a, uint32_t b);

#define ROLL_ZONE_SLOTS 1024u

struct roll_zone_slot {
	uint64_t content; /* of which state of the view; 0: of none */
	uint64_t turn;	  /* given out last in */
	struct roll_zone zone;
};

struct roll_snap {
	struct roll_at at;
	const struct roll_head *head;
	struct roll_view *view; /* NULL within a write transaction */
	MDB_cursor *names;	/* for lookups; NULL until first used */
	bool is_names_fresh;	/* the cursor belongs to this turn's transaction */
	/*
	 * content changes with what is seen, turn with every snapshot and mutation: a zone cached
	 * under another content is stale; a slot given out in this turn must not be overwritten.
	 */
	uint64_t content;
	uint64_t turn;
	struct roll_zone_slot *slots; /* ROLL_ZONE_SLOTS */
	struct roll_arena work;	      /* within one call */
	struct roll_arena extra;      /* within one turn: zones that found no slot */
	struct roll_arena shown;      /* the row that roll_snap_domain gave last */
	struct roll_domain_row shown_row;
	struct roll_zone shown_zone;
	struct roll_buf soa;
};

enum roll_status roll_snap_init(struct roll_snap *snap) ROLL_MUST_CHECK;
void roll_snap_fini(struct roll_snap *snap);
/* Another state is seen from now on. */
void roll_snap_turn(struct roll_snap *snap, bool is_same_content);

/*
 * The state of a domain and, if SERVED, the zone (out is undefined otherwise). Not cached; strings
 * are borrowed from the transaction.
 */
enum roll_status roll_zone_resolve(const struct roll_snap *snap, const struct roll_name *name,
				   const struct roll_domain_row *row, enum roll_zone_state *state,
				   uint32_t *holder, struct roll_zone *out) ROLL_MUST_CHECK;

/* First served RRset of `type` (ANY: the first at all) in a names row; ENOENT if none. */
enum roll_status roll_served_find(struct roll_str row, uint16_t type, struct roll_rrset_head *head,
				  struct roll_reader *rdata) ROLL_MUST_CHECK;

/* --- snap.c --- */

/* A view on an environment that the writer owns; NULL detaches. */
enum roll_status roll_view_new_borrowed(struct roll_view **out) ROLL_MUST_CHECK;
void roll_view_attach(struct roll_view *view, struct roll_env *env);
bool roll_view_is_reading(const struct roll_view *view);

/* --- changes.c --- */

struct roll_name_set {
	struct roll_name *names;
	size_t count;
	size_t room;
	uint32_t *slots; /* index + 1 into names, open addressing */
	size_t slot_count;
};

enum roll_status roll_name_set_add(struct roll_name_set *set,
				   const struct roll_name *name) ROLL_MUST_CHECK;
void roll_name_set_clear(struct roll_name_set *set);
void roll_name_set_fini(struct roll_name_set *set);

#define ROLL_CHANGED_NAMES_KEPT 1000u

/* --- the writer --- */

struct roll_txn {
	struct roll_writer *writer;
	struct roll_snap snap;
	struct roll_head head;
	enum roll_status status;
	struct roll_err err;
	bool is_open;
	bool is_dirty;
	struct roll_revision revision;
	uint64_t epoch;		/* changes of one epoch raise a serial once */
	uint32_t epoch_serial;	/* head.max_serial when it began; 0 in a rebuild */
	size_t prepared_before; /* writer's prepared_count when the transaction began */
	struct roll_arena op;	/* within one mutation */
	struct roll_arena work; /* within one name or domain of it */
	struct roll_buf head_bytes;
	struct roll_buf source;
	struct roll_buf row; /* the object row to be written, and the key of it */
	struct roll_buf old; /* a copy of the row that was there */
	struct roll_buf names;
	struct roll_buf value;
	struct roll_buf copy; /* what a walk hands out */
	struct roll_changes changes;
	struct roll_name_set changed_names;
	struct roll_name_set changed_domains;
	struct roll_name_set changed_zones;
};

struct roll_writer {
	char *dir;
	char *controller;
	const struct roll_clock *clock;
	size_t map_bytes;
	int guard_fd;
	int lock_fd;
	struct roll_env *current; /* NULL: none that can be read */
	char current_folder[ROLL_FOLDER_SIZE];
	struct roll_env *next; /* being rebuilt */
	char next_folder[ROLL_FOLDER_SIZE];
	uint64_t rebuild_epoch;
	struct roll_view *view; /* on current */
	struct roll_txn txn;
	/* Numbers in `gone` that are being prepared, not swept. Dies with the process, on purpose.
	 */
	uint32_t *prepared;
	size_t prepared_count;
	size_t prepared_room;
};

/* --- write.c --- */

enum roll_status roll_writer_reopen(struct roll_writer *writer,
				    struct roll_err *err) ROLL_MUST_CHECK;

/* --- txn.c --- */

/* The first error sticks. Returns status. */
enum roll_status roll_txn_fail(struct roll_txn *txn, enum roll_status status, const char *what);
/* True while nothing failed; to be called before any change: what was read is stale after it. */
bool roll_txn_mutate(struct roll_txn *txn);
void roll_txn_store(struct roll_txn *txn, enum roll_table table, const struct roll_key *key,
		    struct roll_str value);
/* Nothing happens if it is not there. */
void roll_txn_erase(struct roll_txn *txn, enum roll_table table, const struct roll_key *key);
/* As roll_at_get; anything but OK and ENOENT sticks. */
enum roll_status roll_txn_get(struct roll_txn *txn, enum roll_table table,
			      const struct roll_key *key, struct roll_str *out) ROLL_MUST_CHECK;
enum roll_status roll_txn_init(struct roll_txn *txn, struct roll_writer *writer) ROLL_MUST_CHECK;
void roll_txn_fini(struct roll_txn *txn);
bool roll_writer_is_prepared(const struct roll_writer *writer, uint32_t number);
void roll_writer_unprepare(struct roll_writer *writer, uint32_t number);

/* --- domain.c --- */

/* The domain row as the transaction sees it; claims in txn->work. ENOENT: never known. */
enum roll_status roll_txn_domain(struct roll_txn *txn, const struct roll_name *name,
				 struct roll_domain_row *out) ROLL_MUST_CHECK;
/* What is served under the number changed: raise the serial if it holds its domain. */
void roll_txn_bump(struct roll_txn *txn, const struct roll_name *domain, uint32_t number);
/* Whether number holds domain. */
bool roll_txn_holds(struct roll_txn *txn, const struct roll_name *domain, uint32_t number);
/* Put or (claim NULL) take away the claim of object to domain. */
void roll_txn_claim_domain(struct roll_txn *txn, const struct roll_name *domain,
			   struct roll_str object, const struct roll_domain_claim *claim);
/* The serial for a change of a class. */
uint32_t roll_txn_class_serial(struct roll_txn *txn, uint32_t present);

/* --- claims.c --- */

struct roll_owned_key {
	struct roll_str key; /* below the domain */
	const struct roll_rrset *rrset;
};

/*
 * Make the claims of an object be exactly `owned` (sorted by key) under number, given that they
 * were `old_names` (a names blob of a row) under old_number. dropped, if not NULL, gets the
 * absolute names that it had on a live zone and has no more.
 */
void roll_txn_claim_names(struct roll_txn *txn, const struct roll_object_row *row,
			  uint32_t old_number, struct roll_str old_names, uint32_t number,
			  const struct roll_owned_key *owned, size_t count,
			  struct roll_buf *dropped);
/* A number whose rows count: not 0, known, and neither gone nor left by a dead process. */
enum roll_status roll_txn_dzone(struct roll_txn *txn, uint32_t number, struct roll_dzone_row *out,
				bool *is_gone) ROLL_MUST_CHECK;
void roll_txn_store_dzone(struct roll_txn *txn, uint32_t number, const struct roll_dzone_row *row);

/* --- changes.c --- */

void roll_txn_note_name(struct roll_txn *txn, const struct roll_name *name);
void roll_txn_note_zone(struct roll_txn *txn, const struct roll_name *domain);
void roll_txn_note_domain(struct roll_txn *txn, const struct roll_name *domain);
void roll_txn_clear_changes(struct roll_txn *txn);

#endif
