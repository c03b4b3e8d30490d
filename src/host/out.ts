import { writeSync } from "node:fs";

/**
 * Writes all of `text`, also to a pipe whose reader is slow (a plain write can be cut at 64 KiB when the
 * process ends). A reader that went away is not an error: there is nobody left to tell. Anything else that keeps
 * the text from arriving (a full disk, a closed descriptor) is returned as its code.
 */
function writeAll(descriptor: 1 | 2, text: string): string | null {
  const bytes = new TextEncoder().encode(text);
  let offset = 0;
  while (offset < bytes.length) {
    try {
      offset += writeSync(descriptor, bytes, offset);
    } catch (error) {
      const code = (error as { code?: string }).code;
      if (code === "EAGAIN") {
        Bun.sleepSync(1);
        continue;
      }
      if (code !== "EPIPE") return code ?? String(error);
      if (descriptor === 1) readerGone = true;
      return null;
    }
  }
  return null;
}

let readerGone = false;

/** Whether whoever read our data went away: a long report may end there. */
export function hasReaderGone(): boolean {
  return readerGone;
}

/** Data, and nothing but data. Returns why it could not be written, or null. */
export function writeOut(text: string): string | null {
  return writeAll(1, text);
}

/** Everything for people that is not the answer itself. */
export function writeError(text: string): void {
  writeAll(2, text);
}

/** Ends the process with the code that was set, whatever is still under way. */
export function endNow(): never {
  process.exit();
}

/** The one place that sets how the process ends. */
export function setExitCode(code: number): void {
  process.exitCode = code;
}
