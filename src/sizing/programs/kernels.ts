import { FP32, HALF, type Ops } from "../ops.ts";
import type { Tensor } from "../tape.ts";

/** Head sizes, counts and what surrounds one call of attention. */
export interface Heads {
  readonly queries: number;
  /** Heads of keys and values as handed over. */
  readonly keys: number;
  readonly size: number;
  /** Size of a head of values where it is not `size`. */
  readonly valueSize?: number;
  readonly dropout: boolean;
  /** Query storage is ordered token by token, so that the result needs no copy to be viewed by token. */
  readonly tokenMajor: boolean;
  /** The same of the values, which are not rotated. */
  readonly valuesTokenMajor: boolean;
}

const FLASH_LARGEST_HEAD = 256;

function up(n: number, multiple: number): number {
  return Math.ceil(n / multiple) * multiple;
}

/**
 * transformers' `repeat_kv`: keys or values for the query heads that share them. Of a single head it is a view,
 * of several a copy ordered by head; the gradient is summed back.
 */
export function repeatedHeads(ops: Ops, x: Tensor, heads: number, times: number): Tensor {
  if (heads > 1 || times === 1) return repeated(ops, x, times);
  return ops.record(ops.view(x, x.fixed, x.per * times), [x], [], (grad) => [
    ops.tensor(0, x.per, grad.width),
  ]);
}

/** Repeats keys or values for the query heads that share them, as a copy ordered by head. */
export function repeated(ops: Ops, x: Tensor, times: number): Tensor {
  if (times === 1) return ops.alias(x);
  const out = ops.tensor(0, x.per * times, x.width);
  return ops.record(out, [x], [], (grad) => [ops.tensor(0, x.per, grad.width)]);
}

/**
 * `F.scaled_dot_product_attention` with the kernel that CUDA picks: flash for 16-bit operands without a mask,
 * else memory-efficient where query and key heads agree, else plain matrix products. Returns the result by head,
 * and whether it is ordered by token. Source: aten/src/ATen/native/transformers/cuda/sdp_utils.cpp.
 */
export function scaledDotProduct(
  ops: Ops,
  query: Tensor,
  key: Tensor,
  value: Tensor,
  mask: Tensor | null,
  heads: Heads,
  flashOnly: boolean,
): { readonly out: Tensor; readonly tokenMajor: boolean } {
  const q = ops.lowered(query);
  const k = ops.lowered(key);
  const v = ops.lowered(value);
  const half = q.width === HALF;
  const step = half ? 8 : 4;
  try {
    const values = heads.valueSize ?? heads.size;
    if (flashOnly || (half && mask === null && heads.size === values && heads.size <= FLASH_LARGEST_HEAD)) {
      return { out: flash(ops, q, k, v, heads), tokenMajor: heads.tokenMajor };
    }
    if (heads.queries === heads.keys && heads.size % step === 0 && values % step === 0) {
      return { out: efficient(ops, q, k, v, mask, heads), tokenMajor: true };
    }
    return { out: ops.uncast(() => math(ops, q, k, v, mask, heads)), tokenMajor: false };
  } finally {
    ops.drop(q, k, v);
  }
}

/** Pads heads to a multiple of 8, as the flash kernel wants them. */
function padded(ops: Ops, x: Tensor, size: number): Tensor {
  const wide = up(size, 8);
  if (wide === size) return ops.alias(x);
  const out = ops.tensor(0, Math.round((x.per / size) * wide), x.width);
  return ops.record(out, [x], [], (grad) => [ops.tensor(0, x.per, grad.width)]);
}

/** What an attention kernel saves: its operands, its result and the sums of its rows. */
function heldBy(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | null, out: Tensor, sums: Tensor) {
  return [q.storage, k.storage, v.storage, bias?.storage ?? null, out.storage, sums.storage];
}

function flash(ops: Ops, query: Tensor, key: Tensor, value: Tensor, heads: Heads): Tensor {
  const q = padded(ops, query, heads.size);
  const k = padded(ops, key, heads.size);
  const v = padded(ops, value, heads.size);
  const out = ops.like(q);
  const sums = ops.tensor(0, heads.queries * ops.tokens, FP32);
  const rows = heads.queries * up(ops.tokens, 128);
  const size = up(heads.size, 8);
  const expanded = heads.queries === heads.keys ? 0 : 2 * heads.queries * ops.tokens * size * q.width;
  const result = ops.record(out, [q, k, v], heldBy(q, k, v, null, out, sums), () => {
    const grads = [ops.like(q), ops.like(k), ops.like(v)];
    // The kernel's own row sums and fp32 accumulator of dq; dk and dv of shared heads before they are summed.
    ops.workspace(0, rows * (4 + 4 * up(size, 32)) + expanded);
    return grads;
  });
  ops.drop(q, k, v, sums);
  return result;
}

