import { describe, expect, test } from "bun:test";
import { readRequestTask, readTasks, type Task, type TaskOverrides } from "../../src/skypilot/task.ts";
import { documents, normalForms, type ResourceConfig, type TaskConfig } from "./documents.ts";

/** A candidate in the words of SkyPilot's normal form; memory sizes are not expanded here. */
function plain(task: Task): unknown {
  const candidates = task.candidates.map((one) => ({
    accelerators: one.accelerator === null ? null : { [one.accelerator.name]: one.accelerator.count },
    labels: { ...one.labels },
    infra: one.infra,
    instance: one.instanceType,
    spot: one.useSpot,
  }));
  if (task.choice === "any-of") candidates.sort(byText);
  return {
    name: task.name,
    nodes: task.numNodes,
    envs: { ...task.envs },
    service: task.service,
    choice: task.choice,
    candidates,
  };
}

function byText(a: unknown, b: unknown): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
}

function expected(config: TaskConfig, read: "file" | "request"): unknown {
  const { any_of, ordered } = config.resources;
  const candidates = (any_of ?? ordered ?? [config.resources]).map((one: ResourceConfig) => ({
    accelerators: one.accelerators === undefined ? null : numbers(one.accelerators),
    labels: { ...one.labels },
    // SkyPilot adds the cloud of a TPU to what a file says.
    infra: read === "file" && isTpu(one) ? null : (one.infra ?? null),
    instance: one.instance_type ?? null,
    spot: one.use_spot ?? false,
  }));
  if (any_of !== undefined) candidates.sort(byText);
  return {
    name: config.name ?? null,
    nodes: config.num_nodes,
    envs: config.envs ?? {},
    service: config.service !== undefined,
    choice: any_of !== undefined ? "any-of" : ordered !== undefined ? "ordered" : "one",
    candidates,
  };
}

/** The fixture writes infinity as text. */
function numbers(accelerators: Readonly<Record<string, unknown>>): Record<string, number> {
  const count = (value: unknown) => (value === "inf" ? Number.POSITIVE_INFINITY : Number(value));
  return Object.fromEntries(Object.entries(accelerators).map(([name, value]) => [name, count(value)]));
}

function isTpu(resources: ResourceConfig): boolean {
  return Object.keys(resources.accelerators ?? {}).some((name) => name.startsWith("tpu"));
}

function hasMemoryForm(task: Task): boolean {
  return task.candidates.some(({ accelerator }) => accelerator?.memory != null);
}

describe("documents as SkyPilot 0.13.0 read them", () => {
  for (const { name, text, overrides } of documents) {
    const form = normalForms[name]!;
    test(name, () => {
      const read = readTasks(text, overrides);
      if ("error" in form) {
        expect(read.ok).toBe(false);
        if (!read.ok) expect(read.error.message).toMatch(/^[A-Z-].*[.?]$/);
        return;
      }
      if (!read.ok) throw new Error(read.error.message);
      expect(read.value.kind).toBe(form.kind as never);
      expect(read.value.tasks.length).toBe(form.tasks.length);
      for (const [index, task] of read.value.tasks.entries()) {
        const { config } = form.tasks[index]!;
        if (hasMemoryForm(task)) continue;
        expect(plain(task)).toEqual(expected(config, "file") as never);
      }
    });
  }
});

describe("the text SkyPilot sends to a policy", () => {
  for (const [name, form] of Object.entries(normalForms)) {
    if ("error" in form) continue;
    test(name, () => {
      for (const { config, text } of form.tasks) {
        const read = readRequestTask(text);
        if (!read.ok) throw new Error(read.error.message);
        expect(plain(read.value)).toEqual(expected(config, "request") as never);
      }
    });
  }
});

