import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { RepoPolicy } from "../../src/policy/types.ts";
import { applyToVerdicts } from "../../src/policy/verdicts.ts";
import { commentOf } from "../../src/render/lines.ts";
import { messagesOf, noteLine } from "../../src/render/messages.ts";
import type { AnyCandidate } from "../../src/request/types.ts";
import type { Decision, JudgeSettings } from "../../src/verdict/types.ts";
import { type Case, outcomeOf } from "../render/support.ts";
import { candidateOf, sizingOf } from "../verdict/support.ts";
import { identity, on, policyOf, waiverFile, waiverItem } from "./support.ts";

/** 10 GB a sample over 20 GB of state: at batch 1 it needs 34.5 GB, at batch 8 115 GB. */
const SIZING = sizingOf([{ fixed: 20, per: 10 }], { params: 8e9 });

interface Told {
  readonly decision: Decision;
  readonly rules: readonly (string | null)[];
  readonly messages: readonly string[];
  readonly comment: string | null;
  readonly dropped: readonly number[];
  readonly waivers: readonly (string | null)[];
}

function judged(file: string, given: Partial<Case>, repoPolicy: RepoPolicy = "honour"): Told {
  const { result, request, telling } = outcomeOf({ sizing: SIZING, request: ["H100:1"], ...given });
  const settings = { ...SETTINGS, ...telling.settings, ...given.settings };
  const applied = applyToVerdicts(
    { facts: telling.facts, params: SIZING.params, request, result, settings, paths: ["jobs/a.sh"] },
    { ...on({ repoPolicy }), policy: policyOf(file), file: ".neurarch.yml", identity },
  );
  return {
    decision: applied.result.decision,
    rules: applied.result.verdicts.map((one) =>
      one.kind === "judged" ? one.rule : (one.budget?.rule ?? null),
    ),
    messages: [...messagesOf(applied.result, request, telling), ...applied.notes.map(noteLine)],
    comment: commentOf(applied.result, request, telling),
    dropped: applied.result.dropped,
    waivers: applied.result.verdicts.map((one) =>
      one.kind === "judged" ? (one.waiver?.owner ?? null) : null,
    ),
  };
}

const SETTINGS = { tasks: 1, useSpot: false, fallbackHours: null, rewriteCards: null } as const;
const UNKNOWN: AnyCandidate = {
  accelerator: "B999",
  count: 1,
  nodes: 1,
  label: "B999:1",
  reason: "card-unknown",
  message: "No capacity is on file for B999.",
};

interface Row {
  readonly name: string;
  readonly file: string;
  readonly given?: Partial<Case>;
  readonly repoPolicy?: RepoPolicy;
  readonly decision: Decision;
  readonly rule: string | null;
  /** What each message ends in, in order. */
  readonly ends: readonly string[];
  readonly waiver?: string;
  readonly comment?: string;
}

const V = "version: 1\n";
const ALLOWED = "Allowed: waived in .neurarch.yml by @ops until 2026-12-31: OOM test on purpose.";
const FITS = { facts: { batch: 3 } } as const;
const hours = (n: number, maxCostUsd: number | null = null) => ({
  facts: { hours: n, batch: 3 },
  settings: { maxCostUsd },
});

