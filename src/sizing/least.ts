import type { Recipe } from "../facts/types.ts";
import { planOf } from "./recipe.ts";

/** What a lower bound is taken of. */
export interface LeastOf {
  readonly params: number;
  /** Words of the output head; 0 where there is none. */
  readonly vocab: number;
  readonly recipe: Recipe;
  /** Samples over all cards that share the job. */
  readonly samples: number;
  readonly seqLen: number;
}

/**
 * Bytes that a job cannot go below: its weights and, where they are trained, their gradients and optimizer state; or
 * its weights and what the loss holds, at least two fp32 copies of the logits. A quick answer to "can this fit at
 * all" before a whole step is walked.
 */
export function leastBytes({ params, vocab, recipe, samples, seqLen }: LeastOf): number {
  const plan = planOf(recipe);
  const weights = params * plan.weightWidth;
  const state = weights * (plan.trainBase ? 2 + plan.states : 1);
  const logits = recipe.loss === "full" ? 8 * vocab * samples * seqLen : 0;
  return Math.max(state, weights + logits);
}
