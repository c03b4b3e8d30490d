import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Library, RuntimePart } from "./parts.ts";
import { ROOT } from "./shell.ts";
import { BUN_VERSION } from "./targets.ts";

const RULE = "-".repeat(78);

/** The licences of everything in an executable, as one text. */
export function licencesText(libraries: readonly Library[], parts: readonly RuntimePart[]): string {
  const own = readFileSync(join(ROOT, "LICENSE"), "utf8");
  return [
    "neurarch-gate",
    "",
    own.trim(),
    ...libraries.flatMap(({ name, version, licence, text }) => [
      "",
      RULE,
      `${name} ${version} (${licence})`,
      "",
      text.trim(),
    ]),
    "",
    RULE,
    `The runtime: Bun ${BUN_VERSION} (MIT), https://github.com/oven-sh/bun`,
    "",
    "The executable holds Bun's runtime as its npm package has it, unchanged. Bun links these libraries:",
    "",
    ...parts.map(({ name, version, licence, home }) =>
      [`  ${name}${version === null ? "" : ` ${version}`}`, `    ${licence}; ${home}`].join("\n"),
    ),
    "",
    "JavaScriptCore and TinyCC are under the GNU LGPL. To use a changed one, build Bun from its sources with the",
    "changed library, and neurarch-gate from its own with that Bun as the runtime:",
    "",
    "  make cross TARGET=linux-x64 BUN_TARGET=bun RUNTIME=/path/of/that/bun OUT=dist/neurarch-gate",
    "",
  ].join("\n");
}
