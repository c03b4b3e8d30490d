import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Recipe } from "../../src/facts/types.ts";
import { buildCardTable } from "../../src/request/cards.ts";
import type { Card } from "../../src/request/types.ts";
import type { Sizing } from "../../src/sizing/types.ts";
import { changesRequest, combine, judgeRequest, unsizedRequest } from "../../src/verdict/decide.ts";
import type { JobToJudge, Judged, JudgeSettings } from "../../src/verdict/types.ts";
import { candidateOf, type factsOf, jobOf, requestOf, settingsOf, sizingOf, tableOf } from "./support.ts";

/** Judges one candidate and expects it to have been judged. */
function judgedOne(job: JobToJudge, text: string, settings: Partial<JudgeSettings> = {}): Judged {
  const all = settingsOf(settings);
  const [verdict] = judgeRequest(job, requestOf([candidateOf(text, all.table)]), all).verdicts;
  if (verdict?.kind !== "judged") throw new Error(`${text} was not judged`);
  return verdict;
}

const flat = (fixed: number, over: Partial<Sizing> = {}) => sizingOf([{ fixed }], over);
const rising = (fixed: number, per: number, over: Partial<Sizing> = {}) => sizingOf([{ fixed, per }], over);

describe("the decision on one candidate", () => {
  const rows: [string, number, string, string, string][] = [
    // name, peak, request, decision, reason
    ["holds", 15, "L4:1", "allow", "fits"],
    ["cannot hold", 21, "L4:1", "refuse", "too-small"],
    ["above 85 %", 18, "L4:1", "warn", "borderline"],
    ["second smallest size is right", 10, "L4:1", "allow", "fits"],
    ["third smallest is over", 10, "A100:1", "warn", "over-requested"],
    ["three cards, no listed size holds it", 34, "T4:3", "allow", "fits"],
    ["six cards of no power of two", 80, "T4:6", "warn", "borderline"],
    ["a card that is not listed, beyond the listed", 150, "B200:1", "warn", "borderline"],
    ["a card that is not listed, holds easily", 125, "B200:1", "allow", "fits"],
    ["a card that is not listed, larger than the one listed size", 120, "B200:1", "warn", "over-requested"],
    ["a card that is not listed, over", 10, "A40:1", "warn", "over-requested"],
    ["another vendor has no listed size", 10, "MI300X:8", "allow", "fits"],
    ["a slice", 15, "a100_3g.20gb:1", "warn", "borderline"],
    ["slices are not added up", 30, "a100_3g.20gb:2", "refuse", "too-small"],
  ];
  for (const [name, peak, request, decision, reason] of rows) {
    test(name, () => {
      expect(judgedOne(jobOf(flat(peak)), request)).toMatchObject({ decision, reason });
    });
  }

  test("built-in sizings add what measured runs add on small cards", () => {
    // need 13.2 of 16 GB is 83 %, measured 12.1 + 1.5 GB holds; 13.5 x 1.05 + 1.5 = 15.7 holds, 14.0 does not.
    expect(judgedOne(jobOf(flat(11.5, { source: "builtin" })), "T4:1").decision).toBe("allow");
    const many = { source: "builtin" } as const;
    const small = buildCardTable({ cards: { Small: { gb: 8 }, Large: { gb: 200 } } });
    expect(judgedOne(jobOf(flat(5.9, many)), "Small:1", { table: small }).decision).toBe("allow");
    expect(judgedOne(jobOf(flat(5.9, many)), "T4:1", { table: small }).decision).toBe("allow");
    const tiny = buildCardTable({ cards: { Tiny: { gb: 4 } } });
    expect(judgedOne(jobOf(flat(2.5, many)), "Tiny:1", { table: tiny })).toMatchObject({
      reason: "borderline",
    });
    expect(judgedOne(jobOf(flat(2.5)), "Tiny:1", { table: tiny })).toMatchObject({ reason: "fits" });
  });
});

