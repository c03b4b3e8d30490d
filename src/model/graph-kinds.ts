import type { GraphActivation, GraphKind } from "./graph-types.ts";

/** What a type or a class is. */
export interface KindOf {
  readonly kind: GraphKind;
  readonly activation?: GraphActivation;
  /** Dimensions that a convolution or pool runs over. */
  readonly dimensions?: number;
  readonly transposed?: boolean;
  readonly gates?: number;
}

const activation = (named: GraphActivation): KindOf => ({ kind: "activation", activation: named });
const keepsInput = activation("keeps-input");
const identity: KindOf = { kind: "identity" };
const conv = (dimensions: number, transposed = false): KindOf => ({
  kind: "convolution",
  dimensions,
  transposed,
});

/**
 * Component types of neurarch-trace and of drawn graphs, and classes of PyTorch and transformers that a trace writes
 * as `customModule`; letters only, in lower case.
 */
const KNOWN: Readonly<Record<string, KindOf>> = {
  input: { kind: "input" },
  output: { kind: "output" },
  linear: { kind: "linear" },
  dense: { kind: "linear" },
  lmhead: { kind: "linear" },
  conv1d: conv(1),
  conv2d: conv(2),
  conv3d: conv(3),
  patchembed: conv(2),
  transposeconv1d: conv(1, true),
  transposeconv2d: conv(2, true),
  transposeconv3d: conv(3, true),
  convtranspose1d: conv(1, true),
  convtranspose2d: conv(2, true),
  convtranspose3d: conv(3, true),
  maxpool1d: { kind: "max-pool", dimensions: 1 },
  maxpool2d: { kind: "max-pool", dimensions: 2 },
  maxpool3d: { kind: "max-pool", dimensions: 3 },
  adaptivemaxpool1d: { kind: "max-pool", dimensions: 1 },
  adaptivemaxpool2d: { kind: "max-pool", dimensions: 2 },
  adaptivemaxpool3d: { kind: "max-pool", dimensions: 3 },
  avgpool1d: { kind: "average-pool", dimensions: 1 },
  avgpool2d: { kind: "average-pool", dimensions: 2 },
  avgpool3d: { kind: "average-pool", dimensions: 3 },
  adaptiveavgpool1d: { kind: "average-pool", dimensions: 1 },
  adaptiveavgpool2d: { kind: "average-pool", dimensions: 2 },
  adaptiveavgpool3d: { kind: "average-pool", dimensions: 3 },
  globalavgpool1d: { kind: "mean" },
  globalavgpool2d: { kind: "mean" },
  globalaveragepool: { kind: "mean" },
  upsample: { kind: "upsample" },
  upsamplingnearest2d: { kind: "upsample" },
  upsamplingbilinear2d: { kind: "upsample" },
  embedding: { kind: "embedding" },
  embeddingbag: { kind: "embedding" },
  positionalencoding: { kind: "positions" },
  positionembedding: { kind: "positions" },
  positionalembedding: { kind: "positions" },
  lstm: { kind: "recurrent", gates: 4 },
  gru: { kind: "recurrent", gates: 3 },
  rnn: { kind: "recurrent", gates: 1 },
  batchnorm: { kind: "batch-norm" },
  batchnorm1d: { kind: "batch-norm" },
  batchnorm2d: { kind: "batch-norm" },
  batchnorm3d: { kind: "batch-norm" },
  layernorm: { kind: "layer-norm" },
  rmsnorm: { kind: "rms-norm" },
  groupnorm: { kind: "group-norm" },
  instancenorm: { kind: "instance-norm" },
  instancenorm1d: { kind: "instance-norm" },
  instancenorm3d: { kind: "instance-norm" },
  multiheadattention: { kind: "attention" },
  selfattention: { kind: "attention" },
  causalattention: { kind: "attention" },
  causalselfattention: { kind: "attention" },
  attention: { kind: "attention" },
  groupedqueryattention: { kind: "attention" },
  multiqueryattention: { kind: "attention" },
  transformerblock: { kind: "block" },
  transformerencoderlayer: { kind: "block" },
  feedforward: { kind: "feed-forward" },
  mlp: { kind: "feed-forward" },
  swiglu: { kind: "gated-feed-forward" },
  geglu: { kind: "gated-feed-forward" },
  moelayer: { kind: "experts" },
  relu: activation("relu"),
  relu6: keepsInput,
  leakyrelu: keepsInput,
  elu: keepsInput,
  celu: keepsInput,
  selu: keepsInput,
  mish: activation("mish"),
  hardswish: keepsInput,
  hardsigmoid: keepsInput,
  hardtanh: keepsInput,
  softplus: keepsInput,
  softsign: keepsInput,
  logsigmoid: keepsInput,
  threshold: keepsInput,
  hardshrink: keepsInput,
  softshrink: keepsInput,
  tanhshrink: keepsInput,
  rrelu: keepsInput,
  prelu: activation("prelu"),
  gelu: activation("gelu"),
  geluactivation: activation("gelu"),
  gelutanh: activation("gelu"),
  pytorchgelutanh: activation("gelu"),
  clippedgeluactivation: activation("gelu"),
  accurategeluactivation: activation("gelu-new"),
  newgeluactivation: activation("gelu-new"),
  fastgeluactivation: activation("gelu-new"),
  bloomgelu: activation("gelu-new"),
  quickgeluactivation: activation("quick-gelu"),
  relusquaredactivation: activation("relu2"),
  silu: activation("silu"),
  swish: activation("silu"),
  siluactivation: activation("silu"),
  mishactivation: activation("mish"),
  sigmoid: activation("sigmoid"),
  tanh: activation("tanh"),
  glu: activation("glu"),
  softmax: { kind: "softmax" },
  softmax2d: { kind: "softmax" },
  logsoftmax: { kind: "softmax" },
  dropout: { kind: "dropout" },
  dropout1d: { kind: "dropout" },
  dropout2d: { kind: "dropout" },
  dropout3d: { kind: "dropout" },
  alphadropout: { kind: "dropout" },
  flatten: identity,
  unflatten: identity,
  reshape: identity,
  view: identity,
  permute: identity,
  transpose: identity,
  squeeze: identity,
  unsqueeze: identity,
  identity,
  linearactivation: identity,
  sequential: identity,
  add: { kind: "add" },
  residual: { kind: "add" },
  multiply: { kind: "multiply" },
  mul: { kind: "multiply" },
  concatenate: { kind: "concatenate" },
  concat: { kind: "concatenate" },
  cat: { kind: "concatenate" },
  stack: { kind: "stack" },
  rope: { kind: "rotary" },
  rotaryembedding: { kind: "rotary" },
};

