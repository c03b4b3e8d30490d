import {
  appendLine,
  hostName,
  ownName,
  ownNumber,
  type Rotation,
  randomText,
  sharedText,
} from "../host/append.ts";
import { nowMs } from "../host/clock.ts";
import { resolve } from "../host/paths.ts";
import { digest } from "../host/private-files.ts";
import { entryOf, lineOf, type Recorded } from "../ledger/entry.ts";
import { isAddress } from "../lib/sink.ts";
import { representative } from "../render/messages.ts";
import type { CardTable } from "../request/types.ts";
import { formsOf } from "../verdict/decide.ts";
import type { Note, Recorder } from "./recorder.ts";
import type { Settings } from "./settings.ts";

/** What all writers of an anonymous ledger mix into their digests. */
export const SALT = "salt";
/** What was asked that is no verdict: nothing to train, no card, no model. */
const NO_VERDICT = ["not-training", "no-accelerator", "no-model"];

/** Bytes at which a file is put aside where the site does not say. */
const ROTATE_BYTES = 64_000_000;
const DAY_MS = 86_400_000;

/** Writes what was noted, a line a verdict. What cannot be written is lost. */
export function writeNotes(notes: readonly Note[], recorder: Recorder): void {
  const { settings, adapter, place } = recorder;
  const told = notes.filter(({ outcome }) => !NO_VERDICT.includes(outcome.reason ?? ""));
  if (told.length === 0) return;
  // Nothing of a network is loaded for a ledger that is a folder.
  const sender = isAddress(settings.ledger)
    ? (require("./ledger-spool.ts") as typeof import("./ledger-spool.ts"))
    : null;
  const folder = sender === null ? resolve(place.cwd, settings.ledger) : sender.spoolOf(recorder);
  const host = hostName();
  const salt = settings.ledgerAnonymous && folder !== null ? sharedText(folder, SALT, randomText()) : null;
  const named = (name: string) => (settings.ledgerAnonymous ? anonymous(name, salt) : name);
  const own = ownName(place.env);
  const time = new Date(nowMs()).toISOString();
  const lines = told.map((note) => {
    const asker = note.user === undefined ? own : note.user;
    const occasion = {
      time,
      adapter,
      user: asker === null ? null : named(asker),
      host,
      cluster: settings.cluster,
      version: place.version,
      id: randomText().slice(0, 24),
    };
    return lineOf(entryOf(recordOf(note, settings.table), occasion));
  });
  if (sender !== null) sender.send(lines, recorder);
  else if (folder !== null) appendLines(folder, lines, { named, env: place.env, settings });
}

/** A digest in place of a name. Without its salt an anonymous ledger names nobody. */
export function anonymous(name: string, salt: string | null): string {
  return salt === null ? "anon" : `anon-${digest(`${salt} ${name}`).slice(0, 12)}`;
}

/** Appends lines to the file of this user and host; how many are there now. */
export function appendLines(
  folder: string,
  lines: readonly string[],
  options: {
    readonly named: (name: string) => string;
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly settings: Settings;
  },
): number {
  const { named, env, settings } = options;
  const host = fileName(hostName());
  const rotation = rotationOf(settings);
  const file = (name: string) => `${fileName(named(name))}@${host}.jsonl`;
  const own = file(ownName(env));
  let written = 0;
  for (const line of lines) {
    let problem = appendLine(folder, own, line, rotation);
    // Where someone else has a file of our name, the number is ours all the same.
    if (problem === "foreign") problem = appendLine(folder, file(ownNumber()), line, rotation);
    if (problem === null) written += 1;
  }
  return written;
}

function rotationOf({ ledgerUpkeep: upkeep }: Settings): Rotation {
  const days = (count: number | null | undefined) => (count == null ? null : count * DAY_MS);
  return {
    maxBytes: upkeep?.rotateMb == null ? ROTATE_BYTES : upkeep.rotateMb * 1e6,
    maxAgeMs: days(upkeep?.rotateDays),
    keepMs: days(upkeep?.keepDays),
  };
}

function recordOf({ job, outcome, stopped }: Note, table: CardTable): Recorded {
  const { result, telling, reason, decision } = outcome;
  const facts = job.reading.kind === "facts" ? job.reading.facts : null;
  const forms = result === null ? [] : formsOf(result.verdicts, job.request, table);
  // Of several candidates the one whose own decision is the request's, else the first.
  const form = forms.find((one) => one.decision === result?.decision) ?? forms[0];
  return {
    model: facts?.model.value ?? null,
    sizing: telling?.sizing ?? null,
    verdict: form === undefined ? null : representative(form),
    candidates: forms.length || job.request.candidates.length,
    decision,
    stopped,
    reason,
    hours: facts?.hours.value ?? job.fallbackHours,
    tasks: job.tasks,
  };
}

function fileName(text: string): string {
  return (
    text
      .replace(/[^A-Za-z0-9._-]/g, "_")
      .replace(/^[.-]+/, "_")
      .slice(0, 64) || "_"
  );
}
