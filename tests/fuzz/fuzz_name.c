/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "dns/name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * The same bytes as text, as wire form and as a key: whatever is taken for a name leads to itself
 * again through each of the three forms.
 */

static void check_text(const struct roll_name *name)
{
	char shown[ROLL_NAME_TEXT_SIZE];
	struct roll_name again;

	assert(roll_name_parse(roll_str_c(roll_name_show(name, shown)), &again, NULL) == ROLL_OK);
	assert(roll_name_eq(name, &again));
}

static void check_name(const struct roll_name *name)
{
	struct roll_name again, parent = roll_name_parent(name, 1);
	uint8_t key[ROLL_NAME_KEY_MAX];
	size_t n;

	check_text(name);
	assert(roll_name_from_wire(name->wire, name->len, &again) == ROLL_OK);
	assert(roll_name_eq(name, &again));

	assert(roll_name_is_within(name, &parent));
	assert((roll_name_cmp(name, &parent) > 0) == (name->len > 1));
	n = roll_name_key(name, &parent, key);
	assert(n <= sizeof key);
	assert(roll_name_from_key(key, n, &parent, &again) == ROLL_OK);
	assert(roll_name_eq(name, &again));
	n = roll_name_key(name, &roll_name_root, key);
	assert(n <= sizeof key);
	assert(roll_name_from_key(key, n, &roll_name_root, &again) == ROLL_OK);
	assert(roll_name_eq(name, &again));
}

/* Two names sort as their keys do. */
static void check_order(const struct roll_name *a, const struct roll_name *b)
{
	uint8_t a_key[ROLL_NAME_KEY_MAX], b_key[ROLL_NAME_KEY_MAX];
	size_t a_n = roll_name_key(a, &roll_name_root, a_key);
	size_t b_n = roll_name_key(b, &roll_name_root, b_key);
	int by_name = roll_name_cmp(a, b);
	int by_key = roll_str_cmp(roll_str_n((char *)a_key, a_n), roll_str_n((char *)b_key, b_n));

	assert((by_name > 0) == (by_key > 0) && (by_name < 0) == (by_key < 0));
	assert((by_name == 0) == roll_name_eq(a, b));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct roll_str text = roll_str_n((const char *)data, size), left = text;
	struct roll_name name, other;
	uint8_t key[ROLL_NAME_KEY_MAX];

	if (roll_name_parse(text, &name, NULL) == ROLL_OK)
		check_name(&name);
	if (roll_name_from_wire(data, size, &name) == ROLL_OK)
		check_name(&name);
	if (roll_name_from_key(data, size, &roll_name_root, &name) == ROLL_OK) {
		check_name(&name);
		assert(roll_name_key(&name, &roll_name_root, key) == size);
		assert(size == 0 || memcmp(key, data, size) == 0);
	}

	/* "name blank name" */
	text = roll_str_cut(&left, ' ');
	if (roll_name_parse(text, &name, NULL) == ROLL_OK &&
	    roll_name_parse(left, &other, NULL) == ROLL_OK) {
		check_order(&name, &other);
		if (roll_name_join(&name, &other, &name) == ROLL_OK)
			assert(roll_name_is_within(&name, &other));
	}
	return 0;
}
