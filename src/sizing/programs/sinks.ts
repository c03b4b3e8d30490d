import type { Ops } from "../ops.ts";
import type { Leaf, Tensor } from "../tape.ts";
import { topk } from "./indexing.ts";
import type { Heads } from "./kernels.ts";

/**
 * A column for each head's sink, less the row's maximum, softmax, and the column cut off again. Takes `masked`; what
 * the softmax is of has a name that lives on (`modeling_gpt_oss.py`).
 */
export function withSinks(
  ops: Ops,
  masked: Tensor,
  sinks: Leaf,
  width: number,
  heads: Heads,
  held: Tensor[],
): Tensor {
  const rows = heads.queries * ops.tokens;
  const both = ops.tensor(0, masked.per + rows, Math.max(masked.width, sinks.width));
  const wide = ops.record(both, [masked, sinks], [], (grad) => [
    ops.view(grad, 0, masked.per),
    ops.view(grad, 0, rows),
  ]);
  const highest = topk(ops, wide, heads.queries);
  const less = ops.record(ops.like(wide), [wide, highest.values], [], (grad) => [
    ops.view(grad, grad.fixed, grad.per),
    ops.like(grad),
  ]);
  ops.drop(highest.values, wide);
  const soft = ops.softmax(less, less.width);
  const cut = ops.record(ops.view(soft, 0, masked.per), [soft], [], (grad) => [ops.like(soft, grad.width)]);
  const out = ops.cast(cut, width);
  ops.drop(soft, cut, masked, highest.indices);
  held.push(less);
  return out;
}
