#!/bin/sh
# Measures one cold `neurarch-gate slurm`, the policy server and the Python policy next to their named peers in the same
# run, and the bridge over a stand-in sky, and writes docs/performance.md.
# Figures are ratios: machines are shared, absolute times only say what this one did.
# With BENCH_RUNS=3 (`make bench-smoke`) it only checks that everything runs: nothing is held against a bar, and the page
# goes to $BENCH_OUT, or nowhere.
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
# The same helper as a site has it that also runs SkyPilot: it imports sky where it finds it.
venv_need "$ROOT/.cache/peer-sky" neurarch_skypilot neurarch-slurm==0.1.0 neurarch-skypilot==0.1.1 skypilot==0.13.0
cat >"$work/instant-cli" <<'CLI'
#!/bin/sh
echo '{"jobs":[{"jobId":"b1","peakGb":136.1,"seqLen":2048,"params":8190735360},{"jobId":"b2","peakGb":158.8,"seqLen":2048,"params":8190735360}]}'
CLI
chmod +x "$work/instant-cli"

script=$ROOT/examples/finetune-qwen3-8b.sbatch
# A home of its own: its first submit sizes the model, the others find the size kept.
export HOME="$work/home"
mkdir "$HOME"
# Copied as a site installs it: a file that was just written is mapped faster than one that was read, and so is hello.
cp "$ROOT/dist/neurarch-gate" "$work/neurarch-gate"
ours="$work/neurarch-gate slurm --script $script --gres gpu:a10g:1 --nodes 1"
# The first submit of every model: there is nowhere to keep a size.
first="/usr/bin/env XDG_CACHE_HOME=/proc/nowhere $ours"
theirs="$peer/bin/neurarch-slurm --script $script --gres gpu:a10g:1 --nodes 1 --sizing cli --cli $work/instant-cli"
beside="$ROOT/.cache/peer-sky/bin/neurarch-slurm --script $script --gres gpu:a10g:1 --nodes 1 --sizing cli --cli $work/instant-cli"
# The answers must be real before their speed means anything.
$ours | grep -q '^decision=warn$'
$theirs | grep -q '^decision=warn$'
$beside | grep -q '^decision=warn$'

# Each peer in turns with ours alone: a third program in the round would only empty the caches of the other two.
turns() { python3 "$ROOT/tests/bench/interleave.py" "$RUNS" "gate=$ours" "peer=$1"; }
turns "$work/hello" >"$work/hello.json"
python3 "$ROOT/tests/bench/interleave.py" "$RUNS" "gate=$first" "peer=/usr/bin/env $work/hello" >"$work/first.json"
# The same submit that also leaves its line in a ledger.
mkdir -m 0700 "$work/ledger"
python3 "$ROOT/tests/bench/interleave.py" "$RUNS" "gate=$ours --ledger $work/ledger" "peer=$ours" >"$work/ledger.json"
turns "$theirs" >"$work/alone.json"
turns "$beside" >"$work/beside.json"

# The policy server with SkyPilot's own requests, and the published Python policy in process and behind a small server.
sky=$ROOT/.cache/peer-sky/bin/python
requests=$((RUNS < 20 ? 2000 : 100000))
"$sky" "$ROOT/tests/bench/bodies.py" 2000 >"$work/bodies.jsonl"
head -n 500 "$work/bodies.jsonl" >"$work/some.jsonl"
"$sky" "$ROOT/tests/bench/peer_rest.py" "$work/instant-cli" "$work/some.jsonl" >"$work/inside.json"
node_modules/.bin/bun "$ROOT/tests/bench/serve.ts" \
  "$work/neurarch-gate" "$work/bodies.jsonl" "$sky" "$work/instant-cli" "$requests" >"$work/serve.json"
# The Python policy, as it is applied in the process of `sky` or of its API server.
"$sky" "$ROOT/tests/bench/shim.py" "$work/neurarch-gate" "$RUNS" >"$work/shim.json"

