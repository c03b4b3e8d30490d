import { decoderStructure, type FamilyReader } from "../family.ts";
import { activationOf, baseShape, drops, usualSizes } from "./shapes.ts";

/** Gemma 1. Class defaults: `GemmaConfig` of transformers 5.24. */
export const gemma: FamilyReader = {
  types: ["gemma"],
  read(config) {
    const sizes = usualSizes(config, {
      vocab: 256000,
      hidden: 3072,
      ffn: 24576,
      layers: 28,
      heads: 16,
      kvHeads: 16,
      headDim: 256,
    });
    // The class reads `hidden_act`; a value of "gelu" in old files means the tanh form, a kernel of the same size.
    const { activation, assumed } = activationOf(config, "hidden_act", "gelu_pytorch_tanh");
    const bias = config.flag("attention_bias", false);
    const shape = {
      ...baseShape(sizes),
      activation,
      norm: "rms-plus-one" as const,
      tiedHead: config.flag("tie_word_embeddings", true),
      bias: { qkv: bias, out: bias, mlp: false, head: false },
      dropout: { attention: drops(config, "attention_dropout", 0), residual: false, embedding: false },
      embeddingScaledInside: true,
      multipliers: { embedding: true, attention: false, residual: false, logits: false },
    };
    return decoderStructure("gemma", shape, {
      contextTokens: config.size("max_position_embeddings", 8192),
      assumed,
    });
  },
};
