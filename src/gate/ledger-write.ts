import { appendLine, hostName, ownName, ownNumber, randomText, sharedText } from "../host/append.ts";
import { nowMs } from "../host/clock.ts";
import { resolve } from "../host/paths.ts";
import { digest } from "../host/private-files.ts";
import { entryOf, lineOf, type Recorded } from "../ledger/entry.ts";
import { representative } from "../render/messages.ts";
import type { CardTable } from "../request/types.ts";
import { formsOf } from "../verdict/decide.ts";
import type { Note, Recorder } from "./recorder.ts";

/** What all writers of an anonymous ledger mix into their digests. */
const SALT = "salt";
/** What was asked that is no verdict: nothing to train, no card, no model. */
const NO_VERDICT = ["not-training", "no-accelerator", "no-model"];

/** Writes what was noted, a line a verdict. What cannot be written is lost. */
export function writeNotes(notes: readonly Note[], { settings, adapter, place }: Recorder): void {
  const told = notes.filter(({ outcome }) => !NO_VERDICT.includes(outcome.reason ?? ""));
  if (told.length === 0) return;
  const folder = resolve(place.cwd, settings.ledger);
  const host = hostName();
  const salt = settings.ledgerAnonymous ? sharedText(folder, SALT, randomText()) : null;
  // Without its salt an anonymous ledger names nobody.
  const named = (name: string) =>
    !settings.ledgerAnonymous
      ? name
      : salt === null
        ? "anon"
        : `anon-${digest(`${salt} ${name}`).slice(0, 12)}`;
  const own = ownName(place.env);
  const time = new Date(nowMs()).toISOString();
  for (const note of told) {
    const asker = note.user === undefined ? own : note.user;
    const line = lineOf(
      entryOf(recordOf(note, settings.table), {
        time,
        adapter,
        user: asker === null ? null : named(asker),
        host,
        cluster: settings.cluster,
        version: place.version,
      }),
    );
    const file = (name: string) => `${fileName(named(name))}@${fileName(host)}.jsonl`;
    // Where someone else has a file of our name, the number is ours all the same.
    if (appendLine(folder, file(own), line) === "foreign") appendLine(folder, file(ownNumber()), line);
  }
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
