import type { ConfigReader } from "../config.ts";
import { decoderStructure, type FamilyReader } from "../family.ts";
import { contextTokens, headed, readShape } from "./base.ts";

const WIDTH = ["hidden_size", "n_embd", "d_model", "n_embed"];
const DEPTH = ["num_hidden_layers", "n_layer", "num_layers", "n_layers"];
const HEADS = ["num_attention_heads", "n_head", "num_heads", "n_heads"];
const FFN = ["intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "ffn_hidden_size"];

/** The usual decoder keys that a config lacks, by the name most files use. */
export function missingUsualKeys(config: ConfigReader): string[] {
  return [WIDTH, DEPTH, HEADS, FFN, ["vocab_size"]]
    .filter((keys) => !config.has(keys))
    .map((keys) => keys[0] ?? "");
}

/**
 * A family that is not known by name but writes the usual keys: counted and walked as llama, and that is said.
 * Experts are counted where the usual keys name them, so that a mixture is not taken for a small model.
 */
export const generic: FamilyReader = {
  types: [],
  read(config) {
    const type = config.text("model_type", "unknown");
    const bias = config.flag("attention_bias", false);
    const head = headed(
      config,
      readShape(
        config,
        {
          hidden: 1,
          layers: 1,
          vocab: 1,
          ffn: "4h",
          heads: 1,
          kvHeads: "heads",
          headDim: "split",
          tied: false,
        },
        { bias: { qkv: bias, out: bias, mlp: config.flag("mlp_bias", false), head: false } },
      ),
    );
    const { shape } = head;
    const experts = config.sizeOrNull(["num_experts", "num_local_experts", "n_routed_experts"]) ?? 0;
    const width = config.sizeOrNull("moe_intermediate_size") ?? shape.ffn;
    const perToken = Math.min(experts, config.sizeOrNull(["num_experts_per_tok", "moe_topk"]) ?? 1);
    const expert = 3 * shape.hidden * width;
    const outside =
      experts === 0
        ? []
        : [
            { name: "experts", count: shape.layers * (experts - perToken) * expert },
            { name: "router", count: shape.layers * experts * shape.hidden },
          ];
    const walked = experts === 0 ? shape : { ...shape, ffn: perToken * width };
    const structure = decoderStructure(type, walked, {
      contextTokens: contextTokens(config),
      outside: [...outside, ...head.outside],
      assumed: [
        `the family ${JSON.stringify(type.slice(0, 60))} is not known; counted and sized as llama with the same sizes`,
      ],
      notes: head.notes,
    });
    const unused = experts === 0 ? 0 : shape.layers * (experts - perToken) * expert;
    return { ...structure, activeParams: structure.params - unused };
  },
};
