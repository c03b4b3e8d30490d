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

/** Bytes of a parameter where every layer is quantised and scales take nothing. */
const LEAST_WIDTH = { nf4: 0.5, int8: 1 } as const;

/**
 * Bytes that a job cannot go below: its weights and, where they are trained, their gradients and optimizer state; or
 * its weights and what the loss holds, at least two fp32 copies of the logits. A quick answer to "can this fit at
 * all" before a whole step is walked.
 */
export function leastBytes({ params, vocab, recipe, samples, seqLen }: LeastOf): number {
  const plan = planOf(recipe);
  const width = plan.quantised === null ? plan.weightWidth : LEAST_WIDTH[plan.quantised.how];
  const weights = plan.offloaded ? 0 : params * width;
  const states = plan.eightBitStates ? 2 * params : weights * plan.states;
  const state = plan.trainBase ? 2 * weights + states : weights;
  const logits = recipe.loss === "full" ? 8 * vocab * samples * seqLen : 0;
  return Math.max(state, weights + logits);
}
