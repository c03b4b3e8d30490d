import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative, resolve } from "node:path";

const SRC = resolve(import.meta.dir, "../src");

/** What each folder of `src/` may import besides itself: data flows one way. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  lib: [],
  facts: ["lib"],
  request: ["lib"],
  model: ["lib"],
  sizing: ["lib", "facts", "model"],
  verdict: ["lib", "facts", "request", "sizing"],
  policy: ["lib", "facts", "request", "verdict"],
  ledger: ["lib", "request", "sizing", "verdict"],
  render: ["lib", "facts", "request", "model", "sizing", "verdict", "policy", "ledger"],
  host: ["lib"],
  sources: ["lib", "facts", "model", "sizing", "host"],
  skypilot: ["lib", "facts", "request", "verdict", "render"],
  slurm: ["lib", "facts", "request", "verdict", "render"],
  gate: [
    "lib",
    "facts",
    "request",
    "model",
    "sizing",
    "verdict",
    "policy",
    "ledger",
    "render",
    "sources",
    "skypilot",
    "slurm",
    "host",
  ],
  serve: ["lib", "facts", "verdict", "ledger", "render", "skypilot", "gate", "host"],
  bridge: ["lib"],
  daemon: ["lib", "bridge", "facts", "verdict", "render", "gate", "host"],
  cli: [
    "lib",
    "facts",
    "request",
    "model",
    "sizing",
    "verdict",
    "policy",
    "ledger",
    "render",
    "sources",
    "skypilot",
    "slurm",
    "gate",
    "serve",
    "bridge",
    "daemon",
    "host",
  ],
  "main.ts": ["cli", "host"],
};

/** Packages a folder may use; everything else is ours. */
const PACKAGES: Record<string, readonly string[]> = {
  skypilot: ["yaml"],
  gate: ["valibot", "smol-toml", "yaml"],
  bridge: ["valibot", "smol-toml"],
  cli: ["citty"],
};

function filesUnder(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? filesUnder(path) : path.endsWith(".ts") ? [path] : [];
  });
}

function importsOf(text: string): string[] {
  const found = text.matchAll(
    /(?:^|\n)\s*(?:import|export)\b[^;'"]*?from\s*["']([^"']+)["']|(?:import|require)\s*\(\s*["']([^"']+)["']|(?:^|\n)\s*import\s+["']([^"']+)["']/g,
  );
  return [...found].map((match) => match[1] ?? match[2] ?? match[3] ?? "");
}

const stageOf = (path: string) => relative(SRC, path).split("/")[0] ?? "";
const files = filesUnder(SRC);

describe("the arrows between the stages", () => {
  test("every folder is listed", () => {
    expect([...new Set(files.map(stageOf))].filter((stage) => !stage.endsWith(".d.ts")).sort()).toEqual(
      Object.keys(MAY_IMPORT).sort(),
    );
  });

  for (const file of files) {
    const name = relative(SRC, file);
    test(name, () => {
      const stage = stageOf(file);
      const wrong: string[] = [];
      for (const target of importsOf(readFileSync(file, "utf8"))) {
        if (target.startsWith(".")) {
          const path = resolve(file, "..", target);
          if (!path.startsWith(SRC)) {
            // Texts carried inside the binary: the Lua filter and the Python policy.
            if (!/\.(lua|py|toml|jsonl)$/.test(path)) wrong.push(target);
            continue;
          }
          const to = stageOf(path);
          if (to !== stage && !MAY_IMPORT[stage]?.includes(to)) wrong.push(target);
        } else if (target.startsWith("node:") || target === "bun" || target.startsWith("bun:")) {
          if (stage !== "host") wrong.push(target);
        } else if (!PACKAGES[stage]?.includes(target)) {
          wrong.push(target);
        }
      }
      expect(wrong).toEqual([]);
    });

    if (stageOf(file) !== "host") {
      test(`${name} touches no process, file or clock itself`, () => {
        const code = readFileSync(file, "utf8")
          .replace(/\/\*[\s\S]*?\*\//g, "")
          .replace(/\/\/.*$/gm, "")
          .replace(/`(?:[^`\\]|\\.)*`|"(?:[^"\\\n]|\\.)*"/g, '""');
        expect(
          code.match(/\b(?:Bun\.|process\.|fetch\(|Date\.now\(|new Date\(\)|Math\.random\()/g) ?? [],
        ).toEqual([]);
      });
    }
  }
});
