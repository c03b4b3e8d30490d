import { lstatSync, readdirSync, renameSync, type Stats, unlinkSync } from "node:fs";
import { join } from "node:path";
import type { Rotation } from "./append.ts";

/** Files put aside by this process, so that two within a millisecond have names of their own. */
let count = 0;

/**
 * Renames the file `name` to `name-DIGITS`, a name that no other process takes, if it is still the file that `seen`
 * describes; whoever has it open goes on writing into it under its new name. Then old files are removed as `rotation`
 * says, where the folder may be listed. False where it could not be renamed and the old one is to be written on.
 */
export function putAside(folder: string, name: string, seen: Stats, rotation: Rotation): boolean {
  const path = join(folder, name);
  try {
    const there = lstatSync(path, { throwIfNoEntry: false });
    // Another writer was first.
    if (there === undefined || there.ino !== seen.ino || there.dev !== seen.dev) return true;
    renameSync(path, `${path}-${asideDigits()}`);
  } catch {
    return false;
  }
  if (rotation.keepMs !== null) removeOld(folder, name, rotation.keepMs);
  return true;
}

/** Time, process and number: digits that sort by time. */
function asideDigits(): string {
  count += 1;
  return `${Date.now()}${String(process.pid).padStart(7, "0")}${String(count % 1000).padStart(3, "0")}`;
}

/**
 * Removes what was put aside of `name` (of every file where it is null) and not written for `keepMs`; returns the names.
 * What cannot be listed or removed stays.
 */
export function removeOld(folder: string, name: string | null, keepMs: number): string[] {
  const removed: string[] = [];
  try {
    for (const file of readdirSync(folder)) {
      const [, whole] = /^([^.].*\.jsonl)[.-]\d+$/.exec(file) ?? [];
      if (whole === undefined || (name !== null && whole !== name)) continue;
      const stat = lstatSync(join(folder, file), { throwIfNoEntry: false });
      if (stat === undefined || !stat.isFile() || Date.now() - stat.mtimeMs <= keepMs) continue;
      try {
        unlinkSync(join(folder, file));
        removed.push(file);
      } catch {
        // someone else's, in a folder with the sticky bit
      }
    }
  } catch {
    // a folder that only its owner lists: `ledger prune` is theirs
  }
  return removed;
}
