/* SPDX-License-Identifier: Apache-2.0 */
#include "server/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/listener.h>

#include "base/log.h"

#define LINE_FIRST_BYTES 2048u
#define REPLY_KEPT_BYTES (64u << 10) /* a larger buffer is given back after its reply */
#define HOUSEKEEPING_MS 1000
#define ACCEPT_RETRY_MS 100

/*
 *	in:  | handled | whole or partial lines | room |
 *	     0        from     scanned         n     room     (no line end in from..scanned)
 */
struct conn {
	struct roll_conns *conns;
	struct conn *next;
	struct conn **back; /* what points to this one */
	int fd;
	struct event *readable;
	struct event *writable;
	char *in;
	size_t from, scanned, n, room;
	struct roll_buf out;
	size_t sent;
	int64_t progress_ms; /* when the peer last took something, while a reply is pending */
	bool is_eof;	     /* the peer is done sending */
	bool is_closing;
};

/* Counted here for each message, and told to the metrics when somebody looks at them. */
struct counter {
	uint64_t now, told;
};

struct roll_conns {
	struct roll_conns_conf conf;
	struct evconnlistener *listener;
	struct roll_timer *accept_again;
	struct roll_timer *housekeeping;
	struct conn *first;
	size_t count;
	size_t pending_bytes;
	struct counter sent, received;
	struct roll_metric *open;
	struct roll_metric *accepted;
	struct roll_metric *bytes;
	struct roll_metric *closed;
};

static void free_conn(void *what)
{
	struct conn *conn = what;

	if (conn->readable)
		event_free(conn->readable);
	if (conn->writable)
		event_free(conn->writable);
	close(conn->fd);
	free(conn->in);
	roll_buf_fini(&conn->out);
	free(conn);
}

static bool is_pending(const struct conn *conn)
{
	return conn->sent < conn->out.n;
}

/* reason is a stable word for metrics. Freed at the end of the turn. */
static void close_conn(struct conn *conn, const char *reason)
{
	struct roll_conns *conns = conn->conns;

	if (conn->is_closing)
		return;
	conn->is_closing = true;
	event_del(conn->readable);
	event_del(conn->writable);
	*conn->back = conn->next;
	if (conn->next)
		conn->next->back = conn->back;
	conns->count--;
	conns->pending_bytes -= conn->out.n - conn->sent;
	roll_metric_set(conns->open, NULL, NULL, (double)conns->count);
	roll_metric_add(conns->closed, reason, NULL, 1);
	roll_log(ROLL_DEBUG, "connection-closed", "reason=%s", reason);
	roll_loop_defer(conns->conf.loop, free_conn, conn);
}

static void stop_reading(struct conn *conn)
{
	event_del(conn->readable);
}

/* Send what there is. Afterwards the connection is drained, waits to be writable, or is closing. */
static void flush(struct conn *conn)
{
	struct roll_conns *conns = conn->conns;
	bool is_progress = conn->sent == 0;

	while (is_pending(conn)) {
		ssize_t n = send(conn->fd, conn->out.p + conn->sent, conn->out.n - conn->sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
			close_conn(conn, "send-failed");
			return;
		}
		if (n < 0)
			break;
		conn->sent += (size_t)n;
		conns->pending_bytes -= (size_t)n;
		conns->sent.now += (uint64_t)n;
		is_progress = true;
	}
	if (is_pending(conn)) {
		if (is_progress)
			conn->progress_ms = roll_clock_monotonic_ms(conns->conf.clock);
		stop_reading(conn);
		if (event_add(conn->writable, NULL))
			close_conn(conn, "out-of-memory");
		return;
	}
	conn->sent = 0;
	if (conn->out.room > REPLY_KEPT_BYTES)
		roll_buf_fini(&conn->out);
	else
		roll_buf_reset(&conn->out);
}

static void answer_line(struct conn *conn, char *line, size_t n)
{
	struct roll_conns *conns = conn->conns;

	if (conns->conf.on_line(conns->conf.ctx, line, n, &conn->out)) {
		/* What was begun is not sent. */
		roll_buf_reset(&conn->out);
		close_conn(conn, "bad-request");
		return;
	}
	if (conn->out.n > ROLL_REPLIES_MAX_BYTES - conns->pending_bytes) {
		roll_buf_fini(&conn->out);
		conns->conf.on_overload(conns->conf.ctx, &conn->out);
	}
	conns->pending_bytes += conn->out.n;
	flush(conn);
}

