/**
 * Measures what the filter adds to a real `sbatch --test-only`, against a filter that does nothing, on a private
 * cluster: `node_modules/.bin/bun tests/slurm/latency.ts [ROUNDS]`. Rounds go through all cases in turn, so that
 * other work on the machine meets all of them alike. Prints medians in milliseconds, also against the bars.
 */
import { existsSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Cluster } from "./cluster.ts";
import { StandIn } from "./standin.ts";

const EMPTY = ["setup_defaults", "pre_submit", "post_submit"]
  .map((hook) => `function slurm_cli_${hook}() return slurm.SUCCESS end\n`)
  .join("");
const BINARY = resolve(import.meta.dir, "../../dist/neurarch-gate");
const rounds = Number(process.argv[2] ?? 40);

const slurm = Cluster.start();
try {
  const gate = new StandIn(join(slurm.home, "gate"), "printf 'decision=allow\\nend\\n'");
  writeFileSync(gate.path, "#!/bin/sh\nprintf 'decision=allow\\nend\\n'\n");
  const header = "#!/bin/bash\n";
  const gpu = "#SBATCH --gres=gpu:h100:1\n";
  const model = "#NEURARCH model=Qwen/Qwen3-0.6B batch=1 seq-len=512\n";
  const script = (name: string, text: string) => {
    const path = join(slurm.home, name);
    writeFileSync(path, text);
    return path;
  };
  const none = script("none.sh", header + model);
  const unnamed = script("unnamed.sh", header + gpu);
  const judged = script("judged.sh", header + gpu + model);
  const ours = (binary: string) => () => slurm.install({ binary });
  const empty = () => slurm.installText(EMPTY);
  const cases: readonly (readonly [string, () => void, string, number | null])[] = [
    ["empty filter", empty, none, null],
    ["ours, no GPU asked", ours(gate.path), none, 3],
    ["ours, no model named", ours(gate.path), unnamed, null],
    ["ours, judged by an instant stand-in", ours(gate.path), judged, 40],
    ...(existsSync(BINARY) ? ([["ours, judged by neurarch-gate", ours(BINARY), judged, 40]] as const) : []),
  ];
  const times = cases.map((): number[] => []);
  for (let round = -3; round < rounds; round++) {
    cases.forEach(([name, install, path], index) => {
      install();
      const { exit, ms, err } = slurm.run(["sbatch", "--test-only", path]);
      if (exit !== 0) throw new Error(`${name}: ${err}`);
      if (round >= 0) times[index]?.push(ms);
    });
  }
  const median = (values: readonly number[] = []) =>
    [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;
  const base = median(times[0]);
  cases.forEach(([name, , , bar], index) => {
    const value = median(times[index]);
    const over = `+${(value - base).toFixed(1)}`;
    console.log(
      `${name.padEnd(38)} ${value.toFixed(1).padStart(6)} ms ${index === 0 ? "" : over}${bar === null ? "" : ` (bar +${bar})`}`,
    );
  });
} finally {
  slurm.stop();
}
