import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dir, "..");

/** Runs a program and gives its stdout; throws with what it said where it does not end with 0. */
export function run(
  argv: readonly string[],
  options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> } = {},
): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...argv], {
    cwd: options.cwd ?? ROOT,
    env: { ...process.env, ...options.env },
    stdout: "pipe",
    stderr: "pipe",
  });
  if (exitCode !== 0) {
    const said = `${stderr.toString()}${stdout.toString()}`.slice(0, 2000);
    throw new Error(`${argv.join(" ")} ended with ${exitCode}\n${said}`);
  }
  return stdout.toString();
}

export function sha256Of(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}