/* Answer the lines that are whole, one after the other, as long as their replies are taken. */
static void handle_lines(struct conn *conn)
{
	while (!conn->is_closing && !is_pending(conn)) {
		char *line = conn->in + conn->from;
		char *end = conn->n > conn->scanned ? memchr(conn->in + conn->scanned, '\n',
							     conn->n - conn->scanned)
						    : NULL;

		if (!end) {
			conn->scanned = conn->n;
			if (conn->is_eof)
				close_conn(conn, "peer-closed");
			else if (conn->n - conn->from >= ROLL_LINE_MAX_BYTES)
				close_conn(conn, "line-too-long");
			break;
		}
		conn->from = conn->scanned = (size_t)(end - conn->in) + 1;
		answer_line(conn, line, (size_t)(end - line));
	}
	if (conn->from == conn->n)
		conn->from = conn->scanned = conn->n = 0;
}

/* Room for at least one more byte; what is handled is moved out first. */
static bool make_room(struct conn *conn)
{
	size_t room = conn->room ? conn->room * 2 : LINE_FIRST_BYTES;
	char *grown;

	if (conn->n < conn->room)
		return true;
	if (conn->from) {
		memmove(conn->in, conn->in + conn->from, conn->n - conn->from);
		conn->n -= conn->from;
		conn->scanned -= conn->from;
		conn->from = 0;
		return true;
	}
	/* handle_lines has closed what has ROLL_LINE_MAX_BYTES without a line end. */
	grown = realloc(conn->in, room);
	if (!grown)
		return false;
	conn->in = grown;
	conn->room = room;
	return true;
}

static void on_readable(evutil_socket_t fd, short what, void *ctx)
{
	struct conn *conn = ctx;
	ssize_t n;

	(void)what;
	if (conn->is_closing)
		return;
	if (!make_room(conn)) {
		close_conn(conn, "out-of-memory");
		return;
	}
	n = recv(fd, conn->in + conn->n, conn->room - conn->n, MSG_DONTWAIT);
	if (n < 0) {
		if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
			close_conn(conn, "receive-failed");
		return;
	}
	if (n == 0) {
		conn->is_eof = true;
		stop_reading(conn);
	}
	conn->n += (size_t)n;
	conn->conns->received.now += (uint64_t)n;
	handle_lines(conn);
}

static void on_writable(evutil_socket_t fd, short what, void *ctx)
{
	struct conn *conn = ctx;

	(void)fd;
	(void)what;
	if (conn->is_closing)
		return;
	flush(conn);
	if (conn->is_closing || is_pending(conn))
		return;
	handle_lines(conn);
	if (!conn->is_closing && !is_pending(conn) && event_add(conn->readable, NULL))
		close_conn(conn, "out-of-memory");
}

enum roll_status roll_conns_adopt(struct roll_conns *conns, int fd)
{
	struct event_base *base = roll_loop_base(conns->conf.loop);
	struct conn *conn = calloc(1, sizeof *conn);

	if (!conn || evutil_make_socket_nonblocking(fd)) {
		free(conn);
		close(fd);
		return conn ? ROLL_EIO : ROLL_ENOMEM;
	}
	conn->conns = conns;
	conn->fd = fd;
	roll_buf_init(&conn->out, ROLL_REPLY_MAX_BYTES);
	conn->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, conn);
	conn->writable = event_new(base, fd, EV_WRITE, on_writable, conn);
	if (!conn->readable || !conn->writable || event_add(conn->readable, NULL)) {
		free_conn(conn);
		return ROLL_ENOMEM;
	}
	conn->next = conns->first;
	conn->back = &conns->first;
	if (conn->next)
		conn->next->back = &conn->next;
	conns->first = conn;
	conns->count++;
	roll_metric_set(conns->open, NULL, NULL, (double)conns->count);
	roll_metric_add(conns->accepted, NULL, NULL, 1);
	return ROLL_OK;
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *peer,
		      int peer_size, void *ctx)
{
	(void)listener;
	(void)peer;
	(void)peer_size;
	if (roll_conns_adopt(ctx, fd))
		roll_log(ROLL_WARN, "accept-failed", "reason=\"out of memory\"");
}

