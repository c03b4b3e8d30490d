import type { ConfigReader } from "../config.ts";
import type { FamilyReader } from "../family.ts";
import type { Structure } from "../types.ts";
import { contextTokens, headed, readShape } from "./base.ts";
import { type Experts, moeStructure } from "./experts.ts";

/** Layers with experts: the list `moe_layers`, else every `interleave_moe_layer_step`-th. */
function expertLayers(config: ConfigReader, layers: number): number {
  const listed = config.list("moe_layers");
  if (listed !== null) return Math.min(layers, new Set(listed).size);
  const step = Math.max(1, Math.trunc(config.number("interleave_moe_layer_step", 1)));
  return Math.floor(layers / step);
}

/** The text side of Llama 4: experts and one shared expert of the same width; dense layers have their own width. */
export function llama4Structure(config: ConfigReader): Structure {
  const bias = config.flag("attention_bias", false);
  const head = headed(
    config,
    readShape(
      config,
      {
        hidden: 5120,
        layers: 48,
        vocab: 202048,
        ffn: 8192,
        heads: 40,
        kvHeads: 8,
        headDim: 128,
        tied: false,
      },
      { bias: { qkv: bias, out: bias, mlp: false, head: false } },
    ),
  );
  const { shape } = head;
  const sparse = expertLayers(config, shape.layers);
  const side: Experts = {
    sparseLayers: sparse,
    denseLayers: shape.layers - sparse,
    denseWidth: config.size("intermediate_size_mlp", 16384),
    experts: config.size("num_local_experts", 16),
    perToken: config.size("num_experts_per_tok", 1),
    width: shape.ffn,
    sharedWidth: shape.ffn,
  };
  return moeStructure("llama4_text", shape, side, {
    contextTokens: contextTokens(config),
    outside: head.outside,
    notes: head.notes,
  });
}

export const llama4Text: FamilyReader = { types: ["llama4_text"], read: llama4Structure };
