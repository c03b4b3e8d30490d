import type { CandidateFinding, LocatedFinding } from "./findings.ts";

/** One case of a report: a candidate of a job, or the file that could not be read. */
export interface ReportCase extends CandidateFinding {
  /** The job's name; null where it has none. */
  readonly task: string | null;
  /** What else is to be said of the job. */
  readonly notes: readonly LocatedFinding[];
  /** The case could not be carried out. */
  readonly broken?: boolean;
}

/** What a judged file came to, for outputs that point at its lines. */
export interface Report {
  /** The file as its reader looks for it; null where jobs stand in none. */
  readonly file: string | null;
  readonly cases: readonly ReportCase[];
  /** A warning fails the job. */
  readonly failOnWarn: boolean;
  /** Of this program. */
  readonly version: string;
  /** Why the file could not be read; null where it was. */
  readonly failure: string | null;
}

/** All that is to be said, in the order of the file's jobs. */
export function findingsIn(report: Report): LocatedFinding[] {
  return report.cases.flatMap(({ finding, notes }) => [...(finding === null ? [] : [finding]), ...notes]);
}

/**
 * The outputs of `judge --output` beside `human` and `json`, by name; each makes a text of a report. Code that only one
 * of them needs is loaded when it is asked for.
 */
export const REPORTS: Readonly<Record<string, (report: Report) => Promise<string>>> = {
  sarif: async (report) => (await import("./sarif.ts")).sarifReport(report),
  github: async (report) => (await import("./github.ts")).githubAnnotations(findingsIn(report)),
  junit: async (report) => (await import("./junit.ts")).junitReport(report),
};
