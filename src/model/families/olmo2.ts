import { decoderStructure, type FamilyReader } from "../family.ts";
import { activationOf, baseShape, drops, usualSizes } from "./shapes.ts";

/** OLMo 2: norms after each block and over all queries and keys. Class defaults: `Olmo2Config` of transformers 5.24. */
export const olmo2: FamilyReader = {
  types: ["olmo2"],
  read(config) {
    const sizes = usualSizes(config, { vocab: 50304, hidden: 4096, ffn: 11008, layers: 32, heads: 32 });
    const { activation, assumed } = activationOf(config, "hidden_act", "silu");
    const bias = config.flag("attention_bias", false);
    const shape = {
      ...baseShape(sizes),
      activation,
      tiedHead: config.flag("tie_word_embeddings", false),
      norm: "rms-late" as const,
      normPlacement: "post" as const,
      qkNorm: "full" as const,
      bias: { qkv: bias, out: bias, mlp: false, head: false },
      dropout: { attention: drops(config, "attention_dropout", 0), residual: false, embedding: false },
    };
    return decoderStructure("olmo2", shape, {
      contextTokens: config.size("max_position_embeddings", 2048),
      assumed,
    });
  },
};
