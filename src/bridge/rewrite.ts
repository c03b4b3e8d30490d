import { fail, ok, type Result } from "../lib/result.ts";
import { sourceIndex } from "./interpreters.ts";
import { PROJECT_TOKEN, PYTHON_TOKEN } from "./tokens.ts";

/** Where the agent sees the candidate, and what that is on the remote side, where a job starts in it. */
export const AGENT_WORKSPACE = "/workspace";
const AGENT_PACKAGE = "/opt/vibesys-evaluator-package";
const AGENT_TOOLS = "/opt/vibesys-evaluator-tools";
const REMOTE_PACKAGE = ".vibesys-evaluator-package";
const REMOTE_TOOLS = ".vibesys-evaluator-tools";
const REMOTE_PYTHON = "python3";

/** Paths of this host that stand for what is brought along. */
export interface RewritePaths {
  /** The evaluator package's folder. */
  readonly evaluatorPackage?: string;
  /** The folder that the evaluator's tools are installed in. */
  readonly tools?: string;
}

/** Why a command cannot run on the remote side. `message` ends the sentence "COMMAND ...". */
export interface RewriteProblem {
  readonly message: string;
  readonly hint: string;
}

interface Replacement {
  readonly from: string;
  readonly to: string;
  /** A path is only meant as a whole: `/workspace` is not part of `/workspaces`. */
  readonly path: boolean;
}

/**
 * The remote argument vector of a trusted command as the agent sees it: `${PROJECT_ROOT}` and `/workspace` become the
 * job's own folder, `${PYTHON}` python3, the evaluator package and tools the folders that are staged with the
 * candidate. An argument that is a JSON list of texts is rewritten inside. In the source text of an interpreter
 * (`sh -c`, `python -c`, `node -e`, `env -S`) nothing is replaced: such a path there is refused, because a replaced
 * text would be read as code.
 */
export function rewriteCommand(
  words: readonly string[],
  paths: RewritePaths = {},
): Result<readonly string[], RewriteProblem> {
  const replacements = replacementsOf(paths);
  return rewriteWords(words, replacements, 0);
}

function replacementsOf(paths: RewritePaths): readonly Replacement[] {
  const path = (from: string | undefined, to: string): Replacement[] => {
    const plain = from?.replace(/\/+$/, "");
    return plain === undefined || plain === "" ? [] : [{ from: plain, to, path: true }];
  };
  const all = [
    { from: PYTHON_TOKEN, to: REMOTE_PYTHON, path: false },
    { from: PROJECT_TOKEN, to: ".", path: false },
    ...path(paths.evaluatorPackage, REMOTE_PACKAGE),
    ...path(paths.tools, REMOTE_TOOLS),
    ...path(AGENT_PACKAGE, REMOTE_PACKAGE),
    ...path(AGENT_TOOLS, REMOTE_TOOLS),
    ...path(AGENT_WORKSPACE, "."),
  ];
  // The longest first: tools may lie within the package, and the package within the workspace.
  return all.sort((a, b) => b.from.length - a.from.length);
}

function rewriteWords(
  words: readonly string[],
  replacements: readonly Replacement[],
  depth: number,
): Result<readonly string[], RewriteProblem> {
  const source = sourceIndex(words);
  const rewritten: string[] = [];
  for (const [index, word] of words.entries()) {
    if (index === source) {
      const named = replacements.find((one) => replaceAll(word, [one]) !== word);
      if (named !== undefined)
        return fail({
          message: `names ${named.from} inside the source text of ${words[0] ?? "a program"}, where it would be read as code`,
          hint: "Pass it as an argument behind the source text, and use it there as $1 or argv.",
        });
      rewritten.push(word);
      continue;
    }
    const one = rewriteWord(word, replacements, depth);
    if (!one.ok) return one;
    rewritten.push(one.value);
  }
  return ok(rewritten);
}

function rewriteWord(
  word: string,
  replacements: readonly Replacement[],
  depth: number,
): Result<string, RewriteProblem> {
  if (replaceAll(word, replacements) === word) return ok(word);
  const nested = textList(word);
  if (nested === null || depth > 20) return ok(replaceAll(word, replacements));
  const inner = rewriteWords(nested, replacements, depth + 1);
  return inner.ok ? ok(JSON.stringify(inner.value)) : inner;
}

/** A word that is a JSON list of texts: an argument vector handed on. */
function textList(word: string): readonly string[] | null {
  if (!/^\s*\[/.test(word)) return null;
  try {
    const value: unknown = JSON.parse(word);
    return Array.isArray(value) && value.every((item) => typeof item === "string") ? value : null;
  } catch {
    return null;
  }
}

/** Replaces in one pass, so that what was put in is not looked at again. */
function replaceAll(text: string, replacements: readonly Replacement[]): string {
  let result = "";
  let index = 0;
  while (index < text.length) {
    const found = replacements.find(
      ({ from, path }) => text.startsWith(from, index) && (!path || standsAlone(text, index, from.length)),
    );
    if (found === undefined) {
      result += text[index]!;
      index++;
      continue;
    }
    result += found.to;
    index += found.from.length;
  }
  return result;
}

/** Whether a path begins and ends here, rather than being part of a longer name. */
function standsAlone(text: string, index: number, length: number): boolean {
  const before = text[index - 1];
  const after = text[index + length];
  return (
    (before === undefined || !/[A-Za-z0-9_.~/-]/.test(before)) &&
    (after === undefined || !/[A-Za-z0-9_.~-]/.test(after))
  );
}
