import type { LatentShape } from "../../model/types.ts";
import { FP32, type Ops } from "../ops.ts";
import type { Tensor } from "../tape.ts";
import { replaced, split } from "./attention.ts";
import { type Context, type Projection, project, projection } from "./context.ts";
import { eager } from "./eager.ts";
import { type Heads, scaledDotProduct } from "./kernels.ts";
import { type Norm, norm, normalize } from "./norms.ts";
import { joined, type Rotary, rotate, sliced, turnedComplex, turnedPair } from "./rotary.ts";
import type { Surroundings } from "./surroundings.ts";
import { picked, type TokenIndex, tokenIndex } from "./token-index.ts";
import { written } from "./written.ts";

/** Attention whose queries, keys and values come of narrow latents (DeepSeek-V2, section 2.1). */
export interface LatentAttention {
  readonly heads: number;
  readonly latent: LatentShape;
  readonly dropout: boolean;
  /** Down, norm and up; or up alone. */
  readonly queryDown: Projection | null;
  readonly queryNorm: Norm | null;
  readonly queryUp: Projection;
  readonly keyDown: Projection;
  readonly keyNorm: Norm;
  readonly keyUp: Projection;
  readonly output: Projection;
  readonly index: TokenIndex | null;
}

export function latentAttention(context: Context, latent: LatentShape): LatentAttention {
  const { shape, attention: adapter } = context;
  const { hidden, heads, bias } = shape;
  const { queryRank, keyRank, nope, rope, value } = latent;
  const make = (from: number, to: number, biased: boolean) => projection(context, from, to, biased, adapter);
  const queries = heads * (nope + rope);
  return {
    heads,
    latent,
    dropout: shape.dropout.attention,
    queryDown: queryRank === null ? null : make(hidden, queryRank, bias.qkv),
    queryNorm: queryRank === null ? null : norm(context, shape.norm, queryRank),
    queryUp: make(queryRank ?? hidden, queries, false),
    keyDown: make(hidden, keyRank + rope, bias.qkv),
    keyNorm: norm(context, shape.norm, keyRank),
    keyUp: make(keyRank, heads * (nope + value), false),
    output: make(heads * value, hidden, bias.out),
    index: latent.index === undefined ? null : tokenIndex(context, latent.index, queryRank ?? hidden),
  };
}

/** From the normed residual to the output projection; `x` is borrowed. */
export function attendLatent(
  ops: Ops,
  x: Tensor,
  block: LatentAttention,
  { rotary, mask: shared, mode }: Surroundings,
): Tensor {
  return ops.within("attention", () => {
    const { latent, heads: count } = block;
    const { keyRank, nope, rope, value: valueSize } = latent;
    const queries = replaced(ops, queriesOf(ops, x, block), (t) => ops.reordered(t));
    const width = nope + rope;
    const [plain, toRotate] = split(ops, queries, [nope / width, rope / width]) as [Tensor, Tensor];
    const compressed = project(ops, x, block.keyDown);
    const both = keyRank + rope;
    const [narrow, keyToRotate] = split(ops, compressed, [keyRank / both, rope / both]) as [Tensor, Tensor];
    const normed = replaced(ops, narrow, (t) => normalize(ops, t, block.keyNorm));
    const [rotated, keyRotated] = rotations(ops, toRotate, keyToRotate, rotary!, latent.rotation);
    ops.drop(toRotate, keyToRotate);
    const query = joined(ops, plain, rotated);
    const wide = replaced(ops, project(ops, normed, block.keyUp), (t) => ops.reordered(t));
    const inner = nope + valueSize;
    const [keyPlain, value] = split(ops, wide, [nope / inner, valueSize / inner]) as [Tensor, Tensor];
    ops.drop(wide);
    const key = writtenKeys(ops, keyPlain, keyRotated, count * width, count * rope);
    ops.drop(keyPlain);
    const seen = block.index === null ? null : picked(ops, x, block.index);
    const mask = seen?.mask ?? shared;
    const heads: Heads = {
      queries: count,
      keys: count,
      size: width,
      valueSize,
      dropout: block.dropout,
      tokenMajor: false,
      valuesTokenMajor: true,
    };
    let out: Tensor;
    if (mode.implementation === "eager") {
      const style = { softmaxWidth: FP32, castTo: query.width, inPlace: "no", capped: false } as const;
      out = eager(ops, query, key, value, mask!, heads, style);
    } else if (mode.implementation === "flash") out = flashed(ops, query, key, value, heads);
    else {
      const result = scaledDotProduct(ops, query, key, value, mask, heads, false);
      out = result.tokenMajor ? result.out : replaced(ops, result.out, (t) => ops.copy(t));
    }
    const result = project(ops, out, block.output);
    ops.drop(out, query, key, value);
    ops.drop(queries, plain, rotated, compressed);
    ops.drop(keyRotated, normed, seen?.mask ?? null, seen?.picks ?? null);
    return result;
  });
}

function queriesOf(ops: Ops, x: Tensor, { queryDown, queryNorm, queryUp }: LatentAttention): Tensor {
  if (queryDown === null) return project(ops, x, queryUp);
  const normed = replaced(ops, project(ops, x, queryDown), (t) => normalize(ops, t, queryNorm!));
  return replaced(ops, normed, (t) => project(ops, t, queryUp));
}

function rotations(
  ops: Ops,
  q: Tensor,
  k: Tensor,
  rotary: Rotary,
  style: LatentShape["rotation"],
): readonly [Tensor, Tensor] {
  const whole = { ...rotary, fraction: 1, concatenates: false };
  switch (style) {
    case "halves":
      return [rotate(ops, q, whole, false), rotate(ops, k, whole, false)];
    case "interleaved":
      return [pairwise(ops, q, rotary), pairwise(ops, k, rotary)];
    case "complex": {
      const query = ops.cast(q, FP32);
      const key = ops.cast(k, FP32);
      const back = (t: Tensor, width: number) =>
        replaced(ops, turnedComplex(ops, t, rotary), (u) => ops.cast(u, width));
      const turned = [back(query, q.width), back(key, k.width)] as const;
      ops.drop(query, key);
      return turned;
    }
  }
}

/** Even and odd features against each other. */
function pairwise(ops: Ops, x: Tensor, rotary: Rotary): Tensor {
  return turnedPair(ops, sliced(ops, x, 0.5), sliced(ops, x, 0.5), rotary);
}

/** Keys written part by part into an empty tensor, the rotated part for every head. */
function writtenKeys(
  ops: Ops,
  plain: Tensor,
  rotated: Tensor,
  features: number,
  rotatedFeatures: number,
): Tensor {
  const key = ops.perToken(features, plain.width);
  const first = replaced(ops, key, (t) => written(ops, t, plain, (features - rotatedFeatures) * ops.tokens));
  return replaced(ops, first, (t) => written(ops, t, rotated, rotatedFeatures * ops.tokens));
}

/** flash_attn wants values as wide as queries: they are padded, and the result is cut again. */
function flashed(ops: Ops, query: Tensor, key: Tensor, value: Tensor, heads: Heads): Tensor {
  const q = ops.lowered(query);
  const k = ops.lowered(key);
  const v = ops.lowered(value);
  const padded = ops.record(ops.like(q), [v], [], (grad) => [ops.tensor(0, value.per, grad.width)]);
  const { valueSize, ...alike } = heads;
  const { out } = scaledDotProduct(ops, q, k, padded, null, alike, true);
  ops.drop(q, k, v, padded);
  const cut = sliced(ops, out, (valueSize ?? heads.size) / heads.size);
  ops.drop(out);
  return replaced(ops, cut, (t) => ops.copy(t));
}
