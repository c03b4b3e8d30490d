import { fail, ok, type Result } from "../../lib/result.ts";
import type {
  Allocation,
  EvaluationResult,
  JournalRecord,
  PendingResult,
  Phase,
  ResolvedResources,
  ResultClass,
} from "../types.ts";
import { contradiction } from "./record.ts";

/**
 * The next record, or why the step is not allowed from where the record is. Nothing else makes a record: what is kept
 * has come about by these steps.
 */
export type Step = Result<JournalRecord, string>;

/** What a new evaluation is made of. */
export type Prepared = Pick<
  JournalRecord,
  "invocationId" | "kind" | "requestSha256" | "snapshotSha256" | "nonce" | "jobName" | "createdMs"
> &
  Pick<Partial<JournalRecord>, "request" | "snapshotKey">;

/** A new record, nothing submitted yet. */
export function prepare(from: Prepared): JournalRecord {
  return {
    schema: 1,
    ...from,
    phase: "PREPARED",
    attempt: 0,
    remoteJobId: null,
    allocation: null,
    resources: null,
    submittedMs: null,
    startedMs: null,
    spooledBytes: 0,
    deliveredBytes: 0,
    cancelRequested: false,
    result: null,
    failures: [],
  };
}

/**
 * A known record for a client that asks again while nothing is submitted: it takes the workspace and the command as they
 * are now. `anew` = no call is under way, so a cancellation was of one that is over.
 */
export function askedAgain(
  record: JournalRecord,
  now: Pick<JournalRecord, "requestSha256" | "snapshotSha256"> & Pick<Partial<JournalRecord>, "snapshotKey">,
  anew: boolean,
): Step {
  return from(record, ["PREPARED"], "take another candidate", {
    ...now,
    ...(anew ? { cancelRequested: false, timedOut: false } : {}),
  });
}

/**
 * Written before `sky exec` is run: from here on a job of the record's name may exist. `nowMs` is kept as the moment of
 * submission, however late its answer comes: a cluster that was launched after it is not the one that was meant.
 */
export function submitting(
  record: JournalRecord,
  allocation: Allocation,
  resources: ResolvedResources,
  nowMs: number,
): Step {
  return from(record, ["PREPARED"], "submit", {
    phase: "SUBMITTING",
    attempt: record.attempt + 1,
    allocation,
    resources,
    submittedMs: nowMs,
  });
}

/**
 * Proof that there is no job of this attempt: it never was, so it does not count. Its name and nonce stay: should the
 * job show up after all, it is found by them and not submitted twice (`mayExist`).
 */
export function takenBack(record: JournalRecord): Step {
  return from(record, ["SUBMITTING"], "be taken back", {
    phase: "PREPARED",
    attempt: Math.max(0, record.attempt - 1),
    allocation: null,
    resources: null,
    submittedMs: null,
    mayExist: true,
  });
}

/** The job's id is known. Again with the same id and cluster it changes nothing. */
export function submitted(record: JournalRecord, jobId: number, clusterName: string): Step {
  if (record.allocation !== null && record.allocation.clusterName !== clusterName)
    return fail(`submitted on cluster ${clusterName}, meant for ${record.allocation.clusterName}`);
  const known = record.phase === "SUBMITTED" || record.phase === "RUNNING";
  if (known && record.remoteJobId === jobId) return ok(record);
  return from(record, ["SUBMITTING"], "be submitted", {
    phase: "SUBMITTED",
    remoteJobId: jobId,
    mayExist: false,
  });
}

/** The job was seen at work, since `startedMs`. Again it changes nothing. */
export function running(record: JournalRecord, startedMs: number): Step {
  if (record.phase === "RUNNING") return ok(record);
  return from(record, ["SUBMITTED"], "run", { phase: "RUNNING", startedMs });
}

/** The queue tells that the job began later than it was thought to. */
export function began(record: JournalRecord, startedMs: number): Step {
  return from(record, ["RUNNING"], "begin later", { startedMs });
}

/** The cluster's log contradicts what was read of it: its output goes into another spool from its start. */
export function outputRestarted(record: JournalRecord): Step {
  return from(record, ["SUBMITTED", "RUNNING"], "have its output read anew", {
    outputRestarts: (record.outputRestarts ?? 0) + 1,
    spooledBytes: 0,
    deliveredBytes: 0,
  });
}

/** Somebody wants it ended; kept, so that a daemon that starts anew ends it as well. */
export function cancelRequested(record: JournalRecord, byTimeout = false): Step {
  return from(record, ["PREPARED", "SUBMITTING", "SUBMITTED", "RUNNING"], "be cancelled", {
    cancelRequested: true,
    ...(byTimeout ? { timedOut: true } : {}),
  });
}

/** The program has ended, and files of it are still on the cluster. */
export function ended(record: JournalRecord, pending: PendingResult): Step {
  return from(record, ["RUNNING"], "wait for its files", { pending });
}

/** It has ended, whatever the class. From PREPARED only what never ran can end. */
export function complete({ pending: _, ...record }: JournalRecord, result: EvaluationResult): Step {
  return from(record, ["PREPARED", "SUBMITTING", "SUBMITTED", "RUNNING"], "complete", {
    phase: "COMPLETED",
    result,
  });
}

/** The client has the result. Again it changes nothing. */
export function acknowledge(record: JournalRecord): Step {
  if (record.phase === "ACKNOWLEDGED") return ok(record);
  return from(record, ["COMPLETED"], "be acknowledged", { phase: "ACKNOWLEDGED" });
}

/**
 * Infrastructure ended the attempt: back to PREPARED under the next job name, the count of attempts kept. `isLast` = the
 * call has used up its attempts, and those of the next call are counted from here.
 */
export function retry(
  record: JournalRecord,
  failure: { readonly class: ResultClass; readonly seen: string },
  nonce: string,
  isLast = false,
  jobName: string = nextJobName(record.jobName),
): Step {
  if (jobName === record.jobName) return fail(`a retry needs another job name than ${jobName}`);
  return from(record, ["SUBMITTING", "SUBMITTED", "RUNNING"], "be retried", {
    phase: "PREPARED",
    jobName,
    nonce,
    remoteJobId: null,
    allocation: null,
    resources: null,
    submittedMs: null,
    startedMs: null,
    spooledBytes: 0,
    deliveredBytes: 0,
    outputRestarts: 0,
    ...(isLast ? { attemptsBefore: record.attempt } : {}),
    failures: [...record.failures, { attempt: record.attempt, ...failure }],
  });
}

/** `…-a1` becomes `…-a2`. */
export function nextJobName(jobName: string): string {
  const [, stem, attempt] = /^(.*)-a(\d+)$/.exec(jobName) ?? [];
  return stem === undefined ? `${jobName}-a2` : `${stem}-a${Number(attempt) + 1}`;
}

function from(
  record: JournalRecord,
  phases: readonly Phase[],
  what: string,
  change: Partial<JournalRecord>,
): Step {
  if (!phases.includes(record.phase))
    return fail(`invocation ${record.invocationId} is ${record.phase} and cannot ${what}`);
  return checked({ ...record, ...change });
}

function checked(record: JournalRecord): Step {
  const wrong = contradiction(record);
  return wrong === null ? ok(record) : fail(`invocation ${record.invocationId}: ${wrong}`);
}