const ROWS: readonly Row[] = [
  {
    name: "a refusal without a policy",
    file: V,
    decision: "refuse",
    rule: "admission/request-does-not-fit",
    ends: ["and resubmit."],
  },
  {
    name: "waived",
    file: waiverFile(),
    decision: "warn",
    rule: "admission/request-does-not-fit",
    ends: [ALLOWED],
    waiver: "@ops",
    comment: "neurarch:does-not-fit need=115.0GB on H100:1",
  },
  {
    name: "waived for a path",
    file: waiverFile({ path: "jobs/*.sh" }),
    decision: "warn",
    rule: "admission/request-does-not-fit",
    ends: [ALLOWED],
    waiver: "@ops",
  },
  {
    name: "a waiver for another path",
    file: waiverFile({ path: "other/*" }),
    decision: "refuse",
    rule: "admission/request-does-not-fit",
    ends: ["and resubmit."],
  },
  {
    name: "expired",
    file: waiverFile({ expires: "2026-11-29" }),
    decision: "refuse",
    rule: "admission/request-does-not-fit",
    ends: [
      "and resubmit.",
      "Neurarch: .neurarch.yml: Waiver for admission/request-does-not-fit expired on 2026-11-29.",
    ],
  },
  {
    name: "expired, of another model: not this job's",
    file: waiverFile({ expires: "2026-11-29", model: "a/*" }),
    decision: "refuse",
    rule: "admission/request-does-not-fit",
    ends: ["and resubmit."],
  },
  {
    name: "expired, on a job that fits",
    file: waiverFile({ expires: "2026-11-29" }),
    given: FITS,
    decision: "allow",
    rule: null,
    ends: ["expired on 2026-11-29."],
  },
  {
    name: "many that do not apply",
    file: `${V}waivers:\n${waiverItem({ owner: null }).repeat(5)}`,
    given: FITS,
    decision: "allow",
    rule: null,
    ends: [
      "it has no owner.",
      "it has no owner.",
      "it has no owner.",
      "2 more of its waivers do not apply; `neurarch-gate policy check` lists them.",
    ],
  },
  {
    name: "set to warn",
    file: `${V}rules: {admission/request-does-not-fit: warn}\n`,
    decision: "warn",
    rule: "admission/request-does-not-fit",
    ends: ["Allowed: admission/request-does-not-fit is set to warn in .neurarch.yml."],
  },
  {
    name: "set to off is still told",
    file: `${V}rules: {admission/request-does-not-fit: off}\n`,
    decision: "warn",
    rule: "admission/request-does-not-fit",
    ends: ["Allowed: admission/request-does-not-fit is set to off in .neurarch.yml."],
  },
  {
    name: "an over-request",
    file: V,
    given: { request: ["H100:8"], facts: { batch: 1 } },
    decision: "warn",
    rule: "admission/over-requested",
    ends: ["takes more steps."],
  },
  {
    name: "an over-request set to off",
    file: `${V}rules: {admission/over-requested: off}\n`,
    given: { request: ["H100:8"], facts: { batch: 1 } },
    decision: "allow",
    rule: null,
    ends: [],
  },
  {
    name: "an over-request set to block",
    file: `${V}rules: {admission/over-requested: block}\n`,
    given: { request: ["H100:8"], facts: { batch: 1 } },
    decision: "refuse",
    rule: "admission/over-requested",
    ends: ["Refused: admission/over-requested is set to block in .neurarch.yml."],
  },
  {
    name: "the same, waived",
    file: waiverFile({ rule: "admission/over-requested" }, "rules: {admission/over-requested: block}\n"),
    given: { request: ["H100:8"], facts: { batch: 1 } },
    decision: "warn",
    rule: "admission/over-requested",
    ends: [ALLOWED],
    waiver: "@ops",
  },
  {
    name: "a rewrite is not an over-request any more",
    file: `${V}rules: {admission/over-requested: block}\n`,
    given: { request: ["H100:8"], facts: { batch: 1 }, settings: { mutate: true } },
    decision: "rewrite",
    rule: "admission/over-requested",
    ends: ["takes more steps."],
  },
  // budget
  {
    name: "a card that is not allowed",
    file: `${V}budget: {cards_allowed: [L4, A10G]}\n`,
    given: FITS,
    decision: "refuse",
    rule: "budget/card-not-allowed",
    ends: ["Neurarch: .neurarch.yml: H100 is not an allowed card (L4, A10G). Request one of L4, A10G."],
    comment: "neurarch:card-not-allowed need=57.5GB on H100:1",
  },
  {
    name: "the same, waived",
    file: waiverFile({ rule: "budget/card-not-allowed" }, "budget: {cards_allowed: [L4]}\n"),
    given: FITS,
    decision: "warn",
    rule: "budget/card-not-allowed",
    ends: [
      "Neurarch: .neurarch.yml: H100 is not an allowed card (L4) (waived by @ops until 2026-12-31: OOM test on purpose).",
    ],
    waiver: "@ops",
  },
  {
    name: "the same, set to warn",
    file: `${V}budget: {cards_allowed: [L4]}\nrules: {budget/card-not-allowed: warn}\n`,
    given: FITS,
    decision: "warn",
    rule: "budget/card-not-allowed",
    ends: ["H100 is not an allowed card (L4). Request one of L4."],
  },
  {
    name: "the same, set to off",
    file: `${V}budget: {cards_allowed: [L4]}\nrules: {budget/card-not-allowed: off}\n`,
    given: FITS,
    decision: "allow",
    rule: null,
    ends: [],
  },
  {
    name: "too small and not allowed: both are told",
    file: `${V}budget: {cards_allowed: [L4]}\n`,
    decision: "refuse",
    rule: "admission/request-does-not-fit",
    ends: ["and resubmit.", ".neurarch.yml: H100 is not an allowed card (L4)."],
  },
  {
    name: "waived and not allowed: the budget refuses",
    file: waiverFile({}, "budget: {cards_allowed: [L4]}\n"),
    decision: "refuse",
    rule: "budget/card-not-allowed",
    ends: ["Request one of L4."],
  },
  {
    name: "waived and waived",
    file: waiverFile(
      {},
      `${waiverItem({ rule: "budget/card-not-allowed", owner: "bo" })}budget: {cards_allowed: [L4]}\n`,
    ),
    decision: "warn",
    rule: "admission/request-does-not-fit",
    ends: [ALLOWED, "(waived by bo until 2026-12-31: OOM test on purpose)."],
    waiver: "@ops",
  },
  {
    name: "an over-request on a card that is not allowed",
    file: `${V}budget: {cards_allowed: [L4]}\n`,
    given: { request: ["H100:8"], facts: { batch: 1 } },
    decision: "refuse",
    rule: "budget/card-not-allowed",
    ends: ["Request one of L4."],
  },
  {
    name: "a card without a size that is not allowed",
    file: `${V}budget: {cards_allowed: [L4]}\n`,
    given: { request: [UNKNOWN] },
    decision: "refuse",
    rule: "budget/card-not-allowed",
    ends: ["Neurarch: .neurarch.yml: B999 is not an allowed card (L4). Request one of L4."],
    comment: "neurarch:card-not-allowed (card-unknown) on B999:1",
  },
  {
    name: "a card without a size that is allowed",
    file: `${V}budget: {cards_allowed: [b999]}\n`,
    given: { request: [UNKNOWN] },
    decision: "unjudged",
    rule: null,
    ends: ["Allowed unchecked (fail open)."],
  },
  {
    name: "over the budget's cost",
    file: `${V}budget: {max_cost_per_run_usd: 10}\n`,
    given: hours(10),
    decision: "refuse",
    rule: "budget/cost-per-run",
    ends: [
      "The run costs $39.50 at list price, over the $10.00 that max_cost_per_run_usd allows: 1 card x 10 h x $3.95 per card-hour (Modal's on-demand list, 2026-08-19). Ask for fewer or cheaper cards, or fewer hours.",
    ],
  },
  {
    name: "within the budget's cost",
    file: `${V}budget: {max_cost_per_run_usd: 39.5}\n`,
    given: hours(10),
    decision: "allow",
    rule: null,
    ends: [],
  },
  {
    name: "a cost that is not known",
    file: `${V}budget: {max_cost_per_run_usd: 10}\n`,
    given: FITS,
    decision: "allow",
    rule: null,
    ends: [
      ".neurarch.yml: max_cost_per_run_usd was not checked: the job does not say how many hours it runs.",
    ],
  },
  {
    name: "a spot price is an upper bound",
    file: `${V}budget: {max_cost_per_run_usd: 10}\n`,
    given: { ...hours(10), settings: { useSpot: true } },
    decision: "warn",
    rule: "budget/cost-per-run",
    ends: ["or fewer hours."],
  },
  {
    name: "an array costs every task",
    file: `${V}budget: {max_cost_per_run_usd: 100}\n`,
    given: { ...hours(10), settings: { tasks: 3 } },
    decision: "refuse",
    rule: "budget/cost-per-run",
    ends: ["or fewer hours."],
  },
  {
    name: "too many parameters",
    file: `${V}budget: {max_params: 7B}\n`,
    given: FITS,
    decision: "refuse",
    rule: "budget/params",
    ends: ["org/model has 8B parameters, over the 7B that max_params allows. Train a smaller model."],
  },
  {
    name: "two lines crossed: the first refuses",
    file: `${V}budget: {max_params: 7B, cards_allowed: [L4]}\n`,
    given: FITS,
    decision: "refuse",
    rule: "budget/card-not-allowed",
    ends: ["Request one of L4.", "over the 7B that max_params allows."],
  },
  // the site's cap
  {
    name: "over the site's cap",
    file: V,
    given: hours(10, 20),
    decision: "refuse",
    rule: "admission/cost-cap",
    ends: ["or the hours and resubmit."],
  },
  {
    name: "the cap is not waived",
    file: waiverFile({ rule: "admission/cost-cap" }),
    given: hours(10, 20),
    decision: "refuse",
    rule: "admission/cost-cap",
    ends: ["or the hours and resubmit.", "the site's cost cap is not a repository's to waive."],
  },
  {
    name: "the cap is not turned down",
    file: `${V}rules: {admission/cost-cap: off}\n`,
    given: hours(10, 20),
    decision: "refuse",
    rule: "admission/cost-cap",
    ends: ["or the hours and resubmit."],
  },
  {
    name: "a budget above the cap does not raise it",
    file: `${V}budget: {max_cost_per_run_usd: 1000}\n`,
    given: hours(10, 20),
    decision: "refuse",
    rule: "admission/cost-cap",
    ends: ["or the hours and resubmit."],
  },
  {
    name: "what is waived meets the cap",
    file: waiverFile(),
    given: { facts: { hours: 10 }, settings: { maxCostUsd: 20 } },
    decision: "refuse",
    rule: "admission/cost-cap",
    ends: ["or the hours and resubmit."],
  },
  {
    name: "what is waived stays under it",
    file: waiverFile(),
    given: { facts: { hours: 1 }, settings: { maxCostUsd: 20 } },
    decision: "warn",
    rule: "admission/request-does-not-fit",
    ends: [ALLOWED],
    waiver: "@ops",
  },
  {
    name: "what is waived meets the budget's cost",
    file: waiverFile({}, "budget: {max_cost_per_run_usd: 1}\n"),
    given: { facts: { hours: 10 } },
    decision: "refuse",
    rule: "budget/cost-per-run",
    ends: ["or fewer hours."],
  },
  {
    name: "what is waived and has no hours",
    file: waiverFile(),
    given: { settings: { maxCostUsd: 20 } },
    decision: "warn",
    rule: "admission/request-does-not-fit",
    ends: [ALLOWED, "was not checked: the job does not say how many hours it runs."],
    waiver: "@ops",
  },
  // what a site allows
  {
    name: "tighten-only: no waiver, and that is said",
    file: waiverFile(),
    repoPolicy: "tighten-only",
    decision: "refuse",
    rule: "admission/request-does-not-fit",
    ends: [
      "and resubmit.",
      "the waiver by @ops until 2026-12-31 does not apply: this site lets a policy file only tighten.",
    ],
  },
  {
    name: "tighten-only: a budget counts",
    file: `${V}budget: {cards_allowed: [L4]}\n`,
    given: FITS,
    repoPolicy: "tighten-only",
    decision: "refuse",
    rule: "budget/card-not-allowed",
    ends: ["Request one of L4."],
  },
  {
    name: "tighten-only: a warning is not silenced",
    file: `${V}rules: {admission/over-requested: off}\n`,
    given: { request: ["H100:8"], facts: { batch: 1 } },
    repoPolicy: "tighten-only",
    decision: "warn",
    rule: "admission/over-requested",
    ends: ["takes more steps."],
  },
  {
    name: "ignore: nothing counts",
    file: waiverFile({}, "budget: {cards_allowed: [L4]}\n"),
    repoPolicy: "ignore",
    decision: "refuse",
    rule: "admission/request-does-not-fit",
    ends: ["and resubmit."],
  },
];

