/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_FAKE_API_H
#define TESTS_LIB_FAKE_API_H

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A Kubernetes API server on loopback, as far as a client of our three kinds can tell: objects with
 * revisions, pages of a snapshot, watches with bookmarks, streaming lists, compaction. It does what
 * it is told to do wrong. One thread: it lives in the event base of the test.
 */
struct fake_api;

enum fake_kind { FAKE_CLASS, FAKE_ZONE, FAKE_RECORDSET, FAKE_KINDS };

/* Everything may be changed at any time. */
struct fake_api_conf {
	const char *token;    /* who has another one gets 401; NULL: anybody may come */
	bool has_stream;      /* streaming lists; otherwise 422 */
	size_t page_max;      /* objects in a page, if less than what was asked for; 0: as asked */
	size_t slice_bytes;   /* bytes sent at a time; 0: all */
	int64_t slice_ms;     /* between them; 0: as fast as they are read */
	bool gzips;	      /* answers that are no watches, for those who accept it */
	bool ignores_initial; /* sendInitialEvents is not known, and nothing is said of that */
	bool ignores_timeout; /* watches are not ended when their time is up */
	bool is_silent;	      /* watches are answered, but send nothing (a frozen link to etcd) */
	bool hangs_lists;     /* consistent lists are not answered (etcd does not) */
	uint64_t stale_at;    /* a replica that has not seen what came later; 0: none */
	const char *identity; /* UID of kube-system; NULL: 404 */
	int64_t request_ms;   /* a slow network, for the hook of fake_api_set_other: there, */
	int64_t answer_ms;    /* and back; a request arrives even if its client has gone since */
};

/* What was asked for; counted since the start. */
struct fake_api_counts {
	size_t requests, lists, pages, watches, streams, probes, denied;
	size_t scripted; /* answered as fake_api_script says */
};

/* NULL if no port is free. */
struct fake_api *fake_api_new(struct event_base *base);
void fake_api_free(struct fake_api *api);
struct fake_api_conf *fake_api_conf(struct fake_api *api);
const struct fake_api_counts *fake_api_counts(const struct fake_api *api);
uint16_t fake_api_port(const struct fake_api *api);
const char *fake_api_url(const struct fake_api *api);
/* Head of the latest request, as it came. */
const char *fake_api_last_request(const struct fake_api *api);

/* spec is taken; an object that is there is changed. The revision. ns NULL for classes. */
uint64_t fake_api_put(struct fake_api *api, enum fake_kind kind, const char *ns, const char *name,
		      json_t *spec);
/*
 * status is taken, as by the status subresource: the generation stays, and if it says what is there
 * already nothing happens. 0: no such object.
 */
uint64_t fake_api_set_status(struct fake_api *api, enum fake_kind kind, const char *ns,
			     const char *name, json_t *status);
/* With finalizers an object only begins to go. 0: it was not there. */
uint64_t fake_api_terminate(struct fake_api *api, enum fake_kind kind, const char *ns,
			    const char *name);
uint64_t fake_api_delete(struct fake_api *api, enum fake_kind kind, const char *ns,
			 const char *name);
/* Somebody changed something that is none of our kinds. */
uint64_t fake_api_bump(struct fake_api *api);
uint64_t fake_api_revision(const struct fake_api *api);
size_t fake_api_object_count(const struct fake_api *api);
/* As it is now; borrowed; NULL: not there. */
const json_t *fake_api_get(const struct fake_api *api, enum fake_kind kind, const char *ns,
			   const char *name);

/* When it was absent for the first time after this revision (terminating is absent); 0: never. */
uint64_t fake_api_absent_after(const struct fake_api *api, enum fake_kind kind, const char *ns,
			       const char *name, uint64_t revision);

/* What was before now is forgotten: watches from there and lists on their way expire. */
void fake_api_compact(struct fake_api *api);
/* As it was at this revision, with all connections cut: restored from a backup. */
void fake_api_restore(struct fake_api *api, uint64_t revision);
void fake_api_bookmark(struct fake_api *api);
/* What open watches have not been told yet they never will be. */
void fake_api_lose(struct fake_api *api);
/* All watches end, as when their time is up. */
void fake_api_end_watches(struct fake_api *api);
/* All connections are cut, in the middle of whatever they are at. */
void fake_api_cut(struct fake_api *api);
/* Stop listening and cut; listen again on the same port. */
void fake_api_stop(struct fake_api *api);
bool fake_api_resume(struct fake_api *api);
size_t fake_api_open_watches(const struct fake_api *api);
/* Text on all open watches, as it is. */
void fake_api_say(struct fake_api *api, const char *text, size_t n);

/*
 * The next `count` requests whose head contains `part` are answered with these bytes, head and all,
 * and then the connection is closed. Later calls are used first. NULL text: no answer at all.
 */
void fake_api_script(struct fake_api *api, const char *part, const char *text, size_t count);
void fake_api_script_bytes(struct fake_api *api, const char *part, const void *bytes, size_t n,
			   size_t count);
/* From now on the server answers by itself. */
void fake_api_unscript(struct fake_api *api);
/* The same with an answer that the server makes itself, but only its first `bytes` are sent. */
void fake_api_truncate(struct fake_api *api, const char *part, size_t bytes, size_t count);
/* Bytes of the last whole answer that was not a watch. */
size_t fake_api_last_answer_bytes(const struct fake_api *api);

/*
 * Requests for anything else, and those that change something: the HTTP status, and what becomes
 * the body; status 0: no answer at all. Without a hook they get 404.
 */
typedef int (*fake_api_on_other)(void *ctx, const char *method, const char *path, json_t *body,
				 json_t **reply);
void fake_api_set_other(struct fake_api *api, fake_api_on_other on_other, void *ctx);

#endif
