import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";

/** The file that a command's first word starts: a path as it is, a bare name looked up on `PATH`; null = none. */
export function findProgram(name: string, env: Readonly<Record<string, string | undefined>>): string | null {
  if (name === "") return null;
  if (name.includes("/")) return isProgram(resolve(name)) ? resolve(name) : null;
  for (const folder of (env.PATH ?? "").split(delimiter)) {
    const path = join(folder === "" ? "." : folder, name);
    if (isProgram(path)) return path;
  }
  return null;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
