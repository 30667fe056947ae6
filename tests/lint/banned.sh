#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Functions that this program does without, because they do not know the size of what they write,
# accept more than a strict number, depend on the locale, or start a shell.
set -u
cd "${ROLL_SRCDIR:-.}" || exit 1

# Print "file:line: function" for each call of a function that matches the pattern.
find_calls() {
	pattern=$1
	shift
	find "$@" -name '*.[ch]' | LC_ALL=C sort | xargs awk -v pattern="^($pattern)\$" '
	FNR == 1 { in_comment = 0 }
	{
		line = $0
		code = ""
		# Comments and literals may name what code must not call.
		while (line != "") {
			if (in_comment) {
				at = index(line, "*/")
				if (at == 0)
					break
				line = substr(line, at + 2)
				in_comment = 0
			} else if (match(line, /^\/\*/)) {
				line = substr(line, 3)
				in_comment = 1
			} else if (match(line, /^"([^"\\]|\\.)*"/) ||
				   match(line, /^\047([^\047\\]|\\.)*\047/)) {
				code = code "0"
				line = substr(line, RLENGTH + 1)
			} else {
				code = code substr(line, 1, 1)
				line = substr(line, 2)
			}
		}
		while (match(code, /[A-Za-z_][A-Za-z_0-9]*[ \t]*\(/)) {
			name = substr(code, RSTART, RLENGTH)
			sub(/[ \t]*\($/, "", name)
			if (name ~ pattern)
				print FILENAME ":" FNR ": " name
			code = substr(code, RSTART + RLENGTH)
		}
	}'
}

n=0
report() {
	n=$((n + 1))
	if [ -z "$2" ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		printf '%s\n' "$2" | sed 's/^/# /'
	fi
}

ctype='is(alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit)'
report "no write without a size" \
	"$(find_calls 'str(n?)cpy|str(n?)cat|stpcpy|v?sprintf|gets|alloca|strtok(_r)?' src tests)"
report "no lenient numbers" "$(find_calls 'ato[a-z]+|strto[a-z]+|v?[fs]?scanf' src tests)"
report "no locale" "$(find_calls "$ctype|tolower|toupper|setlocale|strcasecmp|strncasecmp" src tests)"
report "no shell" "$(find_calls 'system|popen' src tests)"
report "no sleep in tests" "$(find_calls 'u?sleep' tests)"
echo "1..$n"
