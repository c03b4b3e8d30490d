/**
 * Measures what the filter adds to a real `sbatch --test-only`, on a private cluster, against a filter that does nothing
 * and side by side with the published plugin (`PEER`, its `neurarch-slurm`, when that is there):
 *
 *   node_modules/.bin/bun tests/slurm/latency.ts [ROUNDS] [--into FILE]
 *
 * Rounds go through all cases, each time in another order, so that the caches one leaves and other work on the machine meets all of them alike, and what is added is
 * told by each case's fastest quarter of rounds, which that work disturbed least. Prints a table, or writes it between the marks in FILE; exits 1 when a
 * bar is not held.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Cluster, slurmVersion } from "./cluster.ts";

const EMPTY = ["setup_defaults", "pre_submit", "post_submit"]
  .map((hook) => `function slurm_cli_${hook}() return slurm.SUCCESS end\n`)
  .join("");
const ROOT = resolve(import.meta.dir, "../..");
const BINARY = join(ROOT, "dist/neurarch-gate");
const PEER = process.env.PEER ?? join(ROOT, ".cache/peer/bin/neurarch-slurm");
const [rounds = 40] = process.argv.slice(2).map(Number).filter(Number.isFinite);
const into = process.argv.includes("--into") ? process.argv[process.argv.indexOf("--into") + 1] : undefined;

interface Case {
  readonly name: string;
  readonly install: () => void;
  readonly script: string;
  /** Milliseconds over the empty filter that it may add. */
  readonly bar?: number;
  /** What its stderr must show, so that a fast case is not one in which nothing happened. */
  readonly shows?: RegExp;
}

const slurm = Cluster.start();
const script = (name: string, text: string) => {
  const path = join(slurm.home, name);
  writeFileSync(path, `#!/bin/bash\n${text}`, { mode: 0o755 });
  return path;
};
const gate = script("gate", "printf 'decision=allow\\nend\\n'\n");
const GPU = "#SBATCH --gres=gpu:a10g:1\n";
const MODEL = "#NEURARCH model=Qwen/Qwen3-8B batch=8 seq-len=2048\n";
const none = script("none.sh", MODEL);
const unnamed = script("unnamed.sh", GPU);
const judged = script("judged.sh", GPU + MODEL);
const ours = (binary: string) => () => slurm.install({ binary });
const cases: Case[] = [
  { name: "a filter that does nothing", install: () => slurm.installText(EMPTY), script: none },
  { name: "no GPU asked", install: ours(BINARY), script: none, bar: 3 },
  { name: "a GPU, no model named", install: ours(BINARY), script: unnamed },
  { name: "judged by a stand-in that answers at once", install: ours(gate), script: judged },
  {
    name: "judged: refused in warn mode",
    install: ours(BINARY),
    script: judged,
    bar: 40,
    shows: /Neurarch: .* needs /,
  },
];
if (existsSync(PEER)) {
  const answer = [1, 2].map((batch) => ({
    jobId: `b${batch}`,
    peakGb: 113.4 + 22.7 * batch,
    seqLen: 2048,
    params: 8190735360,
  }));
  const cli = script("instant-cli", `echo '${JSON.stringify({ jobs: answer })}'\n`);
  const theirs = Bun.spawnSync([PEER, "--print-lua"])
    .stdout.toString()
    .replace(/^ {2}helper = .*$/m, `  helper = "${PEER}",`)
    .replace(/^ {2}sizing = .*$/m, '  sizing = "cli",')
    .replace(/^ {2}cli = .*$/m, `  cli = "${cli}",`);
  const install = () => slurm.installText(theirs);
  cases.push(
    { name: "published plugin 0.1.0: no GPU asked", install, script: none },
    {
      name: "published plugin 0.1.0: judged, its sizing CLI answers at once",
      install,
      script: judged,
      shows: /needs /,
    },
  );
}

/** The numbers below `count` in any order. */
function shuffled(count: number): number[] {
  return Array.from({ length: count }, (_, index) => ({ index, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ index }) => index);
}

const times = cases.map((): number[] => []);
try {
  for (let round = -2; round < rounds; round++) {
    for (const index of shuffled(cases.length)) {
      const { name, install, script: path, shows } = cases[index]!;
      install();
      const { exit, ms, err } = slurm.run(["sbatch", "--test-only", path]);
      if (exit !== 0 || (shows !== undefined && !shows.test(err))) throw new Error(`${name}: ${exit} ${err}`);
      if (round >= 0) times[index]!.push(ms);
    }
  }
} finally {
  slurm.stop();
}

const rankOf = (values: readonly number[], part: number) =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length * part)] ?? 0;
let held = true;
const rows = cases.map(({ name, bar }, index) => {
  const added = rankOf(times[index]!, 0.25) - rankOf(times[0]!, 0.25);
  if (bar !== undefined && added > bar) held = false;
  const cells = [name, `${rankOf(times[index]!, 0.5).toFixed(1)} ms`];
  cells.push(index === 0 ? "" : `${added.toFixed(1)} ms`, bar === undefined ? "" : `at most ${bar} ms`);
  return `| ${cells.join(" | ")} |`;
});
const table = [
  `Slurm ${slurmVersion()}, ${navigator.hardwareConcurrency} cores, ${rounds} rounds, each in another order; "takes" is the median, "added" compares the fastest quarters with that of the filter that does nothing.`,
  "",
  "| submit | takes | added | bar |",
  "| --- | --- | --- | --- |",
  ...rows,
].join("\n");
console.log(table);
if (into !== undefined && rounds >= 20) {
  const text = readFileSync(into, "utf8");
  const marked = /(<!-- latency: begin -->\n)[\s\S]*?(\n<!-- latency: end -->)/;
  if (!marked.test(text)) throw new Error(`${into} has no place for the table`);
  writeFileSync(
    into,
    text.replace(marked, (_all, begin: string, end: string) => `${begin}\n${table}\n${end}`),
  );
}
// A few rounds only show that it runs.
if (!held && rounds >= 20) process.exitCode = 1;
