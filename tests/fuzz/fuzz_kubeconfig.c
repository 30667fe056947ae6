/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdint.h>

#include "source/kubeconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is accepted can be used; what is not leaves nothing behind. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct roll_str text = roll_str_n((const char *)data, size);
	struct roll_cred_spec spec;
	struct roll_err err = {0};

	if (roll_kubeconfig_parse(text, "./", NULL, &spec, &err)) {
		assert(!spec.server && !spec.plugin.command && !spec.token.p);
		assert(roll_str_is_utf8(roll_str_c(err.text)));
		return 0;
	}
	assert(roll_cred_spec_check(&spec, NULL) == ROLL_OK);
	assert(!spec.plugin.command || spec.plugin.api_version);
	roll_cred_spec_fini(&spec);
	return 0;
}
