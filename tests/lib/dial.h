/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_DIAL_H
#define TESTS_LIB_DIAL_H

#include <stdint.h>

/* A connection to a loopback port, which does not block; it is the caller's. */
int dial(uint16_t port);

#endif
