#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The demonstration of the README, with the programs that are under test.
set -u

src=${ROLL_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
for program in pdns_server dig python3; do
	if ! command -v $program >/dev/null 2>&1; then
		echo "1..0 # SKIP $program is not installed"
		exit 0
	fi
done
work=$(mktemp -d "${TMPDIR:-/tmp}/roll-demo-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

port=$(python3 "$src/tests/lib/ports.py")
mkdir "$work/tmp"
TMPDIR=$work/tmp sh "$src/pdns-conf/demo.sh" --once --no-install --port "$port" \
	--bin "$(dirname "$(command -v rollcall)")" > "$work/log" 2>&1
code=$?

n=0
failed=0
check() {
	n=$((n + 1))
	name=$1
	shift
	if "$@"; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		sed 's/^/# /' "$work/log"
		failed=1
	fi
}
check "the demonstration comes to its end" [ "$code" = 0 ]
check "it shows answers" grep -q '^www.example.com.*192.0.2.10' "$work/log"
check "it shows the addresses of an ALIAS" grep -q '^example.com.*192.0.2.10' "$work/log"
check "it says how long the name took to go" grep -q 'was gone [0-9]* ms after rm' "$work/log"
check "it says why" grep -q 'manifest hello.yaml gone' "$work/log"
check "it leaves nothing behind" [ -z "$(ls -A "$work/tmp")" ]
echo "1..$n"
exit $failed
