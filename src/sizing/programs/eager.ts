import { FP32, type Ops } from "../ops.ts";
import type { Tensor } from "../tape.ts";
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
}

/** Attention written out in Python: scores, mask, softmax, dropout, product. */
export function eager(
  ops: Ops,
  query: Tensor,
  key: Tensor,
  value: Tensor,
  mask: Tensor,
  heads: Heads,
  style: EagerStyle,
): Tensor {
  const times = heads.queries / heads.keys;
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
      heads.tokenMajor,
      heads.tokenMajor && copies,
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
    const soft = ops.softmax(masked, style.softmaxWidth);
    const back = style.castTo === null ? ops.alias(soft) : ops.cast(soft, style.castTo);
    ops.drop(soft, masked);
    if (!heads.dropout) return back;
    const dropped = ops.dropout(back);
    ops.drop(back);
    return dropped;
  });
  const out = matrices(ops, probabilities, v, query.per, false, heads.valuesTokenMajor && copies);
  const copied = ops.copy(out);
  ops.returned = probabilities;
  ops.drop(out, k, v);
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