describe("several moments", () => {
  const sizing = sizingOf([
    { name: "optimizer-step", fixed: 60 },
    { name: "loss", fixed: 40, per: 5 },
  ]);
  const rows: [string, number, string, number, number | null][] = [
    // name, batch, request, peak, largest batch
    ["the floor rules at small batches", 2, "A100-80GB:1", 60, 5],
    ["the loss rules at large ones", 8, "A100-80GB:1", 80, 5],
    ["no batch helps where the floor does not fit", 1, "L40S:1", 60, null],
    ["several cards share the floor", 2, "L40S:2", 60, 4],
  ];
  for (const [name, batch, request, peak, largest] of rows) {
    test(name, () => {
      const verdict = judgedOne(jobOf(sizing, { batch }), request);
      expect([verdict.peakGb, verdict.largestBatch]).toEqual([peak, largest]);
    });
  }

  test("a first step that fails after a forward and backward that pass", () => {
    const state = (fixedBytes: number) => ({ name: "optimizer", formula: "", fixedBytes, perSampleBytes: 0 });
    const bf16 = sizingOf(
      [
        { name: "optimizer-step", fixed: 131, terms: [state(65e9)] },
        { name: "loss", fixed: 113, per: 1, terms: [state(65e9)] },
      ],
      { stateBytes: 131e9 },
    );
    expect(judgedOne(jobOf(bf16, { batch: 1 }), "A100-80GB:1").failsAtFirstStep).toBe(true);
    expect(judgedOne(jobOf(bf16, { batch: 30 }), "A100-80GB:1").failsAtFirstStep).toBe(false);
    expect(judgedOne(jobOf(bf16, { batch: 1 }), "L40S:1").failsAtFirstStep).toBe(false);
    expect(judgedOne(jobOf(bf16, { batch: 1 }), "H200:2").failsAtFirstStep).toBe(false);
  });
});

describe("suggestions", () => {
  const rows: [string, number, string, string | null, string | null][] = [
    // name, peak, request, smallest card, smallest request
    ["a single card", 30, "T4:1", "A100:1", null],
    ["the site's first name of a card", 60, "T4:1", "A100-80GB:1", null],
    ["several cards", 200, "A10G:1", null, "H200:2"],
    ["cheapest within the cards asked", 140, "A10G:4", null, "L40S:4"],
    ["nothing up to 64 cards", 9000, "A10G:1", null, null],
    ["the vendor's own card, more of it", 300, "MI300X:1", null, "MI300X:2"],
    ["slices are not sharded", 200, "a100_3g.20gb:1", null, null],
  ];
  for (const [name, peak, request, card, more] of rows) {
    test(name, () => {
      const verdict = judgedOne(jobOf(flat(peak)), request);
      const told = (size: Judged["smallestCard"]) => size && `${size.accelerator}:${size.count}`;
      expect([told(verdict.smallestCard), told(verdict.smallestRequest)]).toEqual([card, more]);
    });
  }

  test("with a GPU map every suggestion is the site's and spelled its way", () => {
    const table = buildCardTable({ gpuMap: { a10: "A10G", hopper: "H100" } });
    expect(judgedOne(jobOf(flat(60)), "a10:1", { table }).smallestCard).toEqual({
      accelerator: "hopper",
      count: 1,
    });
    expect(judgedOne(jobOf(flat(100)), "a10:1", { table }).smallestRequest).toEqual({
      accelerator: "hopper",
      count: 2,
    });
  });

  test("a card that the request's own list names is compared", () => {
    const request = requestOf([candidateOf("A10G:1"), candidateOf("B200:1")]);
    const [first] = judgeRequest(jobOf(flat(140)), request, settingsOf()).verdicts;
    expect(first).toMatchObject({ smallestCard: { accelerator: "B200", count: 1 } });
    expect(judgedOne(jobOf(flat(140)), "A10G:1").smallestCard).toBeNull();
  });
});