describe("a policy file on verdicts", () => {
  for (const { name, file, given, repoPolicy, decision, rule, ends, waiver, comment } of ROWS) {
    test(name, () => {
      const told = judged(file, given ?? {}, repoPolicy);
      expect({ decision: told.decision, rules: told.rules, waivers: told.waivers }).toEqual({
        decision,
        rules: [rule],
        waivers: [waiver ?? null],
      });
      expect(told.messages.map((message, index) => message.slice(-(ends[index]?.length ?? 0)))).toEqual([
        ...ends,
      ]);
      if (comment !== undefined) expect(told.comment).toBe(comment);
    });
  }
});

describe("several candidates", () => {
  const two = { request: ["H100:1", "A10G:1"], facts: { batch: 1 } } as const;
  test("one that is not allowed refuses the request", () => {
    const told = judged(`${V}budget: {cards_allowed: [H100]}\n`, {
      ...two,
      sizing: sizingOf([{ fixed: 10, per: 1 }]),
    });
    expect([told.decision, told.rules]).toEqual([
      "refuse",
      ["admission/over-requested", "budget/card-not-allowed"],
    ]);
  });
  test("with mutate it is dropped while another remains", () => {
    const told = judged(`${V}budget: {cards_allowed: [H100]}\n`, {
      ...two,
      sizing: sizingOf([{ fixed: 10, per: 1 }]),
      settings: { mutate: true, rewriteCards: ["H100", "A10G"] },
    });
    expect([told.decision, told.dropped]).toEqual(["rewrite", [1]]);
    expect(told.messages).toContain(
      "Neurarch: dropped A10G:1: .neurarch.yml: A10G is not an allowed card (H100). Request one of H100.",
    );
  });
  test("a waiver keeps one that mutate would drop", () => {
    const settings = { mutate: true };
    expect(judged(V, { ...two, settings }).dropped).toEqual([1]);
    const told = judged(waiverFile(), { ...two, settings });
    expect([told.decision, told.dropped, told.waivers]).toEqual(["rewrite", [], [null, "@ops"]]);
  });
});

