import type { Recipe } from "../facts/types.ts";
import { planOf } from "./recipe.ts";

/** What of a model bounds its size from below. */
export interface Bounds {
  readonly params: number;
  /** Words of the output head; 0 where there is none. */
  readonly vocab: number;
  /** Elements a token that layers hand on to layers: each is kept for the backward, checkpointed or not. */
  readonly handedOn: number;
}

/** What a lower bound is taken of. */
export interface LeastOf extends Bounds {
  readonly recipe: Recipe;
  /** Samples over all cards that share the job. */
  readonly samples: number;
  readonly seqLen: number;
}

/** Of a few models some parameters are never reached, and so get no gradient: a hundredth at most. */
const REACHED = 0.99;

/** Bytes of a parameter where every layer is quantised and scales take nothing. */
const LEAST_WIDTH = { nf4: 0.5, int8: 1 } as const;

/**
 * Bytes that a job cannot go below: its weights and, where they are trained, their gradients and optimizer state; or
 * its weights, what layers were called with and what the loss holds, at least two fp32 copies of the logits. A quick answer to "can this fit at
 * all" before a whole step is walked.
 */
export function leastBytes({ params, vocab, handedOn, recipe, samples, seqLen }: LeastOf): number {
  const plan = planOf(recipe);
  const width = plan.quantised === null ? plan.weightWidth : LEAST_WIDTH[plan.quantised.how];
  const weights = plan.offloaded ? 0 : params * width;
  const states = plan.eightBitStates ? 2 * params : weights * plan.states;
  const state = plan.trainBase ? weights + (weights + states) * REACHED : weights;
  const logits = recipe.loss === "full" ? 8 * vocab : 0;
  return Math.max(state, weights + (logits + 2 * handedOn) * samples * seqLen);
}
