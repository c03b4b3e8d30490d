import type { ExpertsShape } from "../../model/types.ts";
import { FP32, type Ops } from "../ops.ts";
import type { Leaf, Tensor } from "../tape.ts";
import { replaced } from "./attention.ts";
import type { Adapter, Context } from "./context.ts";
import { dividedInPlace, gather, integers, rowSum, topk } from "./indexing.ts";
import { added, type MergedAdapter, mergedAdapter } from "./merged.ts";

/** What sends a token to its experts. */
export interface Router {
  readonly shape: ExpertsShape;
  readonly weight: Leaf;
  readonly bias: Leaf | null;
  readonly adapter: MergedAdapter | null;
}

/** The choice of a token: weights in the dtype that the experts multiply with, and the experts' numbers. */
export interface Choice {
  readonly logits: Tensor;
  readonly weights: Tensor;
  readonly experts: Tensor;
}

export function router(context: Context, shape: ExpertsShape, lora: Adapter | null): Router {
  const { ops, weightWidth, trainBase } = context;
  const width = shape.router.full ? FP32 : weightWidth;
  // Counted with the weights; it takes no gradient.
  if (shape.router.corrected) ops.leaf(shape.count, FP32, false);
  const { hidden } = context.shape;
  return {
    shape,
    weight: ops.leaf(hidden * shape.count, width, trainBase, hidden + shape.count),
    bias: shape.router.bias ? ops.leaf(shape.count, width, trainBase) : null,
    adapter: lora === null ? null : mergedAdapter(context, 1, hidden, shape.count, lora),
  };
}

/** `x` is borrowed, what is returned owned. */
export function route(ops: Ops, x: Tensor, block: Router): Choice {
  const { count, perToken, router: style } = block.shape;
  let logits = logitsOf(ops, x, block);
  switch (style.scores) {
    case "softmax": {
      let scores = ops.softmax(logits, FP32);
      if (style.groups)
        scores = replaced(ops, scores, (t) => withoutGroups(ops, t, style.groups!, count, false));
      if (style.corrected) {
        const indices = chosen(ops, scores, null, count, perToken);
        const weights = gather(ops, scores, indices, perToken);
        return {
          logits,
          weights: finished(ops, x, logits, weights, scores, style, perToken),
          experts: indices,
        };
      }
      const { values, indices } = topk(ops, scores, perToken);
      return { logits, weights: finished(ops, x, logits, values, scores, style, perToken), experts: indices };
    }
    case "softmax-of-chosen": {
      if (style.returns === "input") logits = replaced(ops, logits, (t) => ops.cast(t, FP32));
      const { values, indices } = topk(ops, logits, perToken);
      const weights = ops.softmax(values, values.width);
      return {
        logits,
        weights: finished(ops, x, logits, weights, values, style, perToken),
        experts: indices,
      };
    }
    case "sigmoid-of-chosen": {
      const { indices, values } = topk(ops, logits, perToken);
      const scattered = ops.record(ops.like(logits), [values], [indices.storage], () => [ops.like(values)]);
      ops.drop(values);
      const raised = replaced(ops, scattered, (t) => ops.cast(t, FP32));
      const scores = replaced(ops, raised, (t) => ops.sigmoid(t));
      return { logits, weights: replaced(ops, scores, (t) => ops.cast(t, logits.width)), experts: indices };
    }
    case "sigmoid": {
      const raised = ops.cast(logits, FP32);
      const scores = ops.sigmoid(raised);
      ops.drop(raised);
      const indices = chosen(ops, scores, style.groups ?? null, count, perToken);
      const weights = gather(ops, scores, indices, perToken);
      return {
        logits,
        weights: finished(ops, x, logits, weights, scores, style, perToken),
        experts: indices,
      };
    }
  }
}

function logitsOf(ops: Ops, x: Tensor, { shape, weight, bias, adapter }: Router): Tensor {
  const input = shape.router.full ? ops.cast(x, FP32) : ops.alias(x);
  if (adapter === null) {
    const product = () => ops.linear(input, weight, bias, shape.count);
    const logits = shape.router.corrected ? ops.uncast(product) : product();
    ops.drop(input);
    return logits;
  }
  const merged = added(ops, weight, adapter);
  const left = ops.lowered(input);
  const right = ops.lowered(merged);
  const logits = ops.record(
    ops.perToken(shape.count, left.width),
    [left, right],
    [left.storage, right.storage],
    () => [ops.needsGrad(left) ? ops.like(left) : null, ops.like(right)],
  );
  ops.drop(input, merged, left, right);
  return logits;
}

/** Normed, scaled and cast as the family does; takes `weights` and what they came of. */
function finished(
  ops: Ops,
  x: Tensor,
  logits: Tensor,
  weights: Tensor,
  origin: Tensor,
  style: ExpertsShape["router"],
  perToken: number,
): Tensor {
  let out = weights;
  if (style.normalized) {
    const sum = rowSum(ops, out, perToken);
    out = replaced(ops, out, (t) => dividedInPlace(ops, t, sum));
    ops.drop(sum);
  }
  if (style.scaled) out = replaced(ops, out, (t) => ops.scaled(t));
  if (style.returns === "logits") out = replaced(ops, out, (t) => ops.cast(t, logits.width));
  if (style.returns === "input") out = replaced(ops, out, (t) => ops.cast(t, x.width));
  ops.drop(origin);
  return out;
}

/** Scores of the groups that are not chosen are masked out: by a gradient's way or, for the choice alone, beside it. */
function withoutGroups(ops: Ops, scores: Tensor, groups: number, count: number, choiceOnly: boolean): Tensor {
  const chosen = ops.perToken(groups, FP32);
  const mask = ops.perToken(count, FP32);
  const inverse = ops.perToken(count, 1);
  ops.drop(chosen);
  const out = ops.like(scores);
  const result = choiceOnly
    ? { ...out, node: null }
    : ops.record(out, [scores], [inverse.storage], (grad) => [ops.like(grad)]);
  ops.drop(mask, inverse);
  return result;
}

/** The experts by scores that a buffer corrects; no gradient goes this way. */
function chosen(ops: Ops, scores: Tensor, groups: number | null, count: number, perToken: number): Tensor {
  const choice = ops.like(scores);
  const kept = groups === null ? ops.alias(choice) : withoutGroups(ops, choice, groups, count, true);
  const values = ops.perToken(perToken, FP32);
  const indices = integers(ops, perToken);
  ops.drop(values, kept, choice);
  return indices;
}
