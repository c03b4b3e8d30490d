import { decoderStructure, type FamilyReader } from "../family.ts";
import { activationOf, baseShape, drops, usualSizes } from "./shapes.ts";

/** StarCoder2. Class defaults: `Starcoder2Config` of transformers 5.24. */
export const starcoder2: FamilyReader = {
  types: ["starcoder2"],
  read(config) {
    const sizes = usualSizes(config, {
      vocab: 49152,
      hidden: 3072,
      ffn: 12288,
      layers: 30,
      heads: 24,
      kvHeads: 2,
    });
    const { activation, assumed } = activationOf(config, "hidden_act", "gelu_pytorch_tanh");
    const bias = config.flag("use_bias", true);
    const shape = {
      ...baseShape(sizes),
      activation,
      tiedHead: config.flag("tie_word_embeddings", true),
      norm: "layer" as const,
      mlp: "plain" as const,
      bias: { qkv: bias, out: bias, mlp: bias, head: false },
      embeddingOutlives: true,
      dropout: {
        attention: drops(config, "attention_dropout", 0),
        residual: drops(config, "residual_dropout", 0),
        embedding: drops(config, "embedding_dropout", 0),
      },
      windows: [{ layers: sizes.layers, window: config.sizeOrNull("sliding_window") }],
    };
    return decoderStructure("starcoder2", shape, {
      contextTokens: config.size("max_position_embeddings", 4096),
      assumed,
    });
  },
};
