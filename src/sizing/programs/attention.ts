import type { DecoderShape } from "../../model/types.ts";
import { FP32, type Ops } from "../ops.ts";
import type { Leaf, Tensor } from "../tape.ts";
import { attendHeads } from "./attend-heads.ts";
import { type AttentionMode, type Context, type Projection, project, projection } from "./context.ts";
import { type Heads, repeated } from "./kernels.ts";
import { type Norm, norm, normalize } from "./norms.ts";
import { part, type Rotary, rotate, sliced, turnedComplex } from "./rotary.ts";

export interface Attention {
  readonly shape: DecoderShape;
  /** One matrix for all three, or query, key and value. */
  readonly inputs: readonly Projection[];
  readonly output: Projection;
  readonly queryNorm: Norm | null;
  readonly keyNorm: Norm | null;
  readonly valueNorm: Norm | null;
  /** A learned score a head. */
  readonly sinks: Leaf | null;
}

export function attention(context: Context): Attention {
  const { shape } = context;
  const queries = shape.heads * shape.headDim;
  const keys = shape.kvHeads * shape.headDim;
  const adapter = context.attention;
  const make = (features: number) => projection(context, shape.hidden, features, shape.bias.qkv, adapter);
  const full = shape.qkNorm === "full";
  const normType = shape.qkNormBare
    ? "rms-bare"
    : shape.norm === "layer" || shape.norm === "layer-lowered"
      ? "layer-no-bias"
      : shape.norm;
  // Cohere's has a weight for each feature of all heads, and a mean for each head.
  const perHead = !full || normType === "layer-written" || (shape.qkNormByHead ?? false);
  const headNorm = (width: number) =>
    norm(context, normType, perHead ? shape.headDim : width, full ? width : shape.headDim);
  return {
    shape,
    inputs: shape.fusedQkv
      ? [make(queries + 2 * keys)]
      : [
          make(shape.outputGate ? 2 * queries : queries),
          make(keys),
          ...(shape.valueIsKey ? [] : [make(keys)]),
        ],
    output: projection(
      context,
      queries,
      shape.hidden,
      shape.bias.out,
      shape.outputUnadapted ? context.feedForward : adapter,
    ),
    queryNorm: shape.qkNorm === "none" ? null : headNorm(queries),
    keyNorm: shape.qkNorm === "none" ? null : headNorm(keys),
    valueNorm: shape.valueNorm ? norm(context, "rms-bare", shape.headDim) : null,
    sinks: shape.sinks ? context.ops.leaf(shape.heads, context.weightWidth, context.trainBase) : null,
  };
}

