import type { ConfigReader } from "../config.ts";
import { decoderStructure, type FamilyReader } from "../family.ts";
import type { ParamGroup } from "../types.ts";
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

const TOWERS = ["vision_config", "audio_config"];

/**
 * The towers beside the text of a family that is not known: their layers counted as plain encoder layers of the sizes
 * they name, so that a model with a large one is not taken for a small model. Null where there is no tower; a count
 * of 0 where one does not say its sizes.
 */
export function unknownTowers(config: ConfigReader): ParamGroup | null {
  const sections = TOWERS.map((key) => config.only(key)).filter((section) => section !== null);
  if (sections.length === 0) return null;
  let count = 0;
  for (const section of sections) {
    const width = section.number([...WIDTH, "embed_dim"], 0);
    const depth = section.number([...DEPTH, "depth", "encoder_layers"], 0);
    const ffn = section.number([...FFN, "encoder_ffn_dim"], 4 * width);
    const layers = depth * (4 * width * width + 2 * width * ffn);
    if (!(layers > 0) || !Number.isSafeInteger(layers)) return { name: "towers", count: 0 };
    count += layers;
  }
  return { name: "towers", count };
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
    const experts =
      config.sizeOrNull(["num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"]) ?? 0;
    const width = config.sizeOrNull("moe_intermediate_size") ?? shape.ffn;
    const perToken = Math.min(experts, config.sizeOrNull(["num_experts_per_tok", "moe_topk"]) ?? 1);
    const shared =
      config.sizeOrNull(["n_shared_experts", "num_shared_experts", "moe_num_shared_experts"]) ?? 0;
    const plain = config.sizeOrNull(["first_k_dense_replace", "num_dense_layers"]) ?? 0;
    const sparse = shape.layers - Math.min(shape.layers, plain);
    const expert = 3 * shape.hidden * width;
    const outside =
      experts === 0
        ? []
        : [
            { name: "experts", count: sparse * (experts - perToken) * expert },
            { name: "router", count: sparse * experts * shape.hidden },
          ];
    const walked = experts === 0 ? shape : { ...shape, ffn: (perToken + shared) * width };
    const structure = decoderStructure(type, walked, {
      contextTokens: contextTokens(config),
      outside: [...outside, ...head.outside],
      assumed: [
        `the family ${JSON.stringify(type.slice(0, 60))} is not known; counted and sized as llama with the same sizes`,
      ],
      notes: head.notes,
    });
    const unused = experts === 0 ? 0 : sparse * (experts - perToken) * expert;
    return { ...structure, activeParams: structure.params - unused };
  },
};
