import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { globProblem, matchesName, matchesPath, neverMatches } from "../../src/policy/glob.ts";

const NAMES: readonly (readonly [pattern: string, name: string, expected: boolean])[] = [
  ["Qwen/Qwen3-8B", "Qwen/Qwen3-8B", true],
  ["qwen/qwen3-8b", "Qwen/Qwen3-8B", false],
  ["Qwen/*", "Qwen/Qwen3-8B", true],
  ["*", "Qwen/Qwen3-8B", true],
  ["*", "", true],
  ["*8B", "Qwen/Qwen3-8B", true],
  ["*8", "Qwen/Qwen3-8B", false],
  ["Qwen/Qwen?-8B", "Qwen/Qwen3-8B", true],
  ["Qwen/Qwen?-8B", "Qwen/Qwen-8B", false],
  ["Qwen/Qwen[23]-8B", "Qwen/Qwen3-8B", true],
  ["Qwen/Qwen[!23]-8B", "Qwen/Qwen3-8B", false],
  ["Qwen/Qwen[0-9]-8B", "Qwen/Qwen3-8B", true],
  ["a[]]b", "a]b", true],
  ["a[a-]b", "a-b", true],
  ["Qwen/Qwen3-{4,8}B", "Qwen/Qwen3-8B", true],
  ["Qwen/Qwen3-{4,8}B", "Qwen/Qwen3-14B", false],
  ["{a,{b,c}d}e", "cde", true],
  ["{a,{b,c}d}e", "de", false],
  ["a{b}c", "a{b}c", true],
  ["a{b,c", "a{b,c", true],
  ["a\\*b", "a*b", true],
  ["a\\*b", "axb", false],
  ["a.b", "axb", false],
  ["a+", "aa", false],
  ["(a|b)", "a", false],
  ["gpu-*", "gpu-dev", true],
  ["日本*", "日本語", true],
  ["?", "😀", true],
];

const PATHS: readonly (readonly [pattern: string, path: string, expected: boolean])[] = [
  ["jobs/train.sbatch", "jobs/train.sbatch", true],
  ["./jobs/train.sbatch", "jobs/train.sbatch", true],
  ["jobs/*", "jobs/train.sbatch", true],
  ["jobs/*", "jobs/a/train.sbatch", false],
  ["jobs/**", "jobs/a/b/train.sbatch", true],
  ["jobs/**/train.sbatch", "jobs/train.sbatch", true],
  ["jobs/**/train.sbatch", "jobs/a/b/train.sbatch", true],
  ["jobs/**/train.sbatch", "jobs/pretrain.sbatch", false],
  ["**/train.sbatch", "train.sbatch", true],
  ["**/train.sbatch", "a/b/train.sbatch", true],
  ["**/train.sbatch", "a/retrain.sbatch", false],
  ["**", "a/b", true],
  ["jobs/", "jobs/a/b", true],
  ["jobs/", "other/jobs", false],
  ["jobs", "jobs/a", false],
  ["*.sbatch", "a/b/c.sbatch", true],
  ["*.sbatch", "c.sh", false],
  ["/train.sbatch", "train.sbatch", false],
  ["/repo/**", "/repo/jobs/a", true],
  ["jobs/?.sh", "jobs/a.sh", true],
  ["jobs?a.sh", "jobs/a.sh", false],
  ["jobs[/]a.sh", "jobs/a.sh", false],
  ["{jobs,tests}/*.sh", "tests/a.sh", true],
];

describe("globs", () => {
  for (const [pattern, name, expected] of NAMES)
    test(`${pattern} and the name ${name}`, () => expect(matchesName(pattern, name)).toBe(expected));
  for (const [pattern, path, expected] of PATHS)
    test(`${pattern} and the path ${path}`, () => expect(matchesPath(pattern, path)).toBe(expected));
  for (const [pattern, problem] of [
    ["", "is empty"],
    ["a[b", "has a [ without its ]"],
    ["{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "has braces that stand for more than 32 words"],
    ["x".repeat(301), "is longer than 300 characters"],
  ] as const)
    test(`${pattern.slice(0, 20)} ${problem}`, () => {
      expect(globProblem(pattern)).toBe(problem);
      expect(matchesName(pattern, pattern)).toBe(false);
    });
  test("a pattern without signs matches itself and nothing else", () => {
    const plain = fc
      .string({ unit: "grapheme", minLength: 1, maxLength: 30 })
      .map((text) => text.replace(/[*?[\]{}\\]/g, "x"));
    fc.assert(
      fc.property(plain, plain, (a, b) => {
        expect(matchesName(a, a)).toBe(true);
        expect(matchesName(a, b)).toBe(a === b);
      }),
    );
  });
  test("agrees with a regular expression on stars and question marks", () => {
    const letter = fc.constantFrom("a", "b", "*", "?");
    const pattern = fc.array(letter, { minLength: 1, maxLength: 8 }).map((parts) => parts.join(""));
    const text = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 8 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(pattern, text, (glob, name) => {
        const expression = new RegExp(`^${glob.replaceAll("*", ".*").replaceAll("?", ".")}$`);
        expect(matchesName(glob, name)).toBe(expression.test(name));
      }),
      { numRuns: 500 },
    );
  });
  test("stars upon stars take no time", () => {
    const started = performance.now();
    expect(matchesName("*a".repeat(150), `${"a".repeat(1000)}b`)).toBe(false);
    expect(performance.now() - started).toBeLessThan(2000);
  });
});

describe("patterns that match nothing", () => {
  const rows: readonly (readonly [string, "model" | "path" | "cluster", boolean])[] = [
    ["Qwen/*", "model", false],
    [" Qwen/*", "model", true],
    ["https://huggingface.co/Qwen/Qwen3-8B", "model", true],
    ["a[z-a]", "model", true],
    ["a[z-ab]", "model", false],
    ["gpu/dev", "cluster", true],
    ["gpu-*", "cluster", false],
    ["../jobs/*", "path", true],
    ["jobs//a", "path", true],
    ["jobs\\a.sh", "path", true],
    ["jobs/**", "path", false],
  ];
  for (const [pattern, of, never] of rows)
    test(`${of} ${pattern}`, () => expect(neverMatches(pattern, of) !== null).toBe(never));
});
