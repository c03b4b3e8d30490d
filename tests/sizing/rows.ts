import { readFileSync } from "node:fs";
import type { Recipe } from "../../src/facts/types.ts";
import { ConfigReader } from "../../src/model/config.ts";
import { falcon } from "../../src/model/families/falcon.ts";
import { gemma } from "../../src/model/families/gemma.ts";
import { gptNeox } from "../../src/model/families/gpt-neox.ts";
import { gpt2 } from "../../src/model/families/gpt2.ts";
import { granite } from "../../src/model/families/granite.ts";
import { llama } from "../../src/model/families/llama.ts";
import { mistral } from "../../src/model/families/mistral.ts";
import { olmo2 } from "../../src/model/families/olmo2.ts";
import { opt } from "../../src/model/families/opt.ts";
import { phi3 } from "../../src/model/families/phi3.ts";
import { qwen2, qwen3 } from "../../src/model/families/qwen.ts";
import { starcoder2 } from "../../src/model/families/starcoder2.ts";
import type { FamilyReader } from "../../src/model/family.ts";
import type { LocatedStructure, Structure } from "../../src/model/types.ts";
import { DEFAULT_RECIPE } from "../../src/sizing/recipe.ts";

const FIXTURES = `${import.meta.dir}/../fixtures`;
export const DENSE: readonly FamilyReader[] = [
  llama,
  qwen2,
  qwen3,
  mistral,
  gemma,
  phi3,
  gpt2,
  gptNeox,
  opt,
  falcon,
  starcoder2,
  olmo2,
  granite,
];

type Adapted = "lora" | "lora-bf16" | "lora-fp32";
type QuantisedRecipe = `${"nf4" | "int8"}${"" | "-bf16" | "-fp16" | "-fp32"}`;

/** A measured training step: one line of `peaks.jsonl` or `extra.jsonl`. */
export interface Row {
  readonly config: string;
  readonly params: number;
  readonly trainable: number;
  readonly recipe: "amp-bf16" | "bf16" | "fp32" | Adapted | QuantisedRecipe;
  readonly optimizer: "fused" | "foreach" | "adamw-8bit";
  readonly attention: Recipe["attention"];
  readonly padding_mask: boolean;
  readonly checkpointing: boolean;
  readonly lora_rank: number | null;
  readonly targets: "attn" | "all-linear" | null;
  readonly seq: number;
  readonly batch: number;
  readonly peak_bytes: number;
  readonly act_fixed?: number;
  readonly phase_peaks?: { readonly forward: number; readonly backward: number; readonly optimizer: number };
  /** Only in `extra.jsonl`: keys that were changed in the named config. */
  readonly changes?: Readonly<Record<string, unknown>>;
  /** Only in `unseen.jsonl`: the config is the catalogue's. */
  readonly catalogue?: true;
}

type Json = Record<string, unknown>;

export const CONFIGS: Readonly<Record<string, Json>> = JSON.parse(
  readFileSync(`${FIXTURES}/sizing/configs.json`, "utf8"),
);

export const CATALOGUE: readonly { readonly id: string; readonly config: Json; readonly params: number }[] =
  readFileSync(`${FIXTURES}/catalogue.jsonl`, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));

export function readRows(file: string): Row[] {
  return readFileSync(`${FIXTURES}/sizing/${file}`, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

export function readerOf(config: Json): FamilyReader | null {
  return DENSE.find((reader) => reader.types.includes(String(config.model_type))) ?? null;
}

export function structureOf(config: Json): Structure {
  const reader = readerOf(config);
  if (reader === null) throw new Error(`no dense reader for ${String(config.model_type)}`);
  return reader.read(new ConfigReader(config));
}

export function located(structure: Structure, model: string): LocatedStructure {
  return { structure, model, source: "path", revision: null, from: "a test" };
}

/**
 * Rows without a fitted line are of a later run, which had starcoder2's config without its dropouts.
 */
export function configOf(row: Row): Json {
  if (row.catalogue) return CATALOGUE.find(({ id }) => id === row.config)!.config;
  const config: Json = { ...CONFIGS[row.config], ...row.changes };
  if (row.config === "bigcode/starcoder2-3b" && row.changes === undefined && row.act_fixed === undefined) {
    for (const key of ["attention_dropout", "embedding_dropout", "residual_dropout"]) delete config[key];
  }
  return config;
}

export function recipeOf(row: Row): Recipe {
  const [base, own] = row.recipe.split("-") as [string, string | undefined];
  const quant = base === "nf4" || base === "int8" ? base : "none";
  // Under LoRA the name is of the base and what follows it of the precision.
  const half = own === "fp16" ? "amp-fp16" : own === "bf16" || own === "fp32" ? own : "amp-bf16";
  const precision = quant === "none" && base !== "lora" ? (row.recipe as Recipe["precision"]) : half;
  return {
    ...DEFAULT_RECIPE,
    precision,
    quant,
    optimizer:
      row.optimizer === "foreach" ? "adamw-foreach" : row.optimizer === "fused" ? "adamw" : row.optimizer,
    attention: row.attention,
    checkpointing: row.checkpointing ? "full" : "none",
    loraRank: row.lora_rank,
    loraTargets: row.targets === "all-linear" ? "all-linear" : "attention",
    paddingMask: row.padding_mask,
  };
}
