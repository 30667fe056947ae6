#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make bench: run.sh BUILDDIR. What is measured and what the figures were: docs/performance.md.
# ROLL_BENCH_SIZES (names), ROLL_BENCH_SECONDS (of each load) and ROLL_BENCH_PAIRS make it shorter.
set -eu
here=$(dirname "$0")

for tool in dnsperf pdns_server pdnsutil; do
	if ! command -v "$tool" >/dev/null 2>&1; then
		echo "bench: $tool is missing (packages dnsperf, pdns-server," \
			"pdns-backend-remote, pdns-backend-lmdb)" >&2
		exit 2
	fi
done
exec /usr/bin/python3 "$here/bench.py" "$1"
