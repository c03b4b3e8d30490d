import { type RunRecord, runRecordText } from "../bridge/campaign/run-record.ts";
import { writeDurably } from "../host/durable-file.ts";
import { readText } from "../host/fs.ts";
import { GateError } from "../lib/errors.ts";

/** The run's record within its state folder. */
export const RUN_RECORD = "run.json";
const MAX_RECORD_BYTES = 4_000_000;

/** The record's text; null where the run is new. Throws `GateError("settings-invalid")` when it cannot be read. */
export function readRunText(stateDir: string): { readonly path: string; readonly text: string | null } {
  const path = `${stateDir}/${RUN_RECORD}`;
  const text = readText(path, MAX_RECORD_BYTES);
  if (text.ok) return { path, text: text.value };
  if (text.error.kind === "missing") return { path, text: null };
  throw new GateError(
    "settings-invalid",
    text.error.message,
    "Correct its permissions, or name another --state.",
  );
}

/**
 * Writes the record where it differs from what is there, so that a crash leaves the old one or the new one. To be
 * called by the daemon that holds the state folder, before it does anything else.
 * Throws `GateError("settings-invalid")` when the folder cannot be written.
 */
export function writeRunRecord(stateDir: string, record: RunRecord): void {
  const text = runRecordText(record);
  if (readRunText(stateDir).text === text) return;
  const problem = writeDurably(stateDir, RUN_RECORD, text);
  if (problem !== null)
    throw new GateError(
      "settings-invalid",
      `${stateDir}/${RUN_RECORD} cannot be written: ${problem}`,
      "Make the folder writable, or name another one with --state.",
    );
}
