/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/quiet.h"

#include <stddef.h>

#include "base/log.h"

static void no_log(void *ctx, const char *line)
{
	(void)ctx;
	(void)line;
}

void quiet(void)
{
	roll_log_set_sink(no_log, NULL);
}
