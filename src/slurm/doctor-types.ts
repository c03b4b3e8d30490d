/** What one check came to: `skipped` where an earlier failure leaves nothing to look at. */
export interface Check {
  /** A fixed name for scripts: `slurm-conf`, `plugin`, `filter-file`, ... */
  readonly check: string;
  readonly status: "ok" | "warn" | "fail" | "skipped";
  /** One sentence about what was found. */
  readonly message: string;
  /** What to do; null when nothing has to be done. */
  readonly fix: string | null;
  /** The trouble is that Slurm cannot be reached or is not there, not that something is set up wrongly. */
  readonly unreachable?: true;
}

/** What a file or folder is, links followed. */
export interface PathInfo {
  readonly kind: "file" | "directory" | "other";
  readonly uid: number;
  readonly gid: number;
  /** Permission bits. */
  readonly mode: number;
  readonly size: number;
}

/** How a program ended. `exit` is null when it was killed or could not be started. */
export interface Ran {
  readonly exit: number | null;
  readonly out: string;
  readonly err: string;
  readonly timedOut: boolean;
}

/** What the checks need of the host; the adapter gives it, tests may too. */
export interface DoctorHost {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Text of a file, null when it cannot be read; bytes beyond ASCII come as they are, one character each. */
  read(path: string): string | null;
  info(path: string): PathInfo | null;
  /** The path with all links resolved; null when there is nothing. */
  real(path: string): string | null;
  list(path: string): readonly string[];
  find(program: string, path: string): string | null;
  run(argv: readonly string[], env?: Readonly<Record<string, string>>): Promise<Ran>;
  /** Loads the site's settings as a submit would; the sentence that is wrong with them, or null. */
  settingsProblem(
    flags: Readonly<Record<string, string>>,
  ): Promise<{ message: string; hint: string | null } | null>;
  /**
   * Where verdicts of a submit with these settings go, and what stands in the way; null where none are recorded or the
   * settings cannot be read. Absent in tests of other checks.
   */
  ledger?(
    flags: Readonly<Record<string, string>>,
  ): Promise<readonly { problem: boolean; message: string; fix: string | null }[] | null>;
  /** Version of this program, `0.1.0`. */
  readonly version: string;
}

export const ok = (check: string, message: string): Check => ({ check, status: "ok", message, fix: null });
export const warn = (check: string, message: string, fix: string): Check => ({
  check,
  status: "warn",
  message,
  fix,
});
export const failed = (check: string, message: string, fix: string): Check => ({
  check,
  status: "fail",
  message,
  fix,
});
export const skipped = (check: string, message: string): Check => ({
  check,
  status: "skipped",
  message,
  fix: null,
});
