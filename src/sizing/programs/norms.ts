import type { DecoderShape } from "../../model/types.ts";
import { FP32, type Ops } from "../ops.ts";
import type { Leaf, Tensor } from "../tape.ts";
import type { Context } from "./context.ts";

export interface Norm {
  readonly type: DecoderShape["norm"];
  readonly features: number;
  readonly weight: Leaf | null;
  readonly bias: Leaf | null;
}

export function norm(context: Context, type: Norm["type"], features: number): Norm {
  const { ops, weightWidth, trainBase } = context;
  return {
    type,
    features,
    weight: type === "layer-no-weight" ? null : ops.leaf(features, weightWidth, trainBase),
    bias: type === "layer" ? ops.leaf(features, weightWidth, trainBase) : null,
  };
}

/** A norm as transformers runs it: RMS norms step by step in fp32, layer norms as one kernel. */
export function normalize(ops: Ops, x: Tensor, { type, features, weight, bias }: Norm): Tensor {
  if (type === "layer" || type === "layer-no-bias" || type === "layer-no-weight")
    return ops.layerNorm(x, features, weight, bias);
  const full = ops.cast(x, FP32);
  const squares = ops.power(full);
  const variance = ops.meanOfFeatures(squares, features);
  ops.drop(squares);
  const inverse = ops.rsqrt(variance);
  const normed = ops.product(full, inverse);
  ops.drop(inverse);
  let out: Tensor;
  if (type === "rms") {
    // weight * normed.to(dtype)
    ops.drop(full);
    const back = ops.cast(normed, x.width);
    out = ops.scaledBy(back, weight!);
    ops.drop(back, normed, variance);
  } else {
    // (weight * normed).to(dtype)
    ops.drop(full);
    const scaled = ops.scaledBy(normed, weight!);
    if (type === "rms-plus-one") ops.drop(normed);
    out = ops.cast(scaled, x.width);
    if (type === "rms-late") ops.drop(normed);
    ops.drop(scaled, variance);
  }
  return out;
}
