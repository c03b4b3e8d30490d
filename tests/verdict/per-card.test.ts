import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { recipeOf } from "../../src/facts/recipe.ts";
import type { Recipe } from "../../src/facts/types.ts";
import { explain } from "../../src/render/explain.ts";
import { sizingDocument, verdictDocument } from "../../src/render/json.ts";
import { messagesOf } from "../../src/render/messages.ts";
import { perCardLines, perCardOf } from "../../src/render/per-card.ts";
import type { Telling } from "../../src/render/types.ts";
import { sizeStructure } from "../../src/sizing/size.ts";
import type { Sizing } from "../../src/sizing/types.ts";
import { judgeRequest } from "../../src/verdict/decide.ts";
import type { JobToJudge, Judged, JudgeSettings } from "../../src/verdict/types.ts";
import { CONFIGS, located, structureOf } from "../sizing/rows.ts";
import { candidateOf, factsOf, requestOf, settingsOf } from "./support.ts";

const MODEL = "Qwen/Qwen3-8B";
const PARAMS = 8_190_735_360;

/** A job on a real model, sized as the gate does. */
function jobOn(values: Parameters<typeof factsOf>[0], model = MODEL): JobToJudge {
  const facts = factsOf({ model, ...values });
  const recipe = recipeOf(facts);
  const found = located(structureOf(CONFIGS[model]!), model);
  const size = (change: Partial<Recipe>, cards = 1) => {
    const sized = sizeStructure(found, { ...recipe, ...change }, facts.seqLen.value ?? 2048, cards);
    return sized.ok ? sized.value : null;
  };
  return { facts, sizing: size({})!, resize: (change) => size(change), perCard: size };
}

function judged(job: JobToJudge, text: string, settings: Partial<JudgeSettings> = {}) {
  const all = settingsOf(settings);
  const request = requestOf([candidateOf(text, all.table)]);
  const result = judgeRequest(job, request, all);
  const [verdict] = result.verdicts;
  if (verdict?.kind !== "judged") throw new Error(`${text} was not judged`);
  const telling: Telling = {
    facts: job.facts,
    sizing: job.sizing,
    settings: all,
    words: { requestField: "--gres", batchField: "batch=", namingModel: "Name it." },
  };
  return { verdict, telling, request, result, messages: messagesOf(result, request, telling) };
}

const verdictOn = (values: Parameters<typeof factsOf>[0], text: string): Judged =>
  judged(jobOn(values), text).verdict;

/** Bytes of the optimizer's step of a full fine-tune, where nothing else is live. */
function stepGb(sizing: Sizing | undefined): number {
  return sizing!.moments[0]!.fixedBytes / 1e9;
}

