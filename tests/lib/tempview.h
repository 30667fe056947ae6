/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_TEMPVIEW_H
#define TESTS_LIB_TEMPVIEW_H

#include "base/clock.h"
#include "view/write.h"

/*
 * A view in a folder of its own, on a clock that the test turns, and objects in a shorthand, so
 * that tests of the view need neither manifests nor the model. What cannot fail in a sound test
 * aborts.
 */
struct tempview {
	char dir[64];
	struct roll_clock clock;
	int64_t wall_ms;
	struct roll_writer *writer;
};

/* Makes the folder (in memory where there is /dev/shm), nothing in it. */
void tempview_init(struct tempview *tv);
/* Closes the writer, if any, and removes the folder. */
void tempview_fini(struct tempview *tv);
/* Opens the writer, with controller "ours"; true: it is fresh. */
bool tempview_open(struct tempview *tv);
void tempview_close(struct tempview *tv);
/* Opens it and finishes an empty, complete view. */
void tempview_make(struct tempview *tv);
void tempview_remove_all(const char *dir);

struct roll_txn *tempview_begin(struct tempview *tv);
void tempview_commit(struct roll_txn *txn);

struct roll_name tempview_name(const char *text);

/* nameservers: blank separated; ttl 0: none. */
void tempview_put_class(struct roll_txn *txn, const char *name, const char *controller,
			const char *nameservers, uint32_t ttl);
/* domain NULL: none. Record sets that wait for the zone are claimed anew as needed. */
void tempview_put_zone(struct roll_txn *txn, const char *key, int64_t created_s, const char *domain,
		       const char *class_name);
/*
 * spec: "TYPE owner=value owner=value ...", owners relative to the zone ("@": its apex). value: A:
 * the last byte of 192.0.2.x; SOA: the serial; TXT: text; else a name. TYPE/ttl gives a TTL. One
 * owner several times makes one RRset. revision is that of the object.
 */
void tempview_put_recordset(struct roll_txn *txn, const char *key, int64_t created_s,
			    const char *zone_key, const char *spec, uint64_t revision);
void tempview_absent(struct roll_txn *txn, enum roll_row_kind kind, const char *key);

#endif
