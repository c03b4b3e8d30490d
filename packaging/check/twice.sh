#!/usr/bin/env bash
# Builds the release again from a copy of the tree in another folder, under another time zone and umask, and compares.
set -eu
copy=$ROOT/dist/elsewhere/copy
rm -rf "$ROOT/dist/elsewhere"
mkdir -p "$copy"
trap 'rm -rf "$ROOT/dist/elsewhere"' EXIT
for name in .git .ci src lua python-shim packaging examples docs Makefile package.json package-lock.json tsconfig.json \
  bunfig.toml LICENSE README.md; do cp -a "$name" "$copy/"; done
# Hard links: a link to the folder would change the paths that the bundler sees.
cp -al node_modules "$copy/"
export DIST_CACHE=$KEPT
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
# The copy is marked as changed, having a part of the files: it is told the commit.
DIST_COMMIT=$(sed -n 's/.*"neurarch-gate:commit",//; /neurarch-gate:commit/{n;s/.*"value": "\(.*\)".*/\1/p}' "$RELEASE"/*.cdx.json)
export SOURCE_DATE_EPOCH DIST_COMMIT
(cd "$copy" && umask 077 && TZ=Pacific/Auckland node_modules/.bin/bun packaging/dist.ts --out "$work/again" >/dev/null)
diff "$RELEASE/SHA256SUMS" "$work/again/SHA256SUMS"
rm -rf "$work/again"
wc -l <"$RELEASE/SHA256SUMS" | sed 's/$/ files/'
