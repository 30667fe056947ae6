/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_CRED_H
#define ROLL_SOURCE_CRED_H

#include <jansson.h>

#include "app/loop.h"
#include "source/http.h"

/*
 * Which API server, and who we are there. The spec is what was configured (source/kubeconfig.h
 * reads one); a roll_cred makes from it what one request needs. Files are read anew for each
 * request, so that a rotated token or certificate is used at once. Nothing here is ever logged.
 */

/* In PEM: the bytes themselves, or else the file they are in. */
struct roll_cred_pem {
	struct roll_buf data;
	char *file;
};

/* A program that prints credentials (client.authentication.k8s.io). */
struct roll_cred_plugin {
	char *command; /* NULL: none */
	char **args;   /* NULL at the end; without the command */
	char **env;    /* "NAME=value", added to ours; NULL at the end */
	char *api_version;
	char *hint; /* how to install it; may be NULL */
	bool wants_cluster;
	json_t *config; /* for the plugin, as configured with the cluster; may be NULL */
};

struct roll_cred_spec {
	char *server;	   /* "https://host:port/path", no '/' at the end */
	char *server_name; /* may be NULL */
	char *proxy;	   /* may be NULL */
	bool is_insecure;
	struct roll_cred_pem ca;
	struct roll_cred_pem cert;
	struct roll_cred_pem key;
	struct roll_buf token;
	char *token_file; /* wins over token */
	struct roll_cred_plugin plugin;
	char *ns; /* where the pod runs, or the context's; may be NULL */
};

/* A zeroed spec is empty. */
void roll_cred_spec_fini(struct roll_cred_spec *spec);
/*
 * Could requests be made with this? EINVAL: no https URL (plain http is taken for a loopback
 * address alone, and never carries a token elsewhere), a certificate without its key.
 */
enum roll_status roll_cred_spec_check(const struct roll_cred_spec *spec,
				      struct roll_err *err) ROLL_MUST_CHECK;
/*
 * The service account of the pod we run in. folder NULL: where Kubernetes mounts it. host and port:
 * the values of KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT, NULL if not set.
 */
enum roll_status roll_cred_in_cluster(struct roll_cred_spec *out, const char *folder,
				      const char *host, const char *port,
				      struct roll_err *err) ROLL_MUST_CHECK;

struct roll_cred;
struct roll_cred_wait;

/* Takes *spec (which is then empty) in any case. wall clock: for what expires. */
enum roll_status roll_cred_new(struct roll_loop *loop, const struct roll_clock *clock,
			       struct roll_cred_spec *spec, struct roll_cred **out,
			       struct roll_err *err) ROLL_MUST_CHECK;
void roll_cred_free(struct roll_cred *cred);
const char *roll_cred_server(const struct roll_cred *cred);

/*
 * identity (NULL on error) is borrowed for the call. From the loop, never from within
 * roll_cred_get.
 */
typedef void (*roll_cred_on_identity)(void *ctx, const struct roll_http_identity *identity,
				      const struct roll_err *err);
/* NULL without memory. */
struct roll_cred_wait *roll_cred_get(struct roll_cred *cred, roll_cred_on_identity on_identity,
				     void *ctx);
/* Before on_identity was called: it will not be. */
void roll_cred_cancel(struct roll_cred_wait *wait);
/* The server said 401: what a plugin gave is not used again. */
void roll_cred_reject(struct roll_cred *cred);

#endif
