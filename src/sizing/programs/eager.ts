import { FP32, type Ops } from "../ops.ts";
import type { Leaf, Tensor } from "../tape.ts";
import { rare } from "./context.ts";
import { type Heads, matrices, repeatedHeads } from "./kernels.ts";

/** How a family writes eager attention. */
export interface EagerStyle {
  /** Bytes an element that the softmax is asked for. */
  readonly softmaxWidth: number;
  /** Bytes an element that probabilities are cast to; null = they stay as they are. */
  readonly castTo: number | null;
  /** Scores go through `tanh(x / cap) * cap`. */
  readonly capped: boolean;
  /** Scores are scaled in place and the names of all steps live on (falcon); with alibi they are added in fp32 first. */
  readonly inPlace: "no" | "plain" | "alibi";
  /** Queries and keys are raised to fp32 first, and scores are masked by a causal buffer instead of scaled (gpt_neo). */
  readonly raised?: boolean;
  /** Scores have a name of their own before and after the mask, so that both live on (bloom). */
  readonly named?: boolean;
}

/** Attention written out in Python: scores, mask, softmax, dropout, product. */
export function eager(
  ops: Ops,
  asQuery: Tensor,
  asKey: Tensor,
  asValue: Tensor,
  mask: Tensor,
  heads: Heads,
  style: EagerStyle,
  sinks: Leaf | null = null,
): Tensor {
  const times = heads.queries / heads.keys;
  // Operands with a name of their own: raised, or put into order by head.
  const own = (t: Tensor) =>
    style.raised ? ops.cast(t, FP32) : style.named && !ops.single ? ops.copy(t) : ops.alias(t);
  const query = own(asQuery);
  const key = own(asKey);
  const value = style.named ? own(asValue) : ops.alias(asValue);
  const k = repeatedHeads(ops, key, heads.keys, times);
  const v = repeatedHeads(ops, value, heads.keys, times);
  const copies = times === 1 || heads.keys === 1;
  const held: Tensor[] = [];
  const probabilities = ops.within("scores", () => {
    const product = matrices(
      ops,
      query,
      k,
      heads.queries * ops.tokens * ops.tokens,
      heads.tokenMajor && !style.named,
      (heads.tokenMajor || (heads.keys === 1 && times > 1)) && copies && !style.named,
    );
    let scores = product;
    if (style.inPlace === "no") {
      scores = ops.scaled(product);
      ops.drop(product);
    } else if (style.inPlace === "alibi") {
      const full = ops.cast(product, FP32);
      scores = ops.shifted(full);
      held.push(product, full);
    }
    if (style.capped) scores = softCapped(ops, scores);
    const masked = ops.addition(scores, mask);
    if (style.inPlace === "no") ops.drop(scores);
    else held.push(scores);
    if (sinks !== null) return rare().withSinks(ops, masked, sinks, v.width, heads, held);
    const soft = ops.softmax(masked, style.raised ? FP32 : style.softmaxWidth);
    const back = style.castTo === null ? ops.alias(soft) : ops.cast(soft, style.castTo);
    ops.drop(soft);
    if (style.named) held.push(masked);
    else ops.drop(masked);
    if (!heads.dropout) return back;
    const dropped = ops.dropout(back);
    ops.drop(back);
    return dropped;
  });
  const values = heads.valueSize === undefined ? query.per : v.per;
  const out = matrices(
    ops,
    probabilities,
    v,
    values,
    false,
    heads.valuesTokenMajor && copies && !style.named,
  );
  const copied = ops.copy(out);
  ops.returned = probabilities;
  ops.drop(out, k, v);
  ops.drop(query, key, value);
  ops.dropAll(held);
  return copied;
}

/** `tanh(x / cap) * cap`; takes `x`. */
export function softCapped(ops: Ops, x: Tensor): Tensor {
  const divided = ops.scaled(x);
  const bounded = ops.tanh(divided);
  ops.drop(x, divided);
  const out = ops.scaled(bounded);
  ops.drop(bounded);
  return out;
}
