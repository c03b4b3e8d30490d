import type { ConfigReader } from "../config.ts";
import type { FamilyReader } from "../family.ts";
import { withHead } from "./base.ts";
import { falcon } from "./falcon.ts";
import { gemma } from "./gemma.ts";
import { gptNeox } from "./gpt-neox.ts";
import { gpt2 } from "./gpt2.ts";
import { granite } from "./granite.ts";
import { llama } from "./llama.ts";
import { mistral } from "./mistral.ts";
import { olmo2 } from "./olmo2.ts";
import { opt } from "./opt.ts";
import { phi3 } from "./phi3.ts";
import { qwen2, qwen3 } from "./qwen.ts";
import { starcoder2 } from "./starcoder2.ts";

/** The families whose activations were measured; the others borrow the nearest of these. */
const DENSE: readonly FamilyReader[] = [
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

function headed(reader: FamilyReader): FamilyReader {
  return { types: reader.types, read: (config: ConfigReader) => withHead(config, reader.read(config)) };
}

let table: Map<string, FamilyReader> | null = null;

function build(): Map<string, FamilyReader> {
  // Evaluated at first use, and at once: most submits name a dense model and need none of these modules.
  const { others } = require("./others.ts") as typeof import("./others.ts");
  const map = new Map<string, FamilyReader>();
  const add = (reader: FamilyReader) => {
    for (const type of reader.types) map.set(type, reader);
  };
  for (const reader of DENSE) add(headed(reader));
  for (const reader of others((type) => map.get(type) ?? null)) add(reader);
  return map;
}

/** The reader for a `model_type`; null when the family is not known by name. */
export function familyReader(type: string): FamilyReader | null {
  for (const reader of DENSE) if (reader.types.includes(type)) return headed(reader);
  table ??= build();
  return table.get(type) ?? null;
}

/** All `model_type` values that are read by formulas of their own. */
export function knownTypes(): string[] {
  table ??= build();
  return [...table.keys()];
}
