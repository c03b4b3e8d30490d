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
  ...readdirSync(join(ROOT, "docs")).map((name) => `docs/${name}`),
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

test("the README leads to every page of docs/", () => {
  const readme = textOf("README.md");
  expect(PAGES.filter((page) => page.startsWith("docs/") && !readme.includes(`(${page}`))).toEqual([]);
});

test("the README's table has every command, and no other", () => {
  const table = /## Commands\n([\s\S]*?)\n## /.exec(textOf("README.md"))![1]!;
  const named = [...table.matchAll(/^\| (.*?) \|/gm)]
    .slice(2)
    .flatMap(([, cell]) => [...cell!.matchAll(/`([a-z-]+(?: [a-z-]+)?)[^`]*`/g)].map(([, name]) => name!));
  const commands = Object.keys(COMMANDS);
  const plain = named.map((name) => (commands.includes(name) ? name : name.split(" ")[0]!));
  expect(plain.sort()).toEqual(commands.sort());
});

test("the README's table has every fact with its variable, and docs/slurm.md every setting of the filter", () => {
  const readme = textOf("README.md");
  for (const { flag, env } of FACT_SPECS) expect(readme).toContain(`| \`${flag}\` | \`${env}\` |`);
  const settings = [...textOf("docs/slurm.md").matchAll(/^\| `([a-z_]+)` +\|/gm)].map(([, name]) => name!);
  expect(settings.sort()).toEqual(Object.keys(LUA_SETTINGS).sort());
});

test("docs/skypilot.md: every command of ours parses, and every setting it names is one", async () => {
  const page = textOf("docs/skypilot.md");
  const shim = textOf("python-shim/neurarch_gate/__init__.py");
  const lines = [...page.matchAll(/^neurarch-gate (.+)$|`neurarch-gate ([^`]+)`/gm)];
  const used = lines.map(([, line, inline]) => (line ?? inline)!.split(" "));
  expect(used.length).toBeGreaterThan(4);
  for (const [name, ...words] of used) {
    const { args } = (await COMMANDS[name!]!()).command;
    const flags = words.filter((word) => word.startsWith("--")).map((word) => word.slice(2));
    expect(flags.filter((flag) => !(flag in args))).toEqual([]);
  }
  const own = textOf("examples/cluster_policy.py") + page;
  const set = [...own.matchAll(/^ {4}([a-z_]+) = /gm)].map(([, name]) => name!);
  const table = /\| attribute, variable \|[\s\S]*?\n\n/.exec(page)![0];
  const named = [...table.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell]) =>
    [...cell!.replace(/\(.*?\)/g, "").matchAll(/`([a-z_]+)`/g)].map(([, name]) => name!),
  );
  expect(named.length).toBeGreaterThan(6);
  for (const name of [...set, ...named]) expect(shim).toMatch(new RegExp(`^    ${name} = `, "m"));
});
