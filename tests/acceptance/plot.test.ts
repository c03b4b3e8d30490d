import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "./run.ts";

const folder = mkdtempSync(join(tmpdir(), "plot-"));
afterAll(() => rmSync(folder, { recursive: true }));

const size = (words: string, env: Record<string, string> = {}) =>
  run(["size", "Qwen/Qwen3-8B", "--batch", "2", ...words.split(" ").filter(Boolean)], { env });

test("--plot draws in the terminal's own signs", async () => {
  const unicode = await size("--plot", { LANG: "en_US.UTF-8" });
  expect([unicode.exit, unicode.err]).toEqual([0, ""]);
  expect(unicode.out).toMatch(/^Qwen\/Qwen3-8B: memory by batch, 2048 tokens\n/);
  expect(unicode.out).toContain("● batch 2 needs");
  const ascii = await size("--plot", { LC_ALL: "C" });
  expect(ascii.out).toContain("O batch 2 needs");
  expect(ascii.out).toMatch(/^[\n -~]*$/);
});

test("--plot-svg writes a file beside the usual answer, and - is stdout", async () => {
  const path = join(folder, "plot.svg");
  const beside = await size(`--plot-svg ${path} --json`);
  expect(JSON.parse(beside.out).batch).toBe(2);
  const alone = await size("--plot-svg -");
  expect(alone).toEqual({ exit: 0, err: "", out: readFileSync(path, "utf8") });
  expect(alone.out).toMatch(/^<svg [\s\S]*<\/svg>\n$/);
});

test("a site's own card is drawn", async () => {
  const path = join(folder, "cards.json");
  await Bun.write(path, '{"Lab96": {"gb": 96}}');
  expect((await size(`--plot --cards ${path}`)).out).toContain(" 96 GB Lab96\n");
});

const refused: readonly (readonly [string, string])[] = [
  ["--plot --json", "--plot and --json both write to stdout. Leave one out, or use --plot-svg FILE."],
  ["--plot-svg - --plot", "--plot-svg - and --plot both write to stdout. Name a file."],
  ["--plot-svg - --explain", "--plot-svg - and --explain both write to stdout. Name a file."],
  ["--plot-svg", "--plot-svg needs a value. Write `--plot-svg FILE`."],
  ["--plot-svg /nowhere/plot.svg", "/nowhere/plot.svg cannot be written: ENOENT."],
];
for (const [words, message] of refused) {
  test(`${words} is refused`, async () => {
    const { exit, out, err } = await size(words);
    const told = words.includes("--json") ? JSON.parse(out) : null;
    expect(exit).toBe(2);
    expect(told === null ? err : `neurarch-gate size: ${told.message}. ${told.hint}\n`).toBe(
      `neurarch-gate size: ${message}\n`,
    );
  });
}
