import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Recipe } from "../../src/facts/types.ts";
import { peakBytes } from "../../src/sizing/peak.ts";
import { DEFAULT_RECIPE } from "../../src/sizing/recipe.ts";
import { sizeStructure } from "../../src/sizing/size.ts";
import { anyFamilyConfig } from "./any-family.ts";
import { located, structureOf } from "./rows.ts";

const FAMILIES = ["llama", "qwen2", "qwen3", "gemma", "phi3", "gpt2", "gpt_neox", "opt", "olmo2", "granite"];

const recipes: fc.Arbitrary<Recipe> = fc
  .record({
    precision: fc.constantFrom("amp-bf16", "bf16", "amp-fp16", "fp32"),
    optimizer: fc.constantFrom("adamw", "adamw-foreach", "sgd", "sgd-momentum", "lion", "adafactor"),
    checkpointing: fc.constantFrom("none", "full"),
    loraRank: fc.option(fc.constantFrom(4, 64), { nil: null }),
    gradAccum: fc.constantFrom(1, 4),
    loss: fc.constantFrom("full", "fused"),
  })
  .map((part) => ({ ...DEFAULT_RECIPE, ...part }) as Recipe);

const models = fc.record({
  family: fc.constantFrom(...FAMILIES),
  layers: fc.integer({ min: 1, max: 24 }),
  heads: fc.constantFrom(8, 16, 32),
  vocab: fc.integer({ min: 4000, max: 150_000 }),
});
type Model = typeof models extends fc.Arbitrary<infer T> ? T : never;

function peak(
  model: Model,
  recipe: Recipe,
  { tokens, samples, cards = 1 }: { tokens: number; samples: number; cards?: number },
): number {
  const config = anyFamilyConfig({ ...model, headDim: 64 });
  const sized = sizeStructure(located(structureOf(config), "m"), recipe, tokens, cards);
  if (!sized.ok) throw new Error(sized.error.message);
  return peakBytes(sized.value, samples);
}

const tokens = fc.integer({ min: 1, max: 300 }).map((n) => n * 8);
const samples = fc.integer({ min: 1, max: 32 });
const cards = fc.integer({ min: 1, max: 64 });
/** Every tensor of a share is rounded up to 512 bytes, and a model of these sizes has fewer than 500 tensors. */
const ROUNDING = 500 * 512 * 3;

type Arguments = readonly [Model, Recipe, number, number, number];

function holds(
  name: string,
  less: (...given: Arguments) => number,
  more: (...given: Arguments) => number,
): void {
  test(name, () => {
    fc.assert(
      fc.property(models, recipes, tokens, samples, cards, (...given) => {
        expect(less(...given)).toBeLessThanOrEqual(more(...given) + ROUNDING);
      }),
      { numRuns: 120 },
    );
  });
}

const under =
  (change: Partial<Recipe>, more = 0) =>
  (m: Model, r: Recipe, t: number, s: number, n: number) =>
    peak(m, { ...r, ...change }, { tokens: t, samples: s, cards: n + more });

holds(
  "one more card never needs more of each: zero1",
  under({ parallel: "zero1" }, 1),
  under({ parallel: "zero1" }),
);
holds(
  "one more card never needs more of each: zero2",
  under({ parallel: "zero2" }, 1),
  under({ parallel: "zero2" }),
);
holds("zero2 never needs more than zero1", under({ parallel: "zero2" }), under({ parallel: "zero1" }));
holds("zero1 never needs more than ddp", under({ parallel: "zero1" }), under({ parallel: "ddp" }));
holds(
  "an even part of a sharded job never needs more than zero2's card at its samples",
  (m, r, t, s, n) => peak(m, { ...r, parallel: "sharded" }, { tokens: t, samples: s * n }) / n,
  under({ parallel: "zero2" }),
);
holds("a fused loss never needs more than the whole one", under({ loss: "fused" }), (m, r, t, s, n) => {
  const whole = peak(m, { ...r, loss: "full" }, { tokens: t, samples: s, cards: n });
  // What is computed in forward lives beside what it is computed from: a gradient and copies of the head.
  return whole + headBytes(m);
});
holds(
  "offload=optimizer never needs more than none",
  under({ offload: "optimizer" }),
  under({ offload: "none" }),
);
holds(
  "offload=all never needs more than optimizer, but for a head or a layer that is gathered twice over",
  under({ offload: "all" }),
  (m, r, t, s, n) => {
    const kept = peak(m, { ...r, offload: "optimizer" }, { tokens: t, samples: s, cards: n });
    // The gathered buffer, what is copied out of it and shards in fp32: that of a small model is most of it.
    return kept + headBytes(m) * (m.layers < 4 ? 4 : 1);
  },
);
test("offload=all saves most of a large model", () => {
  const large: Model = { family: "llama", layers: 24, heads: 32, vocab: 32_000 };
  const at = (offload: Recipe["offload"]) =>
    peak(large, { ...DEFAULT_RECIPE, offload }, { tokens: 64, samples: 1 });
  expect(at("all") / at("optimizer")).toBeLessThan(0.25);
  expect(at("optimizer") / at("none")).toBeLessThan(0.6);
});

function headBytes({ vocab, heads }: Model): number {
  return vocab * heads * 64 * 8;
}
