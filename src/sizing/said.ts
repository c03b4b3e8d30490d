import type { Recipe } from "../facts/types.ts";

/**
 * Families whose loss Liger fuses where a Trainer says `use_liger_kernel`; granite and pixtral it patches without it.
 * Source: liger_kernel/transformers/monkey_patch.py (0.8).
 */
const FUSED = new Set(
  (
    "deepseek_v2 deepseek_v3 exaone4 falcon_h1 gemma gemma2 gemma3 gemma3_text gemma4 gemma4_text glm4 glm4v glm4v_moe " +
    "gpt_oss hunyuan_v1_dense hunyuan_v1_moe internvl llama llama4 llama4_text llava ministral mistral mixtral mllama " +
    "mllama_text_model nemotron olmo2 olmo3 paligemma phi3 qwen2 qwen2_5_vl qwen2_5_vl_text qwen2_vl qwen2_vl_text qwen3 " +
    "qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next qwen3_vl qwen3_vl_moe qwen3_vl_moe_text " +
    "qwen3_vl_text smollm3 smolvlm"
  ).split(" "),
);

/** What a reader of an explanation should know of how the loss and the cards were taken. */
export function sharingNotes(recipe: Recipe, cards: number): string[] {
  const notes: string[] = [];
  if (recipe.loss === "fused") {
    notes.push(
      "The fused loss is Liger's fused linear cross entropy alone, gradients computed in forward; its other kernels, " +
        "and losses that compute gradients in backward (cut cross entropy), need no more.",
    );
  }
  const shares = recipe.parallel === "zero1" || recipe.parallel === "zero2";
  if (shares && cards === 1)
    notes.push("Of one card there is nothing to share; judge with a request of several for what each holds.");
  if (shares && cards > 1) {
    notes.push(
      "Shares are even, and reduction buckets are left out: DeepSpeed adds those of its settings (reduce_bucket_size).",
    );
  }
  if (shares && recipe.precision !== "bf16" && recipe.precision !== "fp32" && recipe.loraRank === null) {
    notes.push(
      "Weights are fp32 on every card, as under torch; DeepSpeed with bf16 or fp16 enabled keeps them and gradients in " +
        "16 bits and fp32 copies in the shared state, and needs less.",
    );
  }
  if (recipe.offload === "all") {
    notes.push(
      "Parameters, gradients and optimizer state are in host memory; layers are gathered one by one, as FSDP2 does " +
        "with CPU offloading, in 16 bits under mixed precision.",
    );
  }
  if (recipe.offload === "optimizer")
    notes.push("Gradients stay on the device until the optimizer's step on the host.");
  return notes;
}

/** A loss that the family's usual patch does not fuse: the run would keep whole logits. Null where it does. */
export function fusedCaution(family: string): string | null {
  if (FUSED.has(family)) return null;
  return `Liger fuses no loss of the family ${family}; without one put in by hand the run keeps whole logits.`;
}
