import type { Recipe } from "../facts/types.ts";
import type { Alternative } from "./types.ts";

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
export function changesFor(recipe: Recipe, severalCards: boolean): Change[] {
  const is8bit = recipe.optimizer === "adamw-8bit";
  const isAdam = recipe.optimizer === "adamw" || recipe.optimizer === "adamw-foreach";
  const half = recipe.precision === "bf16";
  const list: (Change | false)[] = [
    recipe.attention === "eager" && { key: "attention=sdpa", recipe: { attention: "sdpa" } },
    recipe.attention === "eager" && { key: "attention=flash", recipe: { attention: "flash" } },
    recipe.loss === "full" && { key: "loss=fused", recipe: { loss: "fused" } },
    recipe.checkpointing === "none" && { key: "checkpointing=full", recipe: { checkpointing: "full" } },
    // Of one card's share there is nothing to share.
    severalCards && recipe.parallel === "ddp" && { key: "parallel=zero1", recipe: { parallel: "zero1" } },
    severalCards &&
      (recipe.parallel === "ddp" || recipe.parallel === "zero1") && {
        key: "parallel=zero2",
        recipe: { parallel: "zero2" },
      },
    recipe.parallel !== "sharded" && { key: "parallel=sharded", recipe: { parallel: "sharded" } },
    recipe.optimizer === "adamw-foreach" && { key: "optimizer=adamw", recipe: { optimizer: "adamw" } },
    isAdam && !is8bit && { key: "optimizer=adamw-8bit", recipe: { optimizer: "adamw-8bit" } },
    !half && { key: "precision=bf16", recipe: { precision: "bf16" } },
    recipe.offload === "none" && { key: "offload=optimizer", recipe: { offload: "optimizer" } },
    recipe.parallel === "sharded" &&
      recipe.offload !== "all" && { key: "offload=all", recipe: { offload: "all" } },
    recipe.loraRank !== null && recipe.quant === "none" && { key: "quant=nf4", recipe: { quant: "nf4" } },
    recipe.loraRank === null && {
      key: `lora-rank=${SUGGESTED_RANK}`,
      recipe: { loraRank: SUGGESTED_RANK },
    },
  ];
  return list.filter((change) => change !== false);
}

/**
 * The changes under which a refused request would hold the job, in the order of `changesFor`. `needUnder` gives what
 * the job then needs and holds it against in this request; null, and so left out, is a change that cannot be sized or
 * is plainly beyond the request.
 */
export function alternativesFor(
  recipe: Recipe,
  severalCards: boolean,
  needUnder: (change: Partial<Recipe>) => { readonly needGb: number; readonly capacityGb: number } | null,
): Alternative[] {
  const found: Alternative[] = [];
  for (const { key, recipe: change } of changesFor(recipe, severalCards)) {
    const need = needUnder(change);
    if (need !== null && need.needGb <= need.capacityGb) found.push({ change: key, needGb: need.needGb });
  }
  return found;
}
