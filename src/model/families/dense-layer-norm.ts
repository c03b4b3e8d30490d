import type { FamilyReader } from "../family.ts";
import { attentionBias, dense, llamaBias, MHA, NO_BIAS } from "./dense.ts";
import { activationOf, rotaryFraction } from "./shapes.ts";

const COHERE = {
  norm: "layer-written",
  normPlacement: "parallel-one",
  parallelFromResidual: true,
  rotaryRaised: true,
  multipliers: { embedding: false, attention: false, residual: false, logits: true },
} as const;

/** Cohere: one bias-free LayerNorm before a parallel pair; per-head norms on the full width when asked. */
// Cohere's LayerNorm is written out in fp32, as OLMo 2's RMS norm is, and so are its rotations.
export const cohere = dense({
  types: ["cohere"],
  defaults: { hidden: 8192, layers: 40, vocab: 256000, ffn: 22528, heads: 64, ...MHA, tied: true },
  measured: () => true,
  traits: (config) => ({
    ...COHERE,
    qkNorm: config.flag("use_qk_norm", false) ? "full" : "none",
    bias: attentionBias(config),
  }),
});

export const cohere2 = dense({
  types: ["cohere2"],
  defaults: {
    hidden: 8192,
    layers: 40,
    vocab: 256000,
    ffn: 22528,
    heads: 64,
    ...MHA,
    tied: true,
    window: 4096,
    fullEvery: 4,
  },
  measured: () => true,
  traits: (config) => ({ ...COHERE, bias: attentionBias(config) }),
  // Only windowed layers have positions.
  fullDiffers: { rotary: 0 },
});

/** StableLM: LayerNorm with bias, one instead of two in a parallel layer; q and k norms are bias-free. */
export const stablelm = dense({
  types: ["stablelm", "stablelm_epoch"],
  measured: () => true,
  defaults: {
    hidden: 2560,
    layers: 32,
    vocab: 50304,
    ffn: 6912,
    heads: 32,
    kvHeads: 32,
    headDim: "split",
    tied: false,
  },
  traits: (config) => ({
    norm: "layer",
    normPlacement: config.flag("use_parallel_residual", false) ? "parallel-one" : "pre",
    qkNorm: config.flag("qk_layernorm", false) ? "full" : "none",
    qkNormByHead: config.flag("qk_layernorm", false),
    bias: { ...NO_BIAS, qkv: config.flag("use_qkv_bias", false) },
    rotary: rotaryFraction(config, 0.25, ["rope_pct"]),
    rotaryNamed: true,
    rotaryConcatenates: true,
  }),
});

/** Nemotron: LayerNorm whose weight is stored minus one, squared ReLU. */
export const nemotron = dense({
  types: ["nemotron"],
  measured: () => true,
  defaults: { hidden: 6144, layers: 32, vocab: 256000, ffn: 24576, heads: 48, ...MHA, tied: false },
  traits: (config) => ({
    norm: "layer-lowered",
    mlp: "plain",
    activation: "relu2",
    bias: llamaBias(config),
    rotary: rotaryFraction(config, 0.5),
    rotaryConcatenates: true,
  }),
});

/** Phi-1, 1.5 and 2: everything biased, one LayerNorm before a parallel pair; q and k norms have biases too. */
export const phi = dense({
  types: ["phi"],
  measured: (config) =>
    !config.flag("qk_layernorm", false) &&
    activationOf(config, "hidden_act", "gelu_new").assumed.length === 0,
  defaults: { hidden: 2048, layers: 24, vocab: 51200, ffn: 8192, heads: 32, ...MHA, tied: false },
  traits: (config) => ({
    dropout: {
      attention: config.number("attention_dropout", 0) > 0,
      residual: config.number("resid_pdrop", 0) > 0,
      embedding: config.number("embd_pdrop", 0) > 0,
    },
    norm: "layer",
    normPlacement: "parallel-one",
    mlp: "plain",
    activation: activationOf(config, "hidden_act", "gelu_new").activation,
    // Its name, dense, is not among those that attention's adapters go to.
    outputUnadapted: true,
    bias: { qkv: true, out: true, mlp: true, head: true },
    rotary: rotaryFraction(config, 0.5),
    rotaryNamed: true,
    rotaryConcatenates: true,
  }),
  outside: (shape, config) =>
    config.flag("qk_layernorm", false)
      ? [{ name: "query and key norms", count: shape.layers * 4 * shape.headDim }]
      : [],
  nearest: "gpt_neox",
});

