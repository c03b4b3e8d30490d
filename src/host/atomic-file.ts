import {
  closeSync,
  constants,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";

/**
 * Writes a file so that a reader, or a power cut, sees the old one or the whole new one (0600). A link at the path is
 * replaced, never followed. Returns why it could not be done, or null.
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
      // it was never made
    }
    return (error as { code?: string }).code ?? String(error);
  }
}

/** Removes a file for good. A file that is not there is as good; anything else is returned. */
export function removeDurably(path: string): string | null {
  try {
    unlinkSync(path);
    syncFolder(dirname(path));
    return null;
  } catch (error) {
    const code = (error as { code?: string }).code ?? String(error);
    return code === "ENOENT" ? null : code;
  }
}

/** A small file's text; null where it is missing or cannot be read. */
export function smallText(path: string): string | null {
  try {
    return readFileSync(path, "utf8").slice(0, 4096);
  } catch {
    return null;
  }
}

/** Makes a folder for our eyes only where it is missing. Returns why it could not be made, or null. */
export function makeFolder(path: string): string | null {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    return null;
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}

function syncFolder(folder: string): void {
  const descriptor = openSync(folder, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
