import type { TaskJob, TaskOutcome } from "../gate/task.ts";
import { GateError } from "../lib/errors.ts";
import type { ParsedWords } from "./command.ts";
import type { ReportPlace } from "./report.ts";

/** A report that points at lines of the judged file, as `--output` asked for it. */
export interface AskedReport {
  of(jobs: readonly TaskJob[], outcomes: readonly TaskOutcome[]): Promise<string>;
  /** Reads the jobs; where the input cannot be read, the error that is thrown carries that as a report. */
  reading<T>(read: () => Promise<T>): Promise<T>;
}

/** An input that cannot be read, with the report that says so on stdout. */
export class ReportedError extends GateError {
  constructor(
    error: GateError,
    readonly report: string,
  ) {
    super(error.code, error.message, error.hint, error.place);
  }
}

/**
 * The report that `--output` asks for; null for people and for `--json`. Its code is loaded only then.
 * Throws `GateError("usage")` for another output beside it.
 */
export async function reportAsked(
  { values, switches }: ParsedWords,
  { cwd, env, mode }: Pick<ReportPlace, "cwd" | "env"> & { readonly mode: string },
): Promise<AskedReport | null> {
  if (values.output === undefined || values.output === "human" || values.output === "json") return null;
  for (const other of ["json", "rewrite", "explain"]) {
    if (switches[other] === true)
      throw new GateError(
        "usage",
        `--${other} and --output ${values.output} exclude each other`,
        `Leave --${other} out.`,
      );
  }
  const { reportOf, reportOfError } = await import("./report.ts");
  const name = values.output;
  const file = mode === "request" ? null : (values[mode] ?? null);
  const place = { cwd, env, file, failOnWarn: values["fail-on"] === "warn" };
  return {
    of: (jobs, outcomes) => reportOf(name, jobs, outcomes, place),
    reading: async (read) => {
      try {
        return await read();
      } catch (error) {
        const ours = error instanceof GateError && error.code.startsWith("input-") ? error : null;
        throw ours === null ? error : new ReportedError(ours, await reportOfError(name, ours, place));
      }
    },
  };
}
