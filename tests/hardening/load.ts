/**
 * Load on the built executable: many submits at once, and an hour's traffic of a server and of a bridge, compressed.
 * `bun tests/hardening/load.ts [--seconds 60] [--hours 1] [--parallel 64] [--into docs/load.md]`; ends with 1 when a submit
 * fails or takes over a second, a line of the ledger is missing, or memory grows.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { BINARY, ROOT } from "../acceptance/run.ts";
import { load, requestsOf } from "../bench/load.ts";
import { bench } from "../bridge/bridge-kit.ts";

/** Requests of a busy site's server, and evaluations of a bridge, in an hour. */
const REQUESTS_AN_HOUR = 360_000;
const EVALUATIONS_AN_HOUR = 180;
/** The longest that a submit may take, in ms. */
const MOST_MS = 1000;
/** What memory may be above that of the first quarter, in MiB. */
const MOST_GROWTH_MIB = 16;

const flag = (name: string, usual: string) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? usual : (process.argv[at + 1] ?? usual);
};
const SECONDS = Number(flag("seconds", "60"));
const HOURS = Number(flag("hours", "1"));
const PARALLEL = Number(flag("parallel", "64"));

const EXAMPLES = ["finetune-qwen3-8b", "finetune-qwen3-0.6b", "lora-qwen3-8b", "multi-node-llama-70b"].map(
  (name) => join(ROOT, `examples/${name}.sbatch`),
);

interface Submits {
  readonly count: number;
  readonly failed: number;
  readonly lines: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly slow: number;
  /** Processor time of one, a median, in ms. */
  readonly usedMs: number;
}

/** `parallel` workers that each submit again as soon as they are answered, with one cache and one ledger. */
async function submits(folder: string): Promise<Submits> {
  const ledger = join(folder, "ledger");
  const home = join(folder, "home");
  for (const made of [ledger, home]) mkdirSync(made, { mode: 0o700 });
  const env = { PATH: "/usr/bin:/bin", HOME: home, HF_HUB_OFFLINE: "1" };
  const waits: number[] = [];
  const used: number[] = [];
  let failed = 0;
  const endMs = performance.now() + SECONDS * 1000;
  const worker = async (first: number) => {
    for (let turn = first; performance.now() < endMs; turn++) {
      const script = EXAMPLES[turn % EXAMPLES.length]!;
      const startMs = performance.now();
      const child = Bun.spawn(
        [BINARY, "slurm", "--script", script, "--gres", "gpu:a10g:1", "--ledger", ledger],
        {
          env,
          stdin: "ignore",
          stdout: "pipe",
          stderr: "pipe",
        },
      );
      const [out, err, exit] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
        child.exited,
      ]);
      waits.push(performance.now() - startMs);
      used.push(Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1000);
      if (exit !== 0 || err !== "" || !/^decision=(?:allow|warn)\n/.test(out)) failed++;
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, (_, at) => worker(at)));
  waits.sort((a, b) => a - b);
  const part = (share: number) => waits[Math.min(waits.length - 1, Math.floor(waits.length * share))] ?? 0;
  const lines = readdirSync(ledger).flatMap((name) =>
    readFileSync(join(ledger, name), "utf8").split("\n").filter(Boolean),
  );
  for (const line of lines) JSON.parse(line);
  return {
    count: waits.length,
    failed,
    lines: lines.length,
    p50Ms: part(0.5),
    p99Ms: part(0.99),
    maxMs: part(1),
    slow: waits.filter((ms) => ms > MOST_MS).length,
    usedMs: used.toSorted((a, b) => a - b)[Math.floor(used.length / 2)] ?? 0,
  };
}

interface Memory {
  readonly done: number;
  readonly samples: number;
  /** Medians of the first and the last quarter, in MiB, and the highest of all. */
  readonly early: number;
  readonly late: number;
  readonly peak: number;
  readonly seconds: number;
}

/** Samples a process's memory while `work` goes on. */
async function watched(pid: number, work: (done: () => void) => Promise<void>): Promise<Memory> {
  const samples: number[] = [];
  const sample = () => {
    const text = readFileSync(`/proc/${pid}/status`, "utf8");
    samples.push(Number(/VmRSS:\s+(\d+)/.exec(text)?.[1] ?? 0) / 1024);
  };
  let done = 0;
  const timer = setInterval(sample, 200);
  const startMs = performance.now();
  await work(() => {
    done++;
  });
  clearInterval(timer);
  sample();
  // What code and caches take at first is no growth.
  const warm = samples.slice(Math.floor(samples.length / 10));
  const quarter = Math.max(1, Math.floor(warm.length / 4));
  const median = (list: readonly number[]) =>
    list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)] ?? 0;
  return {
    done,
    samples: samples.length,
    early: median(warm.slice(0, quarter)),
    late: median(warm.slice(-quarter)),
    peak: Math.max(...samples),
    seconds: (performance.now() - startMs) / 1000,
  };
}

