import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SCHEMAS } from "../../src/cli/schemas/index.ts";
import { ROOT, run } from "../acceptance/run.ts";
import { scratch } from "../outputs/support.ts";
import { validator, violations } from "./support.ts";

const folder = scratch();
afterAll(() => folder.remove());
const file = (name: string, text: string) => {
  const path = join(folder.path, name);
  writeFileSync(path, text);
  return path;
};

const ENVS = "envs:\n  NEURARCH_MODEL: Qwen/Qwen3-8B\n  NEURARCH_BATCH: 1\nrun: x\n";
const SEVERAL = file(
  "several.yaml",
  `name: a\nresources:\n  accelerators: A10G:1\n${ENVS}---\nname: b\nresources:\n  any_of:\n    - accelerators: H200:8\n    - accelerators: Z9:1\n${ENVS}`,
);
const UNREAD = file(
  "unread.yaml",
  "resources:\n  accelerators: A10G:1\nenvs:\n  NEURARCH_MODEL: gpt2\n  NEURARCH_BATCH: many\nrun: x\n",
);
const JOBS = file(
  "jobs.csv",
  "job_id,model,gpu,hours\n1,gpt2,H100:8,3\n2,Qwen/Qwen3-8B,A10G:1,\n3,no/such,A10G:1,1\n4,gpt2,Z9,1\n",
);
const POLICY = file(
  "policy.yml",
  "version: 1\nwaivers:\n  - rule: admission/request-does-not-fit\n    owner: o\n    reason: r\n    created: 2020-01-01\n    expires: 2999-01-01\n    model: [Qwen/*]\n  - rule: budget/params\n    owner: ''\nbudget:\n  max_params: 7B\nrules:\n  lint/x: warn\n",
);
const FINDINGS = JSON.stringify({
  model: "Qwen/Qwen3-8B",
  findings: [
    {
      checker: "admission",
      rule: "admission/request-does-not-fit",
      severity: "block",
      title: "t",
      model: "Qwen/Qwen3-8B",
      ref: 0,
    },
  ],
  facts: [{ model: "Qwen/Qwen3-8B", cards: ["H100"], params: 8e9, ref: 0 }],
});
const LEDGER = join(folder.path, "ledger");

/** One job, submitted when the verdict below was given, that died of memory. */
const SACCT = join(folder.path, "sacct.txt");
beforeAll(async () => {
  const user = Bun.spawnSync(["id", "-un"]).stdout.toString().trim();
  for (const job of ["lora-qwen3-8b", "finetune-qwen3-8b"])
    await run(["slurm", "--script", `examples/${job}.sbatch`, "--ledger", LEDGER, "--mode", "reject"]);
  const now = new Date().toISOString().slice(0, 19);
  writeFileSync(
    SACCT,
    `JobID|User|Submit|State|ExitCode|ReqTRES\n7|${user}|${now}|OUT_OF_MEMORY|0:125|gres/gpu:a100=1,gres/gpu=1\n`,
  );
});

/** A command line, the schema of what it prints, and its standard input. */
const ROWS: readonly (readonly [name: string, schema: string, args: readonly string[], stdin?: string])[] = [
  ["refused", "verdict", ["judge", "--skypilot", "examples/finetune-qwen3-8b.sky.yaml", "--json"]],
  [
    "every term",
    "verdict",
    ["judge", "--skypilot", "examples/multi-node-llama-70b.sky.yaml", "--json", "--explain"],
  ],
  ["several tasks", "verdict", ["judge", "--skypilot", SEVERAL, "--json", "--explain"]],
  ["rewritten", "verdict", ["judge", "--skypilot", SEVERAL, "--json", "--mutate"]],
  ["facts that cannot be read", "verdict", ["judge", "--skypilot", UNREAD, "--json"]],
  [
    "waived",
    "verdict",
    ["judge", "--skypilot", "examples/finetune-qwen3-8b.sky.yaml", "--json", "--policy-file", POLICY],
  ],
  [
    "a budget",
    "verdict",
    ["judge", "--model", "Qwen/Qwen3-8B", "--request", "H200:8", "--json", "--policy-file", POLICY],
  ],
  [
    "recorded",
    "verdict",
    ["judge", "--slurm", "examples/lora-qwen3-8b.sbatch", "--json", "--ledger", LEDGER],
  ],
  [
    "several cards",
    "verdict",
    [
      "judge",
      "--model",
      "gpt2",
      "--request",
      "H100:8",
      "--parallel",
      "zero2",
      "--json",
      "--explain",
      "--hours",
      "2",
      "--max-cost-usd",
      "1",
    ],
  ],
  ["an unknown card", "verdict", ["judge", "--model", "gpt2", "--request", "Z9:1", "--json"]],
  ["a size", "sizing", ["size", "Qwen/Qwen3-8B", "--json"]],
  ["a size with its terms", "sizing", ["size", "google-bert/bert-base-uncased", "--json", "--explain"]],
  ["a graph", "sizing", ["size", "tests/fixtures/graphs/mlp.neurarch.json", "--json"]],
  ["usage", "error", ["judge", "--jsn", "--json"]],
  ["no such file", "error", ["judge", "--slurm", "none", "--json"]],
  ["settings", "error", ["cards", "--config", POLICY, "--json"]],
  ["a model that is not found", "error", ["size", "no/such", "--json"]],
  ["the cards", "cards", ["cards", "--json"]],
  ["a site's cards", "cards", ["cards", "--json", "--config", "examples/gate.toml"]],
  ["many jobs", "rightsize", ["rightsize", JOBS, "--json"]],
  ["a doctor", "doctor", ["doctor", "slurm", "--json"]],
  ["a self-test", "self-test", ["self-test", "--json"]],
  ["a policy file", "policy-check", ["policy", "check", POLICY, "--json"]],
  ["the example's policy file", "policy-check", ["policy", "check", "examples/neurarch.yml", "--json"]],
  ["one that is not applied", "policy-check", ["policy", "check", JOBS, "--json"]],
  ["the rules", "policy-rules", ["policy", "explain", "--json"]],
  ["a ledger", "ledger", ["ledger", LEDGER, "--json"]],
  ["a ledger and its jobs", "reconcile", ["ledger", "reconcile", LEDGER, "--from", SACCT, "--json"]],
  ["findings", "policy-apply", ["policy", "apply", "--json", "--policy", POLICY], FINDINGS],
];

