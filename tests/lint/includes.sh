#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Who may include whom: one test per folder of src/, and everything that is not in the table fails.
set -u
cd "${ROLL_SRCDIR:-.}" || exit 1

# folder: our folders (its own is always allowed), then third-party libraries, then libraries that
# only the named file may use.
table='
base: jansson
dns: base
model: base dns jansson
view: base dns lmdb
app: base libevent systemd
source: base app jansson libevent libcurl libyaml=yaml.c
apply: base dns model view jansson
explain: base dns model view jansson
server: base dns app view jansson libevent
sync: base dns app view model apply explain source jansson libevent
ctl: base dns app view model apply explain source jansson
'

# Print "folder/file.c: header" for each include that the row does not allow.
check_folder() {
	awk -v folder="$1" -v row="$2" '
	BEGIN {
		count = split(row, words, " ")
		for (i = 1; i <= count; i++) {
			split(words[i], parts, "=")
			allowed[parts[1]] = parts[2] == "" ? "*" : parts[2]
		}
		allowed[folder] = "*"
	}
	function library(header) {
		if (header ~ /^jansson/) return "jansson"
		if (header ~ /^(event2\/|event\.h|ev)/) return "libevent"
		if (header ~ /^lmdb/) return "lmdb"
		if (header ~ /^curl\//) return "libcurl"
		if (header ~ /^yaml/) return "libyaml"
		if (header ~ /^systemd\//) return "systemd"
		if (header ~ /^cmocka/) return "cmocka"
		return ""
	}
	/^[ \t]*#[ \t]*include/ {
		header = $0
		sub(/^[ \t]*#[ \t]*include[ \t]*/, "", header)
		is_ours = header ~ /^"/
		sub(/^["<]/, "", header)
		sub(/[">].*/, "", header)
		file = FILENAME
		sub(/.*\//, "", file)
		if (is_ours) {
			name = header
			if (sub(/\/.*/, "", name) == 0)
				name = "no folder"
		} else {
			name = library(header)
		}
		if (name != "" && allowed[name] != "*" && allowed[name] != file)
			print FILENAME ": " header
	}' src/"$1"/*.[ch] 2>/dev/null
}

n=0
for path in src/*/; do
	folder=${path#src/}
	folder=${folder%/}
	ls src/"$folder"/*.[ch] >/dev/null 2>&1 || continue
	n=$((n + 1))
	row=$(printf '%s' "$table" | sed -n "s/^$folder://p")
	if [ -z "$row" ]; then
		bad="the folder is not in the table"
	else
		bad=$(check_folder "$folder" "$row")
	fi
	if [ -z "$bad" ]; then
		echo "ok $n - $folder includes only what it may"
	else
		echo "not ok $n - $folder includes only what it may"
		printf '%s\n' "$bad" | sed 's/^/# /'
	fi
done
echo "1..$n"
