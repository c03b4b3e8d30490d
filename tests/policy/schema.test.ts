import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { readPolicyText } from "../../src/gate/policy-file.ts";
import { lintPolicy } from "../../src/policy/lint.ts";
import { BUDGET_KEYS, FOREIGN_KEYS, OWN_KEYS } from "../../src/policy/read.ts";
import { RULE_IDS } from "../../src/policy/rules.ts";
import { POLICY_SCHEMA } from "../../src/policy/schema.ts";
import { WAIVER_KEYS } from "../../src/policy/waiver.ts";
import { agrees, type Schema } from "./agrees.ts";
import { identity, TODAY } from "./support.ts";

const accepts = (file: unknown) => agrees(POLICY_SCHEMA as unknown as Schema, file);
const errors = (file: unknown) =>
  lintPolicy(readPolicyText(JSON.stringify(file)), { today: TODAY, identity, nearestCard: () => null })
    .filter(({ severity }) => severity === "error")
    .map(({ message }) => message);

describe("the schema of the policy file", () => {
  test("names the keys that the reader reads, and no others", () => {
    const { properties } = POLICY_SCHEMA;
    expect(Object.keys(properties).sort()).toEqual(["$schema", ...OWN_KEYS, ...FOREIGN_KEYS].sort());
    expect(Object.keys(properties.budget.properties).sort()).toEqual([...BUDGET_KEYS].sort());
    expect(Object.keys(properties.waivers.items.properties).sort()).toEqual([...WAIVER_KEYS].sort());
    expect(Object.keys(properties.rules.properties).sort()).toEqual([...RULE_IDS].sort());
  });
  test("the copy in schemas/ is the one that is printed", () => {
    const copy = readFileSync(`${import.meta.dir}/../../schemas/policy.json`, "utf8");
    expect(copy).toBe(`${JSON.stringify(POLICY_SCHEMA, null, 2)}\n`);
  });

  /** Nearly always a value that is right: a file is as good as its worst part. */
  const mostly = (right: readonly unknown[], wrong: readonly unknown[]) =>
    fc.oneof(
      { weight: 12, arbitrary: fc.constantFrom(...right) },
      { weight: 1, arbitrary: fc.constantFrom(...wrong) },
    );
  const day = mostly(["2026-11-01", "2026-11-30"], ["1.11.2026", "never", 20261130, ["2026-11-01"]]);
  const scope = mostly(["a/*", ["a/*", "b"]], [[], "", { a: "b" }]);
  const waiver = fc.record(
    {
      rule: mostly(
        ["admission/over-requested", "budget/params", "lint/naming"],
        [...RULE_IDS, "budget/zzzzzzzz", ["x"]],
      ),
      owner: mostly(["bo", "@ops"], ["", "  ", ["bo"], { a: "b" }]),
      reason: mostly(["because", ""], [["because"]]),
      created: day,
      expires: day,
      model: scope,
      path: scope,
      cluster: scope,
    },
    { requiredKeys: ["rule"] },
  );
  const unknown = fc.dictionary(fc.constant("zzzzzzzzzzzz"), fc.constant(1), { maxKeys: 1 });
  const often = fc.tuple(
    waiver,
    fc.oneof({ weight: 9, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: unknown }),
  );
  const amount = mostly([0, 100, 7.5, "1_000"], [-1, "$5", "lots", ["7B"]]);
  const budget = fc.record(
    {
      cards_allowed: mostly(["H100", ["H100", "L4"]], [[], [""], [["H100"]]]),
      max_cost_per_run_usd: fc.oneof(amount, fc.constant("7B")),
      max_params: fc.oneof(amount, fc.constantFrom("7B", "500K", "1.5b")),
    },
    { requiredKeys: [] },
  );
  const rules = fc.dictionary(
    mostly([...RULE_IDS, "lint/naming"], ["policy/zzzzzzzzzzzzzzzz"]).map(String),
    mostly(["block", "warn", "off"], ["loud", ["off"]]),
    { maxKeys: 4 },
  );
  const file = fc.record(
    {
      version: mostly([1], [2, "one", [1]]),
      waivers: fc.oneof(
        {
          weight: 12,
          arbitrary: fc.array(
            often.map((parts) => Object.assign({}, ...parts)),
            { maxLength: 2 },
          ),
        },
        { weight: 1, arbitrary: fc.constantFrom<unknown>("a", { a: 1 }) },
      ),
      budget: fc.oneof(
        { weight: 12, arbitrary: budget },
        { weight: 1, arbitrary: fc.constantFrom<unknown>("a", ["a"]) },
      ),
      rules: fc.oneof(
        { weight: 12, arbitrary: rules },
        { weight: 1, arbitrary: fc.constantFrom<unknown>("a", ["a"]) },
      ),
      policy: fc.constantFrom<unknown>("x", { max_params: "lots" }),
    },
    { requiredKeys: ["version"] },
  );
  /** A waiver whose days are the wrong way round, which no schema can say. */
  const isOutOfTime = (message: string) => /before it was created|still to come|expired on/.test(message);
  /** The severity that a file gives invalid waivers may hide them from the linter. */
  const hides = (one: unknown) => JSON.stringify(one).includes('"policy/waiver-invalid"');
  test("accepts what the reader finds no error in, and nothing else", () => {
    let accepted = 0;
    fc.assert(
      fc.property(file, (one) => {
        if (hides(one)) return;
        const found = errors(one).filter((message) => !isOutOfTime(message));
        if (accepts(one)) accepted++;
        expect([accepts(one), found]).toEqual([found.length === 0, found]);
      }),
      { numRuns: 3000 },
    );
    expect(accepted).toBeGreaterThan(300);
  });
});