describe("what is printed agrees with its schema", () => {
  for (const [name, schema, args, stdin] of ROWS) {
    test(`${schema}: ${name}`, async () => {
      const { out } = await run(args, stdin === undefined ? {} : { stdin });
      const document = JSON.parse(out);
      expect(await violations(schema, document)).toEqual([]);
      // Every key is promised: one that goes missing, or one more, is a violation.
      const validate = await validator(schema);
      for (const key of Object.keys(document).filter(
        (one) => !(one === "tasks" || (one === "perCard" && schema === "sizing")),
      )) {
        const { [key]: _, ...without } = document;
        expect([key, validate(without)]).toEqual([key, false]);
      }
      expect(validate({ ...document, somethingElse: 1 })).toBe(false);
    });
  }
  test("ledger-line: what was recorded", async () => {
    const lines = readdirSync(LEDGER)
      .filter((name) => name.endsWith(".jsonl"))
      .flatMap((name) => readFileSync(join(LEDGER, name), "utf8").trim().split("\n"));
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(await violations("ledger-line", JSON.parse(line))).toEqual([]);
  });
});

describe("the schemas themselves", () => {
  test("each is valid JSON Schema, is listed with its title, and is kept in schemas/ as it is printed", async () => {
    const { out } = await run(["schema", "--list"]);
    const listed = out
      .trim()
      .split("\n")
      .map((line) => line.split(" ")[0]!);
    expect(listed).toEqual(Object.keys(SCHEMAS));
    for (const name of listed) {
      await validator(name);
      const printed = (await run(["schema", name])).out;
      expect(readFileSync(join(ROOT, "schemas", `${name}.json`), "utf8")).toBe(printed);
    }
    expect(readdirSync(join(ROOT, "schemas")).sort()).toEqual(listed.map((name) => `${name}.json`).sort());
  });
  test("every file of the examples agrees with the schema that it names", async () => {
    const named: string[] = [];
    for (const name of readdirSync(join(ROOT, "examples"), { recursive: true }) as string[]) {
      if (!/\.(toml|ya?ml|json)$/.test(name)) continue;
      const text = readFileSync(join(ROOT, "examples", name), "utf8");
      const path = /^(?:#:schema |# yaml-language-server: \$schema=| *"\$schema": ")([^\s"]+)/m.exec(
        text,
      )?.[1];
      if (path === undefined) continue;
      const at = join(ROOT, "examples", name, "..", path);
      expect([name, existsSync(at)]).toEqual([name, true]);
      const value = name.endsWith(".toml")
        ? Bun.TOML.parse(text)
        : name.endsWith(".json")
          ? JSON.parse(text)
          : Bun.YAML.parse(text);
      const schema = /([^/]+)\.json$/.exec(path)![1]!;
      // YAML 1.1 readers make a date of an unquoted day; an editor's reads it as the text it is.
      expect([name, await violations(schema, JSON.parse(JSON.stringify(value)))]).toEqual([name, []]);
      named.push(name);
    }
    for (const name of ["gate.toml", "gpu-map.json", "neurarch.yml"]) expect(named).toContain(name);
  });
});
