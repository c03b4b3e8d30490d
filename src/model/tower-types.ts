import type { Stack, StackNorm } from "./stacks.ts";

/**
 * A tower of images beside a decoder: what it makes of an image takes the place of tokens. A sample has one image.
 * Lengths are elements.
 */
export interface Tower {
  /** Its layers; of an image of any size, as for the largest one. */
  readonly stack: Stack;
  /** Tokens of a sample that stand for its image. */
  readonly tokens: number;
  /** An image of any size: this many patches of a side are joined to one token. */
  readonly joinedSide: number | null;
  /** Tokens of a side that attention sees together in layers with a `window`. */
  readonly windowSide: number | null;
  /** Runs of layers after which a feature is taken; null = the last one's. */
  readonly taken: readonly number[] | null;
  readonly projector: Projector;
  /** Features of as many early layers are added to the outputs of the decoder's first layers. */
  readonly deepstack: DeepStack | null;
  /** A mask of each sample tells the decoder which tokens are the image's. */
  readonly masksText: boolean;
  /** Bytes a token of what the processor hands over beside ids and pixels. */
  readonly tokenBytes: number;
  readonly noFlash: boolean;
  /** The image in words: "of 336 x 336 pixels". */
  readonly image: string;
}

export interface DeepStack {
  /** Runs of the tower's layers after which they are taken. */
  readonly after: readonly number[];
  readonly merger: Merger;
}

export type Projector =
  | PooledProjector
  | LinearProjector
  | PerceptronProjector
  | ShuffleProjector
  | AdapterProjector
  | Merger;

/** Means over squares of patches, a norm, and a matrix (Gemma 3). */
export interface PooledProjector {
  readonly kind: "pooled";
}

/** One linear layer (PaliGemma). */
export interface LinearProjector {
  readonly kind: "linear";
  readonly width: number;
}

/** Two linear layers with an activation between them (LLaVA). */
export interface PerceptronProjector {
  readonly kind: "perceptron";
  /** The class token is left out. */
  readonly skipsClass: boolean;
  readonly bias: boolean;
  readonly activation: Stack["block"]["activation"];
  /** Layers whose features stand side by side. */
  readonly layers: number;
  /** A learned vector ends each row of the second view of the image (LLaVA-NeXT). */
  readonly newline: boolean;
}

/** Squares of patches side by side, through one matrix (Idefics 3). */
export interface ShuffleProjector {
  readonly kind: "shuffle";
  readonly factor: number;
}

/** The same with two layers, each with a GELU, before the matrix; the class token is left out (Llama 4). */
export interface AdapterProjector {
  readonly kind: "adapter";
  readonly factor: number;
  readonly inner: number;
}

/** Norm, squares of patches side by side, and two linear layers (Qwen). */
export interface Merger {
  readonly kind: "merger";
  readonly norm: StackNorm;
  /** Width of a patch, and of the patches side by side. */
  readonly inner: number;
  /** The norm is over what was put side by side. */
  readonly normsJoined: boolean;
  readonly width: number;
  readonly output: number;
  /** Windows are put back into the image's order afterwards. */
  readonly reorders: boolean;
}
