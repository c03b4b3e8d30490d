import { decoderStructure, type FamilyReader } from "../family.ts";
import { activationOf, baseShape, drops, usualSizes } from "./shapes.ts";

/** Granite: Llama with scalars on embedding, branches and logits. Class defaults: `GraniteConfig` of transformers 5.24. */
export const granite: FamilyReader = {
  types: ["granite"],
  read(config) {
    const sizes = usualSizes(config, { vocab: 32000, hidden: 4096, ffn: 11008, layers: 32, heads: 32 });
    const { activation, assumed } = activationOf(config, "hidden_act", "silu");
    const bias = config.flag("attention_bias", false);
    const shape = {
      ...baseShape(sizes),
      activation,
      tiedHead: config.flag("tie_word_embeddings", false),
      bias: { qkv: bias, out: bias, mlp: config.flag("mlp_bias", false), head: false },
      dropout: { attention: drops(config, "attention_dropout", 0), residual: false, embedding: false },
      // Multiplied in also where they are 1.
      multipliers: { embedding: true, attention: false, residual: true, logits: true },
    };
    return decoderStructure("granite", shape, {
      contextTokens: config.size("max_position_embeddings", 2048),
      assumed,
    });
  },
};
