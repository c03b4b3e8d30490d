import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RULE_IDS } from "../../src/policy/rules.ts";
import { run, shown } from "./run.ts";

const root = mkdtempSync(join(tmpdir(), "gate-policy-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Writes a file of the folder that the tests run in. */
function write(path: string, text: string): void {
  mkdirSync(join(root, path, ".."), { recursive: true });
  writeFileSync(join(root, path), text);
}
const here = (args: readonly string[], more: Parameters<typeof run>[1] = {}) =>
  run(args, { cwd: root, ...more });

const WAIVER = `version: 1
waivers:
  - rule: admission/request-does-not-fit
    owner: "@ops"
    reason: OOM test on purpose
    expires: 2099-12-31
    model: Qwen/*
`;

const LINTED = `version: 1
waivers:
  - rule: admission/request-does-not-fit
    owner: "@ops"
    reason: OOM test on purpose
    created: 2026-11-01
    model: Qwen/*
    path: jobs/**
  - rule: admission/request-does-not-fit
    created: 2026-11-01
  - rule: admission/request-does-not-fit
    owner: bo
    expires: 2026-11-29
    path: ../elsewhere/*
  - rule: budget/card-not-alowed
    owner: bo
    expires: 2026-12-31
  - rule: admission/cost-cap
    owner: bo
    expires: 2026-12-31
budget:
  cards_allowed: [H100, A1000]
  max_param: 7B
rules:
  admission/over-requested: "off"
  admission/borderline: off
waiver: []
policy: {must_fit: A100}
`;

beforeAll(() => {
  mkdirSync(join(root, ".git"));
  write(".neurarch.yml", WAIVER);
  write("lint.yml", LINTED);
  write("broken.yml", `${WAIVER}budget:\n  max_params: lots\n`);
  write(
    "budget.yml",
    "version: 1\nbudget: {cards_allowed: [A100-80, L4], max_cost_per_run_usd: 100, max_params: 7B}\n",
  );
  const sbatch =
    "#!/bin/bash\n#SBATCH --gres=gpu:a10g:1\n#NEURARCH model=Qwen/Qwen3-8B batch=8 seq-len=2048 hours=1\npython t.py\n";
  write("jobs/big.sbatch", sbatch);
  write("jobs/fits.sbatch", sbatch.replace("a10g:1", "h200:4").replace("batch=8", "batch=2"));
  write(
    "jobs/big.sky.yaml",
    "resources: {accelerators: A10G:1}\nenvs: {NEURARCH_MODEL: Qwen/Qwen3-8B, NEURARCH_BATCH: 8}\nrun: train\n",
  );
});

describe("policy check", () => {
  const on = ["--today", "2026-11-30"];
  for (const [name, args] of [
    ["for people", ["lint.yml"]],
    ["for a workflow", ["lint.yml", "--output", "github"]],
    ["a file that says what it does", [".neurarch.yml"]],
    ["the nearest file", []],
    ["what a later day brings", [".neurarch.yml", "--today", "2100-01-01"]],
    ["a file of which nothing is applied", ["broken.yml"]],
    ["a file that is not there", ["none.yml"]],
    ["a day that is none", [".neurarch.yml", "--today", "tomorrow"]],
    ["an unknown output", ["lint.yml", "--output", "xml"]],
  ] as const) {
    test(name, async () => {
      const all = args.some((word) => word === "--today") ? args : [...args, ...on];
      expect(shown(await here(["policy", "check", ...all])).replaceAll(root, "ROOT")).toMatchSnapshot();
    });
  }
  test("as JSON", async () => {
    const { exit, out } = await here(["policy", "check", "lint.yml", "--json", ...on]);
    expect(exit).toBe(4);
    expect(JSON.parse(out)).toMatchSnapshot();
  });
  test("as SARIF", async () => {
    const { exit, out } = await here(["policy", "check", "lint.yml", "--output", "sarif", ...on]);
    expect(exit).toBe(4);
    const document = JSON.parse(out);
    const [{ tool, results }] = document.runs;
    tool.driver.version = "VERSION";
    expect(document).toMatchSnapshot();
    for (const { ruleId, ruleIndex } of results) expect(tool.driver.rules[ruleIndex].id).toBe(ruleId);
  });
  test("from standard input", async () => {
    const { exit, out } = await here(["policy", "check", "-", ...on], { stdin: "waivers: 1\n" });
    expect([exit, out]).toEqual([
      4,
      "stdin: warning: The file does not say its version. Add version: 1.\nstdin:1:10: error: `waivers` is not a list. Begin each with a dash.\nstdin is not applied: all verdicts stand without it.\n",
    ]);
  });
});

describe("policy apply", () => {
  const asked = {
    model: "Qwen/Qwen3-8B",
    findings: [
      {
        checker: "admission",
        rule: "admission/request-does-not-fit",
        severity: "block",
        title: "Too small.",
        model: "Qwen/Qwen3-8B",
        ref: 0,
      },
      {
        checker: "admission",
        rule: "admission/cost-cap",
        severity: "block",
        title: "Too dear.",
        model: "Qwen/Qwen3-8B",
        ref: 1,
      },
    ],
    facts: [
      { model: "Qwen/Qwen3-8B", cards: ["A10G"], params: 8_190_735_360, ref: 0 },
      { model: "Qwen/Qwen3-8B", cards: ["A100-80GB"], estCostUsd: 250, params: 8_190_735_360, ref: 1 },
    ],
  };
  const apply = (file: string, stdin: string, ...more: string[]) =>
    here(["policy", "apply", "--policy", file, "--today", "2026-11-30", ...more], { stdin });
  for (const [name, file] of [
    ["a waiver", ".neurarch.yml"],
    ["a budget", "budget.yml"],
    ["what is wrong with a file", "lint.yml"],
  ] as const) {
    test(`${name}, as JSON`, async () => {
      const { exit, out, err } = await apply(file, JSON.stringify(asked), "--json");
      expect([exit, err]).toEqual([0, ""]);
      expect(JSON.parse(out)).toMatchSnapshot();
    });
    test(`${name}, for people`, async () => {
      expect(shown(await apply(file, JSON.stringify(asked)))).toMatchSnapshot();
    });
  }
  test("nothing asked, nothing to say", async () => {
    expect(JSON.parse((await apply("budget.yml", "{}", "--json")).out)).toEqual({
      policy: "budget.yml",
      findings: [],
    });
  });
  test("tighten-only", async () => {
    const { out } = await apply(
      ".neurarch.yml",
      JSON.stringify(asked),
      "--json",
      "--repo-policy",
      "tighten-only",
    );
    expect(JSON.parse(out).findings.map(({ gates }: { gates: boolean }) => gates)).toEqual([true, true]);
  });
  for (const [name, file, stdin] of [
    ["a file that cannot be read", "broken.yml", JSON.stringify(asked)],
    ["a file that is not there", "none.yml", JSON.stringify(asked)],
    ["findings that are no JSON", ".neurarch.yml", "{"],
    ["findings without a severity", ".neurarch.yml", '{"findings": [{"rule": "a"}]}'],
    ["facts with a word for a cost", ".neurarch.yml", '{"facts": [{"estCostUsd": "much"}]}'],
  ] as const) {
    test(`${name}: an error that the published packages read`, async () => {
      const { exit, out } = await apply(file, stdin, "--json");
      expect(exit).toBe(4);
      expect(JSON.parse(out)).toMatchSnapshot();
    });
  }
});

describe("policy explain", () => {
  for (const id of RULE_IDS) {
    test(id, async () => expect(shown(await here(["policy", "explain", id]))).toMatchSnapshot());
  }
  test("all of them", async () => {
    const { exit, out } = await here(["policy", "explain", "--json"]);
    expect(exit).toBe(0);
    expect(JSON.parse(out).rules.map(({ rule }: { rule: string }) => rule)).toEqual(RULE_IDS);
  });
  test("one that there is not", async () => {
    expect(shown(await here(["policy", "explain", "over-requested"]))).toMatchSnapshot();
  });
});

test("the schema of the file, for editors", async () => {
  const { exit, out } = await here(["schema", "policy"]);
  expect([exit, JSON.parse(out).properties.budget.properties.max_params.description]).toEqual([
    0,
    "Parameters of the model: 500K, 7B.",
  ]);
  expect(shown(await here(["schema", "polcy"]))).toMatchSnapshot();
});

test("policy alone lists its sub-commands; a misspelled one is a usage error", async () => {
  expect(shown(await here(["policy"]))).toMatchSnapshot();
  expect(shown(await here(["policy", "chekc"]))).toMatchSnapshot();
});

describe("in the adapters", () => {
  const first = (out: string) => out.split("\n")[0];
  const ALLOWED = "Allowed: waived in .neurarch.yml by @ops until 2099-12-31: OOM test on purpose.";

  test("judge: a waived refusal is a warning with its waiver", async () => {
    for (const args of [
      ["--skypilot", "jobs/big.sky.yaml"],
      ["--slurm", "jobs/big.sbatch"],
      ["--model", "Qwen/Qwen3-8B", "--batch", "8", "--request", "A10G:1"],
    ]) {
      const { exit, out } = await here(["judge", ...args, "--json"]);
      const document = JSON.parse(out);
      expect([exit, document.decision]).toEqual([0, "warn"]);
      expect(document.messages[0]).toEndWith(ALLOWED);
      expect(document.verdicts[0]).toMatchObject({
        decision: "warn",
        rule: "admission/request-does-not-fit",
        reason: "too-small",
        waiver: {
          file: ".neurarch.yml",
          owner: "@ops",
          expires: "2099-12-31",
          reason: "OOM test on purpose",
        },
      });
    }
  });
  test("judge: --explain names the file", async () => {
    const { out } = await here(["judge", "--slurm", "jobs/big.sbatch", "--explain"]);
    expect(out).toEndWith(`\nPolicy file: ${join(root, ".neurarch.yml")}\n`);
  });
  test("judge: with --fail-on warn it is one", async () => {
    expect((await here(["judge", "--slurm", "jobs/big.sbatch", "--fail-on", "warn"])).exit).toBe(10);
  });
  test("judge: found from the job's file, whatever the working directory", async () => {
    const { out } = await here(["judge", "--slurm", join(root, "jobs/big.sbatch"), "--json"], { cwd: "/" });
    expect(JSON.parse(out).decision).toBe("warn");
  });
  test("judge: found from the task's workdir", async () => {
    write("work/.neurarch.yml", "version: 1\nbudget: {cards_allowed: [L4]}\n");
    write(
      "task.sky.yaml",
      "workdir: work\nresources: {accelerators: H200:4}\nenvs: {NEURARCH_MODEL: Qwen/Qwen3-8B}\nrun: x\n",
    );
    const { exit, out } = await here(["judge", "--skypilot", "task.sky.yaml", "--batch", "2", "--json"]);
    const [verdict] = JSON.parse(out).verdicts;
    expect([exit, verdict.rule, verdict.reason, verdict.waiver]).toEqual([
      1,
      "budget/card-not-allowed",
      "card-not-allowed",
      null,
    ]);
  });
  test("judge: what a site allows", async () => {
    const decided = async (mode: string) => {
      const { exit, out } = await here([
        "judge",
        "--slurm",
        "jobs/big.sbatch",
        "--repo-policy",
        mode,
        "--json",
      ]);
      return [exit, JSON.parse(out).messages.length];
    };
    expect(await decided("honour")).toEqual([0, 1]);
    expect(await decided("tighten-only")).toEqual([1, 2]);
    expect(await decided("ignore")).toEqual([1, 1]);
    expect((await here(["judge", "--slurm", "jobs/big.sbatch", "--repo-policy", "strict"])).exit).toBe(2);
  });
  test("which file: the flag, the site, the environment, the nearest", async () => {
    const site = join(root, "gate.toml");
    write("gate.toml", `policy_file = "${join(root, "budget.yml")}"\n`);
    const rule = async (args: string[], env: Record<string, string> = {}) => {
      const { out } = await here(["judge", "--slurm", "jobs/fits.sbatch", "--json", ...args], { env });
      return JSON.parse(out).messages.map((message: string) => message.slice(0, 40));
    };
    const budget = "Neurarch: budget.yml: h200 is not an all";
    expect(await rule([])).not.toContain(budget);
    expect(await rule([], { NEURARCH_POLICY_FILE: "budget.yml" })).toContain(budget);
    expect(await rule(["--config", site], { NEURARCH_POLICY_FILE: ".neurarch.yml" })).toContain(budget);
    expect(await rule(["--config", site, "--policy-file", ".neurarch.yml"])).not.toContain(budget);
    write("gate.toml", 'policy_file = "budget.yml"\n');
    expect((await here(["judge", "--slurm", "jobs/fits.sbatch", "--config", site])).exit).toBe(4);
  });
  test("a cluster's waiver holds on that cluster", async () => {
    write("cluster.yml", `${WAIVER}    cluster: gpu-dev\n`);
    const decided = async (args: string[], env: Record<string, string> = {}) => {
      const all = [
        "slurm",
        "--script",
        "jobs/big.sbatch",
        "--mode",
        "reject",
        "--policy-file",
        "cluster.yml",
      ];
      return first((await here([...all, ...args], { env })).out);
    };
    expect(await decided([])).toBe("decision=reject");
    expect(await decided(["--cluster", "gpu-dev"])).toBe("decision=warn");
    expect(await decided(["--cluster", "gpu"], { NEURARCH_CLUSTER: "gpu-dev" })).toBe("decision=reject");
    expect(await decided([], { SLURM_CLUSTER_NAME: "gpu-dev" })).toBe("decision=warn");
  });
  test("slurm: waived in both modes; a budget refuses in one and warns in the other", async () => {
    const answer = async (script: string, mode: string, policy: string) =>
      (await here(["slurm", "--script", script, "--mode", mode, "--policy-file", policy])).out
        .trimEnd()
        .split("\n");
    for (const mode of ["warn", "reject"]) {
      const [decision, message] = await answer("jobs/big.sbatch", mode, ".neurarch.yml");
      expect([decision, message?.endsWith(ALLOWED)]).toEqual(["decision=warn", true]);
    }
    const refusal =
      "message=Neurarch: budget.yml: h200 is not an allowed card (A100-80, L4). Request one of A100-80, L4.";
    const params =
      "message=Neurarch: budget.yml: Qwen/Qwen3-8B has 8.2B parameters, over the 7B that max_params allows.";
    expect(await answer("jobs/fits.sbatch", "reject", "budget.yml")).toEqual([
      "decision=reject",
      refusal,
      params,
    ]);
    expect(await answer("jobs/fits.sbatch", "warn", "budget.yml")).toEqual([
      "decision=warn",
      `${refusal} Submitted anyway.`,
      params,
    ]);
  });
  test("slurm: a file that cannot be read is one line, and the verdict stands", async () => {
    for (const [policy, why] of [
      [
        "broken.yml",
        "broken.yml is not applied: line 9, column 15: `max_params` is `lots`, not an amount; the verdict stands without it.",
      ],
      ["none.yml", "none.yml is not applied: "],
      ["/dev/zero", "zero is not applied: /dev/zero is not a regular file; the verdict stands without it."],
    ] as const) {
      const refused = await here([
        "slurm",
        "--script",
        "jobs/big.sbatch",
        "--mode",
        "reject",
        "--policy-file",
        policy,
      ]);
      const admitted = await here([
        "slurm",
        "--script",
        "jobs/fits.sbatch",
        "--mode",
        "reject",
        "--policy-file",
        policy,
      ]);
      expect([refused.exit, first(refused.out), admitted.exit]).toEqual([0, "decision=reject", 0]);
      expect(first(admitted.out)).not.toBe("decision=reject");
      expect(refused.out).toContain(`message=Neurarch: ${why}`);
      expect(admitted.out).toContain(`message=Neurarch: ${why}`);
    }
  });
  test("slurm: nothing of that name in the way keeps a submit waiting", async () => {
    mkdirSync(join(root, "odd/.git"), { recursive: true });
    Bun.spawnSync(["mkfifo", join(root, "odd/.neurarch.yml")]);
    mkdirSync(join(root, "odd/.neurarch.yaml"));
    const script = join(root, "jobs/big.sbatch");
    write("odd/job.sbatch", await Bun.file(script).text());
    const { exit, out } = await here(["slurm", "--script", "job.sbatch", "--mode", "reject"], {
      cwd: join(root, "odd"),
    });
    expect([exit, first(out)]).toEqual([0, "decision=reject"]);
    expect(out).not.toContain("not applied");
  });
  test("the SkyPilot policy: the site's file only", async () => {
    const task = await Bun.file(join(root, "jobs/big.sky.yaml")).text();
    const stdin = JSON.stringify({ task, skypilot_config: "{}", request_name: "launch" });
    const answer = async (args: string[], env: Record<string, string> = {}) =>
      JSON.parse((await here(["judge", "--admin-policy", ...args], { stdin, env })).out);
    const file = join(root, ".neurarch.yml");
    expect((await answer([])).decision).toBe("refuse");
    expect((await answer([], { NEURARCH_POLICY_FILE: file })).decision).toBe("refuse");
    const waived = await answer(["--policy-file", file]);
    expect([waived.decision, waived.messages[0].endsWith(ALLOWED)]).toEqual(["warn", true]);
  });
  test("the SkyPilot policy at the client's side: the user's file too", async () => {
    const task = `workdir: jobs\n${await Bun.file(join(root, "jobs/big.sky.yaml")).text()}`;
    const answer = async (atClientSide: boolean, args: string[]) => {
      const body = { task, skypilot_config: "{}", request_name: "launch", at_client_side: atClientSide };
      return JSON.parse(
        (await here(["judge", "--admin-policy", ...args], { stdin: JSON.stringify(body), cwd: "/" })).out,
      );
    };
    expect((await answer(true, ["--policy-start", root])).decision).toBe("warn");
    expect((await answer(true, [])).decision).toBe("refuse");
    expect((await answer(false, ["--policy-start", root])).decision).toBe("refuse");
    expect((await here(["judge", "--slurm", "jobs/big.sbatch", "--policy-start", "."])).exit).toBe(2);
  });
  test("a rewrite never ends on a card that is not allowed", async () => {
    write("rewrite.yml", "version: 1\nbudget: {cards_allowed: [H100, A100-80GB]}\n");
    const job = [
      "judge",
      "--model",
      "Qwen/Qwen3-0.6B",
      "--batch",
      "1",
      "--request",
      "H100:8",
      "--mutate",
      "--json",
    ];
    const to = async (args: string[]) =>
      JSON.parse((await here([...job, ...args])).out).verdicts[0].rewriteTo;
    expect((await to(["--repo-policy", "ignore"])).accelerator).not.toMatch(/H100|A100-80GB/);
    expect(await to(["--policy-file", "rewrite.yml"])).toEqual({ accelerator: "A100-80GB", count: 2 });
  });
});
