import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pythonVersion } from "./release.ts";
import { ROOT } from "./shell.ts";

/** The files of the Python package that name its version. */
export const VERSIONED = ["pyproject.toml", "neurarch_gate/__init__.py"];

/** Writes a version into the Python package in `folder`. */
export function setPythonVersion(folder: string, version: string): void {
  for (const name of VERSIONED) {
    const path = join(folder, name);
    const line = /^(version|__version__) = (["']).*\2$/m;
    writeFileSync(path, readFileSync(path, "utf8").replace(line, `$1 = $2${pythonVersion(version)}$2`));
  }
}

// npm runs this file when it sets a version.
if (import.meta.main) {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
  setPythonVersion(join(ROOT, "python-shim"), version);
}
