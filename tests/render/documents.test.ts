import { describe, expect, test } from "bun:test";
import { humanCards } from "../../src/render/cards.ts";
import { explain, originOf } from "../../src/render/explain.ts";
import { humanSizing, humanVerdict, INCLUDED } from "../../src/render/human.ts";
import { errorDocument, sizingDocument, type Told, verdictDocument } from "../../src/render/json.ts";
import { commentOf, filterDecision, filterLines } from "../../src/render/lines.ts";
import { buildCardTable } from "../../src/request/cards.ts";
import type { Decision } from "../../src/verdict/types.ts";
import { candidateOf, factsOf, requestOf, sizingOf } from "../verdict/support.ts";
import { type Case, type Outcome, outcomeOf } from "./support.ts";

const UNKNOWN = {
  accelerator: "B999",
  count: 2,
  nodes: 1,
  label: "B999:2",
  reason: "card-unknown",
  message: "No capacity is on file for accelerator `B999`; not judged.",
} as const;

function told(outcome: Outcome, task: string | null = null): Told {
  const { result, request, telling, messages } = outcome;
  return { task, decision: result.decision, messages, request, result, reason: null, telling };
}

const moments = sizingOf(
  [
    {
      name: "optimizer-step",
      fixed: 60,
      terms: [
        { name: "weights", formula: "15 parameters x 4 bytes", fixedBytes: 15e9, perSampleBytes: 0 },
        { name: "optimizer", formula: "2 states", fixedBytes: 45e9, perSampleBytes: 0 },
      ],
    },
    {
      name: "loss",
      fixed: 40,
      per: 5,
      terms: [
        { name: "weights", formula: "15 parameters x 4 bytes", fixedBytes: 40e9, perSampleBytes: 0 },
        { name: "head", formula: "logits", fixedBytes: 0, perSampleBytes: 5e9 },
      ],
    },
  ],
  {
    source: "builtin",
    revision: "abc",
    structureFrom: "the catalogue",
    assumed: ["No bias."],
    notes: ["One note."],
  },
);

