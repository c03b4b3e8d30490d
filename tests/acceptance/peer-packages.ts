import { expect, test } from "bun:test";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "./run.ts";

const PACKAGES = ["neurarch-slurm==0.1.0", "neurarch-skypilot==0.1.1"];
export const VENV = join(ROOT, ".cache/peer");
export const HELPER = join(VENV, "bin/neurarch-slurm");
export const OFFLINE = { HF_HUB_OFFLINE: "1" };
export const python3 = Bun.which("python3");
export const skyPython = process.env.NEURARCH_TEST_SKY_PYTHON;
const CI = process.env.CI === "true";

/** Installs the published packages into a venv of their own; throws with pip's words where that fails. */
export function install(): void {
  const inVenv = (args: string[]) =>
    Bun.spawnSync(args, { stdout: "pipe", stderr: "pipe", env: { PATH: process.env.PATH, HOME: tmpdir() } });
  const check = [join(VENV, "bin/python"), "-c", "import neurarch_slurm, neurarch_skypilot"];
  if (existsSync(HELPER) && inVenv(check).success) return;
  rmSync(VENV, { recursive: true, force: true });
  mkdirSync(join(ROOT, ".cache"), { recursive: true });
  for (const step of [
    [python3!, "-m", "venv", VENV],
    [join(VENV, "bin/pip"), "install", "-q", "--disable-pip-version-check", ...PACKAGES],
  ]) {
    const done = inVenv(step);
    if (!done.success) throw new Error(`${step.join(" ")}: ${done.stderr}${done.stdout}`);
  }
}

/** What a machine has to have: left out where it has not, but not under CI. */
export function needed(name: string, there: boolean): boolean {
  if (!there) test.skipIf(!CI)(name, () => expect(name).toBe("there"));
  return there;
}
