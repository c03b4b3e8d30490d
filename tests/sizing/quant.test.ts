import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Recipe } from "../../src/facts/types.ts";
import { readStructure } from "../../src/model/read.ts";
import { leastBytes } from "../../src/sizing/least.ts";
import { peakBytes } from "../../src/sizing/peak.ts";
import { DEFAULT_RECIPE } from "../../src/sizing/recipe.ts";
import { sizeStructure } from "../../src/sizing/size.ts";
import type { Sizing } from "../../src/sizing/types.ts";
import { rowsOf } from "./accuracy-rows.ts";
import { summary, table } from "./errors.ts";
import { CATALOGUE, CONFIGS, configOf, located, type Row, readRows, recipeOf, structureOf } from "./rows.ts";

/** Quantised bases and 8-bit optimizer states: `quant.jsonl`, made by `tests/oracle/rows.py quant`. */
interface QuantRow extends Row {
  readonly weights: number;
  readonly optim: number;
  readonly grad_accum: number;
}

describe("every measured step", () => {
  const rows = rowsOf(["quant.jsonl"]);
  test("was of many families, both ways of quantising, and 8-bit states", () => {
    expect(rows.length).toBeGreaterThan(500);
    const families = (part: string) =>
      new Set(rows.filter(({ recipe }) => recipe.includes(part)).map(({ family }) => family)).size;
    expect([families("nf4") >= 9, families("int8") >= 9, families("adamw-8bit") >= 5]).toEqual([
      true,
      true,
      true,
    ]);
  });
  test("is sized 0.1 % under at most, and in the median within 0.005 %", () => {
    const errors = rows.map(({ family, recipe, error }) => ({
      family,
      recipe,
      errorPercent: error === null ? Number.NaN : error * 100,
    }));
    console.log(table(errors, ({ recipe }) => recipe));
    const all = summary(errors.map(({ errorPercent }) => errorPercent));
    console.log(all);
    expect(all.median).toBeLessThan(0.005);
    // The backward of adapters on experts is counted a little high, whatever the optimizer.
    const far = rows.filter(({ error }) => error === null || error < -0.001 || error > 0.006);
    expect(far.map(({ what, recipe, error }) => [what, recipe, error])).toEqual([]);
  });
  test("has nothing assumed", () => {
    expect(rows.filter(({ assumed }) => assumed)).toEqual([]);
  });
});

describe("every measured step of the other families", () => {
  const rows = rowsOf(["quant-families.jsonl", "quant-stacks.jsonl"]);
  test("is what a family without the sentence was sized by", () => {
    const measured = new Set<string>();
    for (const { family, recipe } of [...rowsOf(["quant.jsonl"]), ...rows])
      if (/nf4|int8/.test(recipe)) measured.add(family);
    const never = "A quantised base of this family was never measured";
    const wrong = new Set<string>();
    for (const { config } of CATALOGUE) {
      const structure = readStructure(config);
      if (!structure.ok) continue;
      const sizing = sizeStructure(located(structure.value, "m"), { ...DEFAULT_RECIPE, ...int8 }, 128);
      if (!sizing.ok) continue;
      const said = sizing.value.assumed.some((text) => text.startsWith(never));
      // Images were measured too, with errors of some percent: it stays said of them.
      if (!said && !measured.has(structure.value.family)) wrong.add(structure.value.family);
    }
    expect([...wrong]).toEqual([]);
  });
  test("is within the bars", () => {
    const known = rows.filter(({ assumed }) => !assumed);
    const errors = known.map(({ family, error }) => ({
      family,
      errorPercent: error === null ? Number.NaN : error * 100,
    }));
    console.log(table(errors, ({ family }) => family));
    const all = summary(errors.map(({ errorPercent }) => errorPercent));
    console.log(all);
    expect(new Set(known.map(({ family }) => family)).size).toBeGreaterThan(35);
    expect(all.median).toBeLessThan(0.01);
    expect(all.p95).toBeLessThan(0.5);
    expect(all.under).toBeGreaterThan(-3);
    // T5's biases of positions, where one encoder layer holds them for itself: no whole model has so few.
    expect(all.over).toBeLessThan(4);
  });
});

function sized(config: Record<string, unknown>, recipe: Recipe, tokens: number): Sizing {
  const structure = readStructure(config);
  if (!structure.ok) throw new Error(structure.error.message);
  const sizing = sizeStructure(located(structure.value, "m"), recipe, tokens);
  if (!sizing.ok) throw new Error(sizing.error.message);
  return sizing.value;
}

