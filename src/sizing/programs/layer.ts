import type { DecoderShape } from "../../model/types.ts";
import { FP32, type Ops } from "../ops.ts";
import type { Tensor } from "../tape.ts";
import { type Attention, attend, attention, replaced } from "./attention.ts";
import type { Beside } from "./beside.ts";
import { type Context, rare } from "./context.ts";
import type { Experts } from "./experts.ts";
import { type FeedForward, feedForward, forwardFeed } from "./feed-forward.ts";
import type { Mixer } from "./mixer.ts";
import { type Norm, norm, normalize } from "./norms.ts";
import type { Surroundings } from "./surroundings.ts";

/** The modules of one layer. */
export interface Layer {
  readonly shape: DecoderShape;
  readonly attention: Attention | Mixer;
  readonly feedForward: FeedForward | Experts | Beside | null;
  readonly norms: readonly Norm[];
  readonly weightWidth: number;
  /** The inputs of its adapters are dropped out. */
  readonly dropsInputs: boolean;
}

export function layer(context: Context, norms: number): Layer {
  const { shape } = context;
  const usual = !(shape.latent ?? shape.convolution ?? shape.delta ?? shape.scan);
  const block = usual ? attention(context) : rare().mixer(context);
  const mlp =
    shape.normPlacement === "alone"
      ? null
      : shape.experts === undefined
        ? feedForward(context)
        : shape.experts.beside
          ? rare().beside(context)
          : rare().experts(context);
  const made: Norm[] = [];
  while (made.length < norms) made.push(norm(context, shape.norm, shape.hidden));
  return {
    shape,
    attention: block,
    feedForward: mlp,
    norms: made,
    weightWidth: context.weightWidth,
    dropsInputs: context.attention?.dropout ?? false,
  };
}

/** One decoder layer: `x` is borrowed, the result owned. */
export function forwardLayer(
  ops: Ops,
  x: Tensor,
  { shape, attention: block, feedForward: mlp, norms, weightWidth }: Layer,
  around: Surroundings,
): Tensor {
  const normed = (t: Tensor, index: number) => ops.within("norms", () => normalize(ops, t, norms[index]!));
  const dropped = (t: Tensor) => replaced(ops, t, (o) => ops.within("residual", () => ops.dropout(o)));
  const attended = (t: Tensor) => {
    const out =
      "forward" in block
        ? block.forward(ops, t, around)
        : attend(ops, t, block, around.rotary, around.mask, around.mode);
    return (shape.dropout.afterAttention ?? shape.dropout.residual) ? dropped(out) : out;
  };
  const fed = (t: Tensor, residual = x) => {
    const out =
      mlp === null
        ? ops.alias(t)
        : "beside" in mlp
          ? rare().forwardBeside(ops, t, residual, mlp)
          : "router" in mlp
            ? rare().forwardMixture(ops, t, mlp)
            : forwardFeed(ops, t, mlp);
    return shape.dropout.residual && !mergesInPlace(shape) ? dropped(out) : out;
  };
  const added = (residual: Tensor, branch: Tensor) =>
    ops.within("residual", () => {
      const part = shape.multipliers.residual ? ops.scaled(branch) : ops.alias(branch);
      const sum = ops.addition(residual, part);
      ops.drop(part, branch);
      return sum;
    });

  switch (shape.normPlacement) {
    case "pre": {
      const branch = replaced(ops, normed(x, 0), attended);
      const name = shape.attentionOutlives ? ops.alias(branch) : null;
      const middle = added(x, branch);
      const out = added(middle, replaced(ops, normed(middle, 1), fed));
      ops.drop(middle, name);
      return out;
    }
    case "post": {
      const middle = added(
        x,
        replaced(ops, attended(x), (t) => normed(t, 0)),
      );
      const out = added(
        middle,
        replaced(ops, fed(middle), (t) => normed(t, 1)),
      );
      ops.drop(middle);
      return out;
    }
    case "post-residual": {
      const middle = replaced(ops, added(x, attended(x)), (t) => normed(t, 0));
      const out = replaced(ops, added(middle, fed(middle)), (t) => normed(t, 1));
      ops.drop(middle);
      return out;
    }
    case "sandwich": {
      const first = replaced(ops, normed(x, 0), attended);
      const middle = added(
        x,
        replaced(ops, first, (t) => normed(t, 1)),
      );
      const second = replaced(ops, normed(middle, 2), (t) => fed(t, middle));
      const out = added(
        middle,
        replaced(ops, second, (t) => normed(t, 3)),
      );
      ops.drop(middle);
      return shape.layerScaled ? replaced(ops, out, (t) => ops.inPlaceScaled(t)) : out;
    }
    case "alone": {
      const lowered = ops.cast(x, weightWidth);
      const out = replaced(
        ops,
        replaced(ops, lowered, (t) => normed(t, 0)),
        attended,
      );
      const residual = shape.residualFull ? ops.cast(x, FP32) : ops.alias(x);
      const sum = added(residual, out);
      ops.drop(residual);
      return sum;
    }
    case "parallel-one": {
      const input = normed(x, 0);
      const a = attended(input);
      const m = fed(input);
      ops.drop(input);
      return merged(ops, x, a, m, shape);
    }
    case "parallel-two": {
      if (shape.parallelNormsFirst) {
        const forAttention = normed(x, 0);
        const forFeed = normed(x, 1);
        const a = attended(forAttention);
        const m = fed(forFeed);
        ops.drop(forAttention, forFeed);
        return merged(ops, x, a, m, shape);
      }
      const a = replaced(ops, normed(x, 0), attended);
      const m = replaced(ops, normed(x, 1), fed);
      return merged(ops, x, a, m, shape);
    }
  }
}

/** falcon's parallel pair: the attention is added into the feed-forward's output, and dropout runs on the sum. */
function mergesInPlace(shape: DecoderShape): boolean {
  return (shape.callsKernelDirectly ?? false) && shape.normPlacement.startsWith("parallel");
}

/** `feed-forward + attention + residual`, two sums. */
function merged(ops: Ops, x: Tensor, a: Tensor, m: Tensor, shape: DecoderShape): Tensor {
  return ops.within("residual", () => {
    if (shape.parallelFromResidual) {
      const first = ops.addition(x, a);
      const out = ops.addition(first, m);
      ops.drop(first, a, m);
      return out;
    }
    let both = mergesInPlace(shape) ? ops.inPlaceAddition(m, a) : ops.addition(m, a);
    ops.drop(m);
    if (mergesInPlace(shape) && shape.dropout.residual) both = replaced(ops, both, (t) => ops.dropout(t));
    const out = both.width > x.width ? ops.addition(both, x) : ops.addition(x, both);
    ops.drop(a, both);
    return out;
  });
}
