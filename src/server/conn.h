/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SERVER_CONN_H
#define ROLL_SERVER_CONN_H

#include "app/loop.h"
#include "base/metric.h"
#include "base/str.h"

/*
 * Connections: bytes to lines and replies to bytes, whatever they mean.
 *
 * One request at a time: the next line is looked at, and more is read, only when the reply before
 * has gone to the kernel. So a peer that does not read costs one reply, never the others' time.
 * All connections are accepted; an idle one is never closed, since PowerDNS pays for that with a
 * SERVFAIL. One that has not taken a byte of its reply for a minute is.
 */
struct roll_conns;

#define ROLL_LINE_MAX_BYTES (64u << 10)	   /* a longer request closes the connection */
#define ROLL_REPLY_MAX_BYTES (8u << 20)	   /* ceiling of one reply */
#define ROLL_REPLIES_MAX_BYTES (32u << 20) /* of all that is not sent yet */
#define ROLL_STALLED_MS 60000

struct roll_conns_conf {
	struct roll_loop *loop;
	const struct roll_clock *clock;
	struct roll_metrics *metrics; /* may be NULL */
	/* Put the reply to a line (overwritten) into the empty buffer; an error closes. */
	enum roll_status (*on_line)(void *ctx, char *line, size_t n, struct roll_buf *reply);
	/* Put the reply that says "not now" there instead. */
	void (*on_overload)(void *ctx, struct roll_buf *reply);
	void *ctx;
};

enum roll_status roll_conns_new(const struct roll_conns_conf *conf, struct roll_conns **out,
				struct roll_err *err) ROLL_MUST_CHECK;
void roll_conns_free(struct roll_conns *conns);

/* Accept on a listening socket, which is closed with conns. At most once. */
enum roll_status roll_conns_listen(struct roll_conns *conns, int fd,
				   struct roll_err *err) ROLL_MUST_CHECK;
/* A connected socket becomes a connection; it is closed in any case, at once on error. */
enum roll_status roll_conns_adopt(struct roll_conns *conns, int fd) ROLL_MUST_CHECK;

/* Bring the metrics up to date, before they are printed. */
void roll_conns_tell(struct roll_conns *conns);
size_t roll_conns_count(const struct roll_conns *conns);
/* Bytes of replies that the kernel has not taken yet. */
size_t roll_conns_pending_bytes(const struct roll_conns *conns);

#endif