describe("a request by memory", () => {
  const card = { ...candidateOf("H100:1").card, id: "80GB+", names: ["80GB+"] };
  const stated = { ...candidateOf("H100:1"), accelerator: "80GB+", label: "80GB+:1", card, memoryForm: true };
  const members = ["H100:1", "A100-80GB:1"].map((name) => candidateOf(name, undefined, { memoryForm: true }));
  const rows: readonly (readonly [string, readonly AnyCandidate[], string, Decision, string])[] = [
    ["its size alone, one allowed", [stated], "H200", "allow", "may give cards, and only H200 is allowed."],
    ["its size alone, that size allowed", [stated], "A100-80GB", "allow", "only A100-80GB is allowed."],
    [
      "its size alone, none allowed",
      [stated],
      "L4",
      "refuse",
      "80GB+ is not an allowed card (L4). Request one of L4.",
    ],
    ["every card, one allowed", members, "H100", "allow", "may give A100-80GB, and only H100 is allowed."],
    ["every card, all allowed", members, "H100, A100-80GB", "allow", ""],
    ["every card, none allowed", members, "L4", "refuse", "is not an allowed card (L4). Request one of L4."],
  ];
  for (const [name, request, allowed, decision, says] of rows) {
    test(name, () => {
      const told = judged(`${V}budget: {cards_allowed: [${allowed}]}\n`, {
        request,
        choice: "open",
        ...FITS,
      });
      expect(told.decision).toBe(decision);
      if (says === "") expect(told.messages).toEqual([]);
      else expect(told.messages.join("\n")).toEndWith(says);
    });
  }
});

