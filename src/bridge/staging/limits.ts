/** Most regular files of a snapshot. */
export const MOST_FILES = 50_000;
/** Most bytes of them together. */
export const MOST_BYTES = 536_870_912;

export interface StagedFile {
  readonly path: string;
  readonly bytes: number;
}

/** Why a workspace is too large to be staged, with what fills it; null when it is not. */
export function overLimits(files: readonly StagedFile[]): string | null {
  if (files.length > MOST_FILES) {
    const most = largest(files, () => 1).map(
      ([name, count]) => `${name} (${count.toLocaleString("en-US")} files)`,
    );
    return `workspace has more than 50,000 files to stage, most in ${most.join(", ")}; ${HINT}`;
  }
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  if (bytes > MOST_BYTES) {
    const most = largest(files, (file) => file.bytes).map(
      ([name, sum]) => `${name} (${(sum / 1e6).toFixed(1)} MB)`,
    );
    return `workspace has more than 512 MiB to stage (${(bytes / 1e6).toFixed(1)} MB), most in ${most.join(", ")}; ${HINT}`;
  }
  return null;
}

const HINT = "git-ignored paths are left out: add to .gitignore what an evaluation does not need";

/** The three top-level names that weigh most. */
function largest(files: readonly StagedFile[], weigh: (file: StagedFile) => number): [string, number][] {
  const sums = new Map<string, number>();
  for (const file of files) {
    const slash = file.path.indexOf("/");
    const name = slash === -1 ? file.path : `${file.path.slice(0, slash)}/`;
    sums.set(name, (sums.get(name) ?? 0) + weigh(file));
  }
  return [...sums].sort((a, b) => b[1] - a[1]).slice(0, 3);
}