/** Attention from the normed residual to the output projection; names live until it returns, as in Python. */
export function attend(
  ops: Ops,
  x: Tensor,
  layer: Attention,
  shared: Rotary | null,
  mask: Tensor | null,
  mode: AttentionMode,
): Tensor {
  return ops.within("attention", () => {
    const { shape } = layer;
    // Some layers of a model may have no positions.
    const rotary = shape.rotary === 0 ? null : shared;
    const { query, key, value, held, gate, tokenMajor } = parts(ops, x, layer, rotary, mode);
    const keyHeads = shape.sharedKeysExpanded ? shape.heads : shape.kvHeads;
    const rotated = rotary !== null;
    const castBack = shape.rotaryFull ?? shape.norm === "rms-late";
    const named: Tensor[] | null = shape.rotaryNamed ? [] : null;
    let q: Tensor;
    let k: Tensor;
    if (rotary !== null && (shape.rotaryRaised || shape.rotaryComplex)) {
      const [query32, key32] = [ops.cast(query, FP32), ops.cast(key, FP32)];
      const turn = (t: Tensor) =>
        shape.rotaryComplex ? turnedComplex(ops, t, rotary) : rotate(ops, t, rotary, false);
      const [turned, turnedKey] = [turn(query32), turn(key32)];
      q = ops.cast(turned, query.width);
      k = ops.cast(turnedKey, key.width);
      ops.drop(query32, key32, turned, turnedKey);
    } else {
      q = rotated ? rotate(ops, query, rotary, castBack, named) : ops.alias(query);
      k = rotated ? rotate(ops, key, rotary, castBack, named) : ops.alias(key);
    }
    ops.drop(query, key);
    const { queryNorm, keyNorm } = layer;
    if (shape.qkNormAfterRotary && queryNorm !== null && keyNorm !== null) {
      q = replaced(ops, q, (t) => normalize(ops, t, queryNorm));
      k = replaced(ops, k, (t) => normalize(ops, t, keyNorm));
    }
    if (shape.queryRescaled) q = replaced(ops, q, (t) => ops.scaled(t));
    if (shape.queryTuned) {
      const scales = ops.tensor(ops.tokens, 0, FP32);
      q = replaced(ops, q, (t) => replaced(ops, ops.product(t, scales), (u) => ops.cast(u, t.width)));
      ops.drop(scales);
    }
    const byToken = tokenMajor && !(rotary?.concatenates ?? false);
    const heads: Heads = {
      queries: shape.heads,
      keys: keyHeads,
      size: shape.headDim,
      dropout: shape.dropout.attention,
      tokenMajor: byToken,
      valuesTokenMajor: tokenMajor,
    };
    let out = attendHeads(ops, q, k, value, mask, heads, mode, layer, x.width);
    if (gate !== null) {
      const open = ops.sigmoid(gate);
      out = replaced(ops, out, (t) => ops.product(t, open));
      ops.drop(open, gate);
    }
    const result = project(ops, out, layer.output);
    ops.drop(out, q, k, value);
    ops.drop(held);
    if (named !== null) ops.dropAll(named);
    return result;
  });
}

/** Which score matrices are kept, and gradients therefore ordered by head. */
function writesScores(shape: DecoderShape, mode: AttentionMode, halfOperands: boolean): boolean {
  if (mode.implementation === "eager") return true;
  const shared = shape.heads !== shape.kvHeads && !shape.sharedKeysExpanded;
  return shared && (mode.masked || !halfOperands);
}

function parts(ops: Ops, x: Tensor, layer: Attention, rotary: Rotary | null, mode: AttentionMode) {
  const { shape, inputs } = layer;
  const half = ops.autocast || x.width !== FP32;
  const byHead = writesScores(shape, mode, half);
  if (shape.fusedQkv) return fusedParts(ops, x, layer, rotary);
  const [queryProjection, keyProjection, valueProjection] = inputs as readonly [
    Projection,
    Projection,
    Projection | undefined,
  ];
  let query = project(ops, x, queryProjection);
  let gate: Tensor | null = null;
  if (shape.outputGate) {
    const [asked, gating] = split(ops, query, [0.5, 0.5]) as [Tensor, Tensor];
    gate = ops.copy(gating);
    ops.drop(query, gating);
    query = asked;
  }
  if (shape.queryScaledFirst) query = replaced(ops, query, (t) => ops.scaled(t));
  let key: Tensor;
  let early: Tensor | null = null;
  if (shape.qkNormAfterRotary) key = project(ops, x, keyProjection);
  else if (shape.qkNormByHead) {
    key = project(ops, x, keyProjection);
    const value = project(ops, x, valueProjection!);
    const byHead = (t: Tensor, norm: Norm) =>
      replaced(
        ops,
        replaced(ops, ops.reordered(t), (u) => normalize(ops, u, norm)),
        (u) => ops.copy(u),
      );
    query = replaced(ops, query, (t) => byHead(t, layer.queryNorm!));
    key = replaced(ops, key, (t) => byHead(t, layer.keyNorm!));
    return { query, key, value, held: null, gate, tokenMajor: true };
  } else if (shape.qkNorm === "full") {
    query = replaced(ops, query, (t) => normalize(ops, t, layer.queryNorm!));
    key = project(ops, x, keyProjection);
    key = replaced(ops, key, (t) => normalize(ops, t, layer.keyNorm!));
  } else if (shape.qkNorm === "per-head") {
    query = replaced(ops, query, (t) => normalize(ops, t, layer.queryNorm!));
    key = project(ops, x, keyProjection);
    if (valueProjection === undefined) early = ops.alias(key);
    key = replaced(ops, key, (t) => normalize(ops, t, layer.keyNorm!));
  } else key = project(ops, x, keyProjection);
  let value = early ?? project(ops, x, valueProjection!);
  const { valueNorm } = layer;
  if (valueNorm !== null) value = replaced(ops, value, (t) => normalize(ops, t, valueNorm));
  if (
    ((rotary !== null && !shape.rotaryComplex) || byHead) &&
    (shape.qkNorm !== "per-head" || shape.qkNormAfterRotary)
  ) {
    query = replaced(ops, query, (t) => ops.reordered(t));
    key = replaced(ops, key, (t) => ops.reordered(t));
  }
  if (byHead) value = replaced(ops, value, (t) => ops.reordered(t));
  return { query, key, value, held: null, gate, tokenMajor: true };
}

