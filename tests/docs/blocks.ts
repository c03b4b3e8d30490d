import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../acceptance/run.ts";

/** Every page that a reader of the project may follow, from the root. */
export const PAGES: readonly string[] = [
  "README.md",
  "CONTRIBUTING.md",
  "python-shim/README.md",
  "examples/model-serving-rocm/README.md",
  ...readdirSync(join(ROOT, "docs"))
    .filter((name) => name.endsWith(".md"))
    .sort()
    .map((name) => `docs/${name}`),
];

/** A fenced block of a page. */
export interface Block {
  readonly page: string;
  /** Of its fence, from 1. */
  readonly line: number;
  readonly language: string;
  readonly text: string;
  /**
   * What a comment right above the fence says: `needs: WHAT` = not run here, as it needs that; `on: slurm` = run
   * beside a private cluster; `starts` = its last command goes on until it is ended. Null without one.
   */
  readonly mark: string | null;
}

export const textOf = (page: string): string => readFileSync(join(ROOT, page), "utf8");

/** The fenced blocks of a page, in order. Throws for a fence that is never closed. */
export function blocksOf(page: string): Block[] {
  const blocks: Block[] = [];
  const lines = textOf(page).split("\n");
  for (let at = 0; at < lines.length; at++) {
    const fence = /^\s*```(\w*)\s*$/.exec(lines[at]!);
    if (fence === null) continue;
    const end = lines.findIndex((line, index) => index > at && /^\s*```\s*$/.test(line));
    if (end < 0) throw new Error(`${page}:${at + 1}: a fence that is never closed`);
    const mark = /^<!-- (.*?) -->$/.exec(lines[at - 1] ?? "")?.[1] ?? null;
    const text = `${lines.slice(at + 1, end).join("\n")}\n`;
    blocks.push({ page, line: at + 1, language: fence[1]!, text, mark });
    at = end;
  }
  return blocks;
}

export const allBlocks = (): Block[] => PAGES.flatMap(blocksOf);

/**
 * A `diff` block carried out on a file's text: lines that stay and lines that go, one after the other as they stand
 * there and only there, are replaced by those that stay and those that come. A block of new lines alone goes to the end.
 */
export function patched(block: Block, text: string): string {
  const lines = block.text.trimEnd().split("\n").slice(1);
  const side = (sign: string) =>
    lines.filter((line) => line[0] === " " || line[0] === sign).map((line) => line.slice(1));
  const [before, after] = [side("-"), side("+")];
  if (before.length === 0) return `${text.replace(/\n?$/, "\n")}${after.join("\n")}\n`;
  const found = text.split(`\n${before.join("\n")}\n`);
  if (found.length !== 2)
    throw new Error(`${block.page}:${block.line}: its lines stand ${found.length - 1} times in the file`);
  return found.join(`\n${after.join("\n")}\n`);
}

/** The file a `diff` block names in its first line. */
export function patchedFile(block: Block): string {
  const name = /^--- (\S+)$/.exec(block.text.split("\n")[0]!)?.[1];
  if (name === undefined) throw new Error(`${block.page}:${block.line}: no \`--- FILE\` on top`);
  return name;
}
