import { resolve } from "node:path";

export const ROOT = resolve(import.meta.dir, "../..");
export const BINARY = resolve(ROOT, "dist/neurarch-gate");

export interface Ran {
  readonly exit: number;
  readonly out: string;
  readonly err: string;
}

/**
 * Runs the built executable; the environment is only what is given, so a developer's own settings play no part. No
 * hub is asked unless the test says so.
 */
export async function run(
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: Record<string, string>; readonly stdin?: string } = {},
): Promise<Ran> {
  const child = Bun.spawn([BINARY, ...args], {
    cwd: options.cwd ?? ROOT,
    env: { PATH: "/usr/bin:/bin", HOME: "/nonexistent", HF_HUB_OFFLINE: "1", ...options.env },
    stdin: options.stdin === undefined ? "ignore" : new TextEncoder().encode(options.stdin),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, exit] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { exit, out, err };
}

/** As one snapshot: exit code, stdout and stderr of a whole command. */
export function shown({ exit, out, err }: Ran): string {
  return `exit ${exit}\n--- stdout\n${out}--- stderr\n${err}`;
}
