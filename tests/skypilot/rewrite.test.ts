import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  NOT_REWRITABLE,
  offerRequestTask,
  rewriteRequestTask,
  rewriteTask,
  type TaskChange,
} from "../../src/skypilot/rewrite.ts";
import { readRequestTask, readTasks, type Task } from "../../src/skypilot/task.ts";
import { entryOf, pyText } from "../../src/skypilot/value.ts";
import { readYaml } from "../../src/skypilot/yaml.ts";
import { documents, normalForms } from "./documents.ts";

/** `0=L40S:1 -2`: candidate 0 becomes L40S:1 and candidate 2 is dropped. */
function change(text: string): TaskChange {
  const drop: number[] = [];
  const replace: { candidate: number; accelerator: string; count: number }[] = [];
  for (const word of text.split(" ")) {
    const match = /^(\d+)=(.+):(\d+)$/.exec(word);
    if (match === null) drop.push(Number(word.slice(1)));
    else replace.push({ candidate: Number(match[1]), accelerator: match[2]!, count: Number(match[3]) });
  }
  return { drop, replace };
}

const rows: readonly (readonly [before: string, change: string, after: string | null])[] = [
  [
    "# top\nresources:\n  accelerators: A100:8 # big\n  infra: k8s\nrun: x\n",
    "0=L40S:1",
    "# top\nresources:\n  accelerators: L40S:1 # big\n  infra: k8s\nrun: x\n",
  ],
  ['resources: {accelerators: "A100:8"}', "0=L40S:1", 'resources: {accelerators: "L40S:1"}'],
  ["resources: {gpus: 'A100:8'}", "0=L40S:1", "resources: {gpus: 'L40S:1'}"],
  ["resources: {accelerators: A100:8}", "0=100:1", 'resources: {accelerators: "100:1"}'],
  [
    "resources:\n  accelerators:\n    A100: 8 # c\n",
    "0=L40S:1",
    "resources:\n  accelerators:\n    L40S: 1 # c\n",
  ],
  ["resources: {accelerators: {A100: }}", "0=L4:1", "resources: {accelerators: {L4: }}"],
  ["resources: {accelerators: {A100: }}", "0=L4:2", "resources: {accelerators: {L4:2: }}"],
  ["resources: {accelerators: {A100:1, 'T4:4'}}", "-0", "resources: {accelerators: {'T4:4'}}"],
  ["resources: {accelerators: {A100:1, 'T4:4'}}", "1=L4:2", "resources: {accelerators: {A100:1, 'L4:2'}}"],
  ["resources: {accelerators: [A100:1, T4, V100:4 ]}", "-0", "resources: {accelerators: [T4, V100:4 ]}"],
  ["resources: {accelerators: [A100:1, T4, V100:4]}", "-0 -1", "resources: {accelerators: [V100:4]}"],
  ["resources: {accelerators: [A100:1, T4, V100:4,]}", "-1 -2", "resources: {accelerators: [A100:1,]}"],
  ["resources: {accelerators: [A100:1, T4, A100:1]}", "-0", "resources: {accelerators: [T4]}"],
  [
    "resources:\n  accelerators:\n  - A100:1 # one\n  # two\n  - T4\n  - V100:4\nrun: x",
    "0=L4:2 -2",
    "resources:\n  accelerators:\n  - L4:2 # one\n  # two\n  - T4\nrun: x",
  ],
  ["resources:\n  accelerators:\n    A100: 8\n    T4: 1\n", "-0", "resources:\n  accelerators:\n    T4: 1\n"],
  // What is already there is not asked for twice.
  ["resources: {accelerators: {A100: 8, L40S: 1}}", "0=L40S:1", "resources: {accelerators: {L40S: 1}}"],
  [
    "resources: {accelerators: {A100: 8, L40S: 2}}",
    "0=L40S:1",
    "resources: {accelerators: {L40S:1: null, L40S: 2}}",
  ],
  ["resources: {accelerators: [A100:8, H100:8]}", "0=L4:1 1=L4:1", "resources: {accelerators: [L4:1]}"],
  [
    "resources:\n  any_of:\n    - accelerators: A100:8\n      infra: aws  # l\n    # the other\n    - {accelerators: T4:4, infra: gcp}\n  use_spot: true\n",
    "-0",
    "resources:\n  any_of:\n    # the other\n    - {accelerators: T4:4, infra: gcp}\n  use_spot: true\n",
  ],
  [
    "resources:\n  any_of:\n    - accelerators: A100:8\n      infra: aws  # l\n    - {accelerators: T4:4, infra: gcp}\n  use_spot: true\n",
    "0=L4:1 -1",
    "resources:\n  any_of:\n    - accelerators: L4:1\n      infra: aws  # l\n  use_spot: true\n",
  ],
  [
    "resources:\n  accelerators: A100:8\n  any_of:\n  - infra: aws\n  - {infra: gcp}\n",
    "0=L4:1 1=L4:1",
    "resources:\n  accelerators: L4:1\n  any_of:\n  - infra: aws\n  - {infra: gcp}\n",
  ],
  [
    "resources:\n  accelerators: A100:8\n  any_of:\n  - infra: aws\n  - {infra: gcp}\n",
    "1=L4:1",
    "resources:\n  accelerators: A100:8\n  any_of:\n  - infra: aws\n  - {accelerators: L4:1, infra: gcp}\n",
  ],
  [
    "resources:\n  accelerators: A100:8\n  any_of:\n  - infra: aws\n  - {infra: gcp}\n",
    "0=L4:1 -1",
    "resources:\n  accelerators: L4:1\n  any_of:\n  - infra: aws\n",
  ],
  [
    "resources:\n  accelerators: {A100: 1, T4: 1}\n  any_of: [{infra: aws}, {infra: gcp}]\n",
    "-1 -3",
    "resources:\n  accelerators: {A100: 1}\n  any_of: [{infra: aws}, {infra: gcp}]\n",
  ],
  ["resources:\n  accelerators: {A100: 1, T4: 1}\n  any_of: [{infra: aws}, {infra: gcp}]\n", "-1", null],
  // An anchor that goes away moves to where it is used.
  [
    "resources:\n  any_of:\n  - &a {accelerators: A100:8, labels: {k: v}}\n  - {<<: *a, infra: aws}\n",
    "-0",
    "resources:\n  any_of:\n  - {<<: &a {accelerators: A100:8, labels: {k: v}}, infra: aws}\n",
  ],
  [
    "resources:\n  any_of:\n  - &a {accelerators: A100:8}\n  - {<<: *a, infra: aws}\n",
    "1=L4:1",
    "resources:\n  any_of:\n  - &a {accelerators: A100:8}\n  - {accelerators: L4:1, <<: *a, infra: aws}\n",
  ],
  [
    "run: x\nresources:\n  infra: aws\n",
    "0=L4:1",
    "run: x\nresources:\n  accelerators: L4:1\n  infra: aws\n",
  ],
  ["run: x\n", "0=L4:1", "resources:\n  accelerators: L4:1\nrun: x\n"],
  ["{run: x}", "0=L4:1", "{resources: {accelerators: L4:1}, run: x}"],
  [
    "resources:\r\n  accelerators: A100:8\r\n  infra: aws\r\n",
    "0=L4:1",
    "resources:\r\n  accelerators: L4:1\r\n  infra: aws\r\n",
  ],
  ["resources: {accelerators: A100:8}", "-0", null],
  ["resources: {accelerators: A100:8}", "0=A100:8", "resources: {accelerators: A100:8}"],
  ["resources: {accelerators: A100:8}", "7=L4:1", "resources: {accelerators: A100:8}"],
];

