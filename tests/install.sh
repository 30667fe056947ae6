#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install.sh GROUP...: install what is missing of Debian's packages; nothing to do, nothing done.
# Groups: build (make and make install), demo (pdns-conf/demo.sh), test (make check), browser (the
# page of rollcall-sync in Chromium), pdns (newer PowerDNS), ci (.ci/run).
# No service is started by it: a pdns_server on port 53 is not what somebody who runs tests wants.
set -eu

packages=
for group in "$@"; do
	case $group in
	build)
		packages="$packages autoconf automake gcc libc6-dev make pkg-config libevent-dev
			libjansson-dev liblmdb-dev libyaml-dev libcurl4-openssl-dev uthash-dev
			libsystemd-dev"
		;;
	demo)
		packages="$packages pdns-server pdns-backend-remote bind9-dnsutils"
		;;
	test)
		packages="$packages libcmocka-dev pdns-server pdns-backend-remote pdns-backend-bind
			bind9-utils bind9-dnsutils ldnsutils python3 python3-dnspython python3-yaml
			openssl prometheus"
		;;
	browser)
		packages="$packages chromium"
		;;
	pdns)
		packages="$packages ca-certificates debian-archive-keyring"
		;;
	ci)
		packages="$packages clang llvm clang-format clang-tidy cppcheck shellcheck git
			xz-utils"
		;;
	*)
		echo "install.sh: unknown group: $group" >&2
		exit 2
		;;
	esac
done

missing=
for package in $packages; do
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
	[ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
	if ! command -v sudo >/dev/null 2>&1; then
		echo "install.sh: neither root nor sudo; please install:$missing" >&2
		exit 1
	fi
	as_root=sudo
fi
echo "installing:$missing" >&2

# Debian's way to say "install, but start nothing"; one that is there already is left alone.
policy=/usr/sbin/policy-rc.d
cleanup() {
	[ -z "$made_policy" ] || $as_root rm -f "$policy"
}
made_policy=
trap cleanup EXIT
trap 'exit 1' HUP INT TERM
if [ ! -e "$policy" ]; then
	made_policy=yes
	printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
	$as_root chmod 755 "$policy"
fi

$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update
# The list is split into words on purpose.
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install $missing >&2
