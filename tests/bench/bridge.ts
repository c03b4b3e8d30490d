/**
 * What a bridge costs beside the sky calls it makes, over the stand-in sky: one line of JSON on stdout.
 * `bun tests/bench/bridge.ts [ROUNDS]`, with `dist/neurarch-gate` built.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Bench, bench } from "../bridge/bridge-kit.ts";

const BINARY = resolve(import.meta.dir, "../../dist/neurarch-gate");
const ROUNDS = Number(process.argv[2] ?? 15);
const LOG_BYTES = 100_000_000;

const median = (values: readonly number[]) =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

function memoryMb(pid: number, field: "VmHWM" | "VmRSS"): number {
  const text = readFileSync(`/proc/${pid}/status`, "utf8");
  return Math.round(Number(new RegExp(`${field}:\\s+(\\d+)`).exec(text)?.[1] ?? 0) / 1000);
}

async function started(b: Bench): Promise<{ pid: number; end(): Promise<unknown> }> {
  const child = Bun.spawn([BINARY, "bridge", "--campaign", join(b.root, "campaign.toml")], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  let log = "";
  void (async () => {
    for await (const chunk of child.stderr) log += new TextDecoder().decode(chunk);
  })();
  while (!log.includes("serving run")) await Bun.sleep(5);
  return {
    pid: child.pid,
    end: () => {
      child.kill("SIGTERM");
      return child.exited;
    },
  };
}

function evaluate(b: Bench, stdout: "ignore" | "pipe" = "ignore") {
  return Bun.spawn([BINARY, "evaluate", "accuracy", "--socket", b.socket], {
    env: { ...process.env, VIBESYS_SKYPILOT_CALLER_STATE: b.caller },
    stdin: "ignore",
    stdout,
    stderr: "ignore",
  });
}

const figures: Record<string, number> = {};

const small = bench({ accuracy: "true" });
try {
  const daemon = await started(small);
  await evaluate(small).exited;
  const calls = small.sky.calls().slice(-3);
  const whole: number[] = [];
  const own: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    whole.push(await timed(() => evaluate(small).exited));
    own.push(
      await timed(async () => {
        for (const { argv } of calls) {
          // The task file of the call is gone; the same one is written again.
          const words = argv.map((word) =>
            word.endsWith("task.yaml") ? join(small.root, "task.yaml") : word,
          );
          const task = calls.find(({ taskText }) => taskText !== undefined)?.taskText ?? "";
          writeFileSync(join(small.root, "task.yaml"), task);
          await Bun.spawn([small.sky.sky, ...words], { stdin: "ignore", stdout: "ignore", stderr: "ignore" })
            .exited;
        }
      }),
    );
  }
  const [took, calling] = [median(whole), median(own)];
  Object.assign(figures, { tookMs: took, callingMs: calling, calls: calls.length });
  await Bun.sleep(3000);
  figures.restMb = memoryMb(daemon.pid, "VmRSS");
  await daemon.end();
} finally {
  await small.remove();
}

const large = bench({ accuracy: "sh check.sh" });
try {
  const line = "x".repeat(99);
  large.write("check.sh", `yes ${line} | head -c ${LOG_BYTES}\n`);
  const daemon = await started(large);
  let got = 0;
  const ms = await timed(async () => {
    for await (const chunk of evaluate(large, "pipe").stdout as ReadableStream<Uint8Array>)
      got += chunk.length;
  });
  if (got !== LOG_BYTES) throw new Error(`${got} bytes came`);
  figures.logMbPerS = LOG_BYTES / 1e3 / ms;
  figures.peakMb = memoryMb(daemon.pid, "VmHWM");
  await daemon.end();
} finally {
  await large.remove();
}

console.log(JSON.stringify(figures));
