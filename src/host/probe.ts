import { lstatSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Why nothing could be written into a folder, in a few words; null where a file could. A folder that is not there yet
 * is held to be as good as the nearest one above it that is. Leaves nothing behind.
 */
export function whyNotWritable(folder: string): string | null {
  try {
    for (let at = folder; ; at = dirname(at)) {
      const stat = lstatSync(at, { throwIfNoEntry: false });
      if (stat === undefined) {
        if (at === dirname(at)) return "it does not exist";
        continue;
      }
      if (!stat.isDirectory() && !stat.isSymbolicLink()) return `${at} is no folder`;
      const probe = join(at, `.neurarch-gate-probe.${process.pid}`);
      writeFileSync(probe, "probe\n", { mode: 0o600, flag: "wx" });
      unlinkSync(probe);
      return null;
    }
  } catch (error) {
    const code = (error as { code?: string }).code;
    return code === "EACCES" || code === "EPERM"
      ? "permission denied"
      : code === "EROFS"
        ? "it is read-only"
        : code === "ENOSPC" || code === "EDQUOT"
          ? "the disk is full"
          : String(code ?? error);
  }
}
