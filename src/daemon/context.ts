import type { Step } from "../bridge/journal/transitions.ts";
import type { Allocation, Campaign, JournalRecord } from "../bridge/types.ts";
import { GateError } from "../lib/errors.ts";
import type { Result } from "../lib/result.ts";
import type { FileStore } from "./file-store.ts";
import type { Limits } from "./limits.ts";
import type { BridgeProblem, Journal, Sky, SkyProblem, Staging } from "./types.ts";

/** The one allocation of a run. */
export interface Allocations {
  /**
   * An allocation that is ready and compatible, launched where there is none; that may take hours. `notice` says what is
   * waited for, until `until` is aborted: whoever lets go of it ends nothing, and the next one who asks joins in.
   */
  ensure(notice: (text: string) => void, until?: AbortSignal): Promise<Result<Allocation, SkyProblem>>;
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
  /** For how long something is waited for: it goes on by itself alone, whatever is done to the clock, and not while the machine sleeps. */
  readonly awakeMs: () => number;
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

/**
 * Writes a step down and waits until it is durable: what follows from a phase is done only then. Throws a GateError where
 * the step is not allowed from where the record is.
 */
export async function saved(context: Context, step: Step): Promise<JournalRecord> {
  if (!step.ok) throw new GateError("internal", step.error);
  const record = step.value;
  context.journal.put(record);
  await context.journal.commit();
  context.onTransition(record);
  return record;
}

/**
 * Puts a step down and does not wait: it is durable with whatever is next, and nothing follows from it that a restart would
 * not find out. A disk that refuses it refuses what is next as well.
 */
export function noted(context: Context, step: Step): JournalRecord {
  if (!step.ok) throw new GateError("internal", step.error);
  const record = step.value;
  context.journal.put(record);
  void context.journal.commit().then(
    () => context.onTransition(record),
    () => undefined,
  );
  return record;
}
