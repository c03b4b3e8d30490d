import type { JobFacts, Recipe } from "./types.ts";

/** How the job trains, without where each value came from. */
export function recipeOf(facts: JobFacts): Recipe {
  return {
    precision: facts.precision.value,
    optimizer: facts.optimizer.value,
    attention: facts.attention.value,
    checkpointing: facts.checkpointing.value,
    quant: facts.quant.value,
    loraRank: facts.loraRank.value,
    loraTargets: facts.loraTargets.value,
    parallel: facts.parallel.value,
    offload: facts.offload.value,
    gradAccum: facts.gradAccum.value,
    loss: facts.loss.value,
    paddingMask: facts.paddingMask.value,
    // Left out where there is none: what was written of a recipe before there was this key is still its text.
    ...(facts.loraDropout.value > 0 ? { loraDropout: facts.loraDropout.value } : {}),
  };
}
