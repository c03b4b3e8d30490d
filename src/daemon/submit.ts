import { jobName } from "../bridge/names.ts";
import type { Allocation } from "../bridge/types.ts";
import type { Result } from "../lib/result.ts";
import { lostAttempt, notStarted } from "./attempts.ts";
import { keyOf } from "./candidates.ts";
import { type Outcome, problem } from "./context.ts";
import type { Evaluation } from "./evaluation.ts";
import { remoteRun } from "./remote-run.ts";
import type { SkyProblem } from "./types.ts";

/** PREPARED: finds an allocation and hands the job to it. */
export async function submit(evaluation: Evaluation): Promise<Outcome | null> {
  const { context } = evaluation;
  if (evaluation.record.cancelRequested) return await evaluation.finish(notStarted(evaluation));
  if (context.closing.aborted)
    return { kind: "problem", problem: problem("RuntimeError", "the bridge is closing") };
  const ready = await context.allocations.ensure((text) => evaluation.say(text));
  if (!ready.ok) return { kind: "problem", problem: ready.error };
  if (evaluation.record.cancelRequested || context.closing.aborted) return null;
  const { nonce, invocationId, attempt } = evaluation.record;
  const nextJob = jobName(invocationId, attempt + 1, context.sha256);
  const names = { nonce, jobName: nextJob };
  const remote = remoteRun(context.campaign, evaluation.request, names, context.env);
  // The snapshot is there; what the job finds beside it is put into it now.
  const staged = await context.staging.snapshot(keyOf(evaluation.record), remote.extra);
  if (!staged.ok) return { kind: "problem", problem: staged.error };
  await evaluation.change({
    phase: "SUBMITTING",
    attempt: attempt + 1,
    jobName: nextJob,
    allocation: ready.value,
    resources: context.campaign.resources,
    remoteJobId: null,
    submittedMs: context.nowMs(),
    startedMs: null,
    spooledBytes: 0,
    deliveredBytes: 0,
  });
  const { record } = evaluation;
  const executed = await context.sky.exec({
    clusterName: ready.value.clusterName,
    jobName: record.jobName,
    resources: context.campaign.resources,
    workdir: staged.value.path,
    run: remote.run,
  });
  return await submitted(evaluation, ready.value, executed);
}

/** SUBMITTING after a restart: finds out what became of the submission before anything else is done. */
export async function reconcile(evaluation: Evaluation): Promise<Outcome | null> {
  const { context, record } = evaluation;
  if (record.allocation === null) return await undone(evaluation);
  const before = await context.sky.pendingExec(record.jobName);
  return await submitted(
    evaluation,
    record.allocation,
    before ?? {
      ok: false,
      error: { kind: "refused", error: "RuntimeError", message: "the submission was never begun" },
    },
    true,
  );
}

/** What follows from how a submission ended: its job's id, or proof that there is no job. */
async function submitted(
  evaluation: Evaluation,
  allocation: Allocation,
  executed: Result<number | null, SkyProblem>,
  isPast = false,
): Promise<Outcome | null> {
  const { context } = evaluation;
  if (executed.ok && executed.value !== null) return await accepted(evaluation, executed.value);
  // A refusal may have lost its reply only, so the queue is asked; a plain "no" needs no long patience.
  const refused = !executed.ok && executed.error.kind !== "timeout" && executed.error.kind !== "transport";
  const found = await findJob(
    evaluation,
    allocation,
    refused ? context.limits.secondLookMs : context.limits.queuePatienceMs,
  );
  if (found === "closing")
    return { kind: "problem", problem: problem("RuntimeError", "the bridge is closing") };
  if (typeof found === "number") return await accepted(evaluation, found);
  const look = await context.allocations.look(allocation);
  if (look === "gone") {
    return await lostAttempt(
      evaluation,
      "ALLOCATION_EXPIRED",
      "the allocation ended before the job was in it",
    );
  }
  if (look === "unreachable" || found === "unknown") {
    const why = executed.ok ? "sky named no job" : executed.error.message;
    return {
      kind: "problem",
      problem: problem(
        executed.ok ? "RuntimeError" : executed.error.error,
        `whether the job was submitted is not known yet (${why}); the next call looks again`,
      ),
    };
  }
  await undone(evaluation);
  // What was in the way of an earlier call need not be in this one's: it submits anew and hears for itself.
  return executed.ok || isPast ? null : { kind: "problem", problem: executed.error };
}

async function accepted(evaluation: Evaluation, remoteJobId: number): Promise<null> {
  await evaluation.change({ phase: "SUBMITTED", remoteJobId });
  // A cancellation that came while there was nothing to cancel.
  if (evaluation.record.cancelRequested) {
    const { context, record } = evaluation;
    const cancelled = await context.sky.cancel(record.allocation!.clusterName, remoteJobId);
    if (!cancelled.ok) evaluation.say(`the job could not be cancelled: ${cancelled.error.message}`);
  }
  return null;
}

/** There is no job of this attempt: it never was. The next call, or this one, submits again. */
async function undone(evaluation: Evaluation): Promise<null> {
  const { record, context } = evaluation;
  await evaluation.change({
    phase: "PREPARED",
    attempt: Math.max(0, record.attempt - 1),
    jobName: jobName(record.invocationId, record.attempt, context.sha256),
    allocation: null,
    resources: null,
    remoteJobId: null,
    submittedMs: null,
  });
  return null;
}

/**
 * Looks for the job by its name until `patienceMs` is over, at least twice. "none" = two whole answers without it,
 * "unknown" = the queue could not be read.
 */
async function findJob(
  evaluation: Evaluation,
  allocation: Allocation,
  patienceMs: number,
): Promise<number | "none" | "unknown" | "closing"> {
  const { context, record } = evaluation;
  const until = context.nowMs() + patienceMs;
  let without = 0;
  for (let look = 0; ; look++) {
    const queue = await context.sky.queue(allocation.clusterName);
    if (queue.ok && queue.value.complete) {
      const job = queue.value.jobs.find((one) => one.name === record.jobName);
      if (job !== undefined) return job.id;
      without++;
    }
    if (look >= 1 && context.nowMs() >= until) return without >= 2 ? "none" : "unknown";
    if (context.closing.aborted) return "closing";
    await context.sleep(Math.min(context.limits.queuePollMs, Math.max(1, patienceMs)));
  }
}
