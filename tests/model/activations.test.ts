import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { recipeOf } from "../../src/facts/recipe.ts";
import type { Precision } from "../../src/facts/types.ts";
import { readStructure } from "../../src/model/read.ts";
import type { LocatedStructure } from "../../src/model/types.ts";
import { sizeStructure } from "../../src/sizing/size.ts";
import { factsOf } from "../verdict/support.ts";

/** A training step of transformers 5.24 run on fake tensors; its peak counts every storage that was live. */
interface Step {
  readonly recipe: "amp-bf16" | "bf16" | "fp32" | "lora";
  readonly attention: "sdpa" | "flash" | "eager";
  readonly checkpointing: boolean;
  readonly seq: number;
  readonly batch: number;
  readonly config: { readonly model_type: string };
  /** As transformers counts them; rows of a family whose counts stand elsewhere lack it. */
  readonly params?: number;
  readonly peak: number;
}

const STEPS = readFileSync(join(import.meta.dir, "../fixtures/model/steps.jsonl"), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Step);

/** How far the sized peak is from the measured one, in per cent, and whether anything was assumed. */
function errorOf(step: Step): { readonly percent: number; readonly assumed: boolean } {
  const read = readStructure(step.config);
  if (!read.ok) throw new Error(read.error.message);
  if (step.params !== undefined) expect(read.value.params).toBe(step.params);
  const located: LocatedStructure = {
    structure: read.value,
    model: "m",
    source: "path",
    revision: null,
    from: "m",
  };
  const lora = step.recipe === "lora";
  const precision: Precision = step.recipe === "lora" ? "amp-bf16" : step.recipe;
  const facts = factsOf({
    precision,
    attention: step.attention,
    loraRank: lora ? 16 : null,
    checkpointing: step.checkpointing ? "full" : "none",
  });
  const sized = sizeStructure(located, recipeOf(facts), step.seq);
  if (!sized.ok) throw new Error(sized.error.message);
  const peaks = sized.value.moments.map((at) => at.fixedBytes + at.perSampleBytes * step.batch);
  return { percent: (Math.max(...peaks) / step.peak - 1) * 100, assumed: read.value.assumed.length > 0 };
}

describe("small models of each family, dominated by their activations", () => {
  const byType = Map.groupBy(STEPS, (step) => step.config.model_type);
  test.each([...byType])("%s", (_, steps) => {
    for (const step of steps) {
      const { percent, assumed } = errorOf(step);
      const what = `${step.recipe} ${step.attention} ${step.checkpointing} ${step.seq}: ${percent.toFixed(1)} %`;
      // A family that assumes nothing is never low; one that borrows a shape says so, and stays near.
      const [low, high] = assumed ? [-14, 17] : [-1, 5];
      // A row with its parameters is one of a family that claims to be measured.
      if (step.params !== undefined) expect([what, assumed]).toEqual([what, false]);
      expect([what, percent >= low && percent <= high]).toEqual([what, true]);
    }
  });
  test("the families that assume nothing were all measured", () => {
    const measured = [...byType].filter(([, steps]) => steps.every((step) => !errorOf(step).assumed));
    // A family that is added need not be named here; one of these that assumes something again is found.
    const types = measured.map(([type]) => type);
    expect(types).toEqual(
      expect.arrayContaining([
        "apertus",
        "arcee",
        "bloom",
        "cohere",
        "cohere2",
        "ernie4_5",
        "exaone4",
        "gemma2",
        "gemma3_text",
        "glm",
        "glm4",
        "gpt_bigcode",
        "gpt_neo",
        "gptj",
        "hunyuan_v1_dense",
        "mixtral",
        "nemotron",
        "olmo",
        "olmo3",
        "phi",
        "qwen3_moe",
        "seed_oss",
        "smollm3",
        "stablelm",
      ]),
    );
  });
});