describe("what one card holds", () => {
  const rows: [string, Recipe["parallel"], string, number][] = [
    // name, mode, request, bytes a parameter at the optimizer's step: weights + gradients + states (+ buckets)
    ["a whole copy and buckets", "ddp", "H200:8", 4 + 4 + 8 + 4],
    ["its part of the state", "zero1", "H200:8", 4 + 4 + 8 / 8],
    ["its part of the state, of two cards", "zero1", "H200:2", 4 + 4 + 8 / 2],
    ["its part of the gradients too", "zero2", "H200:8", 4 + 4 / 8 + 8 / 8],
    ["over nodes", "zero2", "H200:8x2", 4 + 4 / 16 + 8 / 16],
  ];
  for (const [name, parallel, request, bytes] of rows) {
    test(`${parallel}: ${name}`, () => {
      const verdict = verdictOn({ parallel, batch: 1 }, request);
      expect(stepGb(verdict.sizing) / ((PARAMS * bytes) / 1e9)).toBeCloseTo(1, 3);
      expect([verdict.pooled, verdict.capacityGb]).toEqual([false, 141]);
    });
  }

  test("the state in the verdict is the card's own", () => {
    const state = (parallel: Recipe["parallel"]) => verdictOn({ parallel, batch: 1 }, "H200:8").stateGb;
    expect(state("zero1") / ((PARAMS * 9) / 1e9)).toBeCloseTo(1, 3);
    expect(state("zero2") / ((PARAMS * 5.5) / 1e9)).toBeCloseTo(1, 3);
  });

  test("activations are those of the batch per device, however many cards there are", () => {
    const need = (request: string, batch: number) =>
      verdictOn({ parallel: "zero2", batch }, request).sizing!.moments.at(-1)!.perSampleBytes;
    expect(need("H200:8", 4)).toBe(need("H200:2", 4));
    expect(judged(jobOn({ parallel: "zero2", batch: 4 }), "H200:8").verdict.globalBatch).toBe(32);
  });

  test("one card shares nothing, whatever the mode", () => {
    const of = (parallel: Recipe["parallel"]) => verdictOn({ parallel, batch: 1 }, "H200:1").needGb;
    expect(of("zero1")).toBe(of("sharded"));
    expect(of("zero2")).toBe(of("sharded"));
  });

  test("sharded stays one job over the memory of all at the global batch", () => {
    const job = jobOn({ batch: 2 });
    const verdict = judged(job, "H100:8").verdict;
    expect([verdict.pooled, verdict.capacityGb, verdict.globalBatch]).toEqual([true, 640, 16]);
    expect(verdict.sizing).toBe(job.sizing);
  });
});

