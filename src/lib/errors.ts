import type { Place } from "./place.ts";

/** What went wrong, as a class of outcome: it decides the exit code (see `cli/exit.ts`). */
export type ErrorCode =
  | "usage" // the command line is wrong
  | "input-unreadable" // the named file is missing, not a regular file, too large or not text
  | "input-invalid" // the named file was read and its content cannot be used
  | "config-invalid" // a model's config.json lacks a needed key or holds a senseless value
  | "settings-invalid" // a site file (cards, prices, maps, gate.toml) cannot be used
  | "unreachable" // a source or service that was needed did not answer
  | "internal"; // a bug of ours

/**
 * The one error class. Expected outcomes are values (verdicts, `Result`); this is thrown only where the
 * work cannot go on, and is turned into one line and one exit code in `cli/app.ts`.
 *
 * `message` says what and where in one line; `hint` says what to do.
 */
export class GateError extends Error {
  override readonly name = "GateError";
  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly hint: string | null = null,
    /** Where in the input it stands, for outputs that point at a line. */
    readonly place: Place | null = null,
  ) {
    super(message);
  }
}
