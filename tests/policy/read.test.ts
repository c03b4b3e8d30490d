import { describe, expect, test } from "bun:test";
import { readPolicyText, whyNotApplied } from "../../src/gate/policy-file.ts";
import { lintPolicy } from "../../src/policy/lint.ts";
import { buildCardTable } from "../../src/request/cards.ts";
import { identity, TODAY, waiverFile, waiverItem } from "./support.ts";

/** Files of which nothing is applied, and why. */
const UNUSABLE: readonly (readonly [name: string, text: string, why: string])[] = [
  ["no mapping", "- a\n", "line 1, column 1: the file is not a mapping"],
  ["a text", "hello\n", "line 1, column 1: the file is not a mapping"],
  [
    "a later version",
    "version: 2\n",
    "line 1, column 10: `version` is `2`, and this program reads version 1",
  ],
  [
    "waivers that are no list",
    "version: 1\nwaivers: {rule: a}\n",
    "line 2, column 10: `waivers` is not a list",
  ],
  ["a budget that is no mapping", "version: 1\nbudget: 100\n", "line 2, column 9: `budget` is not a mapping"],
  ["rules that are no mapping", "version: 1\nrules: [a]\n", "line 2, column 8: `rules` is not a mapping"],
  [
    "a severity that is none",
    "rules:\n  budget/params: wran\n",
    "line 2, column 18: `budget/params` is `wran`, not one of block, warn, off",
  ],
  [
    "an amount that is none",
    "budget:\n  max_params: 7X\n",
    "line 2, column 15: `max_params` is `7X`, not an amount",
  ],
  [
    "a negative amount",
    "budget:\n  max_params: -7\n",
    "line 2, column 15: `max_params` is `-7`, not an amount",
  ],
  [
    "dollars with a sign",
    "budget: {max_cost_per_run_usd: $100}\n",
    "line 1, column 32: `max_cost_per_run_usd` is `$100`, not an amount",
  ],
  [
    "an amount that is a list",
    "budget:\n  max_params: [7B]\n",
    "line 2, column 15: `max_params` is not one value, not an amount",
  ],
  [
    "no card allowed",
    "budget: {cards_allowed: []}\n",
    "line 1, column 25: `cards_allowed` is an empty list, which allows no card",
  ],
  [
    "a card that is a mapping",
    "budget:\n  cards_allowed:\n    - {a: b}\n",
    "line 3, column 7: `cards_allowed` holds something that is not a card's name",
  ],
  [
    "a key twice",
    "version: 1\nwaivers: []\nwaivers: []\n",
    "line 3, column 1: the YAML cannot be read: the key waivers stands twice, first at line 2",
  ],
  [
    "an owner without quotes",
    "version: 1\nwaivers:\n  - owner: @ops\n",
    "line 3, column 12: the YAML cannot be read: plain value cannot start with reserved character @",
  ],
  [
    "an open bracket",
    "version: [1\n",
    "line 2, column 1: the YAML cannot be read: flow sequence in block collection must be sufficiently indented and end with a ]",
  ],
  [
    "a tab for an indent",
    "budget:\n\tmax_params: 1\n",
    "line 2, column 1: the YAML cannot be read: tabs are not allowed as indentation",
  ],
  [
    "an unknown anchor",
    "waivers: *a\n",
    "line 1, column 10: the YAML cannot be read: the anchor &a is not set before",
  ],
  [
    "an anchor within itself",
    "waivers: &a [*a]\n",
    "line 1, column 14: the YAML cannot be read: *a stands inside itself",
  ],
  [
    "two documents",
    "version: 1\n---\nversion: 1\n",
    "line 3, column 1: the YAML cannot be read: a second document begins",
  ],
  [
    "a key that is a list",
    "? [a]\n: b\n",
    "line 1, column 3: the YAML cannot be read: a key is not a single value",
  ],
  [
    "a deep nesting",
    `policy: ${"[".repeat(60)}${"]".repeat(60)}\n`,
    "line 1, column 59: the YAML cannot be read: it nests more than 50 levels",
  ],
];

/** Files that would keep a submit waiting. */
const COSTLY: readonly (readonly [name: string, text: string, why: string])[] = [
  [
    "patterns without end",
    `version: 1\n${"waivers: &w\n"}${waiverItem({ model: `"${"*a".repeat(140)}"` }).repeat(80)}`,
    "line 1, column 1: its waivers hold too many patterns to match in time",
  ],
  [
    "merge keys that multiply",
    `a: &a {${Array.from({ length: 500 }, (_, index) => `k${index}: 1`).join(", ")}}\nb:\n  <<: [${Array(30).fill("*a").join(", ")}]\n`,
    "line 3, column 3: the YAML cannot be read: merge keys bring in more than 10000 entries",
  ],
];

describe("files that cannot be applied", () => {
  for (const [name, text, why] of [...UNUSABLE, ...COSTLY]) {
    test(name, () => {
      const reading = readPolicyText(text);
      expect(reading.policy).toBeNull();
      expect(whyNotApplied(reading)).toBe(why);
    });
  }
});

describe("files that can", () => {
  for (const [name, text] of [
    ["nothing at all", ""],
    ["comments alone", "# nothing yet\n"],
    ["empty sections", "version: 1\nwaivers:\nbudget:\nrules:\n"],
    ["a byte order mark", "\ufeffversion: 1\n"],
    ["Windows line ends", "version: 1\r\nwaivers: []\r\n"],
    ["JSON", '{"version": 1, "budget": {"max_params": 7000000000}}'],
    ["a document between marks", "---\nversion: 1\n...\n"],
    ["a schema for an editor", "$schema: ./policy.schema.json\nversion: 1\n"],
    ["the version as a text", 'version: "1"\n'],
    ["a severity of another tool", "version: 1\nrules: {lint/naming: 3}\n"],
  ] as const)
    test(name, () => expect(readPolicyText(text).policy).not.toBeNull());
});

