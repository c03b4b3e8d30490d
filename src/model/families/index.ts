import type { ConfigReader } from "../config.ts";
import type { FamilyReader } from "../family.ts";
import { AUDIO } from "./audio.ts";
import { withHead } from "./base.ts";
import { BERTS } from "./bert.ts";
import { DEBERTAS } from "./deberta.ts";
import { DELTA_NETS } from "./delta-net.ts";
import { DENSE_LAYER_NORM } from "./dense-layer-norm.ts";
import { DENSE_RMS } from "./dense-rms.ts";
import { FACTORISED } from "./electra.ts";
import { falcon } from "./falcon.ts";
import { gemma } from "./gemma.ts";
import { MORE_GEMMA } from "./gemma-more.ts";
import { gptNeox } from "./gpt-neox.ts";
import { gpt2 } from "./gpt2.ts";
import { granite } from "./granite.ts";
import { graniteHybrid } from "./granite-hybrid.ts";
import { lfm2 } from "./lfm2.ts";
import { llama } from "./llama.ts";
import { llama4Text } from "./llama4.ts";
import { MAMBAS } from "./mamba.ts";
import { mistral } from "./mistral.ts";
import { LATENT } from "./mla.ts";
import { modernbert } from "./modernbert.ts";
import { MOE } from "./moe-families.ts";
import { multimodalFamilies } from "./multimodal-families.ts";
import { nemotronH } from "./nemotron-h.ts";
import { olmo2 } from "./olmo2.ts";
import { opt } from "./opt.ts";
import { phi3 } from "./phi3.ts";
import { qwen2, qwen3 } from "./qwen.ts";
import { SEQ2SEQ } from "./seq2seq.ts";
import { starcoder2 } from "./starcoder2.ts";
import { VISION } from "./vision.ts";

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
  const map = new Map<string, FamilyReader>();
  const lookup = (type: string) => map.get(type) ?? null;
  const readers = [
    ...DENSE.map(headed),
    ...DENSE_RMS,
    ...DENSE_LAYER_NORM,
    ...MORE_GEMMA,
    ...MOE,
    ...LATENT,
    llama4Text,
    ...DELTA_NETS,
    lfm2,
    nemotronH,
    graniteHybrid,
    ...MAMBAS,
    ...BERTS,
    ...FACTORISED,
    modernbert,
    ...DEBERTAS,
    ...SEQ2SEQ,
    ...AUDIO,
    ...VISION,
    ...multimodalFamilies(lookup),
  ];
  for (const reader of readers) for (const type of reader.types) map.set(type, reader);
  return map;
}

/** The reader for a `model_type`; null when the family is not known by name. */
export function familyReader(type: string): FamilyReader | null {
  table ??= build();
  return table.get(type) ?? null;
}

/** All `model_type` values that are read by formulas of their own. */
export function knownTypes(): string[] {
  table ??= build();
  return [...table.keys()];
}
