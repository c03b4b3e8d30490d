import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BINARY, ROOT, run } from "./run.ts";

const folder = mkdtempSync(join(tmpdir(), "gate-host-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SCRIPT = join(ROOT, "examples/finetune-qwen3-8b.sbatch");
const SUBMIT = `${BINARY} slurm --script ${SCRIPT} --gres gpu:a10g:1`;
const REFUSED = /^decision=warn\nmessage=Neurarch: Qwen\/Qwen3-8B needs 339\.4 GB .* Submitted anyway\.\n$/;

/** A shell line under a hostile host; what the submit prints and how it ends. */
async function shell(line: string, cwd = folder, env: Record<string, string> = {}) {
  const child = Bun.spawn(["bash", "-c", line], {
    cwd,
    env: { PATH: "/usr/bin:/bin", ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, exit] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { out, err, exit };
}

describe("a host in a poor state", () => {
  const rows: readonly (readonly [name: string, line: string])[] = [
    ["no HOME", SUBMIT],
    ["a HOME that is a file", `HOME=/etc/passwd ${SUBMIT}`],
    ["a working directory that is gone", `mkdir gone && cd gone && rmdir ../gone && ${SUBMIT}`],
    ["closed standard input", `${SUBMIT} <&-`],
    ["closed standard error", `${SUBMIT} 2>&-`],
    ["few files", `ulimit -n 16; ${SUBMIT}`],
    [
      "foreign variables",
      `NEURARCH_MODE=reject NEURARCH_MUTATE=1 NEURARCH_BATCH=x NODE_OPTIONS=--bogus ${SUBMIT}`,
    ],
    ["a cache that is a file", `touch c; XDG_CACHE_HOME=$PWD/c HF_HOME=$PWD/c ${SUBMIT}`],
  ];
  for (const [name, line] of rows) {
    test(name, async () => {
      const { out, exit } = await shell(line);
      expect(out).toMatch(REFUSED);
      expect(exit).toBe(0);
    });
  }

  test("a hostile working directory is not read", async () => {
    const hostile = join(folder, "hostile");
    mkdirSync(hostile);
    writeFileSync(join(hostile, "evil.js"), 'console.log("EVIL"); process.exit(9);');
    writeFileSync(join(hostile, "bunfig.toml"), 'preload = ["./evil.js"]\n');
    writeFileSync(join(hostile, ".env"), "NEURARCH_BATCH=1\nBUN_OPTIONS=--preload ./evil.js\n");
    writeFileSync(join(hostile, "tsconfig.json"), '{"compilerOptions": {"paths": {"*": ["./evil.js"]}}}');
    writeFileSync(join(hostile, "package.json"), '{"type": "commonjs", "imports": {"#x": "./evil.js"}}');
    const { out, exit } = await shell(SUBMIT, hostile);
    expect(out).toMatch(REFUSED);
    expect(exit).toBe(0);
  });

  test("an answer that cannot be written is told, but a submit goes on", async () => {
    const judged = await shell(`${BINARY} judge --model gpt2 --request T4:1 --batch 1 >/dev/full`);
    expect({ exit: judged.exit, err: judged.err }).toEqual({
      exit: 70,
      err: "neurarch-gate: the answer could not be written: ENOSPC.\n",
    });
    expect(await shell(`${SUBMIT} >/dev/full`)).toEqual({ out: "", err: "", exit: 0 });
  });

  test("a reader that goes away is no error", async () => {
    expect(await shell(`set -o pipefail; ${BINARY} cards | head -1 >/dev/null`)).toEqual({
      out: "",
      err: "",
      exit: 0,
    });
  });

  test("a large answer arrives whole through a slow pipe", async () => {
    const { out } = await shell(`${BINARY} print-lua | { sleep 0.3; wc -c; }`);
    const direct = await run(["print-lua"]);
    expect(Number(out)).toBe(new TextEncoder().encode(direct.out).length);
  });
});
