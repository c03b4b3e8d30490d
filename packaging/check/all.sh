#!/usr/bin/env bash
# The whole check of a release, `make dist-check`: built twice, looked at with the system's own tools, and tried on what
# this machine is not: older and other libraries, a processor without AVX, another architecture.
#
# Root, Debian bookworm or later, 10 minutes. The first run downloads about 300 MB of Debian and Ubuntu packages into
# .cache/dist. Each check prints a line; the last one is "N held, N failed".
set -u
HERE=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
. "$HERE/../../.ci/lib.sh"
ROOT=$(CDPATH= cd -- "$HERE/../.." && pwd)
cd "$ROOT" || exit 1
[ "$(id -u)" -eq 0 ] || { say "needs root"; exit 1; }
KEPT=${DIST_CACHE:-$ROOT/.cache/dist}
# With DIST_CHECK_BUILT=yes what lies in $DIST_RELEASE is tried as it is.
RELEASE=${DIST_RELEASE:-$ROOT/dist/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ROOT KEPT RELEASE work
held=0
failed=0
# check WORDS COMMAND...: one thing that has to hold.
check() {
  what=$1
  shift
  if "$@" >"$work/said" 2>&1; then
    held=$((held + 1))
    printf 'ok    %s: %s\n' "$what" "$(tail -n 1 "$work/said")"
  else
    failed=$((failed + 1))
    printf 'FAIL  %s\n' "$what"
    sed 's/^/      /' "$work/said" | tail -n 20
  fi
}

apt_need rpmbuild rpm || exit 1
apt_need rpm2cpio rpm2cpio || exit 1
apt_need cpio cpio || exit 1
apt_need file file || exit 1
apt_need debootstrap debootstrap || exit 1
apt_need qemu-x86_64-static qemu-user-static || exit 1
[ -e /usr/aarch64-linux-gnu/lib/libc.so.6 ] || apt_install libc6-arm64-cross || exit 1
if [ "${DIST_CHECK_BUILT:-}" != yes ]; then
  say "building"
  node_modules/.bin/bun packaging/dist.ts >/dev/null || exit 1
  say "building again, elsewhere"
  check "two builds have the same hashes" bash "$HERE/twice.sh"
fi
VERSION=$(sed -n 's/^  "version": "\(.*\)",/\1/p' package.json)
export VERSION
for path in "$RELEASE"/*; do
  case $path in
    *.deb | *.rpm | *-linux-* | *-darwin-*) printf '      %s: %s\n' "${path##*/}" "$(file -b "$path" | cut -c1-120)" ;;
  esac
done
. "$HERE/try.sh"
. "$HERE/old-hosts.sh"
. "$HERE/other-processors.sh"
. "$HERE/packages.sh"
echo "$held held, $failed failed"
[ "$failed" -eq 0 ]