test("weights with their scales and the optimizer's state are the measured ones", () => {
  for (const row of readRows("quant.jsonl") as QuantRow[]) {
    const { terms } = sized(configOf(row), recipeOf(row), row.seq).moments[0]!;
    const of = (kind: string) => terms.find(({ name }) => name === kind)?.fixedBytes ?? 0;
    const scaler = row.recipe.endsWith("fp16") ? 1024 : 0;
    // Beside the weights the measurer counts buffers, and biases as they were before the first step.
    const off = [of("weights") / row.weights - 1, (of("optimizer") - scaler) / row.optim - 1];
    expect([row.config, row.recipe, off.map((share) => Math.abs(share) < 0.001)]).toEqual([
      row.config,
      row.recipe,
      [true, true],
    ]);
  }
});

const models = fc.record({
  layers: fc.integer({ min: 2, max: 40 }),
  heads: fc.constantFrom(8, 16, 32),
  vocab: fc.integer({ min: 1000, max: 150_000 }),
  tied: fc.boolean(),
});

function configFor({ layers, heads, vocab, tied }: ReturnType<typeof models.generate>["value"]) {
  const hidden = heads * 128;
  return {
    model_type: "llama",
    vocab_size: vocab,
    hidden_size: hidden,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: heads / 4,
    intermediate_size: 3 * hidden,
    tie_word_embeddings: tied,
    max_position_embeddings: 8192,
  };
}

const qlora: Partial<Recipe> = { quant: "nf4", loraRank: 16 };
const int8: Partial<Recipe> = { quant: "int8", loraRank: 16 };
const lora: Partial<Recipe> = { loraRank: 16 };
const samples = fc.integer({ min: 1, max: 32 });
const tokens: fc.Arbitrary<number> = fc.constantFrom(64, 256, 1024, 2048);

describe("the same job", () => {
  const ladder = (...recipes: readonly Partial<Recipe>[]) => recipes;
  /** Every job needs less than the next in `recipes`, by what `of` takes of its sizing. */
  function rising(
    name: string,
    recipes: readonly Partial<Recipe>[],
    of: (sizing: Sizing, samples: number) => number,
    lengths = tokens,
    where: (config: ReturnType<typeof configFor>) => boolean = () => true,
  ): void {
    test(name, () => {
      fc.assert(
        fc.property(models, lengths, samples, fc.constantFrom("none", "full"), (m, t, s, checkpointing) => {
          const config = configFor(m);
          fc.pre(where(config));
          const needs = recipes.map((part) =>
            of(sized(config, { ...DEFAULT_RECIPE, checkpointing, ...part }, t), s),
          );
          for (let i = 1; i < needs.length; i++) expect(needs[i - 1]!).toBeLessThan(needs[i]!);
        }),
        { numRuns: 80 },
      );
    });
  }
  // What stays whole is raised to fp32: tables that weigh more than the layers would win nothing.
  const deep = ({ num_hidden_layers: n, hidden_size: h, vocab_size: v }: ReturnType<typeof configFor>) =>
    n * h * 11 > 8 * v;
  const half = (part: Partial<Recipe>) => ({ ...part, precision: "bf16" as const });

  rising(
    "has less state with nf4 than with int8, LoRA, bf16 and amp",
    ladder(qlora, int8, lora, half({}), {}),
    ({ stateBytes }) => stateBytes,
    tokens,
    deep,
  );
  rising(
    "of one short sample needs less with nf4 than with int8, LoRA, bf16 and amp",
    ladder(qlora, int8, lora, half({}), {}),
    (sizing) => peakBytes(sizing, 1),
    fc.constantFrom(64, 128),
    (config) => deep(config) && config.num_hidden_layers > 8,
  );
  rising(
    "in 16 bits throughout needs less with nf4 than with LoRA, bf16 and amp, at every batch",
    ladder(half(qlora), half(lora), half({}), {}),
    peakBytes,
    tokens,
    ({ num_hidden_layers: n }) => n > 4,
  );
  rising(
    "needs less with LoRA than with bf16 and amp, at every batch",
    ladder(lora, half({}), {}),
    peakBytes,
  );
  // peft's preparation of a quantised base turns checkpointing on unless it is told not to; nothing else does.
  for (const quant of ["nf4", "int8"] as const) {
    rising(
      `as peft prepares it needs less with ${quant} than with LoRA, bf16 and amp without checkpointing, at every batch`,
      ladder(
        { quant, loraRank: 16, checkpointing: "full" },
        { ...lora, checkpointing: "none" },
        half({ checkpointing: "none" }),
        { checkpointing: "none" },
      ),
      peakBytes,
      tokens,
      // A layer is run again as a whole: of a few layers that is most of them.
      (config) => deep(config) && config.num_hidden_layers > 8,
    );
  }
  test("without checkpointing nf4 needs more than LoRA once activations outweigh the base", () => {
    const config = configFor({ layers: 32, heads: 32, vocab: 128_256, tied: false });
    const need = (part: Partial<Recipe>, count: number) =>
      peakBytes(sized(config, { ...DEFAULT_RECIPE, ...part }, 1024), count);
    expect(need(qlora, 1)).toBeLessThan(need(lora, 1));
    expect(need(qlora, 32)).toBeGreaterThan(need(lora, 32));
  });
  rising(
    "has less state with adamw-8bit than with adamw, and less still in bf16",
    ladder(half({ optimizer: "adamw-8bit" }), { optimizer: "adamw-8bit" }, {}),
    ({ stateBytes }) => stateBytes,
  );
});

