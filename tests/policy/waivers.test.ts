import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { applyPolicy } from "../../src/policy/apply.ts";
import { addDays } from "../../src/policy/dates.ts";
import type { Circumstances, Finding } from "../../src/policy/types.ts";
import { dayFor, stateOf } from "../../src/policy/waiver.ts";
import { findingOf, identity, on, policyOf, waiverFile, waiverItem } from "./support.ts";

interface Row {
  readonly file: string;
  readonly finding?: Partial<Finding>;
  readonly on?: Partial<Circumstances>;
}

/** What a refusal comes to under a file, and what is said of the file: `EFFECTIVE [until DAY by OWNER]; TITLE; ...`. */
function outcome({ file, finding, on: circumstances }: Row): string {
  const asked = { findings: [findingOf(finding)], runs: [] };
  const [first, ...rest] = applyPolicy(policyOf(file), asked, on(circumstances), identity);
  const { effective, gates, waiver, withheld } = first!;
  expect(gates).toBe(effective === "block");
  const by = waiver === null ? "" : ` until ${waiver.expires} by ${waiver.owner}`;
  const held = withheld === null ? "" : ` (withheld: ${withheld.owner})`;
  return [`${effective}${by}${held}`, ...rest.map(({ rule, title }) => `${rule.slice(7)}: ${title}`)].join(
    "; ",
  );
}

const W = waiverFile;
const waived = "warn until 2026-12-31 by @ops";
const invalid = (line: number, why: string) =>
  `block; waiver-invalid: Waiver for admission/request-does-not-fit (line ${line}) does not apply: ${why}`;

