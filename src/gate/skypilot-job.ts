import { combineSkypilot } from "../facts/combine.ts";
import { envFacts } from "../facts/env.ts";
import { flagFacts } from "../facts/flags.ts";
import { labelFacts } from "../facts/labels.ts";
import { readFacts } from "../facts/read.ts";
import type { Origin } from "../facts/types.ts";
import { skypilotRequest } from "../request/skypilot.ts";
import { SENT_VARIABLE } from "../sizing/sent.ts";
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
    envs: envFacts(task.envs).map((fact) => ({ ...fact, from: originOf(task, fact.name) })),
    labels: labelFacts(task.candidates.map((candidate) => candidate.labels)),
    flags: flagFacts(flags),
  });
  const request = skypilotRequest(task, settings.table);
  const sent = task.envs[SENT_VARIABLE];
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
    rewriteCards: rewriteCards(task, names),
    rewritable: true,
    mark: mark ?? readMark(task.envs[MARK_VARIABLE] ?? ""),
    workdir: task.workdir,
    notTraining: notTraining(task, requestName),
    notes,
    ...(sent === undefined ? {} : { sentSizing: sent }),
    where: { candidates: task.places, job: task.place },
  };
}

/** Where a variable was read: a line of the file, or the flag that set it. */
function originOf(task: Task, name: string): Origin {
  const origin = task.envOrigins[name];
  if (origin === undefined) return { kind: "env", name };
  // A variable set by --env is one all the same; only the place to change it is another.
  return origin.kind === "env" ? origin : { kind: "env", name: `${name} (${origin.name})` };
}

/**
 * The cards a rewrite may name. A task that lists its cards, or that names a place whose cards nobody told us (a
 * cloud, a region, a cluster), keeps to those it asks for; an instance type fixes its cards and takes no others.
 */
function rewriteCards(task: Task, names: readonly string[]): readonly string[] | null {
  if (task.candidates.some((candidate) => candidate.instanceType !== null)) return [];
  return names.length > 1 || task.candidates.some((candidate) => candidate.infra !== null) ? names : null;
}