/** `f(x)` in the place of `x`. */
export function replaced(ops: Ops, x: Tensor, f: (x: Tensor) => Tensor): Tensor {
  const out = f(x);
  ops.drop(x);
  return out;
}

/** Query, key and value as parts of one tensor: views whose gradients are put together again. */
function fusedParts(ops: Ops, x: Tensor, layer: Attention, rotary: Rotary | null) {
  const { shape, inputs } = layer;
  const fused = project(ops, x, inputs[0]!);
  const total = shape.heads + 2 * shape.kvHeads;
  const fractions = [shape.heads / total, shape.kvHeads / total, shape.kvHeads / total];
  if (shape.fusedSplit === "slices" || shape.fusedSplit === "select") {
    // Three slices: each gradient is written into zeros of the whole, and the three are summed.
    const [query, key, value] = fractions.map((fraction) => sliced(ops, fused, fraction)) as [
      Tensor,
      Tensor,
      Tensor,
    ];
    return { query, key, value, held: fused, gate: null, tokenMajor: true };
  }
  if (shape.fusedSplit === "grouped") {
    const query = replaced(ops, sliced(ops, fused, fractions[0]!), (t) => ops.copy(t));
    const [key, value] = [sliced(ops, fused, fractions[1]!), sliced(ops, fused, fractions[2]!)];
    return { query, key, value, held: fused, gate: null, tokenMajor: true };
  }
  if (shape.fusedSplit === "shared-index") return sharedParts(ops, fused, shape);
  // One split: gradients are concatenated; by head where the split ran on a transposed view (gpt_neox).
  const whole = rotary === null ? ops.alias(fused) : ops.reordered(fused);
  const [query, key, value] = split(ops, whole, fractions) as [Tensor, Tensor, Tensor];
  ops.drop(whole);
  return { query, key, value, held: fused, gate: null, tokenMajor: true };
}

/** `x.split(...)` as views; the gradients are concatenated. */
export function split(ops: Ops, x: Tensor, fractions: readonly number[]): Tensor[] {
  const node = ops.node([x], [], (first) => [ops.like(x, first.width)], fractions.length);
  return fractions.map((fraction, slot) => ({ ...part(ops, x, fraction), node, slot }));
}

/** falcon: queries are a slice; shared keys and values are indexed (a copy), and with groups expanded to all heads. */
function sharedParts(ops: Ops, fused: Tensor, shape: DecoderShape) {
  const total = shape.heads + 2 * shape.kvHeads;
  const indexed = () => {
    const out = ops.tensor(0, Math.round((fused.per * shape.kvHeads) / total), fused.width);
    return ops.record(out, [fused], [], (grad) => [ops.tensor(0, fused.per, grad.width)]);
  };
  let query = sliced(ops, fused, shape.heads / total);
  let key = indexed();
  let value = indexed();
  if (shape.sharedKeysExpanded) {
    key = replaced(ops, key, (t) => repeated(ops, t, shape.heads / shape.kvHeads));
    value = replaced(ops, value, (t) => repeated(ops, t, shape.heads / shape.kvHeads));
    query = replaced(ops, query, (t) => ops.copy(t));
  }
  return { query, key, value, held: fused, gate: null, tokenMajor: true };
}
