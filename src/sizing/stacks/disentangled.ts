import type { Disentangled, StackBlock } from "../../model/stacks.ts";
import { FP32 } from "../ops.ts";
import type { Projection } from "../programs/context.ts";
import type { Tensor } from "../tape.ts";
import { replaced } from "./kernels.ts";
import { apply, linear, type Shop } from "./modules.ts";
import type { StackOps } from "./ops.ts";

const INT64 = 8;

/** A layer's own part of DeBERTa's attention. */
export interface Distances {
  readonly block: StackBlock;
  readonly shape: Disentangled;
  /** Projections of distances as keys and as queries; null where the layer's own are shared. */
  readonly keys: Projection | null;
  readonly queries: Projection | null;
}

/** What all layers share: the table of distances, their ids, and the mask of pairs. */
export interface DistanceTable {
  readonly embeddings: Tensor;
  readonly ids: Tensor;
  readonly mask: Tensor;
}

export function disentangledModules(shop: Shop, block: StackBlock, shape: Disentangled): Distances {
  const { hidden, heads, headDim } = block;
  const own = (needed: boolean) =>
    shape.ownProjections && needed ? linear(shop, hidden, heads * headDim, true) : null;
  return { block, shape, keys: own(shape.contentToPosition), queries: own(shape.positionToContent) };
}

/**
 * DeBERTa's attention: scores of contents, and between contents and distances, each in full. Source:
 * `DisentangledSelfAttention` of transformers 5.24.
 */
export function disentangled(
  ops: StackOps,
  x: Tensor,
  distances: Distances,
  inputs: readonly Projection[],
  output: Projection,
  tokens: number,
  table: DistanceTable,
): Tensor {
  const { block } = distances;
  const { heads } = block;
  const square = tokens * tokens;
  const byHead = (t: Tensor) =>
    replaced(
      ops,
      replaced(ops, t, (o) => ops.reordered(o)),
      (o) => ops.copy(o),
    );
  const [query, key, value] = inputs.map((one) => byHead(apply(ops, x, one))) as [Tensor, Tensor, Tensor];
  // All steps of the scores keep their names until the block returns.
  const names: Tensor[] = [];
  const context = ops.within("scores", () => {
    const divided = ops.scaled(key);
    let scores = ops.batched(query, divided, heads * square);
    ops.drop(divided);
    const position = positionScores(ops, query, key, distances, inputs, table, heads, tokens);
    if (position !== null) {
      scores = replaced(ops, scores, (t) => ops.addition(t, position));
      names.push(position);
    }
    const bool = ops.like(table.mask, 1);
    const inverse = ops.like(table.mask, 1);
    ops.drop(bool);
    scores = replaced(ops, scores, (t) =>
      ops.record(ops.like(t), [t], [inverse.storage], (grad) => [ops.like(grad)]),
    );
    ops.drop(inverse);
    let probabilities = ops.softmax(scores, ops.autocast ? FP32 : scores.width);
    names.push(scores);
    if (block.dropout.attention) probabilities = replaced(ops, probabilities, (t) => ops.dropout(t));
    const out = ops.batched(probabilities, value, query.per);
    names.push(probabilities);
    return out;
  });
  const copied = byHead(context);
  ops.dropAll(names);
  ops.drop(query, key, value);
  const result = apply(ops, copied, output);
  ops.name(copied);
  return result;
}

/** Scores between contents and distances: all distances, of which each pair's own is then gathered. */
function positionScores(
  ops: StackOps,
  query: Tensor,
  key: Tensor,
  { block, shape, keys, queries }: Distances,
  inputs: readonly Projection[],
  { embeddings, ids }: DistanceTable,
  heads: number,
  tokens: number,
): Tensor | null {
  const inner = heads * block.headDim;
  const dropped = shape.dropout ? ops.dropout(embeddings) : ops.alias(embeddings);
  const placed = (layer: Projection) => {
    const projected = apply(ops, dropped, layer);
    const ordered = replaced(
      ops,
      replaced(ops, projected, (t) => ops.reordered(t)),
      (t) => ops.copy(t),
    );
    const repeated = ops.record(ops.tensor(0, shape.rows * inner, ordered.width), [ordered], [], (grad) => [
      ops.tensor(ordered.fixed, 0, grad.width),
    ]);
    ops.drop(ordered);
    return repeated;
  };
  const shared = !shape.ownProjections;
  // Shared projections run for both terms whatever is needed.
  const asQuery = shared ? placed(inputs[0]!) : null;
  const asKey = shared ? placed(inputs[1]!) : shape.contentToPosition ? placed(keys!) : null;
  const asQueryOwn = asQuery ?? (shape.positionToContent ? placed(queries!) : null);
  const gathered = (content: Tensor, position: Tensor) => {
    const all = ops.batched(content, position, heads * tokens * shape.rows);
    const shifted = ops.like(ids);
    const clamped = ops.like(ids);
    ops.drop(shifted);
    const picked = ops.record(
      ops.tensor(0, heads * tokens * tokens, all.width),
      [all],
      [all.storage, clamped.storage],
      (grad) => {
        const zeros = ops.like(all, grad.width);
        const out = ops.like(all, grad.width);
        ops.drop(zeros);
        return [out];
      },
    );
    ops.drop(all, clamped);
    return picked;
  };
  let sum: Tensor | null = null;
  const names: Tensor[] = [];
  if (shape.contentToPosition) {
    const picked = gathered(query, asKey!);
    names.push(picked);
    sum = replaced(ops, ops.scaled(picked), (t) => ops.shifted(t));
  }
  if (shape.positionToContent) {
    const picked = gathered(key, asQueryOwn!);
    names.push(picked);
    const divided = ops.scaled(picked);
    if (sum === null) sum = replaced(ops, divided, (t) => ops.shifted(t));
    else {
      const before: Tensor = sum;
      sum = ops.inPlaceAddition(before, divided);
      ops.drop(before, divided);
    }
  }
  ops.drop(asQueryOwn, asKey, dropped);
  ops.dropAll(names);
  return sum;
}

/** The table of distances as all layers get it, and the ids of all pairs. */
export function distanceIds(ops: StackOps, tokens: number): Tensor {
  return ops.within("scores", () => ops.tensor(tokens * tokens, 0, INT64));
}
