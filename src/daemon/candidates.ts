import type { JournalRecord } from "../bridge/types.ts";
import type { Result } from "../lib/result.ts";
import type { Context } from "./context.ts";
import type { BridgeProblem, Snapshot } from "./types.ts";

/** A snapshot of the workspace and the key it is kept under. */
export interface Candidate {
  readonly key: string;
  readonly snapshot: Snapshot;
}

/** Snapshots of the workspace: taken for each call, kept while an evaluation may need them. */
export class Candidates {
  #held = new Map<string, number>();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(readonly context: Context) {}

  /** The workspace as it is now, under a key that is kept until `release`. One is taken at a time. */
  async take(): Promise<Result<Candidate, BridgeProblem>> {
    const { context } = this;
    const key = context.randomHex(16);
    this.#held.set(key, 1);
    const taken = this.#turn.then(() => context.staging.snapshot(key));
    this.#turn = taken.catch(() => undefined);
    try {
      const staged = await taken;
      if (!staged.ok) {
        this.release(key);
        return staged;
      }
      for (const { path, reason } of staged.value.leftOut) context.log(`not staged: ${path} (${reason})`);
      return { ok: true, value: { key, snapshot: staged.value } };
    } catch (error) {
      this.release(key);
      throw error;
    }
  }

  release(key: string): void {
    this.#held.delete(key);
  }

  /** Throws away what no evaluation needs any more. Never fails: what stays is only in the way. */
  async prune(): Promise<void> {
    const keep = new Set(this.#held.keys());
    for (const record of this.context.journal.all()) if (needsSnapshot(record)) keep.add(keyOf(record));
    try {
      await this.context.staging.prune(keep);
    } catch (error) {
      this.context.log(`old snapshots stay: ${error instanceof Error ? error.message : error}`);
    }
  }
}

export function keyOf(record: JournalRecord): string {
  return record.snapshotKey ?? record.invocationId;
}

function needsSnapshot({ phase }: JournalRecord): boolean {
  return phase !== "COMPLETED" && phase !== "ACKNOWLEDGED";
}
