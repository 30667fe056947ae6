/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_LISTER_H
#define ROLL_SOURCE_LISTER_H

#include <jansson.h>

#include "source/api.h"

/*
 * One complete list of one resource, or nothing: pages of one snapshot, or a streaming list up to
 * its closing bookmark. Memory is bounded by one object.
 */
struct roll_lister;

enum roll_lister_way {
	ROLL_LIST_STREAM, /* sendInitialEvents; the server may not know it */
	ROLL_LIST_PAGES
};

struct roll_lister_result {
	/*
	 * ROLL_OK: the list is complete. ESTALE: the snapshot expired or changed on the way; start
	 * over, by pages. ECANCELED: on_item did not want to go on. Anything else: see text.
	 */
	enum roll_status status;
	uint64_t revision; /* of the snapshot */
	size_t count;
	int http_status; /* as in struct roll_api_result */
	int64_t retry_after_ms;
	const char *text;
	/* The server does not do streaming lists: the next one had better be by pages. */
	bool has_no_stream;
};

struct roll_lister_spec {
	const char *path; /* of the resource, without a query */
	const char *kind; /* of its objects: "DNSZone" */
	const char *api_version;
	enum roll_lister_way way;

	/* An object, borrowed; of a streaming list it may come again, newer. */
	enum roll_status (*on_item)(void *ctx, json_t *object);
	/* The end, once; the list is gone afterwards. */
	void (*on_done)(void *ctx, const struct roll_lister_result *result);
	void *ctx;
};

/* NULL without memory. Strings of spec must outlive the list. Callbacks come from the loop. */
struct roll_lister *roll_lister_start(struct roll_loop *loop, struct roll_api *api,
				      const struct roll_lister_spec *spec);
/* No callback comes any more. Accepts NULL. */
void roll_lister_cancel(struct roll_lister *list);

#endif
