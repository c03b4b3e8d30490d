import { decoderStructure, type FamilyReader } from "../family.ts";
import { activationOf, baseShape, drops, usualSizes } from "./shapes.ts";

/** Mistral, and Ministral 3, whose queries are multiplied by a number for each position. Class defaults: `MistralConfig` of transformers 5.24; a `sliding_window` of null means none. */
export const mistral: FamilyReader = {
  types: ["mistral", "ministral3"],
  read(config) {
    const sizes = usualSizes(config, {
      vocab: 32000,
      hidden: 4096,
      ffn: 14336,
      layers: 32,
      heads: 32,
      kvHeads: 8,
    });
    const tuned = config.text("model_type", "mistral") === "ministral3";
    const { activation, assumed } = activationOf(config, "hidden_act", "silu");
    const window = config.isNull("sliding_window")
      ? null
      : (config.sizeOrNull("sliding_window") ?? (tuned ? null : 4096));
    const shape = {
      ...baseShape(sizes),
      activation,
      tiedHead: config.flag("tie_word_embeddings", false),
      dropout: { attention: drops(config, "attention_dropout", 0), residual: false, embedding: false },
      windows: [{ layers: sizes.layers, window }],
      ...(tuned ? { queryRescaled: true } : {}),
    };
    return decoderStructure(tuned ? "ministral3" : "mistral", shape, {
      contextTokens: config.size("max_position_embeddings", 131072),
      assumed,
    });
  },
};
