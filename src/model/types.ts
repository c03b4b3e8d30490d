/** One weight-carrying part of a model, for `--explain` and the counts. */
export interface ParamGroup {
  readonly name: string;
  readonly count: number;
}

/**
 * A dense decoder-only transformer, as far as its training memory is concerned. Lengths are elements.
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
  /** RMS norms differ in where they cast back: `rms-late` after the weight (olmo2), `rms-plus-one` with 1 + weight (gemma). */
  readonly norm: "rms" | "rms-late" | "rms-plus-one" | "layer" | "layer-no-bias" | "layer-no-weight";
  /**
   * Where a layer's norms stand: before each block, after each block (`post`: on the block's output, olmo2;
   * `post-residual`: on the sum with the residual, opt-350m), both, or one or two before a parallel pair.
   */
  readonly normPlacement: "pre" | "post" | "post-residual" | "sandwich" | "parallel-one" | "parallel-two";
  readonly finalNorm: boolean;
  /** Norm on the embedding output (bloom). */
  readonly embedNorm: boolean;
  /** Norm on queries and keys: per head dimension, or over the full projected width. */
  readonly qkNorm: "none" | "per-head" | "full";
  /** One matrix for q, k and v (gpt2, gpt_neox, falcon, phi3). */
  readonly fusedQkv: boolean;
  readonly mlp: "gated" | "gated-fused" | "plain";
  readonly activation: "silu" | "gelu" | "gelu-tanh" | "gelu-new" | "relu" | "relu2";
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
  readonly windows: readonly { readonly layers: number; readonly window: number | null }[];
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
  /** How a fused q, k, v is taken apart: one split (default), three slices (phi3), slice and index (falcon with shared keys), three selections (falcon without). */
  readonly fusedSplit?: "split" | "slices" | "shared-index" | "select";
  /** Shared keys and values are copied to all query heads before attention (falcon's new architecture). */
  readonly sharedKeysExpanded?: boolean;
  /** Of two norms before a parallel pair, both run before either block (falcon's new architecture). */
  readonly parallelNormsFirst?: boolean;
  /** Attention calls the kernel itself instead of through transformers' interface (falcon). */
  readonly callsKernelDirectly?: boolean;
  /** A mask is always made, so the flash kernel is never taken under sdpa (falcon). */
  readonly alwaysMasked?: boolean;
  /** Biases are added by an operation of their own (falcon). */
  readonly splitBiases?: boolean;
  /** The attention's output projection is not among the names that "attention" LoRA adapts (gpt2, gpt_neox, falcon). */
  readonly outputUnadapted?: boolean;
  /** Queries are scaled before attention, as an operation of its own (opt). */
  readonly queryScaledFirst?: boolean;
  /** How eager attention treats dtypes: softmax in fp32 and back (default), `plain` in its own dtype (gpt2), `in-place` scaling and no cast back (falcon). */
  readonly eagerStyle?: "plain" | "in-place";
  /** Rotated heads are concatenated with an unrotated rest even where there is none (phi3, gpt_neox). */
  readonly rotaryConcatenates?: boolean;
  /** Soft-capping of scores (runs eager) and of logits (gemma2). */
  readonly softcap: { readonly attention: boolean; readonly logits: boolean };
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
}
