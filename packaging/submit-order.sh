#!/bin/sh
# submit-order.sh FOLDER OUT: the order in which FOLDER/neurarch-gate runs through its bytecode in a submit whose size is
# kept. Timers have a part in it on a machine that is busy, so it is the one that five runs in a row have; where there is
# none, or the submit is not judged, OUT is empty and the compiler's own order stays.
set -eu
folder=$1
out=$2
mkdir -p "$folder/cache"
: >"$folder/gate.toml"
: >"$folder/empty"
submit() {
  env XDG_CACHE_HOME="$(cd "$folder" && pwd)/cache" BUN_BYTECODE_ORDER_OUT="$1" "$folder/neurarch-gate" slurm \
    --script examples/finetune-qwen3-8b.sbatch --gres gpu:a10g:1 --nodes 1 --config "$folder/gate.toml" >"$folder/said" &&
    grep -q '^decision=warn$' "$folder/said"
}
same=0
tries=0
last=$folder/empty
submit "" || tries=60
while [ "$same" -lt 4 ] && [ "$tries" -lt 60 ]; do
  tries=$((tries + 1))
  next=$folder/order.$((tries % 2))
  rm -f "$next"
  submit "$next" || continue
  if cmp -s "$next" "$last"; then same=$((same + 1)); else same=0; fi
  last=$next
done
[ "$same" -eq 4 ] || last=$folder/empty
cp "$last" "$out"