describe("the verdict as JSON", () => {
  const document = (given: Case, task: string | null = null) => verdictDocument(told(outcomeOf(given), task));

  test("has every key, null where there is nothing, and unrounded numbers", () => {
    const line = sizingOf([{ fixed: 12.3, per: 1.1 }]);
    expect(document({ sizing: line, facts: { batch: 16, hours: 2 }, request: ["a10g:2"] }, "train")).toEqual({
      schema: "neurarch-gate/verdict",
      version: 1,
      decision: "refuse",
      messages: [expect.stringContaining("Neurarch: org/model needs 54.6 GB")],
      task: "train",
      verdicts: [
        {
          decision: "refuse",
          rule: "admission/request-does-not-fit",
          reason: "too-small",
          message: expect.stringContaining("a10g:2 holds 48 GB"),
          request: { accelerator: "a10g", count: 2, nodes: 1, label: "a10g:2", gb: 48 },
          needGb: (12.3 + 1.1 * 32) * 1.15,
          peakGb: 12.3 + 1.1 * 32,
          fit: "under",
          largestBatch: 13,
          smallestCard: "A100-80GB",
          smallestRequest: null,
          rightSized: null,
          stateGb: 12.3,
          rewriteTo: null,
          alternatives: [],
          costUsd: null,
          waiver: null,
        },
      ],
      sizing: {
        model: "org/model",
        family: "test",
        assumed: [],
        params: 1e9,
        trainableParams: 1e9,
        activeParams: 1e9,
        recipe: line.recipe,
        seqLen: 2048,
        batch: 16,
        floorBytes: 12.3e9,
        fixedBytes: 12.3e9,
        perSampleBytes: 1.1e9,
        peakBytes: 12.3e9 + 16 * 1.1e9,
        source: "cli",
        revision: null,
        terms: null,
      },
    });
  });

  test("rewrites and costs", () => {
    const [verdict] = document({
      sizing: sizingOf([{ fixed: 15 }]),
      facts: { hours: 10 },
      request: ["A100:8"],
      settings: { mutate: true },
    }).verdicts;
    expect(verdict).toMatchObject({
      decision: "rewrite",
      rightSized: { accelerator: "L4", count: 1 },
      rewriteTo: { accelerator: "L4", count: 1 },
      costUsd: 8,
    });
  });

  test("one verdict a candidate in the task's order; an unjudged one has its reason", () => {
    const { decision, verdicts } = document({
      sizing: sizingOf([{ fixed: 15 }]),
      request: [UNKNOWN, "L4:1", "T4:1"],
    });
    expect(decision).toBe("refuse");
    expect(verdicts.map((one) => [one.request.label, one.decision, one.reason])).toEqual([
      ["B999:2", "unjudged", "card-unknown"],
      ["L4:1", "allow", "fits"],
      ["T4:1", "refuse", "too-small"],
    ]);
    expect(verdicts[0]).toMatchObject({ needGb: null, fit: null, request: { gb: null, count: 2 } });
  });

  test("a memory form is one candidate, however many cards it was judged as", () => {
    const form = { accelerator: "80GB+", label: "80GB+:1", memoryForm: true, written: 0 };
    const request = [
      { ...candidateOf("H100:1"), ...form },
      { ...candidateOf("H200:1"), ...form },
    ];
    const { verdicts, decision } = document({ sizing: sizingOf([{ fixed: 90 }]), request, choice: "open" });
    expect([decision, verdicts.length, verdicts[0]!.decision]).toEqual(["warn", 1, "warn"]);
    expect(verdicts[0]!.message).toContain("only a larger card that the request also admits holds the job.");
  });

  test("beside a candidate that was not judged nothing is told as rewritten", () => {
    const outcome = outcomeOf({
      sizing: sizingOf([{ fixed: 15 }]),
      request: [UNKNOWN, "H200:1"],
      settings: { mutate: true },
    });
    const message = (decision: Decision) =>
      verdictDocument({ ...told(outcome), decision }).verdicts[1]!.message;
    expect(message("rewrite")).toStartWith("Neurarch: rewrote H200:1 to L4:1: ");
    for (const decision of ["unjudged", "refuse"] as const)
      expect(message(decision)).toStartWith("Neurarch: H200:1 (141 GB) is over-requested: ");
  });

  test("nothing judged: the reason stands on every candidate", () => {
    const { verdicts, sizing } = verdictDocument({
      task: null,
      decision: "refuse",
      messages: ["Neurarch: NEURARCH_BATCH is no number."],
      request: requestOf([candidateOf("L4:1"), UNKNOWN]),
      result: null,
      reason: "facts-unreadable",
      telling: null,
    });
    expect(sizing).toBeNull();
    expect(verdicts.map((one) => [one.decision, one.reason, one.request.gb])).toEqual([
      ["refuse", "facts-unreadable", 24],
      ["refuse", "facts-unreadable", null],
    ]);
  });
});

describe("a sizing as JSON", () => {
  const rows: [number, number, number, number][] = [
    // batch, fixed, per sample, peak: the line in force
    [1, 60e9, 0, 60e9],
    [4, 60e9, 0, 60e9],
    [5, 40e9, 5e9, 65e9],
  ];
  for (const [batch, fixedBytes, perSampleBytes, peakBytes] of rows) {
    test(`the line in force at batch ${batch}`, () => {
      const document = sizingDocument(moments, batch);
      expect(document).toMatchObject({
        batch,
        fixedBytes,
        perSampleBytes,
        peakBytes,
        floorBytes: 60e9,
        terms: null,
      });
      expect(document.schema).toBe("neurarch-gate/sizing");
    });
  }

  test("terms add up to their moment", () => {
    const terms = sizingDocument(moments, 8, true).terms!;
    expect(terms.map((moment) => [moment.moment, moment.bytes, moment.inForce])).toEqual([
      ["optimizer-step", 60e9, false],
      ["loss", 80e9, true],
    ]);
    for (const moment of terms) {
      expect(moment.terms.reduce((sum, term) => sum + term.bytes, 0)).toBe(moment.bytes);
    }
  });

  test("errors", () => {
    expect(errorDocument("usage", "What.", null)).toEqual({
      schema: "neurarch-gate/error",
      version: 1,
      code: "usage",
      message: "What.",
      hint: null,
    });
  });
});

