import type { Recipe } from "../facts/types.ts";

/** Families whose steps with dropout before LoRA adapters were measured; the first of them on a quantised base too. */
const QUANTISED: ReadonlySet<string> = new Set("gemma gpt2 gpt_neox llama mistral qwen3".split(" "));
const MEASURED: ReadonlySet<string> = new Set(
  [...QUANTISED].concat(
    "bert bloom deepseek_v2 falcon gemma2 gemma3_text opt qwen2 qwen3_moe starcoder2 t5 vit".split(" "),
  ),
);
/** Families whose layers hold more or less than is counted while one is run again, which shows beside dropout. */
const ROUGH: ReadonlySet<string> = new Set(["falcon", "opt"]);

/**
 * What of dropout before adapters (peft's `lora_dropout`) was sized by the same rules but never measured, a sentence
 * each. `adaptsExperts`: the family's experts are one tensor, for which peft has no dropout. Source:
 * peft/tuners/lora/layer.py, `ParamWrapper`.
 */
export function unmeasuredDropout(recipe: Recipe, family: string, adaptsExperts: boolean): string[] {
  if (recipe.loraRank === null || recipe.loraDropout === undefined) return [];
  if (adaptsExperts && recipe.loraTargets === "all-linear")
    return [
      "peft refuses a lora_dropout above 0 for this family's experts (lora-targets=all-linear); it was never measured.",
    ];
  if (recipe.offload === "all") return ["LoRA dropout beside offloaded parameters was never measured."];
  const measured = recipe.quant === "none" ? MEASURED : QUANTISED;
  if (ROUGH.has(family) && recipe.checkpointing === "full")
    return ["With checkpointing, LoRA dropout of this family is sized within 4 % only."];
  if (measured.has(family)) return [];
  const base = recipe.quant === "none" ? "" : " on a quantised base";
  return [
    `LoRA dropout of this family${base} was never measured; it is sized by the rules that hold for others.`,
  ];
}
