import type { PolicyOf } from "./policy.ts";
import type { Settings } from "./settings.ts";
import type { SizeJob } from "./size.ts";
import { judgeTask, type TaskJob, type TaskOutcome } from "./task.ts";

/** Judges the jobs of a file in order, one after another: they share caches and a deadline each. */
export async function judgeAll(
  jobs: readonly TaskJob[],
  settings: Settings,
  size: SizeJob,
  policyOf: PolicyOf,
): Promise<TaskOutcome[]> {
  const outcomes: TaskOutcome[] = [];
  for (const job of jobs) outcomes.push(await judgeTask(job, settings, size, policyOf));
  return outcomes;
}
