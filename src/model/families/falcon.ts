import { decoderStructure, type FamilyReader } from "../family.ts";
import { activationOf, baseShape, drops } from "./shapes.ts";

/** Falcon. Class defaults: `FalconConfig` of transformers 5.24. */
export const falcon: FamilyReader = {
  types: ["falcon", "RefinedWeb", "RefinedWebModel"],
  read(config) {
    const hidden = config.size(["hidden_size", "n_embed"], 4544);
    const heads = config.size(["num_attention_heads", "n_head"], 71);
    const isNew = config.flag("new_decoder_architecture", false);
    const multiQuery = config.flag("multi_query", true);
    const kvHeads = isNew ? config.size(["num_kv_heads", "n_head_kv"], heads) : multiQuery ? 1 : heads;
    const parallel = isNew || config.flag("parallel_attn", true);
    const norms = config.sizeOrNull("num_ln_in_parallel_attn") ?? (isNew ? 2 : 1);
    const alibi = config.flag("alibi", false);
    const bias = config.flag("bias", false);
    const { activation, assumed } = activationOf(config, "activation", "gelu");
    const sizes = {
      layers: config.size(["num_hidden_layers", "n_layer"], 32),
      hidden,
      heads,
      kvHeads,
      headDim: Math.floor(hidden / heads),
      ffn: config.size("ffn_hidden_size", 4 * hidden),
      vocab: config.size("vocab_size", 65024),
    };
    const shape = {
      ...baseShape(sizes),
      activation,
      tiedHead: config.flag("tie_word_embeddings", true),
      norm: "layer" as const,
      normPlacement: !parallel
        ? ("pre" as const)
        : isNew && norms === 2
          ? ("parallel-two" as const)
          : ("parallel-one" as const),
      parallelNormsFirst: true,
      fusedQkv: true,
      fusedSplit: isNew || multiQuery ? ("shared-index" as const) : ("select" as const),
      sharedKeysExpanded: isNew,
      callsKernelDirectly: true,
      alwaysMasked: true,
      splitBiases: true,
      outputUnadapted: true,
      eagerStyle: "in-place" as const,
      mlp: "plain" as const,
      bias: { qkv: bias, out: bias, mlp: bias, head: false },
      rotary: alibi ? 0 : 1,
      alibi,
      dropout: {
        attention: alibi && drops(config, "attention_dropout", 0),
        residual: drops(config, "hidden_dropout", 0),
        afterAttention: !parallel && drops(config, "attention_dropout", 0),
        embedding: false,
      },
    };
    return decoderStructure("falcon", shape, {
      contextTokens: config.size("max_position_embeddings", 2048),
      assumed,
    });
  },
};
