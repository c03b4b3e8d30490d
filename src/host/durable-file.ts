import {
  closeSync,
  constants,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";

/**
 * Writes a file so that a reader, or a power cut, sees the old one or the whole new one (0600): a temporary file of an
 * unforeseeable name, fsync, rename, fsync of the folder. A link at the path is replaced, never followed. Returns why
 * it could not be done, or null.
 */
export function writeAtomically(path: string, bytes: Uint8Array): string | null {
  const folder = dirname(path);
  const random = Buffer.from(crypto.getRandomValues(new Uint8Array(8))).toString("hex");
  const temporary = join(folder, `.${basename(path)}.${random}`);
  let descriptor: number | null = null;
  try {
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    descriptor = openSync(temporary, flags, 0o600);
    for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
    fsyncSync(descriptor);
    closeSync(descriptor);
    descriptor = null;
    renameSync(temporary, path);
    syncFolder(folder);
    return null;
  } catch (error) {
    if (descriptor !== null) closeSync(descriptor);
    try {
      unlinkSync(temporary);
    } catch {
      // it was never made, or has its name already
    }
    return codeOf(error);
  }
}

/** Writes the text `name` in `folder` atomically; the folder is made (0700) where it is missing. Returns as above. */
export function writeDurably(folder: string, name: string, text: string): string | null {
  try {
    const made = mkdirSync(folder, { recursive: true, mode: 0o700 });
    const problem = writeAtomically(join(folder, name), new TextEncoder().encode(text));
    if (problem !== null) return problem;
    if (made !== undefined)
      for (let at = folder; at.length >= made.length; at = dirname(at)) syncFolder(dirname(at));
    return null;
  } catch (error) {
    return codeOf(error);
  }
}

/** Removes a file for good. A file that is not there is as good; anything else is returned. */
export function removeDurably(path: string): string | null {
  try {
    unlinkSync(path);
    syncFolder(dirname(path));
    return null;
  } catch (error) {
    const code = codeOf(error);
    return code === "ENOENT" ? null : code;
  }
}

function codeOf(error: unknown): string {
  return (error as { code?: string }).code ?? String(error);
}

function syncFolder(folder: string): void {
  const descriptor = openSync(folder, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
