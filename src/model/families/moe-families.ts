import type { FamilyReader } from "../family.ts";
import { attentionBias, MHA, NO_BIAS } from "./dense.ts";
import { everywhere, firstDense, LOCAL_EXPERTS, moe, sparseStep } from "./moe.ts";

export const mixtral = moe({
  types: ["mixtral"],
  defaults: {
    hidden: 4096,
    layers: 32,
    vocab: 32000,
    ffn: 14336,
    heads: 32,
    kvHeads: 8,
    headDim: "split",
    tied: false,
  },
  side: (config, shape) => everywhere(config, shape, 8, 2),
});

export const qwen2Moe = moe({
  types: ["qwen2_moe"],
  defaults: {
    hidden: 2048,
    layers: 24,
    vocab: 151936,
    ffn: 5632,
    heads: 16,
    kvHeads: 16,
    headDim: "split",
    tied: false,
    windowOff: true,
  },
  traits: (config) => ({ bias: { ...NO_BIAS, qkv: config.flag("qkv_bias", true) } }),
  side: (config, shape) => ({
    ...sparseStep(config, shape.layers),
    experts: config.size(["num_experts", "num_local_experts"], 60),
    perToken: config.size("num_experts_per_tok", 4),
    width: config.size("moe_intermediate_size", 1408),
    sharedWidth: config.size("shared_expert_intermediate_size", 5632),
    routerExtra: shape.hidden,
  }),
});

export const qwen3Moe = moe({
  types: ["qwen3_moe"],
  defaults: {
    hidden: 2048,
    layers: 24,
    vocab: 151936,
    ffn: 6144,
    heads: 32,
    kvHeads: 4,
    headDim: "split",
    tied: false,
    windowOff: true,
  },
  traits: (config) => ({ qkNorm: "per-head", bias: attentionBias(config) }),
  side: (config, shape) => ({
    ...sparseStep(config, shape.layers),
    experts: config.size(["num_experts", "num_local_experts"], 128),
    perToken: config.size("num_experts_per_tok", 8),
    width: config.size("moe_intermediate_size", 768),
    sharedWidth: 0,
  }),
});

/** The text side of Qwen3-VL-MoE has other class defaults than qwen3_moe. */
export const qwen3VlMoeText = moe({
  types: ["qwen3_vl_moe_text"],
  defaults: {
    hidden: 2048,
    layers: 24,
    vocab: 151936,
    ffn: 5632,
    heads: 16,
    kvHeads: 16,
    headDim: "split",
    tied: true,
  },
  traits: (config) => ({ qkNorm: "per-head", bias: attentionBias(config) }),
  side: (config, shape) => ({
    ...sparseStep(config, shape.layers),
    experts: config.size(["num_experts", "num_local_experts"], 60),
    perToken: config.size("num_experts_per_tok", 4),
    width: config.size("moe_intermediate_size", 1408),
    sharedWidth: 0,
  }),
});

export const olmoe = moe({
  types: ["olmoe"],
  defaults: { hidden: 2048, layers: 16, vocab: 50304, ffn: 2048, heads: 16, ...MHA, tied: false },
  traits: (config) => ({ qkNorm: "full", bias: attentionBias(config) }),
  side: (config, shape) => everywhere(config, shape, 64, 8),
});

/** Granite MoE; the `shared` variant adds a dense block beside the experts. */
export const graniteMoe = moe({
  types: ["granitemoe", "granitemoeshared"],
  defaults: { hidden: 4096, layers: 32, vocab: 32000, ffn: 11008, heads: 32, ...MHA, tied: false },
  traits: (config) => ({
    bias: attentionBias(config),
    multipliers: { embedding: true, attention: true, residual: true, logits: true },
  }),
  side: (config, shape) => ({
    ...everywhere(config, shape, 8, 2),
    sharedWidth:
      config.text("model_type", "") === "granitemoeshared"
        ? config.has("shared_intermediate_size")
          ? config.sizeOrZero("shared_intermediate_size", 1)
          : 0
        : 0,
  }),
});

