import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { GateError } from "../../src/lib/errors.ts";
import { plainScalar, pyFloat, pyScalar } from "../../src/skypilot/scalar.ts";
import { readRequestTask, readTasks } from "../../src/skypilot/task.ts";
import { pyText } from "../../src/skypilot/value.ts";
import { readYaml } from "../../src/skypilot/yaml.ts";
import { documents, scalars } from "./documents.ts";

const TYPES: Readonly<Record<string, string>> = { NoneType: "null", date: "other", datetime: "other" };

describe("plain scalars as PyYAML types them", () => {
  for (const [word, [type, text]] of Object.entries(scalars)) {
    test(word, () => {
      const scalar = plainScalar(word);
      expect([scalar.kind, pyScalar(scalar)]).toEqual([(TYPES[type] ?? type) as typeof scalar.kind, text]);
    });
  }
});

/** Texts and Python's `str()` of each document that PyYAML 6.0.4 makes of them; null where it refuses. */
const texts: readonly (readonly [text: string, values: readonly string[] | null])[] = [
  ["a: &a {kk: 1, x: 1}\nb: {<<: *a, x: 2}\n", ["{'a': {'kk': 1, 'x': 1}, 'b': {'kk': 1, 'x': 2}}"]],
  [
    "a: &a {kk: 1, x: 1}\nb: &b {kk: 2, x: 2}\nc: {<<: [*a, *b], y: 9}\n",
    ["{'a': {'kk': 1, 'x': 1}, 'b': {'kk': 2, 'x': 2}, 'c': {'kk': 2, 'x': 1, 'y': 9}}"],
  ],
  ["a: &a {x: 1, <<: *a}\n", ["{'a': {'x': 1}}"]],
  ["<<: 1\n", null],
  ["a: &a 1\nb: &a 2\n", null],
  ["a: *b\n", null],
  ["a: =\n", null],
  ["a: <<\n", null],
  ["=: 1\n", ["{'=': 1}"]],
  ["a: !foo 1\n", null],
  ["a: !!int x\n", null],
  ["a: !!str 8\nb: !!str\nc: !!int '8'\nd: ! 8\n", ["{'a': '8', 'b': '', 'c': 8, 'd': 8}"]],
  ["a: !!binary aGk=\n", ["{'a': b'hi'}"]],
  ["a: 2024-13-01\n", null],
  ["a: '\u0001'\n", null],
  ["? [a]\n: b\n", null],
  ["y: 1\nn: 2\nno: 3\n~: 4\n1.5: x\n", ["{'y': 1, 'n': 2, False: 3, None: 4, 1.5: 'x'}"]],
  ["1: a\n1.0: b\ntrue: c\n", ["{1: 'c'}"]],
  ["a: {A100:1, 'T4':4}\n", ["{'a': {'A100:1': None, 'T4': 4}}"]],
  ['r: {\na: 1\n}\ns: [\n1,\n2\n]\nt: "u\nv"\n', ["{'r': {'a': 1}, 's': [1, 2], 't': 'u v'}"]],
  ["r: {a: 1\n---\nb: 2\n", null],
  ["a: 1\n--- {b: 2}\n---\n", ["{'a': 1}", "{'b': 2}", "None"]],
  ["\ufeffa: 1\nb: 2\n", ["{'a': 1, 'b': 2}"]],
  ["%YAML 1.2\n---\na: on\n", ["{'a': True}"]],
  ["a: >\n  folded\n  text\n\n  para\nb: |-\n  x\n  y\n", ["{'a': 'folded text\\npara\\n', 'b': 'x\\ny'}"]],
  ["a: |\n  x", ["{'a': 'x'}"]],
  ["a: |+\n  x\n  ", ["{'a': 'x\\n'}"]],
  ["a: >\n  x\n  y", ["{'a': 'x y'}"]],
  ["\ta: 1\n", null],
  ["a: 'it''s'\nb: \"it's\"\nc: 'say \"x\"'\n", ["{'a': \"it's\", 'b': \"it's\", 'c': 'say \"x\"'}"]],
];

