/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/purge.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <uthash.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>

#include "base/log.h"

#define TIMEOUT_MS 5000
#define AGAIN_MS 2000
#define RETRY_MS 1000
#define RETRY_FACTOR 20
#define PENDING_MAX 2000	       /* beyond that everything is purged */
#define LINE_LIMIT_BYTES 4000	       /* of one PURGE */
#define ANSWER_LIMIT_BYTES (64u << 10) /* CURRENT-CONFIG is 23 KB */

/* An argument of PURGE: "name" or, with all that is below it, "name$". */
struct target {
	UT_hash_handle hh;
	int64_t due_ms; /* for the second time; 0: this is the first */
	char text[];
};

enum command { NONE, CONFIG, REDISCOVER, PURGE_ALL, PURGE };
static const char *const command_names[] = {"", "CURRENT-CONFIG", "REDISCOVER", "PURGE", "PURGE"};

struct roll_purge {
	struct roll_purge_conf conf;
	struct sockaddr_un address;
	struct roll_timer *work;
	struct roll_timer *timeout;
	bool is_config_known;
	bool caches_answers;

	bool rediscovers;
	bool purges_all;
	bool all_is_second;
	int64_t all_again_ms; /* 0: not due */
	struct target *fresh; /* to be sent as soon as possible */
	struct target *later; /* sent once, to be sent again */

	enum command running;
	struct bufferevent *bev;
	struct roll_buf line;
	struct target *sent; /* of the running PURGE */
	struct roll_buf answer;
	unsigned attempt;
	uint64_t seed;
	bool is_missing;	      /* said so already */
	struct roll_metric *commands; /* by command and result */
};

static int64_t now_ms(const struct roll_purge *purge)
{
	return roll_clock_monotonic_ms(purge->conf.clock);
}

static void clear(struct target **set)
{
	struct target *target, *next;

	HASH_ITER (hh, *set, target, next) {
		HASH_DEL(*set, target);
		free(target);
	}
}

static void purge_everything(struct roll_purge *purge)
{
	purge->purges_all = true;
	purge->all_is_second = false;
	purge->all_again_ms = 0;
	clear(&purge->fresh);
	clear(&purge->later);
}

static void add_text(struct roll_purge *purge, const char *text)
{
	struct target *target;
	size_t n = strlen(text);

	if (purge->purges_all)
		return;
	HASH_FIND(hh, purge->fresh, text, n, target);
	if (target) {
		target->due_ms = 0;
		return;
	}
	target = calloc(1, sizeof *target + n + 1);
	/* Without memory or bounds, more is purged than need be; never less. */
	if (!target || HASH_COUNT(purge->fresh) >= PENDING_MAX) {
		free(target);
		purge_everything(purge);
		return;
	}
	memcpy(target->text, text, n);
	HASH_ADD_KEYPTR(hh, purge->fresh, target->text, n, target);
}

/* A name and, if it says so, all that is below. */
static void add(struct roll_purge *purge, const struct roll_name *name, bool with_subtree)
{
	char text[ROLL_NAME_TEXT_SIZE + 1];
	size_t n;

	roll_name_show(name, text);
	n = strlen(text);
	if (with_subtree) {
		text[n] = '$';
		text[n + 1] = '\0';
	}
	add_text(purge, text);
}

/*
 * What a changed name has an effect on: itself; names below it, if it is a wildcard or a
 * delegation, or if it comes between a wildcard and them; empty names above it. All of these lie
 * below its zone's child that it lies in, unless that is a wildcard.
 */
static void add_name(struct roll_purge *purge, const struct roll_name *name,
		     const struct roll_changes *changes)
{
	const struct roll_name *zone = NULL;
	struct roll_name child = *name;

	for (size_t i = 0; i < changes->zones_changed_count; i++) {
		const struct roll_name *candidate = &changes->zones_changed[i];

		if (roll_name_is_within(name, candidate) && (!zone || candidate->len > zone->len))
			zone = candidate;
	}
	if (!zone) {
		add(purge, name, true);
		return;
	}
	if (!roll_name_eq(name, zone))
		child = roll_name_parent(name, roll_name_labels(name) - roll_name_labels(zone) - 1);
	if (roll_name_is_wildcard(&child) || roll_name_eq(name, zone))
		add(purge, zone, true);
	else
		add(purge, &child, true);
}

