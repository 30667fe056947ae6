#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# See it work: builds rollcall, serves the example through a real pdns_server on 127.0.0.1:5300,
# deletes one manifest and shows that its name is gone. Nothing of the system's own DNS is touched;
# all of it is in a temporary directory and goes away at the end.
set -eu

usage() {
	cat <<'END'
usage: sh pdns-conf/demo.sh [--once] [--port PORT] [--no-install] [--bin DIR]
  --once        end after the demonstration instead of waiting for Ctrl-C
  --port PORT   where pdns_server listens on 127.0.0.1 [5300]
  --no-install  install nothing
  --bin DIR     use the programs in DIR instead of building them
END
}

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export PATH
src=$(cd "$(dirname "$0")/.." && pwd)
port=5300
once=
install=yes
bin=
while [ $# -gt 0 ]; do
	case $1 in
	--once) once=yes ;;
	--no-install) install= ;;
	--port | --bin)
		if [ $# -lt 2 ]; then
			usage >&2
			exit 2
		fi
		case $1 in
		--port) port=$2 ;;
		--bin) bin=$2 ;;
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

say() {
	printf '\n\033[1m%s\033[0m\n' "$*"
}
[ -t 1 ] || say() {
	printf '\n== %s\n' "$*"
}
# Show a command, then what it prints.
show() {
	echo "\$ $*"
	"$@" || true
}

if [ -n "$install" ]; then
	sh "$src/tests/install.sh" build demo
fi
if [ -z "$bin" ]; then
	say "Building in $src/build"
	[ -x "$src/configure" ] || (cd "$src" && autoreconf -i)
	mkdir -p "$src/build"
	(
		cd "$src/build"
		[ -e Makefile ] || "$src/configure" -q
		make -s -j "$(nproc)"
	)
	bin=$src/build/src
fi
PATH=$bin:$PATH

work=$(mktemp -d "${TMPDIR:-/tmp}/rollcall-demo-XXXXXX")
pids=
cleanup() {
	trap '' HUP INT TERM
	for pid in $pids; do
		kill "$pid" 2>/dev/null || true
	done
	for pid in $pids; do
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' HUP INT TERM

# give_up WHAT LOG: what is in the way, and what the program said about it.
give_up() {
	echo "demo: $1; its last words:" >&2
	tail -n 20 "$work/$2.log" >&2
	exit 1
}
# start NAME COMMAND...: in the background, output to NAME.log; $! goes to the list.
start() {
	name=$1
	shift
	"$@" > "$work/$name.log" 2>&1 &
	pid=$!
	# The newest ends first: pdns_server before what it asks.
	pids="$pid $pids"
}

# wait_for NAME COMMAND...: until the command succeeds, for at most 30 seconds.
wait_for() {
	name=$1
	shift
	tries=0
	until "$@" >/dev/null 2>&1; do
		tries=$((tries + 1))
		kill -0 "$pid" 2>/dev/null || give_up "$name ended" "$name"
		[ "$tries" -lt 600 ] || give_up "$name is not ready within 30 s" "$name"
		sleep 0.05
	done
}
ask() {
	dig @127.0.0.1 -p "$port" +time=2 +tries=1 "$@"
}
is_up() {
	ask +short SOA example.com | grep -q '^ns1\.example\.net\.'
}
is_gone() {
	ask "$@" | grep -q 'status: NXDOMAIN'
}
now_ms() {
	echo $(($(date +%s%N) / 1000000))
}

cp -R "$src/pdns-conf/example" "$work/manifests"
mkdir "$work/pdns.d"
cp "$src/pdns-conf/strict.conf" "$work/pdns.d/rollcall.conf"
# What a site sets itself; here, where this demonstration lives. The resolver that looks up the
# target of the ALIAS is this same server, because the target is in the example.
cat > "$work/pdns.conf" <<END
include-dir=$work/pdns.d
socket-dir=$work
local-address=127.0.0.1
local-port=$port
daemon=no
guardian=no
disable-syslog=yes
END

say "Starting rollcall-sync (manifests -> view), rollcalld (view -> socket), pdns_server (socket -> DNS)"
start rollcall-sync rollcall-sync --manifests "$work/manifests" --view "$work/view" \
	--pdns-control "$work/pdns.controlsocket"
wait_for rollcall-sync test -e "$work/view/current"
start rollcalld rollcalld --view "$work/view" --listen "$work/rollcalld.sock"
# The socket is there a moment before it is listened on.
wait_for rollcalld grep -q event=listening "$work/rollcalld.log"
start pdns_server pdns_server --config-dir="$work" --resolver="127.0.0.1:$port" \
	--remote-connection-string="unix:path=$work/rollcalld.sock,timeout=2000"
wait_for pdns_server is_up
show rollcall --view "$work/view" zones

say "Answers"
for question in "www.example.com A" "www.example.com AAAA" "example.com SOA" "example.com NS" \
	"example.com MX" "example.com A" "blog.example.com A" "any.apps.example.com A" \
	"shop.example.com HTTPS" "_sip._tcp.example.com SRV"; do
	# Name and type are two words.
	# shellcheck disable=SC2086
	ask +noall +answer $question
done

say "One object serves hello.example.com, in hello.yaml"
show rollcall --view "$work/view" explain hello.example.com A
echo "\$ dig @127.0.0.1 -p $port hello.example.com A"
ask +noall +answer hello.example.com A

say "Its manifest is deleted; nobody tells PowerDNS anything"
began=$(now_ms)
is_gone missing.example.com A
dig_ms=$(($(now_ms) - began))
echo "\$ rm hello.yaml"
began=$(now_ms)
rm "$work/manifests/hello.yaml"
tries=1
until is_gone hello.example.com A; do
	tries=$((tries + 1))
	if [ "$tries" -gt 2000 ]; then
		echo "demo: hello.example.com is still answered" >&2
		exit 1
	fi
done
took=$(($(now_ms) - began))
echo "\$ dig @127.0.0.1 -p $port hello.example.com A"
ask +noall +comments hello.example.com A | grep status
echo "hello.example.com was gone $took ms after rm, seen by query $tries" \
	"(one run of dig takes $dig_ms ms)"
show rollcall --view "$work/view" why-gone hello.example.com
show rollcall --view "$work/view" verify

if [ -z "$once" ]; then
	say "It runs until Ctrl-C. Change the manifests and ask:"
	echo "  ls $work/manifests"
	echo "  dig @127.0.0.1 -p $port www.example.com"
	echo "  $bin/rollcall --view $work/view status"
	wait
fi
