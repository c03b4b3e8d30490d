import { mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { runtimeOf } from "./registry.ts";
import type { Release } from "./release.ts";
import { ROOT, run } from "./shell.ts";
import type { Target } from "./targets.ts";

/** What `--target` of the compiler calls it. */
const compilerName = ({ name }: Target) => `bun-${name}`;

/**
 * Builds the executable of a target with the flags of the Makefile, and gives its path. The program inside is named
 * after the file it is written to, so that one is always the same and renamed afterwards.
 */
export function compile(target: Target, { version, commit, epoch }: Release, folder: string): string {
  const work = join(folder, `.${target.name}`);
  mkdirSync(work, { recursive: true });
  const out = join(work, "neurarch-gate");
  const words = [
    `TARGET=${target.name}`,
    `BUN_TARGET=${compilerName(target)}`,
    `RUNTIME=${runtimeOf(target)}`,
    `COMMIT=${commit}`,
    `VERSION=${version}`,
    `OUT=${out}`,
  ];
  run(["make", "-s", "cross", ...words], { cwd: ROOT, env: { SOURCE_DATE_EPOCH: String(epoch) } });
  const path = join(folder, `neurarch-gate-${version}-${target.name}`);
  renameSync(out, path);
  rmSync(work, { recursive: true });
  return path;
}
