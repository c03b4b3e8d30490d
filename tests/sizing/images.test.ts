import { expect, test } from "bun:test";
import fc from "fast-check";
import { ATTENTIONS, type Recipe } from "../../src/facts/types.ts";
import { readStructure } from "../../src/model/read.ts";
import { fitTower } from "../../src/model/tower-fit.ts";
import type { Structure } from "../../src/model/types.ts";
import { Envelope } from "../../src/sizing/envelope.ts";
import { Holdings } from "../../src/sizing/holdings.ts";
import { peakBytes } from "../../src/sizing/peak.ts";
import { DEFAULT_RECIPE, planOf } from "../../src/sizing/recipe.ts";
import { sizeStructure } from "../../src/sizing/size.ts";
import { builtTower, towerOps } from "../../src/sizing/towers/tower.ts";
import type { Sizing } from "../../src/sizing/types.ts";
import { summary, table } from "./errors.ts";
import { CATALOGUE, located, type Row, readRows, recipeOf } from "./rows.ts";

type Json = Record<string, unknown>;

function catalogued(id: string): Json {
  const config = CATALOGUE.find((row) => row.id === id)?.config;
  if (config === undefined) throw new Error(`no config of ${id}`);
  return config;
}

/** The named config with the row's changes, whose keys may be dotted. */
function configOf({ config, changes }: Pick<Row, "config" | "changes">): Json {
  const changed = structuredClone(catalogued(config));
  for (const [key, value] of Object.entries(changes ?? {})) {
    const path = key.split(".");
    let at = changed;
    for (const name of path.slice(0, -1)) {
      at[name] ??= {};
      at = at[name] as Json;
    }
    at[path.at(-1)!] = value;
  }
  return changed;
}

function structureOf(config: Json): Structure {
  const read = readStructure(config);
  if (!read.ok) throw new Error(read.error.message);
  return read.value;
}

function sized(config: Json, recipe: Partial<Recipe>, tokens: number): Sizing {
  const result = sizeStructure(located(structureOf(config), "m"), { ...DEFAULT_RECIPE, ...recipe }, tokens);
  if (!result.ok) throw new Error(result.error.message);
  return result.value;
}

const ROWS = readRows("images.jsonl").map((row) => {
  const config = configOf(row);
  const sizing = sized(config, recipeOf(row), row.seq);
  const errorPercent = (peakBytes(sizing, row.batch) / row.peak_bytes - 1) * 100;
  return { row, sizing, family: String(config.model_type), errorPercent };
});

const FAMILIES = [
  "gemma3",
  "idefics3",
  "llama4",
  "llava",
  "llava_next",
  "paligemma",
  "qwen2_5_vl",
  "qwen2_vl",
  "qwen3_5",
  "qwen3_5_moe",
  "qwen3_vl",
  "qwen3_vl_moe",
  "smolvlm",
];

test("every measured step of models with a tower of images within the bars", () => {
  console.log(`${table(ROWS, ({ family }) => family)}\n`);
  expect([...new Set(ROWS.map(({ family }) => family))].sort()).toEqual(FAMILIES);
  for (const family of FAMILIES) {
    const one = summary(ROWS.filter((row) => row.family === family).map(({ errorPercent }) => errorPercent));
    const said = [family, one.median < 0.2, one.p95 < 1.5, one.under > -2, one.over < 3];
    expect(said).toEqual([family, true, true, true, true]);
  }
  const all = summary(ROWS.map(({ errorPercent }) => errorPercent));
  console.log(all);
  expect(all.n).toBeGreaterThan(250);
  expect(all.median).toBeLessThan(0.01);
  expect(all.p95).toBeLessThan(0.3);
});

test("parameters and trained parameters are exact, and nothing is assumed", () => {
  for (const { row, sizing } of ROWS)
    expect([row.config, row.recipe, sizing.params, sizing.trainableParams, sizing.assumed]).toEqual([
      row.config,
      row.recipe,
      row.params,
      row.trainable,
      [],
    ]);
});

