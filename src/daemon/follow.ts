import { began, outputRestarted, running } from "../bridge/journal/transitions.ts";
import type { JournalRecord } from "../bridge/types.ts";
import { type Outcome, problem } from "./context.ts";
import { decide } from "./ending.ts";
import type { Evaluation } from "./evaluation.ts";
import { Intake } from "./intake.ts";
import type { LogsEnd } from "./types.ts";

/** How often a log that contradicts what was read of it is read again before its output is begun anew. */
const REREADS = 2;

/** SUBMITTED, RUNNING: follows the job's log to its end, and finds out what the end was. */
export async function follow(evaluation: Evaluation): Promise<Outcome | null> {
  const { context } = evaluation;
  if (evaluation.isResumed) {
    evaluation.isResumed = false;
    const outcome = await resume(evaluation);
    if (outcome !== null || evaluation.record.phase === "PREPARED") return outcome;
  }
  if (evaluation.record.phase === "SUBMITTED") evaluation.note((record) => running(record, context.nowMs()));
  const stopTimer = watchTimeout(evaluation);
  try {
    for (let reread = 0; ; ) {
      const { record } = evaluation;
      const spool = context.journal.spool(record.invocationId, spoolName(record));
      const part = evaluation.output.begin(spool);
      const intake = new Intake(spool, context, (bytes) => {
        part.committed = bytes;
        evaluation.output.changed();
      });
      const stop = new AbortController();
      const interrupted = () => stop.abort();
      evaluation.interrupt.addEventListener("abort", interrupted, { once: true });
      let end: LogsEnd;
      try {
        end = await context.sky.logs({
          clusterName: record.allocation!.clusterName,
          jobId: record.remoteJobId!,
          jobName: record.jobName,
          nonce: record.nonce,
          onOutput: async (chunk) => {
            await intake.take(chunk);
            if (intake.differs || intake.failure !== null) stop.abort();
          },
          onStderr: (text) => evaluation.skySaid(text),
          signal: stop.signal,
        });
        await intake.settled();
      } finally {
        evaluation.interrupt.removeEventListener("abort", interrupted);
      }
      if (intake.failure !== null) {
        return {
          kind: "problem",
          problem: problem("OSError", `the bridge's state folder cannot be written: ${intake.failure}`),
        };
      }
      if (intake.differs) {
        reread++;
        if (reread <= REREADS) {
          await context.sleep(context.limits.reconnectMs);
          continue;
        }
        reread = 0;
        evaluation.say(
          "The job's log no longer begins with what was read of it before; its output starts again.",
        );
        await evaluation.step(outputRestarted);
        continue;
      }
      if (intake.isAhead) evaluation.followed();
      return await decide(evaluation, end);
    }
  } finally {
    stopTimer();
  }
}

/** A job that an earlier daemon or call left: whether it is still there, before its log is taken for its own. */
async function resume(evaluation: Evaluation): Promise<Outcome | null> {
  const { context, record } = evaluation;
  evaluation.output.begin(context.journal.spool(record.invocationId, spoolName(record)));
  const outcome = await decide(evaluation, null);
  if (outcome !== null || evaluation.record.phase === "PREPARED") return outcome;
  if (record.cancelRequested) {
    const cancelled = await context.sky.cancel(record.allocation!.clusterName, record.remoteJobId!);
    if (!cancelled.ok) evaluation.say(`the job could not be cancelled: ${cancelled.error.message}`);
  }
  return null;
}

/** Names the spool of an attempt. */
export function spoolName({ jobName, outputRestarts = 0 }: JournalRecord): string {
  return outputRestarts === 0 ? jobName : `${jobName}.${outputRestarts}`;
}

/** Cancels a job that runs longer than the campaign lets it. */
function watchTimeout(evaluation: Evaluation): () => void {
  const { context } = evaluation;
  const { timeoutS } = context.campaign;
  if (timeoutS === null) return () => {};
  let stopped = false;
  const watch = async () => {
    for (;;) {
      const { startedMs } = evaluation.record;
      const leftMs = (startedMs ?? context.nowMs()) + timeoutS * 1000 - context.nowMs();
      if (leftMs > 0) {
        await context.sleep(leftMs);
        if (stopped) return;
        continue;
      }
      const sinceMs = await jobBegan(evaluation);
      if (stopped || evaluation.record.phase !== "RUNNING") return;
      // A job that waited for its cards has not run that long.
      if (sinceMs !== null && sinceMs > (startedMs ?? 0)) {
        await evaluation.step((record) => began(record, sinceMs));
        continue;
      }
      evaluation.say(`The campaign's timeout of ${timeoutS} s is over; the job is cancelled.`);
      await evaluation.stop("timeout");
      return;
    }
  };
  void watch().catch((error) => context.log(`internal error: ${error}`));
  return () => {
    stopped = true;
  };
}

/** When the queue says that the job began; now for one that has not, null where the queue does not tell. */
async function jobBegan(evaluation: Evaluation): Promise<number | null> {
  const { context, record } = evaluation;
  const queue = await context.sky.queue(record.allocation!.clusterName);
  if (!queue.ok || !queue.value.complete) return null;
  const job = queue.value.jobs.find(({ name }) => name === record.jobName);
  if (job === undefined) return null;
  if (job.state === "PENDING" || job.state === "INIT" || job.state === "SETTING_UP") return context.nowMs();
  return job.startedMs;
}