describe("verdicts on one card of several", () => {
  test("a job that holds sharded, not with whole weights, is refused with its own figures", () => {
    const { verdict, messages } = judged(jobOn({ parallel: "zero1", batch: 1 }), "A100:8");
    expect(verdict).toMatchObject({ decision: "refuse", reason: "too-small" });
    expect(messages[0]).toContain("parallel=zero1 on each card");
    expect(messages[0]).toContain("and each card of A100:8 holds 40 GB");
    expect(messages[0]).toContain(
      "on each card the weights, the gradients and its share of the optimizer state alone need 84.8 GB",
    );
  });

  test("more cards of the same kind can turn a refusal into a fit", () => {
    const at = (request: string) => verdictOn({ parallel: "zero2", batch: 1, seqLen: 256 }, request).fit;
    expect([at("H100:2"), at("H100:16")]).toEqual(["under", "right-sized"]);
  });

  test("a change is sized on as many cards, sharding over all of them together", () => {
    const { verdict, messages } = judged(jobOn({ parallel: "zero2", batch: 4 }), "H200:8");
    const need = (change: string) => verdict.alternatives.find((one) => one.change === change)?.needGb;
    expect(need("checkpointing=full")).toBe(
      verdictOn({ parallel: "zero2", batch: 4, checkpointing: "full" }, "H200:8").needGb,
    );
    expect(need("parallel=sharded")).toBe(verdictOn({ batch: 4 }, "H200:8").needGb);
    expect(messages[0]).toEndWith("With checkpointing=full it needs 84.9 GB.");
  });

  test("of ddp the next step is to share the state, then the gradients", () => {
    const changes = verdictOn({ parallel: "ddp", batch: 1 }, "H200:8").alternatives.map(
      ({ change }) => change,
    );
    expect(changes.slice(0, 3)).toEqual(["parallel=zero1", "parallel=zero2", "parallel=sharded"]);
    const alone = verdictOn({ parallel: "ddp", batch: 1 }, "H200:1").alternatives.map(({ change }) => change);
    expect(alone).not.toContain("parallel=zero1");
  });

  test("an over-request keeps the number of cards that share the state", () => {
    const job = jobOn({ parallel: "zero2", batch: 1, seqLen: 256, precision: "bf16" });
    const first = judged(job, "H200:8", { mutate: true }).verdict;
    expect(first.rewriteTo?.count).toBe(8);
    const { accelerator, count } = first.rewriteTo!;
    const again = judged(job, `${accelerator}:${count}`, { mutate: true }).verdict;
    expect([again.rewriteTo, again.needGb]).toEqual([null, first.needGb]);
  });

  test("the largest batch fits each card and one more does not", () => {
    const largest = verdictOn({ parallel: "zero2", batch: 1 }, "H200:8").largestBatch!;
    expect(verdictOn({ parallel: "zero2", batch: largest }, "H200:8").fit).not.toBe("under");
    expect(verdictOn({ parallel: "zero2", batch: largest + 1 }, "H200:8").fit).toBe("under");
  });

  test("offloaded parameters are gathered on every card, so the pool holds that part once a card", () => {
    const need = (request: string) => verdictOn({ offload: "all", batch: 1 }, request).needGb;
    const each = need("H200:1");
    expect(need("H200:8") / (8 * each)).toBeGreaterThan(0.95);
    expect(verdictOn({ offload: "all", batch: 1 }, "H200:8")).toMatchObject({
      stateGb: 0,
      onlySharded: false,
    });
  });

  test("slices share nothing: each holds the whole job", () => {
    const { verdict, telling } = judged(
      jobOn({ parallel: "zero2", batch: 1 }, "Qwen/Qwen3-0.6B"),
      "a100_3g.20gb:4",
    );
    const alone = judged(jobOn({ parallel: "zero2", batch: 1 }, "Qwen/Qwen3-0.6B"), "a100_3g.20gb:1").verdict;
    expect(verdict.needGb).toBe(alone.needGb);
    expect(perCardOf(verdict, telling)?.shared).toEqual([]);
  });

  test("offloaded parameters are shared as FSDP shares them, and that is said", () => {
    const job = jobOn({ parallel: "ddp", offload: "all", batch: 1 });
    expect(job.sizing.assumed.join(" ")).toContain("ZeRO-3 or FSDP only");
    const need = (parallel: Recipe["parallel"]) =>
      verdictOn({ parallel, offload: "all", batch: 1 }, "H200:8").needGb;
    expect(need("ddp")).toBe(need("zero2"));
    expect(need("zero1")).toBe(need("zero2"));
    expect(need("ddp")).toBeCloseTo(verdictOn({ offload: "all", batch: 1 }, "H200:8").needGb / 8, 6);
  });

  test("the smallest request holds what each of its cards gathers", () => {
    const job = { offload: "all", gradAccum: 4, seqLen: 512 } as const;
    for (const samples of [16, 32, 48, 64, 80, 96]) {
      const { smallestRequest } = verdictOn({ ...job, batch: samples }, "T4:1");
      if (smallestRequest === null || samples % smallestRequest.count > 0) continue;
      const { accelerator, count } = smallestRequest;
      const there = verdictOn({ ...job, batch: samples / count }, `${accelerator}:${count}`);
      expect([samples, there.fit === "under"]).toEqual([samples, false]);
    }
  });

  test("a line of an external source cannot be shared out: both ends have to agree", () => {
    const { perCard: _, ...job } = jobOn({ parallel: "zero2", batch: 1 });
    const request = requestOf([candidateOf("H100:8")]);
    expect(judgeRequest(job, request, settingsOf()).decision).toBe("unjudged");
  });
});

