import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Recipe } from "../../src/facts/types.ts";
import { boundsOf } from "../../src/gate/size-anew.ts";
import { catalogueNames, findInCatalogue } from "../../src/model/catalogue.ts";
import { readStructure } from "../../src/model/read.ts";
import { leastBytes } from "../../src/sizing/least.ts";
import { peakBytes } from "../../src/sizing/peak.ts";
import { DEFAULT_RECIPE } from "../../src/sizing/recipe.ts";
import { sizeStructure } from "../../src/sizing/size.ts";
import { changesFor } from "../../src/verdict/alternatives.ts";

/** Recipes as they are asked for when a job is refused: a base, and one change of it. */
const BASES: readonly Partial<Recipe>[] = [
  {},
  { precision: "bf16" },
  { precision: "fp32", attention: "eager" },
  { loraRank: 8 },
  { loraRank: 8, quant: "nf4", checkpointing: "full" },
  { checkpointing: "full", gradAccum: 4 },
];

test("the quick bound is below the walked peak, of every decoder of the catalogue and every suggested change", () => {
  const decoders = catalogueNames().flatMap((id) => {
    const entry = findInCatalogue(id)!;
    const read = readStructure(entry.config);
    return read.ok && read.value.decoder !== null && read.value.stacks === undefined
      ? [{ structure: read.value, model: id, source: "catalogue", revision: null, from: "" } as const]
      : [];
  });
  expect(decoders.length).toBeGreaterThan(200);
  let checked = 0;
  fc.assert(
    fc.property(
      fc.constantFrom(...decoders),
      fc.constantFrom(...BASES),
      fc.nat(12),
      fc.integer({ min: 1, max: 64 }),
      fc.constantFrom(64, 512, 2048),
      (located, base, which, samples, seqLen) => {
        const before: Recipe = { ...DEFAULT_RECIPE, ...base };
        const changes = changesFor(before, true);
        const recipe = { ...before, ...(changes[which % changes.length]?.recipe ?? {}) };
        const sized = sizeStructure(located, recipe, seqLen);
        if (!sized.ok) return;
        checked++;
        const least = leastBytes({ ...boundsOf(located), recipe, samples, seqLen });
        expect([located.model, recipe, least <= peakBytes(sized.value, samples)]).toEqual([
          located.model,
          recipe,
          true,
        ]);
      },
    ),
    { numRuns: 4000 },
  );
  expect(checked).toBeGreaterThan(1000);
});
