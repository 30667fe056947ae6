/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_KUBECONFIG_H
#define ROLL_SOURCE_KUBECONFIG_H

#include "source/cred.h"

/*
 * kubeconfig files: which server and which user a context means, as kubectl reads them. Of several
 * files the first that says something counts. Paths in a file are relative to it. What we cannot do
 * (basic authentication, auth-provider, impersonation, plugins that need a terminal) is refused
 * with its name rather than left out.
 */

/* Where to look: path, else the value of KUBECONFIG (paths with ':' between them; absent files are
 * skipped), else home's .kube/config. All three may be NULL. */
struct roll_kubeconfig_place {
	const char *path;
	const char *environment;
	const char *home;
};

/* context NULL: the current one. On success *out is for the caller to roll_cred_spec_fini. */
enum roll_status roll_kubeconfig_read(const struct roll_kubeconfig_place *place,
				      const char *context, struct roll_cred_spec *out,
				      struct roll_err *err) ROLL_MUST_CHECK;

/* One file's text; folder is what its paths are relative to. For tests and the fuzzer. */
enum roll_status roll_kubeconfig_parse(struct roll_str text, const char *folder,
				       const char *context, struct roll_cred_spec *out,
				       struct roll_err *err) ROLL_MUST_CHECK;

#endif
