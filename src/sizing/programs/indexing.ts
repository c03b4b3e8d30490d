import { FP32, type Ops } from "../ops.ts";
import type { Tensor } from "../tape.ts";

const INT64 = 8;
const INT32 = 4;

/** Whole numbers, so many a token: indices, which need no gradient. */
export function integers(ops: Ops, perToken: number, width: 4 | 8 = INT64): Tensor {
  return ops.tensor(0, perToken * ops.tokens, width);
}

/** `torch.topk`: the values and where they stood; backward writes them into zeros. */
export function topk(
  ops: Ops,
  x: Tensor,
  count: number,
): { readonly values: Tensor; readonly indices: Tensor } {
  const values = ops.perToken(count, x.width);
  const indices = integers(ops, count);
  return { values: ops.record(values, [x], [indices.storage], scattered(ops, x)), indices };
}

/** `x.gather(1, indices)`, `count` a token. */
export function gather(ops: Ops, x: Tensor, indices: Tensor, count: number): Tensor {
  return ops.record(ops.perToken(count, x.width), [x], [indices.storage], scattered(ops, x));
}

/** `x[indices]` by row, to `perToken` elements a token. */
export function rowsOf(ops: Ops, x: Tensor, indices: Tensor, perToken: number): Tensor {
  // Indices are saved before rows are copied: a recomputation that ends here copies none.
  const node = ops.node([x], [indices.storage], scattered(ops, x));
  return ops.outcome(node, ops.perToken(perToken, x.width));
}

/** Backward of every kind of indexing: zeros, and their copy with the gradient written in. */
function scattered(ops: Ops, x: Tensor) {
  return (grad: Tensor | { readonly width: number }) => {
    const out = ops.like(x, grad.width);
    ops.workspace(out.storage.fixed, out.storage.per);
    return [out];
  };
}

/** The sum over each token's last dimension of `terms`; its backward is a view. */
export function rowSum(ops: Ops, x: Tensor, terms: number): Tensor {
  const out = ops.tensor(x.fixed / terms, x.per / terms, ops.autocast ? FP32 : x.width);
  return ops.record(out, [x], [], (grad) => [ops.view(grad, x.fixed, x.per)]);
}

/** The sum over the experts of a token: fp32 under autocast; its backward repeats the gradient. */
export function sumOfParts(ops: Ops, x: Tensor, parts: number): Tensor {
  const out = ops.tensor(0, x.per / parts, ops.autocast ? FP32 : x.width);
  return ops.record(out, [x], [], (grad) => [ops.like(x, grad.width)]);
}

/** `a /= b` where `b` is a sum of `a`: the values before are copied for the backward. */
export function dividedInPlace(ops: Ops, a: Tensor, b: Tensor): Tensor {
  const before = ops.needsGrad(b) ? ops.like(a) : null;
  ops.retain(a.storage);
  const out = ops.record(a, [a, b], [before?.storage ?? null, b.storage], (grad) => [
    ops.like(grad),
    ops.like(grad),
  ]);
  ops.drop(before);
  return out;
}

/** What the sort of all choices by expert makes: the numbers that live until the experts are through. */
export function sorted(ops: Ops, choices: number, experts: number) {
  const ids = integers(ops, choices);
  const order = integers(ops, choices);
  return {
    ids,
    order,
    counts: () => [
      integers(ops, choices, INT32),
      ops.tensor(experts, 0, INT32),
      ops.tensor(experts, 0, INT32),
    ],
  };
}
