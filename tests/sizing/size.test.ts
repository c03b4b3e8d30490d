import { describe, expect, test } from "bun:test";
import type { Recipe } from "../../src/facts/types.ts";
import { readStructure } from "../../src/model/read.ts";
import { defaultSeqLen } from "../../src/sizing/default-length.ts";
import { lineAt, peakBytes } from "../../src/sizing/peak.ts";
import { DEFAULT_RECIPE, describeRecipe } from "../../src/sizing/recipe.ts";
import { sizeStructure } from "../../src/sizing/size.ts";
import type { Sizing } from "../../src/sizing/types.ts";
import { CONFIGS, located, structureOf } from "./rows.ts";

function size(name: string, part: Partial<Recipe> = {}, tokens = 2048): Sizing {
  const sized = sizeStructure(
    located(structureOf(CONFIGS[name]!), name),
    { ...DEFAULT_RECIPE, ...part },
    tokens,
  );
  if (!sized.ok) throw new Error(sized.error.message);
  return sized.value;
}

describe("recipes that this build does not size", () => {
  const cases: readonly (readonly [string, Partial<Recipe>])[] = [
    ["A quantised base with offload=all", { quant: "nf4", loraRank: 8, offload: "all" }],
  ];
  for (const [what, part] of cases) {
    test(what, () => {
      const structure = structureOf(CONFIGS["openai-community/gpt2"]!);
      const sized = sizeStructure(located(structure, "gpt2"), { ...DEFAULT_RECIPE, ...part }, 1024);
      expect(sized).toEqual({
        ok: false,
        error: { reason: "recipe-not-sized", message: `${what} is not sized by this build.` },
      });
    });
  }
  test("a family without activations", () => {
    const structure = { ...structureOf(CONFIGS["openai-community/gpt2"]!), family: "mamba", decoder: null };
    expect(sizeStructure(located(structure, "m"), DEFAULT_RECIPE, 1024)).toMatchObject({
      ok: false,
      error: { reason: "family-not-sized" },
    });
  });
});

describe("models of other shapes", () => {
  function sized(config: Record<string, unknown>, part: Partial<Recipe>) {
    const read = readStructure(config);
    if (!read.ok) throw new Error(read.error.message);
    return sizeStructure(located(read.value, "m"), { ...DEFAULT_RECIPE, ...part }, 1024);
  }
  test("LoRA on the attention of a model without any is not sized as training nothing", () => {
    const config = {
      model_type: "mamba",
      architectures: ["MambaForCausalLM"],
      hidden_size: 256,
      intermediate_size: 512,
      num_hidden_layers: 2,
      state_size: 16,
      time_step_rank: 16,
      conv_kernel: 4,
      vocab_size: 1000,
    };
    expect(sized(config, { loraRank: 8 })).toMatchObject({
      ok: false,
      error: { reason: "recipe-not-sized", message: expect.stringContaining("lora-targets=all-linear") },
    });
    expect(sized(config, { loraRank: 8, loraTargets: "all-linear" }).ok).toBe(true);
    expect(sized(config, {}).ok).toBe(true);
  });
  test("the first Qwen, whose feed-forward width is told twice over, as its own finetune.py runs it", () => {
    const config = {
      model_type: "qwen",
      architectures: ["QWenLMHeadModel"],
      hidden_size: 4096,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      intermediate_size: 22016,
      vocab_size: 151936,
    };
    const recipe = {
      ...DEFAULT_RECIPE,
      loraRank: 64,
      loraTargets: "all-linear",
      checkpointing: "full",
    } as const;
    const read = readStructure(config);
    if (!read.ok) throw new Error(read.error.message);
    // GB of a measured step with the same layers at 256, 1024, 2048 and 8192 tokens.
    const peaks = [256, 1024, 2048, 8192].map((tokens) => {
      const result = sizeStructure(located(read.value, "m"), recipe, tokens);
      if (!result.ok) throw new Error(result.error.message);
      return Math.round(peakBytes(result.value, 1) / 1e7) / 100;
    });
    expect(peaks).toEqual([18.14, 19.53, 21.67, 34.58]);
  });
  test("a position bias that all samples share is not told as 0 bytes a token", () => {
    const config = {
      model_type: "t5",
      architectures: ["T5ForConditionalGeneration"],
      d_model: 256,
      d_kv: 64,
      d_ff: 512,
      num_layers: 2,
      num_heads: 4,
      vocab_size: 1000,
    };
    const result = sized(config, {});
    if (!result.ok) throw new Error(result.error.message);
    const formulas = result.value.moments.flatMap(({ terms }) => terms.map(({ formula }) => formula));
    expect(formulas.filter((formula) => /: 0 bytes a token/.test(formula))).toEqual([]);
    expect(formulas.join(" ")).toContain("bytes whatever the batch");
  });
});

