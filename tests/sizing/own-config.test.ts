import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { findInCatalogue } from "../../src/model/catalogue.ts";
import { readStructure } from "../../src/model/read.ts";
import { DEFAULT_RECIPE } from "../../src/sizing/recipe.ts";
import { sizeStructure } from "../../src/sizing/size.ts";

/** Whole configs as their models publish them, by id; the catalogue carries only what says something of sizes. */
const PUBLISHED = JSON.parse(
  readFileSync(join(import.meta.dir, "../fixtures/sizing/configs.json"), "utf8"),
) as Record<string, unknown>;

// One of them is the text part alone of a model whose id means the whole.
const known = Object.keys(PUBLISHED).filter(
  (id) => findInCatalogue(id) !== null && id !== "google/gemma-3-12b-pt",
);

describe("an id and its own config.json have the same bytes", () => {
  test("most of the configs are of the catalogue", () => expect(known.length).toBeGreaterThan(40));

  test.each(known)("%s", (id) => {
    const sizes = (config: unknown) => {
      const read = readStructure(config);
      if (!read.ok) throw read.error;
      const located = { structure: read.value, model: id, source: "path", revision: null, from: "" } as const;
      return [{}, { loraRank: 8 }, { attention: "eager" as const, checkpointing: "full" as const }].map(
        (part) => sizeStructure(located, { ...DEFAULT_RECIPE, ...part }, 512),
      );
    };
    const lines = (config: unknown) =>
      sizes(config).map((sized) =>
        sized.ok
          ? [sized.value.params, sized.value.moments.map((m) => [m.name, m.fixedBytes, m.perSampleBytes])]
          : sized.error,
      );
    expect(lines(PUBLISHED[id])).toEqual(lines(findInCatalogue(id)!.config));
  });
});
