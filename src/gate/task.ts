import type { FactsReading, JobFacts } from "../facts/types.ts";
import type { Place } from "../lib/place.ts";
import type { Told } from "../render/json.ts";
import { messagesOf, noteLine, unreadableMessages } from "../render/messages.ts";
import type { Telling, Words } from "../render/types.ts";
import { type GpuRequest, isJudged } from "../request/types.ts";
import type { Unsized } from "../sizing/types.ts";
import type { RewriteMark } from "../skypilot/rewrite-mark.ts";
import { judgeRequest, unsizedRequest } from "../verdict/decide.ts";
import type { JudgeSettings } from "../verdict/types.ts";
import type { PolicyOf } from "./policy.ts";
import type { Settings } from "./settings.ts";
import type { SizeJob } from "./size.ts";

/** One job or task as an adapter read it. */
export interface TaskJob {
  readonly name: string | null;
  readonly reading: FactsReading;
  readonly request: GpuRequest;
  readonly words: Words;
  /** What a fact that cannot be read comes to: SkyPilot refuses, Slurm lets the job through. */
  readonly unreadable: "refuse" | "unjudged";
  /** Array tasks; 1 without an array. */
  readonly tasks: number;
  readonly useSpot: boolean;
  /** Hours that stand in where the job names none. */
  readonly fallbackHours: number | null;
  readonly rewriteCards: readonly string[] | null;
  /** The folder that the job says it runs from, where it says so: its policy file may lie there. */
  readonly workdir?: string | null;
  /** A rewritten request can be handed back: not to Slurm, which has no way to take it. */
  readonly rewritable: boolean;
  /** What an earlier rewrite noted about the request that is there now; null without one. */
  readonly mark: RewriteMark | null;
  /** Why it is not training (it serves, it is SkyPilot's own), a sentence; null for a training job. */
  readonly notTraining: string | null;
  /** What was noticed while the job was read, sentences. */
  readonly notes: readonly string[];
  /** The size that the job's client sent with it, as text; absent without one. */
  readonly sentSizing?: string;
  /** Where its request stands in the file that was read, for reports that point at a line; absent without a file. */
  readonly where?: JobPlace;
}

/** The places of a job in its file. */
export interface JobPlace {
  /** Of each candidate as it was written, in the request's order; null where it stands nowhere. */
  readonly candidates: readonly (Place | null)[];
  /** Of the whole request, or of the job where it makes none. */
  readonly job: Place | null;
}

/** What judging one job came to. */
export interface TaskOutcome extends Told {
  /** Refused only because it could not be judged and the site fails closed. */
  readonly closed: boolean;
  /** Nothing that needs telling at submit time: no model named, no card asked, not training, and no note. */
  readonly silent: boolean;
  /** The policy file that was applied, or could not be; absent without one. */
  readonly policyFile?: string;
}

/**
 * Judges one job: the one way from facts and request to a decision, whatever scheduler they came from.
 * `size` finds and sizes the model, `policyOf` the policy file; everything else is pure.
 */
