#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The systemd units are understood by systemd, and shut what the programs do not need.
set -u
cd "${ROLL_SRCDIR:-.}" || exit 1

if ! command -v systemd-analyze >/dev/null 2>&1; then
	echo "1..0 # SKIP no systemd-analyze"
	exit 0
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

version=$(systemd-analyze --version | sed -n 's/^systemd \([0-9]*\).*/\1/p')
n=0
failed=0
report() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		printf '%s\n' "$3" | sed 's/^/# /'
		failed=1
	fi
}

for unit in rollcall-sync rollcalld; do
	# Neither the programs nor their man pages need to be installed for this.
	program=$(command -v "$unit")
	sed -e "s|^ExecStart=/usr/sbin/$unit |ExecStart=${program:-/bin/true} |" \
		-e '/^Documentation=/d' "pdns-conf/systemd/$unit.service" > "$dir/$unit.service"
	# It looks for other units of this machine too; what it says about those is not our matter.
	said=$(systemd-analyze verify --man=no "$dir/$unit.service" 2>&1 | grep "$unit")
	report "$([ -z "$said" ]; echo $?)" "$unit.service is understood" "$said"
	# What the man page tells of systemd 252; others look at other things as well. In tenths.
	claim=$(sed -n 's/^tells of it is \([0-9]\)\.\([0-9]\) of 10,.*/\1\2/p' "docs/$unit.8")
	report "$([ -n "$claim" ]; echo $?)" "$unit(8) tells how closed it is" "$claim"
	[ "$version" = 252 ] || claim=20
	said=$(systemd-analyze security --no-pager --offline=true --threshold="${claim:-0}" \
		"$dir/$unit.service" 2>&1)
	status=$?
	case $said in
	*offline*) echo "ok $((n += 1)) - $unit.service is closed # SKIP systemd is too old" ;;
	*) report "$status" "$unit.service is closed: at most $claim tenths" "$(printf '%s\n' "$said" | tail -n 20)" ;;
	esac
	said=$(sed -n "s/^ExecStart=[^ ]* //p" "pdns-conf/systemd/$unit.service" | tr ' ' '\n' |
		sed -n 's/^--\([a-z-]*\).*/\1/p' | while read -r option; do
			[ -z "$program" ] || "$program" --help | grep -q -- "--$option" || echo "$option"
		done)
	report "$([ -z "$said" ]; echo $?)" "$unit.service uses options that exist" "$said"
done
echo "1..$n"
exit $failed
