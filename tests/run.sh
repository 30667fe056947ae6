#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install what is missing, build, run every test. The last line is the count.
set -eu

usage() {
	cat <<'END'
usage: sh tests/run.sh [OPTION]...
  --all-pdns       also test with the PowerDNS of newer Debian suites (fetched once)
  --cluster        also test against a real API server (built once)
  --cc COMPILER    build with this compiler
  --sanitizers     build with address, leak and undefined-behaviour sanitizers
  --werror         make warnings errors
  --build-dir DIR  build there (default: build/ of the source tree)
  --cache-dir DIR  keep fetched programs there (default: ~/.cache/rollcall-tests)
  --no-install     install nothing
END
}

# Programs of sbin are not in everybody's PATH.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export PATH

src=$(cd "$(dirname "$0")/.." && pwd)
build=$src/build
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/rollcall-tests
configure_options=
all_pdns=
cluster=
install=yes
cc=
while [ $# -gt 0 ]; do
	case $1 in
	--all-pdns) all_pdns=yes ;;
	--cluster) cluster=yes ;;
	--sanitizers) configure_options="$configure_options --enable-sanitizers" ;;
	--werror) configure_options="$configure_options --enable-werror" ;;
	--no-install) install= ;;
	--cc | --build-dir | --cache-dir)
		if [ $# -lt 2 ]; then
			usage >&2
			exit 2
		fi
		case $1 in
		--cc) cc=$2 ;;
		--build-dir) build=$2 ;;
		--cache-dir) cache=$2 ;;
		esac
		shift
		;;
	--help)
		usage
		exit 0
		;;
	*)
		usage >&2
		exit 2
		;;
	esac
	shift
done

if [ -n "$install" ]; then
	sh "$src/tests/install.sh" build test ${all_pdns:+pdns}
fi

# Tests find the newer ones in the folders of ROLL_PDNS_DIR, each with bin/pdns_server.
if [ -n "$all_pdns" ]; then
	ROLL_PDNS_DIR=${ROLL_PDNS_DIR:-$cache/pdns}
	for suite in trixie forky; do
		sh "$src/tests/pdns/get" "$suite" "$ROLL_PDNS_DIR/$suite"
	done
	export ROLL_PDNS_DIR
else
	unset ROLL_PDNS_DIR
	echo "newer PowerDNS: skipped, --all-pdns was not given"
fi

# The automake rules renew all of it when a fragment has changed.
[ -x "$src/configure" ] || (cd "$src" && autoreconf -i)
mkdir -p "$build"
cd "$build"
# Options have no blanks in them.
# shellcheck disable=SC2086
"$src/configure" -q $configure_options ${cc:+CC="$cc"}
jobs=$(nproc)
# Objects of another compiler or other options must not get in.
options="${cc:-default}$configure_options"
if [ -e build-options ] && [ "$(cat build-options)" != "$options" ]; then
	make -s clean
fi
echo "$options" > build-options
make -s -j "$jobs"

rm -f test-suite.log
make -s -j "$jobs" check || [ -e test-suite.log ] || exit 1
count() {
	sed -n "s/^# $1: *\([0-9][0-9]*\)\$/\1/p" test-suite.log | head -n 1
}
passed=$(count PASS)
failed=$(($(count FAIL) + $(count ERROR) + $(count XPASS)))
skipped=$(count SKIP)

if [ -z "$cluster" ]; then
	echo "cluster tests: skipped, --cluster was not given"
elif [ ! -e "$src/tests/kube/run.sh" ]; then
	echo "cluster tests: skipped, there is no tests/kube/run.sh"
	skipped=$((skipped + 1))
else
	status=0
	ROLL_SRCDIR=$src ROLL_BUILDDIR=$PWD PATH=$PWD/src:$PATH \
		sh "$src/tests/kube/run.sh" "$cache/kube" > cluster.log 2>&1 || status=$?
	cat cluster.log
	left_out=$(grep -c '^ok .*# SKIP' cluster.log || true)
	skipped=$((skipped + left_out))
	passed=$((passed + $(grep -c '^ok ' cluster.log || true) - left_out))
	bad=$(grep -c '^not ok ' cluster.log || true)
	[ "$status" = 0 ] || [ "$bad" -gt 0 ] || bad=1
	failed=$((failed + bad))
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
