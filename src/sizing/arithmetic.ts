import type { Envelope } from "./envelope.ts";
import type { Kind, Storage, Value } from "./memory.ts";
import { type Backward, type Leaf, Tape, type Tensor } from "./tape.ts";

/** Bytes of an element. */
export const FP32 = 4;
export const HALF = 2;
const BYTE = 1;

/** A number that autograd saves; it takes no device memory. */
const NUMBER: Storage = { fixed: 0, per: 0, refs: 1, kind: 0 };

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
    readonly single = false,
  ) {
    super(envelope);
  }

  /** A tensor of `width` elements a token. */
  perToken(features: number, bytes: number): Tensor {
    return this.tensor(0, features * this.tokens, bytes);
  }

  protected like(of: Value, width: number = of.width): Value {
    return this.tensor(of.fixed, of.per, width);
  }

  /** `like` with several temporaries that live until the result is there. */
  private likeVia(of: Value, temporaries: number, width: number = of.width): Value {
    const dead: Value[] = [];
    for (let i = 0; i < temporaries; i++) dead.push(this.like(of, width));
    const result = this.like(of, width);
    this.drop(...dead);
    return result;
  }

  protected passed(grad: Value): Value {
    this.retain(grad.storage);
    return grad;
  }

  /** `x.to(dtype)`: the same tensor where the dtype is already that. */
  cast(x: Tensor, width: number): Tensor {
    if (x.width === width) return this.alias(x);
    return this.record(this.like(x, width), [x], [], ([g]) => [this.like(g!, x.width)]);
  }

  /** What autocast makes of an operand of an operator that it runs in fp32. */
  raised(x: Tensor): Tensor {
    return this.autocast ? this.cast(x, FP32) : this.alias(x);
  }

  /** Lookup in a table by ids that the caller holds. */
  embedding(table: Leaf, features: number, perSample: boolean): Tensor {
    const elements = features * this.tokens;
    const out = perSample ? this.tensor(0, elements, table.width) : this.tensor(elements, 0, table.width);
    return this.record(out, [table], [], ([g]) => [this.tensor(table.count, 0, g!.width)]);
  }

  /** Sum of two tensors, the larger one first. */
  addition(a: Tensor, b: Tensor): Tensor {
    return this.record(this.like(a, Math.max(a.width, b.width)), [a, b], [], ([g]) => [
      this.passed(g!),
      this.passed(g!),
    ]);
  }

  /** `x + bias`, the bias as it is stored. */
  biased(x: Tensor, bias: Leaf): Tensor {
    return this.record(this.like(x, Math.max(x.width, bias.width)), [x, bias], [], ([g]) => [
      this.passed(g!),
      bias.trainable ? this.passed(g!) : null,
    ]);
  }

  /** `a += b`: the storage of `a`, with both histories. */
  inPlaceAddition(a: Tensor, b: Tensor): Tensor {
    this.retain(a.storage);
    return this.record(a, [a, b], [], ([g]) => [this.passed(g!), this.passed(g!)]);
  }

  /** Product of two tensors, the larger one first. */
  product(a: Tensor, b: Tensor): Tensor {
    const needs = [this.needsGrad(a), this.needsGrad(b)];
    return this.recorded(
      [a, b],
      [needs[1] ? a.storage : null, needs[0] ? b.storage : null],
      () => this.like(a, Math.max(a.width, b.width)),
      ([g]) => [
        needs[0] ? this.like(g!, Math.max(g!.width, b.width)) : null,
        needs[1] ? this.like(g!, Math.max(g!.width, a.width)) : null,
      ],
    );
  }

  /** Product with a parameter of one element a feature. */
  scaledBy(x: Tensor, weight: Leaf): Tensor {
    const needs = this.needsGrad(x);
    const width = Math.max(x.width, weight.width);
    return this.recorded(
      [x, weight],
      [weight.trainable ? x.storage : null],
      () => this.like(x, width),
      ([g]) => [
        needs ? this.like(g!) : null,
        weight.trainable ? this.like(g!, Math.max(g!.width, x.width)) : null,
      ],
    );
  }

  /** Product or quotient with a number. */
  scaled(x: Tensor): Tensor {
    // The number is saved as a tensor of one element on the host.
    return this.recorded(
      [x],
      [NUMBER],
      () => this.like(x),
      ([g]) => [this.like(g!)],
    );
  }

  /** Sum with a number: nothing is saved and the gradient passes. */
  shifted(x: Tensor): Tensor {
    return this.record(this.like(x), [x], [], ([g]) => [this.passed(g!)]);
  }

  /** `torch.pow(x, number)`; fp32 under autocast. */
  power(x: Tensor): Tensor {
    const raised = this.raised(x);
    const out = this.record(this.like(raised), [raised], [raised.storage], ([g]) => [this.likeVia(g!, 2)]);
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
    return this.record(out, [x], [out.storage], ([g]) => [this.likeVia(g!, 2)]);
  }

  tanh(x: Tensor): Tensor {
    const out = this.like(x);
    return this.record(out, [x], [out.storage], ([g]) => [this.like(g!)]);
  }

  /** SiLU; its backward is a composite of six steps. */
  silu(x: Tensor): Tensor {
    return this.record(this.like(x), [x], [x.storage], ([g]) => [this.likeVia(g!, 5)]);
  }

  /** GELU, exact or by tanh, as one kernel. */
  gelu(x: Tensor): Tensor {
    return this.record(this.like(x), [x], [x.storage], ([g]) => [this.like(g!)]);
  }

  relu(x: Tensor): Tensor {
    const out = this.like(x);
    return this.record(out, [x], [out.storage], ([g]) => [this.like(g!)]);
  }

  /** Dropout as one kernel: a mask of a byte an element is kept. */
  dropout(x: Tensor): Tensor {
    const mask = this.like(x, BYTE);
    const out = this.record(this.like(x), [x], [mask.storage], ([g]) => [this.like(g!)]);
    this.drop(mask);
    return out;
  }

  /** A contiguous copy: same dtype, new storage. */
  copy(x: Tensor): Tensor {
    return this.record(this.like(x), [x], [], ([g]) => [this.passed(g!)]);
  }

  /** A view whose gradient must be copied into order before it can be viewed back. */
  reordered(x: Tensor): Tensor {
    this.retain(x.storage);
    return this.record(x, [x], [], ([g]) => [this.like(g!)]);
  }

  /** Any operator: a fresh result, what it saves and its backward. */
  custom(
    result: Value,
    inputs: readonly (Tensor | Leaf | null)[],
    saved: readonly (Value | null)[],
    run: Backward,
  ): Tensor {
    return this.record(
      result,
      inputs,
      saved.map((value) => value?.storage ?? null),
      run,
    );
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
    this.kind = kind;
    const result = program();
    this.kind = outer;
    return result;
  }
}