function efficient(ops: Ops, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | null, heads: Heads): Tensor {
  const bias = mask === null ? null : additive(ops, mask, q.width);
  const out = ops.like(heads.valueSize === undefined ? q : v);
  const sums = ops.tensor(0, heads.queries * up(ops.tokens, 32), FP32);
  const result = ops.record(out, [q, k, v], heldBy(q, k, v, bias, out, sums), () => {
    const grads = [ops.like(q), ops.like(k), ops.like(v)];
    const rows = heads.queries * ops.tokens;
    ops.workspace(0, rows * 4 + (q.width === HALF ? rows * heads.size * 4 : 0));
    return grads;
  });
  ops.drop(bias, sums);
  return result;
}

/** A mask as the addend the kernel wants, made anew in each layer from a bool one; rows are padded to 8 elements. */
function additive(ops: Ops, mask: Tensor, width: number): Tensor {
  return ops.within("mask", () => {
    const addend = mask.width === 1 ? fromBool(ops, width) : ops.cast(mask, width);
    const row = up(ops.tokens, 8) / ops.tokens;
    if (row === 1) return addend;
    const wide = ops.tensor(Math.round(addend.fixed * row), Math.round(addend.per * row), width);
    ops.drop(addend);
    return wide;
  });
}

/** Zeros where the mask is set, else minus infinity. A mask shared by all samples is a view; this is not. */
function fromBool(ops: Ops, width: number): Tensor {
  const square = ops.tokens * ops.tokens;
  const zeros = ops.tensor(0, square, width);
  ops.drop(ops.tensor(0, square, 1));
  return zeros;
}

function math(
  ops: Ops,
  query: Tensor,
  key: Tensor,
  value: Tensor,
  mask: Tensor | null,
  heads: Heads,
): Tensor {
  const times = heads.queries / heads.keys;
  const square = ops.tokens * ops.tokens;
  const repeatedKey = repeated(ops, key, times);
  const repeatedValue = repeated(ops, value, times);
  const q = ops.cast(query, FP32);
  const k = ops.cast(repeatedKey, FP32);
  const v = ops.cast(repeatedValue, FP32);
  ops.drop(repeatedKey, repeatedValue);
  const scaledQuery = ops.scaled(q);
  const scaledKey = ops.scaled(k);
  const probabilities = ops.within("scores", () => {
    const product = matrices(
      ops,
      scaledQuery,
      scaledKey,
      heads.queries * square,
      heads.tokenMajor,
      heads.tokenMajor && times === 1,
    );
    ops.drop(scaledQuery, scaledKey);
    const addend = mask === null ? ops.tensor(square, 0, FP32) : ops.tensor(0, square, FP32);
    const masked = ops.addition(product, addend);
    ops.drop(addend, product);
    const out = ops.softmax(masked, FP32);
    ops.drop(masked);
    if (!heads.dropout) return out;
    const dropped = ops.dropout(out);
    ops.drop(out);
    return dropped;
  });
  const out = matrices(
    ops,
    probabilities,
    v,
    heads.valueSize === undefined ? q.per : v.per,
    false,
    heads.tokenMajor && times === 1,
  );
  ops.drop(probabilities, q, k, v);
  const back = ops.cast(out, query.width);
  ops.drop(out);
  return back;
}

/**
 * `a @ b` by head with `per` elements a sample. An operand ordered by token is first copied into order by head
 * and the copy is what is saved; of one sample it is a view, which holds all that it is a view of.
 */
export function matrices(
  ops: Ops,
  a: Tensor,
  b: Tensor,
  per: number,
  copyA: boolean,
  copyB: boolean,
): Tensor {
  const left = ops.lowered(a);
  const right = ops.lowered(b);
  const leftInOrder = copyA && !ops.single ? ops.copy(left) : ops.alias(left);
  const rightInOrder = copyB && !ops.single ? ops.copy(right) : ops.alias(right);
  const out = ops.batched(leftInOrder, rightInOrder, per);
  ops.drop(leftInOrder, rightInOrder, left, right);
  return out;
}
