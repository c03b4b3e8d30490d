import { fail, ok, type Result } from "../../lib/result.ts";
import type { Allocation, DeclaredFile, EvaluationResult, JournalRecord, Phase } from "../types.ts";
import {
  artifactProblem,
  type Check,
  isCount,
  isDigest,
  isOneOf,
  isString,
  isText,
  isWhole,
  listOf,
  nullOr,
  orAbsent,
  shapeProblem,
} from "./shape.ts";

/** SHA-256 of bytes in lower-case hex. */
export type Sha256 = (bytes: Uint8Array) => string;

const PHASES: readonly Phase[] = [
  "PREPARED",
  "SUBMITTING",
  "SUBMITTED",
  "RUNNING",
  "COMPLETED",
  "ACKNOWLEDGED",
];
const STATUSES = ["COMPLETED", "APPLICATION_FAILED", "CANCELLED"] as const;
const CLASSES = [...STATUSES, "ALLOCATION_EXPIRED", "NODE_FAILED", "PREEMPTED", "TRANSPORT_LOST"] as const;

const ALLOCATION: Record<keyof Allocation, Check> = { clusterName: isText, nodeNames: nullOr(isText) };

const RESOURCES: Record<keyof NonNullable<JournalRecord["resources"]>, Check> = {
  profileName: isText,
  infra: isText,
  acceleratorType: isText,
  nodes: isCount,
  acceleratorsPerNode: isCount,
  cpusPerNode: nullOr(isCount),
  memoryGbPerNode: nullOr((value) => (typeof value === "number" && value > 0 ? null : "a number above 0")),
  exclusive: (value) => (typeof value === "boolean" ? null : "true or false"),
  runtimeImage: nullOr(isText),
  commandPrefix: nullOr(listOf(isText)),
  allocationTime: nullOr(isText),
  remoteArtifactRoot: nullOr(isText),
  remoteArtifactRootWritten: orAbsent(isText),
};

const FILE: Record<keyof DeclaredFile, Check> = { path: isText, size: isWhole, sha256: isDigest };
const isFile: Check = (value) => shapeProblem(value, FILE);
const isLeftOut: Check = (value) => shapeProblem(value, { path: isText, reason: isText });

const RESULT: Record<keyof EvaluationResult, Check> = {
  class: isOneOf(CLASSES),
  status: isOneOf(STATUSES),
  skyExitCode: (value) => (Number.isSafeInteger(value) ? null : "a whole number"),
  exitCode: nullOr((value) => (Number.isSafeInteger(value) ? null : "a whole number")),
  artifact: () => null, // looked at by itself: its digest costs
  diagnosis: nullOr((value) => (typeof value === "string" ? null : "text")),
  clusterName: (value) => (typeof value === "string" ? null : "text"),
  jobName: isText,
  remoteJobId: isWhole,
  attempt: isWhole,
  declared: orAbsent((value) =>
    shapeProblem(value, { files: listOf(isFile), leftOut: listOf(isLeftOut), more: isWhole }),
  ),
};

const PENDING: Record<keyof NonNullable<JournalRecord["pending"]>, Check> = {
  result: (value) => shapeProblem(value, RESULT),
  folder: isText,
  stored: listOf((value) => shapeProblem(value, { ...FILE, number: isWhole })),
};

const FAILURE: Record<keyof JournalRecord["failures"][number], Check> = {
  attempt: isWhole,
  class: isOneOf(CLASSES),
  seen: (value) => (typeof value === "string" ? null : "text"),
};

const RECORD: Record<keyof JournalRecord, Check> = {
  schema: (value) => (value === 1 ? null : "1"),
  invocationId: (value) =>
    typeof value === "string" && /^[0-9a-f]{32}$/.test(value) ? null : "32 lower-case hex digits",
  kind: isOneOf(["accuracy", "benchmark"]),
  requestSha256: isDigest,
  snapshotSha256: isDigest,
  nonce: isText,
  phase: isOneOf(PHASES),
  attempt: isWhole,
  jobName: (value) =>
    typeof value === "string" && /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(value) ? null : "a job's name",
  remoteJobId: nullOr(isWhole),
  allocation: nullOr((value) => shapeProblem(value, ALLOCATION)),
  resources: nullOr((value) => shapeProblem(value, RESOURCES)),
  createdMs: isWhole,
  submittedMs: nullOr(isWhole),
  startedMs: nullOr(isWhole),
  spooledBytes: isWhole,
  deliveredBytes: isWhole,
  cancelRequested: (value) => (typeof value === "boolean" ? null : "true or false"),
  result: nullOr((value) => shapeProblem(value, RESULT)),
  failures: listOf((value) => shapeProblem(value, FAILURE)),
  request: orAbsent((value) =>
    shapeProblem(value, {
      arguments: listOf(isString),
      artifacts: listOf(isString),
      declared: orAbsent((value) =>
        shapeProblem(value, { globs: listOf(isText), maxFiles: isCount, maxBytes: isCount }),
      ),
    }),
  ),
  snapshotKey: orAbsent(isText),
  attemptsBefore: orAbsent(isWhole),
  timedOut: orAbsent((value) => (typeof value === "boolean" ? null : "true or false")),
  outputRestarts: orAbsent(isWhole),
  pending: orAbsent((value) => shapeProblem(value, PENDING)),
  mayExist: orAbsent((value) => (typeof value === "boolean" ? null : "true or false")),
};

/** A value as a record, or what is wrong with it: a missing, unknown or senseless field, or two that contradict. */
export function readRecord(value: unknown, sha256: Sha256): Result<JournalRecord, string> {
  const shape = shapeProblem(value, RECORD);
  if (shape !== null) return fail(shape);
  const record = value as JournalRecord;
  const { artifact = null } = record.result ?? record.pending?.result ?? {};
  const wrong = contradiction(record) ?? artifactProblem(artifact, sha256);
  return wrong === null ? ok(record) : fail(wrong);
}

/** What of a well-shaped record contradicts itself; null when nothing does. */
export function contradiction(record: JournalRecord): string | null {
  const { phase, result } = record;
  if (record.deliveredBytes > record.spooledBytes) return "deliveredBytes is beyond spooledBytes";
  const ended = phase === "COMPLETED" || phase === "ACKNOWLEDGED";
  if (ended !== (result !== null))
    return ended ? `${phase} has no result` : `${phase} has a result before its end`;
  if (record.pending !== undefined && phase !== "RUNNING") return `${phase} has a pending result`;
  if (phase === "PREPARED") {
    if (record.allocation !== null) return "PREPARED has an allocation";
    if (record.resources !== null) return "PREPARED has resources";
    if (record.remoteJobId !== null) return "PREPARED has a job id";
    return null;
  }
  // What was ended before anything was submitted (a cancel, infrastructure) never had resources.
  const ran = result === null || result.class === "COMPLETED" || result.class === "APPLICATION_FAILED";
  if (ran && record.resources === null) return `${phase} has no resources`;
  if (ran && record.allocation === null) return `${phase} has no allocation`;
  if (ran && record.attempt === 0) return `${phase} has attempt 0`;
  if ((phase === "SUBMITTED" || phase === "RUNNING") && record.remoteJobId === null)
    return `${phase} has no job id`;
  if (result !== null && result.artifact !== null && result.status !== "COMPLETED")
    return `${result.status} has an artifact`;
  return null;
}