describe("what a recipe adds or leaves out", () => {
  const model = "meta-llama/Llama-3.2-1B";
  const gradients = 4 * 1235814400;
  test("gradients that accumulate live beside the activations", () => {
    const once = size(model);
    const often = size(model, { gradAccum: 4 });
    expect(Math.abs(peakBytes(often, 32) - peakBytes(once, 32) - gradients)).toBeLessThan(1e6);
    expect([often.assumed, once.assumed]).toEqual([[], []]);
  });
  test("a fused loss has no moment with whole logits, and says which loss it is", () => {
    const fused = size(model, { loss: "fused" });
    const whole = 12 * 128_256 * 2048;
    expect(lineAt(size(model), 16).perSampleBytes - lineAt(fused, 16).perSampleBytes).toBeGreaterThan(
      0.9 * whole,
    );
    expect(fused.moments.map(({ what }) => what).join(" ")).not.toContain("copies of the logits");
    expect(fused.notes.join(" ")).toContain("Liger's fused linear cross entropy");
    expect([fused.assumed, fused.cautions]).toEqual([[], []]);
    expect(size("openai-community/gpt2", { loss: "fused" }, 1024).cautions?.join(" ")).toContain(
      "Liger fuses no loss of the family gpt2",
    );
  });
  test("offloaded parameters leave no state on the device, and one layer and the head at a time", () => {
    const all = size(model, { offload: "all" });
    expect([all.stateBytes, all.assumed]).toEqual([0, []]);
    expect(peakBytes(all, 1)).toBeLessThan(0.5 * peakBytes(size(model, { offload: "optimizer" }), 1));
    expect(all.notes.join(" ")).toContain("FSDP2");
  });
  test("a model with whole logits of its own kind is not sized with a fused loss or offloaded", () => {
    const found = readStructure(CONFIGS["google-bert/bert-base-uncased"]!);
    if (!found.ok) throw new Error(found.error.message);
    for (const part of [{ loss: "fused" }, { offload: "all" }] as const) {
      expect(sizeStructure(located(found.value, "bert"), { ...DEFAULT_RECIPE, ...part }, 512)).toMatchObject({
        ok: false,
        error: { reason: "recipe-not-sized" },
      });
    }
  });
  test("DDP holds the gradients once more in its buckets", () => {
    expect(
      Math.abs(peakBytes(size(model, { parallel: "ddp" }), 32) - peakBytes(size(model), 32) - gradients),
    ).toBeLessThan(1e6);
  });
  test("SGD has no states, with momentum one", () => {
    const state = (optimizer: Recipe["optimizer"]) => size(model, { optimizer }).stateBytes;
    expect(Math.abs(state("sgd-momentum") - state("sgd") - gradients)).toBeLessThan(1e6);
    expect(Math.abs(state("adamw") - state("sgd-momentum") - gradients)).toBeLessThan(1e6);
  });
});

