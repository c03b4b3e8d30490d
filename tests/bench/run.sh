#!/bin/sh
# Measures one cold `neurarch-gate slurm` next to its named peers in the same run and writes docs/performance.md.
# Figures are ratios: machines are shared, absolute times only say what this one did.
# With BENCH_RUNS=3 it only checks that everything runs.
set -eu
ROOT=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
. "$ROOT/.ci/lib.sh"
ROOT=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
cd "$ROOT"
RUNS=${BENCH_RUNS:-60}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Peer 1: the smallest program the same compiler makes.
echo 'console.log("decision=allow");' >"$work/hello.ts"
node_modules/.bin/bun build --compile --target=bun --format=esm --bytecode --minify-syntax --minify-whitespace \
  --no-compile-autoload-dotenv --no-compile-autoload-bunfig --compile-exec-argv="--use-system-ca" \
  "$work/hello.ts" --outfile "$work/hello" >/dev/null

# Peer 2: the published Python helper with a sizing CLI that answers at once.
peer=$ROOT/.cache/peer
venv_need "$peer" neurarch_slurm neurarch-slurm==0.1.0
cat >"$work/instant-cli" <<'CLI'
#!/bin/sh
echo '{"jobs":[{"jobId":"b1","peakGb":136.1,"seqLen":2048,"params":8190735360},{"jobId":"b2","peakGb":158.8,"seqLen":2048,"params":8190735360}]}'
CLI
chmod +x "$work/instant-cli"

script=$ROOT/examples/finetune-qwen3-8b.sbatch
ours="$ROOT/dist/neurarch-gate slurm --script $script --gres gpu:a10g:1 --nodes 1"
theirs="$peer/bin/neurarch-slurm --script $script --gres gpu:a10g:1 --nodes 1 --sizing cli --cli $work/instant-cli"
# The answers must be real before their speed means anything.
$ours | grep -q '^decision=warn$'
$theirs | grep -q '^decision=warn$'

python3 "$ROOT/tests/bench/interleave.py" "$RUNS" "hello=$work/hello" "gate=$ours" "published=$theirs" >"$work/figures.json"
python3 - "$work" "$RUNS" <<'PY' >"$work/performance.md"
import json, platform, os, sys
work, runs = sys.argv[1], sys.argv[2]
figures = json.load(open(f"{work}/figures.json"))
best = {name: figure["bestMs"] for name, figure in figures.items()}
median = {name: figure["medianMs"] for name, figure in figures.items()}
peak, hello = figures["gate"]["peakMib"], figures["hello"]["peakMib"]
rows = [
    ("against a compiled `console.log`", best["gate"] / best["hello"], "at most 2.5 times", best["gate"] <= 2.5 * best["hello"]),
    ("against the published Python helper", best["published"] / best["gate"], "at least 10 times faster", best["published"] >= 10 * best["gate"]),
]
print("# Speed\n\nWritten by `make bench`; every figure is a ratio against a named peer in the same run.\n")
print(f"Machine: {os.cpu_count()} cores, {platform.system()} {platform.machine()}; {runs} rounds, the programs in turns; ratios are of the fastest rounds.\n")
print("One cold `neurarch-gate slurm` on a catalogue model (the refusal of `examples/finetune-qwen3-8b.sbatch`):\n")
print("| what | figure | bar | held |\n| --- | --- | --- | --- |")
for name, ratio, bar, held in rows:
    print(f"| {name} | {ratio:.1f} times | {bar} | {'yes' if held else 'NO'} |")
print(f"| peak memory | {peak:.1f} MiB | at most 64 MiB | {'yes' if peak <= 64 else 'NO'} |\n")
print("| program | fastest | median | peak memory |\n| --- | --- | --- | --- |")
print(f"| compiled `console.log` | {best['hello']:.1f} ms | {median['hello']:.1f} ms | {hello:.1f} MiB |")
print(f"| `neurarch-gate slurm` | {best['gate']:.1f} ms | {median['gate']:.1f} ms | {peak:.1f} MiB |")
print(f"| `neurarch-slurm` 0.1.0 (pip), sizing CLI that answers at once | {best['published']:.1f} ms | {median['published']:.1f} ms | {figures['published']['peakMib']:.1f} MiB |")
PY
cat "$work/performance.md"
# A short run (a check that the bench works) does not overwrite the page.
[ "$RUNS" -lt 20 ] || cp "$work/performance.md" docs/performance.md
! grep -q '| NO |' "$work/performance.md"
