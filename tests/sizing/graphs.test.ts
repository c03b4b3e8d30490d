import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Recipe } from "../../src/facts/types.ts";
import { readGraph } from "../../src/model/graph.ts";
import { readStructure } from "../../src/model/read.ts";
import { peakBytes } from "../../src/sizing/peak.ts";
import { DEFAULT_RECIPE } from "../../src/sizing/recipe.ts";
import { sizeStructure } from "../../src/sizing/size.ts";
import { summary, table } from "./errors.ts";
import { judged, OWN_PARAMETERS, ROWS, sized, structureOf, UNSEEN } from "./graph-rows.ts";
import { graphsTable, PAGE } from "./graphs-page.ts";
import { located } from "./rows.ts";

/** Bytes of a step under which a few temporaries of a small matrix tell: nobody asks a card for 10 MB. */
const SMALLEST = 10e6;

describe("measured steps of traced modules", () => {
  test("are within the bars, in every recipe", () => {
    console.log(table(judged, ({ row }) => row.graph));
    console.log(table(judged, ({ row }) => `${row.recipe} ${row.optimizer}`));
    const seen = judged
      .filter(({ row }) => !UNSEEN.includes(row.graph) && row.peak_bytes > SMALLEST)
      .map(({ errorPercent }) => errorPercent);
    const all = summary(seen);
    console.log(all);
    expect(all.n).toBeGreaterThan(500);
    expect(all.median).toBeLessThan(0.1);
    expect(all.p95).toBeLessThan(1.5);
    expect(all.under).toBeGreaterThan(-2);
    expect(all.over).toBeLessThan(4);
    for (const recipe of ["fp32", "amp-bf16", "bf16", "amp-fp16"]) {
      const of = judged.filter(
        ({ row }) => row.recipe === recipe && !UNSEEN.includes(row.graph) && row.peak_bytes > SMALLEST,
      );
      expect([
        recipe,
        of.length > 60,
        summary(of.map(({ errorPercent }) => errorPercent)).median < 0.5,
      ]).toEqual([recipe, true, true]);
    }
  });
  test("of modules whose functions leave no sign are as far off as the page says", () => {
    const of = (name: string) =>
      summary(judged.filter(({ row }) => row.graph === name).map(({ errorPercent }) => errorPercent));
    const [sum, text] = [of("functional-sum"), of("text-cnn")];
    expect([sum.n > 10, sum.under > -31, sum.over < 0]).toEqual([true, true, true]);
    expect([text.n > 10, text.under > -1, text.over < 26]).toEqual([true, true, true]);
  });
  test("have exactly the module's parameters, but for those that it holds itself", () => {
    for (const { row, sizing } of judged)
      expect([row.graph, sizing.params]).toEqual([row.graph, row.params - (OWN_PARAMETERS[row.graph] ?? 0)]);
  });
  test("are no row twice", () => {
    const keys = ROWS.map((row) => JSON.stringify({ ...row, peak_bytes: 0, peak_at: "" }));
    expect(new Set(keys).size).toBe(keys.length);
  });
});

describe("the same transformer", () => {
  const gpt2 = {
    n_layer: 4,
    n_embd: 256,
    n_head: 4,
    vocab_size: 8000,
    n_positions: 512,
    resid_pdrop: 0.1,
    embd_pdrop: 0.1,
    attn_pdrop: 0,
  };
  const llama = {
    num_hidden_layers: 4,
    hidden_size: 256,
    intermediate_size: 688,
    num_attention_heads: 4,
    vocab_size: 8000,
    max_position_embeddings: 2048,
  };
  const bert = {
    num_hidden_layers: 4,
    hidden_size: 256,
    intermediate_size: 1024,
    num_attention_heads: 4,
    vocab_size: 8000,
    architectures: ["BertForSequenceClassification"],
  };
  const cases: readonly (readonly [string, Record<string, unknown>])[] = [
    ["hf-gpt2", { model_type: "gpt2", ...gpt2 }],
    ["hf-llama", { model_type: "llama", tie_word_embeddings: false, ...llama }],
    ["hf-llama-gqa", { model_type: "llama", tie_word_embeddings: false, ...llama, num_key_value_heads: 2 }],
    [
      "hf-qwen3",
      { model_type: "qwen3", tie_word_embeddings: false, ...llama, num_key_value_heads: 2, head_dim: 64 },
    ],
    ["hf-bert", { model_type: "bert", ...bert }],
  ];
  for (const [name, config] of cases)
    test(`${name}: its graph and its config agree within 3 %`, () => {
      const read = readStructure(config);
      if (!read.ok) throw new Error(read.error.message);
      for (const precision of ["amp-bf16", "bf16", "fp32", "amp-fp16"] as const)
        for (const tokens of [64, 384, 512])
          for (const batch of [1, 8, 64]) {
            const byGraph = sized(structureOf(name), { precision }, tokens);
            const byConfig = sized(read.value, { precision }, tokens);
            expect(byGraph.params).toBe(byConfig.params);
            const percent = (peakBytes(byGraph, batch) / peakBytes(byConfig, batch) - 1) * 100;
            expect([precision, tokens, batch, Math.abs(percent) < 3]).toEqual([
              precision,
              tokens,
              batch,
              true,
            ]);
          }
    });
});

