import { relative, resolve } from "../host/paths.ts";
import type { Located } from "../render/findings.ts";
import type { TaskJob, TaskOutcome } from "./task.ts";

/**
 * Judged jobs with where they stand in their file, for outputs that point at lines. `file` is the name it is looked
 * for by; null for jobs that stand in none.
 */
export function located(
  jobs: readonly TaskJob[],
  outcomes: readonly TaskOutcome[],
  file: string | null,
): Located[] {
  return outcomes.map((told, index) => {
    const { where, reading } = jobs[index]!;
    const problems = reading.kind === "unreadable" ? reading.problems : [];
    return {
      told,
      file,
      candidates: where?.candidates ?? [],
      job: where?.job ?? null,
      problems: problems.map(({ from }) => (from.line === undefined ? null : { line: from.line, column: 1 })),
    };
  });
}

/**
 * A file as a code host looks for it: from the checkout's root (`GITHUB_WORKSPACE`, else the working directory) where
 * it lies within, else the whole path. Null for standard input.
 */
export function reportedPath(
  file: string | null,
  host: { readonly cwd: string; readonly env: Readonly<Record<string, string | undefined>> },
): string | null {
  if (file === null || file === "-") return null;
  const whole = resolve(host.cwd, file);
  for (const root of [host.env.GITHUB_WORKSPACE, host.cwd]) {
    if (root === undefined || root === "") continue;
    const from = relative(root, whole);
    if (from !== "" && from !== ".." && !from.startsWith("../") && !from.startsWith("/")) return from;
  }
  return whole;
}
