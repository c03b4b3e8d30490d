import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rewriteRequestTask } from "../../src/skypilot/rewrite.ts";
import { readRequestTask } from "../../src/skypilot/task.ts";
import { BINARY } from "../acceptance/run.ts";
import { normalForms } from "./documents.ts";

const python = process.env.NEURARCH_TEST_SKY_PYTHON;
const folder = mkdtempSync(join(tmpdir(), "neurarch-shim-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Outcome {
  readonly lines: readonly (readonly [string, string])[];
  readonly task?: {
    readonly resources: { readonly accelerators: Record<string, number> };
    readonly envs?: object;
  };
  readonly same?: boolean;
  readonly config?: object;
  readonly refused?: string;
}

/** A stand-in executable: a shell script that reads the request and prints an answer. */
function standIn(name: string, body: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${body}\n`);
  chmodSync(path, 0o755);
  return path;
}

function answering(name: string, answer: object): string {
  return standIn(name, `cat > /dev/null\ncat <<'END'\n${JSON.stringify(answer)}\nEND`);
}

const TASK = "resources: {accelerators: A100:8}\nsecrets: {TOKEN: abc}\nrun: train\n";
const REWRITTEN = "resources: {accelerators: L40S:1}\nsecrets: {TOKEN: abc}\nrun: train\n";
const UNCHANGED = { A100: 8 };

interface Case {
  readonly name: string;
  readonly binary: string;
  readonly attributes?: object;
  readonly requestName?: string;
  readonly check: (outcome: Outcome) => void;
}

function admitted(lines: readonly (readonly [string, string | RegExp])[]): Case["check"] {
  return (outcome) => {
    expect(outcome.refused).toBeUndefined();
    expect(outcome.same).toBe(true);
    expect(outcome.task?.resources.accelerators).toEqual(UNCHANGED);
    expect(outcome.config).toEqual({ jobs: { controller: { resources: { cpus: 2 } } } });
    expect(outcome.lines.length).toBe(lines.length);
    for (const [index, [level, line]] of lines.entries()) {
      expect(outcome.lines[index]![0]).toBe(level);
      expect(outcome.lines[index]![1]).toMatch(line);
    }
  };
}

function refused(message: string | RegExp): Case["check"] {
  return (outcome) => {
    expect(outcome.task).toBeUndefined();
    expect(outcome.refused).toMatch(message);
  };
}

const OPEN = (why: RegExp): Case["check"] =>
  admitted([
    [
      "WARNING",
      new RegExp(`^Neurarch: not judged \\(${why.source}.*\\); allowed unchecked \\(fail open\\)\\.$`),
    ],
  ]);

const warn = answering("warn", { decision: "warn", messages: ["first", "second"], reply: null });
const refuse = answering("refuse", {
  decision: "refuse",
  messages: ["Neurarch: too small.", "why"],
  reply: null,
});
const rewrite = answering("rewrite", {
  decision: "rewrite",
  messages: ["Neurarch: rewrote A100:8 to L40S:1."],
  reply: { task: REWRITTEN, skypilot_config: "jobs: {controller: {resources: {cpus: 2}}}\n" },
});
const along = answering("along", {
  decision: "allow",
  messages: [],
  reply: {
    task: `${TASK}envs: {NEURARCH_SIZING_FACTS: x}\n`,
    skypilot_config: "jobs: {controller: {resources: {cpus: 2}}}\n",
  },
});
const garbage = standIn("garbage", "echo hello");
const slow = standIn("slow", "sleep 20 &\nsleep 20");
const seen = join(folder, "seen");
const recorder = standIn(
  "recorder",
  `{ echo "$@"; env; pwd; cat; } > '${seen}'\necho '{"decision": "allow", "messages": [], "reply": null}'`,
);

const cases: readonly Case[] = [
  {
    name: "allow",
    binary: answering("allow", { decision: "allow", messages: [], reply: null }),
    check: admitted([]),
  },
  { name: "warn", binary: warn, check: admitted([["WARNING", /^first\nsecond$/]]) },
  { name: "warn before a launch", binary: warn, requestName: "validate", check: admitted([]) },
  { name: "warn in the optimizer", binary: warn, requestName: "optimize", check: admitted([]) },
  {
    name: "unjudged",
    binary: answering("unjudged", {
      decision: "unjudged",
      messages: ["Neurarch: GH2 is unknown."],
      reply: null,
    }),
    check: admitted([["WARNING", /^Neurarch: GH2 is unknown\.$/]]),
  },
  { name: "refuse", binary: refuse, check: refused(/^Neurarch: too small\.\nwhy$/) },
  { name: "refuse before a launch", binary: refuse, requestName: "validate", check: refused(/too small/) },
  {
    name: "rewrite",
    binary: rewrite,
    check: (outcome) => {
      expect(outcome.task?.resources.accelerators).toEqual({ L40S: 1 });
      expect(outcome.lines).toEqual([["WARNING", "Neurarch: rewrote A100:8 to L40S:1."]]);
      expect(outcome.same).toBe(false);
    },
  },
  {
    name: "a fit whose size goes along",
    binary: along,
    check: ({ task, lines, config }) => {
      expect(task?.envs).toEqual({ NEURARCH_SIZING_FACTS: "x" });
      expect(task?.resources.accelerators).toEqual(UNCHANGED);
      expect([lines, config]).toEqual([[], { jobs: { controller: { resources: { cpus: 2 } } } }]);
    },
  },
  { name: "garbage", binary: garbage, check: OPEN(/JSONDecodeError/) },
  {
    name: "garbage, closed",
    binary: garbage,
    attributes: { fail_closed: true },
    check: refused(/fails closed/),
  },
  { name: "an empty object", binary: standIn("empty", "echo '{}'"), check: OPEN(/KeyError/) },
  {
    name: "an unknown decision",
    binary: answering("odd", { decision: "shrug", messages: [], reply: null }),
    check: OPEN(/ValueError/),
  },
  {
    name: "a rewrite that does not load",
    binary: answering("bad", {
      decision: "rewrite",
      messages: [],
      reply: { task: "nonsense: 1", skypilot_config: "" },
    }),
    check: OPEN(/InvalidSkyPilotConfigError/),
  },
  { name: "a crash", binary: standIn("crash", "kill -SEGV $$"), check: OPEN(/JSONDecodeError/) },
  { name: "slow", binary: slow, attributes: { timeout_s: 0.3 }, check: OPEN(/TimeoutExpired/) },
  {
    name: "slow, closed",
    binary: slow,
    attributes: { timeout_s: 0.3, fail_closed: true },
    check: refused(/Timeout/),
  },
  {
    name: "one that will not end, and has started others",
    binary: standIn("stubborn", "trap '' TERM INT\n(trap '' TERM; sleep 20) &\nsleep 20"),
    attributes: { timeout_s: 0.3 },
    check: OPEN(/TimeoutExpired/),
  },
  {
    name: "one that has ended, and left another with its output",
    binary: standIn("parent", "(setsid sleep 5) &\nexit 0"),
    attributes: { timeout_s: 0.3 },
    check: OPEN(/TimeoutExpired/),
  },
  {
    name: "one that says more than anyone reads",
    binary: standIn("flood", "cat > /dev/null\nyes"),
    attributes: { timeout_s: 0.3 },
    check: OPEN(/TimeoutExpired/),
  },
  {
    name: "one that does not read what it is given",
    binary: standIn("deaf", `exec <&-\necho '{"decision": "allow", "messages": [], "reply": null}'`),
    check: admitted([]),
  },
  {
    name: "one that is killed after its answer",
    binary: standIn(
      "fallen",
      `cat > /dev/null\necho '{"decision": "refuse", "messages": ["Neurarch: no."], "reply": null}'\nkill -SEGV $$`,
    ),
    check: refused(/^Neurarch: no\.$/),
  },
  {
    name: "nesting without end",
    binary: standIn("deep", "cat > /dev/null\nhead -c 300000 /dev/zero | tr '\\0' '['"),
    check: OPEN(/RecursionError/),
  },
  {
    name: "bytes that are no text",
    binary: standIn("bytes", "printf '\\377\\376'"),
    check: OPEN(/JSONDecodeError/),
  },
  { name: "a path that is none", binary: "/x\0y", check: OPEN(/ValueError/) },
  { name: "missing", binary: join(folder, "nowhere"), check: OPEN(/FileNotFoundError/) },
  {
    name: "missing, closed",
    binary: join(folder, "nowhere"),
    attributes: { fail_closed: true },
    check: refused(/No such/),
  },
  {
    name: "what the executable gets",
    binary: recorder,
    attributes: {
      mutate: true,
      max_cost_usd: 500,
      config: "/etc/x.toml",
      policy_file: "/x.yml",
      repo_policy: "ignore",
      ledger: "/var/log/neurarch",
      client_sizing: false,
    },
    check: (outcome) => {
      admitted([])(outcome);
      const text = readFileSync(seen, "utf8");
      expect(text.split("\n")[0]).toBe(
        `judge --admin-policy --mutate --no-client-sizing --policy-start ${process.cwd()} --max-cost-usd 7 --config /etc/x.toml ` +
          "--policy-file /etc/policy.yml --repo-policy ignore --ledger /var/log/neurarch --cluster gpu-dev",
      );
      expect(text).not.toContain("BUN_");
      expect(text).not.toContain("LATE");
      expect(text).toContain("HF_TOKEN=from-the-start");
      expect(text).toMatch(/^\/$/m);
      expect(JSON.parse(text.split("\n").at(-1)!).request_name).toBe("launch");
    },
  },
];

/** Texts that SkyPilot wrote, with the first candidate rewritten and the last of several dropped. */
const rewritten = Object.values(normalForms).flatMap((form) => {
  if ("error" in form) return [];
  return form.tasks.flatMap(({ text }) => {
    const task = readRequestTask(text);
    if (
      !task.ok ||
      task.value.candidates.some(({ accelerator: one }) => !Number.isInteger(one?.count) || one?.memory)
    )
      return [];
    const last = task.value.candidates.length - 1;
    const result = rewriteRequestTask(text, {
      drop: last > 0 ? [last] : [],
      replace: [{ candidate: 0, accelerator: "L40S", count: 2 }],
    });
    if (!result.ok) throw new Error(result.error.message);
    const kept = task.value.candidates.slice(1, Math.max(last, 1));
    return [
      {
        before: text,
        text: result.value,
        accelerators: ["L40S:2", ...kept.map(({ accelerator: one }) => `${one?.name}:${one?.count}`)],
      },
    ];
  });
});

if (python === undefined) {
  test.skipIf(process.env.CI !== "true")(
    "NEURARCH_TEST_SKY_PYTHON names a Python with skypilot 0.13.0",
    () => {
      expect(python).toBeDefined();
    },
  );
} else {
  describe("the Python policy in SkyPilot itself", () => {
    let outcomes: Outcome[] = [];
    let readBack: object[] = [];
    let threads: string[] = [];
    beforeAll(async () => {
      const plan = {
        shim: join(import.meta.dir, "../../python-shim"),
        late_environment: { NEURARCH_POLICY_FAIL_CLOSED: "1", HF_TOKEN: "LATE", HF_ENDPOINT: "LATE" },
        // As an API server's threads ask, all at once: a refusal, a fit and a warning in turn.
        threads: { binary: BINARY, cards: ["T4:1", "L4:1", "H200:1"], times: 60 },
        texts: rewritten.map(({ before, text }) => [before, text]),
        cases: cases.map(({ binary, attributes, requestName }) => ({
          task: TASK,
          attributes: { ...attributes, binary },
          request_name: requestName ?? "launch",
        })),
      };
      const child = Bun.spawn([python, join(import.meta.dir, "shim_driver.py")], {
        stdin: new Blob([JSON.stringify(plan)]),
        stdout: "pipe",
        env: {
          PATH: process.env.PATH,
          BUN_OPTIONS: "x",
          PYTHONDONTWRITEBYTECODE: "1",
          HF_TOKEN: "from-the-start",
          NEURARCH_POLICY_MAX_COST_USD: "7",
          NEURARCH_POLICY_FILE: "/etc/policy.yml",
          NEURARCH_CLUSTER: "gpu-dev",
        },
      });
      const text = await new Response(child.stdout).text();
      const results = JSON.parse(text.trim().split("\n").at(-1)!);
      outcomes = results.cases;
      readBack = results.texts;
      threads = results.threads;
    }, 60_000);

    for (const [index, { name, check }] of cases.entries()) test(name, () => check(outcomes[index]!));

    test("asked by many threads at once, each gets its own answer", () => {
      const expected = ["T4:1 refused", "L4:1 admitted", "H200:1 admitted"];
      expect(threads).toEqual(Array.from({ length: 60 }, (_, at) => expected[at % 3]!));
    });

    test("its own texts, sent back and rewritten here, load there with nothing else changed", () => {
      expect(readBack.length).toBeGreaterThan(100);
      expect(readBack).toEqual(
        rewritten.map(({ accelerators }) => ({
          accelerators: [...accelerators].sort(),
          rest: [],
          other: [],
          echo: true,
        })),
      );
    });
  });
}
