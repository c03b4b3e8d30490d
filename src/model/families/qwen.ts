import type { ConfigReader } from "../config.ts";
import { decoderStructure, type FamilyReader } from "../family.ts";
import { activationOf, baseShape, drops, type Sizes, usualSizes, windowsOf } from "./shapes.ts";

const DEFAULTS = { vocab: 151936, hidden: 4096, ffn: 22016, layers: 32, heads: 32, kvHeads: 32 };

function windows(config: ConfigReader, sizes: Sizes) {
  const window = config.flag("use_sliding_window", false)
    ? (config.sizeOrNull("sliding_window") ?? 4096)
    : null;
  return windowsOf(config, sizes.layers, window, config.number("max_window_layers", 28));
}

/** Qwen2 and 2.5: q, k and v always have a bias. Class defaults: `Qwen2Config` of transformers 5.24. */
export const qwen2: FamilyReader = {
  types: ["qwen2"],
  read(config) {
    const sizes = usualSizes(config, DEFAULTS);
    const { activation, assumed } = activationOf(config, "hidden_act", "silu");
    const shape = {
      ...baseShape(sizes),
      activation,
      tiedHead: config.flag("tie_word_embeddings", false),
      bias: { qkv: true, out: false, mlp: false, head: false },
      dropout: { attention: drops(config, "attention_dropout", 0), residual: false, embedding: false },
      windows: windows(config, sizes),
    };
    return decoderStructure("qwen2", shape, {
      contextTokens: config.size("max_position_embeddings", 32768),
      assumed,
    });
  },
};

/** Qwen3: norms on queries and keys, a head size of its own. Class defaults: `Qwen3Config` of transformers 5.24. */
export const qwen3: FamilyReader = {
  types: ["qwen3"],
  read(config) {
    const sizes = usualSizes(config, { ...DEFAULTS, headDim: 128 });
    const { activation, assumed } = activationOf(config, "hidden_act", "silu");
    const bias = config.flag("attention_bias", false);
    const shape = {
      ...baseShape(sizes),
      activation,
      tiedHead: config.flag("tie_word_embeddings", false),
      qkNorm: "per-head" as const,
      bias: { qkv: bias, out: bias, mlp: false, head: false },
      dropout: { attention: drops(config, "attention_dropout", 0), residual: false, embedding: false },
      windows: windows(config, sizes),
    };
    return decoderStructure("qwen3", shape, {
      contextTokens: config.size("max_position_embeddings", 32768),
      assumed,
    });
  },
};
