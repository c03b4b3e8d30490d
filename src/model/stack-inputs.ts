/** LayerNorm with or without bias, T5's, which scales only, or an RMS norm. */
export type StackNorm = "layer" | "layer-no-bias" | "t5" | "rms";

export interface TextInput {
  readonly kind: "text";
  readonly vocab: number;
  /** Width of the table. */
  readonly width: number;
  /** The table is that of the stack before. */
  readonly sharesTable: boolean;
  /** A learned table of positions, looked up once for the batch or for each sample. */
  readonly positions: {
    readonly rows: number;
    readonly perSample: boolean;
    /** Rows that no token gets (RoBERTa's and BART's first two). */
    readonly reserved: number;
    /** Sines that no training changes (Pegasus). */
    readonly frozen?: boolean;
    /** The same, and no parameter (M2M-100). */
    readonly buffer?: boolean;
  } | null;
  /** Rows of a table of token types; 0 without one. */
  readonly tokenTypes: number;
  /** Multiplied by a number (BART). */
  readonly scaled: boolean;
  readonly norm: StackNorm | null;
  /** Multiplied by the mask, padded or not (DeBERTa). */
  readonly masked: boolean;
  readonly dropout: boolean;
  /** From the table's width to the layers'. */
  readonly projection: { readonly bias: boolean; readonly beforeNorm: boolean } | null;
  /** Most tokens that the stack takes; a longer sequence is cut. */
  readonly longest: number | null;
}

/** An image cut into patches, with tokens of its own before them. */
export interface PatchInput {
  readonly kind: "patches";
  readonly patches: number;
  /** Values of a patch, all channels. */
  readonly pixels: number;
  /** Pixels to a side of it; absent = of three channels and square. */
  readonly side?: number;
  /** Values of an image, all channels. */
  readonly image: number;
  readonly bias: boolean;
  /** Class token and, without positions, registers. */
  readonly classToken: boolean;
  readonly registers: number;
  /** Tiles that pass as images of their own; absent = 1. */
  readonly tiles?: number;
  /**
   * A table with a row a patch is added (absent); the same, looked up for each sample (Idefics); none; or one of
   * `positionRows` whose rows are mixed for each patch of an image of any size (Qwen3-VL).
   */
  readonly positions?: "looked-up" | "none" | "mixed";
  readonly positionRows?: number;
  /** Patches are laid out as rows and pass a linear layer, not a convolution. */
  readonly unfolded?: boolean;
  /** Pixels are gathered from a larger tensor first: a copy (tiles of several samples). */
  readonly gathered?: boolean;
  /** The patches' making is among the modules whose output is made to need a gradient; absent = it is. */
  readonly unhooked?: boolean;
  /** Patches are put into the order of windows (Qwen2.5-VL). */
  readonly reordered?: boolean;
  /** A token for masked patches that no usual step needs. */
  readonly maskToken: boolean;
  readonly norm: StackNorm | null;
  readonly dropout: boolean;
}

/** A spectrogram through two convolutions (Whisper). */
export interface SoundInput {
  readonly kind: "sound";
  readonly mels: number;
  /** Positions after the second convolution, which halves the frames; their table is not trained. */
  readonly positions: number;
  readonly dropout: boolean;
}
