import { FP32 } from "../ops.ts";
import { StackOps } from "../stacks/ops.ts";
import type { Leaf, Tensor } from "../tape.ts";

const INT64 = 8;

/** Operators of convolutional and recurrent nets beside those of transformers. */
export class GraphOps extends StackOps {
  /** Runs a program over samples of so many tokens: attention asks for it. */
  at<T>(tokens: number, program: () => T): T {
    const own = this as { tokens: number };
    const outer = own.tokens;
    own.tokens = tokens;
    const result = program();
    own.tokens = outer;
    return result;
  }

  /** `per` elements a sample, or for the whole batch where that is what `x` is. */
  shaped(like: Tensor, per: number, width: number): Tensor {
    return like.per === 0 && like.fixed > 0 ? this.tensor(per, 0, width) : this.tensor(0, per, width);
  }

  /** A convolution: its three gradients are results of one operator. */
  convolution(x: Tensor, weight: Leaf, bias: Leaf | null, per: number): Tensor {
    const b = bias === null ? null : this.parameter(bias);
    const w = this.parameter(weight);
    const input = this.lowered(x);
    const needsInput = this.needsGrad(input);
    const { width } = input;
    const node = this.node(
      [input, w, b],
      [input.storage, needsInput && w !== weight ? w.storage : null],
      () => [
        needsInput ? this.like(input) : null,
        this.like(weight, width),
        bias === null ? null : this.like(bias, width),
      ],
    );
    const result = this.outcome(node, this.shaped(x, per, width));
    this.drop(input);
    this.dropOperand(weight, w);
    if (bias !== null) this.dropOperand(bias, b!);
    return result;
  }

  /** A norm over the batch: statistics in fp32, result and gradient as the input. */
  batchNorm(x: Tensor, weight: Leaf | null, bias: Leaf | null, features: number, perSample = 0): Tensor {
    const mean = this.tensor(perSample > 0 ? 0 : features, perSample, FP32);
    const deviation = this.like(mean);
    const out = this.record(
      this.like(x),
      [x, weight, bias],
      [x.storage, mean.storage, deviation.storage],
      () => [
        this.needsGrad(x) ? this.like(x) : null,
        weight === null ? null : this.like(weight),
        bias === null ? null : this.like(bias),
      ],
    );
    this.drop(mean, deviation);
    return out;
  }

  /** A norm over groups of channels: fp32 under autocast. */
  groupNorm(x: Tensor, weight: Leaf | null, bias: Leaf | null, groups: number): Tensor {
    const input = this.raised(x);
    const out = this.batchNorm(input, weight, bias, 0, groups);
    this.drop(input);
    return out;
  }

  /** `F.rms_norm` as one kernel. */
  rmsNorm(x: Tensor, features: number, weight: Leaf | null): Tensor {
    const input = this.raised(x);
    const deviation = this.tensor(input.fixed / features, input.per / features, FP32);
    const out = this.record(this.like(input), [input, weight], [input.storage, deviation.storage], () => [
      this.like(input),
      weight === null ? null : this.like(weight, input.width),
    ]);
    this.drop(input, deviation);
    return out;
  }

  /** The largest of each window, with where it was. */
  maxPool(x: Tensor, per: number): Tensor {
    const places = this.shaped(x, per, INT64);
    const out = this.record(this.shaped(x, per, x.width), [x], [x.storage, places.storage], this.alike1(x));
    this.drop(places);
    return out;
  }

  /** The mean of each window, which keeps its input. */
  averagePool(x: Tensor, per: number): Tensor {
    return this.record(this.shaped(x, per, x.width), [x], [x.storage], this.alike1(x));
  }

  /** An operator that keeps nothing and whose gradient is as large as its input. */
  remade(x: Tensor, per: number): Tensor {
    return this.record(this.shaped(x, per, x.width), [x], [], this.alike1(x));
  }

  /** Other dimensions of the same elements, or fewer of them, as a view; a gradient is written into zeros of the whole. */
  selected(x: Tensor, per: number): Tensor {
    const view = x.per === 0 ? this.view(x, per, 0) : this.view(x, 0, per);
    return this.record(view, [x], [], (grad) => [this.like(x, grad.width)]);
  }

  /** An activation of one kernel that keeps its input. */
  keepsInput(x: Tensor): Tensor {
    return this.record(this.like(x), [x], [x.storage], this.alike);
  }

  /** Tensors one after another; each gradient is a view. */
  concatenation(parts: readonly Tensor[], per: number): Tensor {
    const width = Math.max(...parts.map((one) => one.width));
    return this.record(this.tensor(0, per, width), parts, [], (grad) =>
      parts.map((part) => this.view(grad, part.fixed, part.per)),
    );
  }

  private alike1(x: Tensor) {
    return () => [this.like(x)];
  }
}
