import type { ConfigReader } from "../config.ts";
import { countParams, type FamilyReader } from "../family.ts";
import { linear } from "../parts.ts";
import type { DecoderShape, ParamGroup } from "../types.ts";
import { headed, nearest, partsStructure } from "./base.ts";

/** What is assumed of a model that mixes recurrent layers with attention. */
export const RECURRENT_AS_ATTENTION = "recurrent layers walked as attention layers";

export interface Mamba2Sizes {
  readonly heads: number;
  readonly headDim: number;
  readonly groups: number;
  readonly state: number;
  readonly kernel: number;
  readonly convBias: boolean;
  readonly bias: boolean;
}

/** A Mamba-2 mixer: one input matrix for gate, x, B, C and dt; a convolution over x, B and C; a gated norm. */
export function mamba2Mixer(hidden: number, sizes: Mamba2Sizes): number {
  const inner = sizes.heads * sizes.headDim;
  const convolved = inner + 2 * sizes.groups * sizes.state;
  return (
    linear(hidden, inner + convolved + sizes.heads, sizes.bias) +
    convolved * sizes.kernel +
    (sizes.convBias ? convolved : 0) +
    3 * sizes.heads +
    inner +
    linear(inner, hidden, sizes.bias)
  );
}

/** The shape of a recurrent model for its activations: a feed-forward of the mixer's width, no real attention. */
function recurrentShape(config: ConfigReader, hidden: number, inner: number, tied: boolean): DecoderShape {
  const layers = config.size(["num_hidden_layers", "n_layer"]);
  return {
    layers,
    hidden,
    heads: 1,
    kvHeads: 1,
    headDim: 1,
    ffn: inner,
    vocab: config.size("vocab_size", 50280),
    embedWidth: hidden,
    positionRows: 0,
    tiedHead: config.flag("tie_word_embeddings", tied),
    norm: "rms",
    normPlacement: "parallel-one",
    finalNorm: true,
    embedNorm: false,
    qkNorm: "none",
    fusedQkv: false,
    mlp: "gated",
    activation: "silu",
    bias: { qkv: false, out: false, mlp: false, head: false },
    rotary: 0,
    alibi: false,
    dropout: { attention: false, residual: false, embedding: false },
    windows: [{ layers, window: null }],
    multipliers: { embedding: false, attention: false, residual: false, logits: false },
    softcap: { attention: false, logits: false },
  };
}

const RECURRENT = [
  nearest("llama"),
  "a layer walked as a feed-forward block; the scan's states are not counted",
];

const KERNEL =
  "sized with the fused kernel of the packages mamba_ssm and causal_conv1d, from what its code keeps; without them a loop goes from token to token and needs far more";

/** Mamba and Falcon-Mamba (`modeling_mamba.py`); falcon_mamba checkpoints say themselves that they are untied. */
export const mamba: FamilyReader = {
  types: ["mamba", "falcon_mamba"],
  read(config) {
    const hidden = config.size(["hidden_size", "d_model"]);
    const inner = Math.trunc(config.ratio("expand", 2) * hidden);
    const state = config.size("state_size", 16);
    const kernel = config.size("conv_kernel", 4);
    const stated = config.raw_("time_step_rank")?.value;
    const rank =
      stated === undefined || stated === "auto" ? Math.ceil(hidden / 16) : config.size("time_step_rank");
    const bias = config.flag("use_bias", false);
    const width = config.sizeOrNull("intermediate_size") ?? inner;
    const head = headed(config, recurrentShape(config, hidden, width, true));
    const { layers, vocab, tiedHead } = head.shape;
    const mixer =
      linear(hidden, 2 * width, bias) +
      width * kernel +
      (config.flag("use_conv_bias", true) ? width : 0) +
      linear(width, rank + 2 * state, false) +
      linear(rank, width, true) +
      width * state +
      width +
      linear(width, hidden, bias);
    const groups: ParamGroup[] = [
      { name: "token embedding", count: vocab * hidden },
      { name: "mamba mixers", count: layers * mixer },
      { name: "layer norms", count: layers * hidden },
      { name: "final norm", count: hidden },
      { name: "output head", count: tiedHead ? 0 : vocab * hidden },
      ...head.outside,
    ];
    const family = config.text("model_type", "mamba");
    // Falcon-Mamba's kernel norms what it projects, and what it keeps of that was never measured.
    if (family !== "mamba" || config.text("hidden_act", "silu") !== "silu")
      return partsStructure(family, groups, head.shape, { assumed: RECURRENT, notes: head.notes });
    const walked: DecoderShape = {
      ...head.shape,
      normPlacement: "alone",
      residualFull: config.flag("residual_in_fp32", true),
      scan: {
        inner: width,
        state,
        rank,
        kernel,
        bias,
        convolutionBias: config.flag("use_conv_bias", true),
      },
    };
    return partsStructure(family, groups, walked, {
      paramsOutside: countParams(head.outside),
      notes: [...head.notes, KERNEL],
    });
  },
};

export const mamba2: FamilyReader = {
  types: ["mamba2"],
  read(config) {
    const hidden = config.size(["hidden_size", "d_model"]);
    const heads = config.size("num_heads", 128);
    const headDim = config.size("head_dim", 64);
    const head = headed(
      config.withDefaults({ vocab_size: 32768 }),
      recurrentShape(config.withDefaults({ vocab_size: 32768 }), hidden, heads * headDim, false),
    );
    const { layers, vocab, tiedHead } = head.shape;
    const mixer = mamba2Mixer(hidden, {
      heads,
      headDim,
      groups: config.size("n_groups", 8),
      state: config.size("state_size", 128),
      kernel: config.size("conv_kernel", 4),
      convBias: config.flag("use_conv_bias", true),
      bias: config.flag("use_bias", false),
    });
    const groups: ParamGroup[] = [
      { name: "token embedding", count: vocab * hidden },
      { name: "mamba mixers", count: layers * mixer },
      { name: "layer norms", count: layers * hidden },
      { name: "final norm", count: hidden },
      { name: "output head", count: tiedHead ? 0 : vocab * hidden },
      ...head.outside,
    ];
    return partsStructure("mamba2", groups, head.shape, { assumed: RECURRENT, notes: head.notes });
  },
};

export const MAMBAS: readonly FamilyReader[] = [mamba, mamba2];
