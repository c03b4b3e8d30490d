import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { BINARY, ROOT } from "../acceptance/run.ts";
import { githubCommand, scratch } from "./support.ts";

/* The example of a workflow and of a hook, run by calling what they call, in a repository made of the examples. */

const EXAMPLES = join(ROOT, "examples");
const folder = scratch();
const repository = join(folder.path, "repo");
const bin = join(folder.path, "bin");
afterAll(() => folder.remove());

interface Ran {
  readonly exit: number;
  readonly out: string;
}

function ran(argv: readonly string[], env: Record<string, string> = {}): Ran {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...argv], {
    cwd: repository,
    env: { PATH: `${bin}:/usr/bin:/bin`, HOME: folder.path, HF_HUB_OFFLINE: "1", ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  return { exit: exitCode, out: `${stdout}${stderr}` };
}

beforeAll(() => {
  mkdirSync(repository);
  mkdirSync(bin);
  symlinkSync(BINARY, join(bin, "neurarch-gate"));
  mkdirSync(join(repository, "jobs"));
  for (const name of readdirSync(EXAMPLES))
    if (/\.(sbatch|sky\.yaml)$/.test(name))
      copyFileSync(join(EXAMPLES, name), join(repository, "jobs", name));
  expect(ran(["git", "init", "-q"]).exit).toBe(0);
  expect(ran(["git", "add", "-A"]).exit).toBe(0);
});

describe("the workflow", () => {
  const workflow = parse(readFileSync(join(EXAMPLES, "github-action/neurarch-gate.yml"), "utf8"));
  const steps: readonly { name?: string; uses?: string; run?: string }[] = workflow.jobs.judge.steps;
  // The shell of `run:` on a Linux runner.
  const step = (name: string, env: Record<string, string> = {}) =>
    ran(
      [
        "bash",
        "--noprofile",
        "--norc",
        "-eo",
        "pipefail",
        "-c",
        steps.find((one) => one.name === name)!.run!,
      ],
      { GITHUB_WORKSPACE: repository, ...env },
    );

  test("its files trigger it, and it may only read", () => {
    expect(workflow.on.pull_request.paths).toEqual(["**.sbatch", "**.sky.yaml", "**/.neurarch.yml"]);
    expect(workflow.permissions).toEqual({ contents: "read" });
  });
  test("the installation puts an executable on PATH that passes its self-test", () => {
    const path = join(folder.path, "github-path");
    const { exit, out } = step("Install neurarch-gate", {
      NEURARCH_GATE_URL: `file://${BINARY}`,
      GITHUB_PATH: path,
    });
    expect([exit, out.trimEnd().split("\n").at(-1)]).toEqual([0, "All is well."]);
    expect(readFileSync(path, "utf8")).toBe(`${folder.path}/.local/bin\n`);
  });
  test("refused jobs are annotated at their line, and the step fails", () => {
    const { exit, out } = step("Judge every job");
    expect(exit).toBe(1);
    const errors = out
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => githubCommand(line)!)
      .filter(({ command }) => command === "error");
    expect(errors.map(({ properties }) => [properties.file, properties.line, properties.title])).toEqual([
      ["jobs/finetune-qwen3-0.6b.sbatch", "3", "admission/request-does-not-fit"],
      ["jobs/finetune-qwen3-0.6b.sky.yaml", "5", "admission/request-does-not-fit"],
      ["jobs/finetune-qwen3-8b.sbatch", "3", "admission/request-does-not-fit"],
      ["jobs/finetune-qwen3-8b.sky.yaml", "5", "admission/request-does-not-fit"],
    ]);
  });
  test("a waiver in .neurarch.yml makes them warnings, and a wrong one is annotated itself", () => {
    const today = new Date().toISOString().slice(0, 10);
    const waiver = (owner: string) =>
      `version: 1\nwaivers:\n  - rule: admission/request-does-not-fit\n    ${owner}\n    reason: a test\n    created: ${today}\n`;
    writeFileSync(join(repository, ".neurarch.yml"), waiver("owner: ops"));
    const waived = step("Judge every job");
    expect([waived.exit, waived.out.includes("::error")]).toEqual([0, false]);
    expect(waived.out).toContain("::warning file=jobs/finetune-qwen3-8b.sbatch,line=3,col=9,");
    writeFileSync(join(repository, ".neurarch.yml"), waiver("ownr: ops"));
    const wrong = step("Judge every job");
    expect([wrong.exit, wrong.out.includes("::error file=.neurarch.yml,line=3,")]).toEqual([1, true]);
    Bun.spawnSync(["rm", join(repository, ".neurarch.yml")]);
  });
});

describe("the pre-commit hook", () => {
  interface Hook {
    readonly id: string;
    readonly entry: string;
    readonly files: string;
  }
  const config = parse(readFileSync(join(EXAMPLES, "pre-commit/.pre-commit-config.yaml"), "utf8"));
  const hooks: readonly Hook[] = config.repos[0].hooks;
  const judge = hooks.find(({ id }) => id === "neurarch-gate")!;
  const policy = hooks.find(({ id }) => id === "neurarch-gate-policy")!;
  /** As pre-commit calls it: the entry's words, then the files that its pattern takes. */
  const called = ({ entry, files }: Hook, names: readonly string[]) => {
    const [program, ...words] = entry.split(" ");
    const taken = names.filter((name) => new RegExp(files).test(name));
    const path = program!.includes("/") ? join(repository, program!) : program!;
    return taken.length === 0 ? null : ran([path, ...words, ...taken]);
  };
  beforeAll(() => {
    const own = join(repository, ".pre-commit/neurarch-gate-hook.sh");
    mkdirSync(join(repository, ".pre-commit"));
    copyFileSync(join(EXAMPLES, "pre-commit/neurarch-gate-hook.sh"), own);
    chmodSync(own, 0o755);
  });

  test("a refused job stops the commit and is told with its file", () => {
    const result = called(judge, [
      "jobs/finetune-qwen3-8b.sbatch",
      "jobs/lora-qwen3-8b.sbatch",
      "README.md",
    ])!;
    expect(result.exit).toBe(1);
    expect(result.out).toStartWith("jobs/finetune-qwen3-8b.sbatch\nRefused: Qwen/Qwen3-8B on a10g:1");
    expect(result.out).not.toContain("lora");
  });
  test("what fits, and what cannot be judged, passes without a word", () => {
    writeFileSync(join(repository, "jobs/plain.sbatch"), "#!/bin/sh\nsrun x\n");
    const files = ["jobs/lora-qwen3-8b.sbatch", "jobs/lora-qwen3-8b.sky.yaml", "jobs/plain.sbatch"];
    expect(called(judge, files)).toEqual({ exit: 0, out: "" });
  });
  test("a file that cannot be read stops it", () => {
    writeFileSync(join(repository, "jobs/b.sky.yaml"), "run: [\n");
    const result = called(judge, ["jobs/b.sky.yaml"])!;
    expect([result.exit, result.out.startsWith("jobs/b.sky.yaml\nneurarch-gate judge: ")]).toEqual([1, true]);
  });
  test("the policy file is checked when it is among the files", () => {
    writeFileSync(join(repository, ".neurarch.yml"), "version: 1\nbudgit: {}\n");
    expect(called(policy, ["src/.neurarch.yml.bak", "other.yml"])).toBeNull();
    const result = called(policy, [".neurarch.yml", "other.yml"])!;
    expect([result.exit, result.out.includes("Did you mean `budget`?")]).toEqual([4, true]);
    Bun.spawnSync(["rm", join(repository, ".neurarch.yml")]);
  });
});
