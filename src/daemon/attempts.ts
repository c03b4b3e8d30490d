import { retry } from "../bridge/journal/transitions.ts";
import type { EvaluationResult, ResultClass } from "../bridge/types.ts";
import { type Outcome, problem } from "./context.ts";
import type { Evaluation } from "./evaluation.ts";

const WORDS: Partial<Record<ResultClass, string>> = {
  ALLOCATION_EXPIRED: "Allocation expired",
  NODE_FAILED: "Node failed",
  PREEMPTED: "Allocation was preempted",
};

/**
 * Infrastructure ended an attempt. Within the bound the next one follows; beyond it the call ends with an error, and
 * the evaluation stands where a new call begins it anew with a bound of its own.
 */
export async function lostAttempt(
  evaluation: Evaluation,
  lost: ResultClass,
  seen: string,
): Promise<Outcome | null> {
  const { context, record } = evaluation;
  const { retries } = context.campaign;
  const used = record.attempt - (record.attemptsBefore ?? 0);
  const again = used < 1 + retries && !context.closing.aborted;
  const sinceMs = record.startedMs ?? record.submittedMs;
  const after = sinceMs === null ? "" : ` after ${Math.round((context.nowMs() - sinceMs) / 1000)} s`;
  const what = `${WORDS[lost] ?? lost}${after}`;
  await evaluation.step((now) =>
    retry(now, { class: lost, seen: seen.slice(0, 500) }, context.randomHex(16), !again),
  );
  if (context.closing.aborted)
    return { kind: "problem", problem: problem("RuntimeError", "the bridge is closing") };
  if (!again) {
    return {
      kind: "problem",
      problem: problem(
        "RuntimeError",
        `${what} (${lost}); all ${used} attempts of this call were lost to infrastructure. The next call begins anew.`,
      ),
    };
  }
  if (record.cancelRequested) return null;
  evaluation.say(
    `${what}; retrying on a new allocation (attempt ${used + 1} of ${1 + retries}). Output starts again.`,
  );
  return null;
}

/** The result of what was cancelled before a job was there. */
export function notStarted(evaluation: Evaluation): EvaluationResult {
  const { record, context } = evaluation;
  return {
    class: "CANCELLED",
    status: "CANCELLED",
    skyExitCode: 103,
    exitCode: null,
    artifact: null,
    diagnosis: "Cancelled before it was started.",
    clusterName: context.clusterName,
    jobName: record.jobName,
    remoteJobId: 0,
    attempt: record.attempt,
  };
}