/** Phi-3.5-MoE: LayerNorm with bias; attention and head biases by flag. */
export const phimoe = moe({
  types: ["phimoe"],
  defaults: {
    hidden: 4096,
    layers: 32,
    vocab: 32064,
    ffn: 6400,
    heads: 32,
    kvHeads: 8,
    headDim: "split",
    tied: false,
  },
  traits: (config) => ({
    norm: "layer",
    bias: { ...attentionBias(config), head: config.flag("lm_head_bias", false) },
  }),
  side: (config, shape) => everywhere(config, shape, 16, 2),
});

export const minimaxM2 = moe({
  types: ["minimax_m2"],
  defaults: {
    hidden: 3072,
    layers: 62,
    vocab: 200064,
    ffn: 1536,
    heads: 48,
    kvHeads: 8,
    headDim: 128,
    tied: false,
  },
  traits: () => ({ qkNorm: "full" }),
  side: (config, shape) => everywhere(config, shape, 256, 8),
});

/** gpt-oss: biases everywhere, on the router too; one attention sink a head. */
export const gptOss = moe({
  types: ["gpt_oss"],
  defaults: {
    hidden: 2880,
    layers: 36,
    vocab: 201088,
    ffn: 2880,
    heads: 64,
    kvHeads: 8,
    headDim: 64,
    tied: false,
    window: 128,
    fullEvery: 2,
  },
  traits: (config) => ({ bias: attentionBias(config, true) }),
  side: (config, shape) => {
    const experts = config.size(LOCAL_EXPERTS, 128);
    return { ...everywhere(config, shape, 128, 4), bias: true, routerExtra: experts };
  },
  outside: (shape) => [{ name: "attention sinks", count: shape.layers * shape.heads }],
});

export const glm4Moe = moe({
  types: ["glm4_moe"],
  defaults: {
    hidden: 4096,
    layers: 46,
    vocab: 151552,
    ffn: 10944,
    heads: 96,
    kvHeads: 8,
    headDim: "split",
    tied: false,
  },
  traits: (config) => ({
    qkNorm: config.flag("use_qk_norm", false) ? "per-head" : "none",
    bias: { ...NO_BIAS, qkv: config.flag("attention_bias", false) },
    rotary: config.number("partial_rotary_factor", 0.5),
  }),
  side: (config, shape) => {
    const width = config.size("moe_intermediate_size", 1408);
    return {
      ...firstDense(config, shape.layers, 1),
      experts: config.size(LOCAL_EXPERTS.toReversed(), 128),
      perToken: config.size("num_experts_per_tok", 8),
      width,
      sharedWidth: width * config.sizeOrZero("n_shared_experts", 1),
    };
  },
});

/** ERNIE 4.5: experts from `moe_layer_start_index` on; the routing correction is a parameter. */
export const ernieMoe = moe({
  types: ["ernie4_5_moe"],
  defaults: {
    hidden: 2560,
    layers: 28,
    vocab: 103424,
    ffn: 12288,
    heads: 20,
    kvHeads: 4,
    headDim: "split",
    tied: true,
  },
  traits: (config) => {
    const bias = config.flag("use_bias", false);
    return { bias: { qkv: bias, out: bias, mlp: bias, head: bias } };
  },
  side: (config, shape) => {
    const start = Math.max(0, config.number("moe_layer_start_index", 1));
    const end = config.number("moe_layer_end_index", -1);
    const last = end < 0 ? shape.layers - 1 : end;
    const every = Math.max(1, Math.trunc(config.number("moe_layer_interval", 1)));
    let sparse = 0;
    for (let layer = 0; layer < shape.layers; layer++) {
      if ((layer + 1) % every === 0 && layer >= start && layer <= last) sparse++;
    }
    const width = config.size("moe_intermediate_size", 1536);
    const experts = config.size("moe_num_experts", 64);
    return {
      sparseLayers: sparse,
      denseLayers: shape.layers - sparse,
      experts,
      perToken: config.size("moe_k", 6),
      width,
      sharedWidth: width * config.sizeOrZero("moe_num_shared_experts", 2),
      routerExtra: experts,
      denseBias: config.flag("use_bias", false),
    };
  },
});

export const MOE: readonly FamilyReader[] = [
  mixtral,
  qwen2Moe,
  qwen3Moe,
  qwen3VlMoeText,
  olmoe,
  graniteMoe,
  phimoe,
  minimaxM2,
  gptOss,
  glm4Moe,
  ernieMoe,
];
