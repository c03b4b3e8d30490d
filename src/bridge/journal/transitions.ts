import { fail, ok, type Result } from "../../lib/result.ts";
import type {
  Allocation,
  EvaluationResult,
  JournalRecord,
  Phase,
  ResolvedResources,
  ResultClass,
} from "../types.ts";
import { contradiction } from "./record.ts";

/** The next record, or why the step is not allowed from where the record is. */
export type Step = Result<JournalRecord, string>;

/** What a new evaluation is made of. */
export type Prepared = Pick<
  JournalRecord,
  "invocationId" | "kind" | "requestSha256" | "snapshotSha256" | "nonce" | "jobName" | "createdMs"
>;

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

/** A known record for a client that asks again: only for the same request on the same snapshot. */
export function resume(record: JournalRecord, requestSha256: string, snapshotSha256: string): Step {
  if (record.requestSha256 !== requestSha256 || record.snapshotSha256 !== snapshotSha256)
    return fail(`invocation ${record.invocationId} was reused for another request`);
  return ok(record);
}

/** Written before `sky exec` is run: from here on a job of this name may exist. */
export function submitting(
  record: JournalRecord,
  allocation: Allocation,
  resources: ResolvedResources,
): Step {
  return from(record, ["PREPARED"], "submit", {
    phase: "SUBMITTING",
    attempt: record.attempt + 1,
    allocation,
    resources,
  });
}

/** The job's id is known. Again with the same id and cluster it changes nothing. */
export function submitted(record: JournalRecord, jobId: number, clusterName: string, nowMs: number): Step {
  if (record.allocation !== null && record.allocation.clusterName !== clusterName)
    return fail(`submitted on cluster ${clusterName}, meant for ${record.allocation.clusterName}`);
  const known = record.phase === "SUBMITTED" || record.phase === "RUNNING";
  if (known && record.remoteJobId === jobId) return ok(record);
  return from(record, ["SUBMITTING"], "be submitted", {
    phase: "SUBMITTED",
    remoteJobId: jobId,
    submittedMs: nowMs,
  });
}

/** The job was seen at work, since `startedMs`. Again it changes nothing. */
export function running(record: JournalRecord, startedMs: number): Step {
  if (record.phase === "RUNNING") return ok(record);
  return from(record, ["SUBMITTED"], "run", { phase: "RUNNING", startedMs });
}

/** Output came in or went out. Neither offset goes back, and none is delivered that was not spooled. */
export function progressed(record: JournalRecord, spooledBytes: number, deliveredBytes: number): Step {
  if (spooledBytes < record.spooledBytes) return fail("spooledBytes cannot go back");
  if (deliveredBytes < record.deliveredBytes) return fail("deliveredBytes cannot go back");
  return checked({ ...record, spooledBytes, deliveredBytes });
}

/** Somebody wants it ended; kept, so that a daemon that starts anew ends it as well. */
export function cancelRequested(record: JournalRecord): Step {
  return from(record, ["PREPARED", "SUBMITTING", "SUBMITTED", "RUNNING"], "be cancelled", {
    cancelRequested: true,
  });
}

/** It has ended, whatever the class. From PREPARED only what never ran can end. */
export function complete(record: JournalRecord, result: EvaluationResult): Step {
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

/** Infrastructure ended the attempt: back to PREPARED under the next job name, the count of attempts kept. */
export function retry(
  record: JournalRecord,
  failure: { readonly class: ResultClass; readonly seen: string },
  nonce: string,
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
