import type {
  DeltaNetShape,
  ExpertsShape,
  LatentShape,
  ScanShape,
  ShortConvolutionShape,
} from "./block-types.ts";

import type { GraphModel } from "./graph-types.ts";
import type { StackModel } from "./stacks.ts";
import type { Tower } from "./tower-types.ts";

export type {
  DeltaNetShape,
  ExpertsShape,
  LatentShape,
  RouterShape,
  ScanShape,
  ShortConvolutionShape,
} from "./block-types.ts";

/** One weight-carrying part of a model, for `--explain` and the counts. */
export interface ParamGroup {
  readonly name: string;
  readonly count: number;
}

/**
 * A decoder-only transformer, as far as its training memory is concerned. Lengths are elements.
 * Families that differ say so here; nothing below this type knows a family's name.
 */
export interface DecoderShape {
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** Width of the feed-forward block. */
  readonly ffn: number;
  readonly vocab: number;
  /** Width of the token embedding where it differs from `hidden` (opt-350m); else equal. */
  readonly embedWidth: number;
  /** Rows of a learned position table; 0 without one. */
  readonly positionRows: number;
  /** The output head shares the embedding's weights. */
  readonly tiedHead: boolean;
  /** RMS norms differ in where they cast back: `rms-late` after the weight (olmo2), `rms-plus-one` with 1 + weight (gemma). `rms-bare` has no weight, `rms-power` takes a power of the mean (gemma4). `layer-written` is a layer norm without bias, in steps and in fp32 (cohere). `layer-lowered` runs in 16 bits even under autocast (nemotron). */
  readonly norm:
    | "rms"
    | "rms-late"
    | "rms-plus-one"
    | "rms-bare"
    | "rms-power"
    | "layer"
    | "layer-no-bias"
    | "layer-no-weight"
    | "layer-written"
    | "layer-lowered";
  /**
   * Where a layer's norms stand: before each block, after each block (`post`: on the block's output, olmo2;
   * `post-residual`: on the sum with the residual, opt-350m), both, one or two before a parallel pair, or before the one
   * block that a layer has (`alone`, mamba).
   */
  readonly normPlacement:
    | "pre"
    | "post"
    | "post-residual"
    | "sandwich"
    | "parallel-one"
    | "parallel-two"
    | "alone";
  readonly finalNorm: boolean;
  /** Norm on the embedding output (bloom). */
  readonly embedNorm: boolean;
  /** Norm on queries and keys: per head dimension, or over the full projected width. */
  readonly qkNorm: "none" | "per-head" | "full";
  /** One matrix for q, k and v (gpt2, gpt_neox, falcon, phi3). */
  readonly fusedQkv: boolean;
  readonly mlp: "gated" | "gated-fused" | "plain";
  readonly activation:
    | "silu"
    | "gelu"
    | "gelu-tanh"
    | "gelu-new"
    | "gelu-fast"
    | "gelu-erf"
    | "relu"
    | "relu2"
    | "gelu-function"
    | "xielu";
  readonly bias: {
    readonly qkv: boolean;
    readonly out: boolean;
    readonly mlp: boolean;
    readonly head: boolean;
  };
  /** Fraction of each head that is rotated; 0 = no rotary positions. */
  readonly rotary: number;
  /** Attention biases by distance instead of positions (bloom, falcon-rw). */
  readonly alibi: boolean;
  /** Dropout that is on in training: a mask is kept for each. */
  readonly dropout: {
    readonly attention: boolean;
    readonly residual: boolean;
    readonly embedding: boolean /** On the attention's output, where it differs from `residual` (falcon). */;
    readonly afterAttention?: boolean;
  };
  /** Window in tokens of each layer's attention, null = full; one entry a layer kind with its number of layers. */
  readonly windows: readonly LayerRun[];
  /** Scalars multiplied in: each is an operation whose output lives (granite, gemma). */
  readonly multipliers: {
    readonly embedding: boolean;
    readonly attention: boolean;
    readonly residual: boolean;
    readonly logits: boolean;
  };
  /** The embedding's scalar is part of the embedding module (gemma). */
  readonly embeddingScaledInside?: boolean;
  /** Positions are looked up for each sample rather than once for the batch (opt). */
  readonly positionsPerSample?: boolean;
  /** How a fused q, k, v is taken apart: one split (default), three slices (phi3), slice and two selections by key head, queries copied (`grouped`, internlm2), slice and index (falcon with shared keys), three selections (falcon without). */
  readonly fusedSplit?: "split" | "slices" | "grouped" | "shared-index" | "select";
  /** Shared keys and values are copied to all query heads before attention (falcon's new architecture). */
  readonly sharedKeysExpanded?: boolean;
  /** Of two norms before a parallel pair, both run before either block (falcon's new architecture). */
  readonly parallelNormsFirst?: boolean;
  /** Attention calls the kernel itself instead of through transformers' interface (falcon). */
  readonly callsKernelDirectly?: boolean;
  /** The model's own name for the embedding's output holds it, before positions, norm and dropout, through all layers. */
  readonly embeddingOutlives?: boolean;
  /** A layer's own name for the attention's output holds it until the layer returns (gpt2). */
  readonly attentionOutlives?: boolean;
  /** The model's loop holds a layer's attention probabilities until the next layer has returned (bloom). */
  readonly probabilitiesOutlive?: boolean;
  /** A mask is always made, so the flash kernel is never taken under sdpa (falcon). */
  readonly alwaysMasked?: boolean;
  /** Biases are added by an operation of their own (falcon). */
  readonly splitBiases?: boolean;
  /** The attention's output projection is not among the names that "attention" LoRA adapts (gpt2, gpt_bigcode, gpt_neox, falcon). */
  readonly outputUnadapted?: boolean;
  /** Queries are scaled before attention, as an operation of its own (opt). */
  readonly queryScaledFirst?: boolean;
  /** How eager attention treats dtypes: softmax in fp32 and back (default), `plain` in its own dtype (gpt2), `in-place` scaling and no cast back (falcon), `raised` queries and keys (gpt_neo), `named` scores that live on (bloom). */
  readonly eagerStyle?: "plain" | "in-place" | "raised" | "named";
  /** The family has no attention kernel under sdpa: scores are always kept (gpt_neo). */
  readonly eagerOnly?: boolean;
  /** Every layer holds a causal mask of this many rows and columns, a byte each (gpt_neo). */
  readonly maskBufferRows?: number;
  /** There is one such mask for all layers (gpt_bigcode). */
  readonly maskBufferShared?: boolean;
  /** Rotated heads are concatenated with an unrotated rest even where there is none (phi3, gpt_neox). */
  readonly rotaryConcatenates?: boolean;
  /** Soft-capping of scores (runs eager) and of logits (gemma2). */
  readonly softcap: { readonly attention: boolean; readonly logits: boolean };
  /**
   * LoRA on all linear layers adapts the matrices of experts and routers and no other feed-forward block: peft maps
   * the names that these families' files had before their experts were one tensor.
   */
  readonly adaptsExperts?: boolean;
  /** Every head has a learned score beside those of the tokens (gpt_oss); only eager attention takes it. */
  readonly sinks?: boolean;
  /** Rotation of two halves against each other, put together again, instead of `rotate_half` (gpt_oss). */
  readonly rotaryPaired?: boolean;
  /** Attention's own names hold queries and keys before their rotation, and the rotated part (phi, stablelm). */
  readonly rotaryNamed?: boolean;
  /** Cosines and sines are fp32 and the result is cast back; default: where the norms are `rms-late`. */
  readonly rotaryFull?: boolean;
  /** Queries and keys are raised to fp32 before they are rotated, and cast back (cohere). */
  readonly rotaryRaised?: boolean;
  /** Of a parallel pair attention is added to the residual first, then the feed-forward (cohere). */
  readonly parallelFromResidual?: boolean;
  /** Norms on queries and keys come after their rotation (hunyuan). */
  readonly qkNormAfterRotary?: boolean;
  /** Norms on queries and keys run head by head and are put together again (stablelm). */
  readonly qkNormByHead?: boolean;
  /** Values are normed too, without weights (gemma4). */
  readonly valueNorm?: boolean;
  /** The keys before their norm are the values as well (gemma4's global layers). */
  readonly valueIsKey?: boolean;
  /** A layer's result is multiplied in place by a number (gemma4). */
  readonly layerScaled?: boolean;
  /** The norms on queries and keys have no weights (llama4). */
  readonly qkNormBare?: boolean;
  /** Queries and keys are rotated as complex numbers in fp32, token by token (llama4). */
  readonly rotaryComplex?: boolean;
  /** Cosines and sines are those of each sample (the Qwen families with images). */
  readonly rotaryPerSample?: boolean;
  /** Queries are multiplied by a number for each position, in their own dtype (ministral3). */
  readonly queryRescaled?: boolean;
  /** Queries are multiplied by a number for each position, in fp32 (llama4's layers without positions). */
  readonly queryTuned?: boolean;
  /** A mixture of experts in the place of the feed-forward block. */
  readonly experts?: ExpertsShape | undefined;
  /** Queries, keys and values by way of narrow latents; `headDim` is then that of queries and keys. */
  readonly latent?: LatentShape;
  /** A short convolution in the place of attention. */
  readonly convolution?: ShortConvolutionShape;
  /** Linear attention by the gated delta rule in the place of attention. */
  readonly delta?: DeltaNetShape;
  /** A selective scan in the place of attention. */
  readonly scan?: ScanShape;
  /** The residual is fp32 whatever the weights are (mamba). */
  readonly residualFull?: boolean;
  /** The query projection makes a gate for the attention's output beside the queries (qwen3_next). */
  readonly outputGate?: boolean;
  /** What stands in the place of the vocabulary head; `tiedHead` is then true and without meaning. */
  readonly scores?: ScoresShape;
}

