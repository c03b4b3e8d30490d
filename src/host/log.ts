import { constants, openSync, writeSync } from "node:fs";
import { writeError } from "./out.ts";

/** Where lines of a log go. */
export type Log = (line: string) => void;

/**
 * A log on stderr that nobody waits for: while whoever reads it does not, lines are left out, and the next one that
 * goes through is preceded by how many. A stderr that cannot be opened a second time (a socket) is written as it is.
 */
export function openLog(): Log {
  let descriptor: number;
  try {
    const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK | constants.O_NOCTTY;
    descriptor = openSync("/proc/self/fd/2", flags);
  } catch {
    return (line) => writeError(`${line}\n`);
  }
  let rest = new Uint8Array(0);
  let lost = 0;
  const goesThrough = (): boolean => {
    while (rest.length > 0) {
      try {
        rest = rest.subarray(writeSync(descriptor, rest));
      } catch (error) {
        if ((error as { code?: string }).code === "EAGAIN") return false;
        // No reader or no disk any more: there is nobody to tell.
        rest = new Uint8Array(0);
      }
    }
    return true;
  };
  return (line) => {
    // What was begun is ended first, so that no line stands inside another.
    if (!goesThrough()) {
      lost++;
      return;
    }
    const text = new TextEncoder().encode(lost > 0 ? `{"lost":${lost}}\n${line}\n` : `${line}\n`);
    rest = text;
    if (goesThrough()) lost = 0;
    else if (rest.length === text.length) {
      rest = new Uint8Array(0);
      lost++;
    } else lost = 0;
  };
}
