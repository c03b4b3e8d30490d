import type { ShortConvolutionShape } from "../../model/types.ts";
import type { Ops } from "../ops.ts";
import type { Leaf, Tensor } from "../tape.ts";
import { replaced, split } from "./attention.ts";
import { type Context, type Projection, project, projection } from "./context.ts";

/** A gated convolution over a few tokens in the place of attention (`modeling_lfm2.py`). */
export interface ShortConvolution {
  readonly kernel: number;
  readonly channels: number;
  readonly input: Projection;
  readonly weight: Leaf;
  readonly bias: Leaf | null;
  readonly output: Projection;
}

export function shortConvolution(
  context: Context,
  { kernel, bias }: ShortConvolutionShape,
): ShortConvolution {
  const { ops, weightWidth, trainBase } = context;
  const { hidden } = context.shape;
  return {
    kernel,
    channels: hidden,
    input: projection(context, hidden, 3 * hidden, bias, context.feedForward),
    weight: ops.leaf(hidden * kernel, weightWidth, trainBase),
    bias: bias ? ops.leaf(hidden, weightWidth, trainBase) : null,
    // It has the name of the attention's output.
    output: projection(context, hidden, hidden, bias, context.attention),
  };
}

export function forwardShortConvolution(ops: Ops, x: Tensor, block: ShortConvolution): Tensor {
  return ops.within("attention", () => {
    const wide = replaced(ops, project(ops, x, block.input), (t) => ops.reordered(t));
    const [before, after, inner] = split(ops, wide, [1 / 3, 1 / 3, 1 / 3]) as [Tensor, Tensor, Tensor];
    const gated = ops.product(before, inner);
    const convolved = replaced(ops, gated, (t) =>
      causalConvolution(ops, t, block.weight, block.bias, block.channels, block.kernel, false),
    );
    const y = ops.product(after, convolved);
    const out = project(ops, y, block.output);
    ops.drop(wide, before, after, inner);
    ops.drop(convolved, y);
    return out;
  });
}

/** A convolution channel by channel, padded at both ends and cut at the right one; then SiLU where asked. */
export function causalConvolution(
  ops: Ops,
  x: Tensor,
  weight: Leaf,
  bias: Leaf | null,
  channels: number,
  kernel: number,
  activated: boolean,
): Tensor {
  const asWeight = ops.cast(x, weight.width);
  const w = ops.lowered(weight);
  const b = bias === null ? null : ops.lowered(bias);
  const input = ops.lowered(asWeight);
  const needs = ops.needsGrad(input);
  const whole = ops.record(
    ops.tensor(0, channels * (ops.tokens + kernel - 1), input.width),
    [input, w, b],
    // One operator for all its gradients: it keeps input and weights whichever of them are asked for.
    [input.storage, w !== weight ? w.storage : null],
    () => [
      needs ? ops.like(input) : null,
      weight.trainable ? ops.like(w) : null,
      b !== null && bias?.trainable ? ops.like(b) : null,
    ],
  );
  ops.drop(asWeight, input, w, b);
  const cut = ops.record(ops.view(whole, 0, x.per), [whole], [], (grad) => [ops.like(whole, grad.width)]);
  ops.drop(whole);
  const out = activated ? replaced(ops, cut, (t) => ops.silu(t)) : cut;
  return replaced(ops, out, (t) => ops.cast(t, x.width));
}
