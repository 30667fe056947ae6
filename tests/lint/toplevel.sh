#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The top level holds what was agreed on, and nothing is committed that a build makes.
set -u
cd "${ROLL_SRCDIR:-.}" || exit 1

# Another user's checkout is as good as ours to read.
files=$(git -c safe.directory="$PWD" ls-files 2>/dev/null)
if [ ! -e .git ] || [ -z "$files" ]; then
	echo "1..0 # SKIP not a git checkout"
	exit 0
fi

report() {
	if [ -z "$3" ]; then
		echo "ok $1 - $2"
	else
		echo "not ok $1 - $2"
		printf '%s\n' "$3" | sed 's/^/# /'
	fi
}

echo 1..2
report 1 "the top level has only what was agreed on" "$(printf '%s\n' "$files" | cut -d / -f 1 |
	sort -u | grep -vxE 'LICENSE|Makefile\.am|README\.md|configure\.ac|docs|pdns-conf|src|tests|\..*')"
report 2 "nothing that a build makes is committed" "$(printf '%s\n' "$files" |
	grep -E '(^|/)(Makefile(\.in)?|configure|aclocal\.m4|build-aux|.*\.(o|a|log|trs|pyc|mdb))(/|$)')"
