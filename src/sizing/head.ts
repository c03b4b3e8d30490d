import { FP32 } from "./ops.ts";
import { replaced } from "./programs/attention.ts";
import { type Context, project, projection } from "./programs/context.ts";
import { softCapped } from "./programs/eager.ts";
import { norm, normalize } from "./programs/norms.ts";
import type { Leaf, Tensor } from "./tape.ts";

/** The modules after the last layer. */
export function headModules(context: Context, table: Leaf) {
  const { ops, shape, weightWidth, trainBase } = context;
  const { scores } = shape;
  const made = (count: number, factored = count) => ops.leaf(count, weightWidth, trainBase, factored);
  return {
    norm: shape.finalNorm ? norm(context, shape.norm, shape.hidden) : null,
    projectOut:
      shape.embedWidth === shape.hidden
        ? null
        : projection(context, shape.hidden, shape.embedWidth, false, context.feedForward),
    head: shape.tiedHead ? table : made(shape.vocab * shape.embedWidth, shape.vocab + shape.embedWidth),
    scorer: scores ? made(scores.labels * shape.embedWidth, scores.labels + shape.embedWidth) : null,
    scorerBias: scores?.bias ? made(scores.labels) : null,
    bias: shape.bias.head ? made(shape.vocab) : null,
  };
}
export type HeadModules = ReturnType<typeof headModules>;

/** What comes after the last layer and before the head. */
export function forwardFinal(
  { ops, shape, weightWidth }: Context,
  { norm: final, projectOut }: HeadModules,
  out: Tensor,
): Tensor {
  let normed =
    final === null ? out : replaced(ops, out, (t) => ops.within("norms", () => normalize(ops, t, final)));
  // The head is handed what has the weights' own dtype.
  if (shape.residualFull) normed = replaced(ops, normed, (t) => ops.cast(t, weightWidth));
  if (projectOut === null) return normed;
  return replaced(ops, normed, (t) => ops.within("head", () => project(ops, t, projectOut)));
}

/** What the end of the forward depends on beside the head. */
interface Around {
  /** Copies that autocast made in layers that are not run and that only its cache holds. */
  readonly cachedBetween: number;
  readonly fused: boolean;
  /** What a model returns beside its logits. */
  readonly returned: readonly Tensor[];
}

/**
 * Head and loss, to the end of the model's forward: autocast ends and its copies die unless backward needs them.
 * `scored` is where the nodes of the loss begin, when the logits are there.
 */
export function lossOf(
  { ops, shape }: Context,
  { head, bias, scorer, scorerBias }: HeadModules,
  hidden: Tensor,
  { cachedBetween, fused, returned }: Around,
): { readonly loss: Tensor; readonly scored: number } {
  return ops.within("head", () => {
    const { autocast } = ops;
    // Under autocast accelerate hands the outputs on in fp32; Trainer drops them before backward.
    const hand = (outputs: readonly Tensor[]) => {
      const handed = outputs.map((t) => (autocast ? ops.cast(t, FP32) : ops.alias(t)));
      ops.dropAll(handed);
      ops.dropAll(outputs);
    };
    if (shape.scores !== undefined) {
      const { scoresLoss } = require("./unusual.ts") as typeof import("./unusual.ts");
      const { loss, handed } = scoresLoss(ops, hidden, {
        scores: shape.scores,
        weight: scorer,
        bias: scorerBias,
      });
      ops.endAutocast();
      if (cachedBetween > 0) ops.shift("casts", -cachedBetween, 0);
      hand([...handed, ...returned]);
      return { loss, scored: ops.mark() };
    }
    if (fused) {
      // Scaled logits are those of scaled hidden states; capping is the kernel's.
      const scaled = shape.multipliers.logits ? ops.scaled(hidden) : ops.alias(hidden);
      const { fusedLoss } = require("./unusual.ts") as typeof import("./unusual.ts");
      const loss = fusedLoss(ops, scaled, { head, bias, vocab: shape.vocab });
      ops.drop(hidden, scaled);
      ops.endAutocast();
      if (cachedBetween > 0) ops.shift("casts", -cachedBetween, 0);
      hand(returned);
      return { loss, scored: ops.mark() };
    }
    let logits = ops.linear(hidden, head, bias, shape.vocab);
    if (shape.multipliers.logits) logits = replaced(ops, logits, (t) => ops.scaled(t));
    if (shape.softcap.logits) logits = softCapped(ops, logits);
    const scored = ops.mark();
    const loss = ops.crossEntropy(logits);
    ops.drop(hidden);
    ops.endAutocast();
    if (cachedBetween > 0) ops.shift("casts", -cachedBetween, 0);
    hand([logits, ...returned]);
    return { loss, scored };
  });
}