const ROWS: readonly (readonly [name: string, row: Row, expected: string])[] = [
  ["no waiver", { file: "version: 1\n" }, "block"],
  ["an empty file", { file: "" }, "block"],
  ["a waiver", { file: W() }, waived],
  ["of another rule", { file: W({ rule: "budget/params" }) }, "block"],
  // days
  ["on its last day", { file: W(), on: { today: "2026-12-31" } }, waived],
  [
    "the day after",
    { file: W(), on: { today: "2027-01-01" } },
    "block; waiver-expired: Waiver for admission/request-does-not-fit expired on 2026-12-31",
  ],
  ["on its first day", { file: W(), on: { today: "2026-11-01" } }, waived],
  [
    "the day before",
    { file: W(), on: { today: "2026-10-31" } },
    invalid(3, "its `created` is 2026-11-01, which is still to come"),
  ],
  [
    "created and expiring today",
    { file: W({ created: "2026-11-30", expires: "2026-11-30" }) },
    "warn until 2026-11-30 by @ops",
  ],
  ["30 days from created", { file: W({ expires: null }) }, "warn until 2026-12-01 by @ops"],
  [
    "30 days, the last of them",
    { file: W({ expires: null }), on: { today: "2026-12-01" } },
    "warn until 2026-12-01 by @ops",
  ],
  [
    "30 days, over",
    { file: W({ expires: null }), on: { today: "2026-12-02" } },
    "block; waiver-expired: Waiver for admission/request-does-not-fit expired on 2026-12-01",
  ],
  [
    "30 days over a leap day",
    { file: W({ created: "2028-02-01", expires: null }), on: { today: "2028-02-15" } },
    "warn until 2028-03-02 by @ops",
  ],
  ["an empty expires is none", { file: W({ expires: "" }) }, "warn until 2026-12-01 by @ops"],
  ["expires alone", { file: W({ created: null }) }, waived],
  [
    "neither day",
    { file: W({ created: null, expires: null }) },
    invalid(3, "it has neither `created` nor `expires`"),
  ],
  ["for ever", { file: W({ expires: "never" }) }, invalid(3, "its `expires` is `never`, which is not a day")],
  [
    "no day of the calendar",
    { file: W({ expires: "2026-02-30" }) },
    invalid(3, "its `expires` is `2026-02-30`, which is not a day"),
  ],
  [
    "a day as people write it",
    { file: W({ created: "1.11.2026" }) },
    invalid(3, "its `created` is `1.11.2026`, which is not a day"),
  ],
  ["a day in quotes", { file: W({ expires: '"2026-12-31"' }) }, waived],
  [
    "over before it began",
    { file: W({ expires: "2026-10-01" }) },
    invalid(3, "it expires on 2026-10-01, before it was created on 2026-11-01"),
  ],
  // fields
  ["ownerless", { file: W({ owner: null }) }, invalid(3, "it has no owner")],
  ["an empty owner", { file: W({ owner: '""' }) }, invalid(3, "it has no owner")],
  ["an owner of blanks", { file: W({ owner: '"  "' }) }, invalid(3, "it has no owner")],
  ["an owner that is a list", { file: W({ owner: "[a, b]" }) }, invalid(3, "its `owner` is not a text")],
  ["without a reason it holds", { file: W({ reason: null }) }, waived],
  [
    "no rule",
    { file: W({ rule: null }) },
    "block; waiver-invalid: Waiver (line 3) does not apply: it names no rule",
  ],
  [
    "a misspelled rule",
    { file: W({ rule: "admission/request-doesnt-fit" }) },
    "block; waiver-invalid: Waiver for admission/request-doesnt-fit (line 3) does not apply: its rule `admission/request-doesnt-fit` is not known",
  ],
  ["a rule of another tool", { file: W({ rule: "lint/naming" }) }, "block"],
  [
    "a misspelled scope does not widen it",
    { file: W({ modle: "other/model" }) },
    invalid(3, "it has the unknown key `modle`"),
  ],
  [
    "an entry that is no mapping",
    { file: "version: 1\nwaivers: [everything]\n" },
    "block; waiver-invalid: Waiver (line 2) does not apply: it is not a mapping",
  ],
  // scopes
  ["the model", { file: W({ model: "Qwen/Qwen3-8B" }) }, waived],
  ["another model", { file: W({ model: "Qwen/Qwen3-4B" }) }, "block"],
  ["a glob of models", { file: W({ model: "Qwen/*" }) }, waived],
  ["a star for any model", { file: W({ model: '"*"' }) }, waived],
  ["one of several", { file: W({ model: "[meta/*, Qwen/*]" }) }, waived],
  ["braces", { file: W({ model: '"Qwen/Qwen3-{4,8}B"' }) }, waived],
  ["an empty scope does not widen it", { file: W({ model: "" }) }, invalid(3, "its `model` is empty")],
  [
    "an empty list of scopes neither",
    { file: W({ model: "[]" }) },
    invalid(3, "its `model` is an empty list"),
  ],
  ["a path", { file: W({ path: "jobs/*.sbatch" }) }, waived],
  ["a path in another folder", { file: W({ path: "tests/**" }) }, "block"],
  ["a folder", { file: W({ path: "jobs/" }) }, waived],
  ["a file name alone", { file: W({ path: "train.sbatch" }) }, waived],
  ["a whole path", { file: W({ path: "/repo/**" }) }, waived],
  ["a path where there is none", { file: W({ path: '"**"' }), finding: { paths: [] } }, "block"],
  ["the cluster", { file: W({ cluster: "gpu-dev" }), on: { cluster: "gpu-dev" } }, waived],
  ["another cluster", { file: W({ cluster: "gpu-dev" }), on: { cluster: "gpu" } }, "block"],
  ["a cluster nobody named", { file: W({ cluster: '"*"' }) }, "block"],
  [
    "all scopes at once",
    { file: W({ model: "Qwen/*", path: "jobs/", cluster: "gpu-*" }), on: { cluster: "gpu-dev" } },
    waived,
  ],
  [
    "all but one",
    { file: W({ model: "Qwen/*", path: "jobs/", cluster: "gpu-*" }), on: { cluster: "cpu" } },
    "block",
  ],
  // several
  [
    "two: the one that holds longest",
    { file: W({}, waiverItem({ owner: "bo", expires: "2027-01-31" })) },
    "warn until 2027-01-31 by bo",
  ],
  ["two alike: the first", { file: W({}, waiverItem({ owner: "bo" })) }, waived],
  [
    "two: one expired",
    { file: W({ expires: "2026-11-29" }, waiverItem({ owner: "bo" })) },
    "warn until 2026-12-31 by bo; waiver-expired: Waiver for admission/request-does-not-fit expired on 2026-11-29",
  ],
  [
    "two: one unreadable",
    { file: W({ owner: null }, waiverItem({ owner: "bo" })) },
    "warn until 2026-12-31 by bo; waiver-invalid: Waiver for admission/request-does-not-fit (line 3) does not apply: it has no owner",
  ],
  [
    "two: one for another model",
    { file: W({ model: "a/*", expires: "2027-06-01" }, waiverItem({ owner: "bo" })) },
    "warn until 2026-12-31 by bo",
  ],
  // warnings
  [
    "a warning needs none",
    {
      file: W({ rule: "admission/borderline-fit" }),
      finding: { rule: "admission/borderline-fit", severity: "warn" },
    },
    "warn",
  ],
  [
    "a warning made to refuse may be waived",
    {
      file: W({ rule: "admission/over-requested" }, "rules: {admission/over-requested: block}\n"),
      finding: { rule: "admission/over-requested", severity: "warn" },
    },
    waived,
  ],
  // the site's cap
  [
    "the cap is not waived",
    { file: W({ rule: "admission/cost-cap" }), finding: { rule: "admission/cost-cap" } },
    "block; waiver-invalid: Waiver for admission/cost-cap (line 3) does not apply: the site's cost cap is not a repository's to waive",
  ],
  [
    "the cap is not turned down",
    { file: "version: 1\nrules: {admission/cost-cap: off}\n", finding: { rule: "admission/cost-cap" } },
    "block",
  ],
  [
    "nor its warning for spot",
    {
      file: "version: 1\nrules: {admission/cost-cap: off}\n",
      finding: { rule: "admission/cost-cap", severity: "warn" },
    },
    "warn",
  ],
  [
    "a waiver of an expired waiver",
    { file: W({ rule: "policy/waiver-expired" }) },
    "block; waiver-invalid: Waiver for policy/waiver-expired (line 3) does not apply: findings of policy/waiver-expired cannot be waived",
  ],
  // severities
  ["a refusal set to warn", { file: "version: 1\nrules: {admission/request-does-not-fit: warn}\n" }, "warn"],
  ["a refusal set to off", { file: "version: 1\nrules: {admission/request-does-not-fit: off}\n" }, "off"],
  ["set to block and waived", { file: W({}, "rules: {admission/request-does-not-fit: block}\n") }, waived],
  [
    "a warning set to block",
    {
      file: "version: 1\nrules: {admission/borderline-fit: block}\n",
      finding: { rule: "admission/borderline-fit", severity: "warn" },
    },
    "block",
  ],
  [
    "a warning set to off",
    {
      file: "version: 1\nrules: {admission/borderline-fit: off}\n",
      finding: { rule: "admission/borderline-fit", severity: "warn" },
    },
    "off",
  ],
  ["in capitals", { file: "version: 1\nrules: {admission/request-does-not-fit: WARN}\n" }, "warn"],
  // what a site allows
  ["tighten-only: no waiver", { file: W(), on: { repoPolicy: "tighten-only" } }, "block (withheld: @ops)"],
  [
    "tighten-only: no lower severity",
    {
      file: "version: 1\nrules: {admission/request-does-not-fit: off}\n",
      on: { repoPolicy: "tighten-only" },
    },
    "block",
  ],
  [
    "tighten-only: a higher one",
    {
      file: "version: 1\nrules: {admission/over-requested: block}\n",
      on: { repoPolicy: "tighten-only" },
      finding: { rule: "admission/over-requested", severity: "warn" },
    },
    "block",
  ],
  [
    "tighten-only: an expired one is told",
    { file: W({ expires: "2026-11-02" }), on: { repoPolicy: "tighten-only" } },
    "block; waiver-expired: Waiver for admission/request-does-not-fit expired on 2026-11-02",
  ],
  ["ignore: no waiver", { file: W(), on: { repoPolicy: "ignore" } }, "block"],
  [
    "ignore: nothing is said of the file",
    { file: W({ owner: null }), on: { repoPolicy: "ignore" } },
    "block",
  ],
  [
    "ignore: no higher severity",
    {
      file: "version: 1\nrules: {admission/over-requested: block}\n",
      on: { repoPolicy: "ignore" },
      finding: { rule: "admission/over-requested", severity: "warn" },
    },
    "warn",
  ],
  // the file's other parts
  [
    "other tools' keys",
    { file: W({}, "policy: {max_params: lots, must_fit: [1, {a: b}]}\nmodels:\n  - path: x\n") },
    waived,
  ],
  [
    "an anchor and a merge key",
    {
      file: `version: 1\nwaivers:\n  - &base\n    rule: admission/request-does-not-fit\n    owner: bo\n    created: 2026-11-01\n    model: a/*\n  - <<: *base\n    model: Qwen/*\n`,
    },
    "warn until 2026-12-01 by bo",
  ],
];

