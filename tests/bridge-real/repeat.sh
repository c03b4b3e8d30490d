#!/bin/sh
# Runs the tests of this folder so many times (1), and with them the comparison with SkyPilot by hand.
set -eu
cd "$(dirname -- "$0")/../.."
. .ci/lib.sh
if [ -z "${NEURARCH_TEST_SKY_PYTHON:-}" ]; then
  setup_build && setup_hosts
  NEURARCH_TEST_SKY_PYTHON=$ROOT/.cache/sky/bin/python
fi
export NEURARCH_TEST_SKY_PYTHON CI=true NEURARCH_TEST_EVERY=1
for time in $(seq "${1:-1}"); do
  say "run $time of ${1:-1}"
  node_modules/.bin/bun test --timeout 60000 tests/bridge-real
done
node_modules/.bin/bun tests/bridge-real/ratio.ts
