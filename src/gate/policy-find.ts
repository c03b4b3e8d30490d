import { isStrangersFile, pathKind } from "../host/fs.ts";
import { dirname, isAbsolute, join, resolve } from "../host/paths.ts";

const NAMES = [".neurarch.yml", ".neurarch.yaml"] as const;
/** Folders that are looked into at most, above one start: a submit waits for it. */
const MAX_FOLDERS = 64;

/**
 * The policy file of a job: in each start folder and the folders above it, the first one that is a regular file; a
 * folder that holds `.git` is the last one of its start. One that somebody else dropped where everybody may write is
 * passed by. Null when there is none. Costs a few stat calls.
 */
export function findPolicyFile(starts: readonly string[]): string | null {
  const seen = new Set<string>();
  for (const start of starts) {
    let folder = resolve(start);
    for (let level = 0; level < MAX_FOLDERS && !seen.has(folder); level++) {
      seen.add(folder);
      for (const name of NAMES) {
        const path = join(folder, name);
        if (pathKind(path) === "file" && !isStrangersFile(path, folder)) return path;
      }
      const above = dirname(folder);
      if (above === folder || pathKind(join(folder, ".git")) !== "none") break;
      folder = above;
    }
  }
  return null;
}

/** `path` from the folder that relative paths start at, with the home folder for `~`. */
export function absolute(path: string, cwd: string, home: string | undefined): string {
  const whole = home !== undefined && /^~(?:\/|$)/.test(path) ? home + path.slice(1) : path;
  return isAbsolute(whole) ? resolve(whole) : resolve(cwd, whole);
}
