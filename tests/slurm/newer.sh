#!/usr/bin/env bash
# Runs the tests of a real Slurm under a newer one, Debian trixie's 24.11, in a chroot: `make slurm-newer`.
#
#   newer.sh [TEST-FILE...]    (tests/slurm/cluster.test.ts, requests.test.ts and the others that start a cluster)
#
# Needs root and debootstrap. The first run downloads about 350 MB into .cache/trixie (or $NEWER_ROOT); the mounts are in
# a namespace of their own and end with the run.
set -eu
. "$(dirname -- "$0")/../../.ci/lib.sh"
ROOT=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
SUITE=trixie
BOX=${NEWER_ROOT:-$ROOT/.cache/$SUITE}
PACKAGES=ca-certificates,slurm-wlm,slurmdbd,munge,mariadb-server-core,mariadb-client,lua5.1,lua5.2,lua5.3,lua5.4,procps

[ "$(id -u)" -eq 0 ] || { say "needs root"; exit 1; }
if [ ! -e "$BOX/.ready" ]; then
  apt_need debootstrap debootstrap
  rm -rf "$BOX"
  mkdir -p "$BOX"
  say "installing Debian $SUITE below $BOX"
  debootstrap --variant=minbase --include="$PACKAGES" "$SUITE" "$BOX" http://deb.debian.org/debian >"$BOX.log" 2>&1 ||
    { tail -n 5 "$BOX.log" >&2; exit 1; }
  touch "$BOX/.ready"
fi
[ $# -gt 0 ] || set -- $(cd "$ROOT" && grep -l 'Cluster\.start' tests/slurm/*.test.ts)
mkdir -p "$BOX$ROOT"
export BOX ROOT
exec unshare --mount --propagation private bash -c '
  # Its root must be a mount to be found among the mounts.
  mount --bind "$BOX" "$BOX" && mount -t proc proc "$BOX/proc" && mount --bind /dev "$BOX/dev" && mount --bind "$ROOT" "$BOX$ROOT" || exit 1
  exec env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root CI=true LANG=C.UTF-8 chroot "$BOX" \
    bash -c '\''cd "$0" && slurmd -V && exec node_modules/.bin/bun test --timeout 60000 "$@"'\'' "$ROOT" "$@"
' newer.sh "$@"