describe("texts as PyYAML reads them", () => {
  for (const [text, values] of texts) {
    test(JSON.stringify(text), () => {
      if (values === null) expect(() => readYaml(text, false)).toThrow(GateError);
      else expect(readYaml(text, false).map(pyText)).toEqual([...values]);
    });
  }

  test("a repeated key is refused in a file and the last one counts in a request", () => {
    expect(() => readYaml("a: {b: 1, 'b': 2}", true)).toThrow("line 1, column 11: the key b stands twice");
    expect(readYaml("a: {b: 1, 'b': 2}", false).map(pyText)).toEqual(["{'a': {'b': 2}}"]);
  });
});

describe("limits", () => {
  const doubling = Array.from(
    { length: 40 },
    (_, i) => `a${i}: &a${i} [${i === 0 ? "x, x" : `*a${i - 1}, *a${i - 1}`}]`,
  );
  const rows: readonly (readonly [string, string, RegExp])[] = [
    ["aliases that double", doubling.join("\n"), /aliases stand for more than/],
    ["nested lists", `a: ${"[".repeat(100_000)}`, /nests more than 100 levels/],
    [
      "nested mappings",
      Array.from({ length: 300 }, (_, i) => `${" ".repeat(i)}a:`).join("\n"),
      /nests more than 100/,
    ],
    ["length", `a: ${"x".repeat(5 << 20)}`, /characters/],
    ["documents", "--- 1\n".repeat(2000), /more than 1000 YAML documents/],
    ["digits", `a: ${"9".repeat(5000)}`, /not a whole number/],
  ];
  for (const [name, text, message] of rows) {
    test(name, () => {
      expect(() => readYaml(text, false)).toThrow(message);
    });
  }

  test("many variables are read in time", () => {
    const text = `envs:\n${Array.from({ length: 20_000 }, (_, i) => `  A${i}: ${i}`).join("\n")}\n`;
    expect(readTasks(text).ok).toBe(true);
  });
});

test("floats are written as Python writes them", () => {
  const rows: readonly (readonly [number, string])[] = [
    [1, "1.0"],
    [0.1, "0.1"],
    [1e16, "1e+16"],
    [123456789012345680, "1.2345678901234568e+17"],
    [1e15, "1000000000000000.0"],
    [0.0001, "0.0001"],
    [0.00001234, "1.234e-05"],
    [-0.00012345, "-0.00012345"],
    [1e-300, "1e-300"],
  ];
  for (const [value, text] of rows) expect(pyFloat(value)).toBe(text);
});

describe("nothing but a problem comes out", () => {
  const pieces = fc.constantFrom(
    ..."abc :-[]{}&*!|>'\"#%@`,?\n\t~<=.0189".split(""),
    ...[
      "resources:",
      "\n  ",
      "accelerators: ",
      "any_of:\n  - ",
      "envs: ",
      "<<: *a",
      "&a ",
      "*a ",
      "A100:8",
      "---\n",
      "!!set ",
      "null",
    ],
  );
  const soup = fc.array(pieces, { maxLength: 60 }).map((parts) => parts.join(""));
  const sample = fc.constantFrom(...documents.map(({ text }) => text));
  const mutated = fc.tuple(sample, fc.nat(), fc.nat({ max: 8 }), soup).map(([text, at, length, put]) => {
    const start = text.length === 0 ? 0 : at % text.length;
    return text.slice(0, start) + put.slice(0, 12) + text.slice(start + length);
  });
  for (const [name, arbitrary] of [
    ["soup", soup],
    ["mutated", mutated],
  ] as const) {
    test(name, () => {
      fc.assert(
        fc.property(arbitrary, (text) => {
          for (const read of [readTasks(text), readRequestTask(text)]) {
            if (!read.ok) expect(read.error.message).not.toMatch(/\p{Cc}/u);
          }
        }),
        { numRuns: 1500 },
      );
    });
  }
});
