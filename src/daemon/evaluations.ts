import { problem } from "./context.ts";
import type { Evaluation } from "./evaluation.ts";

/** The evaluations that the daemon works on: one at a time, the others wait in the order in which they came. */
export class Evaluations {
  #active = new Map<string, Evaluation>();
  #waiting: Evaluation[] = [];
  #running: Evaluation | null = null;
  #open = false;
  #idle: (() => void)[] = [];

  find(invocationId: string): Evaluation | null {
    return this.#active.get(invocationId) ?? null;
  }

  get running(): Evaluation | null {
    return this.#running;
  }

  get all(): readonly Evaluation[] {
    return [...this.#active.values()];
  }

  /** Turns are given from now on. */
  open(): void {
    this.#open = true;
    this.#next();
  }

  /** Works on an evaluation when its turn has come. */
  add(evaluation: Evaluation): void {
    this.#active.set(evaluation.record.invocationId, evaluation);
    const before = this.#waiting.at(-1) ?? this.#running;
    this.#waiting.push(evaluation);
    if (before !== null) {
      const { kind, invocationId } = before.record;
      evaluation.say(
        `Another evaluation (${kind} ${invocationId.slice(0, 8)}) is under way; this one waits for its turn.`,
      );
    } else if (!this.#open) {
      evaluation.say("The bridge is still making its allocation ready; this evaluation waits for it.");
    }
    this.#next();
  }

  /** A client is gone: what nobody waits for and nothing was begun of is not begun. */
  left(evaluation: Evaluation): void {
    if (evaluation.clients > 0 || evaluation.record.phase !== "PREPARED") return;
    const at = this.#waiting.indexOf(evaluation);
    if (at === -1) return;
    this.#waiting.splice(at, 1);
    this.#active.delete(evaluation.record.invocationId);
    evaluation.settle({
      kind: "problem",
      problem: problem("RuntimeError", "its client left before its turn"),
    });
  }

  /** Ends one that waits at once, and the running one's job. */
  async cancel(evaluation: Evaluation): Promise<void> {
    await evaluation.stop("cancel");
    const at = this.#waiting.indexOf(evaluation);
    if (at === -1) return;
    this.#waiting.splice(at, 1);
    // Nothing was begun of it, so its turn need not come first.
    await evaluation.run();
    this.#active.delete(evaluation.record.invocationId);
  }

  /** Those that wait end with a problem; the running one is for its owner to stop. */
  dismiss(message: string): void {
    for (const evaluation of this.#waiting.splice(0)) {
      this.#active.delete(evaluation.record.invocationId);
      evaluation.settle({ kind: "problem", problem: problem("RuntimeError", message) });
    }
  }

  /** Resolves when none is running. */
  async idle(): Promise<void> {
    if (this.#running !== null) await new Promise<void>((done) => this.#idle.push(done));
  }

  #next(): void {
    if (!this.#open || this.#running !== null) return;
    const evaluation = this.#waiting.shift();
    if (evaluation === undefined) {
      for (const done of this.#idle.splice(0)) done();
      return;
    }
    this.#running = evaluation;
    void evaluation.run().finally(() => {
      this.#running = null;
      this.#active.delete(evaluation.record.invocationId);
      evaluation.letGo();
      this.#next();
    });
  }
}
