import { decoderStructure, type FamilyReader } from "../family.ts";
import { activationOf, baseShape, drops, rotaryFraction } from "./shapes.ts";

/** GPT-NeoX and Pythia. Class defaults: `GPTNeoXConfig` of transformers 5.24. */
export const gptNeox: FamilyReader = {
  types: ["gpt_neox"],
  read(config) {
    const hidden = config.size("hidden_size", 6144);
    const heads = config.size("num_attention_heads", 64);
    const sizes = {
      layers: config.size("num_hidden_layers", 44),
      hidden,
      heads,
      kvHeads: heads,
      headDim: Math.floor(hidden / heads),
      ffn: config.size("intermediate_size", 24576),
      vocab: config.size("vocab_size", 50432),
    };
    const { activation, assumed } = activationOf(config, "hidden_act", "gelu");
    const bias = config.flag("attention_bias", true);
    const residual = drops(config, "hidden_dropout", 0);
    const shape = {
      ...baseShape(sizes),
      activation,
      tiedHead: config.flag("tie_word_embeddings", false),
      norm: "layer" as const,
      normPlacement: config.flag("use_parallel_residual", true)
        ? ("parallel-two" as const)
        : ("pre" as const),
      fusedQkv: true,
      mlp: "plain" as const,
      bias: { qkv: bias, out: bias, mlp: true, head: false },
      rotary: rotaryFraction(config, 0.25, ["rotary_pct"]),
      rotaryConcatenates: true,
      outputUnadapted: true,
      embeddingOutlives: true,
      dropout: { attention: drops(config, "attention_dropout", 0), residual, embedding: residual },
    };
    return decoderStructure("gpt_neox", shape, {
      contextTokens: config.size("max_position_embeddings", 2048),
      assumed,
    });
  },
};
