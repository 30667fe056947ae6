/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_FAKE_PROXY_H
#define TESTS_LIB_FAKE_PROXY_H

#include <event2/event.h>
#include <stddef.h>

/*
 * A proxy on loopback: tunnels to ports of loopback for CONNECT, and answers anything else with
 * "proxied". One thread: it lives in the event base of the test.
 */
struct fake_proxy;

struct fake_proxy *fake_proxy_new(struct event_base *base);
void fake_proxy_free(struct fake_proxy *proxy);
const char *fake_proxy_url(const struct fake_proxy *proxy);
/* CONNECT gets this answer instead of a tunnel, and then the end. NULL: a tunnel. */
void fake_proxy_refuse(struct fake_proxy *proxy, const char *answer);
size_t fake_proxy_count(const struct fake_proxy *proxy);
/* Head of the latest request, as it came. */
const char *fake_proxy_last(const struct fake_proxy *proxy);

#endif
