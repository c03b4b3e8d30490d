import type { Ops } from "../ops.ts";
import type { Tensor } from "../tape.ts";
import type { Context } from "./context.ts";
import { deltaNet, forwardDeltaNet } from "./delta-net.ts";
import { attendLatent, latentAttention } from "./latent.ts";
import { forwardScan, scan } from "./scan.ts";
import { forwardShortConvolution, shortConvolution } from "./short-convolution.ts";
import type { Surroundings } from "./surroundings.ts";

/** What stands in the place of usual attention: `x` is borrowed, the result owned. */
export interface Mixer {
  readonly forward: (ops: Ops, x: Tensor, around: Surroundings) => Tensor;
}

/** Whether the layers of this shape have no usual attention. */
export function mixer(context: Context): Mixer {
  const { latent, convolution, delta, scan: scanned } = context.shape;
  if (scanned !== undefined) {
    const block = scan(context, scanned);
    return { forward: (ops, x) => forwardScan(ops, x, block) };
  }
  if (latent !== undefined) {
    const block = latentAttention(context, latent);
    return { forward: (ops, x, around) => attendLatent(ops, x, block, around) };
  }
  if (delta !== undefined) {
    const block = deltaNet(context, delta);
    return { forward: (ops, x) => forwardDeltaNet(ops, x, block) };
  }
  const block = shortConvolution(context, convolution!);
  return { forward: (ops, x) => forwardShortConvolution(ops, x, block) };
}
