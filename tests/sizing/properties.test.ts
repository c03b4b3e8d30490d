import { expect, test } from "bun:test";
import fc from "fast-check";
import { ATTENTIONS, type Recipe } from "../../src/facts/types.ts";
import { peakBytes } from "../../src/sizing/peak.ts";
import { DEFAULT_RECIPE } from "../../src/sizing/recipe.ts";
import { sizeStructure } from "../../src/sizing/size.ts";
import { anyFamilyConfig } from "./any-family.ts";
import { located, structureOf } from "./rows.ts";

const FAMILIES = [
  "llama",
  "qwen2",
  "qwen3",
  "mistral",
  "gemma",
  "phi3",
  "gpt2",
  "gpt_neox",
  "opt",
  "falcon",
  "starcoder2",
  "olmo2",
  "granite",
];

const recipes: fc.Arbitrary<Recipe> = fc
  .record({
    precision: fc.constantFrom("amp-bf16", "bf16", "fp32"),
    optimizer: fc.constantFrom("adamw", "adamw-foreach", "adamw-8bit"),
    quant: fc.constantFrom("none", "none", "nf4", "int8"),
    attention: fc.constantFrom(...ATTENTIONS),
    checkpointing: fc.constantFrom("none", "full"),
    loraRank: fc.option(fc.constantFrom(4, 16, 64), { nil: null }),
    loraTargets: fc.constantFrom("attention", "all-linear"),
    paddingMask: fc.boolean(),
  })
  .map((part) => ({ ...part, quant: part.loraRank === null ? "none" : part.quant }))
  .map((part) => ({ ...DEFAULT_RECIPE, ...part }) as Recipe);

const models = fc.record({
  family: fc.constantFrom(...FAMILIES),
  layers: fc.integer({ min: 1, max: 40 }),
  heads: fc.constantFrom(8, 16, 32),
  headDim: fc.constantFrom(64, 128),
  vocab: fc.integer({ min: 1000, max: 150_000 }),
});
type Model = typeof models extends fc.Arbitrary<infer T> ? T : never;

function peak(model: Model, recipe: Recipe, tokens: number, samples: number): number {
  const config = anyFamilyConfig(model);
  const sized = sizeStructure(located(structureOf(config), "m"), recipe, tokens);
  if (!sized.ok) throw new Error(sized.error.message);
  return peakBytes(sized.value, samples);
}

const tokens = fc.integer({ min: 1, max: 400 }).map((n) => n * 8);
const samples = fc.integer({ min: 1, max: 64 });

function neverLess(
  name: string,
  more: (m: Model, r: Recipe, t: number, s: number) => readonly [Model, Recipe, number, number],
): void {
  test(`${name} never needs less`, () => {
    fc.assert(
      fc.property(models, recipes, tokens, samples, (m, r, t, s) => {
        expect(peak(...more(m, r, t, s))).toBeGreaterThanOrEqual(peak(m, r, t, s));
      }),
      { numRuns: 150 },
    );
  });
}

neverLess("one more sample", (m, r, t, s) => [m, r, t, s + 1]);
neverLess("a longer sequence", (m, r, t, s) => [m, r, t + 8, s]);
neverLess("one more layer", (m, r, t, s) => [{ ...m, layers: m.layers + 1 }, r, t, s]);
neverLess("a bigger vocabulary", (m, r, t, s) => [{ ...m, vocab: m.vocab + 64 }, r, t, s]);
// 8-bit states of few numbers are in fp32, and so wider than those of 16-bit adapters.
neverLess("foreach AdamW over fused", (m, r, t, s) => [
  m,
  r.optimizer === "adamw" ? { ...r, optimizer: "adamw-foreach" } : r,
  t,
  s,
]);

test("the same question has the same answer, and every figure is a finite number", () => {
  fc.assert(
    fc.property(models, recipes, tokens, (m, r, t) => {
      const first = peak(m, r, t, 3);
      expect(Number.isFinite(first) && first > 0).toBe(true);
      expect(peak(m, r, t, 3)).toBe(first);
    }),
    { numRuns: 60 },
  );
});