describe("rewrites", () => {
  const to = (verdict: Judged) =>
    verdict.rewriteTo && `${verdict.rewriteTo.accelerator}:${verdict.rewriteTo.count}`;
  const rows: [string, string, Partial<JudgeSettings>, string | null, Judged["rewriteBlocked"]][] = [
    ["mutate off", "A100:8", {}, null, "mutate-off"],
    ["the cheapest", "A100:8", { mutate: true }, "L4:1", null],
    ["several nodes", "A100:8x2", { mutate: true }, null, "multi-node"],
    [
      "only to a card that the task may use",
      "A100:8",
      { mutate: true, rewriteCards: ["a100-80gb", "A100"] },
      "A100:1",
      null,
    ],
    ["no such card", "A100:8", { mutate: true, rewriteCards: ["MI300X"] }, null, "no-card-allowed"],
    [
      "never to a larger request",
      "L40S:1",
      { mutate: true, rewriteCards: ["H200"] },
      null,
      "no-card-allowed",
    ],
    [
      "its own cheapest",
      "A100-80GB:1",
      { mutate: true, table: tableOf({ "A100-80GB": 0.01 }) },
      null,
      "cheapest-already",
    ],
    ["whole nodes come anyway", "A100:8", { mutate: true, wholeNodes: true }, null, null],
  ];
  for (const [name, request, settings, target, blocked] of rows) {
    test(name, () => {
      const verdict = judgedOne(jobOf(flat(15)), request, settings);
      expect([to(verdict), verdict.rewriteBlocked]).toEqual([target, blocked]);
    });
  }

  test("judging the rewritten request at its global batch rewrites nothing", () => {
    const cards = ["T4", "L4", "A100", "L40S", "A100-80GB", "H100", "H200", "A40"];
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 400 }),
        fc.integer({ min: 0, max: 50 }),
        fc.integer({ min: 1, max: 64 }),
        fc.constantFrom(...cards),
        fc.integer({ min: 1, max: 16 }),
        fc.constantFrom(null, { "A100-80GB": 0.1 }, { H200: 0.5, T4: 9 }),
        (fixed, tenths, batch, card, count, prices) => {
          const settings = settingsOf({ mutate: true, table: tableOf(prices) });
          const job = jobOf(rising(fixed, tenths / 10), { batch });
          const first = judgedOne(job, `${card}:${count}`, settings);
          if (first.rewriteTo === null) return;
          const { accelerator, count: fewer } = first.rewriteTo;
          const again = judgedOne(
            { ...job, globalBatches: new Map([[`${accelerator}:${fewer}`, first.globalBatch]]) },
            `${accelerator}:${fewer}`,
            settings,
          );
          expect(again.rewriteTo).toBeNull();
          expect(again.needGb).toBe(first.needGb);
          expect(again.decision).not.toBe("refuse");
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe("how the job lies on its cards", () => {
  test("parallel=ddp judges each card alone and keeps their number", () => {
    const job = jobOf(rising(20, 1), { batch: 10, parallel: "ddp" });
    expect(judgedOne(job, "A100:8")).toMatchObject({
      needGb: 30 * 1.15,
      capacityGb: 40,
      decision: "warn",
      reason: "borderline",
    });
    const refused = judgedOne(job, "L4:4");
    expect(refused).toMatchObject({ decision: "refuse", smallestCard: { accelerator: "A100", count: 4 } });
    expect(judgedOne(job, "H200:4", { mutate: true }).rewriteTo).toEqual({ accelerator: "L40S", count: 4 });
  });

  test("sharding is the way out of a refused ddp job", () => {
    const verdict = judgedOne(
      jobOf(rising(150, 1), { batch: 1, parallel: "ddp" }, (change) =>
        change.parallel ? rising(150, 1) : null,
      ),
      "H100:4",
    );
    expect(verdict).toMatchObject({ decision: "refuse", smallestRequest: { accelerator: "L40S", count: 4 } });
    expect(verdict.alternatives).toEqual([{ change: "parallel=sharded", needGb: 154 * 1.15 }]);
  });

  test("ZeRO-1 and ZeRO-2 are judged only where both ends agree", () => {
    const request = (text: string) => requestOf([candidateOf(text)]);
    const at = (fixed: number, text: string) =>
      judgeRequest(jobOf(flat(fixed), { parallel: "zero2" }), request(text), settingsOf()).decision;
    expect(at(15, "L4:4")).toBe("allow");
    expect(at(200, "L4:4")).toBe("refuse");
    expect(at(60, "L4:4")).toBe("unjudged");
    expect(at(15, "L4:1")).toBe("allow");
  });

  const sharding: [string, number, string, boolean, boolean][] = [
    // name, fixed, request, parallel set, only sharded
    ["a whole copy does not fit one card", 30, "A10G:4", false, true],
    ["the user asked for sharding", 30, "A10G:4", true, false],
    ["a whole copy fits", 10, "A10G:4", false, false],
    ["one card", 15, "A10G:1", false, false],
    ["refused anyway", 300, "A10G:4", false, false],
  ];
  for (const [name, fixed, request, set, only] of sharding) {
    test(`only sharded: ${name}`, () => {
      const job = jobOf(flat(fixed), set ? { parallel: "sharded" } : {});
      expect(judgedOne(job, request).onlySharded).toBe(only);
    });
  }
});

describe("cost", () => {
  const cap = (maxCostUsd: number, more: Partial<JudgeSettings> = {}) => ({ maxCostUsd, ...more });
  const rows: [
    string,
    number | null,
    string,
    Partial<JudgeSettings>,
    string,
    number | null,
    Judged["costUnchecked"],
  ][] = [
    // name, hours, request, settings, decision, USD, not checked because
    ["under the cap", 10, "L4:1", cap(8), "allow", 8, null],
    ["over the cap", 10, "L4:1", cap(7.99), "refuse", 8, null],
    ["array tasks multiply", 10, "L4:1", cap(70, { tasks: 9 }), "refuse", 72, null],
    ["spot: a warning", 10, "L4:1", cap(1, { useSpot: true }), "warn", 8, null],
    ["no hours", null, "L4:1", cap(1), "allow", null, "no-hours"],
    ["hours of the time limit", null, "L4:1", cap(1, { fallbackHours: 2 }), "refuse", 1.6, null],
    ["the job's own hours win", 1, "L4:1", cap(1, { fallbackHours: 20 }), "allow", 0.8, null],
    ["no price", 10, "MI300X:1", cap(1), "allow", null, "no-price"],
    ["no cap", 10, "L4:1", {}, "allow", 8, null],
    ["the rewritten request's cost", 10, "A100:8", cap(10, { mutate: true }), "rewrite", 8, null],
    ["over the cap even rewritten", 10, "A100:8", cap(7, { mutate: true }), "refuse", 8, null],
    ["nodes multiply", 10, "L4:1x3", cap(20), "refuse", 24.000000000000004, null],
  ];
  for (const [name, hours, request, settings, decision, usd, unchecked] of rows) {
    test(name, () => {
      const verdict = judgedOne(jobOf(flat(15), { hours }), request, settings);
      const told: unknown[] = [verdict.decision, verdict.cost?.usd ?? null, verdict.costUnchecked];
      expect(told).toEqual([decision, usd, unchecked]);
    });
  }

  test("a request that does not hold has no cost", () => {
    expect(judgedOne(jobOf(flat(100), { hours: 1 }), "L4:1", cap(0.1))).toMatchObject({
      cost: null,
      reason: "too-small",
    });
  });
});

describe("alternatives", () => {
  const resize = (needs: Partial<Record<string, number>>) => (change: Partial<Recipe>) => {
    const [key, value] = Object.entries(change)[0]!;
    const peak = needs[`${key}=${value}`];
    return peak === undefined ? null : flat(peak);
  };
  const rows: [string, Parameters<typeof factsOf>[0], Partial<Record<string, number>>, string[]][] = [
    ["none can be sized", {}, {}, []],
    ["only those that fit", {}, { "checkpointing=full": 21, "precision=bf16": 20 }, ["precision=bf16"]],
    [
      "from least to most intrusive",
      { attention: "eager", optimizer: "adamw-foreach" },
      {
        "loraRank=16": 1,
        "offload=optimizer": 1,
        "precision=bf16": 1,
        "optimizer=adamw-8bit": 1,
        "optimizer=adamw": 1,
        "checkpointing=full": 1,
        "loss=fused": 1,
        "attention=flash": 1,
        "attention=sdpa": 1,
      },
      [
        "attention=sdpa",
        "attention=flash",
        "loss=fused",
        "checkpointing=full",
        "optimizer=adamw",
        "optimizer=adamw-8bit",
        "precision=bf16",
        "offload=optimizer",
        "lora-rank=16",
      ],
    ],
    [
      "what the job has already is left out",
      { checkpointing: "full" },
      { "checkpointing=full": 1, "attention=sdpa": 1 },
      [],
    ],
    ["quantisation only with LoRA", { loraRank: 8 }, { "quant=nf4": 1, "loraRank=16": 1 }, ["quant=nf4"]],
  ];
  for (const [name, values, needs, expected] of rows) {
    test(name, () => {
      const verdict = judgedOne(jobOf(flat(100), values, resize(needs)), "L4:1");
      expect(verdict.alternatives.map(({ change }) => change)).toEqual(expected);
    });
  }

  test("a job that fits is not sized again", () => {
    const job = jobOf(flat(10), {}, () => {
      throw new Error("sized again");
    });
    expect(judgedOne(job, "L4:1").alternatives).toEqual([]);
  });

  test("each change is sized once for all candidates", () => {
    const seen: string[] = [];
    const job = jobOf(flat(500), {}, (change) => {
      seen.push(JSON.stringify(change));
      return flat(400);
    });
    judgeRequest(
      job,
      requestOf(["T4:1", "L4:1", "H100:2", "H200:2"].map((text) => candidateOf(text))),
      settingsOf(),
    );
    expect(new Set(seen).size).toBe(seen.length);
  });
});

describe("several candidates", () => {
  const unknown = {
    accelerator: "B999",
    count: 1,
    nodes: 1,
    label: "B999:1",
    reason: "card-unknown",
    message: "No capacity is on file for accelerator `B999`; not judged.",
  } as const;
  const rows: [string, string[], boolean, string, number[]][] = [
    // name, candidates (peak 15), mutate, decision, dropped
    ["all hold", ["L4:1", "A10G:1"], false, "allow", []],
    ["one is refused", ["T4:1", "L4:1"], false, "refuse", []],
    ["mutate drops it", ["T4:1", "L4:1"], true, "rewrite", [0]],
    ["mutate drops none when all are refused", ["T4:1", "a100_3g.10gb:1"], true, "refuse", []],
    ["the worst counts", ["L4:1", "H200:1"], false, "warn", []],
    ["one is unjudged", ["L4:1", "?"], false, "unjudged", []],
    ["unjudged does not hide a refusal", ["T4:1", "?"], false, "refuse", []],
    ["unjudged is not what remains", ["T4:1", "?"], true, "refuse", []],
    ["a rewritten one among others", ["L4:1", "H200:1"], true, "rewrite", []],
  ];
  for (const [name, texts, mutate, decision, dropped] of rows) {
    test(name, () => {
      const candidates = texts.map((text) => (text === "?" ? unknown : candidateOf(text)));
      const result = judgeRequest(jobOf(flat(15)), requestOf(candidates), settingsOf({ mutate }));
      expect([result.decision, [...result.dropped]] as unknown[]).toEqual([decision, dropped]);
    });
  }

  test("a refused request changes nothing", () => {
    const candidates = [candidateOf("T4:1"), candidateOf("a100_3g.10gb:1"), candidateOf("H200:1")];
    const mutated = judgeRequest(jobOf(flat(15)), requestOf(candidates), settingsOf({ mutate: true }));
    expect([mutated.decision, mutated.dropped, changesRequest(mutated)]).toEqual(["rewrite", [0, 1], true]);
    const refused = { ...mutated, decision: "refuse" } as const;
    expect(changesRequest(refused)).toBe(false);
  });

  test("no candidate asks for nothing, an unsized job judges none", () => {
    expect(judgeRequest(jobOf(flat(15)), requestOf([]), settingsOf()).decision).toBe("allow");
    const result = unsizedRequest(
      { reason: "model-not-found", message: "No such model." },
      requestOf([candidateOf("L4:1"), unknown]),
    );
    expect(result.verdicts.map((one) => one.reason)).toEqual(["model-not-found", "card-unknown"]);
  });

  test("a verdict that a policy file changed is counted as changed", () => {
    const request = requestOf([candidateOf("T4:1")]);
    const result = judgeRequest(jobOf(flat(15)), request, settingsOf());
    const waived = result.verdicts.map((one) => ({ ...one, decision: "warn" }) as Judged);
    expect(combine(waived, request, settingsOf()).decision).toBe("warn");
  });
});

describe("memory forms", () => {
  const sized = (gb: number): Card => ({
    id: `${gb}GB+`,
    gb,
    usdPerHour: null,
    names: [`${gb}GB+`],
    vendor: "cuda",
    candidate: false,
    slice: false,
    source: { capacity: "stated", price: null },
  });
  const form = (gb: number, written: number, text = `${gb}GB+`) =>
    ({
      accelerator: text,
      count: 1,
      nodes: 1,
      card: sized(gb),
      label: `${text}:1`,
      memoryForm: true,
      written,
    }) as const;
  const rows: [string, number, number[], string][] = [
    ["every member fails", 300, [80, 288], "refuse"],
    ["the largest member holds", 100, [80, 288], "warn"],
    ["all hold", 50, [80, 288], "allow"],
    ["the stated size alone, larger cards on file", 100, [80], "warn"],
    ["the stated size alone, none on file", 400, [80], "refuse"],
  ];
  for (const [name, peak, members, decision] of rows) {
    test(name, () => {
      const request = requestOf(
        members.map((gb) => ({ ...form(gb, 0), accelerator: "80GB+", label: "80GB+:1" })),
        "open",
      );
      const result = judgeRequest(jobOf(flat(peak)), request, settingsOf({ mutate: true }));
      expect([result.decision, changesRequest(result)]).toEqual([decision as typeof result.decision, false]);
    });
  }

  test("an exact size is not its larger neighbours", () => {
    const request = requestOf([form(80, 0, "80GB")], "open");
    expect(judgeRequest(jobOf(flat(100)), request, settingsOf()).decision).toBe("refuse");
  });

  test("one among named cards counts as one candidate", () => {
    const members = [form(80, 0), form(288, 0), { ...candidateOf("L4:1"), written: 1 }];
    const at = (peak: number, mutate = false) =>
      judgeRequest(jobOf(flat(peak)), requestOf(members, "any-of"), settingsOf({ mutate }));
    expect(at(15).decision).toBe("warn");
    expect(at(60).decision).toBe("refuse");
    expect(at(60, true)).toMatchObject({ decision: "rewrite", dropped: [2] });
    expect(at(300).decision).toBe("refuse");
  });
});

describe("properties", () => {
  const cards = ["T4", "L4", "A100", "L40S", "A100-80GB", "H200", "A40", "B200"];
  const jobs = fc.record({
    fixed: fc.integer({ min: 1, max: 500 }),
    tenths: fc.integer({ min: 0, max: 200 }),
    batch: fc.integer({ min: 1, max: 64 }),
    card: fc.constantFrom(...cards),
    count: fc.integer({ min: 1, max: 16 }),
  });

  test("more of the same card never turns a fit into a refusal", () => {
    fc.assert(
      fc.property(jobs, fc.integer({ min: 1, max: 8 }), ({ fixed, tenths, batch, card, count }, more) => {
        const job = jobOf(rising(fixed, tenths / 10), { batch });
        const small = judgedOne(job, `${card}:${count}`);
        const large = judgedOne(job, `${card}:${count + more}`);
        if (small.fit !== "under") expect(large.fit).not.toBe("under");
      }),
      { numRuns: 300 },
    );
  });

  test("the largest batch holds, one more does not, and it agrees with the verdict", () => {
    fc.assert(
      fc.property(jobs, ({ fixed, tenths, batch, card, count }) => {
        const sizing = rising(fixed, tenths / 10);
        const verdict = judgedOne(jobOf(sizing, { batch }), `${card}:${count}`);
        const largest = verdict.largestBatch;
        if (largest === null) {
          if (tenths > 0)
            expect(judgedOne(jobOf(sizing, { batch: 1 }), `${card}:${count}`).fit).toBe("under");
          return;
        }
        expect(largest >= batch).toBe(verdict.fit !== "under");
        expect(judgedOne(jobOf(sizing, { batch: largest }), `${card}:${count}`).fit).not.toBe("under");
        expect(judgedOne(jobOf(sizing, { batch: largest + 1 }), `${card}:${count}`).fit).toBe("under");
      }),
      { numRuns: 300 },
    );
  });

  test("what is suggested holds the job", () => {
    fc.assert(
      fc.property(jobs, ({ fixed, tenths, batch, card, count }) => {
        const job = jobOf(rising(fixed, tenths / 10), { batch });
        const verdict = judgedOne(job, `${card}:${count}`);
        const { globalBatch } = verdict;
        for (const size of [verdict.smallestCard, verdict.smallestRequest, verdict.rightSized]) {
          if (size === null) continue;
          const label = `${size.accelerator}:${size.count}`;
          const again = judgedOne({ ...job, globalBatches: new Map([[label, globalBatch]]) }, label);
          expect(again.fit).not.toBe("under");
        }
      }),
      { numRuns: 200 },
    );
  });
});
