import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HELPER, install, needed, OFFLINE, python3, skyPython, VENV } from "./peer-packages.ts";
import { BINARY, run } from "./run.ts";

/*
 * The published packages apply a `.neurarch.yml` through `CLI policy apply`. Here that CLI is this executable, and the
 * behaviour is theirs: what their own policy makes of our answers, beside what our adapters make of the same file.
 */

const folder = mkdtempSync(join(tmpdir(), "gate-peers-policy-"));
mkdirSync(join(folder, ".git"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeAll(() => {
  if (python3 !== null) install();
}, 300_000);

const withPython = needed("python3, for the published packages' policy", python3 !== null);
const withSky = needed("a Python with SkyPilot, for the published policy", skyPython !== undefined);

const V = "version: 1\n";
const waiver = (fields: string) =>
  `${V}waivers:\n  - {rule: admission/request-does-not-fit, owner: "@ops", reason: OOM test on purpose, ${fields}}\n`;
const WAIVED = waiver("expires: 2099-12-31, model: Qwen/*");
const ALLOWED = "Allowed: waived in .neurarch.yml by @ops until 2099-12-31: OOM test on purpose.";

interface Row {
  readonly name: string;
  readonly file: string;
  readonly gres: string;
  /** A batch that makes the job fit H200:1. */
  readonly model?: string;
  readonly hours?: number;
  readonly cap?: number;
  readonly cluster?: string;
  readonly decision: "allow" | "warn" | "reject";
  /** What the messages hold, in any order. */
  readonly says: readonly string[];
  readonly not?: readonly string[];
}

const SMALL = "Qwen/Qwen3-0.6B";
const ROWS: readonly Row[] = [
  { name: "no waiver", file: V, gres: "gpu:a10g:1", decision: "reject", says: ["and resubmit."] },
  {
    name: "a waived refusal is a warning",
    file: WAIVED,
    gres: "gpu:a10g:1",
    decision: "warn",
    says: [ALLOWED],
  },
  {
    name: "an expired waiver",
    file: waiver("expires: 2020-11-01"),
    gres: "gpu:a10g:1",
    decision: "reject",
    says: ["Neurarch: .neurarch.yml: Waiver for admission/request-does-not-fit expired on 2020-11-01."],
    not: ["Allowed"],
  },
  {
    name: "30 days that are over",
    file: waiver("created: 2020-01-01"),
    gres: "gpu:a10g:1",
    decision: "reject",
    says: ["expired on 2020-01-31."],
  },
  {
    name: "a waiver of another model",
    file: waiver("expires: 2099-12-31, model: meta/*"),
    gres: "gpu:a10g:1",
    decision: "reject",
    says: ["and resubmit."],
    not: ["Allowed"],
  },
  {
    name: "a waiver of this cluster",
    file: waiver("expires: 2099-12-31, cluster: gpu-dev"),
    gres: "gpu:a10g:1",
    cluster: "gpu-dev",
    decision: "warn",
    says: [ALLOWED],
  },
  {
    name: "a waiver of another cluster",
    file: waiver("expires: 2099-12-31, cluster: gpu-dev"),
    gres: "gpu:a10g:1",
    cluster: "gpu",
    decision: "reject",
    says: ["and resubmit."],
    not: ["Allowed"],
  },
  {
    name: "an ownerless waiver",
    file: `${V}waivers: [{rule: admission/request-does-not-fit, expires: 2099-12-31}]\n`,
    gres: "gpu:a10g:1",
    decision: "reject",
    says: ["does not apply: it has no owner."],
    not: ["Allowed"],
  },
  {
    name: "a waiver for ever",
    file: waiver("expires: never"),
    gres: "gpu:a10g:1",
    decision: "reject",
    says: ["which is not a day."],
    not: ["Allowed"],
  },
  {
    name: "a refusal set to warn",
    file: `${V}rules: {admission/request-does-not-fit: warn}\n`,
    gres: "gpu:a10g:1",
    decision: "warn",
    says: ["set to warn in .neurarch.yml."],
  },
  {
    name: "a card that is not allowed",
    file: `${V}budget: {cards_allowed: [a100]}\n`,
    gres: "gpu:h100:1",
    model: SMALL,
    decision: "reject",
    says: ["Neurarch: .neurarch.yml: h100 is not an allowed card (a100). Request one of a100."],
  },
  {
    name: "a card that is allowed",
    file: `${V}budget: {cards_allowed: [L4]}\n`,
    gres: "gpu:l4:1",
    model: SMALL,
    decision: "allow",
    says: [],
  },
  {
    name: "a card that is waived",
    file: `${V}budget: {cards_allowed: [a100]}\nwaivers: [{rule: budget/card-not-allowed, owner: bo, expires: 2099-12-31, reason: x}]\n`,
    gres: "gpu:l4:1",
    model: SMALL,
    decision: "warn",
    says: ["Neurarch: .neurarch.yml: l4 is not an allowed card (a100)"],
  },
  {
    name: "a card set to warn",
    file: `${V}budget: {cards_allowed: [a100]}\nrules: {budget/card-not-allowed: warn}\n`,
    gres: "gpu:l4:1",
    model: SMALL,
    decision: "warn",
    says: ["Neurarch: .neurarch.yml: l4 is not an allowed card (a100)"],
  },
  {
    name: "a card set to off",
    file: `${V}budget: {cards_allowed: [a100]}\nrules: {budget/card-not-allowed: off}\n`,
    gres: "gpu:l4:1",
    model: SMALL,
    decision: "allow",
    says: [],
  },
  {
    name: "over the budget's cost",
    file: `${V}budget: {max_cost_per_run_usd: 5}\n`,
    gres: "gpu:l4:1",
    model: SMALL,
    hours: 10,
    decision: "reject",
    says: ["The run costs $8.00 at list price, over the $5.00 that max_cost_per_run_usd allows"],
  },
  {
    name: "too many parameters",
    file: `${V}budget: {max_params: 500M}\n`,
    gres: "gpu:l4:1",
    model: SMALL,
    decision: "reject",
    says: [`${SMALL} has 596M parameters, over the 500M that max_params allows.`],
  },
  {
    name: "the site's cap is not waived",
    file: `${V}waivers: [{rule: admission/cost-cap, owner: bo, expires: 2099-12-31}]\n`,
    gres: "gpu:l4:1",
    model: SMALL,
    hours: 10,
    cap: 5,
    decision: "reject",
    says: ["the site's cost cap is not a repository's to waive."],
    not: ["Allowed"],
  },
  {
    name: "the site's cap is not turned down",
    file: `${V}rules: {admission/cost-cap: off}\n`,
    gres: "gpu:l4:1",
    model: SMALL,
    hours: 10,
    cap: 5,
    decision: "reject",
    says: [],
    not: ["Allowed"],
  },
  {
    name: "a file that cannot be read",
    file: `${WAIVED}budget: [\n`,
    gres: "gpu:a10g:1",
    decision: "reject",
    says: ["and resubmit.", "not applied (line 5, column 1: the YAML cannot be read"],
    not: ["Allowed"],
  },
  {
    name: "other tools' keys",
    file: `${WAIVED}policy: {max_params: x, forbid_types: [a]}\nmodels: [{path: x}]\n`,
    gres: "gpu:a10g:1",
    decision: "warn",
    says: [ALLOWED],
  },
];

/** The decision and the messages of a program that speaks to the Slurm filter. */
async function lines(argv: readonly string[], cluster: string | undefined) {
  const child = Bun.spawn([...argv], {
    cwd: folder,
    env: {
      PATH: "/usr/bin:/bin",
      HOME: "/nonexistent",
      ...OFFLINE,
      ...(cluster === undefined ? {} : { NEURARCH_CLUSTER: cluster }),
    },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  expect([await child.exited, err]).toEqual([0, ""]);
  const [decision = "", ...messages] = out.trimEnd().split("\n");
  return { decision: decision.replace("decision=", ""), messages: messages.join("\n") };
}

if (withPython)
  describe("the published neurarch-slurm applies a policy file by this executable", () => {
    for (const { name, file, gres, model, hours, cap, cluster, decision, says, not } of ROWS) {
      test(name, async () => {
        writeFileSync(join(folder, ".neurarch.yml"), file);
        const facts = model === undefined ? "model=Qwen/Qwen3-8B batch=8" : `model=${model} batch=1`;
        const more = hours === undefined ? "" : ` hours=${hours}`;
        const script = join(folder, "job.sbatch");
        writeFileSync(script, `#!/bin/bash\n#NEURARCH ${facts} seq-len=2048${more}\npython train.py\n`);
        const words = [
          "--script",
          script,
          "--gres",
          gres,
          "--mode",
          "reject",
          ...(cap === undefined ? [] : ["--max-cost-usd", String(cap)]),
        ];
        const theirs = await lines([HELPER, ...words, "--sizing", "cli", "--cli", `'${BINARY}'`], cluster);
        const ours = await lines([BINARY, "slurm", ...words], cluster);
        expect(theirs.decision).toBe(decision);
        for (const text of says) expect(theirs.messages).toContain(text);
        for (const text of not ?? []) expect(theirs.messages).not.toContain(text);
        // Our own adapter comes to the same; the words on an unreadable file and the price are its own.
        expect(ours.decision).toBe(decision);
        for (const text of not ?? []) expect(ours.messages).not.toContain(text);
      });
    }
  });

if (withPython && withSky)
  describe("the published neurarch-skypilot applies a policy file, in SkyPilot itself", () => {
    const task = (model: string, batch: number, accelerators: string) =>
      `resources: {accelerators: ${accelerators}}\nenvs: {NEURARCH_MODEL: ${model}, NEURARCH_BATCH: "${batch}", NEURARCH_HOURS: "2"}\nrun: train\n`;
    async function judged(file: string, tasks: readonly string[], env: Record<string, string> = {}) {
      writeFileSync(join(folder, ".neurarch.yml"), file);
      const found = Bun.spawnSync(["sh", "-c", `echo ${VENV}/lib/python3*/site-packages`])
        .stdout.toString()
        .trim();
      const child = Bun.spawn([skyPython!, join(import.meta.dir, "peer_policy.py")], {
        cwd: folder,
        stdin: new Blob([JSON.stringify(tasks)]),
        stdout: "pipe",
        stderr: "pipe",
        env: {
          PATH: process.env.PATH,
          PYTHONPATH: found,
          PYTHONDONTWRITEBYTECODE: "1",
          NEURARCH_POLICY_SIZING: "cli",
          NEURARCH_POLICY_CLI: `'${BINARY}'`,
          ...OFFLINE,
          ...env,
        },
      });
      const [out, err] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
      ]);
      expect([await child.exited, err.includes("Traceback")]).toEqual([0, false]);
      return JSON.parse(out.trim().split("\n").at(-1)!);
    }

    test("waived, refused by a budget, allowed", async () => {
      const file = `${WAIVED}budget: {cards_allowed: [A10G, L4], max_cost_per_run_usd: 100}\n`;
      const [waived, card, fits] = await judged(file, [
        task("Qwen/Qwen3-8B", 8, "A10G:1"),
        task(SMALL, 1, "T4:1"),
        task(SMALL, 1, "L4:1"),
      ]);
      expect([waived.refused, waived.lines.length]).toEqual([null, 1]);
      expect(waived.lines[0]).toEndWith(ALLOWED);
      expect(card.refused).toBe(
        "Neurarch: .neurarch.yml: T4 is not an allowed card (A10G, L4). Request one of A10G, L4.",
      );
      expect(fits).toEqual({ refused: null, accelerators: [{ L4: 1 }], lines: [] });
    }, 120_000);

    test("a candidate that is not allowed is dropped under mutate; a waiver may be the cluster's", async () => {
      const file = `${waiver("expires: 2099-12-31, cluster: gpu-dev")}budget: {cards_allowed: [A10G, L4]}\n`;
      const env = { NEURARCH_POLICY_MUTATE: "1", NEURARCH_CLUSTER: "gpu-dev" };
      const [dropped, waived] = await judged(
        file,
        [task(SMALL, 1, "{L4: 1, T4: 1}"), task("Qwen/Qwen3-8B", 8, "A10G:1")],
        env,
      );
      expect([dropped.refused, dropped.accelerators]).toEqual([null, [{ L4: 1 }]]);
      expect(waived.lines.at(-1)).toEndWith(ALLOWED);
    }, 120_000);

    test("an unreadable file changes nothing", async () => {
      const [refused] = await judged("waivers: 5\n", [task("Qwen/Qwen3-8B", 8, "A10G:1")]);
      expect(refused.refused).toStartWith("Neurarch: Qwen/Qwen3-8B needs");
    }, 120_000);
  });

test("without a policy file the same executable answers as before", async () => {
  rmSync(join(folder, ".neurarch.yml"), { force: true });
  const { out } = await run(["judge", "--model", SMALL, "--batch", "1", "--request", "L4:1", "--json"], {
    cwd: folder,
  });
  expect(JSON.parse(out)).toMatchObject({ decision: "allow", messages: [] });
});
