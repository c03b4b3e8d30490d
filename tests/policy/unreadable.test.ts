import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, copyFileSync, linkSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BINARY } from "../acceptance/run.ts";
import { scratch } from "../outputs/support.ts";

/*
 * A `.neurarch.yml` that cannot be read never loosens a verdict, never refuses a job, and keeps no submit waiting. Each row
 * is a waiver (or a card list) that would count if it were read, spoilt in one way; the executable runs as a user without
 * rights, since root reads everything.
 */

const NOBODY = 65_534;
const folder = scratch();
const bin = join(folder.path, "neurarch-gate");
afterAll(() => folder.remove());

const today = new Date().toISOString().slice(0, 10);
/** It would let the refused job through, and refuse the one that fits. */
const COUNTS = `version: 1
waivers:
  - {rule: admission/request-does-not-fit, owner: ops, reason: a test, created: ${today}}
budget: {max_params: 10B}
rules: {admission/over-requested: "off"}
`;

type Make = (path: string) => void;
const text =
  (content: string | Uint8Array): Make =>
  (path) =>
    writeFileSync(path, content);

/** Nine anchors, each nine times the one before: read in full it is some hundred million values. */
const BOMB = `policy:\n  a0: &a0 [x, x, x, x, x, x, x, x, x]\n${Array.from(
  { length: 9 },
  (_, level) => `  a${level + 1}: &a${level + 1} [${Array(9).fill(`*a${level}`).join(", ")}]\n`,
).join("")}${COUNTS.replace("owner: ops", "owner: ops, model: *a9")}`;

/** How it is spoilt, and whether the job is told why when the file is only found (a file that is none is passed by). */
const ROWS: readonly (readonly [name: string, make: Make, told: boolean])[] = [
  ["a FIFO that nobody writes", (path) => void Bun.spawnSync(["mkfifo", path]), false],
  ["a directory", (path) => mkdirSync(path), false],
  ["a link to itself", (path) => symlinkSync(path, path), false],
  ["a link to nothing", (path) => symlinkSync("/nowhere", path), false],
  ["a link to a device without end", (path) => symlinkSync("/dev/zero", path), false],
  ["10 MB", text(`${COUNTS}# ${"x".repeat(10_000_000)}\n`), true],
  ["binary", text(new Uint8Array(4096).map((_, index) => (index * 37) % 256)), true],
  ["UTF-16", text(new Uint8Array(Buffer.from(`\ufeff${COUNTS}`, "utf16le"))), true],
  ["a null character", text(`${COUNTS}\0`), true],
  ["aliases that double themselves", text(BOMB), true],
  ["an alias inside itself", text(`${COUNTS}policy: &a [*a]\n`), true],
  ["lists within lists", text(`${COUNTS}policy: ${"[".repeat(20_000)}${"]".repeat(20_000)}\n`), true],
  ["no permission", (path) => writeFileSync(path, COUNTS, { mode: 0 }), true],
  ["half of it", text(COUNTS.slice(0, COUNTS.indexOf("created") + 4)), true],
  ["a key twice", text(`${COUNTS}version: 1\n`), true],
  ["a later version", text(COUNTS.replace("version: 1", "version: 2")), true],
  ["a limit that is none", text(COUNTS.replace("10B", "lots")), true],
  ["a severity that is none", text(COUNTS.replace('"off"', "loud")), true],
  [
    "patterns without end",
    text(COUNTS.replace("owner: ops", `owner: ops, model: "${"{a,b}".repeat(40)}"`)),
    false,
  ],
  ["a list in place of a mapping", text("- version: 1\n"), true],
  ["no YAML", text("{{{{ : ]\n"), true],
];

interface Ran {
  readonly exit: number | null;
  readonly out: string;
  readonly ms: number;
}

function ran(args: readonly string[], cwd: string): Ran {
  const startMs = performance.now();
  const root = process.getuid?.() === 0;
  // A group of its own too: the files above belong to root's.
  const argv = root
    ? ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups", bin, ...args]
    : [bin, ...args];
  const { exitCode, stdout } = Bun.spawnSync(argv, {
    cwd,
    env: { PATH: "/usr/bin:/bin:/usr/sbin", HOME: "/nonexistent", HF_HUB_OFFLINE: "1" },
    stdout: "pipe",
    stderr: "pipe",
    timeout: 20_000,
  });
  return { exit: exitCode, out: stdout.toString(), ms: performance.now() - startMs };
}