void roll_purge_changed(struct roll_purge *purge, const struct roll_changes *changes)
{
	bool has_names = purge->conf.mode == ROLL_PURGE_NAMES ||
			 (purge->conf.mode == ROLL_PURGE_AUTO &&
			  (!purge->is_config_known || purge->caches_answers));

	if (!changes) {
		purge->rediscovers = true;
		purge_everything(purge);
	} else {
		purge->rediscovers = purge->rediscovers || changes->domain_count > 0;
		for (size_t i = 0; i < changes->domain_count; i++)
			add(purge, &changes->domains[i], true);
		for (size_t i = 0; has_names && changes->names_complete && i < changes->name_count;
		     i++)
			add_name(purge, &changes->names[i], changes);
		for (size_t i = 0;
		     has_names && !changes->names_complete && i < changes->zones_changed_count; i++)
			add(purge, &changes->zones_changed[i], true);
	}
	if (purge->running == NONE && purge->attempt == 0)
		roll_timer_set(purge->work, 0);
}

/* --- one command --- */

static void close_connection(struct roll_purge *purge)
{
	if (purge->bev)
		bufferevent_free(purge->bev);
	purge->bev = NULL;
	purge->running = NONE;
	roll_timer_stop(purge->timeout);
	/* The configuration that was read holds keys. */
	if (purge->answer.p)
		explicit_bzero(purge->answer.p, purge->answer.n);
	roll_buf_reset(&purge->answer);
}

static uint32_t setting(struct roll_str config, const char *name)
{
	uint32_t value;

	while (config.n) {
		struct roll_str line = roll_str_trim(roll_str_cut(&config, '\n')), key;

		/* What is not set is printed too, with its default: "# cache-ttl=20". */
		if (roll_str_starts(line, "# "))
			line = roll_str_n(line.p + 2, line.n - 2);
		key = roll_str_cut(&line, '=');
		if (roll_str_eq_c(roll_str_trim(key), name))
			return roll_str_u32(roll_str_trim(line), UINT32_MAX, &value) ? 1 : value;
	}
	return 1; /* not told: better too much than too little */
}

static void take_config(struct roll_purge *purge)
{
	struct roll_str config = roll_buf_str(&purge->answer);

	purge->is_config_known = true;
	purge->caches_answers = setting(config, "cache-ttl") ||
				setting(config, "query-cache-ttl") ||
				setting(config, "negquery-cache-ttl");
	roll_log(ROLL_INFO, "pdns-control", "caches-answers=%s",
		 purge->caches_answers ? "yes" : "no");
	/* Names that were taken up before this was known stay: it is harmless, and only once. */
}

/* What was sent once is sent again, later; what was sent twice is done. */
static void schedule_again(struct roll_purge *purge)
{
	int64_t due_ms = now_ms(purge) + purge->conf.again_ms;
	struct target *target, *next, *known;

	HASH_ITER (hh, purge->sent, target, next) {
		size_t n = strlen(target->text);

		HASH_DEL(purge->sent, target);
		HASH_FIND(hh, purge->later, target->text, n, known);
		if (target->due_ms || purge->purges_all) {
			free(target);
		} else if (known) {
			known->due_ms = due_ms;
			free(target);
		} else {
			target->due_ms = due_ms;
			HASH_ADD_KEYPTR(hh, purge->later, target->text, n, target);
		}
	}
	if (HASH_COUNT(purge->later) > PENDING_MAX) {
		clear(&purge->later);
		purge->all_again_ms = due_ms;
	}
}

static void succeeded(struct roll_purge *purge)
{
	switch (purge->running) {
	case CONFIG:
		take_config(purge);
		break;
	case REDISCOVER:
		if (!roll_str_starts(roll_buf_str(&purge->answer), "Ok")) {
			char shown[200];

			roll_log(ROLL_WARN, "pdns-control", "command=REDISCOVER answer=\"%s\"",
				 roll_str_show(roll_str_trim(roll_buf_str(&purge->answer)), shown,
					       sizeof shown));
		}
		break;
	case PURGE:
		schedule_again(purge);
		break;
	case PURGE_ALL:
	case NONE:
		break;
	}
	roll_metric_add(purge->commands, command_names[purge->running], "done", 1);
	if (purge->is_missing)
		roll_log(ROLL_INFO, "pdns-control", "result=\"there again\"");
	purge->is_missing = false;
	purge->attempt = 0;
	close_connection(purge);
	roll_timer_set(purge->work, 0);
}

