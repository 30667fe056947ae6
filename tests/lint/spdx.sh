#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every source file names its licence at its top.
set -u
cd "${ROLL_SRCDIR:-.}" || exit 1

echo 1..1
bad=$(find configure.ac Makefile.am .ci src tests pdns-conf docs -type f \( -name '*.[ch]' \
	-o -name '*.sh' -o -name '*.py' -o -name '*.inc' -o -name '*.ac' -o -name '*.am' -o \
	-path .ci/run -o -path tests/pdns/get \) 2>/dev/null | LC_ALL=C sort |
	while read -r file; do
		head -n 3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2\.0' || echo "# $file"
	done)
if [ -z "$bad" ]; then
	echo "ok 1 - every source file has its SPDX line"
else
	echo "not ok 1 - every source file has its SPDX line"
	printf '%s\n' "$bad"
fi
