// Put in by the build (`--define`); the source tree itself runs as "dev".
declare const BUILD_VERSION: string | undefined;
declare const BUILD_COMMIT: string | undefined;
declare const BUILD_TARGET: string | undefined;
declare const BUILD_DAY: string | undefined;

/** `0.1.0`, or `dev` when run from source. */
export function version(): string {
  return typeof BUILD_VERSION === "string" ? BUILD_VERSION : "dev";
}

/** `neurarch-gate 0.1.0 (1a2b3c4, linux-x64)`. */
export function versionLine(): string {
  const commit = typeof BUILD_COMMIT === "string" ? BUILD_COMMIT : "source";
  const target = typeof BUILD_TARGET === "string" ? BUILD_TARGET : "bun";
  return `neurarch-gate ${version()} (${commit}, ${target})`;
}

/** The day this was built from, `2026-11-30`; of a source tree the first one there is. */
export function buildDay(): string {
  return typeof BUILD_DAY === "string" ? BUILD_DAY : "2026-01-01";
}

declare const BUILD_DIGESTS: string | undefined;

/** SHA-256 of a text that the build put in; null in a source tree. */
export function builtDigest(name: "catalogue" | "lua" | "python"): string | null {
  if (typeof BUILD_DIGESTS !== "string") return null;
  return (
    new Map(BUILD_DIGESTS.split(" ").map((pair) => pair.split("=") as [string, string])).get(name) ?? null
  );
}