/* It was not taken; what it was about is still to be done, but for what never gets an answer. */
static void failed(struct roll_purge *purge, const char *why, bool was_sent)
{
	struct target *target, *next, *known;
	char shown[120];

	roll_metric_add(purge->commands, command_names[purge->running], "failed", 1);
	roll_log(purge->is_missing ? ROLL_DEBUG : ROLL_WARN, "pdns-control",
		 "socket=\"%s\" reason=\"%s\"",
		 roll_str_show(roll_str_c(purge->conf.socket), shown, sizeof shown), why);
	purge->is_missing = true;
	if (purge->running == CONFIG && was_sent) {
		/* It does not know the command, or does not like us to ask. */
		purge->is_config_known = purge->caches_answers = true;
	} else if (purge->running == REDISCOVER) {
		/* An answer that never comes is PowerDNS's way of disliking a zone list. */
		purge->rediscovers = !was_sent;
	} else if (purge->running == PURGE_ALL) {
		purge->purges_all = true;
	}
	HASH_ITER (hh, purge->sent, target, next) {
		HASH_DEL(purge->sent, target);
		HASH_FIND(hh, purge->fresh, target->text, strlen(target->text), known);
		if (known || purge->purges_all)
			free(target);
		else
			HASH_ADD_KEYPTR(hh, purge->fresh, target->text, strlen(target->text),
					target);
	}
	close_connection(purge);
	roll_timer_set(purge->work,
		       roll_backoff_ms(&purge->attempt, purge->conf.retry_ms,
				       purge->conf.retry_ms * RETRY_FACTOR, &purge->seed));
}

static void on_readable(struct bufferevent *bev, void *ctx)
{
	struct evbuffer *in = bufferevent_get_input(bev);
	struct roll_purge *purge = ctx;
	size_t n = evbuffer_get_length(in), room;

	room = purge->answer.limit_bytes - purge->answer.n;
	if (n && room)
		roll_buf_add(&purge->answer, evbuffer_pullup(in, (ev_ssize_t)(n < room ? n : room)),
			     n < room ? n : room);
	evbuffer_drain(in, n);
}

static void on_event(struct bufferevent *bev, short what, void *ctx)
{
	struct roll_purge *purge = ctx;

	/* It closes when it has said all; that alone tells that the command was done. */
	if (what & BEV_EVENT_EOF) {
		on_readable(bev, purge);
		if (purge->answer.n)
			succeeded(purge);
		else
			failed(purge, "closed without an answer", true);
	} else if (what & BEV_EVENT_ERROR) {
		failed(purge, evutil_socket_error_to_string(EVUTIL_SOCKET_ERROR()),
		       purge->answer.n > 0);
	}
}

static void on_timeout(void *ctx)
{
	failed(ctx, "no answer in time", true);
}

