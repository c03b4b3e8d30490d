import { located, reportedPath } from "../gate/located.ts";
import type { TaskJob, TaskOutcome } from "../gate/task.ts";
import type { GateError } from "../lib/errors.ts";
import { findingsOf, type LocatedFinding, UNREADABLE_INPUT } from "../render/findings.ts";
import { githubAnnotations } from "../render/github.ts";
import { type JunitCase, junitReport } from "../render/junit.ts";
import { ruleText } from "../render/rule-text.ts";
import { sarifLog } from "../render/sarif.ts";
import { printable } from "../render/text.ts";
import { version } from "./version.ts";

/** The outputs that point at lines of the judged file. */
export type ReportName = "sarif" | "github" | "junit";

/** What a report is made for. */
export interface ReportPlace {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** As the user named it; null where jobs stand in no file. */
  readonly file: string | null;
  readonly failOnWarn: boolean;
}

/** Judged jobs as a report. */
export function reportOf(
  name: ReportName,
  jobs: readonly TaskJob[],
  outcomes: readonly TaskOutcome[],
  place: ReportPlace,
): string {
  const file = reportedPath(place.file, place);
  const cases: JunitCase[] = located(jobs, outcomes, file).flatMap((one) => {
    const { candidates, notes } = findingsOf(one);
    const whole = candidates.length === 0 ? [{ label: null, finding: null }] : candidates;
    return whole.map((candidate, index) => ({
      ...candidate,
      task: one.told.task,
      notes: index === 0 ? notes : [],
    }));
  });
  return write(name, cases, file, place);
}

/** An input that could not be read as a report: the place it names is annotated, and nothing passes for judged. */
export function reportOfError(name: ReportName, error: GateError, place: ReportPlace): string {
  const file = reportedPath(place.file, place);
  const message = printable(
    `${error.message.replace(/\.+$/, "")}.${error.hint === null ? "" : ` ${error.hint}`}`,
  );
  const finding: LocatedFinding = {
    level: "error",
    rule: UNREADABLE_INPUT,
    message,
    file,
    place: error.place,
  };
  return write(name, [{ label: null, finding, task: null, notes: [], broken: true }], file, place, message);
}

function write(
  name: ReportName,
  cases: readonly JunitCase[],
  file: string | null,
  place: ReportPlace,
  failure?: string,
): string {
  if (name === "junit") return junitReport(file, cases, place.failOnWarn);
  const findings = cases.flatMap(({ finding, notes }) => [...(finding === null ? [] : [finding]), ...notes]);
  if (name === "github") return githubAnnotations(findings);
  const told = { version: version(), textOf: ruleText, ...(failure === undefined ? {} : { failure }) };
  return `${JSON.stringify(sarifLog(findings, told))}\n`;
}
