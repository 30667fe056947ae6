/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLL_MODEL_ENTRY_H
#define ROLL_MODEL_ENTRY_H

#include <jansson.h>

#include "dns/rdata.h"

/*
 * The typed member of one entry of spec.records ({"mx": {"preference": 10, "exchange": ...}}) to
 * rdata in wire form. Shapes are checked here (which members, of what JSON type, in what range),
 * meaning by the builders of dns/rdata.
 *
 * EINVAL: not served, reported; wire is as before.
 */
enum roll_status roll_entry_rdata(struct roll_check at, uint16_t type, const json_t *typed,
				  struct roll_buf *wire) ROLL_MUST_CHECK;

#endif
