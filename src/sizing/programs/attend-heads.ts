import type { DecoderShape } from "../../model/types.ts";
import { FP32, type Ops } from "../ops.ts";
import type { Tensor } from "../tape.ts";
import type { Attention } from "./attention.ts";
import type { AttentionMode } from "./context.ts";
import { type EagerStyle, eager } from "./eager.ts";
import { type Heads, repeatedHeads, scaledDotProduct } from "./kernels.ts";

/** Scores, softmax and product, in the implementation that is asked for; `mask` is borrowed. */
export function attendHeads(
  ops: Ops,
  q: Tensor,
  k: Tensor,
  v: Tensor,
  mask: Tensor | null,
  heads: Heads,
  mode: AttentionMode,
  { shape, sinks }: Attention,
  inputWidth: number,
): Tensor {
  if (mode.implementation === "eager")
    return eager(ops, q, k, v, mask!, heads, eagerStyle(ops, shape, inputWidth, q, v), sinks);
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
    case "raised":
      return { softmaxWidth: FP32, castTo: v.width, inPlace: "no", capped, raised: true };
    case "named":
      return { softmaxWidth: FP32, castTo: q.width, inPlace: "plain", capped, named: true };
    case "plain":
      return { softmaxWidth: ops.autocast ? FP32 : v.width, castTo: v.width, inPlace: "no", capped };
    default:
      return { softmaxWidth: FP32, castTo: q.width, inPlace: "no", capped };
  }
}