describe("a rewrite changes its ranges of the text only", () => {
  for (const [before, words, after] of rows) {
    test(`${JSON.stringify(before)} ${words}`, () => {
      const result = rewriteTask(before, 0, change(words));
      if (after === null) expect(result.ok).toBe(false);
      else expect(result.ok ? result.value : result.error.message).toBe(after);
    });
  }

  test("one task of several", () => {
    const text = "name: p\n---\nresources: {accelerators: A100}\n--- # two\nresources: {accelerators: T4}\n";
    const result = rewriteTask(text, 1, change("0=L4:2"));
    expect(result.ok && result.value).toBe(text.replace("T4", "L4:2"));
    expect(rewriteTask(text, 2, change("0=L4:2")).ok).toBe(false);
  });

  test("SkyPilot's own text keeps null keys, secrets and its copy of the file", () => {
    const text =
      "resources:\n  any_of:\n  - accelerators:\n      A100: 8\n    image_id:\n      null: docker:x\n    labels: &id001\n      a: '0'\n" +
      "  - accelerators:\n      T4: 1\n    image_id:\n      null: docker:x\n    labels: *id001\n\nsecrets:\n  T: 'a: b'\n\n" +
      '_user_specified_yaml: "resources:\\n  accelerators: A100:8\\n\\\n  run: x\\n"\n';
    const result = rewriteRequestTask(text, change("-0 1=L4:1"));
    expect(result.ok && result.value).toBe(
      'resources:\n  any_of:\n  - accelerators:\n      L4: 1\n    image_id:\n      null: docker:x\n    labels: &id001 {a: "0"}\n' +
        text.slice(text.indexOf("\nsecrets:")),
    );
  });
});

describe("other cards beside those asked for", () => {
  const offers: readonly (readonly [before: string, after: string])[] = [
    [
      "resources:\n  accelerators:\n    H200: 1\n  disk_size: 256\n",
      "resources:\n  accelerators:\n    L4:2: null\n    H200: 1\n  disk_size: 256\n",
    ],
    ["resources: {accelerators: {H200: 1}}\n", "resources: {accelerators: {L4:2: null, H200: 1}}\n"],
    // Several candidates say themselves what else would do.
    [
      "resources:\n  any_of:\n  - accelerators:\n      H200: 1\n  - accelerators:\n      L4: 1\n",
      "resources:\n  any_of:\n  - accelerators:\n      H200: 1\n  - accelerators:\n      L4: 1\n",
    ],
    ["run: x\n", "run: x\n"],
  ];
  for (const [before, after] of offers)
    test(JSON.stringify(before), () => {
      const result = offerRequestTask(before, "L4", 2);
      expect(result.ok && result.value).toBe(after);
    });
});

