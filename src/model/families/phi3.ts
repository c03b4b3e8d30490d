import { decoderStructure, type FamilyReader } from "../family.ts";
import { activationOf, baseShape, drops, rotaryFraction, usualSizes } from "./shapes.ts";

/** Phi-3 and Phi-4: fused q, k, v and gate, up. Class defaults: `Phi3Config` of transformers 5.24. */
export const phi3: FamilyReader = {
  types: ["phi3"],
  read(config) {
    const sizes = usualSizes(config, { vocab: 32064, hidden: 3072, ffn: 8192, layers: 32, heads: 32 });
    const { activation, assumed } = activationOf(config, "hidden_act", "silu");
    const shape = {
      ...baseShape(sizes),
      activation,
      tiedHead: config.flag("tie_word_embeddings", false),
      fusedQkv: true,
      fusedSplit: "slices" as const,
      mlp: "gated-fused" as const,
      rotary: rotaryFraction(config, 1),
      rotaryConcatenates: true,
      // `embd_pdrop` is read by the config and used by no module.
      dropout: {
        attention: drops(config, "attention_dropout", 0),
        residual: drops(config, "resid_pdrop", 0),
        embedding: false,
      },
      windows: [{ layers: sizes.layers, window: config.sizeOrNull("sliding_window") }],
    };
    return decoderStructure("phi3", shape, {
      contextTokens: config.size("max_position_embeddings", 4096),
      assumed,
    });
  },
};
