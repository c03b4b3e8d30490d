import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readBlock } from "../../src/skypilot/block.ts";
import { leanRequestText } from "../../src/skypilot/lean.ts";
import { readRequestTask, readTask, requestDocument } from "../../src/skypilot/task.ts";
import type { YamlValue } from "../../src/skypilot/value.ts";
import { readYaml } from "../../src/skypilot/yaml.ts";
import { normalForms } from "./documents.ts";

/** SkyPilot's own texts of tasks. */
const texts = Object.values(normalForms).flatMap((form) =>
  "error" in form ? [] : form.tasks.map(({ text }) => text),
);
/** With scripts as long as real ones, in every style that PyYAML's writer has. */
const STYLES = [
  "'echo ''a'' && b: [ # c\n\n  - x\n\n  run: y\n\n  '",
  `"echo \\"a\\" \\\\\\n - x\\nsetup: '\\\n  \\ more\\t\\n"`,
  "echo one word after another",
].map((script) => script.replace("echo", `echo ${"long ".repeat(250)}`));
const long = texts.flatMap((text) => STYLES.map((style) => withScript(text, style)));

function withScript(text: string, script: string): string {
  const bare = text.replace(/^(?:setup|run):[^\n]*\n(?:(?: [^\n]*)?\n)*/gm, "");
  return `${bare.trimEnd()}\n\nsetup: ${script}\n\nrun: ${script}\n`;
}

/** A value without the nodes of its text. */
function bare(value: YamlValue): unknown {
  const { at, alias } = value;
  if (value.kind === "list") return { kind: "list", at, alias, items: value.items.map(bare) };
  if (value.kind !== "map") return { ...value, node: null };
  const entries = value.entries.map(({ key, value: of }) => ({ key: bare(key), value: bare(of) }));
  return { kind: "map", set: value.set, at, alias, entries };
}

/** The task as the whole reader has it, from the whole text. */
const whole = (text: string) => readTask(text, requestDocument(text), 0, new Map(), false);

describe("a request's task without its scripts", () => {
  test("is the same task, and much shorter", () => {
    let shorter = 0;
    for (const text of [...texts, ...long]) {
      const read = readRequestTask(text);
      if (!read.ok) throw new Error(`${read.error.message}\n${text}`);
      expect(read.value).toEqual(whole(text));
      if (leanRequestText(text).length < text.length / 3) shorter++;
    }
    expect(shorter).toBeGreaterThan(texts.length);
  });

  const filler = "x".repeat(1000);
  const KEPT: readonly (readonly [name: string, text: string])[] = [
    ["a short one", "run: 'a'\n"],
    ["a comment at the first column", `name: a\n\n# run: 'x\n\nrun: '${filler}'\n`],
    ["no empty line between fields", `name: a\nrun: '${filler}'\n`],
    ["a second document", `name: a\n\n---\n\nrun: '${filler}'\n`],
    ["a control character", `name: a\n\nrun: '${filler}\u0001'\n`],
    ["something behind the quotes", `name: a\n\nrun: '${filler}' b\n`],
    ["quotes that do not end", `name: a\n\nrun: '${filler}''\n`],
    ["double quotes that do not end", `name: a\n\nrun: "${filler}\\"\n`],
    ["an item at the first column", `name: a\n\nrun: |\n  ${filler}\n- a\n`],
    ["an anchor", `name: a\n\nrun: &a '${filler}'\n`],
    ["flow style", `{name: a, run: '${filler}'}\n`],
  ];
  test.each(KEPT)("%s stays whole", (_, text) => expect(leanRequestText(text)).toBe(text));

  test("line ends stay where they were", () => {
    const text = `run: '${filler}\n\n  b'\n\nenvs:\n  A: '1'\n`;
    expect(leanRequestText(text)).toBe("run: ''\n\n\n\nenvs:\n  A: '1'\n");
  });

  const envs = (count: number, value: string) =>
    `name: a\n\nenvs:\n${Array.from({ length: count }, (_, at) => `  NAME_${at}: ${value}\n`).join("")}`;
  const LIMITS: readonly (readonly [name: string, text: string, message: RegExp | null])[] = [
    ["scripts of 3 MB", `name: a\n\nrun: '${"x".repeat(3_000_000)}'\n`, null],
    ["9,000 variables", envs(9_000, "value of some length"), null],
    ["20,000", envs(20_000, "value of some length"), /^The task has \d{6} characters beside its scripts;/],
    ["2,000 beyond ASCII", envs(2_000, "é"), null],
    ["12,000 beyond ASCII", envs(12_000, "é"), /; at most 131072 are read\.$/],
    ["300 candidates", `resources:\n  any_of:\n${"  - accelerators: T4:1\n".repeat(300)}`, null],
    [
      "600 candidates",
      `resources:\n  any_of:\n${"  - accelerators: T4:1\n".repeat(600)}`,
      /^The task has 600 candidates; at most 500 are judged\.$/,
    ],
  ];
  test.each(LIMITS)("how much is read: %s", (_, text, message) => {
    const read = readRequestTask(text);
    if (message === null) expect(read.ok).toBe(true);
    else expect(read.ok ? null : read.error.message).toMatch(message);
  });
});

