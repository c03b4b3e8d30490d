import type { Envelope } from "./envelope.ts";
import { KINDS, type Kind, type Storage, type Value } from "./memory.ts";
import { type Backward, type Leaf, Tape, type Tensor } from "./tape.ts";

/** Bytes of an element. */
export const FP32 = 4;
export const HALF = 2;
const BYTE = 1;

/** A number that autograd saves; it takes no device memory. */
const NUMBER: Storage = { fixed: 0, per: 0, refs: 1, kind: KINDS.inputs };

/**
 * The elementwise operators as autograd sees them: what each allocates, saves and frees. Their names are
 * PyTorch's. Operands are borrowed, results are owned by the caller.
 */
export class Arithmetic extends Tape {
  constructor(
    envelope: Envelope,
    /** Tokens of a sample. */
    readonly tokens: number,
    /** Whether the forward runs under autocast to a 16-bit type. */
    public autocast: boolean,
    /** The batch is one sample, so that heads of one sample are viewed where those of several are copied. */
    public single = false,
  ) {
    super(envelope);
  }

  /** Backward of most operators: a new tensor like the gradient that came. */
  protected readonly alike: Backward = (grad) => [this.like(grad)];
  /** Backward of a sum with what needs no gradient: the one that came. */
  private readonly passing: Backward = (grad) => [this.passed(grad)];
  /** Backward of a sum of two. */
  private readonly passingTwice: Backward = (grad) => [this.passed(grad), this.passed(grad)];
  /** Backward in a formula of three steps: two intermediate results beside the last. */
  private readonly threeSteps: Backward = (grad) => [this.likeAfter(2, grad)];
  private readonly sixSteps: Backward = (grad) => [this.likeAfter(5, grad)];

  /** A tensor of `width` elements a token. */
  perToken(features: number, bytes: number): Tensor {
    return this.tensor(0, features * this.tokens, bytes);
  }

  /** A new tensor of as many elements. */
  like(of: Value, width: number = of.width, kind: number = this.kind): Tensor {
    return this.tensor(of.fixed, of.per, width, kind);
  }

  /** `like` of an operator in several steps: so many intermediate results live until the last one is there. */
  private likeAfter(intermediates: number, of: Value): Tensor {
    const result = this.like(of);
    const { fixed, per } = result.storage;
    this.workspace(intermediates * fixed, intermediates * per);
    return result;
  }

  protected passed(grad: Value): Value {
    this.retain(grad.storage);
    return grad;
  }

  /** `x.to(dtype)`: the same tensor where the dtype is already that. */
  cast(x: Tensor, width: number): Tensor {
    if (x.width === width) return this.alias(x);
    return this.record(this.like(x, width), [x], [], (grad) => [this.like(grad, x.width)]);
  }

  /** What autocast makes of an operand of an operator that it runs in fp32. */
  raised(x: Tensor): Tensor {
    return this.autocast ? this.cast(x, FP32) : this.alias(x);
  }

  /** Lookup in a table by ids that the caller holds. */
  embedding(table: Leaf, features: number, perSample: boolean): Tensor {
    const elements = features * this.tokens;
    const out = perSample ? this.tensor(0, elements, table.width) : this.tensor(elements, 0, table.width);
    return this.record(out, [table], [], (grad) => [this.like(table, grad.width)]);
  }

  /** Sum of two tensors, the larger one first. */
  addition(a: Tensor, b: Tensor): Tensor {
    return this.record(this.like(a, Math.max(a.width, b.width)), [a, b], [], this.passingTwice);
  }

  /** `x + bias`, the bias as it is stored. */
  biased(x: Tensor, bias: Leaf): Tensor {
    return this.record(this.like(x, Math.max(x.width, bias.width)), [x, bias], [], (grad) => [
      this.passed(grad),
      bias.trainable ? this.passed(grad) : null,
    ]);
  }

  /** `a += b`: the storage of `a`, with both histories. */
  inPlaceAddition(a: Tensor, b: Tensor): Tensor {
    this.retain(a.storage);
    return this.record(a, [a, b], [], this.passingTwice);
  }

