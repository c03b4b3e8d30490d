import { cancelRequested, complete, type Step } from "../bridge/journal/transitions.ts";
import type { EvaluationRequest, EvaluationResult, JournalRecord, Phase } from "../bridge/types.ts";
import { type Context, noted, type Outcome, problem, saved } from "./context.ts";
import { follow } from "./follow.ts";
import { gather } from "./gather.ts";
import { Output, spoken } from "./output.ts";
import { reconcile, submit } from "./submit.ts";

/** Why a running job is stopped by us. */
export type StopReason = "cancel" | "timeout";

/**
 * One evaluation while the daemon works on it. It needs no client: clients come, see its output and leave, and what
 * it comes to is in the journal before anybody is told.
 */
export class Evaluation {
  readonly output = new Output();
  /** Null until it is over. */
  outcome: Outcome | null = null;
  /** Clients that see it now. */
  clients = 0;
  /** An earlier daemon left it under way: what became of it is asked before its log is read. */
  isResumed = false;
  #follows = 0;
  #retaken = false;
  /** Ends what is waited for: the job's log, or a moment before the next look. */
  #interrupt = new AbortController();
  #settled: () => void = () => {};
  readonly settled = new Promise<void>((done) => {
    this.#settled = done;
  });

  constructor(
    readonly context: Context,
    public record: JournalRecord,
    readonly request: EvaluationRequest,
  ) {
    if (record.result !== null) this.settle({ kind: "result", record });
  }

  get interrupt(): AbortSignal {
    return this.#interrupt.signal;
  }

  say(text: string): void {
    this.context.log(`${this.record.kind} ${this.record.invocationId.slice(0, 8)}: ${text}`);
    this.output.say(spoken(text));
  }

  /** What the sky command line itself wrote on its stderr while it followed the job. */
  skySaid(text: string): void {
    this.output.say(text.endsWith("\n") ? text : `${text}\n`);
  }

  /** Takes the record a step further and writes it down; what follows from it is done after this resolved. */
  async step(take: (record: JournalRecord) => Step): Promise<void> {
    const step = take(this.record);
    if (step.ok) this.record = step.value;
    await saved(this.context, step);
  }

  /** The same where nothing follows that needs it on the disk: what is delivered or changed later waits for it. */
  note(take: (record: JournalRecord) => Step): void {
    this.record = noted(this.context, take(this.record));
  }

  async finish(result: EvaluationResult): Promise<Outcome> {
    await this.step((record) => complete(record, result));
    return { kind: "result", record: this.record };
  }

  settle(outcome: Outcome): void {
    if (this.outcome !== null) return;
    this.outcome = outcome;
    this.output.seal();
    this.#settled();
  }

  /** Lets go of its files when it is over and nobody sees it any more; it is not joined after that. */
  letGo(): void {
    if (this.outcome !== null && this.clients === 0) this.output.end();
  }

  /** Works until there is a result, or a problem that a later call may pass. Never throws. */
  async run(): Promise<void> {
    let outcome: Outcome | null = null;
    try {
      while (outcome === null) outcome = await this.#work();
    } catch (error) {
      this.context.log(`internal error: ${error instanceof Error ? (error.stack ?? error.message) : error}`);
      outcome = {
        kind: "problem",
        problem: problem("RuntimeError", error instanceof Error ? error.message : String(error)),
      };
    }
    this.settle(outcome);
  }

  async #work(): Promise<Outcome | null> {
    const { record } = this;
    if (record.result !== null) return { kind: "result", record };
    if (record.pending !== undefined) return await gather(this, record.pending);
    const steps: Record<Phase, () => Promise<Outcome | null>> = {
      PREPARED: () => submit(this),
      SUBMITTING: () => reconcile(this),
      SUBMITTED: () => follow(this),
      RUNNING: () => follow(this),
      COMPLETED: async () => ({ kind: "result", record }),
      ACKNOWLEDGED: async () => ({ kind: "result", record }),
    };
    return await steps[record.phase]();
  }

  /** The run is to be stopped; a job that is under way is cancelled, one that is not begun never is. */
  async stop(reason: StopReason): Promise<void> {
    const { record, context } = this;
    if (this.outcome !== null || record.result !== null || record.cancelRequested) return;
    await this.step((now) => cancelRequested(now, reason === "timeout"));
    const { allocation, remoteJobId, phase } = this.record;
    if ((phase !== "SUBMITTED" && phase !== "RUNNING") || allocation === null || remoteJobId === null) {
      if (phase === "PREPARED") this.wake();
      return;
    }
    const cancelled = await context.sky.cancel(allocation.clusterName, remoteJobId);
    if (!cancelled.ok) this.say(`the job could not be cancelled: ${cancelled.error.message}`);
    // The log of a cancelled job ends by itself; one that does not is looked at through the queue.
    void context.sleep(context.limits.cancelMs).then(() => this.wake());
  }

  /** A log that ended although the job goes on is not followed again at once, time after time. */
  async pauseBeforeFollowing(): Promise<void> {
    const { reconnectMs, reconnectMostMs } = this.context.limits;
    if (this.#follows > 0)
      await this.context.sleep(Math.min(reconnectMs * 2 ** (this.#follows - 1), reconnectMostMs));
    this.#follows++;
  }

  /** Whether a submission into an allocation that had ended may be repeated for nothing: once a call. */
  mayRetake(): boolean {
    const first = !this.#retaken;
    this.#retaken = true;
    return first;
  }

  /** Output came: whatever was wrong with following it is over. */
  followed(): void {
    this.#follows = 0;
  }

  /** Lets go of what is waited for, to look again. */
  wake(): void {
    this.#interrupt.abort();
    this.#interrupt = new AbortController();
  }
}
