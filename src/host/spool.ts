import { lstatSync, readdirSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { writePrivateFile } from "./private-files.ts";

/** Most files that wait: some weeks of a collector that is away. */
const MOST_FILES = 20_000;
const FILE = /^\d{13}-[0-9a-z]+\.jsonl$/;
/** Its age says when a collector was last found away. */
const AWAY = "away";

let count = 0;

/**
 * The folder in which lines wait for a collector, below `$XDG_STATE_HOME` or `~/.local/state` (XDG base directory
 * specification); null without a home.
 */
export function spoolFolder(env: Readonly<Record<string, string | undefined>>): string | null {
  const state = env.XDG_STATE_HOME?.startsWith("/")
    ? env.XDG_STATE_HOME
    : env.HOME?.startsWith("/")
      ? `${env.HOME}/.local/state`
      : null;
  return state === null ? null : `${state}/neurarch/ledger`;
}

/** Lets lines wait, in a file of their own that appears whole (0600). False where they cannot, or too many do already. */
export function spool(folder: string, lines: readonly string[]): boolean {
  count += 1;
  if (waiting(folder).length >= MOST_FILES) return false;
  const name = `${Date.now()}-${process.pid.toString(36)}${count.toString(36)}${Math.random().toString(36).slice(2, 8)}`;
  return writePrivateFile(folder, `${name}.jsonl`, lines.join(""));
}

/** Makes the folder where it is missing; false where it is not to be had. */
export function makeSpool(folder: string): boolean {
  return writePrivateFile(folder, "folder", "");
}

/** Names of what waits, oldest first. */
export function waiting(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => FILE.test(name))
      .sort();
  } catch {
    return [];
  }
}

/** Takes what was delivered out of the spool. */
export function delivered(folder: string, name: string): void {
  try {
    unlinkSync(join(folder, name));
  } catch {
    // another process delivered it as well
  }
}

/** Notes that the collector was away just now. */
export function markAway(folder: string): void {
  writePrivateFile(folder, AWAY, "");
}

/** Milliseconds since a collector was found away; null = it was not. */
export function awayForMs(folder: string): number | null {
  const stat = lstatSync(join(folder, AWAY), { throwIfNoEntry: false });
  return stat === undefined ? null : Math.max(0, Date.now() - stat.mtimeMs);
}

/** The collector answers again. */
export function clearAway(folder: string): void {
  delivered(folder, AWAY);
}
