import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readColumns, recordFacts } from "../../src/gate/rightsize-columns.ts";
import { type CsvRecord, csvRecords, MAX_RECORD } from "../../src/gate/rightsize-csv.ts";

/** `line: a|b` for a record, `line! problem` for one that has no fields. */
function read(...pieces: string[]): string[] {
  return [...csvRecords(pieces)].map((record: CsvRecord) =>
    "problem" in record ? `${record.line}! ${record.problem}` : `${record.line}: ${record.fields.join("|")}`,
  );
}

const LONG = "x".repeat(MAX_RECORD + 10);
const OPEN = "a quote is opened and not closed";
const TOO_LONG = `it is longer than ${MAX_RECORD} characters`;

describe("records", () => {
  const rows: [string, string[], string[]][] = [
    ["nothing", [""], []],
    ["one line without an end", ["a,b"], ["1: a|b"]],
    ["LF, CRLF and CR", ["a\nb\r\nc\rd"], ["1: a", "2: b", "3: c", "4: d"]],
    ["a CR and its LF in two pieces", ["a\r", "\nb"], ["1: a", "2: b"]],
    ["empty lines", ["\n\na\n\r\n\nb\n"], ["3: a", "6: b"]],
    ["empty fields", [",a,,\n"], ["1: |a||"]],
    ["a quoted comma", ['"a,b",c\n'], ["1: a,b|c"]],
    ["a quoted line end", ['"a\nb",c\nd'], ["1: a\nb|c", "3: d"]],
    ["a quoted CRLF", ['"a\r\nb"\r\nd'], ["1: a\r\nb", "3: d"]],
    ["doubled quotes", ['"say ""so""",""\n'], ['1: say "so"|']],
    ["an empty quoted field alone", ['""\n'], ["1: "]],
    ["a quote inside a plain field", ['5" disk,b\n'], ['1: 5" disk|b']],
    ["a blank before a quote", [' "a",b\n'], ['1:  "a"|b']],
    ["a doubled quote in two pieces", ['"a"', '"b"\nc'], ['1: a"b', "2: c"]],
    ["a quoted field that ends the text", ['a,"b"'], ["1: a|b"]],
    ["text after a closing quote", ['"a"b,c\nd\n'], ["1! text follows a closing quote", "2: d"]],
    ["the same without its line's end", ['"a"b,c', ",d\ne\n"], ["1! text follows a closing quote", "2: e"]],
    ["a quote that is never closed", ['a\n"b,c\nd\ne\n'], ["1: a", `2! ${OPEN}`, "3: d", "4: e"]],
    ["the same in the last line", ['a\n"b'], ["1: a", `2! ${OPEN}`]],
    ["a quote that is closed too far away", [`"a\nb\n${`${"c".repeat(99)}\n`.repeat(700)}"`], []],
    ["a line that is too long", [`a\n${LONG}\nb\n`], ["1: a", `2! ${TOO_LONG}`, "3: b"]],
    [
      "a line that is too long, in pieces",
      [`a\n${LONG}`, LONG, `${LONG}\nb\n`],
      ["1: a", `2! ${TOO_LONG}`, "3: b"],
    ],
    ["a quoted field that is too long", [`"${LONG}"\nb\n`], [`1! ${OPEN}`, "2: b"]],
    ["no line end at all", [LONG, LONG, LONG], [`1! ${TOO_LONG}`]],
  ];
  test.each(rows)("%s", (name, pieces, expected) => {
    if (name !== "a quote that is closed too far away") return expect(read(...pieces)).toEqual(expected);
    const found = read(...pieces);
    expect(found.slice(0, 3)).toEqual([`1! ${OPEN}`, "2: b", `3: ${"c".repeat(99)}`]);
    expect(found).toHaveLength(703);
  });

  const field = fc.oneof(
    fc.stringMatching(/^[ab,"\n\r ]{0,6}$/),
    fc.string({ maxLength: 8 }).filter((text) => !text.includes("\ufeff")),
  );
  const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;

  test("what was written is read, however the text is cut", () => {
    const table = fc.array(fc.array(field, { minLength: 1, maxLength: 4 }), { maxLength: 5 });
    fc.assert(
      fc.property(table, fc.constantFrom("\n", "\r\n"), fc.array(fc.nat(40)), (records, end, cuts) => {
        const text = records.map((fields) => fields.map(quoted).join(",") + end).join("");
        const found = [...csvRecords(cutAt(text, cuts))];
        expect(found.map((record) => ("fields" in record ? record.fields : null))).toEqual(records);
      }),
    );
  });
  test("a broken record that is cut at its CR ends there", () => {
    const text = '\n""a\r"';
    expect(read(...cutAt(text, [5]))).toEqual(read(text));
  });
  test("any text is read alike, however it is cut", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[ab,"\n\r]{0,40}$/), fc.array(fc.nat(12)), (text, cuts) => {
        expect(read(...cutAt(text, cuts))).toEqual(read(text));
      }),
      { numRuns: 500 },
    );
  });
});

function cutAt(text: string, lengths: readonly number[]): string[] {
  const pieces: string[] = [];
  let rest = text;
  for (const length of lengths) {
    pieces.push(rest.slice(0, length));
    rest = rest.slice(length);
  }
  return [...pieces, rest];
}

describe("the header", () => {
  test("names columns in any order, case and spelling; others are left alone", () => {
    const columns = readColumns(
      ["User", "SEQ-LEN", " Model ", "", "job_id", "gpu", "checkpointing"],
      "jobs.csv",
    );
    expect(columns).toMatchObject({ count: 7, jobId: 4, gpu: 5, nodes: -1, notes: [] });
    expect(recordFacts(["me", "512", "gpt2", "", "a", "T4", " "], columns)).toEqual([
      { name: "model", value: "gpt2", from: { kind: "site", name: "Model" } },
      { name: "seq-len", value: "512", from: { kind: "site", name: "SEQ-LEN" } },
    ]);
  });
  test("a column that may have been meant is told", () => {
    expect(readColumns(["model", "seqlen", "batchsize", "jobid", "state"], "jobs.csv").notes).toEqual([
      "The column seqlen is not read; is seq_len meant?",
      "The column batchsize is not read; is batch meant?",
      "The column jobid is not read; is job_id meant?",
    ]);
  });
  const refused: [string, string[], string, string][] = [
    [
      "no model",
      ["job_id", "gpu"],
      "x has no column named model",
      "The first line names the columns: job_id,model,gpu,hours,batch,seq_len,lora_rank,attention.",
    ],
    [
      "nearly",
      ["job_id", "models"],
      "x has no column named model",
      "Is the column models meant? Name it model.",
    ],
    [
      "semicolons",
      ["job_id;model;gpu"],
      "x has no column named model",
      "Its columns are parted by `;`; save it with commas.",
    ],
    [
      "tabs",
      ["job_id\tmodel"],
      "x has no column named model",
      "Its columns are parted by tabs; save it with commas.",
    ],
    [
      "two bytes a letter",
      ["\0m\0o"],
      "x has no column named model",
      "Save it as UTF-8 text with commas between the fields.",
    ],
    [
      "one column twice",
      ["model", "seq_len", "seq-len"],
      "x has two columns named seq_len",
      "Leave one of them out.",
    ],
  ];
  test.each(refused)("%s", (_, header, message, hint) => {
    expect(() => readColumns(header, "x")).toThrow(
      expect.objectContaining({ code: "input-invalid", message, hint }),
    );
  });
});
