import { describe, expect, test } from "bun:test";
import type { ArgsDef } from "citty";
import fc from "fast-check";
import { parseStrict } from "../../src/cli/strict.ts";
import { GateError } from "../../src/lib/errors.ts";

const ARGS: ArgsDef = {
  model: { type: "positional", required: false },
  batch: { type: "string", valueHint: "N" },
  env: { type: "string" },
  json: { type: "boolean", alias: "j" },
  mode: { type: "enum", options: ["warn", "reject"] },
  exclusive: { type: "string" },
  "output-flag": { type: "string" },
};
const parse = (line: string) =>
  parseStrict(line === "" ? [] : line.split(" "), ARGS, {
    repeatable: ["env"],
    bare: ["exclusive"],
    verbatim: ["output-flag"],
  });

describe("what is read", () => {
  const rows: readonly (readonly [line: string, expected: Partial<ReturnType<typeof parse>>])[] = [
    ["", { values: {}, switches: {}, words: [] }],
    ["--batch 8", { values: { batch: "8" } }],
    ["--batch=8", { values: { batch: "8" } }],
    ["--batch=a=b", { values: { batch: "a=b" } }],
    ["--batch -1", { values: { batch: "-1" } }],
    ["--batch 1 --batch 2", { values: { batch: "2" } }],
    ["--env A=1 --env B", { values: { env: "B" }, lists: { env: ["A=1", "B"] } }],
    ["--json", { switches: { json: true } }],
    ["-j", { switches: { json: true } }],
    ["--no-json", { switches: { json: false } }],
    ["--mode reject", { values: { mode: "reject" } }],
    ["gpt2 --json", { words: ["gpt2"], switches: { json: true } }],
    ["-- --json", { words: ["--json"], switches: {} }],
    ["-", { words: ["-"] }],
    ["--exclusive --json", { values: { exclusive: "" }, switches: { json: true } }],
    ["--output-flag --out --json", { values: { "output-flag": "--out" }, switches: { json: true } }],
    ["--exclusive=user", { values: { exclusive: "user" } }],
  ];
  for (const [line, expected] of rows) test(line, () => expect(parse(line)).toMatchObject(expected));
});

describe("what is refused, with the nearest flag", () => {
  const rows: readonly (readonly [line: string, message: string, hint: string | null])[] = [
    ["--batsh 8", "unknown flag --batsh", "Did you mean --batch?"],
    ["--zzzzzzzz", "unknown flag --zzzzzzzz", "`--help` lists the flags."],
    ["-x", "unknown flag -x", "`--help` lists the flags."],
    ["--batch", "--batch needs a value", "Write `--batch N`."],
    ["--batch --json", "--batch needs a value", "Write `--batch N`."],
    ["--batch=", "--batch is empty", "Write `--batch N`."],
    ["--json=yes", "--json takes no value", "Write `--json` alone."],
    ["--mode strict", "--mode is `strict`, not one of warn, reject", null],
    ["a b", "`b` is not expected here", "One such word is taken; quote it if it has blanks."],
    ["--model x", "unknown flag --model", "Did you mean --mode?"],
    ["--no-batch", "unknown flag --no-batch", "Did you mean --batch?"],
  ];
  for (const [line, message, hint] of rows) {
    test(line, () => {
      try {
        parse(line);
      } catch (error) {
        const { code, message: told, hint: told2 } = error as GateError;
        expect({ code, message: told, hint: told2 }).toEqual({ code: "usage", message, hint });
        return;
      }
      throw new Error("it was read");
    });
  }
});

test("any words are read or refused as usage", () => {
  const word = fc.oneof(
    fc.string(),
    fc.constantFrom(
      "--",
      "-",
      "--batch",
      "--batch=1",
      "--json",
      "--no-json",
      "-j",
      "--mode",
      "__proto__",
      "--__proto__",
      "--constructor",
      "--toString=1",
    ),
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 8 }), (words) => {
      try {
        parseStrict(words, ARGS);
      } catch (error) {
        expect(error).toBeInstanceOf(GateError);
        expect((error as GateError).code).toBe("usage");
      }
    }),
  );
});
