import { FP32 } from "../ops.ts";
import { split } from "../programs/attention.ts";
import { repeated, scaledDotProduct } from "../programs/kernels.ts";
import type { Plan } from "../recipe.ts";
import { dropped, eager, replaced } from "../stacks/kernels.ts";
import type { Leaf, Tensor } from "../tape.ts";
import type { Call } from "./layers.ts";
import type { GraphOps } from "./ops.ts";

/** Heads of queries and of keys, and the numbers of each. */
export interface Heads {
  readonly heads: number;
  readonly keyHeads: number;
  readonly size: number;
}

/** What attention does beside its products. */
export interface Manner {
  readonly dropout?: boolean;
  /** Queries and keys are rotated by their positions first. */
  readonly turns?: boolean;
}

/** Scores, softmax and product of queries, keys and values that are ordered by token. All are borrowed. */
export function attend(
  ops: GraphOps,
  query: Tensor,
  key: Tensor,
  value: Tensor,
  heads: Heads,
  plan: Plan,
  { dropout = false, turns = false }: Manner,
): Tensor {
  const tokens = Math.max(1, query.per / (heads.heads * heads.size));
  const placed = (t: Tensor) => (turns ? turned(ops, t) : ops.alias(t));
  return ops.at(tokens, () =>
    ops.within("attention", () => {
      const [q, k] = [placed(query), placed(key)];
      const out =
        plan.implementation === "eager"
          ? written(ops, q, k, value, heads, dropout)
          : byKernel(ops, q, k, value, heads, plan, dropout);
      ops.drop(q, k);
      return out;
    }),
  );
}

function written(
  ops: GraphOps,
  q: Tensor,
  key: Tensor,
  value: Tensor,
  { heads, keyHeads, size }: Heads,
  dropout: boolean,
): Tensor {
  const times = heads / keyHeads;
  const [k, v] = [repeated(ops, key, times), repeated(ops, value, times)];
  const call = { heads, size, dropout, byToken: true, causal: false };
  const out = eager(ops, q, k, v, [], call, true);
  ops.drop(ops.returned, k, v);
  ops.returned = null;
  return out;
}

function byKernel(
  ops: GraphOps,
  q: Tensor,
  k: Tensor,
  v: Tensor,
  { heads, keyHeads, size }: Heads,
  plan: Plan,
  dropout: boolean,
): Tensor {
  const { tokens } = ops;
  const mask = plan.paddingMask ? ops.tensor(0, tokens * tokens, 1) : null;
  const shape = { queries: heads, keys: keyHeads, size, dropout, tokenMajor: true, valuesTokenMajor: true };
  const { out, tokenMajor } = scaledDotProduct(ops, q, k, v, mask, shape, plan.implementation === "flash");
  ops.drop(mask);
  return tokenMajor ? out : replaced(ops, out, (t) => ops.copy(t));
}

/** `x * cos + rotate_half(x) * sin`: of the two products nothing is kept but the angles. */
function turned(ops: GraphOps, x: Tensor): Tensor {
  const straight = ops.scaled(x);
  const crossed = replaced(ops, ops.copy(x), (t) => ops.scaled(t));
  const sum = ops.addition(straight, crossed);
  ops.drop(straight, crossed);
  return sum;
}

/** Queries, keys and values out of one tensor. */
export function attendFused(
  ops: GraphOps,
  fused: Tensor,
  heads: Heads,
  plan: Plan,
  manner: Manner = {},
): Tensor {
  const total = heads.heads + 2 * heads.keyHeads;
  const fractions = [heads.heads / total, heads.keyHeads / total, heads.keyHeads / total];
  const [q, k, v] = split(ops, fused, fractions) as [Tensor, Tensor, Tensor];
  const out = attend(ops, q, k, v, heads, plan, manner);
  ops.drop(q, k, v);
  return out;
}

/** `nn.MultiheadAttention` and its like on one input: a matrix for all three, attention, a matrix behind it. */
export function attentionLayer(
  ops: GraphOps,
  x: Tensor,
  { leaves, input, plan }: Pick<Call, "leaves" | "input" | "plan">,
  heads: Heads,
  dropout = false,
): Tensor {
  const { into, intoBias, out, outBias } = matricesOf(leaves);
  const queries = heads.heads * heads.size;
  // PyTorch orders a batch token by token first, and lays queries, keys and values out one after the other.
  const byToken = replaced(ops, ops.lowered(x), (t) => ops.copy(t));
  const fused = ops.linear(byToken, into, intoBias, queries + 2 * heads.keyHeads * heads.size);
  ops.drop(byToken);
  const laid = replaced(ops, fused, (t) => ops.copy(t));
  let attended = replaced(ops, laid, (t) => attendFused(ops, t, heads, plan, { dropout }));
  if (attended.width === FP32 && plan.implementation !== "eager")
    attended = replaced(ops, attended, (t) => ops.copy(t));
  const result = ops.linear(attended, out, outBias, input.at(-1)!);
  ops.drop(attended);
  return result;
}

function matricesOf(leaves: readonly Leaf[]) {
  const biased = leaves.length >= 4;
  return {
    into: leaves[0]!,
    intoBias: biased ? leaves[1]! : null,
    out: leaves[biased ? 2 : 1]!,
    outBias: biased ? leaves[3]! : null,
  };
}

/** `nn.TransformerEncoderLayer` with its usual dropout: attention, its sum and norm, the feed-forward with its own. */
export function transformerLayer(ops: GraphOps, x: Tensor, call: Call, heads: Heads): Tensor {
  const { leaves, layer } = call;
  const width = call.input.at(-1)!;
  const own = leaves.slice(0, 4);
  const [wide, wideBias, narrow, narrowBias, w1, b1, w2, b2] = leaves.slice(4) as Leaf[];
  const attended = replaced(ops, attentionLayer(ops, x, { ...call, leaves: own }, heads, true), (t) =>
    ops.dropout(t),
  );
  const sum = ops.addition(x, attended);
  ops.drop(attended);
  const normed = replaced(ops, sum, (t) => ops.layerNorm(t, width, w1!, b1!));
  const inner = ops.linear(normed, wide!, wideBias!, layer.sizes.inner!);
  const active = dropped(
    ops,
    replaced(ops, inner, (t) => ops.gelu(t)),
  );
  const fed = dropped(
    ops,
    replaced(ops, active, (t) => ops.linear(t, narrow!, narrowBias!, width)),
  );
  const second = ops.addition(normed, fed);
  ops.drop(normed, fed);
  return replaced(ops, second, (t) => ops.layerNorm(t, width, w2!, b2!));
}
