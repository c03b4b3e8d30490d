import type { DecoderShape } from "../../model/types.ts";
import { FP32, type Ops } from "../ops.ts";
import type { Leaf, Tensor } from "../tape.ts";
import { replaced } from "./attention.ts";
import type { Making } from "./context.ts";

export interface Norm {
  readonly type: DecoderShape["norm"];
  /** Features that a mean is over. */
  readonly features: number;
  readonly weight: Leaf | null;
  readonly bias: Leaf | null;
}

/** `weights` where they are more than the features that a mean is over. */
export function norm(context: Making, type: Norm["type"], features: number, weights = features): Norm {
  const { ops, weightWidth, trainBase } = context;
  return {
    type,
    features,
    weight:
      type === "layer-no-weight" || type === "rms-bare" ? null : ops.leaf(weights, weightWidth, trainBase),
    bias: type === "layer" || type === "layer-lowered" ? ops.leaf(features, weightWidth, trainBase) : null,
  };
}

/** A norm as transformers runs it: RMS norms step by step in fp32, layer norms as one kernel. */
export function normalize(ops: Ops, x: Tensor, { type, features, weight, bias }: Norm): Tensor {
  if (type === "layer" || type === "layer-no-bias") return ops.layerNorm(x, features, weight, bias);
  if (type === "layer-no-weight") {
    // OLMo's runs in fp32 and casts back.
    const raised = ops.cast(x, FP32);
    const normed = replaced(ops, raised, (t) => ops.layerNorm(t, features, null, null));
    return replaced(ops, normed, (t) => ops.cast(t, x.width));
  }
  if (type === "layer-lowered")
    return replaced(ops, ops.lowered(x), (t) => ops.uncast(() => ops.layerNorm(t, features, weight, bias)));
  if (type === "layer-written") return written(ops, x, features, weight!);
  const full = ops.cast(x, FP32);
  const squares = ops.power(full);
  const variance = ops.meanOfFeatures(squares, features);
  ops.drop(squares);
  // `torch.pow` keeps what it is of beside what the product keeps.
  const inverse = type === "rms-power" ? ops.power(variance) : ops.rsqrt(variance);
  const normed = ops.product(full, inverse);
  ops.drop(inverse);
  let out: Tensor;
  if (type === "rms-bare") {
    ops.drop(full);
    out = ops.cast(normed, x.width);
    ops.drop(normed, variance);
  } else if (type === "rms") {
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
    if (type === "rms-late" || type === "rms-power") ops.drop(normed);
    ops.drop(scaled, variance);
  }
  return out;
}

/** A layer norm in Python, in fp32: the difference to the mean is taken twice, the weight is raised. */
function written(ops: Ops, x: Tensor, features: number, weight: Leaf): Tensor {
  const full = ops.cast(x, FP32);
  const mean = ops.meanOfFeatures(full, features);
  const squares = replaced(ops, ops.addition(full, mean), (t) => ops.power(t));
  const variance = ops.meanOfFeatures(squares, features);
  ops.drop(squares);
  const centred = ops.addition(full, mean);
  const inverse = ops.rsqrt(variance);
  const normed = ops.product(centred, inverse);
  ops.drop(centred, inverse, full);
  const raised = ops.cast(weight, FP32);
  const scaled = ops.product(normed, raised);
  ops.drop(raised, normed);
  const out = ops.cast(scaled, x.width);
  ops.drop(scaled, mean, variance);
  return out;
}
