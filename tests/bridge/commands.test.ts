// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the tokens are written like that
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { rewriteCommand } from "../../src/bridge/rewrite.ts";
import { quoteWords, shellWords } from "../../src/bridge/shell-words.ts";

describe("a command line split as a shell does", () => {
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ["sh interop-eval.sh", ["sh", "interop-eval.sh"]],
    ["  a\t b  ", ["a", "b"]],
    ["\n  a b\n", ["a", "b"]],
    ["a \\\n  b", ["a", "b"]],
    ["a 'b c' \"d e\" f\\ g", ["a", "b c", "d e", "f g"]],
    ["a''b'c'\"d\"", ["abcd"]],
    ["a '' \"\"", ["a", "", ""]],
    [`a 'it'"'"'s' "q\\"x\\\\y\\z"`, ["a", "it's", 'q"x\\y\\z']],
    ['a "\\$HOME" \'$HOME\' \\$x 5$ "$"', ["a", "$HOME", "$HOME", "$x", "5$", "$"]],
    ["sh -c 'a | b > c; d'", ["sh", "-c", "a | b > c; d"]],
    ["a --x={1,2} *.py ~ #b", ["a", "--x={1,2}", "*.py", "~", "#b"]],
    ['a ${PROJECT_ROOT}/x "${PYTHON}"', ["a", "${PROJECT_ROOT}/x", "${PYTHON}"]],
    [`a '["x","y z"]'`, ["a", '["x","y z"]']],
  ];
  test.each(rows)("%j", (line, words) => {
    expect(shellWords(line)).toEqual({ ok: true, value: words });
  });
  const refused: readonly (readonly [string, string])[] = [
    ["", "is empty"],
    [" \n ", "is empty"],
    ["a 'b", "single quote"],
    ['a "b', "double quote"],
    ["a \\", "backslash"],
    ["a | b", "`|`"],
    ["a && b", "`&`"],
    ["a > b", "`>`"],
    ["(a)", "`(`"],
    ["a; b", "`;`"],
    ["a\nb", "several lines"],
    ["a `b`", "backquote"],
    ['a "`b`"', "backquote"],
    ["a $HOME", "$HOME"],
    ['a "${HOME}/x"', "${HOME}"],
    ["a $(b)", "$(...)"],
    ["a $1", "$1"],
  ];
  test.each(refused)("%j is refused", (line, why) => {
    const words = shellWords(line);
    expect(words.ok ? "" : words.error.message).toContain(why);
  });
  test("any words come back from their quoted line, also from a real shell", () => {
    const word = fc.string({ unit: "grapheme" }).map((text) => text.replaceAll("\0", "").toWellFormed());
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 5 }), (words) => {
        const line = quoteWords(words);
        expect(shellWords(line)).toEqual({ ok: true, value: words });
      }),
    );
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 5 }), (words) => {
        const { stdout } = Bun.spawnSync(["sh", "-c", `printf '%s\\0' ${quoteWords(words)}`]);
        expect(stdout.toString()).toBe(`${words.join("\0")}\0`);
      }),
      { numRuns: 30 },
    );
  });
});

const ROOT = "${PROJECT_ROOT}";
const PYTHON = "${PYTHON}";
const PATHS = { evaluatorPackage: "/srv/pkg/", tools: "/srv/pkg/tools" };

