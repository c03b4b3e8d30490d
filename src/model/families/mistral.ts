import { decoderStructure, type FamilyReader } from "../family.ts";
import { activationOf, baseShape, drops, usualSizes } from "./shapes.ts";

/** Mistral. Class defaults: `MistralConfig` of transformers 5.24; a `sliding_window` of null means none. */
export const mistral: FamilyReader = {
  types: ["mistral"],
  read(config) {
    const sizes = usualSizes(config, {
      vocab: 32000,
      hidden: 4096,
      ffn: 14336,
      layers: 32,
      heads: 32,
      kvHeads: 8,
    });
    const { activation, assumed } = activationOf(config, "hidden_act", "silu");
    const window = config.isNull("sliding_window") ? null : (config.sizeOrNull("sliding_window") ?? 4096);
    const shape = {
      ...baseShape(sizes),
      activation,
      tiedHead: config.flag("tie_word_embeddings", false),
      dropout: { attention: drops(config, "attention_dropout", 0), residual: false, embedding: false },
      windows: [{ layers: sizes.layers, window }],
    };
    return decoderStructure("mistral", shape, {
      contextTokens: config.size("max_position_embeddings", 131072),
      assumed,
    });
  },
};
