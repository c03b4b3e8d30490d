import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { rm } from "node:fs/promises";

/** Makes a folder whose modes are as given and at least ours to use; one that is there is fine. */
export function makeFolder(path: string, mode = 0o755): void {
  mkdirSync(path, { recursive: true, mode: mode | 0o700 });
}

export function makeLink(path: string, target: string): void {
  symlinkSync(target, path);
}

/** Gives a file of another snapshot a second name. False where it is gone or has as many names as it may. */
export function shareFile(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (["ENOENT", "EMLINK", "EPERM", "EXDEV", "ENOTSUP"].includes((error as { code?: string }).code ?? ""))
      return false;
    throw error;
  }
}

/** Writes a small file so that it appears whole, instead of whatever stood under that name and never into it. */
export function putText(path: string, text: string, mode: number): void {
  const temporary = `${path}.${process.pid}.new`;
  try {
    writeFileSync(temporary, text, { mode, flag: "wx" });
    chmodSync(temporary, mode);
    renameSync(temporary, path);
  } catch (error) {
    try {
      unlinkSync(temporary);
    } catch {
      // not made
    }
    throw error;
  }
}

/** The text of a file of our own; null where there is none. */
export function textOf(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as { code?: string }).code ?? "")) return null;
    throw error;
  }
}

export function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** Renames within a file system; throws what the system says. */
export function moveTo(from: string, to: string): void {
  renameSync(from, to);
}

/** Removes a tree in another thread. Never throws: what stays is removed at the next start. */
export async function removeTree(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true }).catch(() => undefined);
}
