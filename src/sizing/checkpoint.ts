import type { Storage } from "./memory.ts";
import { FP32, HALF, type Ops } from "./ops.ts";
import type { Projection } from "./programs/context.ts";
import { forwardLayer, type Layer } from "./programs/layer.ts";
import type { Surroundings } from "./programs/surroundings.ts";
import type { Node, Tensor } from "./tape.ts";

/** A node that only catches a gradient. */
export function catcher(): Node {
  return { leaf: false, edges: [], saved: [], run: () => [], grads: [null], reached: false };
}

/** The projection that a layer ends with; null where it ends otherwise. */
function lastProjection({ shape, feedForward }: Layer): Projection | null {
  const { normPlacement, dropout } = shape;
  if (dropout.residual || normPlacement === "sandwich" || normPlacement.startsWith("post")) return null;
  return feedForward !== null && "output" in feedForward ? feedForward.output : null;
}

/**
 * The gradients that the backward of a last projection makes before it needs a saved tensor: cast to the branch's
 * dtype, and scaled for the adapter. Without dropout the recomputation beside them is never the highest.
 */
function beforeAdapter(ops: Ops, { width }: Tensor, { adapter, features }: Projection): Tensor {
  const cast = ops.autocast && width === FP32 ? 1 : 0;
  const scaled = adapter === null ? 0 : 1;
  return ops.perToken((cast + scaled) * features, ops.autocast ? HALF : width);
}

/**
 * What the backward of a layer makes before it needs a saved tensor: where it ends with experts, their sum's gradient
 * laid out for every choice; where with a projection that is quantised or has dropout, that one's.
 */
function beforeRecompute(ops: Ops, x: Tensor, layer: Layer): Tensor | null {
  const last = lastProjection(layer);
  if (last !== null && last.quantiser !== null) return last.quantiser.beforeRecompute(ops, last);
  if (last !== null && layer.dropsInputs) return beforeAdapter(ops, x, last);
  const { shape, feedForward } = layer;
  if (shape.normPlacement !== "pre" || shape.dropout.residual) return null;
  if (feedForward === null || !("router" in feedForward) || !("sum" in feedForward)) return null;
  const { experts, shared, sum } = feedForward;
  if (shared !== null || experts.everyToken) return null;
  return ops.perToken(experts.perToken * shape.hidden, sum.width);
}

/**
 * A layer under checkpointing: only what it is called with is kept, and its backward runs it again first. The
 * second run is under autocast of its own, ends at its last saved tensor, and leaves nothing behind.
 * Source: torch/utils/checkpoint.py, the non-reentrant form, which transformers 5 uses.
 */
export function checkpointedLayer(ops: Ops, x: Tensor, layer: Layer, around: Surroundings): Tensor {
  const { result, saves } = ops.unrecorded(() => forwardLayer(ops, x, layer, around));
  if (result.node === null) return result;
  const held: Storage[] = [x.storage];
  if (around.mask !== null) held.push(around.mask.storage);
  if (around.rotary !== null) held.push(around.rotary.cos.storage, around.rotary.sin.storage);
  const needs = ops.needsGrad(x);
  // Adapters alone may need the gradient; the node must then exist all the same.
  const input: Tensor = needs ? x : { ...x, node: catcher() };
  return ops.record(result, [input], held, (grad, grads) => {
    grads[0] = null;
    const { kind } = ops;
    const sink = catcher();
    const mark = ops.mark();
    const early = beforeRecompute(ops, x, layer);
    const out = ops.recomputed(saves, () =>
      forwardLayer(ops, { ...x, node: needs ? sink : null }, layer, around),
    );
    ops.endAutocast();
    ops.endLayer(false);
    ops.drop(out, early);
    ops.seed(out, grad);
    ops.backward(mark);
    ops.kind = kind;
    return [sink.grads[0] ?? null];
  });
}
