import { KINDS } from "./memory.ts";
import { FP32, HALF, type Ops } from "./ops.ts";
import type { Leaf, Tensor } from "./tape.ts";

const INT64 = 8;
const BOOL = 1;
/** Batches that the steps of the chunk's size are looked at for. */
const BATCHES = 512;

/**
 * Head and loss in one, as Liger's fused linear cross entropy computes them: the logits of a chunk of tokens at a
 * time, and at once the gradients of hidden states and head, which forward keeps for backward. A frozen head has no
 * gradient. Two kernels work in place and take nothing. `hidden` is borrowed; returns the loss, a scalar.
 * Source: liger_kernel/ops/fused_linear_cross_entropy.py (0.8).
 */
export function fusedLoss(
  ops: Ops,
  hidden: Tensor,
  { head, bias, vocab }: { readonly head: Leaf; readonly bias: Leaf | null; readonly vocab: number },
): Tensor {
  const features = head.fixed / vocab;
  const tokens = hidden.per / features;
  const padded = ops.tensor(0, tokens + 1, INT64);
  const labels = ops.tensor(0, tokens, INT64);
  const gradHidden = ops.like(hidden, hidden.width, KINDS.backward);
  const gradHead = head.trainable ? ops.like(head, head.width, KINDS.gradients) : null;
  const gradBias = bias?.trainable ? ops.like(bias) : null;
  const losses = ops.tensor(0, tokens, FP32);
  const counted = ops.tensor(0, tokens, BOOL);
  ops.drop(ops.tensor(1, 0, INT64));
  chunk(ops, hidden, head, { rows: rowsPerSample(tokens, features, vocab), features, vocab });
  const loss = ops.record(
    ops.tensor(1, 0, FP32),
    [hidden, head, bias],
    [gradHidden.storage, gradHead?.storage ?? null, gradBias?.storage ?? null],
    () => [
      ops.needsGrad(hidden) ? ops.alias(gradHidden) : null,
      gradHead === null ? null : ops.alias(gradHead),
      gradBias === null ? null : ops.alias(gradBias),
    ],
  );
  ops.drop(padded, labels, losses, counted);
  ops.drop(gradHidden, gradHead, gradBias);
  return loss;
}

/**
 * One chunk: its logits, their gradient in the same place, and the two products with it. Where autocast has to lower
 * the operands it makes copies.
 */
function chunk(
  ops: Ops,
  hidden: Tensor,
  head: Leaf,
  { rows, features, vocab }: { readonly rows: number; readonly features: number; readonly vocab: number },
): void {
  const plain = hidden.width === head.width && (!ops.autocast || hidden.width === HALF);
  const width = plain ? hidden.width : ops.autocast ? HALF : Math.max(hidden.width, head.width);
  const piece = () => ops.tensor(0, Math.ceil(rows * features), width);
  const logits = ops.tensor(0, Math.ceil(rows * vocab), width);
  if (plain) {
    // Products go into what is there; an fp32 gradient of the head is made and added.
    if (head.trainable && width === FP32) ops.drop(ops.like(head));
  } else {
    const lowers = head.width !== width;
    // Autocast keeps its copy of a trained head for the second product; the first one's, transposed, it makes anew.
    const kept = lowers && head.trainable ? ops.like(head, width, KINDS.casts) : null;
    ops.drop(piece(), lowers ? ops.like(head, width, KINDS.casts) : null, kept);
  }
  ops.drop(logits);
}

/**
 * Tokens a sample of the largest chunk, as a line in the batch that no batch exceeds. A chunk is the number of tokens
 * over ceil(vocabulary / features), raised to a power of two, and at most all: so of neighbouring batches one may need
 * up to twice as much a sample as the other.
 */
function rowsPerSample(tokens: number, features: number, vocab: number): number {
  const parts = Math.ceil(vocab / features);
  let most = 0;
  let power = 1;
  for (let samples = 1; samples <= BATCHES; samples++) {
    const all = samples * tokens;
    while (power * parts < all) power *= 2;
    most = Math.max(most, Math.min(power, all) / samples);
  }
  return most;
}
