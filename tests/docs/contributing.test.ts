import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../acceptance/run.ts";
import { type Block, blocksOf, patched, patchedFile, textOf } from "./blocks.ts";

/*
 * CONTRIBUTING followed to the letter in a copy of the project: each way to add something is the change it shows in one
 * file of src/ and a row of a test. The rows fail before the change and pass after it.
 */

const copy = mkdtempSync(join(tmpdir(), "gate-contributing-"));
afterAll(() => rmSync(copy, { recursive: true, force: true }));

const DIFFS = blocksOf("CONTRIBUTING.md").filter(({ language }) => language === "diff");
const inTests = (diff: Block) => patchedFile(diff).startsWith("tests/");

/** The sections that show a change, and the tests that its last block runs. */
const SECTIONS = textOf("CONTRIBUTING.md")
  .split(/^## /m)
  .filter((section) => section.includes("```diff"))
  .map((section) => ({
    name: section.split("\n")[0]!,
    command: /bun test (tests\/\S+)/.exec(section)?.[1] ?? "",
  }));

beforeAll(() => {
  // What is type-checked, and what it carries.
  const { include } = JSON.parse(readFileSync(join(ROOT, "tsconfig.json"), "utf8"));
  for (const folder of [...include, "lua", "python-shim", "schemas"])
    cpSync(join(ROOT, folder), join(copy, folder), { recursive: true });
  for (const file of ["package.json", "tsconfig.json", "biome.json", "bunfig.toml", ".gitignore"])
    copyFileSync(join(ROOT, file), join(copy, file));
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
  // The executable, as the copy's own sources run.
  mkdirSync(join(copy, "dist"));
  const program = join(copy, "dist/neurarch-gate");
  writeFileSync(program, `#!/bin/sh\nexec ${process.execPath} ${copy}/src/main.ts "$@"\n`);
  chmodSync(program, 0o755);
});

function carryOut(diffs: readonly Block[]): void {
  for (const diff of diffs) {
    const file = join(copy, patchedFile(diff));
    writeFileSync(file, patched(diff, readFileSync(file, "utf8")));
  }
}

function ran(argv: readonly string[]) {
  const env = { PATH: "/usr/bin:/bin", HOME: copy, CI: "true" };
  const { exitCode, stdout, stderr } = Bun.spawnSync([...argv], {
    cwd: copy,
    env,
    stdout: "pipe",
    stderr: "pipe",
  });
  return { exit: exitCode, text: `${stdout}${stderr}` };
}

/** What a section's tests come to, without colour. */
const tested = (path: string) => ran([process.execPath, "test", path]);
const failures = (text: string) => Number(/^ *(\d+) fail$/m.exec(text)![1]);

describe("each change is of one file of src/ and one row of a test", () => {
  test("a card, a family and an output are shown", () => {
    expect(SECTIONS.map(({ name }) => name)).toEqual([
      "Adding a card",
      "Adding a model family",
      "Adding an output format",
    ]);
    expect(
      DIFFS.map((diff) => [inTests(diff), diff.text.split("\n").slice(1).join("\n").includes("\n-")]),
    ).toEqual(
      SECTIONS.flatMap(() => [
        [false, false],
        [true, false],
      ]),
    );
  });
  test("before the change the rows fail", () => {
    carryOut(DIFFS.filter(inTests));
    for (const { name, command } of SECTIONS.slice(0, 2))
      expect([name, failures(tested(command).text) > 0]).toEqual([name, true]);
    // A format's row is read only once there is such an output.
    expect(ran(["dist/neurarch-gate", "judge", "--slurm", "x", "--output", "gitlab"]).text).toContain(
      "is `gitlab`, not one of",
    );
  }, 300_000);
  test("after it they pass, and nothing else breaks there", () => {
    carryOut(DIFFS.filter((diff) => !inTests(diff)));
    for (const { name, command } of SECTIONS) {
      const { exit, text } = tested(command);
      if (exit !== 0) throw new Error(`${name}: ${text}`);
      expect(failures(text)).toBe(0);
    }
    expect(tested("tests/outputs/formats.test.ts").text).toContain("(pass) gitlab");
  }, 300_000);
  test("what is shown is in the project's format, and its types hold", () => {
    const changed = DIFFS.map(patchedFile).filter((file) => file.endsWith(".ts"));
    const { exit, text } = ran(["node_modules/.bin/biome", "check", ...changed]);
    expect([exit, exit === 0 ? "" : text]).toEqual([0, ""]);
    const types = ran(["node_modules/.bin/tsc", "--noEmit"]);
    expect([types.exit, types.text]).toEqual([0, ""]);
  }, 300_000);
});
