/** What of a workspace is never staged, whoever tracks it. */
export interface Exclusions {
  /** Whether the path (relative, `/` between) is left out with all below it. */
  excludes(path: string, name: string): boolean;
}

/** Left out at any depth: what tools make anew, and what the bridge writes itself. */
const NAMES: ReadonlySet<string> = new Set([
  ".cache",
  ".bin",
  ".env",
  ".git",
  ".mypy_cache",
  ".nox",
  ".pip",
  ".pytest_cache",
  ".ruff_cache",
  ".skyignore",
  ".tox",
  ".uv-cache",
  ".venv",
  ".vibesys-evaluator-package",
  ".vibesys-evaluator-toolchains",
  ".vibesys-evaluator-tools",
  "__pycache__",
  "agent.toml",
  "build",
  "dist",
  "node_modules",
]);
/** Left out at the root: the run's own records. */
const ROOT_PATHS = [".vibesys/logs", ".vibesys/state"];

/**
 * The rules by name, by hidden path, and by what git ignores. `hidden` and `ignored` are workspace paths; of a hidden
 * one everything below is left out as well. A path that git tracks is never in `ignored`.
 */
export function exclusions(hidden: readonly string[], ignored: readonly string[]): Exclusions {
  const paths = new Set([...ROOT_PATHS, ...hidden.map(plainPath), ...ignored.map(plainPath)]);
  // git names the root itself where all of the workspace lies in an ignored folder: that says nothing of its parts.
  paths.delete("");
  return {
    excludes: (path, name) => NAMES.has(name) || name.startsWith(".env") || paths.has(path),
  };
}

/** `./a//b/` as `a/b`; the root is empty. */
export function plainPath(path: string): string {
  return path
    .split("/")
    .filter((part) => part !== "" && part !== ".")
    .join("/");
}

/** A path below `workspace` as it is named inside; null for one that lies elsewhere. Both are absolute or plain. */
export function pathInside(workspace: string, path: string): string | null {
  if (!path.startsWith("/")) return plainPath(path);
  const root = `/${plainPath(workspace)}`;
  const full = `/${plainPath(path)}`;
  if (full === root) return null;
  return root === "/" ? full.slice(1) : full.startsWith(`${root}/`) ? full.slice(root.length + 1) : null;
}

/** The NUL-separated answer of `git ls-files -z`. */
export function ignoredPaths(answer: string): readonly string[] {
  return answer.split("\0").filter((path) => path !== "");
}

/** One question for all: what git ignores and does not track. No setting of the workspace may run anything in it. */
export function gitQuestion(workspace: string): readonly string[] {
  return [
    "git",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-C",
    workspace,
    "ls-files",
    "--others",
    "--ignored",
    "--exclude-standard",
    "--directory",
    "-z",
  ];
}
