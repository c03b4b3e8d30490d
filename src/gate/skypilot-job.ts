import { combineSkypilot } from "../facts/combine.ts";
import { envFacts } from "../facts/env.ts";
import { flagFacts } from "../facts/flags.ts";
import { labelFacts } from "../facts/labels.ts";
import { readFacts } from "../facts/read.ts";
import { skypilotRequest } from "../request/skypilot.ts";
import { MARK_VARIABLE, type RewriteMark, readMark } from "../skypilot/rewrite-mark.ts";
import type { Task } from "../skypilot/task.ts";
import { notTraining } from "../skypilot/user-request.ts";
import type { Settings } from "./settings.ts";
import type { TaskJob } from "./task.ts";
import { SKYPILOT_WORDS } from "./words.ts";

/**
 * A SkyPilot task as a task to judge. `requestName` is what SkyPilot calls the request it comes with; null for a
 * task read from a file. `mark` is what an earlier rewrite of the file noted about this task.
 */
export function skypilotJob(
  task: Task,
  requestName: string | null,
  flags: Readonly<Record<string, string>>,
  notes: readonly string[],
  settings: Settings,
  mark: RewriteMark | null = null,
): TaskJob {
  const combined = combineSkypilot({
    envs: envFacts(task.envs).map((fact) => ({ ...fact, from: task.envOrigins[fact.name] ?? fact.from })),
    labels: labelFacts(task.candidates.map((candidate) => candidate.labels)),
    flags: flagFacts(flags),
  });
  const request = skypilotRequest(task, settings.table);
  const names = request.candidates.map((candidate) => candidate.accelerator);
  return {
    name: task.name,
    reading: readFacts(combined.raw, {
      unknownKeys: "ignore",
      siteDefaults: settings.factDefaults,
      notes: combined.notes,
    }),
    request,
    words: SKYPILOT_WORDS,
    unreadable: "refuse",
    tasks: 1,
    useSpot: task.useSpot,
    fallbackHours: null,
    // A task that lists its cards, or runs on a cluster whose cards nobody told us, keeps to the cards it names.
    rewriteCards: names.length > 1 || task.candidates.some(onOwnCluster) ? names : null,
    mark: mark ?? readMark(task.envs[MARK_VARIABLE] ?? ""),
    notTraining: notTraining(task, requestName),
    notes,
  };
}

/** Whether a candidate is bound to a cluster of fixed hardware (Slurm, Kubernetes, SSH nodes) and not to a cloud. */
function onOwnCluster(candidate: Task["candidates"][number]): boolean {
  return /^(slurm|kubernetes|k8s|ssh)(\/|$)/i.test(candidate.infra ?? "");
}
