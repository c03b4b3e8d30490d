/** How a job ended, the worst first: of an array's tasks the first that applies is the job's. */
export const FATES = [
  "memory",
  "killed",
  "failed",
  "timeout",
  "lost",
  "cancelled",
  "open",
  "done",
  "unknown",
] as const;

/**
 * `memory`: the scheduler says that it ran out of the host's memory. `killed`: SIGKILL (exit 137), mostly the same.
 * `failed`: any other failure, which is also what a CUDA out-of-memory error looks like. `lost`: its node or its
 * reservation went away. `open`: it has not ended.
 */
export type Fate = (typeof FATES)[number];

/** A job as a scheduler's accounting tells of it, an array's tasks and all runs of a requeued job together. */
export interface RanJob {
  /** `120` (also of an array), `124+1` (a heterogeneous job's component). */
  readonly id: string;
  readonly cluster: string | null;
  readonly user: string | null;
  readonly comment: string | null;
  /** Seconds since 1970. */
  readonly submitS: number;
  /** Cards that were asked for, over all nodes, for one task; null = not recorded. */
  readonly cards: number | null;
  readonly tasks: number;
  readonly fate: Fate;
  /** Tasks by fate; they add up to `tasks`. */
  readonly fates: Readonly<Partial<Record<Fate, number>>>;
  /** The scheduler's own words for the task that ended worst: `OUT_OF_MEMORY 0:125`. */
  readonly told: string;
  /** GB (1e9 bytes) of GPU memory in use at the peak, over all cards; null = not recorded. */
  readonly usedGb: number | null;
}

/** The worse of two. */
export function worse(one: Fate, other: Fate): Fate {
  return FATES.indexOf(one) <= FATES.indexOf(other) ? one : other;
}
