import { decoderStructure, type FamilyReader } from "../family.ts";
import { activationOf, baseShape, drops } from "./shapes.ts";

/** GPT-2. Class defaults: `GPT2Config` of transformers 5.24. */
export const gpt2: FamilyReader = {
  types: ["gpt2", "gpt-sw3"],
  read(config) {
    const hidden = config.size(["n_embd", "hidden_size"], 768);
    const heads = config.size(["n_head", "num_attention_heads"], 12);
    const positionRows = config.size(["n_positions", "max_position_embeddings"], 1024);
    const sizes = {
      layers: config.size(["n_layer", "num_hidden_layers"], 12),
      hidden,
      heads,
      kvHeads: heads,
      headDim: Math.floor(hidden / heads),
      ffn: config.size("n_inner", 4 * hidden),
      vocab: config.size("vocab_size", 50257),
    };
    const { activation, assumed } = activationOf(config, "activation_function", "gelu_new");
    const shape = {
      ...baseShape(sizes),
      activation,
      positionRows,
      tiedHead: config.flag("tie_word_embeddings", true),
      norm: "layer" as const,
      fusedQkv: true,
      mlp: "plain" as const,
      bias: { qkv: true, out: true, mlp: true, head: false },
      rotary: 0,
      eagerStyle: "plain" as const,
      outputUnadapted: true,
      embeddingOutlives: true,
      attentionOutlives: true,
      dropout: {
        attention: drops(config, "attn_pdrop", 0.1),
        residual: drops(config, "resid_pdrop", 0.1),
        embedding: drops(config, "embd_pdrop", 0.1),
      },
    };
    return decoderStructure("gpt2", shape, { contextTokens: positionRows, assumed });
  },
};
