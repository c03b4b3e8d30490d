import { FP32, type Ops } from "../ops.ts";
import type { Leaf, Tensor } from "../tape.ts";
import { replaced } from "./attention.ts";
import { type Context, type Projection, project, projection } from "./context.ts";
import { type ExpertBlock, expertBlock, throughExperts } from "./experts.ts";
import { type FeedForward, feedForward, forwardFeed } from "./feed-forward.ts";
import { dividedInPlace, rowSum, rowsOf, topk } from "./indexing.ts";
import { type Norm, norm, normalize } from "./norms.ts";

/** A dense block and experts beside it, which see the residual through norms of their own (`modeling_gemma4.py`). */
export interface Beside {
  readonly beside: ExpertBlock;
  readonly dense: FeedForward;
  readonly afterDense: Norm;
  readonly before: Norm;
  readonly after: Norm;
  readonly routerNorm: Norm;
  readonly routerScale: Leaf;
  readonly router: Projection;
  readonly expertScale: Leaf;
}

export function beside(context: Context): Beside {
  const { ops, shape, weightWidth, trainBase } = context;
  const { hidden } = shape;
  const { count } = shape.experts!;
  const own = () => norm(context, shape.norm, hidden);
  return {
    beside: expertBlock(context),
    dense: feedForward(context),
    afterDense: own(),
    before: own(),
    after: own(),
    routerNorm: norm(context, "rms-bare", hidden),
    routerScale: ops.leaf(hidden, weightWidth, trainBase),
    router: projection(context, hidden, count, false, context.feedForward),
    expertScale: ops.leaf(count, weightWidth, trainBase),
  };
}

/** `x` is the normed residual and `residual` what it is of; both are borrowed, the result is owned. */
export function forwardBeside(ops: Ops, x: Tensor, residual: Tensor, block: Beside): Tensor {
  return ops.within("feed-forward", () => {
    const { perToken } = block.beside.experts;
    const dense = forwardFeed(ops, x, block.dense);
    const first = normalize(ops, dense, block.afterDense);
    const seen = normalize(ops, residual, block.routerNorm);
    const scaled = replaced(
      ops,
      replaced(ops, seen, (t) => ops.scaledBy(t, block.routerScale)),
      (t) => ops.scaled(t),
    );
    const scores = replaced(ops, scaled, (t) => project(ops, t, block.router));
    const logits = ops.softmax(scores, FP32);
    ops.drop(scores);
    const { values, indices } = topk(ops, logits, perToken);
    const sum = rowSum(ops, values, perToken);
    const shares = replaced(ops, values, (t) => dividedInPlace(ops, t, sum));
    ops.drop(sum);
    const factors = rowsOf(ops, block.expertScale, indices, perToken);
    const weights = replaced(ops, shares, (t) => ops.product(t, factors));
    ops.drop(factors);
    const choice = { logits, weights, experts: indices };
    const input = normalize(ops, residual, block.before);
    const routed = replaced(ops, input, (t) => throughExperts(ops, t, choice, block.beside));
    const second = replaced(ops, routed, (t) => normalize(ops, t, block.after));
    const out = ops.addition(first, second);
    ops.drop(dense, first, second);
    ops.drop(logits, weights, indices);
    return out;
  });
}