describe("a trusted command on the remote side", () => {
  const rows: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ["the candidate's token", ["x", ROOT, `${ROOT}/a`, `--w=${ROOT}`], ["x", ".", "./a", "--w=."]],
    [
      "the candidate's folder",
      ["x", "/workspace", "/workspace/a", "--w=/workspace/a:/workspace"],
      ["x", ".", "./a", "--w=./a:."],
    ],
    [
      "a folder with a longer name",
      ["x", "/workspaces/a", "/data/workspace", "/workspace.old"],
      ["x", "/workspaces/a", "/data/workspace", "/workspace.old"],
    ],
    ["Python", [PYTHON, "-m", "x"], ["python3", "-m", "x"]],
    [
      "the package",
      ["sh", "/srv/pkg/check.sh", "/opt/vibesys-evaluator-package/x"],
      ["sh", ".vibesys-evaluator-package/check.sh", ".vibesys-evaluator-package/x"],
    ],
    [
      "tools within the package",
      ["/srv/pkg/tools/bin/t", "/opt/vibesys-evaluator-tools/t"],
      [".vibesys-evaluator-tools/bin/t", ".vibesys-evaluator-tools/t"],
    ],
    ["a list in an argument", ["x", `[ "sh", "${ROOT}/a b" ]`], ["x", '["sh","./a b"]']],
    [
      "a list in a list",
      ["x", JSON.stringify(["y", JSON.stringify([`${ROOT}/z`])])],
      ["x", '["y","[\\"./z\\"]"]'],
    ],
    ["a list without a path, as it was", ["x", '[ "a" ]'], ["x", '[ "a" ]']],
    ["no list of texts", ["x", `["${ROOT}", 1]`], ["x", '[".", 1]']],
    ["source text without a path", ["sh", "-c", 'cd "$1"', "sh", ROOT], ["sh", "-c", 'cd "$1"', "sh", "."]],
    ["a script's own -c", ["python3", "x.py", "-c", `${ROOT}/c.toml`], ["python3", "x.py", "-c", "./c.toml"]],
    ["a module's own -c", ["python3", "-m", "x", "-c", ROOT], ["python3", "-m", "x", "-c", "."]],
    ["a shell's script", ["bash", "-e", `${ROOT}/x.sh`, "-c", ROOT], ["bash", "-e", "./x.sh", "-c", "."]],
    ["an assignment of env", ["env", `A=${ROOT}`, "sh", "-c", "x"], ["env", "A=.", "sh", "-c", "x"]],
    ["env's folder", ["env", "-C", ROOT, "make"], ["env", "-C", ".", "make"]],
    ["what was put in is not looked at again", ["x", `${PYTHON}${ROOT}`], ["x", "python3."]],
    ["nothing", [], []],
  ];
  test.each(rows)("%s", (_, words, expected) => {
    expect(rewriteCommand(words, PATHS)).toEqual({ ok: true, value: expected });
  });

  const refused: readonly (readonly [string, readonly string[]])[] = [
    ["sh -c", ["sh", "-c", `cd ${ROOT}`]],
    ["a shell by its path", ["/usr/bin/bash", "-c", `cd ${ROOT}`]],
    ["options in one word", ["bash", "-lc", `cd ${ROOT}`]],
    ["options before", ["bash", "-o", "pipefail", "-e", "-c", `cd ${ROOT}`]],
    ["options behind", ["sh", "-c", "-e", `cd ${ROOT}`]],
    ["the package", ["sh", "-c", "/srv/pkg/x"]],
    ["a tool", ["sh", "-c", "/opt/vibesys-evaluator-tools/x"]],
    ["the candidate's folder", ["sh", "-c", "cd /workspace && x"]],
    ["Python in a shell", ["sh", "-c", `${PYTHON} x`]],
    ["python -c", ["python3", "-c", `open("${ROOT}")`]],
    ["python with options", ["python3.11", "-u", "-W", "ignore", "-Ic", `open("${ROOT}")`]],
    ["python by its token", [PYTHON, "-c", `open("${ROOT}")`]],
    ["python in one word", ["python", `-copen("${ROOT}")`]],
    ["node -e", ["node", "-e", `x("${ROOT}")`]],
    ["node -p", ["nodejs", "--no-warnings", "-p", `"${ROOT}"`]],
    ["node --eval=", ["node", `--eval=x("${ROOT}")`]],
    ["env -S", ["env", "-S", `sh ${ROOT}/x`]],
    ["env -S in one word", ["env", `-Ssh ${ROOT}/x`]],
    ["env --split-string=", ["/usr/bin/env", `--split-string=sh ${ROOT}`]],
    ["behind env's options", ["env", "-i", "-u", "A", "-C", "/x", "B=1", "sh", "-c", `cd ${ROOT}`]],
    ["behind env's end of options", ["env", "--", "A=1", "sh", "-c", `cd ${ROOT}`]],
    ["behind two of them", ["env", "A=1", "env", "-i", "sh", "-c", `cd ${ROOT}`]],
    ["in a list", ["x", JSON.stringify(["sh", "-c", `cd ${ROOT}`])]],
  ];
  test.each(refused)("source text of %s is refused", (_, words) => {
    const rewritten = rewriteCommand(words, PATHS);
    if (rewritten.ok) throw new Error(`it became ${quoteWords(rewritten.value)}`);
    expect(rewritten.error.message).toContain("inside the source text of");
    expect(rewritten.error.hint).toContain("as an argument");
  });
  test("a rewritten command is left as it is", () => {
    const word = fc
      .array(fc.constantFrom(ROOT, "/workspace", "/", "a", ".", " ", "["), { maxLength: 6 })
      .map((all) => all.join(""));
    fc.assert(
      fc.property(fc.array(word, { maxLength: 4 }), (words) => {
        const once = rewriteCommand(["x", ...words]);
        if (!once.ok) throw new Error(once.error.message);
        for (const one of once.value) expect(one).not.toContain(ROOT);
        expect(once.value.length).toBe(words.length + 1);
      }),
    );
  });
});
