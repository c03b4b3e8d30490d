import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT, run } from "./shell.ts";

/** What names a release, and makes two builds of it the same. */
export type Release = {
  readonly version: string;
  readonly commit: string;
  /** Seconds since 1970 that every file in an archive is dated with (reproducible-builds.org, SOURCE_DATE_EPOCH). */
  readonly epoch: number;
};

/** The release of the working tree: its version is package.json's, its time the last commit's unless the environment says. */
export function releaseOfTree(): Release {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
  const given = process.env.SOURCE_DATE_EPOCH;
  return {
    version,
    commit: commitOfTree(),
    epoch: Number(given ?? run(["git", "log", "-1", "--format=%ct"])),
  };
}

/**
 * The commit, marked where the working tree differs from it; `release` in a tree that is no checkout. `DIST_COMMIT` says
 * it for a copy of a tree.
 */
function commitOfTree(): string {
  if (process.env.DIST_COMMIT !== undefined) return process.env.DIST_COMMIT;
  try {
    const commit = run(["git", "rev-parse", "--short=12", "HEAD"]).trim();
    return run(["git", "status", "--porcelain", "--untracked-files=no"]) === ""
      ? commit
      : `${commit}-changed`;
  } catch {
    return "release";
  }
}

/** `0.2.0-rc.1` as Debian and RPM order it, before `0.2.0`: `0.2.0~rc.1`. */
export const packageVersion = (version: string) => version.replace("-", "~");

/** `0.2.0-rc.1` as Python writes it (PEP 440): `0.2.0rc1`. Throws on words that Python has none for. */
export function pythonVersion(version: string): string {
  const found = /^(\d+\.\d+\.\d+)(?:-(alpha|beta|rc)\.(\d+))?$/.exec(version);
  if (found === null) throw new Error(`version ${version} has no form in Python: use 1.2.3 or 1.2.3-rc.1`);
  const [, number, word, count] = found;
  return word === undefined ? number! : `${number}${{ alpha: "a", beta: "b", rc: "rc" }[word]}${count}`;
}
