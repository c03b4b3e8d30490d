import { submitted, submitting, takenBack } from "../bridge/journal/transitions.ts";
import type { Allocation } from "../bridge/types.ts";
import type { Result } from "../lib/result.ts";
import { lostAttempt, notStarted } from "./attempts.ts";
import { keyOf } from "./candidates.ts";
import { type Outcome, problem } from "./context.ts";
import type { Evaluation } from "./evaluation.ts";
import { remoteRun } from "./remote-run.ts";
import type { SkyProblem } from "./types.ts";

const UNDER_WAY: readonly string[] = ["INIT", "PENDING", "SETTING_UP", "RUNNING"];

/** PREPARED: finds an allocation and hands the job to it. */
export async function submit(evaluation: Evaluation): Promise<Outcome | null> {
  const { context } = evaluation;
  if (evaluation.record.cancelRequested) return await evaluation.finish(notStarted(evaluation));
  if (context.closing.aborted)
    return { kind: "problem", problem: problem("RuntimeError", "the bridge is closing") };
  const { interrupt } = evaluation;
  const ready = await Promise.race([
    context.allocations.ensure((text) => evaluation.say(text), interrupt),
    new Promise<null>((done) => interrupt.addEventListener("abort", () => done(null), { once: true })),
  ]);
  if (ready === null) return null;
  if (!ready.ok) return { kind: "problem", problem: ready.error };
  if (evaluation.record.cancelRequested || context.closing.aborted) return null;
  // After hours in a queue its client may be gone; the next one brings the candidate as it is then.
  if (evaluation.clients === 0)
    return { kind: "problem", problem: problem("RuntimeError", "its client left before it was begun") };
  const allocation = ready.value;
  // One that was taken to be nowhere may have come after all.
  const isRecordWhole = context.journal.notices.length === 0;
  const there =
    evaluation.record.mayExist === true || !isRecordWhole ? await jobNow(evaluation, allocation) : null;
  // What was lost of the journal may have been this evaluation's: its job is not taken for a new one's, nor run twice.
  if (evaluation.record.mayExist !== true && there !== null && there.isUnderWay) {
    return {
      kind: "problem",
      problem: problem(
        "RuntimeError",
        `job ${there.id} of this evaluation (${evaluation.record.jobName}) is under way on ${allocation.clusterName}, and the bridge's journal, which was damaged, does not know it; nothing is submitted before it has ended (sky cancel ${allocation.clusterName} ${there.id} ends it)`,
      ),
    };
  }
  const late = evaluation.record.mayExist === true && there !== null ? there.id : null;
  const key = keyOf(evaluation.record);
  const remote = remoteRun(context.campaign, evaluation.request, evaluation.record, context.env);
  // The snapshot is there; what the job finds beside it is put into it now.
  const staged = await context.staging.snapshot(key, remote.extra);
  if (!staged.ok) return { kind: "problem", problem: staged.error };
  // Whoever asked again meanwhile brought another candidate, or a cancellation.
  if (keyOf(evaluation.record) !== key || evaluation.record.cancelRequested) return null;
  await evaluation.step((record) =>
    submitting(record, allocation, context.campaign.resources, context.nowMs()),
  );
  if (late !== null) return await accepted(evaluation, late);
  const { record } = evaluation;
  const executed = await context.sky.exec({
    clusterName: allocation.clusterName,
    jobName: record.jobName,
    resources: context.campaign.resources,
    workdir: staged.value.path,
    run: remote.run,
  });
  return await answered(evaluation, allocation, executed);
}

/** SUBMITTING after a restart: finds out what became of the submission before anything else is done. */
export async function reconcile(evaluation: Evaluation): Promise<Outcome | null> {
  const { context, record } = evaluation;
  if (record.allocation === null) return await undone(evaluation);
  const before = await context.sky.pendingExec(record.jobName);
  return await answered(
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
async function answered(
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
    // SkyPilot may not have known for a minute that the allocation had ended. Nothing ran, so that is no attempt.
    if (!executed.ok && executed.error.kind === "no-cluster" && evaluation.mayRetake()) {
      evaluation.say("The allocation had ended before the job was in it; another one is made.");
      await undone(evaluation);
      return null;
    }
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
  evaluation.note((record) => submitted(record, remoteJobId, record.allocation!.clusterName));
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
  await evaluation.step(takenBack);
  return null;
}

/** The record's job where the queue has it at this moment. */
async function jobNow(
  { context, record }: Evaluation,
  allocation: Allocation,
): Promise<{ readonly id: number; readonly isUnderWay: boolean } | null> {
  const queue = await context.sky.queue(allocation.clusterName);
  if (!queue.ok) return null;
  const job = queue.value.jobs.find((one) => one.name === record.jobName);
  return job === undefined ? null : { id: job.id, isUnderWay: UNDER_WAY.includes(job.state) };
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
  const until = context.awakeMs() + patienceMs;
  let without = 0;
  for (let look = 0; ; look++) {
    const queue = await context.sky.queue(allocation.clusterName);
    if (queue.ok && queue.value.complete) {
      const job = queue.value.jobs.find((one) => one.name === record.jobName);
      if (job !== undefined) return job.id;
      without++;
    }
    if (look >= 1 && context.awakeMs() >= until) return without >= 2 ? "none" : "unknown";
    if (context.closing.aborted) return "closing";
    await context.sleep(Math.min(context.limits.queuePollMs, Math.max(1, patienceMs)));
  }
}