test("the quick lower bound is one", () => {
  const recipes: fc.Arbitrary<Recipe> = fc
    .record({
      precision: fc.constantFrom("amp-bf16", "bf16", "amp-fp16", "fp32"),
      optimizer: fc.constantFrom("adamw", "adamw-8bit"),
      quant: fc.constantFrom("none", "nf4", "int8"),
      checkpointing: fc.constantFrom("none", "full"),
      loraRank: fc.constantFrom(null, 1, 16),
    })
    .map(
      (part) =>
        ({ ...DEFAULT_RECIPE, ...part, loraRank: part.quant === "none" ? part.loraRank : 16 }) as Recipe,
    );
  fc.assert(
    fc.property(models, recipes, tokens, samples, (m, recipe, seqLen, count) => {
      const sizing = sized(configFor(m), recipe, seqLen);
      const least = leastBytes({
        params: sizing.params!,
        vocab: m.vocab,
        handedOn: 0,
        recipe,
        samples: count,
        seqLen,
      });
      expect(least).toBeLessThanOrEqual(peakBytes(sizing, count));
    }),
    { numRuns: 200 },
  );
});

describe("what a quantised base means", () => {
  const model = "meta-llama/Llama-3.2-1B";
  test("without LoRA it is not sized, and the message says what is missing", () => {
    for (const quant of ["nf4", "int8"] as const) {
      const sizing = sizeStructure(
        located(structureOf(CONFIGS[model]!), model),
        { ...DEFAULT_RECIPE, quant },
        1024,
      );
      expect(sizing).toEqual({
        ok: false,
        error: {
          reason: "recipe-not-sized",
          message: `quant=${quant} freezes the weights: without lora-rank nothing is left to train, and transformers refuses the run.`,
        },
      });
    }
  });
  test("its terms tell quantised layers from what stays whole", () => {
    const { moments } = sized(CONFIGS[model]!, { ...DEFAULT_RECIPE, ...qlora }, 1024);
    expect(moments[0]!.terms.find(({ name }) => name === "weights")?.formula).toBe(
      "973,078,528 frozen parameters of linear layers in 4 bits, 502,218,752 bytes with their scales, + 262,735,872 others x 4 bytes + 3,407,872 of adapters x 4",
    );
    const eight = sized(CONFIGS[model]!, { ...DEFAULT_RECIPE, optimizer: "adamw-8bit" }, 1024);
    expect(eight.moments[0]!.terms.find(({ name }) => name === "optimizer")?.formula).toBe(
      "2 states x 1,235,814,400 trained parameters x 1 byte with their scales, of embeddings and small ones x 4 bytes",
    );
  });
  test("what is unlike its name is said", () => {
    const notes = (name: string, part: Partial<Recipe>) =>
      sizeStructure(
        located(structureOf(CONFIGS[name]!), name),
        { ...DEFAULT_RECIPE, loraRank: 16, ...part },
        1024,
      );
    const said = (name: string, part: Partial<Recipe>) => {
      const sizing = notes(name, part);
      return sizing.ok ? sizing.value.notes.join(" ") : sizing.error.message;
    };
    expect(said("tiiuae/falcon-7b", { quant: "nf4" })).toContain("quantises no linear layer of this family");
    expect(said(model, { quant: "int8", checkpointing: "full" })).toContain("hold their inputs");
    expect(said(model, { quant: "nf4", checkpointing: "full" })).toBe("");
  });
});
