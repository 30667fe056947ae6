/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_SOURCE_NO_PROXY_H
#define ROLL_SOURCE_NO_PROXY_H

#include "base/str.h"

/*
 * Does a list as in NO_PROXY name this host? Entries are separated by commas or blanks: "*", a
 * domain with everything below it (a leading dot changes nothing), an address, or a network as
 * "10.0.0.0/8". libcurl knows that too, but asks it about the name in the certificate where that
 * is another than the host's.
 */
bool roll_no_proxy_has(struct roll_str list, struct roll_str host);

#endif
