import type { ScoresShape } from "../model/types.ts";
import { FP32, type Ops } from "./ops.ts";
import type { Leaf, Tensor } from "./tape.ts";

const INT64 = 8;

/** The classifier's modules; no weight where the model is bare. */
interface Scorer {
  readonly scores: ScoresShape;
  readonly weight: Leaf | null;
  readonly bias: Leaf | null;
}

/**
 * Classifier and loss in the place of the vocabulary head, or the mean of what a bare model returns. Owns `hidden`;
 * `handed` is what the model returns beside the loss.
 */
export function scoresLoss(
  ops: Ops,
  hidden: Tensor,
  { scores, weight, bias }: Scorer,
): { readonly loss: Tensor; readonly handed: readonly Tensor[] } {
  if (scores.of === "nothing" || weight === null) {
    const loss = ops.record(ops.tensor(1, 0, hidden.width), [hidden], [], () => [ops.like(hidden)]);
    return { loss, handed: [hidden] };
  }
  const { labels } = scores;
  // Names of the model's forward hold all of these until the loss is there.
  const input = scores.dropout ? ops.dropout(hidden) : ops.alias(hidden);
  const logits = ops.linear(input, weight, bias, labels);
  if (scores.of === "tokens") {
    const upcast = ops.cast(logits, FP32);
    const targets = ops.tensor(0, ops.tokens, INT64);
    const logProbs = ops.like(upcast);
    const probs = ops.record(logProbs, [upcast], [logProbs.storage], () => [ops.like(logProbs)]);
    const loss = ops.record(ops.tensor(1, 0, FP32), [probs], [probs.storage, targets.storage], () => [
      ops.like(probs),
    ]);
    ops.drop(upcast, targets, probs);
    ops.drop(hidden, input);
    return { loss, handed: [logits] };
  }
  // One row a sample is taken; its gradient is one of all rows.
  const picked = ops.record(ops.tensor(0, labels, logits.width), [logits], [], () => [ops.like(logits)]);
  const loss = ops.record(ops.tensor(1, 0, FP32), [picked], [picked.storage], () => [ops.like(picked)]);
  ops.drop(hidden, input, logits);
  return { loss, handed: [picked] };
}

/**
 * What a user has to hear of a decoder without a vocabulary head: a script loads what its class says, whatever the
 * config names, and a causal LM holds the vocabulary's scores too.
 */
export function headCaution({ of }: ScoresShape): string {
  const named = of === "nothing" ? "a bare model" : "a classifier";
  return `Sized as ${named}, as the config's \`architectures\` says, without scores of the vocabulary; training it as a causal LM needs more. For that name a config.json with the family's ForCausalLM there.`;
}
