import type { ConfigReader } from "../config.ts";
import { countParams, type FamilyReader } from "../family.ts";
import type { DecoderShape, ParamGroup } from "../types.ts";
import { contextTokens, headed, readShape, type ShapeDefaults } from "./base.ts";
import { type Experts, moeStructure } from "./experts.ts";

type Side = Omit<Experts, "sparseLayers" | "denseLayers" | "denseWidth"> &
  Partial<Pick<Experts, "sparseLayers" | "denseLayers" | "denseWidth">>;

/** How a mixture of experts differs from llama. */
interface Moe {
  readonly types: readonly string[];
  readonly defaults: ShapeDefaults;
  readonly traits?: (config: ConfigReader) => Partial<DecoderShape>;
  readonly side: (config: ConfigReader, shape: DecoderShape) => Side;
  /** Parameters of the shape that its usual groups do not count. */
  readonly inside?: (shape: DecoderShape) => ParamGroup[];
}

/** A reader for a decoder whose feed-forward side is a mixture of experts. */
export function moe(family: Moe): FamilyReader {
  return {
    types: family.types,
    read(config) {
      const head = headed(config, readShape(config, family.defaults, family.traits?.(config)));
      const side = {
        sparseLayers: head.shape.layers,
        denseLayers: 0,
        denseWidth: head.shape.ffn,
        adapted: REMAPPED.has(config.text("model_type", "")),
        ...family.side(config, head.shape),
      };
      return moeStructure(config.text("model_type", family.types[0] ?? ""), head.shape, side, {
        contextTokens: contextTokens(config),
        outside: [...(family.inside?.(head.shape) ?? []), ...head.outside],
        paramsOutside: countParams(head.outside),
        notes: head.notes,
      });
    },
  };
}

/** Families whose names peft maps (transformers/conversion_mapping.py), so that LoRA reaches their experts. */
const REMAPPED = new Set([
  "mixtral",
  "minimax_m2",
  "qwen3_moe",
  "olmoe",
  "ernie4_5_moe",
  "glm4_moe",
  "qwen3_next",
  "deepseek_v2",
  "deepseek_v3",
  "glm_moe_dsa",
]);

/** Names under which files state the number of experts. */
export const LOCAL_EXPERTS = ["num_local_experts", "num_experts", "n_routed_experts"];

/** Experts in every layer, as wide as `intermediate_size`. */
export function everywhere(
  config: ConfigReader,
  shape: DecoderShape,
  experts: number,
  perToken: number,
): Side {
  return {
    experts: config.size(LOCAL_EXPERTS, experts),
    perToken: config.size("num_experts_per_tok", perToken),
    width: shape.ffn,
    sharedWidth: 0,
  };
}

/** Whether `decoder_sparse_step` and `mlp_only_layers` leave a layer to the experts (`modeling_qwen2_moe.py`). */
export function isSparse(config: ConfigReader): (layer: number) => boolean {
  const step = Math.max(1, Math.trunc(config.number("decoder_sparse_step", 1)));
  const only = new Set(config.list("mlp_only_layers") ?? []);
  return (layer) => (layer + 1) % step === 0 && !only.has(layer);
}

/** How many layers are left to the experts, and how many not. */
export function sparseStep(
  config: ConfigReader,
  layers: number,
): Pick<Experts, "sparseLayers" | "denseLayers"> {
  const among = isSparse(config);
  let sparse = 0;
  for (let layer = 0; layer < layers; layer++) if (among(layer)) sparse++;
  return { sparseLayers: sparse, denseLayers: layers - sparse };
}

/** Layers below `first_k_dense_replace` are dense. */
export function firstDense(
  config: ConfigReader,
  layers: number,
  fallback: number,
): Pick<Experts, "sparseLayers" | "denseLayers"> {
  const first = config.has("first_k_dense_replace")
    ? config.sizeOrZero("first_k_dense_replace", 1)
    : fallback;
  const dense = Math.min(layers, first);
  return { sparseLayers: layers - dense, denseLayers: dense };
}
