/** A mixture of experts: every token passes `perToken` of `count` gated blocks, each `width` wide. */
export interface ExpertsShape {
  readonly count: number;
  readonly perToken: number;
  readonly width: number;
  /** Experts' own biases (gpt_oss). */
  readonly bias: boolean;
  /** The block that every token passes beside them; `gated` by a sigmoid of its own, and runs first (qwen2_moe), as an ungated one may (ernie); `fused` = one matrix for gate and up (granite). */
  readonly shared: {
    readonly width: number;
    readonly gated: boolean;
    readonly first?: boolean;
    readonly fused?: boolean;
  } | null;
  /** The experts stand beside the dense block, on the residual, with norms of their own (gemma4). */
  readonly beside?: boolean;
  /** Every token passes every expert, weighted by zero where it was not chosen (llama4). */
  readonly everyToken?: boolean;
  /** Gate and up are clamped and interleaved (gpt_oss). */
  readonly clamped?: boolean;
  readonly router: RouterShape;
}

/** How a token's experts and their weights are found. */
export interface RouterShape {
  /** Softmax over all, softmax over the chosen ones only, a sigmoid with a buffer that corrects the choice, or a sigmoid of the chosen ones. */
  readonly scores: "softmax" | "softmax-of-chosen" | "sigmoid" | "sigmoid-of-chosen";
  /** The weights of the chosen experts are divided by their sum. */
  readonly normalized: boolean;
  /** They are multiplied by a number. */
  readonly scaled: boolean;
  /** The dtype in which they reach the experts. */
  readonly returns: "scores" | "logits" | "input";
  /** The router's matrix is fp32 whatever the weights are. */
  readonly full: boolean;
  readonly bias: boolean;
  /** Experts are chosen by corrected scores, the correction being a frozen parameter, all outside autocast (ernie). */
  readonly corrected?: boolean;
  /** The router is a linear layer that returns several values, which LoRA on all linear layers cannot wrap. */
  readonly linear?: boolean;
  /** Experts are chosen from the best of so many groups; null = from all. */
  readonly groups: number | null;
}

/** A gated convolution over `kernel` tokens, channel by channel. */
export interface ShortConvolutionShape {
  readonly kernel: number;
  readonly bias: boolean;
}

/** A gated delta net: heads of queries and keys, of values, and a convolution over all of them. */
export interface DeltaNetShape {
  readonly keyHeads: number;
  readonly valueHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
  readonly kernel: number;
  /** q, k, v and z come of one matrix, ordered by key head (qwen3_next). */
  readonly fused: boolean;
}

/** A selective scan over the tokens (Mamba), by its fused kernel. */
export interface ScanShape {
  /** Channels, states a channel, and the rank of the time steps. */
  readonly inner: number;
  readonly state: number;
  readonly rank: number;
  readonly kernel: number;
  readonly bias: boolean;
  readonly convolutionBias: boolean;
}

/** Multi-head latent attention. Ranks are those of the latents, the rest is by head. */
export interface LatentShape {
  /** null = queries come of the hidden state directly. */
  readonly queryRank: number | null;
  readonly keyRank: number;
  /** Features of a query and key that are not rotated, and that are. */
  readonly nope: number;
  readonly rope: number;
  readonly value: number;
  /** An index of its own picks the tokens that a query sees (`modeling_glm_moe_dsa.py`). */
  readonly index?: { readonly heads: number; readonly dim: number; readonly kept: number };
  /** How features are paired: neighbours, the two halves, or as complex numbers in fp32. */
  readonly rotation: "interleaved" | "halves" | "complex";
}
