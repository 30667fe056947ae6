#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh DIR: tests against a real kube-apiserver and etcd, which is built in DIR unless it is there.
# TAP on stdout. The programs under test are found in PATH.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
ROLL_KUBE_DIR=$1
export ROLL_KUBE_DIR
sh "$here/build" "$ROLL_KUBE_DIR"
"$ROLL_KUBE_DIR/bin/kube-apiserver" --version | sed 's/^/# /'
status=0
for test in "$here"/t_*.py; do
	/usr/bin/python3 -B "$test" || status=1
done
exit $status
