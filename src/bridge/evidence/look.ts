import type { Allocation } from "../types.ts";
import { type FailureKind, failureKind } from "./failure-text.ts";
import type { ClusterFound, ClusterState, JobState, QueueFound } from "./views.ts";

/** What the newest questions to sky, asked after a log had ended or instead of reading it, found. */
export interface Look {
  /** `missing` = a complete queue without the job; null = nobody could say. */
  readonly jobState: JobState | "missing" | null;
  readonly cluster: ClusterState | null;
  /** sky answered from memory. */
  readonly stale: boolean;
  /** How many answers in a row did not have the cluster: one proves nothing. */
  readonly absentAnswers: number;
  /** Whether the cluster is the allocation that the job was given to; `unknown` where sky does not name nodes. */
  readonly allocation: "same" | "other" | "unknown";
  /** What texts around the answers say, the newest that says anything. */
  readonly said: FailureKind | null;
}

/** Sums one round of questions up. `problems`: texts of calls that failed (redacted or not, they are only read). */
export function lookOf(found: {
  readonly queue: QueueFound | null;
  readonly cluster: ClusterFound | null;
  readonly problems?: readonly string[];
  readonly job: { readonly id: number | null; readonly name: string };
  readonly remembered: Allocation | null;
  readonly absentAnswers: number;
}): Look {
  const { queue, cluster, job, remembered } = found;
  const row =
    queue === null
      ? undefined
      : (queue.jobs.find((each) => each.id === job.id && each.name === job.name) ??
        queue.jobs.find((each) => each.name === job.name));
  const names = cluster?.nodeNames ?? null;
  const known = remembered?.nodeNames ?? null;
  const texts = [
    ...(found.problems ?? []),
    ...(cluster?.stale === true ? [cluster.notice] : []),
    ...(queue?.complete === false ? [queue.notice] : []),
  ];
  const kinds = texts.map(failureKind).filter((kind) => kind !== "other");
  return {
    jobState: row?.state ?? (queue?.complete === true ? "missing" : null),
    cluster: cluster?.state ?? null,
    stale: cluster?.stale ?? false,
    absentAnswers: found.absentAnswers,
    allocation: names === null || known === null ? "unknown" : names === known ? "same" : "other",
    said: kinds[0] ?? (texts.length > 0 ? "other" : null),
  };
}
