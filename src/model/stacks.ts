import type { PatchInput, SoundInput, StackNorm, TextInput } from "./stack-inputs.ts";
import type { DecoderShape } from "./types.ts";

export type { PatchInput, SoundInput, StackNorm, TextInput } from "./stack-inputs.ts";

/**
 * Encoders, encoder-decoders and pairs of towers, as far as their training memory is concerned: what is fed to each
 * stack of layers, the layers, and what the loss is taken of. Lengths are elements. Families that differ say so
 * here; nothing below these types knows a family's name.
 */
export interface StackModel {
  /** In the order in which they run. */
  readonly stacks: readonly Stack[];
  readonly head: StackHead;
  /** What of a recipe was never measured, or does not run, for this family. */
  readonly limits: StackLimits;
}

export interface StackLimits {
  /** Attention runs as plain products whatever is asked: the family has no kernel for its scores. */
  readonly eagerOnly: boolean;
  /** The flash kernel has no place for what the family adds to its scores. */
  readonly noFlash: boolean;
  /** transformers refuses to checkpoint it. */
  readonly noCheckpointing: boolean;
  /** What the step measurer cannot run of it. */
  readonly unmeasured: readonly ("lora" | "flash")[];
  /** Nothing of it is told by the length of a text. */
  readonly lengthless: boolean;
}

/** Layers of one kind after the other, with what comes before the first and after the last. */
export interface Stack {
  readonly input: TextInput | PatchInput | SoundInput;
  readonly block: StackBlock;
  readonly runs: readonly StackRun[];
  readonly finalNorm: StackNorm | null;
  /** Dropout on what the stack returns (T5). */
  readonly finalDropout: boolean;
  /** Its layers attend to what the stack before it returned. */
  readonly crosses: boolean;
  readonly causal: boolean;
  /** The rows of the table live on under a name while the stack runs, and not what became of them. */
  readonly keepsLookup: boolean;
}

/** Layers that are alike. */
export interface StackRun {
  readonly layers: number;
  /** They share one set of weights (ALBERT). */
  readonly shared: boolean;
  /** Tokens to either side that attention sees; null = all. */
  readonly window: number | null;
  /** A norm stands before attention (ModernBERT's first layer has none). */
  readonly normed: boolean;
  /** Attention is within blocks of so many tokens: tiles of an image, windows; absent = all see all. */
  readonly chunk?: number;
}

export interface StackBlock {
  readonly hidden: number;
  readonly heads: number;
  readonly headDim: number;
  readonly ffn: number;
  readonly norm: StackNorm;
  /** Norms before each part, or after its sum with the residual. */
  readonly placement: "pre" | "post";
  readonly attention: StackAttention;
  readonly mlp: DecoderShape["mlp"];
  readonly activation: DecoderShape["activation"] | "quick-gelu";
  readonly biases: {
    readonly query: boolean;
    readonly key: boolean;
    readonly value: boolean;
    readonly out: boolean;
    readonly mlp: boolean;
  };
  readonly dropout: {
    readonly attention: boolean;
    /** On the output of the attention, of the feed-forward, and within the latter. */
    readonly attended: boolean;
    readonly fed: boolean;
    readonly inner: boolean;
  };
  /** A vector multiplied into each part's output (DINOv2), and whole samples dropped. */
  readonly layerScale: boolean;
  readonly dropPath: boolean;
  /** Inner results live under a name until their part of the layer returns (BERT and its copies). */
  readonly keepsInner: boolean;
  /** Which projections LoRA on "attention" adapts, by their names. */
  readonly adapted: { readonly inputs: boolean; readonly output: boolean };
}

export interface StackAttention {
  /**
   * One matrix for queries, keys and values, which are then rotated in fp32 (ModernBERT). `packed`: rows of all
   * samples lie in one, are cut for attention and put together again (Qwen's towers). `complex`: three matrices, and a
   * product of complex numbers (Llama 4's tower).
   */
  readonly rotary: boolean | "packed" | "complex";
  /** Queries are scaled, and all three put in order by head, before the kernel is called (Whisper). */
  readonly ordered: boolean;
  /** Softmax in eager attention is asked for in fp32 and cast back. */
  readonly softmaxFull: boolean;
  /** A mask is always made for causal attention (BART). */
  readonly alwaysMasked: boolean;
  /** A cache of keys and values is filled also in training (T5's decoder). */
  readonly caches: boolean;
  /** A table of biases by distance, shared by all layers (T5, MPNet). */
  readonly positionBias: {
    readonly buckets: number;
    /** Made once for each sample and added in place, a mask being always added too (MPNet). */
    readonly perSample: boolean;
  } | null;
  /** Scores between contents and distances (DeBERTa). */
  readonly disentangled: Disentangled | null;
}

export interface Disentangled {
  /** Rows of the table of distances. */
  readonly rows: number;
  readonly normed: boolean;
  readonly contentToPosition: boolean;
  readonly positionToContent: boolean;
  /** Distances are projected by matrices of their own. */
  readonly ownProjections: boolean;
  readonly dropout: boolean;
}

export type StackHead = VocabularyHead | TokenHead | PooledHead | BareHead | ContrastiveHead;

/** Scores over a vocabulary for each token of the last stack. */
export interface VocabularyHead {
  readonly kind: "vocabulary";
  readonly vocab: number;
  /** A dense layer, an activation and a norm before the scores. */
  readonly transform: {
    readonly width: number;
    readonly bias: boolean;
    readonly activation: StackBlock["activation"];
    readonly norm: StackNorm;
  } | null;
  readonly tied: boolean;
  /** The scores have a bias; an untied head may keep a second one. */
  readonly bias: boolean;
  readonly secondBias: boolean;
  /** What is scored is multiplied by a number first (T5). */
  readonly scaled: boolean;
  /** A buffer is added to the scores (BART). */
  readonly added: boolean;
  /** Scores are cast to fp32 before the loss. */
  readonly upcast: boolean;
}

/** Scores over classes, or one for each token. */
export interface TokenHead {
  readonly kind: "tokens";
  /** A dense layer and an activation before the scores (ELECTRA's discriminator). */
  readonly dense: boolean;
  readonly dropout: boolean;
  readonly classes: number;
  readonly loss: "classes" | "binary";
}

/** Scores over classes for each sample. */
export interface PooledHead {
  readonly kind: "pooled";
  readonly pool: "first" | "masked-mean" | "first-and-mean" | "last";
  readonly dropoutBefore: boolean;
  /** A dense layer, and a norm after it. */
  readonly dense: { readonly width: number; readonly bias: boolean; readonly norm: StackNorm | null } | null;
  readonly dropout: boolean;
  readonly classes: number;
  /** LoRA on "attention" adapts the scores' matrix too, which bears one of the names. */
  readonly adapted: boolean;
}

/** No head: the mean of what the model returns stands for the loss. */
export interface BareHead {
  readonly kind: "bare";
  readonly pooler: { readonly width: number } | null;
  /** The first token is returned beside all of them (DINOv2). */
  readonly returnsFirst: boolean;
}

/** Two towers, the first of images and the second of texts, whose outputs are compared. */
export interface ContrastiveHead {
  readonly kind: "contrastive";
  /** Width of what is compared. */
  readonly width: number;
  /** A text is one of its rows, projected with a bias (SigLIP) or without (CLIP). */
  readonly textBias: boolean;
  /** An image: its class token, normed and projected (CLIP), or an attention pool (SigLIP). */
  readonly image: "class" | "attention-pool";
  /** Scalars that are trained: a scale, and a bias. */
  readonly scalars: number;
}
