import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, unlinkSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Writes `name` in `folder` so that a reader, or a power cut, sees the old text or the new one and nothing between: a
 * temporary file (0600), fsync, rename, fsync of the folder. The folder is made (0700) where it is missing.
 * Returns why it could not be done, or null.
 */
export function writeDurably(folder: string, name: string, text: string): string | null {
  const temporary = join(folder, `.${name}.${process.pid}.new`);
  let descriptor: number | null = null;
  try {
    const made = mkdirSync(folder, { recursive: true, mode: 0o700 });
    descriptor = openSync(temporary, "w", 0o600);
    const bytes = new TextEncoder().encode(text);
    for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
    fsyncSync(descriptor);
    closeSync(descriptor);
    descriptor = null;
    renameSync(temporary, join(folder, name));
    syncFolder(folder);
    if (made !== undefined)
      for (let at = folder; at.length >= made.length; at = dirname(at)) syncFolder(dirname(at));
    return null;
  } catch (error) {
    if (descriptor !== null) closeSync(descriptor);
    try {
      unlinkSync(temporary);
    } catch {
      // it was never made, or has its name already
    }
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