describe("waivers, severities and what a site allows", () => {
  for (const [name, row, expected] of ROWS) test(name, () => expect(outcome(row)).toBe(expected));
});

describe("findings about waivers", () => {
  const rows: readonly (readonly [name: string, rules: string, expected: unknown])[] = [
    ["are warnings", "", { effective: "warn", gates: false }],
    [
      "are what the file sets",
      "rules: {policy/waiver-expired: block}\n",
      { effective: "block", gates: true },
    ],
    ["are silent when off", "rules: {policy/waiver-expired: off}\n", { effective: "off", gates: false }],
  ];
  for (const [name, rules, expected] of rows) {
    test(name, () => {
      const policy = policyOf(W({ expires: "2026-11-02" }, rules));
      const [found] = applyPolicy(policy, { findings: [], runs: [] }, on(), identity);
      expect(found).toMatchObject({
        checker: "policy",
        rule: "policy/waiver-expired",
        ref: null,
        ...(expected as object),
      });
    });
  }
});

describe("the day that counts", () => {
  const day = (waiver: Record<string, string | null>, local: string) =>
    dayFor(policyOf(W(waiver)).waivers, "2026-11-30", () => local);
  const rows: readonly (readonly [
    name: string,
    waiver: Record<string, string | null>,
    local: string,
    expected: string,
  ])[] = [
    ["far from every date: in UTC", {}, "2026-12-01", "2026-11-30"],
    ["it expires today", { expires: "2026-11-30" }, "2026-12-01", "2026-12-01"],
    ["it expired yesterday", { expires: "2026-11-29" }, "2026-11-29", "2026-11-29"],
    ["it begins tomorrow", { created: "2026-12-01" }, "2026-12-01", "2026-12-01"],
    ["it began two days ago", { created: "2026-11-28" }, "2026-11-29", "2026-11-30"],
  ];
  for (const [name, waiver, local, expected] of rows)
    test(name, () => expect(day(waiver, local)).toBe(expected));
  test("is as good as the host's own", () => {
    const near = fc.integer({ min: -4, max: 4 }).map((days) => addDays("2026-11-30", days));
    fc.assert(
      fc.property(
        near,
        near,
        fc.constantFrom("2026-11-29", "2026-11-30", "2026-12-01"),
        (created, expires, local) => {
          const { waivers } = policyOf(W({ created, expires }));
          for (const one of waivers) {
            const counted = dayFor(waivers, "2026-11-30", () => local);
            expect(stateOf(one, counted)).toBe(stateOf(one, local));
          }
        },
      ),
    );
  });
});
