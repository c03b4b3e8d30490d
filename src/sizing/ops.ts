import { Arithmetic, FP32, HALF } from "./arithmetic.ts";
import type { Storage } from "./memory.ts";
import type { Leaf, Tensor } from "./tape.ts";

export { FP32, HALF } from "./arithmetic.ts";

const INT64 = 8;

/** The operators that autocast treats on their own, and those with a kernel and a backward of their own. */
export class Ops extends Arithmetic {
  /** Tensors that autocast made of parameters and keeps until the model's forward returns. */
  private cached: Leaf[] = [];

  /** Probabilities that attention returned; a name of the layer holds them until it returns. */
  returned: Tensor | null = null;
  /** The same of the layer before, where the model's loop holds them (falcon). */
  private outlived: Tensor | null = null;

  /**
   * A layer has returned: what attention returned dies, at once or when the next layer returns. Returns what now
   * lives on by that alone and took the place of nothing.
   */
  endLayer(outlives: boolean): Storage[] {
    const before = this.outlived;
    this.drop(before);
    this.outlived = null;
    if (outlives) this.outlived = this.returned;
    else this.drop(this.returned);
    this.returned = null;
    const now = this.outlived as Tensor | null;
    return before === null && now !== null && now.storage.refs === 1 ? [now.storage] : [];
  }

  /** What autocast makes of an operand of a matrix product. */
  lowered(x: Tensor): Tensor {
    return this.autocast && x.width === FP32 ? this.cast(x, HALF) : this.alias(x);
  }

  /** A parameter as an operand: its 16-bit copy under autocast, kept for the forward when it is trained. */
  private parameter(leaf: Leaf): {
    readonly operand: Tensor | Leaf;
    readonly owned: Tensor | null;
    readonly saved: Tensor | null;
  } {
    if (!this.autocast || leaf.width !== FP32) return { operand: leaf, owned: null, saved: null };
    if (leaf.cast === null) {
      const made = this.record(this.tensor(leaf.count, 0, HALF, "casts"), [leaf], [], () => [
        this.tensor(leaf.count, 0, FP32),
      ]);
      if (!leaf.trainable) return { operand: made, owned: made, saved: made };
      leaf.cast = made;
      this.cached.push(leaf);
    }
    return { operand: leaf.cast, owned: null, saved: leaf.cast };
  }

  /** Ends autocast: the copies that no node holds die. */
  endAutocast(): void {
    for (const leaf of this.cached) {
      this.drop(leaf.cast);
      leaf.cast = null;
    }
    this.cached = [];
  }

  /** Bytes of the copies made since `count` of them were there that only the cache holds. */
  castsHeldByCache(count: number): number {
    let bytes = 0;
    for (const leaf of this.cached.slice(count))
      if (leaf.cast?.storage.refs === 1) bytes += leaf.cast.storage.fixed;
    return bytes;
  }

  castCount(): number {
    return this.cached.length;
  }

  /** `F.linear` or `Conv1D`: `features` out of each token. */
  linear(x: Tensor, weight: Leaf, bias: Leaf | null, features: number): Tensor {
    const b = bias === null ? null : this.parameter(bias);
    const w = this.parameter(weight);
    const input = this.lowered(x);
    const needsInput = this.needsGrad(input);
    const result = this.recorded(
      [input, w.operand, b?.operand ?? null],
      [weight.trainable ? input.storage : null, needsInput ? (w.saved?.storage ?? null) : null],
      () => this.perToken(features, input.width),
      ([g]) => {
        const gradWeight = weight.trainable ? this.tensor(weight.count, 0, input.width) : null;
        const gradInput = needsInput ? this.like(input) : null;
        return [gradInput, gradWeight, bias?.trainable ? this.passed(g!) : null];
      },
    );
    this.drop(input, w.owned, b?.owned ?? null);
    return result;
  }

  /** `nn.LayerNorm`: fp32 under autocast; mean and deviation in fp32. `weight` and `bias` may be absent. */
  layerNorm(x: Tensor, features: number, weight: Leaf | null, bias: Leaf | null): Tensor {
    const input = this.raised(x);
    const trained = weight?.trainable ?? false;
    const mean = this.tensor(input.fixed / features, input.per / features, FP32);
    const deviation = this.like(mean);
    const out = this.like(input);
    const needs = this.needsGrad(input);
    const result = this.record(
      out,
      [input, weight, bias],
      [input.storage, mean.storage, deviation.storage],
      () => [
        needs ? this.like(input) : null,
        trained && weight !== null ? this.tensor(weight.count, 0, input.width) : null,
        trained && bias !== null ? this.tensor(bias.count, 0, input.width) : null,
      ],
    );
    this.drop(input, mean, deviation);
    return result;
  }

  /** `softmax(x, dtype)`; 16-bit bf16 input is cast first. Saves its result. */
  softmax(x: Tensor, width: number): Tensor {
    const input = this.cast(x, width);
    const out = this.like(input);
    const result = this.record(out, [input], [out.storage], ([g]) => [this.like(g!)]);
    this.drop(input);
    return result;
  }

  /** Batched product `a @ b` with `per` result elements a sample; operands are saved as they are. */
  batched(a: Tensor, b: Tensor, per: number): Tensor {
    const left = this.lowered(a);
    const right = this.lowered(b);
    const out = this.tensor(0, per, Math.max(left.width, right.width));
    const needs = [this.needsGrad(left), this.needsGrad(right)];
    const result = this.record(
      out,
      [left, right],
      [needs[1] ? left.storage : null, needs[0] ? right.storage : null],
      () => [needs[0] ? this.like(left) : null, needs[1] ? this.like(right) : null],
    );
    this.drop(left, right);
    return result;
  }

  /** `nll_loss(log_softmax(logits))` with labels shifted by padding; returns the loss, a scalar. */
  crossEntropy(logits: Tensor): Tensor {
    const upcast = this.cast(logits, FP32);
    const padded = this.tensor(0, this.tokens + 1, INT64);
    const labels = this.tensor(0, this.tokens, INT64);
    const logProbs = this.like(upcast);
    const probs = this.record(logProbs, [upcast], [logProbs.storage], ([g]) => [this.like(g!)]);
    const scalar = this.tensor(1, 0, FP32);
    const loss = this.record(scalar, [probs], [probs.storage, labels.storage], () => [this.like(probs)]);
    this.drop(probs, padded, labels, upcast);
    return loss;
  }
}
