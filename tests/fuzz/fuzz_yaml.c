/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdint.h>

#include "base/json.h"
#include "source/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Any text as YAML: documents stay within their limits, and print as JSON that means the same.
 */

#define NODE_LIMIT 2000
#define PRINT_LIMIT (8u << 20)

static enum roll_status on_document(void *ctx, json_t *document, size_t line)
{
	struct roll_buf text;
	json_t *again = NULL;

	(void)ctx;
	assert(document && !json_is_null(document) && line > 0);
	assert(roll_json_depth(document) <= ROLL_JSON_DEPTH);
	roll_buf_init(&text, PRINT_LIMIT);
	assert(roll_json_print(document, &text) == ROLL_OK);
	assert(roll_json_parse(roll_buf_str(&text), &again, NULL) == ROLL_OK);
	assert(json_equal(document, again));
	json_decref(again);
	roll_buf_fini(&text);
	return ROLL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct roll_str text = roll_str_n((const char *)data, size);
	struct roll_err err = {ROLL_OK, "", ""};
	enum roll_status status;

	status = roll_yaml_read(text, NODE_LIMIT, on_document, NULL, &err);
	assert(status == ROLL_OK || status == ROLL_EINVAL || status == ROLL_ELIMIT);
	assert(err.code == status);
	assert(status == ROLL_OK || roll_str_starts(roll_str_c(err.where), "line "));
	return 0;
}
