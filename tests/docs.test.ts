import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { COMMANDS } from "../src/cli/app.ts";
import { FACT_SPECS } from "../src/facts/keys.ts";
import { LUA_SETTINGS } from "../src/slurm/lua.ts";

const ROOT = join(import.meta.dir, "..");
const PAGES = [
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  "python-shim/README.md",
  ...readdirSync(join(ROOT, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];
const textOf = (page: string) => readFileSync(join(ROOT, page), "utf8");

/** A heading's anchor as the usual renderers make it. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} -]/gu, "")
    .replaceAll(" ", "-");

test.each(PAGES)("%s: every link into the project leads somewhere", (page) => {
  const broken = [...textOf(page).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].filter(
    ([, path = "", anchor]) => {
      const target = path === "" ? page : normalize(join(dirname(page), path));
      if (!existsSync(join(ROOT, target))) return true;
      const headings = [...textOf(target).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchorOf(heading!));
      return anchor !== undefined && !headings.includes(anchor);
    },
  );
  expect(broken.map(([link]) => link)).toEqual([]);
});

test("the README leads to the pages that everyone needs, and docs/README.md to every one", () => {
  const main = ["README", "slurm", "skypilot", "policy", "sizing", "security", "facts", "commands"];
  const readme = textOf("README.md");
  expect(main.filter((name) => !readme.includes(`(docs/${name}.md`))).toEqual([]);
  const index = textOf("docs/README.md");
  const pages = readdirSync(join(ROOT, "docs")).filter(
    (name) => name.endsWith(".md") && name !== "README.md",
  );
  expect(pages.filter((name) => !index.includes(`](${name})`))).toEqual([]);
});

test("the README is a screen or three, and what has grown has a page", () => {
  expect(textOf("README.md").split("\n").length).toBeLessThan(150);
});

test("the table of docs/commands.md has every command, and no other", () => {
  const table = /\| command \|[\s\S]*?\n\n/.exec(textOf("docs/commands.md"))![0];
  const named = [...table.matchAll(/^\| (.*?) \|/gm)]
    .slice(2)
    .flatMap(([, cell]) => [...cell!.matchAll(/`([a-z-]+(?: [a-z-]+)?)[^`]*`/g)].map(([, name]) => name!));
  const commands = Object.keys(COMMANDS);
  const plain = named.map((name) => (commands.includes(name) ? name : name.split(" ")[0]!));
  expect(plain.sort()).toEqual(commands.sort());
});

test("README and docs/facts.md have every fact with every value and its default; docs/slurm.md every setting", () => {
  const facts = textOf("docs/facts.md");
  for (const { flag, env } of FACT_SPECS) expect(facts).toContain(`| \`${flag}\` | \`${env}\` |`);
  // In the README a row may have two facts.
  const table = /\| fact \|[\s\S]*?\n\n/.exec(textOf("README.md"))![0];
  const rows = [...table.matchAll(/^\| (`.*?) \|(.*)$/gm)];
  const flags = rows.flatMap(([, cell]) => [...cell!.matchAll(/`([a-z-]+)`/g)].map(([, flag]) => flag!));
  expect(flags.sort()).toEqual(FACT_SPECS.map(({ flag }) => flag).sort());
  for (const { flag, form } of FACT_SPECS) {
    const values = form.kind === "choice" ? form.values : form.kind === "switch" ? ["on", "off"] : [];
    const row = rows.find(([, cell]) => cell!.includes(`\`${flag}\``))!;
    expect([flag, values.filter((value) => !row[2]!.includes(`\`${value}\``))]).toEqual([flag, []]);
    const full = facts.split("\n").find((line) => line.startsWith(`| \`${flag}\` `))!;
    const named = form.kind === "switch" ? [] : values;
    expect([flag, named.filter((value) => !full.includes(`\`${value}\``))]).toEqual([flag, []]);
  }
  const settings = [...textOf("docs/slurm.md").matchAll(/^\| `([a-z_]+)` +\|/gm)].map(([, name]) => name!);
  expect(settings.sort()).toEqual(Object.keys(LUA_SETTINGS).sort());
});

test("docs/commands.md has every exit code with its meaning, and docs/outputs.md every output", async () => {
  const { REPORTS } = await import("../src/render/reports.ts");
  const table = /\| code \|[\s\S]*?\n\n/.exec(textOf("docs/commands.md"))![0];
  const codes = [...table.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  expect(codes).toEqual([0, 1, 2, 3, 4, 5, 10, 70]);
  const outputs = [...textOf("docs/outputs.md").matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
  expect(outputs).toEqual(["human", "json", ...Object.keys(REPORTS)]);
});

test("docs/skypilot.md: every setting it names is one", () => {
  const page = textOf("docs/skypilot.md");
  const shim = textOf("python-shim/neurarch_gate/__init__.py");
  const own = textOf("examples/cluster_policy.py") + page;
  const set = [...own.matchAll(/^ {4}([a-z_]+) = /gm)].map(([, name]) => name!);
  const table = /\| attribute, variable \|[\s\S]*?\n\n/.exec(page)![0];
  const named = [...table.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell]) =>
    [...cell!.replace(/\(.*?\)/g, "").matchAll(/`([a-z_]+)`/g)].map(([, name]) => name!),
  );
  expect(named.length).toBeGreaterThan(6);
  for (const name of [...set, ...named]) expect(shim).toMatch(new RegExp(`^    ${name} = `, "m"));
});
