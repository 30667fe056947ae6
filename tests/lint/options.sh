#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Man pages and --help name the same options with the same defaults and words; the pages are clean.
set -u
cd "${ROLL_SRCDIR:-.}" || exit 1

n=0
failed=0
report() {
	n=$((n + 1))
	if [ -z "$2" ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		printf '%s\n' "$2" | sed 's/^/# /'
		failed=1
	fi
}
skip() {
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

# Print what differs between the help on stdin and the page.
compare() {
	awk -v page="$1" '
	function complain(text) { print page ": " text }
	# "  --name ARG    what it does: one|two [default]"
	FILENAME == "-" {
		if ($0 !~ /^  +--[a-z]/)
			next
		name = $1
		sub(/^--/, "", name)
		in_help[name] = 1
		if (match($0, /\[[^][]*\]$/))
			default_of[name] = substr($0, RSTART + 1, RLENGTH - 2)
		line = $0
		sub(/ *\[[^][]*\]$/, "", line)
		count = split(line, parts, " ")
		if (parts[count] ~ /\|/)
			words_of[name] = parts[count]
		next
	}
	/^\.It Fl/ {
		item = ""
		if ($3 == "Fl" && $2 == "Fl") {
			item = $4
			in_page[item] = 1
		}
		next
	}
	/^\.(El|Sh)/ { item = "" }
	item != "" {
		line = $0
		sub(/^\.[A-Z][a-z] /, "", line)
		text_of[item] = text_of[item] " " line
	}
	END {
		for (name in in_help) {
			if (!in_page[name]) {
				complain("--" name " is missing")
				continue
			}
			text = text_of[name] " "
			gsub(/[,;]/, " ", text)
			at = index(text, "Default: ")
			rest = substr(text, at + 9)
			sub(/^ +/, "", rest)
			sub(/ .*/, "", rest)
			if (name in default_of && (!at || rest != default_of[name]))
				complain("--" name " has the default " default_of[name] ", not " \
					 (at ? rest : "none"))
			if (!(name in default_of) && at)
				complain("--" name " has no default")
			count = split(words_of[name], words, "|")
			for (i = 1; i <= count; i++)
				if (index(text, " " words[i] " ") == 0)
					complain("--" name " may also be " words[i])
		}
		for (name in in_page)
			if (!in_help[name])
				complain("--" name " is not an option")
	}' - "$1"
}

for page in docs/rollcall.1 docs/rollcall-sync.8 docs/rollcalld.8; do
	program=${page##*/}
	program=${program%.*}
	if command -v "$program" >/dev/null 2>&1; then
		report "$page names the options of --help" "$("$program" --help | compare "$page")"
	else
		skip "$page names the options of --help" "$program is not built"
	fi
	# mandoc is the stricter reader; man-db's at least runs the macros.
	if command -v mandoc >/dev/null 2>&1; then
		report "$page is clean" "$(mandoc -T lint -W warning "$page" 2>&1)"
	elif command -v man >/dev/null 2>&1; then
		report "$page is clean" "$(man --warnings -l "$page" 2>&1 >/dev/null)"
	else
		skip "$page is clean" "neither mandoc nor man"
	fi
done
echo "1..$n"
exit $failed
