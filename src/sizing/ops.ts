import { Arithmetic, FP32, HALF } from "./arithmetic.ts";
import { KINDS, type Storage } from "./memory.ts";
import type { Leaf, Tensor } from "./tape.ts";

export { FP32, HALF } from "./arithmetic.ts";

const INT64 = 8;

/** The operators that autocast treats on their own, and those with a kernel and a backward of their own. */
export class Ops extends Arithmetic {
  /** Tensors that autocast made of parameters and keeps until the model's forward returns. */
  private cached: Leaf[] = [];

  /** 16-bit is fp16, which `softmax` takes as it is when it is asked for fp32. */
  fp16 = false;

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

  /**
   * A parameter as an operand: under autocast its 16-bit copy, kept for the forward when it is trained. The
   * caller's own is a copy that is not kept.
   */
  protected parameter(leaf: Leaf): Tensor {
    if (!this.autocast || leaf.width !== FP32) return leaf;
    if (leaf.cast !== null) return leaf.cast;
    const made = this.record(this.like(leaf, HALF, KINDS.casts), [leaf], [], () => [this.like(leaf)]);
    if (!leaf.trainable) return made;
    leaf.cast = made;
    this.cached.push(leaf);
    return made;
  }

  /** Lets go what `parameter` made for the caller alone. */
  protected dropOperand(leaf: Leaf, operand: Tensor): void {
    if (operand !== leaf && operand !== leaf.cast) this.drop(operand);
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
    for (let i = count; i < this.cached.length; i++) {
      const copy = this.cached[i]!.cast;
      if (copy?.storage.refs === 1) bytes += copy.storage.fixed;
    }
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
    const trained = weight.trainable;
    const node = this.node(
      [input, w, b],
      // The weights themselves are there all along, yet they count where a recomputation looks for its end.
      [trained ? input.storage : null, needsInput ? w.storage : null],
      (grad) => {
        const gradWeight = trained ? this.like(weight, input.width) : null;
        const gradInput = needsInput ? this.like(input) : null;
        return [gradInput, gradWeight, bias?.trainable ? this.passed(grad) : null];
      },
    );
    const result = this.outcome(node, this.perToken(features, input.width));
    this.drop(input);
    this.dropOperand(weight, w);
    if (bias !== null) this.dropOperand(bias, b!);
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
        trained && weight !== null ? this.like(weight, input.width) : null,
        trained && bias !== null ? this.like(bias, input.width) : null,
      ],
    );
    this.drop(input, mean, deviation);
    return result;
  }

  /** `softmax(x, dtype)`; bf16 input is cast first, fp16 input is read by a kernel that returns fp32. Saves its result. */
  softmax(x: Tensor, width: number): Tensor {
    if (this.fp16 && x.width === HALF && width === FP32) {
      const out = this.like(x, FP32);
      return this.record(out, [x], [out.storage], () => [this.like(x)]);
    }
    const input = this.cast(x, width);
    const out = this.like(input);
    const result = this.record(out, [input], [out.storage], this.alike);
    this.drop(input);
    return result;
  }

  /** Batched product `a @ b` with `per` result elements a sample; operands are saved as they are. */
  batched(a: Tensor, b: Tensor, per: number): Tensor {
    const left = this.lowered(a);
    const right = this.lowered(b);
    const out = this.tensor(0, per, Math.max(left.width, right.width));
    const needsLeft = this.needsGrad(left);
    const needsRight = this.needsGrad(right);
    const result = this.record(
      out,
      [left, right],
      [needsRight ? left.storage : null, needsLeft ? right.storage : null],
      () => [needsLeft ? this.like(left) : null, needsRight ? this.like(right) : null],
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
    const probs = this.record(logProbs, [upcast], [logProbs.storage], this.alike);
    const scalar = this.tensor(1, 0, FP32);
    const loss = this.record(scalar, [probs], [probs.storage, labels.storage], () => [this.like(probs)]);
    this.drop(probs, padded, labels, upcast);
    return loss;
  }
}
