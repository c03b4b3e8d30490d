import { allocationSeconds } from "../bridge/campaign/allocation-time.ts";
import { classify, type Verdict } from "../bridge/evidence/classify.ts";
import { type Look, lookOf } from "../bridge/evidence/look.ts";
import { lostAttempt } from "./attempts.ts";
import { type Outcome, problem } from "./context.ts";
import type { Evaluation } from "./evaluation.ts";
import { conclude } from "./gather.ts";
import { resultOf } from "./result.ts";
import type { LogsEnd, SkyProblem } from "./types.ts";

/** What a failed call comes to, in words that the evidence table reads. */
const SAID: Readonly<Record<SkyProblem["kind"], string>> = {
  transport: "Connection refused",
  timeout: "Connection timed out",
  certificate: "Certificate has expired",
  "no-cluster": "ClusterDoesNotExist",
  "missing-cli": "",
  refused: "",
  output: "",
};

/** What one round of questions found, and what the evidence table needs besides. */
interface Seen {
  readonly look: Look;
  readonly relaunched: boolean;
  readonly endsMs: number | null;
}

/**
 * What a log's end, or the state that a job was found in, comes to: a result, another attempt, or null where the log
 * is to be followed (again). What cannot be told is looked at again with growing pauses, and in the end left to a
 * later call; nothing is decided on a lost connection alone.
 */
export async function decide(evaluation: Evaluation, end: LogsEnd | null): Promise<Outcome | null> {
  const { context } = evaluation;
  const { limits } = context;
  const startMs = context.awakeMs();
  let waitMs = limits.reconnectMs;
  let seen: Seen | null = null;
  let told = false;
  for (;;) {
    const { record } = evaluation;
    const verdict = classify({
      logs: end,
      look: seen?.look ?? null,
      cancelRequested: record.cancelRequested,
      hasSetup: false,
      relaunched: seen?.relaunched ?? false,
      endsMs: seen?.endsMs ?? null,
      nowMs: context.nowMs(),
    });
    switch (verdict.next) {
      case "finish":
        return await conclude(evaluation, resultOf(evaluation, verdict, end), end);
      case "retry":
        return await lost(evaluation, verdict);
      case "follow":
        await evaluation.pauseBeforeFollowing();
        return null;
    }
    if (seen !== null) {
      if (verdict.class === "TRANSPORT_LOST" && !told) {
        told = true;
        evaluation.say(`${verdict.why} (TRANSPORT_LOST); the job may go on, and is looked for again.`);
      }
      const overdueMs = context.awakeMs() - startMs;
      const reached = verdict.class !== "TRANSPORT_LOST";
      if (overdueMs >= (reached ? limits.queuePatienceMs : limits.reconnectPatienceMs)) {
        if (reached && seen.look.jobState === "missing") {
          return await lost(evaluation, {
            ...verdict,
            class: "NODE_FAILED",
            replace: true,
            why: "The allocation does not know the job any more.",
          });
        }
        return undecided(verdict, overdueMs);
      }
      if (context.closing.aborted && overdueMs >= limits.closeMs / 2) return undecided(verdict, overdueMs);
      await context.sleep(waitMs);
      waitMs = Math.min(waitMs * 2, limits.reconnectMostMs);
    }
    seen = await lookAround(evaluation, seen);
  }
}

async function lost(evaluation: Evaluation, verdict: Verdict): Promise<Outcome | null> {
  if (verdict.replace) evaluation.context.allocations.distrust();
  return await lostAttempt(evaluation, verdict.class ?? "ALLOCATION_EXPIRED", verdict.why);
}

function undecided(verdict: Verdict, overdueMs: number): Outcome {
  const what = verdict.class === "TRANSPORT_LOST" ? "TRANSPORT_LOST: " : "";
  return {
    kind: "problem",
    problem: problem(
      "SkyPilotControlPlaneError",
      `${what}${verdict.why} It was looked for during ${Math.round(overdueMs / 1000)} s; the next call looks again.`,
    ),
  };
}

async function lookAround({ context, record }: Evaluation, before: Seen | null): Promise<Seen> {
  const { allocation } = record;
  const name = allocation?.clusterName ?? context.clusterName;
  const cluster = await context.sky.cluster(name);
  const queue = await context.sky.queue(name);
  const problems = [cluster, queue].flatMap((asked) => (asked.ok ? [] : [SAID[asked.error.kind]]));
  const isAbsent = cluster.ok && cluster.value.state === "ABSENT" && !cluster.value.stale;
  const look = lookOf({
    queue: queue.ok ? queue.value : null,
    cluster: cluster.ok ? cluster.value : null,
    problems,
    job: { id: record.remoteJobId, name: record.jobName },
    remembered: allocation,
    absentAnswers: isAbsent ? (before?.look.absentAnswers ?? 0) + 1 : 0,
  });
  const launchedMs = cluster.ok ? cluster.value.launchedMs : null;
  const { allocationTime } = context.campaign.resources;
  const wallS = allocationTime === null ? null : allocationSeconds(allocationTime);
  return {
    look,
    // Only where nodes have no names: a cluster that is younger than the job is another allocation.
    relaunched:
      look.allocation === "unknown" &&
      launchedMs !== null &&
      record.submittedMs !== null &&
      launchedMs > record.submittedMs,
    endsMs: launchedMs === null || wallS === null ? null : launchedMs + wallS * 1000,
  };
}
