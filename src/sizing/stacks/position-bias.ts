import { FP32 } from "../ops.ts";
import { matrices } from "../programs/kernels.ts";
import type { Leaf, Tensor } from "../tape.ts";
import { type Call, dropped, replaced } from "./kernels.ts";
import type { StackOps } from "./ops.ts";

const INT64 = 8;

/** T5's addends of scores: by distance in the stack itself, zeros towards another stack. */
export interface PositionBias {
  readonly own: Tensor;
  readonly cross: Tensor | null;
  readonly causal: boolean;
  /** A byte a pair of positions, of a causal mask that is made for it. */
  readonly tokens: number;
}

/**
 * Biases of all pairs of positions, looked up by their distance; the ids are kept for the table's gradient, but under
 * checkpointing, where the first layer makes them again.
 */
export function lookedUp(ops: StackOps, table: Leaf, heads: number, tokens: number, keeps: boolean): Tensor {
  const square = tokens * tokens;
  return ops.within("scores", () => {
    const ids = ops.tensor(square, 0, INT64);
    const values = ops.lookup(table, heads, square, false);
    const out = ops.record(values, [values], [keeps ? ids.storage : null], (grad) => {
      ops.retain(grad.storage);
      return [grad];
    });
    ops.drop(ids);
    return out;
  });
}

/** The addend of one layer: masked where a mask says so or the future lies, as a copy in order by head. */
export function biasOf(ops: StackOps, { own, causal, tokens }: PositionBias, mask: Tensor | null): Tensor {
  return ops.within("scores", () => {
    let chosen = ops.alias(own);
    if (mask !== null) {
      ops.drop(chosen);
      chosen = ops.chosen(own, mask, true);
    } else if (causal) {
      ops.drop(chosen);
      const future = ops.tensor(tokens * tokens, 0, 1);
      chosen = ops.chosen(own, future, false);
      ops.drop(future);
    }
    const copied = ops.copy(chosen);
    ops.drop(chosen);
    return copied;
  });
}

/** The same biases for each sample, as a copy. */
export function forEachSample(ops: StackOps, own: Tensor): Tensor {
  const expanded = ops.expanded(own);
  const copied = ops.copy(expanded);
  ops.drop(own, expanded);
  return copied;
}

/** MPNet's attention: biases are added to the scores in place, then a row of numbers for each sample's mask. */
export function biasedInPlace(
  ops: StackOps,
  query: Tensor,
  key: Tensor,
  value: Tensor,
  bias: Tensor,
  { heads, byToken, dropout }: Call,
): Tensor {
  const probabilities = ops.within("scores", () => {
    const product = matrices(ops, query, key, bias.per, byToken, byToken);
    const scaled = replaced(ops, product, (t) => ops.scaled(t));
    const biased = replaced(ops, scaled, (t) => ops.inPlaceAddition(t, bias));
    const row = ops.tensor(0, Math.sqrt(bias.per / heads), bias.width);
    const masked = replaced(ops, biased, (t) => ops.addition(t, row));
    ops.drop(row);
    const soft = ops.softmax(masked, ops.autocast ? FP32 : masked.width);
    // The scores keep their name until attention returns.
    ops.name(masked);
    return dropout ? dropped(ops, soft) : soft;
  });
  const out = matrices(ops, probabilities, value, query.per, false, byToken);
  const copied = ops.copy(out);
  ops.drop(out, probabilities);
  return copied;
}

/** The addend towards another stack: the zeros themselves, or masked ones of each sample. */
export function crossBias(ops: StackOps, { cross }: PositionBias, mask: Tensor | null): Tensor {
  if (mask === null) return ops.alias(cross!);
  return ops.within("scores", () => ops.chosen(cross!, mask, true));
}