/** A task's candidates in short, and all else that its text says. */
function pictured(task: Task): readonly unknown[] {
  return task.candidates.map(({ accelerator, labels, infra, useSpot }) => [
    accelerator === null ? null : `${accelerator.name}:${accelerator.count}`,
    { ...labels },
    infra,
    useSpot,
  ]);
}

function besides(text: string): string[] {
  return readYaml(text, false).map((value) => {
    if (value.kind !== "map") return pyText(value);
    const resources = entryOf(value, "resources")?.value;
    const strip = (one: typeof value, names: readonly string[]) =>
      pyText({ ...one, entries: one.entries.filter(({ key }) => !names.includes(pyText(key))) });
    const rest =
      resources?.kind === "map" ? strip(resources, ["accelerators", "gpus", "any_of", "ordered"]) : "{}";
    return `${strip(value, ["resources"])} ${rest}`;
  });
}

const cards = ["L4", "L40S", "H100", "A100-80GB", "Gaudi HL-205"];
const wish = fc.oneof(
  { weight: 2, arbitrary: fc.constant(null) },
  { weight: 2, arbitrary: fc.constant("drop" as const) },
  {
    weight: 3,
    arbitrary: fc.record({ accelerator: fc.constantFrom(...cards), count: fc.integer({ min: 1, max: 8 }) }),
  },
);

type Wish = null | "drop" | { accelerator: string; count: number };

function changeFrom(wishes: readonly Wish[]): TaskChange {
  return {
    drop: wishes.flatMap((one, index) => (one === "drop" ? [index] : [])),
    replace: wishes.flatMap((one, candidate) =>
      one === null || one === "drop" ? [] : [{ candidate, ...one }],
    ),
  };
}

/** Reading the rewritten text gives the wanted candidates (equal ones of one place may have become one) and all else as before. */
function check(before: Task, after: Task, wishes: readonly Wish[]): void {
  const wanted = pictured(before).flatMap((one, index) => {
    const wished = wishes[index] ?? null;
    if (wished === "drop") return [];
    return [
      wished === null ? one : [`${wished.accelerator}:${wished.count}`, ...(one as unknown[]).slice(1)],
    ];
  });
  const once = (list: readonly unknown[]) => [...new Set(list.map((one) => JSON.stringify(one)))].sort();
  expect(once(pictured(after))).toEqual(once(wanted));
  expect(after.candidates.length).toBeLessThanOrEqual(wanted.length);
  // A line put in or taken out moves the lines after it; `useSpot` says it of any candidate that is left.
  const rest = (task: Task) => {
    const { candidates: _, choice, line, places, place, envOrigins, useSpot, ...same } = task;
    return same;
  };
  expect(rest(after)).toEqual(rest(before));
}

describe("whatever is rewritten reads as wanted, and nothing else changes", () => {
  const requests = Object.values(normalForms).flatMap((form) =>
    "error" in form ? [] : form.tasks.map(({ text }) => text),
  );
  const files = documents.filter(({ name }) => !("error" in normalForms[name]!)).map(({ text }) => text);

  for (const [name, texts, file] of [
    ["files", files, true],
    ["requests", requests, false],
  ] as const) {
    test(name, () => {
      let done = 0;
      fc.assert(
        fc.property(
          fc.constantFrom(...texts),
          fc.array(wish, { minLength: 6, maxLength: 6 }),
          fc.nat(),
          (text, wishes, pick) => {
            const tasksOf = (source: string): readonly Task[] => {
              const read = file ? readTasks(source) : readRequestTask(source);
              if (!read.ok) return [];
              return "tasks" in read.value ? read.value.tasks : [read.value];
            };
            const tasks = tasksOf(text);
            if (tasks.length === 0) return;
            const index = pick % tasks.length;
            const changed = changeFrom(wishes);
            const result = file ? rewriteTask(text, index, changed) : rewriteRequestTask(text, changed);
            if (!result.ok) {
              expect(result.error.message).toBe(NOT_REWRITABLE);
              return;
            }
            done += 1;
            const after = tasksOf(result.value);
            expect(after.length).toBe(tasks.length);
            for (const [at, task] of tasks.entries()) check(task, after[at]!, at === index ? wishes : []);
            expect(besides(result.value)).toEqual(besides(text));
            const again = file
              ? rewriteTask(result.value, index, { drop: [], replace: [] })
              : rewriteRequestTask(result.value, { drop: [], replace: [] });
            expect(again.ok && again.value).toBe(result.value);
          },
        ),
        { numRuns: 500 },
      );
      // Most changes can be made; a test in which none is would prove nothing.
      expect(done).toBeGreaterThan(150);
    });
  }
});
