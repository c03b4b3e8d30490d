import { HALF, type Ops } from "../ops.ts";
import type { Leaf, Tensor } from "../tape.ts";
import type { Adapter, Context } from "./context.ts";

/**
 * LoRA on parameters that no linear layer holds: peft adds the product of the two factors to the weights and runs
 * the layer with the sum, a tensor as large as the weights. Source: peft/tuners/lora/layer.py, `ParamWrapper`.
 */
export interface MergedAdapter {
  readonly down: Leaf;
  readonly up: Leaf;
}

/** Factors for `count` matrices of this size. */
export function mergedAdapter(
  { ops }: Context,
  count: number,
  inFeatures: number,
  features: number,
  { rank, width }: Adapter,
): MergedAdapter {
  return {
    down: ops.leaf(count * rank * inFeatures, width, true, count * rank + inFeatures),
    up: ops.leaf(count * rank * features, width, true, count * rank + features),
  };
}

/** The factors in the weights' dtype; names of the wrapper, which live as long as the layer runs. */
export function factorsOf(ops: Ops, { down, up }: MergedAdapter, weight: Leaf): readonly [Tensor, Tensor] {
  const factors = [ops.cast(up, weight.width), ops.cast(down, weight.width)] as const;
  // The parametrisation is tried out once before it is used.
  ops.workspace(weight.fixed * weight.width, 0);
  return factors;
}

/** `weight + up @ down` as one operator; the weights need no gradient. */
export function folded(ops: Ops, weight: Leaf, [up, down]: readonly [Tensor, Tensor]): Tensor {
  const out = ops.tensor(weight.fixed, 0, weight.width);
  return ops.record(out, [up, down], [up.storage, down.storage], () => {
    const grads = [ops.like(up), ops.like(down)];
    ops.workspace(up.fixed * up.width, 0);
    return grads;
  });
}

/** `weight + up @ down * scaling` step by step, as a single matrix is merged: the product runs under autocast. */
export function added(ops: Ops, weight: Leaf, { down, up }: MergedAdapter): Tensor {
  const left = ops.lowered(up);
  const right = ops.lowered(down);
  const product = ops.record(
    ops.tensor(weight.fixed, 0, ops.autocast ? HALF : left.width),
    [left, right],
    [left.storage, right.storage],
    () => [ops.like(left), ops.like(right)],
  );
  ops.drop(left, right);
  const scaled = ops.scaled(product);
  ops.drop(product);
  const delta = ops.cast(scaled, weight.width);
  const sum = ops.addition(delta, weight);
  ops.drop(delta, scaled);
  return sum;
}
