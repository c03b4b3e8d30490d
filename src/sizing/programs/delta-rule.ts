import type { DeltaNetShape } from "../../model/types.ts";
import { KINDS, type Kind } from "../memory.ts";
import { FP32, type Ops } from "../ops.ts";
import type { Tensor } from "../tape.ts";
import { replaced } from "./attention.ts";
import { repeated } from "./kernels.ts";
import { written } from "./written.ts";

const CHUNK = 64;
/** Chunks that are run, and which of these stands for those that are not. */
const SHOWN = 5;
const PATTERN = 2;

/**
 * The gated delta rule over chunks of 64 tokens in PyTorch's own operators, as transformers runs it where the kernels
 * of flash-linear-attention are not installed. Source: modeling_qwen3_next.py, `torch_chunk_gated_delta_rule`.
 * Operands are borrowed; the result is owned, in the dtype of `query`.
 */
export function deltaRule(
  ops: Ops,
  query: Tensor,
  key: Tensor,
  value: Tensor,
  g: Tensor,
  beta: Tensor,
  { keyHeads, valueHeads, keyDim, valueDim }: DeltaNetShape,
): Tensor {
  const times = valueHeads / keyHeads;
  const chunks = Math.ceil(ops.tokens / CHUNK);
  const rows = valueHeads * chunks * CHUNK;
  // What is fp32 already and needs no padding stays ordered by token, and batched products copy it into order by head.
  const byToken = query.width === FP32 && ops.tokens % CHUNK === 0;
  const inOrder = (t: Tensor) => (byToken ? ops.copy(t) : ops.alias(t));
  const manyQueries = repeated(ops, query, times);
  const manyKeys = repeated(ops, key, times);
  const [q32, k32, v32] = [raised(ops, manyQueries), raised(ops, manyKeys), raised(ops, value)];
  const [beta32, g32] = [raised(ops, beta), raised(ops, g)];
  ops.drop(manyQueries, manyKeys);
  const unit = replaced(
    ops,
    replaced(ops, q32, (t) => normed(ops, t, keyDim)),
    (t) => ops.scaled(t),
  );
  const unitKey = replaced(ops, k32, (t) => normed(ops, t, keyDim));
  const padded = (t: Tensor, features: number) =>
    ops.record(ops.tensor(0, rows * features, FP32), [t], [], (grad) => [ops.tensor(0, t.per, grad.width)]);
  const [q0, k0, v0] = [padded(unit, keyDim), padded(unitKey, keyDim), padded(v32, valueDim)];
  ops.drop(unit, unitKey, v32);
  const [b0, g0] = [padded(beta32, 1), padded(g32, 1)];
  ops.drop(beta32, g32);
  const valueBeta = ops.product(v0, b0);
  const keyBeta = ops.product(k0, b0);
  const sums = ops.copy(g0);
  const pairs = pairwiseDecay(ops, sums, rows);
  const product = (a: Tensor, b: Tensor) => {
    const [left, right] = [inOrder(a), inOrder(b)];
    const out = ops.batched(left, right, rows * CHUNK);
    ops.drop(left, right);
    return out;
  };
  const weighted = (a: Tensor, b: Tensor) => replaced(ops, product(a, b), (t) => ops.product(pairs, t));
  const system = weighted(keyBeta, k0);
  const within = weighted(q0, k0);
  const grown = exponential(ops, sums);
  const decayedKeys = ops.product(keyBeta, grown);
  ops.drop(grown);
  const newValues = solved(ops, system, valueBeta);
  const readKeys = solved(ops, system, decayedKeys);
  let state: Tensor = ops.tensor(0, valueHeads * keyDim * valueDim, FP32);
  let out: Tensor = ops.like(newValues);
  const q = times0(ops, q0, exponential(ops, sums));
  const rest = replaced(ops, ops.addition(sums, sums), (t) => exponential(ops, t));
  const k = times0(ops, k0, rest);
  const ends = ops.record(ops.view(sums, 0, valueHeads * chunks), [sums], [], () => [ops.like(sums)]);
  const chunkDecay = replaced(ops, ends, (t) => exponential(ops, t));
  let fresh: Tensor | null = null;
  let across: Tensor | null = null;
  // Chunks in the middle are alike: one of them runs, and what it keeps is there as often as it stands for.
  const alike = Math.max(0, chunks - SHOWN);
  for (let index = 0; index < chunks - alike; index++) {
    const before = ops.snapshot();
    const of = (t: Tensor) => chunkOf(ops, t, chunks);
    const [values, read, inner] = [of(newValues), of(readKeys), of(within)];
    const [queries, keys] = [replaced(ops, of(q), inOrder), replaced(ops, of(k), inOrder)];
    const predicted = ops.batched(read, state, values.per);
    const next = ops.record(ops.like(values), [values, predicted], [], (grad) => [
      ops.view(grad, 0, grad.per),
      ops.like(grad),
    ]);
    ops.drop(predicted, fresh);
    fresh = next;
    const carried = ops.batched(queries, state, values.per);
    ops.drop(across);
    across = carried;
    const local = ops.batched(inner, fresh, values.per);
    const both = ops.addition(carried, local);
    ops.drop(local);
    out = replaced(ops, out, (t) => written(ops, t, both, values.per));
    ops.drop(both);
    const decay = of(chunkDecay);
    const kept = ops.product(state, decay);
    const update = ops.batched(keys, fresh, state.per);
    const after = ops.addition(kept, update);
    ops.drop(kept, update, state);
    state = after;
    ops.drop(values, read, queries, inner);
    ops.drop(keys, decay);
    if (index === PATTERN && alike > 0)
      state = replaced(ops, state, (t) => standingFor(ops, t, before, alike));
  }
  ops.drop(state);
  const result = ops.record(
    ops.tensor(0, valueHeads * valueDim * ops.tokens, query.width),
    [out],
    [],
    (grad) => [ops.like(out, grad.width)],
  );
  ops.dropAll([out, fresh, across, chunkDecay, q, k, newValues, readKeys, decayedKeys, within, system]);
  ops.dropAll([pairs, sums, keyBeta, valueBeta, b0, g0, v0]);
  return result;
}

