import { statSync } from "node:fs";

/**
 * What tells this executable from any other build, one installed over it included: its size and when it was
 * written and installed (packages of builds that can be repeated are all written at one time). Null where the program runs from its sources, which change without it.
 */
export function programIdentity(): string | null {
  if (!Bun.isStandaloneExecutable) return null;
  try {
    const { size, mtimeMs, ctimeMs } = statSync(process.execPath);
    return `${size}-${mtimeMs}-${ctimeMs}`;
  } catch {
    return null;
  }
}