/** `LINE:COLUMN SEVERITY MESSAGE`, a line each. */
function lint(text: string): string[] {
  const table = buildCardTable();
  return lintPolicy(readPolicyText(text), {
    today: TODAY,
    identity,
    nearestCard: (name) => table.nearest(name),
  }).map(({ place, severity, message, fix }) => {
    const at = place === null ? "" : `${place.line}:${place.column} `;
    return `${at}${severity} ${message}${fix === null ? "" : ` | ${fix}`}`;
  });
}

const about = "the waiver for admission/request-does-not-fit";

const LINT: readonly (readonly [name: string, text: string, expected: readonly string[]])[] = [
  ["a plain file", waiverFile(), []],
  ["no version", "waivers: []\n", ["warning the file does not say its version | Add version: 1."]],
  [
    "a misspelled section",
    "version: 1\nwaiver: []\n",
    ["2:1 error the unknown key `waiver` is not read | Did you mean `waivers`?"],
  ],
  [
    "a section of nobody",
    "version: 1\nnotes: x\n",
    ["2:1 warning the unknown key `notes` is not read | Known keys: version, waivers, budget, rules."],
  ],
  ["other tools' sections", "version: 1\npolicy: {must_fit: x}\nmodels: []\n", []],
  [
    "a misspelled budget line",
    "version: 1\nbudget: {max_param: 7B}\n",
    ["2:10 error the unknown key `max_param` of `budget` is not read | Did you mean `max_params`?"],
  ],
  [
    "a misspelled rule",
    "version: 1\nrules: {admission/over-request: off}\n",
    ["2:9 error the rule `admission/over-request` is not known | Did you mean `admission/over-requested`?"],
  ],
  [
    "a rule by its last name",
    "version: 1\nrules: {over-requested: off}\n",
    ["2:9 error the rule `over-requested` is not known | Did you mean `admission/over-requested`?"],
  ],
  ["a rule of another tool", "version: 1\nrules: {lint/naming: loud}\n", []],
  [
    "the site's rule",
    "version: 1\nrules: {admission/cost-cap: off}\n",
    ["2:9 warning the severity of admission/cost-cap has no effect: the cap is the site's | Take it out."],
  ],
  [
    "ownerless",
    waiverFile({ owner: null }),
    [`3:5 error ${about} does not apply: it has no owner | Write owner: and who answers for it.`],
  ],
  [
    "a misspelled key",
    waiverFile({ expire: "2026-12-01" }),
    [`3:5 error ${about} does not apply: it has the unknown key \`expire\` | Did you mean \`expires\`?`],
  ],
  [
    "an invalid one that only warns",
    waiverFile({ owner: null }, "rules: {policy/waiver-invalid: warn}\n"),
    [`3:5 warning ${about} does not apply: it has no owner | Write owner: and who answers for it.`],
  ],
  [
    "expired",
    waiverFile({ expires: "2026-11-29" }),
    [`3:5 warning ${about} expired on 2026-11-29 | Renew it, or take it out.`],
  ],
  [
    "expired, as an error",
    waiverFile({ expires: "2026-11-29" }, "rules: {policy/waiver-expired: block}\n"),
    [`3:5 error ${about} expired on 2026-11-29 | Renew it, or take it out.`],
  ],
  [
    "expired, not to be told",
    waiverFile({ expires: "2026-11-29" }, "rules: {policy/waiver-expired: off}\n"),
    [],
  ],
  [
    "still to come",
    waiverFile({ created: "2026-12-01" }),
    [
      `3:5 error ${about} does not apply: its \`created\` is 2026-12-01, which is still to come | Write the day on which it was agreed.`,
    ],
  ],
  [
    "no reason",
    waiverFile({ reason: null }),
    [`3:5 warning ${about} gives no reason | Write reason: and why.`],
  ],
  [
    "more than a year",
    waiverFile({ expires: "2027-12-01" }),
    [`3:5 warning ${about} holds until 2027-12-01, more than a year | Let it end sooner, and renew it.`],
  ],
  [
    "nothing to waive",
    waiverFile({ rule: "admission/borderline-fit" }),
    [
      "3:5 warning the waiver for admission/borderline-fit has nothing to waive: that rule does not refuse | Take it out.",
    ],
  ],
  [
    "two of one scope",
    waiverFile({}, waiverItem({ owner: "bo" })),
    [`8:5 warning ${about} has the scope of the one at line 3 | Keep one of the two: the later day counts.`],
  ],
  [
    "a pattern that matches nothing",
    waiverFile({ path: "../jobs/*" }),
    [
      `3:5 warning ${about} never applies: its \`path\` \`../jobs/*\` matches nothing, as paths are seen from the policy file's folder and never go up | Correct the pattern.`,
    ],
  ],
  [
    "a card nobody knows",
    "version: 1\nbudget: {cards_allowed: [H1000]}\n",
    ["2:26 warning `cards_allowed` names `H1000`, which is no card on file | Did you mean `H100`?"],
  ],
];

describe("the linter", () => {
  for (const [name, text, expected] of LINT) test(name, () => expect(lint(text)).toEqual([...expected]));
});
