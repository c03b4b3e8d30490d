import type { ArgsDef } from "citty";
import type { ExitCode } from "./exit.ts";

/** What the strict parser made of a command line. */
export interface ParsedWords {
  /** Flags with a value, by long name; the last one wins. */
  readonly values: Readonly<Record<string, string>>;
  /** Flags that may be repeated, in order. */
  readonly lists: Readonly<Record<string, readonly string[]>>;
  /** Flags without a value. `--no-x` is `false`. */
  readonly switches: Readonly<Record<string, boolean>>;
  /** Words that are not flags, by the name the command gave their place. */
  readonly words: readonly string[];
}

/** What a command wants said and how it ended. Printing and exiting is done in one place for all. */
export interface CommandOutput {
  /** Data, for stdout. */
  readonly out?: string;
  /** For people, on stderr. */
  readonly err?: string;
  readonly exit: ExitCode;
  /** The exit code stands even when the answer cannot be written: a submit goes on (`slurm`). */
  readonly always?: boolean;
  /** Whatever the process has still under way ends with it: nothing of it is needed any more. */
  readonly ends?: true;
  /** What is left to do once the answer is out; nobody waits for it, and it never fails. */
  readonly after?: () => void;
}

/** One command: its flags as citty describes them, and a `run` that only wires stages together. */
export interface Command {
  readonly name: string;
  readonly description: string;
  readonly args: ArgsDef;
  /** Flags that may be given several times. */
  readonly repeatable?: readonly string[];
  /** What to do about a word that is no flag, where the command takes none. */
  readonly strayHint?: string;
  /** Flags whose value is the next word even when that looks like a flag. */
  readonly verbatim?: readonly string[];
  /** The command reads its words itself, since some are another program's; they come as `words`. */
  readonly raw?: true;
  /** Flags that may stand without a value (Slurm's `--exclusive`). */
  readonly bare?: readonly string[];
  /** What a word that is no flag can be, by its name, for completions; `file`, `folder` and `model` need none. */
  readonly completes?: Readonly<Record<string, readonly string[]>>;
  /** Shown first in the help: a command line and what it does. */
  readonly examples: readonly (readonly [string, string])[];
  run(input: ParsedWords): Promise<CommandOutput>;
}
