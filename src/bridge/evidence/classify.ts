import type { ResultClass } from "../types.ts";
import { ROWS } from "./decision-table.ts";
import type { Look } from "./look.ts";

/** How a job's log ended (the parts of `LogsEnd` that are evidence). */
export interface LogEvidence {
  readonly exitCode: number | null;
  readonly finished: string | null;
  readonly markerExit: number | null;
  /** The job's shell said that it was asked to end. */
  readonly stopped?: boolean;
  readonly listedExit: number | null;
  readonly causes: readonly string[];
}

export interface Evidence {
  /** Null when no log was read. */
  readonly logs: LogEvidence | null;
  /** Null when nobody was asked yet. */
  readonly look: Look | null;
  readonly cancelRequested: boolean;
  /** Whether the task document has a `setup`; ours has none. */
  readonly hasSetup: boolean;
  /** The cluster was launched anew since the job was given to it. */
  readonly relaunched: boolean;
  /** When the allocation's wall time is over. */
  readonly endsMs: number | null;
  readonly nowMs: number;
  /** What the cluster's accounting says of the allocation (`TIMEOUT`, `PREEMPTED`, `NODE_FAIL`, ...), if it was asked. */
  readonly accounting?: string | null;
}

/** What to do next: the class is final; a new attempt within the bound; read the log again; ask queue and status. */
export type NextStep = "finish" | "retry" | "follow" | "look";

export interface Verdict {
  /** Which row of the table it was. */
  readonly row: string;
  /** Null while the job runs or nothing is known. */
  readonly class: ResultClass | null;
  readonly exitCode: number | null;
  readonly next: NextStep;
  /** Before a new attempt: the cluster has to be released, it is not usable although it may look alive. */
  readonly replace: boolean;
  /** One sentence for the diagnosis. */
  readonly why: string;
}

/**
 * Decides what became of a job from what was seen of it. Exit codes of `sky logs` are not enough: it leaves with 0 when
 * the node died, with 100 for whatever fails, and a job that was running when its allocation ended is called FAILED by
 * the next allocation of that name.
 */
export function classify(evidence: Evidence): Verdict {
  const row = ROWS.find((each) => each.when(evidence)) ?? ROWS[ROWS.length - 1];
  if (row === undefined) throw new RangeError("the table has no rows");
  return { row: row.name, ...row.verdict(evidence) };
}