/** Catalogue rows with a walked tower. */
const TOWERS = CATALOGUE.flatMap(({ id, config }) => {
  const structure = structureOf(config);
  return structure.tower === undefined ? [] : [{ id, config, structure, tower: structure.tower }];
});

test("the modules of a tower are all that stands beside the decoder, but for norms that nothing is taken of", () => {
  expect(TOWERS.length).toBeGreaterThan(25);
  const plan = planOf(DEFAULT_RECIPE);
  for (const { id, structure, tower } of TOWERS) {
    const ops = towerOps(new Envelope(), 4096, false, false);
    const context = {
      ops,
      shape: structure.decoder!,
      weightWidth: plan.weightWidth,
      trainBase: true,
      quantiser: null,
      attention: null,
      feedForward: null,
    };
    const { params } = builtTower(context, fitTower(tower, 4096)!, plan, new Holdings(ops, plan));
    // CLIP's last norm is of the class token, which the decoder never sees.
    const clip = tower.projector.kind === "perceptron";
    expect([id, params]).toEqual([id, structure.paramsOutside - (clip ? 2 * tower.stack.block.hidden : 0)]);
  }
});

test("what is said of the image", () => {
  const cases: readonly (readonly [string, Json, number, RegExp])[] = [
    [
      "its size and tokens",
      catalogued("google/gemma-3-12b-pt"),
      2048,
      /one image of 896 x 896 pixels: 256 of its 2048/,
    ],
    ["any size", catalogued("Qwen/Qwen2.5-VL-7B-Instruct"), 2048, /672 x 672 pixels: 576 of its 2048 tokens/],
    [
      "any size, cut to the sample",
      catalogued("Qwen/Qwen2.5-VL-7B-Instruct"),
      100,
      /: 100 of its 100 tokens/,
    ],
    [
      "no room",
      catalogued("llava-hf/llava-1.5-7b-hf"),
      512,
      /no room for an image of 576; it is sized as text alone/,
    ],
  ];
  for (const [name, config, tokens, words] of cases)
    expect([name, sized(config, {}, tokens).notes.join(" ")]).toEqual([name, expect.stringMatching(words)]);
});

test("flash attention that would drop the image's mask is not sized as such", () => {
  const config = catalogued("google/gemma-3-12b-pt");
  expect(sized(config, { attention: "flash" }, 2048).recipe.attention).toBe("sdpa");
  expect(sized(catalogued("Qwen/Qwen3-VL-8B-Instruct"), { attention: "flash" }, 2048).recipe.attention).toBe(
    "flash",
  );
});

test("a tower that was never measured is said to be assumed", () => {
  const changed = (changes: Json) =>
    structureOf(configOf({ config: "llava-hf/llava-1.5-7b-hf", changes })).assumed;
  expect(changed({})).toEqual([]);
  for (const changes of [
    { "vision_config.model_type": "pixtral" },
    { "vision_config.hidden_act": "mish" },
    { vision_feature_layer: 0 },
  ])
    expect([changes, changed(changes).length]).toEqual([changes, 1]);
});

test("an image needs memory, a larger one more", () => {
  const config = catalogued("google/gemma-3-12b-pt");
  const peak = (changes: Json) =>
    peakBytes(sized(configOf({ config: "google/gemma-3-12b-pt", changes }), {}, 2048), 4);
  const text = sized({ ...(config.text_config as Json), architectures: ["Gemma3ForCausalLM"] }, {}, 2048);
  expect(peak({ "vision_config.image_size": 448 })).toBeGreaterThan(peakBytes(text, 4));
  expect(peak({})).toBeGreaterThan(peak({ "vision_config.image_size": 448 }));
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
      (m, r, t, s) => {
        const sizing = sized(m, r, 64 * t);
        expect(peakBytes(sizing, s + 1)).toBeGreaterThanOrEqual(peakBytes(sizing, s));
        expect(peakBytes(sized(m, r, 64 * (t + 1)), s)).toBeGreaterThanOrEqual(peakBytes(sizing, s));
      },
    ),
    { numRuns: 60 },
  );
});