const script = (gres: string, model: string) =>
  `#!/bin/sh\n#SBATCH --gres=gpu:${gres}\n#NEURARCH model=${model} batch=1 seq-len=512\nsrun x\n`;

beforeAll(() => {
  copyFileSync(BINARY, bin);
  chmodSync(bin, 0o755);
  chmodSync(folder.path, 0o755);
});

function repository(name: string, make: Make | null): string {
  const root = join(folder.path, name);
  mkdirSync(join(root, ".git"), { recursive: true });
  writeFileSync(join(root, "big.sbatch"), script("a10g:1", "Qwen/Qwen3-8B"));
  writeFileSync(join(root, "fits.sbatch"), script("t4:1", "gpt2"));
  writeFileSync(join(root, "large.sbatch"), script("h200:8", "meta-llama/Llama-3.1-70B"));
  make?.(join(root, ".neurarch.yml"));
  return root;
}

const submit = (job: string) => ["slurm", "--script", job, "--mode", "reject"];
const decision = ({ out }: Ran) => out.split("\n")[0];

describe("a policy file that cannot be read", () => {
  test("read, it would count: the control", () => {
    const root = repository("control", text(COUNTS));
    expect(ran(submit("big.sbatch"), root).out).toMatch(
      /^decision=warn\n.*Allowed: waived in \.neurarch\.yml by ops/,
    );
    const bare = repository("bare", null);
    expect(decision(ran(submit("big.sbatch"), bare))).toBe("decision=reject");
    expect(decision(ran(submit("fits.sbatch"), bare))).toBe("decision=allow");
  });

  ROWS.forEach(([name, make, told], index) => {
    test(name, () => {
      const root = repository(`row-${index}`, make);
      const bare = join(folder.path, "bare");
      const named = ["--policy-file", join(root, ".neurarch.yml")];
      for (const more of [[], named]) {
        const refused = ran([...submit("big.sbatch"), ...more], root);
        const fits = ran([...submit("fits.sbatch"), ...more], root);
        // Nothing is let through for it, and nothing is refused for it.
        expect([refused.exit, decision(refused)]).toEqual([0, "decision=reject"]);
        expect([fits.exit, decision(fits)]).toEqual([0, "decision=allow"]);
        expect(refused.out).not.toContain("waived");
        // The verdict is the one without a file, to the letter, but for the line that tells of the file.
        const without = (one: Ran) =>
          one.out
            .split("\n")
            .filter((line) => !/not applied|does not apply|does not concern|never applies/.test(line));
        expect(without(refused)).toEqual(without(ran(submit("big.sbatch"), bare)));
        if (told || more.length > 0) {
          expect(fits.out + refused.out).toContain("Neurarch: .neurarch.yml");
          expect(
            refused.out.split("\n").filter((line) => line.includes(".neurarch.yml")).length,
          ).toBeLessThanOrEqual(2);
        }
        // Far from any deadline: a submit takes some 30 ms, and this machine may be busy.
        expect(Math.max(refused.ms, fits.ms)).toBeLessThan(5_000);
        const judged = ran(["judge", "--slurm", "big.sbatch", ...more], root);
        expect(judged.exit).toBe(1);
      }
    });
  });

  test("a second name of somebody else's file, in a folder that everybody may write", () => {
    const shared = join(folder.path, "shared");
    mkdirSync(shared);
    chmodSync(shared, 0o1777);
    writeFileSync(join(shared, "own.yml"), COUNTS);
    linkSync(join(shared, "own.yml"), join(shared, ".neurarch.yml"));
    writeFileSync(join(shared, "big.sbatch"), script("a10g:1", "Qwen/Qwen3-8B"));
    // Root's own file counts; what a stranger dropped there does not.
    expect(decision(ran(submit("big.sbatch"), shared))).toBe("decision=warn");
    if (process.getuid?.() !== 0) return;
    Bun.spawnSync(["chown", "12345", join(shared, ".neurarch.yml")]);
    expect(decision(ran(submit("big.sbatch"), shared))).toBe("decision=reject");
  });
});
