import type { DeltaNetShape } from "../../model/types.ts";
import { FP32, type Ops } from "../ops.ts";
import type { Leaf, Tensor } from "../tape.ts";
import { replaced, split } from "./attention.ts";
import { type Context, type Projection, project, projection } from "./context.ts";
import { deltaRule } from "./delta-rule.ts";
import { type Norm, norm } from "./norms.ts";
import { joined } from "./rotary.ts";
import { causalConvolution } from "./short-convolution.ts";

/** Linear attention by the gated delta rule (`modeling_qwen3_next.py`, `modeling_qwen3_5.py`). */
export interface DeltaNet {
  readonly delta: DeltaNetShape;
  readonly keys: number;
  readonly values: number;
  /** q, k, v and z in one and b and a in another (qwen3_next); else q, k, v together and z, b and a alone. */
  readonly inputs: readonly Projection[];
  readonly convolution: Leaf;
  readonly timeBias: Leaf;
  readonly decay: Leaf;
  readonly norm: Norm;
  readonly output: Projection;
}

export function deltaNet(context: Context, delta: DeltaNetShape): DeltaNet {
  const { ops, weightWidth, trainBase, shape } = context;
  const keys = delta.keyHeads * delta.keyDim;
  const values = delta.valueHeads * delta.valueDim;
  const made = (count: number) => ops.leaf(count, weightWidth, trainBase);
  const widths = delta.fused
    ? [2 * keys + 2 * values, 2 * delta.valueHeads]
    : [2 * keys + values, values, delta.valueHeads, delta.valueHeads];
  return {
    delta,
    keys,
    values,
    inputs: widths.map((width) => projection(context, shape.hidden, width, false, context.feedForward)),
    convolution: made((2 * keys + values) * delta.kernel),
    timeBias: made(delta.valueHeads),
    decay: made(delta.valueHeads),
    norm: norm(context, "rms", delta.valueDim),
    // It has the name of an attention's output.
    output: projection(context, values, shape.hidden, false, context.attention),
  };
}

/** `x` is borrowed, the result owned; names live until the end, as in Python. */
export function forwardDeltaNet(ops: Ops, x: Tensor, block: DeltaNet): Tensor {
  return ops.within("attention", () => {
    const { delta, keys, values, convolution } = block;
    const channels = 2 * keys + values;
    const { mixed, z, b, a, held } = delta.fused ? fusedInputs(ops, x, block) : plainInputs(ops, x, block);
    const convolved = causalConvolution(ops, mixed, convolution, null, channels, delta.kernel, true);
    ops.drop(mixed);
    ops.dropAll(held.copies);
    const parts = split(ops, convolved, [keys / channels, keys / channels, values / channels]);
    ops.drop(convolved);
    const [query, key, value] = parts as [Tensor, Tensor, Tensor];
    const beta = ops.sigmoid(b);
    const g = decayOf(ops, a, block);
    const core = deltaRule(ops, query, key, value, g, beta, delta);
    const normed = replaced(ops, core, (t) => gatedNorm(ops, t, z, block.norm));
    const out = project(ops, normed, block.output);
    ops.drop(normed, query, key, value);
    ops.drop(beta, g, z, b);
    ops.drop(a);
    ops.dropAll(held.projections);
    return out;
  });
}

interface Inputs {
  readonly mixed: Tensor;
  readonly z: Tensor;
  readonly b: Tensor;
  readonly a: Tensor;
  readonly held: { readonly projections: readonly Tensor[]; readonly copies: readonly Tensor[] };
}

function plainInputs(ops: Ops, x: Tensor, { inputs }: DeltaNet): Inputs {
  const [mixed, z, b, a] = inputs.map((one) => project(ops, x, one)) as [Tensor, Tensor, Tensor, Tensor];
  return {
    mixed: replaced(ops, mixed, (t) => ops.reordered(t)),
    z,
    b,
    a,
    held: { projections: [], copies: [] },
  };
}

/** Ordered by key head, so that every part is copied into order before q, k and v are put together again. */
function fusedInputs(ops: Ops, x: Tensor, { inputs, keys, values }: DeltaNet): Inputs {
  const wide = project(ops, x, inputs[0]!);
  const narrow = project(ops, x, inputs[1]!);
  const total = 2 * (keys + values);
  const views = split(ops, wide, [keys / total, keys / total, values / total, values / total]);
  const gates = split(ops, narrow, [0.5, 0.5]);
  const copied = (t: Tensor) => replaced(ops, t, (u) => ops.copy(u));
  const [value, z] = [copied(views[2]!), copied(views[3]!)];
  const [b, a] = [copied(gates[0]!), copied(gates[1]!)];
  const [query, key] = [copied(views[0]!), copied(views[1]!)];
  const both = joined(ops, query, key);
  const mixed = joined(ops, both, value);
  ops.drop(both);
  return { mixed, z, b, a, held: { projections: [wide, narrow], copies: [query, key, value] } };
}

/** `-exp(A) * softplus(a + bias)` in fp32. */
function decayOf(ops: Ops, a: Tensor, { decay, timeBias }: DeltaNet): Tensor {
  const rate = ops.cast(decay, FP32);
  const grown = ops.record(ops.like(rate), [rate], [], (grad) => [ops.like(grad)]);
  const negated = replaced(ops, grown, (t) => ops.scaled(t));
  const shifted = replaced(ops, ops.cast(a, FP32), (t) => ops.biased(t, timeBias));
  const soft = replaced(ops, shifted, (t) => ops.gelu(t));
  const out = ops.product(soft, negated);
  ops.drop(rate, negated, soft);
  return out;
}

/** An RMS norm by head whose result a SiLU of `z` gates, in fp32. */
function gatedNorm(ops: Ops, x: Tensor, z: Tensor, { features, weight }: Norm): Tensor {
  const full = ops.cast(x, FP32);
  const squares = ops.power(full);
  const variance = ops.meanOfFeatures(squares, features);
  ops.drop(squares);
  const inverse = ops.rsqrt(variance);
  const normed = ops.product(full, inverse);
  ops.drop(inverse, full);
  const lowered = ops.cast(normed, x.width);
  const weighted = replaced(ops, lowered, (t) => ops.scaledBy(t, weight!));
  ops.drop(normed);
  const gate = replaced(ops, ops.cast(z, FP32), (t) => ops.silu(t));
  const gated = ops.product(gate, weighted);
  ops.drop(gate, weighted);
  const out = ops.cast(gated, x.width);
  ops.drop(gated, variance);
  return out;
}
