import type { ConfigReader } from "../config.ts";
import { decoderGroups } from "../decoder.ts";
import { countParams, type FamilyReader } from "../family.ts";
import { layerNorm, linear } from "../parts.ts";
import type { DecoderShape, LatentShape, ParamGroup, RouterShape } from "../types.ts";
import { contextTokens, headed, partsStructure, readShape } from "./base.ts";
import { attentionBias } from "./dense.ts";
import { activeOf, type Experts, expertGroups, withExperts } from "./experts.ts";
import { firstDense } from "./moe.ts";

/** Class defaults of a config with multi-head latent attention. */
interface Latent {
  readonly types: readonly string[];
  readonly hidden: number;
  readonly layers: number;
  readonly vocab: number;
  readonly ffn: number;
  readonly heads: number;
  readonly queryRank: number;
  readonly nope: number;
  readonly value: number;
  readonly expertWidth: number;
  readonly experts: number;
  readonly perToken: number;
  readonly shared: number;
  readonly firstDense: number;
  /** `mlp_bias` is honoured by the dense and the shared blocks. */
  readonly mlpBias?: boolean;
  /** Sparse attention's index (`modeling_glm_moe_dsa.py`). */
  readonly indexer?: boolean;
  readonly rotation: "interleaved" | "complex";
  readonly router: (config: ConfigReader) => Partial<RouterShape>;
}

/** Scores by sigmoid, the choice corrected by a buffer and kept to the best groups (`modeling_deepseek_v3.py`). */
function sigmoidRouter(config: ConfigReader): Partial<RouterShape> {
  return {
    scores: "sigmoid",
    normalized: config.flag("norm_topk_prob", true),
    scaled: true,
    full: true,
    groups: config.size("n_group", 8),
  };
}

/** Softmax, of the best groups only where `topk_method` says so (`modeling_deepseek_v2.py`). */
function softmaxRouter(config: ConfigReader): Partial<RouterShape> {
  const grouped = config.text("topk_method", "greedy") === "group_limited_greedy";
  return { scaled: true, full: true, groups: grouped ? config.size("n_group", 8) : null };
}

/** Attention of one layer: queries and keys through low-rank projections (DeepSeek-V2, section 2.1). */
function latentAttention(config: ConfigReader, shape: DecoderShape, family: Latent) {
  const rank = config.isNull("q_lora_rank") ? null : config.size("q_lora_rank", family.queryRank);
  const keyRank = config.size("kv_lora_rank", 512);
  const nope = config.size("qk_nope_head_dim", family.nope);
  const rope = config.size("qk_rope_head_dim", 64);
  const value = config.size("v_head_dim", family.value);
  const bias = config.flag("attention_bias", false);
  const { hidden, heads } = shape;
  const width = nope + rope;
  const queries =
    rank === null
      ? linear(hidden, heads * width, false)
      : linear(hidden, rank, bias) + rank + linear(rank, heads * width, false);
  const keys =
    linear(hidden, keyRank + rope, bias) + keyRank + linear(keyRank, heads * (nope + value), false);
  const indexHeads = family.indexer ? config.size("index_n_heads", 32) : 0;
  const indexDim = family.indexer ? config.size("index_head_dim", 128) : 0;
  const index = family.indexer
    ? linear(rank ?? hidden, indexHeads * indexDim, false) +
      linear(hidden, indexDim, false) +
      layerNorm(indexDim) +
      linear(hidden, indexHeads, false)
    : 0;
  const latent: LatentShape = {
    queryRank: rank,
    keyRank,
    nope,
    rope,
    value,
    ...(family.indexer
      ? { index: { heads: indexHeads, dim: indexDim, kept: config.size("index_topk", 2048) } }
      : {}),
    rotation:
      family.rotation === "complex" || config.flag("rope_interleave", true) ? family.rotation : "halves",
  };
  return {
    count: queries + keys + linear(heads * value, hidden, bias) + index,
    width,
    latent,
    bias: attentionBias(config),
  };
}

function latent(family: Latent): FamilyReader {
  return {
    types: family.types,
    read(config) {
      const base = readShape(config, {
        hidden: family.hidden,
        layers: family.layers,
        vocab: family.vocab,
        ffn: family.ffn,
        heads: family.heads,
        kvHeads: "heads",
        headDim: 64,
        tied: false,
      });
      const block = latentAttention(config, base, family);
      // Every query head has keys and values of its own; `num_key_value_heads` and `head_dim` mean nothing here.
      const head = headed(config, {
        ...base,
        kvHeads: base.heads,
        headDim: block.width,
        rotary: block.latent.rope / block.width,
        bias: block.bias,
        latent: block.latent,
        ...(family.indexer ? { alwaysMasked: true } : {}),
      });
      const shape = head.shape;
      const width = config.size("moe_intermediate_size", family.expertWidth);
      const side: Experts = {
        ...firstDense(config, shape.layers, family.firstDense),
        denseWidth: shape.ffn,
        experts: config.size(["n_routed_experts", "num_local_experts"], family.experts),
        perToken: config.size("num_experts_per_tok", family.perToken),
        width,
        denseBias: family.mlpBias === true && config.flag("mlp_bias", false),
        sharedWidth: config.isNull("n_shared_experts")
          ? 0
          : width * config.sizeOrZero("n_shared_experts", family.shared),
        router: family.router(config),
        adapted: true,
      };
      const groups: ParamGroup[] = [
        ...decoderGroups(shape).filter((group) => !["attention", "feed-forward"].includes(group.name)),
        { name: "latent attention", count: shape.layers * block.count },
        ...expertGroups(shape.hidden, side),
        ...head.outside,
      ];
      return partsStructure(
        config.text("model_type", family.types[0] ?? ""),
        groups,
        withExperts(shape, side),
        {
          paramsOutside: countParams(head.outside),
          contextTokens: contextTokens(config),
          activeParams: countParams(groups) > 0 ? activeOf(groups, side) : 0,
          notes: head.notes,
        },
      );
    },
  };
}

export const LATENT: readonly FamilyReader[] = [
  latent({
    types: ["deepseek_v2"],
    hidden: 4096,
    layers: 32,
    vocab: 102400,
    ffn: 11008,
    heads: 32,
    queryRank: 1536,
    nope: 128,
    value: 128,
    expertWidth: 1407,
    experts: 64,
    perToken: 6,
    shared: 2,
    firstDense: 0,
    mlpBias: true,
    rotation: "complex",
    router: softmaxRouter,
  }),
  latent({
    types: ["deepseek_v3", "kimi_k2"],
    hidden: 7168,
    layers: 61,
    vocab: 129280,
    ffn: 18432,
    heads: 128,
    queryRank: 1536,
    nope: 128,
    value: 128,
    expertWidth: 2048,
    experts: 256,
    perToken: 8,
    shared: 1,
    firstDense: 3,
    rotation: "interleaved",
    router: sigmoidRouter,
  }),
  latent({
    types: ["glm_moe_dsa"],
    hidden: 6144,
    layers: 78,
    vocab: 154880,
    ffn: 12288,
    heads: 64,
    queryRank: 2048,
    nope: 192,
    value: 256,
    expertWidth: 2048,
    experts: 256,
    perToken: 8,
    shared: 1,
    firstDense: 3,
    indexer: true,
    rotation: "interleaved",
    router: sigmoidRouter,
  }),
];
