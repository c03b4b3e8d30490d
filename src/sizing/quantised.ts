import type { Recipe } from "../facts/types.ts";

/** Families whose steps on a quantised base were measured. */
const MEASURED: ReadonlySet<string> = new Set(
  (
    "albert apertus bart bert bloom cohere deberta-v2 deepseek_v2 distilbert electra ernie4_5 " +
    "exaone4 falcon gemma gemma2 gemma3_text gemma4_text glm4_moe gpt2 gpt_bigcode gpt_neo gpt_neox " +
    "gpt_oss gptj granite granitemoe lfm2 llama llama4_text mbart minimax_m2 mistral mixtral " +
    "modernbert mpnet mt5 nemotron olmo olmo2 olmo3 olmoe opt phi phi3 phimoe qwen2 qwen2_moe qwen3 " +
    "qwen3_5_text qwen3_moe roberta stablelm starcoder2 t5 whisper xlm-roberta"
  ).split(" "),
);

/** What of a quantised base was sized by the same rules but never measured, a sentence each. */
export function unmeasuredQuantised({ quant }: Recipe, family: string): string[] {
  return quant === "none" || MEASURED.has(family)
    ? []
    : ["A quantised base of this family was never measured; it is sized by the rules that hold for others."];
}

/** What of a model decides how much of it is quantised. */
export interface Quantisable {
  /** Experts are held in tensors of their own, which are no linear layers. */
  readonly experts: boolean;
  /** Linear layers are of a class of the family's own. */
  readonly ownLinear: boolean;
}

/** What a user may not expect of a quantised base, a sentence each. */
export function quantisedNotes(recipe: Recipe, { experts, ownLinear }: Quantisable): string[] {
  if (recipe.quant === "none") return [];
  const raised = recipe.precision === "bf16" ? "stay in 16 bits" : "are raised to fp32 by peft's preparation";
  const notes: string[] = [];
  if (recipe.precision !== "bf16" && recipe.checkpointing === "none")
    notes.push(
      "peft's preparation turns checkpointing on unless use_gradient_checkpointing=False is given; this is sized without it (checkpointing=full is with it).",
    );
  if (ownLinear)
    notes.push(
      `transformers quantises no linear layer of this family, since their class is the family's own; they ${raised}.`,
    );
  if (experts) notes.push(`The experts are no linear layers, so they are not quantised; they ${raised}.`);
  if (recipe.quant === "int8" && recipe.checkpointing === "full")
    notes.push(
      "8-bit layers hold their inputs through checkpointing, so it saves less than it usually does.",
    );
  return notes;
}
