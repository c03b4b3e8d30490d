import { catcher } from "../checkpoint.ts";
import type { Storage } from "../memory.ts";
import { FP32, HALF } from "../ops.ts";
import type { Tensor } from "../tape.ts";
import type { StackOps } from "./ops.ts";

/**
 * A layer of several inputs under checkpointing: only what it is called with is kept, and its backward runs it again
 * first, under autocast of its own. Source: torch/utils/checkpoint.py, the non-reentrant form.
 */
export function checkpointed(
  ops: StackOps,
  inputs: readonly Tensor[],
  held: readonly Storage[],
  /** The layer ends with a sum, whose gradient is cast for its 16-bit branch before anything asks for the second run. */
  endsWithSum: boolean,
  /** Bytes that the second run makes anew of what other layers are handed. */
  again: number,
  run: (inputs: readonly Tensor[]) => Tensor,
): Tensor {
  const { result, saves } = ops.unrecorded(() => run(inputs));
  if (result.node === null) return result;
  const needed = inputs.map((input) => ops.needsGrad(input));
  // Adapters alone may need the gradient; the node must then exist all the same.
  const edges = needed.includes(true)
    ? inputs.map((input, index) => (needed[index] ? input : null))
    : [{ ...inputs[0]!, node: catcher() }];
  return ops.record(result, edges, [...inputs.map(({ storage }) => storage), ...held], (grad, grads) => {
    grads[0] = null;
    const { kind } = ops;
    const sinks = needed.map((need) => (need ? catcher() : null));
    const mark = ops.mark();
    const own = ops.alloc(again, 0);
    const early = endsWithSum && ops.autocast && grad.width === FP32 ? ops.like(grad, HALF) : null;
    const out = ops.recomputed(saves, () =>
      run(inputs.map((input, index) => ({ ...input, node: sinks[index] ?? null }))),
    );
    ops.endAutocast();
    ops.endLayer(false);
    ops.drop(out, early);
    ops.seed(out, grad);
    ops.backward(mark);
    ops.release(own);
    ops.kind = kind;
    return needed.includes(true) ? sinks.map((sink) => sink?.grads[0] ?? null) : [null];
  });
}
