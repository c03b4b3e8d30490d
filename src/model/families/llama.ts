import { decoderStructure, type FamilyReader } from "../family.ts";
import { activationOf, baseShape, usualSizes } from "./shapes.ts";

/** Llama. Class defaults: `LlamaConfig` of transformers 5.24. */
export const llama: FamilyReader = {
  types: ["llama"],
  read(config) {
    const sizes = usualSizes(config, { vocab: 32000, hidden: 4096, ffn: 11008, layers: 32, heads: 32 });
    const { activation, assumed } = activationOf(config, "hidden_act", "silu");
    const bias = config.flag("attention_bias", false);
    const shape = {
      ...baseShape(sizes),
      activation,
      tiedHead: config.flag("tie_word_embeddings", false),
      bias: { qkv: bias, out: bias, mlp: config.flag("mlp_bias", false), head: false },
      dropout: { attention: config.number("attention_dropout", 0) > 0, residual: false, embedding: false },
    };
    return decoderStructure("llama", shape, {
      contextTokens: config.size("max_position_embeddings", 2048),
      assumed,
    });
  },
};