describe("the lines that the Lua filter reads", () => {
  const rows: [Decision, "warn" | "reject", string][] = [
    ["refuse", "reject", "reject"],
    ["refuse", "warn", "warn"],
    ["warn", "reject", "warn"],
    ["rewrite", "reject", "warn"],
    ["allow", "reject", "allow"],
    ["unjudged", "reject", "allow"],
  ];
  for (const [decision, mode, expected] of rows) {
    test(`${decision} in mode ${mode}`, () => {
      expect(filterDecision(decision, mode) as string).toBe(expected);
    });
  }

  test("warn mode says that the job goes in all the same", () => {
    const messages = ["Neurarch: too small.", "Neurarch: and more."];
    expect(filterLines({ decision: "refuse", mode: "warn", messages, comment: "neurarch:refused" })).toBe(
      "decision=warn\nmessage=Neurarch: too small. Submitted anyway.\nmessage=Neurarch: and more.\ncomment=neurarch:refused\n",
    );
    expect(filterLines({ decision: "refuse", mode: "reject", messages, comment: null })).toBe(
      "decision=reject\nmessage=Neurarch: too small.\nmessage=Neurarch: and more.\n",
    );
  });

  test("no value can start a line of its own", () => {
    const lines = filterLines({
      decision: "warn",
      mode: "warn",
      messages: ["Neurarch: a\ndecision=reject\r\u2028b"],
      comment: `neurarch\n${"x".repeat(500)}`,
    }).split("\n");
    expect(lines.length).toBe(4);
    expect(lines[1]).toBe("message=Neurarch: a decision=reject b");
    expect(lines[2]!.length).toBeLessThan(140);
  });

  const comments: [string, Case, string][] = [
    [
      "refused",
      { sizing: sizingOf([{ fixed: 157.3, per: 12.72 }]), request: ["a10g:1"] },
      "neurarch:does-not-fit need=297.9GB on a10g:1",
    ],
    [
      "allowed",
      { sizing: sizingOf([{ fixed: 10 }]), request: ["L4:1"] },
      "neurarch:fits need=11.5GB on L4:1",
    ],
    [
      "unjudged",
      { sizing: sizingOf([{ fixed: 10 }]), request: [UNKNOWN] },
      "neurarch:not-judged (card-unknown) on B999:2",
    ],
    [
      "the refused one of two",
      { sizing: sizingOf([{ fixed: 15 }]), request: ["L4:1", "T4:1"] },
      "neurarch:does-not-fit need=17.3GB on T4:1",
    ],
  ];
  for (const [name, given, expected] of comments) {
    test(`comment: ${name}`, () => {
      const { result, request, telling } = outcomeOf(given);
      expect(commentOf(result, request, telling)).toBe(expected);
    });
  }
});