# The bridge: a round trip, a long log, memory; and the copying of a large workspace.
few=$((RUNS < 20 ? 3 : 15))
node_modules/.bin/bun "$ROOT/tests/bench/bridge.ts" "$few" >"$work/bridge.json"
node_modules/.bin/bun "$ROOT/tests/bench/staging.ts" "$((few / 3))" >"$work/staging.json"

python3 - "$work" "$RUNS" <<'PY' >"$work/performance.md"
import json, platform, os, sys
work, runs = sys.argv[1], sys.argv[2]
runs_of = {name: json.load(open(f"{work}/{name}.json")) for name in ("hello", "first", "ledger", "alone", "beside")}
ratio = {name: run["peer"]["bestMs"] / run["gate"]["bestMs"] for name, run in runs_of.items()}
ledger_ms = runs_of["ledger"]["gate"]["bestMs"] - runs_of["ledger"]["peer"]["bestMs"]
gate, hello = runs_of["hello"]["gate"], runs_of["hello"]["peer"]
rows = [
    ("against a compiled `console.log`", f"{1 / ratio['hello']:.1f} times", "at most 2.5 times", 1 / ratio["hello"] <= 2.5),
    ("against a compiled `console.log`, the first submit of a model (both behind `env`)", f"{1 / ratio['first']:.1f} times", "", None),
    ("against the published Python helper, SkyPilot in its environment", f"{ratio['beside']:.0f} times faster", "at least 10 times faster", ratio["beside"] >= 10),
    ("against the published Python helper alone", f"{ratio['alone']:.1f} times faster", "", None),
    ("with the ledger on, against the same without", f"{ledger_ms:.1f} ms more", "at most 2 ms more", ledger_ms <= 2),
    ("peak memory", f"{gate['peakMib']:.1f} MiB", "at most 64 MiB", gate["peakMib"] <= 64),
]
print("# Speed\n\nWritten by `make bench`; every figure is a ratio against a named peer in the same run.\n")
print(f"Machine: {os.cpu_count()} cores, {platform.system()} {platform.machine()}; {runs} rounds, each peer in turns with ours; ratios are of the fastest rounds.\n")
print("One cold `neurarch-gate slurm` on a catalogue model (the refusal of `examples/finetune-qwen3-8b.sbatch`), whose size an\nearlier submit has kept unless it says otherwise:\n")
print("| what | figure | bar | held |\n| --- | --- | --- | --- |")
for name, figure, bar, held in rows:
    print(f"| {name} | {figure} | {bar} | {'' if held is None else 'yes' if held else 'NO'} |")
print("\n| program | fastest | median | peak memory |\n| --- | --- | --- | --- |")
for name, figure in (
    ("compiled `console.log`", hello),
    ("`neurarch-gate slurm`", gate),
    ("the same where no size is kept, behind `env`", runs_of["first"]["gate"]),
    ("`neurarch-slurm` 0.1.0 (pip) alone, a sizing CLI that answers at once", runs_of["alone"]["peer"]),
    ("the same where SkyPilot 0.13 is installed, which it then imports", runs_of["beside"]["peer"]),
):
    print(f"| {name} | {figure['bestMs']:.1f} ms | {figure['medianMs']:.1f} ms | {figure['peakMib']:.1f} MiB |")
PY
python3 "$ROOT/tests/bench/sky_rows.py" "$work" >>"$work/performance.md"
python3 "$ROOT/tests/bench/startup.py" "$work/neurarch-gate" "$work/hello" "$RUNS" "$ROOT" "$work" >>"$work/performance.md"
python3 "$ROOT/tests/bench/bridge_rows.py" "$work" >>"$work/performance.md"
cat "$work/performance.md"
# A short run (a check that the bench works) does not overwrite the page.
if [ "$RUNS" -lt 20 ]; then
  [ -z "${BENCH_OUT:-}" ] || cp "$work/performance.md" "$BENCH_OUT"
  exit 0
fi
cp "$work/performance.md" docs/performance.md
! grep -q '| NO |' "$work/performance.md"
