import type { Ops } from "../ops.ts";
import type { Leaf, Tensor } from "../tape.ts";
import { replaced } from "./attention.ts";

/** BLOOM's GELU: a function of its own that keeps its input and does both ways in steps (`modeling_bloom.py`). */
export function geluFunction(ops: Ops, x: Tensor): Tensor {
  const out = ops.like(x);
  const { fixed, per } = out.storage;
  ops.workspace(3 * fixed, 3 * per);
  return ops.record(out, [x], [x.storage], (grad) => {
    const result = ops.like(grad);
    ops.workspace(4 * result.storage.fixed, 4 * result.storage.per);
    return [result];
  });
}

/** `0.5 * x * (1 + tanh(c * x * (1 + 0.044715 * x * x)))`, from left to right (GPT-NeoX-20B). */
export function geluFast(ops: Ops, x: Tensor): Tensor {
  const halved = ops.scaled(x);
  const linear = ops.scaled(x);
  const cubic = replaced(
    ops,
    replaced(ops, ops.scaled(x), (t) => ops.product(t, x)),
    (t) => ops.shifted(t),
  );
  const angle = ops.product(linear, cubic);
  ops.drop(linear, cubic);
  const shifted = replaced(
    ops,
    replaced(ops, angle, (t) => ops.tanh(t)),
    (t) => ops.shifted(t),
  );
  const out = ops.product(halved, shifted);
  ops.drop(halved, shifted);
  return out;
}

/** `x * 0.5 * (1 + erf(x / sqrt(2)))`, which keeps what `erf` is given (ESM). */
export function geluErf(ops: Ops, x: Tensor): Tensor {
  const halved = ops.scaled(x);
  const divided = ops.scaled(x);
  const erf = ops.record(ops.like(divided), [divided], [divided.storage], (grad) => [ops.like(grad)]);
  ops.drop(divided);
  const shifted = ops.shifted(erf);
  ops.drop(erf);
  const out = ops.product(halved, shifted);
  ops.drop(halved, shifted);
  return out;
}

/** xIELU in Python, with two learned scalars (`activations.py`). */
export function xielu(ops: Ops, x: Tensor, [positive, negative]: readonly Leaf[]): Tensor {
  const alphaP = softplus(ops, positive!);
  const alphaN = replaced(ops, softplus(ops, negative!), (t) => ops.shifted(t));
  const above = ops.like(x, 1);
  const right = replaced(ops, ops.product(x, alphaP), (t) => ops.product(t, x));
  const rightLinear = ops.scaled(x);
  const whenAbove = ops.addition(right, rightLinear);
  ops.drop(right, rightLinear);
  const least = ops.record(ops.like(x), [x], [x.storage], (grad) => {
    const result = ops.like(grad);
    ops.workspace(2 * x.fixed, 2 * x.per);
    return [result];
  });
  const grown = replaced(ops, least, (t) => exponential(ops, t));
  const less = ops.record(ops.like(grown), [grown, x], [], (grad) => [
    ops.view(grad, grad.fixed, grad.per),
    ops.like(grad),
  ]);
  ops.drop(grown);
  const left = replaced(ops, less, (t) => ops.product(t, alphaN));
  const leftLinear = ops.scaled(x);
  const otherwise = ops.addition(left, leftLinear);
  ops.drop(left, leftLinear);
  const out = ops.record(ops.like(whenAbove), [whenAbove, otherwise], [above.storage], (grad) => [
    ops.like(grad),
    ops.like(grad),
  ]);
  ops.drop(whenAbove, otherwise, above);
  ops.drop(alphaP, alphaN);
  return out;
}

function softplus(ops: Ops, leaf: Leaf): Tensor {
  const raised = ops.raised(leaf);
  const out = ops.record(ops.like(raised), [raised], [raised.storage], (grad) => [ops.like(grad)]);
  ops.drop(raised);
  return out;
}

/** `torch.expm1`: fp32 under autocast, keeps its result. */
function exponential(ops: Ops, x: Tensor): Tensor {
  const raised = ops.raised(x);
  const out = ops.like(raised);
  const result = ops.record(out, [raised], [out.storage], (grad) => {
    const result = ops.like(grad);
    ops.workspace(result.storage.fixed, result.storage.per);
    return [result];
  });
  ops.drop(raised);
  return result;
}