/** A started program that has said `word` on stderr. */
async function started(words: readonly string[], word: string) {
  const child = Bun.spawn([BINARY, ...words], {
    env: { ...process.env, HOME: "/nonexistent", HF_HUB_OFFLINE: "1" },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  let log = "";
  void (async () => {
    for await (const piece of child.stderr) if (log.length < 100_000) log += new TextDecoder().decode(piece);
  })();
  while (!log.includes(word)) {
    if (child.exitCode !== null) throw new Error(log);
    await Bun.sleep(10);
  }
  const end = async () => {
    child.kill("SIGTERM");
    return child.exited;
  };
  return { pid: child.pid, log: () => log, end };
}

async function serving(folder: string): Promise<Memory> {
  const server = await started(
    ["serve", "--listen", "127.0.0.1:0", "--ledger", join(folder, "served")],
    "listening on",
  );
  const url = new URL(/listening on (\S+)/.exec(server.log())![1]!);
  const models = ["Qwen/Qwen3-8B", "Qwen/Qwen3-0.6B", "gpt2", "meta-llama/Llama-3.1-70B"];
  const bodies = Array.from({ length: 400 }, (_, at) =>
    // Every other one has something of its own, which no memory of answers may keep for ever.
    JSON.stringify({
      model: models[at % 4],
      batch: 1 + at,
      request: at % 2 === 0 ? "H100:8" : `x${at}:1`,
      "seq-len": 512 + at,
    }),
  );
  const requests = requestsOf(bodies, "/v1/judge");
  const total = Math.round(REQUESTS_AN_HOUR * HOURS);
  const memory = await watched(server.pid, async (done) => {
    for (let left = total; left > 0; left -= 5000) {
      const count = Math.min(5000, left);
      const { statuses } = await load(url, requests, { connections: 32, count });
      if (statuses["200"] !== count) throw new Error(`serve answered ${JSON.stringify(statuses)}`);
      for (let one = 0; one < count; one++) done();
    }
  });
  await server.end();
  return memory;
}

async function bridging(): Promise<Memory> {
  const b = bench({ accuracy: "seq 2000" });
  try {
    const daemon = await started(["bridge", "--campaign", join(b.root, "campaign.toml")], "serving run");
    const total = Math.max(2, Math.round(EVALUATIONS_AN_HOUR * HOURS));
    const memory = await watched(daemon.pid, async (done) => {
      for (let left = total; left > 0; left--) {
        const child = Bun.spawn([BINARY, "evaluate", "accuracy", "--socket", b.socket], {
          env: { ...process.env, VIBESYS_SKYPILOT_CALLER_STATE: b.caller },
          stdin: "ignore",
          stdout: "ignore",
          stderr: "pipe",
        });
        const err = await new Response(child.stderr).text();
        if ((await child.exited) !== 0) throw new Error(`an evaluation failed: ${err}`);
        done();
      }
    });
    await daemon.end();
    return memory;
  } finally {
    await b.remove();
  }
}

const folder = mkdtempSync(join(tmpdir(), "gate-load-"));
mkdirSync(join(folder, "served"), { mode: 0o700 });
try {
  const before = loadavg()[0]!;
  const submitted = await submits(folder);
  const served = await serving(folder);
  const bridged = await bridging();
  const grew = (memory: Memory) => memory.late - memory.early > MOST_GROWTH_MIB;
  const ms = (value: number) => `${Math.round(value)} ms`;
  const mib = (value: number) => `${value.toFixed(1)} MiB`;
  const yes = (held: boolean) => (held ? "yes" : "NO");
  const memoryRow = (name: string, unit: string, memory: Memory) =>
    `| ${name} | ${memory.done.toLocaleString("en")} ${unit} in ${Math.round(memory.seconds)} s | ${mib(memory.early)} | ${mib(memory.late)} | ${mib(memory.peak)} | ${yes(!grew(memory))} |`;
  const page = `# Load

Written by \`make load\` (\`tests/hardening/load.ts\`) on ${cpus().length} cores that other programs used as well: their load was
${before.toFixed(1)} when it began.

${PARALLEL} \`slurm\` processes at a time for ${SECONDS} s, each worker submitting again as soon as it is answered, with one cache
and one ledger on disk. Where other programs take most of the cores the last row tells what is ours: the time that so many
submits at once need by themselves.

| what | figure | bar | held |
| --- | --- | --- | --- |
| submits | ${submitted.count.toLocaleString("en")} (${Math.round(submitted.count / SECONDS)} a second) |  |  |
| failed | ${submitted.failed} | none | ${yes(submitted.failed === 0)} |
| lines in the ledger | ${submitted.lines.toLocaleString("en")} | as many as submits | ${yes(submitted.lines === submitted.count)} |
| half of them within | ${ms(submitted.p50Ms)} |  |  |
| 99 of 100 within | ${ms(submitted.p99Ms)} |  |  |
| the slowest | ${ms(submitted.maxMs)} (${submitted.slow} over a second) | 1,000 ms | ${yes(submitted.slow === 0)} |
| processor time of one, median | ${submitted.usedMs.toFixed(1)} ms |  |  |
| ${PARALLEL} of those on ${cpus().length} cores | ${ms((submitted.usedMs * PARALLEL) / cpus().length)} | 1,000 ms | ${yes((submitted.usedMs * PARALLEL) / cpus().length <= MOST_MS)} |

Traffic of ${HOURS === 1 ? "an hour" : `${HOURS} hours`}, one request after the other on 32 connections of a server, and one evaluation after the other
through a bridge over a stand-in for sky; memory is the resident set, median of the first and of the last quarter after
a tenth to warm up, and may not grow by more than ${MOST_GROWTH_MIB} MiB:

| program | traffic | first quarter | last quarter | highest | held |
| --- | --- | --- | --- | --- | --- |
${memoryRow("`serve`, with a ledger", "requests", served)}
${memoryRow("`bridge`", "evaluations", bridged)}
`;
  console.log(page);
  const into = flag("into", "");
  if (into !== "") writeFileSync(into, page);
  const sound = submitted.failed === 0 && submitted.lines === submitted.count;
  // A short run, which is over before anything is warm, is not held to times and memory.
  const held = submitted.slow === 0 && !grew(served) && !grew(bridged);
  process.exit(sound && (held || SECONDS < 60) ? 0 : 1);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
