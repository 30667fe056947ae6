/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SYNC_RUN_H
#define ROLL_SYNC_RUN_H

#include "app/httpd.h"
#include "app/loop.h"
#include "app/option.h"
#include "base/metric.h"
#include "source/folder.h"
#include "sync/census.h"
#include "sync/engine.h"
#include "sync/progress.h"
#include "sync/purge.h"

/*
 * One run of rollcall-sync: its options, and what the source (run_folder.c, run_cluster.c) shares
 * with the rest of the program (main.c).
 */
struct roll_sync_options {
	const char *manifests;
	const char *kubeconfig;
	const char *context;
	bool is_in_cluster;
	const char *view;
	bool is_once;
	struct roll_option_list namespaces;
	int64_t relist_ms;
	const char *controller;
	const char *pdns_control;
	const char *status;
	const char *lease_namespace; /* NULL: our own */
	const char *http;
	int64_t brake_percent;
	const char *log_level;
	const char *log_format;
};

/* ECANCELED: --help or --version; EINVAL: told on stderr. */
enum roll_status roll_sync_options_parse(int argc, char **argv,
					 struct roll_sync_options *out) ROLL_MUST_CHECK;

struct roll_run;

/* A kind of source. Each function gets the run; state is the source's own. */
struct roll_run_source {
	/*
	 * Before the view is touched: EIO, EDENIED, ... if the source cannot be read at all, with
	 * the reason in err.
	 */
	enum roll_status (*open)(struct roll_run *run, void **state, struct roll_err *err);
	/* run->engine is there: begin to tell it. */
	enum roll_status (*start)(struct roll_run *run, void *state, struct roll_err *err);
	/* Instead of start, for --once: until the view equals the source. */
	enum roll_status (*once)(struct roll_run *run, void *state, struct roll_err *err);
	/* SIGHUP: read everything again. */
	void (*again)(struct roll_run *run, void *state);
	/* For --once: what cannot be laid at an object's door. The number of findings. */
	size_t (*findings)(struct roll_run *run, void *state);
	void (*close)(void *state);
	/* Each thing that has a position of its own ("dnszones"); may be NULL. */
	void (*each_what)(struct roll_run *run, void (*on_what)(void *ctx, const char *what),
			  void *ctx);
	/* All is being watched and nothing is known to be behind; NULL: being readable is enough.
	 */
	bool (*is_live)(void *state);
	/* Files that cannot be read, of a source that has files; may be NULL. */
	size_t (*unreadable)(void *state);
	/*
	 * What is in the way of status, NULL each if nothing is: of having the Lease, and of
	 * writing. Of a source that has objects with a status; may be NULL.
	 */
	void (*status_troubles)(void *state, const char **lease, const char **write);
};

extern const struct roll_run_source roll_run_folder;
extern const struct roll_run_source roll_run_cluster;

struct roll_health;

struct roll_run {
	struct roll_sync_options options;
	struct roll_loop *loop;
	struct roll_metrics *metrics;
	struct roll_writer *writer;
	struct roll_engine *engine;
	struct roll_purge *purge; /* may be NULL */
	struct roll_httpd *httpd; /* may be NULL, and so the next two */
	struct roll_census *census;
	struct roll_health *health;
	struct roll_timer *work;
	struct roll_progress progress;
	const struct roll_run_source *source;
	void *source_state;
	bool is_damaged;
	bool is_stopping;
	bool is_ready; /* the service manager was told */
};

/* "OBJECT FIELD: REASON: text" on stderr; field may be empty. */
void roll_run_tell(const char *object, const char *field, const char *reason, const char *text);
/* Signals, timers and the control socket get their turn; for work that has no loop of its own. */
void roll_run_pump(struct roll_run *run);

/* --- health.c --- */

/* /metrics, /healthz and /readyz; to be called when all of run is there. */
enum roll_status roll_run_attach_health(struct roll_run *run) ROLL_MUST_CHECK;
void roll_run_detach_health(struct roll_run *run);

/* What is not as it should be, in words that also say what comes of it. */
struct roll_trouble {
	bool is_unready; /* /readyz is 503 */
	char text[600];
};
#define ROLL_TROUBLES_MAX 8
/* The worst first. 0: all is well. */
size_t roll_run_troubles(struct roll_run *run, struct roll_trouble troubles[ROLL_TROUBLES_MAX]);

#endif