static void run(struct roll_purge *purge, enum command command, const char *line, size_t n)
{
	purge->running = command;
	roll_timer_set(purge->timeout, purge->conf.timeout_ms);
	purge->bev = bufferevent_socket_new(roll_loop_base(purge->conf.loop), -1,
					    BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
	if (!purge->bev) {
		failed(purge, "out of memory", false);
		return;
	}
	bufferevent_setcb(purge->bev, on_readable, NULL, on_event, purge);
	if (bufferevent_write(purge->bev, line, n) || bufferevent_enable(purge->bev, EV_READ) ||
	    bufferevent_socket_connect(purge->bev, (struct sockaddr *)&purge->address,
				       (int)sizeof purge->address))
		failed(purge, "cannot be connected", false);
}

/* As many as fit into one command. */
static void run_purge(struct roll_purge *purge)
{
	struct target *target, *next;

	roll_buf_reset(&purge->line);
	roll_buf_add_c(&purge->line, "PURGE");
	HASH_ITER (hh, purge->fresh, target, next) {
		size_t n = strlen(target->text);

		if (purge->sent && purge->line.n + n + 2 > LINE_LIMIT_BYTES)
			break;
		roll_buf_add_char(&purge->line, ' ');
		roll_buf_add(&purge->line, target->text, n);
		HASH_DEL(purge->fresh, target);
		HASH_ADD_KEYPTR(hh, purge->sent, target->text, n, target);
	}
	roll_buf_add_char(&purge->line, '\n');
	if (purge->line.status) {
		clear(&purge->sent);
		purge_everything(purge);
		roll_timer_set(purge->work, purge->conf.retry_ms);
		return;
	}
	run(purge, PURGE, purge->line.p, purge->line.n);
}

/* Those whose second time has come; when is the next? 0: there is none. */
static int64_t take_due(struct roll_purge *purge)
{
	struct target *target, *next, *known;
	int64_t now = now_ms(purge), earliest = purge->all_again_ms;

	if (purge->all_again_ms && purge->all_again_ms <= now) {
		purge->all_again_ms = earliest = 0;
		purge->all_is_second = !purge->purges_all;
		purge->purges_all = true;
		clear(&purge->fresh);
	}
	HASH_ITER (hh, purge->later, target, next) {
		if (target->due_ms > now) {
			if (!earliest || target->due_ms < earliest)
				earliest = target->due_ms;
			continue;
		}
		HASH_DEL(purge->later, target);
		HASH_FIND(hh, purge->fresh, target->text, strlen(target->text), known);
		/* Changed once more meanwhile: that one is to be sent twice anyway. */
		if (known || purge->purges_all)
			free(target);
		else
			HASH_ADD_KEYPTR(hh, purge->fresh, target->text, strlen(target->text),
					target);
	}
	return earliest;
}

/* A counter that appears with its first event hides that event from rate(). */
static void register_metrics(struct roll_purge *purge)
{
	purge->commands = roll_metric_counter(
		purge->conf.metrics, "rollcall_sync_pdns_commands_total",
		"Commands to pdns_server over its control socket.", "command", "result");
	for (int i = CONFIG; i <= PURGE_ALL; i++) {
		roll_metric_add(purge->commands, command_names[i], "done", 0);
		roll_metric_add(purge->commands, command_names[i], "failed", 0);
	}
}

static void on_work(void *ctx)
{
	static const char config[] = "CURRENT-CONFIG\n", rediscover[] = "REDISCOVER\n";
	static const char all[] = "PURGE\n";
	struct roll_purge *purge = ctx;
	int64_t next_ms;

	if (purge->running != NONE)
		return;
	next_ms = take_due(purge);
	if (purge->conf.mode == ROLL_PURGE_AUTO && !purge->is_config_known) {
		run(purge, CONFIG, config, sizeof config - 1);
	} else if (purge->rediscovers) {
		/* What comes after the command was sent needs another. */
		purge->rediscovers = false;
		run(purge, REDISCOVER, rediscover, sizeof rediscover - 1);
	} else if (purge->purges_all) {
		purge->purges_all = false;
		if (!purge->all_is_second)
			purge->all_again_ms = now_ms(purge) + purge->conf.again_ms;
		run(purge, PURGE_ALL, all, sizeof all - 1);
	} else if (purge->fresh) {
		run_purge(purge);
	} else if (next_ms) {
		roll_timer_set(purge->work, next_ms - now_ms(purge) + 1);
	}
}

enum roll_status roll_purge_new(const struct roll_purge_conf *conf, struct roll_purge **out,
				struct roll_err *err)
{
	struct roll_purge *purge;
	char shown[160];

	if (strlen(conf->socket) >= sizeof purge->address.sun_path || !*conf->socket)
		return roll_err_set(err, ROLL_EINVAL,
				    roll_str_show(roll_str_c(conf->socket), shown, sizeof shown),
				    "is no path for a socket");
	purge = calloc(1, sizeof *purge);
	if (!purge)
		return roll_err_set(err, ROLL_ENOMEM, NULL, "no memory for the control socket");
	purge->conf = *conf;
	if (!purge->conf.timeout_ms)
		purge->conf.timeout_ms = TIMEOUT_MS;
	if (!purge->conf.again_ms)
		purge->conf.again_ms = AGAIN_MS;
	if (!purge->conf.retry_ms)
		purge->conf.retry_ms = RETRY_MS;
	purge->address.sun_family = AF_UNIX;
	memcpy(purge->address.sun_path, conf->socket, strlen(conf->socket));
	purge->seed = (uint64_t)roll_clock_wall_ms(conf->clock) | 1;
	roll_buf_init(&purge->line, LINE_LIMIT_BYTES + ROLL_NAME_TEXT_SIZE + 16);
	roll_buf_init(&purge->answer, ANSWER_LIMIT_BYTES);
	/* All its room at once, so that nothing secret is left behind where it grew. */
	roll_buf_extend(&purge->answer, ANSWER_LIMIT_BYTES);
	roll_buf_truncate(&purge->answer, 0);
	purge->work = roll_timer_new(conf->loop, on_work, purge);
	purge->timeout = roll_timer_new(conf->loop, on_timeout, purge);
	if (!purge->work || !purge->timeout || !purge->answer.p) {
		roll_purge_free(purge);
		return roll_err_set(err, ROLL_ENOMEM, NULL, "no memory for the control socket");
	}
	register_metrics(purge);
	if (conf->mode == ROLL_PURGE_AUTO)
		roll_timer_set(purge->work, 0);
	*out = purge;
	return ROLL_OK;
}

void roll_purge_free(struct roll_purge *purge)
{
	if (!purge)
		return;
	close_connection(purge);
	clear(&purge->fresh);
	clear(&purge->later);
	clear(&purge->sent);
	roll_buf_fini(&purge->line);
	roll_buf_fini(&purge->answer);
	roll_timer_free(purge->work);
	roll_timer_free(purge->timeout);
	free(purge);
}

bool roll_purge_is_idle(const struct roll_purge *purge)
{
	return purge->running == NONE && !purge->rediscovers && !purge->purges_all &&
	       !purge->all_again_ms && !purge->fresh && !purge->later;
}

bool roll_purge_is_missing(const struct roll_purge *purge)
{
	return purge->is_missing;
}
