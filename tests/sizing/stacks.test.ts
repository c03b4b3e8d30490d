import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import type { Recipe } from "../../src/facts/types.ts";
import { readStructure } from "../../src/model/read.ts";
import type { Structure } from "../../src/model/types.ts";
import { lineAt, peakBytes } from "../../src/sizing/peak.ts";
import { DEFAULT_RECIPE, planOf } from "../../src/sizing/recipe.ts";
import { sizeStructure } from "../../src/sizing/size.ts";
import { stackStep } from "../../src/sizing/stacks/step.ts";
import type { Sizing } from "../../src/sizing/types.ts";
import { summary, table } from "./errors.ts";
import { CATALOGUE, CONFIGS, located, type Row, readRows, recipeOf } from "./rows.ts";

type Json = Record<string, unknown>;

/** Configs of families that the catalogue lacks. */
const OWN: Readonly<Record<string, Json>> = JSON.parse(
  readFileSync(`${import.meta.dir}/../fixtures/sizing/stack-configs.json`, "utf8"),
);

/** A row of `stacks.jsonl`: `untied` says that T5's head was made one of its own, as its checkpoints have it. */
type StackRow = Row & { readonly untied?: boolean };

function configOf({ config, changes }: StackRow): Json {
  const base = OWN[config] ?? CATALOGUE.find(({ id }) => id === config)?.config ?? CONFIGS[config]!;
  const changed = structuredClone(base) as Json;
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

function sized(config: Json, part: Partial<Recipe> | Recipe, tokens: number): Sizing {
  const result = sizeStructure(located(structureOf(config), "m"), { ...DEFAULT_RECIPE, ...part }, tokens);
  if (!result.ok) throw new Error(result.error.message);
  return result.value;
}

interface Judged {
  readonly row: StackRow;
  readonly family: string;
  readonly errorPercent: number;
  readonly sizing: Sizing;
}

const judged: Judged[] = [];
for (const row of [...readRows("stacks.jsonl"), ...readRows("peaks.jsonl")] as StackRow[]) {
  const config = configOf(row);
  const structure = structureOf(config);
  if (structure.stacks === undefined) continue;
  const sizing = sized(config, recipeOf(row), row.seq);
  const errorPercent = (peakBytes(sizing, row.batch) / row.peak_bytes - 1) * 100;
  judged.push({ row, family: structure.family, errorPercent, sizing });
}

const FAMILIES = [
  "albert",
  "bart",
  "bert",
  "clip",
  "deberta-v2",
  "dinov2",
  "dinov2_with_registers",
  "distilbert",
  "electra",
  "mbart",
  "modernbert",
  "mpnet",
  "mt5",
  "roberta",
  "siglip",
  "t5",
  "vit",
  "whisper",
  "xlm-roberta",
];

describe("every measured step", () => {
  test("of each family within the bars", () => {
    for (const family of FAMILIES) {
      const { n, median, p95, under } = summary(
        judged.filter((one) => one.family === family).map(({ errorPercent }) => errorPercent),
      );
      expect([family, n >= 20, median < 0.1, p95 < 2, under > -3]).toEqual([family, true, true, true, true]);
    }
    console.log(table(judged, ({ family }) => family));
  });
  test("taken together", () => {
    const all = summary(judged.map(({ errorPercent }) => errorPercent));
    console.log(all);
    expect(all.n).toBeGreaterThan(1200);
    expect(all.median).toBeLessThan(0.01);
    expect(all.p95).toBeLessThan(0.5);
    expect(all.under).toBeGreaterThan(-3);
    expect(all.over).toBeLessThan(6);
  });
  test("of T5's eager attention beside a cache of keys and values within 0.05 %", () => {
    const eager = judged.filter(
      ({ row, family }) => /t5$/.test(family) && row.attention === "eager" && !row.checkpointing,
    );
    expect(eager.length).toBeGreaterThan(30);
    expect(summary(eager.map(({ errorPercent }) => errorPercent))).toMatchObject({
      under: expect.closeTo(0, 1),
      over: expect.closeTo(0, 1),
    });
  });
  test("assumes nothing", () => {
    const said = judged.filter(({ sizing }) => sizing.assumed.length > 0);
    expect(said.map(({ row, sizing }) => [row.config, sizing.assumed])).toEqual([]);
  });
  test("has exactly the measured parameters and trained parameters", () => {
    for (const { row, sizing } of judged) {
      expect([row.config, row.changes, sizing.params, sizing.trainableParams]).toEqual([
        row.config,
        row.changes,
        row.params,
        row.trainable,
      ]);
    }
  });
});

describe("parameters", () => {
  const perturbed = readFileSync(`${import.meta.dir}/../fixtures/model/perturbed.jsonl`, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line): { config: Json } => JSON.parse(line));
  test("the modules of a step are all of the model's, but for heads that are never trained so", () => {
    let compared = 0;
    for (const { config } of [...CATALOGUE, ...perturbed]) {
      const structure = structureOf(config);
      if (structure.stacks === undefined) continue;
      const name = String((config.architectures as string[] | undefined)?.[0]);
      if (/^Albert.*PreTraining$|^Bart.*Classification$/.test(name)) continue;
      compared += 1;
      const step = stackStep(structure.stacks, planOf(DEFAULT_RECIPE), 64, null);
      expect([name, step.params]).toEqual([name, structure.params]);
    }
    expect(compared).toBeGreaterThan(100);
  });
});

