import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "./run.ts";

/** One job, judged as a SkyPilot task and as a Slurm submit: the same figures, the same sentences. */

const MODELS = ["Qwen/Qwen3-0.6B", "Qwen/Qwen3-8B", "mistralai/Mistral-7B-v0.1", "google/gemma-2-2b"];
const BATCHES = ["1", "8", "64"];
const RECIPES: readonly Readonly<Record<string, string>>[] = [
  {},
  { "lora-rank": "16", "seq-len": "4096" },
  { checkpointing: "full", precision: "bf16", "seq-len": "512" },
  { hours: "40", attention: "flash", parallel: "ddp" },
];
/** SkyPilot's accelerator, nodes. */
const REQUESTS: readonly (readonly [string, number])[] = [
  ["A10G:1", 1],
  ["T4:4", 1],
  ["L4:1", 2],
  ["A100:1", 1],
  ["A100-80GB:2", 1],
  ["H100:8", 1],
  ["H100:8", 2],
  ["H200:1", 1],
];

interface Pair {
  readonly model: string;
  readonly batch: string;
  readonly recipe: Readonly<Record<string, string>>;
  readonly request: string;
  readonly nodes: number;
}

const PAIRS: readonly Pair[] = MODELS.flatMap((model) =>
  BATCHES.flatMap((batch) =>
    RECIPES.flatMap((recipe) =>
      REQUESTS.map(([request, nodes]) => ({ model, batch, recipe, request, nodes })),
    ),
  ),
);

/** Runs some of a list at a time. */
async function eachOf<T>(list: readonly T[], atOnce: number, work: (one: T, index: number) => Promise<void>) {
  let next = 0;
  const worker = async () => {
    while (next < list.length) {
      const index = next++;
      await work(list[index]!, index);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

interface Told {
  readonly decision: string;
  readonly messages: readonly string[];
  /** Need in GB with one decimal, as Slurm's comment has it. */
  readonly needGb: string;
}

let folder = "";
const told: { sky: Told; slurm: Told }[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "gate-schedulers-"));
  await eachOf(PAIRS, 2, async (pair, index) => {
    told[index] = { sky: await asTask(pair, index), slurm: await asSubmit(pair, index) };
  });
}, 240_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SITE = ["--max-cost-usd", "300"];

async function asTask({ model, batch, recipe, request, nodes }: Pair, index: number): Promise<Told> {
  const path = join(folder, `${index}.yaml`);
  const facts = { model, batch, ...recipe };
  const envs = Object.entries(facts).map(
    ([key, value]) => `  NEURARCH_${key.toUpperCase().replaceAll("-", "_")}: "${value}"\n`,
  );
  writeFileSync(
    path,
    `resources:\n  accelerators: ${request}\nnum_nodes: ${nodes}\nenvs:\n${envs.join("")}run: train\n`,
  );
  const { out } = await run(["judge", "--skypilot", path, "--json", ...SITE]);
  const { decision, messages, verdicts } = JSON.parse(out);
  return { decision, messages, needGb: verdicts[0].needGb.toFixed(1) };
}

async function asSubmit({ model, batch, recipe, request, nodes }: Pair, index: number): Promise<Told> {
  const path = join(folder, `${index}.sbatch`);
  const facts = Object.entries({ model, batch, ...recipe }).map(([key, value]) => `${key}=${value}`);
  writeFileSync(path, `#!/bin/bash\n#NEURARCH ${facts.join(" ")}\ntrain\n`);
  const words = ["slurm", "--script", path, "--gres", `gpu:${request}`, "--nodes", String(nodes)];
  const { out, exit } = await run([...words, "--mode", "reject", "--annotate", ...SITE]);
  expect(exit).toBe(0);
  const lines = out.split("\n");
  const valuesOf = (key: string) =>
    lines.filter((line) => line.startsWith(`${key}=`)).map((line) => line.slice(key.length + 1));
  const [decision = ""] = valuesOf("decision");
  const [comment = ""] = valuesOf("comment");
  return {
    decision: decision === "reject" ? "refuse" : decision,
    messages: valuesOf("message"),
    needGb: /need=([\d.]+)GB/.exec(comment)?.[1] ?? "",
  };
}

/** The places where request and batch are written: the only words in which the schedulers differ. */
function swapped(message: string): string {
  return message
    .replaceAll("`accelerators:`", "--gres")
    .replaceAll("`NEURARCH_BATCH`", "batch= in #NEURARCH");
}

test("the grid is large and holds every decision", () => {
  expect(PAIRS.length).toBeGreaterThanOrEqual(384);
  const decisions = new Set(told.map(({ sky }) => sky.decision));
  expect([...decisions].sort()).toEqual(["allow", "refuse", "warn"]);
});

describe("one job, one number", () => {
  PAIRS.forEach(({ model, batch, recipe, request, nodes }, index) => {
    const facts = Object.entries(recipe).map(([key, value]) => ` ${key}=${value}`);
    test(`${model} batch=${batch}${facts.join("")} on ${request} x ${nodes}`, () => {
      const { sky, slurm } = told[index]!;
      expect({ ...slurm }).toEqual({ ...sky, messages: sky.messages.map(swapped) });
    });
  });
});
