import { decodeStrict, readBytes } from "../host/fs.ts";
import { readStdin } from "../host/stdin.ts";
import { GateError } from "../lib/errors.ts";

/** Largest task file that is read; SkyPilot's own are a few kilobytes. */
export const MAX_TASK_BYTES = 4_000_000;
/** As much of a batch script as is looked at: its directives stand at its head, whatever follows. */
export const MAX_SCRIPT_BYTES = 2_000_000;

/**
 * The bytes of a named input; `-` is standard input. Throws `GateError("input-unreadable")` with what is wrong.
 * With `truncate` only the head of a larger file is given.
 */
export function readInput(path: string, maxBytes: number, truncate = false): Uint8Array {
  if (path === "-") {
    const stdin = readStdin(maxBytes);
    if (!stdin.ok) throw new GateError("input-unreadable", stdin.error, "Name a file, or pipe one in.");
    return stdin.value;
  }
  const bytes = readBytes(path, maxBytes, { truncate });
  if (!bytes.ok)
    throw new GateError("input-unreadable", bytes.error.message, "Name a readable regular file.");
  return bytes.value;
}

/** A task file's text. SkyPilot reads UTF-8 only, so other bytes throw `GateError("input-invalid")`. */
export function readTaskText(path: string): string {
  const text = decodeStrict(readInput(path, MAX_TASK_BYTES));
  if (text === null)
    throw new GateError("input-invalid", `${path} is not UTF-8 text`, "Save the file as UTF-8.");
  return text;
}

/** A batch script's text: a shell script may hold any bytes, so those that are not UTF-8 are shown as `?`. */
export function readScriptText(path: string): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(readInput(path, MAX_SCRIPT_BYTES, true));
}
