/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_KUBE_H
#define ROLL_SOURCE_KUBE_H

#include "base/metric.h"
#include "source/api.h"
#include "source/source.h"

/*
 * The objects of an API server: one list and watch for each kind, and for each namespace if only
 * some are wanted. What proves that an object is absent is told to the sink; everything else (an
 * error, a half list, silence) only makes us ask again.
 *
 * Kinds are numbered as enum roll_kind: 0 dnszoneclasses, 1 dnszones, 2 dnsrecordsets. The name of
 * a position ("what") is the plural, followed by "/NAMESPACE" if it is limited to one.
 *
 * Lists go to the sink one after the other: classes, zones, record sets. Events of one kind may
 * come while a list is open, also events of the listed kind; they are newer than the list.
 */
struct roll_kube;

struct roll_kube_conf {
	struct roll_loop *loop;
	struct roll_api *api;
	const struct roll_clock *clock;
	const struct roll_sink *sink;
	/* The position that the sink stored last; ENOENT: none. NULL: always list. */
	enum roll_status (*position)(void *ctx, struct roll_str what, struct roll_buf *out);
	/* UID of the namespace kube-system; an error: this is not our cluster. May be NULL. */
	enum roll_status (*on_identity)(void *ctx, struct roll_str uid);
	/* is_once: lists only; told once, when all were taken, or when it is hopeless. */
	void (*on_end)(void *ctx, enum roll_status status, const char *text);
	void *ctx;
	bool is_once;
	bool no_stream;		       /* lists by pages only */
	const char *const *namespaces; /* count 0: all */
	size_t namespace_count;
	int64_t relist_ms;	      /* a full list that heals what was missed; 0: never */
	struct roll_metrics *metrics; /* may be NULL */
};

/* conf is copied, what it points to must live as long. */
enum roll_status roll_kube_new(const struct roll_kube_conf *conf, struct roll_kube **out,
			       struct roll_err *err) ROLL_MUST_CHECK;
/* Not to be called from the sink or a callback. */
void roll_kube_free(struct roll_kube *kube);
void roll_kube_start(struct roll_kube *kube);
/* List everything once more, beside the watches. */
void roll_kube_relist(struct roll_kube *kube);
/* All kinds are being watched and none is known to be behind. */
bool roll_kube_is_live(const struct roll_kube *kube);

#endif
