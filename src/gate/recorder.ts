import { soon } from "../host/clock.ts";
import type { Adapter } from "../ledger/types.ts";
import type { Settings } from "./settings.ts";
import type { TaskJob, TaskOutcome } from "./task.ts";

/** A verdict that is to be recorded. */
export interface Note {
  readonly job: TaskJob;
  readonly outcome: TaskOutcome;
  /** It was refused by an adapter that stops what it refuses. */
  readonly stopped: boolean;
  /** Who asked a server; null = it was not told; absent = whoever runs us. */
  readonly user?: string | null;
}

/**
 * Takes verdicts for the ledger while an answer is made, and writes them once it is out. Nothing of it is loaded
 * before that, and whatever goes wrong stays here: no verdict and no output changes for it.
 */
export class Recorder {
  #notes: Note[] = [];
  #soon = false;

  constructor(
    readonly settings: Settings & { readonly ledger: string },
    readonly adapter: Adapter,
    readonly place: {
      readonly cwd: string;
      readonly env: Readonly<Record<string, string | undefined>>;
      /** Of this program. */
      readonly version: string;
    },
  ) {}

  note(note: Note): void {
    this.#notes.push(note);
  }

  /** As `flush`, once the answer under way is out: for processes that stay. */
  flushSoon(): void {
    if (this.#soon || this.#notes.length === 0) return;
    this.#soon = true;
    soon(() => {
      this.#soon = false;
      this.flush();
    });
  }

  /** Writes down what was noted. Never throws. */
  flush(): void {
    const notes = this.#notes;
    this.#notes = [];
    if (notes.length === 0) return;
    try {
      (require("./ledger-write.ts") as typeof import("./ledger-write.ts")).writeNotes(notes, this);
    } catch {
      // a ledger that cannot be written changes nothing
    }
  }
}

/** The recorder of a site that keeps a ledger; null without one. */
export function makeRecorder(
  settings: Settings,
  adapter: Adapter,
  place: Recorder["place"],
): Recorder | null {
  const { ledger } = settings;
  return ledger === null || ledger === "" ? null : new Recorder({ ...settings, ledger }, adapter, place);
}
