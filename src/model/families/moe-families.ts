import type { ConfigReader } from "../config.ts";
import type { FamilyReader } from "../family.ts";
import type { RouterShape } from "../types.ts";
import { attentionBias, MHA, NO_BIAS } from "./dense.ts";
import { everywhere, moe, sparseStep } from "./moe.ts";
import { MORE_MOE } from "./moe-more.ts";

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
  side: (config, shape) => ({ ...everywhere(config, shape, 8, 2), router: { normalized: true } }),
});

/** Softmax over all experts, then the chosen weights in the logits' dtype (the Qwen families, OLMoE). */
function qwenRouter(config: ConfigReader): Partial<RouterShape> {
  return { normalized: config.flag("norm_topk_prob", false), returns: "logits" };
}

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
    sharedGated: true,
    routerExtra: shape.hidden,
    router: qwenRouter(config),
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
    router: qwenRouter(config),
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
  side: (config, shape) => ({ ...everywhere(config, shape, 64, 8), router: qwenRouter(config) }),
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
    router: { scores: "softmax-of-chosen", returns: "input" },
    sharedFused: true,
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
  side: (config, shape) => ({ ...everywhere(config, shape, 16, 2), router: { linear: true } }),
});

export const MOE: readonly FamilyReader[] = [
  mixtral,
  qwen2Moe,
  qwen3Moe,
  qwen3VlMoeText,
  olmoe,
  graniteMoe,
  phimoe,
  ...MORE_MOE,
];
