import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { catalogueNames, findInCatalogue } from "../../src/model/catalogue.ts";
import { decoderGroups } from "../../src/model/decoder.ts";
import { countParams } from "../../src/model/family.ts";
import { readStructure } from "../../src/model/read.ts";
import type { Structure } from "../../src/model/types.ts";
import { DEFAULT_RECIPE, planOf } from "../../src/sizing/recipe.ts";
import { trainingStep } from "../../src/sizing/step.ts";

const FIXTURES = join(import.meta.dir, "../fixtures");

interface CatalogueRow {
  readonly id: string;
  readonly aliases?: readonly string[];
  readonly config: { readonly model_type: string; readonly architectures: readonly string[] };
  readonly params: number;
  readonly params_active?: number;
}

function lines<T>(file: string): T[] {
  return readFileSync(join(FIXTURES, file), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as T);
}

const CATALOGUE = lines<CatalogueRow>("catalogue.jsonl");

function structureOf(config: unknown): Structure {
  const read = readStructure(config);
  if (!read.ok) throw new Error(read.error.message);
  return read.value;
}

describe("every count of the catalogue is computed, and exact", () => {
  test.each(CATALOGUE.map((row) => [row.id, row] as const))("%s", (_, row) => {
    const structure = structureOf(row.config);
    expect(structure.params).toBe(row.params);
    expect(structure.activeParams).toBe(row.params_active ?? row.params);
    expect(structure.assumed.join(" ")).not.toContain("recorded");
  });
});

describe("configs that no model was published with: other sizes, keys left out, flags turned", () => {
  // Counted by transformers 5.24 on its meta device.
  const rows = lines<{ config: CatalogueRow["config"]; params: number }>("model/perturbed.jsonl");
  const byType = Map.groupBy(rows, (row) => row.config.model_type);
  test("cover every family read by name that transformers has", () => {
    expect(byType.size).toBeGreaterThan(90);
  });
  test.each([...byType])("%s", (_, group) => {
    for (const { config, params } of group) {
      const got = structureOf(config).params;
      if (got !== params) throw new Error(`${got}, not ${params}: ${JSON.stringify(config)}`);
    }
  });
});

describe("a structure is whole", () => {
  const configs = [...CATALOGUE, ...lines<{ config: CatalogueRow["config"] }>("model/perturbed.jsonl")];
  test("its groups sum to its parameters, and so do the decoder and what stands outside it", () => {
    for (const { config } of configs) {
      const structure = structureOf(config);
      const { decoder, paramsOutside } = structure;
      // Where a shape tells more than the groups of a dense decoder, the step that is walked counts itself.
      const special =
        decoder?.windows.some(({ differs }) => differs) ||
        decoder?.experts ||
        decoder?.latent ||
        decoder?.scan;
      const inside =
        decoder === null
          ? 0
          : special
            ? trainingStep(decoder, planOf(DEFAULT_RECIPE), 8, paramsOutside).params - paramsOutside
            : countParams(decoderGroups(decoder));
      const where = JSON.stringify(config).slice(0, 300);
      expect([countParams(structure.groups), where]).toEqual([structure.params, where]);
      expect([inside + structure.paramsOutside, where]).toEqual([structure.params, where]);
    }
  });

  test("every group counts something, and no decoder has a senseless size", () => {
    for (const { config } of configs) {
      const structure = structureOf(config);
      for (const group of structure.groups) expect([group.name, group.count > 0]).toEqual([group.name, true]);
      const shape = structure.decoder!;
      for (const size of [shape.layers, shape.hidden, shape.heads, shape.kvHeads, shape.headDim, shape.ffn]) {
        expect(Number.isInteger(size) && size > 0).toBe(true);
      }
      expect(shape.windows.reduce((sum, run) => sum + run.layers, 0)).toBe(shape.layers);
    }
  });

  test("active parameters are fewer than all exactly where there are experts", () => {
    for (const { config, params_active } of CATALOGUE) {
      const structure = structureOf(config);
      const experts = structure.groups.some((group) => group.name === "routed experts");
      expect([config.model_type, structure.activeParams < structure.params]).toEqual([
        config.model_type,
        params_active !== undefined,
      ]);
      expect(experts).toBe(params_active !== undefined);
    }
  });
});

/** Dropout that models publish beyond their class's default: it counts for memory and not for parameters. */
const DROPOUTS: Readonly<Record<string, Record<string, number>>> = {
  "bigcode/starcoder2-3b": { attention_dropout: 0.1, embedding_dropout: 0.1, residual_dropout: 0.1 },
  "bigcode/starcoder2-7b": { attention_dropout: 0.1, embedding_dropout: 0.1, residual_dropout: 0.1 },
  "microsoft/phi-2": { resid_pdrop: 0.1 },
  "facebook/bart-base": { activation_dropout: 0.1, attention_dropout: 0.1 },
  "facebook/bart-large": { activation_dropout: 0.1, attention_dropout: 0.1 },
};

describe("the catalogue inside the program", () => {
  test("is the recorded one: names, counts, configs", () => {
    const names = CATALOGUE.flatMap((row) => [row.id, ...(row.aliases ?? [])]);
    expect(catalogueNames().sort()).toEqual(names.sort());
    for (const row of CATALOGUE) {
      for (const name of [row.id, ...(row.aliases ?? [])]) {
        expect(findInCatalogue(name)).toEqual({
          id: row.id,
          params: row.params,
          activeParams: row.params_active ?? null,
          config: { ...(row.config as object), ...DROPOUTS[row.id] },
        });
      }
    }
  });
});
