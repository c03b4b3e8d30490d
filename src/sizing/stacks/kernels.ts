import { FP32, HALF } from "../ops.ts";
import { matrices } from "../programs/kernels.ts";
import type { Tensor } from "../tape.ts";
import type { StackOps } from "./ops.ts";

/** One call of attention: as many key as query heads; lengths may differ. */
export interface Call {
  readonly heads: number;
  readonly size: number;
  readonly dropout: boolean;
  /** Operands are ordered token by token in memory, so that a result needs no copy to be viewed by token. */
  readonly byToken: boolean;
  /** Keys and values come from a cache, which put them in order by head. */
  readonly cached?: boolean;
  readonly causal: boolean;
  /** Tokens that see each other, where not all do. */
  readonly chunk?: number;
}

export type Kernel = "flash" | "efficient" | "math" | "eager";

const LARGEST_FLASH_HEAD = 256;

function up(n: number, multiple: number): number {
  return Math.ceil(n / multiple) * multiple;
}

/** The kernel that CUDA picks. Source: aten/src/ATen/native/transformers/cuda/sdp_utils.cpp. */
export function kernelOf(
  implementation: "sdpa" | "flash" | "eager",
  width: number,
  masked: boolean,
  { size }: Call,
): Kernel {
  if (implementation === "eager" || implementation === "flash") return implementation;
  if (width === HALF && !masked && size <= LARGEST_FLASH_HEAD) return "flash";
  return size % (width === HALF ? 8 : 4) === 0 ? "efficient" : "math";
}

function tokensOf(x: Tensor, { heads, size }: Call): number {
  return x.per / (heads * size);
}

/** Rows of all heads, those of each block that sees itself raised to a multiple. */
function rowsOf(tokens: number, { heads, chunk }: Call, multiple: number): number {
  const block = chunk ?? tokens;
  return block === 0 ? 0 : heads * (tokens / block) * up(block, multiple);
}

/**
 * Attention by `kernel`; the result is ordered by token. `mask` is bool (a byte an element), or what is added to the
 * scores; it may be one for the whole batch.
 */
export function attention(
  ops: StackOps,
  kernel: Kernel,
  query: Tensor,
  key: Tensor,
  value: Tensor,
  mask: Tensor | null,
  call: Call,
): Tensor {
  const q = ops.lowered(query);
  const k = ops.lowered(key);
  const v = ops.lowered(value);
  let out: Tensor;
  if (kernel === "flash") out = flash(ops, q, k, v, call);
  else if (kernel === "efficient") out = efficient(ops, q, k, v, mask, call);
  else out = ops.uncast(() => math(ops, q, k, v, mask, call));
  ops.drop(q, k, v);
  if (kernel === "efficient" || (kernel === "flash" && call.byToken)) return out;
  const copied = ops.copy(out);
  ops.drop(out);
  return copied;
}

/** Pads heads to a multiple of 8, as the flash kernel wants them. */
function padded(ops: StackOps, x: Tensor, size: number): Tensor {
  const wide = up(size, 8);
  if (wide === size) return ops.alias(x);
  const out = ops.tensor(0, Math.round((x.per / size) * wide), x.width);
  return ops.record(out, [x], [], (grad) => [ops.tensor(0, x.per, grad.width)]);
}

function flash(ops: StackOps, query: Tensor, key: Tensor, value: Tensor, call: Call): Tensor {
  const { heads, size } = call;
  const tokens = tokensOf(query, call);
  const q = padded(ops, query, size);
  const k = padded(ops, key, size);
  const v = padded(ops, value, size);
  const out = ops.like(q);
  const sums = ops.tensor(0, heads * tokens, FP32);
  const rows = rowsOf(tokens, call, 128);
  const held = [q.storage, k.storage, v.storage, out.storage, sums.storage];
  const result = ops.record(out, [q, k, v], held, () => {
    const grads = [ops.like(q), ops.like(k), ops.like(v)];
    // The kernel's own row sums and fp32 accumulator of dq.
    ops.workspace(0, rows * (4 + 4 * up(up(size, 8), 32)));
    return grads;
  });
  ops.drop(q, k, v, sums);
  return result;
}

function efficient(ops: StackOps, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | null, call: Call): Tensor {
  const { heads, size } = call;
  const rows = heads * tokensOf(q, call);
  const keys = tokensOf(k, call);
  const bias = mask === null ? null : added(ops, mask, q.width, rows / heads, keys);
  const learned = bias !== null && ops.needsGrad(bias);
  const out = ops.like(q);
  const sums = ops.tensor(0, rowsOf(rows / heads, call, 32), FP32);
  const held = [q.storage, k.storage, v.storage, bias?.storage ?? null, out.storage, sums.storage];
  const result = ops.record(out, [q, k, v, bias], held, () => {
    const grads: Tensor[] = [ops.like(q), ops.like(k), ops.like(v)];
    if (learned) {
      const wide = ops.tensor(0, rows * up(keys, 16), q.width);
      grads.push(ops.view(wide, 0, rows * keys));
      ops.drop(wide);
    }
    ops.workspace(0, rows * 4 + (q.width === HALF ? rows * size * 4 : 0));
    return grads;
  });
  ops.drop(bias, sums);
  return result;
}

