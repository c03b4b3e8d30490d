import { decoderStructure, type FamilyReader } from "../family.ts";
import { activationOf, baseShape, drops } from "./shapes.ts";

/** Rows that OPT's position table has beyond its positions. */
const POSITION_OFFSET = 2;

/** OPT. Class defaults: `OPTConfig` of transformers 5.24. */
export const opt: FamilyReader = {
  types: ["opt"],
  read(config) {
    const hidden = config.size("hidden_size", 768);
    const heads = config.size("num_attention_heads", 12);
    const positions = config.size("max_position_embeddings", 2048);
    const sizes = {
      layers: config.size("num_hidden_layers", 12),
      hidden,
      heads,
      kvHeads: heads,
      headDim: Math.floor(hidden / heads),
      ffn: config.size("ffn_dim", 3072),
      vocab: config.size("vocab_size", 50272),
    };
    const { activation, assumed } = activationOf(config, "activation_function", "relu");
    const bias = config.flag("enable_bias", true);
    const before = config.flag("do_layer_norm_before", true);
    const affine = config.flag("layer_norm_elementwise_affine", true);
    const shape = {
      ...baseShape(sizes),
      activation,
      embedWidth: config.size("word_embed_proj_dim", hidden),
      positionRows: positions + POSITION_OFFSET,
      positionsPerSample: true,
      embeddingOutlives: true,
      tiedHead: config.flag("tie_word_embeddings", true),
      norm: affine ? ("layer" as const) : ("layer-no-weight" as const),
      normPlacement: before ? ("pre" as const) : ("post-residual" as const),
      finalNorm: before && !config.flag("_remove_final_layer_norm", false),
      mlp: "plain" as const,
      bias: { qkv: bias, out: bias, mlp: bias, head: false },
      rotary: 0,
      queryScaledFirst: true,
      dropout: {
        attention: drops(config, "attention_dropout", 0),
        residual: drops(config, "dropout", 0.1),
        embedding: false,
      },
    };
    return decoderStructure("opt", shape, { contextTokens: positions, assumed });
  },
};
