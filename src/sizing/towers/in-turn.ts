import { FP32 } from "../ops.ts";
import type { Call } from "../stacks/kernels.ts";
import type { StackOps } from "../stacks/ops.ts";
import type { Tensor } from "../tape.ts";

/**
 * Eager attention over one block of tokens after the other (an image, a window): what backward needs of each block
 * adds up, what is let go at once is there for one block only.
 */
export function eagerInTurn(ops: StackOps, query: Tensor, key: Tensor, value: Tensor, call: Call): Tensor {
  const tokens = query.per / (call.heads * call.size);
  const chunk = call.chunk ?? tokens;
  const q = ops.lowered(query);
  const k = ops.lowered(key);
  const v = ops.lowered(value);
  const { width } = q;
  const block = call.heads * chunk * chunk;
  const kept = ops.recording && ops.needsGrad(q);
  const out = ops.within("scores", () => {
    const many = kept ? call.heads * chunk * tokens : 0;
    const soft = ops.tensor(0, many, FP32);
    // Products and their scaled form; then that, its copy in fp32, and what is kept of it.
    const raised = width === FP32 ? 0 : FP32;
    ops.workspace(block * Math.max(2 * width, width + raised + (kept ? 0 : FP32)), 0);
    const probabilities = width === FP32 ? ops.alias(soft) : ops.tensor(0, many, width);
    const result = ops.like(q);
    const saved = [q, k, v, soft, probabilities].map(({ storage }) => storage);
    const done = ops.record(result, [q, k, v], saved, () => {
      const grads = [ops.like(q), ops.like(k), ops.like(v)];
      // Gradients of probabilities and of scores, both in fp32; lowered probabilities have died by then.
      ops.workspace(block * (2 * FP32 - (width === FP32 ? 0 : width)), 0);
      return grads;
    });
    ops.drop(soft, probabilities);
    return done;
  });
  ops.drop(q, k, v);
  return out;
}
