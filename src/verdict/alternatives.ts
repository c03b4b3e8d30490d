import type { Recipe } from "../facts/types.ts";
import type { Sizing } from "../sizing/types.ts";
import type { Alternative, JobToJudge, Within } from "./types.ts";

/** The rank a LoRA suggestion is sized at; the memory hardly depends on it. */
const SUGGESTED_RANK = 16;

/** A one-key change, as facts spell it. */
interface Change {
  readonly key: string;
  readonly recipe: Partial<Recipe>;
}

/**
 * The one-key changes worth trying on a job, from the one that changes least for the user (same numbers, other
 * kernels) to the one that trains something else. Each is left out where the job has it already.
 */
export function changesFor(recipe: Recipe): Change[] {
  const is8bit = recipe.optimizer === "adamw-8bit";
  const isAdam = recipe.optimizer === "adamw" || recipe.optimizer === "adamw-foreach";
  const half = recipe.precision === "bf16";
  const list: (Change | false)[] = [
    recipe.attention === "eager" && { key: "attention=sdpa", recipe: { attention: "sdpa" } },
    recipe.attention === "eager" && { key: "attention=flash", recipe: { attention: "flash" } },
    recipe.loss === "full" && { key: "loss=fused", recipe: { loss: "fused" } },
    recipe.checkpointing === "none" && { key: "checkpointing=full", recipe: { checkpointing: "full" } },
    recipe.parallel !== "sharded" && { key: "parallel=sharded", recipe: { parallel: "sharded" } },
    recipe.optimizer === "adamw-foreach" && { key: "optimizer=adamw", recipe: { optimizer: "adamw" } },
    isAdam && !is8bit && { key: "optimizer=adamw-8bit", recipe: { optimizer: "adamw-8bit" } },
    !half && { key: "precision=bf16", recipe: { precision: "bf16" } },
    recipe.offload === "none" && { key: "offload=optimizer", recipe: { offload: "optimizer" } },
    recipe.loraRank !== null && recipe.quant === "none" && { key: "quant=nf4", recipe: { quant: "nf4" } },
    recipe.loraRank === null && {
      key: `lora-rank=${SUGGESTED_RANK}`,
      recipe: { loraRank: SUGGESTED_RANK },
    },
  ];
  return list.filter((change) => change !== false);
}

/**
 * The changes under which a refused request would hold the job, in the order of `changesFor`. `needOf` gives what a
 * sizing needs and holds it against in this request; a change that cannot be sized is left out, and so is one that is
 * plainly not `within` the request.
 */
export function alternativesFor(
  job: JobToJudge,
  recipe: Recipe,
  needOf: (sizing: Sizing, recipe: Recipe) => { needGb: number; capacityGb: number },
  within: Within,
): Alternative[] {
  const found: Alternative[] = [];
  for (const change of changesFor(recipe)) {
    const sizing = job.resize(change.recipe, within);
    if (sizing === null) continue;
    const { needGb, capacityGb } = needOf(sizing, { ...recipe, ...change.recipe });
    if (needGb <= capacityGb) found.push({ change: change.key, needGb });
  }
  return found;
}