/** Adds what was kept since `before` so many times over, until the backward has come past here. */
function standingFor(ops: Ops, state: Tensor, before: readonly number[], times: number): Tensor {
  if (!ops.recording || !ops.needsGrad(state)) return ops.alias(state);
  const kept = ops.snapshot().map((bytes, at) => (bytes - before[at]!) * times);
  ops.repeat(before, times);
  return ops.record(ops.view(state, 0, state.per), [state], [], (grad) => {
    for (const [kind, place] of Object.entries(KINDS) as [Kind, number][]) {
      const [fixed, per] = [kept[2 * place]!, kept[2 * place + 1]!];
      if (fixed !== 0 || per !== 0) ops.shift(kind, -fixed, -per);
    }
    return [ops.view(grad, 0, grad.per)];
  });
}

/** In fp32: what is fp32 already stays the view that it is, whatever order was asked for. */
function raised(ops: Ops, x: Tensor): Tensor {
  return ops.cast(x, FP32);
}

/** `x * rsqrt(sum(x * x))` over the features of a head. */
function normed(ops: Ops, x: Tensor, features: number): Tensor {
  const squares = ops.product(x, x);
  const sum = ops.meanOfFeatures(squares, features);
  ops.drop(squares);
  const inverse = replaced(ops, sum, (t) => ops.rsqrt(t));
  const out = ops.product(x, inverse);
  ops.drop(inverse);
  return out;
}

function exponential(ops: Ops, x: Tensor): Tensor {
  const out = ops.like(x);
  return ops.record(out, [x], [out.storage], (grad) => [ops.like(grad)]);
}

/** `x * factor` in the place of both. */
function times0(ops: Ops, x: Tensor, factor: Tensor): Tensor {
  const out = ops.product(x, factor);
  ops.drop(x, factor);
  return out;
}

/** Decay between every two positions of a chunk: difference, mask, exponential. */
function pairwiseDecay(ops: Ops, sums: Tensor, rows: number): Tensor {
  const wide = ops.record(ops.tensor(0, rows * CHUNK, FP32), [sums, sums], [], (grad) => [
    ops.view(grad, 0, grad.per),
    ops.like(grad),
  ]);
  const masked = ops.record(ops.like(wide), [wide], [], (grad) => [ops.like(grad)]);
  ops.drop(wide);
  return replaced(ops, masked, (t) => exponential(ops, t));
}

/** `torch.linalg.solve_triangular(system, right)`. */
function solved(ops: Ops, system: Tensor, right: Tensor): Tensor {
  const out = ops.like(right);
  return ops.record(out, [system, right], [system.storage, out.storage], (grad) => {
    const gradRight = ops.like(grad);
    const gradSystem = ops.like(system);
    ops.workspace(0, gradSystem.storage.per);
    return [gradSystem, gradRight];
  });
}

/** One chunk as a view; its backward writes into zeros of the whole. */
function chunkOf(ops: Ops, x: Tensor, chunks: number): Tensor {
  return ops.record(ops.view(x, 0, x.per / chunks), [x], [], (grad) => [ops.like(x, grad.width)]);
}
