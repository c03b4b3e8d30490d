import type { LatentShape } from "../../model/types.ts";
import { FP32, HALF, type Ops } from "../ops.ts";
import type { Tensor } from "../tape.ts";
import { type Context, type Projection, projection } from "./context.ts";
import { integers } from "./indexing.ts";
import { type Norm, norm } from "./norms.ts";

/** What picks the tokens that each query sees: heads of its own, whose scores are never differentiated. */
export interface TokenIndex {
  readonly sizes: NonNullable<LatentShape["index"]>;
  /** Weights that are there and, without a gradient, never change. */
  readonly modules: readonly (Projection | Norm)[];
}

export function tokenIndex(
  context: Context,
  sizes: NonNullable<LatentShape["index"]>,
  queryRank: number,
): TokenIndex {
  const { heads, dim } = sizes;
  const { hidden } = context.shape;
  const make = (from: number, to: number) => projection(context, from, to, false, context.feedForward);
  return {
    sizes,
    modules: [
      make(queryRank, heads * dim),
      make(hidden, dim),
      norm(context, "layer", dim),
      make(hidden, heads),
    ],
  };
}

/**
 * The mask of the tokens that are not picked, a byte for each pair, and the picks; `x` is borrowed. On the way there
 * the scores of all pairs and heads stand twice.
 */
export function picked(
  ops: Ops,
  x: Tensor,
  { sizes }: TokenIndex,
): { readonly mask: Tensor; readonly picks: Tensor } {
  const { heads, dim, kept } = sizes;
  const square = ops.tokens * ops.tokens;
  const width = ops.autocast ? HALF : x.width;
  const plain = (perToken: number, bytes: number) => ops.perToken(perToken, bytes);
  const queries = plain(heads * dim, width);
  const keys = plain(dim, FP32);
  const joined = plain(heads * dim, ops.autocast ? FP32 : width);
  const raised = ops.cast({ ...joined, node: null }, FP32);
  const lowered = ops.lowered(raised);
  const pairs = () => ops.tensor(0, heads * square, lowered.width);
  // The keys are the same for all queries of a sample, and are copied for each where there are several samples.
  const copies = ops.single ? null : ops.tensor(0, dim * square, lowered.width);
  const product = pairs();
  ops.drop(lowered, copies);
  const scaled = pairs();
  ops.drop(product, raised);
  const positive = pairs();
  ops.drop(scaled);
  const sums = ops.tensor(0, square, positive.width);
  const masked = ops.tensor(0, square, positive.width);
  ops.drop(sums, positive, joined);
  const count = Math.min(kept, ops.tokens);
  const values = ops.perToken(count, masked.width);
  const found = integers(ops, count);
  const picks = integers(ops, count, 4);
  ops.drop(values, found, masked, keys);
  ops.drop(queries);
  const all = ops.tensor(0, square, 1);
  const long = integers(ops, count);
  const rest = ops.tensor(0, square, 1);
  ops.drop(all, long);
  const mask = ops.tensor(0, square, 1);
  ops.drop(rest);
  return { mask, picks };
}