function letters(word: string): string {
  return word.toLowerCase().replace(/[^a-z0-9]/g, "");
}

/** What a component's type says of it; null = unknown. */
export function kindOfType(type: string): KindOf | null {
  const name = letters(type);
  return Object.hasOwn(KNOWN, name) ? KNOWN[name]! : null;
}

/** What the class of a `customModule` says of it; null = unknown. `count` are its parameters. */
export function kindOfClass(
  className: string,
  count: number,
  lastIn: number,
  lastOut: number,
): KindOf | null {
  const name = letters(className);
  // transformers' Conv1D is a matrix.
  const matrix = lastIn * lastOut;
  if (matrix > 0 && /linear|dense|conv1d|proj/.test(name) && (count === matrix || count === matrix + lastOut))
    return { kind: "linear" };
  if (/(rmsnorm|t5layernorm)$/.test(name) && count === lastOut) return { kind: "rms-written" };
  if (/layernorm$/.test(name) && (count === lastOut || count === 2 * lastOut)) return { kind: "layer-norm" };
  if (/embeddings?$/.test(name) && count > 0 && lastOut > 0 && count % lastOut === 0)
    return { kind: "embedding" };
  if (count > 0) return null;
  if (/rotary/.test(name)) return { kind: "rotary" };
  // Stochastic depth of a rate that the graph does not tell.
  if (/^(stochasticdepth|droppath)|droppath$/.test(name)) return { kind: "dropout" };
  // PyTorch's own is called SiLU; who writes a Swish writes its product.
  if (name === "swish") return activation("written-swish");
  const known = Object.hasOwn(KNOWN, name) ? KNOWN[name]! : null;
  return known !== null && !["input", "output", "attention", "block"].includes(known.kind) ? known : null;
}
