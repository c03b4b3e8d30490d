import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pythonVersion } from "./release.ts";
import { ROOT } from "./shell.ts";

/** Writes package.json's version into the Python package: npm runs this when it sets a version. */
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
const path = join(ROOT, "python-shim/pyproject.toml");
const text = readFileSync(path, "utf8");
writeFileSync(path, text.replace(/^version = ".*"$/m, `version = "${pythonVersion(version)}"`));
