/** Elements of a tensor of one sample, dimension by dimension. */
export type Shape = readonly number[];

/** What a component does, as far as its memory is concerned. */
export type GraphKind =
  | "input"
  | "output"
  | "identity"
  | "linear"
  | "convolution"
  | "max-pool"
  | "average-pool"
  | "mean"
  | "upsample"
  | "embedding"
  | "positions"
  | "recurrent"
  | "batch-norm"
  | "layer-norm"
  | "rms-norm"
  | "rms-written"
  | "group-norm"
  | "instance-norm"
  | "attention"
  | "block"
  | "feed-forward"
  | "gated-feed-forward"
  | "experts"
  | "activation"
  | "dropout"
  | "softmax"
  | "add"
  | "multiply"
  | "concatenate"
  | "stack"
  | "rotary"
  | "custom";

/** An activation by what it keeps: its input, its result, or steps of its own. */
export type GraphActivation =
  | "relu"
  | "sigmoid"
  | "tanh"
  | "silu"
  | "gelu"
  | "gelu-new"
  | "quick-gelu"
  | "written-swish"
  | "mish"
  | "relu2"
  | "glu"
  | "prelu"
  | "keeps-input";

/** One component of a graph. */
export interface GraphLayer {
  readonly id: string;
  /** As the file writes it. */
  readonly type: string;
  readonly kind: GraphKind;
  readonly className: string | null;
  /** The module that it is part of, with dots between the names on the way; null = the model itself. */
  readonly scope: string | null;
  /** Places of the components that feed it in the graph's list, each before its own. */
  readonly inputs: readonly number[];
  /** Of one sample; null where nothing is known. */
  readonly inShape: Shape | null;
  readonly outShape: Shape;
  /** The shapes of its parameters, one tensor each. */
  readonly weights: readonly Shape[];
  /** The layer whose parameters these are where a module is called again; null = its own. */
  readonly sharedWith: number | null;
  readonly activation: GraphActivation | null;
  /** Widths and counts that the kind needs: heads, kvHeads, inner, groups, hidden, layers, directions, gates, experts, chosen. */
  readonly sizes: Readonly<Record<string, number>>;
}

/** A traced or drawn graph, its components in an order in which they can run. */
export interface GraphModel {
  readonly layers: readonly GraphLayer[];
  /** Tokens of a sample as traced, where the length of a text is free; null = the graph has no free length. */
  readonly tokens: number | null;
  /** Lengths that convolutions and pools over the tokens make of them. */
  readonly lengths: readonly number[];
  /** The output layer shares the embedding's table. */
  readonly tied: { readonly head: number; readonly table: number } | null;
  /** Numbers of a head where the graph tells them. */
  readonly headSize: number | null;
}