/**
 * A classifier on what a decoder returns: of each sample's last token, of all tokens, or none at all (a bare model, whose
 * loss is the user's own).
 */
export interface ScoresShape {
  readonly of: "samples" | "tokens" | "nothing";
  /** 0 where there is none. */
  readonly labels: number;
  readonly bias: boolean;
  readonly dropout: boolean;
}

/** Layers that are alike. */
export interface LayerRun {
  readonly layers: number;
  readonly window: number | null;
  /** In what these layers differ from the shape they belong to: dense ones among sparse ones, other mixers. */
  readonly differs?: Partial<DecoderShape>;
}

/** One value of a config: `text_config.hidden_size`, 2560, `config key text_config.hidden_size`. */
export interface ConfigInput {
  readonly name: string;
  readonly value: unknown;
  /** `config key ...` or `default of the family`. */
  readonly from: string;
}

/** What is known of a model once its structure is read. Counts are parameters, not bytes. */
export interface Structure {
  /** `model_type` of the config, or `graph`. */
  readonly family: string;
  readonly params: number;
  /** Parameters used by one token; equal to `params` but for mixtures of experts. */
  readonly activeParams: number;
  readonly groups: readonly ParamGroup[];
  /** The decoder whose activations are walked; null when the family's activations are not known at all. */
  readonly decoder: DecoderShape | null;
  /** What is walked instead of `decoder` where a model is more than one: encoders, encoder-decoders, towers. */
  readonly stacks?: StackModel;
  /** What is walked instead where the model is a traced or drawn graph. */
  readonly graph?: GraphModel;
  /** What makes tokens for `decoder` of images. */
  readonly tower?: Tower;
  /** Parameters outside `decoder` (a vision tower, experts beyond the dense width). */
  readonly paramsOutside: number;
  /** Longest sequence the model was made for; null when the config does not say. */
  readonly contextTokens: number | null;
  /** Sizes and flags as they were read, with where each came from; absent where no config was read. */
  readonly inputs?: readonly ConfigInput[];
  /** What had to be assumed, a sentence each; empty = the family's own formulas throughout. */
  readonly assumed: readonly string[];
  /** Things worth telling under `--explain`: nested key won over a flat one, quantised storage ignored, ... */
  readonly notes: readonly string[];
}

/** A structure with where it was found. */
export interface LocatedStructure {
  readonly structure: Structure;
  /** As the job named it. */
  readonly model: string;
  readonly source: "path" | "hf-cache" | "catalogue" | "cache" | "hub";
  /** Commit of the config where the source knows it. */
  readonly revision: string | null;
  /** `config.json of <path>`, `the catalogue inside neurarch-gate`: for messages and `--explain`. */
  readonly from: string;
  /** It was named by a path, its own or that of an adapter. */
  readonly local?: boolean;
}
