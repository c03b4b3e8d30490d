import type { ContrastiveHead, StackBlock } from "../../model/stacks.ts";
import type { Projection } from "../programs/context.ts";
import type { Leaf, Tensor } from "../tape.ts";
import { attention as called, kernelOf, replaced } from "./kernels.ts";
import {
  activated,
  apply,
  linear,
  normalized,
  parameter,
  type Shop,
  type StackNormModule,
  stackNorm,
} from "./modules.ts";
import type { StackOps } from "./ops.ts";

/** How two towers' outputs become one vector each. */
export interface PoolModules {
  readonly text: Projection;
  /** The image's class token is normed, then projected; or a probe attends to all patches. */
  readonly norm: StackNormModule;
  readonly projection: Projection | null;
  readonly probe: {
    readonly query: Leaf;
    readonly inputs: readonly [Projection, Projection];
    readonly output: Projection;
    readonly feed: readonly [Projection, Projection];
  } | null;
}

export function poolModules(
  shop: Shop,
  head: ContrastiveHead,
  text: StackBlock,
  { hidden, ffn, norm }: StackBlock,
): PoolModules {
  const textProjection = linear(shop, text.hidden, head.width, head.textBias);
  const pooling = head.image === "attention-pool";
  const queryPart = pooling ? parameter(shop, hidden) : null;
  return {
    text: textProjection,
    norm: stackNorm(shop, norm, hidden),
    projection: pooling ? null : linear(shop, hidden, head.width, false),
    probe: pooling
      ? {
          query: queryPart!,
          inputs: [linear(shop, hidden, hidden, true), linear(shop, hidden, 2 * hidden, true)],
          output: linear(shop, hidden, hidden, true),
          feed: [linear(shop, hidden, ffn, true), linear(shop, ffn, hidden, true)],
        }
      : null,
  };
}

/** One vector of each image; `x` is borrowed. */
export function pool(ops: StackOps, x: Tensor, block: StackBlock, modules: PoolModules): Tensor {
  const { hidden, heads, headDim, activation } = block;
  const { probe, norm } = modules;
  if (probe === null) {
    const first = replaced(ops, ops.picked(x, hidden), (t) => normalized(ops, t, norm));
    return replaced(ops, first, (t) => apply(ops, t, modules.projection!));
  }
  // One product makes keys and values; they are then copied apart.
  const both = apply(ops, x, probe.inputs[1]);
  const probes = ops.expanded(probe.query);
  const query = replaced(ops, probes, (t) => apply(ops, t, probe.inputs[0]));
  const call = { heads, size: headDim, dropout: false, byToken: true, causal: false };
  const half = (): Tensor => {
    const copy = ops.tensor(0, both.per / 2, both.width);
    return ops.record(copy, [both], [], (grad) => [ops.tensor(0, both.per, grad.width)]);
  };
  const key = half();
  const value = half();
  const kernel = kernelOf("sdpa", ops.kernelWidth(query), false, call);
  const attended = called(ops, kernel, query, key, value, null, call);
  ops.drop(both, query, key, value);
  const out = replaced(ops, attended, (t) => apply(ops, t, probe.output));
  const normed = normalized(ops, out, norm);
  let fed = replaced(ops, normed, (t) => apply(ops, t, probe.feed[0]));
  fed = replaced(ops, fed, (t) => activated(ops, t, activation));
  fed = replaced(ops, fed, (t) => apply(ops, t, probe.feed[1]));
  const sum = ops.addition(out, fed);
  ops.drop(out, fed);
  return sum;
}
