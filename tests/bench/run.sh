#!/bin/sh
# Measures one cold `neurarch-gate slurm` next to its named peers in the same run and writes docs/performance.md.
# Figures are ratios: machines are shared, absolute times only say what this one did.
# With BENCH_RUNS=3 it only checks that everything runs.
set -eu
ROOT=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
. "$ROOT/.ci/lib.sh"
ROOT=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
cd "$ROOT"
apt_need hyperfine hyperfine
apt_need python3 python3 python3-venv
[ -x /usr/bin/time ] || apt_need /usr/bin/time time
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
if ! "$peer/bin/neurarch-slurm" --help >/dev/null 2>&1; then
  say "installing the published helper neurarch-slurm 0.1.0 into .cache/peer"
  python3 -m venv "$peer"
  "$peer/bin/pip" install -q --disable-pip-version-check neurarch-slurm==0.1.0
fi
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

cd "$work"
hyperfine -N --warmup 5 --runs "$RUNS" --export-json ours.json -n hello "$work/hello" -n gate "$ours" >/dev/null 2>&1
hyperfine -N --warmup 2 --runs "$((RUNS / 3 > 0 ? RUNS / 3 : 1))" --export-json theirs.json -n published "$theirs" >/dev/null 2>&1
/usr/bin/time -f '%M' -o peak.txt $ours >/dev/null
/usr/bin/time -f '%M' -o peak-hello.txt "$work/hello" >/dev/null
cd "$ROOT"
python3 - "$work" "$RUNS" <<'PY' >"$work/performance.md"
import json, platform, os, sys
work, runs = sys.argv[1], sys.argv[2]
median = {r["command"]: r["median"] * 1e3 for f in ("ours", "theirs") for r in json.load(open(f"{work}/{f}.json"))["results"]}
peak = int(open(f"{work}/peak.txt").read()) / 1024
hello = int(open(f"{work}/peak-hello.txt").read()) / 1024
rows = [
    ("against a compiled `console.log`", median["gate"] / median["hello"], "at most 2.5 times", median["gate"] <= 2.5 * median["hello"]),
    ("against the published Python helper", median["published"] / median["gate"], "at least 10 times faster", median["published"] >= 10 * median["gate"]),
]
print("# Speed\n\nWritten by `make bench`; every figure is a ratio against a named peer in the same run.\n")
print(f"Machine: {os.cpu_count()} cores, {platform.system()} {platform.machine()}, {runs} runs a command, medians.\n")
print("One cold `neurarch-gate slurm` on a catalogue model (the refusal of `examples/finetune-qwen3-8b.sbatch`):\n")
print("| what | figure | bar | held |\n| --- | --- | --- | --- |")
for name, ratio, bar, held in rows:
    print(f"| {name} | {ratio:.1f} times | {bar} | {'yes' if held else 'NO'} |")
print(f"| peak memory | {peak:.1f} MiB | at most 64 MiB | {'yes' if peak <= 64 else 'NO'} |\n")
print("| program | median | peak memory |\n| --- | --- | --- |")
print(f"| compiled `console.log` | {median['hello']:.1f} ms | {hello:.1f} MiB |")
print(f"| `neurarch-gate slurm` | {median['gate']:.1f} ms | {peak:.1f} MiB |")
print(f"| `neurarch-slurm` 0.1.0 (pip), sizing CLI that answers at once | {median['published']:.1f} ms | |")
PY
cat "$work/performance.md"
# A short run (a check that the bench works) does not overwrite the page.
[ "$RUNS" -lt 20 ] || cp "$work/performance.md" docs/performance.md
! grep -q '| NO |' "$work/performance.md"
