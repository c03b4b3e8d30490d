import type { Decision } from "../verdict/types.ts";
import type { Entry } from "./types.ts";

/** What a number of verdicts came to. */
export interface Totals {
  readonly verdicts: number;
  readonly byDecision: Readonly<Record<Decision, number>>;
  /** Refused and kept from running. */
  readonly stopped: number;
  /** Of those: card-hours and list price that were not spent on them. */
  readonly gpuHoursHeldBack: number;
  readonly usdHeldBack: number;
  /** Of those: requests that name no hours, or whose card has no price. */
  readonly stoppedWithoutPrice: number;
  /** Larger than the job needs by more than one size. */
  readonly overRequested: number;
  /** List price of these beyond the smallest request that holds the job, where it is known. */
  readonly overUsd: number;
  readonly waiversUsed: number;
}

export const NOTHING: Totals = {
  verdicts: 0,
  byDecision: { allow: 0, warn: 0, refuse: 0, rewrite: 0, unjudged: 0 },
  stopped: 0,
  gpuHoursHeldBack: 0,
  usdHeldBack: 0,
  stoppedWithoutPrice: 0,
  overRequested: 0,
  overUsd: 0,
  waiversUsed: 0,
};

/** The totals with one more verdict. */
export function withEntry(totals: Totals, entry: Entry): Totals {
  const { decision, stopped, usd, gpuHours } = entry;
  const over = entry.fit === "over";
  return {
    verdicts: totals.verdicts + 1,
    byDecision: { ...totals.byDecision, [decision]: totals.byDecision[decision] + 1 },
    stopped: totals.stopped + Number(stopped),
    gpuHoursHeldBack: totals.gpuHoursHeldBack + (stopped ? (gpuHours ?? 0) : 0),
    usdHeldBack: totals.usdHeldBack + (stopped ? (usd ?? 0) : 0),
    stoppedWithoutPrice: totals.stoppedWithoutPrice + Number(stopped && usd === null),
    overRequested: totals.overRequested + Number(over),
    overUsd: totals.overUsd + (over ? (entry.overUsd ?? 0) : 0),
    waiversUsed: totals.waiversUsed + Number(entry.waiver !== null),
  };
}

/** How the report is broken down. */
export const GROUPINGS = {
  day: (entry: Entry) => entry.time.slice(0, 10),
  user: (entry: Entry) => entry.user,
  model: (entry: Entry) => entry.model,
  card: (entry: Entry) => entry.card,
  rule: (entry: Entry) => entry.rule,
} as const satisfies Record<string, (entry: Entry) => string | null>;

export type Grouping = keyof typeof GROUPINGS;

/** Totals of one day, user, model, card or rule; `key` is null where the entries name none. */
export interface Group extends Totals {
  readonly key: string | null;
}

/** Sums entries up as they come, in any order. */
export class Report {
  totals: Totals = NOTHING;
  readonly #groups = Object.fromEntries(
    Object.keys(GROUPINGS).map((name) => [name, new Map<string | null, Totals>()]),
  ) as Record<Grouping, Map<string | null, Totals>>;

  add(entry: Entry): void {
    this.totals = withEntry(this.totals, entry);
    for (const grouping of Object.keys(GROUPINGS) as Grouping[]) {
      const groups = this.#groups[grouping];
      const key = GROUPINGS[grouping](entry);
      groups.set(key, withEntry(groups.get(key) ?? NOTHING, entry));
    }
  }

  /** Days in order; of the others those with most verdicts first, then by name. */
  by(grouping: Grouping): readonly Group[] {
    const groups = [...this.#groups[grouping]].map(([key, totals]) => ({ key, ...totals }));
    const byKey = (a: Group, b: Group) => ((a.key ?? "") < (b.key ?? "") ? -1 : 1);
    return grouping === "day"
      ? groups.sort(byKey)
      : groups.sort((a, b) => b.verdicts - a.verdicts || byKey(a, b));
  }
}
