import { expect, test } from "bun:test";
import { parse as parseToml } from "smol-toml";
import { parse as parseYaml } from "yaml";
import { COMMANDS } from "../../src/cli/app.ts";
import { run } from "../acceptance/run.ts";
import { allBlocks, PAGES, textOf } from "./blocks.ts";

/*
 * Every command line of ours that a page names, in a block or in a sentence, names commands and flags that are there; and
 * every block of another language is one of that language.
 */

interface Used {
  readonly at: string;
  readonly words: readonly string[];
}

/** A shell's line cut into the words of each `neurarch-gate` in it. */
function linesIn(at: string, text: string): Used[] {
  const joined = text.replace(/\\\n/g, " ").replace(/(^|\s)#.*$/gm, "");
  return [...joined.matchAll(/(?:^|[\s;|&(`])(?:dist\/)?neurarch-gate +([^\n;|&`>)#]+)/gm)].map(
    ([, rest]) => ({
      at,
      words: rest!.trim().split(/\s+/),
    }),
  );
}

const USED: readonly Used[] = PAGES.flatMap((page) => {
  const blocks = allBlocks().filter((block) => block.page === page);
  const shells = blocks.filter(({ language }) => ["sh", "bash", "console"].includes(language));
  // Of a console block only what is typed.
  const typed = shells.map(({ line, text, language }) => ({
    at: `${page}:${line}`,
    text: language === "console" ? [...text.matchAll(/^\$ .*$/gm)].map(([one]) => one).join("\n") : text,
  }));
  const prose = blocks.reduce((text, block) => text.replace(block.text, ""), textOf(page));
  // Inline code may be broken over two lines.
  const inline = [...prose.matchAll(/`(neurarch-gate [^`]+)`/g)].map(([, code]) => ({
    at: page,
    text: code!.replace(/\s+/g, " "),
  }));
  return [...typed, ...inline].flatMap(({ at, text }) => linesIn(at, text));
});

/** What is wrong with a command line; null where its command and flags are there. */
async function wrongWith(words: readonly string[]): Promise<string | null> {
  const [first = "", second = ""] = words;
  const name = [`${first} ${second}`, first].find((one) => Object.hasOwn(COMMANDS, one));
  if (name === undefined) {
    // The executable as what another command copies.
    if (first.startsWith("/")) return null;
    if (first.startsWith("--") || /^[A-Z]/.test(first)) return null;
    const group = Object.keys(COMMANDS).some((one) => one.startsWith(`${first} `));
    return group && second === "" ? null : `no command ${first} ${second}`;
  }
  const { command } = await COMMANDS[name]!();
  const own = words.slice(name.split(" ").length);
  const end = own.indexOf("--");
  for (const [index, word] of (end < 0 ? own : own.slice(0, end)).entries()) {
    // The benchmark's own flag for its result, as the campaign names it.
    if (name === "evaluate" && own[index - 1] === "benchmark") continue;
    const flag = /^\[?--([\w-]+)/.exec(word)?.[1];
    if (flag === undefined || flag === "help") continue;
    const positive = flag.startsWith("no-") ? flag.slice(3) : flag;
    if (!(flag in command.args) && !(positive in command.args)) return `${name} has no --${flag}`;
  }
  return null;
}

test("commands and flags that pages name are there", async () => {
  expect(USED.length).toBeGreaterThan(50);
  const wrong: string[] = [];
  for (const { at, words } of USED) {
    const why = await wrongWith(words);
    if (why !== null) wrong.push(`${at}: ${words.join(" ")}: ${why}`);
  }
  expect(wrong).toEqual([]);
});

test("what is not there is found", async () => {
  const rows = [
    ["judge --skypliot x", "judge has no --skypliot"],
    ["policy chek", "no command policy chek"],
    ["leger x", "no command leger x"],
    ["bridge run --sock x -- a --b", "bridge run has no --sock"],
    ["evaluate benchmark --output-json x --artefact y", "evaluate has no --artefact"],
    ["judge --no-mutate", null],
    ["bridge run -- a --b", null],
  ] as const;
  for (const [line, why] of rows) expect([line, await wrongWith(line.split(" "))]).toEqual([line, why]);
});

/** What a program says against a text; empty where it takes it. */
function refused(argv: readonly string[], text: string): string {
  const { exitCode, stderr } = Bun.spawnSync([...argv], { stdin: Buffer.from(text), stderr: "pipe" });
  return exitCode === 0 ? "" : stderr.toString();
}

/** Reads a text of a language; throws, or says what is wrong. */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  yaml: parseYaml,
  toml: parseToml,
  json: JSON.parse,
  lua: (text) => refused(["lua5.1", "-e", "assert(loadstring(io.read('*a')))"], text),
  python: (text) => refused(["python3", "-c", "import ast, sys; ast.parse(sys.stdin.read())"], text),
};

test("a policy file that is shown does what it says", async () => {
  const files = allBlocks().filter(({ language, text }) => language === "yaml" && /^version: 1$/m.test(text));
  expect(files.length).toBeGreaterThan(0);
  for (const { page, line, text } of files) {
    const { exit, out } = await run(["policy", "check", "-", "--today", "2026-11-25"], { stdin: text });
    expect([page, line, exit, out.includes("line ")]).toEqual([page, line, 0, false]);
  }
});

test("a block in another language is one of it", () => {
  const known = ["sh", "bash", "console", "diff", "text", ...Object.keys(READERS)];
  const blocks = allBlocks();
  const unknown = blocks.filter(({ language }) => !known.includes(language));
  expect(unknown.map(({ page, line }) => `${page}:${line} needs a language`)).toEqual([]);
  for (const { language, text, page, line } of blocks) {
    const said = READERS[language]?.(text);
    expect([`${page}:${line}`, typeof said === "string" ? said : ""]).toEqual([`${page}:${line}`, ""]);
  }
});
