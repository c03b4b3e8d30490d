import type { Ops } from "../ops.ts";
import type { Tensor } from "../tape.ts";
import { split } from "./attention.ts";

/** Cosines and sines of the positions: made once, shared by all layers, without a gradient. */
export interface Rotary {
  readonly cos: Tensor;
  readonly sin: Tensor;
  /** Rotated fraction of a head. */
  readonly fraction: number;
  /** The result is concatenated with the part that passes unrotated, even when that is empty. */
  readonly concatenates: boolean;
  /** Two halves turned against each other and put together again (gpt_oss). */
  readonly paired?: boolean;
}

/**
 * `x * cos + rotate_half(x) * sin` on the heads of `x`. The result is laid out as `x` is, but contiguous by
 * head after a concatenation. `named` takes what names of the attention hold on: `x` and its rotated part.
 */
export function rotate(
  ops: Ops,
  x: Tensor,
  rotary: Rotary,
  castBack: boolean,
  named: Tensor[] | null = null,
): Tensor {
  if (rotary.paired) {
    const [first, second] = split(ops, x, [0.5, 0.5]) as [Tensor, Tensor];
    return turnedPair(ops, first, second, rotary);
  }
  const { cos, sin, fraction, concatenates } = rotary;
  const rotated = fraction === 1 ? ops.alias(x) : sliced(ops, x, fraction);
  const straight = ops.product(rotated, cos);
  const turned = rotateHalf(ops, rotated);
  const crossed = ops.product(turned, sin);
  ops.drop(turned);
  const sum = ops.addition(straight, crossed);
  ops.drop(straight, crossed);
  let out = sum;
  named?.push(ops.alias(x), ops.alias(sum));
  if (concatenates) {
    const passed = fraction === 1 ? null : sliced(ops, x, 1 - fraction);
    out = concatenated(ops, x, sum, passed);
    ops.drop(sum, passed);
  }
  ops.drop(rotated);
  if (!castBack) return out;
  const back = ops.cast(out, x.width);
  ops.drop(out);
  return back;
}

/** A fraction of the features of `x`, as a view without history. */
export function part(ops: Ops, x: Tensor, fraction: number): Tensor {
  return ops.view(x, Math.round(x.fixed * fraction), Math.round(x.per * fraction));
}

/** A slice is a view; its backward writes into zeros of the whole. */
export function sliced(ops: Ops, x: Tensor, fraction: number): Tensor {
  return ops.record(part(ops, x, fraction), [x], [], (grad) => [ops.like(x, grad.width)]);
}

/** `cat(a * cos - b * sin, b * cos + a * sin)`; takes both. */
export function turnedPair(ops: Ops, a: Tensor, b: Tensor, { cos, sin }: Rotary): Tensor {
  const straight = ops.product(a, cos);
  const crossed = ops.product(b, sin);
  const low = ops.record(ops.like(straight), [straight, crossed], [], (grad) => [
    ops.view(grad, grad.fixed, grad.per),
    ops.like(grad),
  ]);
  ops.drop(straight, crossed);
  const straightHigh = ops.product(b, cos);
  const crossedHigh = ops.product(a, sin);
  const high = ops.addition(straightHigh, crossedHigh);
  ops.drop(straightHigh, crossedHigh);
  const out = joined(ops, low, high);
  ops.drop(low, high, a, b);
  return out;
}

/** A product of complex numbers in fp32, two features each (DeepSeek-V2, llama4). */
export function turnedComplex(ops: Ops, x: Tensor, { cos }: Rotary): Tensor {
  return ops.record(ops.like(x), [x], [cos.storage], (grad) => [ops.like(grad)]);
}

/** `torch.cat` along the features; the gradients are views. */
export function joined(ops: Ops, a: Tensor, b: Tensor): Tensor {
  const out = ops.tensor(a.fixed + b.fixed, a.per + b.per, Math.max(a.width, b.width));
  return ops.record(out, [a, b], [], (grad) => [
    ops.view(grad, a.fixed, a.per),
    ops.view(grad, b.fixed, b.per),
  ]);
}

/** The second half of a head, negated, before the first. */
export function rotateHalf(ops: Ops, x: Tensor): Tensor {
  const first = sliced(ops, x, 0.5);
  const second = sliced(ops, x, 0.5);
  const negated = ops.scaled(second);
  const out = ops.record(ops.like(x), [negated, first], [], (grad) => [
    ops.view(grad, x.fixed / 2, x.per / 2),
    ops.view(grad, x.fixed / 2, x.per / 2),
  ]);
  ops.drop(first, second, negated);
  return out;
}

function concatenated(ops: Ops, like: Tensor, a: Tensor, b: Tensor | null): Tensor {
  const whole = ops.like(like, Math.max(a.width, b?.width ?? 0));
  return ops.record(whole, [a, b], [], (grad) => [
    ops.view(grad, a.fixed, a.per),
    b === null ? null : ops.view(grad, b.fixed, b.per),
  ]);
}
