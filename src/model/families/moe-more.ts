import type { FamilyReader } from "../family.ts";
import { attentionBias, NO_BIAS } from "./dense.ts";
import { everywhere, firstDense, LOCAL_EXPERTS, moe } from "./moe.ts";
import { rotaryFraction } from "./shapes.ts";

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
  traits: (config) => {
    const rotated = config.sizeOrNull("rotary_dim");
    const headDim = config.size("head_dim", 128);
    const rotary = rotated === null ? rotaryFraction(config, 1) : rotated / headDim;
    return { qkNorm: "full", rotary, rotaryConcatenates: true };
  },
  side: (config, shape) => ({
    ...everywhere(config, shape, 256, 8),
    router: { scores: "sigmoid", normalized: true },
  }),
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
  traits: (config) => ({
    bias: attentionBias(config, true),
    norm: "rms-late",
    rotaryFull: false,
    rotaryPaired: true,
    sinks: true,
  }),
  side: (config, shape) => {
    const experts = config.size(LOCAL_EXPERTS, 128);
    return {
      ...everywhere(config, shape, 128, 4),
      bias: true,
      clamped: true,
      routerExtra: experts,
      router: { scores: "softmax-of-chosen", bias: true },
    };
  },
  inside: (shape) => [{ name: "attention sinks", count: shape.layers * shape.heads }],
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
    rotary: rotaryFraction(config, 0.5),
    rotaryConcatenates: true,
  }),
  side: (config, shape) => {
    const width = config.size("moe_intermediate_size", 1408);
    return {
      ...firstDense(config, shape.layers, 1),
      router: {
        scores: "sigmoid",
        normalized: config.flag("norm_topk_prob", true),
        scaled: true,
        full: true,
        groups: config.size("n_group", 1),
      },
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
    return { bias: { qkv: bias, out: bias, mlp: bias, head: bias }, rotaryRaised: true };
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
      sharedFirst: true,
      router: { corrected: true, full: true, normalized: true, returns: "input" },
    };
  },
});

/** Mixtures of experts whose routers are unlike Mixtral's. */
export const MORE_MOE: readonly FamilyReader[] = [minimaxM2, gptOss, glm4Moe, ernieMoe];