export async function judgeTask(
  job: TaskJob,
  settings: Settings,
  size: SizeJob,
  policyOf: PolicyOf,
): Promise<TaskOutcome> {
  const { request, reading } = job;
  const notes = [...job.notes, ...reading.notes, ...request.notes].map(noteLine);
  const aside = (reason: string, why: string): TaskOutcome => ({
    task: job.name,
    closed: false,
    decision: "unjudged",
    messages: [noteLine(`not judged: ${why}`), ...notes],
    request,
    result: null,
    reason,
    telling: null,
    silent: notes.length === 0,
  });
  if (job.notTraining !== null) return aside("not-training", job.notTraining);
  if (request.candidates.length === 0) return aside("no-accelerator", "no accelerator is asked for.");
  if (reading.kind === "none") {
    const outcome = aside("no-model", `the job names no model. ${job.words.namingModel}`);
    // A note may say the same already, and where.
    return notes.some((note) => note.endsWith("not judged.")) ? { ...outcome, messages: notes } : outcome;
  }
  if (reading.kind === "unreadable") return unreadable(job, reading, notes);

  const { facts } = reading;
  const mark = markInForce(job, facts);
  const policy = await policyOf(job.workdir ?? null);
  const mutate = settings.mutate && job.rewritable;
  const rewriteCards = mark?.among ?? job.rewriteCards;
  const judging: JudgeSettings = {
    table: settings.table,
    headroom: settings.headroom,
    maxCostUsd: settings.maxCostUsd,
    mutate,
    tasks: job.tasks,
    useSpot: job.useSpot,
    fallbackHours: job.fallbackHours,
    rewriteCards: policy !== null && mutate ? policy.rewriteCards(rewriteCards) : rewriteCards,
    wholeNodes: request.wholeNode === true,
  };
  // Where no candidate can be judged there is nothing to size for.
  const own = request.candidates.some(isJudged) ? await size(facts) : null;
  const { sized, notes: sentNotes } =
    own === null || job.sentSizing === undefined
      ? { sized: own, notes: [] }
      : (await import("./client-sizing.ts")).orSent(own, job.sentSizing, facts, settings);
  const judged = sized?.ok
    ? judgeRequest({ facts, ...sized.value, globalBatches: heldBatches(mark) }, request, judging)
    : unsizedRequest(sized?.error ?? NOTHING_TO_SIZE, request);
  const params = sized?.ok ? sized.value.sizing.params : null;
  const applied = policy?.apply({ facts, params, request, result: judged, settings: judging });
  const result = applied?.result ?? judged;
  const telling: Telling = {
    facts,
    sizing: sized?.ok ? sized.value.sizing : null,
    settings: judging,
    words: job.words,
    admitsUnjudged: !settings.failClosed,
  };
  const closed = settings.failClosed && result.decision === "unjudged";
  return {
    task: job.name,
    closed,
    decision: closed ? "refuse" : result.decision,
    messages: [
      ...messagesOf(result, request, telling),
      ...(applied?.notes ?? []).map(noteLine),
      ...(telling.sizing?.cautions ?? []).map(noteLine),
      ...sentNotes.map(noteLine),
      ...notes,
    ],
    request,
    result,
    reason: null,
    telling,
    silent: false,
    ...(policy === null ? {} : { policyFile: policy.path }),
  };
}

/** The mark of an earlier rewrite, as long as neither the batch nor any of the requests was changed since. */
function markInForce(job: TaskJob, facts: JobFacts): RewriteMark | null {
  const { mark, request } = job;
  const known = (label: string) => mark?.requests.some(({ to }) => to === label) === true;
  const holds = facts.batch.value === mark?.batch && request.candidates.every(({ label }) => known(label));
  return holds ? mark : null;
}

/** The global batches that rewritten requests had before, by their label now. */
function heldBatches(mark: RewriteMark | null): ReadonlyMap<string, number> {
  return new Map((mark?.requests ?? []).map(({ to, globalBatch }) => [to, globalBatch]));
}

const NOTHING_TO_SIZE: Unsized = { reason: "sizing-failed", message: "No candidate could be judged." };

function unreadable(
  job: TaskJob,
  reading: Extract<FactsReading, { kind: "unreadable" }>,
  notes: readonly string[],
): TaskOutcome {
  const unresolved = reading.unresolved === true;
  const refuses = job.unreadable === "refuse" && !unresolved;
  const then = refuses ? "Correct it and resubmit." : "Not judged; allowed unchecked.";
  return {
    task: job.name,
    closed: false,
    decision: refuses ? "refuse" : "unjudged",
    messages: [...unreadableMessages(reading.problems, then), ...notes],
    request: job.request,
    result: null,
    reason: unresolved ? "unresolved-variable" : "facts-unreadable",
    telling: null,
    silent: false,
  };
}
