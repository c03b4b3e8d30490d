import { FATES, type Fate, type RanJob } from "../lib/ran-job.ts";
import type { Entry } from "./types.ts";

/** What a verdict said, as far as its job's fate shows whether it was right. */
export const SAID = [
  "refused",
  "waived",
  "over-requested",
  "warned",
  "allowed",
  "rewritten",
  "unjudged",
] as const;
/** `refused` = told so and let run; `waived` = a refusal that a waiver turned into a warning. */
export type Said = (typeof SAID)[number];

/** Whether a smaller request would have held an over-request: what it used is at most what we said that it needs. */
export type OverCheck = "real" | "not-real" | "not-said";

/** A verdict and what became of it. */
export interface Reconciled {
  readonly entry: Entry;
  readonly said: Said;
  /** `repeat`: asked again for a job that another verdict stands for; `none`: accounting has no such job. */
  readonly match: "job" | "repeat" | "none" | "stopped";
  readonly job: RanJob | null;
  /** Null for anything but an over-request that ran. */
  readonly over: OverCheck | null;
}

export interface ReconcileOptions {
  /** Seconds after a verdict within which its job was submitted. */
  readonly withinS: number;
  /** SkyPilot asks several times a launch: later verdicts may stand for one job. */
  readonly repeats: boolean;
}

/** Seconds that a submit may seem to be before its verdict: accounting cuts fractions, and clocks differ a little. */
const BEFORE_S = 2;

/**
 * Finds the job of every verdict that was not stopped. A verdict is given before a job has an id, so they are told
 * apart by user, cluster, cards, tasks, time, and the comment of the filter where `annotate` is on. Each job belongs to
 * one verdict, the likeliest pairs first.
 */
export function reconcile(
  entries: readonly Entry[],
  jobs: readonly RanJob[],
  options: ReconcileOptions,
): Reconciled[] {
  const sorted = [...jobs].sort((a, b) => a.submitS - b.submitS);
  const pairs: { entry: number; job: number; score: number; apartS: number }[] = [];
  entries.forEach((entry, index) => {
    if (entry.stopped) return;
    const time = Date.parse(entry.time) / 1000;
    for (let at = firstFrom(sorted, time - BEFORE_S); at < sorted.length; at += 1) {
      const job = sorted[at]!;
      if (job.submitS > time + options.withinS) break;
      const score = likeness(entry, job);
      if (score !== null) pairs.push({ entry: index, job: at, score, apartS: Math.abs(job.submitS - time) });
    }
  });
  // Of equal ones the nearest in time; two submits of the same within a second are interchangeable.
  pairs.sort((a, b) => b.score - a.score || a.apartS - b.apartS || a.entry - b.entry || a.job - b.job);
  const jobOf = new Map<number, number>();
  const taken = new Set<number>();
  for (const { entry, job } of pairs) {
    if (jobOf.has(entry) || taken.has(job)) continue;
    jobOf.set(entry, job);
    taken.add(job);
  }
  const repeated = new Map<number, number>();
  if (options.repeats)
    for (const { entry, job } of pairs)
      if (!jobOf.has(entry) && !repeated.has(entry)) repeated.set(entry, job);
  return entries.map((entry, index) => {
    const said = saidOf(entry);
    if (entry.stopped) return { entry, said, match: "stopped", job: null, over: null };
    const job = sorted[jobOf.get(index) ?? repeated.get(index) ?? -1] ?? null;
    const match = jobOf.has(index) ? "job" : job !== null ? "repeat" : "none";
    return { entry, said, match, job, over: overOf(entry, job) };
  });
}

function saidOf({ decision, waiver, fit }: Entry): Said {
  if (decision === "refuse") return "refused";
  if (decision === "allow") return "allowed";
  if (decision === "rewrite") return "rewritten";
  if (decision === "unjudged") return "unjudged";
  return waiver !== null ? "waived" : fit === "over" ? "over-requested" : "warned";
}

/** Index of the first job that was submitted at `timeS` or later. */
function firstFrom(jobs: readonly RanJob[], timeS: number): number {
  let low = 0;
  let high = jobs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (jobs[middle]!.submitS < timeS) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** How much speaks for a job being a verdict's; null where something speaks against it. */
function likeness(entry: Entry, job: RanJob): number | null {
  let score = 0;
  if (entry.user !== null && job.user !== null && !/^anon\b/.test(entry.user)) {
    if (entry.user !== job.user) return null;
    score += 2;
  }
  if (entry.cluster !== null && job.cluster !== null) {
    if (entry.cluster.toLowerCase() !== job.cluster.toLowerCase()) return null;
    score += 1;
  }
  if (entry.count !== null && job.cards !== null) {
    if (Math.ceil(entry.count * (entry.nodes ?? 1)) !== Math.ceil(job.cards)) return null;
    score += 2;
  }
  if (entry.tasks === job.tasks) score += 1;
  const needGb = commentNeed(job.comment);
  if (needGb !== null && entry.needGb !== null) {
    if (needGb !== entry.needGb.toFixed(1)) return null;
    score += 4;
  }
  return score;
}

/** `neurarch:does-not-fit need=339.4GB on a10g:1`, behind the user's own words; of several the last is the filter's. */
function commentNeed(comment: string | null): string | null {
  return [...(comment ?? "").matchAll(/neurarch:[\w-]+ need=([\d.]+)GB/g)].at(-1)?.[1] ?? null;
}

function overOf({ fit, needGb }: Entry, job: RanJob | null): OverCheck | null {
  if (fit !== "over" || job === null) return null;
  if (job.usedGb === null || needGb === null) return "not-said";
  return job.usedGb <= needGb ? "real" : "not-real";
}

/** Jobs of one kind of verdict by how they ended. */
export type FateCounts = Readonly<Record<Fate, number>>;

export interface ReconcileTotals {
  readonly verdicts: number;
  readonly stopped: number;
  readonly matched: number;
  readonly repeated: number;
  readonly notFound: number;
  readonly bySaid: Readonly<Record<Said, { readonly jobs: number } & FateCounts>>;
  readonly over: Readonly<Record<OverCheck, number>>;
}

/** Sums up; a job counts once, whatever number of verdicts stand for it. */
export function reconcileTotals(rows: readonly Reconciled[]): ReconcileTotals {
  const none = () => Object.fromEntries(FATES.map((fate) => [fate, 0])) as Record<Fate, number>;
  const bySaid = Object.fromEntries(SAID.map((said) => [said, { jobs: 0, ...none() }])) as Record<
    Said,
    { jobs: number } & Record<Fate, number>
  >;
  const over = { real: 0, "not-real": 0, "not-said": 0 };
  for (const { said, match, job, over: check } of rows) {
    if (match !== "job" || job === null) continue;
    bySaid[said].jobs += 1;
    bySaid[said][job.fate] += 1;
    if (check !== null) over[check] += 1;
  }
  const count = (kind: Reconciled["match"]) => rows.filter(({ match }) => match === kind).length;
  return {
    verdicts: rows.length,
    stopped: count("stopped"),
    matched: count("job"),
    repeated: count("repeat"),
    notFound: count("none"),
    bySaid,
    over,
  };
}