/** A mask as the addend that the kernel wants, seen by each sample; rows are padded to 8 elements. */
function added(ops: StackOps, mask: Tensor, width: number, queries: number, keys: number): Tensor {
  return ops.within("mask", () => {
    const bool = mask.width === 1;
    let addend = bool ? fromBool(ops, queries * keys, width) : ops.cast(mask, width);
    const row = up(keys, 8) / keys;
    if (row !== 1) {
      const narrow = addend;
      const wide = ops.tensor(Math.round(narrow.fixed * row), Math.round(narrow.per * row), width);
      const { fixed, per } = narrow;
      const view = ops.view(wide, fixed, per);
      ops.drop(wide);
      addend = ops.record(view, [narrow], [], (grad) => [ops.like(grad)]);
      ops.drop(narrow);
    }
    if (bool || addend.fixed === 0) return addend;
    const expanded = ops.expanded(addend);
    ops.drop(addend);
    return expanded;
  });
}

/** Zeros where the mask is set, else minus infinity: of each sample, also where the mask is one for all. */
function fromBool(ops: StackOps, elements: number, width: number): Tensor {
  const zeros = ops.tensor(0, elements, width);
  ops.drop(ops.tensor(0, elements, 1));
  return zeros;
}

/** Attention in plain products, in fp32. */
function math(
  ops: StackOps,
  query: Tensor,
  key: Tensor,
  value: Tensor,
  mask: Tensor | null,
  call: Call,
): Tensor {
  const { heads, byToken, dropout, causal } = call;
  const square = tokensOf(query, call) * (call.chunk ?? tokensOf(key, call));
  const q = ops.cast(query, FP32);
  const k = ops.cast(key, FP32);
  const v = ops.cast(value, FP32);
  const scaledQuery = ops.scaled(q);
  const scaledKey = ops.scaled(k);
  const probabilities = ops.within("scores", () => {
    let scores = matrices(ops, scaledQuery, scaledKey, heads * square, byToken, byToken);
    ops.drop(scaledQuery, scaledKey);
    if (mask !== null || causal) {
      const made = mask === null || mask.width === 1;
      const addend = !made
        ? ops.alias(mask)
        : mask
          ? ops.tensor(0, square, FP32)
          : ops.tensor(square, 0, FP32);
      const masked = ops.addition(scores, addend);
      ops.drop(addend, scores);
      scores = masked;
    }
    const out = ops.softmax(scores, FP32);
    ops.drop(scores);
    return dropout ? dropped(ops, out) : out;
  });
  const out = matrices(ops, probabilities, v, q.per, false, byToken);
  ops.drop(probabilities, q, k, v);
  const back = ops.cast(out, query.width);
  ops.drop(out);
  return back;
}

/** Dropout in the place of `x`. */
export function dropped(ops: StackOps, x: Tensor): Tensor {
  const out = ops.dropout(x);
  ops.drop(x);
  return out;
}

/** Attention written out in Python: scores, their scale, addends, softmax, dropout, product. */
export function eager(
  ops: StackOps,
  query: Tensor,
  key: Tensor,
  value: Tensor,
  addends: readonly (Tensor | null)[],
  call: Call,
  softmaxFull: boolean,
): Tensor {
  const { heads, byToken, dropout } = call;
  const keysByToken = byToken && call.cached !== true;
  const square = tokensOf(query, call) * (call.chunk ?? tokensOf(key, call));
  const probabilities = ops.within("scores", () => {
    let scores = matrices(ops, query, key, heads * square, byToken, keysByToken);
    scores = replaced(ops, scores, (t) => ops.scaled(t));
    for (const addend of addends)
      if (addend !== null) scores = replaced(ops, scores, (t) => ops.addition(t, addend));
    const soft = ops.softmax(scores, softmaxFull || ops.autocast ? FP32 : scores.width);
    ops.drop(scores);
    const back = softmaxFull ? ops.cast(soft, query.width) : ops.alias(soft);
    ops.drop(soft);
    return dropout ? dropped(ops, back) : back;
  });
  const out = matrices(ops, probabilities, value, query.per, false, keysByToken);
  const copied = ops.copy(out);
  // The layer's own name holds what attention returned beside its result.
  ops.drop(ops.returned);
  ops.returned = probabilities;
  ops.drop(out);
  return copied;
}

/** `f(x)` in the place of `x`. */
export function replaced(ops: StackOps, x: Tensor, f: (x: Tensor) => Tensor): Tensor {
  const out = f(x);
  ops.drop(x);
  return out;
}
