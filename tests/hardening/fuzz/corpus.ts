/** Samples that inputs are made from: the fixtures and examples of the other tests. */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { FORMS } from "../../slurm/forms.ts";

const ROOT = resolve(import.meta.dir, "../../..");
const FIXTURES = join(ROOT, "tests/fixtures");

const text = (...path: string[]) => readFileSync(join(...path), "utf8");
const texts = (folder: string, end: string) =>
  readdirSync(folder)
    .filter((name) => name.endsWith(end))
    .sort()
    .map((name) => text(folder, name));

const EXAMPLES = join(ROOT, "examples");

export const SCRIPTS: readonly string[] = [
  ...texts(EXAMPLES, ".sbatch"),
  ...FORMS.slice(0, 120).map(
    ([words], at) =>
      `#!/bin/bash\n#SBATCH ${words}\n#NEURARCH model=Qwen/Qwen3-8B batch=${at}${at % 3 === 0 ? " lora-rank=16 hours=2" : ""}\ntrain\n`,
  ),
  "#!/bin/bash\n#SBATCH --gres=gpu:a10g:1\n#SBATCH hetjob\n#SBATCH --gres=gpu:h100:2 -N2\n#NEURARCH model=gpt2 seq-len=512\n",
];

/** Words of request options, `--gres=gpu:2`, as Slurm takes them. */
export const OPTION_WORDS: readonly string[] = FORMS.flatMap(([words]) => words.split(" "));

export const TASKS: readonly string[] = [
  ...texts(EXAMPLES, ".yaml"),
  ...text(FIXTURES, "skypilot/documents.txt")
    .split(/^=== .*\n/m)
    .filter((one) => one !== ""),
];

const parsed = (one: string): unknown => JSON.parse(one);

export const CONFIGS: readonly unknown[] = [
  ...Object.values(parsed(text(FIXTURES, "sizing/configs.json")) as object),
  ...Object.values(parsed(text(FIXTURES, "sizing/stack-configs.json")) as object),
];

/** The smaller ones: a graph of thousands of layers takes its time. */
export const GRAPHS: readonly unknown[] = texts(join(FIXTURES, "graphs"), ".neurarch.json")
  .filter((one) => one.length < 60_000)
  .map(parsed);

export const POLICIES: readonly string[] = [
  text(EXAMPLES, "neurarch.yml"),
  'version: 1\nwaivers:\n  - {rule: admission/request-does-not-fit, owner: ada, reason: "a, b", created: 2026-11-30, model: "Qwen/*"}\nrules: {admission/borderline-fit: off}\nbudget: {cards_allowed: [H100, "A100*"], max_params: 7B, max_cost_per_run_usd: 500}\n',
  "version: 1\nwaivers: &w\n  - rule: budget/params\n    owner: x\n    reason: |\n      of\n      lines\n    expires: 2026-12-24\n    path: 'jobs/**/[a-z]*.{yml,yaml}'\nmodels: *w\n",
];

export const SITE_FILE: string = text(EXAMPLES, "gate.toml");

export const SKY_OUTPUTS: readonly string[] = texts(join(FIXTURES, "bridge/sky"), ".txt");

/** Lines of the wire in either direction, without the arrows of the fixture. */
export const WIRE_LINES: readonly string[] = text(FIXTURES, "bridge/wire-lines.txt")
  .split("\n")
  .map((line) => line.slice(4))
  .filter((line) => line.startsWith("{"));

export const LEDGER_LINES: readonly string[] = text(FIXTURES, "ledger/ada@login1.jsonl")
  .split("\n")
  .filter((line) => line.startsWith("{"));