describe("for people", () => {
  test("a refusal, figures first", () => {
    const given: Case = {
      sizing: sizingOf([{ fixed: 165.1, per: 6.75 }]),
      request: ["A10G:1"],
      resize: (change) => (change.checkpointing ? sizingOf([{ fixed: 19 }]) : null),
    };
    expect(humanVerdict(told(outcomeOf(given), "train"), 80)).toBe(
      `Refused: org/model on A10G:1 (train)
  needs     252.0 GB (peak 219.1 GB x 1.15)
  has       A10G:1 holds 24 GB
  batch     8 per device (the default); no batch fits
  smallest  H200:2, sharded
  or        checkpointing=full: 21.8 GB

Neurarch: org/model needs 252.0 GB to train at batch 8 per device, 2048 tokens
(peak 219.1 GB x 1.15 headroom), and A10G:1 holds 24 GB. No batch fits A10G:1:
the weights, gradients and optimizer state alone need 189.9 GB. No single card
holds it; the smallest request that does is H200:2, sharded (FSDP or ZeRO-3) at
the same global batch of 8. Sized offline by the neurarch CLI from the model's
structure; nothing was trained. Change \`accelerators:\` and resubmit. With
checkpointing=full it needs 21.8 GB.
`,
    );
  });

  test("a plain fit is told in four lines", () => {
    expect(
      humanVerdict(told(outcomeOf({ sizing: sizingOf([{ fixed: 10, per: 0.1 }]), request: ["L4:1"] }))),
    ).toBe(
      `Fits: org/model on L4:1
  needs     12.4 GB (peak 10.8 GB x 1.15)
  has       L4:1 holds 24 GB
  batch     8 per device (the default); up to 108 fits
`,
    );
  });

  test("nothing is wider than asked, but for single words", () => {
    const candidate = { ...candidateOf("A100:8"), label: "A100:8" };
    const outcome = outcomeOf({
      sizing: sizingOf([{ fixed: 10, per: 0.5 }], { assumed: ["Something long ".repeat(20)] }),
      facts: { batch: 4, hours: 3 },
      request: [candidate],
    });
    for (const width of [40, 60, 100]) {
      for (const line of humanVerdict(told(outcome), width).split("\n"))
        expect(line.length).toBeLessThanOrEqual(width);
      for (const line of humanSizing(moments, 8, 1.15, width).split("\n"))
        expect(line.length).toBeLessThanOrEqual(width);
    }
  });

  test("a sizing says what it is made of and what is in the headroom", () => {
    const text = humanSizing(moments, 8, 1.15, 200);
    expect(text).toStartWith(
      `org/model: 80.0 GB at batch 8, 2048 tokens
  test, 1,000,000,000 parameters; from the catalogue (revision abc)
  recipe: full fine-tune, precision=amp-bf16, optimizer=adamw, attention=sdpa, checkpointing=none

  peak               80.0 GB  at loss
  with headroom      92.0 GB  x 1.15
  state              60.0 GB  weights, gradients and optimizer state
  floor              60.0 GB  whatever the batch
  a sample            5.0 GB  more for each further one
`,
    );
    for (const part of ["Assumed: No bias.", INCLUDED]) expect(text).toContain(part);
    expect(INCLUDED).toContain("CUDA context");
    expect(INCLUDED).toContain("fragmentation");
  });

  test("an explanation lists every term of every moment and where facts came from", () => {
    const text = explain({ sizing: moments, batch: 8, headroom: 1.15, facts: factsOf({ batch: 8 }) }, 200);
    expect(text).toContain("loss: 80.0 GB <- in force");
    expect(text).toContain("optimizer-step: 60.0 GB\n");
    expect(text).toContain(
      "    40,000,000,000  weights  15 parameters x 4 bytes\n    40,000,000,000  head     logits",
    );
    expect(text).toContain("  batch         8  (flag batch)");
    expect(text).toContain("  checkpointing none  (default)");
    expect(text).toContain(INCLUDED);
  });

  test("a job that fits by less than its activations is warned of resuming", () => {
    const at = (capacityGb: number) => explain({ sizing: moments, batch: 8, headroom: 1.15, capacityGb });
    expect(at(96)).toContain("a resumed run holds states and activations together");
    expect(at(80)).not.toContain("a resumed run");
    expect(at(141)).not.toContain("a resumed run");
    const line = { ...moments, floorBytes: 40e9, moments: moments.moments.slice(1) };
    const one = explain({ sizing: line, batch: 1, headroom: 1.15, capacityGb: 54 });
    expect(one.replace(/\s+/g, " ")).toContain("Note: at 1 sample ");
  });

  const origins: [Parameters<typeof originOf>[0], string][] = [
    [{ kind: "flag", name: "--batch" }, "flag --batch"],
    [{ kind: "env", name: "NEURARCH_BATCH" }, "NEURARCH_BATCH in the environment"],
    [{ kind: "label", name: "neurarch-batch", line: 4 }, "resource label neurarch-batch, line 4"],
    [{ kind: "directive", name: "batch", line: 3 }, "#NEURARCH batch, line 3"],
    [{ kind: "site", name: "precision" }, "the site's default"],
    [{ kind: "default", name: "precision" }, "default"],
  ];
  for (const [from, expected] of origins) {
    test(`origin: ${expected}`, () => {
      expect(originOf(from)).toBe(expected);
    });
  }

  test("the card table, candidates first, prices with their source", () => {
    const table = buildCardTable({ gpuMap: { hopper: "H100", mi: "MI300X" }, prices: { H100: 3 } });
    expect(humanCards(table)).toBe(
      `Compared, suggested and rewritten to:
  hopper   80 GB  $3.00  cuda  H100, H100-80GB, H100-SXM, H100-MEGA, H100-NVLINK
  mi      192 GB      -  rocm  MI300X

Prices are USD per card-hour: the site's prices over Modal's on-demand list, 2026-08-19.
`,
    );
  });
});