describe("told", () => {
  test("an explanation says what the card holds whole and what is shared", () => {
    const text = (parallel: Recipe["parallel"]) => {
      const { verdict, telling } = judged(jobOn({ parallel, batch: 2 }), "H100:8");
      return perCardLines(verdict, telling).join("\n");
    };
    expect(text("zero2")).toMatch(/32,762,941,440 {2}weights {6}whole/);
    expect(text("zero2")).toMatch(/4,095,\d+,?\d* {2}gradients {4}1\/8 of it/);
    expect(text("zero1")).toMatch(/32,762,941,440 {2}gradients {4}whole/);
    expect(text("zero1")).toMatch(/optimizer {4}1\/8 of it/);
    expect(text("ddp")).toMatch(/buckets {6}whole/);
    expect(text("sharded")).toContain("judged over the memory of all 8 together at the global batch of 16");
    const { verdict, telling } = judged(jobOn({ parallel: "zero2", batch: 2 }), "H100:8");
    const whole = explain({
      sizing: verdict.sizing!,
      batch: 2,
      headroom: 1.15,
      perCard: perCardLines(verdict, telling),
    });
    expect(whole).toContain("One card of H100:8 under parallel=zero2");
  });

  test("--json has the same under --explain, and is as it was without", () => {
    const { verdict, telling, request, result, messages } = judged(
      jobOn({ parallel: "zero2", batch: 2 }),
      "H100:8",
    );
    const told = { task: null, decision: result.decision, messages, request, result, reason: null, telling };
    const plain = verdictDocument(told).sizing!;
    expect(Object.keys(plain)).toEqual(Object.keys(sizingDocument(verdict.sizing!, 2)).slice(2));
    expect(plain.terms).toBeNull();
    // The size beside a verdict is the one it was judged by.
    expect(plain.peakBytes / 1e9).toBeCloseTo(verdict.peakGb, 6);
    const card = verdictDocument(told, true).sizing!.perCard!;
    expect(card).toEqual(perCardOf(verdict, telling)!);
    expect([card.cards, card.parallel, card.batch, card.shared]).toEqual([
      8,
      "zero2",
      2,
      ["gradients", "optimizer"],
    ]);
    expect(card.weightsBytes).toBe(32_762_941_440);
    expect(card.needBytes / 1e9).toBeCloseTo(verdict.needGb, 6);
  });

  test("one card has no account of its own", () => {
    const { verdict, telling } = judged(jobOn({ batch: 1 }), "H200:1");
    expect(perCardOf(verdict, telling)).toBeNull();
  });
});

describe("properties", () => {
  const jobs = fc.record({
    batch: fc.integer({ min: 1, max: 16 }),
    seqLen: fc.constantFrom(256, 1024, 2048),
    precision: fc.constantFrom("amp-bf16" as const, "bf16" as const),
    card: fc.constantFrom("L4", "A100", "A100-80GB", "H200"),
    count: fc.integer({ min: 2, max: 16 }),
    model: fc.constantFrom("Qwen/Qwen3-0.6B", "meta-llama/Llama-3.2-1B", "Qwen/Qwen3-8B"),
  });
  const need = (job: Omit<Parameters<typeof factsOf>[0] & object, "model">, model: string, text: string) =>
    judged(jobOn(job, model), text).verdict;

  test("zero2 fits where zero1 does, and zero1 where ddp does", () => {
    fc.assert(
      fc.property(jobs, ({ card, count, model, ...rest }) => {
        const [ddp, zero1, zero2] = (["ddp", "zero1", "zero2"] as const).map((parallel) =>
          need({ ...rest, parallel }, model, `${card}:${count}`),
        ) as [Judged, Judged, Judged];
        if (ddp.fit !== "under") expect(zero1.fit).not.toBe("under");
        if (zero1.fit !== "under") expect(zero2.fit).not.toBe("under");
        expect(zero2.needGb).toBeLessThanOrEqual(zero1.needGb + 1e-3);
        expect(zero1.needGb).toBeLessThanOrEqual(ddp.needGb + 1e-3);
      }),
      { numRuns: 60 },
    );
  });

  test("more cards never turn a fit into a refusal, and the largest batch agrees with the verdict", () => {
    fc.assert(
      fc.property(
        jobs,
        fc.constantFrom("zero1" as const, "zero2" as const),
        fc.integer({ min: 1, max: 8 }),
        ({ card, count, model, ...rest }, parallel, more) => {
          const small = need({ ...rest, parallel }, model, `${card}:${count}`);
          const large = need({ ...rest, parallel }, model, `${card}:${count + more}`);
          if (small.fit !== "under") expect(large.fit).not.toBe("under");
          expect((small.largestBatch ?? 0) >= rest.batch).toBe(small.fit !== "under");
          expect(large.largestBatch ?? 0).toBeGreaterThanOrEqual(small.largestBatch ?? 0);
        },
      ),
      { numRuns: 60 },
    );
  });
});
