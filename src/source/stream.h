/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_STREAM_H
#define ROLL_SOURCE_STREAM_H

#include "source/kube.h"
#include "source/lister.h"

/*
 * One kind (in one namespace, or all): list, then watch from exactly there, again and again. A part
 * of source/kube, which decides whose list is next.
 */
struct roll_stream;

struct roll_stream_env {
	const struct roll_kube_conf *conf;
	enum roll_lister_way way; /* what this server can do, as learned by any stream */
	uint64_t seed;
	uint64_t known;		      /* the highest position: revisions are those of all kinds */
	uint64_t setbacks;	      /* how often the server was behind it */
	struct roll_stream *batching; /* whose events the sink is taking, NULL: nobody's */
	struct roll_metric *lists;    /* by kind and cause */
	struct roll_metric *ends;     /* of watches, by kind and cause */
	struct roll_metric *events;   /* by kind and type */

	/* It wants to list; answered by roll_stream_list, now or later. */
	void (*on_want_list)(void *ctx, struct roll_stream *stream);
	/* Its list is over. */
	void (*on_list_end)(void *ctx, struct roll_stream *stream, enum roll_status status,
			    const char *text);
	void (*on_proven)(void *ctx);
	void (*on_trouble)(void *ctx, const char *why);
	void *ctx;
};

#define ROLL_STREAM_KINDS 3

/* ns NULL: all namespaces. */
struct roll_stream *roll_stream_new(struct roll_stream_env *env, int kind, const char *ns);
void roll_stream_free(struct roll_stream *stream);
/* Go on from the stored position, or list. */
void roll_stream_start(struct roll_stream *stream);
void roll_stream_list(struct roll_stream *stream);
void roll_stream_relist(struct roll_stream *stream);
/* It was proven lately that the sink has all there is. */
bool roll_stream_is_live(const struct roll_stream *stream);
bool roll_stream_is_cluster_scoped(int kind);
/* How long to wait before what has failed is tried again; retry_after_ms as the server told it. */
int64_t roll_stream_delay(struct roll_stream_env *env, unsigned *attempt, int64_t retry_after_ms);

#endif