  /** Product of two tensors, the larger one first. */
  product(a: Tensor, b: Tensor): Tensor {
    const needsA = this.needsGrad(a);
    const needsB = this.needsGrad(b);
    const node = this.node([a, b], [needsB ? a.storage : null, needsA ? b.storage : null], (grad) => [
      needsA ? this.like(grad, Math.max(grad.width, b.width)) : null,
      needsB ? this.like(grad, Math.max(grad.width, a.width)) : null,
    ]);
    return this.outcome(node, this.like(a, Math.max(a.width, b.width)));
  }

  /** Product with a parameter of one element a feature. */
  scaledBy(x: Tensor, weight: Leaf): Tensor {
    const needs = this.needsGrad(x);
    const { trainable } = weight;
    const node = this.node([x, weight], [trainable ? x.storage : null], (grad) => [
      needs ? this.like(grad) : null,
      trainable ? this.like(grad, Math.max(grad.width, x.width)) : null,
    ]);
    return this.outcome(node, this.like(x, Math.max(x.width, weight.width)));
  }

  /** Product or quotient with a number. */
  scaled(x: Tensor): Tensor {
    // The number is saved as a tensor of one element on the host.
    return this.outcome(this.node([x], [NUMBER], this.alike), this.like(x));
  }

  /** `x *= number`: the storage of `x`; its backward is a new tensor. */
  inPlaceScaled(x: Tensor): Tensor {
    this.retain(x.storage);
    return this.record(x, [x], [NUMBER], this.alike);
  }

  /** Sum with a number: nothing is saved and the gradient passes. */
  shifted(x: Tensor): Tensor {
    return this.record(this.like(x), [x], [], this.passing);
  }

  /** `torch.pow(x, number)`; fp32 under autocast. */
  power(x: Tensor): Tensor {
    const raised = this.raised(x);
    const out = this.record(this.like(raised), [raised], [raised.storage], this.threeSteps);
    this.drop(raised);
    return out;
  }

  /** Mean over the features of each token. */
  meanOfFeatures(x: Tensor, features: number): Tensor {
    const out = this.tensor(x.fixed / features, x.per / features, x.width);
    return this.record(out, [x], [], () => [this.like(x)]);
  }

  /** `rsqrt(x + eps)` of a small tensor. */
  rsqrt(x: Tensor): Tensor {
    const out = this.like(x);
    return this.record(out, [x], [out.storage], this.threeSteps);
  }

  tanh(x: Tensor): Tensor {
    const out = this.like(x);
    return this.record(out, [x], [out.storage], this.alike);
  }

  sigmoid(x: Tensor): Tensor {
    const out = this.like(x);
    return this.record(out, [x], [out.storage], this.alike);
  }

  /** SiLU; its backward is a composite of six steps. */
  silu(x: Tensor): Tensor {
    return this.record(this.like(x), [x], [x.storage], this.sixSteps);
  }

  /** GELU, exact or by tanh, as one kernel. */
  gelu(x: Tensor): Tensor {
    return this.record(this.like(x), [x], [x.storage], this.alike);
  }

  relu(x: Tensor): Tensor {
    const out = this.like(x);
    return this.record(out, [x], [out.storage], this.alike);
  }

  /** Dropout as one kernel: a mask of a byte an element is kept. */
  dropout(x: Tensor): Tensor {
    const mask = this.like(x, BYTE);
    const out = this.record(this.like(x), [x], [mask.storage], this.alike);
    this.drop(mask);
    return out;
  }

  /** A contiguous copy: same dtype, new storage. */
  copy(x: Tensor): Tensor {
    return this.record(this.like(x), [x], [], this.passing);
  }

  /** A view whose gradient must be copied into order before it can be viewed back. */
  reordered(x: Tensor): Tensor {
    this.retain(x.storage);
    return this.record(x, [x], [], this.alike);
  }

  /** Runs a program outside autocast. */
  uncast<T>(program: () => T): T {
    const outer = this.autocast;
    this.autocast = false;
    const result = program();
    this.autocast = outer;
    return result;
  }

  /** Runs a program with its storages counted under `kind`. */
  within<T>(kind: Kind, program: () => T): T {
    const outer = this.kind;
    this.kind = KINDS[kind];
    const result = program();
    this.kind = outer;
    return result;
  }
}