describe("the reader of the writer's form", () => {
  test("reads most of SkyPilot's texts, as the whole reader does", () => {
    let known = 0;
    for (const text of [...texts, ...long].map(leanRequestText)) {
      const block = readBlock(text);
      if (block === null) continue;
      known++;
      expect(bare(block)).toEqual(bare(readYaml(text, false)[0]!));
    }
    // Half of the documents are odd on purpose: quotes, line ends and letters that need the whole reader.
    expect(known).toBeGreaterThan(0.6 * (texts.length + long.length));
  });

  const UNSURE: readonly (readonly [name: string, text: string])[] = [
    ["nothing", ""],
    ["a repeated key", "a: 1\na: 2\n"],
    ["a comment", "a: 1 # b\n"],
    ["a value of several lines", "a: b\n  c\n"],
    ["a value in several quoted lines", "a: 'b\n  c'\n"],
    ["an escape", 'a: "b\\n"\n'],
    ["a tag", "a: !!str 1\n"],
    ["a merge key", "a: &id001\n  b: 1\nc:\n  <<: *id001\n"],
    ["an alias of nothing", "a: *id001\n"],
    ["names within names", "a: &id001\n  b: 1\nc: &id002\n  d: *id001\ne: *id002\n"],
    ["a key that is a number", "a:\n  1: b\n"],
    ["two documents", "a: 1\n---\nb: 2\n"],
    ["a tab", "a:\tb\n"],
    ["letters beyond ASCII", "a: é\n"],
    ["a block", "a: |\n  b\n"],
    ["flow style", "a: {b: 1}\n"],
    ["an indent that fits nothing", "a:\n    b: 1\n  c: 2\n"],
    ["deep nesting", Array.from({ length: 40 }, (_, depth) => `${" ".repeat(depth)}a:\n`).join("")],
  ];
  test.each(UNSURE)("leaves %s to the whole reader", (_, text) => expect(readBlock(text)).toBeNull());

  const line = fc
    .tuple(
      fc.constantFrom(0, 0, 2, 2, 4, 4, 6),
      fc.constantFrom("", "", "- ", "- - "),
      fc.constantFrom("a", "b", "c-d", "null", "~", "010", "/data", "yes", "e.f", ""),
      fc.constantFrom(
        ...[
          ":",
          ": 1",
          ": 'x''y'",
          ': "z"',
          ": ''",
          ": *id001",
          ": &id001",
          ": {}",
          ": []",
          ": a:b",
          ": -1",
          ": - 1",
        ],
        ...[
          ": 1e3",
          ": yes",
          ": 2026-11-30",
          ": a#b",
          ": a #b",
          ": 'a",
          ": b c",
          ": @x",
          "",
          " x",
          ": a: b",
          ": 1_0:30",
          ": =",
          ": .5",
          ": ~",
          ": 12:30:45",
        ],
      ),
    )
    .map(([indent, dash, key, value]) => `${" ".repeat(indent)}${dash}${key}${value}`);
  test("whatever it reads, the whole reader reads the same", () => {
    let known = 0;
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 7 }), fc.boolean(), (lines, end) => {
        const text = lines.join("\n") + (end ? "\n" : "");
        const block = readBlock(text);
        if (block === null) return;
        known++;
        expect(bare(block)).toEqual(bare(readYaml(text, false)[0]!));
      }),
      { numRuns: 20_000 },
    );
    expect(known).toBeGreaterThan(50);
  });
});
