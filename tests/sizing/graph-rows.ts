import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Recipe } from "../../src/facts/types.ts";
import { readGraph } from "../../src/model/graph.ts";
import type { Structure } from "../../src/model/types.ts";
import { peakBytes } from "../../src/sizing/peak.ts";
import { DEFAULT_RECIPE } from "../../src/sizing/recipe.ts";
import { sizeStructure } from "../../src/sizing/size.ts";
import type { Sizing } from "../../src/sizing/types.ts";
import { located } from "./rows.ts";

/** A measured step of a module of `graph_models.py`. */
interface GraphRow {
  readonly graph: string;
  readonly recipe: Recipe["precision"];
  readonly optimizer: "fused" | "foreach" | "sgd" | "sgd-momentum";
  readonly batch: number;
  /** Tokens a sample, of a text. */
  readonly seq?: number;
  readonly params: number;
  readonly peak_bytes: number;
}

const FIXTURES = join(import.meta.dir, "../fixtures");
export const ROWS: readonly GraphRow[] = readFileSync(join(FIXTURES, "graphs/steps.jsonl"), "utf8")
  .split("\n")
  .filter(Boolean)
  .map((line) => JSON.parse(line));
const OPTIMIZERS = {
  fused: "adamw",
  foreach: "adamw-foreach",
  sgd: "sgd",
  "sgd-momentum": "sgd-momentum",
} as const;

/** Modules of whose functions a trace shows no sign: sums of activations, a maximum over time before a concatenation. */
export const UNSEEN: readonly string[] = ["functional-sum", "text-cnn"];
/** Modules that hold parameters themselves (a class token, positions), which a trace does not show. */
export const OWN_PARAMETERS: Readonly<Record<string, number>> = {
  vit: 38_016,
  "vit-torch": 38_016,
  "hf-vit": 38_016,
};

const graphs = new Map<string, Structure>();

/** The structure of a traced module. */
export function structureOf(name: string): Structure {
  const known = graphs.get(name);
  if (known !== undefined) return known;
  const read = readGraph(JSON.parse(readFileSync(join(FIXTURES, `graphs/${name}.neurarch.json`), "utf8")));
  if (!read.ok) throw new Error(read.error.message);
  graphs.set(name, read.value);
  return read.value;
}

/** A structure under a recipe. */
export function sized(structure: Structure, part: Partial<Recipe>, tokens = 2048): Sizing {
  const result = sizeStructure(located(structure, "m"), { ...DEFAULT_RECIPE, ...part }, tokens);
  if (!result.ok) throw new Error(result.error.message);
  return result.value;
}

/** Every row with its size. */
export const judged = ROWS.map((row) => {
  const recipe = { precision: row.recipe, optimizer: OPTIMIZERS[row.optimizer] };
  const sizing = sized(structureOf(row.graph), recipe, row.seq);
  return { row, sizing, errorPercent: (peakBytes(sizing, row.batch) / row.peak_bytes - 1) * 100 };
});