/** Any file there is: parts that can be read, parts that cannot. */
const files = fc
  .record({
    rules: fc.dictionary(
      fc.constantFrom(
        "admission/request-does-not-fit",
        "admission/cost-cap",
        "admission/over-requested",
        "admission/borderline-fit",
        "budget/card-not-allowed",
        "budget/cost-per-run",
        "policy/waiver-expired",
        "what/ever",
      ),
      fc.constantFrom("block", "warn", "off"),
    ),
    waivers: fc.array(
      fc.record(
        {
          rule: fc.constantFrom(
            "admission/request-does-not-fit",
            "admission/cost-cap",
            "admission/over-requested",
            "budget/card-not-allowed",
            "budget/cost-per-run",
          ),
          owner: fc.constantFrom("bo", ""),
          created: fc.constantFrom("2026-11-01", "2026-10-01", "2027-01-01"),
          expires: fc.constantFrom("2026-11-30", "2026-12-31", "2026-11-02", "never"),
          model: fc.constantFrom("*", "org/*", "other"),
          path: fc.constantFrom("**", "jobs/*", "x"),
        },
        { requiredKeys: ["rule"] },
      ),
      { maxLength: 4 },
    ),
    budget: fc.record(
      {
        cards_allowed: fc.constantFrom(["H100"], ["L4", "A10G"]),
        max_cost_per_run_usd: fc.constantFrom(0, 10, 1e6),
        max_params: fc.constantFrom("1B", "70B"),
      },
      { requiredKeys: [] },
    ),
  })
  .map((file) => JSON.stringify({ version: 1, ...file }));