/* Out of descriptors, mostly: the connection would be reported again at once. */
static void on_accept_error(struct evconnlistener *listener, void *ctx)
{
	struct roll_conns *conns = ctx;

	roll_log(ROLL_WARN, "accept-failed", "reason=\"%s\"", strerror(errno));
	evconnlistener_disable(listener);
	roll_timer_set(conns->accept_again, ACCEPT_RETRY_MS);
}

static void on_accept_again(void *ctx)
{
	struct roll_conns *conns = ctx;

	evconnlistener_enable(conns->listener);
}

static void on_housekeeping(void *ctx)
{
	struct roll_conns *conns = ctx;
	int64_t now_ms = roll_clock_monotonic_ms(conns->conf.clock);
	struct conn *next;

	for (struct conn *conn = conns->first; conn; conn = next) {
		next = conn->next;
		if (is_pending(conn) && now_ms - conn->progress_ms > ROLL_STALLED_MS)
			close_conn(conn, "stalled");
	}
	roll_timer_set(conns->housekeeping, HOUSEKEEPING_MS);
}

static void register_metrics(struct roll_conns *conns, struct roll_metrics *metrics)
{
	conns->bytes = roll_metric_counter(metrics, "rollcall_server_bytes_total",
					   "Bytes on the socket.", "direction", NULL);
	conns->open = roll_metric_gauge(metrics, "rollcall_server_connections",
					"Connections that are open.", NULL, NULL);
	conns->accepted = roll_metric_counter(metrics, "rollcall_server_accepted_total",
					      "Connections accepted.", NULL, NULL);
	conns->closed = roll_metric_counter(metrics, "rollcall_server_closed_total",
					    "Connections closed, by the reason.", "reason", NULL);
}

enum roll_status roll_conns_new(const struct roll_conns_conf *conf, struct roll_conns **out,
				struct roll_err *err)
{
	struct roll_conns *conns = calloc(1, sizeof *conns);

	if (!conns)
		goto out;
	conns->conf = *conf;
	conns->accept_again = roll_timer_new(conf->loop, on_accept_again, conns);
	conns->housekeeping = roll_timer_new(conf->loop, on_housekeeping, conns);
	if (!conns->accept_again || !conns->housekeeping)
		goto out;
	if (conf->metrics)
		register_metrics(conns, conf->metrics);
	roll_timer_set(conns->housekeeping, HOUSEKEEPING_MS);
	*out = conns;
	return ROLL_OK;
out:
	roll_conns_free(conns);
	return roll_err_set(err, ROLL_ENOMEM, NULL, "cannot serve connections");
}

void roll_conns_free(struct roll_conns *conns)
{
	if (!conns)
		return;
	while (conns->first)
		close_conn(conns->first, "stopping");
	if (conns->listener)
		evconnlistener_free(conns->listener);
	roll_timer_free(conns->accept_again);
	roll_timer_free(conns->housekeeping);
	free(conns);
}

enum roll_status roll_conns_listen(struct roll_conns *conns, int fd, struct roll_err *err)
{
	/* Backlog 0: it listens already. */
	conns->listener = evconnlistener_new(roll_loop_base(conns->conf.loop), on_accept, conns,
					     LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (!conns->listener) {
		close(fd);
		return roll_err_set(err, ROLL_ENOMEM, NULL, "cannot accept connections");
	}
	evconnlistener_set_error_cb(conns->listener, on_accept_error);
	return ROLL_OK;
}

static void tell(struct roll_metric *metric, const char *label, struct counter *counter)
{
	roll_metric_add(metric, label, NULL, (double)(counter->now - counter->told));
	counter->told = counter->now;
}

void roll_conns_tell(struct roll_conns *conns)
{
	tell(conns->bytes, "sent", &conns->sent);
	tell(conns->bytes, "received", &conns->received);
}

size_t roll_conns_count(const struct roll_conns *conns)
{
	return conns->count;
}

size_t roll_conns_pending_bytes(const struct roll_conns *conns)
{
	return conns->pending_bytes;
}
