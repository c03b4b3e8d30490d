import { unlinkSync } from "node:fs";

/** Removes a file, link or socket that may be gone already, or never came to be. Never throws. */
export function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // There is nothing to be done about it, and nothing depends on it.
  }
}
