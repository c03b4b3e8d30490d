import { byCodePoint } from "../bridge/staging/digest.ts";
import { exclusions, gitQuestion, ignoredPaths, pathInside } from "../bridge/staging/exclude.ts";
import { overLimits } from "../bridge/staging/limits.ts";
import { linkLeads } from "../bridge/staging/link.ts";
import { secretByName } from "../bridge/staging/secrets.ts";
import { weightsRule } from "../bridge/staging/weights.ts";
import { monotonicMs } from "../host/clock.ts";
import { yieldTurn } from "../host/copy.ts";
import { runChild } from "../host/process.ts";
import { type FileStat, type NodeKind, type Tree, targetOf } from "../host/tree.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import { shown } from "../lib/shown.ts";

/** What a workspace is staged by. */
export interface StagingRules {
  /** Absolute, without links. */
  readonly workspace: string;
  /** Never staged: hidden paths, and whatever of ours lies in the workspace (the state folder, the socket). */
  readonly hide: readonly string[];
  /** Globs of weights that are staged whatever their size. */
  readonly include: readonly string[];
  /** The environment that git is run with. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

export type Found =
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "link"; readonly path: string; readonly target: string }
  | { readonly kind: "file"; readonly path: string; readonly stat: FileStat };

/** A workspace as it stands, in the digest's order. */
export interface Scan {
  readonly found: readonly Found[];
  readonly leftOut: readonly { readonly path: string; readonly reason: string }[];
}

/** How long the loop is held at a time. */
const SLICE_MS = 8;
const GIT_TIMEOUT_MS = 60_000;
const MOST_GIT_BYTES = 64_000_000;

/** Lists what is to be staged, or says what stands in the way by name. Throws what the disk says. */
export async function scanWorkspace(tree: Tree, rules: StagingRules): Promise<Result<Scan, string>> {
  const ignored = await askGit(rules);
  if (!ignored.ok) return ignored;
  const hidden = rules.hide.map((path) => pathInside(rules.workspace, path)).filter((path) => path !== null);
  const { excludes } = exclusions(hidden, ignored.value);
  const weights = weightsRule(rules.include);
  const found: Found[] = [];
  const leftOut: { path: string; reason: string }[] = [];

  const look = (path: string, name: string, kind: NodeKind): string | null => {
    if (excludes(path, name)) return null;
    const secret = secretByName(path, name, kind === "folder");
    if (secret !== null) {
      leftOut.push({ path, reason: secret });
      return null;
    }
    if (name.includes("\ufffd")) return `workspace has a name that is not UTF-8: ${shown(path, 300)}`;
    if (kind === "special") return `workspace contains a special file: ${shown(path, 300)}`;
    if (kind === "folder") {
      found.push({ kind, path });
      folders.push(path);
    } else if (kind === "link") {
      const target = tree.linkTarget(path);
      if (target === null) return null;
      const leads = linkLeads(rules.workspace, `${rules.workspace}/${path}`, target, targetOf);
      if (leads === "outside")
        return `workspace symlink escapes the project: ${shown(path, 300)} -> ${shown(target, 200)}`;
      if (leads === "round") return `workspace symlink leads round in a circle: ${shown(path, 300)}`;
      found.push({ kind, path, target });
    } else {
      const stat = tree.stat(path);
      if (stat === null) return null;
      const weight = weights(path, name, stat.bytes);
      if (weight === null) found.push({ kind: "file", path, stat });
      else leftOut.push({ path, reason: weight });
    }
    return null;
  };

  const folders = [""];
  let sliceMs = monotonicMs();
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const { name, kind } of tree.list(folder) ?? []) {
      const problem = look(folder === "" ? name : `${folder}/${name}`, name, kind);
      if (problem !== null) return fail(problem);
      if (monotonicMs() - sliceMs < SLICE_MS) continue;
      await yieldTurn();
      sliceMs = monotonicMs();
    }
  }
  const files = found.flatMap((one) =>
    one.kind === "file" ? [{ path: one.path, bytes: one.stat.bytes }] : [],
  );
  const over = overLimits(files);
  if (over !== null) return fail(over);
  found.sort((a, b) => byCodePoint(a.path, b.path));
  leftOut.sort((a, b) => byCodePoint(a.path, b.path));
  return ok({ found, leftOut });
}

/** The paths that git ignores; none without git or outside a repository. */
async function askGit({ workspace, env }: StagingRules): Promise<Result<readonly string[], string>> {
  const answer = await runChild(gitQuestion(workspace), {
    timeoutMs: GIT_TIMEOUT_MS,
    maxBytes: MOST_GIT_BYTES,
    env: gitEnvironment(env),
  });
  if (answer.timedOut) return fail(`git did not list the ignored files of ${shown(workspace, 300)} in 60 s`);
  return ok(answer.exitCode === 0 ? ignoredPaths(answer.stdout) : []);
}

/** git answers for the workspace alone: no variable of the daemon's own repository, no lock, no network, no prompt. */
function gitEnvironment(env: StagingRules["env"]): Record<string, string | undefined> {
  const kept = Object.entries(env).filter(([name]) => !name.startsWith("GIT_"));
  return {
    ...Object.fromEntries(kept),
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
    GIT_NO_LAZY_FETCH: "1",
    LC_ALL: "C",
  };
}