describe("what is said", () => {
  const notes = (name: string, tokens?: number, part: Partial<Recipe> = {}) =>
    sized(structureOf(name), part, tokens).notes.join(" ");
  test("of the length", () => {
    expect(notes("resnet18")).toContain("fed no text");
    expect(notes("hf-llama", 2048)).toContain("traced with 64 tokens and is sized with 2048");
    expect(sized(structureOf("hf-gpt2"), {}, 1024).cautions).toEqual([
      "The model has 512 learned positions; 1024 tokens do not run.",
    ]);
  });
  test("of recipes that need to know modules by name", () => {
    const refusal = (part: Partial<Recipe>) => {
      const result = sizeStructure(located(structureOf("gpt"), "m"), { ...DEFAULT_RECIPE, ...part }, 64);
      return result.ok ? "sized" : `${result.error.reason}: ${result.error.message}`;
    };
    expect(refusal({ loraRank: 8 })).toMatch(/^recipe-not-sized: LoRA is not sized from a graph/);
    expect(refusal({ checkpointing: "full" })).toMatch(/^recipe-not-sized: Checkpointing is not sized/);
    expect(refusal({ quant: "nf4" })).toMatch(/^recipe-not-sized/);
    expect(refusal({ loss: "fused" })).toMatch(/^recipe-not-sized: A fused loss is not sized from a graph/);
    expect(refusal({ offload: "all" })).toMatch(/^recipe-not-sized: Offloading of parameters is not sized/);
  });
  test("of functions between modules and of modules that are not known", () => {
    expect(sized(structureOf("gpt"), {}).assumed.join(" ")).toContain("taken to be attention");
    expect(sized(structureOf("functional-gpt"), {}).assumed.join(" ")).toContain("a GELU");
    expect(sized(structureOf("odd-mlp"), {}).assumed.join(" ")).toContain("What Scale does inside");
    expect(sized(structureOf("resnet50"), {}).assumed).toEqual([]);
  });
  test("flash in fp32 is sized as sdpa", () => {
    const sizing = sized(structureOf("gpt"), { attention: "flash", precision: "fp32" });
    expect([sizing.recipe.attention, sizing.notes.join(" ")]).toEqual([
      "sdpa",
      expect.stringContaining("16-bit operands only"),
    ]);
  });
});

describe("more never needs less", () => {
  test("of samples and tokens", () => {
    for (const name of ["resnet18", "gpt", "hf-llama-gqa", "lstm", "unet", "series-transformer"])
      for (const precision of ["amp-bf16", "bf16", "fp32"] as const) {
        let before = 0;
        for (const step of [1, 2, 3, 8, 64]) {
          const peak = peakBytes(sized(structureOf(name), { precision }, 64 * step), step);
          expect(peak).toBeGreaterThanOrEqual(before);
          before = peak;
        }
      }
  });
  test("and a length does not change what has none", () => {
    for (const name of ["resnet50", "vit", "forecast"])
      expect(peakBytes(sized(structureOf(name), {}, 128), 8)).toBe(
        peakBytes(sized(structureOf(name), {}, 4096), 8),
      );
  });
  test("accumulation, DDP and eager attention add to it", () => {
    const peak = (part: Partial<Recipe>) => peakBytes(sized(structureOf("gpt"), part, 512), 16);
    expect(peak({ gradAccum: 4 })).toBeGreaterThan(peak({}));
    expect(peak({ parallel: "ddp" })).toBeGreaterThan(peak({}));
    expect(peak({ attention: "eager" })).toBeGreaterThan(peak({}));
    expect(peak({ paddingMask: true })).toBeGreaterThan(peak({}));
    expect(peak({ attention: "flash" })).toBe(peak({}));
  });
  test("sharing the state takes from it, card by card", () => {
    const on = (parallel: Recipe["parallel"], cards: number) => {
      const recipe = { ...DEFAULT_RECIPE, parallel };
      const result = sizeStructure(located(structureOf("gpt"), "m"), recipe, 64, cards);
      if (!result.ok) throw new Error(result.error.message);
      return result.value.floorBytes;
    };
    expect(on("zero1", 8)).toBeLessThan(on("ddp", 8));
    expect(on("zero2", 8)).toBeLessThan(on("zero1", 8));
    expect(on("zero2", 8)).toBeLessThan(on("zero2", 2));
  });
});

test("terms add up to their moment, and each has a formula", () => {
  for (const name of ["resnet18", "gpt", "lstm", "vit-torch"])
    for (const moment of sized(structureOf(name), {}, 128).moments) {
      const sum = (key: "fixedBytes" | "perSampleBytes") =>
        moment.terms.reduce((total, term) => total + term[key], 0);
      expect(Math.abs(sum("fixedBytes") - moment.fixedBytes)).toBeLessThan(2);
      expect(Math.abs(sum("perSampleBytes") - moment.perSampleBytes)).toBeLessThan(2);
      for (const term of moment.terms) expect(term.formula).toMatch(/[a-z]/);
    }
});

test("a graph of 20,000 layers takes in proportion to one of 4,000", () => {
  const fastestMs = (layers: number) => {
    const components = [
      { id: "in", type: "input", params: { shape: [8] } },
      ...Array.from({ length: layers - 2 }, (_, index) => ({
        id: `l${index}`,
        type: "linear",
        params: { inFeatures: 8, outFeatures: 8 },
      })),
    ];
    const connections = components.slice(1).map(({ id }, index) => ({ from: components[index]!.id, to: id }));
    const rounds = [1, 2, 3].map(() => {
      const start = performance.now();
      const read = readGraph({ components, connections });
      if (!read.ok) throw new Error(read.error.message);
      expect(peakBytes(sized(read.value, {}), 8)).toBeGreaterThan(0);
      return performance.now() - start;
    });
    return Math.min(...rounds);
  };
  // Five times as many: 5 in proportion, 25 where each looks at all the others.
  expect(fastestMs(20_000) / fastestMs(4_000)).toBeLessThan(15);
});

test("the page's table is of these rows", () => {
  expect(readFileSync(PAGE, "utf8")).toContain(graphsTable());
});
