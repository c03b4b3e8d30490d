import type { DecoderShape } from "../../model/types.ts";
import { FP32, type Ops } from "../ops.ts";
import type { Tensor } from "../tape.ts";
import { type AttentionMode, type Context, type Projection, project, projection } from "./context.ts";
import { type EagerStyle, eager } from "./eager.ts";
import { type Heads, repeated, repeatedHeads, scaledDotProduct } from "./kernels.ts";
import { type Norm, norm, normalize } from "./norms.ts";
import { part, type Rotary, rotate, sliced } from "./rotary.ts";

export interface Attention {
  readonly shape: DecoderShape;
  /** One matrix for all three, or query, key and value. */
  readonly inputs: readonly Projection[];
  readonly output: Projection;
  readonly queryNorm: Norm | null;
  readonly keyNorm: Norm | null;
}

export function attention(context: Context): Attention {
  const { shape } = context;
  const queries = shape.heads * shape.headDim;
  const keys = shape.kvHeads * shape.headDim;
  const adapter = context.attention;
  const make = (features: number) => projection(context, shape.hidden, features, shape.bias.qkv, adapter);
  const full = shape.qkNorm === "full";
  const normType = shape.norm === "layer" ? "layer-no-bias" : shape.norm;
  return {
    shape,
    inputs: shape.fusedQkv ? [make(queries + 2 * keys)] : [make(queries), make(keys), make(keys)],
    output: projection(
      context,
      queries,
      shape.hidden,
      shape.bias.out,
      shape.outputUnadapted ? context.feedForward : adapter,
    ),
    queryNorm: shape.qkNorm === "none" ? null : norm(context, normType, full ? queries : shape.headDim),
    keyNorm: shape.qkNorm === "none" ? null : norm(context, normType, full ? keys : shape.headDim),
  };
}

/** Attention from the normed residual to the output projection; names live until it returns, as in Python. */
export function attend(
  ops: Ops,
  x: Tensor,
  layer: Attention,
  rotary: Rotary | null,
  mask: Tensor | null,
  mode: AttentionMode,
): Tensor {
  return ops.within("attention", () => {
    const { shape } = layer;
    const { query, key, value, held, tokenMajor } = parts(ops, x, layer, rotary, mode);
    const keyHeads = shape.sharedKeysExpanded ? shape.heads : shape.kvHeads;
    const rotated = rotary !== null;
    const q = rotated ? rotate(ops, query, rotary, shape.norm === "rms-late") : ops.alias(query);
    const k = rotated ? rotate(ops, key, rotary, shape.norm === "rms-late") : ops.alias(key);
    ops.drop(query, key);
    const byToken = tokenMajor && !(rotary?.concatenates ?? false);
    const heads: Heads = {
      queries: shape.heads,
      keys: keyHeads,
      size: shape.headDim,
      dropout: shape.dropout.attention,
      tokenMajor: byToken,
      valuesTokenMajor: tokenMajor,
    };
    const out = core(ops, q, k, value, mask, heads, mode, shape, x.width);
    const result = project(ops, out, layer.output);
    ops.drop(out, q, k, value);
    ops.drop(held);
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
    Projection,
  ];
  let query = project(ops, x, queryProjection);
  if (shape.queryScaledFirst) query = replaced(ops, query, (t) => ops.scaled(t));
  let key: Tensor;
  if (shape.qkNorm === "full") {
    query = replaced(ops, query, (t) => normalize(ops, t, layer.queryNorm!));
    key = project(ops, x, keyProjection);
    key = replaced(ops, key, (t) => normalize(ops, t, layer.keyNorm!));
  } else if (shape.qkNorm === "per-head") {
    query = replaced(ops, query, (t) => normalize(ops, t, layer.queryNorm!));
    key = project(ops, x, keyProjection);
    key = replaced(ops, key, (t) => normalize(ops, t, layer.keyNorm!));
  } else key = project(ops, x, keyProjection);
  let value = project(ops, x, valueProjection);
  if ((rotary !== null || byHead) && shape.qkNorm !== "per-head") {
    query = replaced(ops, query, (t) => ops.reordered(t));
    key = replaced(ops, key, (t) => ops.reordered(t));
  }
  if (byHead) value = replaced(ops, value, (t) => ops.reordered(t));
  return { query, key, value, held: null, tokenMajor: true };
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
    return { query, key, value, held: fused, tokenMajor: true };
  }
  if (shape.fusedSplit === "shared-index") return sharedParts(ops, fused, shape);
  // One split: gradients are concatenated; by head where the split ran on a transposed view (gpt_neox).
  const whole = rotary === null ? ops.alias(fused) : ops.reordered(fused);
  const [query, key, value] = split(ops, whole, fractions) as [Tensor, Tensor, Tensor];
  ops.drop(whole);
  return { query, key, value, held: fused, tokenMajor: true };
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
  return { query, key, value, held: fused, tokenMajor: true };
}

function core(
  ops: Ops,
  q: Tensor,
  k: Tensor,
  v: Tensor,
  mask: Tensor | null,
  heads: Heads,
  mode: AttentionMode,
  shape: DecoderShape,
  inputWidth: number,
): Tensor {
  if (mode.implementation === "eager")
    return eager(ops, q, k, v, mask!, heads, eagerStyle(ops, shape, inputWidth, q, v));
  const times = heads.queries / heads.keys;
  // transformers hands shared heads to the kernel only without a mask; else it repeats them itself.
  const repeats = times > 1 && !shape.callsKernelDirectly && (mode.masked || heads.size > 256);
  const key = repeats ? repeatedHeads(ops, k, heads.keys, times) : ops.alias(k);
  const value = repeats ? repeatedHeads(ops, v, heads.keys, times) : ops.alias(v);
  const handed = repeats ? { ...heads, keys: heads.queries } : heads;
  const { out, tokenMajor } = scaledDotProduct(
    ops,
    q,
    key,
    value,
    mask,
    handed,
    mode.implementation === "flash",
  );
  if (tokenMajor) {
    ops.drop(key, value);
    return out;
  }
  const copied = ops.copy(out);
  ops.drop(out, key, value);
  return copied;
}

function eagerStyle(ops: Ops, shape: DecoderShape, inputWidth: number, q: Tensor, v: Tensor): EagerStyle {
  const capped = shape.softcap.attention;
  switch (shape.eagerStyle) {
    case "in-place":
      return { softmaxWidth: inputWidth, castTo: null, inPlace: shape.alibi ? "alibi" : "plain", capped };
    case "plain":
      return { softmaxWidth: ops.autocast ? FP32 : v.width, castTo: v.width, inPlace: "no", capped };
    default:
      return { softmaxWidth: FP32, castTo: q.width, inPlace: "no", capped };
  }
}
