import type { Allocation, Campaign, JournalRecord } from "../bridge/types.ts";
import type { Result } from "../lib/result.ts";
import type { FileStore } from "./file-store.ts";
import type { Limits } from "./limits.ts";
import type { BridgeProblem, Journal, Sky, SkyProblem, Staging } from "./types.ts";

/** The one allocation of a run. */
export interface Allocations {
  /** An allocation that is ready and compatible, launched where there is none; `notice` says what is waited for. */
  ensure(notice: (text: string) => void): Promise<Result<Allocation, SkyProblem>>;
  /** Whether a remembered allocation is still the one that runs; gone only after two looks that agree. */
  look(allocation: Allocation): Promise<"same" | "gone" | "unreachable">;
  /** The next `ensure` replaces the allocation, however alive it looks. */
  distrust(): void;
  /** Cancels all jobs, then gives the allocation back. Safe to repeat. */
  release(): Promise<Result<null, SkyProblem>>;
}

/** What every part of a running daemon works with. */
export interface Context {
  readonly campaign: Campaign;
  readonly clusterName: string;
  readonly sky: Sky;
  readonly journal: Journal;
  readonly staging: Staging;
  readonly files: FileStore;
  readonly allocations: Allocations;
  readonly limits: Limits;
  readonly nowMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
  readonly randomHex: (bytes: number) => string;
  readonly sha256: (text: string) => string;
  /** The daemon's own environment, for the variables that evaluations may have. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A line of the daemon's log; never holds values of the environment. */
  readonly log: (line: string) => void;
  /** Called when a record is durable, before what follows from it is done. */
  readonly onTransition: (record: JournalRecord) => void;
  /** Aborted when the daemon is asked to end. */
  readonly closing: AbortSignal;
}

export type Outcome =
  | { readonly kind: "result"; readonly record: JournalRecord }
  | { readonly kind: "problem"; readonly problem: BridgeProblem };

export const problem = (error: string, message: string): BridgeProblem => ({ error, message });

/** Writes a record down and waits until it is durable: what follows from a phase is done only then. */
export async function saved(context: Context, record: JournalRecord): Promise<JournalRecord> {
  context.journal.put(record);
  await context.journal.commit();
  context.onTransition(record);
  return record;
}