describe("what is said", () => {
  const bert = CATALOGUE.find(({ id }) => id === "google-bert/bert-base-uncased")!.config;
  const of = (id: string) => CATALOGUE.find((row) => row.id === id)!.config;
  const cases: readonly (readonly [string, Json, Partial<Recipe>, number, RegExp])[] = [
    ["an image has no length", of("google/vit-base-patch16-224"), {}, 2048, /one image.*not used/],
    ["a text beyond learned positions", bert, {}, 1024, /512 learned positions; 1024 tokens do not run/],
    ["two positions are kept for padding", of("FacebookAI/roberta-base"), {}, 513, /512 learned positions/],
    ["a decoder that takes less", of("openai/whisper-tiny"), {}, 2048, /448 of 2048 tokens/],
    ["no kernel", of("microsoft/deberta-v3-base"), {}, 512, /sized with eager/],
    ["no flash", of("google-t5/t5-small"), { attention: "flash" }, 512, /sized with sdpa/],
    ["flash in fp32", bert, { attention: "flash", precision: "fp32" }, 512, /16-bit operands only/],
    [
      "no checkpointing",
      of("albert/albert-base-v2"),
      { checkpointing: "full" },
      512,
      /refuses to checkpoint/,
    ],
    ["no head", of("sentence-transformers/all-MiniLM-L6-v2"), {}, 512, /without a head/],
  ];
  for (const [name, config, part, tokens, words] of cases)
    test(name, () => expect(sized(config, part, tokens).notes.join(" ")).toMatch(words));
  test("the length does not change an image's peak, and a decoder's only up to its positions", () => {
    const peak = (id: string, tokens: number) => peakBytes(sized(of(id), {}, tokens), 8);
    expect(peak("google/vit-base-patch16-224", 128)).toBe(peak("google/vit-base-patch16-224", 4096));
    expect(peak("openai/whisper-tiny", 448)).toBe(peak("openai/whisper-tiny", 4096));
    expect(peak("openai/whisper-tiny", 447)).toBeLessThan(peak("openai/whisper-tiny", 448));
  });
});

describe("what is told of a step", () => {
  test("layers that share weights have one gradient and one state", () => {
    const config = (layers: number) => ({
      ...OWN,
      ...CATALOGUE.find(({ id }) => id === "albert/albert-base-v2")!.config,
      num_hidden_layers: layers,
    });
    const [few, many] = [sized(config(4), {}, 128), sized(config(24), {}, 128)];
    expect(few.stateBytes).toBe(many.stateBytes);
    expect(peakBytes(many, 8)).toBeGreaterThan(peakBytes(few, 8));
  });
  test("terms add up to their moment, and each has a formula", () => {
    for (const id of [
      "google-t5/t5-small",
      "openai/whisper-tiny",
      "microsoft/deberta-v3-base",
      "openai/clip-vit-base-patch32",
    ]) {
      const { moments } = sized(CATALOGUE.find((row) => row.id === id)!.config, {}, 64);
      for (const moment of moments) {
        const sum = (key: "fixedBytes" | "perSampleBytes") =>
          moment.terms.reduce((total, term) => total + term[key], 0);
        expect(Math.abs(sum("fixedBytes") - moment.fixedBytes)).toBeLessThan(2);
        expect(Math.abs(sum("perSampleBytes") - moment.perSampleBytes)).toBeLessThan(2);
        for (const term of moment.terms) expect(term.formula).toMatch(/[a-z]/);
      }
    }
  });
  test("more samples, tokens and layers never need less", () => {
    const base = CATALOGUE.find(({ id }) => id === "google-t5/t5-small")!.config;
    for (const part of [{}, { precision: "bf16" }, { loraRank: 8 }, { checkpointing: "full" }] as const) {
      let before = 0;
      for (const step of [1, 2, 3, 5, 6, 9]) {
        const config = { ...base, num_layers: step, num_decoder_layers: step };
        const peak = peakBytes(sized(config, part, 64 * step), step);
        expect(peak).toBeGreaterThan(before);
        before = peak;
      }
    }
  });
});

test("fixtures hold no row twice", () => {
  const rows = readRows("stacks.jsonl").map((row) => JSON.stringify({ ...row, peak_bytes: 0 }));
  expect(new Set(rows).size).toBe(rows.length);
  expect(existsSync(`${import.meta.dir}/measure_stacks.py`)).toBe(true);
});

test("a moment is in force at every batch", () => {
  for (const { sizing } of judged.slice(0, 200))
    for (const samples of [1, 7, 64]) expect(lineAt(sizing, samples).name).toMatch(/^[a-z-]+(?:-\d)?$/);
});
