import { located, reportedPath } from "../gate/located.ts";
import type { TaskJob, TaskOutcome } from "../gate/task.ts";
import type { GateError } from "../lib/errors.ts";
import { findingsOf, type LocatedFinding, UNREADABLE_INPUT } from "../render/findings.ts";
import { REPORTS, type ReportCase } from "../render/reports.ts";
import { printable } from "../render/text.ts";
import { version } from "./version.ts";

/** What a report is made for. */
export interface ReportPlace {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** As the user named it; null where jobs stand in no file. */
  readonly file: string | null;
  readonly failOnWarn: boolean;
}

/** Judged jobs as a report; `name` is one of `REPORTS`. */
export async function reportOf(
  name: string,
  jobs: readonly TaskJob[],
  outcomes: readonly TaskOutcome[],
  place: ReportPlace,
): Promise<string> {
  const file = reportedPath(place.file, place);
  const cases: ReportCase[] = located(jobs, outcomes, file).flatMap((one) => {
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
export async function reportOfError(name: string, error: GateError, place: ReportPlace): Promise<string> {
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
  name: string,
  cases: readonly ReportCase[],
  file: string | null,
  { failOnWarn }: ReportPlace,
  failure: string | null = null,
): Promise<string> {
  return REPORTS[name]!({ file, cases, failOnWarn, version: version(), failure });
}
