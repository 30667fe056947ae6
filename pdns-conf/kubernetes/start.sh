#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# start.sh FILE [OPTION]...: pdns_server with the pdns.conf beside this script. Targets of ALIAS
# records are looked up at the first nameserver of FILE, which is resolv.conf(5), unless pdns.conf
# names a resolver itself.
set -eu
file=$1
shift
dir=$(cd "$(dirname "$0")" && pwd)
if ! grep -q '^[[:blank:]]*resolver[[:blank:]]*=' "$dir/pdns.conf"; then
	# One with a scope (fe80::1%eth0) is not understood by all versions.
	resolver=$(sed -n 's/^nameserver[[:blank:]][[:blank:]]*\([0-9A-Fa-f.:]*\)[[:blank:]]*$/\1/p' \
		"$file" | head -n 1)
	if [ -n "$resolver" ]; then
		set -- "--resolver=$resolver" "$@"
	else
		echo "start.sh: no nameserver in $file: names with ALIAS records will fail" >&2
	fi
fi
exec pdns_server --config-dir="$dir" "$@"
