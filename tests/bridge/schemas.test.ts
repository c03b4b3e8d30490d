import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import fc from "fast-check";
import * as v from "valibot";
import { campaignSchema } from "../../src/bridge/campaign/json-schema.ts";
import { RUN } from "../../src/bridge/campaign/run-schema.ts";
import { CAMPAIGN, CLUSTERS, RESOURCES } from "../../src/bridge/campaign/schemas.ts";
import { listForTable } from "../../src/bridge/campaign/toml.ts";
import { agrees, type Schema } from "../policy/agrees.ts";

const value = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom<unknown>("a", "rocm", "08:00:00", "mainline", "skypilot", "A_B") },
  { weight: 2, arbitrary: fc.constantFrom<unknown>(1, 2, 4, 0, -1, 0.5, 1e7, true, false, null, "", "  ") },
  {
    weight: 1,
    arbitrary: fc.constantFrom<unknown>(
      [],
      ["a"],
      ["a", ""],
      [1],
      {},
      { allow: ["A"] },
      { set: { A: "x" } },
      { set: { "a-b": "x" } },
      { a: [1] },
    ),
  },
);
const TEXTS = ["a", "A_B", "H100", "08:00:00", "2026-11-30T12:00:00.000Z", "0f".repeat(32)];

/** Objects with the schema's own keys, mostly. */
function like(schema: Schema): fc.Arbitrary<Record<string, unknown>> {
  const properties = (schema.properties ?? {}) as Record<string, Schema>;
  const right = (part: Schema): fc.Arbitrary<unknown> => {
    if (part.properties !== undefined) return like(part);
    if (part.enum !== undefined) return fc.constantFrom(...(part.enum as unknown[]));
    if (part.const !== undefined) return fc.constant(part.const);
    if (part.type === "integer") return fc.integer({ min: 1, max: 9 });
    if (part.type === "array") return fc.array(right(part.items as Schema), { minLength: 1, maxLength: 2 });
    if (part.type === "object")
      return fc.dictionary(fc.constantFrom("one", "A"), right(part.additionalProperties as Schema), {
        maxKeys: 2,
      });
    if (part.anyOf !== undefined) return fc.oneof(...(part.anyOf as Schema[]).map(right));
    if (part.type === "boolean") return fc.boolean();
    if (part.type === "number") return fc.constantFrom<unknown>(1, 0.5);
    if (part.type === "null") return fc.constant(null);
    const fitting = TEXTS.filter((text) => agrees(part, text));
    return fitting.length === 0 ? value : fc.constantFrom(...fitting);
  };
  const entries = Object.entries(properties).map(([key, part]) => [
    key,
    fc.oneof({ weight: 60, arbitrary: right(part) }, { weight: 1, arbitrary: value }),
  ]);
  const known = fc.record(Object.fromEntries(entries) as Record<string, fc.Arbitrary<unknown>>, {
    requiredKeys: (schema.required ?? []) as string[],
  });
  const extra = fc.oneof(
    { weight: 19, arbitrary: fc.constant({}) },
    { weight: 1, arbitrary: fc.constant({ zz: 1 }) },
  );
  return fc.tuple(known, extra).map(([one, more]) => ({ ...one, ...more }));
}

describe.each([
  ["campaign", CAMPAIGN],
  ["clusters", CLUSTERS],
  ["resources", RESOURCES],
  ["run", RUN],
] as const)("the schema of %s", (name, reader) => {
  const schema = campaignSchema(name);
  test("the copy in schemas/ is the one that is printed", () => {
    const copy = readFileSync(`${import.meta.dir}/../../schemas/${name}.json`, "utf8");
    expect(copy).toBe(`${JSON.stringify(schema, null, 2)}\n`);
  });
  test("accepts what the reader accepts, and nothing else", () => {
    let accepted = 0;
    let all = 0;
    fc.assert(
      fc.property(like(schema), (file) => {
        const taken = listForTable(reader, file, []) === null && v.safeParse(reader, file).success;
        all++;
        if (taken) accepted++;
        expect([agrees(schema, file), file]).toEqual([taken, file]);
      }),
      { numRuns: 1500 },
    );
    expect(accepted).toBeGreaterThan(100);
    expect(accepted).toBeLessThan(all);
  });
});
