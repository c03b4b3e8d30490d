import { expect, test } from "bun:test";
import fc from "fast-check";
import { ATTENTIONS, type Recipe } from "../../src/facts/types.ts";
import { readStructure } from "../../src/model/read.ts";
import type { Structure } from "../../src/model/types.ts";
import { peakBytes } from "../../src/sizing/peak.ts";
import { DEFAULT_RECIPE } from "../../src/sizing/recipe.ts";
import { sizeStructure } from "../../src/sizing/size.ts";
import type { Sizing } from "../../src/sizing/types.ts";
import { summary, table } from "./errors.ts";
import { CATALOGUE, CONFIGS, located, type Row, readRows, recipeOf } from "./rows.ts";

type Json = Record<string, unknown>;

function configOf({ config, changes }: Row): Json {
  const base = CONFIGS[config] ?? CATALOGUE.find(({ id }) => id === config)?.config;
  if (base === undefined) throw new Error(`no config of ${config}`);
  return { ...base, ...changes };
}

function structureOf(config: Json): Structure {
  const read = readStructure(config);
  if (!read.ok) throw new Error(read.error.message);
  return read.value;
}

function sized(config: Json, recipe: Recipe, tokens: number): Sizing {
  const result = sizeStructure(located(structureOf(config), "m"), recipe, tokens);
  if (!result.ok) throw new Error(result.error.message);
  return result.value;
}

/** Whole models of the families that the older table has. */
const OLDER = new Set(["bloom", "deepseek_v2", "gpt_oss", "mixtral", "qwen3_moe"]);
const whole = readRows("peaks.jsonl").filter((row) => OLDER.has(String(CONFIGS[row.config]?.model_type)));

const ROWS = [...readRows("decoders.jsonl"), ...whole].map((row) => {
  const sizing = sized(configOf(row), recipeOf(row), row.seq);
  const errorPercent = (peakBytes(sizing, row.batch) / row.peak_bytes - 1) * 100;
  return { row, sizing, family: String(configOf(row).model_type), errorPercent };
});

test("every measured step of the decoders that are not dense ones within the bars", () => {
  console.log(`${table(ROWS, ({ family }) => family)}\n`);
  const all = summary(ROWS.map(({ errorPercent }) => errorPercent));
  console.log(all);
  expect(all.n).toBeGreaterThan(1700);
  expect(all.median).toBeLessThan(0.01);
  expect(all.p95).toBeLessThan(0.1);
  expect(all.under).toBeGreaterThan(-2);
  expect(all.over).toBeLessThan(3);
});

test("parameters and trained parameters are exact", () => {
  for (const { row, sizing } of ROWS) {
    const { params, trainableParams } = sizing;
    // A LoRA row counts its adapters among the parameters where they were there when it was counted.
    const measured =
      row.lora_rank === null || row.params === params ? row.params : row.params - row.trainable;
    expect([row.config, row.recipe, params, trainableParams]).toEqual([
      row.config,
      row.recipe,
      measured,
      row.trainable,
    ]);
  }
});

test("what was measured is not said to be assumed", () => {
  const said = ROWS.filter(({ row }) => row.attention !== "flash")
    .filter(({ sizing }) => sizing.assumed.length > 0)
    .map(({ row, sizing }) => `${row.config}: ${sizing.assumed.join("; ")}`);
  expect([...new Set(said)]).toEqual([]);
});

const recipes: fc.Arbitrary<Recipe> = fc
  .record({
    precision: fc.constantFrom("amp-bf16", "bf16", "fp32"),
    attention: fc.constantFrom(...ATTENTIONS),
    checkpointing: fc.constantFrom("none", "full"),
    loraRank: fc.option(fc.constantFrom(4, 16), { nil: null }),
    loraTargets: fc.constantFrom("attention", "all-linear"),
    paddingMask: fc.boolean(),
  })
  .map((part) => ({ ...DEFAULT_RECIPE, ...part }) as Recipe);
const models = fc.constantFrom(...new Map(ROWS.map(({ row }) => [row.config, configOf(row)])).values());

test("one more sample and a longer sequence never need less", () => {
  fc.assert(
    fc.property(
      models,
      recipes,
      fc.integer({ min: 1, max: 60 }),
      fc.integer({ min: 1, max: 16 }),
      (m, drawn, t, s) => {
        // Mamba has no attention that LoRA could adapt.
        const r: Recipe = m.model_type === "mamba" ? { ...drawn, loraTargets: "all-linear" } : drawn;
        const sizing = sized(m, r, 64 * t);
        expect(peakBytes(sizing, s + 1)).toBeGreaterThanOrEqual(peakBytes(sizing, s));
        expect(peakBytes(sized(m, r, 64 * (t + 1)), s)).toBeGreaterThanOrEqual(peakBytes(sizing, s));
      },
    ),
    { numRuns: 60 },
  );
});

test("experts that no token is sent to weigh all the same, and more experts a token need more", () => {
  const config = configOf(ROWS.find(({ family }) => family === "mixtral")!.row);
  const state = (changes: Json) => sized({ ...config, ...changes }, DEFAULT_RECIPE, 512);
  const [two, four] = [state({ num_experts_per_tok: 2 }), state({ num_experts_per_tok: 4 })];
  expect(four.stateBytes).toBe(two.stateBytes);
  expect(peakBytes(four, 16)).toBeGreaterThan(peakBytes(two, 16));
  expect(four.activeParams!).toBeGreaterThan(two.activeParams!);
});

test("LoRA on all linear layers merges a copy of every expert's weights", () => {
  const config = configOf(ROWS.find(({ family }) => family === "mixtral")!.row);
  const lora = (loraTargets: Recipe["loraTargets"]) =>
    peakBytes(sized(config, { ...DEFAULT_RECIPE, loraRank: 16, loraTargets }, 512), 1);
  const experts = 3 * 8 * 3 * 6144 * 16384 * 2;
  expect((lora("all-linear") - lora("attention")) / experts).toBeGreaterThan(1);
});

test("a usual decoder is sized without the programs of the others", () => {
  const program = `
    const { readStructure } = await import("${import.meta.dir}/../../src/model/read.ts");
    const { sizeStructure } = await import("${import.meta.dir}/../../src/sizing/size.ts");
    const { DEFAULT_RECIPE } = await import("${import.meta.dir}/../../src/sizing/recipe.ts");
    for (const config of ${JSON.stringify([CONFIGS["meta-llama/Llama-3.2-1B"], configOf(ROWS[0]!.row)])}) {
      const { value } = readStructure(config);
      sizeStructure({ structure: value, model: "m", source: "path", revision: null, from: "" }, DEFAULT_RECIPE, 512);
      console.log(Object.keys(require.cache).some((path) => path.endsWith("programs/rare.ts")));
    }`;
  const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", program]);
  expect([stdout.toString(), stderr.toString()]).toEqual(["false\ntrue\n", ""]);
});
