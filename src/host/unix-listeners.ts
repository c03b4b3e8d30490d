import { readFileSync, realpathSync } from "node:fs";
import { basename, dirname } from "node:path";

/** A line of /proc/net/unix: its flags and the name that the socket was bound by. */
const LINE = /^\S+ \S+ \S+ (\S+) \S+ \S+ +\d+ (.+)$/;
/** `__SO_ACCEPTCON` of the kernel's net.h: somebody listens on it. */
const LISTENS = "00010000";

/**
 * How the names begin that a socket meant for `path` is bound under (`listenUnix`): the system lists it by such a name
 * for as long as it lives, whatever links were made to it.
 */
export function boundPrefix(path: string): string {
  return `.${Bun.hash(basename(path)).toString(16).padStart(16, "0").slice(0, 5)}`;
}

/**
 * Whether a process of this machine listens on a socket of that path, or on one that was bound for it under another name
 * of its folder. False where the system does not tell (no /proc).
 */
export function isListening(path: string): boolean {
  const prefix = boundPrefix(path);
  try {
    const folder = realpathSync(dirname(path));
    return readFileSync("/proc/net/unix", "utf8")
      .split("\n")
      .some((line) => {
        const [, flags, bound = ""] = LINE.exec(line) ?? [];
        if (flags !== LISTENS) return false;
        return bound === path || (basename(bound).startsWith(prefix) && sameFolder(dirname(bound), folder));
      });
  } catch {
    return false;
  }
}

function sameFolder(folder: string, real: string): boolean {
  try {
    return realpathSync(folder) === real;
  } catch {
    return false;
  }
}
