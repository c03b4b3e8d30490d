import type { FamilyReader } from "../family.ts";
import { attentionBias, dense, llamaBias, MHA, NO_BIAS } from "./dense.ts";
import { rotaryFraction } from "./shapes.ts";

export const smollm3 = dense({
  types: ["smollm3"],
  measured: () => true,
  defaults: {
    hidden: 2048,
    layers: 36,
    vocab: 128256,
    ffn: 11008,
    heads: 16,
    kvHeads: 4,
    headDim: "split",
    tied: true,
    windowOff: true,
  },
  traits: (config) => ({ bias: llamaBias(config) }),
});

/** `use_bias` puts a bias on every matrix (`configuration_ernie4_5.py`). */
export const ernie = dense({
  types: ["ernie4_5"],
  measured: (config) => !config.flag("use_bias", false),
  defaults: {
    hidden: 1024,
    layers: 18,
    vocab: 103424,
    ffn: 3072,
    heads: 16,
    kvHeads: 2,
    headDim: 128,
    tied: true,
  },
  traits: (config) => {
    const bias = config.flag("use_bias", false);
    return { bias: { qkv: bias, out: bias, mlp: bias, head: false } };
  },
});

/** Biases on q, k, v by default; on the output only with `attention_out_bias`. */
export const seedOss = dense({
  types: ["seed_oss"],
  measured: () => true,
  defaults: {
    hidden: 4096,
    layers: 64,
    vocab: 155136,
    ffn: 27648,
    heads: 80,
    kvHeads: 8,
    headDim: 128,
    tied: false,
  },
  traits: (config) => ({
    bias: {
      qkv: config.flag("attention_bias", true),
      out: config.flag("attention_out_bias", false),
      mlp: config.flag("mlp_bias", false),
      head: false,
    },
    dropout: {
      attention: config.number("attention_dropout", 0.1) > 0,
      residual: config.number("residual_dropout", 0.1) > 0,
      embedding: false,
    },
  }),
});

/**
 * InternLM 1 to 3 are remote code with llama's layers; the second's `wqkv` is q, k and v in one matrix, by key head.
 * Measured on llama's classes with that attention.
 */
export const internlm = dense({
  types: ["internlm", "internlm2", "internlm3"],
  measured: () => true,
  defaults: { hidden: 4096, layers: 32, vocab: 92544, ffn: 11008, heads: 32, ...MHA, tied: false },
  traits: (config) => {
    const second = config.text("model_type", "") === "internlm2";
    const third = config.text("model_type", "") === "internlm3";
    const bias = config.flag("bias", config.text("model_type", "") === "internlm");
    const qkv = third ? config.flag("qkv_bias", false) : bias;
    return {
      bias: { qkv, out: bias, mlp: third && bias, head: false },
      ...(second ? { fusedQkv: true, fusedSplit: "grouped" as const } : {}),
    };
  },
});

export const hunyuan = dense({
  types: ["hunyuan_v1_dense"],
  defaults: { hidden: 4096, layers: 32, vocab: 290943, ffn: 11008, heads: 32, ...MHA, tied: false },
  measured: () => true,
  traits: (config) => ({ qkNorm: "per-head", qkNormAfterRotary: true, bias: attentionBias(config) }),
});

export const exaone4 = dense({
  types: ["exaone4"],
  measured: () => true,
  defaults: {
    hidden: 4096,
    layers: 32,
    vocab: 102400,
    ffn: 16384,
    heads: 32,
    kvHeads: 32,
    headDim: "split",
    tied: false,
    window: 4096,
    fullEvery: 4,
  },
  traits: () => ({ qkNorm: "per-head", normPlacement: "post" }),
});

/** OLMo's LayerNorm has neither weight nor bias. */
export const olmo = dense({
  types: ["olmo"],
  measured: () => true,
  defaults: { hidden: 4096, layers: 32, vocab: 50304, ffn: 11008, heads: 32, ...MHA, tied: false },
  traits: (config) => ({ norm: "layer-no-weight", rotaryFull: true, bias: attentionBias(config) }),
});

export const olmo3 = dense({
  types: ["olmo3"],
  measured: () => true,
  defaults: {
    hidden: 4096,
    layers: 32,
    vocab: 50304,
    ffn: 11008,
    heads: 32,
    ...MHA,
    tied: false,
    window: 4096,
    fullEvery: 4,
  },
  traits: (config) => ({
    norm: "rms-late",
    normPlacement: "post",
    qkNorm: "full",
    bias: attentionBias(config),
  }),
  nearest: "olmo2",
});

export const glm = dense({
  types: ["glm"],
  measured: () => true,
  defaults: {
    hidden: 4096,
    layers: 40,
    vocab: 151552,
    ffn: 13696,
    heads: 32,
    kvHeads: 2,
    headDim: 128,
    tied: false,
  },
  traits: (config) => ({
    mlp: "gated-fused",
    bias: { ...NO_BIAS, qkv: config.flag("attention_bias", true) },
    rotary: rotaryFraction(config, 0.5),
    rotaryConcatenates: true,
  }),
});

export const glm4 = dense({
  types: ["glm4"],
  measured: () => true,
  defaults: {
    hidden: 4096,
    layers: 40,
    vocab: 151552,
    ffn: 13696,
    heads: 32,
    kvHeads: 2,
    headDim: 128,
    tied: false,
  },
  traits: (config) => ({
    mlp: "gated-fused",
    normPlacement: "sandwich",
    bias: { ...NO_BIAS, qkv: config.flag("attention_bias", true) },
    rotary: rotaryFraction(config, 0.5),
    rotaryConcatenates: true,
  }),
});

export const arcee = dense({
  types: ["arcee"],
  measured: () => true,
  defaults: { hidden: 2560, layers: 32, vocab: 32000, ffn: 18432, heads: 32, ...MHA, tied: false },
  traits: (config) => ({ mlp: "plain", activation: "relu2", bias: llamaBias(config) }),
});

/** Apertus: xIELU has two learned scalars a layer. */
export const apertus = dense({
  types: ["apertus"],
  measured: (config) => config.text("hidden_act", "xielu") === "xielu",
  defaults: { hidden: 4096, layers: 32, vocab: 131072, ffn: 14336, heads: 32, ...MHA, tied: false },
  traits: (config) => ({
    mlp: "plain",
    activation: config.text("hidden_act", "xielu") === "xielu" ? "xielu" : "gelu",
    qkNorm: "per-head",
    bias: attentionBias(config),
  }),
});

/** Dense decoders with RMS norms (and OLMo, whose norms have no weights). */
export const DENSE_RMS: readonly FamilyReader[] = [
  smollm3,
  ernie,
  seedOss,
  internlm,
  hunyuan,
  exaone4,
  olmo,
  olmo3,
  glm,
  glm4,
  arcee,
  apertus,
];
