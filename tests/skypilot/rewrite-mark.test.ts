import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  markInFile,
  markText,
  readMark,
  withEnvMark,
  withFileMark,
} from "../../src/skypilot/rewrite-mark.ts";

const MARK = { batch: 4, requests: [{ from: "A100:8", to: "L40S:1", globalBatch: 32 }], among: null };
const LINE = "at batch 4: A100:8 to L40S:1 with 32 in all";

test("a mark reads back as it was written", () => {
  const name = fc.stringMatching(/^[A-Za-z0-9.+-]{1,20}:[0-9]{1,3}$/);
  const card = fc.stringMatching(/^[A-Za-z0-9.+-]{1,20}$/);
  const count = fc.integer({ min: 1, max: 1e6 });
  fc.assert(
    fc.property(
      count,
      fc.array(fc.tuple(name, name, count), { minLength: 1, maxLength: 4 }),
      fc.option(fc.array(card, { minLength: 1, maxLength: 3 })),
      (batch, list, among) => {
        const mark = {
          batch,
          requests: list.map(([from, to, globalBatch]) => ({ from, to, globalBatch })),
          among,
        };
        expect(readMark(markText(mark))).toEqual(mark);
        expect(markInFile(withFileMark("name: x\n", 2, mark), 2)).toEqual(mark);
      },
    ),
  );
});

const ROWS: readonly (readonly [name: string, text: string])[] = [
  ["no batch", "at batch 4"],
  ["a batch of 0", "at batch 0: A100:8 to L40S:1 with 0 in all"],
  ["something else", "true"],
  ["nothing", ""],
];
for (const [name, text] of ROWS) test(`no mark: ${name}`, () => expect(readMark(text)).toBeNull());

test("in a file it stands at the top, once a task, whatever the line ends", () => {
  const once = withFileMark("# mine\r\nname: x\r\n", 0, MARK);
  expect(once).toBe(
    "# neurarch-gate: task 1 rewritten at batch 4: A100:8 to L40S:1 with 32 in all\r\n# mine\r\nname: x\r\n",
  );
  expect(withFileMark(once, 0, MARK)).toBe(once);
  expect(markInFile(withFileMark(once, 1, { ...MARK, batch: 2 }), 0)).toEqual(MARK);
  expect(withFileMark("\uFEFFname: x\n", 0, MARK)).toStartWith("\uFEFF# neurarch-gate: ");
});

test("in SkyPilot's encoding it stands among the envs, once", () => {
  const text = "resources:\n  accelerators:\n    L40S: 1\n\nenvs:\n  A: 'envs:'\n\nrun: x\n";
  const marked = withEnvMark(text, MARK)!;
  expect(marked).toBe(text.replace("envs:\n", `envs:\n  NEURARCH_REWRITTEN: '${LINE}'\n`));
  expect(withEnvMark(marked, MARK)).toBe(marked);
  expect(withEnvMark("run: x\n", MARK)).toBe(`run: x\n\nenvs:\n  NEURARCH_REWRITTEN: '${LINE}'\n`);
  // Another writer's text is left alone.
  expect(withEnvMark("envs: {A: b}\nrun: x\n", MARK)).toBeNull();
});
