/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_FAKE_LEASE_H
#define TESTS_LIB_FAKE_LEASE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One Lease as an API server keeps it: versions that must be named, conflicts, what it refuses.
 * Several fake_api may ask the same one, as several paths to one cluster.
 */
struct fake_lease {
	const char
		*path;	/* of the Lease, "/apis/coordination.k8s.io/v1/namespaces/NS/leases/NAME" */
	json_t *record; /* NULL: there is none */
	uint64_t revision;
	size_t gets, creates, updates, conflicts; /* that were asked for */
	size_t written;				  /* times that it was changed */
};

/* Shaped as the hook of fake_api, which has one of these as its ctx. */
int fake_lease_ask(void *ctx, const char *method, const char *path, json_t *body, json_t **reply);
/* By hand, and so whatever it is; takes spec, NULL: none. Makes a Lease if there is none. */
void fake_lease_edit(struct fake_lease *lease, json_t *spec);
/* Also the end of it. */
void fake_lease_delete(struct fake_lease *lease);
/* Borrowed; NULL: none. */
json_t *fake_lease_spec(const struct fake_lease *lease);

#endif