describe("what a refused document is told", () => {
  const rows: readonly (readonly [string, TaskOverrides, string, number | null])[] = [
    [
      "resource: {accelerators: A100}",
      {},
      "Line 1, column 1: SkyPilot knows no task field `resource`. Did you mean `resources`?",
      1,
    ],
    [
      "run: a\nresources:\n  gpu: A100",
      {},
      "Line 3, column 3: SkyPilot knows no resources field `gpu`. Did you mean `gpus`?",
      3,
    ],
    ["num_nodes: '2'", {}, "Line 1, column 12: `num_nodes` must be a whole number, and it is 2 (str).", 1],
    [
      "envs: {A: }",
      {},
      'Line 1, column 8: the variable A has no value; set it in the file or with --env, or to "" for an empty one.',
      1,
    ],
    [
      "name: a\nname: b",
      {},
      "The YAML cannot be read at line 2, column 1: the key name stands twice, first at line 1.",
      2,
    ],
    [
      "a: b: c",
      {},
      "The YAML cannot be read at line 1, column 4: nested mappings are not allowed in compact mappings.",
      1,
    ],
    [
      "a: *b",
      {},
      "The YAML cannot be read at line 1, column 4: this alias names no anchor set before it (quote a text that begins with *).",
      1,
    ],
    ["", {}, "The file holds no task.", null],
    [
      "run: a",
      { env: ["MISSING"] },
      "--env MISSING is not set in this environment; give it as --env MISSING=VALUE.",
      null,
    ],
    [
      "run: a",
      { gpus: "A10:x" },
      "--gpus takes a name or a name and a count (H100:8), and it is 'A10:x'.",
      null,
    ],
    [
      "resources: {accelerators: H100:8:2}",
      {},
      "Line 1, column 27: The accelerator 'H100:8:2' has three parts, and the middle one is not a memory size.",
      1,
    ],
  ];
  for (const [text, overrides, message, line] of rows) {
    test(message, () => {
      const read = readTasks(text, overrides);
      expect(read.ok).toBe(false);
      if (!read.ok) expect([read.error.message, read.error.line]).toEqual([message, line]);
    });
  }

  test("a flag at fault is a usage error", () => {
    const codes = [{ env: ["MISSING"] }, { gpus: "A:x" }, { numNodes: 0 }, { numNodes: 1.5 }].map(
      (overrides) => {
        const read = readTasks("run: a", overrides);
        return read.ok ? null : read.error.code;
      },
    );
    expect(codes).toEqual(["usage", "usage", "usage", "usage"]);
  });
});

describe("where things were read", () => {
  test("variables remember their line or their flag", () => {
    const read = readTasks("# c\nenvs:\n  A: 1\n  B: 2\n  C: 3\n", { env: ["B=9"], envFiles: ["C=7"] });
    expect(read.ok && read.value.tasks[0]?.envOrigins).toEqual({
      A: { kind: "env", name: "A", line: 3 },
      B: { kind: "flag", name: "--env B" },
      C: { kind: "flag", name: "--env-file" },
    });
  });

  test("the line of the request", () => {
    const line = (text: string) => {
      const read = readTasks(text);
      return read.ok ? read.value.tasks[0]?.line : null;
    };
    expect(line("run: a\nresources:\n  infra: k8s\n  accelerators: A100\n")).toBe(4);
    expect(line("run: a\nresources:\n  cpus: 4\n")).toBe(2);
    expect(line("run: a\n")).toBe(null);
  });

  test("of several env files the last one counts, as `sky launch` has it", () => {
    const read = readTasks("run: a", { envFiles: ["A=1\nB=1", "A=2"] });
    expect(read.ok && read.value.tasks[0]?.envs).toEqual({ A: "2" });
  });

  test("flags that SkyPilot ignores for several tasks are told", () => {
    const read = readTasks("run: a\n---\nrun: b\n", { gpus: "A10", numNodes: 2 });
    expect(read.ok && read.value.notes).toEqual([
      "SkyPilot ignores --gpus for a file of several tasks, so it was not used.",
      "SkyPilot ignores --num-nodes for a file of several tasks, so it was not used.",
    ]);
  });

  test("a name such as __proto__ is a variable like any other", () => {
    const read = readTasks("envs: {__proto__: x, constructor: y}");
    expect(read.ok && Object.entries(read.value.tasks[0]!.envs)).toEqual([
      ["__proto__", "x"],
      ["constructor", "y"],
    ]);
  });
});

test("a request may hold fields of a newer SkyPilot", () => {
  const read = readRequestTask(
    "resources: {accelerators: {A100: 8}, new_field: 1}\nnum_nodes: 2\nnewer: true\n",
  );
  expect(read.ok && [read.value.numNodes, read.value.candidates[0]?.accelerator?.name]).toEqual([2, "A100"]);
});
