/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdint.h>

#include "dns/rdata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * The first byte picks the builder, the second and third are its numbers, the rest are its texts,
 * one a line (two for each SvcParam). What a builder accepts passes the check and prints in both
 * styles; what it refuses has a fault and leaves nothing. The same bytes are taken as a wire form
 * besides: what passes the check prints.
 */

#define PARAMS_MAX 16
#define BUF_BYTES ((size_t)1 << 20)

struct seen {
	unsigned faults;
};

static void on_finding(void *ctx, const struct roll_finding *finding)
{
	struct seen *seen = ctx;

	assert(roll_str_starts(finding->path, "e"));
	assert(finding->text.n && roll_str_is_utf8(finding->text));
	seen->faults += finding->severity == ROLL_FAULT;
}

static void print(uint16_t type, struct roll_str wire, struct roll_buf *buf)
{
	for (int style = ROLL_RDATA_PDNS; style <= ROLL_RDATA_ZONE; style++) {
		roll_buf_reset(buf);
		assert(roll_rdata_print(type, wire, (enum roll_rdata_style)style, buf) == ROLL_OK);
		/* Zone files are lines of printable ASCII. */
		for (size_t i = 0; i < buf->n; i++)
			assert(buf->p[i] >= 0x20 && buf->p[i] < 0x7f);
	}
}

static enum roll_status build(uint16_t type, struct roll_check at, const int64_t numbers[2],
			      struct roll_str rest, struct roll_buf *wire)
{
	struct roll_svc_param params[PARAMS_MAX];
	struct roll_soa_text soa;
	struct roll_str first;
	size_t count = 0;

	/* These take all that is left, line ends too. */
	switch (type) {
	case ROLL_TYPE_A:
		return roll_rdata_a(at, rest, wire);
	case ROLL_TYPE_AAAA:
		return roll_rdata_aaaa(at, rest, wire);
	case ROLL_TYPE_TXT:
		return roll_rdata_txt(at, rest, wire);
	case ROLL_TYPE_MX:
		return roll_rdata_mx(at, numbers[0], rest, wire);
	case ROLL_TYPE_SRV:
		return roll_rdata_srv(at, numbers[0], numbers[1], 0, rest, wire);
	case ROLL_TYPE_TLSA:
		return roll_rdata_tlsa(at, numbers[0], 1, numbers[1], rest, wire);
	case ROLL_TYPE_CNAME:
	case ROLL_TYPE_ALIAS:
	case ROLL_TYPE_NS:
	case ROLL_TYPE_PTR:
		return roll_rdata_target(at, type, rest, wire);
	default:
		break;
	}
	first = roll_str_cut(&rest, '\n');
	if (type == ROLL_TYPE_CAA)
		return roll_rdata_caa(at, numbers[0], first, rest, wire);
	if (type == ROLL_TYPE_SOA) {
		soa = (struct roll_soa_text){first, rest, numbers[0], numbers[1], 0, 0, 0};
		return roll_rdata_soa(at, &soa, wire);
	}
	for (; count < PARAMS_MAX && rest.n; count++) {
		params[count].key = roll_str_cut(&rest, '\n');
		params[count].value = roll_str_cut(&rest, '\n');
	}
	return roll_rdata_svcb(at, numbers[0], first, params, count, wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen seen = {0};
	struct roll_findings findings = {on_finding, &seen};
	struct roll_buf wire, text;
	enum roll_status status;
	int64_t numbers[2];
	struct roll_str rest;
	uint16_t type;

	if (size < 3)
		return 0;
	type = roll_types[data[0] % ROLL_TYPE_COUNT].type;
	/* -1 is for what lies outside of every range. */
	numbers[0] = data[1] == 255 ? -1 : data[1];
	numbers[1] = data[2] == 255 ? -1 : data[2];
	rest = roll_str_n((const char *)data + 3, size - 3);
	roll_buf_init(&wire, BUF_BYTES);
	roll_buf_init(&text, BUF_BYTES);

	status = build(type, (struct roll_check){&findings, "e"}, numbers, rest, &wire);
	assert(status == ROLL_OK || (status == ROLL_EINVAL && seen.faults && wire.n == 0));
	if (status == ROLL_OK) {
		assert(!seen.faults);
		assert(roll_rdata_check(type, roll_buf_str(&wire)) == ROLL_OK);
		print(type, roll_buf_str(&wire), &text);
	}
	if (roll_rdata_check(type, rest) == ROLL_OK)
		print(type, rest, &text);
	roll_buf_fini(&wire);
	roll_buf_fini(&text);
	return 0;
}