/** GPT-J: one LayerNorm, no attention bias, biased head. */
export const gptj = dense({
  types: ["gptj"],
  measured: (config) => activationOf(config, "activation_function", "gelu_new").assumed.length === 0,
  defaults: { hidden: 4096, layers: 28, vocab: 50400, ffn: "4h", heads: 16, ...MHA, tied: false },
  traits: (config) => ({
    dropout: {
      attention: config.number("attn_pdrop", 0) > 0,
      residual: config.number("resid_pdrop", 0) > 0,
      embedding: config.number("embd_pdrop", 0) > 0,
    },
    norm: "layer",
    normPlacement: "parallel-one",
    mlp: "plain",
    activation: activationOf(config, "activation_function", "gelu_new").activation,
    embeddingOutlives: true,
    bias: { qkv: false, out: false, mlp: true, head: true },
  }),
  nearest: "gpt_neox",
});

/** GPT-Neo: as GPT-2, but q, k and v have no bias. */
export const gptNeo = dense({
  types: ["gpt_neo"],
  measured: (config) => activationOf(config, "activation_function", "gelu_new").assumed.length === 0,
  defaults: { hidden: 2048, layers: 24, vocab: 50257, ffn: "4h", heads: 16, ...MHA, tied: true },
  traits: (config) => ({
    positionRows: config.size("max_position_embeddings", 2048),
    dropout: {
      attention: config.number("attention_dropout", 0) > 0,
      residual: config.number("resid_dropout", 0) > 0,
      embedding: config.number("embed_dropout", 0) > 0,
    },
    norm: "layer",
    mlp: "plain",
    activation: activationOf(config, "activation_function", "gelu_new").activation,
    bias: { qkv: false, out: true, mlp: true, head: false },
    rotary: 0,
    eagerOnly: true,
    eagerStyle: "raised",
    embeddingOutlives: true,
    attentionOutlives: true,
    maskBufferRows: config.size("max_position_embeddings", 2048),
  }),
  nearest: "gpt2",
});

/** BLOOM: ALiBi instead of positions, a LayerNorm on the embedding. */
export const bloom = dense({
  types: ["bloom"],
  measured: () => true,
  defaults: { hidden: 64, layers: 2, vocab: 250880, ffn: "4h", heads: 8, ...MHA, tied: true },
  traits: (config) => ({
    ffn: 4 * config.size(["hidden_size", "n_embed"]),
    embedNorm: true,
    dropout: {
      attention: config.number("attention_dropout", 0) > 0,
      residual: config.number("hidden_dropout", 0) > 0,
      embedding: false,
    },
    norm: "layer",
    mlp: "plain",
    activation: "gelu-function",
    fusedQkv: true,
    fusedSplit: "select",
    outputUnadapted: true,
    probabilitiesOutlive: true,
    eagerStyle: "named",
    alibi: true,
    embeddingOutlives: true,
    rotary: 0,
    bias: { qkv: true, out: true, mlp: true, head: false },
  }),
  nearest: "gpt2",
});

/** StarCoder 1: GPT-2 whose keys and values are a single head under `multi_query`. */
export const gptBigcode = dense({
  types: ["gpt_bigcode"],
  measured: (config) =>
    config.flag("multi_query", true) &&
    activationOf(config, "activation_function", "gelu_pytorch_tanh").assumed.length === 0,
  defaults: {
    hidden: 768,
    layers: 12,
    vocab: 50257,
    ffn: "4h",
    heads: 12,
    kvHeads: 1,
    headDim: "split",
    tied: true,
  },
  traits: (config) => ({
    ...(config.flag("multi_query", true) ? { kvHeads: 1 } : { kvHeads: config.size("n_head", 12) }),
    positionRows: config.size("n_positions", 1024),
    norm: "layer",
    mlp: "plain",
    activation: activationOf(config, "activation_function", "gelu_pytorch_tanh").activation,
    fusedQkv: true,
    rotary: 0,
    dropout: {
      attention: config.number("attn_pdrop", 0.1) > 0,
      residual: config.number("resid_pdrop", 0.1) > 0,
      embedding: config.number("embd_pdrop", 0.1) > 0,
    },
    bias: { qkv: true, out: true, mlp: true, head: false },
    maskBufferRows: config.size("n_positions", 1024),
    maskBufferShared: true,
    outputUnadapted: true,
    embeddingOutlives: true,
    attentionOutlives: true,
  }),
  nearest: "gpt2",
});

/** Dense decoders with LayerNorms. */
export const DENSE_LAYER_NORM: readonly FamilyReader[] = [
  cohere,
  cohere2,
  stablelm,
  nemotron,
  phi,
  gptj,
  gptNeo,
  bloom,
  gptBigcode,
];
