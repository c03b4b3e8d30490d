import type { FamilyReader } from "../family.ts";
import { linear } from "../parts.ts";
import type { ParamGroup } from "../types.ts";
import { partsStructure } from "./base.ts";
import { type Lookup, NONE, TOWER, textSection } from "./multimodal.ts";
import { mllamaVision } from "./towers.ts";

/**
 * Llama 3.2 Vision: the layers in `cross_attention_layers` attend to the image instead of the text, with norms
 * on queries and keys and two gates; the embedding has eight rows more than the head.
 */
export function mllama(lookup: Lookup): FamilyReader {
  return {
    types: ["mllama"],
    read(config) {
      // The class has no tied weights, whatever the file says: its embedding has more rows than its head.
      const text = textSection(config, { tied: false })
        .withValues({ tie_word_embeddings: false })
        .withDefaults({
          hidden_size: 4096,
          num_hidden_layers: 40,
          num_attention_heads: 32,
          num_key_value_heads: 8,
          intermediate_size: 14336,
          vocab_size: 128256,
          max_position_embeddings: 131072,
        });
      const base = (lookup("llama") as FamilyReader).read(text.withValues({ model_type: "llama" }));
      const shape = base.decoder;
      if (shape === null) return base;
      const vision = config.only("vision_config") ?? NONE;
      const listed = text.list("cross_attention_layers") ?? [3, 8, 13, 18, 23, 28, 33, 38];
      const cross = new Set(listed.filter((at) => typeof at === "number" && at >= 0 && at < shape.layers))
        .size;
      const groups: ParamGroup[] = [
        ...base.groups,
        { name: "extra embedding rows", count: 8 * shape.hidden },
        { name: "cross-attention norms and gates", count: cross * (2 * shape.headDim + 2) },
        { name: "vision tower", count: mllamaVision(vision) },
        { name: "projector", count: linear(vision.size("vision_output_dim", 7680), shape.hidden, true) },
      ];
      return partsStructure("mllama", groups, shape, {
        contextTokens: base.contextTokens,
        assumed: ["cross-attention layers are walked as self-attention layers", TOWER],
        notes: base.notes,
      });
    },
  };
}