describe("what is reported", () => {
  test("state is 16 bytes a parameter under amp, 8 in bf16, 20 with foreach's copy at the step", () => {
    const params = 1235814400;
    expect(size("meta-llama/Llama-3.2-1B").stateBytes / params).toBeCloseTo(16, 2);
    expect(size("meta-llama/Llama-3.2-1B", { precision: "bf16" }).stateBytes / params).toBeCloseTo(8, 2);
    const step = size("meta-llama/Llama-3.2-1B", { optimizer: "adamw-foreach" }).moments[0]!;
    expect(step.name).toBe("optimizer-step");
    expect(step.fixedBytes / params).toBeCloseTo(20, 2);
  });
  test("a tied head raises the end of backward by two more tables", () => {
    const { moments, floorBytes, stateBytes } = size("meta-llama/Llama-3.2-1B");
    expect(moments.map((moment) => moment.name)).toContain("end-of-backward");
    expect(Math.abs(floorBytes - stateBytes - 8 * 128256 * 2048) / floorBytes).toBeLessThan(0.001);
  });
  test("terms add up to their moment and each has a formula", () => {
    for (const part of [
      {},
      { checkpointing: "full" },
      { attention: "eager", loraRank: 16 },
      { precision: "fp32" },
    ] as const) {
      for (const moment of size("microsoft/Phi-3-mini-4k-instruct", part, 512).moments) {
        const sum = (key: "fixedBytes" | "perSampleBytes") =>
          moment.terms.reduce((total, term) => total + term[key], 0);
        expect(Math.abs(sum("fixedBytes") - moment.fixedBytes)).toBeLessThan(2);
        expect(Math.abs(sum("perSampleBytes") - moment.perSampleBytes)).toBeLessThan(2);
        for (const term of moment.terms) expect(term.formula).toMatch(/[a-z].*/);
      }
    }
  });
  test("the slope of Llama under amp is the closed form read off by hand", () => {
    // A token and layer: residual 8h, norms 8h, casts of five inputs 10h; gate, silu, up, product 8i; q, k, v and
    // the result 4A + 4K; row sums 4 a head, deviations 8. Once: embedding, final norm and its cast 10h, and 4;
    // log-probabilities and two gradients 12V; ids and labels 24.
    const [h, i, layers, heads, kv, vocab] = [2048, 5632, 22, 32, 256, 32000];
    const token = layers * (26 * h + 8 * i + 4 * h + 4 * kv + 4 * heads + 8) + 12 * vocab + 10 * h + 28;
    const slope = lineAt(size("TinyLlama/TinyLlama-1.1B-Chat-v1.0"), 64).perSampleBytes / 2048;
    expect(Math.abs(slope / token - 1)).toBeLessThan(0.00001);
  });
  test("fp32 with flash is sized as sdpa and said", () => {
    const sizing = size("openai-community/gpt2", { precision: "fp32", attention: "flash" }, 1024);
    expect(sizing.recipe.attention).toBe("sdpa");
    expect(sizing.notes.join(" ")).toContain("sized with sdpa");
    expect(peakBytes(sizing, 4)).toBe(
      peakBytes(size("openai-community/gpt2", { precision: "fp32" }, 1024), 4),
    );
  });
  test("LoRA with fp32 is an fp32 base under autocast: flash runs, and only the base weighs more", () => {
    const model = "meta-llama/Llama-3.2-1B";
    for (const attention of ["sdpa", "flash"] as const) {
      const sizing = size(model, { precision: "fp32", loraRank: 16, attention });
      expect([sizing.recipe.attention, sizing.notes]).toEqual([attention, []]);
      const mixed = size(model, { loraRank: 16, attention });
      expect(Math.abs(sizing.stateBytes - mixed.stateBytes - 2 * 1235814400)).toBeLessThan(1e6);
    }
  });
  test("more tokens than learned positions are said", () => {
    expect(size("openai-community/gpt2", {}, 2048).notes.join(" ")).toContain("1024 learned positions");
  });
  test("parameters outside the decoder weigh as much as others and are trained like the rest", () => {
    const structure = structureOf(CONFIGS["openai-community/gpt2"]!);
    const outside = { ...structure, params: structure.params + 1e8, paramsOutside: 1e8 };
    const peak = (s: typeof structure, part: Partial<Recipe>) => {
      const sized = sizeStructure(located(s, "m"), { ...DEFAULT_RECIPE, ...part }, 512);
      return sized.ok ? [sized.value.stateBytes, peakBytes(sized.value, 64)] : [];
    };
    const [state, high] = peak(structure, {}) as [number, number];
    const [stateMore, highMore] = peak(outside, {}) as [number, number];
    expect(Math.round((stateMore - state) / 1e6)).toBe(1600);
    expect(Math.round((highMore - high) / 1e6)).toBe(1200);
    const [, frozen] = peak(structure, { loraRank: 8 }) as [number, number];
    const [, frozenMore] = peak(outside, { loraRank: 8 }) as [number, number];
    expect(Math.round((frozenMore - frozen) / 1e6)).toBe(200);
  });
});

describe("words", () => {
  const cases: readonly (readonly [Partial<Recipe>, string])[] = [
    [{}, "full fine-tune, amp-bf16, adamw, sdpa"],
    [
      { loraRank: 16, loraTargets: "all-linear", checkpointing: "full" },
      "LoRA rank 16 on all linear layers, amp-bf16, adamw, sdpa, checkpointing",
    ],
    [
      { precision: "bf16", parallel: "ddp", gradAccum: 4, paddingMask: true },
      "full fine-tune, bf16, adamw, sdpa, ddp, gradient accumulation 4, padding mask",
    ],
    [
      { quant: "nf4", offload: "all", loss: "fused" },
      "full fine-tune, amp-bf16, adamw, sdpa, nf4 base, offload all, fused loss",
    ],
  ];
  for (const [part, words] of cases)
    test(words, () => expect(describeRecipe({ ...DEFAULT_RECIPE, ...part })).toBe(words));
  test("2048 tokens or the context", () =>
    expect([null, 1024, 8192].map(defaultSeqLen)).toEqual([2048, 1024, 2048]));
});
