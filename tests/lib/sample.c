/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/sample.h"

#include <stdlib.h>
#include <string.h>

uint32_t sample(const struct roll_metrics *metrics, const char *series)
{
	struct roll_buf text;
	struct roll_str rest, line;
	uint32_t value = 0;
	size_t n = strlen(series);

	roll_buf_init(&text, 1u << 20);
	roll_metrics_print(metrics, &text);
	rest = roll_buf_str(&text);
	while (rest.n) {
		line = roll_str_cut(&rest, '\n');
		if (!roll_str_starts(line, series) || line.n <= n || line.p[n] != ' ')
			continue;
		line = roll_str_n(line.p + n + 1, line.n - n - 1);
		if (roll_str_u32(line, UINT32_MAX, &value))
			abort();
		break;
	}
	roll_buf_fini(&text);
	return value;
}