const cases = fc.record({
  request: fc.constantFrom(
    ["H100:1"],
    ["H100:8"],
    ["L4:1"],
    ["H100:1", "A10G:1"],
    ["A100-80GB:2", "T4:8", "H200:1"],
  ),
  batch: fc.constantFrom(1, 4, 8, 64),
  hours: fc.constantFrom(null, 1, 50),
  maxCostUsd: fc.constantFrom(null, 5, 100),
  mutate: fc.boolean(),
  useSpot: fc.boolean(),
});

function given({
  request,
  batch,
  hours,
  ...settings
}: { request: readonly string[]; batch: number; hours: number | null } & Pick<
  JudgeSettings,
  "maxCostUsd" | "mutate" | "useSpot"
>) {
  return { request, facts: { batch, hours }, settings };
}

const LOOSENESS: readonly Decision[] = ["refuse", "unjudged", "warn", "rewrite", "allow"];

describe("whatever a file says", () => {
  test("it never lets through what is over the site's cap", () => {
    fc.assert(
      fc.property(files, cases, (file, one) => {
        const { result } = outcomeOf({ sizing: SIZING, ...given({ ...one, maxCostUsd: null }) });
        const rates: Record<string, number> = {
          H100: 3.95,
          L4: 0.8,
          A10G: 1.1,
          "A100-80GB": 2.5,
          T4: 0.59,
          H200: 4.54,
        };
        const told = judged(file, given({ ...one, mutate: false }));
        const cap = one.maxCostUsd;
        if (cap === null || one.hours === null || one.useSpot) return;
        result.verdicts.forEach((verdict, index) => {
          if (verdict.kind !== "judged") throw new Error("not judged");
          const usd = rates[verdict.candidate.accelerator]! * verdict.totalCards * one.hours!;
          if (usd > cap) expect([told.decision, told.rules[index]]).not.toEqual(["warn", told.rules[index]!]);
          if (usd > cap) expect(told.decision).toBe("refuse");
        });
      }),
      { numRuns: 400 },
    );
  });
  test("tighten-only never loosens", () => {
    fc.assert(
      fc.property(files, cases, (file, one) => {
        const without = judged(V, given(one));
        const told = judged(file, given(one), "tighten-only");
        expect(LOOSENESS.indexOf(told.decision)).toBeLessThanOrEqual(
          LOOSENESS.indexOf(without.decision === "allow" ? "allow" : without.decision),
        );
      }),
      { numRuns: 400 },
    );
  });
  test("under ignore it says and changes nothing", () => {
    fc.assert(
      fc.property(files, cases, (file, one) => {
        expect(judged(file, given(one), "ignore")).toEqual(judged(V, given(one)));
      }),
      { numRuns: 200 },
    );
  });
});
